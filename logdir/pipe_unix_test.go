//go:build !windows

package logdir

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func TestPipesAreNeverWaitedFor(t *testing.T) {
	root := tree(t, "orders-0/"+base0+".index")
	must(t, syscall.Mkfifo(filepath.Join(root, "orders-0", base0+".log"), 0o600))
	must(t, syscall.Mkfifo(filepath.Join(root, "pipe"), 0o600))
	set := open(t, Options{}, filepath.Join(root, "pipe"), filepath.Join(root, "orders-0"))
	if len(set.Problems) != 1 || !strings.Contains(set.Problems[0].Error(), "it is a named pipe") {
		t.Errorf("%v", set.Problems)
	}
	err := set.Partitions()[0].Segments[0].Log.View(func([]byte) error { return nil })
	if err == nil || !strings.Contains(err.Error(), "it is a named pipe") {
		t.Error(err)
	}
}

func TestAFileThatAPipeHasReplaced(t *testing.T) {
	f := openFile(t, []byte("x"))
	must(t, os.Remove(f.Path))
	must(t, syscall.Mkfifo(f.Path, 0o600))
	if err := f.View(func([]byte) error { return errors.New("called") }); !errors.Is(err, ErrVanished) {
		t.Fatal(err)
	}
}
