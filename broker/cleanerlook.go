package broker

import (
	"context"
	"sync"

	"kseg/format"
	"kseg/walk"
)

// looked is a batch with what can be said of it by itself. Raw is the mapping, which need not be touched any more.
type looked struct {
	format.Batch
	valid   bool
	typ     int16 // of the first record of a control batch, if hasType
	hasType bool
	err     error // of the type, or of the records that go into the map
	keys    []keyOffset
	fate    fate
	marked  fate // of a control batch that gets a delete horizon
}

// keyOffset is a record with a key.
type keyOffset struct {
	key    keyHash
	offset int64
}

// looker looks at batches, one of one goroutine.
type looker struct {
	filter  recordFilter
	records *format.RecordReader
	buf     []byte
}

// stretch is a run of whole batches of a segment.
type stretch struct {
	seg      *CleanerSegment
	from, to int64
}

// runBytes is about how many bytes a run has: few enough that they stay in the processor's cache.
const runBytes = 512 << 10

// cut finds the runs of a segment from a position on by hopping from header to header. Where a header leads nowhere the
// last one has all the rest.
func cut(seg *CleanerSegment, data []byte, start int64) []stretch {
	var runs []stretch
	size := int64(len(data))
	for from := start; from < size; {
		to := from
		for to < size && to-from < runBytes {
			n, err := format.EntrySize(data, to)
			if err != nil {
				n = size - to
			}
			to += n
		}
		runs = append(runs, stretch{seg, from, to})
		from = to
	}
	return runs
}

// runResult is what became of a run: its batches, and what ended them early.
type runResult struct {
	batches []looked
	keys    []keyOffset
	bytes   int64
	err     error
}

var results = sync.Pool{New: func() any { return &runResult{} }}

// eachLooked looks at the batches of a segment from a position on, with so many workers, and hands them to fold in
// order.
func (c *cleaning) eachLooked(seg *CleanerSegment, start int64, look func(l *looker, b *looked, r *runResult),
	fold func(b *looked) error) error {
	return seg.Log.View(func(data []byte) error {
		ctx, cancel := context.WithCancel(c.ctx)
		defer cancel()
		newWorker := func() func(stretch) *runResult {
			l := &looker{records: format.NewRecordReader(c.Settings.MaxBatchBytes, nil), filter: c.filter}
			l.filter.records = l.records
			return func(r stretch) *runResult { return l.run(r, look) }
		}
		runs, jobs := cut(seg, data, start), max(c.Jobs, 1)
		if len(runs) < 4 {
			jobs = 1
		}
		for res := range walk.Ordered(ctx, runs, jobs, newWorker) {
			for i := range res.batches {
				if err := fold(&res.batches[i]); err != nil {
					return err
				}
			}
			if res.err != nil {
				return res.err
			}
			if c.Progress != nil {
				c.Progress(res.bytes)
			}
			results.Put(res)
		}
		return c.ctx.Err()
	})
}

// run reads a run into memory, which is cheaper than mapping its pages, and looks at its batches.
func (l *looker) run(r stretch, look func(l *looker, b *looked, res *runResult)) *runResult {
	res := results.Get().(*runResult)
	res.batches, res.keys, res.bytes = res.batches[:0], res.keys[:0], r.to-r.from
	res.err = r.seg.Log.View(func(data []byte) error {
		bytes := data[r.from:r.to]
		if r.to-r.from <= 4*runBytes {
			if int64(cap(l.buf)) < r.to-r.from {
				l.buf = make([]byte, r.to-r.from)
			}
			bytes = l.buf[:r.to-r.from]
			if err := r.seg.Log.Read(bytes, r.from); err != nil {
				return err
			}
		}
		for pos := r.from; pos < r.to; {
			res.batches = append(res.batches, looked{})
			b := &res.batches[len(res.batches)-1]
			if decodeStrictly(&b.Batch, bytes, pos-r.from) != nil {
				res.batches = res.batches[:len(res.batches)-1]
				return stopAt(r.seg, pos, decodeStrictly(&format.Batch{}, data, pos))
			}
			b.Pos = pos
			if look(l, b, res); b.Control() {
				b.typ, b.hasType, b.err = l.controlType(&b.Batch)
			}
			pos = b.End()
			b.Raw = data[b.Pos:pos]
		}
		return nil
	})
	return res
}

// lookKeys collects the records that go into the map.
func (l *looker) lookKeys(b *looked, res *runResult, from int64) {
	if b.Control() {
		return
	}
	first := len(res.keys)
	l.records.Reset(&b.Batch)
	var rec format.Record
	for l.records.Next(&rec) {
		if rec.Key != nil && rec.Offset >= from {
			res.keys = append(res.keys, keyOffset{l.filter.hasher.hash(rec.Key), rec.Offset})
		}
	}
	if err := l.records.Err(); err != nil && !l.records.Unnoticed(true) {
		b.err = err
	}
	b.keys = res.keys[first:len(res.keys):len(res.keys)]
}

// lookFate finds what becomes of the records.
func (l *looker) lookFate(b *looked) {
	b.valid = b.Valid()
	b.fate = l.filter.look(&b.Batch)
	if b.Control() && b.fate.kept > 0 && b.fate.err == nil {
		b.marked = b.fate
		l.filter.measure(&b.marked, &b.Batch, true)
	}
}

// controlType is the type of the first record of a control batch; false if it has none (ControlRecordType.parse).
func (l *looker) controlType(b *format.Batch) (int16, bool, error) {
	l.records.Reset(b)
	var rec format.Record
	if !l.records.Next(&rec) {
		return 0, false, l.records.Err()
	}
	return parseControlType(&rec)
}
