package broker

import (
	"bytes"
	"cmp"
	"maps"
	"slices"
	"strings"

	"kseg/format"
	"kseg/logdir"
	"kseg/state"
)

// file is a file of a partition's directory as the start has left it so far: a part of a file on disk, or bytes that
// the start writes; then zeros up to the size.
type file struct {
	name string
	size int64
	src  *logdir.File // nil: data holds the bytes
	from int64        // where the bytes of src begin
	have int64        // how many of src's bytes count; the rest is zeros
	data []byte
}

// view calls fn with the file's first n bytes.
func (f *file) view(n int64, fn func([]byte) error) error {
	if f.src == nil {
		return fn(padded(f.data, n))
	}
	return f.src.View(func(b []byte) error {
		b = b[min(f.from, int64(len(b))):]
		b = b[:min(f.have, int64(len(b)))]
		return fn(padded(b, n))
	})
}

// padded is b cut or filled with zeros to n bytes.
func padded(b []byte, n int64) []byte {
	if n <= int64(len(b)) {
		return b[:n]
	}
	return append(bytes.Clone(b), make([]byte, n-int64(len(b)))...)
}

// truncate cuts the file, or lets it grow by zeros.
func (f *file) truncate(size int64) {
	f.size, f.have = size, min(f.have, size)
	if f.src == nil {
		f.data = f.data[:min(size, int64(len(f.data)))]
	}
}

// rewrite replaces the content.
func (f *file) rewrite(data []byte, size int64) {
	f.src, f.data, f.size, f.have, f.from = nil, data, size, 0, 0
}

// read is the whole of a small file.
func (f *file) read() ([]byte, error) { return f.head(f.size) }

// written is the file without the zeros that only its size stands for.
func (f *file) written() ([]byte, error) {
	if f.src == nil {
		return f.data, nil
	}
	return f.head(f.have)
}

// head is the first n bytes of a small file.
func (f *file) head(n int64) ([]byte, error) {
	if f.src == nil {
		return padded(f.data, n), nil
	}
	if n > format.MostSmall {
		return f.src.ReadSmall() // its error says that the file is too large
	}
	var raw []byte
	err := f.view(n, func(b []byte) error {
		raw = bytes.Clone(b)
		return nil
	})
	return raw, err
}

// folder is a partition's directory.
type folder struct {
	dir   *logdir.Partition
	files map[string]*file
	// dirs are the names of directories inside.
	dirs map[string]bool
	// disk are the files that were found, by name.
	disk map[string]*logdir.File
	// snapshots are the producer snapshots, and named are their names by offset; badSnapshot is a name of one that has no
	// offset, "" if there is none.
	snapshots   state.ProducerSnapshots
	named       map[int64]string
	badSnapshot string
	// renamed says by which name a file that was found went away to be removed later.
	renamed map[string]string
}

func newFolder(dir *logdir.Partition, edits []Edit) *folder {
	d := &folder{dir: dir, files: map[string]*file{}, dirs: map[string]bool{}, disk: map[string]*logdir.File{},
		named: map[int64]string{}, renamed: map[string]string{}}
	for _, name := range dir.Subdirs {
		d.dirs[name] = true
	}
	for _, f := range dir.All() {
		if f.Irregular() != nil {
			continue // a broker passes over what is no regular file
		}
		d.disk[f.Name.Raw] = f
		d.files[f.Name.Raw] = &file{name: f.Name.Raw, size: f.Size, src: f, have: f.Size}
	}
	for _, e := range edits {
		e.apply(d)
	}
	for _, name := range d.names() {
		d.addSnapshot(name)
	}
	return d
}

// addSnapshot takes a file into the list of the producer snapshots, if it is one.
func (d *folder) addSnapshot(name string) {
	if !strings.HasSuffix(name, snapshotSuffix) {
		return
	}
	offset, err := offsetOf(name)
	if err != nil {
		d.badSnapshot = cmp.Or(d.badSnapshot, name)
		return
	}
	d.snapshots.Put(state.ProducerSnapshot{Offset: offset, Read: func() ([]byte, error) { return d.read(name) }})
	d.named[offset] = name
}

// dropSnapshot takes a file out of the list of the producer snapshots, if it is in it.
func (d *folder) dropSnapshot(name string) {
	if !strings.HasSuffix(name, snapshotSuffix) {
		return
	}
	if offset, err := offsetOf(name); err == nil && d.named[offset] == name {
		d.snapshots.Remove(offset)
		delete(d.named, offset)
	}
}

// bars is why a broker cannot open a file of that name, nil if it can: the log directory goes offline then.
func (d *folder) bars(name string) *Failure {
	switch {
	case d.dirs[name]:
		return &Failure{Offline: true, Place: name, Err: errDirectory}
	case slices.Contains(d.dir.Links, name):
		return &Failure{Offline: true, Place: name, Err: logdir.ErrDangling}
	default:
		return nil
	}
}

// read is the whole of a small file.
func (d *folder) read(name string) ([]byte, error) {
	raw, err := d.files[name].read()
	if err != nil {
		return nil, &unreadable{err}
	}
	return raw, nil
}

// names are the names of all files in the order in which LogLoader goes through them.
func (d *folder) names() []string { return slices.Sorted(maps.Keys(d.files)) }

// exists reports whether anything has the name.
func (d *folder) exists(name string) bool { return d.files[name] != nil || d.dirs[name] }

func (d *folder) create(name string, data []byte, size int64) *file {
	f := &file{name: name, size: size, data: data}
	d.files[name] = f
	d.addSnapshot(name)
	return f
}

func (d *folder) remove(name string) {
	delete(d.files, name)
	d.dropSnapshot(name)
}

// rename moves a file over another; false if there is none.
func (d *folder) rename(from, to string) bool {
	f := d.files[from]
	if f == nil {
		return false
	}
	d.remove(from)
	f.name = to
	d.files[to] = f
	d.addSnapshot(to)
	if strings.HasSuffix(to, deletedSuffix) {
		d.renamed[from] = to
	}
	return true
}

// Suffixes of files that are on their way in or out.
const (
	deletedSuffix = ".deleted"
	cleanedSuffix = ".cleaned"
	swapSuffix    = ".swap"
)

// Action is what a start does to a file.
type Action string

// The actions.
const (
	Keep     Action = "keep"
	Truncate Action = "truncate"
	Rebuild  Action = "rebuild"
	Create   Action = "create"
	Rename   Action = "rename"
	Delete   Action = "delete"
)

// FileChange is what becomes of one file.
type FileChange struct {
	Name   string
	Before *int64 // bytes; nil: it is not there
	After  *int64 // bytes; nil: it is gone
	Action Action
	// RenamedTo is the name that the file gets: of one that a broker removes later, or of one that it puts in its
	// place.
	RenamedTo string
	// Content is what is in the file afterwards, where that is other than on disk and small; zeros follow up to After.
	Content []byte

	file   *file
	parsed format.FileName
}

// changes compares the directory with what was found: by name, logs and their files by base offset.
func (d *folder) changes() []FileChange {
	all := make([]FileChange, 0, len(d.disk))
	for name, f := range d.disk {
		size := f.Size
		c := FileChange{Name: name, Before: &size, Action: Delete, RenamedTo: d.renamed[name]}
		if now := d.files[name]; now != nil {
			c.RenamedTo = ""
			c.set(now, f)
		}
		all = append(all, c)
	}
	for name, now := range d.files {
		if d.disk[name] == nil {
			after := now.size
			c := FileChange{Name: name, After: &after, Action: Create, Content: now.data, file: now}
			if now.src != nil && now.src.Name.Raw != name && now.from == 0 && now.have == now.src.Size {
				c.moved(all, now.src.Name.Raw)
			}
			all = append(all, c)
		}
	}
	for i, c := range all {
		all[i].parsed = format.ParseFileName(c.Name)
	}
	slices.SortFunc(all, func(a, b FileChange) int { return a.parsed.Compare(b.parsed) })
	return all
}

// File is what becomes of a file, false if there is none of that name before or after.
func (l *Loaded) File(name string) (FileChange, bool) {
	i, ok := slices.BinarySearchFunc(l.Files, format.ParseFileName(name), func(c FileChange, n format.FileName) int {
		return c.parsed.Compare(n)
	})
	if !ok {
		return FileChange{}, false
	}
	return l.Files[i], true
}

// Segment is the segment of a base offset, false if there is none.
func (l *Loaded) Segment(base int64) (LoadedSegment, bool) {
	i, ok := slices.BinarySearchFunc(l.Segments, base, func(s LoadedSegment, base int64) int {
		return cmp.Compare(s.Base, base)
	})
	if !ok {
		return LoadedSegment{}, false
	}
	return l.Segments[i], true
}

// moved marks the file that another one was renamed from, where a start puts it in its place.
func (c *FileChange) moved(all []FileChange, from string) {
	if strings.HasSuffix(c.Name, deletedSuffix) {
		return
	}
	for i := range all {
		if all[i].Name == from {
			all[i].Action, all[i].RenamedTo = Rename, c.Name
		}
	}
}

// set says what became of a file that is still there under its name.
func (c *FileChange) set(now *file, was *logdir.File) {
	size := now.size
	c.After, c.file, c.Content = &size, now, now.data
	switch {
	case now.src == was && now.from == 0 && now.size == was.Size && now.have == was.Size:
		c.Action = Keep
	case now.src == was && now.from == 0 && now.size < was.Size:
		c.Action = Truncate
	case now.size == was.Size && sameContent(now, was):
		c.Action = Keep
	case grown(now, was):
		c.Action = Keep
	default:
		c.Action = Rebuild
	}
}

// maxCompared bounds the files that are compared with what a start writes.
const maxCompared = 16 << 20

func sameContent(now *file, was *logdir.File) bool {
	if was.Size > maxCompared {
		return false
	}
	same := false
	err := was.View(func(b []byte) error {
		return now.view(now.size, func(content []byte) error {
			same = bytes.Equal(b, content)
			return nil
		})
	})
	return err == nil && same
}

// grown reports whether a file only gets zeros after what it has: room for new entries.
func grown(now *file, was *logdir.File) bool {
	if now.size <= was.Size || was.Size > maxCompared {
		return false
	}
	if now.src == was && now.from == 0 {
		return now.have == was.Size
	}
	return now.src == nil && int64(len(now.data)) <= was.Size && sameContent(&file{data: now.data, size: was.Size}, was)
}
