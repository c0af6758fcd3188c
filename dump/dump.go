// Package dump prints what is in the files of a log directory: batches and records, index entries, snapshots,
// checkpoints. As text it prints what kafka-dump-log 4.4.0 (org.apache.kafka.tools.DumpLogSegments) prints, byte for
// byte; where that tool fails it says what is there and goes on.
package dump

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"

	"kseg/format"
	"kseg/logdir"
	"kseg/render"
)

// Output is the form of the data on stdout.
type Output uint8

// The forms.
const (
	Text Output = iota
	JSON
	Table
)

// Options are the choices of one run; the zero value is a shallow text dump of everything.
type Options struct {
	Output  Output
	Payload render.Payload // resolved for the terminal
	Theme   render.Theme
	Deep    bool // a line a record
	Data    bool // with keys and values; implies Deep
	// SkipRecordMetadata leaves a record's line with key and payload only.
	SkipRecordMetadata bool
	Decode             Decode
	KeyDecoder         Decoder
	ValueDecoder       Decoder
	Compat             bool   // the real tool's stderr and its false alarm
	StderrTerminal     bool   // names are escaped there
	Quiet              bool   // print only what is wrong
	MaxBytes           *int64 // of a log; nil: all
	MaxMessageSize     int64  // in bytes, for checking an .index
	SanityCheck        bool
	VerifyOnly         bool
	Filter             Filter
	Limit, Tail        int64 // -1: no limit
	Count              bool  // print nothing and count the records that pass; not with Limit and Tail
	Jobs               int   // 0: one a core
	MaxBatchBytes      int64
	// Progress is called with the bytes of logs that were printed since its last call; it may be nil.
	Progress func(bytes int64)
}

// Result is what the exit code is made of.
type Result struct {
	Damage     bool // in a .log, .checkpoint or .snapshot
	Incomplete bool // something could not be read
	Files      int  // files there were, of which filters may leave out some
	// Records and Batches are how many pass, under Options.Count.
	Records, Batches int64
}

// dumper is one run over a set of files.
type dumper struct {
	ctx     context.Context
	opts    Options
	out     io.Writer
	errOut  io.Writer
	result  Result
	summary summary
	window  *window
	workers []*worker // kept from file to file
	pending []byte    // a file's head that is written when something of the file is
	table   *table
	wrote   bool // something of a file went to stdout
	written int  // how often something did
}

// Run prints every file of set to out and says on errOut what is wrong. The error is one of writing to out, or of ctx.
func Run(ctx context.Context, set *logdir.Set, opts Options, out, errOut io.Writer) (Result, error) {
	opts.Deep = opts.Deep || opts.Data
	if opts.Jobs <= 0 {
		opts.Jobs = runtime.GOMAXPROCS(0)
	}
	d := &dumper{ctx: ctx, opts: opts, out: out, errOut: errOut}
	d.result.Files = len(set.Files())
	files := d.choose(set)
	if err := d.prepareWindow(files); err != nil {
		return d.result, err
	}
	for _, f := range files {
		if d.window.done() {
			break
		}
		if err := d.file(f); err != nil {
			return d.result, err
		}
	}
	d.wrote = d.wrote || d.table != nil
	if err := d.flushTable(); err != nil {
		return d.result, err
	}
	d.printSummaries()
	d.sayNoHit(set)
	return d.result, nil
}

// prepareWindow sets up --limit and --tail, which for a tail means counting everything first.
func (d *dumper) prepareWindow(files []*logdir.File) error {
	if d.opts.Limit < 0 && d.opts.Tail < 0 {
		return nil
	}
	d.window = &window{left: -1}
	if d.opts.Limit >= 0 {
		d.window.left = d.opts.Limit
	}
	if d.opts.Tail < 0 {
		return nil
	}
	counter := &dumper{ctx: d.ctx, opts: d.opts, out: io.Discard, errOut: io.Discard, window: &window{left: -1,
		counting: true}}
	counter.opts.Compat = false
	for _, f := range files {
		if err := counter.file(f); err != nil {
			return err
		}
	}
	total := counter.window.seen
	if d.opts.Limit >= 0 {
		total = min(total, d.opts.Limit)
	}
	d.window.skip = max(0, total-d.opts.Tail)
	return nil
}

// file prints one file. Trouble with it is told and remembered; the error is one that ends the run.
func (d *dumper) file(f *logdir.File) error {
	err := d.steadily(f)
	if flushed := d.flushHead(); flushed != nil && err == nil {
		err = flushed
	}
	var stop *stopError
	switch {
	case err == nil:
	case errors.Is(err, errDeleted) || errors.Is(err, errChanged):
		fmt.Fprintf(d.errOut, "kseg: %s\n", render.Escaped(err.Error()))
	case errors.As(err, &stop):
		return stop.err
	default:
		d.result.Incomplete = true
		fmt.Fprintf(d.errOut, "kseg: %s\n", render.Escaped(err.Error()))
	}
	return nil
}

// steadily prints a file, and once more if it vanishes before anything of it was printed.
func (d *dumper) steadily(f *logdir.File) (err error) {
	look := func() error {
		now, gone := present(f)
		if err = gone; gone != nil {
			return nil
		}
		written := d.written
		if err = d.print(now); !errors.Is(err, logdir.ErrVanished) {
			return nil
		}
		if d.written > written && f.Listed() {
			err = fmt.Errorf("%w; %w", err, errChanged)
		}
		if d.written > written {
			return nil
		}
		return err
	}
	if f.Partition == nil {
		_ = look()
		return err
	}
	unlisted := f.Partition.Steady(look)
	if errors.Is(unlisted, logdir.ErrGone) {
		return deleted(f)
	}
	return cmp.Or(err, unlisted)
}

// errDeleted marks the error of a file that was deleted after its directory had been listed: there is nothing to print.
var errDeleted = errors.New("nothing of it is printed")

// errChanged marks the error of a file that lost bytes after some of it had been printed.
var errChanged = errors.New("printed is what was there")

// present is what is under the file's name now.
func present(f *logdir.File) (*logdir.File, error) {
	now, err := f, error(nil)
	switch {
	case f.Partition != nil:
		now = f.Partition.FileNamed(f.Name.Raw)
	case f.Listed():
		now, err = f.Again()
	}
	if now == nil && (err == nil || errors.Is(err, logdir.ErrVanished)) {
		err = deleted(f)
	}
	return now, err
}

func deleted(f *logdir.File) error {
	return fmt.Errorf("%s: it was deleted after its directory had been listed; %w", f.Display, errDeleted)
}

// selective reports whether only a part of the records or batches is wanted.
func (d *dumper) selective() bool {
	return d.opts.Filter.Active() || d.opts.Limit >= 0 || d.opts.Tail >= 0 || d.opts.Count
}

// head keeps what precedes a file's content until there is some, or the file ends.
func (d *dumper) head(dst []byte) error {
	if d.opts.Output == Text && !d.opts.Quiet && !d.opts.Count {
		d.pending = append(d.pending, dst...)
	}
	return nil
}

// flushHead puts what precedes a file's content on stdout if there was none, unless only a part is wanted.
func (d *dumper) flushHead() error {
	if d.selective() {
		return nil
	}
	head := d.pending
	d.pending = nil
	return d.write(head)
}

// title is the line that begins every file.
func (d *dumper) title(f *logdir.File) error {
	d.pending = nil
	return d.head(fmt.Appendf(nil, "Dumping %s\n", d.shown(f)))
}

// stopError ends the whole run: stdout is gone, or the user interrupted.
type stopError struct{ err error }

func (e *stopError) Error() string { return e.err.Error() }

// print shows a file as its kind has it.
func (d *dumper) print(f *logdir.File) error {
	if d.opts.Count && !isLog(f) {
		return nil
	}
	if d.opts.Compat && !knownThere(f) {
		return d.ignore(f)
	}
	switch show := binaries[f.Kind()]; {
	case isLog(f):
		return d.log(f)
	case show != nil:
		return show(d, f)
	}
	return d.stateFile(f)
}

// binaries prints the kinds for which the real tool has a form of its own.
var binaries = map[format.Kind]func(*dumper, *logdir.File) error{
	format.KindOffsetIndex:      (*dumper).offsetIndex,
	format.KindTimeIndex:        (*dumper).timeIndex,
	format.KindTxnIndex:         (*dumper).txnIndex,
	format.KindProducerSnapshot: (*dumper).snapshot,
}

// knownThere reports whether the real tool prints such a file; it looks at the text after the last dot.
func knownThere(f *logdir.File) bool {
	return !f.Name.Leftover() && (isLog(f) || binaries[f.Kind()] != nil)
}

// ignore passes over a file in the real tool's words.
func (d *dumper) ignore(f *logdir.File) error {
	if err := d.title(f); err != nil {
		return err
	}
	fmt.Fprintf(d.errOut, "Ignoring unknown file %s\n", render.Escaped(d.shown(f)))
	return nil
}

// shown is a file's name as the real tool prints it: as given, but without doubled slashes.
func (d *dumper) shown(f *logdir.File) string {
	path := f.Display
	for strings.Contains(path, "//") {
		path = strings.ReplaceAll(path, "//", "/")
	}
	return d.opts.name(path)
}

// name is a file's name as it goes to stdout: raw where everything is.
func (o *Options) name(path string) string {
	if o.Payload == render.PayloadRaw {
		return path
	}
	return render.Escaped(path)
}

// write puts finished bytes on stdout.
func (d *dumper) write(b []byte) error {
	if len(b) == 0 {
		return nil
	}
	d.wrote = true
	d.written++
	if len(d.pending) > 0 {
		b = append(d.pending, b...)
		d.pending = nil
	}
	if _, err := d.out.Write(b); err != nil {
		return &stopError{err}
	}
	return nil
}

// say tells something on stderr, unless the real tool's stderr was asked for.
func (d *dumper) say(f *logdir.File, text string) {
	if !d.opts.Compat {
		fmt.Fprintf(d.errOut, "kseg: %s: %s\n", render.Escaped(f.Display), text)
	}
}
