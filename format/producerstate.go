package format

import (
	"cmp"
	"container/heap"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"strconv"
)

// Failures of producer replay at which a broker gives up loading the partition. All unwrap to ErrValue.
var (
	// ErrTxnState is Kafka's InvalidTxnStateException: a batch outside of a transaction while its producer has one open.
	ErrTxnState = fmt.Errorf("%w: a batch outside of its producer's open transaction", ErrValue)
	// ErrMarker is a control record of a producer that ends no transaction, or that is too short to say which.
	ErrMarker = fmt.Errorf("%w: not a transaction marker", ErrValue)
	// ErrTxnIndexOrder is Kafka's IllegalArgumentException for an aborted transaction that ends before the last one did.
	ErrTxnIndexOrder = fmt.Errorf("%w: a transaction index entry that is not above the last one", ErrValue)
)

// TxnMarker is the end of a transaction as a partition records it: the first record of a control batch of a producer
// (EndTransactionMarker).
type TxnMarker struct {
	Abort            bool // else commit
	CoordinatorEpoch int32
}

// DecodeTxnMarker reads a marker from key and value of a control record. Higher versions are read as version 0, like in
// Kafka. The error is an *Error at pos. It wraps ErrMarker where any broker gives up; else, where Kafka throws an
// InvalidRecordException, recovery cuts the segment after the batch.
func DecodeTxnMarker(pos int64, key, value []byte) (TxnMarker, error) {
	fail := func(what string, sentinel error, want string, got int) (TxnMarker, error) {
		return TxnMarker{}, &Error{What: what, Pos: pos, Want: want, Got: strconv.Itoa(got), Err: sentinel}
	}
	if key != nil && len(key) < 4 {
		return fail("control record key", ErrTruncated, "4 bytes", len(key))
	}
	if len(key) < 4 {
		return fail("control record key", ErrMarker, "4 bytes", 0)
	}
	if v := int16(binary.BigEndian.Uint16(key)); v < 0 {
		return fail("control record key version", ErrValue, "0 or more", int(v))
	}
	kind := int16(binary.BigEndian.Uint16(key[2:]))
	if kind != 0 && kind != 1 {
		return fail("control record type", ErrMarker, "0 (ABORT) or 1 (COMMIT)", int(kind))
	}
	if len(value) >= 2 && value[0] >= 0x80 {
		return fail("transaction marker version", ErrValue, "0 or more", int(int16(binary.BigEndian.Uint16(value))))
	}
	if len(value) < 6 {
		return fail("transaction marker", ErrMarker, "6 bytes", len(value))
	}
	return TxnMarker{Abort: kind == 0, CoordinatorEpoch: int32(binary.BigEndian.Uint32(value[2:]))}, nil
}

// ProducerIssue is something a broker would refuse from a producer. Replaying a log it only warns of it.
type ProducerIssue uint8

// The issues, of which a batch has at most one.
const (
	ProducerInOrder          ProducerIssue = iota
	ProducerEpochBack                      // the producer epoch is below the last one
	ProducerSequenceGap                    // the first sequence does not follow the last one
	ProducerSequenceStart                  // a new epoch does not begin at sequence 0
	ProducerCoordinatorBack                // the marker's coordinator epoch is below the last one
	ProducerMarkerWithoutTxn               // a marker ends no transaction, which is normal for one that wrote nothing here
)

// CompletedTxn is a transaction that a marker has ended.
type CompletedTxn struct {
	AbortedTxn
	Aborted bool // else committed
}

// ProducerEvent is what a batch did to the state of its producer.
type ProducerEvent struct {
	Issue   ProducerIssue
	Known   bool          // whether the producer was known before
	Before  ProducerEntry // its state before, if Known
	Began   bool          // the batch opened a transaction at its first offset
	Ended   bool          // the batch is a marker that ended Txn
	Unknown bool          // and another producer's marker has ended one that began at the same offset
	Txn     CompletedTxn
	Marker  TxnMarker // of a control batch with a record
	HasMark bool
}

// EndedTwice is what keeps a broker from loading a log: it knows transactions by their first offset.
func EndedTwice(first int64) error {
	return fmt.Errorf("%w: a second end of a transaction from offset %d", ErrValue, first)
}

// Started is the error of a transaction that a broker does not know when it ends.
func (ev *ProducerEvent) Started() error {
	if ev.Unknown {
		return EndedTwice(ev.Txn.FirstOffset)
	}
	return nil
}

// ProducerState is what a partition remembers of its idempotent and transactional producers (ProducerStateManager and
// ProducerAppendInfo, with AppendOrigin.REPLICATION): the contents of a producer snapshot, updated batch by batch.
type ProducerState struct {
	ids     map[int64]int32 // producer id → index into entries
	entries []producer      // in order of their first appearance
	open    firstOffsets    // of open transactions; those of ended ones are dropped lazily
	// started are the open transactions as a broker keeps them, by first offset with the index of the producer: of two
	// that begin at one offset the first that ends takes the other's away.
	started map[int64]int32
	// ended are the transactions that have ended: the first offset of the earliest.
	ended optionalOffset
	end   int64
	// together are indexes into entries: each pair are producers that a broker saw for the first time in one read.
	together [][2]int
	recent   int32 // index of the producer seen last: batches of one producer come in runs
}

type optionalOffset struct {
	offset int64
	ok     bool
}

// A producer is an entry, and whether its transaction is open: a batch with a negative base offset begins one too.
type producer struct {
	ProducerEntry
	open bool
}

// NewProducerState is an empty state that covers the log up to the offset start, exclusive.
func NewProducerState(start int64) *ProducerState {
	return &ProducerState{ids: map[int64]int32{}, started: map[int64]int32{}, end: start}
}

// LoadProducerState is the state of a snapshot's entries that covers the log up to the offset end, exclusive. Producers
// without an open transaction whose last timestamp is at or before expiredMs are left out, as a broker does with now −
// producer.id.expiration.ms; math.MinInt64 keeps all.
func LoadProducerState(entries []ProducerEntry, end, expiredMs int64) *ProducerState {
	p := NewProducerState(end)
	for _, e := range entries {
		if !e.InTransaction() && e.TimestampMs <= expiredMs {
			continue
		}
		if !e.HasBatch() {
			e.LastSequence, e.LastOffset, e.OffsetDelta = -1, -1, 0
		}
		if !e.InTransaction() {
			e.CurrentTxnFirstOffset = -1
		}
		at, _ := p.slot(e.ProducerID)
		p.entries[at] = producer{e, e.InTransaction()}
		if e.InTransaction() {
			p.begin(e.CurrentTxnFirstOffset, at)
		}
	}
	return p
}

// End is the offset up to which the state covers the log, exclusive: the name a snapshot of it would have.
func (p *ProducerState) End() int64 { return p.end }

// Len is the number of producers.
func (p *ProducerState) Len() int { return len(p.entries) }

// Get returns what is known of a producer.
func (p *ProducerState) Get(producerID int64) (ProducerEntry, bool) {
	at, ok := p.ids[producerID]
	if !ok {
		return ProducerEntry{}, false
	}
	return p.entries[at].ProducerEntry, true
}

// slot is the index of a producer's entry, made empty if the producer is new, and whether it was known.
func (p *ProducerState) slot(producerID int64) (at int32, known bool) {
	if int(p.recent) < len(p.entries) && p.entries[p.recent].ProducerID == producerID {
		return p.recent, true
	}
	at, known = p.ids[producerID]
	if !known {
		at = int32(len(p.entries))
		p.ids[producerID] = at
		p.entries = append(p.entries, producer{ProducerEntry: ProducerEntry{ProducerID: producerID, ProducerEpoch: -1,
			LastSequence: -1, LastOffset: -1, TimestampMs: -1, CoordinatorEpoch: -1, CurrentTxnFirstOffset: -1}})
	}
	p.recent = at
	return at, known
}

// Append takes the next batch of the log, which must have a good checksum. rr reads the record of a control batch, and
// has let go of it afterwards. The error is an *Error of DecodeTxnMarker or wrapping ErrTxnState, or what rr reports of
// a control batch's records.
func (p *ProducerState) Append(b *Batch, rr *RecordReader) (ev ProducerEvent, err error) {
	if b.Legacy() {
		return ev, nil
	}
	p.end = b.NextOffset()
	if b.ProducerID < 0 {
		return ev, nil
	}
	at, known := p.slot(b.ProducerID)
	if known {
		ev.Before, ev.Known = p.entries[at].ProducerEntry, true
	}
	if !b.Control() {
		return ev, p.appendData(&ev, at, b)
	}
	var rec Record
	rr.Reset(b)
	defer rr.Release()
	if !rr.Next(&rec) {
		return ev, rr.Err()
	}
	m, err := DecodeTxnMarker(b.Pos, rec.Key, rec.Value)
	if err == nil {
		p.appendMarker(&ev, at, b, m, rec.Timestamp)
	}
	return ev, err
}

// appendData is ProducerAppendInfo.appendDataBatch.
func (p *ProducerState) appendData(ev *ProducerEvent, at int32, b *Batch) error {
	e := &p.entries[at]
	ev.Issue = dataIssue(&e.ProducerEntry, b)
	if e.open && !b.Transactional() {
		return &Error{What: "batch of producer " + strconv.FormatInt(b.ProducerID, 10), Pos: b.Pos,
			Want: "a transactional batch",
			Got:  "transaction open since offset " + strconv.FormatInt(e.CurrentTxnFirstOffset, 10), Err: ErrTxnState}
	}
	e.ProducerEpoch = b.ProducerEpoch
	e.LastSequence = b.LastSequence()
	e.LastOffset = b.LastOffset
	e.OffsetDelta = int32(b.LastOffset - b.BaseOffset)
	e.TimestampMs = b.MaxTimestamp
	if b.Transactional() && !e.open {
		ev.Began = true
		e.CurrentTxnFirstOffset, e.open = b.BaseOffset, true
		p.begin(b.BaseOffset, at)
	}
	return nil
}

// dataIssue holds a data batch against what its producer did before, by the rules for batches from clients.
func dataIssue(e *ProducerEntry, b *Batch) ProducerIssue {
	switch {
	case b.ProducerEpoch < e.ProducerEpoch:
		return ProducerEpochBack
	case e.ProducerEpoch < 0:
		return ProducerInOrder
	case b.ProducerEpoch != e.ProducerEpoch:
		if b.BaseSequence != 0 {
			return ProducerSequenceStart
		}
	case b.BaseSequence != NextSequence(e.LastSequence):
		return ProducerSequenceGap
	}
	return ProducerInOrder
}

// NextSequence is the sequence number after last; sequences wrap from 2^31−1 to 0.
func NextSequence(last int32) int32 { return IncrementSequence(last, 1) }

// appendMarker is ProducerAppendInfo.appendEndTxnMarker, and the completion of the transaction.
func (p *ProducerState) appendMarker(ev *ProducerEvent, at int32, b *Batch, m TxnMarker, timestampMs int64) {
	e := &p.entries[at]
	ev.Marker, ev.HasMark = m, true
	switch {
	case b.ProducerEpoch < e.ProducerEpoch:
		ev.Issue = ProducerEpochBack
	case m.CoordinatorEpoch < e.CoordinatorEpoch:
		ev.Issue = ProducerCoordinatorBack
	case !e.open:
		ev.Issue = ProducerMarkerWithoutTxn
	}
	if e.open {
		ev.Ended = true
		ev.Txn = CompletedTxn{Aborted: m.Abort, AbortedTxn: AbortedTxn{ProducerID: b.ProducerID,
			FirstOffset: e.CurrentTxnFirstOffset, LastOffset: b.BaseOffset}}
		ev.Unknown, ev.Txn.LastStableOffset = p.complete(at, b.BaseOffset)
	}
	if b.ProducerEpoch != e.ProducerEpoch {
		e.LastSequence, e.LastOffset, e.OffsetDelta = -1, -1, 0
	}
	e.ProducerEpoch, e.CoordinatorEpoch, e.TimestampMs = b.ProducerEpoch, m.CoordinatorEpoch, timestampMs
}

// complete ends the transaction of a producer at its marker. It says whether a broker does not know it, and gives the
// last stable offset then (ProducerStateManager.lastStableOffset, completeTxn).
func (p *ProducerState) complete(at int32, marker int64) (unknown bool, stable int64) {
	e := &p.entries[at]
	first := e.CurrentTxnFirstOffset
	owner, known := p.started[first]
	if owner == at {
		delete(p.started, first)
	}
	stable, open := p.FirstOpen()
	if !open {
		stable = marker + 1
	}
	delete(p.started, first)
	e.CurrentTxnFirstOffset, e.open = -1, false
	if !p.ended.ok || first < p.ended.offset {
		p.ended = optionalOffset{first, true}
	}
	return !known, stable
}

// FirstOpen is the first offset of the earliest open transaction: the last stable offset, if the high watermark is
// beyond.
func (p *ProducerState) FirstOpen() (int64, bool) {
	for ; len(p.open) > 0; heap.Pop(&p.open) {
		if _, ok := p.started[p.open[0]]; ok {
			return p.open[0], true
		}
	}
	return 0, false
}

// FirstEnded is the first offset of the earliest transaction that has ended since the state was loaded or made. To a
// broker that has just loaded the log it is not decided, since the high watermark is at the log start still.
func (p *ProducerState) FirstEnded() (int64, bool) { return p.ended.offset, p.ended.ok }

// Open returns the producers with an open transaction, by its first offset.
func (p *ProducerState) Open() []ProducerEntry {
	var open []ProducerEntry
	for _, e := range p.entries {
		if e.open {
			open = append(open, e.ProducerEntry)
		}
	}
	slices.SortStableFunc(open, func(a, b ProducerEntry) int {
		return cmp.Compare(a.CurrentTxnFirstOffset, b.CurrentTxnFirstOffset)
	})
	return open
}

// Forget takes first offsets of transactions away that ended in one read of the log: all that begin in it begin before.
func (p *ProducerState) Forget(ended []int64) {
	for _, first := range ended {
		delete(p.started, first)
	}
}

// Together says that the producers from the nth on became known in one read of the log, which decides on their order
// in a snapshot.
func (p *ProducerState) Together(n int) {
	if n+1 < len(p.entries) {
		p.together = append(p.together, [2]int{n, len(p.entries)})
	}
}

// Entries returns all producers in the order in which a broker writes them into a snapshot, that of a Java HashMap by
// producer id.
func (p *ProducerState) Entries() []ProducerEntry {
	bucket := func(id int64) uint32 { return HashBucket(uint32(id^int64(uint64(id)>>32)), len(p.entries)) }
	entries := make([]ProducerEntry, len(p.entries))
	for i, e := range p.entries {
		entries[i] = e.ProducerEntry
	}
	for _, t := range p.together {
		slices.Reverse(entries[t[0]:t[1]]) // HashMap.computeIfAbsent puts what is new first
	}
	slices.SortStableFunc(entries, func(a, b ProducerEntry) int {
		return cmp.Compare(bucket(a.ProducerID), bucket(b.ProducerID))
	})
	return entries
}

// HashBucket is where a Java HashMap of n keys has the one of a hash: it is gone through bucket by bucket.
func HashBucket(hash uint32, n int) uint32 {
	table := 16
	for n > table/4*3 {
		table *= 2
	}
	return (hash ^ hash>>16) & uint32(table-1)
}

// begin notes an open transaction. Once most of the heap is of ended ones it is made anew, so that it stays in
// proportion to what is open.
func (p *ProducerState) begin(first int64, at int32) {
	p.started[first] = at
	heap.Push(&p.open, first)
	if len(p.open) > 2*len(p.started)+64 {
		p.open = slices.AppendSeq(p.open[:0], maps.Keys(p.started))
		heap.Init(&p.open)
	}
}

// firstOffsets is a min-heap, for container/heap.
type firstOffsets []int64

func (h firstOffsets) Len() int           { return len(h) }
func (h firstOffsets) Less(i, j int) bool { return h[i] < h[j] }
func (h firstOffsets) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }

// Push and Pop are for container/heap.
func (h *firstOffsets) Push(first any) { *h = append(*h, first.(int64)) }

// Pop removes the last element.
func (h *firstOffsets) Pop() any {
	old := *h
	first := old[len(old)-1]
	*h = old[:len(old)-1]
	return first
}

// TxnIndexBuilder writes the .txnindex of a segment from the transactions that end in it.
type TxnIndexBuilder struct{ raw []byte }

// Add takes the next transaction that ended; committed ones leave nothing. The error wraps ErrTxnIndexOrder: the broker
// fails to load the partition there.
func (x *TxnIndexBuilder) Add(t CompletedTxn) error {
	if !t.Aborted {
		return nil
	}
	if n := NewTxnIndex(x.raw).Len(); n > 0 {
		if last := NewTxnIndex(x.raw).Entry(n - 1).LastOffset; last >= t.LastOffset {
			return &Error{What: "aborted transaction", Pos: int64(len(x.raw)), Want: "a last offset above " +
				strconv.FormatInt(last, 10),
				Got: strconv.FormatInt(t.LastOffset, 10), Err: ErrTxnIndexOrder}
		}
	}
	x.raw = AppendAbortedTxn(x.raw, t.AbortedTxn)
	return nil
}

// Bytes is the content of the .txnindex so far; if it is empty a broker writes no file.
func (x *TxnIndexBuilder) Bytes() []byte { return x.raw }
