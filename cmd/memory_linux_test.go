//go:build !race

// The race detector takes memory of its own, several times that of the program.

package cmd

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"kseg/format"
	"kseg/internal/fixture"
)

// A value that is large only when it is decompressed is held about once, whatever shows it: the peak is
// --max-batch-bytes and 64 MiB.
func TestMemoryIsBounded(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "t-0")
	log := filepath.Join(dir, format.SegmentFileName(0, format.KindLog))
	raw := fixture.AppendBatch(nil, fixture.Batch{Codec: format.CodecZstd, Records: []fixture.Record{
		{TimestampMs: 1_700_000_000_000, Key: []byte("k"), Value: bytes.Repeat([]byte("a"), 40<<20)}}})
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(log, raw, 0o644); err != nil {
		t.Fatal(err)
	}
	for i, line := range []string{
		"dump --records LOG", "dump --records -o json LOG", "dump --records -o table LOG", "dump -o json LOG",
		"dump --records --payload hex LOG",
		"dump --records --payload base64 -o json LOG", "dump --kafka-compat --deep-iteration --print-data-log LOG",
		"explain LOG", "explain -o json LOG", "explain --offset 0 LOG", "explain --offset 0 -o json LOG",
		"lookup --offset 0 --records LOG", "lookup --offset 0 --records -o json LOG",
		"lookup --offset 0 --records -o table LOG",
		"lookup --timestamp 1700000000000 DIR", "lookup --sweep DIR", "density DIR", "verify DIR",
		"verify -o json --jobs 3 DIR",
		"ls --stats --records DIR", "compaction -o json DIR", "retention DIR", "compare --level records DIR DIR",
		"predict DIR", "txn DIR", "salvage --dry-run --output-dir OUT DIR",
	} {
		if !fixture.Sampled(i, 2) {
			continue
		}
		args := strings.Fields(strings.NewReplacer("LOG", log, "DIR", dir, "OUT", filepath.Join(t.TempDir(),
			"new")).Replace(line))
		if c, _, err := Commands().Find(args[:1]); err == nil && c.Flags().Lookup("max-batch-bytes") != nil {
			args = append(args, "--max-batch-bytes", "128MiB")
		}
		var stderr bytes.Buffer
		c := exec.Command("kseg", args...)
		status := filepath.Join(t.TempDir(), "status")
		c.Stderr, c.Env = &stderr, append(os.Environ(), statusFile+"="+status)
		if err := c.Run(); err != nil && c.ProcessState == nil {
			t.Fatal(err)
		}
		said, err := os.ReadFile(status)
		_, after, ok := strings.Cut(string(said), "VmHWM:")
		if err != nil || !ok {
			t.Fatalf("%v: %s", err, said)
		}
		kilobytes, err := strconv.Atoi(strings.Fields(after)[0])
		if err != nil {
			t.Fatal(err)
		}
		peak := kilobytes >> 10
		t.Logf("kseg %s: %d MiB, code %d", line, peak, c.ProcessState.ExitCode())
		if code := c.ProcessState.ExitCode(); peak > 128+64 || code > codeFound {
			t.Errorf("kseg %s: %d MiB, code %d: %s", line, peak, code, &stderr)
		}
	}
}
