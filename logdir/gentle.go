package logdir

import (
	"sync"
	"time"
	"unsafe"
)

// Gentle bounds what reading does to a machine on which a broker works: Files that were opened with it read at most so
// many bytes a second together, and give the pages that they brought into the page cache back to the kernel, while
// those that were there before stay. A kernel says which pages are cached only to the owner of a file or who may write
// it; for others all pages stay.
type Gentle struct {
	bytesPerSecond int64

	mu    sync.Mutex
	due   time.Time // when what has been read so far is paid for
	now   func() time.Time
	sleep func(time.Duration)
}

// NewGentle is a Gentle that reads at most that many bytes a second; 0 or less means no bound.
func NewGentle(bytesPerSecond int64) *Gentle {
	return &Gentle{bytesPerSecond: bytesPerSecond, now: time.Now, sleep: time.Sleep}
}

// pay waits until n more bytes may be read.
func (g *Gentle) pay(n int) {
	if g.bytesPerSecond <= 0 {
		return
	}
	g.mu.Lock()
	now := g.now()
	if g.due.Before(now) {
		g.due = now
	}
	wait := g.due.Sub(now)
	g.due = g.due.Add(time.Duration(float64(n) / float64(g.bytesPerSecond) * float64(time.Second)))
	g.mu.Unlock()
	if wait > 0 {
		g.sleep(wait)
	}
}

// Prepare brings a part of the bytes that View gave into memory with one call to the kernel, which is several times
// cheaper than a page fault for every few pages. Call it once for each window of, say, 1 MiB before reading it; Gentle
// waits here. A copy of them needs no preparation, and gets none.
func (f *File) Prepare(window []byte) {
	if f.gentle != nil && !eager {
		f.gentle.pay(len(window))
	}
	if m, start := f.placeOf(window); m != nil {
		populate(m.data, start, start+int64(len(window)))
	}
}

// Release says that a window is done with. Under Gentle its pages go back to the kernel, unless they were cached
// before; otherwise nothing happens. It must be called inside the View that gave the bytes, which stay readable.
func (f *File) Release(window []byte) {
	if f.gentle == nil {
		return
	}
	if m, start := f.placeOf(window); m != nil {
		m.drop(start, start+int64(len(window)))
	}
}

// placeOf is where in the mapping a window begins; nil if it is empty or lies elsewhere in memory.
func (f *File) placeOf(window []byte) (m *mapping, start int64) {
	f.mu.Lock()
	m = f.mapping
	f.mu.Unlock()
	if m == nil || len(window) == 0 {
		return nil, 0
	}
	start = int64(uintptr(unsafe.Pointer(unsafe.SliceData(window))) - uintptr(unsafe.Pointer(unsafe.SliceData(m.data))))
	if start < 0 || start+int64(len(window)) > int64(len(m.data)) {
		return nil, 0
	}
	return m, start
}

// drop gives the pages between two positions back to the kernel, but for those that were cached before. A page that the
// range ends in is left to the next range, except at the end of the file.
func (m *mapping) drop(start, end int64) {
	if m.resident == nil {
		return
	}
	size := int64(len(m.data))
	last := end / pageSize
	if end == size {
		last = int64(len(m.resident))
	}
	for page := start / pageSize; page < last; page++ {
		if m.resident[page]&1 != 0 {
			continue
		}
		from := page
		for page < last && m.resident[page]&1 == 0 {
			page++
		}
		dropPages(m.file.File, m.data, from*pageSize, min(page*pageSize, size))
	}
}
