package logdir

import (
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync/atomic"
)

// Access is one thing that is asked of the disk.
type Access struct {
	Op   string // "stat", "list", "open" or "read"
	Path string
	Pos  int64 // of a "read": where a block of the file begins, whether it is copied or mapped
}

// block is how many bytes fail together.
const block = 4096

// inject is what tests make of the disk.
var inject atomic.Pointer[func(Access) error]

// Inject lets a test decide about every access to the disk: where fn returns an error, that is what the disk says. It
// is for one test at a time, until restore is called.
func Inject(fn func(Access) error) (restore func()) {
	inject.Store(&fn)
	return func() { inject.Store(nil) }
}

// refused is the error that an access meets in a test.
func refused(op, path string, pos int64) error {
	fn := inject.Load()
	if fn == nil {
		return nil
	}
	if err := (*fn)(Access{op, path, pos}); err != nil {
		return &fs.PathError{Op: op, Path: path, Err: err}
	}
	return nil
}

func stat(path string) (info fs.FileInfo, err error) {
	defer func() { failedLook(path, err) }()
	if err := refused("stat", path, 0); err != nil {
		return nil, err
	}
	if _, m, ok := archived(path); ok {
		if m == nil {
			return nil, &fs.PathError{Op: "stat", Path: path, Err: fs.ErrNotExist}
		}
		return memberInfo{m}, nil
	}
	return os.Stat(path)
}

// entryInfo is stat of what a listing has named, without following a link.
func entryInfo(dir string, e fs.DirEntry) (fs.FileInfo, error) {
	path := filepath.Join(dir, e.Name())
	err := refused("stat", path, 0)
	var info fs.FileInfo
	if err == nil {
		info, err = e.Info()
	}
	failedLook(path, err)
	return info, err
}

func readDir(path string) (entries []fs.DirEntry, err error) {
	defer func() { failedLook(path, err) }()
	if err := refused("list", path, 0); err != nil {
		return nil, err
	}
	if _, m, ok := archived(path); ok {
		if m == nil || !m.mode.IsDir() {
			return nil, &fs.PathError{Op: "open", Path: path, Err: fs.ErrNotExist}
		}
		return m.entries, nil
	}
	return os.ReadDir(path)
}

// handle is a file that was opened for reading: one on disk, or a member of an archive, which is a part of one or was
// put together from pieces.
type handle struct {
	*os.File
	member *member // nil for a file on disk
}

// Stat is about the member, if it is one.
func (f *handle) Stat() (fs.FileInfo, error) {
	if f.member != nil {
		return memberInfo{f.member}, nil
	}
	return f.File.Stat()
}

// ReadAt reads from the file or the member.
func (f *handle) ReadAt(b []byte, pos int64) (int, error) {
	if !f.whole() {
		return io.NewSectionReader(f.File, f.member.origin, f.member.size).ReadAt(b, pos)
	}
	return f.File.ReadAt(b, pos)
}

// Close closes a file on disk; an archive stays open.
func (f *handle) Close() error {
	if !f.whole() {
		return nil
	}
	return f.File.Close()
}

// origin is where the bytes begin in the file on disk.
func (f *handle) origin() int64 {
	if !f.whole() {
		return f.member.origin
	}
	return 0
}

// whole reports whether the bytes are a whole file on disk, which may have holes.
func (f *handle) whole() bool { return f.member == nil || f.member.pieces > 0 }

func openAt(path string) (*handle, error) {
	if err := refused("open", path, 0); err != nil {
		return nil, err
	}
	if _, m, ok := archived(path); ok {
		switch {
		case m == nil || m.mode.IsDir():
			return nil, &fs.PathError{Op: "open", Path: path, Err: fs.ErrNotExist}
		case m.pieces > 0:
			file, err := m.assemble()
			return &handle{file, m}, err
		}
		return &handle{m.file, m}, nil
	}
	file, err := openDisk(path)
	if err != nil {
		return nil, err
	}
	return &handle{File: file}, nil
}

// readAt is ReadAt of a file that was opened by that path.
func readAt(file *handle, path string, b []byte, pos int64) (int, error) {
	if inject.Load() != nil {
		for at := pos / block * block; at < pos+int64(len(b)); at += block {
			if err := refused("read", path, at); err != nil {
				failed(path, err)
				n, _ := file.ReadAt(b[:max(0, at-pos)], pos)
				return n, err
			}
		}
	}
	n, err := file.ReadAt(b, pos)
	failed(path, err)
	return n, err
}
