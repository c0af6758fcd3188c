package verify

import (
	"cmp"
	"errors"
	"fmt"

	"kseg/format"
	"kseg/logdir"
	"kseg/walk"
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
	nextOffset       int64 // after the last batch that can be trusted; base if there is none
	maxTimestamp     int64
	size             int64 // bytes that were looked at
	walk             *walk.Log
	legacyOnly       bool // all batches are of magic 0
	tail             *format.Hole
	tailFinding      *Finding
	reached          int64 // the last offset that an index shows to have been there
	damaged          bool  // some bytes could not be read as batches
	unread           bool  // the file could not be read to its end
	cut              bool  // an index shows that the log once went on after its end
	witnesses        []Place
	stale            *Finding // entries of the offset index that a truncation left
}

// growing reports whether the log has become longer than what was read of it: then a broker writes to it, and that it
// ends in the middle of a batch, or before its index does, is the reader's haste.
func (s *segment) growing(read int64) bool {
	now, err := s.log.SizeNow()
	return s.last && err == nil && now > read
}

func (s *segment) closed() bool { return !s.last }

// indexed reports whether a broker takes all slots of the segment's indexes for entries when it starts: it trims those
// of the last segment too when it stops cleanly.
func (s *segment) indexed() bool { return !s.last || s.part.shutdown == cleanShutdown }

// place is a stretch of the segment's log.
func (s *segment) place(pos, length, first, last int64) Place {
	return Place{File: s.log.Rel, Pos: pos, Len: length, FirstOffset: first, LastOffset: last}
}

// read goes through one segment in order.
func (p *partition) read(seg *segment, src *walk.Walker[looked]) error {
	// A broker writes to the log first: indexes that are looked for after it know all that is in it, or more.
	return seg.log.View(func(data []byte) error {
		seg.findIndexes()
		indexes := []*logdir.File{seg.dir.Index, seg.dir.TimeIndex, seg.dir.TxnIndex}
		return logdir.ViewAll(indexes, p.unread, func(b [][]byte) error {
			seg.index, seg.timeIndex, seg.txnIndex = b[0], b[1], b[2]
			defer func() { seg.index, seg.timeIndex, seg.txnIndex = nil, nil, nil }()
			for _, f := range p.followers {
				f.begin(seg)
			}
			o := ordered{p: p, seg: seg, data: data}
			if err := src.Log(seg.walk, o.take); err != nil {
				return err
			}
			seg.size = int64(len(data))
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

// ordered takes the batches of a segment in order.
type ordered struct {
	p       *partition
	seg     *segment
	data    []byte
	held    format.Batch // the last one, if it is not sound, until it is known what follows it
	holding bool
	own     looked // for what is looked at once more
}

// take takes the next run. A file that has become shorter ends; what else keeps a run from being looked at spoils that
// alone.
func (o *ordered) take(r *walk.Run[looked]) error {
	if errors.Is(r.Err, logdir.ErrVanished) {
		return r.Err
	}
	l := r.Result
	for group, took := range l.took {
		o.p.driver.took[group] += took
	}
	err := r.Each(func(b *format.Batch) error {
		if len(l.odd) > 0 && l.odd[0] == b.Pos {
			l.odd = l.odd[1:]
			o.flush(b)
			o.held, o.holding = *b, true
			o.held.Raw = o.data[b.Pos:b.End():b.End()] // it outlives the run
			return nil
		}
		o.flush(b)
		o.p.step(o.seg, b)
		for len(l.findings) > 0 && l.findings[0].logPos <= b.Pos {
			o.found(l.findings[0])
			l.findings = l.findings[1:]
		}
		return nil
	}, func(h *format.Hole) error {
		o.hole(h)
		return nil
	})
	o.tooLarge(r.Result.notRead)
	if r.Err != nil {
		o.lost(r.Err, r.From, r.To-r.From, -1)
	}
	if r.Last {
		o.flush(nil)
	}
	o.p.progress(r.To - r.From)
	return cmp.Or(err, o.p.driver.ctx.Err())
}

// found takes a finding about a single batch.
func (o *ordered) found(f Finding) {
	f.File = o.seg.log.Rel
	o.p.found(o.seg, f)
}

// lost: n bytes from pos on could not be read or looked at.
func (o *ordered) lost(err error, pos, n, nextOffset int64) {
	o.p.unread(err)
	o.seg.unread = true
	o.p.skip(o.seg, pos, n, nil, nextOffset)
}

// step takes the next sound batch.
func (p *partition) step(seg *segment, b *format.Batch) {
	seg.note(b)
	if p.snapshots != nil {
		p.snapshots.before(seg, b)
	}
	if b.ProducerID >= 0 && !b.Legacy() {
		p.event, p.eventErr = p.producers.Append(b, p.reader)
	} else {
		p.event, p.eventErr = format.ProducerEvent{}, nil
	}
	for _, f := range p.followers {
		f.batch(seg, b)
	}
	p.lastBatch, p.hasLast = *b, true
	p.lastBatch.Raw = nil // it ends with the run
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

// hole takes bytes that are no batch. If the batch that is held does not match its checksum, the fault may lie in its
// length: then it reaches from its beginning to the next intact batch. Otherwise the two are one stretch of damage.
func (o *ordered) hole(h *format.Hole) {
	hole := *h
	if o.holding && hole.Kind == format.ZeroTail && o.tornByZeros(&o.held) {
		o.holding = false
		return
	}
	if o.holding && hole.Kind == format.Damage {
		o.holding = false
		hole.Pos, hole.Len = o.held.Pos, hole.Pos+hole.Len-o.held.Pos
		hole.Expected = min(hole.Expected, o.held.BaseOffset)
	}
	o.flush(nil)
	if hole.Kind == format.Unreadable {
		o.lost(hole.Err, hole.Pos, hole.Len, hole.NextOffset)
		return
	}
	if hole.Next >= 0 {
		hole.NextOffset = o.first(hole.Next)
	}
	if b, ok := format.DecodeSpan(o.data, hole.Pos, hole.Pos+hole.Len); ok && hole.Kind != format.ZeroTail {
		o.p.badLength(o.seg, &b)
		o.single(&b)
		return
	}
	o.p.hole(o.seg, o.data, &hole)
}

// first is the first offset of the entry at pos: that of a compressed message is in its records.
func (o *ordered) first(pos int64) int64 {
	b, err := format.DecodeBatch(o.data, pos)
	if err != nil {
		return -1
	}
	o.p.worker.open(&b)
	return b.BaseOffset
}

// flush judges the batch that is held, now that the next one is known, or that none is.
func (o *ordered) flush(next *format.Batch) {
	if !o.holding {
		return
	}
	o.holding = false
	b := o.held
	switch {
	case b.Magic != 2 && o.magic(&b):
	case next == nil && o.tornByZeros(&b):
	case !b.Valid():
		if next != nil {
			opened := *next
			o.p.worker.open(&opened)
			next = &opened
		}
		o.p.badChecksum(o.seg, o.data, &b, next)
	default:
		o.single(&b)
	}
}

// tornByZeros reports a batch after which no other comes and whose checksum does not match as torn, if its end is
// zeros and no flipped bit explains it.
func (o *ordered) tornByZeros(b *format.Batch) bool {
	torn, there := o.p.zeroed(o.seg, o.data, b.Pos, o.seg.nextOffset)
	if torn == nil || int64(len(there)) >= b.End() {
		return false
	}
	if _, _, flipped := b.FlippedBit(); flipped {
		return false
	}
	o.p.hole(o.seg, o.data, &format.Hole{Kind: format.Damage, Pos: torn.Pos, Len: torn.Len, Expected: torn.Expected,
		Next: -1, NextOffset: -1})
	return true
}

// single hands a batch, the checksum of which holds, to the checks of single batches and then to the order.
func (o *ordered) single(b *format.Batch) {
	o.own.reset()
	o.own.took = o.p.driver.took
	o.p.worker.single(&o.own, b)
	o.p.step(o.seg, b)
	for _, f := range o.own.findings {
		o.found(f)
	}
	o.tooLarge(o.own.notRead)
}

// tooLarge notes batches of the segment that were not opened.
func (o *ordered) tooLarge(batches []error) {
	for _, err := range batches {
		o.p.unread(fmt.Errorf("%s: %w", o.seg.log.Display, err))
	}
}

// magic reads through a damaged magic byte.
func (o *ordered) magic(b *format.Batch) bool {
	v2, ok := b.AsV2()
	if !ok {
		return false
	}
	o.p.badMagic(o.seg, b, &v2)
	o.single(&v2)
	return true
}

// unread notes what could not be read; err begins with the file, as those of logdir do.
func (p *partition) unread(err error) { p.unreadOf = append(p.unreadOf, err) }

// errStop ends a run early, on the caller's wish.
var errStop = errors.New("stop")
