package rebuild

import (
	"math"
	"slices"
	"sort"

	"kseg/format"
	"kseg/logdir"
	"kseg/state"
	"kseg/walk"
)

// producerExpirationMs is Kafka's default of producer.id.expiration.ms.
const producerExpirationMs = 24 * 60 * 60 * 1000

// producerHistory knows the state of a partition's producers before each of its segments, as LogLoader.recoverSegment
// builds it. Since recovery takes a snapshot after each segment, the next one goes on from there; a snapshot on disk of
// the same offset is preferred, for it knows what compaction has taken out of the log.
type producerHistory struct {
	*rebuilder
	logStart  int64
	expiredMs int64
	snapshots state.ProducerSnapshots // on disk
	segments  []*logdir.Segment       // of the partition, also those that are not to be rebuilt

	// last is the segment last recovered; taken is the snapshot that recovery took after it, unless that was cut.
	last  *logdir.Segment
	taken *state.ProducerSnapshot
}

func newProducerHistory(r *rebuilder, dir *logdir.Partition) producerHistory {
	return producerHistory{rebuilder: r, logStart: r.logStart(dir), segments: state.Segments(dir),
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
	m := state.NewProducerManager(slices.Clone(h.snapshots), h.reader)
	m.ExpiredMs = h.expiredMs
	if h.taken != nil && seg.Prev == h.last {
		m.Snapshots.Add(*h.taken)
	}
	x := NewRecovery(seg.Base, interval, m)
	m.Take = func(b *format.Batch) error {
		_, _ = m.Append(b, h.reader) // what makes no sense changes no state
		return nil
	}
	m.Written = func(offset int64, raw []byte) {
		if offset == seg.Base {
			x.early = raw
		}
	}
	m.Dropped = func(_ state.ProducerSnapshot, why error, unread bool) error {
		if unread {
			h.notDone(why.Error())
		}
		return nil
	}
	n := sort.Search(len(h.segments), func(i int) bool { return h.segments[i].Base >= seg.Base })
	_ = m.Rebuild(h.earlier(n), h.logStart, seg.Base, false) // nothing ends it
	return x
}

// earlier are the first n segments of the partition. They are gone through by the lengths of batches alone, whose
// checksums are of no interest there.
func (h *producerHistory) earlier(n int) state.ProducerLog {
	base := func(i int) int64 { return h.segments[i].Base }
	return state.ProducerLog{Len: n, Base: base, Replay: func(i int, from, end int64, fn func(*format.Batch) error) error {
		log := &walk.Log{File: h.segments[i].Log, Base: base(i), Stop: func(b *format.Batch, hole *format.Hole) bool {
			return hole != nil && hole.Kind != format.Unreadable || b != nil && b.BaseOffset >= end
		}}
		err := walk.Batches(h.ctx, slices.Values([]*walk.Log{log}), walk.Options{Jobs: 1, Trust: format.TrustBlindly},
			func(_ *walk.Stretch, b *format.Batch) error {
				if b.LastOffset < from {
					return nil
				}
				from = math.MinInt64 // from here on all count
				return fn(b)
			}, func(_ *walk.Stretch, hole *format.Hole) error { return hole.Err })
		if err != nil {
			h.notDone(err.Error())
		}
		return nil
	}}
}

// after remembers the state after a segment, if recovery has kept all of it.
func (h *producerHistory) after(seg *logdir.Segment, x *Recovery, outcome Outcome) {
	h.last, h.taken = seg, nil
	if outcome == Whole {
		raw := format.AppendProducerSnapshot(nil, x.Producers.Entries())
		h.taken = &state.ProducerSnapshot{Offset: x.Producers.MapEnd, Read: func() ([]byte, error) { return raw, nil }}
	}
}
