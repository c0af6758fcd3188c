//go:build unix

package cmd_test

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"kseg/cmd"
	"kseg/internal/fixture"
	"kseg/logdir"
)

// A disk that does not answer does not keep a command from ending after an interrupt, whatever the command is, and what
// was printed until then ends with a whole line. One that writes files goes on once it gets its answer: the folder that
// it was to make is not there, or whole.
func TestInterruptWhileTheDiskHangs(t *testing.T) {
	dir, txns := fixture.View(t, "4.4.0/logdirs/killed/data1"), fixture.View(t, "4.4.0/transactions")
	logs, err := filepath.Glob(filepath.Join(dir, "inventory-2", "*.log"))
	if err != nil || len(logs) == 0 {
		t.Fatal(logs, err)
	}
	report := filepath.Join(t.TempDir(), "report.ndjson")
	if out, _, _ := kseg("verify", "-o", "json", dir); os.WriteFile(report, []byte(out), 0o644) != nil {
		t.Fatal("no room for a report")
	}
	defer cmd.LeaveAtOnce()()
	tried := 0
	for _, line := range readers {
		out := t.TempDir()
		args := strings.Fields(strings.NewReplacer("DIR", dir, "TWIN", dir, "LOG", logs[0], "TXNS", txns, "REPORT", report,
			"OUT", out).Replace(line))
		writes := strings.Contains(line, "OUT")
		accesses := 0
		// run hangs at an access, and interrupts the command then.
		run := func(at int) (stdout, stderr string, code int) {
			var mu sync.Mutex
			hangs, n := make(chan struct{}), 0
			restore := logdir.Inject(func(logdir.Access) error {
				mu.Lock()
				n++
				hang := at > 0 && n >= at
				if n == at {
					if err := syscall.Kill(os.Getpid(), syscall.SIGINT); err != nil {
						t.Error(err)
					}
					if writes {
						close(hangs)
					}
				}
				mu.Unlock()
				if hang {
					<-hangs
				}
				return nil
			})
			stdout, stderr, code = kseg(args...)
			if at > 0 && !writes {
				close(hangs)
			}
			cmd.AwaitVerbs()
			restore()
			if half, _ := filepath.Glob(filepath.Join(out, "*", "*.tmp")); len(half) > 0 {
				t.Errorf("kseg %s: %v is left", line, half)
			}
			os.RemoveAll(filepath.Join(out, "new"))
			accesses = n
			return stdout, stderr, code
		}
		if _, _, code := run(0); code > 1 {
			continue // it ends before it has begun
		}
		for _, at := range []int{accesses/8 + 1, accesses/2 + 1, accesses - 1} {
			if tried++; at < 1 || !fixture.Sampled(tried, 6) {
				continue
			}
			stdout, stderr, code := run(at)
			if code != 130 && !(writes && code < 2) || code == 130 && !strings.HasSuffix(stderr, "kseg: interrupted\n") ||
				stdout != "" && !strings.HasSuffix(stdout, "\n") {
				t.Errorf("kseg %s, at access %d of %d: code %d, %q, %q", line, at, accesses, code, stdout, stderr)
			}
		}
	}
}
