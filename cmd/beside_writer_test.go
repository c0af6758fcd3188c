package cmd

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"kseg/format"
	"kseg/internal/fixture"
)

// restless names, for a copy of the test binary, the log directory that it is to keep changing.
const restless = "KSEG_TEST_RESTLESS_DIR"

// keepChanging changes partitions in ways that come between any two reads, until its standard input ends: logs lose
// bytes and get them again, segments roll, are renamed, deleted and made anew, and so are partitions and checkpoints.
func keepChanging(dir string) {
	ended := make(chan struct{})
	go func() {
		_, _ = os.Stdin.Read(make([]byte, 1))
		close(ended)
	}()
	r := rand.New(rand.NewPCG(1, 2))
	logs, _ := filepath.Glob(filepath.Join(dir, "*-*", "*.log"))
	files := map[string][]byte{}
	for _, name := range logs {
		for _, kind := range []format.Kind{format.KindLog, format.KindOffsetIndex, format.KindTimeIndex,
			format.KindTxnIndex} {
			path := strings.TrimSuffix(name, ".log") + "." + kind.Info().Ext
			if b, err := os.ReadFile(path); err == nil {
				files[path] = b
			}
		}
	}
	var names []string
	for name := range files {
		names = append(names, name)
	}
	for {
		select {
		case <-ended:
			os.Exit(0)
		default:
		}
		// Errors are those of a file that an earlier step took away, and are the point.
		name := names[r.IntN(len(names))]
		content := files[name]
		switch r.IntN(6) {
		case 0:
			_ = os.Truncate(name, int64(r.IntN(len(content)+1)))
		case 1:
			if f, err := os.OpenFile(name, os.O_APPEND|os.O_WRONLY, 0o644); err == nil {
				_, _ = f.Write(content[r.IntN(len(content)+1):])
				f.Close()
			}
		case 2:
			_ = os.Rename(name, name+".deleted")
			_ = os.Remove(name + ".deleted")
		case 3:
			gone := filepath.Dir(name) + ".00000000000000000000000000000001-delete"
			_ = os.Rename(filepath.Dir(name), gone)
			_ = os.Rename(gone, filepath.Dir(name))
		default:
			_ = os.WriteFile(name, content, 0o644)
		}
	}
}

// Beside a process that takes bytes, files and directories away while they are read no verb fails: the exit code is one
// of the three that there are for data.
func TestEveryVerbBesideAWriter(t *testing.T) {
	dir, twin := fixture.Dir(t, "4.4.0/transactions"), fixture.Dir(t, "4.4.0/transactions")
	fixture.Beside(t, restless+"="+dir)
	log := filepath.Join(dir, "ledger-0", format.SegmentFileName(0, format.KindLog))
	lines := [][]string{
		{"dump", "--records", dir}, {"dump", "-o", "json", "--records", dir}, {"dump", "-o", "table", log},
		{"dump", "--tail", "3", dir},
		{"verify", "--jobs", "1", dir}, {"verify", "-o", "json", "--jobs", "3", dir}, {"ls", "--stats", "--records", dir},
		{"ls", "-o", "json", dir},
		{"lookup", "--offset", "30", dir}, {"lookup", "--timestamp", "1795983834900", log}, {"lookup", "--sweep", dir},
		{"density", dir},
		{"retention", dir}, {"compaction", dir}, {"compaction", log}, {"predict", log}, {"txn", log}, {"verify", log},
		{"compare", dir, twin}, {"compare", "--level", "records", "--state", twin, dir},
		{"groups", dir}, {"txn", "--all", dir}, {"explain", log}, {"explain", "--offset", "40", "-o", "json", log},
		{"metadata", dir},
		{"predict", "-o", "json", dir}, {"salvage", "--dry-run", "--output-dir", filepath.Join(t.TempDir(), "new"), dir},
	}
	for round := range 2000 {
		if !fixture.Sampled(round, 400) {
			continue
		}
		for _, args := range lines {
			var stdout, stderr bytes.Buffer
			code := Main(args, strings.NewReader(""), &stdout, &stderr)
			all := stdout.String() + stderr.String()
			if code != codeOK && code != codeFound && code != codeIncomplete {
				t.Errorf("round %d, %v: code %d: %s", round, args, code, &stderr)
			}
			if strings.Contains(all, "internal error") || strings.Contains(all, "goroutine ") {
				t.Errorf("round %d, %v: %s", round, args, all)
			}
			if len(args) > 2 && args[1] == "-o" && args[2] == "json" && args[0] != "dump" {
				for line := range strings.Lines(stdout.String()) {
					if !json.Valid([]byte(line)) {
						t.Errorf("round %d, %v: no line of JSON: %s", round, args, line)
					}
				}
			}
		}
	}
}

// The largest number there is can be given wherever a number is asked for.
func TestLargestNumbers(t *testing.T) {
	dir := fixture.Dir(t, "4.4.0/transactions")
	log := filepath.Join(dir, "ledger-0", format.SegmentFileName(0, format.KindLog))
	const most = "9223372036854775807"
	for _, line := range []string{
		"dump --limit # DIR", "dump --records --tail # DIR", "dump --from # DIR", "dump --to # DIR", "dump --from-time # DIR",
		"dump --to-time # DIR",
		"dump --records --max-batch-bytes # DIR", "verify --max-findings # DIR", "verify --max-batch-bytes # DIR",
		"lookup --offset # DIR", "lookup --timestamp # DIR", "lookup --offset 1 --interval # DIR",
		"lookup --sweep --interval # DIR", "density --interval # DIR", "ls --top # DIR", "ls --max-map-count # DIR",
		"ls --what-if codec=zstd --sample # DIR",
		"ls --stats --records --max-batch-bytes # DIR", "txn --high-watermark # DIR", "txn --producer-id # DIR",
		"groups --at # DIR",
		"predict --recovery-point # DIR/ledger-0", "predict --log-start-offset # DIR/ledger-0",
		"predict --max-batch-bytes # DIR", "compare --max-batch-bytes # DIR DIR",
		"salvage --dry-run --output-dir OUT/new --interval # DIR", "salvage --dry-run --output-dir OUT/new " +
			"--max-batch-bytes # DIR", "explain --offset # LOG",
		"compaction --max-batch-bytes # DIR", "retention --high-watermark # DIR", "dump --base-offset # LOG",
		"verify --base-offset # LOG",
	} {
		args := strings.Fields(strings.NewReplacer("#", most, "DIR", dir, "LOG", log, "OUT", t.TempDir()).Replace(line))
		var stdout, stderr bytes.Buffer
		code := Main(args, strings.NewReader(""), &stdout, &stderr)
		if code != codeOK && code != codeFound {
			t.Errorf("kseg %s: code %d: %s", line, code, &stderr)
		}
	}
}
