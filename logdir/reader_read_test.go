//go:build nommap

package logdir

import (
	"bytes"
	"errors"
	"os"
	"syscall"
	"testing"
)

// A page that the device does not give is a fault when it is touched; all others are there.
func TestOnePageThatCannotBeRead(t *testing.T) {
	want := bytes.Repeat([]byte("kafka"), 500_000)
	f := openFile(t, want)
	bad := int64(1<<20) + 2*pageSize
	defer Inject(func(a Access) error {
		if a.Op == "read" && a.Pos >= bad && a.Pos < bad+pageSize {
			return syscall.EIO
		}
		return nil
	})()
	must(t, f.View(func(b []byte) error {
		if !bytes.Equal(b[:bad], want[:bad]) || !bytes.Equal(b[bad+pageSize:], want[bad+pageSize:]) {
			t.Error("the pages before and after it are not what the file has")
		}
		return nil
	}))
	err := f.View(func(b []byte) error { sink2(b[bad+100]); return nil })
	var fault *FaultError
	if !errors.As(err, &fault) || fault.Pos != bad+100 || !errors.Is(err, syscall.EIO) {
		t.Errorf("got %v, want a fault at %d", err, bad+100)
	}
	if len(Failures()) == 0 {
		t.Error("the failure is not noted")
	}
}

// A device that gives nothing is not asked for each page of a large file.
func TestADeviceThatGivesNothing(t *testing.T) {
	f := openFile(t, bytes.Repeat([]byte{1}, 8<<20))
	reads := 0
	defer Inject(func(a Access) error {
		if a.Op == "read" {
			reads++
			return syscall.EIO
		}
		return nil
	})()
	err := f.View(func(b []byte) error { sink2(b[len(b)-1]); return nil })
	if !errors.Is(err, syscall.EIO) || reads > mostRefused+1 {
		t.Errorf("got %v after %d reads", err, reads)
	}
	Failures()
}

// A file that is shorter by the time it is read has what is left; the rest is a fault that says so.
func TestAFileThatBecomesShorterBeforeItIsRead(t *testing.T) {
	f := openFile(t, bytes.Repeat([]byte{1}, 3*int(pageSize)))
	m := &mapping{path: f.Path}
	var err error
	m.file, err = openAt(f.Path)
	must(t, err)
	defer m.file.Close()
	must(t, os.Truncate(f.Path, pageSize+1))
	must(t, m.load(f, 3*pageSize))
	defer free(m.raw)
	m.note(f.Display, true)
	defer m.note(f.Display, false)
	if m.data[pageSize] != 1 || m.data[pageSize+1] != 0 {
		t.Error("the page that the file ends in is not what a mapping would show")
	}
	err = Guard(f.Display, func() error { sink2(m.data[2*pageSize]); return nil })
	if !errors.Is(err, ErrVanished) {
		t.Errorf("got %v, want that the file has become shorter", err)
	}
}
