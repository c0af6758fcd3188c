package broker

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"kseg/internal/fixture"
)

// offlineDirs are the names of the log directories that go offline.
func offlineDirs(start *Start) []string {
	var names []string
	for _, d := range start.Dirs {
		if d.isOffline() {
			names = append(names, filepath.Base(d.Dir.Path))
		}
	}
	return names
}

// predictRoot predicts the three directories of a broker below a root.
func predictRoot(t *testing.T, root string) *Start {
	t.Helper()
	start, _ := predictDirs(t, filepath.Join(root, "data1"), filepath.Join(root, "data2"), filepath.Join(root, "meta"))
	return start
}

// TestLinksThatLeadNowhere: what a real broker made of a link that leads nowhere, by its name. It passes over most, as
// it does not see them; what it must open or make takes the log directory offline, or keeps it from starting.
func TestLinksThatLeadNowhere(t *testing.T) {
	for name, want := range map[string]string{
		"data2/dangling":                               "",
		"data2/foo-0":                                  "",
		"data2/lost+found":                             "",
		"data2/.kafka_cleanshutdown":                   "",
		"data2/bootstrap.checkpoint":                   "",
		"data2/prices-1":                               "data2",
		"data2/meta.properties":                        "stops",
		"data2/recovery-point-offset-checkpoint":       "data2",
		"data2/log-start-offset-checkpoint":            "data2",
		"data2/replication-offset-checkpoint":          "data2",
		"data2/cleaner-offset-checkpoint":              "data2",
		"data1/prices-0/00000000000000000000.index":    "data1",
		"data1/prices-0/00000000000000009999.index":    "",
		"data1/prices-0/00000000000000009999.log":      "",
		"data1/prices-0/leader-epoch-checkpoint":       "data1",
		"data1/prices-0/partition.metadata":            "",
		"meta/__cluster_metadata-0":                    "stops",
		"meta/__cluster_metadata-0/quorum-state":       "",
		"meta/foo":                                     "",
		"data1/prices-0/00000000000000009999.log.swap": "",

		"data1/prices-0/00000000000000000000.index, to what can be made":     "",
		"data1/prices-0/00000000000000000078.timeindex, to what can be made": "",
		"data1/prices-0/leader-epoch-checkpoint, to what can be made":        "data1",
	} {
		t.Run(strings.ReplaceAll(name, "/", "_"), func(t *testing.T) {
			root := fixture.Dir(t, "4.4.0/logdirs/clean")
			name, canBeMade := strings.CutSuffix(name, ", to what can be made")
			if err := os.RemoveAll(filepath.Join(root, name)); err != nil {
				t.Fatal(err)
			}
			to := "nowhere/at-all"
			if canBeMade {
				to = "made"
			}
			if err := os.Symlink(to, filepath.Join(root, name)); err != nil {
				t.Fatal(err)
			}
			start := predictRoot(t, root)
			got := strings.Join(offlineDirs(start), " ")
			if len(start.Stops) > 0 {
				got = "stops"
			}
			if got != want {
				t.Errorf("%q, want %q: %v", got, want, start.Stops)
			}
		})
	}
}

// TestHighWatermarksThatNobodyReads: a broker reads the checkpoint of the high watermarks of a log directory when it
// serves a partition there or makes one, and does not see that it cannot be read else.
func TestHighWatermarksThatNobodyReads(t *testing.T) {
	for _, c := range []struct {
		name string
		edit func(t *testing.T, root, name string)
		want []string
	}{
		{"served", func(*testing.T, string, string) {}, []string{"data2"}},
		{"made anew", func(t *testing.T, root, name string) { remove(t, root, "data2/"+name) }, []string{"data2"}},
		{"moved away", func(t *testing.T, root, name string) {
			if err := os.Rename(filepath.Join(root, "data2", name), filepath.Join(root, "data1", name)); err != nil {
				t.Fatal(err)
			}
		}, nil},
		{"set aside, and made anew", func(t *testing.T, root, name string) {
			remove(t, root, "data2/"+name+"/partition.metadata")
		}, []string{"data2"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			root := fixture.Dir(t, "4.4.0/logdirs/clean")
			write(t, root, "data2/replication-offset-checkpoint", "1\n0\n")
			names, err := filepath.Glob(filepath.Join(root, "data2", "*-*"))
			if err != nil {
				t.Fatal(err)
			}
			for _, path := range names {
				if info, err := os.Stat(path); err == nil && info.IsDir() {
					c.edit(t, root, filepath.Base(path))
				}
			}
			if got := offlineDirs(predictRoot(t, root)); !slices.Equal(got, c.want) {
				t.Errorf("offline: %v, want %v", got, c.want)
			}
		})
	}
}

// TestHighWatermarksOfANewDisk: two log directories are new, and there is one partition to make: the first gets it
// (LogManager.nextLogDirs), and only its file is read.
func TestHighWatermarksOfANewDisk(t *testing.T) {
	root := fixture.Dir(t, "4.4.0/logdirs/clean")
	for _, name := range []string{"__consumer_offsets-1", "__transaction_state-0", "inventory-1", "prices-1"} {
		if err := os.Rename(filepath.Join(root, "data2", name), filepath.Join(root, "data1", name)); err != nil {
			t.Fatal(err)
		}
	}
	remove(t, root, "data2")
	for _, name := range []string{"data2", "data3"} {
		mkdir(t, root, name)
		write(t, root, name+"/meta.properties", "version=1\nnode.id=1\ncluster.id=AABjb3JwdXMAAAAAAABxpA\n")
	}
	for _, c := range []struct{ file, want string }{{"data2", "data2"}, {"data3", ""}} {
		name := c.file + "/replication-offset-checkpoint"
		write(t, root, name, "1\n0\n")
		start, _ := predictDirs(t, filepath.Join(root, "data1"), filepath.Join(root, "data2"), filepath.Join(root, "data3"),
			filepath.Join(root, "meta"))
		if got := strings.Join(offlineDirs(start), " "); got != c.want {
			t.Errorf("%s: %q is offline, want %q", c.file, got, c.want)
		}
		remove(t, root, name)
	}
}
