package broker

import (
	"errors"
	"math"

	"kseg/format"
)

// index is an .index or a .timeindex as a broker opens it (AbstractIndex): all whole slots of a file that is there are
// entries.
type index struct {
	f       *file
	width   int64
	most    int64 // bytes: segment.index.bytes
	entries int64
}

// Bytes of an entry.
const (
	offsetWidth = 8
	timeWidth   = 12
)

// room is the size of an index file with room for size bytes.
func (x *index) room(size int64) int64 { return size / x.width * x.width }

// resize gives the file the size; Kafka's buffer fails if the entries do not fit.
func (x *index) resize(size int64) error {
	size = x.room(size)
	if size == x.f.size {
		return nil
	}
	if x.entries*x.width > size {
		return stops(x.f.name, "the index has %d bytes, more than segment.index.bytes, %d", x.entries*x.width, size)
	}
	if size < x.f.size {
		x.f.truncate(size)
	}
	x.f.size = size
	return nil
}

// reset empties the index, and makes room for new entries. What was in the file stays there until it is written over.
func (x *index) reset() error {
	x.entries = 0
	return x.resize(x.most)
}

// begin makes these the first entries of the file; what is behind them stays.
func (x *index) begin(raw []byte) error {
	old, err := x.f.written()
	if err != nil {
		return &unreadable{err}
	}
	x.entries = int64(len(raw)) / x.width
	size := max(x.f.size, int64(len(raw)))
	if len(raw) < len(old) {
		raw = append(raw[:len(raw):len(raw)], old[len(raw):]...)
	}
	x.f.rewrite(raw, size)
	return nil
}

// trim makes these all that is in the file.
func (x *index) trim(raw []byte) {
	x.entries = int64(len(raw)) / x.width
	x.f.rewrite(raw, int64(len(raw)))
}

// segment is one segment as a broker opens it (LogSegment).
type segment struct {
	l    *loader
	base int64
	log  *file
	// Opened when they are first used (LazyIndex).
	offsets, times *index

	recovered bool
	// end is what readNextOffset gave last, so that it is not read again while nothing changes.
	end *int64
}

// open is LogSegment.open: the file is made if there is none of that name.
func (l *loader) open(base int64, suffix string) (*segment, error) {
	name := format.SegmentFileName(base, format.KindLog) + suffix
	l.opens(name)
	l.opens(format.SegmentFileName(base, format.KindTxnIndex) + suffix)
	f := l.dir.files[name]
	if f == nil {
		f = l.dir.create(name, nil, 0)
	}
	if f.size > math.MaxInt32 {
		return nil, stops(name, "the segment has %d bytes; a broker opens none of more than 2^31-1", f.size)
	}
	return &segment{l: l, base: base, log: f}, nil
}

// suffix is what the names of the segment's files end in, after their type.
func (s *segment) suffix() string {
	return s.log.name[len(format.SegmentFileName(s.base, format.KindLog)):]
}

// fileName is the name of the segment's file of a kind.
func (s *segment) fileName(kind format.Kind) string {
	return format.SegmentFileName(s.base, kind) + s.suffix()
}

// offsetIndex opens the offset index; one that is missing is made.
func (s *segment) offsetIndex() *index {
	if s.offsets == nil {
		s.offsets = s.openIndex(format.KindOffsetIndex, offsetWidth)
	}
	return s.offsets
}

func (s *segment) timeIndex() *index {
	if s.times == nil {
		s.times = s.openIndex(format.KindTimeIndex, timeWidth)
	}
	return s.times
}

func (s *segment) openIndex(kind format.Kind, width int64) *index {
	x := &index{width: width, most: s.l.opts.IndexBytes}
	name := s.fileName(kind)
	s.l.opens(name)
	if x.f = s.l.dir.files[name]; x.f == nil {
		x.f = s.l.dir.create(name, nil, x.room(x.most))
		return x
	}
	x.entries = x.f.size / width
	return x
}

// resetIndexes empties both, one after the other.
func (s *segment) resetIndexes() error {
	if err := s.offsetIndex().reset(); err != nil {
		return err
	}
	return s.timeIndex().reset()
}

// viewIndex calls fn with the entries of the offset index.
func (s *segment) viewIndex(fn func(format.OffsetIndex) error) error {
	x := s.offsetIndex()
	return s.l.view(x.f, x.entries*x.width, func(b []byte) error { return fn(format.NewOffsetIndex(b, s.base)) })
}

// lastIndexed is OffsetIndex.lastOffset.
func (s *segment) lastIndexed() (last int64, err error) {
	err = s.viewIndex(func(x format.OffsetIndex) error {
		last = s.base
		if n := x.Len(); n > 0 {
			last = x.Entry(n - 1).Offset
		}
		return nil
	})
	return last, err
}

// viewLog calls fn with the segment's bytes.
func (s *segment) viewLog(fn func(log []byte) error) error { return s.l.view(s.log, s.log.size, fn) }

// translate is translateOffset: where the first batch begins that has the offset or a later one; false if there is
// none. An error is a corrupt, or that something could not be read.
func (s *segment) translate(offset int64) (pos int64, found bool, err error) {
	var from int64
	err = s.viewIndex(func(x format.OffsetIndex) error {
		from = max(0, int64(x.Lookup(offset).Position))
		return nil
	})
	if err != nil {
		return 0, false, err
	}
	err = s.viewLog(func(log []byte) error {
		pos, found, err = s.search(log, from, offset)
		return err
	})
	return pos, found, err
}

// search is FileRecords.searchForOffsetFromPosition.
func (s *segment) search(log []byte, from, offset int64) (int64, bool, error) {
	var prev *format.Batch
	w := walker{s: s, log: log, pos: from}
	for w.next() {
		base, err := w.baseOffset()
		if err != nil {
			return 0, false, err
		}
		if base >= offset {
			if base > offset && prev != nil && prev.LastOffset >= offset {
				return prev.Pos, true, nil
			}
			return w.batch.Pos, true, nil
		}
		last := w.batch
		prev = &last
	}
	if w.err == nil && prev != nil && prev.LastOffset >= offset {
		return prev.Pos, true, nil
	}
	return 0, false, w.err
}

// walker goes through batches as FileLogInputStream does: by their lengths alone.
type walker struct {
	s     *segment
	log   []byte
	pos   int64
	batch format.Batch
	err   error // a corrupt
}

func (w *walker) next() bool {
	if w.pos > int64(len(w.log)) {
		return false
	}
	err := w.batch.Decode(w.log, w.pos)
	if err != nil {
		if !errors.Is(err, format.ErrTruncated) {
			w.err = &corrupt{err}
		}
		return false
	}
	w.pos = w.batch.End()
	w.s.l.count(format.BatchHeaderSize)
	return true
}

// baseOffset is that of the batch; of a compressed message of the old formats it is that of the first inner one, for
// which all of it is read.
func (w *walker) baseOffset() (int64, error) {
	b := &w.batch
	if !b.Legacy() || b.Codec() == format.CodecNone {
		return b.BaseOffset, nil
	}
	first, err := w.s.l.records().FirstOffset(b)
	if err != nil {
		return 0, &corrupt{err}
	}
	return first, nil
}

// nextOffset is readNextOffset: the offset after the last batch from the last index entry on, or the base offset if
// reading from there leads nowhere.
func (s *segment) nextOffset() (int64, error) {
	if s.end != nil {
		return *s.end, nil
	}
	last, err := s.lastIndexed()
	if err != nil {
		return 0, err
	}
	pos, found, err := s.translate(last)
	if err != nil {
		return 0, err
	}
	next := s.base
	if found {
		err = s.viewLog(func(log []byte) error {
			w := walker{s: s, log: log, pos: pos}
			for w.next() {
				next = w.batch.NextOffset()
			}
			return w.err
		})
	}
	if err == nil {
		s.end = &next
	}
	return next, err
}

// changed forgets what was read.
func (s *segment) changed() { s.end = nil }
