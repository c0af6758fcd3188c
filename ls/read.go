package ls

import (
	"context"
	"encoding/binary"

	"kseg/format"
	"kseg/logdir"
)

// reader is what a worker reads segments with.
type reader struct {
	ctx     context.Context
	records *format.RecordReader
	buf     []byte
	counter *counter // nil unless all headers are asked for
	packer  *packer  // nil until something is to be compressed anew
}

// wholeLog is the size up to which a log is read whole, which costs one call of the system; of a larger one the first
// header and the last are looked at.
const wholeLog = 256 << 10

// segment finds out about one segment. Problems are what could not be read.
func (r *reader) segment(s *Segment, seg *logdir.Segment, each bool) []logdir.Problem {
	var problems []logdir.Problem
	note := func(f *logdir.File, err error) {
		if err != nil && f.Irregular() == nil { // that has been said of those that are none
			problems = append(problems, logdir.Problem{Display: f.Display, Err: err})
		}
	}
	offsets, err := r.index(seg.Index, format.KindOffsetIndex, seg, s)
	note(seg.Index, err)
	times, err := r.index(seg.TimeIndex, format.KindTimeIndex, seg, s)
	note(seg.TimeIndex, err)
	s.Slack = offsets.slack + times.slack
	if seg.Index != nil {
		s.Entries = Some(offsets.entries)
	}
	switch {
	case s.Size <= wholeLog:
		err = r.whole(s, seg.Log)
	case r.counter != nil:
		err = r.headers(s, seg.Log)
	default:
		err = r.ends(s, seg, offsets, each)
		if err == nil && !s.Active && !times.lastMs.OK {
			times, err = r.lastSlot(seg.TimeIndex, times)
		}
		s.LastMs = s.LastMs.most(times.lastMs)
	}
	note(seg.Log, err)
	if err != nil {
		s.unread(seg)
	}
	return problems
}

// unread says of a log that could not be read what its name and the next segment's tell.
func (s *Segment) unread(seg *logdir.Segment) {
	s.Unread = true
	if seg.Next != nil {
		s.FirstOffset, s.LastOffset = Some(seg.Base), Some(seg.Next.Base-1)
		s.Records, s.Estimated = max(seg.Next.Base-seg.Base, 0), true
	}
}

// written is data without the zeros after the last batch, where these are a hole: a preallocated log may be one of
// gigabytes.
func written(log *logdir.File, data []byte) ([]byte, error) {
	if log.Allocated >= log.Size {
		return data, nil
	}
	end := int64(0)
	err := log.Peek(func(p logdir.Peek) (err error) {
		end, err = p.DataEnd()
		return err
	})
	// The last batch may end in zeros itself, so its header counts.
	pos := int64(0)
	for pos < end {
		size, err := format.EntrySize(data, pos)
		if err != nil {
			return data[:end], nil
		}
		pos += size
	}
	return data[:min(pos, int64(len(data)))], err
}

// whole reads a log into memory and all its headers.
func (r *reader) whole(s *Segment, log *logdir.File) error {
	var data []byte
	err := log.Peek(func(p logdir.Peek) (err error) {
		if r.buf == nil {
			r.buf = make([]byte, wholeLog)
		}
		data, err = p.Read(r.buf[:min(p.Size, wholeLog)], 0)
		return err
	})
	if err != nil {
		return err
	}
	return r.scan(s, data)
}

// scan counts all batches of a log.
func (r *reader) scan(s *Segment, data []byte) error {
	s.Batches = Some(0)
	sc := format.NewScanner(data, 0, s.Base)
	for sc.Next() {
		if b := sc.Batch(); b != nil {
			r.batch(s, b)
		}
	}
	return r.ctx.Err()
}

// batch counts one batch.
func (r *reader) batch(s *Segment, b *format.Batch) {
	first, n := b.BaseOffset, int64(b.Count)
	if b.Count < 0 {
		first, n = r.wrapper(b)
	}
	s.Batches.N++
	s.Records += n
	s.FirstOffset, s.LastOffset = s.FirstOffset.least(Some(first)), s.LastOffset.most(Some(b.LastOffset))
	r.times(s, b)
	if r.counter != nil {
		r.counter.batch(b, n)
	}
}

// times widens the range of times by a batch's.
func (r *reader) times(s *Segment, b *format.Batch) {
	if b.MaxTimestamp >= 0 {
		s.LastMs = s.LastMs.most(Some(b.MaxTimestamp))
	}
	if s.FirstMs.OK {
		return
	}
	if ms, ok := r.records.FirstTimestamp(b); ok && ms >= 0 {
		s.FirstMs = Some(ms)
	}
}

// wrapper counts the messages in a compressed batch of the old formats, whose header does not say.
func (r *reader) wrapper(b *format.Batch) (first, n int64) {
	var rec format.Record
	first = b.BaseOffset
	for r.records.Reset(b); r.records.Next(&rec); n++ {
		if n == 0 {
			first = rec.Offset
		}
	}
	return first, n
}

// ends reads the first batch of a large log, and the last if nothing else tells where the log ends.
func (r *reader) ends(s *Segment, seg *logdir.Segment, index slots, each bool) error {
	return seg.Log.View(func(data []byte) error {
		data, err := written(seg.Log, data)
		if err != nil {
			return err
		}
		b, err := format.DecodeBatch(data, 0)
		if err != nil || !b.Plausible() {
			return r.scan(s, data) // damage at the start, or nothing but zeros: what can be read is found
		}
		if first := b.BaseOffset; b.Count < 0 {
			first, _ = r.wrapper(&b)
			s.FirstOffset = Some(first)
		} else {
			s.FirstOffset = Some(first)
		}
		r.times(s, &b)
		s.Estimated = true
		if seg.Next != nil && !each {
			s.LastOffset = Some(seg.Next.Base - 1)
		} else {
			last := r.last(data, seg.Base, index)
			s.LastOffset = Some(last.LastOffset)
			if last.MaxTimestamp >= 0 {
				s.LastMs = s.LastMs.most(Some(last.MaxTimestamp))
			}
		}
		s.Records = max(s.LastOffset.N-s.FirstOffset.N+1, 0)
		return nil
	})
}

// last is the last batch of a log that follows the others without a gap in the bytes; the first is known to be sound.
func (r *reader) last(data []byte, base int64, index slots) format.Batch {
	pos := int64(0)
	if index.last != nil {
		e := format.NewOffsetIndex(index.last, base).Entry(0)
		// As brokers write it an entry has the last offset of the batch at its position.
		if b, err := format.DecodeBatch(data, int64(max(e.Position, 0))); err == nil && b.Plausible() &&
			b.LastOffset == e.Offset {
			pos = b.Pos
		}
	}
	var last format.Batch
	for {
		b, err := format.DecodeBatch(data, pos)
		if err != nil || !b.Plausible() || r.ctx.Err() != nil {
			return last
		}
		last, pos = b, b.End()
	}
}

// slots is what the size of an index tells, and its last entry where it was read.
type slots struct {
	width   int64
	entries int64
	slack   int64
	last    []byte
	lastMs  Maybe // of a time index
}

// sparseFrom is the size from which an index without any block on disk has no entry: small files may lie in an inode.
const sparseFrom = 64 << 10

// index tells how many entries an index has. It is read only if it may end in slots without entries, as that of a
// segment which a broker opened does: if the segment is the last, or the file is larger than the log can account for,
// or has holes.
func (r *reader) index(f *logdir.File, kind format.Kind, seg *logdir.Segment, s *Segment) (slots, error) {
	x := slots{width: 8}
	if kind == format.KindTimeIndex {
		x.width = 12
	}
	if f == nil || f.Irregular() != nil {
		return x, nil
	}
	x.entries = f.Size / x.width
	const smallestBatch = format.LogOverhead + format.MinEntrySize
	most := (seg.Log.Size/smallestBatch + 1) * x.width
	switch sparse := f.Allocated < f.Size; {
	case f.Size == 0 || !s.Active && !sparse && f.Size <= most:
		return x, nil
	case f.Allocated == 0 && f.Size >= sparseFrom:
		x.entries, x.slack = 0, f.Size/x.width*x.width
		return x, nil
	}
	err := f.Peek(func(p logdir.Peek) error {
		end, err := p.DataEnd()
		if err != nil {
			return err
		}
		room := p.Size / x.width
		x.entries = min((end+x.width-1)/x.width, room)
		x.slack = (room - x.entries) * x.width
		return x.readLast(p)
	})
	return x, err
}

// readLast reads the last entry.
func (x *slots) readLast(p logdir.Peek) error {
	if x.entries == 0 {
		return nil
	}
	entry, err := p.Read(make([]byte, x.width), (x.entries-1)*x.width)
	if err != nil || int64(len(entry)) < x.width {
		return err
	}
	x.last = entry
	if ms := int64(binary.BigEndian.Uint64(entry)); x.width == 12 && ms >= 0 {
		x.lastMs = Some(ms)
	}
	return nil
}

// lastSlot reads the last entry of a time index that index left unread.
func (r *reader) lastSlot(f *logdir.File, x slots) (slots, error) {
	if f == nil || f.Irregular() != nil || x.entries == 0 {
		return x, nil
	}
	err := f.Peek(x.readLast)
	return x, err
}
