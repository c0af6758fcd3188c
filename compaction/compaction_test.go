package compaction

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"kseg/format"
	"kseg/internal/fixture"
	"kseg/logdir"
	"kseg/render"
	"kseg/state"
)

const nowMs = 1800000000000

// report analyzes one directory.
func report(t *testing.T, dir string, options Options) *Report {
	t.Helper()
	set, err := logdir.Open([]string{dir}, logdir.Options{})
	if err != nil {
		t.Fatal(err)
	}
	partitions, asked, _ := set.Chosen()
	options.NowMs, options.PresentMs, options.MaxBatchBytes = nowMs, nowMs, 1<<28
	a, err := NewAnalyzer(partitions, state.OpenCluster(set, nil), options)
	if err != nil {
		t.Fatal(err)
	}
	res := a.Look(context.Background(), partitions[0], asked[0])
	if res.Report == nil {
		t.Fatalf("%s: %+v", dir, res)
	}
	return res.Report
}

// TestWhatStopsACleaner holds damage against what a real cleaner makes of it: it does not look at checksums.
func TestWhatStopsACleaner(t *testing.T) {
	for recipe, want := range map[string]struct {
		stops    bool
		segment  int64
		position int64
		warning  string
	}{
		"length-huge":  {true, 32, 1084, "gives up on this partition in segment 32 at byte 1084"},
		"payload-flip": {false, 0, 0, "a wrong checksum, at which the cleaner does not look; 1 of them is written again"},
	} {
		r := report(t, fixture.Damaged(t, recipe), Options{CleanedTo: CleanedTo{Given: true, Offset: -1}})
		stop := r.Round.Stops
		if (stop != nil) != want.stops || stop != nil && (stop.Segment != want.segment || stop.Pos != want.position) ||
			r.Would == want.stops {
			t.Errorf("%s: %+v, would %v", recipe, stop, r.Would)
		}
		if !strings.Contains(strings.Join(r.Warnings, "\n"), want.warning) {
			t.Errorf("%s: %q", recipe, r.Warnings)
		}
	}
}

// writeKeyed writes two segments of the same records: a key, the same again, no key.
func writeKeyed(t *testing.T, name string) string {
	dir := filepath.Join(t.TempDir(), name)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for base := int64(0); base < 6; base += 3 {
		var log []byte
		for i, key := range [][]byte{[]byte("a"), []byte("a"), nil} {
			log = fixture.AppendBatch(log, fixture.Batch{Records: []fixture.Record{{Offset: base + int64(i),
				TimestampMs: nowMs - 1000, Key: key, Value: []byte("v")}}})
		}
		if err := os.WriteFile(filepath.Join(dir, format.SegmentFileName(base, format.KindLog)), log, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestRecordsWithoutKeysAreSaidToBeLost(t *testing.T) {
	r := report(t, writeKeyed(t, "t-0"), Options{})
	if removed := r.removed(); removed.NoKey != 1 || removed.Superseded != 1 || r.Round.RecordsKept != 1 {
		t.Errorf("%+v, %d kept", removed, r.Round.RecordsKept)
	}
	if !slices.ContainsFunc(r.Warnings, func(w string) bool {
		return strings.Contains(w, "1 record without a key will be lost")
	}) {
		t.Errorf("%q", r.Warnings)
	}
}

// What recovery cuts of a closed segment is said, where the broker was not stopped cleanly and the recovery point lies
// in it or before.
func TestCutsOfClosedSegmentsAreSaid(t *testing.T) {
	for point, said := range map[string]bool{"0": true, "3": false} {
		dir := writeKeyed(t, "t-0")
		parent := filepath.Dir(dir)
		for name, text := range map[string]string{"meta.properties": "version=1\nnode.id=1\n",
			"recovery-point-offset-checkpoint": "0\n1\nt 0 " + point + "\n"} {
			if err := os.WriteFile(filepath.Join(parent, name), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		log := filepath.Join(dir, format.SegmentFileName(0, format.KindLog))
		data, err := os.ReadFile(log)
		if err != nil {
			t.Fatal(err)
		}
		data[len(data)-1] ^= 1
		if err := os.WriteFile(log, data, 0o644); err != nil {
			t.Fatal(err)
		}
		for _, base := range []int64{0, 3} { // with an index nothing is recovered that was flushed
			if err := os.WriteFile(filepath.Join(dir, format.SegmentFileName(base, format.KindOffsetIndex)), nil,
				0o644); err != nil {
				t.Fatal(err)
			}
		}
		r := report(t, dir, Options{})
		if got := strings.Contains(strings.Join(r.Warnings, "\n"), "a start cuts 00000000000000000000.log"); got != said {
			t.Errorf("recovery point %s: %q", point, r.Warnings)
		}
		// What was cut is the active segment then, which is not cleaned.
		if n := len(r.Log.Segments); (n == 1) != said || said && (r.Range.DirtyBytes != 0 || r.Log.EndOffset >= 3) {
			t.Errorf("recovery point %s: %d segments, %+v, to %d", point, n, r.Range, r.Log.EndOffset)
		}
	}
}

func TestTheLifeAndTheCensusOfKeys(t *testing.T) {
	r := report(t, writeKeyed(t, "t-0"), Options{Key: []byte("a"), Keys: 5})
	var fates []Fate
	for _, k := range r.Life {
		fates = append(fates, k.Fate)
	}
	if !slices.Equal(fates, []Fate{FateSuperseded, FateKept, FateAbove, FateAbove}) || r.Life[0].SupersededBy != 1 {
		t.Errorf("%+v", r.Life)
	}
	if c := r.Census; c.Unique != 1 || c.Records != 4 || c.NoKey != 2 || string(c.Top[0].Key) != "a" ||
		c.Top[0].Records != 4 {
		t.Errorf("%+v", c)
	}
}

// Of a key that is very long --keys shows the length.
func TestTheCensusOfLongKeys(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "__consumer_offsets-0")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	var log []byte
	for i, size := range []int{65536, 65537} {
		r := fixture.Record{Offset: int64(i), Key: make([]byte, size)}
		log = fixture.AppendBatch(log, fixture.Batch{Records: []fixture.Record{r}})
	}
	if err := os.WriteFile(filepath.Join(dir, format.SegmentFileName(0, format.KindLog)), log, 0o644); err != nil {
		t.Fatal(err)
	}
	r := report(t, dir, Options{Keys: 2})
	if top := r.Census.Top; len(top) != 2 || len(top[0].Key) != 65536 || top[1].Key != nil {
		t.Fatalf("%d keys", len(top))
	}
	text := string(r.AppendText(nil, render.Theme{}, render.PayloadHex, 200))
	json := string(r.AppendJSON(nil, render.PayloadHex))
	if !strings.Contains(text, " 65,537 bytes\n") || !strings.Contains(json, `"key":{"length":65537},"decoded":null`) {
		t.Errorf("%s\n%.2000s", text[len(text)-200:], json)
	}
}

func TestOrderIsThatOfACleaner(t *testing.T) {
	full := report(t, writeKeyed(t, "t-0"), Options{})
	clean := report(t, writeKeyed(t, "t-1"), Options{CleanedTo: CleanedTo{Given: true, Offset: 3}})
	reports := []*Report{clean, full}
	Order(reports)
	if reports[0] != full || full.Place != 1 || clean.Place != 0 {
		t.Errorf("%d and %d", full.Place, clean.Place)
	}
	if clean.CleanAt != nil || full.CleanAt == nil || time.UnixMilli(*full.CleanAt) != time.UnixMilli(nowMs) {
		t.Errorf("%v, %v", clean.CleanAt, full.CleanAt)
	}
}

// TestWhatAStartDoesFirst has a start complete what the cleaner left, or make an index anew, before the cleaner comes.
func TestWhatAStartDoesFirst(t *testing.T) {
	for recipe, want := range map[string]struct {
		bases   []int64
		warning string
	}{
		"leftover-swap": {[]int64{0, 32, 64}, "left 3 files unfinished"}, "leftover-swap-covers-two": {[]int64{0, 64},
			"left 1 file unfinished when the broker stopped. A start puts it in place"},
		"leftover-swap-and-cleaned": {[]int64{0, 32, 64}, "left 2 files unfinished"},
		"leftover-cleaned":          {[]int64{0, 32, 64}, "left 3 files unfinished"},
	} {
		r := report(t, fixture.Damaged(t, recipe), Options{CleanedTo: CleanedTo{Given: true, Offset: -1}})
		var bases []int64
		for _, s := range r.Log.Segments {
			bases = append(bases, s.Base)
		}
		if !slices.Equal(bases[:min(len(want.bases), len(bases))], want.bases) || r.Round == nil || r.Round.Stops != nil {
			t.Errorf("%s: segments %v, round %+v", recipe, bases, r.Round)
		}
		if text := strings.Join(r.Warnings, "\n"); !strings.Contains(text, want.warning) {
			t.Errorf("%s: %q", recipe, text)
		}
	}
	for _, recipe := range []string{"txnindex-lastoffset-below-base", "index-missing"} {
		sound, r := report(t, fixture.Dir(t, recipeBase(t, recipe)), Options{}),
			report(t, fixture.Damaged(t, recipe), Options{})
		for i := range r.Log.Segments {
			got, want := r.Log.Segments[i], sound.Log.Segments[i]
			if got.TimeIndexSize == 0 || got.Size != want.Size || !slices.Equal(got.Aborted, want.Aborted) {
				t.Errorf("%s: segment %d is %+v, want %+v", recipe, got.Base, got, want)
			}
		}
	}
}

func recipeBase(t *testing.T, name string) string {
	t.Helper()
	r, err := fixture.FindRecipe(name)
	if err != nil {
		t.Fatal(err)
	}
	return r.Base
}

// What lies above the last offset that the offset map takes is not cleaned, from that offset on; a delete horizon is
// told of a tombstone that stays, and of no other.
func TestTheLifeOfAKeyAboveTheOffsetMap(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "t-0")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	var log []byte
	for i, key := range []string{"a", "a", "b", "c", "a"} {
		r := fixture.Record{Offset: int64(i), TimestampMs: nowMs - 1000, Key: []byte(key)} // tombstones
		log = fixture.AppendBatch(log, fixture.Batch{Records: []fixture.Record{r}})
	}
	for base, content := range map[int64][]byte{0: log, 5: nil} {
		if err := os.WriteFile(filepath.Join(dir, format.SegmentFileName(base, format.KindLog)), content, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for key, want := range map[string][]Fate{"a": {FateSuperseded, FateKept, FateAbove}, "b": {FateKept},
		"c": {FateAbove}} {
		r := report(t, dir, Options{Key: []byte(key), DedupeBytes: 80})
		if r.Round == nil || r.Round.EndOffset != 3 {
			t.Fatalf("%s: %+v", key, r.Round)
		}
		var got []Fate
		for _, k := range r.Life {
			got = append(got, k.Fate)
			if (k.HorizonMs != nil) != (k.Fate == FateKept) {
				t.Errorf("%s at %d, %s: delete horizon %v", key, k.Offset, k.Fate, k.HorizonMs)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", key, got, want)
		}
	}
}
