package verify

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"kseg/internal/fixture"
)

// TestVerdictFollowsFromStart damages log directories at random. What is gone that nothing explains, what the next
// start takes away and what keeps it from loading the partition is damage, however tidy the rest looks.
func TestVerdictFollowsFromStart(t *testing.T) {
	bases := trialBases(t)
	const all, every = 4000, 20
	for i := range all {
		if !fixture.Sampled(i, every) {
			continue
		}
		rng := rand.New(rand.NewPCG(uint64(i), 7))
		c := newTrial(t, rng, filepath.Join(t.TempDir(), "data"), bases[rng.IntN(len(bases))])
		m := fixture.Mutator{Rand: rng, Dir: c.dir}
		for range 1 + rng.IntN(5)/4 {
			m.Step()
		}
		c.did = strings.Join(m.Done, ", ")
		c.verify(t)
		s := c.nextStart(t)
		taken := int64(0)
		for _, r := range s.Lost.Ranges {
			taken += r.Batches
		}
		switch worst := c.worst(); {
		case s.Failure != nil && worst < Damage:
			t.Errorf("%d: not loaded, and no damage: %v\n%s", i, s.Failure, c)
		case taken > 0 && worst < Damage && !strings.Contains(c.did, "leave"):
			t.Errorf("%d: %v are taken, and no damage\n%s", i, s.Lost.Ranges, c)
		case c.gone(t) != nil && worst < Damage && s.Failure == nil:
			t.Errorf("%d: batches are gone, and no damage: %v\n%s", i, c.gone(t), c)
		}
	}
}

var truncation = regexp.MustCompile(`^truncate -s (\d+) (\S+)  # in a copy$`)

// TestOperationsOnCopies does to damaged directories what the next steps advise, and plays through the next start
// before and after: what was intact still is, and no start takes more of it than before.
func TestOperationsOnCopies(t *testing.T) {
	bases := trialBases(t)
	const all, every = 1600, 20
	done := 0
	for i := range all {
		if !fixture.Sampled(i, every) {
			continue
		}
		rng := rand.New(rand.NewPCG(uint64(i), 9))
		c := newTrial(t, rng, filepath.Join(t.TempDir(), "data"), bases[rng.IntN(len(bases))])
		logs, err := filepath.Glob(filepath.Join(c.dir, "*.log"))
		if err != nil {
			t.Fatal(err)
		}
		spoilTail(t, rng, logs[rng.IntN(len(logs))])
		c.verify(t)
		before, start := intactIn(t, c.dir), c.nextStart(t)
		for j := range c.found {
			words := truncation.FindStringSubmatch(c.found[j].Next)
			if words == nil {
				continue
			}
			size, err := strconv.ParseInt(words[1], 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.Truncate(words[2], size); err != nil {
				t.Fatal(err)
			}
			done++
			after := c.nextStart(t)
			if gone := less(before, intactIn(t, c.dir)); len(gone) > 0 {
				t.Errorf("%d: %s takes %v\n%s", i, words[0], gone, c)
			}
			if after.Failure != nil || after.Lost.Offsets() > start.Lost.Offsets() || after.LogEnd < start.LogEnd {
				t.Errorf("%d: after %s a start takes %v (%v), and before %v\n%s", i, words[0], after.Lost.Ranges, after.Failure,
					start.Lost.Ranges, c)
			}
		}
	}
	if done < all/every/10 {
		t.Errorf("only %d operations were advised", done)
	}
}

// spoilTail lets a log end in zeros or in a part of a batch.
func spoilTail(t *testing.T, rng *rand.Rand, name string) {
	t.Helper()
	raw, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	switch n := 1 + rng.IntN(60); {
	case rng.IntN(2) == 0:
		raw = append(raw, make([]byte, 1000*n)...)
	case len(raw) > n:
		raw = raw[:len(raw)-n]
	}
	writeFile(t, name, raw)
}
