package cmd_test

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"kseg/internal/fixture"
	"kseg/logdir"
)

// brokerAtWork does to the partition of testdata's transactions what a broker does: retention deletes the first
// segment, the log cleaner puts another one in the place of the second, the last one rolls, and small files are written
// anew.
func brokerAtWork(t *testing.T, dir string) {
	t.Helper()
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	must := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, f := range files {
		name := filepath.Join(dir, f.Name())
		switch base, _, _ := strings.Cut(f.Name(), "."); base {
		case "00000000000000000000":
			must(os.Rename(name, name+".deleted"))
			must(os.Remove(name + ".deleted"))
		case "00000000000000000087", "leader-epoch-checkpoint":
			content, err := os.ReadFile(name)
			must(err)
			must(os.WriteFile(name+".swap", content, 0o644))
			must(os.Rename(name+".swap", name))
		}
	}
	for _, ext := range []string{".log", ".index", ".timeindex"} {
		must(os.WriteFile(filepath.Join(dir, "00000000000000000266"+ext), nil, 0o644))
	}
}

// Whatever moment a broker rolls, replaces and deletes segments at, no verb has to say that it could not read them: the
// partition is looked at again.
func TestMovingFiles(t *testing.T) {
	twin := fixture.Dir(t, "4.4.0/transactions")
	tried := 0
	for _, line := range []string{
		"dump --records DIR", "dump -o json DIR", "dump --tail 3 DIR", "lookup --offset 100 DIR", "lookup --sweep DIR",
		"lookup --timestamp 1795984114039 DIR", "density DIR", "retention DIR", "retention -o json DIR", "ls DIR",
		"ls --stats --records DIR", "txn --all DIR", "txn --producers DIR", "groups DIR", "compare DIR TWIN",
		"compare --level records --state TWIN DIR", "compare --fingerprint DIR",
		"compaction --topic-config cleanup.policy=compact DIR",
		"predict DIR", "predict --shutdown unclean DIR", "salvage --dry-run -o TWIN/new DIR", "verify DIR",
		"verify --jobs 1 DIR",
	} {
		// run moves the files at the given access to the disk, and counts them.
		run := func(at int) (stderr string, code, n int) {
			dir := fixture.Dir(t, "4.4.0/transactions")
			var mu sync.Mutex
			restore := logdir.Inject(func(logdir.Access) error {
				mu.Lock()
				defer mu.Unlock()
				if n++; n == at {
					brokerAtWork(t, filepath.Join(dir, "ledger-0"))
				}
				return nil
			})
			defer restore()
			var out string
			out, stderr, code = kseg(strings.Fields(strings.NewReplacer("DIR", dir, "TWIN", twin).Replace(line))...)
			return stderr + out, code, n
		}
		stderr, code, n := run(-1)
		if code > 1 {
			t.Fatalf("kseg %s: code %d: %s", line, code, stderr)
		}
		for at := 1; at <= n; at++ {
			if tried++; !fixture.Sampled(tried, 25) {
				continue
			}
			if stderr, code, _ := run(at); code > 1 || strings.Contains(stderr, "internal error") {
				t.Errorf("kseg %s, at access %d of %d: code %d: %s", line, at, n, code, stderr)
			}
		}
	}
}
