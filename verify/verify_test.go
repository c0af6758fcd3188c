package verify

import (
	"context"
	"errors"
	"fmt"
	"kseg/format"
	"os"
	"path"
	"path/filepath"
	"slices"
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
				if f.Severity > Note && !(strings.HasSuffix(f.Code, "-missing") && strings.HasPrefix(f.Partition,
					"r-no-timestamp")) {
					t.Errorf("%s %s %s @%d: %s", f.Severity, f.Code, f.File, f.Pos, f.Message)
				}
			}
			if len(summary.NotRead) > 0 || summary.Batches == 0 {
				t.Errorf("%d batches read; not read: %v", summary.Batches, summary.NotRead)
			}
		})
	}
}

// Beside a live broker a log may be read just while a batch is written: if it is longer by the time the end is judged,
// the end is no torn one. If it is not, it is.
func TestGrowingLogIsNotTorn(t *testing.T) {
	dir := fixture.Dir(t, "4.4.0/hello/hello-0")
	name := filepath.Join(dir, "00000000000000000000.log")
	whole := fixture.Data(t, "4.4.0/codecs/codec-none-createtime-0/00000000000000000000.log")
	writeFile(t, name, whole[:len(whole)-10])
	grow := func() { writeFile(t, name, whole) }
	for _, c := range []struct {
		during func()
		torn   bool
	}{{func() {}, true}, {grow, false}} {
		found, _ := runOn(t, Options{Level: Headers, Jobs: 1, run: 1000, Progress: func(int64) { c.during() }}, dir)
		torn := slices.ContainsFunc(found, func(f Finding) bool { return f.Code == "torn-tail" })
		if torn != c.torn {
			t.Errorf("torn tail: %v, want %v", torn, c.torn)
		}
	}
}

// What vanishes between listing and reading is not looked for: a partition is what its directory holds when it is read.
func TestVanishedFileIsNotMissed(t *testing.T) {
	for jobs := 1; jobs <= 2; jobs++ {
		dir := fixture.Dir(t, plainBase)
		// A clock of file times may stand still for milliseconds: the removals are to be later than the listing.
		if err := os.Chtimes(dir, time.UnixMilli(1796000000000), time.UnixMilli(1796000000000)); err != nil {
			t.Fatal(err)
		}
		set, err := logdir.Open([]string{dir}, logdir.Options{})
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"00000000000000000000.log", "00000000000000000000.index",
			"00000000000000000000.timeindex"} {
			if err := os.Remove(filepath.Join(dir, name)); err != nil {
				t.Fatal(err)
			}
		}
		var found []string
		summary, err := Run(context.Background(), set, Options{Level: Records, Jobs: jobs, MaxBatchBytes: 1 << 20,
			Now: time.UnixMilli(1796000000000),
			Emit: func(f *Finding) error {
				found = append(found, line(f))
				return nil
			}})
		if err != nil {
			t.Fatal(err)
		}
		if len(summary.NotRead) > 0 || summary.Segments != 3 || len(found) != 1 || !strings.HasPrefix(found[0],
			"note leader-epoch-below-start") {
			t.Errorf("%d jobs: not read %v, found %v", jobs, summary.NotRead, found)
		}
	}
}

// A batch that decompresses to more than is allowed is not read, which is no damage.
func TestTooLargeBatchIsNotRead(t *testing.T) {
	found, summary := runOn(t, Options{Level: Records, MaxBatchBytes: 1000},
		fixture.Dir(t, "4.4.0/codecs/codec-gzip-createtime-0"))
	for _, f := range found {
		if f.Severity > Note {
			t.Errorf("%s: %s", f.Code, f.Message)
		}
	}
	if len(summary.NotRead) == 0 || summary.Verdict() != Incomplete {
		t.Errorf("verdict %s, not read: %v", summary.Verdict(), summary.NotRead)
	}
}

// An interrupt ends a run at once, with any number of jobs.
func TestInterrupt(t *testing.T) {
	for jobs := 1; jobs <= 3; jobs++ {
		set, err := logdir.Open([]string{fixture.Dir(t, "4.4.0/segments-316/clean")}, logdir.Options{})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(context.Background())
		calls := 0
		_, err = Run(ctx, set, Options{Level: Records, Jobs: jobs, MaxBatchBytes: 1 << 20,
			Emit: func(*Finding) error { return nil },
			run:  1, Progress: func(int64) {
				if calls++; calls == 20 {
					cancel()
				}
			}})
		cancel()
		if !errors.Is(err, context.Canceled) || calls > 20+16 {
			t.Errorf("%d jobs: %v after %d runs", jobs, err, calls)
		}
	}
}

// Retention takes segments away from the beginning, and with a restart the snapshot that is left there: what is then
// not known of producers and transactions is no fault.
func TestNoFalseAlarmsAfterRetention(t *testing.T) {
	for _, name := range []string{cleanData1 + "/inventory-0", "4.4.0/logdirs/killed/data1/inventory-0", txnBase,
		"3.7.2/transactions/ledger37-0", compacted + "/users-0"} {
		for _, restarted := range []bool{false, true} {
			t.Run(fmt.Sprint(name, restarted), func(t *testing.T) {
				t.Parallel()
				dir := fixture.Dir(t, name)
				logs, err := filepath.Glob(filepath.Join(dir, "*.log"))
				if err != nil || len(logs) < 2 {
					t.Fatalf("%d segments, %v", len(logs), err)
				}
				for i := range logs[1:] {
					takeSegment(t, logs[i], logs[i+1], restarted)
					found, _ := runOn(t, Options{Level: Records}, dir)
					for _, f := range found {
						if f.Severity > Note {
							t.Errorf("from %s on: %s %s %s @%d: %s", filepath.Base(logs[i+1]), f.Severity, f.Code, f.File, f.Pos, f.Message)
						}
					}
				}
			})
		}
	}
}

// takeSegment removes a segment and its snapshot; that of the next one too if the broker was restarted.
func takeSegment(t *testing.T, log, next string, restarted bool) {
	t.Helper()
	names, err := filepath.Glob(strings.TrimSuffix(log, "log") + "*")
	if err != nil {
		t.Fatal(err)
	}
	if snapshot := strings.TrimSuffix(next, "log") + "snapshot"; restarted {
		names = append(names, snapshot)
	}
	for _, name := range names {
		if err := os.Remove(name); err != nil {
			t.Fatal(err)
		}
	}
}

// With a clean-shutdown marker beside the partition a broker looks at nothing, so that what a crash explains is damage.
func TestCleanShutdownMarkerMakesDamage(t *testing.T) {
	for recipe, code := range map[string]string{"torn-last-batch": "torn-tail", "zero-tail-8k": "zero-tail",
		"zero-tail-5":      "zero-tail",
		"empty-active-log": "log-end-missing"} {
		dir := fixture.Damaged(t, recipe)
		writeFile(t, filepath.Join(filepath.Dir(dir), ".kafka_cleanshutdown"), []byte(`{"version":0,"brokerEpoch":13}`))
		found, _ := runOn(t, Options{Level: Records}, dir)
		if !slices.ContainsFunc(found, func(f Finding) bool { return f.Code == code && f.Severity == Damage }) {
			t.Errorf("%s: no damage %s", recipe, code)
		}
	}
}

// Zeros in the last segment are no loss if the indexes are preallocated, too.
func TestZeroTailOfPreallocatedSegment(t *testing.T) {
	dir := fixture.Damaged(t, "zero-tail-8k")
	for _, name := range []string{"00000000000000000096.index", "00000000000000000096.timeindex"} {
		content, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		writeFile(t, filepath.Join(dir, name), append(content, make([]byte, 240)...))
	}
	found, _ := runOn(t, Options{Level: Records}, dir)
	if len(found) != 1 || found[0].Code != "zero-tail" || found[0].Severity != Note {
		t.Errorf("found %v, want one note", found)
	}
}

// A run that was ended early has not seen everything: without damage it is incomplete, whatever it has found.
func TestStoppedRunIsNotClean(t *testing.T) {
	_, summary := runOn(t, Options{Level: Records, MaxFindings: 1}, fixture.Damaged(t, "torn-last-batch"))
	if !summary.Stopped || summary.Verdict() != Incomplete {
		t.Errorf("stopped %v, verdict %s", summary.Stopped, summary.Verdict())
	}
	_, summary = runOn(t, Options{Level: Records, FailFast: true, Jobs: 2}, fixture.Damaged(t, "two-corruptions"))
	if !summary.Stopped || summary.Verdict() != Damaged || summary.Segments != 1 {
		t.Errorf("stopped %v, verdict %s after %d segments, want damage after the first", summary.Stopped, summary.Verdict(),
			summary.Segments)
	}
}

// A hole of any size is judged without copying it.
func TestLargeHoleTakesNoMemory(t *testing.T) {
	data := make([]byte, 8<<20)
	copy(data, fixture.Data(t, plainBase+"/00000000000000000032.log")[:100])
	allocated := testing.AllocsPerRun(1, func() {
		if _, ok := format.DecodeSpan(data, 0, int64(len(data))); ok {
			t.Error("zeros are taken for a batch")
		}
	})
	if allocated > 4 {
		t.Errorf("%v allocations", allocated)
	}
}

// A mistake of a check spoils the answer about the file it looked at, and no more.
func TestPanicsSpoilOneFile(t *testing.T) {
	usual := checks
	defer func() { checks = usual }()
	boom := Check{Name: "boom", Codes: []Code{{"boom", Note, ""}}}
	for name, hook := range map[string]func(*Check){
		"batch": func(c *Check) {
			c.Batch = func(p *batchPass) {
				if p.batch.BaseOffset == 44 {
					panic("boom")
				}
			}
		},
		"partition": func(c *Check) { c.Partition = func(*partition) { panic("boom") } },
		"logdir":    func(c *Check) { c.LogDir = func(*logDir) { panic("boom") } },
		"set":       func(c *Check) { c.Set = func(*operands) { panic("boom") } },
	} {
		check := boom
		hook(&check)
		checks = append(slices.Clone(usual), &check)
		for jobs := 1; jobs <= 2; jobs++ {
			found, summary := runOn(t, Options{Level: Records, Jobs: jobs, run: 1000}, fixture.Dir(t, path.Dir(plainBase)))
			if len(summary.NotRead) == 0 || !strings.Contains(summary.NotRead[0], "internal error: boom") ||
				summary.Verdict() != Incomplete {
				t.Errorf("%s, %d jobs: not read: %q", name, jobs, summary.NotRead)
			}
			if name == "batch" && (len(summary.NotRead) != 1 || summary.Segments < 4 || summary.Batches < 20) {
				t.Errorf("%d jobs: %d segments, %d batches; found %v, not read %q", jobs, summary.Segments, summary.Batches, found,
					summary.NotRead)
			}
		}
	}
}

// The indexes hold offsets up to 2^31-1 above the base (OffsetIndex), so that one is no overflow.
func TestLastOffsetThatIndexesCanHold(t *testing.T) {
	for above, want := range map[int64]bool{1<<31 - 2: false, 1<<31 - 1: false, 1 << 31: true} {
		dir := filepath.Join(t.TempDir(), "far-0")
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		log := fixture.AppendBatch(nil, fixture.Batch{Records: []fixture.Record{{Offset: 7, TimestampMs: 1}}})
		log = fixture.AppendBatch(log, fixture.Batch{Records: []fixture.Record{{Offset: 7 + above, TimestampMs: 2}}})
		writeFile(t, filepath.Join(dir, "00000000000000000007.log"), log)
		found, _ := runOn(t, Options{Level: Records, Jobs: 1}, dir)
		if got := slices.ContainsFunc(found, func(f Finding) bool { return f.Code == "offset-overflow" }); got != want {
			t.Errorf("%d above the base: overflow %v, want %v", above, got, want)
		}
	}
}
