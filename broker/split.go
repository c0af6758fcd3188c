package broker

import (
	"fmt"
	"math"
	"slices"

	"kseg/format"
)

// split is LocalLog.splitOverflowedSegment: the segment's batches go into new segments whose offsets fit their indexes.
func (l *loader) split(over *overflow) error {
	s := over.seg
	next, err := s.nextOffset()
	if err != nil {
		return l.located(s, err)
	}
	if next <= s.base || fits(s.base, next-1) {
		return stops(s.log.name, "%w; a broker splits only a segment that ends in such an offset", over.err)
	}
	pieces, err := l.pieces(s)
	if err != nil {
		return err
	}
	for i, p := range pieces {
		if slices.ContainsFunc(pieces[:i], func(q *piece) bool { return q.base == p.base }) {
			return &Failure{Offline: true, Place: s.log.name, Err: fmt.Errorf("%w; a broker makes the segment %d of it twice, "+
				"and fails to rename the second", over.err, p.base)}
		}
	}
	l.replace(s, pieces)
	return nil
}

// fits is canConvertToRelativeOffset.
func fits(base, offset int64) bool { return offset-base >= 0 && offset-base <= math.MaxInt32 }

// piece is one of the new segments.
type piece struct {
	base, from, to int64 // the bytes of the old log
	index          *format.IndexBuilder
}

// pieces cuts a log where an offset does not fit any more.
func (l *loader) pieces(s *segment) ([]*piece, error) {
	var all []*piece
	err := s.viewLog(func(log []byte) error {
		w := walker{s: s, log: log}
		for w.next() {
			b := &w.batch
			if n := len(all); n == 0 || !fits(all[n-1].base, b.LastOffset) {
				base, err := w.baseOffset()
				if err != nil {
					return err
				}
				if !fits(base, b.LastOffset) {
					return stops(s.log.name, "a batch goes from offset %d to %d, which no segment can hold", base, b.LastOffset)
				}
				all = append(all, &piece{base: base, from: b.Pos, index: format.NewIndexBuilder(base, l.opts.Interval)})
			}
			p := all[len(all)-1]
			ref := b.Ref()
			ref.Pos -= p.from
			if err := p.index.Add(ref); err != nil {
				return stops(s.log.name, "%w", err)
			}
			p.to = b.End()
		}
		if w.err == nil && w.pos < int64(len(log)) {
			return stops(s.log.name, "%d bytes after the last batch cannot be put into a new segment", int64(len(log))-w.pos)
		}
		return w.err
	})
	return all, l.located(s, err)
}

// replace puts the new segments in the place of the old one (replaceSegments). One that was not loaded yet is not
// removed, only written over by a piece of the same name.
func (l *loader) replace(old *segment, pieces []*piece) {
	log := old.log
	if slices.Contains(l.segments, old) {
		l.renameSegment(old, "", deletedSuffix)
		l.drop(old.base)
	}
	kept := false
	for _, p := range pieces {
		_ = p.index.Finish() // the largest timestamp is never that of an earlier batch than the last entry's
		name := format.SegmentFileName(p.base, format.KindLog)
		l.dir.files[name] = &file{name: name, src: log.src, from: log.from + p.from, have: p.to - p.from, size: p.to - p.from}
		offsets, times := p.index.OffsetIndexBytes(), p.index.TimeIndexBytes()
		l.dir.create(format.SegmentFileName(p.base, format.KindOffsetIndex), offsets, int64(len(offsets)))
		l.dir.create(format.SegmentFileName(p.base, format.KindTimeIndex), times, int64(len(times)))
		l.add(&segment{l: l, base: p.base, log: l.dir.files[name]})
		kept = kept || p.base == old.base
	}
	if !kept {
		l.removeSnapshot(old.base)
	}
}
