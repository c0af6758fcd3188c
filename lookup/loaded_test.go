package lookup

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"kseg/internal/fixture"
	"kseg/logdir"
	"kseg/state"
)

// killedDir makes the log directory of a killed broker with one partition, and spoils the index of a closed segment.
func killedDir(t *testing.T, recoveryPoint string) string {
	t.Helper()
	root := t.TempDir()
	if err := fixture.Copy(filepath.Join(root, "orders-0"), "4.4.0/damage-base/plain/orders-0"); err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string]string{
		"recovery-point-offset-checkpoint":    "0\n1\norders 0 " + recoveryPoint + "\n",
		"meta.properties":                     "version=1\nnode.id=1\ncluster.id=AABrc2VnAAAAAAAAAAAAAQ\n",
		"orders-0/00000000000000000064.index": "\x00\x00\x00\x07\x00\x00\x05\x00",
	} {
		if err := os.WriteFile(filepath.Join(root, name), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

// opened is the partition of a log directory, with what is known of the next start.
func opened(t *testing.T, root string) *Partition {
	t.Helper()
	set, err := logdir.Open([]string{root}, logdir.Options{})
	if err != nil {
		t.Fatal(err)
	}
	partitions, problems := Partitions(set, 1<<20)
	if len(partitions) != 1 || len(problems) > 0 {
		t.Fatalf("%d partitions, %v", len(partitions), problems)
	}
	partitions[0].UseStart(state.OpenCluster(set, nil))
	return partitions[0]
}

// TestLookupAfterUncleanStop: an index that leads astray is made anew if its segment lies above the recovery point, and
// then the lookup goes through the new one; below it the wrong one stays.
func TestLookupAfterUncleanStop(t *testing.T) {
	for recoveryPoint, anew := range map[string]bool{"0": true, "32": true, "64": true, "96": false} {
		p := opened(t, killedDir(t, recoveryPoint))
		sweep, err := p.Sweep(t.Context(), Options{Interval: -1}, nil)
		if err != nil || sweep.Anew != anew || (sweep.Total.Astray() == 0) != anew {
			t.Errorf("recovery point %s: the sweep is %+v, %v", recoveryPoint, sweep.Total, err)
		}
		for offset := int64(64); offset < 96; offset++ {
			r, err := p.LookupOffset(t.Context(), offset, Options{Interval: -1})
			if err != nil {
				t.Fatal(err)
			}
			right := r.Outcome == Found && !r.Wrong()
			if right != (anew || offset < 71) {
				t.Errorf("recovery point %s, offset %d: %v, wrong: %v", recoveryPoint, offset, r.Outcome, r.Wrong())
			}
			told := strings.Contains(strings.Join(r.Notes, " "), "the next start makes")
			if told != (anew && offset >= 71) {
				t.Errorf("recovery point %s, offset %d: %q", recoveryPoint, offset, r.Notes)
			}
		}
	}
}
