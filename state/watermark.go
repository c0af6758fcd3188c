package state

import "kseg/format"

// WatermarkMode says where the high watermark is taken from.
type WatermarkMode int8

// The modes.
const (
	WatermarkAuto       WatermarkMode = iota // the log end where there is one replica or no metadata, else the checkpoint
	WatermarkCheckpoint                      // replication-offset-checkpoint
	WatermarkEnd                             // the log end
	WatermarkOffset                          // a given offset
)

// Watermark is where the high watermark is taken from.
type Watermark struct {
	Mode   WatermarkMode
	Offset int64 // with WatermarkOffset
}

// Of is the high watermark of a partition that reaches from start to end, with where it comes from: "log end",
// "checkpoint" or "flag". missing says that the checkpoint was to be asked and has no such line. im and dir may be nil.
func (w Watermark) Of(im *Image, dir *Dir, tp TopicPartition, start, end int64) (offset int64, source string,
	missing bool) {
	mode := w.Mode
	if mode == WatermarkAuto {
		mode = watermarkMode(im, tp)
	}
	checkpoint, known := dir.Offset(format.KindReplicationOffsetCheckpoint, tp)
	offset, source = end, "log end"
	switch {
	case mode == WatermarkOffset:
		offset, source = w.Offset, "flag"
	case mode == WatermarkCheckpoint && known:
		offset, source = checkpoint, "checkpoint"
	case mode == WatermarkCheckpoint:
		missing = true
	}
	return min(max(offset, start), end), source, missing
}

// watermarkMode decides by the number of replicas. The checkpoint lags by up to five seconds, so that it is not asked
// where nobody else has to have a record.
func watermarkMode(im *Image, tp TopicPartition) WatermarkMode {
	if im == nil {
		return WatermarkEnd
	}
	t := im.Topic(tp.Topic)
	if t == nil || t.Partitions[tp.Partition] == nil || len(t.Partitions[tp.Partition].Replicas) < 2 {
		return WatermarkEnd
	}
	return WatermarkCheckpoint
}
