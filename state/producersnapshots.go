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
		if f.Name.Of(format.KindProducerSnapshot) {
			all = append(all, ProducerSnapshot{f.Name.Base, f.ReadSmall, f})
		}
	}
	slices.SortFunc(all, func(a, b ProducerSnapshot) int { return cmp.Compare(a.Offset, b.Offset) })
	return all
}

// UpTo are the snapshots up to an offset.
func (l ProducerSnapshots) UpTo(offset int64) ProducerSnapshots {
	return l[:sort.Search(len(l), func(i int) bool { return l[i].Offset > offset })]
}

// Begin is what is known of the producers before the log is read: the newest snapshot above an offset that can be used
// (ProducerStateManager.loadFromSnapshot), or, where there is none (nil), no producer at that offset. Producers that
// expiredMs leaves out are those of format.LoadProducerState. Newer snapshots that cannot be used are taken out of the
// list, as a broker deletes them, and told to bad, with whether it was the disk that failed; it ends the search with
// false.
func (l *ProducerSnapshots) Begin(above, expiredMs int64,
	bad func(s ProducerSnapshot, err error, unread bool) bool) (*format.ProducerState, *ProducerSnapshot) {
	for more := true; more && len(*l) > 0 && (*l)[len(*l)-1].Offset > above; {
		s := (*l)[len(*l)-1]
		raw, err := s.Read()
		unread := err != nil
		if err == nil {
			var decoded format.ProducerSnapshot
			if decoded, err = format.DecodeProducerSnapshot(raw); err == nil {
				return format.LoadProducerState(decoded.Entries(), s.Offset, expiredMs), &s
			}
		}
		*l = (*l)[:len(*l)-1]
		more = bad(s, err, unread)
	}
	return format.NewProducerState(above), nil
}

// Add puts a snapshot before those of its offset.
func (l *ProducerSnapshots) Add(s ProducerSnapshot) {
	i, _ := l.find(s.Offset)
	*l = slices.Insert(*l, i, s)
}

// Put adds a snapshot, in place of one of its offset.
func (l *ProducerSnapshots) Put(s ProducerSnapshot) {
	if i, ok := l.find(s.Offset); ok {
		(*l)[i] = s
	} else {
		*l = slices.Insert(*l, i, s)
	}
}

// Remove takes the snapshot of an offset out, and reports whether there was one.
func (l *ProducerSnapshots) Remove(offset int64) bool {
	i, ok := l.find(offset)
	if ok {
		*l = slices.Delete(*l, i, i+1)
	}
	return ok
}

func (l ProducerSnapshots) find(offset int64) (int, bool) {
	return slices.BinarySearchFunc(l, offset, func(s ProducerSnapshot, offset int64) int {
		return cmp.Compare(s.Offset, offset)
	})
}

// Offsets are those of the snapshots.
func (l ProducerSnapshots) Offsets() []int64 {
	offsets := make([]int64, len(l))
	for i, s := range l {
		offsets[i] = s.Offset
	}
	return offsets
}
