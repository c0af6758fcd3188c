package broker

import (
	"slices"

	"kseg/format"
	"kseg/schema"
	"kseg/walk"
)

// looked is a batch with what can be said of it by itself.
type looked struct {
	format.Batch
	valid   bool
	typ     schema.ControlType // of the first record of a control batch, if hasType
	hasType bool
	err     error // of the type, or of the records that go into the map
	keys    []keyOffset
	records []recalled // nil: they have to be read again
	fate    fate
	marked  fate // of a control batch that gets a delete horizon
}

// keyOffset is a record with a key.
type keyOffset struct {
	key    keyHash
	offset int64
	valued bool
}

// looker looks at batches, one of one goroutine.
type looker struct {
	filter  recordFilter
	records *format.RecordReader
}

// runResult is what a worker finds in a run: its batches, and what ends them early.
type runResult struct {
	batches []looked
	keys    []keyOffset
	records []recalled
	err     error
}

// eachLooked looks at the batches of a segment from a position on, with so many workers, and hands them to fold in
// order, up to the first at which the cleaner's reader fails (ByteBufferLogInputStream).
func (c *cleaning) eachLooked(seg *CleanerSegment, start int64, look func(l *looker, b *looked, r *runResult),
	fold func(b *looked) error) error {
	log := &walk.Log{File: seg.Log, Base: seg.Base, From: start, Stop: func(_ *format.Batch, h *format.Hole) bool {
		return h != nil && h.Kind != format.Unreadable
	}}
	end := start
	options := walk.Options{Jobs: c.Jobs, Trust: format.TrustBlindly}
	return walk.Fold(c.ctx, slices.Values([]*walk.Log{log}), options, func(gate format.Gate) walk.Look[runResult] {
		l := &looker{records: format.NewRecordReader(c.Settings.MaxBatchBytes, gate), filter: c.filter}
		l.filter.records = l.records
		return func(r *walk.Run[runResult]) error {
			l.run(seg, r, look)
			return nil
		}
	}, func(r *walk.Run[runResult]) error {
		for i := range r.Result.batches {
			b := &r.Result.batches[i]
			if err := fold(b); err != nil {
				return err
			}
			end = b.End()
		}
		if c.Progress != nil {
			c.Progress(r.To - r.From)
		}
		if r.Result.err == nil && r.Last && end < int64(len(r.Data)) {
			return stopAt(seg, end, decodeStrictly(&format.Batch{}, r.Data, end))
		}
		return r.Result.err
	})
}

// run looks at the batches of a run, up to bytes that cannot be read.
func (l *looker) run(seg *CleanerSegment, r *walk.Run[runResult], look func(l *looker, b *looked, res *runResult)) {
	res := &r.Result
	res.batches, res.keys, res.records, res.err = res.batches[:0], res.keys[:0], res.records[:0], nil
	until := len(r.Batches)
	if len(r.Holes) > 0 {
		until, res.err = r.Holes[0].Before, r.Holes[0].Err
	}
	for i := range r.Batches[:until] {
		if err := strict(&r.Batches[i]); err != nil {
			res.err = stopAt(seg, r.Batches[i].Pos, err)
			return
		}
		res.batches = append(res.batches, looked{Batch: r.Batches[i]})
		b := &res.batches[i]
		if look(l, b, res); b.Control() {
			b.typ, b.hasType, b.err = l.controlType(&b.Batch)
		}
	}
}

// lookKeys collects the records that go into the map, and what is remembered of all.
func (l *looker) lookKeys(b *looked, res *runResult, memory *recall, from int64) {
	if b.Control() {
		return
	}
	first, start, fits := len(res.keys), len(res.records), memory.takes(&b.Batch)
	l.records.Reset(&b.Batch)
	var rec format.Record
	for l.records.Next(&rec) {
		if rec.Key != nil && rec.Offset >= from {
			res.keys = append(res.keys, keyOffset{l.filter.hasher.hash(rec.Key), rec.Offset, rec.Value != nil})
		}
		if fits = fits && len(res.records) < mostInRun; fits {
			var r recalled
			r, fits = recallable(&b.Batch, &rec)
			res.records = append(res.records, r)
		}
	}
	err := l.records.Err()
	if err != nil && !l.records.Unnoticed(true) {
		b.err = err
	}
	b.keys = res.keys[first:len(res.keys):len(res.keys)]
	if fits && err == nil {
		b.records, b.valid = res.records[start:len(res.records):len(res.records)], b.Valid()
	}
}

// lookFate finds what becomes of the records.
func (l *looker) lookFate(b *looked, known *recalledBatch) {
	if known != nil {
		b.valid = known.valid
	} else {
		b.valid = b.Valid()
	}
	if l.filter.unread(b) {
		return
	}
	b.fate = l.filter.look(&b.Batch, known)
	if b.Control() && b.fate.kept > 0 && b.fate.err == nil {
		b.marked = b.fate
		l.filter.measure(&b.marked, &b.Batch, true)
	}
}

// controlType is the type of the first record of a control batch; false if it has none (ControlRecordType.parse).
func (l *looker) controlType(b *format.Batch) (schema.ControlType, bool, error) {
	l.records.Reset(b)
	var rec format.Record
	if !l.records.Next(&rec) {
		return 0, false, l.records.Err()
	}
	typ, err := schema.ParseControlType(rec.Key)
	if err != nil {
		return 0, true, err
	}
	return typ, true, nil
}
