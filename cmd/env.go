package cmd

import (
	"fmt"
	"io"
	"os"
	"time"

	"golang.org/x/term"
)

// Env is what a verb may use of the world besides its inputs. Tests fill it with buffers and a fixed clock.
type Env struct {
	Stdin  io.Reader
	Stdout *Output       // buffered; its first write error is kept and ends in exit code 3
	Stderr *stderrWriter // writes out what stdout has buffered first, so that the two stay in order on a terminal or under 2>&1

	StdoutTerminal bool
	StderrTerminal bool
	Width          int // columns of the terminal; 100 where there is none

	Now    func() time.Time
	Getenv func(string) string
}

// plainWidth is the width of output that is not for a terminal, the same wherever it is made.
const plainWidth = 100

func newEnv(stdin io.Reader, stdout, stderr io.Writer) *Env {
	env := &Env{
		Stdin:          stdin,
		StdoutTerminal: isTerminal(stdout),
		StderrTerminal: isTerminal(stderr),
		Width:          plainWidth,
		Now:            time.Now,
		Getenv:         os.Getenv,
	}
	env.Stdout = &Output{w: stdout, through: env.StdoutTerminal}
	env.Stderr = &stderrWriter{w: stderr, before: env.Stdout}
	if f, ok := stdout.(*os.File); ok && env.StdoutTerminal {
		if width, _, err := term.GetSize(int(f.Fd())); err == nil && width > 0 {
			env.Width = width
		}
	}
	return env
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// notef prints a note of one line on stderr. Names and messages that come from files are escaped by the caller
// (render.Escaped).
func (env *Env) notef(format string, args ...any) {
	fmt.Fprintf(env.Stderr, "kseg: "+format+"\n", args...)
}
