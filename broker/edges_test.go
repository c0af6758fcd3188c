package broker

import (
	"os"
	"path/filepath"
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
