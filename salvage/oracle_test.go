//go:build oracle

package salvage

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
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
