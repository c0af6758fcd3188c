package cmd_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"kseg/internal/fixture"
	"kseg/logdir"
)

// readers are command lines that read a log directory, a partition or a file of it, of every verb and format. LOG is a
// .log, and OUT a folder to write into.
var readers = []string{
	"dump --records DIR", "dump DIR -o json", "dump --jobs 1 --records LOG -o table", "dump --tail 2 DIR",
	"dump --kafka-compat --deep-iteration --print-data-log LOG", "dump --from 60 --records DIR",
	"explain LOG", "explain LOG --offset 50 -o json", "explain DIR/recovery-point-offset-checkpoint",
	"verify DIR", "verify --jobs 1 DIR -o json", "verify --level crc DIR -o table", "verify --rebuild OUT DIR",
	"ls DIR", "ls DIR -o json", "ls --by segment DIR -o csv", "ls --stats --records DIR -o table", "ls --by codec DIR",
	"retention DIR", "retention -o json DIR", "retention --plan DIR", "retention -o table DIR",
	"compaction DIR", "compaction -o json DIR", "compaction -o table DIR",
	"compare DIR TWIN", "compare -o json DIR TWIN", "compare --level records --state DIR TWIN",
	"compare --fingerprint DIR",
	"lookup DIR --timestamp 1700000010000", "lookup LOG --offset 50", "lookup LOG --timestamp 1700000010000 -o json",
	"density DIR", "density -o json DIR", "density LOG", "metadata DIR", "metadata -o json DIR",
	"predict DIR", "predict -o json DIR", "predict -o table --files DIR",
	"txn TXNS", "txn --all -o json TXNS", "txn --producers -o table TXNS", "groups TXNS", "groups --history -o json TXNS",
	"salvage DIR --output-dir OUT/new", "salvage --records DIR --output-dir OUT/new --output json", "report REPORT",
}

// clock is what the time of day, and what others write to the same disk, changes in an output.
var clock = regexp.MustCompile(`\b\d{13}\b|\d{4}-\d\d-\d\d[T ][0-9:.]+Z?|\b\d+(\.\d+)? ` +
	`m?s\b|_ms":\d+|free\w*":\d+|[0-9.,]+\s+\w+\s+(of|free)\b.*`)

// A byte, a file or a directory that the disk does not give, in whatever command: it is said which, by its name and
// with what the disk said, the code is 3, all else is done, and nothing ends in a stack trace. Where nothing is said
// the answer is the same as without the fault.
func TestFailingReads(t *testing.T) {
	dir, twin := fixture.Dir(t, "4.4.0/logdirs/killed/data1"), fixture.Dir(t, "4.4.0/logdirs/clean/data1")
	logs, err := filepath.Glob(filepath.Join(dir, "inventory-2", "*.log"))
	if err != nil || len(logs) == 0 {
		t.Fatal(logs, err)
	}
	txns := fixture.Dir(t, "4.4.0/transactions")
	report := filepath.Join(t.TempDir(), "report.ndjson")
	if out, _, _ := kseg("verify", "-o", "json", dir); os.WriteFile(report, []byte(out), 0o644) != nil {
		t.Fatal("no room for a report")
	}
	tried := 0
	for _, line := range readers {
		run := func() (string, string, int) {
			out := t.TempDir()
			line := strings.NewReplacer("DIR", dir, "TWIN", twin, "LOG", logs[0], "TXNS", txns, "REPORT", report, "OUT",
				out).Replace(line)
			stdout, stderr, code := kseg(strings.Fields(line)...)
			return strings.ReplaceAll(stdout, out, "OUT"), stderr, code
		}
		var mu sync.Mutex
		seen := map[logdir.Access]bool{}
		var asked []logdir.Access
		restore := logdir.Inject(func(a logdir.Access) error {
			mu.Lock()
			defer mu.Unlock()
			if !seen[a] {
				seen[a] = true
				asked = append(asked, a)
			}
			return nil
		})
		want, wantErr, code := run()
		restore()
		if code == 2 {
			t.Fatalf("kseg %s: code 2: %s", line, wantErr)
		}
		slices.SortFunc(asked, func(a, b logdir.Access) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
		for _, bad := range asked {
			if tried++; !fixture.Sampled(tried, 80) {
				continue
			}
			restore := logdir.Inject(func(a logdir.Access) error {
				if a == bad {
					return syscall.EIO
				}
				return nil
			})
			stdout, stderr, got := run()
			restore()
			said := strings.Contains(stderr, filepath.Base(bad.Path)) && strings.Contains(stderr, "input/output error")
			silent := got == code && clock.ReplaceAllString(stdout, "T") == clock.ReplaceAllString(want, "T")
			switch {
			case strings.Contains(stderr, "internal error") || strings.Contains(stderr, "goroutine "):
				t.Errorf("kseg %s, %v: %s", line, bad, stderr)
			case !(said && got == 3) && !silent:
				t.Errorf("kseg %s, %v: code %d, was %d; stderr:\n%s", line, bad, got, code, stderr)
			}
		}
	}
}
