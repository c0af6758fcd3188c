package schema

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"kseg/format"
	"kseg/internal/fixture"
)

func TestTopicFor(t *testing.T) {
	for dir, want := range map[string]Topic{
		"__consumer_offsets-0":    Offsets,
		"__consumer_offsets-49":   Offsets,
		"__transaction_state-7":   Transactions,
		"__share_group_state-1":   ShareState,
		"__remote_log_metadata-3": RemoteLog,
		"__cluster_metadata-0":    Metadata,
		"__consumer_offsets-1.0f9d3a27fb2b4e3c8e0d0a7c2f1c5d3e-delete": Offsets,
		"__consumer_offsets-1.0f9d3a27fb2b4e3c8e0d0a7c2f1c5d3e-stray":  Offsets,
		"__consumer_offsets":    None,
		"__consumer_offsets-x":  None,
		"a__consumer_offsets-0": None,
		"orders-0":              None,
		"":                      None,
	} {
		if got := TopicFor(dir); got != want {
			t.Errorf("TopicFor(%q) = %d, want %d", dir, got, want)
		}
	}
}

func unhex(s string) []byte {
	b, err := hex.DecodeString(strings.ReplaceAll(s, " ", ""))
	if err != nil {
		panic(err)
	}
	return b
}

// Kafka's reader takes up to 10,000 tagged fields.
func TestMostTaggedFields(t *testing.T) {
	const record = "01 03 02 00000005 dbde9ad717d14a41a7d95e9900225a11 01 01 01 01 00000001 00000007 00000009 01"
	for n, ok := range map[uint64]bool{9999: true, 10000: true, 10001: false} {
		value := binary.AppendUvarint(unhex(record), n)
		for range n {
			value = append(value, 100, 0) // a tag that nobody knows, of no bytes
		}
		if r := NewDecoder().Decode(Metadata, nil, value); (r.Err == nil) != ok {
			t.Errorf("%d tagged fields: %v", n, r.Err)
		}
	}
}

// The example of a PartitionRecord, and one with the tags of version 2 out of order and an unknown one.
func TestValuesOfAPartitionRecord(t *testing.T) {
	const body = "01 03 02 00000005 dbde9ad717d14a41a7d95e9900225a11 03 00000001 00000002 02 00000001 01 01 00000001 " +
		"0000000700000009 02 cb9781cf30358c505606fee555000102"
	r := NewDecoder().Decode(Metadata, nil, unhex(body+"03 02 05 02 00000003 07 02 abcd 00 01 01"))
	if r.Err != nil {
		t.Fatal(r.Err)
	}
	v := r.Value.Root()
	if r.Value.Name != "PartitionRecord" || r.Value.Version != 2 || v.Get("partitionId").Int() != 5 ||
		v.Get("leader").Int() != 1 || v.Get("leaderEpoch").Int() != 7 || v.Get("leaderRecoveryState").Int() != 1 {
		t.Errorf("wrong values: %s", v.AppendJSON(nil))
	}
	if got := v.Get("replicas").Int32s(); len(got) != 2 || got[0] != 1 || got[1] != 2 {
		t.Errorf("replicas %v", got)
	}
	if e := v.Get("eligibleLeaderReplicas"); e.Present() || !e.IsNull() || e.Len() != 0 {
		t.Error("an absent field is not null by default")
	}
	if k := v.Get("lastKnownElr"); !k.Present() || k.Len() != 1 {
		t.Error("lastKnownElr is not there")
	}
	for _, id := range v.Get("directories").Elements() {
		if u := id.UUID(); u[0] != 0xcb || u[15] != 0x02 {
			t.Errorf("directory %x", u)
		}
	}
	if x := v.Get("nothing"); x.Present() || x.Int() != 0 || x.Raw() != nil || x.Get("more").Present() {
		t.Error("an unknown field has a value")
	}
	start, content, end := v.Get("replicas").Span()
	if start != 23 || content != 24 || end != 32 {
		t.Errorf("replicas at %d, %d, %d", start, content, end)
	}
}

// A record of 6 MB with 8 million values is refused before they take memory.
func TestTooManyValues(t *testing.T) {
	value := []byte{0, 0, 0, 0, 0, 1, 0, 0, 0, 1, 0} // version, two epochs, state
	for range 2 {
		value = append(value, 0xc1, 0x84, 0x3d) // 1,000,000 elements
		value = append(value, bytes.Repeat([]byte{1, 1, 0}, 1_000_000)...)
	}
	d := NewDecoder()
	r := d.Decode(Offsets, unhex("0016 0001 67 0001 6d"), append(value, 0))
	if r.Err == nil || !errors.Is(r.Err, format.ErrTooLarge) || cap(d.value.nodes) > 2*maxNodes {
		t.Errorf("%v, room for %d nodes", r.Err, cap(d.value.nodes))
	}
	d.Decode(Offsets, unhex("0016 0001 67 0001 6d"), []byte{0, 0})
	if cap(d.value.nodes) > keptNodes {
		t.Errorf("room for %d nodes is kept", cap(d.value.nodes))
	}
}

// What a field is assumed to be if its version does not have it.
func TestDefaultsOfAbsentFields(t *testing.T) {
	d := NewDecoder()
	key := unhex("0001 0001 67 0001 74 00000000")
	r := d.Decode(Offsets, key, unhex("0000 0000000000000005 0000 0000000000000007"))
	if r.Err != nil {
		t.Fatal(r.Err)
	}
	if e := r.Value.Get("leaderEpoch"); e.Present() || e.Int() != -1 {
		t.Errorf("leaderEpoch %d, present %t", e.Int(), e.Present())
	}
	if r.Value.Get("topicId").UUID() != [16]byte{} || r.Value.Get("offset").Int() != 5 ||
		r.Key.Get("group").Text() != "g" {
		t.Error("wrong values")
	}
}

// A null key, of which the real tool dies, is one line like its others.
func TestNullKeyIsALine(t *testing.T) {
	d := NewDecoder()
	for _, topic := range []Topic{Offsets, Transactions, ShareState} {
		got := string(d.AppendText([]byte("x"), topic, 17, nil, []byte{0, 0}))
		if got != "x key: Error at offset 17, skipping. The record has no key." {
			t.Errorf("%s: %s", topic, got)
		}
	}
}

// The JSON of every frozen record is valid, has the names that docs/json.md fixes, and the data that the text has.
func TestJSONHasTheDataOfTheText(t *testing.T) {
	d := NewDecoder()
	eachFrozen(t, func(topic Topic, b *format.Batch, rec *format.Record) {
		if b.Control() {
			if out := d.AppendControlJSON(nil, rec.Key, rec.Value); !json.Valid(out) {
				t.Errorf("offset %d: %s", rec.Offset, out)
			}
			return
		}
		text := d.AppendText(nil, topic, rec.Offset, rec.Key, rec.Value)
		out := d.AppendJSON(nil, topic, rec.Key, rec.Value)
		var object struct {
			Key, Value *struct {
				Type    *int
				Name    string
				Version *int
				Data    json.RawMessage
			}
			Error *string
		}
		if err := json.Unmarshal(out, &object); err != nil {
			t.Fatalf("offset %d: %v: %s", rec.Offset, err, out)
		}
		if failed := bytes.Contains(text, []byte("skipping. ")) ||
			bytes.HasSuffix(text, []byte(", skipping.")); topic != RemoteLog && failed != (object.Error != nil) {
			t.Errorf("offset %d: text %s\njson %s", rec.Offset, text, out)
		}
		if object.Error != nil || topic == RemoteLog {
			return
		}
		if object.Key != nil && !bytes.Contains(text, object.Key.Data) {
			t.Errorf("offset %d: %s is not in %s", rec.Offset, object.Key.Data, text)
		}
		if object.Value != nil && !bytes.Contains(text, object.Value.Data) {
			t.Errorf("offset %d: %s is not in %s", rec.Offset, object.Value.Data, text)
		}
	})
}

// eachFrozen goes through the records of testdata/schema.
func eachFrozen(t testing.TB, fn func(Topic, *format.Batch, *format.Record)) {
	for _, file := range frozenLogs(t) {
		topic := TopicFor(strings.TrimSuffix(fileName(file), ".log.gz"))
		eachRecord(t, gunzip(t, file), func(b *format.Batch, rec *format.Record) { fn(topic, b, rec) })
	}
}

func fileName(path string) string { return path[strings.LastIndexByte(path, '/')+1:] }

// Leaves cover the bytes of broken records, too.
func TestLeavesCoverFrozenRecords(t *testing.T) {
	d := NewDecoder()
	eachFrozen(t, func(topic Topic, b *format.Batch, rec *format.Record) {
		if b.Control() {
			if c := d.DecodeControl(rec.Key, rec.Value); c.Value.tape != nil {
				checkCover(t, c.Value, rec.Value)
			}
			return
		}
		r := d.Decode(topic, rec.Key, rec.Value)
		if r.Key.tape != nil {
			checkCover(t, r.Key, rec.Key)
		}
		if r.Value.tape != nil {
			checkCover(t, r.Value, rec.Value)
		}
	})
}

// Positions in errors lie inside what was decoded.
func TestErrorsHavePositions(t *testing.T) {
	d := NewDecoder()
	eachFrozen(t, func(topic Topic, b *format.Batch, rec *format.Record) {
		if b.Control() {
			return
		}
		if r := d.Decode(topic, rec.Key, rec.Value); r.Err != nil && r.Err.Err != nil {
			if pos := r.Err.Err.Pos; pos < 0 || pos > int64(max(len(rec.Key), len(rec.Value))) {
				t.Errorf("offset %d: %v", rec.Offset, r.Err)
			}
		}
	})
}

// Text, JSON and values of good records cost no allocation once the decoder has grown.
func TestHotPathAllocatesNothing(t *testing.T) {
	d := NewDecoder()
	for _, name := range []string{"4.4.0/internal/__consumer_offsets-0/", "4.4.0/internal/__transaction_state-0/",
		"4.4.0/internal/__share_group_state-0/", "4.4.0/internal/__cluster_metadata-0/"} {
		topic := TopicFor(strings.Split(name, "/")[2])
		var keys, values [][]byte
		eachRecord(t, fixture.Data(t, name+"00000000000000000000.log"), func(b *format.Batch, rec *format.Record) {
			if !b.Control() {
				keys, values = append(keys, rec.Key), append(values, rec.Value)
			}
		})
		dst := make([]byte, 0, 1<<20)
		if n := testing.AllocsPerRun(10, func() {
			for i := range keys {
				dst = d.AppendText(dst[:0], topic, 17, keys[i], values[i])
				dst = d.AppendJSON(dst[:0], topic, keys[i], values[i])
			}
		}); n > 0 {
			t.Errorf("%s: %.1f allocations for %d records", topic, n, len(keys))
		}
	}
}

func BenchmarkOffsetCommitText(b *testing.B) {
	d := NewDecoder()
	key := unhex("0001 0008 67726f75702d3132 0006 6f7264657273 00000007")
	value := unhex("0004 00000000000f4240 00000003 01 000001a22b4f3a11 01 00 10 285d071d5d934431 80eec50fa833ec48")
	dst := make([]byte, 0, 1<<10)
	b.ReportAllocs()
	for b.Loop() {
		dst = d.AppendText(dst[:0], Offsets, 17, key, value)
	}
	if bytes.Contains(dst, []byte("Error")) {
		b.Fatal(string(dst))
	}
}

// A LeaderChange that says version 1 in the bytes of version 0 is printed as Kafka 4.4.0 does.
func TestLeaderChangeOfVersion1InBytesOfVersion0(t *testing.T) {
	value := unhex("0001 00000001 03 00000003 00 00000002 00 01 00")
	want := ` LeaderChange: {"version":1,"leaderId":1,"voters":[{"voterId":3,` +
		`"voterDirectoryId":"AAAAAAAAAAAAAAAAAAAAAA"},` +
		`{"voterId":2,"voterDirectoryId":"AAAAAAAAAAAAAAAAAAAAAA"}],"grantingVoters":[]}`
	for _, trailing := range []string{"", "0102"} {
		got, err := NewDecoder().AppendControlText(nil, []byte{0, 0, 0, 2}, append(value, unhex(trailing)...))
		if err != nil || string(got) != want {
			t.Errorf("%v\n got %s\nwant %s", err, got, want)
		}
	}
}

// Version 1 of LeaderChange, which no broker writes yet, has the voters' directories.
func TestLeaderChangeOfVersion1(t *testing.T) {
	voter := "00000007 285d071d5d93443180eec50fa833ec48 00"
	value := unhex("0001 00000007 02" + voter + "02" + voter + "00")
	got, err := NewDecoder().AppendControlText(nil, []byte{0, 0, 0, 2}, value)
	want := ` LeaderChange: {"version":1,"leaderId":7,"voters":[{"voterId":7,` +
		`"voterDirectoryId":"KF0HHV2TRDGA7sUPqDPsSA"}],` +
		`"grantingVoters":[{"voterId":7,"voterDirectoryId":"KF0HHV2TRDGA7sUPqDPsSA"}]}`
	if err != nil || string(got) != want {
		t.Errorf("%v\n got %s\nwant %s", err, got, want)
	}
}

// Where the real tool dies of a control record, there is an error and no text.
func TestBrokenControlRecords(t *testing.T) {
	d := NewDecoder()
	for _, c := range []struct{ key, value, kafka string }{
		{"0000", "", "Invalid value size found for control record key. Must have at least 4 bytes, but found only 2"},
		{"ffff0000", "", "Invalid version found for control record: -1. May indicate data corruption"},
		{"00000001", "fffe00000000", "Invalid version found for end transaction marker: -2. May indicate data corruption"},
		{"00000001", "0000", "null"},
		{"00000003", "0000", "null"},
		{"00000002", "0000 00000001 01 01 03 0000", "Tried to read 3 tagged fields, but there are only 2 bytes remaining."},
		{"00000002", "0000 00000001 01 01 02 0000", "null"},
		{"00000006", "000000", "non-nullable field voters was serialized as null"},
	} {
		got, err := d.AppendControlText([]byte("x"), unhex(c.key), unhex(c.value))
		var e *Error
		if !errors.As(err, &e) || e.Kafka != c.kafka || string(got) != "x" {
			t.Errorf("key %s value %s: %q, %v", c.key, c.value, got, err)
		}
	}
}
