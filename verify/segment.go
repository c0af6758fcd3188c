package verify

import (
	"encoding/binary"
	"errors"
	"math"

	"kseg/format"
	"kseg/logdir"
)

// segment is what a pass learns of one segment.
type segment struct {
	part *partition
	dir  *logdir.Segment
	log  *logdir.File
	base int64
	last bool // no segment of the partition comes after it

	// The bytes of the indexes, between begin and end of a follower; nil where there is no file or it could not be read.
	index, timeIndex, txnIndex []byte

	batches, records int64
	firstOffset      int64 // of the first batch, -1 if there is none
	nextOffset       int64 // behind the last batch that can be trusted; base if there is none
	maxTimestamp     int64
	size             int64 // bytes that were looked at
	cuts             *cuts // where its runs begin, if several goroutines look at them
	legacyOnly       bool  // all batches are of magic 0
	tail             *format.Hole
	tailFinding      *Finding
	reached          int64 // the last offset that an index shows to have been there
	damaged          bool  // some bytes could not be read as batches
	unread           bool  // the file could not be read to its end
	cut              bool  // an index shows that the log once went on behind its end
	witnesses        []Place
}

// growing reports whether the log has become longer than what was read of it: then a broker writes to it, and that it ends
// in the middle of a batch, or before its index does, is the reader's haste.
func (s *segment) growing(read int64) bool {
	now, err := s.log.SizeNow()
	return s.last && err == nil && now > read
}

func (s *segment) closed() bool { return !s.last }

// place is a stretch of the segment's log.
func (s *segment) place(pos, length, first, last int64) Place {
	return Place{File: s.log.Rel, Pos: pos, Len: length, FirstOffset: first, LastOffset: last}
}

// views opens several files at once and calls fn with their bytes, nil for those that are not there or cannot be read;
// the latter are given to failed.
func views(files []*logdir.File, failed func(*logdir.File, error), fn func([][]byte) error) error {
	bytes := make([][]byte, len(files))
	var open func(i int) error
	open = func(i int) error {
		if i == len(files) {
			return fn(bytes)
		}
		if files[i] == nil {
			return open(i + 1)
		}
		called := false
		err := files[i].View(func(b []byte) error {
			called, bytes[i] = true, b
			return open(i + 1)
		})
		if !called && err != nil {
			failed(files[i], err)
			return open(i + 1)
		}
		return err
	}
	return open(0)
}

// walk goes through one segment in order: the runs of the workers as long as all is well, and slowly, hole by hole, where
// it is not.
func (p *partition) walk(seg *segment, src source) error {
	// A broker writes to the log first: indexes that are looked for after it know all that is in it, or more.
	return seg.log.View(func(data []byte) error {
		seg.findIndexes()
		return views([]*logdir.File{seg.dir.Index, seg.dir.TimeIndex, seg.dir.TxnIndex}, p.unread, func(b [][]byte) error {
			seg.index, seg.timeIndex, seg.txnIndex = b[0], b[1], b[2]
			defer func() { seg.index, seg.timeIndex, seg.txnIndex = nil, nil, nil }()
			for _, f := range p.followers {
				f.begin(seg)
			}
			if err := p.walkRuns(seg, data, src); err != nil {
				return err
			}
			for _, f := range p.followers {
				f.end(seg)
			}
			return nil
		})
	})
}

// findIndexes looks once more for those that were not there when the directory was listed.
func (s *segment) findIndexes() {
	s.dir.Index, s.dir.TimeIndex = s.log.SiblingNow(format.KindOffsetIndex), s.log.SiblingNow(format.KindTimeIndex)
	s.dir.TxnIndex = s.log.SiblingNow(format.KindTxnIndex)
}

func (p *partition) walkRuns(seg *segment, data []byte, src source) error {
	pos, done := int64(0), false
	for !done {
		r := src.next(seg, data)
		done = r.last
		if err := p.driver.ctx.Err(); err != nil {
			return err
		}
		if r.err == nil && r.to > int64(len(data)) {
			r.err = shrunk(seg.log, r.to, len(data))
		}
		if r.err != nil {
			return r.err
		}
		switch {
		case r.from == pos:
			p.takeRun(seg, data, r)
			pos = r.stop
		case r.to <= pos && !done:
			continue
		}
		if pos < r.to {
			pos = p.walkSlowly(seg, data, pos, r.to)
		}
		p.progress(r.to - r.from)
	}
	seg.size = int64(len(data))
	return nil
}

// takeRun feeds the batches of a run, which are all sound, to what looks at them in order. The mapping that the worker
// saw may be gone, so they get their bytes anew.
func (p *partition) takeRun(seg *segment, data []byte, r *run) {
	for i := range r.batches {
		b := &r.batches[i]
		b.Raw = data[b.Pos:b.End():b.End()]
		p.step(seg, b)
	}
	if n := len(r.batches); n > 0 {
		p.lastBatch, p.hasLast = r.batches[n-1], true
		p.lastBatch.Raw = nil // it ends with the mapping
	}
	for i := range r.findings {
		r.findings[i].File = seg.log.Rel
		p.found(seg, r.findings[i])
	}
	for _, err := range r.notRead {
		p.unreadOf = append(p.unreadOf, named(seg.log.Display, err))
	}
}

// step takes the next sound batch.
func (p *partition) step(seg *segment, b *format.Batch) {
	seg.note(b)
	if b.ProducerID >= 0 && !b.Legacy() {
		p.event, p.eventErr = p.producers.Append(b, p.reader)
	} else {
		p.event, p.eventErr = format.ProducerEvent{}, nil
	}
	for _, f := range p.followers {
		f.batch(seg, b)
	}
}

// note counts a batch that can be trusted.
func (s *segment) note(b *format.Batch) {
	if s.firstOffset < 0 {
		s.firstOffset = b.BaseOffset
	}
	s.batches++
	s.records += max(int64(b.Count), 0)
	s.nextOffset = b.NextOffset()
	s.maxTimestamp = max(s.maxTimestamp, b.MaxTimestamp)
	if b.Magic > 0 {
		s.legacyOnly = false
	}
	if !b.Legacy() && (b.HasDeleteHorizon() || int64(b.Count) != int64(b.LastOffsetDelta)+1) {
		s.part.compacted = true
	}
}

// slowWalk is the walk through a stretch where not all is well: bytes that are no batch, checksums that do not match.
type slowWalk struct {
	p       *partition
	seg     *segment
	data    []byte
	scanner *format.Scanner
	held    format.Batch // the batch before, until it is known what follows it
	holding bool
	good    bool // the last item was a sound batch
	run     run  // for what checks of single batches find
}

// walkSlowly goes on from pos, item by item, until it has reached or passed the byte until and the last item was a sound
// batch or the file has ended. It returns where it stands. If that is beyond until, runs that begin before are void.
func (p *partition) walkSlowly(seg *segment, data []byte, pos, until int64) int64 {
	w := &slowWalk{p: p, seg: seg, data: data, run: run{seg: seg}}
	from := pos
	if seg.batches > 0 {
		// The scanner begins one batch earlier, so that it knows which offset should come.
		from = p.lastBatch.Pos
	}
	w.scanner = format.NewScanner(data, from, seg.base)
	if from < pos {
		w.scanner.Next()
	}
	for w.scanner.Next() {
		if h := w.scanner.Hole(); h != nil {
			w.hole(h)
			continue
		}
		w.batch(w.scanner.Batch())
		if w.good && w.scanner.Pos() >= until {
			break
		}
	}
	w.flush(nil)
	return w.scanner.Pos()
}

// batch holds the next batch back until it is known whether the bytes behind it fit.
func (w *slowWalk) batch(b *format.Batch) {
	w.flush(b)
	w.held, w.holding = *b, true
	w.good = b.Plausible() && (w.p.driver.opts.Level < CRC || b.Valid())
}

// hole takes bytes that are no batch. If the batch that is held does not match its checksum, the fault may lie in its length:
// then it reaches from its beginning to the next intact batch. Otherwise the two are one stretch of damage.
func (w *slowWalk) hole(h *format.Hole) {
	hole := *h
	if w.holding && !w.good && hole.Kind == format.ZeroTail && w.tornByZeros(&w.held) {
		w.holding = false
		return
	}
	if w.holding && !w.good && hole.Kind == format.Damage {
		w.holding = false
		hole.Pos, hole.Len = w.held.Pos, hole.Pos+hole.Len-w.held.Pos
		hole.Expected = min(hole.Expected, w.held.BaseOffset)
	}
	w.flush(nil)
	w.good = false
	if hole.Next >= 0 {
		hole.NextOffset = w.first(hole.Next)
	}
	if b, ok := relength(w.data, hole.Pos, hole.Pos+hole.Len); ok && hole.Kind != format.ZeroTail {
		w.p.badLength(w.seg, &b)
		w.single(&b)
		return
	}
	w.p.hole(w.seg, w.data, &hole)
}

// first is the first offset of the entry at pos: that of a compressed message is in its records.
func (w *slowWalk) first(pos int64) int64 {
	b, err := format.DecodeBatch(w.data, pos)
	if err != nil {
		return -1
	}
	w.p.worker.open(&b)
	return b.BaseOffset
}

// relength reads the bytes as one batch, whatever its length field says. It answers false unless the checksum then holds.
func relength(data []byte, from, to int64) (format.Batch, bool) {
	if to-from < format.LogOverhead+format.MinEntrySize || to-from > math.MaxInt32 {
		return format.Batch{}, false
	}
	var header [format.BatchHeaderSize]byte
	copy(header[:], data[from:])
	binary.BigEndian.PutUint32(header[8:], format.BatchHeaderSize-format.LogOverhead)
	b, err := format.DecodeBatch(header[:], 0)
	if err != nil {
		return format.Batch{}, false
	}
	b.Pos, b.Raw = from, data[from:to:to]
	return b, b.Plausible() && b.Valid()
}

// flush judges the batch that is held, now that the next one is known, or that none is.
func (w *slowWalk) flush(next *format.Batch) {
	if !w.holding {
		return
	}
	w.holding = false
	b := w.held
	switch {
	case w.good:
		w.single(&b)
	case b.Magic != 2 && w.magic(&b):
	case next == nil && w.tornByZeros(&b):
	case !b.Valid() && (w.p.driver.opts.Level >= CRC || !b.Plausible()):
		if next != nil {
			opened := *next
			w.p.worker.open(&opened)
			next = &opened
		}
		w.p.badChecksum(w.seg, w.data, &b, next)
	default:
		w.single(&b)
	}
}

// tornByZeros reports a batch behind which no other comes and whose checksum does not match as torn, if its end is zeros and no flipped bit
// explains it.
func (w *slowWalk) tornByZeros(b *format.Batch) bool {
	torn, there := w.p.zeroed(w.seg, w.data, b.Pos, w.seg.nextOffset)
	if torn == nil || int64(len(there)) >= b.End() {
		return false
	}
	if _, _, flipped := b.FlippedBit(); flipped {
		return false
	}
	w.p.hole(w.seg, w.data, &format.Hole{Kind: format.Damage, Pos: torn.Pos, Len: torn.Len, Expected: torn.Expected, Next: -1, NextOffset: -1})
	return true
}

// single hands a batch, the checksum of which holds, to the checks of single batches and then to the order.
func (w *slowWalk) single(b *format.Batch) {
	w.run.batches, w.run.findings, w.run.notRead = w.run.batches[:0], w.run.findings[:0], w.run.notRead[:0]
	w.run.batches = append(w.run.batches, *b)
	w.p.worker.single(&w.run, &w.run.batches[0])
	w.p.takeRun(w.seg, w.data, &w.run)
}

// magic reads through a damaged magic byte.
func (w *slowWalk) magic(b *format.Batch) bool {
	v2, ok := b.AsV2()
	if !ok {
		return false
	}
	w.p.badMagic(w.seg, b, &v2)
	w.single(&v2)
	return true
}

// unread notes a file that could not be read.
func (p *partition) unread(f *logdir.File, err error) {
	p.unreadOf = append(p.unreadOf, named(f.Display, err))
}

// errStop ends a run early, on the caller's wish.
var errStop = errors.New("stop")
