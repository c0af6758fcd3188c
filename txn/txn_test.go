package txn

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"kseg/broker"
	"kseg/format"
	"kseg/internal/fixture"
	"kseg/logdir"
	"kseg/render"
	"kseg/state"
)

const hour = int64(3600 * 1000)

// partition is a log directory with a partition ledger-0 of the batches, a segment each time cut says so, and of
// coordinators' records.
type partition struct {
	t   *testing.T
	dir string
}

func newPartition(t *testing.T, batches ...fixture.Produced) partition {
	t.Helper()
	p := partition{t, t.TempDir()}
	p.write("meta.properties", []byte("version=1\nnode.id=1\ncluster.id=AABjb3JwdXMAAAAAAABxpA\n"))
	var log []byte
	for _, b := range batches {
		log = b.Append(log)
	}
	p.write("ledger-0/"+format.SegmentFileName(batches[0].Offset, format.KindLog), log)
	p.write("ledger-0/"+format.SegmentFileName(batches[0].Offset, format.KindOffsetIndex), nil)
	return p
}

func (p partition) write(name string, raw []byte) {
	p.t.Helper()
	file := filepath.Join(p.dir, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		p.t.Fatal(err)
	}
	if err := os.WriteFile(file, raw, 0o644); err != nil {
		p.t.Fatal(err)
	}
}

// coordinators copies the real __transaction_state-0 of a case.
func (p partition) coordinators(name string) {
	p.t.Helper()
	for _, file := range fixture.Files(p.t, ".log") {
		if strings.HasPrefix(file, name+"/__transaction_state-0/") {
			p.write("__transaction_state-0/"+filepath.Base(file), fixture.Data(p.t, file))
		}
	}
}

// judge answers for ledger-0 an hour after the batches.
func (p partition) judge(o Options) *Report {
	p.t.Helper()
	return p.judgeAt(o, 2*hour)
}

func (p partition) judgeAt(o Options, nowMs int64) *Report {
	p.t.Helper()
	set, err := logdir.Open([]string{p.dir}, logdir.Options{Topics: []string{"ledger"}})
	if err != nil {
		p.t.Fatal(err)
	}
	cluster := state.OpenCluster(set, nil)
	coordinators, err := state.ReadCoordinators(context.Background(), set, cluster, nil)
	if err != nil {
		p.t.Fatal(err)
	}
	o.NowMs, o.MaxBatchBytes = nowMs, 1<<20
	r, err := (&Judge{Options: o, Cluster: cluster, Coordinators: coordinators}).Partition(context.Background(),
		set.Partitions()[0])
	if err != nil {
		p.t.Fatal(err)
	}
	return r
}

func data(offset, id int64) fixture.Produced {
	return fixture.Produced{Offset: offset, Records: 2, TimestampMs: hour, ID: id, Sequence: int32(offset),
		Transactional: true}
}

func mark(offset, id int64, abort bool) fixture.Produced {
	p := fixture.Produced{Offset: offset, Records: 1, TimestampMs: hour + 500, ID: id, Sequence: -1, Transactional: true,
		Control: true}
	p.Key, p.Value = fixture.Marker(abort, 3)
	return p
}

func text(r *Report) string { return string(r.AppendText(nil, render.NewTheme(false), 100)) }

func contains(t *testing.T, got string, wants ...string) {
	t.Helper()
	got = strings.Join(strings.Fields(got), " ")
	for _, want := range wants {
		if !strings.Contains(got, want) {
			t.Errorf("%q is not in\n%s", want, got)
		}
	}
}

func TestHanging(t *testing.T) {
	// Producer 1 of the real coordinator's records has completed its last transaction; nobody knows producer 77.
	p := newPartition(t, data(10, 1), data(12, 77), fixture.Produced{Offset: 14, Records: 3, TimestampMs: hour, ID: -1,
		Epoch: -1, Sequence: -1})
	p.coordinators("4.4.0/transactions")
	r := p.judge(Options{})
	if r.Hangs() != 2 || r.LastStable != 10 || r.HeldRecords != 7 {
		t.Errorf("%d hang, %d is stable, %d records are held back", r.Hangs(), r.LastStable, r.HeldRecords)
	}
	if a := r.Open[0]; a.AfterRecords != 5 || a.Records != 2 || a.Coordinator == nil || a.Coordinator.ID != "tx-a" {
		t.Errorf("%+v", a)
	}
	contains(t, text(r), "hanging producer 1, epoch 0, transactional.id tx-a: open since offset 10, 1970-01-01 01:00 (1 "+
		"h ago)", "has it CompleteCommit: no marker will come here",
		"none of the 1 partition of __transaction_state knows the producer",
		"next: kafka-transactions.sh --bootstrap-server HOST:PORT abort --topic ledger --partition 0 --start-offset 12",
		"--producer-id 77 --producer-epoch 0 --coordinator-epoch 0")
	// Without the coordinators, or just after the batches, nothing is said to hang.
	if r := p.judge(Options{IDs: []string{"tx-a"}}); len(r.Open) != 1 || r.Open[0].FirstOffset != 10 {
		t.Errorf("filtered by id: %+v", r.Open)
	}
	if err := os.RemoveAll(filepath.Join(p.dir, "__transaction_state-0")); err != nil {
		t.Fatal(err)
	}
	if r := p.judge(Options{}); r.Hangs() != 0 || r.Open[0].Status != Overdue {
		t.Errorf("without coordinators: %+v", r.Open)
	}
}

func TestFinished(t *testing.T) {
	p := newPartition(t, data(0, 1), data(2, 2), data(4, 1), mark(6, 1, true), mark(7, 2, false), mark(8, 2, false),
		data(9, 1), mark(11, 1, false))
	r := p.judge(Options{All: true})
	var got []string
	for _, f := range r.Finished {
		got = append(got, strings.Join([]string{string(f.Status), itoa(f.ProducerID), itoa(f.FirstOffset), itoa(f.LastOffset),
			itoa(f.Records), itoa(f.AfterRecords), itoa(f.Marker)}, " "))
	}
	if want := "aborted 1 0 5 4 2 6, committed 2 2 3 2 2 7, committed 1 9 10 2 0 11"; strings.Join(got, ", ") != want {
		t.Errorf("got  %s\nwant %s", strings.Join(got, ", "), want)
	}
	if r.LastStable != 12 || len(r.Open) > 0 {
		t.Errorf("%d is stable, %+v is open", r.LastStable, r.Open)
	}
}

func TestLostOffsetsLeaveDoubt(t *testing.T) {
	batches := []fixture.Produced{data(0, 1), data(2, 2), mark(4, 2, false), data(5, 2), mark(7, 2, true),
		mark(8, 9, true)}
	sound := newPartition(t, batches...).judge(Options{All: true})
	if len(sound.Missing) > 0 || sound.Open[0].Unsure != "" || len(sound.Finished) != 2 || sound.Finished[1].Unsure != "" {
		t.Fatalf("a sound log leaves doubt: %+v", sound)
	}
	p := newPartition(t, batches...)
	file := filepath.Join(p.dir, "ledger-0", format.SegmentFileName(0, format.KindLog))
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	raw[len(batches[0].Append(nil))+len(batches[1].Append(nil))+70] ^= 1 // in the marker of offset 4
	if err := os.WriteFile(file, raw, 0o644); err != nil {
		t.Fatal(err)
	}
	r := p.judge(Options{All: true})
	contains(t, text(r), "warning offsets 4 are lost",
		"unsure: offsets 4 are lost, and a marker that ends it may have been among them", "aborted?")
	if len(r.Finished) != 1 || r.Finished[0].FirstOffset != 2 {
		t.Errorf("%+v", r.Finished)
	}
}

func TestSnapshotRemembersWhatIsBelowTheLogStart(t *testing.T) {
	p := newPartition(t, fixture.Produced{Offset: 20, Records: 2, TimestampMs: hour, ID: -1, Epoch: -1, Sequence: -1},
		mark(22, 5, false))
	p.write("ledger-0/"+format.SegmentFileName(22, format.KindProducerSnapshot),
		format.AppendProducerSnapshot(nil, []format.ProducerEntry{
			{ProducerID: 4, LastSequence: 7, LastOffset: 11, OffsetDelta: 1, TimestampMs: hour, CoordinatorEpoch: -1,
				CurrentTxnFirstOffset: 10}}))
	p.write(".kafka_cleanshutdown", nil)
	r := p.judge(Options{})
	if len(r.Open) != 1 || !r.Open[0].BelowStart || r.Open[0].Seen || r.LastStable != 20 {
		t.Fatalf("%d is stable: %+v", r.LastStable, r.Open)
	}
	contains(t, text(r), "no record of it is left in the log",
		"its first record is below the log start 20: what remembers it is 00000000000000000022.snapshot")
}

func TestGarbageAfterTheLog(t *testing.T) {
	p := newPartition(t, data(0, 1), mark(2, 1, false))
	if r := p.judge(Options{}); len(r.Missing) > 0 || r.LastStable != 3 {
		t.Errorf("%d is stable, lost %v", r.LastStable, r.Missing)
	}
	p.write("ledger-0/"+format.SegmentFileName(3, format.KindLog), []byte(strings.Repeat("no batch ", 40)))
	if r := p.judge(Options{}); len(r.Missing) != 1 || r.Missing[0] != (state.Lost{First: 3, Open: true}) {
		t.Errorf("lost %v", r.Missing)
	}
}

// Where the next start cuts a log, the answer says that it is of the log as it lies on disk.
func TestStartThatCutsTheLog(t *testing.T) {
	batches := []fixture.Produced{data(0, 1), data(2, 2), mark(4, 1, false), data(5, 3)}
	for name, says := range map[string]bool{"": true, ".kafka_cleanshutdown": false} {
		p := newPartition(t, batches...)
		file := filepath.Join(p.dir, "ledger-0", format.SegmentFileName(0, format.KindLog))
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		raw[len(batches[0].Append(nil))+60] ^= 1 // in the batch of offset 2
		if err := os.WriteFile(file, raw, 0o644); err != nil {
			t.Fatal(err)
		}
		p.write("recovery-point-offset-checkpoint", []byte("0\n1\nledger 0 0\n"))
		if name != "" {
			p.write(name, nil)
			p.write("ledger-0/"+format.SegmentFileName(0, format.KindOffsetIndex), nil)
		}
		r := p.judge(Options{})
		const words = "the next start, after a stop that was not clean, cuts it at offset 2"
		if got := strings.Contains(strings.Join(r.Warnings(), "\n"), words); got != says || len(r.Missing) > 0 != says {
			t.Errorf("%q: lost %v, warnings %q", name, r.Missing, r.Warnings())
		}
	}
}

// What is counted: from the log start to the log end, and what consumers may read up to the high watermark.
func TestEdgesOfWhatIsCounted(t *testing.T) {
	other := fixture.Produced{Offset: 4, Records: 2, TimestampMs: hour, ID: -1, Epoch: -1, Sequence: -1}
	batches := []fixture.Produced{data(0, 1), data(2, 77), other}
	for name, c := range map[string]struct {
		watermark      int64
		start          string
		after, records int64
	}{
		"all is replicated":             {6, "", 2, 2},
		"the last batch is not":         {4, "", 0, 2},
		"a batch ends at the log start": {6, "3", 2, 2},
		"a batch ends before it":        {6, "4", 0, 0},
	} {
		p := newPartition(t, batches...)
		if c.start != "" {
			p.write("log-start-offset-checkpoint", []byte("0\n1\nledger 0 "+c.start+"\n"))
		}
		var open Transaction
		mark := state.Watermark{Mode: state.WatermarkOffset, Offset: c.watermark}
		r := p.judge(Options{All: true, Watermark: mark})
		for _, o := range r.Open {
			if o.ProducerID == 77 {
				open = o
			}
		}
		if open.AfterRecords != c.after || open.Records != c.records {
			t.Errorf("%s: %+v", name, open)
		}
	}
}

// An empty log says nothing of producers, and one that a start leaves as it is nothing of a start.
func TestNothingToWarnOf(t *testing.T) {
	r := &Report{Producers: &state.Producers{Trusting: true, LogStart: 5, LogEnd: 5}, Start: &broker.Loaded{LogEnd: 5}}
	if got := r.Warnings(); len(got) > 0 {
		t.Errorf("%q", got)
	}
	r.LogEnd = 6
	if got := r.Warnings(); len(got) != 2 {
		t.Errorf("%q", got)
	}
}

// What ended below the log start is not shown, though its batches may still be there.
func TestFinishedBelowTheLogStart(t *testing.T) {
	p := newPartition(t, data(0, 1), mark(2, 1, false), data(3, 1), mark(5, 1, true))
	p.write("log-start-offset-checkpoint", []byte("0\n1\nledger 0 3\n"))
	if r := p.judge(Options{All: true}); len(r.Finished) != 1 || r.Finished[0].FirstOffset != 3 {
		t.Errorf("%+v", r.Finished)
	}
}
