package format

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// The offsets are those of LogFileUtils.offsetFromFile and Snapshots.parse of Kafka 4.4.0.
func TestParseFileName(t *testing.T) {
	for _, want := range []FileName{
		{Raw: "00000000000000000000.log", Kind: KindLog, HasBase: true, Epoch: -1},
		{Raw: "00000000000000004740.index", Kind: KindOffsetIndex, Base: 4740, HasBase: true, Epoch: -1},
		{Raw: "09223372036854775807.timeindex", Kind: KindTimeIndex, Base: 1<<63 - 1, HasBase: true, Epoch: -1},
		{Raw: "09223372036854775808.log", Kind: KindLog, Epoch: -1}, // Long.parseLong throws
		{Raw: "7.copy.txnindex", Kind: KindTxnIndex, Base: 7, HasBase: true, Epoch: -1},
		{Raw: "copy.7.log", Kind: KindLog, Epoch: -1},
		{Raw: "-5.log", Kind: KindLog, Base: -5, HasBase: true, Epoch: -1},
		{Raw: ".log", Kind: KindLog, Epoch: -1},
		{Raw: "log", Epoch: -1},
		{Raw: "", Epoch: -1},
		{Raw: "segment-one.log", Kind: KindLog, Epoch: -1},
		{Raw: "0-1-v1.log", Kind: KindLog, Epoch: -1},
		{Raw: "00000000000000000090.snapshot", Kind: KindProducerSnapshot, Base: 90, HasBase: true, Epoch: -1},
		{Raw: "00000000000000000090.log.deleted", Kind: KindLog, Suffix: "deleted", Base: 90, HasBase: true, Epoch: -1},
		{Raw: "00000000000000000090.timeindex.cleaned", Kind: KindTimeIndex, Suffix: "cleaned", Base: 90, HasBase: true,
			Epoch: -1},
		{Raw: "00000000000000000090.log.swap", Kind: KindLog, Suffix: "swap", Base: 90, HasBase: true, Epoch: -1},
		{Raw: "00000000000000000090.log.bak", Epoch: -1},
		{Raw: "notes.deleted", Epoch: -1},
		{Raw: "00000000000000000090-0000000003.checkpoint", Kind: KindCheckpoint, Base: 90, HasBase: true, Epoch: 3},
		{Raw: "00000000000000000090-0000000003.checkpoint.deleted", Kind: KindCheckpoint, Suffix: "deleted", Base: 90,
			HasBase: true, Epoch: 3},
		{Raw: "00000000000000000090-0000000003-812734.checkpoint.part", Kind: KindCheckpoint, Suffix: "part", Base: 90,
			HasBase: true, Epoch: 3},
		{Raw: "90-3.checkpoint", Kind: KindCheckpoint, Epoch: -1},
		{Raw: "00000000000000000090x0000000003zz.checkpoint", Kind: KindCheckpoint, Base: 90, HasBase: true, Epoch: 3},
		{Raw: "bootstrap.checkpoint", Kind: KindCheckpoint, Epoch: -1},
		{Raw: "leader-epoch-checkpoint", Kind: KindLeaderEpochCheckpoint, Epoch: -1},
		{Raw: "leader-epoch-checkpoint.tmp", Kind: KindLeaderEpochCheckpoint, Suffix: "tmp", Epoch: -1},
		{Raw: "partition.metadata", Kind: KindPartitionMetadata, Epoch: -1},
		{Raw: "quorum-state", Kind: KindQuorumState, Epoch: -1},
		{Raw: "recovery-point-offset-checkpoint", Kind: KindRecoveryPointCheckpoint, Epoch: -1},
		{Raw: "log-start-offset-checkpoint", Kind: KindLogStartOffsetCheckpoint, Epoch: -1},
		{Raw: "replication-offset-checkpoint", Kind: KindReplicationOffsetCheckpoint, Epoch: -1},
		{Raw: "cleaner-offset-checkpoint", Kind: KindCleanerOffsetCheckpoint, Epoch: -1},
		{Raw: "meta.properties", Kind: KindMetaProperties, Epoch: -1},
		{Raw: ".kafka_cleanshutdown", Kind: KindCleanShutdown, Epoch: -1},
		{Raw: ".lock", Kind: KindLock, Epoch: -1},
	} {
		if diff := cmp.Diff(want, ParseFileName(want.Raw)); diff != "" {
			t.Errorf("%q (-want +got):\n%s", want.Raw, diff)
		}
	}
}

func TestSiblingNames(t *testing.T) {
	for _, c := range []struct {
		name string
		kind Kind
		want string
	}{
		{"00000000000000000090.log", KindOffsetIndex, "00000000000000000090.index"},
		{"00000000000000000090.index", KindLog, "00000000000000000090.log"},
		{"00000000000000000090.log.deleted", KindTimeIndex, "00000000000000000090.timeindex.deleted"},
		{"7.copy.log", KindTxnIndex, "7.copy.txnindex"},
		{"00000000000000000090.log.swap", KindLeaderEpochCheckpoint, "leader-epoch-checkpoint"},
		{"segment-one.log", KindOffsetIndex, "segment-one.index"},
		{"00000000000000000090.log", KindUnknown, ""},
	} {
		if got := ParseFileName(c.name).Sibling(c.kind); got != c.want {
			t.Errorf("%s of %s: got %q, want %q", c.kind, c.name, got, c.want)
		}
	}
}

func TestDumpOrderOfNames(t *testing.T) {
	want := []string{
		"0.log", "0.index", "0.timeindex", "0.txnindex", "0.snapshot",
		"00000000000000000005-0000000001.checkpoint", "00000000000000000005-0000000002.checkpoint",
		"9.snapshot", "10.log", "10.index",
		"segment-one.log", "bootstrap.checkpoint",
		"leader-epoch-checkpoint", "partition.metadata", "quorum-state",
		"recovery-point-offset-checkpoint", "log-start-offset-checkpoint", "replication-offset-checkpoint",
		"cleaner-offset-checkpoint", "meta.properties", ".kafka_cleanshutdown", ".lock",
		"0.log.deleted", "0.index.deleted", "3.log.swap", "leader-epoch-checkpoint.tmp",
		"case.md", "notes",
	}
	got := slices.Clone(want)
	slices.Sort(got)
	slices.SortFunc(got, func(a, b string) int { return ParseFileName(a).Compare(ParseFileName(b)) })
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// The answers are those of LocalLog.parseTopicPartitionName of Kafka 4.4.0.
func TestParsePartitionDir(t *testing.T) {
	const uuid = "9d1af414dfad4170b9dd4c579d54a944"
	for _, c := range []struct {
		name string
		want PartitionDir
		ok   bool
	}{
		{"orders-3", PartitionDir{"orders", 3, "", ""}, true},
		{"a-b.c_d-2147483647", PartitionDir{"a-b.c_d", 2147483647, "", ""}, true},
		{"orders-2147483648", PartitionDir{}, false},
		{"a--5", PartitionDir{"a-", 5, "", ""}, true},
		{"orders-+3", PartitionDir{"orders", 3, "", ""}, true},
		{"orders-٣", PartitionDir{"orders", 3, "", ""}, true},
		{"orders-1𝟎", PartitionDir{}, false},
		{"orders-0003", PartitionDir{"orders", 3, "", ""}, true},
		{"__cluster_metadata-0", PartitionDir{"__cluster_metadata", 0, "", ""}, true},
		{"orders-3." + uuid + "-delete", PartitionDir{"orders", 3, uuid, "delete"}, true},
		{"a.b-c-0." + uuid + "-future", PartitionDir{"a.b-c", 0, uuid, "future"}, true},
		{"orders-3." + uuid + "-stray", PartitionDir{"orders", 3, uuid, "stray"}, true},
		{"my topic-3", PartitionDir{"my topic", 3, "", ""}, true},
		{"my topic-3." + uuid + "-delete", PartitionDir{}, false},
		{"orders-3-delete", PartitionDir{}, false},
		{"orders.x-delete", PartitionDir{}, false},
		{"orders-3.-delete", PartitionDir{}, false},
		{"a-b.c-3.-delete", PartitionDir{"a-b.c", 3, "", "delete"}, true},
		{"orders-x." + uuid + "-delete", PartitionDir{}, false},
		{"-delete", PartitionDir{}, false},
		{"remote-log-index-cache", PartitionDir{}, false},
		{"lost+found", PartitionDir{}, false},
		{"orders-3.x.y-delete", PartitionDir{}, false},
		{"orders-3." + uuid + "-delete-future", PartitionDir{"orders", 3, uuid + "-delete", "future"}, true},
		{"--3", PartitionDir{"-", 3, "", ""}, true},
		{"orders-", PartitionDir{}, false},
		{"-3", PartitionDir{}, false},
		{"orders", PartitionDir{}, false},
		{"", PartitionDir{}, false},
	} {
		got, ok := ParsePartitionDir(c.name)
		if ok != c.ok || got != c.want {
			t.Errorf("%q: got %+v %v, want %+v %v", c.name, got, ok, c.want, c.ok)
		}
	}
}

func TestPartitionNamesReadBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := PartitionDir{
			Topic:     rapid.StringMatching(`[a-zA-Z0-9._-]{1,40}`).Draw(t, "topic"),
			Partition: rapid.Int32Min(0).Draw(t, "partition"),
			Suffix:    rapid.SampledFrom([]string{"", "delete", "future", "stray"}).Draw(t, "suffix"),
		}
		name := want.String()
		if want.Suffix != "" {
			want.UUID = rapid.StringMatching(`[0-9a-f]{32}`).Draw(t, "uuid")
			name += "." + want.UUID + "-" + want.Suffix
		}
		got, ok := ParsePartitionDir(name)
		if !ok || got != want {
			t.Fatalf("%q: got %+v %v, want %+v", name, got, ok, want)
		}
	})
}

func TestSegmentNamesReadBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		base := rapid.Int64Min(0).Draw(t, "base")
		kind := rapid.SampledFrom([]Kind{KindLog, KindOffsetIndex, KindTimeIndex, KindTxnIndex, KindProducerSnapshot}).Draw(t,
			"kind")
		suffix := rapid.SampledFrom([]string{"", ".deleted", ".cleaned", ".swap"}).Draw(t, "suffix")
		n := ParseFileName(SegmentFileName(base, kind) + suffix)
		if !n.HasBase || n.Base != base || n.Kind != kind || n.Plain() != SegmentFileName(base, kind) {
			t.Fatalf("%+v, want base %d, %s", n, base, kind)
		}
	})
}

func TestKindsAreTheirPlaceInTheTable(t *testing.T) {
	seen := map[string]bool{}
	for i, k := range Kinds {
		if int(k.Kind) != i {
			t.Errorf("line %d is %d", i, k.Kind)
		}
		if k.ID == "" || k.Title == "" || seen[k.ID] {
			t.Errorf("%+v has no ID or title of its own", k)
		}
		seen[k.ID] = true
		if k.Kind == KindUnknown {
			continue
		}
		if (k.Ext == "") == (k.Name == "") {
			t.Errorf("%s must have either an extension or a name", k.ID)
		}
		if name := k.Name + strings.TrimSuffix(fmt.Sprintf("1.%s", k.Ext), "1."); ParseFileName(name).Kind != k.Kind {
			t.Errorf("%q is not read as %s", name, k.ID)
		}
	}
	if got := Kind(200).Info().Kind; got != KindUnknown {
		t.Errorf("a kind outside the table is %s", got)
	}
}

func FuzzParseFileName(f *testing.F) {
	for _, k := range Kinds[1:] {
		f.Add(k.Name)
		f.Add("00000000000000000090." + k.Ext + ".deleted")
	}
	f.Add("00000000000000000090-0000000003-812734.checkpoint.part")
	f.Fuzz(func(t *testing.T, name string) {
		n := ParseFileName(name)
		if n.Raw != name || n.Compare(n) != 0 {
			t.Errorf("%+v", n)
		}
		if n.Suffix != "" && n.Plain()+"."+n.Suffix != name {
			t.Errorf("%q and %q are not the name", n.Plain(), n.Suffix)
		}
		if n.Kind != KindUnknown && n.Sibling(n.Kind) != name && n.Kind.HasOffset() {
			t.Errorf("its own sibling is %q", n.Sibling(n.Kind))
		}
	})
}

func FuzzParsePartitionDir(f *testing.F) {
	for _, s := range []string{"orders-3", "a.b-c-0.9d1af414dfad4170b9dd4c579d54a944-future", "a-b.c-3.-delete",
		"-delete"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, name string) {
		d, ok := ParsePartitionDir(name)
		if ok && (d.Topic == "" || d.Partition < 0 || !strings.HasPrefix(name, d.Topic+"-")) {
			t.Errorf("%q: %+v", name, d)
		}
	})
}
