package rebuild

import (
	"kseg/format"
	"kseg/logdir"
	"kseg/state"
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

	// taken is the snapshot that recovery took after the segment last recovered, nil if it was cut.
	taken       []byte
	takenOffset int64
	takenAfter  *logdir.Segment
}

func newProducerHistory(r *rebuilder, dir *logdir.Partition) producerHistory {
	return producerHistory{rebuilder: r, dir: dir, logStart: r.logStart(dir),
		expiredMs: r.opts.Now.UnixMilli() - producerExpirationMs,
		snapshots: state.ProducerSnapshotsOf(dir)}
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
func (h *producerHistory) before(seg *logdir.Segment) *Recovery {
	x := &Recovery{reader: h.reader}
	f, s := h.snapshots.Newest(h.logStart, seg.Base, func(_ *logdir.File, err error, unread bool) {
		if unread {
			h.notDone(err.Error())
		}
	})
	follows := h.taken != nil && seg.Prev == h.takenAfter
	if f != nil {
		x.snapOffset = f.Name.Base
	} else {
		x.snapOffset = h.logStart
	}
	switch {
	case follows && h.takenOffset > x.snapOffset && h.takenOffset <= seg.Base:
		taken, _ := format.DecodeProducerSnapshot(h.taken) // after has made it
		x.producers, x.snapOffset = format.LoadProducerState(&taken, h.takenOffset, h.expiredMs), h.takenOffset
	case f != nil:
		x.producers = format.LoadProducerState(&s, f.Name.Base, h.expiredMs)
	default:
		x.producers = format.NewProducerState(h.logStart)
	}
	if !follows {
		h.replay(x.producers, seg, x.snapOffset)
	}
	x.mapEnd = max(x.snapOffset, seg.Base)
	if seg.Base > x.snapOffset {
		x.snapOffset, x.early = seg.Base, format.AppendProducerSnapshot(nil, x.producers.Entries())
	}
	return x
}

// replay goes through the segments before seg from an offset on (UnifiedLog.rebuildProducerState): by the lengths of
// batches alone, whose checksums are of no interest there.
func (h *producerHistory) replay(producers *format.ProducerState, seg *logdir.Segment, from int64) {
	first := seg
	for first.Prev != nil && first.Base > from {
		first = first.Prev
	}
	for s := first; s != nil && s.Base < seg.Base; s = s.Next {
		err := s.Log.View(func(data []byte) error {
			reached := false
			for pos := int64(0); ; {
				b, err := format.DecodeBatch(data, pos)
				if err != nil || b.BaseOffset >= seg.Base {
					return nil
				}
				pos = b.End()
				reached = reached || b.LastOffset >= from
				if reached {
					_, _ = producers.Append(&b, h.reader) // what makes no sense changes no state
				}
			}
		})
		if err != nil {
			h.notDone(err.Error())
		}
	}
}

// after remembers the state after a segment, if recovery has kept all of it.
func (h *producerHistory) after(seg *logdir.Segment, x *Recovery, outcome Outcome) {
	h.takenAfter, h.taken = seg, nil
	if outcome == Whole {
		h.taken, h.takenOffset = format.AppendProducerSnapshot(nil, x.producers.Entries()), x.mapEnd
	}
}
