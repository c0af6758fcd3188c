package state

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"kseg/format"
	"kseg/logdir"
	"kseg/walk"
)

// Known is what the checkpoints of a log directory tell of a log. The zero Known is of a log without any.
type Known struct {
	Start   int64  // the log start offset; 0: none is recorded
	Cleaned *int64 // below it the log cleaner has been; nil: it is not known where it has
	Reached int64  // the log end offset was at least this
}

// Known is what the checkpoints tell of a partition. d may be nil.
func (d *Dir) Known(tp TopicPartition) (k Known) {
	k.Start, _ = d.Offset(format.KindLogStartOffsetCheckpoint, tp)
	watermark, _ := d.Offset(format.KindReplicationOffsetCheckpoint, tp)
	flushed, _ := d.Offset(format.KindRecoveryPointCheckpoint, tp)
	k.Reached = max(watermark, flushed)
	if c := d.Checkpoint(format.KindCleanerOffsetCheckpoint); c != nil && c.Err == nil {
		cleaned, _ := d.Offset(format.KindCleanerOffsetCheckpoint, tp)
		k.Cleaned = &cleaned
	}
	return k
}

// FoldedLog is how far a partition of a coordinator's topic was folded, and over what.
type FoldedLog struct {
	Partition *logdir.Partition
	// EndOffset is after the last record folded.
	EndOffset int64
	// Lost are the offsets that could not be read, in order. Gaps that the cleaner leaves are none.
	Lost     []Lost
	Problems []error
	// Newer counts records of types that came after Kafka 4.4.
	Newer int
}

// readAll reads the log, from an empty state that begin makes, until no file of it vanishes meanwhile. With once it is
// read once: what was told to a history stays told.
func (l *FoldedLog) readAll(r *logReader, once bool, begin func(), record func(*format.Batch, *format.Record)) {
	p := l.Partition
	read := func() error {
		own := *r
		*l = FoldedLog{Partition: p}
		begin()
		own.read(logsOf(p.All()), record)
		l.EndOffset, l.Lost, l.Problems = own.end, append(own.lost, l.Lost...), append(own.problems, l.Problems...)
		return errors.Join(l.Problems...)
	}
	var err error
	if once {
		err = read()
	} else {
		err = p.Steady(read)
	}
	if err != nil && len(l.Problems) == 0 {
		l.Problems = []error{err}
	}
}

// problem notes a record that cannot be folded.
func (l *FoldedLog) problem(offset int64, err error) {
	if len(l.Problems) < maxProblems {
		l.Problems = append(l.Problems, fmt.Errorf("%s: %w", l.Partition.Display, err))
	}
	l.Lost = append(l.Lost, Lost{First: offset, Last: offset})
}

// logReader reads the records of a log in order, over holes.
type logReader struct {
	ctx      context.Context // nil: nothing cancels it
	records  *format.RecordReader
	known    Known
	compact  bool // the log is compacted, and never deleted from its beginning: it starts at the known start
	until    Point
	progress func(int64)
	stop     func() bool

	end      int64
	lost     []Lost // offsets that could not be read, in order
	problems []error
	unread   []error // those of the problems that are the disk's
	holes    Holes
	done     bool
	record   format.Record
}

// read calls fn for each record up to the point.
func (r *logReader) read(files []*logdir.File, fn func(*format.Batch, *format.Record)) {
	if len(files) == 0 {
		return
	}
	r.holes = Holes{Next: r.known.Start, Compacted: r.known.Cleaned == nil, Cleaned: r.known.Cleaned}
	if r.end = max(files[0].Name.Base, r.known.Start); files[0].Name.Base > r.known.Start &&
		(r.compact || r.known.Start > 0) {
		r.lose(r.known.Start, files[0].Name.Base-1)
	}
	r.holes.Next = r.end
	for _, f := range files {
		if r.done {
			break
		}
		r.segment(f, fn)
	}
	r.lost = append(r.lost, r.holes.End()...)
	if n := len(r.lost); !r.done && r.known.Reached > r.holes.Next && (n == 0 || !r.lost[n-1].Open) {
		r.lose(r.holes.Next, r.known.Reached-1)
	}
	r.lost = slices.DeleteFunc(r.lost, func(l Lost) bool { return !r.wants(l.First) })
	slices.SortFunc(r.lost, func(a, b Lost) int { return cmp.Compare(a.First, b.First) })
}

// wants reports whether an offset is not after the point, as far as that is an offset.
func (r *logReader) wants(offset int64) bool {
	return !r.until.Given || r.until.IsTime || offset <= r.until.Offset
}

func (r *logReader) lose(first, last int64) { r.lost = append(r.lost, Lost{First: first, Last: last}) }

func (r *logReader) problem(err error) {
	if len(r.problems) < maxProblems {
		r.problems = append(r.problems, err)
	}
}

func (r *logReader) segment(f *logdir.File, fn func(*format.Batch, *format.Record)) {
	progress := func(bytes int64) {
		if r.progress != nil {
			r.progress(bytes)
			r.done = r.done || r.stop != nil && r.stop()
		}
	}
	ctx := r.ctx
	if ctx == nil {
		ctx = context.Background()
	}
	err := walk.Read(ctx, &walk.Log{File: f, Base: f.Name.Base}, progress, func(b *format.Batch, h *format.Hole) bool {
		switch {
		case r.done:
		case b != nil:
			r.batch(f, b, fn)
		default:
			if r.holes.Hole(h); h.Kind == format.Damage {
				r.problem(fmt.Errorf("%s: %d bytes at byte %d are no records", f.Display, h.Len, h.Pos))
			}
		}
		return !r.done
	})
	if err != nil {
		r.problem(err)
		r.unread = append(r.unread, err)
	}
}

func (r *logReader) batch(f *logdir.File, b *format.Batch, fn func(*format.Batch, *format.Record)) {
	if b.LastOffset < r.known.Start && b.Valid() {
		return
	}
	if r.holes.gap(b) && (b.Pos > 0 || b.BaseOffset != f.Name.Base) && b.Valid() {
		// Either batches are missing in the middle of the file, or it is this offset that is wrong.
		r.problem(fmt.Errorf("%s: offset %d follows at byte %d where %d should; its records are left out", f.Display,
			b.BaseOffset, b.Pos, r.holes.Next))
		r.holes.damaged = true
		return
	}
	if !r.holes.Batch(b) {
		r.problem(fmt.Errorf("%s: the batch at byte %d has a wrong checksum; its records are left out", f.Display, b.Pos))
		return
	}
	if !r.wants(b.BaseOffset) {
		r.done = true
		return
	}
	rec := &r.record
	for r.records.Reset(b); r.records.Next(rec); {
		if rec.Offset < r.known.Start || !r.wants(rec.Offset) || r.until.IsTime && rec.Timestamp > r.until.TimeMs {
			continue
		}
		fn(b, rec)
		r.end = max(r.end, rec.Offset+1)
	}
	err := r.records.Err()
	if r.records.Release(); err != nil {
		r.problem(fmt.Errorf("%s: the batch at byte %d: %w", f.Display, b.Pos, err))
		r.lose(max(r.end, b.BaseOffset), b.LastOffset)
	}
	if !r.until.Given {
		r.end = max(r.end, b.NextOffset())
	}
}
