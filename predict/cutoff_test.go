package predict

import (
	"os"
	"path/filepath"
	"testing"

	"kseg/format"
	"kseg/internal/fixture"
)

// TestWhatAFollowerCutOff: what replication took away before is not lost by the next start, though it still lies in
// .deleted files and nowhere else. A real follower cut its log at offset 49, where the leader's epoch began.
func TestWhatAFollowerCutOff(t *testing.T) {
	const at = 49
	for _, led := range []bool{false, true} { // whether the follower knows of that epoch
		root := fixture.Dir(t, "4.4.0/replicas/diverged/b1")
		dir := filepath.Join(root, "t1-0")
		name := filepath.Join(dir, format.SegmentFileName(0, format.KindLog))
		raw, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		s := format.NewScanner(raw, 0, 0)
		pos := int64(0)
		for s.Next() && s.Batch().LastOffset < at {
			pos = s.Batch().End()
		}
		deleted := filepath.Join(dir, format.SegmentFileName(s.Batch().BaseOffset, format.KindLog)+".deleted")
		if err := os.WriteFile(deleted, raw[pos:], 0o644); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, raw[:pos], 0o644); err != nil {
			t.Fatal(err)
		}
		if led {
			epochs := filepath.Join(fixture.View(t, "4.4.0/replicas/truncated/b1"), "t1-0", "leader-epoch-checkpoint")
			text, err := os.ReadFile(epochs)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, filepath.Base(epochs)), text, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		lost := run(t, Options{}, dir)[0].Partitions[0].Lost
		if (len(lost.Ranges) == 0) != led || (len(lost.CutOff) > 0) != led || (lost.Bytes == 0) != led {
			t.Errorf("led by another: %v, %+v", led, lost)
		}
	}
}
