//go:build oracle

package state

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"kseg/internal/fixture"
)

// oraclePort is where the broker of the test listens; its controller takes the next, and clients that say who they are
// come to the one after that.
const oraclePort = 36092

// TestOracleState lets a real broker make groups of all kinds, transactions, topics, settings and users, and kills it.
// What its files fold to must be what it answers once it has started again.
func TestOracleState(t *testing.T) {
	java := fixture.CompileJava(t, "oracle/Cluster.java", fixture.LoggerSource(t))
	dir := t.TempDir()
	data := filepath.Join(dir, "data")
	address := fmt.Sprintf("PLAINTEXT://127.0.0.1:%d,SASL_PLAINTEXT://127.0.0.1:%d", oraclePort, oraclePort+2)
	sasl := fmt.Sprintf("listeners=%s,CONTROLLER://127.0.0.1:%d\nadvertised.listeners=%[1]s\n"+
		"listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SASL_PLAINTEXT:SASL_PLAINTEXT\n"+
		"sasl.enabled.mechanisms=SCRAM-SHA-256\nlistener.name.sasl_plaintext.scram-sha-256.sasl.jaas.config="+
		"org.apache.kafka.common.security.scram.ScramLoginModule required;", address, oraclePort+1)
	properties := fixture.BrokerProperties(1, oraclePort, []string{data}, "log.index.size.max.bytes=4096",
		"share.coordinator.state.topic.num.partitions=1", "share.coordinator.state.topic.replication.factor=1",
		"share.coordinator.state.topic.min.isr=1",
		"authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer",
		"super.users=User:ANONYMOUS;User:alice", sasl, "delegation.token.secret.key=secret",
		"metadata.log.max.record.bytes.between.snapshots=3000", "group.initial.rebalance.delay.ms=0",
		"log.cleaner.enable=false",
		"offsets.retention.check.interval.ms=86400000", "offsets.retention.minutes=1440",
		"transaction.abort.timed.out.transaction.cleanup.interval.ms=86400000")
	config := filepath.Join(dir, "server.properties")
	if err := os.WriteFile(config, []byte(properties), 0o644); err != nil {
		t.Fatal(err)
	}
	java.Run(t, nil, "kafka.tools.StorageTool", "format", "-t", "AABrc2VnAAAAAAAAAAAAAQ", "-c", config)
	server := fmt.Sprintf("127.0.0.1:%d", oraclePort)

	run := fixture.StartBroker(t, java, properties)
	run.Output.Await(t, "Kafka Server started", 1)
	java.Run(t, nil, "Cluster", "fill", server, fmt.Sprint(time.Now().UnixNano()))
	run.Stop(syscall.SIGKILL)

	im, err := openImage(t, filepath.Join(data, MetadataDir))
	if err != nil {
		t.Fatal(err)
	}
	offsets := FoldOffsets(openPartition(t, filepath.Join(data, "__consumer_offsets-0")), OffsetsOptions{})
	shares := FoldShareState(openPartition(t, filepath.Join(data, "__share_group_state-0")), OffsetsOptions{})
	groups, states := offsets.Groups(), shares.States()
	if len(im.Problems)+len(im.Lost)+len(offsets.Problems)+len(offsets.Lost)+len(shares.Lost) > 0 {
		t.Errorf("problems %v %v, lost %v %v %v", im.Problems, offsets.Problems, im.Lost, offsets.Lost, shares.Lost)
	}
	checkSnapshots(t, filepath.Join(data, MetadataDir))

	run = fixture.StartBroker(t, java, properties)
	run.Output.Await(t, "Kafka Server started", 1)
	out := java.Run(t, nil, "Cluster", "ask", server)
	// The answer is a line among those that the clients log.
	out = out[max(0, bytes.LastIndex(out, []byte(`{"acls"`))):]
	out, _, _ = bytes.Cut(out, []byte("\n"))
	run.Stop(syscall.SIGKILL)
	want := readAnswers(t, out)
	compareImage(t, im, want)
	compareGroups(t, groups, states, im, want.Groups)
	expiring := strings.Replace(properties, "check.interval.ms=86400000", "check.interval.ms=1000", 1)
	checkExpired(t, java, expiring, data, server)
	pending := 0
	for _, g := range groups {
		for _, c := range g.Offsets {
			if c.Pending {
				pending++
			}
		}
	}
	if pending == 0 {
		t.Error("no commit is pending, though two transactions are open")
	}
	t.Logf("%d groups, %d topics, %d configs, %d pending commits; %s", len(want.Groups), len(want.Topics),
		len(want.Configs), pending, statesOf(want))
	if t.Failed() {
		t.Log(strings.TrimSpace(string(out)))
	}
}

// checkExpired lets a broker drop the offsets whose time is up. They must be those that are due.
func checkExpired(t *testing.T, java fixture.Java, properties, data, server string) {
	t.Helper()
	fold := func() []*Group {
		return FoldOffsets(openPartition(t, filepath.Join(data, "__consumer_offsets-0")), OffsetsOptions{}).Groups()
	}
	const day = 24 * 60 * 60 * 1000
	before, now := fold(), time.Now().UnixMilli()
	run := fixture.StartBroker(t, java, properties)
	run.Output.Await(t, "Kafka Server started", 1)
	java.Run(t, nil, "Cluster", "expire", server)
	run.Stop(syscall.SIGKILL)
	left := map[string]bool{}
	for _, g := range fold() {
		for _, c := range g.Offsets {
			left[fmt.Sprint(g.ID, " ", c.Topic, " ", c.Partition)] = true
		}
	}
	due, stay := 0, 0
	for _, g := range before {
		for _, c := range g.Offsets {
			at, expires := g.ExpiresAt(&c, day)
			gone := expires && at <= now
			if name := fmt.Sprint(g.ID, " ", c.Topic, " ", c.Partition); left[name] == gone && !c.Pending {
				t.Errorf("%s: due %v at %d, now %d, left %v; %+v", name, expires, at, now, left[name], c)
			}
			if gone {
				due++
			} else {
				stay++
			}
		}
	}
	t.Logf("%d offsets were due, and %d stay", due, stay)
	if due == 0 || stay == 0 {
		t.Error("nothing is tested")
	}
}

// statesOf counts the states that the groups are in.
func statesOf(a *adminAnswers) string {
	count := map[string]int{}
	for _, g := range a.Groups {
		count[g.Type+" "+g.State]++
	}
	return fmt.Sprint(count)
}

// checkSnapshots holds each snapshot against the fold of what is before it.
func checkSnapshots(t *testing.T, dir string) {
	t.Helper()
	p := openPartition(t, dir)
	snapshots := Snapshots(p)
	checked := 0
	for i, f := range snapshots {
		if i == 0 {
			continue
		}
		folded, err := FoldImage(p, FoldOptions{Before: &f.Name.Base, From: snapshots[i-1]})
		if err != nil {
			t.Fatal(err)
		}
		im, err := ReadImageFile(f, FoldOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if diff := Differences(folded, im); len(diff) > 0 || len(folded.Lost) > 0 {
			t.Errorf("%s: %d differences, the first %+v; lost %v", f.Name.Raw, len(diff), diff, folded.Lost)
		}
		checked++
	}
	t.Logf("%d of %d snapshots are the fold of the log before them", checked, len(snapshots))
}
