package verify

import (
	"fmt"
	"math/bits"

	"kseg/format"
)

// A broker that truncates the active segment, as a follower does after an election, only counts the entries of its
// indexes that are left (AbstractIndex.truncateToEntries): those of the batches that it cut away stay in the file until
// others take their room. The count is in memory, so that the file shows them behind the entries in use.

// room reports whether an index with free slots is one that a broker writes to, or wrote to when it was killed: a clean
// stop cuts off all behind the entries in use.
func (s *segment) room(zeros int) bool {
	return s.last && s.part.shutdown != cleanShutdown && zeros > 0
}

// stale reports whether the entries from a slot on, the first that is wrong, were left by a truncation, and notes them.
func (x *indexFollower) stale(seg *segment, slot int) (is bool) {
	logical := x.index.Logical()
	if !seg.room(x.index.ZeroTail()) {
		return false
	}
	err := seg.log.View(func(data []byte) error {
		is = leftBehind(seg, data, logical, slot)
		return nil
	})
	if err != nil || !is {
		return false
	}
	n := logical.Len() - slot
	first, last := logical.Entry(slot), logical.Entry(logical.Len()-1)
	seg.stale = x.p.found(seg, Finding{Code: "index-stale", logPos: -1,
		Place: Place{File: x.file, Pos: logical.Position(slot), Len: int64(n) * offsetSlot,
			FirstOffset: min(first.Offset, last.Offset), LastOffset: max(first.Offset, last.Offset)},
		Message: fmt.Sprintf("%s not in use: they were left in the file when the log was truncated, as a follower's is "+
			"after an election, or recovered; a broker knows how many entries it uses", plural(int64(n), "entry at the end is",
			"entries at the end are"))})
	return true
}

// leftBehind reports whether the entries from slot on are of another history of the log than those before.
func leftBehind(seg *segment, data []byte, index format.OffsetIndex, slot int) bool {
	var before format.OffsetEntry
	if slot > 0 {
		before = index.Entry(slot - 1)
		if !rightEntry(data, before) {
			return false
		}
	}
	beyond, breaks, last := true, 0, index.Entry(slot)
	for i := slot; i < index.Len(); i++ {
		e := index.Entry(i)
		if i > slot && (e.Offset <= last.Offset || e.Position <= last.Position) {
			breaks++
		}
		last = e
		beyond = beyond && e.Offset >= seg.nextOffset && int64(e.Position) >= seg.end()
		follows := slot == 0 || e.Offset > before.Offset && e.Position > before.Position
		if e.Offset < seg.base || e.Position <= 0 || breaks > 1 || i > slot && follows && rightEntry(data, e) {
			return false
		}
	}
	if beyond {
		return seg.overwritten() || seg.truncatedHere()
	}
	return index.Len()-slot > 1 || !flippedEntry(data, index.Entry(slot), before)
}

// rightEntry reports whether a batch begins at the entry's position and ends at its offset.
func rightEntry(data []byte, e format.OffsetEntry) bool {
	b, err := format.DecodeBatch(data, int64(e.Position))
	return err == nil && b.LastOffset == e.Offset
}

// flippedEntry reports whether one bit is all that is wrong with an entry.
func flippedEntry(data []byte, e, before format.OffsetEntry) bool {
	if b, err := format.DecodeBatch(data, int64(e.Position)); err == nil {
		return bits.OnesCount64(uint64(b.LastOffset^e.Offset)) == 1
	}
	for s := format.NewScanner(data, int64(before.Position), -1); s.Next(); {
		if b := s.Batch(); b != nil && b.LastOffset >= e.Offset {
			return b.LastOffset == e.Offset && bits.OnesCount64(uint64(b.Pos^int64(e.Position))) == 1
		}
	}
	return false
}

// overwritten reports whether the time index has an entry for a record behind the end of the log that is older than
// the log's newest: had the log gone on, it would be newer.
func (s *segment) overwritten() bool {
	times := format.NewTimeIndex(s.timeIndex, s.base).Logical()
	for i := times.Len() - 1; i >= 0 && times.Entry(i).Offset >= s.nextOffset; i-- {
		if times.Entry(i).TimestampMs < s.maxTimestamp {
			return true
		}
	}
	return false
}

// truncatedHere reports whether the log was truncated where it ends: then the state of the producers was kept, and the
// leader epochs that began there or later were dropped. Where the segment begins that state was kept before.
func (s *segment) truncatedHere() bool {
	if s.part.dir.FileNamed(format.SegmentFileName(s.nextOffset, format.KindProducerSnapshot)) == nil {
		return false
	}
	epochs := s.part.leaderEpochs()
	if len(epochs) == 0 || epochs[len(epochs)-1].StartOffset >= s.nextOffset {
		return false
	}
	return s.nextOffset > s.base || s.part.driver.settings(s.part.dir.Parent).LedElsewhere(
		s.part.dir.PartitionDir, epochs[len(epochs)-1].Epoch)
}

// stale is like that of the offset index, beside which a time index is written: what was cut off is out of order behind
// what came later, or behind the end of the log.
func (x *timeFollower) stale(seg *segment, v format.IndexViolation) bool {
	logical, slot := x.times.Logical(), v.Slot
	n := logical.Len() - slot
	if !seg.room(x.times.Len()-logical.Len()) || seg.stale == nil && n < 2 && x.flipped(seg, logical.Entry(slot)) {
		return false
	}
	if v.Condition == format.IndexTimeSkipsBatch {
		// It was looked up in the offset index, where what is not in use led astray.
		return seg.stale != nil && logical.Entry(slot).Offset >= seg.stale.FirstOffset
	}
	var before format.TimeEntry
	if slot > 0 {
		before = logical.Entry(slot - 1)
	}
	for i := slot; i < logical.Len(); i++ {
		e := logical.Entry(i)
		beyond := e.Offset >= seg.nextOffset
		older := seg.stale != nil || e.TimestampMs < seg.maxTimestamp
		if beyond && !older || !beyond && e.Offset > before.Offset && e.TimestampMs > before.TimestampMs {
			return false
		}
	}
	place := Place{File: x.file, Pos: logical.Position(slot), Len: int64(n) * timeSlot, FirstOffset: -1, LastOffset: -1}
	if seg.stale != nil {
		seg.stale.relate(place)
		return true
	}
	x.p.found(seg, Finding{Code: "index-stale", Place: place, logPos: -1,
		Message: plural(int64(n), "entry at the end is", "entries at the end are") + " not in use: they were left in the " +
			"file when the log was truncated or recovered"})
	return true
}

// flipped reports whether an entry is a right one but for one bit of its offset or timestamp.
func (x *timeFollower) flipped(seg *segment, e format.TimeEntry) (is bool) {
	if err := seg.log.View(func(data []byte) error {
		for bit := range 64 {
			offset := e.Offset ^ 1<<bit
			if bit > 31 || offset < seg.base {
				offset = e.Offset
			}
			b, err := format.DecodeBatch(data, int64(x.offsets.Lookup(offset).Position))
			wrong := b.MaxTimestamp ^ e.TimestampMs
			oneBit := offset == e.Offset && bits.OnesCount64(uint64(wrong)) == 1
			is = is || err == nil && b.LastOffset == offset && (wrong == 0 || oneBit)
		}
		return nil
	}); err != nil {
		return true
	}
	return is
}
