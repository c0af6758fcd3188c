//go:build oracle

package compare

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"kseg/internal/fixture"
)

// TestOracleCompacted has Kafka's cleaner work on random logs for one to three rounds. Each copy holds the same as the
// original and as what it was in the round before, but for what a cleaner takes; and if one record of a copy is
// changed, moved or taken away, that one is found.
func TestOracleCompacted(t *testing.T) {
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
	originals, copies, cleaned := make([]string, logs), make([]string, logs), make([]int64, logs)
	for i := range logs {
		originals[i] = filepath.Join(root, "0", fmt.Sprintf("t%d-0", i))
		copies[i], cleaned[i] = originals[i], -1
		fixture.WriteKeyedLog(t, rng, originals[i], nowMs)
	}
	pairs, edits := 0, 0
	for round := 1; round <= 3; round++ {
		nowMs += 1000 * rng.Int64N(200)
		before := append([]string(nil), copies...)
		var tasks []string
		for i, dir := range copies {
			out := filepath.Join(root, strconv.Itoa(round), strconv.Itoa(i))
			tasks = append(tasks, fmt.Sprintf("%s\t%d\t%d\t%d\t%s\tdelete.retention.ms=%d\tinternal.segment.bytes=%d\t"+
				"segment.index.bytes=2000\n", dir,
				cleaned[i], nowMs, 24*(5+rng.Int64N(80)), out, 1000*rng.IntN(100), 2000+rng.IntN(20000)))
			copies[i] = filepath.Join(out, filepath.Base(dir))
		}
		for i, raw := range fixture.Clean(t, tasks) {
			var answer struct {
				CleanedTo int64 `json:"cleaned_to"`
			}
			if err := json.Unmarshal([]byte(raw), &answer); err != nil {
				t.Fatal(err)
			}
			cleaned[i] = max(cleaned[i], answer.CleanedTo)
			for _, other := range []string{originals[i], before[i]} {
				pairs++
				for _, got := range []*Comparison{compareDirs(t, other, copies[i]), swapped(compareDirs(t, copies[i], other))} {
					checkCleaned(t, got, other, copies[i])
				}
			}
			edits += checkEdits(t, rng, originals[i], copies[i])
		}
	}
	t.Logf("%d pairs are compacted copies, %d changes were found", pairs, edits)
}

func checkCleaned(t *testing.T, got *Comparison, original, cleaned string) {
	t.Helper()
	if got.Result != Compacted && got.Result != Identical && got.Result != SameRecords || got.A.Lost+got.B.Lost != 0 ||
		!got.Explained(false) || got.A.Missing != 0 {
		t.Errorf("%s and %s: %s, %d of %d missing are lost, from %d on; at %d %d differ; %d", original, cleaned, got.Result,
			got.B.Lost, got.B.Missing, got.B.FirstLost, got.DivergedAt, got.Differ, got.A.Missing)
	}
}

func checkEdits(t *testing.T, rng *rand.Rand, original, cleaned string) (n int) {
	t.Helper()
	for range 4 {
		scratch, err := os.MkdirTemp("", "edit")
		if err != nil {
			t.Fatal(err)
		}
		defer os.RemoveAll(scratch)
		dir := filepath.Join(scratch, filepath.Base(cleaned))
		if err := os.CopyFS(dir, os.DirFS(cleaned)); err != nil {
			t.Fatal(err)
		}
		e := editAny(t, rng, dir)
		if e == nil {
			continue
		}
		n++
		e.check(t, compareDirs(t, original, dir), original)
	}
	return n
}

// frozenSeed gives a log with aborted and committed transactions, tombstones and an open transaction at its end.
const frozenSeed = 9

// TestOracleFreezeCleaned writes testdata/cleaned if KSEG_FREEZE is set.
func TestOracleFreezeCleaned(t *testing.T) {
	if os.Getenv("KSEG_FREEZE") == "" {
		t.Skip("KSEG_FREEZE is not set")
	}
	root, nowMs := t.TempDir(), int64(1796000000000)
	before := filepath.Join(root, "before", "t-0")
	fixture.WriteKeyedLog(t, rand.New(rand.NewPCG(frozenSeed, 0)), before, nowMs)
	dir := before
	for round := range 2 {
		out := filepath.Join(root, strconv.Itoa(round))
		t.Log(fixture.Clean(t, []string{fmt.Sprintf("%s\t-1\t%d\t2400\t%s\tdelete.retention.ms=1000\t"+
			"internal.segment.bytes=9000\tsegment.index.bytes=2000\n", dir, nowMs+int64(round)*50000, out)}))
		dir = filepath.Join(out, "t-0")
	}
	for name, from := range map[string]string{"before": before, "after": dir} {
		to := filepath.Join("testdata", "cleaned", name, "t-0")
		if err := os.RemoveAll(to); err != nil {
			t.Fatal(err)
		}
		if err := os.MkdirAll(to, 0o755); err != nil {
			t.Fatal(err)
		}
		_, logs := recordsOf(t, from)
		for log, raw := range logs {
			if err := os.WriteFile(filepath.Join(to, filepath.Base(log)), raw, 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// editAny changes, drops or moves a record of a partition that is no control record; nil if there is none to move.
func editAny(t testing.TB, rng *rand.Rand, dir string) *edit {
	t.Helper()
	all, _ := recordsOf(t, dir)
	all = slices.DeleteFunc(all, func(r kept) bool { return !r.data })
	if len(all) == 0 {
		return nil
	}
	return editRecord(t, dir, ways[rng.IntN(len(ways))], all[rng.IntN(len(all))].Offset)
}
