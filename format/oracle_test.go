//go:build oracle

package format_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"kseg/internal/fixture"
)

// answers runs Kafka's own readers over files, given by content and, for lookups, the keys.
func answers(t *testing.T, kind string, files [][]byte, keys []string) []string {
	t.Helper()
	java, dir := fixture.CompileJava(t, "oracle/Answers.java"), t.TempDir()
	for i, raw := range files {
		name := filepath.Join(dir, fmt.Sprintf("%05d", i))
		if err := os.WriteFile(name, raw, 0o644); err != nil {
			t.Fatal(err)
		}
		if keys == nil {
			continue
		}
		if err := os.WriteFile(name+".q", []byte(keys[i]), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	out := java.Run(t, nil, "Answers", kind, dir)
	return strings.Split(strings.TrimSuffix(string(out), "\n"), "\n")
}

func compareAnswers(t *testing.T, kind string, got, frozen []string) {
	t.Helper()
	if len(got) != len(frozen) {
		t.Fatalf("%s: %d answers, %d are frozen", kind, len(got), len(frozen))
	}
	for i := range got {
		if got[i] != frozen[i] {
			t.Errorf("%s %d: the real classes answer\n%.300s\nfrozen is\n%.300s", kind, i, got[i], frozen[i])
		}
	}
}

func TestOracleTextFiles(t *testing.T) {
	contents, frozen := map[string][][]byte{}, map[string][]string{}
	for _, row := range recorded(t) {
		contents[row[0]] = append(contents[row[0]], []byte(row[1]))
		frozen[row[0]] = append(frozen[row[0]], row[2])
	}
	for kind := range textDecoders {
		compareAnswers(t, kind, answers(t, kind, contents[kind], nil), frozen[kind])
	}
}

func TestOracleSearches(t *testing.T) {
	for _, kind := range []string{"index", "timeindex"} {
		var files [][]byte
		var keys []string
		for _, c := range searchCases(kind == "timeindex") {
			files = append(files, c.raw)
			keys = append(keys, strings.Trim(fmt.Sprint(c.targets), "[]"))
		}
		frozen := strings.Split(strings.TrimSpace(readGzip(t, "testdata/search."+kind+".gz")), "\n")
		compareAnswers(t, kind, answers(t, kind, files, keys), frozen)
	}
}

func TestOracleProducers(t *testing.T) {
	frozen := strings.Split(strings.TrimSpace(readGzip(t, "testdata/producers.gz")), "\n")
	compareAnswers(t, "producers", answers(t, "producers", producerLogs(), nil), frozen)
}
