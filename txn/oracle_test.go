//go:build oracle

package txn

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"kseg/format"
	"kseg/internal/fixture"
	"kseg/logdir"
	"kseg/state"
)

const oraclePort = 25192

// judged are the reports on a log directory, as if two minutes from now.
func judged(t *testing.T, dir string) (*Judge, []*Report) {
	t.Helper()
	set, err := logdir.Open([]string{dir}, logdir.Options{})
	if err != nil {
		t.Fatal(err)
	}
	cluster := state.OpenCluster(set, nil)
	coordinators, err := state.ReadCoordinators(context.Background(), set, cluster, nil)
	if err != nil {
		t.Fatal(err)
	}
	j := &Judge{Cluster: cluster, Coordinators: coordinators,
		Options: Options{NowMs: time.Now().Add(2 * time.Minute).UnixMilli(), All: true, MaxBatchBytes: 1 << 28}}
	var reports []*Report
	for _, p := range set.Partitions() {
		if Skipped(p) != "" || p.Topic[0] == '_' {
			continue
		}
		r, err := j.Partition(context.Background(), p)
		if err != nil {
			t.Fatal(err)
		}
		reports = append(reports, r)
	}
	return j, reports
}

// described is what Transactions.java prints of a broker on the same directory.
func described(j *Judge, reports []*Report) string {
	var b strings.Builder
	for _, c := range j.IDs() {
		var names []string
		for _, tp := range c.Partitions {
			names = append(names, fmt.Sprintf("%s-%d", tp.Topic, tp.Partition))
		}
		fmt.Fprintf(&b, "id %s %s %d %d %d [%s]\n", c.ID, c.Status, c.ProducerID, c.ProducerEpoch, c.TimeoutMs,
			strings.Join(names, ", "))
	}
	for _, r := range reports {
		fmt.Fprintf(&b, "stable %s %d\n", r.Partition.Name, r.LastStable)
		for _, e := range r.producers(&j.Options) {
			fmt.Fprintf(&b, "producer %s %d %d %d %d %d %d\n", r.Partition.Name, e.ProducerID, e.ProducerEpoch, e.LastSequence,
				e.TimestampMs, e.CoordinatorEpoch, e.CurrentTxnFirstOffset)
		}
	}
	return b.String()
}

// TestOracleBroker fills a real broker with transactions, stops it, and holds what the files say against what it says
// when it runs again. Then its coordinator loses its state: what hangs must be what kafka-transactions.sh finds, and
// the printed commands must end it.
func TestOracleBroker(t *testing.T) {
	for version := 1; version <= 2; version++ { // 2 is KIP-890's
		t.Run(fmt.Sprintf("transaction.version=%d", version), func(t *testing.T) { checkBroker(t, version) })
	}
}

func checkBroker(t *testing.T, version int) {
	t.Helper()
	java, client := fixture.CompileJava(t, fixture.LoggerSource(t)), fixture.CompileJava(t,
		filepath.Join("oracle", "Transactions.java"))
	data := filepath.Join(t.TempDir(), "data")
	properties := fixture.BrokerProperties(1, oraclePort, []string{data}, "log.retention.check.interval.ms=86400000",
		"log.initial.task.delay.ms=86400000", "group.initial.rebalance.delay.ms=0")
	server := fmt.Sprintf("127.0.0.1:%d", oraclePort)
	file := filepath.Join(t.TempDir(), "server.properties")
	if err := os.WriteFile(file, []byte(properties), 0o644); err != nil {
		t.Fatal(err)
	}
	java.Run(t, nil, "kafka.tools.StorageTool", "format", "-t", "AAAAAAAAQACAAAAAAAAAAA", "-c", file)
	run := func(end os.Signal, ask func()) {
		b := fixture.StartBroker(t, java, properties)
		b.Output.Await(t, "Kafka Server started", 1)
		ask()
		b.Stop(end)
	}
	seed := time.Now().UnixNano()
	t.Logf("seed %d", seed)
	run(syscall.SIGTERM, func() {
		client.Run(t, nil, "Transactions", "fill", server, fmt.Sprint(seed), fmt.Sprint(version))
	})

	j, reports := judged(t, data)
	open := 0
	for _, r := range reports {
		open += len(r.Open)
		if r.Hangs() > 0 {
			t.Errorf("%s: %+v hangs, though its coordinator is well", r.Partition.Name, r.Open)
		}
	}
	if open == 0 {
		t.Fatal("no transaction is open: nothing is tested")
	}
	want := described(j, reports)
	run(syscall.SIGKILL, func() {
		if got := string(client.Run(t, nil, "Transactions", "describe", server)); got != want {
			t.Errorf("the files say\n%sthe broker says\n%s", want, got)
		}
	})

	for _, f := range globbed(t, filepath.Join(data, "__transaction_state-0", "0*")) {
		if err := os.Remove(f); err != nil {
			t.Fatal(err)
		}
	}
	// An empty log is what a coordinator begins with that has lost its own.
	if err := os.WriteFile(filepath.Join(data, "__transaction_state-0", format.SegmentFileName(0, format.KindLog)), nil,
		0o644); err != nil {
		t.Fatal(err)
	}
	_, reports = judged(t, data)
	var hang, aborts []string
	for _, r := range reports {
		for i := range r.Open {
			tx := &r.Open[i]
			if tx.Status != Hanging {
				t.Errorf("%s: %+v does not hang, though nobody knows it", r.Partition.Name, tx)
			}
			hang = append(hang, fmt.Sprintf("%s %d %d %d %d %d", r.Partition.Topic, r.Partition.PartitionDir.Partition,
				tx.ProducerID, tx.ProducerEpoch, tx.CoordinatorEpoch, tx.FirstOffset))
			aborts = append(aborts, strings.Replace(r.AbortLine(tx), "HOST:PORT", server, 1))
		}
	}
	run(syscall.SIGTERM, func() {
		out := string(client.Run(t, nil, "org.apache.kafka.tools.TransactionsCommand", "--bootstrap-server", server,
			"find-hanging", "--broker-id", "1", "--max-transaction-timeout", "0"))
		var found []string
		for line := range strings.Lines(out) {
			if f := strings.Fields(line); len(f) == 8 && f[0][0] == 't' {
				found = append(found, strings.Join(f[:6], " "))
			}
		}
		slices.Sort(hang)
		slices.Sort(found)
		if !slices.Equal(hang, found) {
			t.Errorf("hanging by the files\n%s\nby the real tool\n%s", strings.Join(hang, "\n"), out)
		}
		for _, line := range aborts {
			client.Run(t, nil, "org.apache.kafka.tools.TransactionsCommand", strings.Fields(line)[1:]...)
		}
	})
	_, reports = judged(t, data)
	for _, r := range reports {
		if len(r.Open) > 0 || r.LastStable != r.LogEnd {
			t.Errorf("%s: after the printed commands ran, %+v is open and %d stable of %d", r.Partition.Name, r.Open,
				r.LastStable, r.LogEnd)
		}
	}
	t.Logf("%d open transactions, %d hung and were aborted", open, len(hang))
}

func globbed(t *testing.T, pattern string) []string {
	t.Helper()
	files, err := filepath.Glob(pattern)
	if err != nil || len(files) == 0 {
		t.Fatalf("%s: %v, %v", pattern, files, err)
	}
	return files
}
