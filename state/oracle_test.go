//go:build oracle

package state

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"kseg/internal/fixture"
)

// ask has Kafka's UnifiedLog load the partitions, which it works on.
func ask(t *testing.T, questions []question) string {
	t.Helper()
	var lines strings.Builder
	for _, q := range questions {
		lines.WriteString(q.line())
	}
	list := filepath.Join(t.TempDir(), "questions")
	if err := os.WriteFile(list, []byte(lines.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	return string(fixture.CompileJava(t, filepath.Join("oracle", "Producers.java")).Run(t, nil, "Producers", list))
}

// freeze holds an answer against the frozen one, or freezes it if KSEG_FREEZE is set.
func freeze(t *testing.T, file, got string) {
	t.Helper()
	path := filepath.Join("testdata", file)
	if os.Getenv("KSEG_FREEZE") != "" {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if want, err := os.ReadFile(path); err != nil || string(want) != got {
		t.Errorf("%s is not what the real classes answer (%v); KSEG_FREEZE=1 writes it", path, err)
	}
}

func TestOracleProducersOfRealLogs(t *testing.T) {
	var questions []question
	for _, dir := range loadable(t) {
		questions = append(questions, question{dir: fixture.Dir(t, dir), options: LoadOptions{Clean: true}})
	}
	freeze(t, "producers.txt", ask(t, questions))
}

func TestOracleProducersFrozen(t *testing.T) {
	freeze(t, "random.txt", ask(t, randomPartitions(t, t.TempDir(), 1, 120)))
}

// TestOracleProducersOfRandomLogs compares logs that nobody has seen before.
func TestOracleProducersOfRandomLogs(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	theirs := randomPartitions(t, t.TempDir(), seed, 400)
	ours := randomPartitions(t, t.TempDir(), seed, 400)
	answers := splitAnswers(ask(t, theirs))
	if len(answers) != len(ours) {
		t.Fatalf("%d partitions, %d answers", len(ours), len(answers))
	}
	for i, q := range ours {
		compareProducers(t, q.line(), answers[i], q.load(t))
	}
}
