package broker

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"kseg/format"
	"kseg/internal/fixture"
	"kseg/logdir"
)

// writeBenchLog writes a partition of keyed records in batches of 16 KiB, half of them superseded, with a small active
// segment.
func writeBenchLog(tb testing.TB, dir string, size int64) {
	tb.Helper()
	rng := rand.New(rand.NewPCG(1, 2))
	value := bytes.Repeat([]byte("0123456789"), 20)
	segment, offset := size/4, int64(0)
	keys := max(size/500, 10)
	for written := int64(0); written <= size; {
		var log []byte
		base, index := offset, format.NewIndexBuilder(offset, 4096)
		for int64(len(log)) < min(segment, max(size-written, 20000)) {
			var body []byte
			n := int32(0)
			for ; len(body) < 16<<10; n++ {
				r := format.Record{Key: fmt.Appendf(nil, "key-%08d", rng.Int64N(keys)), Value: value[:100+rng.IntN(100)]}
				body = format.AppendRecord(body, &r, int64(n), n)
			}
			pos := int64(len(log))
			log = format.AppendBatch(log, &format.Batch{BaseOffset: offset, LastOffsetDelta: n - 1, Count: n,
				BaseTimestamp: 1796000000000,
				MaxTimestamp:  1796000000000 + int64(n) - 1, ProducerID: -1, ProducerEpoch: -1, BaseSequence: -1}, body)
			b, err := format.DecodeBatch(log, pos)
			if err != nil || index.Add(b.Ref()) != nil {
				tb.Fatal(err)
			}
			offset += int64(n)
		}
		written += int64(len(log))
		if err := index.Finish(); err != nil {
			tb.Fatal(err)
		}
		for kind, content := range map[format.Kind][]byte{format.KindLog: log,
			format.KindOffsetIndex: index.OffsetIndexBytes(),
			format.KindTimeIndex:   index.TimeIndexBytes()} {
			if err := os.WriteFile(filepath.Join(dir, format.SegmentFileName(base, kind)), content, 0o644); err != nil {
				tb.Fatal(err)
			}
		}
	}
}

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
	writeBenchLog(tb, dir, mb<<20)
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
