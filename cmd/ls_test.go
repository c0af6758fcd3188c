package cmd

import (
	"bytes"
	"strings"
	"testing"

	"kseg/internal/fixture"
)

// TestLsJSONFitsTheSchema holds what ls prints of the real directories against the schema, a line for each thing there is.
func TestLsJSONFitsTheSchema(t *testing.T) {
	for i, name := range logDirs(t) {
		by := []string{"topic", "partition", "segment"}[i%3]
		var stdout, stderr bytes.Buffer
		args := []string{"ls", "-o", "json", "--by", by, fixture.Dir(t, name)}
		if code := Main(args, strings.NewReader(""), &stdout, &stderr); code != codeOK {
			t.Errorf("%s: exit code %d, %s", name, code, &stderr)
		}
		if err := fixture.CheckJSONLines(stdout.String()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
