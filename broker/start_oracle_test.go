//go:build oracle

package broker

import (
	"bytes"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"kseg/internal/fixture"
)

// wholeStarts is how many random damages of whole log directories a real broker is started on, beside those of
// whatKeeps, if KSEG_ORACLE_STARTS does not tell.
const wholeStarts = 40

// startCase is a copy of the three directories of a broker that stopped cleanly, damaged.
type startCase struct {
	name, did, root string
	start           *Start
	found           []*PartitionStart
}

func (c *startCase) dirs() []string {
	return []string{filepath.Join(c.root, "data1"), filepath.Join(c.root, "data2"), filepath.Join(c.root, "meta")}
}

func (c *startCase) properties(port int) string {
	dirs := c.dirs()
	return fixture.BrokerProperties(1, port, dirs[:2], "metadata.log.dir="+dirs[2], "log.index.size.max.bytes=20480",
		"log.retention.check.interval.ms=86400000", "log.initial.task.delay.ms=86400000",
		"log.cleaner.backoff.ms=86400000", "controlled.shutdown.enable=false", "auto.create.topics.enable=false")
}

// TestOracleStarts starts a real broker on each damaged copy, and compares: does it start, which logs are loaded with
// which ends, which are set aside, made anew or not served, and which log directories go offline.
func TestOracleStarts(t *testing.T) {
	java := fixture.CompileJava(t, fixture.LoggerSource(t), "oracle/Starts.java")
	seed, port := environment("KSEG_ORACLE_SEED", 1), environment("KSEG_ORACLE_PORT", 33092)
	var all []*startCase
	add := func(name string, edit func(root string) string) {
		c := &startCase{name: name, root: fixture.Dir(t, "4.4.0/logdirs/clean")}
		c.did = edit(c.root)
		config := c.properties(port)
		write(t, c.root, "server.properties", config)
		c.start, c.found = predictAll(t, config, c.dirs()...)
		all = append(all, c)
	}
	for _, k := range whatKeeps {
		add(k.name, func(root string) string { k.edit(t, root); return "" })
	}
	for i := range environment("KSEG_ORACLE_STARTS", wholeStarts) {
		s := spoiler{t: t, rng: rand.New(rand.NewPCG(uint64(seed), uint64(i)))}
		add(fmt.Sprint("random ", i), s.spoil)
	}
	out := startAll(t, java, all)
	agree := 0
	for _, c := range all {
		bad := c.compare(out[c])
		if len(bad) == 0 {
			agree++
			continue
		}
		t.Errorf("%s (%s):\n  %s", c.name, c.did, strings.Join(bad, "\n  "))
		if keep := os.Getenv("KSEG_ORACLE_KEEP"); keep != "" {
			write(t, keep, strings.ReplaceAll(c.name, " ", "-")+".log", out[c])
		}
	}
	t.Logf("%d of %d starts agree", agree, len(all))
}

// startAll starts all cases, a virtual machine for as many as it lives, and returns the log of each.
func startAll(t *testing.T, java fixture.Java, all []*startCase) map[*startCase]string {
	out := map[*startCase]string{}
	for left := all; len(left) > 0; {
		var input strings.Builder
		for _, c := range left {
			input.WriteString(filepath.Join(c.root, "server.properties") + "\n")
		}
		cmd := java.Command("Starts")
		var printed bytes.Buffer
		cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(input.String()), &printed, &printed
		if err := cmd.Run(); err != nil {
			t.Fatalf("%v\n%s", err, printed.String())
		}
		logs := strings.Split(printed.String(), "=== START ")[1:]
		if len(logs) == 0 {
			t.Fatalf("nothing was started:\n%s", printed.String())
		}
		for i, log := range logs {
			out[left[i]] = log
		}
		left = left[len(logs):]
	}
	return out
}

var (
	resultLine = regexp.MustCompile(`(?m)^=== RESULT (.*)$`)
	loadedLine = regexp.MustCompile(`Completed load of Log\(dir=(.+?), (?:topicId=.*?, )?topic=.*` +
		`logStartOffset=(\d+), logEndOffset=(\d+)\) with (\d+) segments`)
	strayLine   = regexp.MustCompile(`Log in (.+) marked stray and renamed to (.+)`)
	offlineLine = regexp.MustCompile(`(?:Stopping serving logs in dir|Failed to create or validate data directory) (\S+)`)
	refusedLine = regexp.MustCompile(`Unable to start fetching (\S+) with`)
	madeLine    = regexp.MustCompile(`Created log for partition (\S+) in `)
)

// compare lists what differs between the log of the real broker and the prediction.
func (c *startCase) compare(log string) []string {
	result := resultLine.FindStringSubmatch(log)
	if result == nil {
		return []string{"the log has no result"}
	}
	var bad []string
	differ := func(what string, real, ours []string) {
		slices.Sort(real)
		slices.Sort(ours)
		if real, ours = slices.Compact(real), slices.Compact(ours); !slices.Equal(real, ours) {
			bad = append(bad, fmt.Sprintf("%s: %v, predicted: %v", what, real, ours))
		}
	}
	started := result[1] == "started"
	if started != (len(c.start.Stops) == 0) && !c.chance() {
		return []string{fmt.Sprintf("%s, predicted: %v", result[1], c.start.Stops)}
	}
	if !started || len(c.start.Stops) > 0 {
		return nil
	}
	var offline, ours []string
	unserved := false
	for _, d := range c.start.Dirs {
		if d.isOffline() {
			ours = append(ours, d.Dir.Path)
		}
		unserved = unserved || len(d.Refused) > 0
	}
	for _, m := range offlineLine.FindAllStringSubmatch(log, -1) {
		offline = append(offline, m[1])
	}
	differ("offline", offline, ours)
	if refused := refusedLine.MatchString(log); len(offline) == 0 && refused != unserved {
		bad = append(bad, fmt.Sprintf("partitions are refused: %v, predicted: %v", refused, unserved))
	}
	var made, absent []string
	for _, m := range madeLine.FindAllStringSubmatch(log, -1) {
		made = append(made, m[1])
	}
	for _, a := range c.start.Absent() {
		if a.Fate != NotMade {
			absent = append(absent, a.Name())
		}
	}
	differ("made anew", made, absent)
	return append(bad, c.compareLogs(log, offline)...)
}

// chance reports whether it depends on the order of the loading if the broker starts.
func (c *startCase) chance() bool {
	return slices.ContainsFunc(c.start.Dirs, func(d *DirStart) bool {
		return slices.ContainsFunc(d.Offline, func(r Reason) bool {
			return strings.Contains(r.Text, "if it is loaded after")
		})
	})
}

// compareLogs compares the logs that the broker says it has loaded, and those that it has set aside, but for those of
// log directories that have gone offline before it came to them.
func (c *startCase) compareLogs(log string, offline []string) []string {
	real, renamed, ours := map[string]string{}, map[string]string{}, map[string]string{}
	for _, m := range strayLine.FindAllStringSubmatch(log, -1) {
		renamed[m[2]] = m[1]
	}
	for _, m := range loadedLine.FindAllStringSubmatch(log, -1) {
		what := strings.Join(m[2:], " ")
		if from, ok := renamed[m[1]]; ok {
			m[1], what = from, what+" stray"
		}
		real[m[1]] = what
	}
	for _, p := range c.found {
		if p.Partition.IsClusterMetadata() || p.Failure != nil {
			continue
		}
		ours[p.Partition.Path] = fmt.Sprint(p.Loaded.LogStart, " ", p.LogEnd, " ", len(p.Segments))
		if p.Stray != "" {
			ours[p.Partition.Path] += " stray"
		}
	}
	var bad []string
	for _, dir := range slices.Sorted(maps.Keys(ours)) {
		if _, ok := real[dir]; ok || slices.Contains(offline, filepath.Dir(dir)) {
			continue
		}
		bad = append(bad, fmt.Sprintf("%s: not loaded, predicted: %s", dir, ours[dir]))
	}
	for _, dir := range slices.Sorted(maps.Keys(real)) {
		if ours[dir] != real[dir] && !strings.Contains(dir, "/meta/") {
			bad = append(bad, fmt.Sprintf("%s: %s, predicted: %s", dir, real[dir], ours[dir]))
		}
	}
	return bad
}
