package broker

import (
	"errors"
	"strconv"
	"strings"

	"kseg/format"
	"kseg/state"
)

const snapshotSuffix = ".snapshot"

// newProducers lists the snapshots. A file of that type whose name is no offset keeps the log from being loaded.
func (l *loader) newProducers() (*state.ProducerManager, error) {
	m := state.NewProducerManager(nil, l.records())
	m.ExpiredMs = l.opts.ExpiredMs
	m.Written = func(offset int64, raw []byte) {
		name := format.SegmentFileName(offset, format.KindProducerSnapshot)
		if barred := l.dir.bars(name); barred != nil {
			l.unwritten = barred
			return
		}
		l.dir.create(name, raw, int64(len(raw)))
	}
	m.Dropped = func(s state.ProducerSnapshot, why error, unread bool) error {
		if unread {
			return why
		}
		if name, ok := l.dir.named[s.Offset]; ok {
			l.dir.remove(name)
		}
		return nil
	}
	return m, l.list(m)
}

// list has a manager know the snapshots that are there. It shares the list, so that recovering a segment does not cost
// a copy of it.
func (l *loader) list(m *state.ProducerManager) error {
	if l.dir.badSnapshot != "" {
		_, err := offsetOf(l.dir.badSnapshot)
		return err
	}
	m.Snapshots = l.dir.snapshots
	return nil
}

// producerLog are segments as producers are replayed from them.
func producerLog(segments []*segment) state.ProducerLog {
	log := state.ProducerLog{Len: len(segments), Base: func(i int) int64 { return segments[i].base }}
	log.Replay = func(i int, from, end int64, fn func(*format.Batch) error) error {
		return segments[i].replay(from, end, i == log.Floor(end), fn)
	}
	return log
}

// replay goes through the batches of a segment as UnifiedLog.rebuildProducerState reads them, by their lengths alone;
// of the last one up to the end.
func (s *segment) replay(from, end int64, last bool, fn func(*format.Batch) error) error {
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
	pos, found, err := s.translate(from)
	if err != nil || !found {
		return err
	}
	if size < pos {
		return stops(s.log.name, "offset %d is before offset %d in the log, and a broker cannot read between them",
			end, from)
	}
	return s.viewLog(func(log []byte) error {
		w := walker{s: s, log: log[:size], pos: pos}
		for w.next() {
			if err := fn(&w.batch); err != nil {
				return err
			}
		}
		return w.err
	})
}

// between are the segments from the one that holds the first offset on, up to an end (LogSegments.values).
func between(segments []*segment, from, end int64) []*segment {
	if from == end {
		return nil
	}
	log := producerLog(segments)
	first := log.Floor(from)
	last := first
	for last < len(segments) && segments[last].base < end {
		last++
	}
	return segments[first:last]
}

// floor is the segment with the greatest base offset at or below the offset, nil if there is none.
func floor(segments []*segment, offset int64) *segment {
	log := producerLog(segments)
	if i := log.Floor(offset); i < len(segments) && segments[i].base <= offset {
		return segments[i]
	}
	return nil
}

// offsetOf is LogFileUtils.offsetFromFile: what stands before the first dot.
func offsetOf(name string) (int64, error) {
	digits, _, ok := strings.Cut(name, ".")
	if offset, err := strconv.ParseInt(digits, 10, 64); ok && err == nil {
		return offset, nil
	}
	return 0, &Failure{Place: name, Err: errors.New("the name does not begin with an offset")}
}
