//go:build oracle

package broker

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"kseg/format"
	"kseg/internal/fixture"
	"kseg/logdir"
	"kseg/state"
)

func (c *cleanTask) line() string {
	fields := []string{c.dir, strconv.FormatInt(c.cleaned, 10), strconv.FormatInt(c.nowMs, 10),
		strconv.FormatInt(c.mapBytes, 10), c.out}
	for _, key := range slices.Sorted(maps.Keys(c.configs)) {
		fields = append(fields, key+"="+c.configs[key])
	}
	return strings.Join(fields, "\t") + "\n"
}

// runKafka has the real cleaner do all tasks in one virtual machine.
func runKafka(t testing.TB, tasks []cleanTask, args ...string) []kafkaRound {
	t.Helper()
	rounds := make([]kafkaRound, len(tasks))
	for i, raw := range askKafka(t, tasks, args...) {
		if err := json.Unmarshal([]byte(raw), &rounds[i]); err != nil {
			t.Fatalf("task %s: %v", tasks[i].line(), err)
		}
	}
	return rounds
}

// askKafka is runKafka, with the answers as they come.
func askKafka(t testing.TB, tasks []cleanTask, args ...string) []string {
	t.Helper()
	var lines []string
	for i := range tasks {
		lines = append(lines, tasks[i].line())
	}
	return fixture.Clean(t, lines, args...)
}

// compare does tasks with both, and returns how many had nothing to clean.
func compare(t *testing.T, tasks []cleanTask) {
	t.Helper()
	wrong, cleaned, stopped := 0, 0, 0
	for i, want := range runKafka(t, tasks) {
		bad := tasks[i].differences(t, &want)
		if want.MessagesRead > 0 {
			cleaned++
		}
		if want.Error != "" {
			stopped++
		}
		if len(bad) > 0 {
			wrong++
			if wrong < 20 {
				t.Errorf("%s  %s", tasks[i].line(), strings.Join(bad, "\n  "))
			}
		}
	}
	t.Logf("%d of %d rounds agree; %d had something to clean, %d stopped", len(tasks)-wrong, len(tasks), cleaned, stopped)
}

// corpusPartitions are all partitions below a folder.
func corpusPartitions(t *testing.T, root string) []string {
	var dirs []string
	err := filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return err
		}
		if logs, _ := filepath.Glob(filepath.Join(path, "*.log")); len(logs) > 0 {
			if _, ok := format.ParsePartitionDir(filepath.Base(path)); ok && !strings.Contains(path, "__cluster_metadata") {
				dirs = append(dirs, path)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return dirs
}

func TestOracleCleanCorpus(t *testing.T) {
	root := os.Getenv("KSEG_ORACLE_CORPUS")
	if root == "" {
		root = filepath.Join(t.TempDir(), "logdirs")
		if err := fixture.Copy(root, "."); err != nil {
			t.Fatal(err)
		}
	}
	var tasks []cleanTask
	for _, dir := range corpusPartitions(t, root) {
		tasks = append(tasks, tasksFor(t, dir)...)
	}
	compare(t, tasks)
}

// TestOracleFreeze asks Kafka for the answers in testdata/rounds.txt and, if KSEG_FREEZE is set, writes them.
func TestOracleFreeze(t *testing.T) {
	var tasks []cleanTask
	root := t.TempDir()
	for _, name := range frozenDirs {
		dir := filepath.Join(root, filepath.FromSlash(name))
		if err := fixture.Copy(dir, name); err != nil {
			t.Fatal(err)
		}
		tasks = append(tasks, tasksFor(t, dir)...)
	}
	out := fmt.Appendf(nil, "%d\n", time.Now().UnixMilli())
	for i, raw := range askKafka(t, tasks) {
		task := tasks[i]
		task.dir, _ = filepath.Rel(root, task.dir)
		out = append(append(append(out, strings.TrimSuffix(task.line(), "\n")...), '\t'), raw...)
		out = append(out, '\n')
	}
	if os.Getenv("KSEG_FREEZE") != "" {
		if err := os.WriteFile(frozenFile, out, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	checkFrozen(t, out)
}

// tasksFor are rounds over one partition: clean up to different offsets, at different times, by different settings.
func tasksFor(t *testing.T, dir string) []cleanTask {
	set, err := logdir.Open([]string{dir}, logdir.Options{})
	if err != nil || set.Operands[0].Partition == nil {
		return nil
	}
	segments := state.Segments(set.Operands[0].Partition)
	if len(segments) < 2 {
		return nil
	}
	now, last := time.Now().UnixMilli(), segments[len(segments)-1].Base
	middle := segments[len(segments)/2].Base + 3
	const day = 86400000
	short := map[string]string{"delete.retention.ms": "1000", "internal.segment.bytes": "20000",
		"index.interval.bytes": "512"}
	tasks := []cleanTask{
		{cleaned: -1, nowMs: now},
		{cleaned: -1, nowMs: now + 2*day, configs: short},
		{cleaned: middle, nowMs: now, configs: short},
		{cleaned: middle, nowMs: now + 400*day, configs: map[string]string{"min.compaction.lag.ms": "36000000",
			"max.compaction.lag.ms": "86400000"}},
		{cleaned: -1, nowMs: now + day/2, configs: map[string]string{"min.compaction.lag.ms": "36000000",
			"max.compaction.lag.ms": "3600000"}},
		{cleaned: last, nowMs: now},
		{cleaned: last + 1<<40, nowMs: now + 2*day, configs: map[string]string{"segment.index.bytes": "64",
			"internal.segment.bytes": "6000",
			"delete.retention.ms":    "0", "index.interval.bytes": "1"}},
		{cleaned: -1, nowMs: now, mapBytes: 24 * 30, configs: map[string]string{"internal.segment.bytes": "9000"}},
	}
	for i := range tasks {
		tasks[i].dir, tasks[i].out, tasks[i].askedMs = dir, "-", now
		if tasks[i].mapBytes == 0 {
			tasks[i].mapBytes = 1 << 16
		}
	}
	return tasks
}

// TestOracleCleanSpeed has both cleaners do a round over a log of KSEG_BENCH_MB megabytes, 64 if that is not set.
func TestOracleCleanSpeed(t *testing.T) {
	dir, size := benchDir(t)
	task := cleanTask{dir: dir, cleaned: -1, nowMs: 1796000000000, askedMs: 1796000000000, mapBytes: 128 << 20, out: "-",
		configs: map[string]string{}}
	kafka := runKafka(t, []cleanTask{task, task}, "time")[1] // the second time it is warm
	start := time.Now()
	bad := task.differences(t, &kafka)
	if took := time.Since(start); len(bad) > 0 {
		t.Error(bad)
	} else {
		t.Logf("%d MB: Kafka's cleaner %d ms, the model %d ms", size>>20, kafka.Ms, took.Milliseconds())
	}
}
