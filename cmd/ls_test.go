package cmd

import (
	"bytes"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"kseg/internal/fixture"
)

// TestLsJSONFitsTheSchema holds what ls prints of the real directories against the schema, a line for each thing there
// is.
func TestLsJSONFitsTheSchema(t *testing.T) {
	for i, name := range logDirs(t) {
		by := []string{"topic", "partition", "segment"}[i%3]
		var stdout, stderr bytes.Buffer
		args := []string{"ls", "-o", "json", "--by", by, fixture.View(t, name)}
		if code := Main(args, strings.NewReader(""), &stdout, &stderr); code != codeOK {
			t.Errorf("%s: exit code %d, %s", name, code, &stderr)
		}
		if err := fixture.CheckJSONLines(stdout.String()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestLsCountsWhatDumpPrints holds the records that ls finds in the headers against those that dump reads, leftovers
// included.
func TestLsCountsWhatDumpPrints(t *testing.T) {
	run := func(args ...string) string {
		var stdout, stderr bytes.Buffer
		if code := Main(args, strings.NewReader(""), &stdout, &stderr); code > codeFound {
			t.Errorf("%q: exit code %d, %s", args, code, &stderr)
		}
		return stdout.String()
	}
	count := func(text string) int {
		n, err := strconv.Atoi(strings.TrimSpace(text))
		if err != nil {
			t.Error(err)
		}
		return n
	}
	for _, name := range logDirs(t) {
		dir := fixture.View(t, name)
		// A filter that passes all makes dump read every record.
		want := count(run("dump", "--count", "--from-time=-10", dir))
		for _, pattern := range []string{"*.checkpoint", "*/*.checkpoint"} {
			snapshots, err := filepath.Glob(filepath.Join(dir, pattern))
			if err != nil {
				t.Fatal(err)
			}
			for _, snapshot := range snapshots { // records of no segment
				want -= count(run("dump", "--count", "--from-time=-10", snapshot))
			}
		}
		listed := run("ls", "-o", "json", "--stats", dir)
		_, total, _ := strings.Cut(listed, `"kind":"log_dir","schema":1,"path":null,`)
		if !strings.Contains(total, fmt.Sprintf(`"records":%d,"records_exact":true,`, want)) {
			t.Errorf("%s: dump finds %d records; ls says %s", name, want, total)
		}
	}
}
