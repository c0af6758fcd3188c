package verify

import (
	"context"
	"testing"
	"time"

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
