// Package walk goes through logs: it cuts them into runs of whole batches, has workers look at the runs in parallel,
// and hands them on in order.
//
// A run is about half a megabyte. Its bytes are read into a buffer that stays in the processor's cache, which costs
// less than mapping their pages; a batch too large for that is used where it is mapped. Each worker reads the stretch
// of the file that its run is to cover, waits until the run before knows where it ends, hops through the headers from
// there, lets the next run begin, and only then looks at its batches. What is no batch becomes a hole, by the rules of
// format.Scanner, in its place among the batches: the file is walked once, whatever it holds.
//
// What goes wrong spoils as little as possible. Bytes that cannot be read are a hole with the error, and the walk goes
// on at the next batch that is intact. A panic of what looks at a run is the error of that run. A file that becomes
// shorter ends.
//
// The short way to use it, for what looks at one batch after the other:
//
//	err := walk.Batches(ctx, walk.Segments(p.Segments), options,
//		func(s *walk.Stretch, b *format.Batch) error { ... }, nil)
//
// What costs more than a few nanoseconds a batch is done by the workers, each with buffers of its own, and its results
// are folded in order:
//
//	err := walk.Fold(ctx, logs, options, func(gate format.Gate) walk.Look[result] {
//		records := format.NewRecordReader(max, gate)
//		return func(r *walk.Run[result]) error { ... fill r.Result from r.Batches ... }
//	}, func(r *walk.Run[result]) error { ... take r.Result ... })
package walk

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"slices"

	"kseg/format"
	"kseg/logdir"
)

// Options say how logs are gone through.
type Options struct {
	// Jobs is the number of workers. With one, all is done on the caller's goroutine.
	Jobs int
	// Trust says what is taken for a batch.
	Trust format.Trust
	// RunBytes is how many bytes of a log a run has, about; 0 means the usual. Tests make many runs of a small file.
	RunBytes int64
}

// Log is one file of batches that is to be gone through: a .log or .checkpoint.
type Log struct {
	File *logdir.File
	Base int64 // the base offset, -1 if unknown
	From int64 // the byte to begin at, where a batch begins
	// Stop, if not nil, ends the log before a batch or a hole (the other argument is nil). It is called for each, in
	// order, on any goroutine.
	Stop func(b *format.Batch, h *format.Hole) bool
	// Open, if not nil, is called before the file is opened, in order, on any goroutine. A Log without a File is nothing
	// more than that: a moment among the logs.
	Open func()

	flight *flight // while several workers look at it
}

// Segments are the logs of segments, whole and in order.
func Segments(segments []*logdir.Segment) iter.Seq[*Log] {
	return func(yield func(*Log) bool) {
		for _, s := range segments {
			if !yield(&Log{File: s.Log, Base: s.Base}) {
				return
			}
		}
	}
}

// Hole is a range of bytes that are no batch, between the batches of a run.
type Hole struct {
	format.Hole
	Before int // the index of the batch that comes after it in the run
}

// Stretch is a part of a log: whole batches, and the holes between them. All of it is valid until the next one is asked
// for.
type Stretch struct {
	Log      *Log
	Data     []byte // the whole file, as a mapping: the price of a byte is that of a page
	From, To int64  // bytes
	Batches  []format.Batch
	Holes    []Hole
	// Err says why the run was not looked at: a panic, or bytes lost meanwhile. The batches may be incomplete.
	Err  error
	Last bool // no further stretch of the log comes

	at  int64              // where buf begins in the file
	buf []byte             // what Batches lie in, but for very large ones
	bad *logdir.FaultError // why buf ends where it does
}

// Run is a stretch with what a worker made of it.
type Run[R any] struct {
	Stretch
	Result R // it keeps its value from run to run, so that its buffers can be used again

	place
}

// Look is what a worker does to each run. It belongs to one goroutine. Its error becomes the run's.
type Look[R any] func(r *Run[R]) error

// Each calls batch for the batches and hole for the holes, in order, until one of them fails. hole may be nil.
func (s *Stretch) Each(batch func(*format.Batch) error, hole func(*format.Hole) error) error {
	holes := s.Holes
	for i := 0; i <= len(s.Batches); i++ {
		for len(holes) > 0 && holes[0].Before <= i {
			if hole != nil {
				if err := hole(&holes[0].Hole); err != nil {
					return err
				}
			}
			holes = holes[1:]
		}
		if i < len(s.Batches) {
			if err := batch(&s.Batches[i]); err != nil {
				return err
			}
		}
	}
	return nil
}

// Fold goes through the logs: each run is looked at by a worker, and taken in order on the caller's goroutine. newLook
// makes the Look of one worker; the gate is for its RecordReaders, and makes it wait with a very large batch until all
// runs before have been taken. The error is the first of take, of the context, of a log that could not be read at all,
// or of a run.
func Fold[R any](ctx context.Context, logs iter.Seq[*Log], o Options, newLook func(format.Gate) Look[R],
	take func(*Run[R]) error) error {
	w := Start(ctx, logs, o, newLook)
	defer w.Close()
	for {
		log, ok := w.next()
		if !ok {
			return ctx.Err()
		}
		err := w.Log(log, func(r *Run[R]) error {
			if r.Err != nil {
				return r.Err
			}
			return take(r)
		})
		if err != nil {
			return err
		}
	}
}

// errEnough ends a walk early.
var errEnough = errors.New("enough")

// Read goes through one log on the caller's goroutine. fn gets a batch, whatever its checksum, or a hole, and ends the
// reading with false. What cannot be read is a hole too (format.Unreadable), and the error in the end. progress, which
// may be nil, is called with the bytes gone through since its last call.
func Read(ctx context.Context, log *Log, progress func(bytes int64),
	fn func(b *format.Batch, h *format.Hole) bool) error {
	var unread error
	give := func(b *format.Batch, h *format.Hole) error {
		if h != nil && h.Kind == format.Unreadable {
			unread = cmp.Or(unread, h.Err)
		}
		if !fn(b, h) {
			return errEnough
		}
		return nil
	}
	err := Fold(ctx, slices.Values([]*Log{log}), Options{Jobs: 1}, nil, func(r *Run[struct{}]) error {
		if progress != nil {
			progress(r.To - r.From)
		}
		return r.Each(func(b *format.Batch) error { return give(b, nil) },
			func(h *format.Hole) error { return give(nil, h) })
	})
	switch {
	case err == nil || errors.Is(err, errEnough):
		return unread
	case ctx.Err() == nil:
		fn(nil, &format.Hole{Kind: format.Unreadable, Next: -1, NextOffset: -1, Err: err})
	}
	return err
}

// Batches calls batch for each batch of the logs, whatever its checksum, and hole for each hole, in order and on the
// caller's goroutine. hole may be nil. The errors are those of Fold.
func Batches(ctx context.Context, logs iter.Seq[*Log], o Options, batch func(*Stretch, *format.Batch) error,
	hole func(*Stretch, *format.Hole) error) error {
	return Fold(ctx, logs, o, nil, func(r *Run[struct{}]) error {
		return r.Each(func(b *format.Batch) error { return batch(&r.Stretch, b) }, func(h *format.Hole) error {
			if hole == nil {
				return nil
			}
			return hole(&r.Stretch, h)
		})
	})
}
