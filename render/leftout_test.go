package render

import (
	"strings"
	"testing"
)

// TestLeftOutColumnsAreNamed: what has no room is named under the table, once.
func TestLeftOutColumnsAreNamed(t *testing.T) {
	for width, want := range map[int]string{80: "", 30: "not shown, for want of width:\nsize\n",
		12: "not shown,\nfor want of\nwidth: size,\nage\n"} {
		c := NewColumns("nrr").Fit(Theme{Width: width}, 1, 2).Head("name", "size", "age")
		c.Row(strings.Repeat("x", 20), "1,000,000", "12 d")
		got := string(c.Append(nil, ""))
		c.Row("y", "2", "3 d")
		got += string(c.Append(nil, ""))
		if strings.Count(got, "not shown") != min(1, len(want)) || !strings.Contains(got, want) {
			t.Errorf("width %d:\n%s", width, got)
		}
	}
}
