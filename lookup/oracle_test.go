//go:build oracle

package lookup

import (
	"bytes"
	"compress/gzip"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// TestOracleReads asks the real classes again what testdata/reads.csv.gz holds. With KSEG_UPDATE it writes the file anew.
func TestOracleReads(t *testing.T) {
	lib := os.Getenv("KSEG_ORACLE_LIB")
	if lib == "" {
		t.Skip("KSEG_ORACLE_LIB does not name the folder with Kafka's jars")
	}
	args := []string{"-Xmx512m", "-XX:+UseSerialGC", "-cp", filepath.Join(lib, "*"), filepath.Join("oracle", "Reads.java")}
	for _, name := range readCases {
		args = append(args, name+"="+readCaseDir(t, name))
	}
	got, err := exec.Command("java", args...).Output()
	if err != nil {
		t.Fatal(err)
	}
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
