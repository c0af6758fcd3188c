package logdir

import (
	"path/filepath"

	"kseg/format"
)

// PartitionOf makes a partition of one file alone: of a log, or an index together with its log, one of one segment.
func PartitionOf(f *File) *Partition {
	dir := &Partition{Path: filepath.Dir(f.Path), Display: f.Display, Rel: ".", Parent: f.Parent(), Files: []*File{f}}
	dir.PartitionDir, dir.Named = f.Dir()
	if dir.Named {
		dir.Name = dir.PartitionDir.String()
	}
	log := f
	if f.Kind() != format.KindLog && f.Kind().IsSegmentFile() {
		log = f.Sibling(format.KindLog)
	}
	if f.Kind().IsSegmentFile() && log != nil && log.Name.HasBase {
		s := &Segment{Base: log.Name.Base, Partition: dir, Log: log,
			Index: log.Sibling(format.KindOffsetIndex), TimeIndex: log.Sibling(format.KindTimeIndex),
			TxnIndex: log.Sibling(format.KindTxnIndex), Snapshot: log.Sibling(format.KindProducerSnapshot)}
		s.Prev, s.Next = neighbours(log)
		dir.Segments = []*Segment{s}
	}
	return dir
}

// neighbours are the segments before and after a log given alone: whether it is the last one decides what its end
// means.
func neighbours(log *File) (prev, next *Segment) {
	around := log.Around()
	if around == nil {
		return nil, nil
	}
	for _, s := range around.Segments {
		if s.Base == log.Name.Base {
			return s.Prev, s.Next
		}
	}
	return nil, nil
}
