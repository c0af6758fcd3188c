package broker

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"kseg/format"
	"kseg/internal/fixture"
	"kseg/logdir"
)

// benchDir is a partition of KSEG_BENCH_MB megabytes, 64 if that is not set.
func benchDir(tb testing.TB) (string, int64) {
	mb := int64(64)
	if text := os.Getenv("KSEG_BENCH_MB"); text != "" {
		mb, _ = strconv.ParseInt(text, 10, 64)
	}
	dir := filepath.Join(tb.TempDir(), "bench-0")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		tb.Fatal(err)
	}
	fixture.WriteBenchLog(tb, dir, mb<<20, format.CodecNone)
	return dir, mb << 20
}

// BenchmarkClean takes a round over a log that is dirty but for its active segment as a multiple of the bare loop over
// its bytes, which the round goes through twice.
func BenchmarkClean(b *testing.B) {
	dir, size := benchDir(b)
	task := cleanTask{dir: dir, cleaned: -1, nowMs: 1796000000000, mapBytes: 128 << 20}
	for _, jobs := range []int{1, 2} {
		b.Run(fmt.Sprintf("jobs=%d", jobs), func(b *testing.B) {
			set, err := logdir.Open([]string{dir}, logdir.Options{})
			if err != nil {
				b.Fatal(err)
			}
			p := set.Operands[0].Partition
			fixture.BesideBareLoop(b, size, func() error {
				for _, seg := range p.Segments {
					if err := seg.Log.View(func(data []byte) error {
						seg.Log.Prepare(data)
						fixture.BareLoop(data)
						return nil
					}); err != nil {
						return err
					}
				}
				return nil
			}, func() error { return task.clean(b.Context(), p, jobs) })
		})
	}
}

// clean finds what a round does.
func (task *cleanTask) clean(ctx context.Context, p *logdir.Partition, jobs int) error {
	s := task.settings()
	l, err := LoadCleanerLog(ctx, p, CleanerSource{IndexInterval: 4096, IndexBytes: 10 << 20, MaxBatchBytes: 1 << 28,
		Records: format.NewRecordReader(1<<28, nil)})
	if err != nil {
		return err
	}
	r := l.Range(s, task.nowMs)
	round, err := l.Clean(ctx, CleanJob{Settings: s, Range: &r, NowMs: task.nowMs, Jobs: jobs})
	if err == nil && (round.Stops != nil || round.RecordsKept == 0) {
		err = fmt.Errorf("%d records kept: %w", round.RecordsKept, round.Stops)
	}
	return err
}
