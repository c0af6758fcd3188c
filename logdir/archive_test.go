package logdir

import (
	"archive/tar"
	"bytes"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"

	"kseg/internal/fixture"
)

// tarOf packs a directory under a name of its own.
func tarOf(t *testing.T, dir string) []byte {
	t.Helper()
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	if err := w.AddFS(os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func packed(t *testing.T, plain []byte, wrap func(io.Writer) io.WriteCloser) []byte {
	t.Helper()
	var out bytes.Buffer
	w := wrap(&out)
	if _, err := w.Write(plain); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// contents are the bytes of all files of a set, by their path below the root.
func contents(t *testing.T, root string) map[string]string {
	t.Helper()
	set, err := Open([]string{root}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range set.Problems {
		t.Errorf("%s: %v", root, p)
	}
	all := map[string]string{}
	for _, f := range set.Files() {
		rel := strings.TrimPrefix(f.Path, root+"/")
		if err := f.View(func(b []byte) error { all[rel] = string(b); return nil }); err != nil {
			t.Error(err)
		}
		err := f.Peek(func(p Peek) error {
			b, err := p.Read(make([]byte, p.Size), 0)
			if string(b) != all[rel] {
				t.Errorf("%s: a read differs from the mapping", rel)
			}
			return err
		})
		if err != nil {
			t.Error(err)
		}
	}
	return all
}

// TestArchives: an archive shows what its directory does, byte for byte, however it is compressed.
func TestArchives(t *testing.T) {
	dir := fixture.Dir(t, "4.4.0/logdirs/clean")
	want := map[string]string{}
	for _, sub := range []string{"data1", "data2", "meta"} {
		for name, data := range contents(t, filepath.Join(dir, sub)) {
			want[sub+"/"+name] = data
		}
	}
	plain := tarOf(t, dir)
	for name, data := range map[string][]byte{
		"a.tar":     plain,
		"a.tar.gz":  packed(t, plain, func(w io.Writer) io.WriteCloser { return gzip.NewWriter(w) }),
		"a.tar.lz4": packed(t, plain, func(w io.Writer) io.WriteCloser { return lz4.NewWriter(w) }),
		"a.tar.zst": packed(t, plain, func(w io.Writer) io.WriteCloser { z, _ := zstd.NewWriter(w); return z }),
	} {
		t.Run(name, func(t *testing.T) {
			root := filepath.Join(t.TempDir(), name)
			if err := os.WriteFile(root, data, 0o644); err != nil {
				t.Fatal(err)
			}
			got := contents(t, root)
			if len(got) != len(want) || len(got) == 0 {
				t.Errorf("%d files, want %d", len(got), len(want))
			}
			for name, data := range want {
				if got[name] != data {
					t.Errorf("%s differs", name)
				}
			}
		})
	}
}

// TestSparseArchive: what tar --sparse leaves out is there again.
func TestSparseArchive(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "t-0", "00000000000000000000.index")
	if err := os.Mkdir(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	want := append(make([]byte, 1<<20), []byte("\x00\x00\x00\x07\x00\x00\x01\x00")...)
	f, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteAt(want[1<<20:], 1<<20); err != nil {
		t.Fatal(err)
	}
	f.Close()
	for _, form := range []string{"gnu", "pax"} {
		root := filepath.Join(t.TempDir(), "s.tar")
		if out, err := exec.Command("tar", "--format="+form, "--sparse", "-C", dir, "-cf", root,
			"t-0").CombinedOutput(); err != nil {
			t.Skipf("tar: %v: %s", err, out)
		}
		if got := contents(t, root); got["t-0/00000000000000000000.index"] != string(want) &&
			got["00000000000000000000.index"] != string(want) {
			t.Errorf("%s: %d files", form, len(got))
		}
	}
}

// TestHostileArchives: an archive that is cut off, names places outside of it, or is none, ends in a sentence.
func TestHostileArchives(t *testing.T) {
	plain := tarOf(t, fixture.Dir(t, "4.4.0/logdirs/clean/data1"))
	var outside bytes.Buffer
	w := tar.NewWriter(&outside)
	for _, name := range []string{"../t-0/00000000000000000000.log", "/t-1/00000000000000000000.log",
		"a/../../t-2/00000000000000000000.log"} {
		if err := w.WriteHeader(&tar.Header{Name: name, Typeflag: tar.TypeReg, Mode: 0o644}); err != nil {
			t.Fatal(err)
		}
	}
	w.Close()
	for name, data := range map[string][]byte{"outside.tar": outside.Bytes(), "cut.tar": plain[:len(plain)/3],
		"text.tar.gz": packed(t, []byte("no archive"),
			func(w io.Writer) io.WriteCloser { return gzip.NewWriter(w) })} {
		root := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(root, data, 0o644); err != nil {
			t.Fatal(err)
		}
		set, err := Open([]string{root}, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if len(set.Problems) == 0 && name != "outside.tar" {
			t.Errorf("%s: no problem is told", name)
		}
		for _, f := range set.Files() {
			if err := f.View(func([]byte) error { return nil }); err != nil && name != "cut.tar" {
				t.Error(err)
			}
			if name == "outside.tar" && !strings.HasSuffix(f.Path, "t-1/00000000000000000000.log") {
				t.Errorf("%s is outside of the archive", f.Path)
			}
		}
	}
	if _, _, ok := archived("/etc/passwd"); ok {
		t.Error("a path on disk is taken for one in an archive")
	}
	var _ fs.FileInfo = memberInfo{}
}
