package broker

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"kseg/internal/fixture"
)

// dynamicDir is a copy of the log directory of a node whose quorum records its voters. It was formatted with
// --standalone and started once; as formatted it is what is left with fresh.
func dynamicDir(t *testing.T, fresh bool) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS("testdata/dynamic")); err != nil {
		t.Fatal(err)
	}
	if !fresh {
		return dir
	}
	for _, name := range []string{"00000000000000000000.log", "00000000000000000018.snapshot", "leader-epoch-checkpoint",
		"quorum-state", "partition.metadata"} {
		remove(t, dir, "__cluster_metadata-0/"+name)
	}
	return dir
}

const bootstrapSnapshot = "__cluster_metadata-0/00000000000000000000-0000000000.checkpoint"

// TestVoters: whether a real broker finished starting, without controller.quorum.voters where nothing else is said, and
// with nobody to ask but itself.
func TestVoters(t *testing.T) {
	cut := func(n int64) func(t *testing.T, dir string) {
		return func(t *testing.T, dir string) {
			if err := os.Truncate(filepath.Join(dir, bootstrapSnapshot), n); err != nil {
				t.Fatal(err)
			}
		}
	}
	gone := func(t *testing.T, dir string) { remove(t, dir, bootstrapSnapshot) }
	identity := func(text string) func(t *testing.T, dir string) {
		return func(t *testing.T, dir string) {
			write(t, dir, "meta.properties", "version=1\nnode.id=1\ncluster.id=AABjb3JwdXMAAAAAAABxpA\n"+text)
		}
	}
	static := "controller.quorum.voters=1@127.0.0.1:9"
	asks := "controller.quorum.bootstrap.servers=127.0.0.1:9"
	for _, c := range []struct {
		name   string
		fresh  bool
		edit   func(t *testing.T, dir string)
		config string
		starts bool
	}{
		{"as it is", false, func(*testing.T, string) {}, asks, true},
		{"no snapshot", false, gone, asks, true},
		{"an empty snapshot", false, cut(0), asks, true},
		{"formatted", true, func(*testing.T, string) {}, asks, true},
		{"formatted, no snapshot", true, gone, asks, false},
		{"formatted, an empty snapshot", true, cut(0), asks, false},
		{"formatted, without the first batch", true, cut(100), asks, false},
		{"formatted, without the footer", true, cut(419), asks, true},
		{"no metadata log", false, func(t *testing.T, dir string) { remove(t, dir, "__cluster_metadata-0") }, asks, false},
		{"another directory id", false, identity("directory.id=GLfbzf27QQSOtF52pyN9YQ\n"), asks, false},
		{"no directory id", false, identity(""), asks, false},
		{"another directory id, voters in the configuration", false, identity("directory.id=GLfbzf27QQSOtF52pyN9YQ\n"),
			static, false},
		{"voters in the configuration", false, func(*testing.T, string) {}, static, true},
	} {
		dir := dynamicDir(t, c.fresh)
		c.edit(t, dir)
		start, _ := predictWith(t, fmt.Sprintf("process.roles=broker,controller\nnode.id=1\nlog.dirs=%s\n"+
			"listeners=PLAINTEXT://127.0.0.1:8,CONTROLLER://127.0.0.1:9\n%s\n", dir, c.config), dir)
		if got := len(start.Stops) == 0; got != c.starts || start.Unplaced != "" {
			t.Errorf("%s: it starts: %v, %v %q", c.name, got, start.Stops, start.Unplaced)
		}
	}
}

// TestVotersUnknown: where there may be other controllers, a start depends on them.
func TestVotersUnknown(t *testing.T) {
	dir := dynamicDir(t, true)
	remove(t, dir, bootstrapSnapshot)
	start, _ := predictWith(t, "process.roles=controller\nnode.id=1\nlog.dirs="+dir+
		"\ncontroller.quorum.bootstrap.servers=other:9\n", dir)
	if len(start.Stops) > 0 || !strings.Contains(start.Unplaced, "if it is the only one") || !start.MetadataGone() {
		t.Errorf("%v %q", start.Stops, start.Unplaced)
	}
	// A log of which the voters were given in the configuration, once.
	root := fixture.Dir(t, "4.4.0/logdirs/clean")
	meta := filepath.Join(root, "meta")
	start, _ = predictWith(t, "process.roles=controller\nnode.id=1\nlog.dirs="+meta+
		"\ncontroller.quorum.bootstrap.servers=other:9\n", meta)
	if len(start.Stops) != 1 || !strings.Contains(start.Stops[0].Text, "tells the quorum's voters") {
		t.Errorf("%v", start.Stops)
	}
}

// TestSnapshotWithoutABatch: of a snapshot that does not stand for the formatting a node needs the header.
func TestSnapshotWithoutABatch(t *testing.T) {
	for n, starts := range map[int64]bool{0: false, 40: false, 83: true} {
		root := fixture.Dir(t, "4.4.0/logdirs/clean")
		const name = metadataDir + "00000000000000000155-0000000002.checkpoint"
		copyFile(t, root, metadataDir+"00000000000000000000-0000000000.checkpoint", name)
		if err := os.Truncate(filepath.Join(root, name), n); err != nil {
			t.Fatal(err)
		}
		start, _ := predictDirs(t, filepath.Join(root, "meta"))
		if got := len(start.Stops) == 0; got != starts {
			t.Errorf("%d bytes: it starts: %v, %v", n, got, start.Stops)
		}
	}
}

// TestSnapshotsReadAtAStart: what a real broker made of the snapshot that it begins with, cut or changed.
func TestSnapshotsReadAtAStart(t *testing.T) {
	const name = metadataDir + "00000000000000000000-0000000000.checkpoint"
	raw, err := os.ReadFile(filepath.Join(fixture.Dir(t, "4.4.0/logdirs/clean"), name))
	if err != nil {
		t.Fatal(err)
	}
	flipped := func(at int) string {
		out := []byte(string(raw))
		out[at] ^= 1 << (at % 8)
		return string(out)
	}
	check := func(what, content string, starts bool) {
		t.Helper()
		root := fixture.Dir(t, "4.4.0/logdirs/clean")
		write(t, root, name, content)
		start, _ := predictDirs(t, filepath.Join(root, "data1"), filepath.Join(root, "data2"), filepath.Join(root, "meta"))
		if got := len(start.Stops) == 0; got != starts {
			t.Errorf("%s: it starts: %v, %v", what, got, start.Stops)
		}
	}
	for n, starts := range map[int]bool{0: true, 1: false, 16: false, 17: true, 82: true, 83: true, 84: true, 99: true,
		100: true, 200: true, 336: true, 353: true, 410: true} {
		check(fmt.Sprint("cut to ", n), string(raw[:n]), starts)
	}
	for n, starts := range map[int]bool{1: false, 16: false, 17: false, 100: false} {
		check(fmt.Sprint("zeros, ", n), strings.Repeat("\x00", n), starts)
	}
	for at, starts := range map[int]bool{0: true, 7: true, 8: true, 11: false, 12: true, 16: false, 17: false, 60: false,
		83: true, 99: false, 100: false, 336: true, 344: true, 352: false, 410: false} {
		check(fmt.Sprint("a bit at ", at), flipped(at), starts)
	}
	check("no header", string(raw[83:]), false)
	check("no footer", string(raw[:336]), true)
	check("zeros at the end", string(raw)+strings.Repeat("\x00", 50), false)
	check("garbage at the end", string(raw)+strings.Repeat("garbage1", 6), false)
	check("a little garbage at the end", string(raw)+"garbage", true)
	check("twice", string(raw)+string(raw), true)
}
