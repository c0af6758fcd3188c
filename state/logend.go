package state

import (
	"context"
	"math"

	"kseg/format"
	"kseg/logdir"
)

// LogBounds are the offsets between which a partition can be read.
type LogBounds struct {
	Start int64 // the log start offset: of the checkpoint, or the first segment's base
	End   int64 // the log end offset: after the last batch that can be read
}

// Bounds reads where a partition begins and ends. Only the last segment is looked into, from where its index leads.
// known is false if there is no segment. dir may be nil.
func Bounds(p *logdir.Partition, dir *Dir) (b LogBounds, known bool, err error) {
	err = p.Steady(func() (err error) {
		b, known, err = bounds(p, dir)
		return err
	})
	return b, known, err
}

func bounds(p *logdir.Partition, dir *Dir) (b LogBounds, known bool, err error) {
	segments := Segments(p)
	if len(segments) == 0 {
		return b, false, nil
	}
	b.Start = segments[0].Base
	if offset, ok := dir.Offset(format.KindLogStartOffsetCheckpoint, TopicPartition{p.Topic,
		p.PartitionDir.Partition}); ok {
		b.Start = max(b.Start, offset)
	}
	last := segments[len(segments)-1]
	b.End = max(b.Start, last.Base)
	err = ReadBatches(context.Background(), last, math.MaxInt64, nil, func(batch *format.Batch, _ *format.Hole) bool {
		if batch != nil {
			b.End = max(b.End, batch.NextOffset())
		}
		return true
	})
	return b, true, err
}
