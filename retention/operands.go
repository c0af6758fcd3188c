package retention

import (
	"fmt"
	"path/filepath"

	"kseg/format"
	"kseg/logdir"
)

// Partitions are the partitions among the operands. A file of a segment stands for the partition that it lies in,
// narrowed to that segment: its neighbours decide about it. Problems are files that belong to no segment. gentle may be
// nil.
func Partitions(set *logdir.Set, gentle *logdir.Gentle) ([]*logdir.Partition, []logdir.Problem) {
	var partitions []*logdir.Partition
	var problems []logdir.Problem
	for _, o := range set.Operands {
		switch {
		case o.Err != nil:
		case o.LogDir != nil:
			partitions = append(partitions, o.LogDir.Partitions...)
		case o.Partition != nil:
			partitions = append(partitions, o.Partition)
		default:
			p, err := partitionOf(o.File, gentle)
			if err != nil {
				problems = append(problems, logdir.Problem{Display: o.Arg, Err: err})
				continue
			}
			partitions = append(partitions, p)
		}
	}
	return partitions, problems
}

func partitionOf(f *logdir.File, gentle *logdir.Gentle) (*logdir.Partition, error) {
	if !f.Kind().IsSegmentFile() || !f.Name.HasBase || f.Name.Leftover() {
		return nil, fmt.Errorf("%s: it belongs to no segment; name a segment, a partition directory or a log directory",
			f.Display)
	}
	if own := format.ParseFileName(f.Name.Raw); !own.HasBase || own.Base != f.Name.Base {
		return nil, fmt.Errorf("%s: a copy out of its place; a segment is judged among its neighbours, so give it the "+
			"name %s in a partition directory",
			f.Display, format.SegmentFileName(f.Name.Base, f.Kind()))
	}
	set, err := logdir.Open([]string{filepath.Dir(f.Path)}, logdir.Options{Segments: []int64{f.Name.Base}, Gentle: gentle})
	if err != nil {
		return nil, err
	}
	o := set.Operands[0]
	if o.Err != nil || o.Partition == nil || len(o.Partition.Segments) == 0 {
		return nil, fmt.Errorf("%s: there is no segment %d beside it", f.Display, f.Name.Base)
	}
	return o.Partition, nil
}
