package broker

import (
	"cmp"
	"math"
	"slices"
	"sync/atomic"

	"kseg/format"
)

// recall is what is remembered of the batches that go into the offset map, so that a round need not read their records
// and compute their checksums again when it says what becomes of them.
type recall struct {
	batches map[int64]recalledBatches // by the base offset of their segment
	left    atomic.Int64              // bytes that may still be taken
	room    []recalled                // what is left of the newest piece of memory
}

const (
	mostRecalled  = 32 << 20 // bytes; what goes beyond is read again
	mostInRun     = 1 << 18  // records of one run
	recalledPiece = 4096     // records
	recalledSize  = 16
	// recalledBatchSize is what a batch takes beside its records.
	recalledBatchSize = 40
)

type recalledBatch struct {
	pos     int64
	valid   bool
	records []recalled
}

// recalledBatches are those of a segment, by position.
type recalledBatches []recalledBatch

// recalled is what a record is judged and measured by, with its offset and timestamp as deltas to the batch's.
type recalled struct {
	offset, time int32
	body         uint32 // and above it, whether it has a key and a value
	size         uint32
}

const (
	recalledKey   = 1 << 31
	recalledValue = 1 << 30
)

// takes reports whether the records of a batch may be remembered. It may be called by any goroutine.
func (m *recall) takes(b *format.Batch) bool { return !b.Legacy() && m.left.Load() > 0 }

// recallable is a record as it is remembered; false if it has no room for that.
func recallable(b *format.Batch, rec *format.Record) (recalled, bool) {
	offset, time, body := rec.Offset-b.BaseOffset, rec.Timestamp-b.BaseTimestamp, recordBody(rec)
	r := recalled{int32(offset), int32(time), uint32(body), uint32(rec.Size)}
	if rec.Key != nil {
		r.body |= recalledKey
	}
	if rec.Value != nil {
		r.body |= recalledValue
	}
	return r, int64(r.offset) == offset && int64(r.time) == time && body < recalledValue && rec.Size <= math.MaxUint32
}

// add remembers a batch of a segment. They come in order.
func (m *recall) add(segment int64, b *looked) {
	need := int64(len(b.records))*recalledSize + recalledBatchSize
	if b.records == nil || m.left.Load() < need {
		return
	}
	m.left.Add(-need)
	if len(m.room) < len(b.records) {
		m.room = make([]recalled, max(len(b.records), recalledPiece))
	}
	n := copy(m.room, b.records)
	m.batches[segment] = append(m.batches[segment], recalledBatch{b.Pos, b.valid, m.room[:n:n]})
	m.room = m.room[n:]
}

// at is the batch at a position, nil if it is not remembered.
func (list recalledBatches) at(pos int64) *recalledBatch {
	i, ok := slices.BinarySearchFunc(list, pos, func(b recalledBatch, pos int64) int { return cmp.Compare(b.pos, pos) })
	if !ok {
		return nil
	}
	return &list[i]
}

// recalls reports whether the records of a batch can be judged as they are remembered: none whose key has to be looked
// up.
func (f *recordFilter) recalls(b *format.Batch, records []recalled) bool {
	return !slices.ContainsFunc(records, func(r recalled) bool {
		offset := b.BaseOffset + int64(r.offset)
		return r.body&recalledKey != 0 && offset <= f.keys.latest && f.keys.puts.of(b, offset) == putNot
	})
}

// recall takes the next records of a batch from memory.
func (f *recordFilter) recall(b *format.Batch, records []recalled) {
	f.some = f.some[:0]
	for _, r := range records {
		offset := b.BaseOffset + int64(r.offset)
		f.some = append(f.some, filtered{keptRecord: keptRecord{offset, b.BaseTimestamp + int64(r.time),
			int64(r.body &^ (recalledKey | recalledValue))}, size: int64(r.size), keyed: r.body&recalledKey != 0,
			valued: r.body&recalledValue != 0, put: f.keys.puts.of(b, offset)})
	}
}
