package format_test

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"kseg/format"
	"kseg/internal/fixture"
)

// searchCase is an index full of surprises and the keys to look for in it.
type searchCase struct {
	raw     []byte
	targets []int64
}

// searchCases makes indexes of all lengths around the hot section, sorted and not, with equal keys, negative ones, zero
// tails and stray bytes. The base offset is 100. The answers of the real index classes to them are in testdata.
func searchCases(time bool) []searchCase {
	r := rand.New(rand.NewPCG(7, 11))
	var cases []searchCase
	for _, n := range []int{0, 1, 2, 3, 7, 64, 682, 683, 684, 685, 1024, 1025, 1026, 1027, 2500} {
		for disorder := range 4 {
			var c searchCase
			key := int64(0)
			for i := range n {
				key += r.Int64N(3)
				k := key
				switch {
				case disorder == 1 && r.IntN(20) == 0:
					k = r.Int64N(2*int64(n)) - 5
				case disorder == 2:
					k = r.Int64N(int64(n) + 3)
				case disorder == 3 && i > n*3/4:
					k = -100 // absolute 0: what a zero slot of an index with base 100 has as its offset
				}
				if time {
					c.raw = format.AppendTimeEntry(c.raw, 100, format.TimeEntry{TimestampMs: k, Offset: 100 + int64(i)})
				} else {
					c.raw = format.AppendOffsetEntry(c.raw, 100, format.OffsetEntry{Offset: 100 + k, Position: int32(i)})
				}
			}
			c.raw = append(c.raw, make([]byte, disorder*3)...)
			for range 25 {
				c.targets = append(c.targets, r.Int64N(2*int64(n)+5)-3+int64(btoi(!time)*100))
			}
			cases = append(cases, c)
		}
	}
	return cases
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

func readGzip(t testing.TB, name string) string {
	t.Helper()
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	data, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// TestSearchAsKafkaDoes compares with what OffsetIndex.lookup and TimeIndex.lookup of Kafka 4.4.0 answered: on unsorted
// indexes any other order of probes gives other answers.
func TestSearchAsKafkaDoes(t *testing.T) {
	for _, kind := range []string{"index", "timeindex"} {
		want := strings.Split(strings.TrimSpace(readGzip(t, "testdata/search."+kind+".gz")), "\n")
		cases := searchCases(kind == "timeindex")
		if len(want) != len(cases) {
			t.Fatalf("%d answers for %d cases", len(want), len(cases))
		}
		for i, c := range cases {
			var got []string
			for _, target := range c.targets {
				if kind == "index" {
					x := format.NewOffsetIndex(c.raw, 100)
					e := x.Lookup(target)
					got = append(got, fmt.Sprintf("%d@%d", e.Offset, e.Position))
					s := x.Search(target, nil)
					if s.Slot >= 0 && x.Entry(s.Slot) != e || s.Slot < 0 && e != (format.OffsetEntry{Offset: 100}) {
						t.Errorf("case %d, %d: Search found slot %d, Lookup %v", i, target, s.Slot, e)
					}
				} else {
					x := format.NewTimeIndex(c.raw, 100)
					e := x.Lookup(target)
					got = append(got, fmt.Sprintf("%d@%d", e.TimestampMs, e.Offset))
					s := x.Search(target, nil)
					if s.Slot >= 0 && x.Entry(s.Slot) != e || s.Slot < 0 && e != (format.TimeEntry{TimestampMs: -1, Offset: 100}) {
						t.Errorf("case %d, %d: Search found slot %d, Lookup %v", i, target, s.Slot, e)
					}
				}
			}
			if strings.Join(got, " ") != want[i] {
				t.Errorf("%s case %d:\ngot  %s\nwant %s", kind, i, strings.Join(got, " "), want[i])
			}
		}
	}
}

// TestLookupsOfRealSegments compares the first two columns of every frozen lookup, which the real classes made on
// indexes as they found them on disk, preallocated, damaged or not.
func TestLookupsOfRealSegments(t *testing.T) {
	rows := 0
	present := fixture.Files(t, "index")
	for _, golden := range fixture.Goldens(t, "lookup.csv") {
		dir, _ := strings.CutSuffix(golden, ".lookup.csv")
		// 0.9 had no time index, and the logs of seg-1 and seg-1048576 are those of seg-4096: package lookup has their rows.
		file := func(name string) ([]byte, bool) {
			if name = path.Join(dir, name); !slices.Contains(present, name) {
				return nil, false
			}
			return data(t, name), true
		}
		switch {
		case strings.HasPrefix(golden, "damage/"):
			files := damagedFiles(t, path.Base(path.Dir(golden)))
			file = func(name string) ([]byte, bool) { raw, ok := files[name]; return raw, ok }
		case path.Base(golden) == "lookup.csv":
			dir = path.Join(path.Dir(golden), "tiny-0")
		}
		for line := range strings.Lines(string(fixture.Golden(t, golden))) {
			f := strings.Split(line, ",")
			if f[0] == "kind" || strings.HasSuffix(f[3], "Exception") {
				continue
			}
			base, _ := strconv.ParseInt(f[1], 10, 64)
			target, _ := strconv.ParseInt(f[2], 10, 64)
			var got string
			if f[0] == "offset" {
				raw, ok := file(fmt.Sprintf("%020d.index", base))
				if !ok {
					continue // the class made an empty one
				}
				e := format.NewOffsetIndex(raw, base).Lookup(target)
				got = fmt.Sprintf("%d,%d", e.Offset, e.Position)
			} else {
				raw, ok := file(fmt.Sprintf("%020d.timeindex", base))
				if !ok {
					continue
				}
				e := format.NewTimeIndex(raw, base).Lookup(target)
				got = fmt.Sprintf("%d,%d", e.TimestampMs, e.Offset)
			}
			if got != f[3]+","+f[4] {
				t.Errorf("%s: %s: got %s", golden, strings.TrimSpace(line), got)
			}
			rows++
		}
	}
	if rows < 10000 {
		t.Errorf("only %d lookups", rows)
	}
}

var files = map[string][]byte{}

// data is fixture.Data, read once.
func data(t testing.TB, name string) []byte {
	if _, ok := files[name]; !ok {
		files[name] = fixture.Data(t, name)
	}
	return files[name]
}

// TestSearchIsFloor: on an index sorted by key the search is a plain floor search, whatever the section.
func TestSearchIsFloor(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		base := rapid.Int64Range(0, math.MaxInt64-math.MaxInt32).Draw(t, "base")
		n := rapid.OneOf(rapid.IntRange(0, 20), rapid.IntRange(1000, 1100)).Draw(t, "n")
		seed := rapid.Uint64().Draw(t, "seed")
		r := rand.New(rand.NewPCG(seed, 0))
		var raw []byte
		var keys []int64
		key := base
		for i := range n {
			key += 1 + r.Int64N(3)
			keys = append(keys, key)
			raw = format.AppendOffsetEntry(raw, base, format.OffsetEntry{Offset: key, Position: int32(i)})
		}
		x := format.NewOffsetIndex(raw, base)
		for range 20 {
			target := base - 2 + r.Int64N(3*int64(n)+5)
			want, exact := slices.BinarySearch(keys, target)
			if !exact {
				want--
			}
			s := x.Search(target, nil)
			if s.Slot != want || (s.Section == format.SectionNone) != (want < 0) {
				t.Fatalf("search for %d: %+v, want slot %d", target, s, want)
			}
			if n > 0 && s.Probes[0] != max(0, n-1-1024) {
				t.Fatalf("first probe %d", s.Probes[0])
			}
		}
	})
}

func TestSearchSections(t *testing.T) {
	var raw []byte
	for i := range 2000 {
		raw = format.AppendOffsetEntry(raw, 0, format.OffsetEntry{Offset: int64(10 * i), Position: int32(i)})
	}
	x := format.NewOffsetIndex(raw, 0)
	for _, c := range []struct {
		target  int64
		section format.Section
		slot    int
	}{
		{-1, format.SectionNone, -1},
		{0, format.SectionCold, 0},
		{9750, format.SectionCold, 975}, // the first hot slot, 2000−1−1024, is found from the cold side
		{9751, format.SectionHot, 975},
		{19990, format.SectionHot, 1999},
		{math.MaxInt64, format.SectionHot, 1999},
	} {
		s := x.Search(c.target, nil)
		if s.Section != c.section || s.Slot != c.slot {
			t.Errorf("search for %d: %s section, slot %d; want %s, %d", c.target, s.Section, s.Slot, c.section, c.slot)
		}
	}
}

func TestSearchAllocatesNothing(t *testing.T) {
	x := format.NewOffsetIndex(bytes.Repeat([]byte{0, 0, 1, 0, 0, 0, 1, 0}, 3000), 5)
	times := format.NewTimeIndex(bytes.Repeat([]byte{0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 0, 1}, 3000), 5)
	probes := make([]int, 0, 64)
	target := int64(0)
	allocs := testing.AllocsPerRun(100, func() {
		target += 7
		x.Lookup(target)
		times.Lookup(target)
		x.Search(target, probes[:0])
	})
	if allocs != 0 {
		t.Errorf("%v allocations", allocs)
	}
}

func BenchmarkLookup(b *testing.B) {
	var raw []byte
	for i := range 65536 {
		raw = format.AppendOffsetEntry(raw, 0, format.OffsetEntry{Offset: int64(79 * i),
			Position: int32(16350 * (i % 65000))})
	}
	x := format.NewOffsetIndex(raw, 0)
	target, sum := int64(0), int64(0)
	for b.Loop() {
		target = (target + 1234577) % (79 * 65536)
		sum += int64(x.Lookup(target).Position)
	}
	_ = sum
}
