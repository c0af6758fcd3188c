package logdir

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"kseg/format"
)

// openFile writes content to a file that is named like a segment, and opens it.
func openFile(t *testing.T, content []byte) *File {
	t.Helper()
	path := filepath.Join(t.TempDir(), "00000000000000000000.log")
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return openPath(t, path, Options{})
}

func openPath(t *testing.T, path string, opts Options) *File {
	t.Helper()
	set, err := Open([]string{path}, opts)
	if err != nil {
		t.Fatal(err)
	}
	if len(set.Problems) > 0 {
		t.Fatal(set.Problems[0])
	}
	return set.Operands[0].File
}

func TestViewGivesTheBytes(t *testing.T) {
	want := bytes.Repeat([]byte("kafka"), 5000)
	f := openFile(t, want)
	var got []byte
	err := f.View(func(b []byte) error {
		f.Prepare(b)
		got = bytes.Clone(b)
		f.Release(b)
		return nil
	})
	if err != nil || !bytes.Equal(got, want) {
		t.Fatalf("err %v, %d bytes of %d, equal %v", err, len(got), len(want), bytes.Equal(got, want))
	}
	if f.mapping != nil {
		t.Fatal("the mapping outlives the last View")
	}
}

func TestViewOfAnEmptyFile(t *testing.T) {
	f := openFile(t, nil)
	called := false
	err := f.View(func(b []byte) error {
		called = true
		f.Prepare(b)
		f.Release(b)
		if b == nil || len(b) != 0 {
			t.Errorf("got %v, want an empty slice", b)
		}
		return nil
	})
	if err != nil || !called {
		t.Fatalf("err %v, called %v", err, called)
	}
}

func TestViewReturnsTheErrorOfItsFunction(t *testing.T) {
	want := errors.New("mine")
	if err := openFile(t, []byte("x")).View(func([]byte) error { return want }); err != want {
		t.Fatalf("got %v", err)
	}
}

func TestMappingIsReadOnly(t *testing.T) {
	f := openFile(t, []byte("x"))
	err := f.View(func(b []byte) error { b[0] = 'y'; return nil })
	if err == nil {
		t.Fatal("writing to the mapping succeeded")
	}
	if got, _ := os.ReadFile(f.Path); string(got) != "x" {
		t.Fatalf("the file was changed to %q", got)
	}
}

// sink and sink2 keep the compiler from leaving out what is read.
var sink int

//go:noinline
func sink2(byte) {}

func TestOtherPanicsAreErrorsOfTheFile(t *testing.T) {
	f := openFile(t, []byte("x"))
	for name, do := range map[string]func([]byte){
		"index out of range": func(b []byte) { n := 5; sink += int(b[n]) },
		"nil":                func([]byte) { var p *File; sink += int(p.Size) },
		"value":              func([]byte) { panic("index out of range") },
	} {
		t.Run(name, func(t *testing.T) {
			err := f.View(func(b []byte) error { do(b); return nil })
			var p *PanicError
			if !errors.As(err, &p) || !strings.HasPrefix(err.Error(), f.Display+": internal error: ") {
				t.Fatal(err)
			}
			if f.mapping != nil {
				t.Fatal("the mapping outlives the panic")
			}
		})
	}
}

func TestViewsShareOneMapping(t *testing.T) {
	f := openFile(t, []byte("shared"))
	err := f.View(func(a []byte) error {
		return f.View(func(b []byte) error {
			if &a[0] != &b[0] {
				t.Error("two mappings")
			}
			return nil
		})
	})
	if err != nil || f.mapping != nil {
		t.Fatal(err, f.mapping)
	}
}

func TestViewInParallel(t *testing.T) {
	f := openFile(t, []byte("parallel"))
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			for range 50 {
				if err := f.View(func(b []byte) error { sink2(b[7]); return nil }); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if f.mapping != nil {
		t.Fatal("the mapping outlives the last View")
	}
}

func TestViewOfAFileThatIsGoneOrReplaced(t *testing.T) {
	view := func(f *File) error { return f.View(func([]byte) error { return errors.New("called") }) }
	t.Run("gone", func(t *testing.T) {
		f := openFile(t, []byte("x"))
		must(t, os.Remove(f.Path))
		if err := view(f); !errors.Is(err, ErrVanished) || !strings.Contains(err.Error(), "it is gone (it had 1 bytes)") {
			t.Fatal(err)
		}
	})
	t.Run("renamed by retention", func(t *testing.T) {
		f := openFile(t, []byte("x"))
		must(t, os.Rename(f.Path, f.Path+".deleted"))
		if err := view(f); !errors.Is(err, ErrVanished) || !strings.Contains(err.Error(),
			"renamed it to 00000000000000000000.log.deleted") {
			t.Fatal(err)
		}
	})
	t.Run("replaced", func(t *testing.T) {
		f := openFile(t, []byte("x"))
		must(t, os.WriteFile(f.Path+".new", []byte("y"), 0o600))
		must(t, os.Rename(f.Path+".new", f.Path))
		if err := view(f); !errors.Is(err, ErrVanished) || !strings.Contains(err.Error(), "taken its place") {
			t.Fatal(err)
		}
	})
}

func TestViewBeyondTwoGiB(t *testing.T) {
	f := openFile(t, nil)
	const size = 5 << 30
	must(t, os.Truncate(f.Path, size))
	file, err := os.OpenFile(f.Path, os.O_WRONLY, 0)
	must(t, err)
	_, err = file.WriteAt([]byte("end"), size-3)
	must(t, err)
	must(t, file.Close())
	f = openPath(t, f.Path, Options{})
	if f.Size != size || f.Allocated >= 1<<20 {
		t.Fatalf("size %d, allocated %d", f.Size, f.Allocated)
	}
	must(t, f.View(func(b []byte) error {
		f.Prepare(b[3<<30 : 3<<30+4096])
		if string(b[size-3:]) != "end" || b[3<<30] != 0 {
			t.Errorf("got %q", b[size-3:])
		}
		return nil
	}))
}

func TestReadSmall(t *testing.T) {
	f := openFile(t, []byte("0\n0\n"))
	b, err := f.ReadSmall()
	if err != nil || string(b) != "0\n0\n" {
		t.Fatalf("%q, %v", b, err)
	}
	must(t, os.Truncate(f.Path, format.MostSmall+1))
	if _, err := f.ReadSmall(); !errors.Is(err, format.ErrTooLarge) || !strings.Contains(err.Error(),
		"it has 67108865 bytes") {
		t.Fatal(err)
	}
	must(t, os.Truncate(f.Path, 0))
	if b, err := f.ReadSmall(); err != nil || len(b) != 0 {
		t.Fatalf("%q, %v", b, err)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestReadGivesTheBytes(t *testing.T) {
	want := bytes.Repeat([]byte("kafka"), 5000)
	for _, opts := range []Options{{}, {Gentle: NewGentle(0)}} {
		path := filepath.Join(t.TempDir(), "00000000000000000000.log")
		if err := os.WriteFile(path, want, 0o600); err != nil {
			t.Fatal(err)
		}
		f := openPath(t, path, opts)
		err := f.View(func([]byte) error {
			got := make([]byte, 7000)
			for _, pos := range []int64{0, 1, 4096, 18000} {
				if err := f.Read(got, pos); err != nil || !bytes.Equal(got, want[pos:pos+7000]) {
					t.Errorf("at %d: %v, equal %v", pos, err, bytes.Equal(got, want[pos:pos+7000]))
				}
			}
			return f.Read(nil, int64(len(want)))
		})
		if err != nil {
			t.Error(err)
		}
	}
}

// A file that has become shorter says so, in the words of View.
func TestReadOfALostEnd(t *testing.T) {
	f := openFile(t, make([]byte, 10000))
	err := f.View(func([]byte) error {
		if err := os.Truncate(f.Path, 5000); err != nil {
			t.Fatal(err)
		}
		return f.Read(make([]byte, 4000), 3000)
	})
	var fault *FaultError
	if !errors.As(err, &fault) || !errors.Is(err, ErrVanished) || fault.Pos != 5000 || fault.Mapped != 10000 ||
		fault.Now != 5000 {
		t.Errorf("got %v", err)
	}
}

// TestPanicsWhileAFileChanges: what a View sees may be gone at its next look, which is no fault of its code.
func TestPanicsWhileAFileChanges(t *testing.T) {
	f := openFile(t, bytes.Repeat([]byte{9}, 100))
	must(t, os.Chtimes(f.Path, time.Time{}, time.Unix(1, 0)))
	err := f.View(func(b []byte) error {
		n := int(b[50])
		must(t, os.WriteFile(f.Path, make([]byte, 100), 0o600))
		sink += int(b[:int(b[50])+1][n])
		return nil
	})
	if !errors.Is(err, ErrVanished) {
		t.Fatal(err)
	}
}
