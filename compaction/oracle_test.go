//go:build oracle

package compaction

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"kseg/format"
	"kseg/internal/fixture"
	"kseg/logdir"
	"kseg/state"
)

// oracleTopics is how many topics the real broker gets.
const oracleTopics = 12

// TestOracleBrokerCleans fills topics of a real broker whose cleaner sleeps, stops it, says what a round will leave,
// and lets the broker's own cleaner run. What it leaves must be that.
func TestOracleBrokerCleans(t *testing.T) {
	java := fixture.CompileJava(t, "oracle/Keyed.java", fixture.LoggerSource(t))
	seed := time.Now().UnixNano()
	if text := os.Getenv("KSEG_ORACLE_SEED"); text != "" {
		seed, _ = strconv.ParseInt(text, 10, 64)
	}
	t.Logf("KSEG_ORACLE_SEED=%d", seed)
	port := oraclePort(t)
	dir := t.TempDir()
	data := filepath.Join(dir, "data")
	properties := func(backoffMs int) string {
		return fixture.BrokerProperties(1, port, []string{data}, "log.cleaner.backoff.ms="+strconv.Itoa(backoffMs),
			"log.cleaner.threads=1")
	}
	config := filepath.Join(dir, "server.properties")
	if err := os.WriteFile(config, []byte(properties(3600_000)), 0o644); err != nil {
		t.Fatal(err)
	}
	java.Run(t, nil, "kafka.tools.StorageTool", "format", "-t", "AABrc2VnAAAAAAAAAAAAAQ", "-c", config)
	b := fixture.StartBroker(t, java, properties(3600_000))
	b.Output.Await(t, "Kafka Server started", 1)
	java.Run(t, nil, "Keyed", fmt.Sprintf("127.0.0.1:%d", port), strconv.FormatInt(seed, 10), strconv.Itoa(oracleTopics))
	b.Stop(syscall.SIGTERM)

	reports, would := look(t, data), 0
	for _, r := range reports {
		if r.Would {
			would++
		}
	}
	if would < oracleTopics/2 {
		t.Fatalf("only %d of %d topics would be cleaned", would, len(reports))
	}
	b = fixture.StartBroker(t, java, properties(300))
	b.Output.Await(t, "cleaned log c-", would)
	b.Stop(syscall.SIGTERM)
	for _, r := range reports {
		if r.Round == nil {
			continue
		}
		for _, s := range r.Round.After {
			for kind, size := range map[format.Kind]int64{format.KindLog: s.Size, format.KindOffsetIndex: s.IndexSize,
				format.KindTimeIndex: s.TimeIndexSize} {
				name := filepath.Join(r.Partition.Path, format.SegmentFileName(s.Base, kind))
				info, err := os.Stat(name)
				if err != nil || info.Size() != size {
					t.Errorf("%s: predicted %d bytes, %v, %v", name, size, info, err)
				}
			}
		}
		logs, _ := filepath.Glob(filepath.Join(r.Partition.Path, "*.log"))
		left := len(r.Log.Segments) - len(r.Round.Segments) + len(r.Round.After)
		if len(logs) != left {
			t.Errorf("%s: %d segments are left, predicted %d", r.Partition.Name, len(logs), left)
		}
	}
	after := map[string]*Report{}
	for _, r := range look(t, data) {
		after[r.Partition.Name] = r
	}
	for _, r := range reports {
		if got := after[r.Partition.Name]; r.Would && (got.Log.CleanedTo == nil || *got.Log.CleanedTo != r.Round.EndOffset) {
			t.Errorf("%s: cleaned up to %v, predicted %d", r.Partition.Name, got.Log.CleanedTo, r.Round.EndOffset)
		}
	}
	t.Logf("%d topics cleaned as predicted", would)
}

func oraclePort(t *testing.T) int {
	if text := os.Getenv("KSEG_ORACLE_PORT"); text != "" {
		port, _ := strconv.Atoi(text)
		return port
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

// look analyzes the test's topics in a log directory.
func look(t *testing.T, data string) []*Report {
	t.Helper()
	set, err := logdir.Open([]string{data}, logdir.Options{})
	if err != nil {
		t.Fatal(err)
	}
	partitions, asked, _ := set.Chosen()
	now := time.Now().UnixMilli()
	a, err := NewAnalyzer(partitions, state.OpenCluster(set, nil), Options{NowMs: now, PresentMs: now,
		MaxBatchBytes: 1 << 28, Jobs: 2})
	if err != nil {
		t.Fatal(err)
	}
	var reports []*Report
	for i, p := range partitions {
		if !strings.HasPrefix(p.Topic, "c-") {
			continue
		}
		res := a.Look(context.Background(), p, asked[i])
		if res.Report == nil {
			t.Fatalf("%s: %v, %s", p.Name, res.Problems, res.Skipped)
		}
		reports = append(reports, res.Report)
	}
	return reports
}
