package broker

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"kseg/format"
	"kseg/internal/fixture"
	"kseg/logdir"
	"kseg/state"
)

// Recovery fails where an index gets more entries than segment.index.bytes has room for; in the time index one is for
// the last timestamp.
func TestIndexesThatAreFull(t *testing.T) {
	for _, c := range []struct {
		rising     int64 // by which timestamps rise from batch to batch
		indexBytes int64
		loads      bool
	}{
		{0, 9 * offsetWidth, true},
		{0, 9*offsetWidth - 1, false},
		{1, 10 * timeWidth, true},
		{1, 10*timeWidth - 1, false},
	} {
		dir := filepath.Join(t.TempDir(), "full-0")
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		var log []byte
		for i := range int64(10) {
			log = fixture.AppendBatch(log, fixture.Batch{Records: []fixture.Record{{Offset: i, TimestampMs: 1000 + i*c.rising}}})
		}
		if err := os.WriteFile(filepath.Join(dir, "00000000000000000000.log"), log, 0o644); err != nil {
			t.Fatal(err)
		}
		l, err := Load(openPartition(t, dir), LoadOptions{Interval: 1, IndexBytes: c.indexBytes, MaxBatchBytes: 1 << 20})
		if err != nil {
			t.Fatal(err)
		}
		full := l.Failure != nil && strings.Contains(l.Failure.Err.Error(), "the index is full")
		if full == c.loads || (l.Failure == nil) != c.loads {
			t.Errorf("%+v: %+v", c, l.Failure)
		}
	}
}

// What is set aside already, or is deleted, is not set aside again.
func TestStrayOnce(t *testing.T) {
	image := &state.Image{}
	for suffix, stray := range map[string]bool{"": true, "future": true, "delete": false, "stray": false} {
		p := &logdir.Partition{PartitionDir: format.PartitionDir{Topic: "t", Suffix: suffix}}
		if reason := strayReason(p, format.UUID{}, false, image, 1); (reason != "") != stray {
			t.Errorf("suffix %q: %q", suffix, reason)
		}
	}
}

// A tombstone stays as long as its delete horizon lies in the future, one of magic 0 or 1 as long as its segment is
// young; what stands at the last offset of its key stays, and so does what lies above all that the map knows.
func TestEdgesOfTheCleanersVerdict(t *testing.T) {
	const horizon = 5000
	key := keyHash{a: 1, b: 2}
	withHorizon := &format.Batch{Magic: 2, Attributes: 1 << 6, BaseTimestamp: horizon}
	for _, c := range []struct {
		name   string
		batch  *format.Batch
		rec    filtered
		nowMs  int64
		legacy bool // tombstones of magic 0 and 1 stay
		want   Verdict
	}{
		{"below the last of its key", withHorizon, filtered{valued: true, keptRecord: keptRecord{offset: 6}}, 0, false,
			Superseded},
		{"the last of its key", withHorizon, filtered{valued: true, keptRecord: keptRecord{offset: 7}}, 0, false, Kept},
		{"before the horizon", withHorizon, filtered{keptRecord: keptRecord{offset: 7}}, horizon - 1, false, Kept},
		{"at the horizon", withHorizon, filtered{keptRecord: keptRecord{offset: 7}}, horizon, false, TombstoneExpired},
		{"a young message", &format.Batch{Magic: 1}, filtered{keptRecord: keptRecord{offset: 7}}, horizon, true, Kept},
		{"an old message", &format.Batch{Magic: 1}, filtered{keptRecord: keptRecord{offset: 7}}, horizon, false,
			TombstoneExpired},
	} {
		keys := newOffsetMap(10, 0)
		keys.put(key, 7, true)
		f := recordFilter{keys: keys, nowMs: c.nowMs, keepLegacy: c.legacy}
		c.rec.keyed, c.rec.key = true, key
		if got, _ := f.judge(c.batch, &c.rec); got != c.want {
			t.Errorf("%s: %d, want %d", c.name, got, c.want)
		}
	}
}

// A swap file at or above the first file that the cleaner had not finished is not put in place (LogLoader.
// removeTempFilesAndCollectSwapFiles): the round is undone.
func TestSwapBesideCleaned(t *testing.T) {
	for _, c := range []struct {
		cleaned, swap int64
		completed     bool
	}{{10, 0, true}, {0, 0, false}, {0, 10, false}} {
		dir := filepath.Join(t.TempDir(), "t-0")
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		sizes := map[string]int64{}
		for name, offset := range map[string]int64{"": 0, cleanedSuffix: c.cleaned, swapSuffix: c.swap} {
			value := []byte(name)
			log := fixture.AppendBatch(nil, fixture.Batch{Records: []fixture.Record{{Offset: offset, Value: value}}})
			sizes[name] = int64(len(log))
			name = format.SegmentFileName(offset, format.KindLog) + name
			if err := os.WriteFile(filepath.Join(dir, name), log, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		l, err := Load(openPartition(t, dir), LoadOptions{Interval: 4096, IndexBytes: 4096, MaxBatchBytes: 1 << 20})
		if err != nil || l.Failure != nil {
			t.Fatal(err, l.Failure)
		}
		name := format.SegmentFileName(c.swap, format.KindLog)
		at := slices.IndexFunc(l.Files, func(f FileChange) bool { return f.Name == name })
		if completed := at >= 0 && *l.Files[at].After == sizes[swapSuffix]; completed != c.completed {
			t.Errorf("%+v: %+v", c, l.Files)
		}
	}
}

// A search for an offset that a batch ends in finds that batch, also where there is none of that base offset after it.
func TestSearchForTheLastOffsetOfABatch(t *testing.T) {
	var log []byte
	var starts []int64
	for _, offsets := range [][2]int64{{0, 5}, {10, 12}} {
		starts = append(starts, int64(len(log)))
		log = fixture.AppendBatch(log, fixture.Batch{Records: []fixture.Record{{Offset: offsets[0]}, {Offset: offsets[1]}}})
	}
	s := &segment{l: &loader{opts: &LoadOptions{MaxBatchBytes: 1 << 20}}}
	for offset, want := range map[int64]int64{0: 0, 4: 0, 5: 0, 6: starts[1], 10: starts[1], 12: starts[1], 13: -1} {
		pos, found, err := s.search(log, 0, offset)
		if !found {
			pos = -1
		}
		if err != nil || pos != want {
			t.Errorf("%d: at %d, want %d, %v", offset, pos, want, err)
		}
	}
}

// An index that the cleaner writes takes as many entries as segment.index.bytes has room for, in a time index one less.
func TestCleanedIndexesThatAreFull(t *testing.T) {
	for rising, want := range map[int64]int64{0: 15, 1: 9} {
		o := newOutput(0, &CleanerSettings{SegmentIndexBytes: 120, IndexInterval: 1})
		added := int64(-1) // there is no entry for the first batch
		for o.append(format.BatchRef{Size: 100, BaseOffset: added + 1, LastOffset: added + 1,
			MaxTimestampMs: 1000 + rising*added}, true) == nil {
			added++
		}
		if added != want {
			t.Errorf("timestamps that rise by %d: %d entries, want %d", rising, added, want)
		}
	}
}

// Of aborted transactions count those that end at the log start or later and begin below an offset.
func TestAbortedAtTheEdges(t *testing.T) {
	l := CleanerLog{StartOffset: 10, Segments: []CleanerSegment{{}}}
	for _, txn := range [][2]int64{{1, 9}, {2, 10}, {19, 30}, {20, 31}} {
		l.Segments[0].Aborted = append(l.Segments[0].Aborted, format.AbortedTxn{FirstOffset: txn[0], LastOffset: txn[1]})
	}
	var got []int64
	for _, txn := range l.abortedIn(0, 20) {
		got = append(got, txn.FirstOffset)
	}
	if !slices.Equal(got, []int64{2, 19}) {
		t.Error(got)
	}
}

// A segment has room for offsets up to 2^31-1 above its own.
func TestFits(t *testing.T) {
	for offset, want := range map[int64]bool{6: false, 7: true, 7 + math.MaxInt32: true, 8 + math.MaxInt32: false} {
		if fits(7, offset) != want {
			t.Errorf("%d: %v", offset, !want)
		}
	}
}

// What a cut took away is not lost as far as another segment has it.
func TestWhatOtherSegmentsHoldIsNotLost(t *testing.T) {
	for _, c := range []struct {
		base, end int64
		want      string
	}{
		{0, 10, "[10-20]"}, {0, 11, "[11-20]"}, {10, 21, "[]"}, {12, 15, "[10-11 15-20]"}, {20, 21, "[10-19]"},
		{20, 20, "[10-20]"}, {21, 22, "[10-20]"},
	} {
		l := &loader{segments: []*segment{{base: c.base, end: &c.end}}}
		left, err := l.elsewhere(LostRange{First: 10, Last: 20})
		got := []string{}
		for _, r := range left {
			got = append(got, fmt.Sprintf("%d-%d", r.First, r.Last))
		}
		if err != nil || fmt.Sprint(got) != c.want {
			t.Errorf("%+v: %v, %v", c, got, err)
		}
	}
}

// A segment counts as of 1970 if it has batches and was not recovered, and its time index has more slots than one, the
// last of them zeros.
func TestHazards(t *testing.T) {
	slot := []byte{0, 0, 1, 0x8b, 0xcf, 0xe5, 0x68, 0, 0, 0, 0, 0}
	for _, c := range []struct {
		index  []byte
		loaded LoadedSegment
		want   int
	}{
		{slices.Concat(slot, make([]byte, 12)), LoadedSegment{Size: 1}, 1},
		{make([]byte, 24), LoadedSegment{Size: 1}, 1},
		{make([]byte, 24), LoadedSegment{}, 0},
		{make([]byte, 24), LoadedSegment{Size: 1, Recovered: true}, 0},
		{make([]byte, 12), LoadedSegment{Size: 1}, 0},
		{slices.Concat(make([]byte, 12), slot), LoadedSegment{Size: 1}, 0},
	} {
		dir := filepath.Join(t.TempDir(), "t-0")
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		for kind, raw := range map[format.Kind][]byte{format.KindLog: {0}, format.KindTimeIndex: c.index} {
			if err := os.WriteFile(filepath.Join(dir, format.SegmentFileName(0, kind)), raw, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		set, err := logdir.Open([]string{dir}, logdir.Options{})
		if err != nil {
			t.Fatal(err)
		}
		got := hazards(set.Partitions()[0], &Loaded{Segments: []LoadedSegment{c.loaded}})
		if len(got) != c.want {
			t.Errorf("%x, %+v: %v", c.index, c.loaded, got)
		}
	}
}

// An epoch that would begin below offset 0 stops the start.
func TestEpochBelowZero(t *testing.T) {
	if (&epochs{}).append(3, -1) == nil {
		t.Error("an epoch begins at offset -1")
	}
}
