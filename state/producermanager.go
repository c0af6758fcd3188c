package state

import (
	"math"
	"slices"
	"sort"

	"kseg/format"
)

// ProducerLog is what producers are replayed from: the segments of a partition by base offset, as they are on disk or
// as a start has left them.
type ProducerLog struct {
	Len  int
	Base func(i int) int64
	// Replay calls fn with the batches of a segment that hold the offset from or a later one, up to an end. An error ends
	// it.
	Replay func(i int, from, end int64, fn func(*format.Batch) error) error
}

// Floor is the last segment that begins at or below an offset, the first if none does.
func (l *ProducerLog) Floor(offset int64) int { return FloorSegment(l.Len, l.Base, offset) }

// ProducerManager is a ProducerStateManager: what the producers of a partition did before an offset, and the snapshots
// of that which a broker knows of.
type ProducerManager struct {
	*format.ProducerState
	Snapshots ProducerSnapshots
	// ExpiredMs is that of format.LoadProducerState.
	ExpiredMs int64
	// Take takes the next batch. nil: its producer is told, and what is wrong with it ends the replay.
	Take    func(*format.Batch) error
	Records *format.RecordReader
	// MapEnd is the offset before which the state knows all (lastMapOffset), SnapEnd that of the last snapshot
	// (lastSnapOffset).
	MapEnd, SnapEnd int64

	// Loaded is told the snapshot that the state begins with, nil for none; Dropped each that a broker deletes, with
	// what keeps it from reading it, nil if nothing does, and whether it was the disk that failed: the error that it
	// returns then ends what is done. Written is told each snapshot that is taken. All may be nil.
	Loaded  func(*ProducerSnapshot)
	Dropped func(s ProducerSnapshot, why error, unread bool) error
	Written func(offset int64, raw []byte)
}

// NewProducerManager is a manager that knows of snapshots, a list that is its own from then on, and of no producer; the
// reader is for control records.
func NewProducerManager(snapshots ProducerSnapshots, records *format.RecordReader) *ProducerManager {
	return &ProducerManager{ProducerState: format.NewProducerState(0), Snapshots: snapshots, Records: records,
		ExpiredMs: math.MinInt64}
}

// Again is the manager of the same partition that knows the same snapshots, and no producer: recovery makes one for
// each segment.
func (m *ProducerManager) Again() *ProducerManager {
	n := *m
	n.ProducerState, n.MapEnd, n.SnapEnd = format.NewProducerState(0), 0, 0
	n.Snapshots = slices.Clone(m.Snapshots)
	return &n
}

// Rebuild is UnifiedLog.rebuildProducerState: the state up to an offset, from the newest snapshot above the log's
// start, and the batches of the segments after it. clean says that the log was closed cleanly: where it has no snapshot
// then, it has no producer.
func (m *ProducerManager) Rebuild(log ProducerLog, start, end int64, clean bool) error {
	last := max(0, log.Len-2) // of the two last segments snapshots are taken
	if len(m.Snapshots) == 0 && clean {
		for i := last; i < log.Len; i++ {
			m.MapEnd = log.Base(i)
			m.Snapshot()
		}
		m.MapEnd = end
		m.Snapshot()
		return nil
	}
	emptyBefore := m.Len() == 0 && m.MapEnd >= end
	if err := m.truncateAndReload(start, end); err != nil {
		return err
	}
	if end > m.MapEnd && !emptyBefore {
		for i := log.Floor(m.MapEnd); i < log.Len && log.Base(i) < end; i++ {
			m.MapEnd = max(log.Base(i), m.MapEnd, start)
			if i >= last {
				m.Snapshot()
			}
			if err := m.replay(log, i, end); err != nil {
				return err
			}
		}
	}
	m.MapEnd = end
	m.Snapshot()
	return nil
}

// replay is loadProducersFromRecords: the batches of a segment up to an end, whose transactions end when all are read.
func (m *ProducerManager) replay(log ProducerLog, i int, end int64) error {
	known, ended := m.Len(), []int64{}
	err := log.Replay(i, m.MapEnd, end, func(b *format.Batch) error {
		if m.Take != nil {
			return m.Take(b)
		}
		ev, err := m.Append(b, m.Records)
		if err == nil && ev.Ended {
			ended = append(ended, ev.Txn.FirstOffset)
			err = ev.Started()
		}
		return err
	})
	m.Together(known)
	slices.Sort(ended)
	m.Forget(ended)
	for i := range ended {
		if err == nil && i > 0 && ended[i] == ended[i-1] {
			err = format.EndedTwice(ended[i])
		}
	}
	return err
}

// FloorSegment is the last of n segments by base offset that begins at or below an offset, the first if none does.
func FloorSegment(n int, base func(i int) int64, offset int64) int {
	return max(0, sort.Search(n, func(i int) bool { return base(i) > offset })-1)
}

// truncateAndReload drops snapshots outside of the log, and loads the newest of the others if the state is not that of
// the log's end.
func (m *ProducerManager) truncateAndReload(start, end int64) error {
	if n := len(m.Snapshots); n > 0 && (m.Snapshots[0].Offset <= start || m.Snapshots[n-1].Offset > end) {
		if err := m.drop(func(offset int64) bool { return offset <= start || offset > end }); err != nil {
			return err
		}
	}
	if end != m.MapEnd {
		return m.load(start)
	}
	m.MapEnd, m.SnapEnd = max(m.MapEnd, start), start
	if n := len(m.Snapshots); n > 0 {
		m.SnapEnd = m.Snapshots[n-1].Offset
	}
	return nil
}

// load is loadFromSnapshot: the newest that can be read counts.
func (m *ProducerManager) load(start int64) error {
	var failed error
	producers, from := m.Snapshots.Begin(start, m.ExpiredMs, func(s ProducerSnapshot, err error, unread bool) bool {
		if m.Dropped != nil {
			failed = m.Dropped(s, err, unread)
		}
		return failed == nil
	})
	if failed != nil {
		return failed
	}
	m.ProducerState, m.MapEnd, m.SnapEnd = producers, producers.End(), producers.End()
	if m.Loaded != nil {
		m.Loaded(from)
	}
	return nil
}

// Snapshot is takeSnapshot: it writes one, unless one was taken at that offset.
func (m *ProducerManager) Snapshot() {
	if m.MapEnd <= m.SnapEnd {
		return
	}
	raw := format.AppendProducerSnapshot(nil, m.Entries())
	m.SnapEnd = m.MapEnd
	m.Snapshots.Put(ProducerSnapshot{Offset: m.MapEnd, Read: func() ([]byte, error) { return raw, nil }})
	if m.Written != nil {
		m.Written(m.MapEnd, raw)
	}
}

// Clear is truncateFullyAndStartAt: it drops the state and all snapshots.
func (m *ProducerManager) Clear(offset int64) error {
	m.ProducerState, m.MapEnd, m.SnapEnd = format.NewProducerState(offset), offset, 0
	return m.drop(func(int64) bool { return true })
}

// RemoveStray is removeStraySnapshots: where no segment begins there is no use for a snapshot, but for the newest of
// those if it does not lie before the last segment.
func (m *ProducerManager) RemoveStray(log ProducerLog) error {
	stray := func(offset int64) bool { return log.Len == 0 || log.Base(log.Floor(offset)) != offset }
	newest := int64(-1)
	for _, s := range m.Snapshots {
		if stray(s.Offset) {
			newest = s.Offset
		}
	}
	if log.Len > 0 && newest < log.Base(log.Len-1) {
		newest = -1
	}
	return m.drop(func(offset int64) bool { return stray(offset) && offset != newest })
}

// drop deletes the snapshots of some offsets, which can be read as far as anyone knows.
func (m *ProducerManager) drop(of func(offset int64) bool) error {
	var err error
	m.Snapshots = slices.DeleteFunc(slices.Clone(m.Snapshots), func(s ProducerSnapshot) bool {
		gone := of(s.Offset)
		if gone && err == nil && m.Dropped != nil {
			err = m.Dropped(s, nil, false)
		}
		return gone
	})
	return err
}
