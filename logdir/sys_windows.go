package logdir

import (
	"io/fs"
	"math"
	"os"
	"unsafe"

	"golang.org/x/sys/windows"
)

// shareAll lets a broker go on writing, renaming and deleting a file that is open here.
const shareAll = windows.FILE_SHARE_READ | windows.FILE_SHARE_WRITE | windows.FILE_SHARE_DELETE

func create(path string, access, share, mode, flags uint32) (windows.Handle, error) {
	name, err := windows.UTF16PtrFromString(path)
	if err != nil {
		return 0, err
	}
	return windows.CreateFile(name, access, share, nil, mode, flags, 0)
}

// openDisk opens a file for reading.
func openDisk(path string) (*os.File, error) {
	h, err := create(path, windows.GENERIC_READ, shareAll, windows.OPEN_EXISTING, windows.FILE_ATTRIBUTE_NORMAL)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	return os.NewFile(uintptr(h), path), nil
}

// diskInode is what Windows has in the place of an inode. It is nothing for what may not be opened.
func diskInode(path string, info fs.FileInfo) inode {
	h, err := create(path, 0, shareAll, windows.OPEN_EXISTING, windows.FILE_FLAG_BACKUP_SEMANTICS)
	if err != nil {
		return inode{}
	}
	defer windows.CloseHandle(h)
	var d windows.ByHandleFileInformation
	if err := windows.GetFileInformationByHandle(h, &d); err != nil {
		return inode{}
	}
	id := FileID{uint64(d.VolumeSerialNumber), uint64(d.FileIndexHigh)<<32 | uint64(d.FileIndexLow)}
	return inode{id, info.Size(), uint64(d.NumberOfLinks)}
}

// unnamedFile is a temporary file that is gone when it is closed, or the program ends.
func unnamedFile() (*os.File, error) {
	file, err := os.CreateTemp("", "kseg-archive-")
	if err != nil {
		return nil, err
	}
	file.Close()
	h, err := create(file.Name(), windows.GENERIC_READ|windows.GENERIC_WRITE, windows.FILE_SHARE_DELETE,
		windows.CREATE_ALWAYS, windows.FILE_ATTRIBUTE_TEMPORARY|windows.FILE_FLAG_DELETE_ON_CLOSE)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: file.Name(), Err: err}
	}
	return os.NewFile(uintptr(h), file.Name()), nil
}

// locked is never known: a lock can only be asked for by taking it.
func locked(*os.File) bool { return false }

// room asks how much room there is where dir lies.
func room(dir string) (FileSystem, error) {
	name, err := windows.UTF16PtrFromString(dir)
	if err != nil {
		return FileSystem{}, err
	}
	var free, size uint64
	err = windows.GetDiskFreeSpaceEx(name, &free, &size, nil)
	return FileSystem{Size: int64(min(size, math.MaxInt64)), Free: int64(min(free, math.MaxInt64))}, err
}

// allocate is memory of zeros.
func allocate(n int) ([]byte, error) {
	addr, err := windows.VirtualAlloc(0, uintptr(n), windows.MEM_RESERVE|windows.MEM_COMMIT, windows.PAGE_READWRITE)
	if err != nil {
		return nil, err
	}
	return unsafe.Slice(*(**byte)(unsafe.Pointer(&addr)), n), nil
}

// free gives back what allocate gave.
func free(b []byte) { _ = windows.VirtualFree(address(b), 0, windows.MEM_RELEASE) }

// protect makes whole pages read-only.
func protect(b []byte) error { return setAccess(b, windows.PAGE_READONLY) }

// forbid makes every access to whole pages a fault.
func forbid(b []byte) error { return setAccess(b, windows.PAGE_NOACCESS) }

func setAccess(b []byte, access uint32) error {
	var before uint32
	return windows.VirtualProtect(address(b), uintptr(len(b)), access, &before)
}

func address(b []byte) uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(b))) }

func populate([]byte, int64, int64) {}

func dropPages(*os.File, []byte, int64, int64) {}

// nextData is not asked for.
func nextData(*os.File, int64) (start, end int64, ok bool) { return 0, 0, false }
