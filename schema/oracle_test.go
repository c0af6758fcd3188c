//go:build oracle

package schema

import (
	"bytes"
	"compress/gzip"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"kseg/internal/fixture"
)

var (
	seed   = flag.String("seed", "1", "of the random records that Kafka's classes make")
	freeze = flag.Bool("freeze", false, "write the records and the real tool's output to testdata/schema")
)

// Kafka's own classes write random records of all types and versions, the real tool dumps them, and so do we.
func TestOracleRandomRecords(t *testing.T) {
	out := makeRecords(t, t.TempDir())
	d := NewDecoder()
	for _, dir := range partitions(t, out) {
		t.Run(dir, func(t *testing.T) {
			log, dump := read(t, filepath.Join(out, dir, segmentName)), read(t, filepath.Join(out, dir+".decoded.txt"))
			compareDump(t, d, TopicFor(dir), log, dump)
			if *freeze {
				to := filepath.Join("..", "testdata", "schema", dir)
				writeGzip(t, to+".log.gz", log)
				writeGzip(t, to+".decoded.txt.gz", dump)
			}
		})
	}
}

const segmentName = "00000000000000000000.log"

func makeRecords(t *testing.T, dir string) string {
	out := filepath.Join(dir, "out")
	fixture.CompileJava(t, "oracle/Records.java").Run(t, nil, "Records", *seed, "8", out)
	return out
}

func partitions(t *testing.T, out string) (names []string) {
	entries, err := os.ReadDir(out)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if e.IsDir() && strings.HasPrefix(e.Name(), "__") {
			names = append(names, e.Name())
		}
	}
	return names
}

func read(t *testing.T, file string) []byte {
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func writeGzip(t *testing.T, file string, b []byte) {
	var z bytes.Buffer
	w, _ := gzip.NewWriterLevel(&z, gzip.BestCompression)
	if _, err := w.Write(b); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, z.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
}
