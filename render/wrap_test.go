package render

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// Wrapping keeps the words in order, and only a word that is too long by itself makes a line too long.
func TestWrap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := strings.Join(rapid.SliceOfN(rapid.StringMatching(`[a-zäß–]{1,12}`), 1, 30).Draw(t, "words"), " ")
		width := rapid.IntRange(1, 60).Draw(t, "width")
		lines := Wrap(text, width)
		if got := strings.Join(lines, " "); got != text {
			t.Fatalf("%q became %q", text, got)
		}
		for i, line := range lines {
			if Width(line) > width && strings.Contains(line, " ") {
				t.Fatalf("line %d has %d columns of %d: %q", i, Width(line), width, line)
			}
			if i > 0 && Width(lines[i-1])+1+Width(strings.Fields(line)[0]) <= width {
				t.Fatalf("the first word of %q had room on %q", line, lines[i-1])
			}
		}
	})
	if got := Wrap("a b", 0); len(got) != 1 {
		t.Errorf("width 0: %q", got)
	}
}
