package state

import (
	"errors"
	"fmt"

	"kseg/format"
	"kseg/logdir"
	"kseg/schema"
)

// ShareState is where a share group stands in a partition (ShareGroupOffset).
type ShareState struct {
	Group         string
	TopicID       format.UUID
	Partition     int32
	SnapshotEpoch int32
	StateEpoch    int32
	LeaderEpoch   int32
	StartOffset   int64 // -1: not initialized
	// DeliveryComplete counts the records after the start offset that need no delivery any more; -1: not recorded.
	DeliveryComplete int32
	WriteMs          int64
	Batches          int    // state batches that the last record has
	Record           Origin // the last

	whole    int64 // of the last record that says all of it
	hasWhole bool
}

// ShareLog is what a partition of __share_group_state folds to.
type ShareLog struct {
	FoldedLog

	states  map[string]*ShareState
	decoder *schema.Decoder
}

// FoldShareState folds the segments of a partition of __share_group_state, as ShareCoordinatorShard does: a snapshot
// replaces, an update changes what it names.
func FoldShareState(p *logdir.Partition, o OffsetsOptions) *ShareLog {
	l := &ShareLog{FoldedLog: FoldedLog{Partition: p}, decoder: schema.NewDecoder()}
	r := o.reader()
	if first, known := firstEpoch(p); known && r.known.Start == 0 {
		r.known.Start, r.compact = first, true
	}
	l.readAll(r, false, func() { l.states = map[string]*ShareState{} }, l.record)
	return l
}

// firstEpoch is where the first leader epoch of a partition begins: from there on nothing was deleted, since what is
// deleted is taken out of the epochs too.
func firstEpoch(p *logdir.Partition) (offset int64, known bool) {
	f := p.File(format.KindLeaderEpochCheckpoint)
	if f == nil {
		return 0, false
	}
	raw, err := f.ReadSmall()
	if err != nil {
		return 0, false
	}
	epochs, err := format.DecodeLeaderEpochs(raw)
	if err != nil || len(epochs.Loaded()) == 0 {
		return 0, false
	}
	return epochs.Loaded()[0].StartOffset, true
}

// States are by group, topic id and partition.
func (l *ShareLog) States() []*ShareState { return sortedValues(l.states) }

// Unsure reports whether records were lost that may have changed a state.
func (l *ShareLog) Unsure(s *ShareState) bool { return !s.hasWhole || unsure(l.Lost, s.whole) }

const shareSnapshot = 0

func (l *ShareLog) record(b *format.Batch, rec *format.Record) {
	if b.Control() {
		return
	}
	d := l.decoder.Decode(schema.ShareState, rec.Key, rec.Value)
	switch {
	case d.Err == nil:
	case errors.Is(d.Err, format.ErrUnsupported):
		l.Newer++
		return
	default:
		l.problem(rec.Offset, fmt.Errorf("the record at offset %d: %w", rec.Offset, d.Err))
		return
	}
	key := string(rec.Key[2:])
	if rec.Value == nil {
		delete(l.states, key)
		return
	}
	v, old := d.Value, l.states[key]
	s := &ShareState{Group: d.Key.Get("groupId").Text(), TopicID: d.Key.Get("topicId").UUID(),
		Partition:     int32(d.Key.Get("partition").Int()),
		SnapshotEpoch: int32(v.Get("snapshotEpoch").Int()), LeaderEpoch: int32(v.Get("leaderEpoch").Int()),
		StartOffset:      v.Get("startOffset").Int(),
		DeliveryComplete: int32(v.Get("deliveryCompleteCount").Int()), Batches: v.Get("stateBatches").Len(),
		WriteMs: rec.Timestamp,
		Record:  Origin{Offset: rec.Offset, TimestampMs: rec.Timestamp}}
	if d.Key.Type == shareSnapshot {
		s.StateEpoch, s.WriteMs = int32(v.Get("stateEpoch").Int()), v.Get("writeTimestamp").Int()
		s.whole, s.hasWhole = rec.Offset, true
	} else if old != nil {
		s.whole, s.hasWhole = old.whole, old.hasWhole
		s.StateEpoch, s.SnapshotEpoch = old.StateEpoch, old.SnapshotEpoch
		if s.StartOffset < 0 {
			s.StartOffset = old.StartOffset
		}
		if s.LeaderEpoch < 0 {
			s.LeaderEpoch = old.LeaderEpoch
		}
	}
	l.states[key] = s
}
