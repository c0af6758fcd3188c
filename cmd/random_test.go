package cmd_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"kseg/internal/fixture"
)

// randomDump is a run of the real tool over random files.
type randomDump struct {
	Files          map[string][]byte
	Args           []string
	OK             bool // it did not die
	Stdout, Stderr string
}

func randomDumps(t *testing.T) []randomDump {
	t.Helper()
	packed, err := os.ReadFile(filepath.Join(fixture.Root(t), "random", "dumps.jsonl.gz"))
	if err != nil {
		t.Fatal(err)
	}
	r, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		t.Fatal(err)
	}
	var all []randomDump
	for d := json.NewDecoder(r); d.More(); {
		var one randomDump
		if err := d.Decode(&one); err != nil {
			t.Fatal(err)
		}
		all = append(all, one)
	}
	if len(all) < 500 {
		t.Fatalf("only %d runs", len(all))
	}
	return all
}

// TestDumpOfRandomFiles: over random segments, indexes and snapshots, sound and damaged in random ways, --kafka-compat
// gives the real tool's stdout and stderr; where that tool crashes, what it has printed is a prefix of ours, in both
// ways.
func TestDumpOfRandomFiles(t *testing.T) {
	for i, c := range randomDumps(t) {
		t.Chdir(t.TempDir())
		for name, data := range c.Files {
			if err := os.WriteFile(name, data, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		compat, compatErr, _ := kseg(append([]string{"dump", "--kafka-compat"}, c.Args...)...)
		plain, plainErr, code := kseg(append([]string{"dump"}, c.Args...)...)
		switch {
		case c.OK && compat != c.Stdout:
			t.Errorf("run %d, %v: stdout:%s", i, c.Args, diff(compat, c.Stdout))
		case c.OK && relativeErr(t, compatErr) != c.Stderr:
			t.Errorf("run %d, %v: stderr:%s", i, c.Args, diff(relativeErr(t, compatErr), c.Stderr))
		case !strings.HasPrefix(compat, c.Stdout):
			t.Errorf("run %d, %v: the real tool died; its stdout is no prefix of ours:%s", i, c.Args, diff(compat, c.Stdout))
		case !c.OK && !strings.HasPrefix(plain, c.Stdout):
			t.Errorf("run %d, %v: the real tool died; its stdout is no prefix of ours without --kafka-compat:%s", i, c.Args,
				diff(plain, c.Stdout))
		}
		log := strings.HasSuffix(c.Args[1], ".log") || strings.HasSuffix(c.Args[1], ".checkpoint")
		if told := strings.Contains(c.Stdout, "isvalid: false") || !c.OK && !strings.Contains(plainErr, "zero tail"); log &&
			told && code != 1 {
			t.Errorf("run %d, %v: code %d of a damaged file; stderr %s", i, c.Args, code, plainErr)
		}
	}
}
