//go:build oracle

package rebuild

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"kseg/internal/fixture"
)

var freeze = flag.Bool("freeze", false, "write the answers of Kafka's own recovery to testdata")

// recoveryAnswers runs Kafka's own recovery over partitions.
func recoveryAnswers(t *testing.T, mode string, interval int, dirs []string) string {
	t.Helper()
	args := append([]string{mode, fmt.Sprint(interval), fmt.Sprint(snapshotExpirationMs)}, dirs...)
	return string(fixture.CompileJava(t, "oracle/Recovery.java").Run(t, nil, "Recovery", args...))
}

func TestOracleRecovery(t *testing.T) {
	got := recoveryAnswers(t, "segments", recoveryInterval, damagedPartitions(t))
	if *freeze {
		if err := os.WriteFile(filepath.Join("testdata", "recovery.txt"), []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	frozen := frozenRecovery(t)
	for line := range strings.Lines(got) {
		fields := strings.SplitN(strings.TrimSpace(line), " ", 3)
		if want := frozen[fields[0]+" "+fields[1]]; fields[2] != want {
			t.Errorf("%s %s: the real recovery answers\n%s\nfrozen is\n%s", fields[0], fields[1], fields[2], want)
		}
	}
}

// The answers for snapshots depend on the time at which they are asked for, so they are asked for only to freeze them.
func TestOracleSnapshots(t *testing.T) {
	if !*freeze {
		t.Skip("-freeze was not given")
	}
	asked := time.Now().UnixMilli()
	got := recoveryAnswers(t, "load", 4096, snapshotPartitions(t))
	if err := os.WriteFile(filepath.Join("testdata", "snapshots.txt"), fmt.Appendf(nil, "asked %d\n%s", asked, got),
		0o644); err != nil {
		t.Fatal(err)
	}
}
