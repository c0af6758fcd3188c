package dump

import (
	"fmt"
	"testing"
)

// The table of java.util.HashMap.computeIfAbsent grows when it is called again with too many keys in it, not by the
// call that adds the key: 13 files leave it at 16 buckets, a second pair of any of them doubles it.
func TestSummaryTableGrowsWithTheNextCall(t *testing.T) {
	var f findings
	for i := range 13 {
		f.add(fmt.Sprintf("/d/%d.log", i), 0, 0)
	}
	if f.table != 16 {
		t.Errorf("%d buckets after 13 files", f.table)
	}
	if f.add("/d/0.log", 1, 3); f.table != 32 || len(f.javaOrder()) != 13 {
		t.Errorf("%d buckets after another pair, %d files", f.table, len(f.javaOrder()))
	}
}
