package logdir

import (
	"errors"
	"math"
	"os"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// openNoAtime asks the kernel to leave the access time alone.
const openNoAtime = unix.O_NOATIME

// noReserve asks the kernel to promise no memory for what may never be written to.
//
//lint:ignore U1000 used with the tag nommap
const noReserve = unix.MAP_NORESERVE

// adviseSequential tells the kernel to read far ahead. Advice may be refused without harm.
func adviseSequential(data []byte) { _ = unix.Madvise(data, unix.MADV_SEQUENTIAL) }

// noPopulate is set once a kernel (before 5.14) has said that it does not know MADV_POPULATE_READ.
var noPopulate atomic.Bool

// populate maps the pages of a part of a mapping, reading those that are not cached. It never faults: a page that is
// gone shows itself when it is touched.
func populate(mapped []byte, start, end int64) {
	span := mapped[start/pageSize*pageSize : end]
	if !noPopulate.Load() {
		if err := unix.Madvise(span, unix.MADV_POPULATE_READ); !errors.Is(err, unix.EINVAL) {
			return
		}
		noPopulate.Store(true)
	}
	_ = unix.Madvise(span, unix.MADV_WILLNEED)
}

// residentPages has a byte for each page of data; bit 0 is set if it is in the page cache. If the kernel does not say,
// all count as cached, so that none will be dropped.
func residentPages(data []byte) []byte {
	pages := make([]byte, (int64(len(data))+pageSize-1)/pageSize)
	_, _, errno := unix.Syscall(unix.SYS_MINCORE, uintptr(unsafe.Pointer(unsafe.SliceData(data))), uintptr(len(data)),
		uintptr(unsafe.Pointer(unsafe.SliceData(pages))))
	if errno != 0 {
		for i := range pages {
			pages[i] = 1
		}
	}
	return pages
}

// dropPages takes a range of pages out of this program's memory and out of the page cache. The kernel keeps cached
// pages that a program has mapped, hence the two steps.
func dropPages(file *os.File, data []byte, start, end int64) {
	_ = unix.Madvise(data[start:end], unix.MADV_DONTNEED)
	_ = unix.Fadvise(int(file.Fd()), start, end-start, unix.FADV_DONTNEED)
}

// readOnlyFlag is the bit of statfs that marks a read-only mount.
const readOnlyFlag = unix.ST_RDONLY

// nextData finds the next part of a file, from pos on, that is no hole; start is the largest number if there is none.
// It is not ok where the file system does not tell.
func nextData(file *os.File, pos int64) (start, end int64, ok bool) {
	start, err := unix.Seek(int(file.Fd()), pos, unix.SEEK_DATA)
	switch {
	case errors.Is(err, unix.ENXIO):
		return math.MaxInt64, math.MaxInt64, true
	case err != nil:
		return 0, 0, false
	}
	end, err = unix.Seek(int(file.Fd()), start, unix.SEEK_HOLE)
	return start, end, err == nil && end > pos
}

// mostHoles bounds how many holes of a file are covered: each is a mapping of its own, of which a process may have some
// ten thousands.
const mostHoles = 32

// mostExtents bounds how far a file of very many holes is asked for its last.
const mostExtents = 1 << 14

// coverHoles puts zeros that cost nothing in the place of a mapped file's holes: without them a look at a hole of a
// preallocated index reads each of its pages through the page cache, and on a full tmpfs, which needs memory for that,
// it is a fault. It returns where the last bytes end that are not in a hole.
func coverHoles(file *os.File, data []byte) (dataEnd int64) {
	size := int64(len(data))
	pos := int64(0)
	for n := range mostExtents {
		if pos >= size {
			return size
		}
		start, end, ok := nextData(file, pos)
		if !ok {
			return size
		}
		from, to := (pos+pageSize-1)/pageSize*pageSize, min(start, size)
		if to < size {
			to = to / pageSize * pageSize
		}
		if from < to && (n < mostHoles || to == size) {
			// It cannot fail for want of memory, as it takes none; if it does the file's own pages stay.
			_, _ = unix.MmapPtr(-1, 0, unsafe.Pointer(unsafe.SliceData(data[from:])), uintptr(to-from), unix.PROT_READ,
				unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_NORESERVE|unix.MAP_FIXED)
			_ = unix.Madvise(data[from:to], unix.MADV_HUGEPAGE)
		}
		if start >= size {
			return pos
		}
		pos = end
	}
	return size
}
