package compare

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math"

	"kseg/format"
	"kseg/logdir"
	"kseg/walk"
)

// Batch is where a batch stands and what its header says, as far as a report tells of it.
type Batch struct {
	File          string // as the user would name it
	Segment       int64  // the base offset that the file's name tells
	Pos           int64
	Size          int64
	BaseOffset    int64
	LastOffset    int64
	Count         int32 // −1 for a wrapper of magic 0 or 1
	LeaderEpoch   int32 // −1: none
	MaxTimestamp  int64 // −1: none
	ProducerID    int64 // −1: none
	ProducerEpoch int16
	BaseSequence  int32
	Codec         format.Codec
	Magic         int8
}

func batchOf(log *logdir.File, b *format.Batch) *Batch {
	return &Batch{File: log.Display, Segment: log.Name.Base, Pos: b.Pos, Size: b.Size(), BaseOffset: b.BaseOffset,
		LastOffset: b.LastOffset, Count: b.Count,
		LeaderEpoch: b.LeaderEpoch, MaxTimestamp: b.MaxTimestamp, ProducerID: b.ProducerID, ProducerEpoch: b.ProducerEpoch,
		BaseSequence: b.BaseSequence, Codec: b.Codec(), Magic: b.Magic}
}

// record is what a comparison knows of one record.
type record struct {
	offset int64
	sum    uint64
	key    uint64
	kind   recordKind
}

type recordKind uint8

const (
	keyed     recordKind = iota
	noKey                // of no key
	tombstone            // a key, no value
	marker               // a control record
	commit               // one that ends a transaction, as committed
	abort                // or as aborted
)

// side is one of the two logs, batch by batch and record by record.
type side struct {
	opts       *Options
	segments   []*logdir.Segment // those that next goes through
	from       int64             // the byte to begin at in the first of them
	next       func() (located, bool)
	stop       func()
	chunk      located
	batch      *format.Batch // the present one, nil at the end
	at         int           // its index in the chunk
	opened     bool          // its records are in records
	records    []record
	left       []record // those not yet taken
	older      []uint64 // their digests as batches of olderMagic would hold them; see as
	olderMagic int8
	reader     *format.RecordReader
	digest     format.RecordDigest

	expected int64 // after the last sound batch
	// Records of the offsets from doubtFrom to doubtTo, exclusive, may have been lost to the damage that was met last.
	doubtFrom, doubtTo int64

	count     int64 // records so far
	compacted bool  // the cleaner has been here
	damages   []Place
	notRead   []error
}

// located is a chunk of a log.
type located struct {
	walk.Chunk
	segment *logdir.Segment
}

// chunksOf yields the logs of segments, one after the other, the first from a byte on.
func chunksOf(ctx context.Context, segments []*logdir.Segment, from int64, progress func(int64)) iter.Seq[located] {
	return func(yield func(located) bool) {
		for _, seg := range segments {
			for c := range walk.Chunks(ctx, &walk.Log{File: seg.Log, Base: seg.Base, From: from}, progress) {
				if !yield(located{c, seg}) {
					return
				}
			}
			from = 0
		}
	}
}

// Place is a byte of a file, or a range of offsets in a file of fingerprints.
type Place struct {
	File    string
	Pos     int64
	Offsets *Range
}

// String is "FILE @POS", or "FILE, offsets FIRST–LAST".
func (p Place) String() string {
	if p.Offsets != nil {
		return fmt.Sprintf("%s, offsets %d–%d", p.File, p.Offsets.First, p.Offsets.Last)
	}
	return fmt.Sprintf("%s @%d", p.File, p.Pos)
}

// most bounds how many places of damage are remembered; one is told, and how many there are.
const most = 1000

func newSide(segments []*logdir.Segment, opts *Options) *side {
	s := &side{opts: opts, segments: segments, reader: format.NewRecordReader(opts.MaxBatchBytes, nil)}
	if len(segments) > 0 {
		s.expected = segments[0].Base
	}
	return s
}

// start opens the stream of what is left of the segments. It must be stopped.
func (s *side) start(ctx context.Context) {
	s.next, s.stop = iter.Pull(chunksOf(ctx, s.segments, s.from, s.opts.Progress))
}

// passOver counts what lies in segments that end below an offset, and returns the others.
func (s *side) passOver(ctx context.Context, segments []*logdir.Segment, offset int64) ([]*logdir.Segment, error) {
	for len(segments) > 1 && segments[1].Base <= offset {
		n, next := int64(0), s.expected
		for c := range chunksOf(ctx, segments[:1], 0, s.opts.Progress) {
			if c.Err != nil || c.Damage != nil {
				return nil, errDiffer
			}
			for i := range c.Batches {
				b := &c.Batches[i]
				if b.Count < 0 || b.LastOffset < next {
					return nil, errDiffer
				}
				n, next = n+int64(b.Count), b.NextOffset()
				s.compacted = s.compacted || thinned(b)
			}
		}
		s.count, s.expected, segments = s.count+n, next, segments[1:]
		s.segments = segments
	}
	return segments, nil
}

// errDiffer says that two sides are not simply the same.
var errDiffer = errors.New("not the same")

// thinned reports whether the log cleaner took records of a batch.
func thinned(b *format.Batch) bool {
	return !b.Legacy() && (b.HasDeleteHorizon() || int64(b.Count) != int64(b.LastOffsetDelta)+1)
}

// advance goes to the next sound batch.
func (s *side) advance() {
	if s.batch != nil {
		s.expected = max(s.expected, s.batch.NextOffset())
		s.count += s.recordsOf(s.batch)
	}
	for s.step() {
		if s.batch.LastOffset >= s.expected {
			break
		}
		// Its offsets were there before: it is a double, or out of its place.
		s.damaged(s.batch.Pos)
	}
	if s.batch == nil {
		return
	}
	s.doubtTo = min(s.doubtTo, s.batch.BaseOffset)
	s.compacted = s.compacted || thinned(s.batch)
}

// step goes to the next batch that is sound by itself. It is false at the end.
func (s *side) step() bool {
	s.opened, s.records, s.left, s.older = false, s.records[:0], nil, s.older[:0]
	s.at++
	for s.at >= len(s.chunk.Batches) {
		var ok bool
		if s.chunk, ok = s.next(); !ok {
			s.batch, s.chunk.Batches, s.at = nil, nil, 0
			return false
		}
		s.at = 0
		if s.chunk.Err != nil {
			s.notRead = append(s.notRead, s.chunk.Err)
			s.doubt()
		}
		if d := s.chunk.Damage; d != nil && !(d.Tail() && s.chunk.segment.Next == nil) {
			s.doubt()
			s.damaged(d.Pos())
		}
	}
	s.batch = &s.chunk.Batches[s.at]
	return true
}

func (s *side) damaged(pos int64) {
	if len(s.damages) < most {
		s.damages = append(s.damages, Place{File: s.chunk.segment.Log.Display, Pos: pos})
	}
}

// recordsOf counts the records of a batch, by its header if that tells.
func (s *side) recordsOf(b *format.Batch) int64 {
	if s.opened {
		return int64(len(s.records))
	}
	if b.Count >= 0 {
		return int64(b.Count)
	}
	s.open()
	return int64(len(s.records))
}

// open reads the records of the present batch.
func (s *side) open() {
	if s.opened {
		return
	}
	s.opened, s.records = true, s.records[:0]
	b := s.batch
	s.reader.Reset(b)
	var r format.Record
	for s.reader.Next(&r) {
		s.records = append(s.records, record{r.Offset, s.digest.Sum(b, &r), format.KeyDigest(r.Key), kindOf(b, &r)})
	}
	s.left = s.records
	switch err := s.reader.Err(); {
	case err == nil || s.reader.Unnoticed(true):
	case errors.Is(err, format.ErrTooLarge):
		s.notRead = append(s.notRead, fmt.Errorf("%s: the batch at byte %d is not compared: %w; raise --max-batch-bytes",
			s.chunk.segment.Log.Display, b.Pos, err))
	default:
		s.damaged(b.Pos)
	}
	if s.reader.Err() != nil && !s.reader.Unnoticed(true) {
		s.doubtFrom, s.doubtTo = b.BaseOffset, b.NextOffset()
	}
}

func kindOf(b *format.Batch, r *format.Record) recordKind {
	switch {
	case b.Control():
		switch m, err := format.DecodeTxnMarker(0, r.Key, r.Value); {
		case err != nil:
			return marker
		case m.Abort:
			return abort
		}
		return commit
	case r.Key == nil:
		return noKey
	case r.Value == nil:
		return tombstone
	}
	return keyed
}

// as is the digest of the head as a batch of magic 0 or 1 would hold it.
func (s *side) as(magic int8) uint64 {
	if len(s.older) == 0 || s.olderMagic != magic {
		s.older, s.olderMagic = s.older[:0], magic
		s.reader.Reset(s.batch)
		var r format.Record
		for s.reader.Next(&r) {
			s.older = append(s.older, s.digest.SumAs(magic, &r))
		}
	}
	return s.older[len(s.records)-len(s.left)]
}

// fresh reports whether no record of the present batch was taken.
func (s *side) fresh() bool { return !s.opened || len(s.left) == len(s.records) }

// head is the next record, nil at the end of the log. It passes over batches without records.
func (s *side) head() *record {
	for s.batch != nil {
		if s.open(); len(s.left) > 0 {
			return &s.left[0]
		}
		s.advance()
	}
	return nil
}

// take passes the head.
func (s *side) take() {
	if s.left = s.left[1:]; len(s.left) == 0 {
		s.advance()
	}
}

// doubt: what comes next may be missing because of damage.
func (s *side) doubt() { s.doubtFrom, s.doubtTo = s.expected, math.MaxInt64 }

// inDoubt reports whether a record of an offset that was passed over may have been lost to damage.
func (s *side) inDoubt(offset int64) bool { return offset >= s.doubtFrom && offset < s.doubtTo }
