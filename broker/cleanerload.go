package broker

import (
	"context"

	"kseg/format"
	"kseg/logdir"
	"kseg/state"
)

// CleanerSource says how a partition is loaded for the cleaner.
type CleanerSource struct {
	Dir           *state.Dir // of the log directory; nil: unknown, and taken for one that was left cleanly
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
	// Open are the open transactions, by first offset; the first holds the last stable offset, if it lies below the
	// high watermark.
	Open []format.ProducerEntry
	// Refused says why a broker does not load the partition, nil if it does.
	Refused error
}

// LoadCleanerLog reads what the cleaner has to know of a partition before it reads a record: indexes, the producers,
// the headers of the active segment.
func LoadCleanerLog(ctx context.Context, p *logdir.Partition, src CleanerSource) (*LoadedLog, error) {
	tp := state.TopicPartition{Topic: p.Topic, Partition: p.PartitionDir.Partition}
	options := state.LoadOptions{HighWatermark: src.Watermark, Clean: src.Dir == nil || src.Dir.Marker != nil, Compacted: true, Records: src.Records}
	if start, ok := src.Dir.Offset(format.KindLogStartOffsetCheckpoint, tp); ok {
		options.LogStart = &start
	}
	if point, ok := src.Dir.Offset(format.KindRecoveryPointCheckpoint, tp); ok {
		options.RecoveryPoint = &point
	}
	producers, err := state.LoadProducers(ctx, p, options)
	if err != nil {
		return nil, err
	}
	l := &LoadedLog{Open: producers.Open(), Refused: producers.Refused, CleanerLog: CleanerLog{StartOffset: producers.LogStart,
		EndOffset: producers.LogEnd, HighWatermark: producers.HighWatermark, StableOffset: producers.LastStable}}
	for _, seg := range state.Segments(p) {
		s, err := loadCleanerSegment(seg, src.IndexInterval)
		if err != nil {
			return nil, err
		}
		l.Segments = append(l.Segments, s)
	}
	if cleaned, ok := src.Dir.Offset(format.KindCleanerOffsetCheckpoint, tp); ok {
		l.CleanedTo = &cleaned
	}
	l.Producers = map[int64]LastRecord{}
	for _, e := range producers.Entries() {
		if e.InTransaction() || e.TimestampMs > src.ExpiredMs {
			l.Producers[e.ProducerID] = LastRecord{LastOffset: e.LastOffset, Epoch: e.ProducerEpoch}
		}
	}
	return l, nil
}

func loadCleanerSegment(seg *logdir.Segment, interval int64) (CleanerSegment, error) {
	s := CleanerSegment{Base: seg.Base, Size: seg.Log.Size, ModMs: seg.Log.ModTime.UnixMilli(), Log: seg.Log, Index: seg.Index}
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
