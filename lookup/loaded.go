package lookup

import (
	"kseg/broker"
	"kseg/format"
	"kseg/logdir"
	"kseg/state"
)

// madeAnew is a segment as the next start leaves it: its log up to a size, and the indexes that recovery makes.
type madeAnew struct {
	size         int64
	index, times []byte
}

// UseStart lets lookups that are led astray by indexes on disk go through those that the next start makes: after an
// unclean stop a broker recovers the segments from the recovery point on.
func (p *Partition) UseStart(cluster *state.Cluster) {
	parent := p.LogDir()
	if p.dir == nil || p.dir.Suffix != "" || parent == nil || p.stoppedCleanly || p.dir.IsClusterMetadata() {
		return
	}
	if c := cluster.Dirs.Of(parent).Checkpoint(format.KindRecoveryPointCheckpoint); c == nil || c.Err != nil {
		return
	}
	p.nextStart = func() *broker.PartitionStart {
		if parent.BrokerRuns() {
			return nil
		}
		b, err := broker.NewStart([]*logdir.LogDir{parent}, &cluster.Dirs,
			&broker.StartOptions{MaxBatchBytes: p.maxBatchBytes, Settings: cluster.Settings})
		if err != nil || len(b.Dirs) == 0 {
			return nil
		}
		return b.Load(b.Dirs[0], p.dir)
	}
}

// afterStart is the partition as it is loaded, nil if that makes no index anew, or nothing can be said, or segments go.
func (p *Partition) afterStart() *Partition {
	if p.nextStart == nil || p.anew != nil {
		return nil
	}
	s := p.nextStart()
	if s == nil || s.Err != nil || s.Loaded == nil || s.Failure != nil || len(s.Segments) != len(p.dir.Segments) {
		return nil
	}
	after := *p
	after.anew = map[int64]madeAnew{}
	for _, seg := range s.Segments {
		log, ok := s.File(format.SegmentFileName(seg.Base, format.KindLog))
		if !ok || log.Action != broker.Keep && log.Action != broker.Truncate {
			return nil
		}
		index, _ := s.File(format.SegmentFileName(seg.Base, format.KindOffsetIndex))
		times, _ := s.File(format.SegmentFileName(seg.Base, format.KindTimeIndex))
		if seg.Recovered {
			after.anew[seg.Base] = madeAnew{seg.Size, index.Content, times.Content}
		}
	}
	if len(after.anew) == 0 {
		return nil
	}
	return &after
}

// again looks up once more, in the partition as it is loaded, where the files on disk gave no right answer.
func (p *Partition) again(r *Result, err error, look func(*Partition) (*Result, error)) (*Result, error) {
	if err != nil || r.Outcome == Found && !r.Wrong() && (r.Time == nil || !r.Time.Differs) || r.Outcome == AtEnd {
		return r, err
	}
	after := p.afterStart()
	if after == nil {
		return r, nil
	}
	next, err := look(after)
	if err != nil || next.Outcome != Found || next.Wrong() || next.Time != nil && next.Time.Differs {
		return r, err
	}
	next.note("This is the way through the indexes that the next start makes: the broker did not stop cleanly, and the " +
		"segment is above the recovery point. The indexes on disk lead elsewhere; kseg verify says why.")
	return next, nil
}
