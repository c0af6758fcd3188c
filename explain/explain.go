// Package explain shows what each byte of a file is for: position, hexadecimal digits, characters, field, value and
// meaning. The layouts come from format.Describe, those of internal topics' records from schema; here are the words. It
// also computes how many bytes records take on disk.
package explain

import (
	"context"
	"errors"
	"fmt"
	"io"

	"kseg/format"
	"kseg/logdir"
	"kseg/render"
	"kseg/schema"
)

// Output is the form of the data.
type Output uint8

// The forms.
const (
	Text Output = iota
	JSON
	Table
)

// Options choose what is shown, and how.
type Options struct {
	Output  Output
	Theme   render.Theme
	Payload render.Payload
	Terse   bool // without meanings
	Quiet   bool // only fields that are at fault
	// Progress is told of bytes of the file that are done with; nil: nobody wants to know.
	Progress func(bytes int64)
	Width    int // columns of the terminal, to which meanings are wrapped; 0: they are not
	// All shows the whole file. Otherwise at most one of Offset, Position and Entry (nil: not given) says what to show;
	// without one it is the first batch or entry.
	All                     bool
	Offset, Position, Entry *int64
	From, To                *int64 // offsets, inclusive: the batches that hold one of them
	TimestampMs             *int64 // the first batch with a record at or after it
	MaxBatchBytes           int64
}

// ErrNoHit means that the file has no batch or entry like the one asked for.
var ErrNoHit = errors.New("not in this file")

// ErrNotAsked means a choice that a kind of file does not have.
var ErrNotAsked = errors.New("no such choice")

// explainer shows one file.
type explainer struct {
	ctx    context.Context
	opts   *Options
	file   *logdir.File
	data   []byte
	base   int64 // of the segment, −1 if unknown
	rr     *format.RecordReader
	sink   sink
	notes  io.Writer
	around *surroundings
	topic  schema.Topic
	schema *schema.Decoder
	scene  scene
	err    error // of the sink
	tooBig error
}

// sink takes what is to be shown, in order.
type sink interface {
	// title begins a batch, a hole, or a file's entries.
	title(text string, notes []string) error
	// plain begins the decompressed records of a batch.
	plain(text string) error
	field(f *field) error
	// missing says what is at fault without bytes of its own.
	missing(text string) error
}

// Run shows f to out, and says on errOut how to go on. The error wraps ErrNoHit or ErrNotAsked, format.ErrTooLarge
// where a batch could not be opened for its size (all else is shown), or is one of reading or writing.
func Run(ctx context.Context, f *logdir.File, opts Options, out, errOut io.Writer) error {
	return f.View(func(data []byte) error {
		e := newExplainer(ctx, f, &opts, data, errOut)
		return e.withSurroundings(func() error { return e.run(out) })
	})
}

func newExplainer(ctx context.Context, f *logdir.File, opts *Options, data []byte, errOut io.Writer) *explainer {
	e := &explainer{ctx: ctx, opts: opts, file: f, data: data, base: -1, notes: errOut, topic: topicOf(f),
		rr: format.NewRecordReader(opts.MaxBatchBytes, nil), schema: schema.NewDecoder()}
	if f.Name.HasBase {
		e.base = f.Name.Base
	}
	return e
}

// segmented reports whether the file consists of batches.
func (e *explainer) segmented() bool {
	return e.file.Kind().Batches()
}

func (e *explainer) run(out io.Writer) error {
	lines := &lineWriter{out: out}
	flush := func() error { return nil }
	switch e.opts.Output {
	case JSON:
		sink := &jsonSink{out: lines, file: e.file.Rel, payload: e.opts.Payload, terse: e.opts.Terse}
		if dir, ok := e.file.Dir(); ok {
			sink.topic, sink.partition = dir.Topic, dir.String()
		}
		e.sink = sink
	case Table:
		sink := newTableSink(out, e.opts, int64(len(e.data)))
		e.sink, flush = sink, sink.table.Flush
	default:
		e.sink = newTextSink(lines, e.opts, int64(len(e.data)))
	}
	if e.opts.Quiet {
		e.sink = &quietSink{sink: e.sink}
	}
	err := e.show()
	if flushErr := errors.Join(flush(), lines.flush()); flushErr != nil {
		return flushErr
	}
	return errors.Join(err, e.tooBig)
}

// show gives what was chosen to the sink, which is nothing of an empty file.
func (e *explainer) show() error {
	switch {
	case len(e.data) == 0:
		e.note("%s is empty: there is no byte to explain", e.file.Display)
		return nil
	case e.segmented():
		return e.segment()
	}
	return e.entries()
}

// quietSink passes on what is at fault, with the titles over it.
type quietSink struct {
	sink
	heading string
	notes   []string
	pending bool
}

func (s *quietSink) title(text string, notes []string) error {
	s.heading, s.notes, s.pending = text, notes, true
	return nil
}

func (s *quietSink) plain(string) error { return nil }

func (s *quietSink) field(f *field) error {
	if f.Fault == nil {
		return nil
	}
	if err := s.begin(); err != nil {
		return err
	}
	return s.sink.field(f)
}

func (s *quietSink) missing(text string) error {
	if err := s.begin(); err != nil {
		return err
	}
	return s.sink.missing(text)
}

func (s *quietSink) begin() error {
	if !s.pending {
		return nil
	}
	s.pending = false
	return s.sink.title(s.heading, s.notes)
}

// note says something beside the data.
func (e *explainer) note(format string, args ...any) {
	if e.opts.Quiet {
		return
	}
	fmt.Fprintf(e.notes, "kseg: %s\n", render.Escaped(fmt.Sprintf(format, args...)))
}

// topicOf is the internal topic that the records of f belong to.
func topicOf(f *logdir.File) schema.Topic {
	if f.Kind() == format.KindCheckpoint {
		return schema.Metadata
	}
	if dir, ok := f.Dir(); ok {
		return schema.TopicFor(dir.String())
	}
	return schema.None
}

// lineWriter gathers lines, so that a field costs no system call.
type lineWriter struct {
	out io.Writer
	buf []byte
	err error
}

const flushBytes = 64 << 10

func (w *lineWriter) write(line []byte) error {
	w.buf = append(w.buf, line...)
	if len(w.buf) >= flushBytes {
		return w.flush()
	}
	return w.err
}

// spill is a render.Spill.
func (w *lineWriter) spill(buf []byte) []byte {
	w.buf = buf
	_ = w.flush() // remembers its error
	return w.buf
}

func (w *lineWriter) flush() error {
	if w.err == nil && len(w.buf) > 0 {
		_, w.err = w.out.Write(w.buf)
	}
	w.buf = w.buf[:0]
	return w.err
}
