//go:build oracle

package lookup

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"kseg/internal/fixture"
)

// TestOracleLookupAfterUncleanStop spoils the indexes of killed directories, lets the real loader load a copy, and
// looks every offset up in both: where the start makes an index anew the answers are the same.
func TestOracleLookupAfterUncleanStop(t *testing.T) {
	java := fixture.CompileJava(t, "../broker/oracle/Loads.java")
	rng := rand.New(rand.NewPCG(1, 2))
	var input strings.Builder
	var roots []string
	for range 60 {
		root := killedDir(t, []string{"0", "32", "64", "96"}[rng.IntN(4)])
		raw, err := os.ReadFile(filepath.Join(root, "recovery-point-offset-checkpoint"))
		if err != nil {
			t.Fatal(err)
		}
		name := filepath.Join(root, "orders-0", []string{"00000000000000000032.index", "00000000000000000064.index",
			"00000000000000000064.timeindex", "00000000000000000032.timeindex"}[rng.IntN(4)])
		spoiled, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for range 1 + rng.IntN(3) {
			spoiled[rng.IntN(len(spoiled))] ^= 1 << rng.IntN(8)
		}
		if err := os.WriteFile(name, spoiled, 0o644); err != nil {
			t.Fatal(err)
		}
		if err := os.CopyFS(root+"-loaded", os.DirFS(root)); err != nil {
			t.Fatal(err)
		}
		fmt.Fprintln(&input, filepath.Join(root+"-loaded", "orders-0"), "unclean", strings.Fields(string(raw))[4], 0, 256,
			65536)
		roots = append(roots, root)
	}
	java.Run(t, strings.NewReader(input.String()), "Loads")
	asked, agree := 0, 0
	for _, root := range roots {
		before, after := opened(t, root), opened(t, root+"-loaded")
		for offset := int64(30); offset < 120; offset++ {
			a, err := before.LookupOffset(t.Context(), offset, Options{Interval: -1})
			if err != nil {
				t.Fatal(err)
			}
			b, err := after.lookupOffset(t.Context(), offset, Options{Interval: -1})
			if err != nil {
				t.Fatal(err)
			}
			asked++
			if a.Outcome != b.Outcome || a.Wrong() != b.Wrong() || a.last().Scan.Hit != b.last().Scan.Hit {
				t.Errorf("%s: offset %d: %v at %v, and after the start %v at %v", root, offset, a.Outcome, a.last().Scan.Hit,
					b.Outcome, b.last().Scan.Hit)
			} else {
				agree++
			}
		}
	}
	t.Logf("%d of %d lookups agree", agree, asked)
}
