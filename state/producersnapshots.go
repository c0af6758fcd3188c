package state

import (
	"cmp"
	"slices"
	"sort"

	"kseg/format"
	"kseg/logdir"
)

// ProducerSnapshot is a snapshot of a partition's producers that covers the log up to an offset, exclusive.
type ProducerSnapshot struct {
	Offset int64
	Read   func() ([]byte, error)
	File   *logdir.File // nil if it is not on disk
}

// ProducerSnapshots are snapshots of a partition, by offset.
type ProducerSnapshots []ProducerSnapshot

// ProducerSnapshotsOf are all snapshots among the files of a partition.
func ProducerSnapshotsOf(files []*logdir.File) ProducerSnapshots {
	var all ProducerSnapshots
	for _, f := range files {
		if f.Kind() == format.KindProducerSnapshot && f.Name.HasBase && !f.Name.Leftover() {
			all = append(all, ProducerSnapshot{f.Name.Base, f.ReadSmall, f})
		}
	}
	slices.SortFunc(all, func(a, b ProducerSnapshot) int { return cmp.Compare(a.Offset, b.Offset) })
	return all
}

// Begin is what is known of the producers before the log is read: the newest snapshot above one offset, up to another,
// that can be used (ProducerStateManager.loadFromSnapshot), or, where there is none (nil), no producer at the lower
// offset. Producers that expiredMs leaves out are those of format.LoadProducerState. Newer snapshots that cannot be
// used are taken out of the list, as a broker deletes them, and told to bad, with whether it was the disk that failed.
func (l *ProducerSnapshots) Begin(above, upTo, expiredMs int64,
	bad func(s ProducerSnapshot, err error, unread bool)) (*format.ProducerState, *ProducerSnapshot) {
	for i := l.upTo(upTo) - 1; i >= 0 && (*l)[i].Offset > above; i-- {
		s := (*l)[i]
		raw, err := s.Read()
		unread := err != nil
		if err == nil {
			var decoded format.ProducerSnapshot
			if decoded, err = format.DecodeProducerSnapshot(raw); err == nil {
				return format.LoadProducerState(decoded.Entries(), s.Offset, expiredMs), &s
			}
		}
		bad(s, err, unread)
		*l = slices.Delete(*l, i, i+1)
	}
	return format.NewProducerState(above), nil
}

// Add puts a snapshot before those of its offset.
func (l *ProducerSnapshots) Add(s ProducerSnapshot) {
	*l = slices.Insert(*l, l.upTo(s.Offset-1), s)
}

// upTo is how many snapshots there are up to the offset.
func (l ProducerSnapshots) upTo(offset int64) int {
	return sort.Search(len(l), func(i int) bool { return l[i].Offset > offset })
}

// Offsets are those of the snapshots.
func (l ProducerSnapshots) Offsets() []int64 {
	offsets := make([]int64, len(l))
	for i, s := range l {
		offsets[i] = s.Offset
	}
	return offsets
}

// StraySnapshots are the offsets of the snapshots that a broker removes when it has loaded the segments
// (ProducerStateManager.removeStraySnapshots): where no segment begins, but for the newest of those if it does not lie
// before the last segment. Offsets and the segments' base offsets ascend.
func StraySnapshots(offsets, bases []int64) []int64 {
	var stray []int64
	for _, offset := range offsets {
		if _, ok := slices.BinarySearch(bases, offset); !ok {
			stray = append(stray, offset)
		}
	}
	if n := len(stray); n > 0 && (len(bases) == 0 || stray[n-1] >= bases[len(bases)-1]) {
		return stray[:n-1]
	}
	return stray
}
