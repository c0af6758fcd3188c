package rebuild

import (
	"slices"

	"kseg/format"
	"kseg/logdir"
	"kseg/state"
	"kseg/walk"
)

// producerExpirationMs is Kafka's default of producer.id.expiration.ms.
const producerExpirationMs = 24 * 60 * 60 * 1000

// producerHistory knows the state of a partition's producers before each of its segments, as LogLoader.recoverSegment
// builds it: from the newest snapshot that can be used, and by replay of the batches between that and the segment.
// Since recovery takes a snapshot after each segment, the next one goes on from there; a snapshot on disk of the same
// offset is preferred, for it knows what compaction has taken out of the log.
type producerHistory struct {
	*rebuilder
	dir       *logdir.Partition
	logStart  int64
	expiredMs int64
	snapshots state.ProducerSnapshots

	// last is the segment last recovered. Unless it was cut, the snapshot that recovery took after it is among the
	// others, before one on disk of the same offset.
	last  *logdir.Segment
	whole bool
}

func newProducerHistory(r *rebuilder, dir *logdir.Partition) producerHistory {
	return producerHistory{rebuilder: r, dir: dir, logStart: r.logStart(dir),
		expiredMs: r.opts.Now.UnixMilli() - producerExpirationMs,
		snapshots: state.ProducerSnapshotsOf(dir.All())}
}

// logStart is what the log-start-offset-checkpoint says of a partition, 0 if nothing.
func (r *rebuilder) logStart(dir *logdir.Partition) int64 {
	if dir.IsClusterMetadata() {
		return 0
	}
	start, _ := r.dirs.Of(dir.Parent).Offset(format.KindLogStartOffsetCheckpoint,
		state.TopicPartition{Topic: dir.Topic, Partition: dir.PartitionDir.Partition})
	return start
}

// before is a recovery that knows the producers before the segment.
func (h *producerHistory) before(seg *logdir.Segment, interval int64) *Recovery {
	follows := h.whole && seg.Prev == h.last
	if !follows {
		h.forget()
	}
	producers, _ := h.snapshots.Begin(h.logStart, seg.Base, h.expiredMs, func(_ state.ProducerSnapshot, err error,
		unread bool) {
		if unread {
			h.notDone(err.Error())
		}
	})
	x := NewRecovery(seg.Base, interval, producers, h.reader)
	x.snapOffset = producers.End()
	if !follows {
		h.replay(producers, seg)
	}
	x.MapEnd = max(x.snapOffset, seg.Base)
	if seg.Base > x.snapOffset {
		x.snapOffset, x.early = seg.Base, format.AppendProducerSnapshot(nil, producers.Entries())
	}
	return x
}

// replay goes through the segments before seg from where the producers' state ends (UnifiedLog.rebuildProducerState):
// by the lengths of batches alone, whose checksums are of no interest there.
func (h *producerHistory) replay(producers *format.ProducerState, seg *logdir.Segment) {
	first, from := seg, producers.End()
	for first.Prev != nil && first.Base > from {
		first = first.Prev
	}
	for s := first; s != nil && s.Base < seg.Base; s = s.Next {
		log := &walk.Log{File: s.Log, Base: s.Base, Stop: func(b *format.Batch, hole *format.Hole) bool {
			return hole != nil && hole.Kind != format.Unreadable || b != nil && b.BaseOffset >= seg.Base
		}}
		reached := false
		err := walk.Batches(h.ctx, slices.Values([]*walk.Log{log}), walk.Options{Jobs: 1, Trust: format.TrustBlindly},
			func(_ *walk.Stretch, b *format.Batch) error {
				if reached = reached || b.LastOffset >= from; reached {
					_, _ = producers.Append(b, h.reader) // what makes no sense changes no state
				}
				return nil
			}, func(_ *walk.Stretch, hole *format.Hole) error { return hole.Err })
		if err != nil {
			h.notDone(err.Error())
		}
	}
}

// after remembers the state after a segment, if recovery has kept all of it.
func (h *producerHistory) after(seg *logdir.Segment, x *Recovery, outcome Outcome) {
	h.forget()
	if h.last, h.whole = seg, outcome == Whole; h.whole {
		taken := format.AppendProducerSnapshot(nil, x.Producers.Entries())
		h.snapshots.Add(state.ProducerSnapshot{Offset: x.MapEnd, Read: func() ([]byte, error) { return taken, nil }})
	}
}

// forget drops the snapshot that recovery took.
func (h *producerHistory) forget() {
	h.snapshots = slices.DeleteFunc(h.snapshots, func(s state.ProducerSnapshot) bool { return s.File == nil })
}
