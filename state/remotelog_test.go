package state

import (
	"testing"

	"kseg/format"
)

// What was copied counts by the leader epochs of the log, from the last one on.
func TestHighestCopied(t *testing.T) {
	epochs := []format.EpochEntry{{Epoch: 0, StartOffset: 0}, {Epoch: 2, StartOffset: 50}, {Epoch: 5, StartOffset: 80}}
	for _, c := range []struct {
		copied copiedTo
		epochs []format.EpochEntry
		want   int64
		any    bool
	}{
		{nil, epochs, 0, false},
		{copiedTo{0: 49, 2: 60}, epochs, 60, true},
		{copiedTo{0: 70}, epochs, 49, true},        // beyond where the epoch ends here
		{copiedTo{2: 90}, epochs, 79, true},        // the same, in the middle
		{copiedTo{5: 200}, epochs, 99, true},       // beyond the end of the log
		{copiedTo{3: 75}, epochs, 0, false},        // of another history
		{copiedTo{0: 30, 3: 75}, epochs, 30, true}, // and with something of this one
		{copiedTo{0: 30, 3: 75}, nil, 75, true},    // no epochs are known
	} {
		if got, any := c.copied.highest(c.epochs, 100); got != c.want || any != c.any {
			t.Errorf("%v: %d %v, want %d %v", c.copied, got, any, c.want, c.any)
		}
	}
}
