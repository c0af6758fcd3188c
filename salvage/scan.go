package salvage

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"kseg/format"
	"kseg/logdir"
	"kseg/walk"
)

// source is a file that may hold batches of a partition.
type source struct {
	log  *logdir.File
	base int64
	copy int // which of the copies it belongs to
	// rank orders sources of the same offsets: the lower is believed. Files that a broker would delete come last.
	rank int
	// limit is where the next segment of the copy begins, the largest offset if there is none.
	limit int64
	last  bool // no segment of the copy comes after it
	// unnamed: its name gives no base offset, and what it holds must fit to what is there.
	unnamed bool
	// compacted: gaps between batches are the log cleaner's.
	compacted bool
}

// way is how the bytes of a piece come into the output.
type way int8

const (
	asIs     way = iota
	fixed        // one batch, with bytes changed so that its checksum holds
	byRecord     // one batch, of which the records that can be read are put into a new one
)

// piece is a stretch of intact batches of one source, in the order of their offsets.
type piece struct {
	src         *source
	from, to    int64 // bytes
	first, last int64 // offsets, inclusive
	batches     int64
	records     int64
	epochs      [2]int32 // leader epochs of the first and the last batch, −1 for none
	way         way
	patch       []change // if fixed
	// suspect: what is around does not agree with the offsets.
	suspect bool
	how     string // what was done about it, as a clause, unless it is as it is
}

// change is bytes to be written over those of a batch.
type change struct {
	at    int64 // in the batch
	bytes []byte
}

// damage is what was found not to be intact.
type damage struct {
	src         *source
	pos, length int64
	// The offsets that are in doubt, inclusive. Those of a stretch at the end of a log are open.
	first, last int64
	open        bool
	why         string
	tail        bool // what a killed broker may leave at the end of a log
	zeros       bool // nothing is there
}

// scan is what a source holds.
type scan struct {
	src     *source
	pieces  []piece
	damages []damage
	err     error // the rest could not be read
}

// mostPieces bounds the pieces that gaps make of one source; from then on gaps are passed over.
const mostPieces = 1 << 16

// scanner goes through one source.
type scanner struct {
	*scan
	opts   *Options
	reader *format.RecordReader
	run    piece // the present one, if open
	before piece // as it was before its last batch
	open   bool
	next   int64 // after the last batch, before which nothing should come
	prev   int64 // after the batch before that
	exact  bool  // the last batch begins where it should, and has a record of each of its offsets
	// back is what next was before the only batch of the present piece, which lies below; -1 if that is not so.
	back int64
	// held is the last batch, if its checksum is wrong, until it is known whether its length leads to an intact one.
	held    *format.Batch
	thinned int // batches of which records are missing, as the log cleaner leaves them
}

// looked is what a worker finds of the batches of a run.
type looked []finding

// finding is about one batch.
type finding struct {
	sound    bool  // its header makes sense, and its checksum holds
	first, n int64 // the offset of its first record, and how many it has
	err      error // what is wrong with its records
}

// scanSource looks at every batch and every record of a source, with so many workers.
func scanSource(ctx context.Context, src *source, jobs int, opts *Options) *scan {
	s := &scanner{scan: &scan{src: src}, opts: opts, reader: format.NewRecordReader(opts.MaxBatchBytes, nil),
		next: src.base, prev: src.base, back: -1}
	logs := slices.Values([]*walk.Log{{File: src.log, Base: src.base}})
	err := walk.Fold(ctx, logs, walk.Options{Jobs: jobs}, func(gate format.Gate) walk.Look[looked] {
		reader := format.NewRecordReader(opts.MaxBatchBytes, gate)
		return func(r *walk.Run[looked]) error {
			r.Result = r.Result[:0]
			for i := range r.Batches {
				b := &r.Batches[i]
				f := finding{sound: b.Plausible() && b.Valid()}
				if f.sound {
					f.first, f.n, f.err = intact(reader, b)
				}
				r.Result = append(r.Result, f)
			}
			return nil
		}
	}, s.take)
	s.err = errors.Join(s.err, err)
	s.flush()
	s.close()
	if src.unnamed {
		s.damages = nil // of what, nobody knows
		src.base = firstOf(s.pieces)
	}
	return s.scan
}

// firstOf is the lowest offset of pieces, 0 if there is none.
func firstOf(pieces []piece) int64 {
	if len(pieces) == 0 {
		return 0
	}
	return slices.MinFunc(pieces, func(a, b piece) int { return cmp.Compare(a.first, b.first) }).first
}

// take takes a run that was looked at.
func (s *scanner) take(r *walk.Run[looked]) error {
	if s.opts.Progress != nil {
		s.opts.Progress(r.To - r.From)
	}
	i := 0
	return r.Each(func(b *format.Batch) error {
		if f := r.Result[i]; f.sound {
			s.batch(b, f)
		} else {
			s.damage(&walk.Damage{Bad: b})
		}
		i++
		return nil
	}, func(h *format.Hole) error {
		if h.Kind == format.Unreadable {
			s.err = errors.Join(s.err, h.Err)
		}
		s.damage(&walk.Damage{Hole: h})
		return nil
	})
}

// intact says what is wrong with the records of a batch whose checksum holds, nil if nothing is; and which records it
// has.
func intact(r *format.RecordReader, b *format.Batch) (first, n int64, err error) {
	r.Reset(b)
	var rec format.Record
	first, previous, largest := b.BaseOffset, int64(-1), int64(-1)
	for r.Next(&rec) {
		switch {
		case rec.Offset <= previous || rec.Offset > b.LastOffset || !b.Legacy() && rec.Offset < b.BaseOffset:
			return first, n, errors.New("the offsets of its records are not those of the batch")
		case !rec.Valid:
			return first, n, errors.New("the checksum of a message in it is wrong")
		}
		if n == 0 && b.Legacy() {
			first = rec.Offset
		}
		if n == 0 && b.Control() && b.ProducerID >= 0 {
			if _, err := format.DecodeTxnMarker(b.Pos, rec.Key, rec.Value); err != nil {
				return first, n, err
			}
		}
		n, previous, largest = n+1, rec.Offset, max(largest, rec.Timestamp)
	}
	switch err := r.Err(); {
	case err != nil && !r.Unnoticed(true):
		return first, n, err
	case !b.Legacy() && n > 0 && b.TimestampType() == format.CreateTime && largest != b.MaxTimestamp:
		return first, n, errors.New("its header gives another largest timestamp than its records")
	}
	return first, n, nil
}

// batch takes the next batch whose checksum holds.
func (s *scanner) batch(b *format.Batch, f finding) {
	s.flush()
	if !b.Legacy() && int64(b.Count) < int64(b.LastOffsetDelta)+1 {
		s.thinned++
		s.src.compacted = s.src.compacted || b.HasDeleteHorizon() || b.Count == 0 || s.thinned > 1
	}
	if errors.Is(f.err, format.ErrTooLarge) {
		s.err = errors.Join(s.err, fmt.Errorf("%s: the batch at byte %d is not read: %w; raise --max-batch-bytes",
			s.src.log.Display, b.Pos, f.err))
	}
	if f.err != nil {
		s.close()
		s.broken(b, format.ReasonOf(f.err), f.first, b.LastOffset)
		s.saveRecords(b)
		return
	}
	s.place(piece{src: s.src, from: b.Pos, to: b.End(), first: f.first, last: b.LastOffset, batches: 1, records: f.n,
		epochs: [2]int32{b.LeaderEpoch, b.LeaderEpoch}})
}

// place puts a batch where its offsets belong.
func (s *scanner) place(p piece) {
	if s.src.unnamed || p.first < s.src.base || p.last-s.src.base > math.MaxInt32 || p.last >= s.src.limit {
		s.close()
		p.suspect = true
		s.pieces = append(s.pieces, p)
		return
	}
	s.bound(p.first)
	back := s.back
	s.back = -1
	switch {
	case s.open && back >= 0 && p.first >= back && p.first != s.next:
		// Only the batch before is out of place: this one goes on after what came before that.
		s.oddBefore(back)
		s.add(p)
	case p.first >= s.next:
		s.add(p)
	case s.open && s.exact && p.first >= s.prev:
		// The batch before is where it should be, and ends where it says: this one is out of place.
		p.suspect = true
		s.close()
		s.pieces = append(s.pieces, p)
	case s.open && p.first >= s.prev:
		// The batch before ends after where this one begins: that one is out of place, or its end is wrong.
		s.oddBefore(s.prev)
		s.add(p)
	default:
		s.close()
		s.back, s.prev = s.next, s.src.base
		s.add(p)
	}
}

// oddBefore takes the last batch off the present piece, as one that does not belong there; next is before which nothing
// should come without it.
func (s *scanner) oddBefore(next int64) {
	odd := s.pop()
	odd.suspect = true
	s.pieces = append(s.pieces, odd)
	s.next = next
}

// bound: what is damaged before an intact batch has no offset of that batch, or above, whatever its header says.
func (s *scanner) bound(first int64) {
	for i := len(s.damages) - 1; i >= 0 && s.damages[i].last >= first; i-- {
		d := &s.damages[i]
		d.last = max(first-1, 0)
		d.first = min(d.first, d.last)
	}
}

// add makes p a part of the present piece, or the beginning of a new one.
func (s *scanner) add(p piece) {
	gap := p.first > s.next && !s.src.compacted && len(s.pieces) < mostPieces
	if s.open && (gap || p.from != s.run.to || p.way != asIs || s.run.way != asIs) {
		s.close()
	}
	s.exact = p.first == s.next && p.records == p.last-p.first+1
	s.prev, s.next = s.next, p.last+1
	if !s.open {
		s.run, s.before, s.open = p, piece{}, true
		return
	}
	s.before = s.run
	s.run.to, s.run.last = p.to, p.last
	s.run.batches, s.run.records, s.run.epochs[1] = s.run.batches+1, s.run.records+p.records, p.epochs[1]
}

// pop takes the last batch off the present piece.
func (s *scanner) pop() piece {
	odd := s.run
	if s.before.batches == 0 {
		s.open = false
		return odd
	}
	odd.from, odd.first = s.before.to, s.before.last+1
	odd.batches, odd.records, odd.epochs[0] = 1, s.run.records-s.before.records, s.run.epochs[1]
	s.run = s.before
	return odd
}

func (s *scanner) close() {
	if s.open {
		s.pieces = append(s.pieces, s.run)
	}
	s.open = false
}

func (s *scanner) broken(b *format.Batch, why string, first, last int64) {
	s.damages = append(s.damages, damage{src: s.src, pos: b.Pos, length: b.Size(), first: first, last: max(first, last),
		why: why})
	s.prev, s.next = s.next, max(s.next, first)
}

// damage takes bytes that are no sound batch.
func (s *scanner) damage(d *walk.Damage) {
	if d.Bad != nil {
		s.flush()
		s.held = d.Bad
		s.held.Raw = bytes.Clone(d.Bad.Raw)
		return
	}
	h := *d.Hole
	held := s.held
	if s.held = nil; held != nil && h.Kind == format.Damage {
		// The length of the batch before leads nowhere: the two are one stretch.
		h.Pos, h.Len = held.Pos, h.Pos+h.Len-held.Pos
	} else if held != nil {
		s.bad(held)
		held = nil
	}
	s.close()
	s.hole(&h, held)
}

// flush judges the batch that is held, after which an intact one follows, or nothing.
func (s *scanner) flush() {
	if b := s.held; b != nil {
		s.held = nil
		s.bad(b)
	}
}

// bad takes a batch whose checksum is wrong.
func (s *scanner) bad(b *format.Batch) {
	s.close()
	if p, ok := s.fix(b); ok {
		s.offer(p, "the checksum does not match", b)
		return
	}
	first, last := b.BaseOffset, b.LastOffset
	if !b.Plausible() || first < s.next || last-s.src.base > math.MaxInt32 {
		first, last = s.next, s.next
	}
	why := "the checksum does not match"
	if b.Valid() {
		why = "the checksum matches, but no broker writes such a header"
	}
	if !b.Legacy() {
		last = min(last, first+max(int64(b.Count), 1)-1) // one of the two may be wrong; the next batch tells
	}
	s.broken(b, why, first, last)
	s.saveRecords(b)
}

// offer takes a batch that can be put right, if that is asked for, else it is damage, and it is said what would help.
func (s *scanner) offer(p piece, why string, b *format.Batch) {
	if s.opts.FixBits {
		s.place(p)
		s.close()
		return
	}
	s.damages = append(s.damages, damage{src: s.src, pos: p.from, length: p.to - p.from, first: p.first, last: p.last,
		why: why + "; " + p.how + ", and --fix-bits puts it back"})
	if b != nil {
		s.saveRecords(b)
	}
}

// hole takes bytes that are no batch at all, but for the beginning of held, if that is not nil.
func (s *scanner) hole(h *format.Hole, held *format.Batch) {
	d := damage{src: s.src, pos: h.Pos, length: h.Len, first: s.next, last: h.NextOffset - 1, open: h.Next < 0,
		why:  format.ReasonOf(h.Err),
		tail: s.src.last && h.Next < 0 && h.Kind != format.Damage}
	switch h.Kind {
	case format.ZeroTail:
		d.why, d.zeros = "zeros", true
	case format.TornTail:
		d.why = "the last batch is not all there"
	}
	if p, ok := s.fixLength(h); ok {
		s.offer(p, d.why, held)
		return
	}
	s.damages = append(s.damages, d)
	if held != nil {
		s.saveRecords(held)
	}
}
