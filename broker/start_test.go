package broker

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"kseg/format"
	"kseg/internal/fixture"
	"kseg/logdir"
	"kseg/state"
)

// predictDirs plays through the start of one broker.
func predictDirs(t *testing.T, dirs ...string) (*Start, map[string]*PartitionStart) {
	t.Helper()
	return predictWith(t, "", dirs...)
}

// predictWith plays through the start of one broker with a server.properties, if that is not empty.
func predictWith(t *testing.T, server string, dirs ...string) (*Start, map[string]*PartitionStart) {
	t.Helper()
	start, list := predictAll(t, server, dirs...)
	found := map[string]*PartitionStart{}
	for _, p := range list {
		found[p.Partition.Name] = p
	}
	return start, found
}

// predictAll is predictWith of partitions whose names may not tell them apart.
func predictAll(t *testing.T, server string, dirs ...string) (*Start, []*PartitionStart) {
	t.Helper()
	set, err := logdir.Open(dirs, logdir.Options{})
	if err != nil {
		t.Fatal(err)
	}
	cluster := state.OpenCluster(set, nil)
	all := set.LogDirs()
	options := &StartOptions{NowMs: frozenNow.UnixMilli(), MaxBatchBytes: 1 << 20, Jobs: 2, Settings: cluster.Settings}
	if server != "" {
		properties, err := format.DecodeProperties([]byte(server))
		if err != nil {
			t.Fatal(err)
		}
		options.Server = ParseServer(properties)
	}
	groups := Brokers(all, &cluster.Dirs, cluster, options.Server)
	if len(groups) != 1 {
		t.Fatalf("%d brokers", len(groups))
	}
	start, err := NewStart(groups[0], &cluster.Dirs, options)
	if err != nil {
		t.Fatal(err)
	}
	byDir := map[*logdir.LogDir]*DirStart{}
	for _, d := range start.Dirs {
		byDir[d.Dir] = d
	}
	var list []*PartitionStart
	for p := range start.Partitions(context.Background(), set.Partitions(), byDir) {
		if p.Err != nil {
			t.Fatal(p.Err)
		}
		list = append(list, p)
	}
	start.Finish(list)
	return start, list
}

// TestStartAfterKill holds the model to what the broker of the killed directories logged when it started: log start,
// log end and the number of segments.
func TestStartAfterKill(t *testing.T) {
	root := fixture.Dir(t, "4.4.0/logdirs/killed")
	start, found := predictDirs(t, filepath.Join(root, "data1"), filepath.Join(root, "data2"))
	if len(start.Stops) > 0 {
		t.Errorf("it does not start: %v", start.Stops)
	}
	for name, want := range map[string]string{
		"doomed-1.1b66cfef9dd94713bf657c8936f9f1ab-delete": "0 0 1",
		"doomed-0.61ff0ed15c184741a4c8be2748a54102-delete": "0 0 1",
		"__transaction_state-0":                            "0 20 1", "__consumer_offsets-0": "0 1 1",
		"prices-0":    "0 109 3",
		"audit-log-0": "30 240 1",
		"inventory-1": "0 95 2", "a.b_c-d-0": "0 240 1", "prices-1": "0 131 4", "__consumer_offsets-1": "0 0 1",
		"inventory-2": "0 76 2",
		"inventory-0": "0 971 8",
	} {
		p := found[name]
		if p == nil {
			t.Errorf("%s is not predicted", name)
			continue
		}
		if got := fmt.Sprint(p.Loaded.LogStart, " ", p.LogEnd, " ", len(p.Segments)); got != want || !p.Harmless() {
			t.Errorf("%s: %s, the broker: %s; %v", name, got, want, p.Lost)
		}
	}
}

// whatKeeps are changes to the three directories of a stopped broker, and what a real one said of them when it did not
// start, or did with less than before.
var whatKeeps = []struct {
	name string
	edit func(t *testing.T, root string)
	want string // in Stops
}{
	{"nothing", func(*testing.T, string) {}, ""},
	{"the root of a disk", func(t *testing.T, root string) { mkdir(t, root, "data1/lost+found") },
		"lost+found: the name is not that of a partition"},
	{"snapshots of a volume", func(t *testing.T, root string) { mkdir(t, root, "data2/.snapshot") },
		".snapshot: the name is not that of a partition"},
	{"the remote index cache", func(t *testing.T, root string) { mkdir(t, root, "data2/remote-log-index-cache") }, ""},
	{"an empty meta.properties", func(t *testing.T, root string) { write(t, root, "data2/meta.properties", "") },
		"data2/meta.properties: it has no node.id"},
	{"NUL bytes", func(t *testing.T, root string) {
		write(t, root, "data2/meta.properties", strings.Repeat("\x00", 120))
	}, "data2/meta.properties: it has no node.id"},
	{"no meta.properties", func(t *testing.T, root string) { remove(t, root, "data1/meta.properties") },
		"data1/meta.properties: there is no such file"},
	{"no meta.properties of the metadata log", func(t *testing.T, root string) {
		remove(t, root, "meta/meta.properties")
	}, "meta/meta.properties: there is no such file"},
	{"a directory id twice", func(t *testing.T, root string) {
		write(t, root, "data2/meta.properties", "version=1\nnode.id=1\ncluster.id=AABjb3JwdXMAAAAAAABxpA\n"+
			"directory.id=cOfP_cR_hDC40WnKuljcbA\n")
	}, "data2/meta.properties: directory.id is that of"},
	{"another cluster", func(t *testing.T, root string) {
		write(t, root, "data2/meta.properties", "version=1\nnode.id=1\ncluster.id=AABrc2VnAAAAAAAAAAAAAQ\n"+
			"directory.id=AABrc2VnAAAAAAAAAAAAAg\n")
	}, "data2/meta.properties: cluster.id is AABrc2VnAAAAAAAAAAAAAQ"},
	{"no cluster id", func(t *testing.T, root string) { write(t, root, "data2/meta.properties", "broker.id=1\n") },
		"data2/meta.properties: it has no cluster.id"},
	{"a partition twice", func(t *testing.T, root string) { copyDir(t, root, "data1/prices-0", "data2/prices-0") },
		"prices-0: the partition is in"},
	{"the metadata log twice", func(t *testing.T, root string) {
		copyDir(t, root, "meta/__cluster_metadata-0", "data1/__cluster_metadata-0")
	}, "the metadata log is in"},
	{"a log without an offset", func(t *testing.T, root string) { write(t, root, "data1/prices-0/segment-1.log", "") },
		"segment-1.log: the name does not begin with an offset"},
	{"an unreadable checkpoint beside an open transaction", func(t *testing.T, root string) {
		write(t, root, "data1/recovery-point-offset-checkpoint", "0\n3\nprices 0 1\n")
	}, "inventory-0: a transaction is open in it"},
	{"an unreadable checkpoint", func(t *testing.T, root string) {
		write(t, root, "data2/recovery-point-offset-checkpoint", "0\n3\nprices 0 1\n")
	}, ""},
	{"a magic of metadata that nobody reads", func(t *testing.T, root string) {
		if err := fixture.ApplyTo(filepath.Join(root, "meta", "__cluster_metadata-0"),
			"flip 00000000000000000000.log 1609:2"); err != nil {
			t.Fatal(err)
		}
	}, "has magic 6"},
	{"an empty quorum-state", func(t *testing.T, root string) { write(t, root, metadataDir+"quorum-state", "") },
		"quorum-state: "},
	{"a quorum-state of a version to come", func(t *testing.T, root string) {
		write(t, root, metadataDir+"quorum-state", `{"leaderId":1,"leaderEpoch":1,"votedId":-1,"data_version":9}`)
	}, "quorum-state: "},
	{"a directory for a quorum-state", func(t *testing.T, root string) {
		remove(t, root, metadataDir+"quorum-state")
		mkdir(t, root, metadataDir+"quorum-state")
	}, "quorum-state: it is a directory"},
	{"an old quorum-state", func(t *testing.T, root string) {
		write(t, root, metadataDir+"quorum-state", `{"leaderId":-1,"leaderEpoch":0,"votedId":-1,`+
			`"votedDirectoryId":"AAAAAAAAAAAAAAAAAAAAAA","data_version":1}`)
	}, ""},
	{"no quorum-state", func(t *testing.T, root string) { remove(t, root, metadataDir+"quorum-state") }, ""},
	{"another topic id of the metadata log", func(t *testing.T, root string) {
		write(t, root, metadataDir+"partition.metadata", "version: 0\ntopic_id: GLfbzf27QQSOtF52pyN9YQ\n")
	}, "partition.metadata: the topic id is GLfbzf27QQSOtF52pyN9YQ"},
	{"a metadata log without a topic id", func(t *testing.T, root string) {
		remove(t, root, metadataDir+"partition.metadata")
	}, ""},
	{"a node that the cluster does not have", func(t *testing.T, root string) {
		write(t, root, "data2/meta.properties", "version=1\nnode.id=7\ncluster.id=AABjb3JwdXMAAAAAAABxpA\n")
	}, "node.id is 7, and 1 in"},
	{"another node in the first log directory", func(t *testing.T, root string) {
		write(t, root, "data1/meta.properties", "version=1\nnode.id=7\ncluster.id=AABjb3JwdXMAAAAAAABxpA\n")
	}, "data1/meta.properties: node.id is 7, and 1 in"},
	{"a node that the cluster does not have, for the metadata", func(t *testing.T, root string) {
		write(t, root, "meta/meta.properties", "version=1\nnode.id=2\ncluster.id=AABjb3JwdXMAAAAAAABxpA\n")
	}, "node.id is 2, and 1 in"},
	{"a node of which all log directories are another's", func(t *testing.T, root string) {
		for _, dir := range []string{"data1", "data2", "meta"} {
			raw, err := os.ReadFile(filepath.Join(root, dir, "meta.properties"))
			if err != nil {
				t.Fatal(err)
			}
			write(t, root, dir+"/meta.properties", strings.ReplaceAll(string(raw), "node.id=1", "node.id=7"))
		}
	}, "by the metadata the log directory is node 1's"},
	{"garbage for a snapshot", func(t *testing.T, root string) {
		write(t, root, metadataDir+"00000000000000000000-0000000000.checkpoint", strings.Repeat("garbage ", 10))
	}, "its magic would be"},
	{"a bit of a snapshot", func(t *testing.T, root string) {
		flip(t, root, metadataDir+"00000000000000000000-0000000000.checkpoint", 200)
	}, "the checksum of the snapshot's batch"},
	{"a newer snapshot of one byte", func(t *testing.T, root string) {
		write(t, root, metadataDir+"00000000000000000150-0000000001.checkpoint", "x")
	}, "too few for a batch"},
	{"an empty snapshot", func(t *testing.T, root string) {
		write(t, root, metadataDir+"00000000000000000000-0000000000.checkpoint", "")
	}, ""},
	{"a snapshot without its end", func(t *testing.T, root string) {
		shorten(t, root, metadataDir+"00000000000000000000-0000000000.checkpoint", 10)
	}, ""},
	{"part of a snapshot", func(t *testing.T, root string) {
		write(t, root, metadataDir+"00000000000000000050-0000000001.checkpoint.part", "x")
	}, ""},
	{"a snapshot with a short name", func(t *testing.T, root string) {
		write(t, root, metadataDir+"150-3.checkpoint", "")
	}, "150-3.checkpoint: the name ends like that of a snapshot"},
	{"a directory with a snapshot's name", func(t *testing.T, root string) {
		mkdir(t, root, metadataDir+"00000000000000000150-0000000003.checkpoint")
	}, "the snapshot is a directory"},
	{"a snapshot that lacks what the log is about", func(t *testing.T, root string) {
		copyFile(t, root, metadataDir+"00000000000000000000-0000000000.checkpoint",
			metadataDir+"00000000000000000120-0000000001.checkpoint")
	}, "is about a partition that the metadata before it do not know"},
	{"an unreadable checkpoint beside a partition that is to be set aside", func(t *testing.T, root string) {
		write(t, root, "data2/recovery-point-offset-checkpoint", "1\n0\n")
		remove(t, root, "data2/prices-1/partition.metadata")
	}, "prices-1: it cannot be set aside"},
	{"a directory for a topic id", func(t *testing.T, root string) {
		remove(t, root, "data2/audit-log-0/partition.metadata")
		mkdir(t, root, "data2/audit-log-0/partition.metadata")
	}, ""},
	{"a directory for leader epochs", func(t *testing.T, root string) {
		remove(t, root, "data2/audit-log-0/leader-epoch-checkpoint")
		mkdir(t, root, "data2/audit-log-0/leader-epoch-checkpoint")
	}, ""},
	{"a file with the name of the metadata log", func(t *testing.T, root string) {
		remove(t, root, metadataDir)
		write(t, root, "meta/__cluster_metadata-0", "x")
	}, "meta/__cluster_metadata-0: the directory of the metadata log is a file"},
	{"garbage for a bootstrap.checkpoint", func(t *testing.T, root string) {
		write(t, root, "meta/bootstrap.checkpoint", "x")
	}, "it has no record of the metadata.version"},
	{"garbage for a bootstrap.checkpoint away from the metadata log", func(t *testing.T, root string) {
		write(t, root, "data1/bootstrap.checkpoint", "x")
	}, ""},
	{"garbage for a topic id", func(t *testing.T, root string) {
		write(t, root, "data1/prices-0/partition.metadata", "")
	}, "prices-0/partition.metadata: "},
}

const metadataDir = "meta/__cluster_metadata-0/"

// flip changes a bit.
func flip(t *testing.T, root, name string, at int) {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(root, name))
	if err != nil {
		t.Fatal(err)
	}
	raw[at] ^= 4
	write(t, root, name, string(raw))
}

// shorten takes bytes from the end of a file.
func shorten(t *testing.T, root, name string, n int) {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(root, name))
	if err != nil {
		t.Fatal(err)
	}
	write(t, root, name, string(raw[:len(raw)-n]))
}

func mkdir(t *testing.T, root, name string) {
	t.Helper()
	if err := os.Mkdir(filepath.Join(root, name), 0o755); err != nil {
		t.Fatal(err)
	}
}

func write(t *testing.T, root, name, content string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(root, name), []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

func remove(t *testing.T, root, name string) {
	t.Helper()
	if err := os.RemoveAll(filepath.Join(root, name)); err != nil {
		t.Fatal(err)
	}
}

func copyDir(t *testing.T, root, from, to string) {
	t.Helper()
	if err := os.CopyFS(filepath.Join(root, to), os.DirFS(filepath.Join(root, from))); err != nil {
		t.Fatal(err)
	}
}

func TestWhatKeepsABrokerFromStarting(t *testing.T) {
	for _, c := range whatKeeps {
		t.Run(strings.ReplaceAll(c.name, " ", "-"), func(t *testing.T) {
			root := fixture.Dir(t, "4.4.0/logdirs/clean")
			c.edit(t, root)
			start, _ := predictDirs(t, filepath.Join(root, "data1"), filepath.Join(root, "data2"), filepath.Join(root,
				"meta"))
			var got []string
			for _, r := range start.Stops {
				got = append(got, r.File+": "+r.Text)
			}
			if c.want == "" && len(got) > 0 || c.want != "" && !slices.ContainsFunc(got,
				func(s string) bool { return strings.Contains(s, c.want) }) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

// TestOffline: what takes a log directory offline, and the broker with it if it is the last.
func TestOffline(t *testing.T) {
	root := fixture.Dir(t, "4.4.0/logdirs/clean")
	write(t, root, "data1/cleaner-offset-checkpoint", "0\n3\nprices 0 1\n")
	write(t, root, "data2/prices-1/leader-epoch-checkpoint", "garbage\n")
	start, found := predictDirs(t, filepath.Join(root, "data1"), filepath.Join(root, "data2"), filepath.Join(root,
		"meta"))
	for i, want := range []bool{true, true, false} {
		if got := len(start.Dirs[i].Offline) > 0; got != want {
			t.Errorf("%s is offline: %v", start.Dirs[i].Dir.Display, got)
		}
	}
	if f := found["prices-1"].Failure; f == nil || !f.Offline || len(start.Stops) != 1 {
		t.Errorf("%v, %v", f, start.Stops)
	}
	remove(t, root, "data2/prices-1/leader-epoch-checkpoint")
	if start, _ = predictDirs(t, filepath.Join(root, "data1"), filepath.Join(root, "data2")); len(start.Stops) > 0 {
		t.Errorf("one is left: %v", start.Stops)
	}
	if start, _ = predictDirs(t, filepath.Join(root, "data1")); len(start.Stops) == 0 {
		t.Error("it starts without a log directory")
	}
}

// TestOnlyLogDirectoryIsAFile: a real broker ended where a file had the name of its only log directory.
func TestOnlyLogDirectoryIsAFile(t *testing.T) {
	root := fixture.Dir(t, "4.4.0/logdirs/clean")
	remove(t, root, "data1")
	write(t, root, "data1", "x")
	meta := filepath.Join(root, "meta")
	start, _ := predictWith(t, "log.dirs="+filepath.Join(root, "data1")+"\nmetadata.log.dir="+meta+"\n", meta)
	if len(start.Offline) != 1 || len(start.Stops) != 1 {
		t.Errorf("%v, %v", start.Offline, start.Stops)
	}
}

// TestProgress: when all partitions are loaded, all bytes of their logs have been counted, read or not.
func TestProgress(t *testing.T) {
	root := fixture.Dir(t, "4.4.0/logdirs/clean")
	set, err := logdir.Open([]string{filepath.Join(root, "data1")}, logdir.Options{})
	if err != nil {
		t.Fatal(err)
	}
	cluster, done, all := state.OpenCluster(set, nil), int64(0), int64(0)
	start, err := NewStart(set.LogDirs(), &cluster.Dirs, &StartOptions{NowMs: frozenNow.UnixMilli(),
		MaxBatchBytes: 1 << 20,
		Settings:      cluster.Settings, Progress: func(n int64) { done += n }})
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range set.Partitions() {
		for _, s := range p.Segments {
			all += s.Log.Size
		}
		if s := start.Load(start.Dirs[0], p); s.Err != nil {
			t.Fatal(s.Err)
		}
	}
	if done < all || all == 0 {
		t.Errorf("%d of %d bytes", done, all)
	}
}

// TestManySegments: recovery of a thousand segments, each with a snapshot that cannot be read.
func TestManySegments(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "many-0")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	batch := fixture.Data(t, "4.4.0/hello/hello-0/00000000000000000000.log")
	size, err := format.EntrySize(batch, 0)
	if err != nil {
		t.Fatal(err)
	}
	const n, step = 1000, 10
	for i := range int64(n) {
		binary.BigEndian.PutUint64(batch, uint64(i*step))
		write(t, dir, format.SegmentFileName(i*step, format.KindLog), string(batch[:size]))
		write(t, dir, format.SegmentFileName(i*step, format.KindProducerSnapshot), "x")
	}
	got, err := Load(openPartition(t, dir), LoadOptions{Interval: 4096, IndexBytes: 64, MaxBatchBytes: 1 << 20})
	if err != nil || got.Failure != nil || len(got.Segments) != n || len(got.Lost.Ranges) > 0 {
		t.Errorf("%v, %v, %d segments", err, got.Failure, len(got.Segments))
	}
}

// TestUnreadableCheckpoints: what a real broker made of each content, of each of the four checkpoints.
func TestUnreadableCheckpoints(t *testing.T) {
	for _, c := range []struct{ content, recovery, start, watermark, cleaner string }{
		{"", "", "", "", ""},
		{"0\n", "", "", "", ""},
		{"\x00\x00", "offline", "offline", "offline", "offline"},
		{"1\n0\n", "offline", "offline", "offline", "offline"},
		{"0\n3\nprices 0 1\n", "offline", "offline", "offline", "offline"},
		{"0\n1\nprices 0 1\nprices 1 5\n", "offline", "offline", "offline", "offline"},
		{"0\n200000000\nprices 0 1\n", "offline", "offline", "offline", "offline"},
		{"0\n-1\n", "", "", "refused", ""},
		{"0\n1\nprices 0 x\n", "", "", "refused", ""},
		{"0\n1\nprices 0 99999999999999999999\n", "", "", "refused", ""},
		{"0\n2147483647\nprices 0 1\n", "stops", "stops", "refused", ""},
		{"0\n2\nprices 0 1\nprices 0 7\n", "", "", "", ""},
		{"0\r\n1\r\nprices 0 1\r\n", "", "", "", ""},
	} {
		for name, want := range map[string]string{"recovery-point-offset-checkpoint": c.recovery,
			"log-start-offset-checkpoint": c.start, "replication-offset-checkpoint": c.watermark,
			"cleaner-offset-checkpoint": c.cleaner} {
			root := fixture.Dir(t, "4.4.0/logdirs/clean")
			write(t, root, "data2/"+name, c.content)
			start, _ := predictDirs(t, filepath.Join(root, "data1"), filepath.Join(root, "data2"))
			got := ""
			switch d := start.Dirs[1]; {
			case len(start.Stops) > 0:
				got = "stops"
			case len(d.Offline) > 0:
				got = "offline"
			case len(d.Refused) > 0:
				got = "refused"
			}
			if got != want {
				t.Errorf("%s %q: %q, want %q", name, c.content, got, want)
			}
		}
	}
}

// TestMetadataIsAlwaysRecovered: one flipped bit in the metadata log, and a clean stop. A real broker cut the log from
// 10,437 to 1,593 bytes, and set seven partitions aside.
func TestMetadataIsAlwaysRecovered(t *testing.T) {
	root := fixture.Dir(t, "4.4.0/logdirs/clean")
	if err := fixture.ApplyTo(filepath.Join(root, "meta", "__cluster_metadata-0"),
		"flip 00000000000000000000.log 1683:2"); err != nil {
		t.Fatal(err)
	}
	start, found := predictDirs(t, filepath.Join(root, "data1"), filepath.Join(root, "data2"), filepath.Join(root,
		"meta"))
	m := start.Metadata
	if m.LogEnd != 20 || m.Lost.Offsets() != 135 || len(m.Cuts) != 1 || m.Cuts[0].At != 1593 {
		t.Errorf("ends at %d, lost %d, cuts %v", m.LogEnd, m.Lost.Offsets(), m.Cuts)
	}
	stray := 0
	for _, p := range found {
		if p.Stray != "" {
			stray++
		}
	}
	want := []string{"__consumer_offsets", "__transaction_state", "a.b_c-d", "audit-log", "prices"}
	if stray != 7 || !slices.Equal(start.Vanished, want) || len(start.Stops) > 0 {
		t.Errorf("%d set aside, %v vanish, %v", stray, start.Vanished, start.Stops)
	}
}

// TestMetadataOfAnotherSnapshot: a node begins with the newest snapshot by its name, whatever is in it. A real broker
// set all ten partitions aside.
func TestMetadataOfAnotherSnapshot(t *testing.T) {
	for _, name := range []string{"00000000000000000150-0000000003.checkpoint",
		"00000000000000000999-0000000009.checkpoint"} {
		root := fixture.Dir(t, "4.4.0/logdirs/clean")
		copyFile(t, root, metadataDir+"00000000000000000000-0000000000.checkpoint", metadataDir+name)
		start, found := predictDirs(t, filepath.Join(root, "data1"), filepath.Join(root, "data2"), filepath.Join(root,
			"meta"))
		if n := strays(found); n != 10 || len(start.Vanished) != 6 {
			t.Errorf("%s: %d set aside, %v vanish", name, n, start.Vanished)
		}
	}
}

func copyFile(t *testing.T, root, from, to string) {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(root, from))
	if err != nil {
		t.Fatal(err)
	}
	write(t, root, to, string(raw))
}

func strays(found map[string]*PartitionStart) int {
	n := 0
	for _, p := range found {
		if p.Stray != "" {
			n++
		}
	}
	return n
}

// TestNoMetadata: a node that is all of its quorum begins anew without its metadata log, and knows no topic; others
// bring it from the controllers, and without server.properties nobody knows.
func TestNoMetadata(t *testing.T) {
	quorumState, err := os.ReadFile(filepath.Join(fixture.Dir(t, "4.4.0/logdirs/clean"), metadataDir, "quorum-state"))
	if err != nil {
		t.Fatal(err)
	}
	for _, left := range []bool{false, true} {
		root := fixture.Dir(t, "4.4.0/logdirs/clean")
		remove(t, root, metadataDir)
		if left {
			mkdir(t, root, metadataDir)
			write(t, root, metadataDir+"quorum-state", string(quorumState))
		}
		testNoMetadata(t, root)
	}
}

func testNoMetadata(t *testing.T, root string) {
	t.Helper()
	dirs := []string{filepath.Join(root, "data1"), filepath.Join(root, "data2"), filepath.Join(root, "meta")}
	config := "node.id=1\nlog.dirs=" + dirs[0] + "," + dirs[1] + "\n"
	for _, c := range []struct {
		server             string
		strays             int
		forgotten, unknown bool
	}{
		{"", 0, false, true},
		{config + "process.roles=broker,controller\ncontroller.quorum.voters=1@h:1\nmetadata.log.dir=" + dirs[2], 10,
			true, false},
		{config + "process.roles=broker,controller\ncontroller.quorum.voters=1@h:1\nmetadata.log.dir=/elsewhere", 0,
			false, true},
		{config + "process.roles=broker,controller\ncontroller.quorum.voters=1@h:1,2@h:1\nmetadata.log.dir=" + dirs[2], 0,
			false, true},
		{config + "process.roles=broker,controller\ncontroller.quorum.bootstrap.servers=h:1\nmetadata.log.dir=" + dirs[2], 0,
			false, true},
		{config + "process.roles=broker\nmetadata.log.dir=" + dirs[2], 0, false, true},
	} {
		start, found := predictWith(t, c.server, dirs...)
		if !start.MetadataGone() {
			t.Errorf("%s: the metadata log is not missed", c.server)
		}
		if n := strays(found); n != c.strays || start.Forgotten != c.forgotten || (start.Unplaced != "") != c.unknown {
			t.Errorf("%s: %d set aside, forgotten %v, %q", c.server, n, start.Forgotten, start.Unplaced)
		}
	}
}

// TestAbsent: of a partition that the metadata place in a directory that is given, and that has none. A real broker
// made each anew, or, with its directory offline, did not.
func TestAbsent(t *testing.T) {
	root := fixture.Dir(t, "4.4.0/logdirs/clean")
	data1, data2, meta := filepath.Join(root, "data1"), filepath.Join(root, "data2"), filepath.Join(root, "meta")
	absent := func(dirs ...string) string {
		start, _ := predictDirs(t, dirs...)
		var all []string
		for _, a := range start.Absent() {
			all = append(all, fmt.Sprint(a.Name(), " ", a.Fate, " ", filepath.Base(a.Witness)))
		}
		return strings.Join(all, ", ")
	}
	expect := func(what, want string, dirs ...string) {
		t.Helper()
		if got := absent(dirs...); got != want {
			t.Errorf("%s: %q, want %q", what, got, want)
		}
	}
	for _, dirs := range [][]string{{data1, data2, meta}, {data1, meta}, {data2, meta}} {
		expect("nothing is lost", "", dirs...)
	}
	remove(t, root, "data1/prices-0")
	const gone = "prices-0 0 recovery-point-offset-checkpoint"
	expect("all given", gone, data1, data2, meta)
	expect("one given", gone, data1, meta)
	expect("the other one given", "", data2, meta)
	write(t, root, "data2/cleaner-offset-checkpoint", "0\nx\n")
	expect("another directory is offline", gone, data1, data2, meta)
	write(t, root, "data1/cleaner-offset-checkpoint", "0\nx\n")
	expect("its directory is offline", "prices-0 3 recovery-point-offset-checkpoint", data1, data2, meta)
	remove(t, root, "data1/cleaner-offset-checkpoint")
	for _, name := range []string{"__consumer_offsets-0", "a.b_c-d-0", "inventory-0"} {
		remove(t, root, "data1/"+name)
	}
	if got := absent(data1, meta); !strings.HasPrefix(got, "__consumer_offsets-0 2 ") || strings.Contains(got, " 0 ") {
		t.Errorf("most is gone, as in a copy of a part: %s", got)
	}
}

// The log directory that server.properties names for the metadata log has to be usable, be there such a log or not.
func TestMetadataDirIsNeeded(t *testing.T) {
	root := fixture.Dir(t, "4.4.0/logdirs/clean")
	dirs := []string{filepath.Join(root, "data1"), filepath.Join(root, "data2"), filepath.Join(root, "meta")}
	remove(t, root, "meta/__cluster_metadata-0")
	write(t, root, "meta/meta.properties", "version=7\nnode.id=1\ncluster.id=AABjb3JwdXMAAAAAAABxpA\n")
	config := "node.id=1\nlog.dirs=" + dirs[0] + "," + dirs[1] + "\nmetadata.log.dir=" + dirs[2]
	if start, _ := predictWith(t, config, dirs...); !start.StopsAt(filepath.Join(dirs[2], "meta.properties")) {
		t.Errorf("%v", start.Stops)
	}
}

// TestMadeElsewhere: a real broker that had not recorded that it stopped made logs anew of partitions whose log
// directory was offline, all but the first that it came to.
func TestMadeElsewhere(t *testing.T) {
	root := fixture.Dir(t, "4.4.0/logdirs/clean")
	if err := os.Truncate(filepath.Join(root, "meta/__cluster_metadata-0/00000000000000000000.log"), 4447); err != nil {
		t.Fatal(err)
	}
	write(t, root, "data2/cleaner-offset-checkpoint", "0\nx\n")
	start, _ := predictDirs(t, filepath.Join(root, "data1"), filepath.Join(root, "data2"), filepath.Join(root, "meta"))
	var made []string
	for _, a := range start.Absent() {
		if a.Fate == Elsewhere {
			made = append(made, a.Name())
		}
	}
	if got := strings.Join(made, " "); got != "__consumer_offsets-1 audit-log-0 inventory-1 prices-1" {
		t.Error(got)
	}
}

// TestMoveUnderWay: a real broker let the copy in the other log directory take the place of the log right after.
func TestMoveUnderWay(t *testing.T) {
	root := fixture.Dir(t, "4.4.0/logdirs/clean")
	copyDir(t, root, "data1/prices-0", "data2/prices-0.0123456789abcdef0123456789abcdef-future")
	start, _ := predictDirs(t, filepath.Join(root, "data1"), filepath.Join(root, "data2"), filepath.Join(root, "meta"))
	if len(start.Stops) > 0 || len(start.Notes) != 1 || !strings.Contains(start.Notes[0], "up to offset 109 of 109") {
		t.Errorf("%v %q", start.Stops, start.Notes)
	}
}

// TestNewDisk: a log directory with nothing in it but a meta.properties, of the old directory id, a new one or none. A
// real broker made all five partitions anew, empty, and none where a full one had lost its id.
func TestNewDisk(t *testing.T) {
	for _, c := range []struct {
		id    string
		keeps bool
		gone  int
	}{{"w7zQJHfd_BCL_IeDSQBGtA", false, 5}, {"GLfbzf27QQSOtF52pyN9YQ", false, 5}, {"", false, 5},
		{"GLfbzf27QQSOtF52pyN9YQ", true, 0}, {"", true, 0}} {
		root := fixture.Dir(t, "4.4.0/logdirs/clean")
		if !c.keeps {
			remove(t, root, "data2")
			mkdir(t, root, "data2")
		}
		text := "version=1\nnode.id=1\ncluster.id=AABjb3JwdXMAAAAAAABxpA\n"
		if c.id != "" {
			text += "directory.id=" + c.id + "\n"
		}
		write(t, root, "data2/meta.properties", text)
		start, _ := predictDirs(t, filepath.Join(root, "data1"), filepath.Join(root, "data2"), filepath.Join(root, "meta"))
		gone := start.Absent()
		if len(gone) != c.gone || slices.ContainsFunc(gone, func(a Absent) bool { return a.Fate != Emptied }) {
			t.Errorf("%v: %v", c, gone)
		}
	}
}

// TestPaddedTimeIndex: after a clean stop zeros after the entries of the active segment's time index are entries too.
func TestPaddedTimeIndex(t *testing.T) {
	root := fixture.Dir(t, "4.4.0/logdirs/clean")
	name := filepath.Join(root, "data1", "a.b_c-d-0", "00000000000000000000.timeindex")
	if err := os.Truncate(name, 20472); err != nil {
		t.Fatal(err)
	}
	_, found := predictDirs(t, filepath.Join(root, "data1"))
	if p := found["a.b_c-d-0"]; len(p.Hazards) != 1 || p.Harmless() {
		t.Errorf("%v", p.Hazards)
	}
	remove(t, root, "data1/.kafka_cleanshutdown")
	_, found = predictDirs(t, filepath.Join(root, "data1"))
	if p := found["a.b_c-d-0"]; len(p.Hazards) != 0 || !p.Harmless() {
		t.Errorf("unclean: %v", p.Hazards)
	}
}

// TestNoGuessOfWhatCannotBeListed: a directory that cannot be listed is no empty log.
func TestNoGuessOfWhatCannotBeListed(t *testing.T) {
	p := openPartition(t, fixture.Dir(t, "4.4.0/hello/hello-0"))
	p.ListErr = os.ErrPermission
	if _, err := Load(p, LoadOptions{Interval: 4096, IndexBytes: 65536}); !errors.As(err, new(*unreadable)) {
		t.Errorf("%v", err)
	}
}
