package broker

import (
	"math"
	"testing"
)

// However many keys are asked for, memory follows from those that there are.
func TestHighestOfMoreThanThereAre(t *testing.T) {
	counts := newOffsetMap(math.MaxInt64, 0)
	for i := range 5000 {
		counts.put(keyHash{a: uint64(i)}, int64(i), true)
	}
	for n, want := range map[int]int{0: 0, 7: 7, 5000: 5000, math.MaxInt: 5000} {
		if got := len(counts.highest(n)); got != want {
			t.Errorf("%d keys of %d", got, n)
		}
	}
}
