package verify

import (
	"context"
	"fmt"
	"testing"
	"time"

	"kseg/internal/fixture"
	"kseg/logdir"
)

// BenchmarkVerify takes what it does as multiples of the bare loop over a mapping, beside the time.
func BenchmarkVerify(b *testing.B) {
	for level, name := range LevelNames {
		if Level(level) > Headers {
			benchRun(b, name, func(set *logdir.Set) error {
				_, err := Run(context.Background(), set, Options{Level: Level(level), Jobs: 1, MaxBatchBytes: 1 << 28,
					Now:  time.UnixMilli(1796000000000),
					Emit: func(*Finding) error { return nil }})
				return err
			})
		}
	}
}

func benchRun(b *testing.B, name string, work func(*logdir.Set) error) {
	for _, records := range []int{75, 1} {
		b.Run(fmt.Sprintf("%s/%d-records", name, records), func(b *testing.B) {
			set, err := logdir.Open([]string{fixture.BigLog(b, b.TempDir(), 64<<20, records)}, logdir.Options{})
			if err != nil {
				b.Fatal(err)
			}
			log := set.Operands[0].File
			fixture.BesideBareLoop(b, log.Size, func() error {
				return log.View(func(data []byte) error {
					log.Prepare(data)
					fixture.BareLoop(data)
					return nil
				})
			}, func() error { return work(set) })
		})
	}
}

// Checking batches allocates nothing for each of them.
func TestNoAllocationPerBatch(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds, and a minute with the race detector")
	}
	small, large := fixture.BigLog(t, t.TempDir(), 1<<20, 1), fixture.BigLog(t, t.TempDir(), 3<<20, 1)
	few := testing.AllocsPerRun(1, func() { runOn(t, Options{Level: Records, Jobs: 1}, small) })
	many := testing.AllocsPerRun(1, func() { runOn(t, Options{Level: Records, Jobs: 1}, large) })
	if many > few+200 {
		t.Errorf("%.0f allocations for 1 MiB, %.0f for 3 MiB", few, many)
	}
}
