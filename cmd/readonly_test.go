package cmd_test

import (
	"crypto/sha256"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"kseg/internal/fixture"
)

// state describes everything below dir that a reader could disturb: names, modes, modification times, contents.
func state(t *testing.T, dir string) map[string]string {
	t.Helper()
	found := map[string]string{}
	err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		sum := [sha256.Size]byte{}
		if !d.IsDir() {
			data, err := os.ReadFile(p)
			if err != nil {
				return err
			}
			sum = sha256.Sum256(data)
		}
		found[p] = fmt.Sprint(info.Mode(), info.ModTime().UnixNano(), info.Size(), sum)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// TestInputsStayAsTheyAre runs every command over healthy and damaged directories and compares all files afterwards.
// The real tool fails this: it creates a missing .index when it dumps the .timeindex beside it.
func TestInputsStayAsTheyAre(t *testing.T) {
	commands := []string{
		"dump .",
		"dump --records .",
		"dump -o json --records .",
		"dump --kafka-compat --deep-iteration --print-data-log .",
		"dump --index-sanity-check .",
		"dump --from 3 --to 5 --records .",
		"verify .",
		"retention .",
		"retention -o json .",
		"retention --plan .",
		"compare . .",
		"compare --fingerprint .",
		"salvage --dry-run . -o ../no-such-folder",
		"compaction --cleaned-to -1 --keys --key k7 .",
		"predict --files .",
	}
	dirs := map[string]string{
		"killed":       fixture.Dir(t, "4.4.0/logdirs/killed/data1"),
		"transactions": fixture.Dir(t, "4.4.0/transactions"),
	}
	for _, recipe := range []string{"index-missing", "timeindex-missing", "torn-last-batch", "zero-tail-8k",
		"missing-log-only", "snapshot-truncated"} {
		dirs[recipe] = fixture.Damaged(t, recipe)
	}
	for name, dir := range dirs {
		t.Run(name, func(t *testing.T) {
			t.Chdir(dir)
			before := state(t, dir)
			for _, command := range commands {
				_, stderr, code := kseg(strings.Fields(command)...)
				if code == 2 {
					t.Errorf("kseg %s: code %d, %s", command, code, stderr)
				}
				after := state(t, dir)
				for p, s := range before {
					if after[p] != s {
						t.Errorf("kseg %s changed %s: %s, was %s", command, p, after[p], s)
					}
				}
				if len(after) != len(before) {
					t.Errorf("kseg %s: %d entries became %d", command, len(before), len(after))
				}
			}
		})
	}
}
