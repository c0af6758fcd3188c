package rebuild

import (
	"context"
	"fmt"
	"testing"
	"time"

	"kseg/internal/fixture"
	"kseg/logdir"
)

// BenchmarkRebuild takes what it does as multiples of the bare loop over a mapping, beside the time.
func BenchmarkRebuild(b *testing.B) {
	for jobs := 1; jobs <= 2; jobs++ {
		for _, records := range []int{75, 1} {
			b.Run(fmt.Sprintf("%d-jobs/%d-records", jobs, records), func(b *testing.B) {
				set, err := logdir.Open([]string{fixture.BigLog(b, b.TempDir(), 64<<20, records)}, logdir.Options{})
				if err != nil {
					b.Fatal(err)
				}
				benchRun(b, set, Options{Dir: b.TempDir(), Interval: new(int64(4096)), Jobs: jobs, MaxBatchBytes: 1 << 28,
					Now: time.UnixMilli(1796000000000), Emit: func(*Segment) error { return nil }})
			})
		}
	}
}

func benchRun(b *testing.B, set *logdir.Set, opts Options) {
	log := set.Operands[0].File
	fixture.BesideBareLoop(b, log.Size, func() error {
		return log.View(func(data []byte) error {
			log.Prepare(data)
			fixture.BareLoop(data)
			return nil
		})
	}, func() error {
		_, err := Run(context.Background(), set, opts)
		return err
	})
}

// Looking at batches allocates nothing for each of them.
func TestNoAllocationPerBatch(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds, and a minute with the race detector")
	}
	small, large := fixture.BigLog(t, t.TempDir(), 1<<20, 1), fixture.BigLog(t, t.TempDir(), 3<<20, 1)
	rebuild := func(file string) {
		if _, _, err := rebuildInto(t, Options{Dir: t.TempDir(), Interval: new(int64(1 << 30)), Jobs: 1}, file); err != nil {
			t.Fatal(err)
		}
	}
	few := testing.AllocsPerRun(1, func() { rebuild(small) })
	many := testing.AllocsPerRun(1, func() { rebuild(large) })
	if many > few+200 {
		t.Errorf("%.0f allocations for 1 MiB, %.0f for 3 MiB", few, many)
	}
}
