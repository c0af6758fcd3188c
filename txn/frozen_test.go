package txn

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"kseg/format"
	"kseg/internal/fixture"
	"kseg/logdir"
	"kseg/state"
)

// TestAnswersOfABroker holds transactional ids and producers against what a real broker's Admin client was told.
func TestAnswersOfABroker(t *testing.T) {
	raw, err := os.ReadFile(filepath.Join(fixture.Root(t), "golden", "4.4.0", "internal", "state.json"))
	if err != nil {
		t.Fatal(err)
	}
	var want struct {
		Transactions map[string]struct {
			State      string
			ProducerID int64 `json:"producer_id"`
			Epoch      int16 `json:"producer_epoch"`
			TimeoutMs  int32 `json:"timeout_ms"`
			StartMs    int64 `json:"start_ms"`
			Partitions []string
		}
		Producers map[string][]struct {
			ID               int64 `json:"producer_id"`
			Epoch            int16 `json:"producer_epoch"`
			LastSequence     int32 `json:"last_sequence"`
			LastMs           int64 `json:"last_timestamp"`
			CoordinatorEpoch int32 `json:"coordinator_epoch"`
			Open             int64 `json:"current_txn_start_offset"`
		}
	}
	if err := json.Unmarshal(raw, &want); err != nil {
		t.Fatal(err)
	}
	set, err := logdir.Open([]string{fixture.Dir(t, "4.4.0/internal")}, logdir.Options{})
	if err != nil {
		t.Fatal(err)
	}
	cluster := state.OpenCluster(set, nil)
	coordinators, err := state.ReadCoordinators(context.Background(), set, cluster, nil)
	if err != nil {
		t.Fatal(err)
	}
	j := &Judge{Options: Options{All: true, MaxBatchBytes: 1 << 20}, Cluster: cluster, Coordinators: coordinators}
	if ids := j.IDs(); len(ids) != len(want.Transactions) || len(ids) == 0 {
		t.Errorf("%d transactional ids, want %d", len(ids), len(want.Transactions))
	}
	for _, c := range j.IDs() {
		w := want.Transactions[c.ID]
		if c.Status.String() != w.State || c.ProducerID != w.ProducerID || c.ProducerEpoch != w.Epoch ||
			c.TimeoutMs != w.TimeoutMs || c.StartMs != w.StartMs || len(c.Partitions) != len(w.Partitions) {
			t.Errorf("%+v, want %+v", c, w)
		}
	}
	seen := 0
	for _, p := range set.Partitions() {
		list := want.Producers[p.Name]
		if len(list) == 0 {
			continue
		}
		seen++
		r, err := j.Partition(context.Background(), p)
		if err != nil || r.Len() != len(list) {
			t.Fatalf("%s: %v, %d producers, want %d", p.Name, err, r.Len(), len(list))
		}
		for _, w := range list {
			e, known := r.Get(w.ID)
			sequence := int32(-1)
			if e.HasBatch() {
				sequence = e.LastSequence
			}
			if !known || e.ProducerEpoch != w.Epoch || sequence != w.LastSequence || e.TimestampMs != w.LastMs ||
				e.CoordinatorEpoch != w.CoordinatorEpoch || e.InTransaction() != (w.Open >= 0) {
				t.Errorf("%s: %+v, want %+v", p.Name, e, w)
			}
		}
	}
	if seen != len(want.Producers) || seen == 0 {
		t.Errorf("%d of %d partitions with producers", seen, len(want.Producers))
	}
}

// coordinatorRecord is what a coordinator knows of producer 1's transaction in a partition of the topic ledger.
func (p partition) coordinatorRecord(status int8, number int32) {
	text := func(s string) []byte { return append(binary.BigEndian.AppendUint16(nil, uint16(len(s))), s...) }
	value := binary.BigEndian.AppendUint64([]byte{0, 0}, 1)
	value = binary.BigEndian.AppendUint32(append(value, 0, 0), 60_000)
	value = append(binary.BigEndian.AppendUint32(append(value, byte(status)), 1), text("ledger")...)
	value = binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(value, 1), uint32(number))
	value = binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(value, uint64(hour)), uint64(hour))
	p.write("__transaction_state-0/"+format.SegmentFileName(0, format.KindLog), fixture.AppendBatch(nil, fixture.Batch{
		Records: []fixture.Record{{TimestampMs: hour, Key: append([]byte{0, 0}, text("tx")...), Value: value}}}))
}

// TestWhatTheCoordinatorHasDecided goes through the states of a coordinator beside an open transaction.
func TestWhatTheCoordinatorHasDecided(t *testing.T) {
	for _, test := range []struct {
		status    int8
		partition int32
		nowMs     int64
		want      Status
		text      string
	}{
		{1, 0, hour + 59_000, Ongoing, "has it Ongoing since 1970-01-01 01:00, timeout 1 min"},
		{1, 0, 2 * hour, Overdue, "a running coordinator aborts it within seconds"},
		{2, 0, 2 * hour, Ongoing, "has it PrepareCommit: it writes the marker as soon as it runs"},
		{3, 0, 2 * hour, Ongoing, "has it PrepareAbort: it writes the marker as soon as it runs"},
		{2, 7, 2 * hour, Hanging, "has it PrepareCommit, but not in this partition: no marker will come here"},
		{0, 0, 2 * hour, Hanging, "has it Empty: no marker will come here"},
		{4, 0, 2 * hour, Hanging, "has it CompleteCommit: no marker will come here"},
		{5, 0, 2 * hour, Hanging, "has it CompleteAbort: no marker will come here"},
	} {
		p := newPartition(t, data(10, 1))
		p.coordinatorRecord(test.status, test.partition)
		r := p.judgeAt(Options{}, test.nowMs)
		if len(r.Open) != 1 || r.Open[0].Status != test.want {
			t.Errorf("state %d of partition %d at %d: %+v, want %s", test.status, test.partition, test.nowMs, r.Open, test.want)
		}
		contains(t, text(r), test.text)
	}
}

// TestManyFinished keeps the last of many transactions, and says so.
func TestManyFinished(t *testing.T) {
	defer func(n int) { mostFinished = n }(mostFinished)
	mostFinished = 3
	var batches []fixture.Produced
	for i := range int64(20) {
		batches = append(batches, data(3*i, 1), mark(3*i+2, 1, i%2 == 0))
	}
	r := newPartition(t, batches...).judge(Options{All: true})
	n := len(r.Finished)
	if n < 3 || n > 6 || r.Dropped+int64(n) != 20 || r.Finished[n-1].FirstOffset != 57 ||
		r.Finished[0].FirstOffset != 3*r.Dropped {
		t.Errorf("%d dropped, %+v", r.Dropped, r.Finished)
	}
	contains(t, text(r), "15 finished transactions before these are not listed")
}
