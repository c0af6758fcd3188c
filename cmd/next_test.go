package cmd_test

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"kseg/internal/fixture"
)

// TestNextStepsRun runs each command that verify prints as the next step, as it stands: all of them are commands, and
// none changes what was looked at.
func TestNextStepsRun(t *testing.T) {
	ran := map[string]bool{}
	for i, recipe := range fixture.Recipes(t) {
		if !fixture.Sampled(i, 3) {
			continue
		}
		dir := fixture.Damaged(t, recipe.Name)
		t.Chdir(filepath.Dir(dir))
		before := state(t, dir)
		for _, next := range nextSteps(t, filepath.Base(dir)) {
			words := strings.Fields(next)
			if words[0] != "kseg" {
				continue // an operation on a copy, see TestOperationsOnCopies; or one of Kafka's tools
			}
			ran[words[1]] = true
			if _, stderr, code := kseg(words[1:]...); code > 1 {
				t.Errorf("%s: %s: code %d, %s", recipe.Name, next, code, stderr)
			}
			if err := os.RemoveAll("DIR"); err != nil {
				t.Fatal(err)
			}
		}
		if !maps.Equal(before, state(t, dir)) {
			t.Errorf("%s: the next steps have changed it", recipe.Name)
		}
	}
	for _, verb := range []string{"explain", "salvage"} {
		if !ran[verb] {
			t.Errorf("no next step is kseg %s", verb)
		}
	}
}

// nextSteps are those of all findings.
func nextSteps(t *testing.T, dir string) []string {
	t.Helper()
	stdout, _, _ := kseg("verify", "-o", "json", dir)
	var steps []string
	for line := range strings.Lines(stdout) {
		var f struct{ Kind, Next, Severity, Code string }
		if err := json.Unmarshal([]byte(line), &f); err != nil {
			t.Fatal(err)
		}
		if f.Kind == "finding" && f.Severity != "note" && f.Next == "" {
			t.Errorf("%s: %s has no next step", dir, f.Code)
		}
		if f.Next != "" {
			steps = append(steps, f.Next)
		}
	}
	return steps
}
