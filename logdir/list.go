package logdir

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"kseg/format"
)

type dirClass int

const (
	isForeign dirClass = iota
	isPartition
	isLogDir
)

// classifyDir tells a partition's directory from a log directory by what it holds, since both may have any name: a log
// directory called kafka-1 is common, and so is a folder backup with the files of one partition. A directory that holds
// kafka-1 and kafka-2 is neither, so directories with a partition's name are looked into, to the given depth.
func classifyDir(dir string, entries []fs.DirEntry, depth int) dirClass {
	var partitionFiles, stateFiles bool
	for _, e := range entries {
		name := format.ParseFileName(e.Name())
		if name.Kind == format.KindUnknown || name.Kind == format.KindLock || isDir(dir, e) {
			continue
		}
		switch {
		case name.Kind.HasOffset():
			// server.log is no segment, and bootstrap.checkpoint is at home in both.
			partitionFiles = partitionFiles || name.HasBase
		case name.Kind.Info().Place == format.InLogDir:
			stateFiles = true
		default:
			partitionFiles = true
		}
	}
	_, _, named := partitionName(dir)
	switch {
	case stateFiles && !partitionFiles:
		return isLogDir
	case partitionFiles && named && !stateFiles:
		return isPartition
	case holdsPartition(dir, entries, depth):
		return isLogDir
	case partitionFiles:
		return isPartition
	}
	return isForeign
}

// holdsPartition reports whether one of the entries is a partition's directory: by its name, and not a log directory.
func holdsPartition(dir string, entries []fs.DirEntry, depth int) bool {
	return slices.ContainsFunc(entries, func(e fs.DirEntry) bool {
		_, ok := format.ParsePartitionDir(e.Name())
		return ok && isDir(dir, e) && (depth == 0 || classOf(filepath.Join(dir, e.Name()), depth-1) != isLogDir)
	})
}

// classOf lists a directory to classify it; one that cannot be listed is foreign.
func classOf(dir string, depth int) dirClass {
	entries, err := readDir(dir)
	if err != nil {
		return isForeign
	}
	return classifyDir(dir, entries, depth)
}

// lookDepth is how deep classifyDir looks from an operand: into its partitions, and whether those hold partitions.
const lookDepth = 1

// isDir reports whether an entry is a directory, or a link to one.
func isDir(dir string, e fs.DirEntry) bool {
	if e.Type()&fs.ModeSymlink == 0 {
		return e.IsDir()
	}
	info, err := stat(filepath.Join(dir, e.Name()))
	return err == nil && info.IsDir()
}

// logDir lists a log directory and the partitions in it that the options keep.
func (o *opener) logDir(arg string, entries []fs.DirEntry) *LogDir {
	d := &LogDir{Path: arg, Display: arg, Listed: true, opts: &o.opts}
	var dirs []subdir
	d.Files, dirs, d.Links = o.list(arg, arg, "", entries)
	d.Subdirs = namesOf(dirs)
	for _, f := range d.Files {
		f.LogDir = d
	}
	for _, sub := range dirs {
		name := sub.name
		dir, ok := format.ParsePartitionDir(name)
		if !ok {
			continue
		}
		p := &Partition{PartitionDir: dir, Named: true, Name: name, Path: filepath.Join(arg, name),
			Display: filepath.Join(arg, name), Rel: name, Parent: d, Own: sub.own, Linked: sub.linked, opts: &o.opts}
		if !o.wanted(p) {
			continue
		}
		if o.opts.Unlisted || o.listPartition(p) && (len(o.opts.Segments) == 0 || len(p.Files) > 0) {
			d.Partitions = append(d.Partitions, p)
		}
	}
	slices.SortStableFunc(d.Partitions, ComparePartitions)
	d.Narrowed = o.opts.Narrows()
	return d
}

// List lists the partition now, if Options.Unlisted left that open. Problems are what could not be listed; there is
// nothing of a directory that was deleted since its parent was listed, and gone is true.
func (p *Partition) List() (problems []Problem, gone bool) {
	if p.listed || p.opts == nil {
		return nil, false
	}
	o := opener{opts: *p.opts, set: &Set{}}
	found := o.listPartition(p)
	return o.set.Problems, !found
}

// Forget lets go of the files that List found.
func (p *Partition) Forget() { p.all, p.byName, p.Files, p.Segments = nil, nil, nil, nil }

// listPartition reads the directory of a partition. It is false if that is gone.
func (o *opener) listPartition(p *Partition) bool {
	p.Modified = modTime(p.Path)
	p.fresh = fresh(p.Modified)
	entries, err := readDir(p.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return false
	}
	if err != nil {
		p.ListErr = statError(p.Display, err)
		o.problem(p.Display, p.ListErr)
	}
	p.listed = true
	o.fillPartition(p, entries)
	return true
}

// modTime is when the directory was changed last, the zero time if that is not known.
func modTime(dir string) time.Time {
	info, err := stat(dir)
	if err != nil {
		return time.Time{}
	}
	return info.ModTime()
}

// subdir is a directory, or a link to one, and what du counts for it.
type subdir struct {
	name   string
	own    Usage
	linked bool
}

func namesOf(dirs []subdir) []string {
	var names []string
	for _, d := range dirs {
		names = append(names, d.name)
	}
	return names
}

// ComparePartitions orders by topic, then number, then the whole name, so that orders-10 comes after orders-9, and
// orders-3.…-delete after orders-3.
func ComparePartitions(a, b *Partition) int {
	return cmp.Or(strings.Compare(a.Topic, b.Topic), cmp.Compare(a.Partition, b.Partition),
		strings.Compare(a.Name, b.Name))
}

// joined is the path of an entry of a directory; the end of longer if that is what it ends in, since of hundreds of
// thousands of files names take most of the memory.
func joined(dir, name, longer string) string {
	if dir == "." || dir == "" {
		return longer[len(longer)-len(name):]
	}
	if rest, ok := strings.CutSuffix(longer, string(filepath.Separator)+name); ok && strings.HasSuffix(rest, dir) {
		return longer[len(rest)-len(dir):]
	}
	return filepath.Join(dir, name)
}

// list makes Files of the entries of a directory, in dump order, and collects the names of its directories.
// links are the names of links that lead nowhere.
func (o *opener) list(path, display, rel string, entries []fs.DirEntry) (files []*File, dirs []subdir, links []string) {
	for _, e := range entries {
		at := filepath.Join(path, e.Name())
		shown := joined(display, e.Name(), at)
		info, err := entryInfo(path, e)
		var own Usage
		linked := false
		if err == nil {
			own, linked = usageOf(at, info), info.Mode()&fs.ModeSymlink != 0
		}
		if linked {
			info, err = stat(at)
			if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ELOOP) {
				o.problem(shown, fmt.Errorf("%s: %w", shown, ErrDangling))
				links = append(links, e.Name())
				continue
			}
		}
		switch {
		case errors.Is(err, fs.ErrNotExist): // deleted since the directory was listed
		case err != nil:
			o.problem(shown, statError(shown, err))
		case info.IsDir():
			dirs = append(dirs, subdir{e.Name(), own, linked})
		default:
			f := newFile(at, shown, joined(rel, e.Name(), shown), info, o.opts.Gentle)
			f.own, f.Linked = own, linked
			files = append(files, f)
		}
	}
	slices.SortFunc(files, func(a, b *File) int { return a.Name.Compare(b.Name) })
	return files, dirs, links
}

// fillPartition lists a partition's files and puts its segments together.
func (o *opener) fillPartition(p *Partition, entries []fs.DirEntry) {
	rel := p.Rel
	if rel == "." {
		rel = ""
	}
	var dirs []subdir
	p.all, dirs, p.Links = o.list(p.Path, p.Display, rel, entries)
	p.Subdirs = namesOf(dirs)
	p.byName = make(map[string]*File, len(p.all))
	for _, f := range p.all {
		f.Partition = p
		p.byName[f.Name.Raw] = f
	}
	segments := segmentsOf(p)
	if len(o.opts.Segments) == 0 {
		p.Segments, p.Files = segments, p.all
		return
	}
	for _, s := range segments {
		o.bases = append(o.bases, s.Base)
		if slices.Contains(o.opts.Segments, s.Base) {
			p.Segments = append(p.Segments, s)
		}
	}
	for _, f := range p.all {
		if f.Name.HasBase && slices.Contains(o.opts.Segments, f.Name.Base) {
			p.Files = append(p.Files, f)
		}
	}
}

// segmentsOf joins each log with the files of the same stem, and links the segments. The files are in dump order, so
// the logs come by base offset.
func segmentsOf(p *Partition) []*Segment {
	var segments []*Segment
	for _, f := range p.all {
		if !f.Name.Of(format.KindLog) {
			continue
		}
		s := &Segment{Base: f.Name.Base, Partition: p, Log: f,
			Index:     f.Sibling(format.KindOffsetIndex),
			TimeIndex: f.Sibling(format.KindTimeIndex),
			TxnIndex:  f.Sibling(format.KindTxnIndex),
			Snapshot:  f.Sibling(format.KindProducerSnapshot),
		}
		if n := len(segments); n > 0 {
			s.Prev = segments[n-1]
			s.Prev.Next = s
		}
		segments = append(segments, s)
	}
	return segments
}
