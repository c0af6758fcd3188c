package logdir

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"kseg/format"
)

// Again lists the partition anew, narrowed as before, with new Files: minutes may have passed since it was found, in
// which a broker has rolled, cleaned and deleted segments. The problems are those of the listing. The error wraps
// ErrVanished if the directory is gone, as it is when a topic was deleted.
func (p *Partition) Again() (*Partition, []Problem, error) {
	o := opener{opts: *p.opts, set: &Set{}}
	again := &Partition{PartitionDir: p.PartitionDir, Named: p.Named, Name: p.Name, Path: p.Path, Display: p.Display,
		Rel:    p.Rel,
		Parent: p.Parent, opts: p.opts}
	if !o.listPartition(again) {
		return nil, nil, fmt.Errorf("%s: %w: the directory is gone; a broker renames it when a topic is deleted, and then "+
			"removes it",
			p.Display, ErrVanished)
	}
	return again, o.set.Problems, nil
}

// Renamed is the partition as it would be if its files had other names: name gives that of each, false if it is gone.
func (p *Partition) Renamed(name func(f *File) (string, bool)) *Partition {
	q := &Partition{PartitionDir: p.PartitionDir, Named: p.Named, Name: p.Name, Path: p.Path, Display: p.Display,
		Rel:    p.Rel,
		Parent: p.Parent, Modified: p.Modified, fresh: p.fresh, opts: p.opts, listed: true, byName: map[string]*File{}}
	for _, f := range p.all {
		to, ok := name(f)
		if !ok {
			continue
		}
		g := &File{Path: f.Path, Display: f.Display, Rel: f.Rel, Name: format.ParseFileName(to), Size: f.Size,
			ModTime:   f.ModTime,
			Allocated: f.Allocated, Partition: q, Linked: f.Linked, mode: f.mode, id: f.id, own: f.own, gentle: f.gentle}
		q.all, q.byName[to] = append(q.all, g), g
	}
	slices.SortFunc(q.all, func(a, b *File) int { return a.Name.Compare(b.Name) })
	q.Files, q.Segments = q.all, segmentsOf(q)
	return q
}

// SameNames reports whether the directory has had the same entries ever since it was listed, for the price of a stat.
// Files may have grown. It is false for one that had just changed when it was listed, since a change after that may
// have the same time.
func (p *Partition) SameNames() bool {
	now := modTime(p.Path)
	return !p.fresh && !now.IsZero() && now.Equal(p.Modified)
}

// tick is more than the time between two ticks of a file system's clock.
const tick = 50 * time.Millisecond

// fresh reports whether what was changed then may be changed once more without getting another time.
func fresh(modified time.Time) bool { return time.Since(modified) < tick }

// Unchanged reports whether nothing in the partition has changed between two listings of it.
func (p *Partition) Unchanged(later *Partition) bool { return sameFiles(p.all, later.all) }

// Again looks for the state files of the log directory anew, by their names. Partitions and Subdirs are those of
// before.
func (d *LogDir) Again() *LogDir {
	again := *d
	again.Files = nil
	for _, f := range stateFilesIn(d.Path, d.Display, nil) {
		f.LogDir = &again
		again.Files = append(again.Files, f)
	}
	return &again
}

// Unchanged reports whether no state file has changed between two looks at the log directory.
func (d *LogDir) Unchanged(later *LogDir) bool {
	for _, k := range format.Kinds {
		before, now := d.File(k.Kind), later.File(k.Kind)
		if k.Name != "" && k.Place&format.InLogDir != 0 && (before != nil || now != nil) && (before == nil || now == nil ||
			!before.Unchanged(now)) {
			return false
		}
	}
	return true
}

// HasFuture reports whether there is a copy of the partition that was being moved to the log directory.
func (d *LogDir) HasFuture(partition string) bool {
	prefix := partition + "."
	i, _ := slices.BinarySearch(d.Subdirs, prefix)
	for ; i < len(d.Subdirs) && strings.HasPrefix(d.Subdirs[i], prefix); i++ {
		if p, ok := format.ParsePartitionDir(d.Subdirs[i]); ok && p.Suffix == "future" && p.String() == partition {
			return true
		}
	}
	return false
}

func sameFiles(before, later []*File) bool {
	return slices.EqualFunc(before, later, func(a, b *File) bool { return a.Name.Raw == b.Name.Raw && a.Unchanged(b) })
}

// BrokerRuns reports whether a process holds the log directory's lock, as a broker does while it runs. It is only asked
// for, not taken.
func (d *LogDir) BrokerRuns() bool {
	file, err := openAt(filepath.Join(d.Path, format.KindLock.Info().Name))
	if err != nil {
		return false
	}
	defer file.Close()
	return locked(file.File)
}
