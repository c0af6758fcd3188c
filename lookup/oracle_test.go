//go:build oracle

package lookup

import (
	"bytes"
	"compress/gzip"
	"os"
	"path/filepath"
	"testing"

	"kseg/internal/fixture"
)

// TestOracleReads asks the real classes again what testdata/reads.csv.gz holds. With KSEG_UPDATE it writes the file
// anew.
func TestOracleReads(t *testing.T) {
	var args []string
	for _, name := range readCases {
		args = append(args, name+"="+readCaseDir(t, name))
	}
	got := fixture.CompileJava(t, "oracle/Reads.java").Run(t, nil, "Reads", args...)
	if os.Getenv("KSEG_UPDATE") == "" {
		if string(got) != frozenReads(t) {
			t.Error("the real classes answer otherwise than testdata/reads.csv.gz; KSEG_UPDATE=1 writes it anew")
		}
		return
	}
	var out bytes.Buffer
	w, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if err != nil {
		t.Fatal(err)
	}
	w.Write(got)
	w.Close()
	if err := os.WriteFile(filepath.Join("testdata", "reads.csv.gz"), out.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
}
