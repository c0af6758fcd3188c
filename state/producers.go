package state

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"kseg/format"
	"kseg/logdir"
)

// LoadOptions say how a broker would find a partition.
type LoadOptions struct {
	// LogStart is what log-start-offset-checkpoint says; nil: nothing, so that the log begins with its first segment.
	LogStart *int64
	// HighWatermark says how far the log is replicated, given where it begins and ends; nil: to its end.
	HighWatermark func(start, end int64) int64
	// Clean is set if the broker was stopped cleanly. It then trusts that where there is no snapshot there was no
	// producer.
	Clean bool
	// RecoveryPoint is the offset from which on a broker recovers the log after an unclean stop: it reads the segments
	// from there on anew, whatever snapshots there are. nil: unknown, and the snapshots are taken to be right.
	RecoveryPoint *int64
	// Compacted is set if batches may be missing because the log cleaner took them.
	Compacted bool
	// Records reads control records.
	Records *format.RecordReader
	// Progress is called with the bytes of logs that were read since its last call; it may be nil.
	Progress func(bytes int64)
}

// Producers is what a broker knows of the producers of a partition when it has loaded it
// (UnifiedLog.rebuildProducerState).
type Producers struct {
	// ProducerState is at LogEnd. No producer is left out for its age.
	*format.ProducerState
	LogStart, HighWatermark, LogEnd int64
	// Snapshot is the file that the state began with, nil if there is none to begin with; the log was read from the offset
	// From.
	Snapshot *logdir.File
	From     int64
	// Unusable are snapshots that a broker would have begun with, but for what is wrong with them; it deletes them.
	Unusable []logdir.Problem
	// Trusting is set if the broker takes an empty state without reading the log, since it was stopped cleanly and there
	// is no snapshot, though the log is of a time when brokers wrote some.
	Trusting bool
	// Lost are the offsets at or above From of which nothing is known, in order. What they held may change the state.
	Lost []Lost
	// Refused says why a broker gives up loading the partition, nil if it does not.
	Refused error

	// LastStable is the offset up to which consumers that read committed records only may read
	// (UnifiedLog.lastStableOffset).
	LastStable int64
}

// LoadProducers loads the producers of a partition as a broker does: from the newest snapshot that it would use, and
// the log above it. It reads no more of the log than that. The error is for what could not be read from the disk.
func LoadProducers(ctx context.Context, p *logdir.Partition, o LoadOptions) (*Producers, error) {
	l := loader{ctx: ctx, options: o, segments: Segments(p), out: &Producers{}}
	if len(l.segments) == 0 {
		return nil, p.NoSegment()
	}
	if err := l.bounds(); err != nil {
		return nil, err
	}
	l.manage(p)
	err := l.replay()
	if err == nil {
		err = l.stable()
	}
	return l.out, errors.Join(append(l.unread, err)...)
}

// Segments are all segments of a partition, also those that the options leave out.
func Segments(p *logdir.Partition) []*logdir.Segment {
	if len(p.Segments) == 0 {
		return nil
	}
	first := p.Segments[0]
	for first.Prev != nil {
		first = first.Prev
	}
	var all []*logdir.Segment
	for s := first; s != nil; s = s.Next {
		all = append(all, s)
	}
	return all
}

// loader loads one partition.
type loader struct {
	ctx      context.Context
	options  LoadOptions
	segments []*logdir.Segment
	out      *Producers
	cut      []Lost  // what a broker cuts off though it is there
	modern   bool    // the last batch is of a magic that knows producers
	unread   []error // why snapshots or batches could not be read
	spoiled  bool    // the log ends in something that is damaged
	holes    Holes
	manager  *ProducerManager
	// undecided is the first offset of the earliest transaction that ended in a marker which is not replicated yet.
	undecided    int64
	hasUndecided bool
}

// bounds finds where the log begins and ends.
func (l *loader) bounds() error {
	first, last := l.segments[0], l.segments[len(l.segments)-1]
	out := l.out
	end, err := l.logEnd(last)
	if err != nil {
		return err
	}
	out.LogStart, out.LogEnd = first.Base, end
	if start := l.options.LogStart; start != nil {
		out.LogStart = max(out.LogStart, *start)
	}
	// A log that ends before its beginning is begun anew there.
	out.LogEnd = max(out.LogEnd, out.LogStart)
	out.HighWatermark = out.LogEnd
	if mark := l.options.HighWatermark; mark != nil {
		out.HighWatermark = mark(out.LogStart, out.LogEnd)
	}
	return nil
}

// logEnd is the offset after the last batch that can be read. After a clean stop it is what a broker takes for it:
// where the last entry of the index leads nowhere, that is the beginning of the segment, and its records are
// overwritten.
func (l *loader) logEnd(last *logdir.Segment) (int64, error) {
	end := last.Base
	err := ReadBatches(l.ctx, last, math.MaxInt64, nil, func(b *format.Batch, h *format.Hole) bool {
		l.spoiled = b == nil && h.Kind == format.Damage || b != nil && !b.Valid()
		if b != nil && (l.options.Clean || !l.spoiled) {
			end = max(end, b.NextOffset())
			l.modern = !b.Legacy()
		}
		return true
	})
	if err != nil || !l.options.Clean || end == last.Base || last.Index == nil {
		return end, err
	}
	found, err := indexLeads(last)
	if err == nil && !found {
		l.cut = []Lost{{First: last.Base, Last: end - 1}}
		end = last.Base
	}
	return end, err
}

// indexLeads reports whether a read from the last entry of the index finds a batch (LogSegment.readNextOffset).
func indexLeads(seg *logdir.Segment) (found bool, err error) {
	err = seg.Index.View(func(raw []byte) error {
		x := format.NewOffsetIndex(raw, seg.Base)
		if x.Len() == 0 {
			found = true
			return nil
		}
		target := x.Entry(x.Len() - 1).Offset
		pos := max(0, int64(x.Lookup(target).Position))
		return seg.Log.View(func(data []byte) error {
			for b, err := format.DecodeBatch(data, pos); err == nil; b, err = format.DecodeBatch(data, b.End()) {
				if b.LastOffset >= target {
					found = true
					return nil
				}
			}
			return nil
		})
	})
	return found, err
}

// recovers reports whether a broker reads a segment anew when it starts, whatever snapshots there are: its index is
// missing, or there was no clean stop and it was not flushed.
func (l *loader) recovers(s *logdir.Segment) bool {
	point := l.options.RecoveryPoint
	return s.Index == nil || !l.options.Clean && point != nil && s.Base >= l.floor(*point).Base
}

// floor is the segment that holds the offset, the first if it is below all.
func (l *loader) floor(offset int64) *logdir.Segment {
	log := l.log(len(l.segments))
	return l.segments[log.Floor(offset)]
}

// manage makes the manager of the producers, which goes on over whatever is damaged.
func (l *loader) manage(p *logdir.Partition) {
	l.holes.Compacted = l.options.Compacted
	l.manager = NewProducerManager(ProducerSnapshotsOf(p.All()), l.options.Records)
	l.manager.Take = l.append
	l.manager.Loaded = func(s *ProducerSnapshot) {
		if s != nil && s.File == nil {
			return // what recovery has just written
		}
		l.out.Snapshot, l.out.From = nil, l.manager.End()
		if s != nil {
			l.out.Snapshot = s.File
		}
		l.holes = Holes{Next: l.out.From, Compacted: l.holes.Compacted}
	}
	l.manager.Written = func(offset int64, _ []byte) { // the older ones that were written are of no use any more
		l.manager.Snapshots = slices.DeleteFunc(l.manager.Snapshots, func(s ProducerSnapshot) bool {
			return s.File == nil && s.Offset < offset
		})
	}
	l.manager.Dropped = func(s ProducerSnapshot, why error, unread bool) error {
		switch {
		case unread:
			l.unread = append(l.unread, why)
		case why != nil:
			why = fmt.Errorf("%s: %w; a broker deletes it and begins with an older one", s.File.Display, why)
			l.out.Unusable = append(l.out.Unusable, logdir.Problem{Display: s.File.Display, Err: why})
		}
		return nil
	}
}

// replay recovers segments as a broker does, and then rebuilds the state of the log's end.
func (l *loader) replay() error {
	out := l.out
	start := int64(0)
	if l.options.LogStart != nil {
		start = *l.options.LogStart
	}
	for i, seg := range l.segments {
		if !l.recovers(seg) {
			continue
		}
		l.manager = l.manager.Again()
		log := l.log(i)
		err := l.manager.Rebuild(log, start, seg.Base, false)
		if err == nil {
			err = log.Replay(i, seg.Base, math.MaxInt64, l.append)
		}
		if err != nil {
			return err
		}
		l.manager.Snapshot()
	}
	l.manager = l.manager.Again()
	l.hasUndecided = false
	log := l.log(len(l.segments))
	err := l.manager.RemoveStray(log)
	if len(l.manager.Snapshots) == 0 && l.options.Clean {
		out.Trusting, out.Snapshot, out.From = l.modern, nil, out.LogEnd
		l.manager.ProducerState, l.holes = format.NewProducerState(out.LogEnd), Holes{}
	}
	if err == nil {
		err = l.manager.Rebuild(log, out.LogStart, out.LogEnd, l.options.Clean)
	}
	out.ProducerState, out.Lost = l.manager.ProducerState, append(l.holes.End(), l.cut...)
	l.spoil()
	return err
}

// log are the first n segments as they lie on disk, of which the sound batches count. What cannot be read is noted, and
// ends nothing.
func (l *loader) log(n int) ProducerLog {
	replay := func(i int, from, _ int64, fn func(*format.Batch) error) error {
		var failed error
		err := ReadBatches(l.ctx, l.segments[i], from, l.options.Progress, func(b *format.Batch, h *format.Hole) bool {
			if b == nil {
				l.holes.Hole(h)
			} else if b.LastOffset >= from && l.holes.Batch(b) {
				failed = fn(b)
			}
			return failed == nil
		})
		if err != nil {
			l.unread = append(l.unread, err)
		}
		return cmp.Or(failed, l.ctx.Err())
	}
	return ProducerLog{n, func(i int) int64 { return l.segments[i].Base }, replay}
}

// spoil notes that the log ends in something damaged, where that was not read.
func (l *loader) spoil() {
	out := l.out
	if n := len(out.Lost); l.spoiled && (n == 0 || !out.Lost[n-1].Open) {
		out.Lost = append(out.Lost, Lost{First: out.LogEnd, Open: true})
	}
}

// append takes the next batch. What a broker gives up over is noted, and ends nothing.
func (l *loader) append(b *format.Batch) error {
	ev, err := l.manager.Append(b, l.options.Records)
	if err != nil && l.out.Refused == nil {
		l.out.Refused = err
	}
	if ev.Ended && ev.Txn.LastOffset >= l.out.HighWatermark && (!l.hasUndecided || ev.Txn.FirstOffset < l.undecided) {
		l.undecided, l.hasUndecided = ev.Txn.FirstOffset, true
	}
	if !b.Legacy() {
		l.manager.MapEnd = b.NextOffset()
	}
	return nil
}

// stable finds the last stable offset. A broker takes the first offset of the batch that holds it, or comes next.
func (l *loader) stable() error {
	out := l.out
	out.LastStable = out.HighWatermark
	first, open := out.FirstOpen()
	if l.hasUndecided && (!open || l.undecided < first) {
		first, open = l.undecided, true
	}
	if !open {
		return nil
	}
	first = max(first, out.LogStart)
	for seg := l.floor(first); seg != nil; seg = seg.Next {
		found := false
		err := ReadBatches(l.ctx, seg, first, nil, func(b *format.Batch, _ *format.Hole) bool {
			if b != nil && b.LastOffset >= first {
				out.LastStable, found = min(b.BaseOffset, out.HighWatermark), true
			}
			return !found
		})
		if err != nil || found {
			return err
		}
	}
	return nil
}
