//go:build oracle

package state

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"kseg/internal/fixture"
)

// oraclePort is where the broker of the tests listens; its controller takes the next, and clients that say who they are
// come to the one after that.
const oraclePort = 25092

// oracleCluster is a real broker, the whole of its cluster, that is started and killed at will.
type oracleCluster struct {
	java                     fixture.Java
	properties, data, server string
}

func newOracleCluster(t *testing.T) *oracleCluster {
	t.Helper()
	c := &oracleCluster{java: fixture.CompileJava(t, "oracle/Cluster.java", "oracle/Churn.java", fixture.LoggerSource(t)),
		server: fmt.Sprintf("127.0.0.1:%d", oraclePort)}
	dir := t.TempDir()
	c.data = filepath.Join(dir, "data")
	address := fmt.Sprintf("PLAINTEXT://127.0.0.1:%d,SASL_PLAINTEXT://127.0.0.1:%d", oraclePort, oraclePort+2)
	sasl := fmt.Sprintf("listeners=%s,CONTROLLER://127.0.0.1:%d\nadvertised.listeners=%[1]s\n"+
		"listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SASL_PLAINTEXT:SASL_PLAINTEXT\n"+
		"sasl.enabled.mechanisms=SCRAM-SHA-256\nlistener.name.sasl_plaintext.scram-sha-256.sasl.jaas.config="+
		"org.apache.kafka.common.security.scram.ScramLoginModule required;", address, oraclePort+1)
	c.properties = fixture.BrokerProperties(1, oraclePort, []string{c.data}, "log.index.size.max.bytes=4096",
		"share.coordinator.state.topic.num.partitions=1", "share.coordinator.state.topic.replication.factor=1",
		"share.coordinator.state.topic.min.isr=1",
		"authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer",
		"super.users=User:ANONYMOUS;User:alice", sasl, "delegation.token.secret.key=secret",
		"metadata.log.max.record.bytes.between.snapshots=3000", "group.initial.rebalance.delay.ms=0",
		"log.cleaner.enable=false", "offsets.retention.check.interval.ms=86400000", "offsets.retention.minutes=1440",
		"transaction.abort.timed.out.transaction.cleanup.interval.ms=86400000")
	config := filepath.Join(dir, "server.properties")
	if err := os.WriteFile(config, []byte(c.properties), 0o644); err != nil {
		t.Fatal(err)
	}
	c.java.Run(t, nil, "kafka.tools.StorageTool", "format", "-t", "AABrc2VnAAAAAAAAAAAAAQ", "-c", config)
	return c
}

// run starts the broker, has Cluster.java do what the words say, and kills it. It returns what was answered: the lines
// of that among those that the clients log.
func (c *oracleCluster) run(t *testing.T, properties string, words ...string) (answers []*adminAnswers) {
	t.Helper()
	run := fixture.StartBroker(t, c.java, properties)
	run.Output.Await(t, "Kafka Server started", 1)
	out := c.java.Run(t, nil, "Cluster", slices.Insert(words, 1, c.server)...)
	run.Stop(syscall.SIGKILL)
	for line := range bytes.Lines(out) {
		if bytes.HasPrefix(line, []byte(`{"acls"`)) {
			answers = append(answers, readAnswers(t, line))
		}
	}
	return answers
}

// image is the fold of the metadata log up to an offset, or of all of it.
func (c *oracleCluster) image(t *testing.T, before *int64) *Image {
	t.Helper()
	im, err := FoldImage(openPartition(t, filepath.Join(c.data, MetadataDir)), FoldOptions{Before: before})
	if err != nil || len(im.Problems)+len(im.Lost) > 0 {
		t.Fatalf("%v, problems %v, lost %v", err, im.Problems, im.Lost)
	}
	return im
}

// groups are what the coordinators' logs fold to.
func (c *oracleCluster) groups(t *testing.T, o OffsetsOptions) ([]*Group, []*ShareState) {
	t.Helper()
	offsets := FoldOffsets(openPartition(t, filepath.Join(c.data, "__consumer_offsets-0")), o)
	shares := &ShareLog{}
	if dir := filepath.Join(c.data, "__share_group_state-0"); fileThere(dir) {
		shares = FoldShareState(openPartition(t, dir), OffsetsOptions{})
	}
	groups := offsets.Groups()
	if len(offsets.Problems)+len(offsets.Lost)+len(shares.Lost) > 0 {
		t.Errorf("problems %v, lost %v %v", offsets.Problems, offsets.Lost, shares.Lost)
	}
	return groups, shares.States()
}

func fileThere(name string) bool {
	_, err := os.Stat(name)
	return err == nil
}

// TestOracleState lets a real broker make groups of all kinds, transactions, topics, settings and users, and kills it.
// What its files fold to must be what it answers once it has started again.
func TestOracleState(t *testing.T) {
	c := newOracleCluster(t)
	c.run(t, c.properties, "fill", fmt.Sprint(time.Now().UnixNano()))
	im := c.image(t, nil)
	groups, states := c.groups(t, OffsetsOptions{})
	checkSnapshots(t, filepath.Join(c.data, MetadataDir))

	want := c.run(t, c.properties, "ask")[0]
	compareImage(t, im, want)
	compareDetails(t, c.image(t, nil), groups, want)
	compareGroups(t, groups, states, im, want.Groups)
	c.checkExpired(t)
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
}

// TestOracleChurn does things at random to a real broker's groups, topics, settings and a second broker that is nothing
// but its registration. The logs must fold to what the broker answers: as of offsets in between, and after a crash.
// KSEG_SEED is the seed of an earlier run, KSEG_KEEP a folder for the log directory of one that fails.
func TestOracleChurn(t *testing.T) {
	seed := time.Now().UnixNano()
	if given, err := strconv.ParseInt(os.Getenv("KSEG_SEED"), 10, 64); err == nil {
		seed = given
	}
	t.Logf("KSEG_SEED=%d", seed)
	c := newOracleCluster(t)
	between := c.run(t, c.properties, "churn", fmt.Sprint(seed), "60")
	for _, want := range between {
		want.Tokens = nil
		im := c.image(t, &want.MetadataEnd)
		for _, thing := range im.Things(ConfigThing) {
			if config := thing.(*Config); config.Leftover { // the broker ran all the time
				delete(im.configs[config.Resource], config.Name)
				delete(im.things, config.key())
			}
		}
		compareImage(t, im, want)
		groups, _ := c.groups(t, OffsetsOptions{Until: Point{Given: true, Offset: want.OffsetsEnd - 1}})
		compareOffsets(t, want.OffsetsEnd, groups, want.Groups)
	}
	groups, states := c.groups(t, OffsetsOptions{})
	checkSnapshots(t, filepath.Join(c.data, MetadataDir))
	before := c.image(t, nil)
	want := c.run(t, c.properties, "ask")[0]
	compareImage(t, before, want)
	compareDetails(t, c.image(t, nil), groups, want)
	compareGroups(t, groups, states, before, want.Groups)
	if len(between) != 2 {
		t.Errorf("%d answers in between", len(between))
	}
	if keep := os.Getenv("KSEG_KEEP"); t.Failed() && keep != "" {
		if err := os.CopyFS(keep, os.DirFS(c.data)); err != nil {
			t.Error(err)
		}
	}
	t.Logf("%d groups, %d topics, %d configs; %s", len(want.Groups), len(want.Topics), len(want.Configs), statesOf(want))
}

// compareOffsets holds what is committed at an offset against the answers, those of share groups aside.
func compareOffsets(t *testing.T, end int64, groups []*Group, want map[string]adminGroup) {
	t.Helper()
	got := map[string]string{}
	for _, g := range groups {
		for _, o := range g.Offsets {
			if !o.Pending {
				got[fmt.Sprintf("%s %s-%d", g.ID, o.Topic, o.Partition)] = fmt.Sprint(adminOffset{o.Offset,
					int64(o.LeaderEpoch), o.Metadata})
			}
		}
	}
	asked := map[string]string{}
	for id, g := range want {
		for tp, raw := range g.Offsets {
			var o adminOffset
			if strings.EqualFold(g.Type, "share") {
				continue
			}
			if err := json.Unmarshal(raw, &o); err != nil {
				t.Fatal(err)
			}
			asked[id+" "+tp] = fmt.Sprint(o)
		}
	}
	if diff := cmp.Diff(asked, got); diff != "" {
		t.Errorf("before offset %d: %s", end, diff)
	}
}

// compareDetails holds what the answers of today say and the frozen ones do not.
func compareDetails(t *testing.T, im *Image, groups []*Group, want *adminAnswers) {
	t.Helper()
	for name, w := range want.Topics {
		for _, p := range w.Partitions {
			if im.Topic(name) == nil || im.Topic(name).Partitions[p.Partition] == nil {
				t.Errorf("no %s-%d", name, p.Partition)
				continue
			}
			k := im.Topic(name).Partitions[p.Partition]
			got := adminPartition{p.Partition, k.Leader, k.Replicas, k.ISR, k.ELR, k.LastKnownELR}
			if diff := cmp.Diff(p, got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s-%d: %s", name, p.Partition, diff)
			}
		}
	}
	var brokers []adminBroker
	for _, b := range im.Things(BrokerThing) {
		b := b.(*Broker)
		brokers = append(brokers, adminBroker{b.ID, b.Fenced, b.Rack})
	}
	var credentials []string
	for _, u := range im.Things(ScramThing) {
		u := u.(*ScramUser)
		credentials = append(credentials, fmt.Sprint(u.Name, " ", u.Mechanism, " ", u.Iterations))
	}
	byID := cmpopts.SortSlices(func(a, b adminBroker) bool { return a.ID < b.ID })
	for _, diff := range []string{cmp.Diff(want.Brokers, brokers, byID), cmp.Diff(want.Credentials, credentials,
		cmpopts.EquateEmpty(), cmpopts.SortSlices(strings.Compare))} {
		if diff != "" {
			t.Error(diff)
		}
	}
	for _, g := range groups {
		w := want.Groups[g.ID]
		if g.Kind == StreamsKind && w.Epoch == nil {
			continue // it was not described
		}
		if w.Epoch != nil && (!g.HasEpoch || g.Epoch != *w.Epoch) {
			t.Errorf("%s has epoch %d, want %d", g.ID, g.Epoch, *w.Epoch)
		}
		members := []adminMember{}
		for _, m := range g.Members {
			a := adminMember{ID: m.ID, Instance: m.InstanceID, Client: m.ClientID, Host: m.Host, Epoch: m.Epoch}
			for _, list := range m.Assigned {
				topic := list.Topic
				if known := im.Topics()[list.TopicID]; known != nil {
					topic = known.Name
				} else if topic == "" {
					continue // of a topic that was deleted, which the Admin client is not told of
				}
				for _, p := range list.Partitions {
					a.Assigned = append(a.Assigned, fmt.Sprint(topic, "-", p))
				}
			}
			if slices.Sort(a.Assigned); g.Kind == StreamsKind {
				a.Assigned = nil
			}
			members = append(members, a)
		}
		if diff := cmp.Diff(w.Members, members, cmpopts.EquateEmpty(), cmpopts.SortSlices(func(a, b adminMember) bool {
			return a.ID < b.ID
		})); diff != "" {
			t.Errorf("%s group %s: %s", g.Kind, g.ID, diff)
		}
	}
}

// checkExpired lets the broker drop the offsets whose time is up. They must be those that are due.
func (c *oracleCluster) checkExpired(t *testing.T) {
	t.Helper()
	const day = 24 * 60 * 60 * 1000
	before, _ := c.groups(t, OffsetsOptions{})
	now := time.Now().UnixMilli()
	c.run(t, strings.Replace(c.properties, "check.interval.ms=86400000", "check.interval.ms=1000", 1), "expire")
	after, _ := c.groups(t, OffsetsOptions{})
	left := map[string]bool{}
	for _, g := range after {
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
		if diff := folded.Unexplained(im); len(diff) > 0 || len(folded.Lost) > 0 {
			t.Errorf("%s: %d differences, the first %+v; lost %v", f.Name.Raw, len(diff), diff, folded.Lost)
		}
		checked++
	}
	t.Logf("%d of %d snapshots are the fold of the log before them", checked, len(snapshots))
}
