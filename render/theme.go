// Package render turns values into what a user or a script reads: JSON lines, tables, aligned text, escaped payloads,
// numbers with units, colour, and the progress bar. It knows nothing of Kafka's formats and nothing of the command
// line, and imports no other package of this program.
package render

import (
	"fmt"

	"github.com/fatih/color"
)

// When is a three-way switch, auto|always|never, and a flag's value (pflag.Value, by its methods).
type When uint8

// The switch's positions; the zero value is WhenAuto.
const (
	WhenAuto When = iota
	WhenAlways
	WhenNever
)

var whenNames = [...]string{"auto", "always", "never"}

// String returns the position's name.
func (w When) String() string { return whenNames[w] }

// Set takes the position's name.
func (w *When) Set(name string) error {
	for i, n := range whenNames {
		if n == name {
			*w = When(i)
			return nil
		}
	}
	return fmt.Errorf("%q is none of auto, always, never", name)
}

// Type is what the flag's help shows for the value.
func (w *When) Type() string { return "auto|always|never" }

// On decides: always and never as they say, auto as the caller sees the terminal.
func (w When) On(auto bool) bool { return w == WhenAlways || w == WhenAuto && auto }

// Theme is what text looks like where it goes: it colours text by what it says, and knows how wide Columns may be. The
// zero value leaves text as it is.
type Theme struct {
	good, look, bad, dim, strong *color.Color
	// Width is the number of columns of the terminal; 0 where there is none, and nothing has to fit.
	Width int
}

// NewTheme returns a theme that colours, or the zero Theme. Whether to colour is decided by the caller, once: this
// looks at neither the environment nor the terminal.
func NewTheme(on bool) Theme {
	if !on {
		return Theme{}
	}
	paint := func(attributes ...color.Attribute) *color.Color {
		c := color.New(attributes...)
		c.EnableColor()
		return c
	}
	return Theme{
		good:   paint(color.FgGreen),
		look:   paint(color.FgYellow),
		bad:    paint(color.FgRed),
		dim:    paint(color.Faint),
		strong: paint(color.Bold),
	}
}

// Good is green: what was checked and held.
func (t Theme) Good(s string) string { return colored(t.good, s) }

// Look is yellow: worth a look.
func (t Theme) Look(s string) string { return colored(t.look, s) }

// Bad is red: wrong.
func (t Theme) Bad(s string) string { return colored(t.bad, s) }

// Dim is faint: detail beside the answer.
func (t Theme) Dim(s string) string { return colored(t.dim, s) }

// Strong is bold: headings.
func (t Theme) Strong(s string) string { return colored(t.strong, s) }

func colored(c *color.Color, s string) string {
	if c == nil || s == "" {
		return s
	}
	return c.Sprint(s)
}
