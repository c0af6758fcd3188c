package logdir

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"sync"
)

// Usage is what du counts for an entry of a directory: of a link its own bytes, not those of what it leads to.
type Usage struct {
	Bytes     int64 // du -b
	Allocated int64 // du, in bytes

	id    FileID
	links uint64
}

// Add adds another entry to a sum.
func (u *Usage) Add(v Usage) {
	u.Bytes += v.Bytes
	u.Allocated += v.Allocated
}

// usageOf is the usage that lstat tells. What is neither file, directory nor link has no bytes for du -b.
func usageOf(path string, info fs.FileInfo) Usage {
	var u Usage
	if mode := info.Mode(); mode.IsRegular() || mode.IsDir() || mode&fs.ModeSymlink != 0 {
		u.Bytes = info.Size()
	}
	node := inodeOf(path, info)
	if u.Allocated, u.id = node.allocated, node.id; !info.IsDir() {
		u.links = node.links
	}
	return u
}

// Seen remembers the files that have several names, so that each is counted once, as du does. It is safe for several
// goroutines.
type Seen struct {
	mu  sync.Mutex
	ids map[FileID]bool
}

// First is u the first time that its inode is met, and nothing after that.
func (s *Seen) First(u Usage) Usage {
	if u.links < 2 {
		return u
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ids[u.id] {
		return Usage{}
	}
	if s.ids == nil {
		s.ids = map[FileID]bool{}
	}
	s.ids[u.id] = true
	return u
}

// Usage is what du counts for the file's name.
func (f *File) Usage() Usage { return f.own }

// Irregular says why the file cannot be read as one: it is a pipe, a device, a socket, or the disk does not tell. It is
// nil for regular files.
func (f *File) Irregular() error {
	if f.denied != nil {
		return f.denied
	}
	if f.mode.IsRegular() {
		return nil
	}
	return fmt.Errorf("%s: %s; copy its bytes to a regular file to read them", f.Display, modeSentence(f.mode))
}

// UsageBelow is what du counts for a directory and all that lies below it. Links are not followed. What vanishes
// meanwhile is not counted; what cannot be listed is a problem.
func UsageBelow(dir string, seen *Seen) (sum Usage, problems []Problem) {
	// The function returns no error, so there is none of the walk.
	_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil {
			var info fs.FileInfo
			if info, err = entryInfo(filepath.Dir(path), d); err == nil {
				sum.Add(seen.First(usageOf(path, info)))
			}
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			problems = append(problems, Problem{path, statError(path, err)})
		}
		return nil
	})
	return sum, problems
}

// FileSystem says how much room there is where a directory lies.
type FileSystem struct {
	Size, Free int64 // in bytes; Free is what a process without privileges may use
	Files      int64 // inodes; 0 where the file system does not count them
	FreeFiles  int64
	ReadOnly   bool
}

// FileSystemOf asks for the room where dir lies; none is known of what comes on stdin.
func FileSystemOf(dir string) (FileSystem, error) {
	if a, _, ok := archived(dir); ok {
		if dir = a.root; dir == Stdin {
			return FileSystem{}, nil
		}
	}
	s, err := room(dir)
	if err != nil {
		return FileSystem{}, fmt.Errorf("%s: its file system does not tell how much room it has: %w", dir, bareError(err))
	}
	return s, nil
}
