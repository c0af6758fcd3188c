package verify

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"kseg/format"
	"kseg/internal/fixture"
	"kseg/logdir"
)

// truncated are directories in which each log is cut: partitions of all kinds.
var truncated = []string{"4.4.0/damage-base/txn", "4.4.0/compacted", "4.4.0/logdirs/killed", "4.4.0/preallocate",
	"0.10.2.2/legacy", "0.9.0.1/legacy", "3.7.2/transactions", "4.4.0/damage-base/plain", "4.4.0/damage-base/zipped",
	"4.4.0/internal", "4.4.0/logdirs/clean", "4.4.0/transactions"}

const (
	noTrace  = "no checkpoint, snapshot or index entry was written after the place before the broker was killed"
	cleaned  = "in a compacted log a missing batch is no loss by itself, and no index entry is after it"
	toBeGone = "the partition is being deleted"
)

// untraced are the logs of which some or all cuts leave nothing that could tell, with the reason.
var untraced = map[string]string{
	"4.4.0/compacted/users-0/00000000000000000000.log":                            cleaned,
	"4.4.0/preallocate/live/prealloc-0/00000000000000000259.log":                  noTrace,
	"4.4.0/logdirs/killed/data1/inventory-0/00000000000000000903.log":             noTrace,
	"4.4.0/logdirs/killed/data2/__transaction_state-0/00000000000000000000.log":   noTrace,
	"4.4.0/logdirs/killed/data1/doomed-0.61ff0ed15c184741a4c8be2748a54102-delete": toBeGone,
	"4.4.0/logdirs/clean/data1/doomed-0.61ff0ed15c184741a4c8be2748a54102-delete":  toBeGone,
}

// Wherever the log of a segment is cut, at a batch or inside of one, closed or not, down to nothing, some witness is
// left and makes a warning at least: an index, the next segment, a snapshot, a checkpoint.
func TestEveryCutLog(t *testing.T) {
	names := truncated
	if testing.Short() {
		names = names[:3]
	}
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			root := fixture.Dir(t, name)
			err := filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
				if logs, _ := filepath.Glob(filepath.Join(path, "*.log")); err == nil && d.IsDir() && len(logs) > 0 {
					rel, _ := filepath.Rel(root, path)
					cutLogs(t, filepath.ToSlash(filepath.Join(name, rel)), path)
				}
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
		})
	}
}

// cutLogs cuts each log of a partition, and reports those cuts that nothing is said of.
func cutLogs(t *testing.T, name, dir string) {
	base := lines(t, dir, nil)
	set, err := logdir.Open([]string{dir}, logdir.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range set.Partitions()[0].Segments {
		content, err := os.ReadFile(s.Log.Path)
		if err != nil {
			t.Fatal(err)
		}
		var silent []int64
		for _, at := range places(content, s.Base) {
			writeFile(t, s.Log.Path, content[:at])
			if !slices.ContainsFunc(lines(t, dir, base), func(text string) bool { return !strings.HasPrefix(text, "note") }) {
				silent = append(silent, at)
			}
		}
		writeFile(t, s.Log.Path, content)
		if len(silent) > 0 && untraced[name] == "" && untraced[name+"/"+s.Log.Rel] == "" {
			t.Errorf("%s/%s: nothing is said of a cut at %v", name, s.Log.Rel, silent)
		}
	}
}

// places are where a log is cut: before its first and last batches and some between, and once inside of a batch.
func places(content []byte, base int64) []int64 {
	var at []int64
	for scan := format.NewScanner(content, 0, base); scan.Next(); {
		if b := scan.Batch(); b != nil {
			at = append(at, b.Pos)
		}
	}
	if len(at) > 8 {
		at = slices.Concat(at[:2], []int64{at[len(at)/2]}, at[len(at)-3:])
	}
	if len(at) > 1 {
		at = append(at, at[1]-5)
	}
	return at
}
