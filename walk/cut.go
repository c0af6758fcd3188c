package walk

import (
	"errors"
	"slices"

	"kseg/format"
	"kseg/logdir"
)

const (
	usualRun = 448 << 10
	// mostCopied is how many bytes of a run are copied at most. Batches that reach beyond are used where they are mapped.
	mostCopied = 1<<20 + 64<<10
)

// cutter cuts one log into stretches.
type cutter struct {
	log   *Log
	data  []byte
	trust format.Trust
	scan  *format.Scanner
	ended bool // nothing comes any more
}

func newCutter(log *Log, data []byte, trust format.Trust) *cutter {
	c := &cutter{log: log, data: data, trust: trust, scan: format.NewScanner(data, log.From, log.Base)}
	c.scan.Trust(trust)
	c.scan.Zeros(log.File.DataEnd())
	return c
}

// reset makes s ready for another stretch of the log.
func (s *Stretch) reset(log *Log, data []byte) {
	*s = Stretch{Log: log, Data: data, Batches: s.Batches[:0], Holes: s.Holes[:0], buf: s.buf[:0]}
}

// load reads the bytes between two positions into a buffer of its own.
func (s *Stretch) load(from, to int64) {
	s.at, s.buf, s.bad = from, s.buf[:0], nil
	s.extend(to)
}

// extend reads on to the byte to, and reports whether that is there now. What keeps it from that is s.bad; without an
// error the mapping serves.
func (s *Stretch) extend(to int64) bool {
	have := s.at + int64(len(s.buf))
	switch to = min(to, int64(len(s.Data))); {
	case to <= have:
		return true
	case s.bad != nil || to-s.at > mostCopied:
		return false
	}
	s.buf = slices.Grow(s.buf, int(to-have))
	if err := s.Log.File.Read(s.buf[len(s.buf):to-s.at], have); errors.As(err, &s.bad) {
		to = s.bad.Pos
	}
	s.buf = s.buf[:to-s.at]
	return s.bad == nil
}

// fill puts the batches and holes that begin before until into s. Of the last stretch until is the largest number: only
// beyond the end of the file can a scanner tell whether the last batch is to be believed.
func (c *cutter) fill(s *Stretch, until int64) {
	s.From = c.scan.Pos()
	for !c.ended && c.scan.Pos() < until {
		err := logdir.Guard(c.log.File.Display, func() error { return c.cut(s, until) })
		var fault *logdir.FaultError
		if errors.As(err, &fault) && !errors.Is(err, logdir.ErrVanished) {
			c.unreadable(s, fault)
		} else if err != nil {
			s.Err, c.ended = err, true
		}
	}
	s.From = min(s.From, c.scan.Pos()) // a hole may have led back
	s.To = c.scan.Pos()
}

// cut is fill up to the first byte that cannot be read.
func (c *cutter) cut(s *Stretch, until int64) error {
	for c.scan.Pos() < until {
		s.Batches = slices.Grow(s.Batches, 1)
		b := &s.Batches[:len(s.Batches)+1][len(s.Batches)]
		copied, err := c.copied(s, b)
		switch {
		case err != nil:
			return err
		case copied:
		case !c.scan.Next():
			c.ended = true
			return nil
		case c.scan.Hole() != nil:
			if !c.hole(s, *c.scan.Hole()) {
				return nil
			}
			continue
		default:
			if *b = *c.scan.Batch(); b.Size() > usualRun {
				c.log.File.Prepare(b.Raw)
			}
		}
		if c.stops(b, nil) {
			return nil
		}
		s.Batches = s.Batches[:len(s.Batches)+1]
	}
	return nil
}

// copied reads the next batch into b if that is a plain one in the stretch's buffer, into which it is read if need be.
// The error is for bytes of it that cannot be read.
func (c *cutter) copied(s *Stretch, b *format.Batch) (bool, error) {
	if c.scan.NextIn(s.buf, s.at, b) {
		return true, nil
	}
	pos, size := c.scan.Pos(), int64(len(c.data))
	if pos < s.at || pos > s.at+int64(len(s.buf)) {
		return false, nil
	}
	end := min(pos+format.BatchHeaderSize, size)
	if s.extend(end) {
		length, err := format.EntrySizeOf(s.buf[pos-s.at:], pos, size-pos)
		if err != nil || pos+length <= s.at+int64(len(s.buf)) {
			return false, nil
		}
		end = pos + length
		if s.extend(end) {
			return c.scan.NextIn(s.buf, s.at, b), nil
		}
	}
	if s.bad != nil && end > s.bad.Pos {
		return false, s.bad
	}
	return false, nil
}

// hole adds a hole, unless the log ends before it.
func (c *cutter) hole(s *Stretch, h format.Hole) bool {
	if c.stops(nil, &h) {
		return false
	}
	s.Holes = append(s.Holes, Hole{h, len(s.Batches)})
	return true
}

// stops reports whether the log ends before a batch or hole.
func (c *cutter) stops(b *format.Batch, h *format.Hole) bool {
	if c.log.Stop != nil && c.log.Stop(b, h) {
		c.ended = true
	}
	return c.ended
}

// unreadable takes the bytes around a fault for a hole, up to the next intact batch.
func (c *cutter) unreadable(s *Stretch, fault *logdir.FaultError) {
	size, from := int64(len(c.data)), c.scan.Pos()
	h := format.Hole{Kind: format.Unreadable, Pos: from, Stop: from, Len: size - from, Next: -1, NextOffset: -1,
		Expected: c.scan.Expected(), Err: fault}
	for next := c.readable(fault.Pos); h.Next < 0; next = c.readable(fault.Pos) {
		err := logdir.Guard(c.log.File.Display, func() error {
			if b, ok := c.scan.Resync(next); ok {
				h.Next, h.NextOffset, h.Len = b.Pos, b.BaseOffset, b.Pos-from
			}
			return nil
		})
		if !errors.As(err, &fault) {
			break
		}
	}
	if c.hole(s, h); h.Next < 0 {
		c.ended = true
		c.scan.Stop()
	}
	s.buf = nil // the batches before lie in it
	s.load(c.scan.Pos(), c.scan.Pos()+int64(usualRun))
}

// readable is the first byte after an unreadable one that can be read, or the file's length. The steps grow, so that a
// large unreadable part of a disk, each access to which may take seconds, is not tried page by page.
func (c *cutter) readable(pos int64) int64 {
	var one [1]byte
	size := int64(len(c.data))
	const page = 4096
	for step := int64(page); ; step = min(2*step, 1<<20) {
		if pos = (pos/page)*page + step; pos >= size {
			return size
		}
		if c.log.File.Read(one[:], pos) == nil {
			return pos
		}
	}
}
