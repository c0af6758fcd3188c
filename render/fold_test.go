package render

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestAppendFolded(t *testing.T) {
	for _, c := range []struct {
		line  string
		width int
		want  string
	}{
		{"no width is no limit", 0, "no width is no limit"},
		{"as wide as it may be", 20, "as wide as it may be"},
		{"this is one column wider than it may: x", 38, "this is one column wider than it may:\n    x"},
		{"a/word/that/has/no/blank/at/all", 10, "a/word/that/has/no/blank/at/all"},
		{"  see a/word/that/has/no/blank", 12, "  see\na/word/that/has/no/blank"},
		{"\x1b[31mred words\x1b[0m go on in the next line all the same", 30,
			"\x1b[31mred words\x1b[0m go on in the next\n    line all the same"},
		{"  kseg verify --ignore 'a b' one two three four five", 40,
			"  kseg verify --ignore 'a b' one two \\\n      three four five"},
		{"  next: kseg dump --match 'one two three four five' six", 40,
			"  next: kseg dump --match \\\n      'one two three four five' six"},
	} {
		if got := string(AppendFolded(nil, c.line, c.width)); got != c.want {
			t.Errorf("%q at %d:\n%s\nwant\n%s", c.line, c.width, got, c.want)
		}
	}
}

// TestFoldedKeepsTheWords holds that folding takes no word away and makes none, whatever the pieces lines come in, and
// that a line which is too wide is one word.
func TestFoldedKeepsTheWords(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringMatching(`([a-zé日 ]{0,60}\n){0,4}`).Draw(t, "text")
		f := Folder{Width: rapid.IntRange(1, 70).Draw(t, "width")}
		var out []byte
		for rest := text; rest != ""; {
			n := rapid.IntRange(1, len(rest)).Draw(t, "n")
			out, rest = append(out, f.Fold([]byte(rest[:n]))...), rest[n:]
		}
		out = append(out, f.Rest()...)
		if got, want := strings.Fields(string(out)), strings.Fields(text); strings.Join(got, " ") != strings.Join(want, " ") {
			t.Fatalf("%q became %q", text, out)
		}
		for line := range strings.Lines(string(out)) {
			if line = strings.TrimSuffix(line, "\n"); Width(line) > f.Width && len(strings.Fields(line)) > 1 {
				t.Fatalf("%d columns of %d: %q", Width(line), f.Width, line)
			}
		}
	})
}
