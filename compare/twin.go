package compare

import (
	"bytes"
	"context"
	"iter"

	"kseg/format"
	"kseg/logdir"
	"kseg/walk"
)

// twin is what a worker finds of a run of a log and the same bytes of its counterpart.
type twin struct {
	equal   bool // all of the run are sound batches, and the counterpart has the same bytes
	records int64
	thinned bool // the cleaner has been here

	buf    []byte // of the counterpart
	reader *format.RecordReader
}

// twins passes over what both sides have in common from their beginning on: segments of the same base offset and the
// same bytes. It leaves the sides before the first run in which they differ.
func (c *comparison) twins(ctx context.Context, a, b []*logdir.Segment) error {
	a, errA := c.a.passOver(ctx, a, c.SharedFrom)
	b, errB := c.b.passOver(ctx, b, c.SharedFrom)
	if errA != nil || errB != nil {
		return nil // the slow way tells
	}
	n := 0
	others := map[*walk.Log]*logdir.File{}
	var logs []*walk.Log
	for n < len(a) && n < len(b) && a[n].Base == b[n].Base && a[n].Base >= c.SharedFrom {
		log := &walk.Log{File: a[n].Log, Base: a[n].Base}
		logs, others[log] = append(logs, log), b[n].Log
		n++
	}
	w := walk.Start(ctx, iter.Seq[*walk.Log](func(yield func(*walk.Log) bool) {
		for _, log := range logs {
			if !yield(log) {
				return
			}
		}
	}), walk.Options{Jobs: c.opts.Jobs}, func(gate format.Gate) walk.Look[twin] {
		return func(r *walk.Run[twin]) error { return r.Result.look(r, others[r.Log], c.opts, gate) }
	})
	defer w.Close()
	for i, log := range logs {
		whole, err := c.twin(w, log, others[log])
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil || !whole {
			c.a.segments, c.b.segments = a[i:], b[i:]
			return nil
		}
	}
	c.a.segments, c.b.segments, c.a.from, c.b.from = a[n:], b[n:], 0, 0
	return nil
}

// twin takes the equal runs of one log. It is true if the two are the same to their ends.
func (c *comparison) twin(w *walk.Walker[twin], log *walk.Log, other *logdir.File) (bool, error) {
	c.a.from, c.b.from = 0, 0
	equal, size := true, int64(0)
	err := w.Log(log, func(r *walk.Run[twin]) error {
		t := &r.Result
		if c.opts.Progress != nil {
			c.opts.Progress(2 * (r.To - r.From))
		}
		if equal = equal && r.Err == nil && t.equal; !equal {
			return errDiffer
		}
		size = r.To
		c.a.from, c.b.from = r.To, r.To
		c.Same += t.records
		for _, s := range []*side{c.a, c.b} {
			s.count += t.records
			s.compacted = s.compacted || t.thinned
			if n := len(r.Batches); n > 0 {
				s.expected = max(s.expected, r.Batches[n-1].NextOffset())
			}
		}
		return nil
	})
	if err != nil {
		return false, err
	}
	now, err := other.SizeNow()
	return err == nil && now == size, err
}

// look compares a run with the same bytes of another file.
func (t *twin) look(r *walk.Run[twin], other *logdir.File, opts *Options, gate format.Gate) error {
	t.equal, t.records, t.thinned = false, 0, false
	if len(r.Holes) > 0 || r.Err != nil {
		return nil
	}
	n := int(r.To - r.From)
	if cap(t.buf) < n {
		t.buf = make([]byte, n)
	}
	t.buf = t.buf[:n]
	err := other.View(func(data []byte) error {
		if int64(len(data)) < r.To {
			return errDiffer
		}
		return other.Read(t.buf, r.From)
	})
	if err != nil {
		return nil // the slow way tells
	}
	next := int64(-1)
	for i := range r.Batches {
		b := &r.Batches[i]
		if !bytes.Equal(b.Raw, t.buf[b.Pos-r.From:b.End()-r.From]) || !b.Plausible() || !b.Valid() || b.LastOffset < next {
			return nil
		}
		next = b.NextOffset()
		t.records += t.count(b, opts, gate)
		t.thinned = t.thinned || thinned(b)
	}
	t.equal = true
	return nil
}

// count is the number of records of a batch; only in a wrapper of magic 0 or 1 they have to be looked at.
func (t *twin) count(b *format.Batch, opts *Options, gate format.Gate) (n int64) {
	if b.Count >= 0 {
		return int64(b.Count)
	}
	if t.reader == nil {
		t.reader = format.NewRecordReader(opts.MaxBatchBytes, gate)
	}
	t.reader.Reset(b)
	var r format.Record
	for t.reader.Next(&r) {
		n++
	}
	return n
}
