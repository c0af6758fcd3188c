package render

import (
	"strings"
	"testing"
)

// fitTable is a table of a name, two numbers and words, of which the second number may go.
func fitTable(width int) string {
	theme := NewTheme(true)
	theme.Width = width
	table := NewColumns("nrrw").Fit(theme, 2, Below)
	table.Row("name", "n", "m", "why")
	table.Row("a-topic-with-a-long-name-0017", "1234567890123", "42", theme.Bad("it waits for a segment that is younger"))
	return stripColor(string(table.Append(nil, " ")))
}

// TestColumnsFit holds that lines are no longer than the terminal, that what may go goes in its order, and that numbers
// stay whole.
func TestColumnsFit(t *testing.T) {
	for _, c := range []struct {
		width int
		want  string
	}{
		{0, ` name                                       n   m  why
 a-topic-with-a-long-name-0017  1234567890123  42  it waits for a segment that is younger
`},
		{80, ` name                                       n   m  why
 a-topic-with-a-long-name-0017  1234567890123  42  it waits for a segment that
                                                   is younger
`},
		{70, ` name                                  n   m  why
 a-topic-wit…ng-name-0017  1234567890123  42  it waits for a segment
                                              that is younger
`},
		{66, ` name                                  n  why
 a-topic-wit…ng-name-0017  1234567890123  it waits for a segment
                                          that is younger
`},
		{50, ` name                                       n
     why
 a-topic-with-a-long-name-0017  1234567890123
     it waits for a segment that is younger
`},
		{30, ` name                        n
     why
 a-topi…me-0017  1234567890123
     it waits for a segment
     that is younger
`},
	} {
		if got := fitTable(c.width); got != c.want {
			t.Errorf("width %d: got\n%swant\n%s", c.width, got, c.want)
		}
		for line := range strings.Lines(fitTable(c.width)) {
			if n := Width(strings.TrimSuffix(line, "\n")); c.width > 0 && n > c.width {
				t.Errorf("width %d: %d columns: %s", c.width, n, line)
			}
		}
	}
}

func TestMiddle(t *testing.T) {
	for _, c := range []struct {
		text  string
		width int
		want  string
	}{{"orders-17", 9, "orders-17"}, {"orders-17", 7, "ord…-17"}, {"orders-17", 1, "…"}, {"日本語日本語-0", 8, "日…語-0"},
		{"x", 0, "x"}} {
		if got := Middle(c.text, c.width); got != c.want {
			t.Errorf("Middle(%q, %d) = %q, want %q", c.text, c.width, got, c.want)
		}
	}
}
