package cmd

import (
	"bytes"
	"io"
	"path"
	"slices"
	"strings"
	"testing"

	"kseg/internal/fixture"
)

// TestDumpJSONFitsTheSchema holds what dump prints of the real directories against docs/json-schema.json, with and
// without records and payloads.
func TestDumpJSONFitsTheSchema(t *testing.T) {
	flags := [][]string{{"--records"}, {"--records", "--payload", "redacted", "--decode", "none"}, {}}
	for i, name := range logDirs(t) {
		args := append([]string{"dump", "-o", "json", fixture.View(t, name)}, flags[i%len(flags)]...)
		var stdout bytes.Buffer
		if code := Main(args, strings.NewReader(""), &stdout, io.Discard); code > codeFound {
			t.Errorf("%s: exit code %d", name, code)
		}
		if err := fixture.CheckJSONLines(sample(stdout.String())); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// sample keeps the first lines of each kind, and some of the others: thousands of records are alike.
func sample(lines string) string {
	var kept strings.Builder
	seen := map[string]int{}
	for line := range strings.Lines(lines) {
		kind, _, _ := strings.Cut(line, ",")
		if seen[kind] < 8 || seen[kind]%500 == 0 {
			kept.WriteString(line)
		}
		seen[kind]++
	}
	return kept.String()
}

// logDirs are the folders below testdata/logdirs that hold partition directories.
func logDirs(t *testing.T) []string {
	var names []string
	for _, file := range fixture.Files(t, ".log") {
		names = append(names, path.Dir(path.Dir(file)))
	}
	slices.Sort(names)
	names = slices.Compact(names)
	if len(names) == 0 {
		t.Fatal("no case found")
	}
	return names
}

// TestRetentionJSONFitsTheSchema holds what retention prints of the real directories against the schema.
func TestRetentionJSONFitsTheSchema(t *testing.T) {
	for _, name := range logDirs(t) {
		if path.Base(name) == "meta" {
			continue // the metadata log alone, which retention leaves to KRaft
		}
		var stdout, stderr bytes.Buffer
		args := []string{"retention", "-o", "json", fixture.View(t, name), "--retention-bytes", "5000"}
		if code := Main(args, strings.NewReader(""), &stdout, &stderr); code != codeOK || stdout.Len() == 0 {
			t.Errorf("%s: exit code %d, %s", name, code, &stderr)
		}
		if err := fixture.CheckJSONLines(stdout.String()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestPredictJSONFitsTheSchema holds what predict prints of the real directories, and of every damaged one, against the
// schema.
func TestPredictJSONFitsTheSchema(t *testing.T) {
	check := func(dir string, flags ...string) {
		var stdout, stderr bytes.Buffer
		args := append([]string{"predict", "-o", "json", dir}, flags...)
		if code := Main(args, strings.NewReader(""), &stdout, &stderr); code > codeFound || stdout.Len() == 0 {
			t.Errorf("%s: exit code %d, %s", dir, code, &stderr)
		}
		if err := fixture.CheckJSONLines(sample(stdout.String())); err != nil {
			t.Errorf("%s: %v", dir, err)
		}
	}
	for _, name := range logDirs(t) {
		check(fixture.View(t, name), "--files", "--rate", "100MB/s")
	}
	for i, r := range fixture.Recipes(t) {
		if fixture.Sampled(i, 3) {
			check(fixture.Damaged(t, r.Name))
		}
	}
}

// TestCompactionJSONFitsTheSchema holds what compaction prints of the real directories against the schema.
func TestCompactionJSONFitsTheSchema(t *testing.T) {
	for _, name := range []string{"4.4.0/compacted", "4.4.0/internal", "4.4.0/logdirs/killed/data1",
		"4.4.0/transactions"} {
		var stdout, stderr bytes.Buffer
		args := []string{"compaction", "-o", "json", fixture.View(t, name), "--cleaned-to", "-1", "--keys", "--key", "k7"}
		if code := Main(args, strings.NewReader(""), &stdout, &stderr); code != codeOK || stdout.Len() == 0 {
			t.Errorf("%s: exit code %d, %s", name, code, &stderr)
		}
		if err := fixture.CheckJSONLines(stdout.String()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestVerifyJSONFitsTheSchema holds what verify prints of the real directories, and of every damaged one, against the
// schema.
func TestVerifyJSONFitsTheSchema(t *testing.T) {
	check := func(dir string) {
		var stdout, stderr bytes.Buffer
		if code := Main([]string{"verify", "-o", "json", dir}, strings.NewReader(""), &stdout, &stderr); code > codeFound {
			t.Errorf("%s: exit code %d, %s", dir, code, &stderr)
		}
		if err := fixture.CheckJSONLines(stdout.String()); err != nil {
			t.Errorf("%s: %v", dir, err)
		}
	}
	for _, name := range logDirs(t) {
		check(fixture.View(t, name))
	}
	for i, r := range fixture.Recipes(t) {
		if fixture.Sampled(i, 3) {
			check(fixture.Damaged(t, r.Name))
		}
	}
}

// TestMetadataJSONFitsTheSchema holds what metadata prints of the real metadata logs against the schema.
func TestMetadataJSONFitsTheSchema(t *testing.T) {
	for _, name := range []string{"4.4.0/internal", "4.4.0/logdirs/clean/meta"} {
		for _, flags := range [][]string{nil, {"--diff", "0,end"}, {"--check"}} {
			var stdout, stderr bytes.Buffer
			args := append([]string{"metadata", "-o", "json", fixture.View(t, name)}, flags...)
			if code := Main(args, strings.NewReader(""), &stdout, &stderr); code > codeFound &&
				!strings.Contains(stderr.String(), "no snapshot") {
				t.Errorf("%s %q: exit code %d, %s", name, flags, code, &stderr)
			}
			if err := fixture.CheckJSONLines(stdout.String()); err != nil && stdout.Len() > 0 {
				t.Errorf("%s %q: %v", name, flags, err)
			}
		}
	}
}

// TestGroupsJSONFitsTheSchema holds what groups prints of the real directories against the schema.
func TestGroupsJSONFitsTheSchema(t *testing.T) {
	for _, name := range []string{"4.4.0/internal", "4.4.0/transactions", "4.4.0/logdirs/clean/data1",
		"3.7.2/transactions"} {
		for _, flags := range [][]string{nil, {"--history"}} {
			var stdout, stderr bytes.Buffer
			args := append([]string{"groups", "-o", "json", fixture.View(t, name)}, flags...)
			if code := Main(args, strings.NewReader(""), &stdout, &stderr); code > codeFound {
				t.Errorf("%s %q: exit code %d, %s", name, flags, code, &stderr)
			}
			if err := fixture.CheckJSONLines(stdout.String()); err != nil && stdout.Len() > 0 {
				t.Errorf("%s %q: %v", name, flags, err)
			}
		}
	}
}

// TestTxnJSONFitsTheSchema holds what txn prints of the real directories, and of every damaged one, against the schema.
func TestTxnJSONFitsTheSchema(t *testing.T) {
	check := func(dir string, flags ...string) {
		var stdout, stderr bytes.Buffer
		code := Main(append([]string{"txn", "-o", "json", dir}, flags...), strings.NewReader(""), &stdout, &stderr)
		if err := fixture.CheckJSONLines(stdout.String()); err != nil && (code < codeIncomplete || stdout.Len() > 0) &&
			!slices.Contains(flags, "--producers") {
			t.Errorf("%s %q: exit code %d, %v, %s", dir, flags, code, err, &stderr)
		}
	}
	for _, name := range logDirs(t) {
		dir := fixture.View(t, name)
		check(dir)
		check(dir, "--all")
		check(dir, "--producers")
	}
	for i, r := range fixture.Recipes(t) {
		if fixture.Sampled(i, 3) {
			check(fixture.Damaged(t, r.Name), "--all")
		}
	}
}
