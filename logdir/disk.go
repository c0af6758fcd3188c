package logdir

import (
	"io/fs"
	"os"
	"path/filepath"
	"sync/atomic"

	"golang.org/x/sys/unix"
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

// Inject lets a test decide about every access to the disk: where fn returns an error, that is what the disk says. It is for
// one test at a time, until restore is called.
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

func stat(path string) (fs.FileInfo, error) {
	if err := refused("stat", path, 0); err != nil {
		return nil, err
	}
	return os.Stat(path)
}

// entryInfo is stat of what a listing has named, without following a link.
func entryInfo(dir string, e fs.DirEntry) (fs.FileInfo, error) {
	if err := refused("stat", filepath.Join(dir, e.Name()), 0); err != nil {
		return nil, err
	}
	return e.Info()
}

func readDir(path string) ([]fs.DirEntry, error) {
	if err := refused("list", path, 0); err != nil {
		return nil, err
	}
	return os.ReadDir(path)
}

func openAt(path string, flags int) (*os.File, error) {
	if err := refused("open", path, 0); err != nil {
		return nil, err
	}
	return os.OpenFile(path, flags, 0)
}

// readAt is ReadAt of a file that was opened by that path.
func readAt(file *os.File, path string, b []byte, pos int64) (int, error) {
	if inject.Load() != nil {
		for at := pos / block * block; at < pos+int64(len(b)); at += block {
			if err := refused("read", path, at); err != nil {
				n, _ := file.ReadAt(b[:max(0, at-pos)], pos)
				return n, err
			}
		}
	}
	return file.ReadAt(b, pos)
}

// protectRefused makes the pages of a mapping fault that a test makes fail.
func (m *mapping) protectRefused() {
	if inject.Load() == nil {
		return
	}
	for at := int64(0); at < int64(len(m.data)); at += pageSize {
		if refused("read", m.path, at) != nil {
			_ = unix.Mprotect(m.data[at:min(at+pageSize, int64(len(m.data)))], unix.PROT_NONE)
		}
	}
}
