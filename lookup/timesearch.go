package lookup

import (
	"errors"

	"kseg/format"
)

// A TimeScan is the walk of a search by timestamp from a position to the first record at or after the timestamp
// (FileRecords.searchForTimestamp).
type TimeScan struct {
	Scan
	// The record, if Found; it lies in Hit.
	Offset, TimestampMs int64
	LeaderEpoch         int32 // −1: none
}

// scanTimestamp is the scan of LogSegment.findOffsetByTimestamp: from a position on, the first record of at least that
// timestamp and of at least the offset startOffset is looked for. Batches whose largest timestamp is too small are
// skipped unread; the first of those skipped are appended to hops if that is not nil.
func (s *Segment) scanTimestamp(start, timestampMs, startOffset int64, hops *[]Hop) TimeScan {
	out := TimeScan{Scan: Scan{Start: start, End: start}}
	if start < 0 {
		out.Err = &format.Error{What: "position in the offset index", Pos: start, Want: "0 or more", Got: "a negative one",
			Err: format.ErrValue}
		return out
	}
	pos := start
	for {
		b, err := format.DecodeBatch(s.Log, pos)
		if err == nil && !b.Legacy() && int64(len(s.Log))-pos < format.BatchHeaderSize {
			err = shortHeader(pos)
		}
		if err != nil {
			if !errors.Is(err, format.ErrTruncated) && !s.preallocated(pos) {
				out.Err = err
			}
			break
		}
		hop := Hop{Position: pos, Size: b.Size(), BaseOffset: b.BaseOffset, LastOffset: b.LastOffset}
		if b.MaxTimestamp >= timestampMs {
			rec, ok, err := s.recordAt(&b, timestampMs, startOffset)
			if err != nil {
				out.Err = err
				break
			}
			if ok {
				out.found(hop, out.HeaderHops, 0)
				out.Offset, out.TimestampMs, out.LeaderEpoch = rec.Offset, rec.Timestamp, b.LeaderEpoch
				return out
			}
		}
		keep(hops, hop)
		out.HeaderHops++
		pos = b.End()
	}
	out.HeaderReads, out.End = out.HeaderHops, pos
	return out
}

// recordAt is the first record of b that is late enough. Of a compressed message of magic 0 or 1 a broker unpacks all
// before it looks at the first, so a defect anywhere in it ends the search.
func (s *Segment) recordAt(b *format.Batch, timestampMs, startOffset int64) (hit format.Record, ok bool, err error) {
	wrapper := b.Legacy() && b.Codec() != format.CodecNone
	var rec format.Record
	for s.reader.Reset(b); s.reader.Next(&rec); {
		if ok || rec.Timestamp < timestampMs || rec.Offset < startOffset {
			continue
		}
		hit, ok = rec, true
		if !wrapper {
			// With the last record of a batch goes the check that nothing is left after it.
			return hit, true, s.reader.Err()
		}
	}
	if err := s.reader.Err(); err != nil {
		return format.Record{}, false, err
	}
	return hit, ok, nil
}
