package ls

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"syscall"
	"testing"

	"pgregory.net/rapid"

	"kseg/format"
	"kseg/internal/fixture"
	"kseg/logdir"
	"kseg/state"
)

// tb is what testing.T and rapid.T have in common.
type tb interface {
	Fatal(args ...any)
	Fatalf(format string, args ...any)
	Errorf(format string, args ...any)
}

// list lists directories and returns the partitions and the summary.
func list(t tb, dirs ...string) ([]*Partition, *Summary) {
	set, err := logdir.Open(dirs, logdir.Options{Unlisted: true})
	if err != nil {
		t.Fatal(err)
	}
	if len(set.Problems) > 0 {
		t.Fatal(set.Problems)
	}
	lister := New(set, Options{Segments: true, Jobs: 2, MaxBatchBytes: 1 << 20,
		Settings: func(*logdir.LogDir) *state.Settings { return &state.Settings{} }})
	var known []*Dir
	for _, d := range set.LogDirs() {
		known = append(known, lister.OpenDir(d))
	}
	summary := NewSummary(known, 65530, func(*logdir.LogDir) Maybe { return Maybe{} })
	partitions := Partitions(set)
	var out []*Partition
	for p := range lister.Run(context.Background(), partitions) {
		summary.Add(p, partitions[len(out)])
		if len(p.Problems) > 0 {
			t.Errorf("%s: %v", p.Display, p.Problems)
		}
		out = append(out, p)
	}
	return out, summary
}

// du counts as du does, by code of its own.
func du(t tb, dir string) (bytes, blocks int64) {
	seen := map[uint64]bool{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		var st syscall.Stat_t
		if err := syscall.Lstat(path, &st); err != nil || !d.IsDir() && seen[st.Ino] {
			return err
		}
		seen[st.Ino] = true
		bytes += st.Size
		blocks += st.Blocks
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return bytes, blocks
}

// recordsIn counts the records of a log by reading every one.
func recordsIn(t tb, file string, base int64) (n int64) {
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	reader := format.NewRecordReader(1<<24, nil)
	for s := format.NewScanner(data, 0, base); s.Next(); {
		if s.Hole() != nil {
			continue
		}
		var rec format.Record
		for reader.Reset(s.Batch()); reader.Next(&rec); n++ {
		}
	}
	return n
}

// check holds what was listed of a log directory against du and against the records.
func check(t tb, dir string) {
	partitions, summary := list(t, dir)
	bytes, blocks := du(t, dir)
	if got := summary.Total.Usage; got.Bytes != bytes || got.Allocated != 512*blocks {
		t.Errorf("%s: %d bytes, %d on disk; du counts %d and %d", dir, got.Bytes, got.Allocated, bytes, 512*blocks)
	}
	for _, p := range partitions {
		sum := int64(0)
		for _, s := range p.Segments {
			file := filepath.Join(p.Display, format.SegmentFileName(s.Base, format.KindLog))
			want := recordsIn(t, file, s.Base)
			if s.Records != want && !s.Estimated || s.Records < want {
				t.Errorf("%s: %d records, want %d (estimated %v)", file, s.Records, want, s.Estimated)
			}
			sum += s.Records
		}
		if p.Records != sum {
			t.Errorf("%s: %d records, its segments have %d", p.Display, p.Records, sum)
		}
	}
}

func TestRealLogDirectoriesAgreeWithDuAndTheirRecords(t *testing.T) {
	var dirs []string
	for _, file := range fixture.Files(t, ".log") {
		dirs = append(dirs, path.Dir(path.Dir(file)))
	}
	slices.Sort(dirs)
	for _, dir := range slices.Compact(dirs) {
		check(t, fixture.Dir(t, dir))
	}
}

// TestRandomTreesAgreeWithDuAndTheirRecords makes log directories of sound segments, odd files, holes, hard links and
// links.
func TestRandomTreesAgreeWithDuAndTheirRecords(t *testing.T) {
	root := t.TempDir()
	rapid.Check(t, func(rt *rapid.T) {
		dir, err := os.MkdirTemp(root, "logs")
		if err != nil {
			rt.Fatal(err)
		}
		write(rt, filepath.Join(dir, "meta.properties"), []byte("version=1\n"), 0)
		names := rapid.SliceOfNDistinct(rapid.StringMatching(`[a-c]{1,2}-[0-9](\.[0-9a-f]{4}-(delete|future|stray))?`), 0, 4,
			rapid.ID).Draw(rt, "dirs")
		for _, name := range names {
			if err := os.Mkdir(filepath.Join(dir, name), 0o755); err != nil {
				rt.Fatal(err)
			}
			randomPartition(rt, filepath.Join(dir, name))
		}
		if rapid.Bool().Draw(rt, "strange") {
			if err := os.MkdirAll(filepath.Join(dir, "lost+found", "x"), 0o755); err != nil {
				rt.Fatal(err)
			}
			write(rt, filepath.Join(dir, "lost+found", "x", "y"), []byte("z"), 70000)
		}
		check(rt, dir)
	})
}

func randomPartition(t *rapid.T, dir string) {
	offset := rapid.Int64Range(0, 1<<40).Draw(t, "base")
	for range rapid.IntRange(0, 4).Draw(t, "segments") {
		base := offset
		var log []byte
		// The large ones are beyond what is read whole.
		value := make([]byte, rapid.SampledFrom([]int{0, 10, 60000}).Draw(t, "value"))
		for range rapid.IntRange(0, 8).Draw(t, "batches") {
			var b fixture.Batch
			for i := range rapid.IntRange(1, 5).Draw(t, "records") {
				b.Records = append(b.Records, fixture.Record{Value: value, Offset: offset + int64(i), TimestampMs: 1700000000000 +
					offset%1000})
			}
			log = fixture.AppendBatch(log, b)
			offset += int64(len(b.Records)) + rapid.Int64Range(0, 3).Draw(t, "gap")
		}
		offset++
		name := filepath.Join(dir, format.SegmentFileName(base, format.KindLog))
		write(t, name, log, rapid.SampledFrom([]int64{0, 1, 1 << 20}).Draw(t, "zeros"))
		write(t, filepath.Join(dir, format.SegmentFileName(base, format.KindOffsetIndex)), nil,
			rapid.SampledFrom([]int64{0, 1 << 16, 10 << 20}).Draw(t, "index"))
		if rapid.Bool().Draw(t, "link") {
			if err := os.Link(name, name+".deleted"); err != nil {
				t.Fatal(err)
			}
		}
	}
	if rapid.Bool().Draw(t, "odd") {
		if err := os.Symlink("../meta.properties", filepath.Join(dir, "notes")); err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(dir, fmt.Sprintf("%020d.snapshot.tmp", offset)), []byte("x"), 0)
	}
}

// write writes a file that ends in a hole.
func write(t *rapid.T, name string, data []byte, hole int64) {
	err := os.WriteFile(name, data, 0o600)
	if err == nil && hole > 0 {
		err = os.Truncate(name, int64(len(data))+hole)
	}
	if err != nil {
		t.Fatal(err)
	}
}
