//go:build !race

// The race detector takes memory of its own, several times that of the program.

package cmd

import (
	"bytes"
	"encoding/binary"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"kseg/format"
	"kseg/internal/fixture"
)

// shape is a batch that is large, if only when it is decompressed.
type shape struct {
	name    string
	codec   format.Codec
	count   int
	records func() []byte
}

// plain makes count records that are alike.
func plain(count int, r format.Record) func() []byte {
	return func() (body []byte) {
		for i := range count {
			body = format.AppendRecord(body, &r, 0, int32(i))
		}
		return body
	}
}

// shapes are the kinds of batches that memory could be lost to.
func shapes() []shape {
	letters, random := bytes.Repeat([]byte("a"), 120<<20), make([]byte, 64<<20)
	chance := rand.NewChaCha8([32]byte{1})
	_, _ = chance.Read(random)
	name := binary.AppendVarint(nil, int64(len(letters)))
	return []shape{
		{"value", format.CodecZstd, 1, plain(1, format.Record{Key: []byte("k"), Value: letters})},
		{"key", format.CodecZstd, 1, plain(1, format.Record{Key: letters[:40<<20], Value: []byte("v")})},
		{"headers", format.CodecGzip, 1, plain(1, format.Record{Key: []byte("k"), HeaderCount: 5_000_000,
			Headers: bytes.Repeat([]byte{2, 'h', 1}, 5_000_000)})},
		{"header's name", format.CodecLZ4, 1, plain(1, format.Record{Key: []byte("k"), HeaderCount: 1,
			Headers: append(append(name, letters...), 1)})},
		{"records", format.CodecZstd, 200_000, plain(200_000, format.Record{Key: []byte("k"), Value: []byte("value")})},
		{"random bytes", format.CodecNone, 1, plain(1, format.Record{Key: []byte("k"), Value: random})},
		{"control bytes", format.CodecZstd, 1, plain(1, format.Record{Key: []byte("k"), Value: make([]byte, 120<<20)})},
	}
}

// segment is the batch as a whole log.
func (s *shape) segment(t *testing.T, attributes int16) []byte {
	var c format.Compressor
	body, err := c.Compress(s.codec, s.records())
	if err != nil {
		t.Fatal(err)
	}
	return format.AppendBatch(nil, &format.Batch{Attributes: attributes | int16(s.codec),
		LastOffsetDelta: int32(s.count - 1), BaseTimestamp: 1_700_000_000_000, MaxTimestamp: 1_700_000_000_000,
		ProducerID: -1, ProducerEpoch: -1, BaseSequence: -1, Count: int32(s.count)}, body)
}

// A batch that is large only when it is decompressed is held about once, whatever shows it: the peak is
// --max-batch-bytes and 64 MiB.
func TestMemoryIsBounded(t *testing.T) {
	const bound = 128 + 64
	n := 0
	for i, s := range shapes() {
		if !fixture.Sampled(i, 100) {
			continue
		}
		t.Run(s.name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "data")
			raw := s.segment(t, 0)
			names := []string{"t-0", "__consumer_offsets-0", "__transaction_state-0", "__cluster_metadata-0",
				"__remote_log_metadata-0", "__share_group_state-0"}
			if s.codec == format.CodecNone {
				names = names[:1] // mapped bytes count, though the kernel takes them back
			}
			for _, name := range names {
				writeFile(t, filepath.Join(dir, name, format.SegmentFileName(0, format.KindLog)), raw)
			}
			state := filepath.Join(dir, "t-0", "partition.metadata")
			writeFile(t, state, []byte("version: 0\ntopic_id: lDWUMb2FFxDYSQgbzl4keA\n"))
			report := filepath.Join(t.TempDir(), "report.ndjson")
			var out bytes.Buffer
			Main([]string{"verify", "--output", "json", dir}, strings.NewReader(""), &out, io.Discard)
			writeFile(t, report, out.Bytes())
			for _, line := range everyLine(t, func() *strings.Replacer {
				out := t.TempDir()
				return strings.NewReplacer("DIR", dir, "TWIN", dir, "PARTITION", filepath.Join(dir, "t-0"), "LOG",
					filepath.Join(dir, "t-0", format.SegmentFileName(0, format.KindLog)), "STATE", state, "REPORT", report, "OUT",
					filepath.Join(out, "new"), "PAGE", filepath.Join(out, "page"))
			}) {
				if n++; !fixture.Sampled(n, 150) {
					continue
				}
				c, _, err := Commands().Find(line)
				if err != nil {
					t.Fatal(err)
				}
				if c.Flags().Lookup("max-batch-bytes") != nil {
					line = append(line, "--max-batch-bytes", "128MiB")
				}
				peak, code, stderr := peakOf(t, line)
				t.Logf("%d MiB, code %d: kseg %q", peak, code, line)
				refused := code == codeUsage && !strings.Contains(stderr, " -o ") // there is no such page or plan in that form
				if peak > bound || refused || strings.Contains(stderr, "internal error") {
					t.Errorf("kseg %q: %d MiB, code %d: %s", line, peak, code, stderr)
				}
			}
		})
	}
}

func writeFile(t *testing.T, name string, content []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, content, 0o644); err != nil {
		t.Fatal(err)
	}
}

// peakOf runs kseg as a process, and returns the most MiB that it had.
func peakOf(t *testing.T, args []string) (mib, code int, stderr string) {
	t.Helper()
	var said bytes.Buffer
	c := exec.Command("kseg", args...)
	status := filepath.Join(t.TempDir(), "status")
	c.Stderr, c.Env = &said, append(os.Environ(), statusFile+"="+status)
	if err := c.Run(); err != nil && c.ProcessState == nil {
		t.Fatal(err)
	}
	lines, err := os.ReadFile(status)
	_, after, ok := strings.Cut(string(lines), "VmHWM:")
	if err != nil || !ok {
		t.Fatalf("%v: %s%s", err, lines, &said)
	}
	kilobytes, err := strconv.Atoi(strings.Fields(after)[0])
	if err != nil {
		t.Fatal(err)
	}
	return kilobytes >> 10, c.ProcessState.ExitCode(), said.String()
}
