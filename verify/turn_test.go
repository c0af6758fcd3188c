package verify

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"kseg/logdir"
)

// What a partition costs does not grow with the files beside it in the log directory: there can be as many of these as
// there are partitions.
func TestPartitionsCostTheSameBesideManyFiles(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "t-0"), 0o755); err != nil {
		t.Fatal(err)
	}
	for i := range 2000 {
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("notes-%d.txt", i)), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	set, err := logdir.Open([]string{dir}, logdir.Options{})
	if err != nil {
		t.Fatal(err)
	}
	d := &driver{opts: &Options{}, set: set, slowWorker: newWorker(&Options{}, nil, nil),
		dirStates: map[*logdir.LogDir]*dirState{}}
	parent := set.Operands[0].LogDir
	var passes []*partition
	allocated := testing.AllocsPerRun(10, func() {
		passes = append(passes, newPartition(d, parent.Partitions[0]))
		passes[len(passes)-1].found(nil, Finding{Code: "unknown-file", Place: inFile("notes-7.txt", 7, 1)})
	})
	if allocated > 100 {
		t.Errorf("%v allocations for a partition", allocated)
	}
	if f := passes[0].findings[0]; f.rank <= len(parent.Partitions[0].Files) {
		t.Errorf("rank %d", f.rank)
	}
}

// A pass is forgotten when it is over.
func TestPassesAreForgotten(t *testing.T) {
	turn := &turn{dir: &logdir.Partition{}}
	d := &driver{slowWorker: newWorker(&Options{}, nil, nil)}
	if first := turn.begin(d); first != turn.begin(d) {
		t.Error("two passes at a time")
	}
	if turn.end(); turn.pass != nil {
		t.Error("the pass is still there")
	}
}
