package logdir

import (
	"archive/tar"
	"bytes"
	"fmt"
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
	for name, data := range codecs(t, plain) {

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
		"text.tar.gz": packed(t, []byte("no archive"), func(w io.Writer) io.WriteCloser { return gzip.NewWriter(w) })} {
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

// TestPassedOver: what of an archive cannot be looked at is said, and the rest is looked at.
func TestPassedOver(t *testing.T) {
	const log = "00000000000000000000.log"
	for name, c := range map[string]struct {
		header tar.Header
		want   string // "" where nothing is said
	}{
		"a link":               {tar.Header{Name: "t-1", Typeflag: tar.TypeSymlink, Linkname: "t-0"}, "tar --dereference"},
		"a link of no concern": {tar.Header{Name: "latest", Typeflag: tar.TypeSymlink, Linkname: "t-0"}, ""},
		"a hard link":          {tar.Header{Name: "t-1/" + log, Typeflag: tar.TypeLink, Linkname: "t-0/" + log}, ""},
		"a hard link to nowhere": {tar.Header{Name: "t-1/" + log, Typeflag: tar.TypeLink, Linkname: "x"},
			"not before it in the archive"},
		"a device":               {tar.Header{Name: "t-1/" + log, Typeflag: tar.TypeChar}, "a device or a pipe"},
		"a way out":              {tar.Header{Name: "../t-1/" + log, Typeflag: tar.TypeReg}, "leads out of the archive"},
		"a file for a directory": {tar.Header{Name: "t-0", Typeflag: tar.TypeReg}, "it is a directory, too"},
		"a directory for a file": {tar.Header{Name: "t-0/" + log, Typeflag: tar.TypeDir},
			"it is a file, and a directory too"},
		"a file in a file": {tar.Header{Name: "t-0/" + log + "/x-0/" + log, Typeflag: tar.TypeReg}, "a directory too"},
		"a deep one": {tar.Header{Name: strings.Repeat("a/", 5000) + log, Typeflag: tar.TypeReg},
			"more than 64 directories"},
		"a sparse one": {tar.Header{Name: "t-1/" + log, Typeflag: tar.TypeGNUSparse, Size: 1 << 40}, "most of them holes"},
	} {
		t.Run(name, func(t *testing.T) {
			var b bytes.Buffer
			w := tar.NewWriter(&b)
			must(t, w.WriteHeader(&tar.Header{Name: "t-0/" + log, Typeflag: tar.TypeReg, Mode: 0o644, Size: 3}))
			_, err := w.Write([]byte("abc"))
			must(t, err)
			if c.header.Typeflag == tar.TypeGNUSparse {
				must(t, w.Flush())
				b.Write(sparseHeader(c.header))
			} else {
				must(t, w.WriteHeader(&c.header))
			}
			must(t, w.Close())
			root := filepath.Join(t.TempDir(), "a.tar")
			must(t, os.WriteFile(root, b.Bytes(), 0o644))
			set, err := Open([]string{root}, Options{})
			must(t, err)
			if c.want == "" && len(set.Problems) > 0 || c.want != "" && (len(set.Problems) != 1 ||
				!strings.Contains(set.Problems[0].Error(), c.want)) {
				t.Errorf("got %v, want %q", set.Problems, c.want)
			}
			if len(set.Files()) == 0 {
				t.Error("the file that can be read is not there")
			}
		})
	}
}

// sparseHeader is that of a GNU sparse member of one hole.
func sparseHeader(h tar.Header) []byte {
	b := make([]byte, tarBlock)
	copy(b, h.Name)
	copy(b[100:], "0000644\x000000000\x000000000\x0000000000000\x0000000000000\x00")
	b[156] = tar.TypeGNUSparse
	copy(b[257:], "ustar  \x00")
	copy(b[386:], "00000000000\x0000000000000\x00") // one part, empty
	b[483] = 0x80                                   // the real size, in base 256
	big := b[484:495]
	for i, size := len(big)-1, h.Size; i >= 0; i, size = i-1, size>>8 {
		big[i] = byte(size)
	}
	copy(b[148:], "        ")
	sum := 0
	for _, c := range b {
		sum += int(c)
	}
	copy(b[148:], fmt.Sprintf("%06o\x00 ", sum))
	return b
}

// TestCutArchives: wherever an archive is cut, it is said, and what is before the cut is listed.
func TestCutArchives(t *testing.T) {
	plain := tarOf(t, fixture.Dir(t, "4.4.0/damage-base/plain"))
	whole := bytes.TrimRight(plain, "\x00")
	end := (len(whole) + tarBlock - 1) / tarBlock * tarBlock
	for cut := 3 * tarBlock; cut < end+2*tarBlock; cut += 300 {
		root := filepath.Join(t.TempDir(), "a.tar")
		must(t, os.WriteFile(root, plain[:cut], 0o644))
		set, err := Open([]string{root}, Options{})
		must(t, err)
		if len(set.Problems) == 0 {
			t.Errorf("cut at byte %d of %d: nothing is said", cut, len(plain))
		}
		if cut > len(plain)/2 && len(set.Files()) == 0 {
			t.Errorf("cut at byte %d of %d: nothing is listed", cut, len(plain))
		}
		for _, f := range set.Files() {
			must(t, f.View(func(b []byte) error { sink2(b[len(b)-1]); return nil }))
		}
	}
}

// codecs are the ways in which an archive may come.
func codecs(t *testing.T, plain []byte) map[string][]byte {
	return map[string][]byte{
		"a.tar":     plain,
		"a.tar.gz":  packed(t, plain, func(w io.Writer) io.WriteCloser { return gzip.NewWriter(w) }),
		"a.tar.lz4": packed(t, plain, func(w io.Writer) io.WriteCloser { return lz4.NewWriter(w) }),
		"a.tar.zst": packed(t, plain, func(w io.Writer) io.WriteCloser { z, _ := zstd.NewWriter(w); return z }),
	}
}

// openBytes opens an archive of these bytes, and reads all that is in it.
func openBytes(t *testing.T, name string, data []byte) *Set {
	t.Helper()
	root := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(root, data, 0o644); err != nil {
		t.Fatal(err)
	}
	set, err := Open([]string{root}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range set.Files() {
		if err := f.View(func([]byte) error { return nil }); err != nil && len(set.Problems) == 0 {
			t.Errorf("%s: %s: %v", name, f.Display, err)
		}
	}
	return set
}

// TestEveryCutOfAnArchive: wherever an archive is cut off, that is said.
func TestEveryCutOfAnArchive(t *testing.T) {
	plain := tarOf(t, fixture.Dir(t, "4.4.0/hello"))
	for name, data := range codecs(t, plain) {
		step := tarBlock
		if name != "a.tar" {
			step = 7 // they are small
		}
		for cut := step; cut < len(data); cut += step {
			set := openBytes(t, name, data[:cut])
			if len(set.Problems) == 0 && (name != "a.tar" || len(bytes.Trim(data[cut-2*tarBlock:cut], "\x00")) > 0) {
				t.Errorf("%s, cut after %d of %d bytes: no problem is told", name, cut, len(data))
			}
		}
	}
}

// TestWhatFollowsAnArchive: archives that were put together are read as one, and what is none is said.
func TestWhatFollowsAnArchive(t *testing.T) {
	first, second := tarOf(t, fixture.Dir(t, "4.4.0/hello")), tarOf(t, fixture.Dir(t, "4.4.0/segments-316/clean"))
	one, other := codecs(t, first), codecs(t, second)
	for name := range one {
		want := len(openBytes(t, name, one[name]).Files()) + len(openBytes(t, name, other[name]).Files())
		set := openBytes(t, name, append(bytes.Clone(one[name]), other[name]...))
		if got := len(set.Files()); got != want || len(set.Problems) > 0 {
			t.Errorf("%s: %d files of %d: %v", name, got, want, set.Problems)
		}
		if set := openBytes(t, name, append(bytes.Clone(one[name]), "what is no archive"...)); len(set.Problems) == 0 {
			t.Errorf("%s: nothing is said of what follows it", name)
		}
	}
}
