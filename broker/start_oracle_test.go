//go:build oracle

package broker

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"kseg/internal/fixture"
)

// wholeStarts is how many random damages of whole log directories a real broker is started on, beside those of
// whatKeeps.
const wholeStarts = 12

var (
	loadedLine = regexp.MustCompile(`Completed load of Log\(dir=\S+/([^/,\s]+), .*logStartOffset=(\d+), ` +
		`logEndOffset=(\d+)\) with (\d+) segments`)
	strayLine = regexp.MustCompile(`Log in \S+/([^/\s]+) marked stray`)
)

// TestOracleStarts starts a real broker on copies of the three directories of one that stopped cleanly, each damaged in
// another way, and compares: does it start, which logs are loaded with which ends, which are set aside.
func TestOracleStarts(t *testing.T) {
	java := fixture.CompileJava(t, fixture.LoggerSource(t))
	type damage struct {
		name string
		edit func(t *testing.T, root string)
	}
	var all []damage
	for _, c := range whatKeeps {
		all = append(all, damage{c.name, c.edit})
	}
	for i := range wholeStarts {
		rng := rand.New(rand.NewPCG(uint64(environment("KSEG_ORACLE_SEED", 1)), uint64(i)))
		all = append(all, damage{fmt.Sprint("random ", i), func(t *testing.T, root string) { spoilStart(t, rng, root) }})
	}
	for i, c := range all {
		t.Run(strings.ReplaceAll(c.name, " ", "-"), func(t *testing.T) {
			root := fixture.Dir(t, "4.4.0/logdirs/clean")
			c.edit(t, root)
			dirs := []string{filepath.Join(root, "data1"), filepath.Join(root, "data2")}
			start, found := predictDirs(t, append(dirs, filepath.Join(root, "meta"))...)
			port := environment("KSEG_ORACLE_PORT", 33092)
			b := fixture.StartBroker(t, java, fixture.BrokerProperties(1, port, dirs, "metadata.log.dir="+filepath.Join(root,
				"meta"),
				"log.index.size.max.bytes=20480", "log.retention.check.interval.ms=86400000", "log.initial.task.delay.ms=86400000"))
			out, started := b.Output.Until("Kafka Server started", 1)
			b.Stop(syscall.SIGKILL)
			t.Logf("%d: starts: %v, predicted: %v", i, started, start.Stops)
			chance := slices.ContainsFunc(start.Dirs, func(d *DirStart) bool {
				return slices.ContainsFunc(d.Offline, func(r Reason) bool {
					return strings.Contains(r.Text,
						"if it is loaded after")
				})
			})
			if started != (len(start.Stops) == 0) && !chance {
				t.Errorf("it starts: %v; predicted: %v\n%s", started, start.Stops, out[max(0, len(out)-3000):])
			}
			if started {
				compareLoaded(t, out, found)
			}
		})
	}
}

// spoilStart damages some partitions, and now and then the marker, a checkpoint or the metadata.
func spoilStart(t *testing.T, rng *rand.Rand, root string) {
	t.Helper()
	parts, err := filepath.Glob(filepath.Join(root, "data[12]", "*-[0-9]*"))
	if err != nil || len(parts) == 0 {
		t.Fatal(err)
	}
	for range 1 + rng.IntN(4) {
		m := fixture.Mutator{Rand: rng, Dir: parts[rng.IntN(len(parts))]}
		m.Step()
	}
	if rng.IntN(2) == 0 {
		remove(t, root, "data1/.kafka_cleanshutdown")
	}
	switch rng.IntN(4) {
	case 0:
		remove(t, root, "data1/recovery-point-offset-checkpoint")
	case 1:
		name := filepath.Join(root, "meta", "__cluster_metadata-0", "00000000000000000000.log")
		raw, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		raw[len(raw)/2+rng.IntN(len(raw)/2)] ^= 4
		if err := os.WriteFile(name, raw, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// compareLoaded compares the logs that the broker says it has loaded, and those that it has set aside.
func compareLoaded(t *testing.T, out string, found map[string]*PartitionStart) {
	t.Helper()
	real, stray := map[string]string{}, map[string]bool{}
	for line := range strings.Lines(out) {
		if m := strayLine.FindStringSubmatch(line); m != nil {
			stray[m[1]] = true
		}
		if m := loadedLine.FindStringSubmatch(line); m != nil && !strings.HasSuffix(m[1], "-stray") {
			real[m[1]] = strings.Join(m[2:], " ")
		}
	}
	ours, aside := map[string]string{}, map[string]bool{}
	for name, p := range found {
		switch {
		case p.Partition.IsClusterMetadata() || p.Failure != nil:
		case p.Stray != "":
			aside[name] = true
		default:
			ours[name] = fmt.Sprint(p.Loaded.LogStart, " ", p.LogEnd, " ", len(p.Segments))
		}
	}
	if !maps.Equal(stray, aside) {
		t.Errorf("set aside: %v, predicted: %v", slices.Sorted(maps.Keys(stray)), slices.Sorted(maps.Keys(aside)))
	}
	for name := range ours {
		if _, ok := real[name]; !ok {
			delete(ours, name) // of a log directory that went offline before it came to it
			t.Logf("%s was not loaded", name)
		}
	}
	for name, want := range real {
		if ours[name] != want {
			t.Errorf("%s: log start, end and segments are %s, predicted: %s", name, want, ours[name])
		}
	}
}
