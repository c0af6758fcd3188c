package state

import (
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
func segmentEnd(log *logdir.File) (int64, error) {
	from := int64(0)
	if index := log.Sibling(format.KindOffsetIndex); index != nil {
		// An index that cannot be read is no loss: the segment is walked from its beginning.
		_ = index.View(func(raw []byte) error {
			if x := format.NewOffsetIndex(raw, log.Name.Base).Logical(); x.Len() > 0 {
				from = int64(x.Entry(x.Len() - 1).Position)
			}
			return nil
		})
	}
	end := log.Name.Base
	err := log.View(func(data []byte) error {
		if from > 0 {
			if b, err := format.DecodeBatch(data, from); err != nil || !b.Valid() || b.BaseOffset < log.Name.Base {
				from = 0
			}
		}
		for s := format.NewScanner(data, from, log.Name.Base); s.Next(); {
			if b := s.Batch(); b != nil {
				end = max(end, b.NextOffset())
			}
		}
		return nil
	})
	return end, err
}
