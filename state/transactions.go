package state

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"kseg/format"
	"kseg/logdir"
	"kseg/schema"
)

// TransactionStatus is the state of a transaction for its coordinator (Kafka's TransactionState).
type TransactionStatus int8

// The states in which a transaction is open somewhere, or may be.
const (
	TxnOngoing       TransactionStatus = 1
	TxnPrepareCommit TransactionStatus = 2
	TxnPrepareAbort  TransactionStatus = 3
)

// String is Kafka's name of the state, or its number.
func (s TransactionStatus) String() string {
	return cmp.Or(schema.TransactionState(int8(s)), fmt.Sprintf("state %d", int8(s)))
}

// Pending reports whether the coordinator still has to end the transaction, or to wait for its end.
func (s TransactionStatus) Pending() bool {
	return s == TxnOngoing || s == TxnPrepareCommit || s == TxnPrepareAbort
}

// CoordinatorTxn is what a coordinator knows of a transactional.id: its last record (TransactionMetadata).
type CoordinatorTxn struct {
	ID            string
	ProducerID    int64
	ProducerEpoch int16
	TimeoutMs     int32
	Status        TransactionStatus
	Partitions    []TopicPartition // of the open transaction, sorted
	UpdatedMs     int64
	StartMs       int64 // when the transaction began; −1: none has
	// Partition and Offset are where the record stands in __transaction_state.
	Partition int32
	Offset    int64
	// Unsure is set if records that were lost may have changed it.
	Unsure bool
}

// Has reports whether the transaction is open in the partition, as far as the coordinator knows.
func (t *CoordinatorTxn) Has(tp TopicPartition) bool {
	_, found := slices.BinarySearchFunc(t.Partitions, tp, compareTopicPartitions)
	return found
}

func compareTopicPartitions(a, b TopicPartition) int {
	return cmp.Or(strings.Compare(a.Topic, b.Topic), cmp.Compare(a.Partition, b.Partition))
}

// Coordinators is what the partitions of __transaction_state amount to.
type Coordinators struct {
	// Read are the partitions that were read, in order; Count is how many the topic has, 0 if that is not known.
	Read  []int32
	Count int32
	// Lost are the offsets of each partition whose records could not be read.
	Lost map[int32][]Lost
	// Newer counts records of types and versions that came after Kafka 4.4, which are left out.
	Newer    int
	Problems []logdir.Problem

	holes     bool // records were lost that a coordinator may have, unlike those after the end of a log
	ids       map[string]*CoordinatorTxn
	producers map[int64]*CoordinatorTxn
}

// Complete reports whether all there is of the topic was read, so that what is not known is not there.
func (c *Coordinators) Complete() bool {
	return c.Count > 0 && int(c.Count) == len(c.Read) && !c.holes && c.Newer == 0
}

// Of is the transactional.id of a producer; nil if none is known.
func (c *Coordinators) Of(producerID int64) *CoordinatorTxn { return c.producers[producerID] }

// All are all transactional ids, by name.
func (c *Coordinators) All() []*CoordinatorTxn {
	all := make([]*CoordinatorTxn, 0, len(c.ids))
	for _, t := range c.ids {
		all = append(all, t)
	}
	slices.SortFunc(all, func(a, b *CoordinatorTxn) int { return strings.Compare(a.ID, b.ID) })
	return all
}

// ReadCoordinators folds the partitions of __transaction_state in the log directories among the operands and beside the
// partitions and files given alone, whatever the set's filters leave out. cluster tells how many partitions the topic
// has, if it knows.
func ReadCoordinators(ctx context.Context, set *logdir.Set, cluster *Cluster, gentle *logdir.Gentle) (*Coordinators,
	error) {
	r := transactionReader{ctx: ctx, records: format.NewRecordReader(format.MostBatch, nil),
		decoder: schema.NewDecoder(),
		out: &Coordinators{Lost: map[int32][]Lost{}, ids: map[string]*CoordinatorTxn{},
			producers: map[int64]*CoordinatorTxn{}}}
	partitions, problems := besideOperands(set, format.TransactionsTopic, gentle)
	r.out.Problems = problems
	for _, p := range partitions {
		if p.Suffix != "" || slices.Contains(r.out.Read, p.PartitionDir.Partition) {
			continue
		}
		r.partition(p, cluster)
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if r.out.Count == 0 {
			if im := cluster.Settings(p.Parent).Image; im != nil && im.Topic(format.TransactionsTopic) != nil {
				r.out.Count = int32(len(im.Topic(format.TransactionsTopic).Partitions))
			}
		}
	}
	slices.Sort(r.out.Read)
	if r.out.Count == 0 {
		r.out.Count = r.count()
	}
	for _, t := range r.out.ids {
		if known := r.out.producers[t.ProducerID]; known == nil || known.UpdatedMs < t.UpdatedMs {
			r.out.producers[t.ProducerID] = t
		}
	}
	return r.out, nil
}

// besideOperands are the partitions of a topic in all log directories that the operands are, or lie in. Problems are
// what could not be listed for them, and was not met before.
func besideOperands(set *logdir.Set, topic string, gentle *logdir.Gentle) (found []*logdir.Partition,
	problems []logdir.Problem) {
	var dirs []string
	told := map[string]bool{}
	for _, p := range set.Problems {
		told[p.Error()] = true
	}
	for _, o := range set.Operands {
		dir := o.LogDir
		switch {
		case o.Partition != nil:
			dir = o.Partition.Parent
			if o.Partition.Topic == topic && dir == nil {
				found = append(found, o.Partition)
			}
		case o.File != nil && o.Err == nil:
			dir = o.File.Parent()
		}
		if dir != nil && !slices.Contains(dirs, dir.Path) {
			dirs = append(dirs, dir.Path)
		}
	}
	for _, dir := range dirs {
		inside, err := logdir.Open([]string{dir}, logdir.Options{Topics: []string{topic}, Gentle: gentle})
		if err != nil {
			continue // there is no such topic
		}
		found = append(found, inside.Partitions()...)
		for _, p := range inside.Problems {
			if !told[p.Error()] {
				problems = append(problems, p)
			}
		}
	}
	return found, problems
}

// defaultTransactionPartitions is transaction.state.log.num.partitions unless it is set.
const defaultTransactionPartitions = 50

// count guesses how many partitions the topic has where no metadata tells: those that are there, if an id shows that it
// is not the default number.
func (r *transactionReader) count() int32 {
	read := r.out.Read
	n := int32(len(read))
	if n == 0 || read[n-1] != n-1 {
		return 0
	}
	other := n == defaultTransactionPartitions
	for _, t := range r.out.ids {
		if OffsetsPartition(t.ID, n) != t.Partition {
			return 0
		}
		other = other || OffsetsPartition(t.ID, defaultTransactionPartitions) != t.Partition
	}
	if !other {
		return 0
	}
	return n
}

// transactionReader folds partitions of __transaction_state. Its readers are reused.
type transactionReader struct {
	ctx     context.Context
	records *format.RecordReader
	decoder *schema.Decoder
	out     *Coordinators
}

func (r *transactionReader) partition(p *logdir.Partition, cluster *Cluster) {
	number := p.PartitionDir.Partition
	known := cluster.Dirs.Of(p.Parent).Known(TopicPartition{format.TransactionsTopic, number})
	var log logReader
	err := p.Steady(func() error {
		log = logReader{ctx: r.ctx, records: r.records, known: known, compact: true}
		var undecoded []Lost
		log.read(logsOf(p.All()), func(b *format.Batch, rec *format.Record) {
			if !b.Control() && !r.record(number, rec) {
				undecoded = append(undecoded, Lost{First: rec.Offset, Last: rec.Offset})
			}
		})
		log.lost = append(log.lost, undecoded...)
		return errors.Join(log.unread...)
	})
	if errors.Is(err, logdir.ErrGone) || len(Segments(p)) == 0 {
		return
	}
	r.out.Read = append(r.out.Read, number)
	if err != nil {
		r.out.Problems = append(r.out.Problems, logdir.Problem{Display: p.Display, Err: err})
	}
	r.out.note(number, log.lost, log.end)
}

// note marks what may be other than it was before offsets of a partition were lost.
func (c *Coordinators) note(number int32, lost []Lost, end int64) {
	if len(lost) == 0 {
		return
	}
	slices.SortFunc(lost, func(a, b Lost) int { return cmp.Compare(a.First, b.First) })
	c.Lost[number] = lost
	c.holes = c.holes || lost[0].Open || lost[0].First < end
	for _, t := range c.ids {
		t.Unsure = t.Unsure || t.Partition == number && unsure(lost, t.Offset)
	}
}

func (r *transactionReader) record(partition int32, rec *format.Record) bool {
	d := r.decoder.Decode(schema.Transactions, rec.Key, rec.Value)
	switch {
	case d.Err != nil && errors.Is(d.Err, format.ErrUnsupported):
		r.out.Newer++
		return true
	case d.Err != nil || !d.Key.Complete:
		return false
	}
	id := d.Key.Get("transactionalId").Text()
	if rec.Value == nil {
		delete(r.out.ids, id)
		return true
	}
	v := d.Value
	t := &CoordinatorTxn{ID: id, ProducerID: v.Get("producerId").Int(), ProducerEpoch: int16(v.Get("producerEpoch").Int()),
		TimeoutMs: int32(v.Get("transactionTimeoutMs").Int()), Status: TransactionStatus(v.Get("transactionStatus").Int()),
		UpdatedMs: v.Get("transactionLastUpdateTimestampMs").Int(), StartMs: v.Get("transactionStartTimestampMs").Int(),
		Partition: partition, Offset: rec.Offset}
	for _, topic := range v.Get("transactionPartitions").Elements() {
		name := topic.Get("topic").Text()
		for _, n := range topic.Get("partitionIds").Int32s() {
			t.Partitions = append(t.Partitions, TopicPartition{name, n})
		}
	}
	slices.SortFunc(t.Partitions, compareTopicPartitions)
	r.out.ids[id] = t
	return true
}
