//go:build !nommap

// It is about the pages of mappings.

package logdir

import (
	"bytes"
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"kseg/internal/fixture"
)

func TestGentleReadsNoFasterThanItMay(t *testing.T) {
	g := NewGentle(1 << 20)
	clock := time.Unix(0, 0)
	g.now = func() time.Time { return clock }
	g.sleep = func(d time.Duration) { clock = clock.Add(d) }
	for range 10 {
		g.pay(512 << 10)
	}
	// The tenth window is read when the nine before it are paid for.
	if got := clock.Sub(time.Unix(0, 0)); got != 4500*time.Millisecond {
		t.Errorf("5 MiB at 1 MiB/s: the last half begins after %v", got)
	}
	clock = clock.Add(time.Hour)
	before := clock
	g.pay(1)
	if clock != before {
		t.Error("it waits after an idle hour")
	}
	NewGentle(0).pay(1 << 40)
}

// cached says which pages of the file are in the page cache.
func cached(t *testing.T, f *File) []bool {
	t.Helper()
	file, err := os.Open(f.Path)
	must(t, err)
	defer file.Close()
	data, err := unix.Mmap(int(file.Fd()), 0, int(f.Size), unix.PROT_READ, unix.MAP_SHARED)
	must(t, err)
	defer func() { must(t, unix.Munmap(data)) }()
	var pages []bool
	for _, p := range residentPages(data) {
		pages = append(pages, p&1 != 0)
	}
	return pages
}

func count(pages []bool) int {
	n := 0
	for _, p := range pages {
		if p {
			n++
		}
	}
	return n
}

// evict takes the whole file out of the page cache, or skips the test where that cannot be done.
func evict(t *testing.T, f *File) {
	t.Helper()
	file, err := os.Open(f.Path)
	must(t, err)
	defer file.Close()
	must(t, unix.Fsync(int(file.Fd())))
	must(t, unix.Fadvise(int(file.Fd()), 0, 0, unix.FADV_DONTNEED))
	if n := count(cached(t, f)); n > 0 {
		t.Skipf("this file system keeps %d pages in memory", n)
	}
}

func TestGentleLeavesThePageCacheAsItWas(t *testing.T) {
	fixture.OnDisk(t)
	const size = 2<<20 + 100
	f := openFile(t, make([]byte, size))
	evict(t, f)
	file, err := os.Open(f.Path)
	must(t, err)
	defer file.Close()
	must(t, unix.Fadvise(int(file.Fd()), 0, 0, unix.FADV_RANDOM)) // no read-ahead
	_, err = file.ReadAt(make([]byte, 40000), 1<<20)
	must(t, err)
	before := cached(t, f)
	if n := count(before); n == 0 || n > 100 {
		t.Fatalf("%d pages are cached for a start", n)
	}

	f = openPath(t, f.Path, Options{Gentle: NewGentle(0)})
	must(t, f.View(func(b []byte) error {
		const window = 100_000
		for i := 0; i < len(b); i += window {
			w := b[i:min(i+window, len(b))]
			f.Prepare(w)
			for j := range w {
				sink += int(w[j])
			}
			f.Release(w)
		}
		if n := count(cached(t, f)); n >= 300 {
			t.Errorf("%d pages are cached when all windows are released", n)
		}
		return nil
	}))
	for i, was := range before {
		if now := cached(t, f)[i]; now != was {
			t.Fatalf("page %d: cached before %v, after %v", i, was, now)
		}
	}
}

func TestPrepareBringsPagesIn(t *testing.T) {
	fixture.OnDisk(t)
	f := openFile(t, make([]byte, 1<<20))
	evict(t, f)
	must(t, f.View(func(b []byte) error {
		f.Prepare(b[300_000:400_000])
		pages := cached(t, f)
		for i := 300_000 / 4096; i <= 400_000/4096; i++ {
			if !pages[i] {
				t.Errorf("page %d is not there", i)
			}
		}
		return nil
	}))
}

func TestPrepareWithoutPopulate(t *testing.T) {
	noPopulate.Store(true)
	t.Cleanup(func() { noPopulate.Store(false) })
	f := openFile(t, make([]byte, 1<<20))
	must(t, f.View(func(b []byte) error { f.Prepare(b); sink += int(b[1<<19]); return nil }))
}

func TestPrepareOfLostBytesDoesNotFault(t *testing.T) {
	f := openFile(t, make([]byte, 1<<20))
	err := f.View(func(b []byte) error {
		must(t, os.Truncate(f.Path, 10))
		f.Prepare(b[1<<19:])
		return nil
	})
	if err == nil {
		t.Error("nobody says that the file is shorter")
	}
}

// A hole is no reason to read: its zeros are not brought into the page cache, and the file's data ends before it.
func TestHolesAreNotRead(t *testing.T) {
	const size = 64 << 20
	f := openFile(t, bytes.Repeat([]byte("data"), 3000))
	must(t, os.Truncate(f.Path, size))
	f = openPath(t, f.Path, Options{})
	must(t, f.View(func(b []byte) error {
		sum := 0
		for _, c := range b {
			sum += int(c)
		}
		if end := f.DataEnd(); sum == 0 || len(b) != size || end < 12000 || end > 1<<20 {
			t.Errorf("sum %d, %d bytes, data up to %d", sum, len(b), end)
		}
		return nil
	}))
	for i, there := range cached(t, f) {
		if there && i > 1<<20/int(pageSize) {
			t.Fatalf("page %d of the hole is cached", i)
		}
	}
}

// A window of a copy is left alone, whatever lies beside it in memory.
func TestPrepareOfACopy(t *testing.T) {
	f := openPath(t, openFile(t, make([]byte, 1<<20)).Path, Options{Gentle: NewGentle(0)})
	must(t, f.View(func(b []byte) error {
		for _, size := range []int{1, 5000, 1 << 20} {
			window := bytes.Clone(b[:size])
			window[size-1] = 7
			f.Prepare(window)
			f.Release(window)
			if m, _ := f.placeOf(window); m != nil || window[size-1] != 7 {
				t.Errorf("%d bytes of a copy count as bytes of the file", size)
			}
			if _, start := f.placeOf(b[len(b)-size:]); start != int64(len(b)-size) {
				t.Errorf("the last %d bytes begin at %d", size, start)
			}
		}
		return nil
	}))
}
