package broker

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"kseg/internal/fixture"
)

// frozen reads what real brokers did with the damaged partitions.
func frozen[T any](t *testing.T, name string) []T {
	t.Helper()
	var all []T
	if err := json.Unmarshal(fixture.Golden(t, "damage/"+name), &all); err != nil {
		t.Fatal(err)
	}
	return all
}

// wholeRun is one damaged partition before and after the start of a whole broker without a marker and without a
// recovery point.
type wholeRun struct {
	Scenario string
	Files    []struct {
		File   string
		Before *int64 `json:"bytes_before"`
		After  *int64 `json:"bytes_after_recovery"`
	}
	Folders []string `json:"before"` // of the one entry that is about other folders
}

// afterStart is whether a broker writes the file once it has started: as leader it adds an epoch, and it names the
// topic of a new partition.
func afterStart(name string) bool {
	return name == "leader-epoch-checkpoint" || name == "partition.metadata"
}

// TestWholeBrokerOnDamage holds the model to the files that a whole broker left of each damaged partition.
func TestWholeBrokerOnDamage(t *testing.T) {
	compared := 0
	for _, r := range frozen[wholeRun](t, "broker.json") {
		if r.Folders != nil || r.Scenario == "partition-metadata-missing" {
			continue // set aside: TestSetAside
		}
		recipe, err := fixture.FindRecipe(r.Scenario)
		if err != nil {
			t.Fatal(err)
		}
		interval := int64(256)
		if strings.Contains(recipe.Base, "/txn/") {
			interval = 512
		}
		got, err := Load(openPartition(t, fixture.Damaged(t, r.Scenario)), LoadOptions{Interval: interval, IndexBytes: 65536,
			ExpiredMs: frozenNow.UnixMilli() - 1<<31, MaxBatchBytes: 1 << 20})
		if err != nil || got.Failure != nil {
			t.Errorf("%s: %v, %v; the broker started", r.Scenario, err, got.Failure)
			continue
		}
		ours := map[string]string{}
		for _, f := range got.Files {
			ours[f.Name] = size(f.Before) + " " + size(f.After)
		}
		for _, f := range r.Files {
			if want := size(f.Before) + " " + size(f.After); !afterStart(f.File) && ours[f.File] != want {
				t.Errorf("%s: %s: %q, the broker: %q", r.Scenario, f.File, ours[f.File], want)
			}
			delete(ours, f.File)
			compared++
		}
		for name, what := range ours {
			if what != "- -" {
				t.Errorf("%s: %s: %q, the broker has no such file before or after", r.Scenario, name, what)
			}
		}
	}
	if compared < 1500 {
		t.Errorf("only %d files were compared", compared)
	}
}

// fatalRun is a damaged partition in the first of two log directories of a broker.
type fatalRun struct {
	Scenario string
	Clean    bool     `json:"clean_shutdown_marker"`
	Alive    bool     `json:"broker_alive"`
	LogLines []string `json:"log_lines"`
}

// TestWhatDamageStopsABroker: some damage keeps a broker from starting, other takes the log directory offline.
func TestWhatDamageStopsABroker(t *testing.T) {
	for _, r := range frozen[fatalRun](t, "fatal.json") {
		root := fixture.Dir(t, "4.4.0/logdirs/clean")
		if err := os.CopyFS(filepath.Join(root, "data1", "victim-0"), os.DirFS(fixture.Damaged(t, r.Scenario))); err != nil {
			t.Fatal(err)
		}
		if !r.Clean {
			remove(t, root, "data1/.kafka_cleanshutdown")
		}
		start, _ := predictDirs(t, filepath.Join(root, "data1"), filepath.Join(root, "data2"), filepath.Join(root, "meta"))
		if alive := len(start.Stops) == 0; alive != r.Alive {
			t.Errorf("%s: it starts: %v (%v), the broker: %v", r.Scenario, alive, start.Stops, r.Alive)
		}
		offline := strings.Contains(strings.Join(r.LogLines, "\n"), "Stopping serving logs in dir data1")
		if got := len(start.Dirs[0].Offline) > 0; got != offline {
			t.Errorf("%s: data1 goes offline: %v, the broker: %v", r.Scenario, got, offline)
		}
	}
}

// TestSetAside: a partition without partition.metadata, and one of a topic that the metadata do not know, are loaded
// and set aside; what is on its way to be deleted is left to that, and not recovered.
func TestSetAside(t *testing.T) {
	root := fixture.Dir(t, "4.4.0/logdirs/clean")
	remove(t, root, "data1/.kafka_cleanshutdown")
	gone := "gone-0.1b66cfef9dd94713bf657c8936f9f1ab-delete"
	for name, recipe := range map[string]string{"victim-0": "partition-metadata-missing", "unknown-0": "unknown-file",
		gone: "unknown-file"} {
		if err := os.CopyFS(filepath.Join(root, "data1", name), os.DirFS(fixture.Damaged(t, recipe))); err != nil {
			t.Fatal(err)
		}
	}
	_, found := predictDirs(t, filepath.Join(root, "data1"), filepath.Join(root, "data2"), filepath.Join(root, "meta"))
	for name, end := range map[string]int64{"victim-0": 120, "unknown-0": 120, gone: 0} {
		if got := found[name]; (got.Stray != "") != (name != gone) || got.LogEnd != end || len(got.Segments) != 4 {
			t.Errorf("%s: set aside: %q, ends at %d, %d segments", name, got.Stray, got.LogEnd, len(got.Segments))
		}
	}
}
