package cmd_test

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"kseg/cmd"
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
			if tried++; !fixture.Sampled(tried, 80) {
				continue
			}
			if stderr, code, _ := run(at); code > 1 || strings.Contains(stderr, "internal error") {
				t.Errorf("kseg %s, at access %d of %d: code %d: %s", line, at, n, code, stderr)
			}
		}
	}
}

// besideABrokerAtWork runs each command line in its rounds while a broker works, a few steps at random moments. work
// gives a directory and what makes the broker do its next step. The answer is whole every time: what was deleted is not
// missed, and what was rolled, replaced or truncated is looked at again.
func besideABrokerAtWork(t *testing.T, rounds, every int, work func(name string, seed uint64) (dir string,
	step func())) {
	tried := 0
	for _, name := range []string{"4.4.0/internal", "4.4.0/transactions"} {
		twin := fixture.Dir(t, name)
		for _, line := range cmd.BesideABroker {
			args := func(dir string) []string {
				return strings.Fields(strings.NewReplacer("DIR", dir, "TWIN", twin, "NEW", filepath.Join(t.TempDir(),
					"new")).Replace(line))
			}
			run := func(seed uint64, accesses int) (said string, code, n int) {
				dir, step := work(name, seed)
				r, moments := rand.New(rand.NewPCG(seed, 0)), map[int]bool{}
				for range min(3, accesses) {
					moments[1+r.IntN(accesses)] = true
				}
				var mu sync.Mutex
				restore := logdir.Inject(func(logdir.Access) error {
					mu.Lock()
					defer mu.Unlock()
					if n++; moments[n] {
						for range 1 + r.IntN(6) {
							step()
						}
					}
					return nil
				})
				defer restore()
				out, stderr, code := kseg(args(dir)...)
				return stderr + out, code, n
			}
			n := 0
			if _, _, code := kseg(args(twin)...); code > 1 {
				continue // there is nothing of that here
			}
			for seed := range rounds {
				if tried++; !fixture.Sampled(tried, every) {
					continue
				}
				if n == 0 {
					_, _, n = run(uint64(seed), 0)
				}
				said, code, _ := run(uint64(seed), n)
				if code > 1 && !cmd.NothingThere.MatchString(said) || strings.Contains(said, "internal error") {
					t.Errorf("kseg %s in %s, seed %d, %d accesses: code %d: %s", line, name, seed, n, code, said)
				}
			}
		}
	}
}

func TestBesideABrokerAtWork(t *testing.T) {
	besideABrokerAtWork(t, 100, 200, func(name string, seed uint64) (string, func()) {
		dir := fixture.Dir(t, name)
		w := fixture.NewAtWork(dir, seed)
		for range seed % 20 {
			w.Step()
		}
		return dir, w.Step
	})
}

// Here the broker is another process, and changes bytes while they are looked at.
func TestBesideABrokerOfAnotherProcess(t *testing.T) {
	dirs, steps := map[string]string{}, map[string]func(){}
	for _, name := range []string{"4.4.0/internal", "4.4.0/transactions"} {
		dirs[name] = fixture.Dir(t, name)
		to := fixture.Beside(t, "KSEG_TEST_BROKER_DIR="+dirs[name])
		steps[name] = func() { _, _ = to.Write([]byte{1}) }
	}
	besideABrokerAtWork(t, 50, 100, func(name string, _ uint64) (string, func()) { return dirs[name], steps[name] })
}
