package format_test

import (
	"bytes"
	"path"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"kseg/format"
	"kseg/internal/fixture"
)

// wholeSegments are the healthy segments of all versions that are no longer than limit and end in a batch: those with a
// preallocated, zero tail are another matter.
func wholeSegments(t testing.TB, limit int) []string {
	t.Helper()
	var names []string
	for _, name := range fixture.Files(t, ".log") {
		if path.Dir(name) == "4.4.0/tiny-batches/tiny-0" {
			continue
		}
		data := fixture.Data(t, name)
		if n := len(data); n > 0 && n <= limit && !bytes.HasSuffix(data, make([]byte, format.MagicPrefix)) {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		t.Fatal("no segment to cut")
	}
	return names
}

// batchEnds scans a whole segment, which must have no hole, and returns the positions where its batches end.
func batchEnds(t testing.TB, name string, data []byte) []int64 {
	t.Helper()
	var ends []int64
	s := format.NewScanner(data, 0, baseOf(t, name))
	for s.Next() {
		if h := s.Hole(); h != nil {
			t.Fatalf("%s is healthy, yet %s at %d: %v", name, h.Kind, h.Pos, h.Err)
		}
		if !s.Batch().Valid() {
			t.Fatalf("%s is healthy, yet the checksum at %d is called wrong", name, s.Batch().Pos)
		}
		ends = append(ends, s.Batch().End())
	}
	return ends
}

// checkTruncation scans the first n bytes of a segment: all batches that are whole come out, and what is left is one
// torn tail, or a zero tail where nothing but zeros of a batch's base offset is left.
func checkTruncation(t testing.TB, name string, data []byte, ends []int64, n int) {
	t.Helper()
	whole := 0
	for whole < len(ends) && ends[whole] <= int64(n) {
		whole++
	}
	tailAt := int64(0)
	if whole > 0 {
		tailAt = ends[whole-1]
	}
	batches, holes := 0, 0
	s := format.NewScanner(data[:n:n], 0, baseOf(t, name))
	for s.Next() {
		h := s.Hole()
		if h == nil {
			batches++
			continue
		}
		holes++
		want := format.TornTail
		if strings.Trim(string(data[tailAt:n]), "\x00") == "" {
			want = format.ZeroTail
		}
		if h.Kind != want || h.Pos != tailAt || h.Len != int64(n)-tailAt || h.Next != -1 {
			t.Fatalf("%s cut to %d bytes: %s of %d bytes at %d, next %d; want %s of %d at %d (%v)",
				name, n, h.Kind, h.Len, h.Pos, h.Next, want, int64(n)-tailAt, tailAt, h.Err)
		}
	}
	wantHoles := 0
	if tailAt < int64(n) {
		wantHoles = 1
	}
	if batches != whole || holes != wantHoles {
		t.Fatalf("%s cut to %d bytes: %d batches and %d holes, want %d and %d", name, n, batches, holes, whole, wantHoles)
	}
}

func TestEveryTruncationOfASegmentIsATornTail(t *testing.T) {
	for _, name := range wholeSegments(t, 3000) {
		data := fixture.Data(t, name)
		ends := batchEnds(t, name, data)
		for n := range len(data) {
			checkTruncation(t, name, data, ends, n)
		}
	}
}

func TestTruncationsOfLargeSegmentsAreTornTails(t *testing.T) {
	names := wholeSegments(t, 1<<20)
	rapid.Check(t, func(r *rapid.T) {
		name := rapid.SampledFrom(names).Draw(r, "segment")
		data := fixture.Data(t, name)
		checkTruncation(t, name, data, batchEnds(t, name, data), rapid.IntRange(0, len(data)).Draw(r, "cut"))
	})
}

// TestFlippedBitsDoNotHideBehindEachOther turns over every bit of a small segment: the batch with that bit is invalid
// or lies in a hole, unless the bit is of those outside the checksum, and every other batch comes out whole.
func TestFlippedBitsDoNotHideBehindEachOther(t *testing.T) {
	const name = "4.4.0/damage-base/plain/orders-0/00000000000000000096.log"
	data := fixture.Data(t, name)
	ends := batchEnds(t, name, data)
	// base offset and leader epoch; a magic shows by itself
	outside := func(at int64) bool { return at < 8 || at >= 12 && at < 16 }
	for bit := range len(data) * 8 {
		data[bit/8] ^= 1 << (bit % 8)
		start, hit := int64(0), 0
		for ends[hit] <= int64(bit/8) {
			start, hit = ends[hit], hit+1
		}
		good, bad := 0, 0
		s := format.NewScanner(data, 0, 96)
		for s.Next() {
			if b := s.Batch(); b != nil && b.Magic == 2 && b.Valid() {
				good++
			} else {
				bad++
			}
		}
		wantGood := len(ends) - 1
		if outside(int64(bit/8) - start) {
			wantGood++
		}
		// A flip outside the checksum may still be seen, as an offset that no batch can have.
		if good < len(ends)-1 || good > wantGood || good < wantGood && bad == 0 {
			t.Fatalf("bit %d of byte %d turned over: %d batches pass, want %d (%d others)", bit%8, bit/8, good, wantGood, bad)
		}
		data[bit/8] ^= 1 << (bit % 8)
	}
}
