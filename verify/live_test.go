package verify

import (
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"kseg/format"
	"kseg/internal/fixture"
)

// liveDir names, for a copy of the test binary, the log directory that it is to write as a broker does.
const liveDir = "KSEG_TEST_LIVE_DIR"

func TestMain(m *testing.M) {
	if dir := os.Getenv(liveDir); dir != "" {
		playBroker(dir)
	}
	os.Exit(m.Run())
}

// playBroker writes partitions as a broker does, again and again, until its standard input ends: batch by batch, the
// log before its indexes, with rolls, retention, truncation, and topics that are deleted and made anew.
func playBroker(dir string) {
	ended := make(chan struct{})
	go func() {
		_, _ = os.Stdin.Read(make([]byte, 1))
		close(ended)
	}()
	source := os.Getenv(liveDir + "_SOURCE")
	for round := 0; ; round++ {
		for i, steps := range playPartition(source, filepath.Join(dir, fmt.Sprintf("orders-%d", round%3)), round) {
			select {
			case <-ended:
				os.Exit(0)
			default:
			}
			if err := steps(); err != nil {
				fmt.Fprintln(os.Stderr, i, err)
				os.Exit(1)
			}
		}
	}
}

// playPartition are the steps of a partition's life.
func playPartition(source, dir string, round int) []func() error {
	var steps []func() error
	step := func(f func() error) { steps = append(steps, f) }
	write := func(name string, content []byte) {
		step(func() error {
			path := filepath.Join(dir, name)
			f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0o644)
			if os.IsNotExist(err) {
				// Names and numbers of files come again so soon that a file without its content would be seen twice.
				if err := os.WriteFile(path+".tmp", content, 0o644); err != nil {
					return err
				}
				return os.Rename(path+".tmp", path)
			}
			if err != nil {
				return err
			}
			_, err = f.Write(content)
			f.Close()
			return err
		})
	}
	read := func(name string) []byte {
		b, _ := os.ReadFile(filepath.Join(source, name))
		return b
	}
	gone := fmt.Sprintf("%s.%032x-delete", dir, round)
	step(func() error { return os.MkdirAll(dir, 0o755) })
	write("partition.metadata", read("partition.metadata"))
	write("leader-epoch-checkpoint", read("leader-epoch-checkpoint"))
	bases := []int64{0, 87, 169, 246}
	for i, base := range bases {
		name := func(kind format.Kind) string { return format.SegmentFileName(base, kind) }
		if i > 0 {
			write(name(format.KindProducerSnapshot), read(name(format.KindProducerSnapshot)))
		}
		playSegment(base, read, write)
		if i == 2 && round%2 == 0 {
			playDeletion(dir, bases[0], step)
		}
	}
	if round%3 == 1 {
		last := filepath.Join(dir, format.SegmentFileName(bases[3], format.KindLog))
		step(func() error { return os.Truncate(last, 78*3) })
	}
	step(func() error { return os.Rename(dir, gone) })
	step(func() error { return os.RemoveAll(gone) })
	return steps
}

// playSegment writes a segment batch by batch, with the entries of its indexes after each.
func playSegment(base int64, read func(string) []byte, write func(string, []byte)) {
	name := func(kind format.Kind) string { return format.SegmentFileName(base, kind) }
	log, index, times, txns := read(name(format.KindLog)), read(name(format.KindOffsetIndex)),
		read(name(format.KindTimeIndex)),
		read(name(format.KindTxnIndex))
	write(name(format.KindOffsetIndex), nil)
	write(name(format.KindTimeIndex), nil)
	for s := format.NewScanner(log, 0, base); s.Next(); {
		b := s.Batch()
		half := len(b.Raw) / 2
		write(name(format.KindLog), b.Raw[:half])
		write(name(format.KindLog), b.Raw[half:])
		for len(index) >= 8 && int64(binary.BigEndian.Uint32(index[4:])) <= b.Pos {
			write(name(format.KindOffsetIndex), index[:8])
			index = index[8:]
		}
		for len(txns) >= 34 && int64(binary.BigEndian.Uint64(txns[18:])) <= b.LastOffset {
			write(name(format.KindTxnIndex), txns[:34])
			txns = txns[34:]
		}
		for len(times) >= 12 && base+int64(binary.BigEndian.Uint32(times[8:])) <= b.LastOffset {
			write(name(format.KindTimeIndex), times[:12])
			times = times[12:]
		}
	}
}

// playDeletion deletes a segment as retention does: the files are renamed, and removed later.
func playDeletion(dir string, base int64, step func(func() error)) {
	var names []string
	for _, kind := range []format.Kind{format.KindLog, format.KindOffsetIndex, format.KindTimeIndex, format.KindTxnIndex} {
		names = append(names, filepath.Join(dir, format.SegmentFileName(base, kind)))
	}
	for _, name := range names {
		step(func() error { return os.Rename(name, name+".deleted") })
	}
	for _, name := range names {
		step(func() error { return os.Remove(name + ".deleted") })
	}
}

// Beside a writer in another process nothing is found that is not there: no batch, index or file of a moment is held
// against those of another.
func TestBesideAWriter(t *testing.T) {
	dir := t.TempDir()
	fixture.Beside(t, liveDir+"="+dir, liveDir+"_SOURCE="+fixture.Dir(t, txnBase))
	seen, changed, runs := 0, 0, 0
	for i := 0; seen < fixture.Times(4_000, 40_000) && !t.Failed(); i++ {
		if entries, err := os.ReadDir(dir); err != nil || len(entries) == 0 {
			continue
		}
		found, summary := runOn(t, Options{Level: Records, Jobs: 1 + i%2, run: int64(500 << (i % 5)),
			Patience: 50 * time.Millisecond}, dir)
		for _, f := range found {
			if f.Severity > Note {
				t.Errorf("run %d: %s: %s", i, line(&f), f.Message)
			}
		}
		if slices.ContainsFunc(summary.NotRead, func(text string) bool {
			return !strings.Contains(text, "not a file or directory of Kafka's")
		}) {
			t.Errorf("run %d: not read: %v", i, summary.NotRead)
		}
		if slices.ContainsFunc(found, func(f Finding) bool { return f.Code == "changed-while-read" }) {
			changed++
		}
		seen += int(summary.Batches)
		runs++
	}
	t.Logf("%d batches in %d runs, %d of which looked again", seen, runs, changed)
}
