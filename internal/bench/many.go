package main

import (
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"kseg/format"
)

// startMs is when the first record of what is written here was made.
const startMs = 1_700_000_000_000

// many are things of which there can be thousands, and the command lines that read them. DIR stands for the log
// directory, PARTITION for the partition orders-0 in it, COPY for a copy of DIR.
var many = []struct {
	name  string
	write func(dir string, n int) error
	works []string
}{
	{"partitions", partitions, []string{"ls DIR", "ls --by partition --sort slack DIR", "ls --stats DIR", "dump DIR",
		"verify DIR", "verify -o json --jobs 1 DIR", "lookup DIR --offset 0", "lookup DIR --timestamp -1d",
		"lookup DIR --sweep", "density DIR", "retention DIR", "retention --plan DIR", "txn DIR", "groups DIR",
		"metadata DIR", "metadata DIR --type topic_partition", "compaction DIR", "compare DIR COPY",
		"compare --fingerprint DIR", "predict DIR", "predict --shutdown unclean DIR", "salvage DIR -o OUT"}},
	{"segments", segments, []string{"ls PARTITION", "ls --stats DIR", "ls --by segment DIR", "dump PARTITION",
		"verify DIR", "lookup PARTITION --offset 2500", "lookup PARTITION --timestamp -1d", "lookup PARTITION --sweep",
		"density PARTITION", "retention PARTITION", "txn PARTITION", "compaction PARTITION", "compare DIR COPY",
		"predict DIR", "predict --shutdown unclean DIR", "verify --rebuild OUT --snapshots PARTITION",
		"salvage PARTITION -o OUT"}},
	{"topics in the metadata", topics, []string{"ls DIR", "dump --records DIR", "verify DIR", "metadata DIR",
		"metadata DIR -o json", "metadata DIR --topic t-1*", "metadata DIR --at 1000", "metadata DIR --diff 1000,end",
		"metadata DIR --check", "predict DIR", "retention DIR", "compaction DIR", "txn DIR"}},
	{"groups", groups, []string{"groups DIR", "groups DIR -o json", "groups DIR --history", "groups DIR --at 1000",
		"dump --records DIR", "verify DIR", "compaction DIR", "predict DIR", "retention DIR"}},
	{"producers", producers, []string{"verify DIR", "txn DIR --producers", "txn DIR --all", "predict DIR",
		"predict --shutdown unclean DIR", "ls --by producer DIR", "verify --rebuild OUT --snapshots PARTITION",
		"compare --state DIR COPY", "compaction PARTITION", "salvage PARTITION -o OUT", "dump DIR",
		"explain --all PARTITION/SNAPSHOT"}},
	{"open transactions", transactions, []string{"txn DIR", "txn DIR --all", "txn DIR -o json", "verify DIR",
		"predict DIR", "predict --shutdown unclean DIR", "retention DIR", "compaction PARTITION", "compare --state DIR COPY",
		"dump --records DIR", "salvage PARTITION -o OUT", "lookup PARTITION --sweep"}},
	{"aborted transactions", aborted, []string{"txn DIR", "txn DIR --all", "verify DIR", "predict DIR",
		"predict --shutdown unclean DIR", "compaction PARTITION", "compare --state DIR COPY", "salvage PARTITION -o OUT",
		"verify --rebuild OUT PARTITION", "explain --all PARTITION/00000000000000000000.txnindex"}},
	{"leader epochs", epochs, []string{"verify DIR", "predict DIR", "predict --shutdown unclean DIR",
		"compare --state DIR COPY", "salvage PARTITION -o OUT", "lookup PARTITION --offset 2500", "dump DIR",
		"retention DIR", "explain --all PARTITION/leader-epoch-checkpoint"}},
	{"index entries", indexEntries, []string{"verify DIR", "lookup PARTITION --sweep", "lookup PARTITION --offset 2500",
		"density PARTITION", "dump DIR", "predict DIR", "predict --shutdown unclean DIR",
		"explain --all PARTITION/00000000000000000000.index", "explain --all PARTITION/00000000000000000000.log"}},
	{"keys", keys, []string{"compaction PARTITION", "compaction --keys=20 PARTITION", "compaction -o json DIR",
		"verify DIR", "predict DIR"}},
	{"findings", findings, []string{"verify DIR", "verify -o json DIR", "verify -o junit DIR", "dump PARTITION",
		"dump --records PARTITION", "predict --shutdown unclean DIR", "salvage PARTITION -o OUT", "compare DIR COPY",
		"lookup PARTITION --sweep", "lookup PARTITION --offset 2500", "txn DIR", "compaction PARTITION", "retention DIR"}},
	{"leftovers", leftovers, []string{"ls DIR", "verify DIR", "predict DIR", "retention DIR", "dump DIR", "txn DIR"}},
}

// batch is a batch of one record.
func batch(offset int64, key, value string, b format.Batch) []byte {
	b.BaseOffset, b.BaseTimestamp, b.MaxTimestamp, b.Count = offset, startMs+offset, startMs+offset, 1
	return format.AppendBatch(nil, &b, format.AppendRecord(nil, &format.Record{Key: []byte(key), Value: []byte(value)},
		0, 0))
}

// idle is what a batch has that comes from a producer without an id.
var idle = format.Batch{ProducerID: -1, ProducerEpoch: -1, BaseSequence: -1}

// log is a segment of n batches.
func log(n int, make func(i int) []byte) (data []byte) {
	for i := range n {
		data = append(data, make(i)...)
	}
	return data
}

// write writes files below dir, as names and contents by turns.
func write(dir string, files ...any) error {
	for i := 0; i < len(files); i += 2 {
		name := filepath.Join(dir, files[i].(string))
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(name, fmt.Append(nil, text(files[i+1])), 0o644); err != nil {
			return err
		}
	}
	return nil
}

func text(content any) string {
	if b, ok := content.([]byte); ok {
		return string(b)
	}
	return content.(string)
}

// checkpoint is a file with a version, a count and lines.
func checkpoint(n int, line func(i int) string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "0\n%d\n", n)
	for i := range n {
		fmt.Fprintln(&b, line(i))
	}
	return b.String()
}

// broker writes what a log directory has beside its partitions, for n topics of one partition with the end offset end.
func broker(dir string, n int, end int64) error {
	line := func(i int) string { return fmt.Sprintf("t-%d 0 %d", i, end) }
	all := checkpoint(n, line)
	return write(dir,
		"meta.properties", "node.id=1\ndirectory.id="+directoryID+"\nversion=1\ncluster.id="+directoryID+"\n",
		"recovery-point-offset-checkpoint", all, "replication-offset-checkpoint", all,
		"log-start-offset-checkpoint", checkpoint(0, nil), ".kafka_cleanshutdown", "version=0\nbroker.id=1\n")
}

const directoryID = "lDWUMb2FFxDYSQgbzl4keA"

// topicID is the id of the topic with this number.
func topicID(i int) []byte {
	id := make([]byte, 16)
	id[0] = 0x40
	binary.BigEndian.PutUint64(id[8:], uint64(i)+1000)
	return id
}

func partitions(dir string, n int) error {
	for i := range n {
		if err := write(filepath.Join(dir, fmt.Sprintf("t-%d-0", i)), segmentFile(0, format.KindLog),
			batch(0, "k", "v", idle), segmentFile(0, format.KindOffsetIndex), "", segmentFile(0, format.KindTimeIndex),
			format.AppendTimeEntry(nil, 0, format.TimeEntry{TimestampMs: startMs}), "leader-epoch-checkpoint", "0\n1\n0 0\n",
			"partition.metadata", "version: 0\ntopic_id: "+base64.RawURLEncoding.EncodeToString(topicID(i))+"\n"); err !=
			nil {
			return err
		}
	}
	if err := topics(dir, n); err != nil {
		return err
	}
	return broker(dir, n, 1)
}

func segmentFile(base int64, kind format.Kind) string { return format.SegmentFileName(base, kind) }

// one writes a log directory with the partition orders-0 of one segment.
func one(dir string, data []byte, more ...any) error {
	if err := broker(dir, 0, 0); err != nil {
		return err
	}
	return write(filepath.Join(dir, "orders-0"), append([]any{segmentFile(0, format.KindLog), data,
		"leader-epoch-checkpoint", "0\n1\n0 0\n"}, more...)...)
}

func segments(dir string, n int) error {
	if err := one(dir, batch(0, "k", "v", idle)); err != nil {
		return err
	}
	for i := range int64(n) {
		if err := write(filepath.Join(dir, "orders-0"), segmentFile(i, format.KindLog), batch(i, "k", "v", idle),
			segmentFile(i, format.KindOffsetIndex), "", segmentFile(i, format.KindTimeIndex),
			format.AppendTimeEntry(nil, i, format.TimeEntry{TimestampMs: startMs + i, Offset: i})); err != nil {
			return err
		}
	}
	return nil
}

// topics writes a metadata log of n topics, of one partition each.
func topics(dir string, n int) error {
	offset := int64(-1)
	record := func(fields []byte) []byte {
		offset++
		return batch(offset, "", string(fields), idle)
	}
	data := log(n, func(i int) []byte {
		name := fmt.Sprintf("t-%d", i)
		topic := append(append([]byte{1, 2, 0, byte(len(name) + 1)}, name...), topicID(i)...)
		partition := append([]byte{1, 3, 0, 0, 0, 0, 0}, topicID(i)...)
		partition = append(partition, 2, 0, 0, 0, 1, 2, 0, 0, 0, 1, 1, 1, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0)
		return append(record(append(topic, 0)), record(partition)...)
	})
	if err := broker(dir, n, 1); err != nil {
		return err
	}
	return write(filepath.Join(dir, "__cluster_metadata-0"), segmentFile(0, format.KindLog), data)
}

// field is a string as the internal topics hold it.
func field(s string) string {
	return string(binary.BigEndian.AppendUint16(nil, uint16(len(s)))) + s
}

func groups(dir string, n int) error {
	if err := broker(dir, 0, 0); err != nil {
		return err
	}
	return write(filepath.Join(dir, "__consumer_offsets-0"), segmentFile(0, format.KindLog), log(n, func(i int) []byte {
		key := "\x00\x01" + field(fmt.Sprintf("group-%d", i)) + field("orders") + "\x00\x00\x00\x00"
		value := "\x00\x03" + strings.Repeat("\x00", 12) + field("") + string(binary.BigEndian.AppendUint64(nil, startMs))
		return batch(int64(i), key, value, idle)
	}))
}

func producers(dir string, n int) error {
	var entries []format.ProducerEntry
	data := log(n, func(i int) []byte {
		entries = append(entries, format.ProducerEntry{ProducerID: int64(i), LastOffset: int64(i),
			TimestampMs: startMs + int64(i), CoordinatorEpoch: -1, CurrentTxnFirstOffset: -1})
		return batch(int64(i), "k", "v", format.Batch{ProducerID: int64(i)})
	})
	return one(dir, data, segmentFile(int64(n), format.KindProducerSnapshot), format.AppendProducerSnapshot(nil, entries))
}

func transactions(dir string, n int) error {
	data := log(n, func(i int) []byte {
		return batch(int64(i), "k", "v", format.Batch{ProducerID: int64(i), Attributes: 0x10})
	})
	if err := one(dir, data); err != nil {
		return err
	}
	return write(filepath.Join(dir, "__transaction_state-0"), segmentFile(0, format.KindLog), log(n, func(i int) []byte {
		key := "\x00\x00" + field(fmt.Sprintf("id-%d", i))
		value := binary.BigEndian.AppendUint64([]byte{0, 0}, uint64(i))
		value = append(value, 0, 0, 0, 0, 0xea, 0x60, 1, 0, 0, 0, 1)
		value = append(append(value, field("orders")...), 0, 0, 0, 1, 0, 0, 0, 0)
		value = binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(value, startMs), startMs)
		return batch(int64(i), key, string(value), idle)
	}))
}

func aborted(dir string, n int) error {
	var index []byte
	data := log(n, func(i int) []byte {
		first := int64(2 * i)
		index = format.AppendAbortedTxn(index, format.AbortedTxn{ProducerID: int64(i), FirstOffset: first,
			LastOffset: first + 1, LastStableOffset: first + 2})
		marker := batch(first+1, "\x00\x00\x00\x00", "\x00\x00\x00\x00\x00\x00", format.Batch{ProducerID: int64(i),
			Attributes: 0x30, BaseSequence: -1})
		return append(batch(first, "k", "v", format.Batch{ProducerID: int64(i), Attributes: 0x10}), marker...)
	})
	return one(dir, data, segmentFile(0, format.KindTxnIndex), index)
}

func epochs(dir string, n int) error {
	data := log(n, func(i int) []byte {
		b := idle
		b.LeaderEpoch = int32(i)
		return batch(int64(i), "k", "v", b)
	})
	line := func(i int) string { return fmt.Sprintf("%d %d", i, i) }
	return one(dir, data, "leader-epoch-checkpoint", checkpoint(n, line))
}

func indexEntries(dir string, n int) error {
	var offsets, times []byte
	size := 0
	data := log(n, func(i int) []byte {
		at := int64(i)
		if i > 0 {
			offsets = format.AppendOffsetEntry(offsets, 0, format.OffsetEntry{Offset: at, Position: int32(size)})
			times = format.AppendTimeEntry(times, 0, format.TimeEntry{TimestampMs: startMs + at, Offset: at})
		}
		b := batch(at, "k", strings.Repeat("v", 100), idle)
		size += len(b)
		return b
	})
	return one(dir, data, segmentFile(0, format.KindOffsetIndex), offsets, segmentFile(0, format.KindTimeIndex), times)
}

func keys(dir string, n int) error {
	return one(dir, log(n, func(i int) []byte { return batch(int64(i), fmt.Sprintf("key-%d", i), "v", idle) }),
		segmentFile(int64(n), format.KindLog), batch(int64(n), "k", "v", idle))
}

// findings damages one batch in two.
func findings(dir string, n int) error {
	return one(dir, log(2*n, func(i int) []byte {
		b := batch(int64(i), "k", "v", idle)
		if i%2 == 1 {
			b[len(b)-2] ^= 1
		}
		return b
	}))
}

// leftovers are directories that brokers did not get to delete, and files that are not theirs.
func leftovers(dir string, n int) error {
	for i := range n {
		if err := write(dir, fmt.Sprintf("t-%d-0.%032x-delete/%s", i, i, segmentFile(0, format.KindLog)),
			batch(0, "k", "v", idle), fmt.Sprintf("notes-%d.txt", i), ""); err != nil {
			return err
		}
	}
	return one(dir, batch(0, "k", "v", idle))
}
