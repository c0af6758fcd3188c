package verify

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"kseg/format"
	"kseg/internal/fixture"
	"kseg/logdir"
)

// bigBatches is a partition with batches that decompress to more than one worker may hold without asking the others.
// One of them may have a flipped bit.
func bigBatches(t *testing.T, damaged bool) string {
	t.Helper()
	var log []byte
	var broken int
	for i, codec := range []format.Codec{format.CodecZstd, format.CodecZstd, format.CodecGzip, format.CodecZstd} {
		broken = len(log)
		log = fixture.AppendBatch(log, fixture.Batch{Codec: codec, Records: []fixture.Record{
			{Offset: int64(i), TimestampMs: 1_700_000_000_000, Value: make([]byte, 17<<20)}}})
	}
	if damaged {
		log[broken+100] ^= 1
	}
	dir := filepath.Join(t.TempDir(), "big-0")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	writeFile(t, filepath.Join(dir, "00000000000000000000.log"), log)
	return dir
}

// Very large batches are decompressed one at a time, and no worker waits for another that waits for it. Each run ends,
// also if it is cancelled while batches wait.
func TestBigBatchesDoNotWaitForEachOther(t *testing.T) {
	for _, damaged := range []bool{false, true} {
		dir := bigBatches(t, damaged)
		for _, o := range []Options{{Jobs: 1}, {Jobs: 2, run: 10}, {Jobs: 4, run: 10}} {
			o.Level = Records
			_, summary := runOn(t, o, dir)
			if damaged != (summary.Damage > 0) || len(summary.NotRead) > 0 || summary.Verdict() == Incomplete {
				t.Errorf("%d jobs, damaged %v: %d damages; not read: %v", o.Jobs, damaged, summary.Damage, summary.NotRead)
			}
		}
	}
}

func TestBigBatchesCancelled(t *testing.T) {
	dir := bigBatches(t, true)
	for _, jobs := range []int{1, 2, 4} {
		set, err := logdir.Open([]string{dir}, logdir.Options{})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(context.Background())
		_, err = Run(ctx, set, Options{Level: Records, Jobs: jobs, MaxBatchBytes: 64 << 20, run: 10,
			Progress: func(int64) { cancel() }, Emit: func(*Finding) error { return nil }})
		if ctx.Err() == nil || err != context.Canceled {
			t.Errorf("%d jobs: %v", jobs, err)
		}
		cancel()
	}
}
