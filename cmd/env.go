package cmd

import (
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"
)

// Env is what a verb may use of the world besides its inputs. Tests fill it with buffers and a fixed clock.
type Env struct {
	Stdin  io.Reader
	Stdout *Output // buffered; its first write error is kept and ends in exit code 3
	// writes out what stdout has buffered first, so that the two stay in order on a terminal or under 2>&1
	Stderr *stderrWriter

	StdoutTerminal bool
	StderrTerminal bool
	Width          int // columns to which prose is broken: of the terminal, of COLUMNS, or 100
	TableWidth     int // columns that tables have to fit into; 0 where there is no terminal and COLUMNS says nothing

	files sync.Mutex // held while files are written
	left  bool       // no file is to be written any more

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
	if width := columns(stdout); width > 0 {
		env.Width, env.TableWidth = width, width
	}
	if width, err := strconv.Atoi(os.Getenv("COLUMNS")); err == nil && width > 0 && !env.StdoutTerminal {
		env.Width, env.TableWidth = width, width // less or the like shows it
	}
	noteWidth := columns(stderr)
	if noteWidth == 0 && !env.StderrTerminal {
		noteWidth = env.TableWidth
	}
	env.Stdout.fold.Width, env.Stderr.fold.Width = env.TableWidth, noteWidth
	return env
}

// foldFor lets lines be as long as they are where others than people read them: what kafka-dump-log prints, JSON, CSV,
// completions.
func (env *Env) foldFor(cmd *cobra.Command) {
	form := ""
	if f := cmd.Flags().Lookup("output"); f != nil {
		form = f.Value.String()
	}
	own := cmd.Name() != "dump" && cmd.Name() != "completion" && !strings.HasPrefix(cmd.Name(), cobra.ShellCompRequestCmd)
	if form != "table" && !(own && (form == "text" || form == "")) {
		env.Stdout.unfold()
	}
	if f := cmd.Flags().Lookup("kafka-compat"); f != nil && f.Value.String() == "true" {
		env.Stderr.unfold()
	}
}

// columns is the width of the terminal that w writes to; 0 if it is none, or does not say.
func columns(w io.Writer) int {
	if !isTerminal(w) {
		return 0
	}
	width, _, err := term.GetSize(int(w.(*os.File).Fd()))
	if err != nil {
		return 0
	}
	return width
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
