package cmd_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"kseg/internal/fixture"
	"kseg/render"
)

// widthLines are command lines of every verb that prints for people, over what is bundled.
const widthLines = `
ls logdirs/clean/data1
ls logdirs/clean/data1 logdirs/killed/data1 --by segment
ls --stats codecs
ls --by producer transactions
ls -o table logdirs/clean/data1
density logdirs/clean/data1
density segments-316/clean/seg-4096-0 --interval 4096,20000
density logdirs/clean/data1 logdirs/killed/data1
density -o table logdirs/clean/data1
retention logdirs/clean/data1
retention retention/before
retention retention/before/r-poison-future-0
retention -o table retention/before/r-poison-future-0
groups internal
groups -o table internal
groups --history internal
metadata internal
metadata -o table internal
metadata internal --type topic,config,acl
txn transactions --all
txn transactions --producers
txn -o table transactions
compaction logdirs/killed/data1 --topic prices --cleaned-to 39
compaction compacted
compaction compacted --keys
compaction -o table compacted
lookup --sweep logdirs/clean/data1/inventory-0
lookup --offset 4930 segments-316/clean/seg-4096-0
lookup --timestamp 1700000000000 segments-316/clean/seg-4096-0
lookup --sweep -o table segments-316/clean/seg-4096-0
predict logdirs/killed/data1
predict -o table logdirs/killed/data1
compare logdirs/clean/data1 logdirs/killed/data1
compare -o table logdirs/clean/data1 logdirs/killed/data1
verify logdirs/clean/data1
verify -o table logdirs/killed/data1
verify no/such/directory/with/a/name/that/is/as/long/as/they/are
verify --level nonsense hello
salvage --dry-run logdirs/killed/data1
salvage --dry-run --output table logdirs/killed/data1
explain hello/hello-0/00000000000000000000.log
explain segments-316/clean/seg-4096-0/00000000000000000000.index --all
explain size --records 1000 --value-bytes 11 --batch-size 16384
explain batch-crc-mismatch
explain --list
dump -o table hello
dump -o table --records compacted
dump --nonsense
verify --help
--help
help exit-codes
help operands
version
`

// TestLinesFitTheTerminal holds that no line that people read is wider than their terminal, on real directories and
// damaged ones, except a single word that is: a path, a payload. What kafka-dump-log prints is as it prints it.
func TestLinesFitTheTerminal(t *testing.T) {
	damaged := filepath.Join(t.TempDir(), "damaged")
	var damagedLines string
	for i, name := range []string{"payload-flip", "torn-tail", "index-beyond-end"} {
		r, err := fixture.FindRecipe(name)
		if err != nil {
			continue
		}
		dir := filepath.Join(fmt.Sprint(damaged, i), filepath.Base(r.Base))
		if err := fixture.Copy(dir, r.Base); err != nil {
			t.Fatal(err)
		}
		if err := fixture.ApplyTo(dir, r.Steps); err != nil {
			t.Fatal(err)
		}
		for _, verb := range []string{"verify", "verify -o table", "predict", "salvage --dry-run", "lookup --sweep", "ls"} {
			damagedLines += verb + " " + dir + "\n"
		}
	}
	if damagedLines == "" {
		t.Fatal("no recipe was found")
	}
	t.Chdir(fixture.Dir(t, "4.4.0"))
	for _, width := range []int{60, 80, 100} {
		t.Setenv("COLUMNS", fmt.Sprint(width))
		for line := range strings.Lines(strings.TrimPrefix(widthLines+damagedLines, "\n")) {
			line = strings.TrimSpace(line)
			stdout, stderr, code := kseg(strings.Fields(line)...)
			if stdout+stderr == "" {
				t.Errorf("%s: nothing was printed, exit code %d", line, code)
			}
			for text := range strings.Lines(stdout + "\n" + stderr) {
				text = strings.TrimSuffix(text, "\n")
				words := strings.Fields(strings.TrimSuffix(text, ` \`))
				if n := render.Width(text); n > width && len(words) > 1 {
					t.Errorf("%s: %d columns of %d: %s", line, n, width, text)
				}
			}
		}
	}
}
