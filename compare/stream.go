package compare

import (
	"context"
	"fmt"

	"kseg/format"
	"kseg/logdir"
)

// chunkBytes is about how many bytes of a log are read at once.
const chunkBytes = 512 << 10

// chunk is what comes next in a log: sound batches, or that some bytes are none. It is valid until the next one is asked for.
type chunk struct {
	log     *logdir.File
	batches []format.Batch // in memory of our own
	// damaged: bytes here are no sound batch. Bytes behind the last batch that a killed broker leaves are not damage.
	damaged bool
	pos     int64 // of the damage
	err     error // the rest of the segment could not be read
}

// chunks yields the logs of segments, one after the other.
func chunks(ctx context.Context, segments []*logdir.Segment, progress func(int64)) func(yield func(chunk) bool) {
	return func(yield func(chunk) bool) {
		var buf []byte
		for _, seg := range segments {
			s := &chunkReader{ctx: ctx, progress: progress, seg: seg, buf: buf, yield: yield}
			err := seg.Log.View(s.read)
			if buf = s.buf; err != nil && !s.stopped {
				s.stopped = !yield(chunk{log: seg.Log, err: err})
			}
			if s.stopped {
				return
			}
		}
	}
}

// chunkReader reads one segment.
type chunkReader struct {
	ctx      context.Context
	progress func(int64)
	seg      *logdir.Segment
	scanner  *format.Scanner
	buf      []byte
	batches  []format.Batch
	yield    func(chunk) bool
	stopped  bool // nobody wants more
}

func (s *chunkReader) read(data []byte) error {
	s.scanner = format.NewScanner(data, 0, s.seg.Base)
	done := int64(0)
	for !s.stopped {
		if at := min(s.scanner.Pos(), int64(len(data))); s.progress != nil && at > done {
			s.progress(at - done)
			done = at
		}
		if err := s.ctx.Err(); err != nil {
			return err
		}
		more, err := s.window(int64(len(data)))
		if err != nil {
			return err
		}
		if more {
			continue
		}
		if !s.scanner.Next() {
			return nil
		}
		s.single()
	}
	return nil
}

func (s *chunkReader) give(c chunk) {
	c.log = s.seg.Log
	s.stopped = s.stopped || !s.yield(c)
}

// window takes the plain batches of the next window. It is false if there is none.
func (s *chunkReader) window(size int64) (bool, error) {
	at := s.scanner.Pos()
	n := min(chunkBytes, size-at)
	if n <= 0 {
		return false, nil
	}
	if int64(len(s.buf)) < n {
		s.buf = make([]byte, n)
	}
	if err := s.seg.Log.Read(s.buf[:n], at); err != nil {
		return false, err
	}
	s.batches = s.batches[:0]
	for b := (format.Batch{}); s.scanner.NextIn(s.buf[:n], at, &b); {
		if !b.Valid() {
			s.flush()
			s.give(chunk{damaged: true, pos: b.Pos})
			return true, nil
		}
		s.batches = append(s.batches, b)
	}
	return s.flush(), nil
}

func (s *chunkReader) flush() bool {
	if len(s.batches) == 0 {
		return false
	}
	s.give(chunk{batches: s.batches})
	s.batches = s.batches[:0]
	return true
}

// single takes what the scanner stands at: what is no plain batch, or one larger than a window.
func (s *chunkReader) single() {
	if h := s.scanner.Hole(); h != nil {
		tail := s.seg.Next == nil && h.Next < 0 && h.Kind != format.Damage
		s.give(chunk{damaged: !tail, pos: h.Pos})
		return
	}
	b := *s.scanner.Batch()
	if !b.Plausible() || !b.Valid() {
		s.give(chunk{damaged: true, pos: b.Pos})
		return
	}
	if int64(len(s.buf)) < b.Size() {
		s.buf = make([]byte, b.Size())
	}
	b.Raw = s.buf[:copy(s.buf, b.Raw)]
	s.batches = append(s.batches[:0], b)
	s.flush()
}

// tooLarge is the sentence about a batch that is not decompressed.
func tooLarge(log *logdir.File, b *format.Batch, err error) error {
	return fmt.Errorf("%s: the batch at byte %d is not compared: %w; raise --max-batch-bytes", log.Display, b.Pos, err)
}
