//go:build oracle

package cmd_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"kseg/internal/fixture"
)

// realDump runs the real DumpLogSegments, in the working directory, with the jars that KSEG_ORACLE_LIB names.
func realDump(t *testing.T, args ...string) (stdout, stderr string, ok bool) {
	t.Helper()
	lib := os.Getenv("KSEG_ORACLE_LIB")
	if lib == "" {
		t.Fatal("KSEG_ORACLE_LIB is not set; run this by `make oracle`")
	}
	args = append([]string{"-Xmx1g", "-XX:+UseSerialGC", "-Duser.timezone=UTC", "-cp", filepath.Join(lib, "*"),
		"org.apache.kafka.tools.DumpLogSegments"}, args...)
	var out, errs bytes.Buffer
	tool := exec.Command("java", args...)
	tool.Stdout, tool.Stderr = &out, &errs
	err := tool.Run()
	if err != nil && tool.ProcessState == nil {
		t.Fatal(err)
	}
	return out.String(), errs.String(), err == nil
}

// oracleRuns are the flags compared for the files with one of the extensions.
var oracleRuns = []struct {
	flags []string
	exts  []string
}{
	{nil, []string{".log", ".checkpoint", ".index", ".timeindex", ".txnindex", ".snapshot"}},
	{[]string{"--deep-iteration"}, []string{".log", ".checkpoint"}},
	{[]string{"--print-data-log"}, []string{".log", ".checkpoint"}},
	{[]string{"--print-data-log", "--skip-record-metadata"}, []string{".log", ".checkpoint"}},
	{[]string{"--deep-iteration", "--max-bytes", "5000"}, []string{".log", ".checkpoint"}},
	{[]string{"--verify-index-only"}, []string{".index", ".timeindex"}},
	{[]string{"--index-sanity-check"}, []string{".index", ".timeindex"}},
}

// compareWithOracle runs both programs over all files of the working directory that the flags are for, many files at a
// time, so that the order of the summaries at the end is compared too.
func compareWithOracle(t *testing.T) {
	t.Helper()
	for _, run := range oracleRuns {
		var files []string
		err := filepath.WalkDir(".", func(p string, d os.DirEntry, err error) error {
			if err == nil && !d.IsDir() && slices.Contains(run.exts, filepath.Ext(p)) {
				files = append(files, p)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		for len(files) > 0 {
			files = files[compareFiles(t, files, run.flags):]
		}
	}
}

// compareFiles compares the outputs for files and returns how many the real tool got through. Where it dies, what it has
// printed until then must be the beginning of our output.
func compareFiles(t *testing.T, files, flags []string) int {
	t.Helper()
	args := append([]string{"--files", strings.Join(files, ",")}, flags...)
	want, wantErr, ok := realDump(t, args...)
	got, gotErr, _ := kseg(append([]string{"dump", "--kafka-compat"}, args...)...)
	if ok {
		if got != want {
			t.Errorf("%v: stdout:%s", flags, diff(got, want))
		}
		if gotErr != wantErr {
			t.Errorf("%v: stderr:%s", flags, diff(gotErr, wantErr))
		}
		return len(files)
	}
	if !strings.HasPrefix(got, want) {
		t.Errorf("%v: the real tool died; its stdout is no prefix of ours:%s\n%s", flags, diff(got, want), wantErr)
	}
	done := strings.Count("\n"+want, "\nDumping ")
	return max(done, 1)
}

// TestOracleDump compares the two programs over every healthy directory.
func TestOracleDump(t *testing.T) {
	for dir := range byCase(fixture.Goldens(t, ".dump.txt")) {
		t.Run(dir, func(t *testing.T) {
			t.Chdir(fixture.Dir(t, dir))
			compareWithOracle(t)
		})
	}
}

// TestOracleDumpOfDamage compares them over every damaged partition.
func TestOracleDumpOfDamage(t *testing.T) {
	for _, recipe := range fixture.Recipes(t) {
		t.Run(recipe.Name, func(t *testing.T) {
			t.Chdir(filepath.Dir(fixture.Damaged(t, recipe.Name)))
			compareWithOracle(t)
		})
	}
}
