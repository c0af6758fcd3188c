package salvage

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"kseg/internal/fixture"
)

// BenchmarkWhole takes the salvage of a healthy partition as a multiple of a copy that is brought to disk.
func BenchmarkWhole(b *testing.B) {
	fixture.OnDisk(b)
	dir := filepath.Join(b.TempDir(), "t-0")
	if err := os.Mkdir(dir, 0o755); err != nil {
		b.Fatal(err)
	}
	fixture.BigLog(b, dir, 256<<20, 75)
	var theirs, ours time.Duration
	for b.Loop() {
		to := b.TempDir()
		start := time.Now()
		if err := exec.Command("sh", "-c", `cp -r "$0" "$1" && sync -f "$1"`, dir, to).Run(); err != nil {
			b.Fatal(err)
		}
		middle := time.Now()
		res, _ := one(b, Options{}, dir)
		theirs, ours = theirs+middle.Sub(start), ours+time.Since(middle)
		if !res.Whole() || os.RemoveAll(to) != nil || os.RemoveAll(res.Path) != nil {
			b.Fatal(res.Err)
		}
	}
	b.ReportMetric(ours.Seconds()/theirs.Seconds(), "x-cp")
}
