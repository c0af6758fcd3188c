package state

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"kseg/format"
	"kseg/internal/fixture"
	"kseg/logdir"
	"kseg/schema"
)

func openPartition(t testing.TB, dir string) *logdir.Partition {
	t.Helper()
	set, err := logdir.Open([]string{dir}, logdir.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if set.Operands[0].Partition == nil {
		t.Fatalf("%s is no partition", dir)
	}
	return set.Operands[0].Partition
}

// compareGroups holds folded groups and share states against what a broker answers.
func compareGroups(t *testing.T, groups []*Group, shares []*ShareState, im *Image, want map[string]adminGroup) {
	t.Helper()
	seen := map[string]bool{}
	for _, g := range groups {
		seen[g.ID] = true
		w, ok := want[g.ID]
		if !ok {
			t.Errorf("the broker knows no group %s: %+v", g.ID, g)
			continue
		}
		if !strings.EqualFold(string(g.Kind), w.Type) || g.State != w.State || g.Kind == ClassicKind &&
			g.Protocol != w.Protocol {
			t.Errorf("%s is %s, %s, %q; want %+v", g.ID, g.Kind, g.State, g.Protocol, w)
		}
		offsets := 0
		for _, c := range g.Offsets {
			if c.Pending {
				continue
			}
			offsets++
			var o adminOffset
			if err := json.Unmarshal(w.Offsets[c.Topic+"-"+strconv.Itoa(int(c.Partition))], &o); err != nil {
				t.Errorf("%s %s-%d: %+v, the broker has %s", g.ID, c.Topic, c.Partition, c, w.Offsets)
			} else if o.Offset != c.Offset || o.LeaderEpoch != int64(c.LeaderEpoch) || o.Metadata != c.Metadata {
				t.Errorf("%s %s-%d: %+v, want %+v", g.ID, c.Topic, c.Partition, c, o)
			}
		}
		for _, s := range shares {
			if s.Group != g.ID {
				continue
			}
			offsets++
			topic := im.Topics()[s.TopicID]
			if topic == nil {
				t.Errorf("%s: no topic has the id %s", g.ID, s.TopicID)
				continue
			}
			if got := string(w.Offsets[topic.Name+"-"+strconv.Itoa(int(s.Partition))]); got != strconv.FormatInt(s.StartOffset,
				10) {
				t.Errorf("%s %s-%d starts at %d, want %s", g.ID, topic.Name, s.Partition, s.StartOffset, got)
			}
		}
		if offsets != len(w.Offsets) {
			t.Errorf("%s has %d offsets, want %d", g.ID, offsets, len(w.Offsets))
		}
	}
	for name := range want {
		if !seen[name] {
			t.Errorf("no group %s", name)
		}
	}
}

func TestGroupsEqualWhatABrokerAnswers(t *testing.T) {
	im, err := openImage(t, fixture.Dir(t, "4.4.0/internal/__cluster_metadata-0"))
	if err != nil {
		t.Fatal(err)
	}
	l := FoldOffsets(openPartition(t, fixture.Dir(t, "4.4.0/internal/__consumer_offsets-0")), OffsetsOptions{})
	s := FoldShareState(openPartition(t, fixture.Dir(t, "4.4.0/internal/__share_group_state-0")), OffsetsOptions{})
	if len(l.Lost)+len(l.Problems)+len(s.Lost)+len(s.Problems)+l.Newer+s.Newer > 0 || l.EndOffset != 44 ||
		s.EndOffset != 4 {
		t.Errorf("lost %v %v, problems %v %v, ends %d %d", l.Lost, s.Lost, l.Problems, s.Problems, l.EndOffset, s.EndOffset)
	}
	compareGroups(t, l.Groups(), s.States(), im, goldenAnswers(t).Groups)
}

// offsetsWriter writes a partition of __consumer_offsets, a record a batch.
type offsetsWriter struct {
	log    []byte
	offset int64
}

// text16 is a string as old schemas have it.
func text16(s string) string { return string([]byte{byte(len(s) >> 8), byte(len(s))}) + s }

func int64Bytes(n int64) string { return string(binary.BigEndian.AppendUint64(nil, uint64(n))) }

// record appends a record; a producer makes it one of a transaction.
func (w *offsetsWriter) record(key, value []byte, producer *int64, control bool) {
	batch := fixture.AppendBatch(nil, fixture.Batch{Records: []fixture.Record{{Offset: w.offset, TimestampMs: 1000 +
		w.offset, Key: key, Value: value}}})
	if producer != nil {
		batch[22] |= 0x10
		if control {
			batch[22] |= 0x20
		}
		binary.BigEndian.PutUint64(batch[43:], uint64(*producer))
		binary.BigEndian.PutUint32(batch[17:], crc32.Checksum(batch[21:], crc32.MakeTable(crc32.Castagnoli)))
	}
	w.log = append(w.log, batch...)
	w.offset++
}

func commitKey(group string) []byte {
	return []byte("\x00\x01" + text16(group) + text16("t") + "\x00\x00\x00\x00")
}

// commitValue is version 1: offset, metadata, commitTimestamp, expireTimestamp.
func commitValue(offset, commitMs, expireMs int64) []byte {
	return []byte("\x00\x01" + int64Bytes(offset) + text16("") + int64Bytes(commitMs) + int64Bytes(expireMs))
}

// play takes a word a record: c5 commits 5, x5/7 does in a transaction of producer 7, d deletes, C7 and A7 end that
// producer's transaction, L5 is a commit of the legacy type, G1 a classic group of one member, G0 one of none, g its
// tombstone.
func (w *offsetsWriter) play(t *testing.T, script string) {
	for word := range strings.FieldsSeq(script) {
		number, rest, _ := strings.Cut(word[1:], "/")
		n, _ := strconv.ParseInt(number, 10, 64)
		producer, _ := strconv.ParseInt(rest, 10, 64)
		key, group := commitKey("g"), []byte("\x00\x02"+text16("g"))
		switch word[0] {
		case 'c':
			w.record(key, commitValue(n, 5, -1), nil, false)
		case 'x':
			w.record(key, commitValue(n, 5, -1), &producer, false)
		case 'd':
			w.record(key, nil, nil, false)
		case 'C':
			w.record([]byte("\x00\x00\x00\x01"), []byte("\x00\x00\x00\x00\x00\x01"), &n, true)
		case 'A':
			w.record([]byte("\x00\x00\x00\x00"), []byte("\x00\x00\x00\x00\x00\x01"), &n, true)
		case 'L':
			w.record([]byte("\x00\x00"+string(key[2:])), []byte("\x00\x00"+int64Bytes(n)+text16("")+int64Bytes(5)), nil, false)
		case 'G':
			members := "\x00\x00\x00\x00"
			if n > 0 {
				members = "\x00\x00\x00\x01" + text16("m") + text16("client") + text16("/h") + "\x00\x00\x00\x09\x00\x00\x00\x09" +
					"\x00\x00\x00\x00\x00\x00\x00\x00"
			}
			w.record(group, []byte("\x00\x02"+text16("consumer")+"\x00\x00\x00\x03"+text16("range")+text16("m")+int64Bytes(900)+
				members), nil, false)
		case 'g':
			w.record(group, nil, nil, false)
		default:
			t.Fatal(word)
		}
	}
}

func (w *offsetsWriter) partition(t *testing.T) *logdir.Partition {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "__consumer_offsets-0")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "00000000000000000000.log"), w.log, 0o644); err != nil {
		t.Fatal(err)
	}
	return openPartition(t, dir)
}

func TestCommitsAndTransactions(t *testing.T) {
	for _, test := range []struct{ script, want string }{
		{"c1 c2", "2"},
		{"c1 d", ""},
		{"c1 x2/7", "1 2?"},
		{"c1 x2/7 C7", "2"},
		{"c1 x2/7 A7", "1"},
		{"x2/7", "2?"},
		{"x2/7 x3/8 C8", "3 2?"},
		{"x2/7 c3 C7", "3"}, // the later commit stays
		{"c3 x2/7 x4/7 C7", "4"},
		{"x2/7 d C7", ""}, // a tombstone takes what is pending
		{"x2/7 C8", "2?"},
		{"L9", "9"},
		{"L9 c4", "4"},
		{"c4 L9", "9"},
		{"c4 L9 d", ""},
		{"x2/7 A7 x3/7", "3?"},
	} {
		w := &offsetsWriter{}
		w.play(t, test.script)
		l := FoldOffsets(w.partition(t), OffsetsOptions{})
		var got []string
		for _, g := range l.Groups() {
			for _, c := range g.Offsets {
				text := strconv.FormatInt(c.Offset, 10)
				if c.Pending {
					text += "?"
				}
				got = append(got, text)
			}
		}
		if text := strings.Join(got, " "); text != test.want || len(l.Problems)+len(l.Lost) > 0 || l.EndOffset != w.offset {
			t.Errorf("%s: %q, want %q; %v %v", test.script, text, test.want, l.Problems, l.Lost)
		}
	}
}

func TestHistory(t *testing.T) {
	for _, test := range []struct{ script, want string }{
		{"c1 c5 c3", "commit -1 commit 1→5 reset 5→3"},
		{"G1 c5 c9 G0 c20", "group commit -5 commit 5→9 group reset 9→20"},
		{"c5 x9/7 C7", "commit -5 pending 5→9 committed 5→9"},
		{"c5 x9/7 A7 d", "commit -5 pending 5→9 aborted 9→5 offset_deleted 5-"},
		{"G0 c5 g", "group commit -5 group_removed"},
	} {
		w := &offsetsWriter{}
		w.play(t, test.script)
		var got []string
		FoldOffsets(w.partition(t), OffsetsOptions{History: &History{RetentionMs: 1 << 40, Emit: func(e GroupEvent) {
			text := e.What
			switch {
			case e.Before != nil && e.After != nil:
				text += fmt.Sprintf(" %d→%d", e.Before.Offset, e.After.Offset)
			case e.After != nil:
				text += fmt.Sprintf(" -%d", e.After.Offset)
			case e.Before != nil:
				text += fmt.Sprintf(" %d-", e.Before.Offset)
			}
			got = append(got, text)
		}}})
		if text := strings.Join(got, " "); text != test.want {
			t.Errorf("%s: %q, want %q", test.script, text, test.want)
		}
	}
	w := &offsetsWriter{}
	w.play(t, "c5 d")
	last := ""
	FoldOffsets(w.partition(t), OffsetsOptions{History: &History{RetentionMs: 10,
		Emit: func(e GroupEvent) { last = e.What }}})
	if last != EventExpired {
		t.Errorf("a tombstone after the retention is %q", last)
	}
}

func TestUntilAPoint(t *testing.T) {
	for _, test := range []struct {
		until Point
		want  int64
	}{{Point{}, 3}, {Point{Given: true, Offset: 1}, 2}, {Point{Given: true, IsTime: true, TimeMs: 1000}, 1},
		{Point{Given: true, IsTime: true, TimeMs: 1001}, 2}} {
		w := &offsetsWriter{}
		w.play(t, "c1 c2 c3")
		groups := FoldOffsets(w.partition(t), OffsetsOptions{Until: test.until}).Groups()
		if got := groups[0].Offsets[0].Offset; got != test.want {
			t.Errorf("until %+v: %d, want %d", test.until, got, test.want)
		}
	}
}

// TestExpiry holds when an offset goes to what the coordinator of Kafka 4.4.0 does with each kind of group.
func TestExpiry(t *testing.T) {
	const retention, never = 100, -1
	reader := []Member{{ID: "m", Subscribed: []string{"t"}}}
	other := []Member{{ID: "m", Subscribed: []string{"u"}}}
	own := func(ms int64) CommittedOffset { return CommittedOffset{Topic: "t", CommitMs: 5, ExpireMs: ms} }
	for _, test := range []struct {
		name   string
		group  Group
		offset CommittedOffset
		want   int64
	}{
		{"commits alone", Group{Kind: ClassicKind, StateMs: -1}, own(-1), 105},
		{"members of no protocol", Group{Kind: ClassicKind, StateMs: 900, Members: reader}, own(-1), 105},
		{"empty", Group{Kind: ClassicKind, Protocol: "consumer", StateMs: 900}, own(-1), 1000},
		{"empty since time 0", Group{Kind: ClassicKind, Protocol: "consumer"}, own(-1), 100},
		{"empty, not known since when", Group{Kind: ClassicKind, Protocol: "connect", StateMs: -1}, own(-1), 105},
		{"a reader", Group{Kind: ClassicKind, Protocol: "consumer", hasProtocol: true, StateMs: 900, Members: reader},
			own(-1), never},
		{"of another", Group{Kind: ClassicKind, Protocol: "consumer", hasProtocol: true, StateMs: 900, Members: other},
			own(-1), 105},
		{"no assignor", Group{Kind: ClassicKind, Protocol: "consumer", StateMs: 900, Members: other}, own(-1), never},
		{"unread", Group{Kind: ClassicKind, Protocol: "consumer", hasProtocol: true,
			Members: []Member{{Subscribed: []string{"u"}}, {unread: true}}}, own(-1), never},
		{"connectors", Group{Kind: ClassicKind, Protocol: "connect", hasProtocol: true, StateMs: 900, Members: other},
			own(-1), never},
		{"consumer", Group{Kind: ConsumerKind}, own(-1), 105},
		{"consumer, a reader", Group{Kind: ConsumerKind, Members: reader}, own(-1), never},
		{"consumer, of another", Group{Kind: ConsumerKind, Members: other}, own(-1), 105},
		{"consumer, of a pattern", Group{Kind: ConsumerKind, resolved: map[string][]string{"t.*": {"t"}}}, own(-1), never},
		{"consumer, of another pattern", Group{Kind: ConsumerKind, resolved: map[string][]string{"u.*": {"u"}}}, own(-1),
			105},
		{"streams, a reader", Group{Kind: StreamsKind, Members: other, sources: []string{"t"}}, own(-1), never},
		{"streams, of another", Group{Kind: StreamsKind, Members: other, sources: []string{"v"}}, own(-1), 105},
		{"streams, no members", Group{Kind: StreamsKind, sources: []string{"t"}}, own(-1), 105},
		{"share", Group{Kind: ShareKind}, own(-1), never},
		{"its own", Group{Kind: ClassicKind, StateMs: -1}, own(77), 77},
		{"its own, long ago", Group{Kind: ClassicKind, StateMs: -1}, own(-2), -2},
		{"its own, of a reader", Group{Kind: ConsumerKind, Members: reader}, own(77), never},
		{"pending", Group{Kind: ConsumerKind}, CommittedOffset{CommitMs: 5, ExpireMs: -1, Pending: true}, never},
		{"held", Group{Kind: ConsumerKind}, CommittedOffset{CommitMs: 5, ExpireMs: -1, Held: true}, never},
		{"beyond all time", Group{Kind: ConsumerKind}, CommittedOffset{CommitMs: 1<<63 - 1, ExpireMs: -1}, never},
	} {
		ms, ok := test.group.ExpiresAt(&test.offset, retention)
		if !ok {
			ms = never
		}
		if ms != test.want {
			t.Errorf("%s: %d, want %d", test.name, ms, test.want)
		}
	}
}

// TestExpiryIsOfWhatIsFolded takes the rules through the records that they are about: patterns, topologies,
// transactions.
func TestExpiryIsOfWhatIsFolded(t *testing.T) {
	pattern := []byte("\x00\x10" + text16("g") + text16("t.*"))
	matches := func(topic string) []byte {
		return []byte("\x00\x00\x02" + string(byte(len(topic)+1)) + topic + int64Bytes(1) + int64Bytes(2) + "\x00")
	}
	topology := []byte("\x00\x17" + text16("g"))
	reads := []byte("\x00\x00\x00\x00\x00\x01\x02\x020\x02\x02t\x01\x01\x01\x01\x01\x00\x00")
	seven := int64(7)
	for _, test := range []struct {
		name string
		fill func(w *offsetsWriter)
		kept bool
	}{
		{"a pattern", func(w *offsetsWriter) { w.record(pattern, matches("t"), nil, false) }, true},
		{"another pattern", func(w *offsetsWriter) { w.record(pattern, matches("u"), nil, false) }, false},
		{"a pattern gone", func(w *offsetsWriter) {
			w.record(pattern, matches("t"), nil, false)
			w.record(pattern, nil, nil, false)
		}, false},
		{"a topology of no members", func(w *offsetsWriter) { w.record(topology, reads, nil, false) }, false},
		{"a transaction", func(w *offsetsWriter) { w.play(t, "x2/7 x3/8 C7") }, true},
		{"transactions that ended", func(w *offsetsWriter) { w.play(t, "x2/7 x3/8 C7 A8") }, false},
		{"a transaction that was overtaken", func(w *offsetsWriter) { w.play(t, "x2/7 d c4") }, false},
		{"another partition's transaction", func(w *offsetsWriter) {
			w.record([]byte("\x00\x01"+text16("g")+text16("t")+"\x00\x00\x00\x01"), commitValue(1, 5, -1), &seven, false)
		}, false},
	} {
		w := &offsetsWriter{}
		w.play(t, "c1")
		test.fill(w)
		l := FoldOffsets(w.partition(t), OffsetsOptions{})
		g := l.Groups()[0]
		at := slices.IndexFunc(g.Offsets, func(c CommittedOffset) bool { return !c.Pending })
		if _, ok := g.ExpiresAt(&g.Offsets[at], 100); ok == test.kept || len(l.Problems) > 0 {
			t.Errorf("%s: expires is %v; %v", test.name, ok, l.Problems)
		}
		w.play(t, "d")
		last := GroupEvent{}
		FoldOffsets(w.partition(t), OffsetsOptions{History: &History{RetentionMs: 100,
			Emit: func(e GroupEvent) { last = e }}})
		if (last.What == EventExpired) == test.kept {
			t.Errorf("%s: a tombstone is %s", test.name, last.What)
		}
		g.learn(l.decoder.Decode(schema.Offsets, topology, reads))
		g.Members = []Member{{ID: "m"}}
		if _, ok := g.ExpiresAt(&g.Offsets[at], 100); ok {
			t.Errorf("%s: a streams group's topic expires", test.name)
		}
	}
}

func TestSubscriptions(t *testing.T) {
	const two = "\x00\x01\x00\x00\x00\x02\x00\x01a\x00\x01b"
	for _, test := range []struct {
		raw    string
		topics int
		unread bool
	}{{"", 0, true}, {"\x00\x00", 0, true}, {two + "\xff\xff\xff\xff", 2, false},
		{two + "\x00\x00\x00\x01z and more", 2, false}, {two, 2, true}, {two + "\x00\x00\x00\x09z", 2, true},
		{two[:8], 0, true}, {"\x00\x01\xff\xff\xff\xff\x00\x00\x00\x00", 0, true},
		{"\x00\x01\x00\x00\x00\x01\xff\xff\x00\x00\x00\x00", 0, true}} {
		if topics, unread := subscribedTopics([]byte(test.raw)); len(topics) != test.topics || unread != test.unread {
			t.Errorf("%q: %q, %v", test.raw, topics, unread)
		}
	}
}

// TestHolesInOffsets breaks batches: what stood before is unsure, what comes after is not, and a gap is no hole.
func TestHolesInOffsets(t *testing.T) {
	w := &offsetsWriter{}
	w.record(commitKey("a"), commitValue(1, 5, -1), nil, false)
	broken := len(w.log)
	w.record(commitKey("b"), commitValue(1, 5, -1), nil, false)
	w.offset += 10 // the cleaner was here
	w.record(commitKey("c"), commitValue(1, 5, -1), nil, false)
	whole := FoldOffsets(w.partition(t), OffsetsOptions{})
	if len(whole.Lost) > 0 || whole.EndOffset != 13 {
		t.Errorf("a gap is a hole: %v, end %d", whole.Lost, whole.EndOffset)
	}
	w.log[broken+70] ^= 1
	l := FoldOffsets(w.partition(t), OffsetsOptions{})
	if len(l.Lost) != 1 || l.Lost[0] != (Lost{First: 1, Last: 11}) || !l.Unsure(0) || l.Unsure(12) {
		t.Errorf("lost %v, unsure %v %v", l.Lost, l.Unsure(0), l.Unsure(12))
	}
	if groups := l.Groups(); len(groups) != 2 || !l.UnsureGroup(groups[0]) {
		t.Errorf("%d groups", len(groups))
	}
}

func TestOffsetsPartition(t *testing.T) {
	for id, want := range map[string]int32{"my-group": 12, "spec-g": 1, "console-consumer-1": 24, "é-grp": 17,
		"polygenelubricants": 0} {
		if got := OffsetsPartition(id, 50); got != want {
			t.Errorf("%s is in partition %d, want %d", id, got, want)
		}
	}
}

// FuzzOffsets folds damaged logs: nothing may panic.
func FuzzOffsets(f *testing.F) {
	f.Add(fixture.Data(f, "4.4.0/internal/__consumer_offsets-0/00000000000000000000.log"))
	f.Add(fixture.Data(f, "4.4.0/internal/__share_group_state-0/00000000000000000000.log"))
	f.Fuzz(func(t *testing.T, data []byte) {
		w := &offsetsWriter{log: data}
		p := w.partition(t)
		FoldOffsets(p, OffsetsOptions{History: &History{Emit: func(GroupEvent) {}}}).Groups()
		FoldShareState(p, OffsetsOptions{}).States()
	})
}

// BenchmarkFoldOffsets folds KSEG_BENCH_MB megabytes of commits, 64 if that is not set, of few and of many groups of
// twenty partitions. Memory is by live keys: what is left on the heap of each is measured.
func BenchmarkFoldOffsets(b *testing.B) {
	mb := 64
	if text := os.Getenv("KSEG_BENCH_MB"); text != "" {
		mb, _ = strconv.Atoi(text)
	}
	for _, groups := range []int64{50, 5000} {
		b.Run(fmt.Sprintf("keys=%d", 20*groups), func(b *testing.B) {
			p := openPartition(b, writeCommits(b, mb<<20, groups))
			b.SetBytes(int64(mb) << 20)
			b.ReportAllocs()
			for b.Loop() {
				before := heapBytes()
				l := FoldOffsets(p, OffsetsOptions{})
				b.ReportMetric(float64(heapBytes()-before)/float64(20*groups), "B/key")
				if int64(len(l.live)) != 20*groups {
					b.Fatalf("%d keys", len(l.live))
				}
			}
		})
	}
}

func heapBytes() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// writeCommits writes a __consumer_offsets-0 of so many bytes, in segments of 100 MiB at most.
func writeCommits(b *testing.B, size int, groups int64) string {
	dir := filepath.Join(b.TempDir(), "__consumer_offsets-0")
	if err := os.Mkdir(dir, 0o755); err != nil {
		b.Fatal(err)
	}
	offset := int64(0)
	for left := size; left > 0; {
		var log []byte
		base := offset
		for len(log) < min(left, 100<<20) {
			var records []fixture.Record
			group := fmt.Sprintf("group-%d", offset/20%groups)
			for i := range 20 {
				key := []byte("\x00\x01" + text16(group) + text16("some-topic") + "\x00\x00\x00" + string(rune(i)))
				records = append(records, fixture.Record{Offset: offset, TimestampMs: offset, Key: key,
					Value: commitValue(offset, offset, -1)})
				offset++
			}
			log = fixture.AppendBatch(log, fixture.Batch{Records: records})
		}
		left -= len(log)
		name := filepath.Join(dir, format.SegmentFileName(base, format.KindLog))
		if err := os.WriteFile(name, log, 0o644); err != nil {
			b.Fatal(err)
		}
	}
	return dir
}

// A coordinator makes a group for a commit, and has it until a tombstone removes the group itself.
func TestGroupsWithoutOffsets(t *testing.T) {
	for script, want := range map[string]int{"x5/7 A7": 1, "c5 d": 1, "x5/7 A7 g": 0, "G0 c5 d g": 0, "c5 g d": 0} {
		w := &offsetsWriter{}
		w.play(t, script)
		groups := FoldOffsets(w.partition(t), OffsetsOptions{}).Groups()
		if len(groups) != want || want == 1 && (groups[0].State != "Empty" || len(groups[0].Offsets) > 0) {
			t.Errorf("%s: %+v", script, groups)
		}
	}
}
