package compaction

import (
	"bytes"
	"fmt"

	"kseg/broker"
	"kseg/format"
	"kseg/render"
)

// Fate is what becomes of a record.
type Fate string

// The fates. What is above the round's end is not looked at by it.
const (
	FateKept       Fate = "kept"
	FateSuperseded Fate = "superseded"
	FateTombstone  Fate = "tombstone"
	FateAborted    Fate = "aborted"
	FateAbove      Fate = "not_cleaned"
)

var fates = map[broker.Verdict]Fate{broker.Kept: FateKept, broker.Superseded: FateSuperseded,
	broker.TombstoneExpired: FateTombstone, broker.Aborted: FateAborted}

// KeyRecord is one record in the life of a key.
type KeyRecord struct {
	Segment, Offset, TimestampMs int64
	ValueSize                    int64 // -1: a tombstone
	Fate                         Fate
	SupersededBy                 int64  // with FateSuperseded
	HorizonMs                    *int64 // the delete horizon of a tombstone, as the batch has it or as the round sets it
}

// lifeWatch collects the records of one key.
type lifeWatch struct {
	key     []byte
	records []KeyRecord
}

// see takes a record that the round comes to.
func (w *lifeWatch) see(seg *broker.CleanerSegment, b *format.Batch, rec *format.Record, v broker.Verdict, by int64) {
	if !bytes.Equal(rec.Key, w.key) || rec.Key == nil {
		return
	}
	r := KeyRecord{Segment: seg.Base, Offset: rec.Offset, TimestampMs: rec.Timestamp, ValueSize: int64(rec.ValueSize),
		Fate: fates[v], SupersededBy: by}
	if rec.Value == nil && b.HasDeleteHorizon() {
		horizon := b.BaseTimestamp
		r.HorizonMs = &horizon
	}
	w.records = append(w.records, r)
}

// rest takes what the round does not come to, or all if there is no round.
func (w *lifeWatch) rest(r *Report, records *format.RecordReader) error {
	done := 0
	if r.Round != nil {
		done = len(r.Round.Segments)
		for i := range w.records {
			if rec := &w.records[i]; rec.Fate == FateKept && rec.Offset >= r.Round.EndOffset {
				rec.Fate = FateAbove
			} else if rec.Fate == FateKept && rec.ValueSize < 0 && rec.HorizonMs == nil {
				at := r.now + r.model.DeleteRetentionMs
				rec.HorizonMs = &at
			}
		}
	}
	var rec format.Record
	return r.Log.EachBatch(done, func(seg *broker.CleanerSegment, b *format.Batch) {
		if b.Control() {
			return
		}
		records.Reset(b)
		for records.Next(&rec) {
			w.see(seg, b, &rec, broker.Kept, 0)
			if n := len(w.records); n > 0 && w.records[n-1].Offset == rec.Offset {
				w.records[n-1].Fate = FateAbove
			}
		}
	})
}

// what says what becomes of a record.
func (k *KeyRecord) what(r *Report) string {
	switch k.Fate {
	case FateSuperseded:
		return fmt.Sprintf("removed: superseded by offset %d", k.SupersededBy)
	case FateTombstone:
		return "removed: a tombstone past its delete horizon"
	case FateAborted:
		return "removed: its transaction was aborted"
	case FateAbove:
		return "stays: above what this round cleans"
	}
	if k.ValueSize < 0 && k.HorizonMs != nil {
		return "stays: a tombstone, until a round after " + render.Minute(*k.HorizonMs) + " that finds the log dirty again"
	}
	return "stays: the last of its key"
}
