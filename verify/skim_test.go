package verify

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"kseg/format"
	"kseg/internal/fixture"
	"kseg/logdir"
)

var now = time.UnixMilli(1796000000000)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// shuffledTar packs a directory, its members in an order of chance.
func shuffledTar(t *testing.T, dir string, rng *rand.Rand) []byte {
	t.Helper()
	var names []string
	must(t, filepath.WalkDir(dir, func(p string, _ fs.DirEntry, err error) error {
		names = append(names, p)
		return err
	}))
	rng.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, name := range names {
		info, err := os.Stat(name)
		must(t, err)
		h, err := tar.FileInfoHeader(info, "")
		must(t, err)
		h.Name, err = filepath.Rel(dir, name)
		must(t, err)
		must(t, w.WriteHeader(h))
		if info.Mode().IsRegular() {
			raw, err := os.ReadFile(name)
			must(t, err)
			_, err = w.Write(raw)
			must(t, err)
		}
	}
	must(t, w.Close())
	return out.Bytes()
}

// told is all that a run on an archive says, its place left out.
func told(t *testing.T, archive []byte, level Level) string {
	t.Helper()
	root := filepath.Join(t.TempDir(), "backup")
	must(t, os.WriteFile(root, archive, 0o644))
	var out strings.Builder
	report := NewJSONReport(&out)
	opts := Options{Level: level, Jobs: 2, MaxBatchBytes: 1 << 20, Now: now, Emit: report.Finding}
	set, err := logdir.Open([]string{root}, logdir.Options{Skim: Skim(opts)})
	must(t, err)
	summary, err := Run(context.Background(), set, opts)
	must(t, err)
	must(t, report.Close(&summary))
	return strings.ReplaceAll(out.String(), root, "backup")
}

// TestStreamsTellTheSame: of an archive that passes as a stream is told what is told of the same archive as a file, in
// whatever order its members come, and whatever is damaged.
func TestStreamsTellTheSame(t *testing.T) {
	for i, name := range healthy(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rng := rand.New(rand.NewPCG(7, uint64(i)))
			dir := fixture.Dir(t, name)
			for damaged := range 3 {
				logs, err := filepath.Glob(filepath.Join(dir, "*", "*.log"))
				must(t, err)
				if damaged > 0 && len(logs) > 0 {
					m := fixture.Mutator{Rand: rng, Dir: filepath.Dir(logs[rng.IntN(len(logs))])}
					m.Step()
				}
				if !fixture.Sampled(3*i+damaged, 3) {
					continue
				}
				plain := shuffledTar(t, dir, rng)
				var packed bytes.Buffer
				z := gzip.NewWriter(&packed)
				_, err = z.Write(plain)
				must(t, err)
				must(t, z.Close())
				level := Level(rng.IntN(int(Records) + 1))
				if file, stream := told(t, plain, level), told(t, packed.Bytes(), level); file != stream {
					t.Errorf("at level %s of a file:\n%s\nof a stream:\n%s", LevelNames[level], file, stream)
				}
			}
		})
	}
}

// TestSkimKeepsLittle: of a batch without findings only the header is kept, and hashes of keys until one comes twice.
func TestSkimKeepsLittle(t *testing.T) {
	raw := fixture.AppendBatch(nil, fixture.Batch{Records: []fixture.Record{{TimestampMs: 1700000000000, Key: []byte("a"),
		Value: make([]byte, 5000)}, {Offset: 1, TimestampMs: 1700000000000, Key: []byte("b")}}})
	skim := Skim(Options{Level: Records, MaxBatchBytes: 1 << 20, Now: now})()
	for i, want := range []int64{skimmedHead + 16, skimmedHead + 8, skimmedHead} {
		whole := make([]byte, len(raw))
		copy(whole, skim(slices.Clone(raw)))
		kept := int64(len(bytes.TrimRight(whole, "\x00")))
		if b, err := format.DecodeBatch(whole, 0); err != nil || !b.Valid() || !isSkimmed(&b) || kept > want ||
			kept < want-8 {
			t.Errorf("batch %d: %d bytes are kept, want %d; %v", i, kept, want, err)
		}
	}
	raw[len(raw)-1] ^= 1
	if kept := skim(slices.Clone(raw)); !bytes.Equal(kept, raw) {
		t.Error("a batch with a wrong checksum is not kept as it is")
	}
}
