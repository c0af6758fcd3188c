package cmd_test

import (
	"strings"
	"testing"

	"kseg/internal/fixture"
	"kseg/render"
)

// TestTablesFitTheTerminal holds that no line of what people print is wider than the terminal, on real directories.
func TestTablesFitTheTerminal(t *testing.T) {
	t.Chdir(fixture.Dir(t, "4.4.0"))
	t.Setenv("COLUMNS", "80")
	for _, line := range []string{
		"ls logdirs/clean/data1", "ls logdirs/clean/data1 logdirs/killed/data1 --by segment", "ls --stats codecs",
		"ls --by producer transactions",
		"density logdirs/clean/data1", "density segments-316/clean/seg-4096-0 --interval 4096,20000",
		"density logdirs/clean/data1 logdirs/killed/data1",
		"retention logdirs/clean/data1", "retention retention/before", "retention retention/before/r-poison-future-0",
		"groups internal",
		"metadata internal --type topic,config,acl", "txn transactions --all", "compaction logdirs/killed/data1 --topic " +
			"prices --cleaned-to 39", "compaction compacted",
		"lookup --sweep logdirs/clean/data1/inventory-0", "lookup --offset 4930 segments-316/clean/seg-4096-0",
		"predict logdirs/killed/data1",
		"compare logdirs/clean/data1 logdirs/killed/data1",
	} {
		stdout, _, code := kseg(append(strings.Fields(line), "--now", "2026-11-30T00:00Z")...)
		if code == 2 {
			var stderr string
			if stdout, stderr, code = kseg(strings.Fields(line)...); code > 1 {
				t.Errorf("%s: exit code %d: %s", line, code, stderr)
			}
		}
		for text := range strings.Lines(stdout) {
			text = strings.TrimSuffix(text, "\n")
			if n := render.Width(text); n > 80 && !strings.Contains(strings.TrimSpace(text), "(segment ") {
				t.Errorf("%s: %d columns: %s", line, n, text)
			}
		}
	}
}
