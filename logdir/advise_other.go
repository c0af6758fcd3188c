//go:build !linux && !windows

package logdir

import (
	"os"

	"golang.org/x/sys/unix"
)

// openNoAtime is Linux only.
const openNoAtime = 0

// noReserve is Linux only.
const noReserve = 0

func adviseSequential(data []byte) { _ = unix.Madvise(data, unix.MADV_SEQUENTIAL) }

func populate(mapped []byte, start, end int64) {
	_ = unix.Madvise(mapped[start/pageSize*pageSize:end], unix.MADV_WILLNEED)
}

// residentPages claims that all pages were cached before, so that none is dropped: only Linux is asked.
func residentPages(data []byte) []byte {
	pages := make([]byte, (int64(len(data))+pageSize-1)/pageSize)
	for i := range pages {
		pages[i] = 1
	}
	return pages
}

func dropPages(*os.File, []byte, int64, int64) {}

// readOnlyFlag is the bit of statfs that marks a read-only mount (MNT_RDONLY of the BSDs).
const readOnlyFlag = 1

// nextData is Linux only.
func nextData(*os.File, int64) (start, end int64, ok bool) { return 0, 0, false }

// coverHoles is Linux only: elsewhere holes are read.
func coverHoles(_ *os.File, data []byte) int64 { return int64(len(data)) }
