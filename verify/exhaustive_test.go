package verify

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"kseg/format"
	"kseg/internal/fixture"
)

// tiny writes a partition of one segment with three small batches of a codec, taken from a real log and given offsets
// from 0 on, which the checksums leave out. Its indexes are those that a broker with an interval of 1 byte would have
// written.
func tiny(t *testing.T, codec string) string {
	t.Helper()
	data := fixture.Data(t, "4.4.0/codecs/codec-"+codec+"-createtime-0/00000000000000000000.log")
	var log []byte
	offset, n := int64(0), 0
	for s := format.NewScanner(data, 0, 0); s.Next() && n < 3; {
		b := s.Batch()
		if b.Size() > 900 {
			continue
		}
		raw := slices.Clone(b.Raw)
		putInt64(raw, offset)
		log = append(log, raw...)
		offset, n = offset+int64(b.LastOffsetDelta)+1, n+1
	}
	if n < 3 {
		t.Fatalf("%d batches of %s are small enough, 3 are needed", n, codec)
	}
	index := format.NewIndexBuilder(0, 1)
	for s := format.NewScanner(log, 0, 0); s.Next(); {
		if err := index.Add(s.Batch().Ref()); err != nil {
			t.Fatal(err)
		}
	}
	if err := index.Finish(); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "tiny-0")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string][]byte{
		"00000000000000000000.log":            log,
		"00000000000000000000.index":          index.OffsetIndexBytes(),
		"00000000000000000000.timeindex":      index.TimeIndexBytes(),
		fmt.Sprintf("%020d.snapshot", offset): format.AppendProducerSnapshot(nil, nil),
		"leader-epoch-checkpoint":             []byte("0\n1\n0 0\n"),
		"partition.metadata":                  []byte("version: 0\ntopic_id: 2kzhCdWMRGekhmxs3vSlmA"),
	} {
		writeFile(t, filepath.Join(dir, name), content)
	}
	return dir
}

func putInt64(b []byte, v int64) {
	for i := range 8 {
		b[i] = byte(v >> (56 - 8*i))
	}
}

func writeFile(t testing.TB, name string, content []byte) {
	t.Helper()
	if err := os.WriteFile(name, content, 0o644); err != nil {
		t.Fatal(err)
	}
}

// lines are the findings of a directory, those of base left out.
func lines(t testing.TB, dir string, base []string) []string {
	t.Helper()
	found, summary := runOn(t, Options{Level: Records}, dir)
	var texts []string
	for i := range found {
		if text := line(&found[i]); !slices.Contains(base, text) {
			texts = append(texts, text)
		}
	}
	for _, text := range summary.NotRead {
		texts = append(texts, "not read: "+text)
	}
	return texts
}

// everyFlip turns over each bit of the file, one at a time, and returns those that change nothing in what is found, as
// "byte:bit".
func everyFlip(t *testing.T, dir, file string, every int) []string {
	t.Helper()
	base := lines(t, dir, nil)
	name := filepath.Join(dir, file)
	content, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	var unseen []string
	for pos := range content {
		for bit := range 8 {
			if !fixture.Sampled(8*pos+bit, every) {
				continue
			}
			content[pos] ^= 1 << bit
			writeFile(t, name, content)
			if len(lines(t, dir, base)) == 0 {
				unseen = append(unseen, fmt.Sprintf("%d:%d", pos, bit))
			}
			content[pos] ^= 1 << bit
		}
	}
	writeFile(t, name, content)
	return unseen
}

// Each flipped bit of a small segment and of its indexes is found. Of what the checksum leaves out, base offset, length
// and magic are given away by the neighbours and the name of the file, the leader epoch by the neighbours and the epoch
// file.
func TestEveryFlippedBit(t *testing.T) {
	for _, codec := range []string{"none", "gzip", "snappy", "lz4", "zstd"} {
		t.Run(codec, func(t *testing.T) {
			t.Parallel()
			dir := tiny(t, codec)
			if base := lines(t, dir, nil); len(base) > 0 {
				t.Fatalf("not healthy to begin with: %v", base)
			}
			for _, ext := range []string{"log", "index", "timeindex"} {
				if unseen := everyFlip(t, dir, "00000000000000000000."+ext, 24); len(unseen) > 0 {
					t.Errorf("%s: not seen: %s", ext, strings.Join(unseen, " "))
				}
			}
		})
	}
}

// Wherever a log is cut off, even between two batches, its indexes tell.
func TestEveryTruncation(t *testing.T) {
	t.Parallel()
	dir := tiny(t, "lz4")
	name := filepath.Join(dir, "00000000000000000000.log")
	content, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	base := lines(t, dir, nil)
	for n := range content {
		if !fixture.Sampled(n, 2) {
			continue
		}
		writeFile(t, name, content[:n])
		if found := lines(t, dir, base); len(found) != 1 || strings.HasPrefix(found[0], "note") {
			t.Errorf("cut to %d bytes: %v", n, found)
		}
	}
}

// Whichever two batches of a segment change places, there is one damage and nothing else.
func TestEverySwappedPair(t *testing.T) {
	t.Parallel()
	dir := fixture.Dir(t, "4.4.0/damage-base/plain/orders-0")
	base := lines(t, dir, nil)
	name := filepath.Join(dir, "00000000000000000032.log")
	content, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	var batches [][]byte
	for s := format.NewScanner(content, 0, 32); s.Next(); {
		batches = append(batches, s.Batch().Raw)
	}
	for i := range batches {
		for j := range i {
			batches[i], batches[j] = batches[j], batches[i]
			writeFile(t, name, slices.Concat(batches...))
			if found := lines(t, dir, base); len(found) != 1 || !strings.HasPrefix(found[0], "damage") {
				t.Errorf("batches %d and %d: %s", j, i, strings.Join(found, "\n\t"))
			}
			batches[i], batches[j] = batches[j], batches[i]
		}
	}
}
