package cmd

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestDuckDBPage runs the commands of docs/duckdb.md and holds what they print against the page, where duckdb is
// installed; -update writes it there.
func TestDuckDBPage(t *testing.T) {
	if _, err := exec.LookPath("duckdb"); err != nil {
		t.Skip("duckdb is not installed")
	}
	page := filepath.Join("..", "docs", "duckdb.md")
	raw, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	temp := t.TempDir()
	var out strings.Builder
	blocks := strings.Split(string(raw), "```")
	for i, block := range blocks {
		if i > 0 {
			out.WriteString("```")
		}
		if body, ok := strings.CutPrefix(block, "console\n"); ok {
			block = "console\n" + runBlock(t, body, temp)
		}
		out.WriteString(block)
	}
	switch {
	case out.String() == string(raw):
	case *update:
		if err := os.WriteFile(page, []byte(out.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	default:
		t.Errorf("docs/duckdb.md is not what its commands print now; go test ./cmd -run DuckDB -update rewrites it:\n%s",
			&out)
	}
}

// runBlock runs the commands of a block, which begin with "$ " and go on in indented lines, and returns them with their
// output.
func runBlock(t *testing.T, body, temp string) string {
	var out strings.Builder
	var command string
	run := func() {
		if command == "" {
			return
		}
		out.WriteString("$ " + command)
		c := exec.Command("sh", "-c", strings.ReplaceAll(command, "/tmp/", temp+"/"))
		c.Dir = ".."
		printed, err := c.CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v\n%s", command, err, printed)
		}
		out.WriteString(strings.ReplaceAll(string(printed), "\r\n", "\n"))
		command = ""
	}
	for line := range strings.Lines(body) {
		if rest, ok := strings.CutPrefix(line, "$ "); ok {
			run()
			command = rest
		} else if strings.HasPrefix(line, "    ") {
			command += line
		}
	}
	run()
	return out.String()
}
