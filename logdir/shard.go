package logdir

import (
	"cmp"
	"slices"
)

// Keep leaves only the partitions that keep wants in the set, also those given alone.
func (s *Set) Keep(keep func(*Partition) bool) {
	drop := func(p *Partition) bool { return !keep(p) }
	for i := range s.Operands {
		if d := s.Operands[i].LogDir; d != nil {
			d.Partitions = slices.DeleteFunc(d.Partitions, drop)
		}
	}
	s.Operands = slices.DeleteFunc(s.Operands, func(o Operand) bool { return o.Partition != nil && drop(o.Partition) })
}

// Shard leaves the ith of n shards in the set, counted from 1, so that n machines read everything once: each partition is
// in exactly one shard, and their bytes are about the same. It depends on the names and sizes of the files alone, so it is
// the same wherever the same files are. The state files of log directories, and files given alone, are in the first.
//
// The largest partition left goes to the shard that has the least (Graham's rule): no shard has more than 4/3 of the best
// possible maximum.
func (s *Set) Shard(i, n int) {
	type weighed struct {
		p     *Partition
		bytes int64
	}
	var all []weighed
	for _, p := range s.Partitions() {
		var bytes int64
		for _, f := range p.Files {
			bytes += f.Size
		}
		all = append(all, weighed{p, bytes})
	}
	slices.SortStableFunc(all, func(a, b weighed) int {
		return cmp.Or(cmp.Compare(b.bytes, a.bytes), cmp.Compare(a.p.Name, b.p.Name))
	})
	loads := make([]int64, n)
	mine := map[*Partition]bool{}
	for _, w := range all {
		least := slices.Index(loads, slices.Min(loads))
		loads[least] += w.bytes + 1 // so that empty partitions are spread too
		if least == i-1 {
			mine[w.p] = true
		}
	}
	s.Keep(func(p *Partition) bool { return mine[p] })
	if i == 1 {
		return
	}
	for _, d := range s.LogDirs() {
		d.Narrowed = true
	}
	s.Operands = slices.DeleteFunc(s.Operands, func(o Operand) bool { return o.File != nil })
}
