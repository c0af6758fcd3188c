package txn

import (
	"testing"

	"kseg/logdir"
	"kseg/state"
)

// A transaction is overdue or hangs from a millisecond after what it may take.
func TestEdgesOfTheVerdict(t *testing.T) {
	const last, timeout = 1000, 5000
	p := &logdir.Partition{}
	p.Topic = "t"
	r := &Report{Partition: p, coordinators: &state.Coordinators{}}
	ongoing := &state.CoordinatorTxn{Status: state.TxnOngoing, Partitions: []state.TopicPartition{{Topic: "t"}},
		StartMs: last, TimeoutMs: timeout}
	for _, c := range []struct {
		coordinator *state.CoordinatorTxn
		allowed     int64
		then        Status
	}{{ongoing, timeout, Overdue}, {&state.CoordinatorTxn{}, inFlightMs, Hanging}, {nil, maxTimeoutMs, Overdue}} {
		for late, want := range map[int64]Status{0: Ongoing, 1: c.then} {
			txn := &Transaction{Seen: true, LastMs: last, Coordinator: c.coordinator}
			r.nowMs = last + c.allowed + late
			if r.judge(txn); txn.Status != want {
				t.Errorf("%+v, %d ms late: %v", c.coordinator, late, txn.Status)
			}
		}
	}
}
