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
}

// ShareLog is what a partition of __share_group_state folds to.
type ShareLog struct {
	Partition *logdir.Partition
	EndOffset int64
	Lost      []Lost
	Problems  []error
	Newer     int

	states  map[string]*ShareState
	decoder *schema.Decoder
}

// FoldShareState folds the segments of a partition of __share_group_state, as ShareCoordinatorShard does: a snapshot
// replaces, an update changes what it names.
func FoldShareState(p *logdir.Partition, o OffsetsOptions) (l *ShareLog) {
	if err := p.Steady(func() error {
		l = foldShareState(p, o)
		return errors.Join(l.Problems...)
	}); l == nil {
		l = &ShareLog{Partition: p, Problems: []error{err}}
	}
	return l
}

func foldShareState(p *logdir.Partition, o OffsetsOptions) *ShareLog {
	l := &ShareLog{Partition: p, states: map[string]*ShareState{}, decoder: schema.NewDecoder()}
	r := o.reader()
	r.read(logsOf(p.All()), l.record)
	l.EndOffset, l.Lost = r.end, append(r.lost, l.Lost...)
	l.Problems = append(r.problems, l.Problems...)
	return l
}

// States are by group, topic id and partition.
func (l *ShareLog) States() []*ShareState { return sortedValues(l.states) }

// Unsure reports whether records were lost that may have changed what the record at offset says.
func (l *ShareLog) Unsure(offset int64) bool { return (&OffsetsLog{Lost: l.Lost}).Unsure(offset) }

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
		l.Problems = append(l.Problems, fmt.Errorf("%s: the record at offset %d: %w", l.Partition.Display, rec.Offset, d.Err))
		l.Lost = append(l.Lost, Lost{First: rec.Offset, Last: rec.Offset})
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
	} else if old != nil {
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
