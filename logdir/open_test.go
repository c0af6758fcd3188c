package logdir

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"kseg/format"
)

// tree makes empty files, or directories where a name ends in a slash, and returns the directory that holds them.
func tree(t *testing.T, names ...string) string {
	t.Helper()
	root := t.TempDir()
	for _, name := range names {
		path := filepath.Join(root, name)
		if strings.HasSuffix(name, "/") {
			must(t, os.MkdirAll(path, 0o755))
			continue
		}
		must(t, os.MkdirAll(filepath.Dir(path), 0o755))
		must(t, os.WriteFile(path, nil, 0o600))
	}
	return root
}

func open(t *testing.T, opts Options, paths ...string) *Set {
	t.Helper()
	set, err := Open(paths, opts)
	if err != nil {
		t.Fatal(err)
	}
	return set
}

func rels(files []*File) []string {
	var names []string
	for _, f := range files {
		names = append(names, f.Rel)
	}
	return names
}

const (
	base0  = "00000000000000000000"
	base10 = "00000000000000000010"
	base20 = "00000000000000000020"
	uuid   = "9d1af414dfad4170b9dd4c579d54a944"
)

// broker is a log directory with what a broker makes and a little more.
func broker(t *testing.T) string {
	return tree(t, "meta.properties", "recovery-point-offset-checkpoint", ".lock", "notes.txt", "lost+found/",
		"orders-10/"+base0+".log", "orders-10/leader-epoch-checkpoint", "orders-9/"+base0+".log",
		"orders-9/"+base0+".index", "orders-9/"+base0+".timeindex", "orders-9/"+base10+".log",
		"orders-9/"+base10+".snapshot", "orders-9/"+base10+".txnindex", "orders-9/"+base20+".index",
		"orders-9/partition.metadata", "orders-9/"+base0+".log.deleted", "orders-9."+uuid+"-delete/"+base0+".log",
		"prices-0/"+base0+".log")
}

func TestOpenALogDirectory(t *testing.T) {
	root := broker(t)
	set := open(t, Options{}, root)
	if len(set.Problems) > 0 {
		t.Fatal(set.Problems)
	}
	d := set.LogDirs()[0]
	var names []string
	for _, p := range set.Partitions() {
		names = append(names, p.Name)
		if p.Parent != d || !p.Named {
			t.Errorf("%s: parent %v, named %v", p.Name, p.Parent, p.Named)
		}
	}
	if diff := cmp.Diff([]string{"orders-9", "orders-9." + uuid + "-delete", "orders-10", "prices-0"}, names); diff != "" {
		t.Error(diff)
	}
	want := []string{
		"orders-9/" + base0 + ".log", "orders-9/" + base0 + ".index", "orders-9/" + base0 + ".timeindex",
		"orders-9/" + base10 + ".log", "orders-9/" + base10 + ".txnindex", "orders-9/" + base10 + ".snapshot",
		"orders-9/" + base20 + ".index", "orders-9/partition.metadata", "orders-9/" + base0 + ".log.deleted",
		"orders-9." + uuid + "-delete/" + base0 + ".log",
		"orders-10/" + base0 + ".log", "orders-10/leader-epoch-checkpoint",
		"prices-0/" + base0 + ".log",
		"recovery-point-offset-checkpoint", "meta.properties", ".lock", "notes.txt",
	}
	if diff := cmp.Diff(want, rels(set.Files())); diff != "" {
		t.Error(diff)
	}
	if d.File(format.KindMetaProperties) == nil || d.File(format.KindCleanShutdown) != nil {
		t.Error("the state files are not found by kind")
	}
	if diff := cmp.Diff([]string{"lost+found", "orders-10", "orders-9", "orders-9." + uuid + "-delete", "prices-0"},
		d.Subdirs); diff != "" {
		t.Error(diff)
	}
}

func TestSegmentsOfAPartition(t *testing.T) {
	root := broker(t)
	set := open(t, Options{}, filepath.Join(root, "orders-9"))
	p := set.Partitions()[0]
	if len(p.Segments) != 2 {
		t.Fatalf("%d segments", len(p.Segments))
	}
	a, b := p.Segments[0], p.Segments[1]
	if a.Base != 0 || a.Index == nil || a.TimeIndex == nil || a.TxnIndex != nil || a.Snapshot != nil {
		t.Errorf("%+v", a)
	}
	if b.Base != 10 || b.Index != nil || b.TxnIndex == nil || b.Snapshot == nil {
		t.Errorf("%+v", b)
	}
	if a.Prev != nil || a.Next != b || b.Prev != a || b.Next != nil {
		t.Error("the segments are not linked in order")
	}
	if p.Topic != "orders" || p.Partition != 9 || p.Rel != "." || a.Log.Rel != base0+".log" {
		t.Errorf("%+v, %s", p, a.Log.Rel)
	}
	if p.Parent == nil || p.Parent.Listed || p.Parent.File(format.KindMetaProperties) == nil {
		t.Errorf("the state files of the parent are not found: %+v", p.Parent)
	}
	if p.File(format.KindPartitionMetadata) == nil {
		t.Error("partition.metadata is not found by kind")
	}
}

func TestAFileGivenAlone(t *testing.T) {
	root := broker(t)
	f := openPath(t, filepath.Join(root, "orders-9", base0+".log"), Options{})
	if f.Rel != base0+".log" || f.Kind() != format.KindLog || !f.Name.HasBase {
		t.Errorf("%+v", f)
	}
	if d, ok := f.Dir(); !ok || d.Topic != "orders" || d.Partition != 9 {
		t.Errorf("%+v %v", d, ok)
	}
	if s := f.Sibling(format.KindOffsetIndex); s == nil || s.Name.Raw != base0+".index" {
		t.Errorf("index %v", s)
	}
	if s := f.Sibling(format.KindPartitionMetadata); s == nil || filepath.Dir(s.Display) != filepath.Dir(f.Display) {
		t.Errorf("metadata %v", s)
	}
	if s := f.Sibling(format.KindTxnIndex); s != nil {
		t.Errorf("a txnindex from nowhere: %v", s)
	}
	if d := f.Parent(); d == nil || d.File(format.KindRecoveryPointCheckpoint) == nil {
		t.Errorf("parent %v", d)
	}
}

func TestRelativePathsAndLinksKeepTheNames(t *testing.T) {
	root := broker(t)
	must(t, os.Symlink(filepath.Join(root, "orders-9"), filepath.Join(root, "link")))
	t.Chdir(filepath.Join(root, "orders-9"))
	for _, arg := range []string{".", "../orders-9", "../link"} {
		p := open(t, Options{}, arg).Partitions()[0]
		if !p.Named || p.Topic != "orders" || p.Name != "orders-9" || p.Parent == nil {
			t.Errorf("%s: %+v", arg, p.PartitionDir)
		}
	}
	f := openPath(t, base0+".log", Options{})
	if d, ok := f.Dir(); !ok || d.Topic != "orders" || f.Parent() == nil || f.Display != base0+".log" {
		t.Errorf("%+v %v %v", d, ok, f.Parent())
	}
}

func TestLogDirectoriesNamedLikePartitions(t *testing.T) {
	for _, c := range []struct {
		names []string
		want  dirClass
	}{
		{[]string{"meta.properties"}, isLogDir},
		{[]string{"meta.properties", "bootstrap.checkpoint"}, isLogDir},
		{[]string{"orders-3/"}, isLogDir},
		{[]string{"orders-3/" + base0 + ".log"}, isLogDir},
		{[]string{"kafka-2/meta.properties", "kafka-3/orders-0/" + base0 + ".log"}, isForeign},
		{[]string{base0 + ".log", "meta.properties", "orders-3/"}, isLogDir},
		{[]string{base0 + ".log"}, isPartition},
		{[]string{base0 + ".log", "backup-1/"}, isPartition},
		{[]string{base0 + ".log", "replication-offset-checkpoint"}, isPartition},
		{[]string{base0 + ".log.deleted"}, isPartition},
		{[]string{"partition.metadata"}, isPartition},
		{[]string{"notes.txt"}, isForeign},
		{[]string{"server.log", "controller.log"}, isForeign},
		{[]string{".lock", "lost+found/"}, isForeign},
		{nil, isForeign},
	} {
		root := tree(t, append([]string{"kafka-1/"}, prefixed("kafka-1/", c.names)...)...)
		entries, err := os.ReadDir(filepath.Join(root, "kafka-1"))
		must(t, err)
		if got := classifyDir(filepath.Join(root, "kafka-1"), entries, lookDepth); got != c.want {
			t.Errorf("%v: got %d, want %d", c.names, got, c.want)
		}
	}
}

func prefixed(prefix string, names []string) []string {
	var out []string
	for _, n := range names {
		out = append(out, prefix+n)
	}
	return out
}

func TestFilters(t *testing.T) {
	root := broker(t)
	for _, c := range []struct {
		opts Options
		want []string
	}{
		{Options{Topics: []string{"pri*"}}, []string{"prices-0/" + base0 + ".log"}},
		{Options{Partitions: []int32{0, 10}}, []string{"orders-10/" + base0 + ".log", "orders-10/leader-epoch-checkpoint",
			"prices-0/" + base0 + ".log"}},
		{Options{Segments: []int64{10}}, []string{"orders-9/" + base10 + ".log", "orders-9/" + base10 + ".txnindex",
			"orders-9/" + base10 + ".snapshot"}},
		{Options{Topics: []string{"orders"}, Partitions: []int32{9}, Segments: []int64{10}}, []string{"orders-9/" + base10 +
			".log", "orders-9/" + base10 + ".txnindex", "orders-9/" + base10 + ".snapshot"}},
	} {
		set := open(t, c.opts, root)
		if diff := cmp.Diff(c.want, rels(set.Files())); diff != "" || len(set.Problems) > 0 {
			t.Errorf("%+v: %v\n%s", c.opts, set.Problems, diff)
		}
	}
	set := open(t, Options{Segments: []int64{10}}, filepath.Join(root, "orders-9"))
	p := set.Partitions()[0]
	if p.Segments[0].Prev == nil || p.File(format.KindPartitionMetadata) == nil {
		t.Error("narrowing hides the neighbours")
	}
}

func TestFiltersThatMatchNothingSayWhatThereIs(t *testing.T) {
	root := broker(t)
	for _, c := range []struct {
		opts Options
		want string
	}{
		{Options{Topics: []string{"order"}, Partitions: []int32{9}},
			"nothing to read: no partition matches --topic order --partition 9; there are orders (9, 10), prices (0)"},
		{Options{Partitions: []int32{7}}, "nothing to read: no partition matches --partition 7; there are orders (9, 10), " +
			"prices (0)"},
		{Options{Segments: []int64{15}}, "nothing to read: no segment begins at offset 15; there are 0, 10; offset 15 " +
			"would be in segment 10"},
	} {
		_, err := Open([]string{root}, c.opts)
		if !errors.Is(err, ErrNothing) || err.Error() != c.want {
			t.Errorf("got  %v\nwant %s", err, c.want)
		}
	}
	set := open(t, Options{Partitions: []int32{9, 7}}, root)
	if len(set.Partitions()) != 2 || len(set.Problems) != 1 || set.Problems[0].Error() != "no partition 7; there are "+
		"orders (9, 10), prices (0)" {
		t.Errorf("%v", set.Problems)
	}
	set = open(t, Options{Segments: []int64{0, 11}}, root)
	if len(set.Problems) != 1 || !strings.Contains(set.Problems[0].Error(), "offset 11") {
		t.Errorf("%v", set.Problems)
	}
	if _, err := Open([]string{root}, Options{Topics: []string{"[a"}}); !errors.Is(err, ErrUsage) {
		t.Error(err)
	}
}

func TestBaseOffset(t *testing.T) {
	root := tree(t, "carved.bin", "segment-one.log")
	base := int64(4740)
	for _, name := range []string{"carved.bin", "segment-one.log"} {
		f := openPath(t, filepath.Join(root, name), Options{BaseOffset: &base})
		if got, err := f.RequireBase(); got != 4740 || err != nil || f.Kind() != format.KindLog {
			t.Errorf("%s: %d %v %s", name, got, err, f.Kind())
		}
	}
	if _, err := Open([]string{root}, Options{BaseOffset: &base}); !errors.Is(err, ErrUsage) {
		t.Error(err)
	}
	must(t, os.WriteFile(filepath.Join(root, "segment-one.log"), batchHead, 0o600))
	f := openPath(t, filepath.Join(root, "segment-one.log"), Options{})
	if _, err := f.RequireBase(); err == nil || !strings.HasSuffix(err.Error(), "add --base-offset N") {
		t.Error(err)
	}
}

// TestRemoteLogIndexCache: the files of remote segments' indexes have their base offsets in their names.
func TestRemoteLogIndexCache(t *testing.T) {
	id := "_CTxazBWVSV29GVZaQGOTag"
	root := tree(t, "remote-log-index-cache/340"+id+".index", "remote-log-index-cache/34"+id+".timeindex",
		"remote-log-index-cache/34_x.index", "remote-log-index-cache/notes")
	set, err := Open([]string{filepath.Join(root, "remote-log-index-cache")}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, f := range set.Files() {
		got = append(got, fmt.Sprint(f.Name.Raw, " ", f.Name.HasBase, " ", f.Name.Base))
	}
	want := []string{"34" + id + ".timeindex true 34", "340" + id + ".index true 340", "34_x.index false 0"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// batchHead is the header of a batch of magic 2 at offset 7.
var batchHead = append([]byte{0, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0, 67, 0, 0, 0, 0, 2}, make([]byte, 62)...)

func TestForeignOperandsAreNamed(t *testing.T) {
	root := tree(t, "empty/", "redpanda/0-1-v1.log", "host/data1/meta.properties", "host/data2/orders-0/"+base0+".log",
		"photos/a.jpg", "photos/b.jpg", "nothing")
	write := func(name string, content []byte) string {
		must(t, os.WriteFile(filepath.Join(root, name), content, 0o600))
		return name
	}
	for name, want := range map[string]string{
		"nothing": "nothing: not a file or directory of Kafka's; it looks like an empty file",
		write("a.gz", []byte("\x1f\x8b\x08\x00")): "a.gz: not a file or directory of Kafka's; it looks like " +
			"gzip-compressed data, to be decompressed first",
		write("t.parquet", []byte("PAR1\x15\x04")): "t.parquet: not a file or directory of Kafka's; it looks like a " +
			"Parquet file",
		write("server.log", []byte("[2026] INFO\n")): `server.log: not a file or directory of Kafka's; it looks like ` +
			`text: "[2026] INFO"`,
		write("0-1-v1.log", batchHead): "0-1-v1.log: not a file or directory of Kafka's; it looks like a " +
			"segment of Redpanda, whose format is another one",
		write("carved.bin", batchHead): "carved.bin: not a file or directory of Kafka's; it looks like a segment by its " +
			"first bytes, though not by its name; add --base-offset N to read it as one (its first batch says 7)",
		"empty": "empty: not a file or directory of Kafka's; it looks like an empty directory; is its volume mounted?",
		"redpanda": "redpanda: not a file or directory of Kafka's; it looks like a directory of Redpanda's, whose format " +
			"is another one",
		"host": "host: not a file or directory of Kafka's; it looks like a directory that holds log directories; name " +
			"those: host/data1 host/data2",
		"photos":  "photos: not a file or directory of Kafka's; it looks like a directory of other things: a.jpg b.jpg",
		"missing": "missing: no such file or directory; give its place on disk, or the log directory and --topic",
		"":        "an empty path leads nowhere; is a variable unset?",
	} {
		t.Chdir(root)
		set := open(t, Options{}, name)
		if len(set.Problems) != 1 || set.Problems[0].Error() != want || set.Operands[0].Err == nil {
			t.Errorf("got  %v\nwant %s", set.Problems, want)
		}
		if len(set.Files()) != 0 {
			t.Errorf("%s: it is among the files", name)
		}
	}
}

func TestDanglingLinksAreProblems(t *testing.T) {
	root := tree(t, "orders-0/"+base0+".log")
	must(t, os.Symlink("nowhere", filepath.Join(root, "orders-0", base10+".log")))
	set := open(t, Options{}, root)
	if len(set.Problems) != 1 || !strings.HasSuffix(set.Problems[0].Error(), base10+".log: a link that leads nowhere") {
		t.Errorf("%v", set.Problems)
	}
}

func TestUnreadableEntriesAreProblems(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("root may read everything")
	}
	root := tree(t, "orders-0/"+base0+".log", "orders-1/"+base0+".log")
	must(t, os.Chmod(filepath.Join(root, "orders-0"), 0))
	t.Cleanup(func() { _ = os.Chmod(filepath.Join(root, "orders-0"), 0o755) })
	set := open(t, Options{}, root)
	if len(set.Problems) != 1 || !errors.Is(set.Problems[0], fs.ErrPermission) || len(set.Files()) != 1 ||
		set.Partitions()[0].ListErr == nil {
		t.Errorf("%v", set.Problems)
	}
}

func TestSeveralOperandsKeepTheirOrder(t *testing.T) {
	root := broker(t)
	set := open(t, Options{}, filepath.Join(root, "prices-0"), filepath.Join(root, "orders-9", base10+".log"),
		filepath.Join(root, "orders-10"))
	want := []string{"prices-0/" + base0 + ".log", "orders-9/" + base10 + ".log", "orders-10/" + base0 + ".log",
		"orders-10/leader-epoch-checkpoint"}
	var got []string
	for _, f := range set.Files() {
		rel, err := filepath.Rel(root, f.Display)
		must(t, err)
		got = append(got, rel)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
