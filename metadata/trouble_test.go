package metadata

import (
	"testing"

	"kseg/state"
)

// A partition without a leader and in-sync replicas has nothing wrong of its own where all brokers of it are down.
func TestNoTroubleOfItsOwn(t *testing.T) {
	p := &state.Partition{Replicas: []int32{1, 2}, Leader: -1}
	if got := trouble(&state.Image{}, p); got != "" {
		t.Error(got)
	}
}
