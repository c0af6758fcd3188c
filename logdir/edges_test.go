package logdir

import (
	"strings"
	"testing"
)

// An offset that no segment begins at is in the one before.
func TestNoSegmentBeginsThere(t *testing.T) {
	o := &opener{bases: []int64{10, 20}}
	for base, want := range map[int64]string{5: "; there are 10", 15: "would be in segment 10",
		25: "would be in segment 20"} {
		if err := o.noSegment(base); !strings.Contains(err.Error(), want) ||
			strings.Contains(err.Error(), "would be") != strings.Contains(want, "would be") {
			t.Errorf("%d: %v", base, err)
		}
	}
}
