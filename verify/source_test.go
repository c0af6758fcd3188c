package verify

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"kseg/internal/fixture"
)

// A batch that is too large to be read is looked at in the mapping, and batches before and after it as ever.
func TestHugeBatch(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "huge-0")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	var log []byte
	sizes := []int{100, 8<<20 + 5000, 300_000, 300_000, 300_000, 100, 8<<20 - 61, 7}
	for i, size := range sizes {
		log = fixture.AppendBatch(log, fixture.Batch{Records: []fixture.Record{{Offset: int64(i),
			TimestampMs: 1_700_000_000_000, Value: make([]byte, size)}}})
	}
	name := filepath.Join(dir, "00000000000000000000.log")
	for _, flip := range []int{-1, 5_000_000, len(log) - 3} {
		data := append([]byte(nil), log...)
		if flip >= 0 {
			data[flip] ^= 1
		}
		if err := os.WriteFile(name, data, 0o644); err != nil {
			t.Fatal(err)
		}
		var first string
		for _, o := range []Options{{Jobs: 1}, {Jobs: 2}, {Jobs: 3, run: 50_000}, {Jobs: 1, run: 20 << 20}} {
			o.Level = Records
			found, summary := runOn(t, o, dir)
			got := fmt.Sprint(summary.Damage, summary.Warnings, summary.Bytes, summary.Batches)
			for i := range found {
				got += "\n" + line(&found[i])
			}
			if first == "" {
				first = got
			}
			if got != first || (summary.Damage > 0) != (flip >= 0) || flip < 0 && summary.Batches != int64(len(sizes)) {
				t.Errorf("flip %d, %d jobs, runs of %d: %s\nfirst was %s", flip, o.Jobs, o.run, got, first)
			}
		}
	}
}
