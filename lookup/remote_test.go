package lookup

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"kseg/internal/fixture"
	"kseg/logdir"
)

// Of a topic with remote.storage.enable the offsets between the log's start and the first local segment are in remote
// storage; of others they are out of range.
func TestOffsetsInRemoteStorage(t *testing.T) {
	dir := fixture.Dir(t, "4.4.0/damage-base/plain/orders-0")
	if err := os.Remove(filepath.Join(dir, "00000000000000000000.log")); err != nil {
		t.Fatal(err)
	}
	set, err := logdir.Open([]string{dir}, logdir.Options{})
	if err != nil {
		t.Fatal(err)
	}
	partitions, _ := Partitions(set, 1<<20)
	p := partitions[0]
	p.LogStart = 4
	for _, c := range []struct {
		tiered bool
		offset int64
		want   Outcome
	}{{true, 5, Remote}, {true, 3, BelowStart}, {true, 40, Found}, {false, 5, BelowStart}} {
		p.Tiered = c.tiered
		r, err := p.LookupOffset(context.Background(), c.offset, Options{Interval: -1})
		if err != nil || r.Outcome != c.want {
			t.Errorf("tiered %v, offset %d: outcome %d, %v, want %d", c.tiered, c.offset, r.Outcome, err, c.want)
		}
	}
}
