package render

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"
)

var tableColumns = []Column{{"segment", true}, {"codec", false}, {"size", true}, {"why not", false}}

func TestTable(t *testing.T) {
	var out strings.Builder
	table := NewTable(&out, Theme{}, tableColumns...)
	table.Row("0", "gzip", "1.8 KiB", "naïve → ✔  two blanks, and longer than any terminal is wide: nothing is cut")
	table.Row("4740", "none", "79 B", "日本")
	table.Row("8", "")
	if err := table.Flush(); err != nil {
		t.Fatal(err)
	}
	want := `
segment  codec     size  why not
      0  gzip   1.8 KiB  naïve → ✔  two blanks, and longer than any terminal is wide: nothing is cut
   4740  none      79 B  日本
      8
`
	if got := "\n" + out.String(); got != want {
		t.Errorf("got%swant%s", got, want)
	}
}

func TestTableColourDoesNotShiftColumns(t *testing.T) {
	render := func(theme Theme) string {
		var out strings.Builder
		table := NewTable(&out, theme, tableColumns...)
		table.Row("1", theme.Good("gzip"), theme.Bad("5"), theme.Dim("x"))
		table.Row("22", theme.Look("zstd"), "12,345", theme.Strong("日本"))
		if err := table.Flush(); err != nil {
			t.Fatal(err)
		}
		return out.String()
	}
	colored := render(NewTheme(true))
	if !strings.Contains(colored, "\x1b[32mgzip") {
		t.Fatalf("no colour in %q", colored)
	}
	if plain := trimLines(stripColor(colored)); plain != render(Theme{}) {
		t.Errorf("coloured table without its colours:\n%splain table:\n%s", plain, render(Theme{}))
	}
}

func stripColor(s string) string {
	for {
		start := strings.Index(s, "\x1b[")
		if start < 0 {
			return s
		}
		s = s[:start] + s[start+strings.IndexByte(s[start:], 'm')+1:]
	}
}

func trimLines(s string) string {
	return regexp.MustCompile(`(?m) +$`).ReplaceAllString(s, "")
}

// TestTableBlocks holds that a table of several blocks has one header, and that a block is as wide as the one before.
func TestTableBlocks(t *testing.T) {
	var out strings.Builder
	table := NewTable(&out, Theme{}, Column{Name: "n", Right: true}, Column{Name: "x"})
	table.Row("1000000", "wide")
	const rows = 2*tableBlock + 3
	for i := range rows - 1 {
		table.Row(fmt.Sprint(i), "x")
	}
	if err := table.Flush(); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
	if len(lines) != rows+1 || lines[0] != "      n  x" {
		t.Fatalf("%d lines, the first %q", len(lines), lines[0])
	}
	for i, line := range lines[2:] {
		if want := fmt.Sprintf("%7d  x", i); line != want {
			t.Fatalf("row %d: %q, want %q", i, line, want)
		}
	}
}

func TestEmptyTableHasAHeader(t *testing.T) {
	var out strings.Builder
	if err := NewTable(&out, Theme{}, tableColumns...).Flush(); err != nil || out.String() != "segment  codec  size  "+
		"why not\n" {
		t.Errorf("%q, %v", out.String(), err)
	}
}

type brokenWriter struct{ err error }

func (w brokenWriter) Write([]byte) (int, error) { return 0, w.err }

func TestTableReturnsTheWritersError(t *testing.T) {
	broken := errors.New("disk full")
	table := NewTable(brokenWriter{broken}, Theme{}, tableColumns...)
	for range 3 * tableBlock {
		table.Row("1")
	}
	if err := table.Flush(); !errors.Is(err, broken) {
		t.Errorf("Flush: %v", err)
	}
}

func TestColumns(t *testing.T) {
	theme := NewTheme(true)
	columns := NewColumns("lr")
	columns.Row("phase 1", "5", "index")
	columns.Row(theme.Good("p"), theme.Bad("32700"))
	columns.Row("日本")
	got := stripColor(string(columns.Append([]byte("head\n"), "  ")))
	want := "head\n  phase 1      5  index\n  p        32700\n  日本\n"
	if got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

func BenchmarkTableRow(b *testing.B) {
	table := NewTable(&strings.Builder{}, Theme{}, tableColumns...)
	for b.Loop() {
		table.Row("4740", "gzip", "1.8 KiB", "x")
	}
}
