//go:build oracle

package broker

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"kseg/format"
	"kseg/internal/fixture"
)

// TestOracleCleanRandom cleans random logs in several rounds, each of which goes on with what the one before left.
func TestOracleCleanRandom(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	if text := os.Getenv("KSEG_ORACLE_SEED"); text != "" {
		seed, _ = strconv.ParseUint(text, 10, 64)
	}
	t.Logf("KSEG_ORACLE_SEED=%d", seed)
	logs := 150
	if text := os.Getenv("KSEG_ORACLE_LOGS"); text != "" {
		logs, _ = strconv.Atoi(text)
	}
	rng, root, nowMs := rand.New(rand.NewPCG(seed, 0)), t.TempDir(), time.Now().UnixMilli()
	tasks := make([]cleanTask, logs)
	for i := range tasks {
		dir := filepath.Join(root, "0", fmt.Sprintf("t%d-0", i))
		end := fixture.WriteKeyedLog(t, rng, dir, nowMs)
		tasks[i] = cleanTask{dir: dir, cleaned: -1, nowMs: nowMs, mapBytes: 24 * (5 + rng.Int64N(80)), askedMs: nowMs,
			configs: map[string]string{
				"delete.retention.ms": strconv.Itoa(1000 * rng.IntN(100)), "internal.segment.bytes": strconv.Itoa(2000 +
					rng.IntN(20000)),
				"index.interval.bytes": strconv.Itoa(rng.IntN(3000)), "segment.index.bytes": strconv.Itoa(200 + rng.IntN(2000))}}
		if rng.IntN(3) == 0 {
			tasks[i].configs["min.compaction.lag.ms"] = strconv.Itoa(1000 * rng.IntN(4000))
		}
		if rng.IntN(4) == 0 {
			tasks[i].configs["high.watermark"] = strconv.FormatInt(end-rng.Int64N(25), 10)
		}
		if rng.IntN(3) == 0 {
			tasks[i].configs["max.compaction.lag.ms"] = strconv.Itoa(4000_000 + 1000*rng.IntN(4000))
		}
	}
	wrong, rounds := 0, 0
	for round := 1; round <= 6; round++ {
		for i := range tasks {
			tasks[i].out = filepath.Join(root, strconv.Itoa(round), strconv.Itoa(i))
		}
		answers := runKafka(t, tasks)
		for i := range tasks {
			task := &tasks[i]
			rounds++
			if bad := task.differences(t, &answers[i]); len(bad) > 0 {
				if keep := os.Getenv("KSEG_ORACLE_KEEP"); keep != "" {
					_ = os.CopyFS(filepath.Join(keep, fmt.Sprintf("r%d-%d", round, i), filepath.Base(task.dir)), os.DirFS(task.dir))
				}
				if wrong++; wrong < 12 {
					t.Errorf("round %d, log %d: %s  %s", round, i, task.line(), strings.Join(bad, "\n  "))
				}
			}
			task.dir = filepath.Join(task.out, filepath.Base(task.dir))
			task.nowMs += 1000 * rng.Int64N(200)
			task.cleaned = answers[i].CleanedTo
			if rng.IntN(3) == 0 {
				task.cleaned = -1 // the checkpoint was lost: all is dirty again
			}
		}
	}
	t.Logf("%d of %d rounds agree", rounds-wrong, rounds)
}

// TestOracleCleanRecovered damages random logs and has them cleaned after a start that recovers them, and cuts.
func TestOracleCleanRecovered(t *testing.T) {
	rng, root, nowMs := rand.New(rand.NewPCG(uint64(environment("KSEG_ORACLE_SEED", 3)), 0)), t.TempDir(),
		time.Now().UnixMilli()
	tasks := make([]cleanTask, environment("KSEG_ORACLE_LOGS", 150))
	for i := range tasks {
		parent := filepath.Join(root, strconv.Itoa(i))
		dir := filepath.Join(parent, "t-0")
		end := fixture.WriteKeyedLog(t, rng, dir, nowMs)
		logs, _ := filepath.Glob(filepath.Join(dir, "*.log"))
		for range 1 + rng.IntN(2) {
			name := logs[rng.IntN(len(logs))]
			raw, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			if at := rng.IntN(len(raw) + 1); at == len(raw) || rng.IntN(4) == 0 {
				raw = raw[:at]
			} else {
				raw[at] ^= 1 << rng.IntN(8)
			}
			write(t, dir, filepath.Base(name), string(raw))
		}
		point := strconv.FormatInt(format.ParseFileName(filepath.Base(logs[rng.IntN(len(logs))])).Base*rng.Int64N(2), 10)
		write(t, parent, "meta.properties", "version=1\nnode.id=1\n")
		write(t, parent, "recovery-point-offset-checkpoint", "0\n1\nt 0 "+point+"\n")
		tasks[i] = cleanTask{dir: dir, cleaned: -1, nowMs: nowMs, mapBytes: 24 * 60, askedMs: nowMs, out: "-",
			configs: map[string]string{"unclean": point, "delete.retention.ms": "1000", "internal.segment.bytes": "9000",
				"segment.index.bytes": "2000"}}
		if i%3 == 0 {
			tasks[i].configs["high.watermark"] = strconv.FormatInt(end-int64(i), 10)
		}
	}
	compare(t, tasks)
}
