package format_test

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"kseg/format"
	"kseg/internal/fixture"
)

// produced is a batch of an idempotent or transactional producer.
type produced struct {
	offset        int64
	records       int // 0: a batch that compaction emptied, of one offset
	timestampMs   int64
	id            int64
	epoch         int16
	sequence      int32
	transactional bool
	control       bool
	key, value    []byte // of a control record
}

// append writes the batch behind dst.
func (p produced) append(dst []byte) []byte {
	start := len(dst)
	b := fixture.Batch{}
	for i := range max(1, p.records) {
		b.Records = append(b.Records, fixture.Record{Offset: p.offset + int64(i), TimestampMs: p.timestampMs, Key: p.key, Value: p.value})
	}
	if p.transactional {
		b.Attributes |= 0x10
	}
	if p.control {
		b.Attributes |= 0x20
	}
	dst = fixture.AppendBatch(dst, b)
	raw := dst[start:]
	if p.records == 0 {
		raw = raw[:format.BatchHeaderSize]
		binary.BigEndian.PutUint32(raw[8:], format.BatchHeaderSize-format.LogOverhead)
		binary.BigEndian.PutUint32(raw[57:], 0)
	}
	binary.BigEndian.PutUint64(raw[43:], uint64(p.id))
	binary.BigEndian.PutUint16(raw[51:], uint16(p.epoch))
	binary.BigEndian.PutUint32(raw[53:], uint32(p.sequence))
	binary.BigEndian.PutUint32(raw[17:], crc32.Checksum(raw[21:], crc32.MakeTable(crc32.Castagnoli)))
	return dst[:start+len(raw)]
}

func marker(abort bool, coordinatorEpoch int32) (key, value []byte) {
	key = []byte{0, 0, 0, 1}
	if abort {
		key[3] = 0
	}
	return key, binary.BigEndian.AppendUint32([]byte{0, 0}, uint32(coordinatorEpoch))
}

// producerLogs are segments of producers that begin, end, repeat and get things wrong; base offset 0. What Kafka 4.4.0 makes
// of them is in testdata.
func producerLogs() [][]byte {
	r := rand.New(rand.NewPCG(3, 5))
	ids := []int64{0, 1, 2, 3, 4, 17, 1000, 1 << 20, 1 << 33, math.MaxInt64, -1}
	var logs [][]byte
	for i := range 60 {
		if i%10 == 9 {
			for range 30 {
				ids = append(ids, r.Int64()) // more than the first table of a HashMap holds
			}
		}
		var log []byte
		open := map[int64]bool{}
		epochs := map[int64]int16{}
		offset := r.Int64N(5)
		for range 5 + r.IntN(60) {
			p := produced{offset: offset, records: 1 + r.IntN(3), timestampMs: 1000 + r.Int64N(500), id: ids[r.IntN(len(ids))], sequence: int32(r.IntN(5))}
			if r.IntN(12) == 0 {
				p.records = 0
			}
			if r.IntN(8) == 0 {
				p.sequence = math.MaxInt32 - int32(r.IntN(3))
			}
			epochs[p.id] += int16(r.IntN(5) / 4)
			p.epoch = epochs[p.id] - int16(r.IntN(20)/19)
			switch {
			case r.IntN(3) == 0:
				p.control, p.transactional, p.records, p.sequence = true, true, min(1, p.records), -1
				p.key, p.value = marker(r.IntN(2) == 0, int32(r.IntN(4)))
				open[p.id] = open[p.id] && p.records == 0
			case open[p.id] || r.IntN(2) == 0:
				p.transactional = true
				open[p.id] = true
			}
			p = spoil(r, i, p)
			log = p.append(log)
			offset += int64(max(1, p.records)) + r.Int64N(2)
		}
		logs = append(logs, log)
	}
	return logs
}

// spoil makes a few batches of a few logs such that a broker gives up.
func spoil(r *rand.Rand, log int, p produced) produced {
	if log < 45 || r.IntN(15) > 0 {
		return p
	}
	switch {
	case p.control && r.IntN(2) == 0:
		p.key = [][]byte{{0, 0, 0, 2}, {0, 0, 0, 9}, {0, 0}, {0x80, 0, 0, 1}, {0, 5, 0, 1}, nil}[r.IntN(6)]
	case p.control:
		p.value = [][]byte{{0, 0, 0, 0}, {0x80, 0, 0, 0, 0, 1}, {0, 3, 0, 0, 0, 1, 9, 9}, nil}[r.IntN(4)]
	default:
		p.transactional = false
	}
	return p
}

// replay is what a log leaves behind: the transaction index and the snapshot, or what stopped it.
func replay(log []byte) (string, error) {
	rr := format.NewRecordReader(1<<20, nil)
	state := format.NewProducerState(0)
	var txns format.TxnIndexBuilder
	s := format.NewScanner(log, 0, 0)
	for s.Next() {
		ev, err := state.Append(s.Batch(), rr)
		if err != nil {
			return "", err
		}
		if ev.Ended {
			if err := txns.Add(ev.Txn); err != nil {
				return "", err
			}
		}
	}
	snapshot := format.AppendProducerSnapshot(nil, state.Entries())
	return fmt.Sprintf("%d %s %s", state.End(), hex.EncodeToString(txns.Bytes()), hex.EncodeToString(snapshot)), nil
}

// TestReplayAsKafkaDoes compares the transaction index and the snapshot with those that LogSegment.recover and
// ProducerStateManager.takeSnapshot of Kafka 4.4.0 wrote for the same log.
func TestReplayAsKafkaDoes(t *testing.T) {
	want := strings.Split(strings.TrimSpace(readGzip(t, "testdata/producers.gz")), "\n")
	gaveUp := 0
	for i, log := range producerLogs() {
		got, err := replay(log)
		switch {
		case errors.Is(err, format.ErrTxnState):
			got = "InvalidTxnStateException"
		case errors.Is(err, format.ErrMarker):
			got = "unreadable marker"
		case err != nil:
			got = "InvalidRecordException"
		}
		if err != nil {
			gaveUp++
		}
		if got != want[i] {
			t.Errorf("log %d:\ngot  %s (%v)\nwant %s", i, got, err, want[i])
		}
	}
	if gaveUp < 5 || gaveUp > 20 {
		t.Errorf("%d logs stopped", gaveUp)
	}
}

func TestReplayAllocatesNothing(t *testing.T) {
	var log []byte
	for i := range 4 {
		log = produced{offset: int64(i), records: 1, timestampMs: 5, id: int64(i % 2), sequence: int32(i / 2)}.append(log)
	}
	state := format.NewProducerState(0)
	rr := format.NewRecordReader(1<<20, nil)
	var batches []format.Batch
	eachBatch(log, 0, func(b *format.Batch) { batches = append(batches, *b) })
	allocs := testing.AllocsPerRun(100, func() {
		for i := range batches {
			if _, err := state.Append(&batches[i], rr); err != nil {
				t.Fatal(err)
			}
		}
	})
	if allocs != 0 {
		t.Errorf("%v allocations", allocs)
	}
}

// TestProducerIssues: what a broker would refuse from a client, told batch by batch.
func TestProducerIssues(t *testing.T) {
	commit, value := marker(false, 7)
	_, older := marker(false, 6)
	steps := []struct {
		batch produced
		want  format.ProducerIssue
	}{
		{produced{records: 3, sequence: 40}, format.ProducerInOrder}, // the first one seen may start anywhere
		{produced{records: 2, sequence: 43}, format.ProducerInOrder},
		{produced{records: 1, sequence: 46}, format.ProducerSequenceGap},
		{produced{records: 1, sequence: 46}, format.ProducerSequenceGap}, // repeated
		{produced{records: 1, sequence: 47, epoch: 1}, format.ProducerSequenceStart},
		{produced{records: 1, sequence: 48, epoch: 0}, format.ProducerEpochBack},
		{produced{records: 1, sequence: math.MaxInt32, epoch: 2}, format.ProducerSequenceStart},
		{produced{records: 1, sequence: 0, epoch: 2}, format.ProducerInOrder}, // sequences wrap
		{produced{records: 1, sequence: 1, epoch: 2, transactional: true}, format.ProducerInOrder},
		{produced{records: 1, sequence: -1, epoch: 2, transactional: true, control: true, key: commit, value: value}, format.ProducerInOrder},
		{produced{records: 1, sequence: -1, epoch: 2, transactional: true, control: true, key: commit, value: value}, format.ProducerMarkerWithoutTxn},
		{produced{records: 1, sequence: -1, epoch: 2, transactional: true, control: true, key: commit, value: older}, format.ProducerCoordinatorBack},
		{produced{records: 1, sequence: 2, epoch: 2}, format.ProducerInOrder}, // a marker of the same epoch changes no sequence
		{produced{records: 1, sequence: -1, epoch: 3, transactional: true, control: true, key: commit, value: value}, format.ProducerMarkerWithoutTxn},
		{produced{records: 1, sequence: 0, epoch: 3}, format.ProducerInOrder}, // after a marker of a new epoch they start at 0
		{produced{records: 1, sequence: -1, epoch: 1, transactional: true, control: true, key: commit, value: value}, format.ProducerEpochBack},
	}
	var log []byte
	offset := int64(0)
	for _, s := range steps {
		s.batch.offset, s.batch.id = offset, 9
		log = s.batch.append(log)
		offset += int64(s.batch.records)
	}
	state := format.NewProducerState(0)
	rr := format.NewRecordReader(1<<20, nil)
	i := 0
	eachBatch(log, 0, func(b *format.Batch) {
		ev, err := state.Append(b, rr)
		if err != nil || ev.Issue != steps[i].want || ev.Known != (i > 0) {
			t.Errorf("step %d: %+v, %v; want issue %d", i, ev, err, steps[i].want)
		}
		i++
	})
	if i != len(steps) || state.End() != offset {
		t.Errorf("%d of %d steps, end %d of %d", i, len(steps), state.End(), offset)
	}
}

// TestManyOpenTransactions: begin and end in any order, the first open one is always right, and ended ones take no room.
func TestManyOpenTransactions(t *testing.T) {
	abort, value := marker(true, 0)
	r := rand.New(rand.NewPCG(9, 9))
	state := format.NewProducerState(0)
	rr := format.NewRecordReader(1<<20, nil)
	firsts := map[int64]int64{}
	for offset := range int64(3000) {
		id := r.Int64N(40)
		if r.IntN(400) != 0 && id == 0 {
			id = 1 // producer 0 hangs for long
		}
		p := produced{offset: offset, records: 1, id: id, transactional: true}
		if _, ok := firsts[id]; ok {
			p.control, p.sequence, p.key, p.value = true, -1, abort, value
		}
		b, err := format.DecodeBatch(p.append(nil), 0)
		if err != nil {
			t.Fatal(err)
		}
		ev, err := state.Append(&b, rr)
		if err != nil || ev.Ended != p.control || ev.Began == p.control {
			t.Fatalf("offset %d: %+v, %v", offset, ev, err)
		}
		if first, ok := firsts[id]; ok {
			delete(firsts, id)
			want := offset + 1
			for _, f := range firsts {
				want = min(want, f)
			}
			if ev.Txn.FirstOffset != first || ev.Txn.LastOffset != offset || ev.Txn.LastStableOffset != want || !ev.Txn.Aborted {
				t.Fatalf("offset %d: %+v, want first %d, stable %d", offset, ev.Txn, first, want)
			}
		} else {
			firsts[id] = offset
		}
		open := state.Open()
		if len(open) != len(firsts) {
			t.Fatalf("%d transactions open, want %d", len(open), len(firsts))
		}
		for i, e := range open {
			if firsts[e.ProducerID] != e.CurrentTxnFirstOffset || i > 0 && open[i-1].CurrentTxnFirstOffset >= e.CurrentTxnFirstOffset {
				t.Fatalf("open: %+v", open)
			}
		}
	}
}
