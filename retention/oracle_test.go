//go:build oracle

package retention

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"kseg/format"
	"kseg/internal/fixture"
	"kseg/logdir"
)

// oracleTopics is how many topics the real broker gets.
const oracleTopics = 40

// TestOracleBroker fills a real broker with random topics, stops it, spoils some time indexes and file times, and says
// what will go; then the broker runs again with a short check interval. What it deleted, and by which rule, must be
// that.
func TestOracleBroker(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	if text := os.Getenv("KSEG_ORACLE_SEED"); text != "" {
		seed, _ = strconv.ParseUint(text, 10, 64)
	}
	for name, end := range map[string]os.Signal{"clean": syscall.SIGTERM, "killed": syscall.SIGKILL} {
		t.Run(name, func(t *testing.T) {
			t.Logf("KSEG_ORACLE_SEED=%d", seed)
			oracleRun(t, rand.New(rand.NewPCG(seed, 0)), end)
		})
	}
}

func oracleRun(t *testing.T, rng *rand.Rand, end os.Signal) {
	b := newBroker(t, rng)
	run := b.start(3600_000)
	run.Output.Await(t, "Kafka Server started", 1)
	b.fill(oracleTopics)
	run.Stop(end)
	b.spoil()

	predicted := map[string]*Report{}
	for _, r := range judge(t, Options{NowMs: time.Now().UnixMilli()}, b.data) {
		predicted[r.Partition.Name] = r
	}
	if len(predicted) != oracleTopics {
		t.Fatalf("%d partitions are judged, %d were made", len(predicted), oracleTopics)
	}
	run = b.start(500)
	deletions := readDeletions(run.Output.Await(t, "Log cleanup completed", 6))
	run.Stop(syscall.SIGTERM)
	compareWithBroker(t, b.data, predicted, deletions)
}

// compareWithBroker holds the predictions against the broker's lines and the files that are left.
func compareWithBroker(t *testing.T, data string, predicted map[string]*Report, deletions map[string]map[int64]Rule) {
	t.Helper()
	goes := 0
	for name, r := range predicted {
		want, got := map[int64]Rule{}, deletions[name]
		var stay []int64
		for _, s := range r.Segments {
			if s.Verdict.Rule != Keep {
				want[s.Base] = s.Verdict.Rule
				goes++
			} else {
				stay = append(stay, s.Base)
			}
		}
		if len(stay) == 0 {
			stay = []int64{r.Log.EndOffset}
		}
		if !maps.Equal(want, got) {
			t.Errorf("%s: predicted %v, the broker said %v\n%s", name, want, got, r.AppendText(nil, themeless, 120))
		}
		logs, _ := filepath.Glob(filepath.Join(data, name, "*.log"))
		var left []int64
		for _, f := range logs {
			left = append(left, format.ParseFileName(filepath.Base(f)).Base)
		}
		if !slices.Equal(stay, left) {
			t.Errorf("%s: predicted to stay %v, left %v", name, stay, left)
		}
	}
	t.Logf("%d segments went, as predicted", goes)
}

// realBroker is one of a single node on this machine, in a directory of its own.
type realBroker struct {
	t    *testing.T
	java fixture.Java
	data string
	port int
	rng  *rand.Rand
}

func newBroker(t *testing.T, rng *rand.Rand) *realBroker {
	b := &realBroker{t: t, java: fixture.CompileJava(t, "oracle/Topics.java", fixture.LoggerSource(t)), rng: rng,
		port: freePort(t)}
	dir := t.TempDir()
	b.data = filepath.Join(dir, "data")
	config := filepath.Join(dir, "server.properties")
	if err := os.WriteFile(config, []byte(b.properties(3600_000)), 0o644); err != nil {
		t.Fatal(err)
	}
	b.java.Run(t, nil, "kafka.tools.StorageTool", "format", "-t", "AABrc2VnAAAAAAAAAAAAAQ", "-c", config)
	return b
}

func freePort(t *testing.T) int {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

func (b *realBroker) properties(checkIntervalMs int) string {
	return fixture.BrokerProperties(1, b.port, []string{b.data}, "log.index.size.max.bytes=4096",
		fmt.Sprintf("log.retention.check.interval.ms=%d", checkIntervalMs), fmt.Sprintf("log.initial.task.delay.ms=%d",
			checkIntervalMs),
		"log.cleaner.backoff.ms=300", "log.message.timestamp.after.max.ms=9223372036854775807")
}

// start runs the broker, which looks for what has expired in that interval.
func (b *realBroker) start(checkIntervalMs int) *fixture.Broker {
	return fixture.StartBroker(b.t, b.java, b.properties(checkIntervalMs))
}

// fill makes topics with random settings and records. Ages are whole minutes and limits of time half ones, so that
// nothing depends on how long the test takes.
func (b *realBroker) fill(topics int) {
	var script strings.Builder
	fmt.Fprintf(&script, "broker log.retention.ms=%d\n", b.minutes(300)+30_000)
	now := time.Now().UnixMilli()
	for i := range topics {
		name := fmt.Sprintf("o-%02d", i)
		settings := b.settings()
		fmt.Fprintf(&script, "topic %s%s\n", name, settings)
		records := b.rng.IntN(30)
		for range records {
			age := b.minutes(600)
			switch b.rng.IntN(50) {
			case 0:
				age = -b.minutes(500)
			case 1:
				age = now - b.rng.Int64N(2) // 1970
			}
			fmt.Fprintf(&script, "send %s %d %d\n", name, now-age, 1+b.rng.IntN(900))
		}
		if b.rng.IntN(4) == 0 && !strings.Contains(settings, "=compact ") { // refused where only compaction deletes
			fmt.Fprintf(&script, "delete %s %d\n", name, b.rng.IntN(records+1))
		}
	}
	out := b.java.Run(b.t, strings.NewReader(script.String()), "Topics", fmt.Sprintf("127.0.0.1:%d", b.port))
	if !strings.Contains(string(out), "filled") {
		b.t.Fatalf("%s", out[max(0, len(out)-2000):])
	}
}

// minutes is a random whole number of minutes below most, in milliseconds.
func (b *realBroker) minutes(most int64) int64 { return b.rng.Int64N(most) * 60_000 }

func (b *realBroker) settings() string {
	text := fmt.Sprintf(" internal.segment.bytes=%d", 1000+b.rng.IntN(2000))
	switch b.rng.IntN(6) {
	case 0:
		text += " retention.ms=-1"
	case 1, 2, 3:
		text += fmt.Sprintf(" retention.ms=%d", b.minutes(600)+30_000)
	case 4:
		text += " retention.ms=0"
	}
	if b.rng.IntN(2) == 0 {
		text += fmt.Sprintf(" retention.bytes=%d", b.rng.IntN(8000))
	}
	const uncleaned = " min.compaction.lag.ms=9223372036854775807"
	switch b.rng.IntN(8) {
	case 0:
		text += " cleanup.policy=compact" + uncleaned
	case 1, 2:
		text += " cleanup.policy=compact,delete" + uncleaned
	case 3:
		text += " cleanup.policy="
	}
	if b.rng.IntN(8) == 0 {
		text += " message.timestamp.type=LogAppendTime"
	}
	return text
}

// spoil damages time indexes of closed segments, takes some offset indexes away, and sets the time of every log.
func (b *realBroker) spoil() {
	set, err := logdir.Open([]string{b.data}, logdir.Options{})
	if err != nil {
		b.t.Fatal(err)
	}
	for _, p := range set.Partitions() {
		if p.IsClusterMetadata() {
			continue
		}
		for _, s := range p.Segments {
			at := time.UnixMilli(time.Now().UnixMilli() - b.minutes(600))
			if err := os.Chtimes(s.Log.Path, at, at); err != nil {
				b.t.Fatal(err)
			}
			if s.Next != nil {
				b.spoilSegment(s)
			}
		}
	}
}

func (b *realBroker) spoilSegment(s *logdir.Segment) {
	var err error
	switch b.rng.IntN(12) {
	case 0:
		err = os.Remove(s.TimeIndex.Path)
	case 1:
		err = os.Truncate(s.TimeIndex.Path, 0)
	case 2:
		err = os.Truncate(s.TimeIndex.Path, s.TimeIndex.Size+12*b.rng.Int64N(5)+b.rng.Int64N(12))
	case 3:
		err = os.Truncate(s.TimeIndex.Path, max(0, s.TimeIndex.Size-12))
	case 4:
		err = os.Remove(s.Index.Path)
	case 5:
		entry := format.AppendTimeEntry(nil, s.Base, format.TimeEntry{TimestampMs: time.Now().UnixMilli() - b.minutes(600),
			Offset: s.Base})
		err = os.WriteFile(s.TimeIndex.Path, entry, 0o644)
	}
	if err != nil {
		b.t.Fatal(err)
	}
}

var (
	deletionLine = regexp.MustCompile(`^\[UnifiedLog partition=(\S+), dir=\S+\] Deleting segments? .*due to .*?log ` +
		`(retention time|retention size|start offset)`)
	baseOffset = regexp.MustCompile(`LogSegment\(baseOffset=(\d+),`)
)

// readDeletions gives, by partition, the rule for each segment that the broker says it deletes.
func readDeletions(output string) map[string]map[int64]Rule {
	rules := map[string]Rule{"retention time": Time, "retention size": Size, "start offset": LogStartOffset}
	deletions := map[string]map[int64]Rule{}
	for line := range strings.Lines(output) {
		m := deletionLine.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		if deletions[m[1]] == nil {
			deletions[m[1]] = map[int64]Rule{}
		}
		for _, b := range baseOffset.FindAllStringSubmatch(line, -1) {
			base, _ := strconv.ParseInt(b[1], 10, 64)
			deletions[m[1]][base] = rules[m[2]]
		}
	}
	return deletions
}
