//go:build oracle

package salvage

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"kseg/internal/fixture"
)

// What was salvaged is loaded by a real broker's classes, after a clean stop and after another one, with the log end
// that was told and without a change to any log: all damaged partitions of the collection, and random ones.
func TestOracleLoad(t *testing.T) {
	java := fixture.CompileJava(t, filepath.Join("oracle", "Load.java"))
	var dirs, want []string
	add := func(opts Options, paths ...string) {
		res, out := one(t, opts, paths...)
		if res.Err != nil {
			t.Errorf("%v: %v", paths, res.Err)
			return
		}
		dirs = append(dirs, out)
		answer := fmt.Sprintf("%d %d true", res.LogStart, res.LogEnd)
		want = append(want, answer+" "+answer)
	}
	for _, r := range fixture.Recipes(t) {
		add(Options{}, fixture.Damaged(t, r.Name))
		add(Options{Records: true, FixBits: true}, fixture.Damaged(t, r.Name))
	}
	for seed := range mutations {
		dir := fixture.Dir(t, bases[seed%len(bases)])
		mutate(t, dir, rand.New(rand.NewPCG(uint64(seed), 7)))
		add(Options{Records: seed%2 == 0}, dir)
		dir = fixture.Dir(t, bases[seed%len(bases)])
		twoFaults(dir, seed)
		add(Options{Deleted: seed%2 == 0}, dir)
	}
	for _, name := range []string{"4.4.0/compacted/users-0", "4.4.0/internal/__consumer_offsets-0",
		"0.10.2.2/legacy/old-v0-then-v1-0",
		"0.10.2.2/legacy/old-v1-gzip-0", "4.4.0/legacy/mix-0"} {
		add(Options{}, fixture.Dir(t, name))
	}
	lines := strings.NewReader(strings.Join(dirs, "\n") + "\n")
	got := strings.Split(strings.TrimSpace(string(java.Run(t, lines, "Load"))), "\n")
	if len(got) != len(dirs) {
		t.Fatalf("%d answers to %d questions", len(got), len(dirs))
	}
	for i, answer := range got {
		if answer != want[i] {
			t.Errorf("%s: %s, want %s", dirs[i], answer, want[i])
		}
	}
}

// What Kafka's own follower code cuts off random logs is not taken, unless it is asked for, and told.
func TestOracleCutOff(t *testing.T) {
	java := fixture.CompileJava(t, filepath.Join("oracle", "Truncate.java"))
	rng, root := rand.New(rand.NewPCG(5, 6)), t.TempDir()
	var tasks strings.Builder
	var dirs []string
	var ends []int64
	for i := range 60 {
		dir := filepath.Join(root, fmt.Sprintf("t%d-0", i))
		fixture.WriteKeyedLog(t, rng, dir, 1796000000000)
		all := batchesOf(t, dir)
		dirs, ends = append(dirs, dir), append(ends, all[len(all)-1].NextOffset())
		fmt.Fprintf(&tasks, "%s\t%d\n", dir, all[rng.IntN(len(all))].NextOffset())
	}
	answers := strings.Fields(string(java.Run(t, strings.NewReader(tasks.String()), "Truncate")))
	cut := 0
	for i, dir := range dirs {
		left := batchesOf(t, dir)
		deleted, _ := filepath.Glob(filepath.Join(dir, "*.log.deleted"))
		res, out := one(t, Options{}, dir)
		got := []string{}
		if res.Err == nil {
			for _, b := range batchesOf(t, out) {
				got = append(got, string(b.Raw))
			}
		}
		want := []string{}
		for _, b := range left {
			want = append(want, string(b.Raw))
		}
		if res.Err != nil || fmt.Sprint(res.LogEnd) != answers[i] || !slices.Equal(got, want) ||
			slices.ContainsFunc(res.Lost, func(l Lost) bool { return l.Elsewhere }) != (len(deleted) > 0) {
			t.Errorf("%s: %v, to %d, want %s, %d batches of %d; lost %+v", dir, res.Err, res.LogEnd, answers[i], len(got),
				len(want), res.Lost)
		}
		if len(deleted) == 0 {
			continue
		}
		cut++
		if all, _ := one(t, Options{Deleted: true}, dir); all.Err != nil || all.LogEnd != ends[i] {
			t.Errorf("%s: asked for: %v, to %d, want %d", dir, all.Err, all.LogEnd, ends[i])
		}
	}
	t.Logf("%d of %d logs had segments cut off", cut, len(dirs))
}
