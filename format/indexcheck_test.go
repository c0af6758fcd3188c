package format_test

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"kseg/format"
	"kseg/internal/fixture"
)

// refs are the batches of a segment as the index rules see them.
func refs(raw []byte, base int64) []format.BatchRef {
	var out []format.BatchRef
	eachBatch(raw, base, func(b *format.Batch) { out = append(out, b.Ref()) })
	return out
}

func checkOffsets(x format.OffsetIndex, batches []format.BatchRef) (*format.OffsetIndexCheck, format.IndexViolation) {
	c := format.NewOffsetIndexCheck(x)
	for _, b := range batches {
		c.Add(b)
	}
	v, _ := c.Finish()
	return c, v
}

func checkTimes(x format.TimeIndex, offsets format.OffsetIndex, batches []format.BatchRef) (*format.TimeIndexCheck,
	format.IndexViolation) {
	c := format.NewTimeIndexCheck(x, offsets)
	for _, b := range batches {
		c.Add(b)
	}
	v, _ := c.Finish()
	return c, v
}

// TestHealthyIndexesAreSound: no index that a broker of any version wrote breaks a condition, but for what a follower
// leaves behind the entries in use when it truncates its log.
func TestHealthyIndexesAreSound(t *testing.T) {
	seen, exact, later, earlier := 0, 0, 0, 0
	exists := map[string]bool{}
	for _, name := range fixture.Files(t, "index") {
		exists[name] = true
	}
	for _, name := range fixture.Files(t, ".log") {
		if strings.Contains(name, "replicas/truncated/b1/") {
			continue
		}
		stem := strings.TrimSuffix(name, ".log")
		base := baseOf(t, name)
		batches := refs(data(t, name), base)
		var offsets format.OffsetIndex
		if exists[stem+".index"] {
			offsets = format.NewOffsetIndex(data(t, stem+".index"), base).Logical()
			c, v := checkOffsets(offsets, batches)
			if v.Condition != format.IndexSound {
				t.Errorf("%s.index: slot %d: %s", stem, v.Slot, v.Condition)
			}
			if got := c.Exact + c.Later + c.Earlier; got != offsets.Len() || (c.Inexact < 0) != (c.Exact == got) {
				t.Errorf("%s.index: %d of %d entries explained, inexact from %d", stem, got, offsets.Len(), c.Inexact)
			}
			exact, later, earlier = exact+c.Exact, later+c.Later, earlier+c.Earlier
			seen++
		}
		if exists[stem+".timeindex"] {
			times := format.NewTimeIndex(data(t, stem+".timeindex"), base).Logical()
			if _, v := checkTimes(times, offsets, batches); v.Condition != format.IndexSound {
				t.Errorf("%s.timeindex: slot %d: %s", stem, v.Slot, v.Condition)
			}
		}
	}
	if seen < 200 || exact < 1000 || later == 0 || earlier == 0 {
		t.Errorf("%d indexes: %d exact entries, %d with the last offset of a longer append, %d with a first one", seen, exact,
			later, earlier)
	}
}

// TestDamagedIndexes: which entry of each damaged index is the first wrong one.
func TestDamagedIndexes(t *testing.T) {
	for _, c := range []struct {
		recipe, file string
		want         string // slot, condition
	}{
		{"index-out-of-order", "00000000000000000032.index", "2 offset not above the one before"},
		{"index-padded-with-zeros", "00000000000000000032.index", "7 offset not above the one before"},
		{"index-last-entry-zero", "00000000000000000032.index", "6 offset not above the one before"},
		{"index-position-past-end", "00000000000000000032.index", "1 no batch starts at the position"},
		{"index-wrong-position", "00000000000000000032.index", "1 no batch starts at the position"},
		{"index-not-multiple-of-8", "00000000000000000032.index", "0 sound"},
		{"index-empty", "00000000000000000032.index", "0 sound"},
		{"timeindex-out-of-order", "00000000000000000032.timeindex", "1 timestamp not above the one before"},
		{"timeindex-zero-padded", "00000000000000000032.timeindex", "7 timestamp not above the one before"},
		{"timeindex-last-before-first", "00000000000000000032.timeindex", "6 timestamp not above the one before"},
		{"timeindex-last-offset-below-base", "00000000000000000032.timeindex", "6 offset below the base offset"},
		{"timeindex-last-far-future", "00000000000000000032.timeindex", "0 sound"},
		{"timeindex-not-multiple-of-12", "00000000000000000032.timeindex", "0 sound"},
	} {
		dir := damagedFiles(t, c.recipe)
		base := baseOf(t, c.file)
		stem := c.file[:20]
		batches := refs(dir[stem+".log"], base)
		offsets := format.NewOffsetIndex(dir[stem+".index"], base)
		var v format.IndexViolation
		if path.Ext(c.file) == ".index" {
			_, v = checkOffsets(offsets, batches)
		} else {
			_, v = checkTimes(format.NewTimeIndex(dir[c.file], base), offsets, batches)
		}
		if got := fmt.Sprintf("%d %s", v.Slot, v.Condition); got != c.want {
			t.Errorf("%s: got %s, want %s", c.recipe, got, c.want)
		}
	}
}

// damagedFiles are the files of a partition after a damage recipe.
func damagedFiles(t *testing.T, recipe string) map[string][]byte {
	t.Helper()
	r, err := fixture.FindRecipe(recipe)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string][]byte{}
	for _, suffix := range []string{".log", ".index", ".timeindex"} {
		for _, name := range fixture.Files(t, suffix) {
			if path.Dir(name) == r.Base {
				files[path.Base(name)] = slices.Clone(data(t, name))
			}
		}
	}
	files, err = fixture.Apply(files, r.Steps)
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// segment is a generated one: batches in offset order, timestamps in any.
func segment(r *rand.Rand, base int64, n int) []format.BatchRef {
	var out []format.BatchRef
	pos, offset := int64(0), base
	for range n {
		offset += r.Int64N(3) // a gap, as compaction leaves it
		b := format.BatchRef{Pos: pos, Size: 61 + r.Int64N(400), BaseOffset: offset, LastOffset: offset + r.Int64N(5),
			MaxTimestampMs: r.Int64N(60) - 5}
		out = append(out, b)
		pos, offset = b.Pos+b.Size, b.LastOffset+1
	}
	return out
}

func build(t *rapid.T, base, interval int64, batches []format.BatchRef) *format.IndexBuilder {
	x := format.NewIndexBuilder(base, interval)
	for _, b := range batches {
		if err := x.Add(b); err != nil {
			t.Fatal(err)
		}
	}
	if err := x.Finish(); err != nil {
		t.Fatal(err)
	}
	return x
}

// TestBuiltIndexesAreSoundAndExact, and the interval they were built with is inferred from them.
func TestBuiltIndexesAreSoundAndExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		base := rapid.Int64Range(0, 1<<40).Draw(t, "base")
		interval := rapid.Int64Range(0, 3000).Draw(t, "interval")
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		batches := segment(r, base, rapid.IntRange(0, 60).Draw(t, "batches"))
		x := build(t, base, interval, batches)
		offsets, times := x.OffsetIndex(), x.TimeIndex()
		c, v := checkOffsets(offsets, batches)
		if v.Condition != format.IndexSound || c.Exact != offsets.Len() || c.Inexact >= 0 {
			t.Fatalf("offset index: %+v, %d of %d exact", v, c.Exact, offsets.Len())
		}
		tc, v := checkTimes(times, offsets, batches)
		if v.Condition != format.IndexSound || tc.Exact != times.Len() || tc.Inexact >= 0 || !tc.LastIsLargest() {
			t.Fatalf("time index: %+v, %d of %d exact, last is largest: %v", v, tc.Exact, times.Len(), tc.LastIsLargest())
		}
		s := format.NewSegmentInterval(offsets)
		for _, b := range batches {
			s.Add(b)
		}
		if interval < s.Least || interval > s.Most || s.Entries != offsets.Len() {
			t.Fatalf("interval %d inferred as %d to %d", interval, s.Least, s.Most)
		}
		for _, other := range []int64{s.Least, min(s.Most, 1<<30)} {
			if again := build(t, base, other, batches); string(again.OffsetIndexBytes()) != string(x.OffsetIndexBytes()) {
				t.Fatalf("interval %d of %d to %d gives another index than %d", other, s.Least, s.Most, interval)
			}
		}
		for _, other := range []int64{s.Least - 1, s.Most + 1} {
			if other < 0 || s.Most == math.MaxInt64 {
				continue
			}
			if again := build(t, base, other, batches); string(again.OffsetIndexBytes()) == string(x.OffsetIndexBytes()) {
				t.Fatalf("interval %d gives the index of %d too, outside of %d to %d", other, interval, s.Least, s.Most)
			}
		}
	})
}

// scan is the batch that a read of offset finds when it starts at position from, as Kafka's log does.
func scan(batches []format.BatchRef, offset, from int64) int {
	for i, b := range batches {
		if b.Pos >= from && b.LastOffset >= offset {
			return i
		}
	}
	return -1
}

// TestOffsetConditionsMeanRightLookups: an offset index mutated at random is called sound only if every lookup through
// it finds what a scan of the whole log finds.
func TestOffsetConditionsMeanRightLookups(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const base = 1000
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 2))
		batches := segment(r, base, 1+r.IntN(30))
		raw := slices.Clone(build(t, base, r.Int64N(900), batches).OffsetIndexBytes())
		for range r.IntN(3) {
			if len(raw) > 0 {
				i := r.IntN(len(raw)/4) * 4
				raw[i+3] += byte(r.IntN(9) - 4)
			}
		}
		x := format.NewOffsetIndex(raw, base)
		_, v := checkOffsets(x, batches)
		if v.Condition != format.IndexSound {
			return
		}
		for offset := int64(base); offset <= batches[len(batches)-1].LastOffset; offset++ {
			from := int64(x.Lookup(offset).Position)
			if got, want := scan(batches, offset, from), scan(batches, offset, 0); got != want {
				t.Fatalf("offset %d through position %d finds batch %d instead of %d", offset, from, got, want)
			}
		}
	})
}

// TestTimeConditionsMeanRightLookups is the same for time indexes: no batch before the start of the scan may reach the
// timestamp.
func TestTimeConditionsMeanRightLookups(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const base = 1000
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 3))
		batches := segment(r, base, 1+r.IntN(30))
		built := build(t, base, r.Int64N(900), batches)
		raw := slices.Clone(built.TimeIndexBytes())
		for range r.IntN(3) {
			if len(raw) > 0 {
				i := r.IntN(len(raw)/4) * 4
				raw[i+3] += byte(r.IntN(9) - 4)
			}
		}
		x, offsets := format.NewTimeIndex(raw, base), built.OffsetIndex()
		if _, v := checkTimes(x, offsets, batches); v.Condition != format.IndexSound {
			return
		}
		for ts := int64(0); ts < 70; ts++ {
			from := int64(offsets.Lookup(x.Lookup(ts).Offset).Position)
			for _, b := range batches {
				if b.Pos < from && b.MaxTimestampMs >= ts {
					t.Fatalf("timestamp %d starts at %d and misses the batch at %d", ts, from, b.Pos)
				}
			}
		}
	})
}

func TestIndexBuilderRefuses(t *testing.T) {
	big := int64(math.MaxInt32)
	for _, c := range []struct {
		name    string
		batches []format.BatchRef
		want    error
	}{
		{"offset below the base", []format.BatchRef{{Pos: 0, Size: 70, LastOffset: 9}}, format.ErrOffsetOverflow},
		{"offset 2^31 above the base", []format.BatchRef{{Pos: 0, Size: 70, LastOffset: 10 + big + 1}},
			format.ErrOffsetOverflow},
		{"position 2^31", []format.BatchRef{{Pos: big + 1, Size: 70, LastOffset: 10}}, format.ErrValue},
		{"largest position", []format.BatchRef{{Pos: big, Size: 70, LastOffset: 10}}, nil},
		{"largest relative offset", []format.BatchRef{{Pos: 0, Size: 70, LastOffset: 10 + big}}, nil},
		{"entry not above the last", []format.BatchRef{{Pos: 0, Size: 70, LastOffset: 10},
			{Pos: 70, Size: 70, LastOffset: 12}, {Pos: 140, Size: 70, LastOffset: 12}}, format.ErrIndexOrder},
		{"backward, but no entry falls on it", []format.BatchRef{{Pos: 0, Size: 70, LastOffset: 20},
			{Pos: 1, Size: 70, LastOffset: 12}}, nil},
	} {
		x := format.NewIndexBuilder(10, 50)
		var err error
		for _, b := range c.batches {
			if err == nil {
				err = x.Add(b)
			}
		}
		checkError(t, c.name, err, c.want)
	}
	x := format.NewIndexBuilder(0, 50)
	for _, b := range []format.BatchRef{{Pos: 0, Size: 70, LastOffset: 5, MaxTimestampMs: 5},
		{Pos: 70, Size: 70, LastOffset: 9, MaxTimestampMs: 9}, {Pos: 100, Size: 9, LastOffset: 3, MaxTimestampMs: 99}} {
		if err := x.Add(b); err != nil {
			t.Fatal(err)
		}
	}
	checkError(t, "closing entry of a backward batch", x.Finish(), format.ErrIndexOrder)
}

// TestInferredIntervals: what the frozen partitions' configuration says is what their indexes tell.
func TestInferredIntervals(t *testing.T) {
	partitions := map[string]*format.IntervalInference{}
	logs := fixture.Files(t, ".log")
	for _, name := range fixture.Files(t, ".index") {
		base := baseOf(t, name)
		log := strings.TrimSuffix(name, ".index") + ".log"
		if !slices.Contains(logs, log) {
			continue
		}
		s := format.NewSegmentInterval(format.NewOffsetIndex(data(t, name), base))
		for _, b := range refs(data(t, log), base) {
			s.Add(b)
		}
		dir := path.Dir(name)
		if partitions[dir] == nil {
			partitions[dir] = &format.IntervalInference{}
		}
		partitions[dir].Add(s)
	}
	// Live segments were indexed with the topic's interval, which the rebuilt ones were given too.
	want := map[string]int64{}
	for _, golden := range fixture.Goldens(t, "/index.interval.bytes") {
		dir := strings.Replace(path.Dir(golden), "/rebuilt/", "/", 1)
		want[dir], _ = strconv.ParseInt(strings.TrimSpace(string(fixture.Golden(t, golden))), 10, 64)
	}
	// 3.7.2 followers index once an append, which no interval explains.
	const follower = "3.7.2/old-append/follower/replicated-0"
	if least, most, ok := partitions[follower].Range(); ok || partitions[follower].PerAppend != 2 {
		t.Errorf("3.7.2 follower: %d to %d (%v), %d segments indexed once an append", least, most, ok,
			partitions[follower].PerAppend)
	}
	seen := 0
	for _, dir := range slices.Sorted(maps.Keys(want)) {
		p := partitions[dir]
		if p == nil || !strings.HasPrefix(dir, "4.4.0/") || strings.HasPrefix(dir, "4.4.0/legacy") {
			continue
		}
		least, most, ok := p.Range()
		if !ok || want[dir] < least || want[dir] > most {
			t.Errorf("%s: %d to %d (%v), want %d", dir, least, most, ok, want[dir])
		}
		seen++
	}
	if seen < 20 {
		t.Errorf("only %d partitions", seen)
	}
}

// BenchmarkIndexRules is what a segment of 65536 batches costs the builder, both checks and the inference, each fed on
// its own.
func BenchmarkIndexRules(b *testing.B) {
	batches := segment(rand.New(rand.NewPCG(1, 1)), 0, 65536)
	x := format.NewIndexBuilder(0, 1000)
	for _, batch := range batches {
		if err := x.Add(batch); err != nil {
			b.Fatal(err)
		}
	}
	offsets, times := x.OffsetIndex(), x.TimeIndex()
	b.Run("builder", func(b *testing.B) {
		for b.Loop() {
			x := format.NewIndexBuilder(0, 1000)
			for i := range batches {
				_ = x.Add(batches[i])
			}
		}
	})
	b.Run("checks", func(b *testing.B) {
		for b.Loop() {
			o, t, s := format.NewOffsetIndexCheck(offsets), format.NewTimeIndexCheck(times, offsets),
				format.NewSegmentInterval(offsets)
			for i := range batches {
				o.Add(batches[i])
				t.Add(batches[i])
				s.Add(batches[i])
			}
		}
	})
}

func BenchmarkReplay(b *testing.B) {
	var log []byte
	for i := range 4096 {
		log = fixture.Produced{Offset: int64(i), Records: 1, TimestampMs: 5, ID: int64(i / 7 % 5),
			Sequence: int32(i)}.Append(log)
	}
	var batches []format.Batch
	eachBatch(log, 0, func(b *format.Batch) { batches = append(batches, *b) })
	rr := format.NewRecordReader(1<<20, nil)
	for b.Loop() {
		state := format.NewProducerState(0)
		for i := range batches {
			if _, err := state.Append(&batches[i], rr); err != nil {
				b.Fatal(err)
			}
		}
	}
}

// A full index is told before an entry that is out of order, and a first time entry may have any offset.
func TestIndexBuilderLimits(t *testing.T) {
	x := format.NewIndexBuilder(0, 0)
	x.Limit(24) // three offset entries
	for i, offset := range []int64{0, 1, 2, 3, 0} {
		want := error(nil)
		if i == 4 {
			want = format.ErrIndexFull
		}
		err := x.Add(format.BatchRef{Pos: int64(i), Size: 1, LastOffset: offset, MaxTimestampMs: -1})
		if !errors.Is(err, want) {
			t.Errorf("batch %d: %v, want %v", i, err, want)
		}
	}
	x = format.NewIndexBuilder(math.MaxInt64, 4096)
	if err := cmp.Or(x.Add(format.BatchRef{LastOffset: math.MinInt64, MaxTimestampMs: 1}), x.Finish()); err != nil {
		t.Error(err)
	}
}
