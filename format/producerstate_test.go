package format_test

import (
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"kseg/format"
	"kseg/internal/fixture"
)

// producerLogs are segments of producers that begin, end, repeat and get things wrong; base offset 0. What Kafka 4.4.0
// makes of them is in testdata.
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
			p := fixture.Produced{Offset: offset, Records: 1 + r.IntN(3), TimestampMs: 1000 + r.Int64N(500),
				ID: ids[r.IntN(len(ids))], Sequence: int32(r.IntN(5))}
			if r.IntN(12) == 0 {
				p.Records = 0
			}
			if r.IntN(8) == 0 {
				p.Sequence = math.MaxInt32 - int32(r.IntN(3))
			}
			epochs[p.ID] += int16(r.IntN(5) / 4)
			p.Epoch = epochs[p.ID] - int16(r.IntN(20)/19)
			switch {
			case r.IntN(3) == 0:
				p.Control, p.Transactional, p.Records, p.Sequence = true, true, min(1, p.Records), -1
				p.Key, p.Value = fixture.Marker(r.IntN(2) == 0, int32(r.IntN(4)))
				open[p.ID] = open[p.ID] && p.Records == 0
			case open[p.ID] || r.IntN(2) == 0:
				p.Transactional = true
				open[p.ID] = true
			}
			p = spoil(r, i, p)
			log = p.Append(log)
			offset += int64(max(1, p.Records)) + r.Int64N(2)
		}
		logs = append(logs, log)
	}
	return logs
}

// spoil makes a few batches of a few logs such that a broker gives up.
func spoil(r *rand.Rand, log int, p fixture.Produced) fixture.Produced {
	if log < 45 || r.IntN(15) > 0 {
		return p
	}
	switch {
	case p.Control && r.IntN(2) == 0:
		p.Key = [][]byte{{0, 0, 0, 2}, {0, 0, 0, 9}, {0, 0}, {0x80, 0, 0, 1}, {0, 5, 0, 1}, nil}[r.IntN(6)]
	case p.Control:
		p.Value = [][]byte{{0, 0, 0, 0}, {0x80, 0, 0, 0, 0, 1}, {0, 3, 0, 0, 0, 1, 9, 9}, nil}[r.IntN(4)]
	default:
		p.Transactional = false
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
		log = fixture.Produced{Offset: int64(i), Records: 1, TimestampMs: 5, ID: int64(i % 2),
			Sequence: int32(i / 2)}.Append(log)
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
	commit, value := fixture.Marker(false, 7)
	_, older := fixture.Marker(false, 6)
	steps := []struct {
		batch fixture.Produced
		want  format.ProducerIssue
	}{
		{fixture.Produced{Records: 3, Sequence: 40}, format.ProducerInOrder}, // the first one seen may start anywhere
		{fixture.Produced{Records: 2, Sequence: 43}, format.ProducerInOrder},
		{fixture.Produced{Records: 1, Sequence: 46}, format.ProducerSequenceGap},
		{fixture.Produced{Records: 1, Sequence: 46}, format.ProducerSequenceGap}, // repeated
		{fixture.Produced{Records: 1, Sequence: 47, Epoch: 1}, format.ProducerSequenceStart},
		{fixture.Produced{Records: 1, Sequence: 48, Epoch: 0}, format.ProducerEpochBack},
		{fixture.Produced{Records: 1, Sequence: math.MaxInt32, Epoch: 2}, format.ProducerSequenceStart},
		{fixture.Produced{Records: 1, Sequence: 0, Epoch: 2}, format.ProducerInOrder}, // sequences wrap
		{fixture.Produced{Records: 1, Sequence: 1, Epoch: 2, Transactional: true}, format.ProducerInOrder},
		{fixture.Produced{Records: 1, Sequence: -1, Epoch: 2, Transactional: true, Control: true, Key: commit, Value: value},
			format.ProducerInOrder},
		{fixture.Produced{Records: 1, Sequence: -1, Epoch: 2, Transactional: true, Control: true, Key: commit, Value: value},
			format.ProducerMarkerWithoutTxn},
		{fixture.Produced{Records: 1, Sequence: -1, Epoch: 2, Transactional: true, Control: true, Key: commit, Value: older},
			format.ProducerCoordinatorBack},
		// a marker of the same epoch changes no sequence
		{fixture.Produced{Records: 1, Sequence: 2, Epoch: 2}, format.ProducerInOrder},
		{fixture.Produced{Records: 1, Sequence: -1, Epoch: 3, Transactional: true, Control: true, Key: commit, Value: value},
			format.ProducerMarkerWithoutTxn},
		// after a marker of a new epoch they start at 0
		{fixture.Produced{Records: 1, Sequence: 0, Epoch: 3}, format.ProducerInOrder},
		{fixture.Produced{Records: 1, Sequence: -1, Epoch: 1, Transactional: true, Control: true, Key: commit, Value: value},
			format.ProducerEpochBack},
	}
	var log []byte
	offset := int64(0)
	for _, s := range steps {
		s.batch.Offset, s.batch.ID = offset, 9
		log = s.batch.Append(log)
		offset += int64(s.batch.Records)
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

// TestManyOpenTransactions: begin and end in any order, the first open one is always right, and ended ones take no
// room.
func TestManyOpenTransactions(t *testing.T) {
	abort, value := fixture.Marker(true, 0)
	r := rand.New(rand.NewPCG(9, 9))
	state := format.NewProducerState(0)
	rr := format.NewRecordReader(1<<20, nil)
	firsts := map[int64]int64{}
	for offset := range int64(3000) {
		id := r.Int64N(40)
		if r.IntN(400) != 0 && id == 0 {
			id = 1 // producer 0 hangs for long
		}
		p := fixture.Produced{Offset: offset, Records: 1, ID: id, Transactional: true}
		if _, ok := firsts[id]; ok {
			p.Control, p.Sequence, p.Key, p.Value = true, -1, abort, value
		}
		b, err := format.DecodeBatch(p.Append(nil), 0)
		if err != nil {
			t.Fatal(err)
		}
		ev, err := state.Append(&b, rr)
		if err != nil || ev.Ended != p.Control || ev.Began == p.Control {
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
			if firsts[e.ProducerID] != e.CurrentTxnFirstOffset || i > 0 &&
				open[i-1].CurrentTxnFirstOffset >= e.CurrentTxnFirstOffset {
				t.Fatalf("open: %+v", open)
			}
		}
	}
}

// A producer is forgotten at the millisecond of its expiry; one with an open transaction is not.
func TestProducersExpire(t *testing.T) {
	entry := func(id, timestampMs, txn int64) format.ProducerEntry {
		return format.ProducerEntry{ProducerID: id, TimestampMs: timestampMs, CurrentTxnFirstOffset: txn}
	}
	s, err := format.DecodeProducerSnapshot(format.AppendProducerSnapshot(nil,
		[]format.ProducerEntry{entry(1, 999, -1), entry(2, 1000, -1), entry(3, 1001, -1), entry(4, 999, 0)}))
	if err != nil {
		t.Fatal(err)
	}
	var kept []int64
	for _, e := range format.LoadProducerState(s.Entries(), 7, 1000).Entries() {
		kept = append(kept, e.ProducerID)
	}
	if slices.Sort(kept); !slices.Equal(kept, []int64{3, 4}) {
		t.Errorf("kept %v", kept)
	}
}
