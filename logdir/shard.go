package logdir

import (
	"cmp"
	"fmt"
	"hash/fnv"
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

// weighed is a partition with the bytes of its files.
type weighed struct {
	p     *Partition
	bytes int64
}

func (s *Set) weighed() []weighed {
	var all []weighed
	for _, p := range s.Partitions() {
		var bytes int64
		for _, f := range p.Files {
			bytes += f.Size
		}
		all = append(all, weighed{p, bytes})
	}
	return all
}

// Sample leaves partitions in the set that have at least the fraction of the bytes together, chosen by chance; the same
// ones for the same seed and names. It returns how many are left, of how many.
func (s *Set) Sample(fraction float64, seed int64) (left, all int) {
	parts := s.weighed()
	var total int64
	for _, w := range parts {
		total += w.bytes
	}
	slices.SortStableFunc(parts, func(a, b weighed) int { return cmp.Compare(lot(a.p, seed), lot(b.p, seed)) })
	kept := map[*Partition]bool{}
	var bytes int64
	for _, w := range parts {
		if len(kept) > 0 && float64(bytes) >= fraction*float64(total) {
			break
		}
		kept[w.p] = true
		bytes += w.bytes
	}
	s.Keep(func(p *Partition) bool { return kept[p] })
	return len(kept), len(parts)
}

// lot is the number that a partition draws.
func lot(p *Partition, seed int64) uint64 {
	h := fnv.New64a()
	fmt.Fprintf(h, "%d/%s", seed, p.Name)
	return h.Sum64()
}

// Shard leaves the ith of n shards in the set, counted from 1, so that n machines read everything once: each partition
// is in exactly one shard, and their bytes are about the same. It depends on the names and sizes of the files alone, so
// it is the same wherever the same files are. The state files of log directories, and files given alone, are in the
// first.
//
// The largest partition left goes to the shard that has the least (Graham's rule): no shard has more than 4/3 of the
// best possible maximum.
func (s *Set) Shard(i, n int) {
	all := s.weighed()
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
