package logdir

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"kseg/format"
)

// File is one file that was found: what its name says and what the directory says about it. It is not open. Its methods
// may be called from several goroutines.
type File struct {
	Path    string // for opening it
	Display string // as a user would name it: the operand, joined with Rel
	Rel     string // relative to the operand it was found under; its own name if it is the operand
	Name    format.FileName
	Size    int64 // in bytes, when it was found; a broker may have changed it since
	ModTime time.Time
	// Allocated is the space on disk in bytes. It is less than Size for the preallocated indexes of an active segment.
	Allocated int64
	// Partition holds the file if a partition or a log directory was opened; it is nil for a file given alone.
	Partition *Partition
	// LogDir is set for the state files of a log directory.
	LogDir *LogDir
	// Linked is true if the name is a link's: the bytes lie elsewhere.
	Linked bool

	mode   fs.FileMode
	denied error // why nothing is known of it but that it may be there; opening it fails with that
	id     FileID
	own    Usage
	gentle *Gentle

	mu      sync.Mutex
	mapping *mapping
	// length is what the first View found, if measured: all others show as much, whatever is appended meanwhile.
	length   int64
	measured bool
}

// FileID tells whether a path still leads to the same file.
type FileID struct{ dev, ino uint64 }

// inode is what a file has besides its content.
type inode struct {
	id        FileID
	allocated int64 // in bytes
	links     uint64
}

// inodeOf is the inode that a look at a path has found. Each member of an archive has one of its own, on no device.
func inodeOf(path string, info fs.FileInfo) inode {
	if m, ok := info.(memberInfo); ok {
		return inode{FileID{ino: m.number}, (m.size + 511) / 512 * 512, 1}
	}
	return diskInode(path, info)
}

func newFile(path, display, rel string, info fs.FileInfo, gentle *Gentle) *File {
	f := &File{
		Path: path, Display: display, Rel: rel, Name: format.ParseFileName(filepath.Base(path)),
		Size: info.Size(), ModTime: info.ModTime(), mode: info.Mode(), gentle: gentle,
	}
	node := inodeOf(path, info)
	f.id, f.Allocated = node.id, node.allocated
	f.own = usageOf(path, info)
	return f
}

// ID is the file that the path led to when it was found, under whatever name it is now.
func (f *File) ID() FileID { return f.id }

// Listed reports whether the file was found in a directory, and is no operand itself.
func (f *File) Listed() bool {
	if f.Partition != nil {
		return f.Partition.listed
	}
	return f.LogDir != nil && f.LogDir.Listed
}

// Kind is the kind that the name tells.
func (f *File) Kind() format.Kind { return f.Name.Kind }

// RequireBase is the base offset, or an error that says how to give one.
func (f *File) RequireBase() (int64, error) {
	if f.Name.HasBase {
		return f.Name.Base, nil
	}
	return 0, fmt.Errorf("%s: its name does not give its base offset (a broker would have named it like %s); "+
		"add --base-offset N", f.Display, format.SegmentFileName(0, f.Kind()))
}

// Dir is what the name of the directory that holds the file says, if it is the name of a partition's. It works for a
// file given alone too, by its absolute path.
func (f *File) Dir() (format.PartitionDir, bool) {
	if f.Partition != nil {
		return f.Partition.PartitionDir, f.Partition.Named
	}
	if f.LogDir != nil {
		return format.PartitionDir{}, false
	}
	_, d, ok := partitionName(filepath.Dir(f.Path))
	return d, ok
}

// Sibling is the file of another kind that belongs to this one: the index of a segment, the segment of an index, the
// leader-epoch-checkpoint beside them. It is nil if there is none. For a file given alone it costs one stat, not a
// listing.
func (f *File) Sibling(kind format.Kind) *File {
	name := f.Name.Sibling(kind)
	if name == "" {
		return nil
	}
	if f.Partition != nil {
		return f.Partition.byName[name]
	}
	return regularFile(filepath.Dir(f.Path), filepath.Dir(f.Display), name, f.gentle)
}

// SiblingNow is Sibling, and looks again for a file that was not there when its directory was listed: a broker makes a
// .txnindex with the first transaction that is aborted.
func (f *File) SiblingNow(kind format.Kind) *File {
	if s := f.Sibling(kind); s != nil || f.Partition == nil {
		return s
	}
	name := f.Name.Sibling(kind)
	if name == "" {
		return nil
	}
	s := regularFile(filepath.Dir(f.Path), filepath.Dir(f.Display), name, f.gentle)
	if s != nil {
		s.Partition, s.Rel = f.Partition, filepath.Join(filepath.Dir(f.Rel), name)
	}
	return s
}

// Again is the file as it is now: what has taken its place, too. The error wraps ErrVanished if there is none.
func (f *File) Again() (*File, error) {
	info, err := stat(f.Path)
	if err != nil {
		return nil, f.openError(err)
	}
	again := newFile(f.Path, f.Display, f.Rel, info, f.gentle)
	again.Name, again.Partition, again.LogDir = f.Name, f.Partition, f.LogDir
	return again, nil
}

// Unchanged reports whether two Files found at different times are of one file that nobody wrote to in between.
func (f *File) Unchanged(later *File) bool {
	return f.id == later.id && f.Size == later.Size && f.ModTime.Equal(later.ModTime)
}

// Around is the partition that the file of a segment lies in, narrowed to that segment: for a file given alone too,
// whose directory is then listed. It is nil if the directory is no partition's, or the file's name does not give its
// base offset.
func (f *File) Around() *Partition {
	if f.Partition != nil {
		return f.Partition
	}
	set, err := Open([]string{filepath.Dir(f.Path)}, Options{Segments: []int64{f.Name.Base}, Gentle: f.gentle})
	if err != nil {
		return nil
	}
	return set.Operands[0].Partition
}

// neighbourhood is Around, or why the file lies in no segment of a partition.
func (f *File) neighbourhood() (*Partition, error) {
	if !f.Kind().IsSegmentFile() || !f.Name.HasBase || f.Name.Leftover() {
		return nil, fmt.Errorf("%s: it belongs to no segment; name a segment, a partition directory or a log directory",
			f.Display)
	}
	if own := format.ParseFileName(f.Name.Raw); !own.HasBase || own.Base != f.Name.Base {
		return nil, fmt.Errorf("%s: a copy out of its place; a segment is judged among its neighbours, so give it the "+
			"name %s in a partition directory", f.Display, format.SegmentFileName(f.Name.Base, f.Kind()))
	}
	p := f.Around()
	if p == nil || len(p.Segments) == 0 {
		return nil, fmt.Errorf("%s: there is no segment %d beside it", f.Display, f.Name.Base)
	}
	return p, nil
}

// Parent is the log directory that the file's partition lies in, for its checkpoints and clean-shutdown marker: nil if
// there is no such file. For a file given alone it costs a few stats.
func (f *File) Parent() *LogDir {
	switch {
	case f.LogDir != nil:
		return f.LogDir
	case f.Partition != nil:
		return f.Partition.Parent
	}
	return parentOf(filepath.Dir(f.Path), f.gentle)
}

// regularFile looks for a regular file of that name in dir; it is nil if there is none. Where the disk does not tell,
// it is a file that cannot be opened.
func regularFile(dir, displayDir, name string, gentle *Gentle) *File {
	path, display := filepath.Join(dir, name), filepath.Join(displayDir, name)
	info, err := stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) || err == nil && !info.Mode().IsRegular():
		return nil
	case err != nil:
		return &File{Path: path, Display: display, Rel: name, Name: format.ParseFileName(name), denied: statError(display,
			err), gentle: gentle}
	}
	return newFile(path, display, name, info, gentle)
}

// SizeNow asks how many bytes the file has at present: a broker may have appended to it since it was found, or mapped.
func (f *File) SizeNow() (int64, error) {
	info, err := stat(f.Path)
	if err != nil {
		return 0, f.openError(err)
	}
	return info.Size(), nil
}

// ReadSmall reads the whole of a file that is known to be small, such as a checkpoint, into memory of its own. A file
// of more than format.MostSmall bytes is not read: the error wraps format.ErrTooLarge.
//
// A broker replaces such files as a whole; what has taken the file's place since it was found is read instead.
func (f *File) ReadSmall() ([]byte, error) {
	file, size, err := f.openAny()
	if err != nil {
		return nil, err
	}
	defer file.Close()
	if size > format.MostSmall {
		return nil, fmt.Errorf("%s: %w: it has %d bytes, and %s is read up to %d",
			f.Display, format.ErrTooLarge, size, f.Kind().ATitle(), int64(format.MostSmall))
	}
	return f.readAt(file, make([]byte, size))
}

// readHead reads the first n bytes, or what there is.
func (f *File) readHead(n int64) ([]byte, error) {
	file, info, err := f.open()
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return f.readAt(file, make([]byte, min(info.Size(), n)))
}

// readAt fills b from the start of the file, as far as it goes: it may have been truncated since its size was asked.
func (f *File) readAt(file *handle, b []byte) ([]byte, error) {
	n, err := readAt(file, f.Path, b, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%s: %w", f.Display, bareError(err))
	}
	return b[:n], nil
}
