package cmd

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"kseg/logdir"
	"kseg/render"
)

// The exit codes, forever. topics/exit-codes.md is their documentation.
const (
	codeOK          = 0
	codeFound       = 1
	codeUsage       = 2
	codeIncomplete  = 3
	codeInterrupted = 130
)

// errFound ends a verb that did what was asked and found damage, a difference, or no hit; it has been printed by then.
var errFound = errors.New("found what the exit code is to tell")

// errIncomplete ends a verb that could not do all, after it has said so itself on stderr.
var errIncomplete = errors.New("could not do it all")

// A usageError is a command line that makes no sense, as opposed to an input that could not be read.
type usageError struct{ err error }

func (e *usageError) Error() string {
	return strings.TrimPrefix(e.err.Error(), logdir.ErrUsage.Error()+": ")
}

func (e *usageError) Unwrap() error { return e.err }

// usageErrorf returns an error that ends with exit code 2 and a pointer to the command's help.
func usageErrorf(format string, args ...any) error { return &usageError{fmt.Errorf(format, args...)} }

// result is the error of a verb that went through: errFound where something was found, joined with what kept it from
// doing all (nil if nothing did), so that code 3 outranks 1 whatever the order.
func result(found bool, incomplete error) error {
	if found {
		return errors.Join(errFound, incomplete)
	}
	return incomplete
}

// exitCode is the one place where an error becomes an exit code: nil is 0, the two sentinels and usage errors are
// theirs, a reader that went away (`| head`) is no error, a cancelled context is an interrupt, and anything else is
// something that could not be done. Of several joined errors the highest rank wins: 130, 2, 3, 1, 0.
func exitCode(err error) int {
	if err == nil {
		return codeOK
	}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		worst := codeOK
		for _, e := range joined.Unwrap() {
			if code := exitCode(e); codeRank(code) > codeRank(worst) {
				worst = code
			}
		}
		return worst
	}
	var usage *usageError
	switch {
	case errors.Is(err, errFound):
		return codeFound
	case errors.As(err, &usage):
		return codeUsage
	case errors.Is(err, syscall.EPIPE):
		return codeOK
	case errors.Is(err, context.Canceled):
		return codeInterrupted
	}
	return codeIncomplete
}

func codeRank(code int) int {
	switch code {
	case codeOK:
		return 0
	case codeFound:
		return 1
	case codeIncomplete:
		return 2
	case codeUsage:
		return 3
	}
	return 4
}

// finish flushes stdout, says what there is to say about the error, and returns the exit code.
func (env *Env) finish(ran *cobra.Command, err error, interrupted bool) int {
	if flushErr := env.Stdout.Flush(); flushErr != nil && !errors.Is(err, flushErr) {
		err = errors.Join(err, flushErr)
	}
	env.Stdout.bar.Clear()
	err = errors.Join(err, env.unsaid())
	code := exitCode(err)
	if code == codeInterrupted && !interrupted {
		// A context that was cancelled from within is a failure, not the user's wish.
		code = codeIncomplete
	}
	if code == codeInterrupted {
		fmt.Fprintln(env.Stderr, interruptedNote)
		return code
	}
	for _, e := range flatten(err) {
		env.complain(ran, e)
	}
	return code
}

// unsaid is about what the disk did not give: however little it mattered the answer is one without it, and it is named
// unless it was.
func (env *Env) unsaid() error {
	var all []error
	for _, f := range logdir.Failures() {
		all = append(all, errIncomplete)
		if !env.Stderr.named(render.Escaped(filepath.Base(f.Path))) {
			all = append(all, fmt.Errorf("%s: %w: it could not be read, and the answer is one without it", f.Path, f.Err))
		}
	}
	return errors.Join(all...)
}

// complain prints one error as one line, unless the verb has printed it or nobody reads any more.
func (env *Env) complain(ran *cobra.Command, err error) {
	if errors.Is(err, errFound) || errors.Is(err, errIncomplete) || errors.Is(err, syscall.EPIPE) {
		return
	}
	fmt.Fprintf(env.Stderr, "kseg: %s\n", render.Escaped(err.Error()))
	var usage *usageError
	if errors.As(err, &usage) {
		fmt.Fprintf(env.Stderr, "Run '%s --help' for examples and flags.\n", ran.CommandPath())
	}
}

// flatten lists the members of joined errors.
func flatten(err error) []error {
	if err == nil {
		return nil
	}
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return []error{err}
	}
	var all []error
	for _, e := range joined.Unwrap() {
		all = append(all, flatten(e)...)
	}
	return all
}
