package broker

import (
	"os"
	"path/filepath"
	"testing"

	"kseg/format"
	"kseg/internal/fixture"
	"kseg/logdir"
)

// The first three segments tell the interval, be it by an index of one entry; what the fourth says is not asked.
func TestInferredInterval(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "t-0")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for i, interval := range []int64{1500, 1500, 1500, 300, 1500} {
		base := int64(10 * i)
		var log []byte
		index := format.NewIndexBuilder(base, interval)
		for n := range int64(3) {
			log = fixture.AppendBatch(log, fixture.Batch{Records: []fixture.Record{{Offset: base + n,
				Value: make([]byte, 930)}}})
		}
		for s := format.NewScanner(log, 0, base); s.Next(); {
			if err := index.Add(s.Batch().Ref()); err != nil {
				t.Fatal(err)
			}
		}
		for kind, raw := range map[format.Kind][]byte{format.KindLog: log, format.KindOffsetIndex: index.OffsetIndexBytes()} {
			if err := os.WriteFile(filepath.Join(dir, format.SegmentFileName(base, kind)), raw, 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	set, err := logdir.Open([]string{dir}, logdir.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if got := InferInterval(set.Partitions()[0]); got != 1024 {
		t.Errorf("%d, want 1024", got)
	}
}

func TestLikelyInterval(t *testing.T) {
	for of, want := range map[[2]int64]int64{{4096, 8000}: 4096, {3000, 4096}: 4096, {4096, 9000}: 4096,
		{1000, 2048}: 2048,
		{2048, 3000}: 2048, {2100, 3000}: 3000} {
		if got := likelyInterval(of[0], of[1]); got != want {
			t.Errorf("of %d: %d, want %d", of, got, want)
		}
	}
}
