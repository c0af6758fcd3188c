package state

import (
	"context"
	"math"

	"kseg/format"
	"kseg/logdir"
	"kseg/walk"
)

// LogBounds are the offsets between which a partition can be read.
type LogBounds struct {
	Start int64 // the log start offset: of the checkpoint, or the first segment's base
	End   int64 // the log end offset: after the last batch that can be read
}

// Bounds reads where a partition begins and ends. Only the last segment is looked into, from where its index leads.
// known is false if there is no segment. dir may be nil.
func Bounds(p *logdir.Partition, dir *Dir) (b LogBounds, known bool, err error) {
	logs := logsOf(p.All())
	if len(logs) == 0 {
		return b, false, nil
	}
	b.Start = logs[0].Name.Base
	if offset, ok := dir.Offset(format.KindLogStartOffsetCheckpoint, TopicPartition{p.Topic,
		p.PartitionDir.Partition}); ok {
		b.Start = max(b.Start, offset)
	}
	last := logs[len(logs)-1]
	b.End, err = segmentEnd(last)
	b.End = max(b.End, b.Start)
	return b, true, err
}

// segmentEnd is the offset after the last batch of a segment.
func segmentEnd(f *logdir.File) (int64, error) {
	log := &walk.Log{File: f, Base: f.Name.Base}
	end, err := log.Base, seek(log, f.Sibling(format.KindOffsetIndex), math.MaxInt64)
	if err == nil {
		err = walk.Read(context.Background(), log, nil, func(b *format.Batch, _ *format.Hole) bool {
			if b != nil {
				end = max(end, b.NextOffset())
			}
			return true
		})
	}
	return end, err
}
