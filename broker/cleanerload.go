package broker

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"kseg/format"
	"kseg/logdir"
	"kseg/state"
)

// CleanerSource says how a partition is loaded for the cleaner.
type CleanerSource struct {
	Dir           *state.Dir // of the log directory; nil: unknown
	IndexInterval int64      // index.interval.bytes, by which a broker makes an index that is missing
	// ExpiredMs is up to when a producer without an open transaction must have been idle to be forgotten, epoch ms.
	ExpiredMs int64
	// Watermark finds the high watermark from the log start and the log end; nil: it is the log end.
	Watermark func(start, end int64) int64
	Records   *format.RecordReader
}

// LoadedLog is a partition as a broker holds it once it is loaded.
type LoadedLog struct {
	CleanerLog
	// Open are the open transactions, by first offset; the first holds the last stable offset, if it lies below the high watermark.
	Open []format.ProducerEntry
	// NewestMs is the largest timestamp in the active segment, -1 if it has none.
	NewestMs int64
	// TailErr is what ends the batches of the active segment before its file ends, nil if nothing does.
	TailErr error
}

// errNoSegment is a partition without a log.
var errNoSegment = fmt.Errorf("%w: it has no segment", logdir.ErrNothing)

// LoadCleanerLog reads what the cleaner has to know of a partition before it reads a record: indexes, the producers, the headers
// of the active segment.
func LoadCleanerLog(p *logdir.Partition, src CleanerSource) (*LoadedLog, error) {
	l := &LoadedLog{NewestMs: -1}
	segments := WholePartition(p)
	if len(segments) == 0 {
		return nil, fmt.Errorf("%s: %w", p.Display, errNoSegment)
	}
	for _, seg := range segments {
		s, err := loadCleanerSegment(seg, src.IndexInterval)
		if err != nil {
			return nil, err
		}
		l.Segments = append(l.Segments, s)
	}
	if err := l.findEnd(segments[len(segments)-1]); err != nil {
		return nil, err
	}
	tp := state.TopicPartition{Topic: p.Topic, Partition: p.PartitionDir.Partition}
	start, _ := src.Dir.Offset(format.KindLogStartOffsetCheckpoint, tp)
	l.StartOffset = min(max(start, segments[0].Base), l.EndOffset)
	if cleaned, ok := src.Dir.Offset(format.KindCleanerOffsetCheckpoint, tp); ok {
		l.CleanedTo = &cleaned
	}
	l.HighWatermark = l.EndOffset
	if src.Watermark != nil {
		l.HighWatermark = src.Watermark(l.StartOffset, l.EndOffset)
	}
	return l, l.loadProducers(p, segments, src)
}

// WholePartition are the segments of a partition, also those that the options leave out.
func WholePartition(p *logdir.Partition) []*logdir.Segment {
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

func loadCleanerSegment(seg *logdir.Segment, interval int64) (CleanerSegment, error) {
	s := CleanerSegment{Base: seg.Base, Size: seg.Log.Size, ModMs: seg.Log.ModTime.UnixMilli(), Log: seg.Log}
	s.LargestMs = s.ModMs
	indexed := seg.Index != nil && seg.TimeIndex != nil
	err := seg.Log.View(func(data []byte) error {
		if b, err := format.DecodeBatch(data, 0); err == nil {
			s.FirstMs = b.MaxTimestamp
		}
		if indexed {
			return nil
		}
		x := rebuiltIndex(data, seg.Base, interval)
		s.IndexSize, s.TimeIndexSize = int64(len(x.OffsetIndexBytes())), int64(len(x.TimeIndexBytes()))
		s.takeLargest(x.TimeIndex())
		return nil
	})
	if err == nil && indexed {
		s.IndexSize = seg.Index.Size / offsetEntrySize * offsetEntrySize
		s.TimeIndexSize = seg.TimeIndex.Size / timeEntrySize * timeEntrySize
		err = seg.TimeIndex.View(func(data []byte) error {
			s.takeLargest(format.NewTimeIndex(data, seg.Base))
			return nil
		})
	}
	if err == nil && seg.TxnIndex != nil {
		err = seg.TxnIndex.View(func(data []byte) error {
			x := format.NewTxnIndex(data)
			for i := range x.Len() {
				s.Aborted = append(s.Aborted, x.Entry(i))
			}
			return nil
		})
	}
	return s, err
}

// takeLargest is LogSegment.largestTimestamp after a load.
func (s *CleanerSegment) takeLargest(x format.TimeIndex) {
	if n := x.Len(); n > 0 && x.Entry(n-1).TimestampMs >= 0 {
		s.LargestMs = x.Entry(n - 1).TimestampMs
	}
}

// rebuiltIndex are the indexes as a broker makes them if one is missing.
func rebuiltIndex(data []byte, base, interval int64) *format.IndexBuilder {
	x := format.NewIndexBuilder(base, interval)
	for pos := int64(0); ; {
		b, err := format.DecodeBatch(data, pos)
		if err != nil || x.Add(b.Ref()) != nil {
			break
		}
		pos = b.End()
	}
	_ = x.Finish() // an order that makes no sense ends the index
	return x
}

// findEnd finds the log end by the headers of the active segment.
func (l *LoadedLog) findEnd(active *logdir.Segment) error {
	l.EndOffset = active.Base
	return active.Log.View(func(data []byte) error {
		for pos := int64(0); pos < int64(len(data)); {
			b, err := format.DecodeBatch(data, pos)
			if err != nil {
				l.TailErr = err
				return nil
			}
			l.EndOffset, l.NewestMs = max(l.EndOffset, b.NextOffset()), max(l.NewestMs, b.MaxTimestamp)
			pos = b.End()
		}
		return nil
	})
}

// loadProducers finds the active producers and the last stable offset, from the newest snapshot and the log after it
// (UnifiedLog.rebuildProducerState). After a clean stop a broker that finds no snapshot knows of no producer.
func (l *LoadedLog) loadProducers(p *logdir.Partition, segments []*logdir.Segment, src CleanerSource) error {
	producers, from, err := newestProducers(p, l.StartOffset, l.EndOffset, src.ExpiredMs)
	if err != nil {
		return err
	}
	unstable := l.HighWatermark
	if producers == nil {
		producers, from = format.NewProducerState(l.StartOffset), l.StartOffset
		if src.Dir != nil && src.Dir.Marker != nil {
			from = l.EndOffset
		}
	}
	for i, seg := range segments {
		if i+1 < len(segments) && segments[i+1].Base <= from {
			continue
		}
		err := seg.Log.View(func(data []byte) error {
			for pos := int64(0); ; {
				b, err := format.DecodeBatch(data, pos)
				if err != nil {
					return nil
				}
				if pos = b.End(); b.LastOffset < from {
					continue
				}
				ev, _ := producers.Append(&b, src.Records) // what makes no sense changes no state
				if ev.Ended && ev.Txn.LastOffset >= l.HighWatermark {
					unstable = min(unstable, ev.Txn.FirstOffset)
				}
			}
		})
		if err != nil {
			return err
		}
	}
	l.Open = producers.Open()
	if first, ok := producers.FirstOpen(); ok {
		unstable = min(unstable, first)
	}
	l.StableOffset = min(max(unstable, l.StartOffset), l.HighWatermark)
	l.Producers = make(map[int64]LastRecord, producers.Len())
	for _, e := range producers.Entries() {
		l.Producers[e.ProducerID] = LastRecord{LastOffset: e.LastOffset, Epoch: e.ProducerEpoch}
	}
	return nil
}

// newestProducers is the newest snapshot above the log start, up to the log end, that can be used; nil if there is none.
func newestProducers(p *logdir.Partition, start, end, expiredMs int64) (*format.ProducerState, int64, error) {
	var snapshots []*logdir.File
	for _, f := range p.All() {
		if f.Kind() == format.KindProducerSnapshot && f.Name.HasBase && !f.Name.Leftover() && f.Name.Base > start && f.Name.Base <= end {
			snapshots = append(snapshots, f)
		}
	}
	slices.SortFunc(snapshots, func(a, b *logdir.File) int { return cmp.Compare(b.Name.Base, a.Name.Base) })
	for _, f := range snapshots {
		raw, err := f.ReadSmall()
		if errors.Is(err, format.ErrTooLarge) {
			continue
		}
		if err != nil {
			return nil, 0, err
		}
		if s, err := format.DecodeProducerSnapshot(raw); err == nil {
			return format.LoadProducerState(&s, f.Name.Base, expiredMs), f.Name.Base, nil
		}
	}
	return nil, 0, nil
}
