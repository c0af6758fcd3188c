package salvage

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"kseg/internal/fixture"
)

// Two replicas that parted in an unclean election are no sources for one log, unless it is said which counts.
func TestDivergedReplicas(t *testing.T) {
	dir := fixture.Dir(t, "4.4.0/replicas/diverged")
	for _, line := range strings.Fields(string(fixture.Golden(t, "4.4.0/replicas/truncations.csv")))[1:] {
		name, at, _ := strings.Cut(line, ",")
		a, b := filepath.Join(dir, "b1", name), filepath.Join(dir, "b2", name)
		res, _ := one(t, Options{}, a, b)
		if res.Err == nil || !res.Diverged || fmt.Sprint(res.DivergedAt) != at {
			t.Errorf("%s: %v, diverged at %d, want %s", name, res.Err, res.DivergedAt, at)
		}
		for _, prefer := range []string{a, b} {
			alone, _ := one(t, Options{}, prefer)
			res, _ := one(t, Options{Prefer: prefer}, a, b)
			if res.Err != nil || res.LogEnd != alone.LogEnd || !res.Whole() || res.Records != alone.Records {
				t.Errorf("%s, of %s: %v, %d records to %d, want %d to %d", name, prefer, res.Err, res.Records, res.LogEnd,
					alone.Records, alone.LogEnd)
			}
		}
	}
}

// Of two replicas that are damaged in different batches every record comes back.
func TestDamagedReplicas(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, name := range []string{"t0-0", "t1-0", "t3-0", "__transaction_state-0"} {
		want, _ := one(t, Options{}, filepath.Join(fixture.Dir(t, "4.4.0/replicas/truncated/b1"), name))
		dir := fixture.Dir(t, "4.4.0/replicas/truncated")
		var copies []string
		for i, broker := range []string{"b1", "b2"} {
			path := filepath.Join(dir, broker, name)
			copies = append(copies, path)
			flipBatches(t, path, r, i)
		}
		res, _ := one(t, Options{}, copies...)
		if res.Err != nil || !res.Whole() || res.Records != want.Records || res.LogEnd != want.LogEnd {
			t.Errorf("%s: %v, %d records to %d, want %d to %d; lost %v", name, res.Err, res.Records, res.LogEnd, want.Records,
				want.LogEnd, res.Lost)
		}
	}
}

// flipBatches damages every third batch of each log, beginning with one: bytes that the checksum covers.
func flipBatches(t *testing.T, dir string, r *rand.Rand, from int) {
	t.Helper()
	logs, err := filepath.Glob(filepath.Join(dir, "*.log"))
	if err != nil || len(logs) == 0 {
		t.Fatal("no log")
	}
	for _, name := range logs {
		raw, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for i, pos := 0, 0; pos+61 <= len(raw); i++ {
			size := 12 + int(raw[pos+10])<<8 + int(raw[pos+11])
			if i%3 == from {
				raw[pos+21+r.IntN(size-21)] ^= 1 << r.IntN(8)
			}
			pos += size
		}
		if err := os.WriteFile(name, raw, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
