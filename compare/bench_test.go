package compare

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"kseg/internal/fixture"
	"kseg/logdir"
)

// BenchmarkIdentical takes the comparison of two equal partitions as a multiple of what cmp takes for their bytes.
func BenchmarkIdentical(b *testing.B) {
	fixture.OnDisk(b)
	var dirs, files []string
	for range 2 {
		dir := filepath.Join(b.TempDir(), "t-0")
		if err := os.Mkdir(dir, 0o755); err != nil {
			b.Fatal(err)
		}
		dirs, files = append(dirs, dir), append(files, fixture.BigLog(b, dir, 256<<20, 75))
	}
	set, err := logdir.Open(dirs, logdir.Options{})
	if err != nil {
		b.Fatal(err)
	}
	pairs, err := Pairs(set.Operands[0], set.Operands[1])
	if err != nil {
		b.Fatal(err)
	}
	var theirs, ours time.Duration
	for b.Loop() {
		start := time.Now()
		if err := exec.Command("cmp", files...).Run(); err != nil {
			b.Fatal(err)
		}
		middle := time.Now()
		for c := range Run(context.Background(), pairs, Options{Jobs: 2, MaxBatchBytes: 1 << 28}) {
			if c.Result != Identical {
				b.Fatal(c.Result)
			}
		}
		theirs, ours = theirs+middle.Sub(start), ours+time.Since(middle)
	}
	b.ReportMetric(ours.Seconds()/theirs.Seconds(), "x-cmp")
}
