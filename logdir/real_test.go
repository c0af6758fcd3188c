package logdir_test

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"kseg/format"
	"kseg/internal/fixture"
	"kseg/logdir"
)

// realDirs are all directories below testdata/logdirs that hold a partition's files or a log directory.
func realDirs(t *testing.T) (partitions, logDirs []string) {
	t.Helper()
	root := filepath.Join(fixture.Root(t), "logdirs")
	must(t, filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return err
		}
		// segments-316 is the name of a case, not a partition.
		if _, ok := format.ParsePartitionDir(d.Name()); ok && d.Name() != "segments-316" {
			partitions = append(partitions, path)
			if parent := filepath.Dir(path); !slices.Contains(logDirs, parent) {
				logDirs = append(logDirs, parent)
			}
		}
		return nil
	}))
	if len(partitions) < 50 || len(logDirs) < 10 {
		t.Fatalf("only %d partitions in %d log directories", len(partitions), len(logDirs))
	}
	return partitions, logDirs
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// filesBelow are the paths of all files at most so many levels down, sorted.
func filesBelow(t *testing.T, dir string, levels int) []string {
	t.Helper()
	var paths []string
	entries, err := os.ReadDir(dir)
	must(t, err)
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		switch {
		case !e.IsDir():
			paths = append(paths, path)
		case levels > 0:
			paths = append(paths, filesBelow(t, path, levels-1)...)
		}
	}
	slices.Sort(paths)
	return paths
}

// checkFound opens dir and demands that each file in it is found once, with its bytes.
func checkFound(t *testing.T, dir string, levels int) *logdir.Set {
	t.Helper()
	set, err := logdir.Open([]string{dir}, logdir.Options{})
	must(t, err)
	for _, p := range set.Problems {
		t.Error(p)
	}
	var paths []string
	for _, f := range set.Files() {
		paths = append(paths, f.Path)
		want, err := os.ReadFile(f.Path)
		must(t, err)
		must(t, f.View(func(b []byte) error {
			if !bytes.Equal(b, want) || int64(len(b)) != f.Size {
				t.Errorf("%s: the bytes differ", f.Display)
			}
			return nil
		}))
		if filepath.Join(dir, f.Rel) != f.Path || f.Display != f.Path {
			t.Errorf("%s is called %s and %s", f.Path, f.Rel, f.Display)
		}
	}
	slices.Sort(paths)
	if diff := cmp.Diff(filesBelow(t, dir, levels), paths); diff != "" {
		t.Errorf("%s (-there +found):\n%s", dir, diff)
	}
	return set
}

func TestRealLogDirectories(t *testing.T) {
	partitions, logDirs := realDirs(t)
	for _, dir := range logDirs {
		set := checkFound(t, dir, 1)
		if len(set.LogDirs()) != 1 || len(set.Partitions()) == 0 {
			t.Errorf("%s: %d log directories, %d partitions", dir, len(set.LogDirs()), len(set.Partitions()))
		}
	}
	for _, dir := range partitions {
		set := checkFound(t, dir, 0)
		if len(set.Partitions()) != 1 || !set.Partitions()[0].Named {
			t.Errorf("%s: %d partitions", dir, len(set.Partitions()))
			continue
		}
		p := set.Partitions()[0]
		logs := 0
		for _, f := range p.Files {
			if strings.HasSuffix(f.Path, ".log") {
				logs++
			}
		}
		if len(p.Segments) != logs {
			t.Errorf("%s: %d segments of %d logs", dir, len(p.Segments), logs)
		}
	}
}

func TestOpeningChangesNothing(t *testing.T) {
	dir := fixture.Dir(t, "4.4.0/hello")
	must(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			err = os.Chmod(path, 0o555)
		}
		return err
	}))
	t.Cleanup(func() {
		_ = filepath.WalkDir(dir, func(path string, _ fs.DirEntry, _ error) error { return os.Chmod(path, 0o755) })
	})
	before := state(t, dir)
	set := checkFound(t, dir, 1)
	for _, f := range set.Files() {
		_, err := f.ReadSmall()
		must(t, err)
		f.Sibling(format.KindTxnIndex)
		f.Parent()
	}
	if diff := cmp.Diff(before, state(t, dir)); diff != "" {
		t.Error(diff)
	}
}

// state is what can be seen of a directory from outside.
func state(t *testing.T, dir string) map[string]string {
	t.Helper()
	seen := map[string]string{}
	must(t, filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := os.Lstat(path)
		if err == nil {
			seen[path] = info.Mode().String() + info.ModTime().String()
		}
		if err == nil && info.Mode().IsRegular() {
			var content []byte
			content, err = os.ReadFile(path)
			seen[path] += string(content)
		}
		return err
	}))
	return seen
}
