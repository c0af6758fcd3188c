package broker

import (
	"math"
	"slices"

	"kseg/format"
)

// Removed counts records by why the cleaner drops them.
type Removed struct {
	Superseded int64 // a later record has the key
	Tombstone  int64 // past its delete horizon
	Aborted    int64 // of an aborted transaction
	Marker     int64 // transaction markers of which nothing else is left, past their delete horizon
	NoKey      int64 // without a key, which a compacted topic must not have
}

// Add adds up.
func (r *Removed) Add(o Removed) {
	r.Superseded += o.Superseded
	r.Tombstone += o.Tombstone
	r.Aborted += o.Aborted
	r.Marker += o.Marker
	r.NoKey += o.NoKey
}

// Sum is how many there are.
func (r *Removed) Sum() int64 { return r.Superseded + r.Tombstone + r.Aborted + r.Marker + r.NoKey }

// fate is what becomes of the records of a data batch that belongs to no aborted transaction, or of a control batch
// that is not dropped.
type fate struct {
	records int64
	kept    int64
	removed Removed
	// tombstone is set if a record without a value stays, changed if the batch is not copied as it is.
	tombstone, changed bool
	size               int64 // of what stays; if not exact, about so much, as it has to be compressed again
	exact              bool
	base, last         int64 // offsets of what stays
	maxMs              int64
	err                error // the first thing that a broker's reader or writer stumbles over
}

// Verdict is what the cleaner does with a record.
type Verdict int8

// The verdicts.
const (
	Kept Verdict = iota
	Superseded
	TombstoneExpired
	Keyless
	Aborted
)

// judge is Cleaner.shouldRetainRecord; what is dropped with its whole batch never comes here. supersededBy is the last
// offset of its key, if that is Superseded and the key was looked up.
func (f *recordFilter) judge(b *format.Batch, rec *filtered) (v Verdict, supersededBy int64) {
	if rec.offset > f.keys.latest {
		return Kept, 0
	}
	if !rec.keyed {
		return Keyless, 0
	}
	found := rec.offset
	switch rec.put {
	case putNot:
		found = f.keys.get(rec.key)
	case putSuperseded:
		return Superseded, 0
	}
	switch {
	case rec.offset < found:
		return Superseded, found
	case rec.valued:
		return Kept, 0
	case b.Legacy():
		if f.keepLegacy {
			return Kept, 0
		}
	case !b.HasDeleteHorizon() || f.nowMs < b.BaseTimestamp:
		return Kept, 0
	}
	return TombstoneExpired, 0
}

// recordFilter says which records of a batch stay, and what a batch of those takes (MemoryRecords.filterTo).
type recordFilter struct {
	keys      *offsetMap
	hasher    keyHasher
	nowMs     int64
	horizonMs int64 // what a delete horizon is set to
	// keepLegacy keeps tombstones of magic 0 and 1: the segment was modified later than their horizon.
	keepLegacy bool
	records    *format.RecordReader
	some       []filtered // records that are judged together
	kept       []keptRecord
	warmed     uint64
}

// mostWarm is how many keys are looked up together: so many that their slots come to the processor's cache all at once,
// and so few that they stay there.
const mostWarm = 256

// filtered is what a record is judged by.
type filtered struct {
	keptRecord
	size          int64
	key           keyHash
	keyed, valued bool
	put           putState // if it was put into the map, the key is not needed
}

func (f *recordFilter) facts(rec *format.Record) filtered {
	return filtered{keptRecord: keptRecord{rec.Offset, rec.Timestamp, recordBody(rec)}, size: rec.Size,
		keyed: rec.Key != nil, valued: rec.Value != nil}
}

// recordBody is the size of a record without its length and its two deltas.
func recordBody(rec *format.Record) int64 { return 1 + rec.ContentSize() }

// next reads the next records of a batch, and brings what is known of their keys into the cache. It is false if there
// are none left.
func (f *recordFilter) next(b *format.Batch) bool {
	var rec format.Record
	f.some = f.some[:0]
	for len(f.some) < mostWarm && f.records.Next(&rec) {
		f.some = append(f.some, f.facts(&rec))
		r := &f.some[len(f.some)-1]
		if r.put = f.keys.puts.of(b, rec.Offset); r.keyed && r.put == putNot && !b.Control() {
			r.key = f.hasher.hash(rec.Key)
			f.warmed += f.keys.warm(r.key)
		}
	}
	return len(f.some) > 0
}

// keptRecord is what the size of a record follows from.
type keptRecord struct {
	offset, timestampMs int64
	body                int64 // bytes without the length and the two deltas
}

// unread tells the fate of a batch without its records, if all of them were put into the map, and all are superseded,
// or none is and all have a value.
func (f *recordFilter) unread(b *looked) bool {
	if b.Legacy() || b.Control() || b.LastOffset > f.keys.latest {
		return false
	}
	out := fate{records: int64(b.Count), size: b.Size(), exact: true, base: b.BaseOffset, last: b.LastOffset,
		maxMs: b.MaxTimestamp}
	switch f.keys.puts.alike(&b.Batch) {
	case putSuperseded:
		out.removed.Superseded, out.changed = out.records, true
	case putNewest:
		out.kept = out.records
	default:
		return false
	}
	b.fate = out
	return true
}

// look judges the records of a batch, as they are remembered or else read.
func (f *recordFilter) look(b *format.Batch, known *recalledBatch) fate {
	out := fate{maxMs: -1, changed: b.Legacy()}
	f.kept = f.kept[:0]
	all, kept := int64(0), int64(0)
	takeSome := func() {
		for i := range f.some {
			rec := &f.some[i]
			all += rec.size
			if f.take(&out, b, rec) {
				kept += rec.size
			}
		}
	}
	if known != nil && f.recalls(b, known.records) {
		for some := range slices.Chunk(known.records, mostWarm) {
			f.recall(b, some)
			takeSome()
		}
	} else {
		for f.records.Reset(b); f.next(b); {
			takeSome()
		}
		if err := f.records.Err(); err != nil && !f.records.Unnoticed(true) {
			out.err = err
		}
	}
	out.kept = int64(len(f.kept))
	out.changed = out.changed || out.kept < out.records
	if out.err != nil {
		return out
	}
	if out.kept > 0 {
		f.measure(&out, b, false)
		if b.Codec() != format.CodecNone && out.changed {
			out.size, out.exact = format.BatchHeaderSize+(b.Size()-format.BatchHeaderSize)*kept/max(all, 1), false
		}
	}
	return out
}

// take counts a record, and reports whether it stays.
func (f *recordFilter) take(out *fate, b *format.Batch, rec *filtered) bool {
	out.records++
	v := Kept
	if !b.Control() {
		v, _ = f.judge(b, rec)
	}
	switch v {
	case Superseded:
		out.removed.Superseded++
	case TombstoneExpired:
		out.removed.Tombstone++
	case Keyless:
		out.removed.NoKey++
	case Kept:
		out.tombstone = out.tombstone || !rec.valued
		out.maxMs = max(out.maxMs, rec.timestampMs)
		f.kept = append(f.kept, rec.keptRecord)
		return true
	}
	return false
}

// measure fills in what the kept records take: as the batch is, or written anew. marker sets a delete horizon for the
// sake of a transaction's marker.
func (f *recordFilter) measure(out *fate, b *format.Batch, marker bool) {
	horizon := (out.tombstone || marker) && !b.HasDeleteHorizon()
	out.changed = out.changed || horizon
	out.base, out.last, out.size, out.exact = b.BaseOffset, b.LastOffset, b.Size(), true
	if !out.changed {
		out.maxMs = b.MaxTimestamp
		return
	}
	if b.Legacy() {
		out.base, out.last = f.kept[0].offset, f.kept[len(f.kept)-1].offset
	}
	baseMs := f.kept[0].timestampMs
	switch {
	case horizon:
		baseMs = f.horizonMs
	case b.HasDeleteHorizon() && b.BaseTimestamp >= 0:
		baseMs = b.BaseTimestamp
	}
	if b.TimestampType() == format.LogAppendTime {
		out.maxMs = b.MaxTimestamp
	}
	out.size = format.BatchHeaderSize
	last := int64(math.MinInt64)
	for _, r := range f.kept {
		n := r.body + format.VarintSize(r.timestampMs-baseMs) + format.VarintSize(r.offset-out.base)
		out.size += format.VarintSize(n) + n
		switch {
		case out.err != nil:
		case r.offset <= last:
			out.err = &format.Error{What: "record", Pos: b.Pos, Want: "an offset above the one before it", Got: "another",
				Err: format.ErrValue}
		case r.timestampMs < -1:
			out.err = &format.Error{What: "record", Pos: b.Pos, Want: "a timestamp from -1 up", Got: "a lower one",
				Err: format.ErrValue}
		}
		last = r.offset
	}
	if out.err == nil {
		out.err = writable(b)
	}
}

// writable says why a batch with the producer of another one is not written
// (MemoryRecordsBuilder.validateProducerState).
func writable(b *format.Batch) error {
	what := ""
	switch none := b.ProducerID == -1; {
	case none && b.Transactional():
		what = "a producer id, as the batch is transactional"
	case !none && b.ProducerEpoch == -1:
		what = "a producer epoch, as there is a producer id"
	case !none && b.BaseSequence < 0 && !b.Control():
		what = "a sequence number, as there is a producer id"
	default:
		return nil
	}
	return &format.Error{What: "batch", Pos: b.Pos, Want: what, Got: "none", Err: format.ErrValue}
}
