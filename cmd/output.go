package cmd

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"regexp"
	"sync"

	"kseg/render"
)

// outputBuffer is how many bytes are gathered before one write.
const outputBuffer = 64 << 10

// Output is a buffered writer that remembers its first error: every later Write and Flush returns it, so that a report
// cut short by a full disk cannot end in exit code 0. It is safe for several goroutines.
type Output struct {
	mu      sync.Mutex
	w       io.Writer
	buf     []byte
	through bool // a terminal is written at once
	fold    render.Folder
	bar     *render.Progress
	err     error
}

// Write takes all of p or returns the first error there ever was.
func (o *Output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.keep(o.fold.Fold(p))
	if o.through {
		o.flush()
	}
	if o.err != nil {
		return 0, o.err
	}
	return len(p), nil
}

// keep puts p to what is to be written.
func (o *Output) keep(p []byte) {
	if len(o.buf)+len(p) > outputBuffer {
		o.flush()
	}
	if len(p) >= outputBuffer {
		o.write(p)
	} else if o.err == nil {
		o.buf = append(o.buf, p...)
	}
}

// Flush writes what is buffered and returns the first error there ever was.
func (o *Output) Flush() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.keep(o.fold.Rest())
	o.flush()
	return o.err
}

// unfold lets lines be as long as they are.
func (o *Output) unfold() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.fold.Width = 0
}

// close writes the whole lines that are buffered, and lets every later Write fail.
func (o *Output) close(why error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.buf = o.buf[:bytes.LastIndexByte(o.buf, '\n')+1]
	o.flush()
	o.bar.End()
	o.err = cmp.Or(o.err, why)
}

// show makes bar the progress bar, which goes away by itself before anything else is written.
func (o *Output) show(bar *render.Progress) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.bar = bar
}

func (o *Output) flush() {
	if len(o.buf) > 0 {
		o.write(o.buf)
		o.buf = o.buf[:0]
	}
}

func (o *Output) write(p []byte) {
	if o.err != nil {
		return
	}
	if o.through {
		o.bar.Clear()
	}
	n, err := o.w.Write(p)
	if err == nil && n < len(p) {
		err = io.ErrShortWrite
	}
	if err != nil {
		o.err = fmt.Errorf("the output is incomplete: %w", err)
	}
}

// stderrWriter keeps notes after the data they are about, and takes the progress bar off the line they go to.
type stderrWriter struct {
	mu     sync.Mutex
	w      io.Writer
	before *Output
	fold   render.Folder
	said   []byte // up to mostSaid
}

// mostSaid bounds what is kept of the notes.
const mostSaid = 1 << 20

// named reports whether the notes name a file, with a path or alone.
func (s *stderrWriter) named(name string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return regexp.MustCompile(`(^|[/ ])` + regexp.QuoteMeta(name) + `([^/\w.]|$)`).Match(s.said)
}

// unfold lets lines be as long as they are.
func (s *stderrWriter) unfold() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fold.Width = 0
}

// close lets nothing be written any more.
func (s *stderrWriter) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.w = io.Discard
}

func (s *stderrWriter) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.before.Flush()
	s.before.bar.Clear()
	s.said = append(s.said, p[:min(len(p), mostSaid-len(s.said))]...)
	if _, err := s.w.Write(s.fold.Fold(p)); err != nil {
		return 0, err
	}
	return len(p), nil
}
