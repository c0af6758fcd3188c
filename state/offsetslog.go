package state

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"
	"unicode/utf16"

	"kseg/format"
	"kseg/logdir"
	"kseg/schema"
)

// The record types of __consumer_offsets that are told apart (CoordinatorRecordType).
const (
	legacyOffsetCommit = 0
	offsetCommit       = 1
	classicGroup       = 2
	consumerGroup      = 3
	consumerMember     = 5
	consumerTarget     = 6
	consumerAssignment = 8
	shareMember        = 10
	shareGroup         = 11
	shareAssignment    = 14
	sharePartitions    = 15
	consumerRegex      = 16
	streamsGroup       = 17
	streamsMember      = 19
	streamsTarget      = 20
	streamsAssignment  = 22
	streamsTopology    = 23
	lastOffsetsRecord  = 23
)

// entry is the last value of a key, as it stands in the log.
type entry struct {
	typ      int16 // as in the log: a legacy commit has the layout of its own
	value    []byte
	offset   int64
	ms       int64
	producer int64 // of a transactional commit; NoProducer: none
}

// isGroupRecord reports whether records of a type are about a group as such, so that a tombstone removes it.
func isGroupRecord(typ int16) bool {
	return typ == classicGroup || typ == consumerGroup || typ == shareGroup || typ == streamsGroup
}

// noProducer is RecordBatch.NO_PRODUCER_ID.
const noProducer = -1

// OffsetsLog is what one partition of __consumer_offsets folds to: the last value of each live key, in bytes. It takes
// as much memory as these.
type OffsetsLog struct {
	FoldedLog

	live    map[string]*entry           // by key, legacy commits under that of a commit
	pending map[int64]map[string]*entry // by producer id: commits of transactions that have not ended
	holders map[string]map[int64]bool   // by key: the producers that have it pending
	named   map[string]bool             // groups that a commit has made, whatever became of it, and nothing removed
	watch   offsetsWatcher
	decoder *schema.Decoder
}

// offsetsWatcher is told what becomes of the keys; before and after are nil where there is none.
type offsetsWatcher interface {
	changed(at Origin, key string, before, after *entry, marker bool)
	pendingChanged(at Origin, key string, e *entry, aborted bool)
}

// OffsetsOptions say how far a partition of __consumer_offsets is folded.
type OffsetsOptions struct {
	Known                           // of the log; records below its start do not count
	Until    Point                  // records after it do not count
	Progress func(bytes int64)      // nil: nobody asks
	History  *History               // nil: nobody asks
	Stop     func() (canceled bool) // asked now and then; nil: never

	MaxBatchBytes int64 // what a batch may decompress to; 0: format.MostBatch
}

func (o *OffsetsOptions) reader() *logReader {
	return &logReader{records: format.NewRecordReader(cmp.Or(o.MaxBatchBytes, format.MostBatch), nil), known: o.Known,
		until: o.Until, progress: o.Progress, stop: o.Stop}
}

// FoldOffsets folds the segments of a partition of __consumer_offsets as its coordinator loads them
// (CoordinatorLoaderImpl, OffsetMetadataManager.replay): commits of a transaction count when its marker says commit,
// unless a later commit stands already; a tombstone takes away what is pending too.
func FoldOffsets(p *logdir.Partition, o OffsetsOptions) *OffsetsLog {
	l := &OffsetsLog{FoldedLog: FoldedLog{Partition: p}, decoder: schema.NewDecoder()}
	if o.History != nil {
		o.History.log = l
		l.watch = o.History
	}
	r := o.reader()
	r.compact = true
	l.readAll(r, o.History != nil, func() {
		l.live, l.pending, l.holders = map[string]*entry{}, map[int64]map[string]*entry{}, map[string]map[int64]bool{}
		l.named = map[string]bool{}
	}, l.batch)
	return l
}

// batch folds the records of a batch.
func (l *OffsetsLog) batch(b *format.Batch, rec *format.Record) {
	at := Origin{Offset: rec.Offset, TimestampMs: rec.Timestamp}
	if b.Control() {
		if c := l.decoder.DecodeControl(rec.Key, rec.Value); c.Type == schema.Commit || c.Type == schema.Abort {
			l.marker(at, b.ProducerID, c.Type == schema.Commit)
		}
		return
	}
	if len(rec.Key) < 2 {
		l.problem(rec.Offset, fmt.Errorf("the record at offset %d has no key", rec.Offset))
		return
	}
	typ := int16(binary.BigEndian.Uint16(rec.Key))
	if typ < 0 || typ > lastOffsetsRecord {
		l.Newer++
		return
	}
	if typ == legacyOffsetCommit {
		l.put(at, "\x00\x01"+string(rec.Key[2:]), typ, rec, b.ProducerID)
		return
	}
	if l.watch == nil && (typ != offsetCommit || b.ProducerID == noProducer) && rec.Value != nil {
		if known := l.live[string(rec.Key)]; known != nil { // the hot path: no allocation
			known.typ, known.offset, known.ms, known.producer = typ, rec.Offset, rec.Timestamp, noProducer
			known.value = append(known.value[:0], rec.Value...)
			return
		}
	}
	l.put(at, string(rec.Key), typ, rec, b.ProducerID)
}

func (l *OffsetsLog) put(at Origin, key string, typ int16, rec *format.Record, producer int64) {
	commit := typ == offsetCommit || typ == legacyOffsetCommit
	if name, ok := groupOfKey(key); ok && commit && rec.Value != nil {
		l.named[name] = true
	} else if ok && rec.Value == nil && isGroupRecord(typ) {
		delete(l.named, name)
	}
	if rec.Value == nil {
		l.set(at, key, nil, false)
		if commit {
			for producer := range l.holders[key] {
				delete(l.pending[producer], key)
			}
			delete(l.holders, key)
		}
		return
	}
	e := &entry{typ: typ, value: append([]byte(nil), rec.Value...), offset: rec.Offset, ms: rec.Timestamp,
		producer: noProducer}
	if !commit || producer == noProducer {
		l.set(at, key, e, false)
		return
	}
	e.producer = producer
	if l.pending[producer] == nil {
		l.pending[producer] = map[string]*entry{}
	}
	l.pending[producer][key] = e
	if l.holders[key] == nil {
		l.holders[key] = map[int64]bool{}
	}
	l.holders[key][producer] = true
	if l.watch != nil {
		l.watch.pendingChanged(at, key, e, false)
	}
}

func (l *OffsetsLog) set(at Origin, key string, e *entry, marker bool) {
	before := l.live[key]
	if e == nil {
		delete(l.live, key)
	} else {
		l.live[key] = e
	}
	if l.watch != nil && (before != nil || e != nil) {
		l.watch.changed(at, key, before, e, marker)
	}
}

// marker ends a producer's transaction (OffsetMetadataManager.replayEndTransactionMarker).
func (l *OffsetsLog) marker(at Origin, producer int64, commit bool) {
	keys := l.pending[producer]
	delete(l.pending, producer)
	for key, e := range sortedPairs(keys) {
		if delete(l.holders[key], producer); len(l.holders[key]) == 0 {
			delete(l.holders, key)
		}
		switch known := l.live[key]; {
		case !commit:
			if l.watch != nil {
				l.watch.pendingChanged(at, key, e, true)
			}
		case known == nil || e.offset > known.offset:
			l.set(at, key, e, true)
		}
	}
}

// sortedPairs goes through a map in the order of its keys.
func sortedPairs(m map[string]*entry) func(yield func(string, *entry) bool) {
	return func(yield func(string, *entry) bool) {
		for _, key := range sortedKeys(m) {
			if !yield(key, m[key]) {
				return
			}
		}
	}
}

// Unsure reports whether records were lost that may have changed what the record at offset says.
func (l *OffsetsLog) Unsure(offset int64) bool { return unsure(l.Lost, offset) }

// unsure reports whether the offset, or something after it, was lost.
func unsure(lost []Lost, offset int64) bool {
	return slices.ContainsFunc(lost, func(l Lost) bool { return l.Open || l.Last >= offset })
}

// groupOfKey is the group that a key of __consumer_offsets begins with, after its type.
func groupOfKey(key string) (string, bool) {
	if len(key) < 4 {
		return "", false
	}
	n := int(int16(binary.BigEndian.Uint16([]byte(key[2:4]))))
	if n < 0 || 4+n > len(key) {
		return "", false
	}
	return key[4 : 4+n], true
}

// OffsetsPartition is the partition of a coordinator's topic with so many partitions that an id belongs to
// (Utils.abs(id.hashCode()) % partitions).
func OffsetsPartition(id string, partitions int32) int32 {
	h := stringHash(id)
	if h == -1<<31 {
		return 0
	}
	return max(h, -h) % partitions
}

// stringHash is String.hashCode.
func stringHash(s string) int32 {
	h := int32(0)
	for _, unit := range utf16.Encode([]rune(s)) {
		h = 31*h + int32(unit)
	}
	return h
}

// Hash is TopicPartition.hashCode.
func (tp TopicPartition) Hash() int32 { return 31*(31+tp.Partition) + stringHash(tp.Topic) }
