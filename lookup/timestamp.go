package lookup

import (
	"context"

	"kseg/format"
	"kseg/logdir"
	"kseg/render"
)

// A TimeResult is what a lookup by timestamp adds to a Result.
type TimeResult struct {
	TimestampMs int64
	Passed      []PassedSegment // in order; the last one is the segment that was searched, if any reached the timestamp
	// The record found, if the Outcome is Found.
	Offset, RecordTimestampMs int64
	LeaderEpoch               int32 // −1: none
	// Truth is the first record of at least the timestamp in the whole partition, found by reading it all; nil if there is
	// none. Differs is true if the broker's answer is another.
	Truth   *TimedRecord
	Differs bool
}

// A PassedSegment is a segment whose largest timestamp was compared with the one looked for.
type PassedSegment struct {
	Base, LargestMs int64
	Source          string // "time index", "batches" or "mtime"
}

// A TimedRecord is the place of a record.
type TimedRecord struct {
	Segment, Position   int64 // of the batch
	Offset, TimestampMs int64
}

// LookupTimestamp replays UnifiedLog.fetchOffsetByTimestamp: the first segment whose largest timestamp reaches the one
// looked for is searched, and no other. timestampMs must not be negative.
func (p *Partition) LookupTimestamp(ctx context.Context, timestampMs int64, o Options) (*Result, error) {
	r, err := p.lookupTimestamp(ctx, timestampMs, o)
	return p.again(r, err, func(after *Partition) (*Result, error) { return after.lookupTimestamp(ctx, timestampMs, o) })
}

func (p *Partition) lookupTimestamp(ctx context.Context, timestampMs int64, o Options) (*Result, error) {
	r, err := p.newResult()
	if err != nil {
		return nil, err
	}
	r.Target, r.Outcome = -1, Nothing
	r.Time = &TimeResult{TimestampMs: timestampMs, Offset: -1, RecordTimestampMs: -1, LeaderEpoch: -1}
	for _, s := range p.Segments {
		reached, err := r.reaches(ctx, s, timestampMs)
		if err != nil {
			return nil, err
		}
		if !reached {
			continue
		}
		try, err := r.tryTimestamp(ctx, s, timestampMs, o)
		if err != nil {
			return nil, err
		}
		r.Tries = append(r.Tries, try)
		break
	}
	if err := r.findTruth(ctx, timestampMs); err != nil {
		return nil, err
	}
	return r, r.finish(ctx, o)
}

// reaches compares the segment's largest timestamp as a broker knows it: the last time index entry, of the active
// segment the largest of its batches, and the file's modification time if there is no such thing
// (LogSegment.largestTimestamp).
func (r *Result) reaches(ctx context.Context, seg *logdir.Segment, timestampMs int64) (bool, error) {
	passed := PassedSegment{Base: seg.Base, LargestMs: -1, Source: "time index"}
	err := r.Partition.view(ctx, seg, func(s *Segment) error {
		if seg.Next == nil {
			passed.LargestMs, passed.Source = r.Partition.survey(seg, s).MaxTimestampMs, "batches"
		} else if n := s.Time.Len(); n > 0 {
			passed.LargestMs = s.Time.Entry(n - 1).TimestampMs
		}
		return nil
	})
	if passed.LargestMs < 0 {
		passed.LargestMs, passed.Source = seg.Log.ModTime.UnixMilli(), "mtime"
	}
	r.Time.Passed = append(r.Time.Passed, passed)
	return passed.LargestMs >= timestampMs, err
}

// tryTimestamp searches one segment and copies out all that is to be shown.
func (r *Result) tryTimestamp(ctx context.Context, seg *logdir.Segment, timestampMs int64, o Options) (*Try, error) {
	try := &Try{Base: seg.Base, Active: seg.Next == nil}
	err := r.Partition.view(ctx, seg, func(s *Segment) error {
		timeStep := stepOf(seg.TimeIndex, s.Time.Len(), timeShape{s.diskTime})
		try.Index = stepOf(seg.Index, s.Index.Len(), offsetShape{s.diskIndex})
		if o.Interval >= 0 {
			rebuilt := s.Rebuilt(o.Interval)
			s.Index, s.Time = rebuilt.OffsetIndex(), rebuilt.TimeIndex()
			timeStep = IndexStep{Supposed: true, Entries: s.Time.Len(), Disorder: -1}
			try.Index = IndexStep{Supposed: true, Entries: s.Index.Len(), Disorder: -1}
		}
		try.Time = &timeStep
		timeStep.searchTime(s, timestampMs)
		r.Target = max(timeStep.Value, r.Start)
		try.Index.searchOffset(s, r.Target)
		scan := s.scanTimestamp(try.Index.Value, timestampMs, max(r.Start, 0), &try.Hops)
		try.Scan = scan.Scan
		try.Survey = r.Partition.survey(seg, s, try.boundary(scan.Start))
		switch {
		case scan.Err != nil:
			r.Outcome = Failed
		case scan.Found:
			r.Outcome = Found
			r.Time.Offset, r.Time.RecordTimestampMs, r.Time.LeaderEpoch = scan.Offset, scan.TimestampMs, scan.LeaderEpoch
			r.Batch = s.hitBatch(scan.Hit, scan.Offset, o.Records)
		}
		return nil
	})
	return try, err
}

func (x *IndexStep) searchTime(s *Segment, timestampMs int64) {
	x.Search = s.Time.Search(timestampMs, nil)
	x.Key, x.Value = -1, s.Base
	if x.Search.Slot >= 0 {
		e := s.Time.Entry(x.Search.Slot)
		x.Key, x.Value = e.TimestampMs, e.Offset
	}
}

// findTruth reads the partition in order for the first record that is late enough. Headers whose largest timestamp is
// too small are believed.
func (r *Result) findTruth(ctx context.Context, timestampMs int64) error {
	for _, seg := range r.Partition.Segments {
		err := r.Partition.view(ctx, seg, func(s *Segment) error {
			for sc := s.scanner(0); sc.Next() && r.Time.Truth == nil; {
				b := sc.Batch()
				if b == nil || b.MaxTimestamp < timestampMs {
					continue
				}
				if rec, ok := s.firstAt(b, timestampMs, r.Start); ok {
					r.Time.Truth = &TimedRecord{s.Base, b.Pos, rec.Offset, rec.Timestamp}
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
		if r.Time.Truth != nil {
			break
		}
	}
	truth := r.Time.Truth
	r.Time.Differs = (truth == nil) != (r.Outcome != Found) || truth != nil && truth.Offset != r.Time.Offset
	return nil
}

// firstAt is recordAt without regard to defects after the record.
func (s *Segment) firstAt(b *format.Batch, timestampMs, startOffset int64) (format.Record, bool) {
	var rec format.Record
	for s.reader.Reset(b); s.reader.Next(&rec); {
		if rec.Timestamp >= timestampMs && rec.Offset >= startOffset {
			return rec, true
		}
	}
	return format.Record{}, false
}

// explainTime says what is odd about the answer to a timestamp.
func (r *Result) explainTime() {
	t := r.Time
	for _, passed := range t.Passed {
		if passed.Source == "mtime" {
			r.note("Segment %d has no timestamp in its time index, so a broker uses the modification time of its log, %s; "+
				"a copy has another.", passed.Base, render.Instant(passed.LargestMs))
		}
	}
	if try := r.last(); try != nil && try.Time != nil {
		r.explainTimeIndex(try)
	}
	if !t.Differs {
		return
	}
	switch {
	case t.Truth == nil:
		r.note("No record of the partition has that timestamp: the broker's answer comes from what it takes for a batch.")
	case r.Outcome == Found:
		r.note("The first record at or after the timestamp is offset %d (%s) in segment %d, found by reading everything: "+
			"timestamps are out of "+
			"order, or an index is wrong.", t.Truth.Offset, render.Instant(t.Truth.TimestampMs), t.Truth.Segment)
	default:
		r.note("Offset %d (%s) in segment %d is at or after the timestamp, found by reading everything, but the broker's "+
			"way does not lead there.", t.Truth.Offset, render.Instant(t.Truth.TimestampMs), t.Truth.Segment)
	}
}

func (r *Result) explainTimeIndex(t *Try) {
	x := t.Time
	switch {
	case x.Missing && t.Survey.Batches == 0: // made with the first entry
	case x.Missing:
		r.note("Segment %d has no time index: the search starts at its first offset. A broker that starts after a clean "+
			"stop makes an empty one and leaves it so.", t.Base)
	case x.ZeroTail > 0 && t.Active:
		r.noteRoom(x)
	case x.ZeroTail > 0:
		r.note("%s ends in %s, which a broker takes for entries of timestamp 0.", x.File, zeroSlots(x))
	}
	r.explainSlots(x)
}
