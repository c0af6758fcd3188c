package verify

import (
	"context"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"testing"
	"time"

	"kseg/internal/fixture"
	"kseg/logdir"
)

// benchLog writes a segment of so many bytes and records a batch, and returns its file.
func benchLog(b testing.TB, dir string, size, recordsPerBatch int) string {
	b.Helper()
	var log []byte
	for offset := int64(0); len(log) < size; {
		var records []fixture.Record
		for range recordsPerBatch {
			records = append(records, fixture.Record{Offset: offset, TimestampMs: 1_700_000_000_000 + offset, Value: make([]byte, 197)})
			offset++
		}
		log = fixture.AppendBatch(log, fixture.Batch{Records: records})
	}
	name := filepath.Join(dir, "00000000000000000000.log")
	if err := os.WriteFile(name, log, 0o644); err != nil {
		b.Fatal(err)
	}
	return name
}

// bareLoop is the least that checking takes: hop from header to header and run the checksum over each batch.
func bareLoop(log []byte) (bad int) {
	table := crc32.MakeTable(crc32.Castagnoli)
	for pos := 0; pos < len(log); {
		end := pos + 12 + int(binary.BigEndian.Uint32(log[pos+8:]))
		if crc32.Checksum(log[pos+21:end], table) != binary.BigEndian.Uint32(log[pos+17:]) {
			bad++
		}
		pos = end
	}
	return bad
}

// BenchmarkVerify and BenchmarkRebuild take what they do as multiples of the bare loop over a mapping, beside the time.
func BenchmarkVerify(b *testing.B) {
	for level, name := range LevelNames {
		if Level(level) > Headers {
			benchRun(b, name, func(set *logdir.Set) error {
				_, err := Run(context.Background(), set, Options{Level: Level(level), Jobs: 1, MaxBatchBytes: 1 << 28, Now: time.UnixMilli(1796000000000),
					Emit: func(*Finding) error { return nil }})
				return err
			})
		}
	}
}

func BenchmarkRebuild(b *testing.B) {
	for jobs := 1; jobs <= 2; jobs++ {
		benchRun(b, fmt.Sprintf("%d-jobs", jobs), func(set *logdir.Set) error {
			_, err := Rebuild(context.Background(), set, RebuildOptions{Dir: b.TempDir(), Interval: 4096, Jobs: jobs, MaxBatchBytes: 1 << 28,
				Now: time.UnixMilli(1796000000000), Emit: func(*Rebuilt) error { return nil }})
			return err
		})
	}
}

func benchRun(b *testing.B, name string, work func(*logdir.Set) error) {
	for _, records := range []int{75, 1} {
		b.Run(fmt.Sprintf("%s/%d-records", name, records), func(b *testing.B) {
			set, err := logdir.Open([]string{benchLog(b, b.TempDir(), 64<<20, records)}, logdir.Options{})
			if err != nil {
				b.Fatal(err)
			}
			log := set.Operands[0].File
			var bare, ours time.Duration
			for b.Loop() {
				start := time.Now()
				if err := log.View(func(data []byte) error {
					log.Prepare(data)
					bareLoop(data)
					return nil
				}); err != nil {
					b.Fatal(err)
				}
				middle := time.Now()
				if err := work(set); err != nil {
					b.Fatal(err)
				}
				bare, ours = bare+middle.Sub(start), ours+time.Since(middle)
			}
			b.ReportMetric(ours.Seconds()/bare.Seconds(), "x-bare")
			b.ReportMetric(float64(log.Size)*float64(b.N)/ours.Seconds()/1e9, "GB/s")
		})
	}
}

// Looking at batches allocates nothing for each of them, neither for checks nor for rebuilding.
func TestNoAllocationPerBatch(t *testing.T) {
	inMemory(t)
	small, large := benchLog(t, t.TempDir(), 2<<20, 1), benchLog(t, t.TempDir(), 8<<20, 1)
	for name, work := range map[string]func(file string){
		"verify": func(file string) { runOn(t, Options{Level: Records, Jobs: 1}, file) },
		"rebuild": func(file string) {
			if _, _, err := rebuildInto(t, RebuildOptions{Dir: t.TempDir(), Interval: 1 << 30, Jobs: 1}, file); err != nil {
				t.Fatal(err)
			}
		},
	} {
		few := testing.AllocsPerRun(3, func() { work(small) })
		many := testing.AllocsPerRun(3, func() { work(large) })
		if many > few+200 {
			t.Errorf("%s: %.0f allocations for 2 MiB, %.0f for 8 MiB", name, few, many)
		}
	}
}
