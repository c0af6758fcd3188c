package retention

import (
	"context"
	"errors"
	"slices"

	"kseg/format"
	"kseg/logdir"
	"kseg/state"
	"kseg/walk"
)

// noTimestamp is what Kafka stores where there is no timestamp.
const noTimestamp = -1

// TimestampSource says what a segment's age is counted from.
type TimestampSource string

// The sources. A broker takes the last entry of the time index when it opens a segment; it reads the log if it recovers
// the segment, or has written it itself; and where neither has a timestamp, the file's last modification counts.
const (
	FromTimeIndex TimestampSource = "time_index"
	FromLog       TimestampSource = "log"
	FromMtime     TimestampSource = "mtime"
)

// logFacts is what the batches of a log say.
type logFacts struct {
	read       bool  // false: the log could not be read, and the rest says nothing
	largestMs  int64 // the largest timestamp of all batches
	largestAt  int64 // position of the first batch that has it; -1 if no batch has a timestamp
	oldestMs   int64 // the smallest timestamp that a batch begins with
	firstMs    int64 // the largest timestamp of the first batch: segment.ms counts from it
	batches    int64
	nextOffset int64 // after the last batch, and after the last one before the first hole
	goodOffset int64
	goodEnd    int64       // position of the first hole, or the size
	hole       format.Hole // the first; its Pos is -1 if there is none
	cleaned    bool        // a batch shows that the log cleaner was at it
	doubtful   bool        // the checksum of the batch at largestAt does not match
}

// scanLog hops over the batch headers of a log.
func (r *reader) scanLog(f *logdir.File, base int64) (logFacts, error) {
	facts := logFacts{largestMs: noTimestamp, largestAt: -1, oldestMs: noTimestamp, firstMs: noTimestamp, nextOffset: base,
		goodOffset: base}
	facts.hole.Pos = -1
	holes := 0
	err := walk.Read(r.ctx, &walk.Log{File: f, Base: base}, r.progress, func(b *format.Batch, h *format.Hole) bool {
		if h != nil {
			if holes++; holes == 1 {
				facts.hole, facts.goodEnd = *h, h.Pos
			}
			return true
		}
		facts.add(b, r.records)
		if holes == 0 {
			facts.goodOffset, facts.goodEnd = facts.nextOffset, b.End()
		}
		return true
	})
	if err == nil && facts.largestAt >= 0 {
		err = f.View(func(data []byte) error {
			b, err := format.DecodeBatch(data, facts.largestAt)
			facts.doubtful = err != nil || !b.Valid()
			return nil
		})
	}
	facts.read = err == nil
	return facts, err
}

func (facts *logFacts) add(b *format.Batch, records *format.RecordReader) {
	facts.batches++
	facts.cleaned = facts.cleaned || state.Cleaned(b)
	facts.nextOffset = b.NextOffset()
	if facts.batches == 1 {
		facts.firstMs = b.MaxTimestamp
	}
	if b.MaxTimestamp > facts.largestMs {
		facts.largestMs, facts.largestAt = b.MaxTimestamp, b.Pos
	}
	if oldest, ok := records.FirstTimestamp(b); ok && oldest >= 0 && (facts.oldestMs < 0 || oldest < facts.oldestMs) {
		facts.oldestMs = oldest
	}
}

// Record is a record that decides how long a segment stays.
type Record struct {
	Offset      int64
	TimestampMs int64
}

// findLargest reads the batch at position at for its first record of the largest timestamp; nil if there is none that
// can be read, or its header claims a time that no record has. Of a wrong checksum there is a warning.
func findLargest(f *logdir.File, at, largestMs int64, records *format.RecordReader) (*Record, error) {
	var found *Record
	err := f.View(func(data []byte) error {
		b, err := format.DecodeBatch(data, at)
		if err != nil {
			return err
		}
		var rec format.Record
		records.Reset(&b)
		for records.Next(&rec) {
			if rec.Timestamp == largestMs {
				found = &Record{rec.Offset, rec.Timestamp}
				return nil
			}
		}
		return nil
	})
	return found, err
}

// lastTimeIndexEntry is the timestamp of the last slot of a time index as a broker opens it: zeros count as entries,
// and bytes after the last whole slot do not. It is noTimestamp if there is no slot. logical is the same without
// trailing zeros: what a broker that preallocated them has in memory.
func lastTimeIndexEntry(f *logdir.File, base int64) (opened, logical int64, err error) {
	opened, logical = noTimestamp, noTimestamp
	if f == nil {
		return opened, logical, nil
	}
	err = f.View(func(data []byte) error {
		x := format.NewTimeIndex(data, base)
		if n := x.Len(); n > 0 {
			opened = x.Entry(n - 1).TimestampMs
		}
		if x = x.Logical(); x.Len() > 0 {
			logical = x.Entry(x.Len() - 1).TimestampMs
		}
		return nil
	})
	return opened, logical, err
}

// largest is the largest timestamp of a segment as a broker holds it, and where it has it from
// (LogSegment.largestTimestamp). recovered says that the broker reads the log itself.
func (s *SegmentReport) largest(recovered bool, opened, logical int64) (int64, TimestampSource) {
	if recovered && s.log.read {
		switch {
		case s.log.largestMs < 0:
			return s.Log.ModTime.UnixMilli(), FromMtime
		case s.log.largestMs == logical:
			return logical, FromTimeIndex
		}
		return s.log.largestMs, FromLog
	}
	if opened < 0 {
		return s.Log.ModTime.UnixMilli(), FromMtime
	}
	return opened, FromTimeIndex
}

// allSegments are the segments of a partition, also those that the options leave out.
func allSegments(p *logdir.Partition) []*logdir.Segment {
	if len(p.Segments) == 0 {
		return nil
	}
	var before []*logdir.Segment
	for s := p.Segments[0].Prev; s != nil; s = s.Prev {
		before = append(before, s)
	}
	slices.Reverse(before)
	all := before
	for s := p.Segments[0]; s != nil; s = s.Next {
		all = append(all, s)
	}
	return all
}

// reader is what a worker reads partitions with.
type reader struct {
	ctx      context.Context
	records  *format.RecordReader
	progress func(bytes int64)
}

// readSegment reads one segment: the headers of its log and the last entry of its time index. Problems are what could
// not be read. A segment that has vanished gives nil: a broker has deleted it meanwhile.
func (r *reader) readSegment(seg *logdir.Segment, recovered bool) (*SegmentReport, []logdir.Problem) {
	s := &SegmentReport{Segment: seg, Size: seg.Log.Size}
	var problems []logdir.Problem
	var err error
	if s.log, err = r.scanLog(seg.Log, seg.Base); err != nil {
		problems = append(problems, logdir.Problem{Display: seg.Log.Display, Err: err})
		if errors.Is(err, logdir.ErrVanished) {
			return nil, problems
		}
	}
	opened, logical, err := lastTimeIndexEntry(seg.TimeIndex, seg.Base)
	if err != nil {
		problems = append(problems, logdir.Problem{Display: seg.TimeIndex.Display, Err: err})
	}
	s.LargestMs, s.Source = s.largest(recovered, opened, logical)
	if recovered && s.log.read {
		s.Size = s.log.goodEnd
	}
	s.recovered = recovered
	return s, problems
}
