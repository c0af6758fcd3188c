package schema

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"io"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"kseg/internal/fixture"
)

// testdata/schema has segments with random records of every type and version, made by Kafka's own classes, and broken
// variants of them, with what the real tool prints of each (see oracle/Records.java).
func TestFrozenRecordsLikeTheRealTool(t *testing.T) {
	d := NewDecoder()
	for _, file := range frozenLogs(t) {
		dir := strings.TrimSuffix(filepath.Base(file), ".log.gz")
		t.Run(dir, func(t *testing.T) {
			dump := gunzip(t, strings.TrimSuffix(file, ".log.gz")+".decoded.txt.gz")
			if n := compareDump(t, d, TopicFor(dir), gunzip(t, file), dump); n < 50 {
				t.Errorf("only %d records", n)
			}
		})
	}
}

func frozenLogs(t testing.TB) []string {
	files, err := filepath.Glob(filepath.Join(fixture.Root(t), "schema", "*.log.gz"))
	if err != nil || len(files) < 6 {
		t.Fatalf("%d logs in testdata/schema, want 6; %v", len(files), err)
	}
	return files
}

func gunzip(t testing.TB, file string) []byte {
	t.Helper()
	z, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	r, err := gzip.NewReader(bytes.NewReader(z))
	if err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// Each line has the bits of a float64 in hex and what Java 17 prints of it.
func TestDoublesLikeJava(t *testing.T) {
	lines := bufio.NewScanner(bytes.NewReader(gunzip(t, filepath.Join(fixture.Root(t), "schema", "doubles.txt.gz"))))
	n := 0
	for ; lines.Scan(); n++ {
		hex, want, _ := strings.Cut(lines.Text(), " ")
		bits, err := strconv.ParseUint(hex, 16, 64)
		if err != nil {
			t.Fatal(err)
		}
		if got := string(appendDouble(nil, math.Float64frombits(bits))); got != want {
			t.Errorf("%s: got %s, Java has %s", hex, got, want)
		}
	}
	if n < 1000 {
		t.Errorf("only %d numbers", n)
	}
}
