//go:build oracle

package cmd_test

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"kseg/internal/fixture"
)

// realDump runs the real DumpLogSegments, in the working directory, with the jars that KSEG_ORACLE_LIB names.
func realDump(t *testing.T, args ...string) (stdout, stderr string, ok bool) {
	t.Helper()
	tool := fixture.Jars(t).Command("org.apache.kafka.tools.DumpLogSegments", args...)
	var out, errs bytes.Buffer
	tool.Stdout, tool.Stderr = &out, &errs
	err := tool.Run()
	if err != nil && tool.ProcessState == nil {
		t.Fatal(err)
	}
	return out.String(), errs.String(), err == nil
}

// oracleRuns are the flags compared for the files with one of the extensions. Only the first two are worth their time
// over damage, where the real tool dies often.
var oracleRuns = []struct {
	flags []string
	exts  []string
}{
	{[]string{"--print-data-log"}, []string{".log", ".checkpoint", ".index", ".timeindex", ".txnindex", ".snapshot"}},
	{nil, []string{".log", ".checkpoint"}},
	{[]string{"--deep-iteration"}, []string{".log", ".checkpoint"}},
	{[]string{"--print-data-log", "--skip-record-metadata"}, []string{".log", ".checkpoint"}},
	{[]string{"--deep-iteration", "--skip-record-metadata"}, []string{".log", ".checkpoint"}},
	{[]string{"--deep-iteration", "--max-bytes", "5000"}, []string{".log", ".checkpoint"}},
	{[]string{"--verify-index-only"}, []string{".index", ".timeindex"}},
	{[]string{"--index-sanity-check"}, []string{".index", ".timeindex"}},
}

// filesBelow lists the files below the working directory with one of the extensions, sorted.
func filesBelow(t *testing.T, exts []string) []string {
	t.Helper()
	var files []string
	err := filepath.WalkDir(".", func(p string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() && slices.Contains(exts, filepath.Ext(p)) {
			files = append(files, p)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// compareAll runs both programs over many files at a time, so that the order of the summaries at the end is compared
// too.
func compareAll(t *testing.T, files, flags []string) {
	t.Helper()
	for len(files) > 0 {
		files = files[compareFiles(t, files, flags):]
	}
}

// compareFiles compares the outputs for files and returns how many the real tool got through. Where it dies, what it
// has printed until then must be the beginning of our output.
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
			for _, run := range oracleRuns {
				compareAll(t, filesBelow(t, run.exts), run.flags)
			}
		})
	}
}

// TestOracleDumpOfDamage compares them over all damaged partitions at once, as far as a recipe touches their segments.
// Each run has its own copies, since the real tool creates missing indexes.
func TestOracleDumpOfDamage(t *testing.T) {
	for _, run := range oracleRuns[:2] {
		t.Run(strings.Join(run.flags, " "), func(t *testing.T) {
			t.Chdir(t.TempDir())
			var files []string
			for _, recipe := range fixture.Recipes(t) {
				dir := filepath.Join(recipe.Name, filepath.Base(recipe.Base))
				if err := fixture.Copy(dir, recipe.Base); err != nil {
					t.Fatal(err)
				}
				before := state(t, dir)
				if err := fixture.ApplyTo(dir, recipe.Steps); err != nil {
					t.Fatal(err)
				}
				files = append(files, touched(before, state(t, dir), run.exts)...)
			}
			compareAll(t, files, run.flags)
		})
	}
}

// touched lists the files, with one of the extensions, of segments of which a file was changed, made or removed.
func touched(before, after map[string]string, exts []string) []string {
	stem := func(p string) string { return strings.TrimSuffix(p, filepath.Ext(p)) }
	changed := map[string]bool{}
	for p := range before {
		changed[stem(p)] = changed[stem(p)] || before[p] != after[p]
	}
	for p := range after {
		changed[stem(p)] = changed[stem(p)] || before[p] != after[p]
	}
	var files []string
	for p := range after {
		if changed[stem(p)] && slices.Contains(exts, filepath.Ext(p)) {
			files = append(files, p)
		}
	}
	slices.Sort(files)
	return files
}
