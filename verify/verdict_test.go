package verify

import (
	"math/rand/v2"
	"path/filepath"
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
