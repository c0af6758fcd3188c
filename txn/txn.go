// Package txn says which transactions are open in a partition, what holds its last stable offset, and which
// transactions hang.
//
// What is open comes from the partition as a broker loads it (state.LoadProducers), what a coordinator knows from
// __transaction_state (state.ReadCoordinators). The verdict is that of kafka-transactions.sh find-hanging: a
// transaction hangs if its coordinator does not count the partition to an open transaction of the producer, so that
// nothing will end it.
package txn

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"slices"

	"kseg/broker"
	"kseg/format"
	"kseg/logdir"
	"kseg/render"
	"kseg/state"
	"kseg/walk"
)

// Status says how a transaction stands.
type Status string

// The states of a transaction.
const (
	Ongoing   Status = "ongoing"
	Overdue   Status = "overdue" // open for longer than its timeout
	Hanging   Status = "hanging" // nothing will end it
	Committed Status = "committed"
	Aborted   Status = "aborted"
)

// maxTimeoutMs is transaction.max.timeout.ms unless a broker sets it: no transaction may ask for more.
const maxTimeoutMs = 15 * 60 * 1000

// inFlightMs is how long a transaction may be unknown to its coordinator in files that were read one after the other
// beside a running broker.
const inFlightMs = 60 * 1000

// Transaction is one transaction in a partition.
type Transaction struct {
	ProducerID    int64
	ProducerEpoch int16
	FirstOffset   int64
	// Seen is set if batches of it are in the log that was read; else the offsets, times and sizes that follow say
	// nothing.
	Seen            bool
	LastOffset      int64
	FirstMs, LastMs int64
	Records, Bytes  int64
	// AfterRecords and AfterBytes are what other producers wrote after it began, up to the high watermark.
	AfterRecords, AfterBytes int64
	Status                   Status
	// Marker is the offset of what ended it, at MarkerMs; only of one that is Committed or Aborted.
	Marker, MarkerMs int64
	// CoordinatorEpoch is that of the producer's last marker here, -1: it had none.
	CoordinatorEpoch int32
	// BelowStart is set if a snapshot remembers it and the log begins after its first record.
	BelowStart bool
	// Unsure is why this may not be so, "" if it is.
	Unsure string
	// Coordinator is what the coordinator knows of the producer's transactional.id; nil: nothing.
	Coordinator *state.CoordinatorTxn
}

// Open reports whether it has not ended.
func (t *Transaction) Open() bool { return t.Status != Committed && t.Status != Aborted }

// Report is what is known of one partition.
type Report struct {
	Partition *logdir.Partition
	*state.Producers
	WatermarkSource string // "log end", "checkpoint", "flag"
	// Open are the open transactions, the worst first; Finished the others, by their markers, if they are asked for.
	Open, Finished []Transaction
	// HeldRecords and HeldBytes are what lies between the last stable offset and the high watermark.
	HeldRecords, HeldBytes int64
	// Dropped is how many finished transactions are not in Finished, which has the last ones.
	Dropped int64
	// Missing are the offsets that could not be read, where all of the log was; else Lost has those that count.
	Missing []state.Lost
	// Start is what a start makes of a log that is damaged and was not closed cleanly: it may cut what is counted here.
	// nil: it was not asked for, or cannot be told.
	Start        *broker.Loaded
	coordinators *state.Coordinators
	filtered     bool // a filter leaves something out
	nowMs        int64
}

// Hangs counts the hanging transactions.
func (r *Report) Hangs() (n int64) {
	for i := range r.Open {
		if r.Open[i].Status == Hanging {
			n++
		}
	}
	return n
}

// TP names the partition as records and checkpoints do.
func (r *Report) TP() state.TopicPartition {
	return state.TopicPartition{Topic: r.Partition.Topic, Partition: r.Partition.PartitionDir.Partition}
}

// Options say what is asked for, and as of when.
type Options struct {
	NowMs         int64
	Watermark     state.Watermark
	Clean         *bool // the last stop was, or was not, clean; nil: as the log directory says
	All           bool  // finished transactions too
	ProducerIDs   []int64
	IDs           []string // transactional ids
	MaxBatchBytes int64
	Progress      func(bytes int64)
}

// Wants reports whether the filters keep a producer's transactions.
func (o *Options) wants(producerID int64, c *state.CoordinatorTxn) bool {
	if len(o.ProducerIDs) > 0 && !slices.Contains(o.ProducerIDs, producerID) {
		return false
	}
	return len(o.IDs) == 0 || c != nil && slices.Contains(o.IDs, c.ID)
}

// Skipped says why a directory has no transactions that count; "" if it has.
func Skipped(p *logdir.Partition) string {
	switch {
	case p.IsClusterMetadata():
		return "the metadata log has transactions of another kind, which kseg metadata applies"
	case p.Suffix == "delete":
		return "the partition was deleted, and its transactions with it"
	case p.Suffix == "stray":
		return "the metadata does not assign the partition to this broker, which does not load it"
	}
	return ""
}

// Judge answers for the partitions of a set.
type Judge struct {
	Options      Options
	Cluster      *state.Cluster
	Coordinators *state.Coordinators
}

// Partition answers for one partition. The error is about what could not be read from the disk; there may be a report
// all the same.
func (j *Judge) Partition(ctx context.Context, p *logdir.Partition) (*Report, error) {
	r := &Report{Partition: p, coordinators: j.Coordinators, nowMs: j.Options.NowMs,
		filtered: len(j.Options.ProducerIDs)+len(j.Options.IDs) > 0}
	records := format.NewRecordReader(j.Options.MaxBatchBytes, nil)
	options := j.load(r, records)
	producers, err := state.LoadProducers(ctx, p, options)
	if producers == nil {
		return nil, err
	}
	r.Producers, r.Missing = producers, producers.Lost
	if len(r.Lost) > 0 && !options.Clean && options.RecoveryPoint != nil {
		r.Start = j.start(ctx, p, &options)
	}
	t := tracker{ctx: ctx, report: r, records: records, options: &j.Options, live: map[int64]*live{},
		marked: map[int64]int64{}}
	if walkErr := t.walk(); err == nil {
		err = walkErr
	}
	for _, e := range producers.Open() {
		if c := j.Coordinators.Of(e.ProducerID); j.Options.wants(e.ProducerID, c) {
			r.Open = append(r.Open, t.open(e, c))
		}
	}
	slices.SortStableFunc(r.Open, func(a, b Transaction) int {
		return cmp.Or(cmp.Compare(rank(a.Status), rank(b.Status)), cmp.Compare(a.FirstOffset, b.FirstOffset))
	})
	return r, err
}

// Run answers for the partitions with so many workers, in their order. It stops early if ctx ends.
func (j *Judge) Run(ctx context.Context, partitions []*logdir.Partition, jobs int) iter.Seq2[*Report, error] {
	type answer struct {
		report *Report
		err    error
	}
	return func(yield func(*Report, error) bool) {
		for a := range walk.Ordered(ctx, partitions, jobs, func(format.Gate) func(*logdir.Partition) answer {
			return func(p *logdir.Partition) (a answer) {
				a.err = logdir.Guard(p.Display, func() error {
					return p.Steady(func() (err error) {
						a.report, err = j.Partition(ctx, p)
						return err
					})
				})
				if errors.Is(a.err, logdir.ErrGone) {
					a.report = nil
				}
				return a
			}
		}) {
			if !yield(a.report, a.err) {
				return
			}
		}
	}
}

// rank orders states, the worst first.
func rank(s Status) int { return slices.Index([]Status{Hanging, Overdue, Ongoing}, s) }

// load says how a broker finds the partition.
func (j *Judge) load(r *Report, records *format.RecordReader) state.LoadOptions {
	dir, tp := j.Cluster.Dirs.Of(r.Partition.Parent), r.TP()
	o := state.LoadOptions{Clean: dir != nil && dir.Marker != nil, Records: records, Progress: j.Options.Progress}
	if j.Options.Clean != nil {
		o.Clean = *j.Options.Clean
	}
	if start, ok := dir.Offset(format.KindLogStartOffsetCheckpoint, tp); ok {
		o.LogStart = &start
	}
	if dir.Checkpoint(format.KindRecoveryPointCheckpoint) != nil {
		point, _ := dir.Offset(format.KindRecoveryPointCheckpoint, tp)
		o.RecoveryPoint = &point
	}
	_, o.Compacted = dir.Offset(format.KindCleanerOffsetCheckpoint, tp)
	image := j.Cluster.Settings(r.Partition.Parent).Image
	o.HighWatermark = func(start, end int64) int64 {
		mark, source, _ := j.Options.Watermark.Of(image, dir, tp, start, end)
		r.WatermarkSource = source
		return mark
	}
	return o
}

// start is what a start does to the log.
func (j *Judge) start(ctx context.Context, p *logdir.Partition, o *state.LoadOptions) *broker.Loaded {
	opts := broker.LoadOptions{RecoveryPoint: *o.RecoveryPoint, Interval: indexInterval, IndexBytes: indexBytes,
		ExpiredMs: math.MinInt64, MaxBatchBytes: j.Options.MaxBatchBytes, Progress: j.Options.Progress,
		Stop: func() bool { return ctx.Err() != nil }}
	if o.LogStart != nil {
		opts.LogStart = *o.LogStart
	}
	loaded, err := broker.Load(p, opts)
	if err != nil {
		return nil // what cannot be read was said by who read it first
	}
	return loaded
}

// Kafka's defaults of index.interval.bytes and segment.index.bytes.
const (
	indexInterval = 4096
	indexBytes    = 10 << 20
)

// judge says how an open transaction stands, by what its coordinator knows.
func (r *Report) judge(t *Transaction) {
	c := t.Coordinator
	last := t.LastMs
	if !t.Seen {
		last, _ = r.lastMs(t.ProducerID)
	}
	t.Status = Ongoing
	r.doubtCoordinator(t)
	switch {
	case c != nil && c.Status.Pending() && c.Has(r.TP()):
		if c.Status == state.TxnOngoing && r.nowMs-c.StartMs > int64(c.TimeoutMs) {
			t.Status = Overdue
		}
		return
	case c != nil && c.Unsure:
	case c != nil || r.coordinators.Complete():
		if r.nowMs-last > inFlightMs || r.nowMs < last {
			t.Status = Hanging
		}
		return
	}
	if r.nowMs-last > maxTimeoutMs {
		t.Status = Overdue
	}
}

// doubtCoordinator says why what is known of the coordinator may not be so.
func (r *Report) doubtCoordinator(t *Transaction) {
	switch c := t.Coordinator; {
	case c != nil && c.Unsure:
		t.note("offsets of __transaction_state-%d are lost after what the coordinator said last", c.Partition)
	case c == nil && len(r.coordinators.Lost) > 0:
		t.note("offsets of __transaction_state are lost, and with them perhaps what its coordinator said")
	}
}

// lastMs is the time of what a producer did last.
func (r *Report) lastMs(producerID int64) (int64, bool) {
	e, ok := r.Get(producerID)
	return e.TimestampMs, ok
}

// note adds a reason for which something may not be so.
func (t *Transaction) note(text string, args ...any) {
	if t.Unsure != "" {
		t.Unsure += "; "
	}
	t.Unsure += fmt.Sprintf(text, args...)
}

// AbortLine is the command that aborts a transaction of the partition.
func (r *Report) AbortLine(t *Transaction) string {
	return fmt.Sprintf("kafka-transactions.sh --bootstrap-server HOST:PORT abort --topic %s --partition %d "+
		"--start-offset %d", render.ShellWord(r.Partition.Topic), r.Partition.PartitionDir.Partition, t.FirstOffset)
}

// OldAbortLine is the same for brokers before 3.0.
func (r *Report) OldAbortLine(t *Transaction) string {
	return fmt.Sprintf("--producer-id %d --producer-epoch %d --coordinator-epoch %d", t.ProducerID, t.ProducerEpoch,
		max(t.CoordinatorEpoch, 0))
}
