package broker

import (
	"errors"
	"math"
	"slices"
	"sort"
	"strconv"
	"strings"

	"kseg/format"
	"kseg/state"
)

const snapshotSuffix = ".snapshot"

// producers is a ProducerStateManager: the state up to an offset, and the snapshots that it knows of.
type producers struct {
	l         *loader
	snapshots []int64 // their offsets, ascending
	state     *format.ProducerState
	mapEnd    int64 // lastMapOffset
	snapEnd   int64 // lastSnapOffset
}

// newProducers lists the snapshots. A file of that type whose name is no offset keeps the log from being loaded.
func (l *loader) newProducers() (*producers, error) {
	p := &producers{l: l, state: format.NewProducerState(0)}
	return p, p.list()
}

func (p *producers) list() error {
	d := p.l.dir
	if d.badSnapshot != "" {
		_, err := offsetOf(d.badSnapshot)
		return err
	}
	p.snapshots = slices.Clone(d.snapshots)
	return nil
}

func (p *producers) latest() (int64, bool) {
	n := len(p.snapshots)
	if n == 0 {
		return 0, false
	}
	return p.snapshots[n-1], true
}

// forget takes a snapshot out of the list, and reports whether it was in it.
func (p *producers) forget(offset int64) bool {
	i, ok := slices.BinarySearch(p.snapshots, offset)
	if ok {
		p.snapshots = slices.Delete(p.snapshots, i, i+1)
	}
	return ok
}

func (p *producers) remove(offset int64) {
	if name, ok := p.l.dir.named[offset]; p.forget(offset) && ok {
		p.l.dir.remove(name)
	}
}

// removeStray keeps only snapshots at segments' base offsets and the newest other one, if it is not below the last
// segment (removeStraySnapshots).
func (p *producers) removeStray(bases []int64) error {
	if err := p.list(); err != nil {
		return err
	}
	for _, offset := range state.StraySnapshots(p.snapshots, bases) {
		p.remove(offset)
	}
	return nil
}

// clear drops the state and all snapshots (truncateFullyAndStartAt).
func (p *producers) clear(offset int64) {
	for _, o := range slices.Clone(p.snapshots) {
		p.remove(o)
	}
	p.state = format.NewProducerState(offset)
	p.snapEnd, p.mapEnd = 0, offset
}

// truncateAndReload drops snapshots outside of the log, and loads the newest of the others if the state is not that of
// the log's end.
func (p *producers) truncateAndReload(start, end int64) error {
	upTo := func(offset int64) int {
		return sort.Search(len(p.snapshots), func(i int) bool { return p.snapshots[i] > offset })
	}
	from, to := upTo(start), upTo(end)
	for _, offset := range slices.Concat(p.snapshots[:from], p.snapshots[max(from, to):]) {
		p.remove(offset)
	}
	if end == p.mapEnd {
		p.mapEnd = max(p.mapEnd, start)
		p.snapEnd = start
		if latest, ok := p.latest(); ok {
			p.snapEnd = latest
		}
		return nil
	}
	return p.load(start)
}

// load is loadFromSnapshot: the newest that can be read counts, those that cannot are deleted.
func (p *producers) load(start int64) error {
	for {
		latest, ok := p.latest()
		var newest state.ProducerSnapshots
		if ok {
			newest = state.ProducerSnapshots{{Offset: latest, Read: func() ([]byte, error) {
				return p.l.read(p.l.dir.named[latest])
			}}}
		}
		var failed error
		bad := false
		p.state, _ = newest.Begin(start, math.MaxInt64, p.l.opts.ExpiredMs,
			func(s state.ProducerSnapshot, err error, unread bool) {
				if bad = true; unread {
					failed = err
					return
				}
				p.remove(s.Offset)
			})
		if failed != nil || !bad {
			p.snapEnd, p.mapEnd = p.state.End(), p.state.End()
			return failed
		}
	}
}

// take writes a snapshot, unless one was taken at that offset (takeSnapshot).
func (p *producers) take() {
	if p.mapEnd <= p.snapEnd {
		return
	}
	raw := format.AppendProducerSnapshot(nil, p.state.Entries())
	name := format.SegmentFileName(p.mapEnd, format.KindProducerSnapshot)
	p.l.dir.create(name, raw, int64(len(raw)))
	if i, ok := slices.BinarySearch(p.snapshots, p.mapEnd); !ok {
		p.snapshots = slices.Insert(p.snapshots, i, p.mapEnd)
	}
	p.snapEnd = p.mapEnd
}

// rebuild is UnifiedLog.rebuildProducerState: the state up to an offset, from the newest snapshot and the batches
// after it.
func (p *producers) rebuild(segments []*segment, start, end int64, clean bool) error {
	snapshotAt := map[int64]bool{}
	var order []int64
	for i := max(0, len(segments)-2); i < len(segments); i++ {
		snapshotAt[segments[i].base] = true
		order = append(order, segments[i].base)
	}
	if _, ok := p.latest(); !ok && clean {
		for _, offset := range append(order, end) {
			p.mapEnd = offset
			p.take()
		}
		return nil
	}
	emptyBefore := p.state.Len() == 0 && p.mapEnd >= end
	if err := p.truncateAndReload(start, end); err != nil {
		return err
	}
	if end > p.mapEnd && !emptyBefore {
		for _, s := range between(segments, p.mapEnd, end) {
			p.mapEnd = max(s.base, p.mapEnd, start)
			if snapshotAt[s.base] {
				p.take()
			}
			if err := p.replay(s, end, s == floor(segments, end)); err != nil {
				return err
			}
		}
	}
	p.mapEnd = end
	p.take()
	return nil
}

// replay tells the state of the batches of a segment from mapEnd on; of the last one those before the end.
func (p *producers) replay(s *segment, end int64, last bool) error {
	size := s.log.size
	if last {
		pos, found, err := s.translate(end)
		if err != nil {
			return err
		}
		if found {
			size = pos
		}
	}
	pos, found, err := s.translate(p.mapEnd)
	if err != nil || !found {
		return err
	}
	if size < pos {
		return stops(s.log.name, "offset %d lies before offset %d in the log, and a broker cannot read between them",
			end,
			p.mapEnd)
	}
	return s.viewLog(func(log []byte) error {
		w := walker{s: s, log: log[:size], pos: pos}
		for w.next() {
			if w.batch.ProducerID < 0 || w.batch.Legacy() {
				continue
			}
			if _, err := p.state.Append(&w.batch, s.l.records()); err != nil {
				return err
			}
		}
		return w.err
	})
}

// firstOpen is the first offset of the earliest open transaction.
func (p *producers) firstOpen() (int64, bool) { return p.state.FirstOpen() }

// between are the segments from the one that holds the first offset on, up to an end (LogSegments.values).
func between(segments []*segment, from, end int64) []*segment {
	if from == end {
		return nil
	}
	first := RecoveredFrom(len(segments), func(i int) int64 { return segments[i].base }, from)
	last := first
	for last < len(segments) && segments[last].base < end {
		last++
	}
	return segments[first:last]
}

// RecoveredFrom is the first of n segments, by base offset, that a start after an unclean stop recovers: the one that
// holds the recovery point, or the first.
func RecoveredFrom(n int, base func(i int) int64, recoveryPoint int64) int {
	return max(0, sort.Search(n, func(i int) bool { return base(i) > recoveryPoint })-1)
}

// floor is the segment with the greatest base offset at or below the offset, nil if there is none.
func floor(segments []*segment, offset int64) *segment {
	var found *segment
	for _, s := range segments {
		if s.base <= offset {
			found = s
		}
	}
	return found
}

// offsetOf is LogFileUtils.offsetFromFile: what stands before the first dot.
func offsetOf(name string) (int64, error) {
	digits, _, ok := strings.Cut(name, ".")
	if offset, err := strconv.ParseInt(digits, 10, 64); ok && err == nil {
		return offset, nil
	}
	return 0, &Failure{Place: name, Err: errors.New("the name does not begin with an offset")}
}
