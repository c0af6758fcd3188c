package broker

import (
	"compress/gzip"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"kseg/internal/fixture"
	"kseg/logdir"
)

// readGzip is the content of a compressed file of testdata.
func readGzip(t *testing.T, name string) string {
	t.Helper()
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// run is one frozen answer of the real UnifiedLog.create: by file its bytes before and after and whether the content
// changed.
type run struct {
	scenario, shutdown, outcome          string
	recoveryPoint, logStart, interval    int64
	logStartAfter, logEndAfter, segments string
	files                                map[string]string
}

// recoveryRuns are those of testdata/recovery.txt.gz.
func recoveryRuns(t *testing.T) []run {
	var runs []run
	for line := range strings.Lines(readGzip(t, "testdata/recovery.txt.gz")) {
		if name, rest, _ := strings.Cut(strings.TrimSpace(line), " "); name != "run" {
			runs[len(runs)-1].files[name] = rest
			continue
		}
		r := run{files: map[string]string{}}
		if _, err := fmt.Sscanf(line, "run %s %s %d %d %d %s %s %s %s", &r.scenario, &r.shutdown, &r.recoveryPoint,
			&r.logStart, &r.interval, &r.outcome, &r.logStartAfter, &r.logEndAfter, &r.segments); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		runs = append(runs, r)
	}
	return runs
}

// frozenNow is about when the real loader was asked.
var frozenNow = time.Date(2026, 11, 29, 21, 0, 0, 0, time.UTC)

func openPartition(t *testing.T, path string) *logdir.Partition {
	t.Helper()
	set, err := logdir.Open([]string{path}, logdir.Options{})
	if err != nil || set.Operands[0].Partition == nil {
		t.Fatalf("%s: %v", path, err)
	}
	return set.Operands[0].Partition
}

// TestRecoveryOfDamage holds the model to what the real loader made of each damaged partition, in three states: the log
// is recovered from the beginning, from its last segment, and not at all; and to what it made of the partitions of a
// killed broker.
func TestRecoveryOfDamage(t *testing.T) {
	dirs := map[string]*logdir.Partition{}
	for _, r := range recoveryRuns(t) {
		if dirs[r.scenario] == nil && strings.Contains(r.scenario, "/") {
			dirs[r.scenario] = openPartition(t, fixture.Dir(t, "4.4.0/logdirs/"+r.scenario))
		} else if dirs[r.scenario] == nil {
			dirs[r.scenario] = openPartition(t, fixture.Damaged(t, r.scenario))
		}
		got, err := Load(dirs[r.scenario], LoadOptions{Clean: r.shutdown == "clean", RecoveryPoint: r.recoveryPoint,
			LogStart: r.logStart,
			Interval: r.interval, IndexBytes: 65536, ExpiredMs: frozenNow.UnixMilli() - 1<<31, MaxBatchBytes: 1 << 20})
		name := fmt.Sprintf("%s, %s, recovery point %d, interval %d", r.scenario, r.shutdown, r.recoveryPoint, r.interval)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		compareRun(t, name, r, got)
	}
}

func compareRun(t *testing.T, name string, r run, got *Loaded) {
	t.Helper()
	outcome := "loaded"
	if got.Failure != nil {
		outcome = "failed"
	}
	if outcome != r.outcome {
		t.Errorf("%s: %s (%v), the real loader: %s", name, outcome, got.Failure, r.outcome)
		return
	}
	if r.outcome == "loaded" {
		ours := fmt.Sprint(got.LogStart, " ", got.LogEnd, " ", len(got.Segments))
		if want := r.logStartAfter + " " + r.logEndAfter + " " + r.segments; ours != want {
			t.Errorf("%s: log start, end and segments are %s, the real loader's %s", name, ours, want)
		}
	}
	seen := map[string]bool{}
	for _, f := range got.Files {
		ours := size(f.Before) + " " + size(f.After) + " changed"
		if f.Action == Keep && *f.Before == *f.After {
			ours = size(f.Before) + " " + size(f.After) + " same"
		}
		want, listed := r.files[f.Name]
		seen[f.Name] = true
		switch {
		case listed && ours != want:
			t.Errorf("%s: %s: %s (%s), the real loader: %s", name, f.Name, ours, f.Action, want)
		case !listed && f.Action != Keep:
			t.Errorf("%s: %s: %s, the real loader does not touch it", name, f.Name, ours)
		}
	}
	for file, want := range r.files {
		if !seen[file] {
			t.Errorf("%s: %s: nothing, the real loader: %s", name, file, want)
		}
	}
}

func size(n *int64) string {
	if n == nil {
		return "-"
	}
	return fmt.Sprint(*n)
}

// TestPreallocatedFirstSegment: a broker that makes the first segment of an empty log gives it its room at once, and
// takes it for empty all the same.
func TestPreallocatedFirstSegment(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "room-0")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "leader-epoch-checkpoint"), []byte("0\n1\n0 40\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	got, err := Load(openPartition(t, dir), LoadOptions{LogStart: 40, Preallocate: true, SegmentBytes: 4096,
		IndexBytes: 4096, Interval: 4096, MaxBatchBytes: 1 << 20})
	if err != nil || got.Failure != nil || got.LogEnd != 40 {
		t.Errorf("%+v, %v", got, err)
	}
}
