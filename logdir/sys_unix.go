//go:build !windows

package logdir

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// openDisk opens a file for reading. It never waits for the other end of a pipe, and leaves the access time alone where
// the kernel allows it.
func openDisk(path string) (*os.File, error) {
	const flags = os.O_RDONLY | unix.O_NONBLOCK | unix.O_CLOEXEC
	file, err := os.OpenFile(path, flags|openNoAtime, 0)
	if errors.Is(err, fs.ErrPermission) && openNoAtime != 0 {
		// Only the owner of a file may leave its access time alone.
		file, err = os.OpenFile(path, flags, 0)
	}
	return file, err
}

// diskInode is the inode that a look at a path has found.
func diskInode(_ string, info fs.FileInfo) inode {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return inode{}
	}
	return inode{FileID{uint64(st.Dev), st.Ino}, st.Blocks * 512, uint64(st.Nlink)}
}

// unnamedFile is a temporary file that is gone when the program ends, however it ends.
func unnamedFile() (*os.File, error) {
	file, err := os.CreateTemp("", "kseg-archive-")
	if err != nil {
		return nil, err
	}
	return file, os.Remove(file.Name())
}

// locked asks whether a process holds a lock on the file, without taking one.
func locked(file *os.File) bool {
	lock := unix.Flock_t{Type: unix.F_WRLCK, Whence: io.SeekStart}
	err := unix.FcntlFlock(file.Fd(), unix.F_GETLK, &lock)
	return err == nil && lock.Type != unix.F_UNLCK
}

// room asks how much room there is where dir lies.
func room(dir string) (FileSystem, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return FileSystem{}, err
	}
	block := int64(st.Bsize)
	return FileSystem{Size: int64(st.Blocks) * block, Free: int64(st.Bavail) * block, Files: int64(st.Files),
		FreeFiles: int64(st.Ffree), ReadOnly: int64(st.Flags)&readOnlyFlag != 0}, nil
}

// allocate is memory of zeros that costs nothing until it is written to.
//
//lint:ignore U1000 used with the tag nommap
func allocate(n int) ([]byte, error) {
	return unix.Mmap(-1, 0, n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON|noReserve)
}

// free gives back what allocate gave, or a mapping.
func free(b []byte) { _ = unix.Munmap(b) } // cannot fail for what Mmap returned

// protect makes whole pages read-only.
//
//lint:ignore U1000 used with the tag nommap
func protect(b []byte) error { return unix.Mprotect(b, unix.PROT_READ) }

// forbid makes every access to whole pages a fault.
func forbid(b []byte) error { return unix.Mprotect(b, unix.PROT_NONE) }
