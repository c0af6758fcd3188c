package verify

import (
	"context"
	"path"
	"strings"
	"testing"
	"time"

	"kseg/internal/fixture"
	"kseg/logdir"
)

// runOn verifies what the paths lead to and returns all findings. One job keeps what is tested on one goroutine.
func runOn(t testing.TB, opts Options, paths ...string) ([]Finding, Summary) {
	t.Helper()
	set, err := logdir.Open(paths, logdir.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var found []Finding
	opts.Emit = func(f *Finding) error {
		found = append(found, *f)
		return nil
	}
	if opts.MaxBatchBytes == 0 {
		opts.MaxBatchBytes = 64 << 20
	}
	if opts.Now.IsZero() {
		opts.Now = time.UnixMilli(1796000000000)
	}
	summary, err := Run(context.Background(), set, opts)
	if err != nil {
		t.Fatal(err)
	}
	return found, summary
}

// healthy are the directories of testdata/logdirs that are whole operands: log directories, or partitions alone.
func healthy(t *testing.T) []string {
	t.Helper()
	seen := map[string]bool{}
	var dirs []string
	for _, name := range fixture.Files(t, ".log") {
		dir := path.Dir(path.Dir(name))
		if !seen[dir] && !strings.HasSuffix(dir, "ORIGIN") {
			seen[dir] = true
			dirs = append(dirs, dir)
		}
	}
	return dirs
}

// Whatever real brokers left, live, killed or stopped, old or new, compacted or not, is healthy. The segments without
// timestamps in retention/before truly lack their indexes, and one its leader-epoch-checkpoint.
func TestNoFalseAlarms(t *testing.T) {
	for _, name := range healthy(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			found, summary := runOn(t, Options{Level: Records, Jobs: 2}, fixture.Dir(t, name))
			for _, f := range found {
				if f.Severity > Note && !(strings.HasSuffix(f.Code, "-missing") && strings.HasPrefix(f.Partition, "r-no-timestamp")) {
					t.Errorf("%s %s %s @%d: %s", f.Severity, f.Code, f.File, f.Pos, f.Message)
				}
			}
			if len(summary.NotRead) > 0 || summary.Batches == 0 {
				t.Errorf("%d batches read; not read: %v", summary.Batches, summary.NotRead)
			}
		})
	}
}
