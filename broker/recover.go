package broker

import (
	"errors"
	"fmt"

	"kseg/format"
	"kseg/state"
)

// recovery is LogSegment.recover over the batches of one segment.
type recovery struct {
	Recovered
	seg *segment
}

// window is how many bytes of a log are brought into memory at once.
const window = 1 << 20

// recoverFrom is LogSegment.recover: the indexes are made anew from the batches, and the log is cut where these end. It
// returns how many bytes were cut. The error is what nothing in it catches.
func (s *segment) recoverFrom(p *state.ProducerManager) (int64, error) {
	x := &recovery{Recovered{Index: format.NewIndexBuilder(s.base, s.l.opts.Interval), Producers: p}, s}
	x.Index.Limit(s.l.opts.IndexBytes)
	s.recovered = true
	s.changed()
	if err := s.resetIndexes(); err != nil {
		return 0, err
	}
	if f := s.l.dir.files[s.fileName(format.KindTxnIndex)]; f != nil {
		f.rewrite(nil, 0)
	}
	err := s.viewLog(x.walk)
	var end *corrupt
	if err != nil && !errors.As(err, &end) {
		return 0, errors.Join(err, x.leave())
	}
	return x.finish(end)
}

// walk feeds the batches to the recovery, up to the first that is not sound.
func (x *recovery) walk(log []byte) error {
	l := x.seg.l
	size := int64(len(log))
	pos, more := int64(0), true
	for from := int64(0); from < size && more; from += window {
		if l.opts.Stop != nil && l.opts.Stop() {
			return &unreadable{errStopped}
		}
		piece := log[from:min(from+window, size)]
		l.prepare(x.seg.log, piece)
		var err error
		pos, more, err = x.stretch(log, pos, from+int64(len(piece)))
		l.release(x.seg.log, piece)
		if err != nil {
			return err
		}
	}
	return nil
}

// stretch takes the batches that begin before an end. It is false where Kafka's reader ends without a word: before a
// batch that is not all there.
func (x *recovery) stretch(log []byte, pos, to int64) (int64, bool, error) {
	var b format.Batch
	for pos < to {
		if err := b.Decode(log, pos); errors.Is(err, format.ErrTruncated) {
			return pos, false, nil
		} else if err != nil {
			return pos, false, &corrupt{err}
		}
		if err := x.add(&b); err != nil {
			return pos, false, err
		}
		pos = b.End()
	}
	return pos, true, nil
}

// add takes the next batch.
func (x *recovery) add(b *format.Batch) error {
	if !b.Valid() {
		err := format.ErrChecksum
		if !b.Legacy() && b.Size() < format.BatchHeaderSize {
			err = fmt.Errorf("%w: the batch is shorter than its header", err)
		}
		return &corrupt{err}
	}
	err := x.Add(b, func() error { return x.indexed(b) })
	switch {
	case errors.Is(err, format.ErrOffsetOverflow):
		return &overflow{x.seg, err}
	case errors.Is(err, format.ErrIndexFull):
		return stops(x.seg.offsets.f.name, "the index is full before the segment ends: segment.index.bytes is too "+
			"small for it")
	}
	return err
}

// indexed is what happens to a batch before the producers are told of it.
func (x *recovery) indexed(b *format.Batch) error {
	l := x.seg.l
	if b.Magic > 2 && l.oddMagic == nil {
		l.oddMagic = stops(x.seg.log.name, "the batch at byte %d has magic %d; recovery keeps it, but nobody reads it", b.Pos,
			b.Magic)
	}
	if b.Legacy() {
		return nil
	}
	return l.epochs.append(b.LeaderEpoch, b.BaseOffset)
}

// finish cuts the log after the last sound batch and writes the indexes.
func (x *recovery) finish(end *corrupt) (int64, error) {
	s := x.seg
	cut := s.log.size - x.Kept
	if cut > 0 {
		s.l.cuts = append(s.l.cuts, Cut{File: s.log.name, Base: s.base, At: x.Kept, Why: end.reason()})
	}
	s.log.truncate(x.Kept)
	s.offsets.trim(x.Index.OffsetIndexBytes())
	if err := x.Index.Finish(); err != nil {
		x.writeTxns()
		return 0, errors.Join(err, s.times.begin(x.Index.TimeIndexBytes()))
	}
	s.times.trim(x.Index.TimeIndexBytes())
	x.writeTxns()
	return cut, nil
}

// leave puts what was indexed so far into the files, whose room stays: recovery has ended in the middle.
func (x *recovery) leave() error {
	x.writeTxns()
	return errors.Join(x.seg.offsets.begin(x.Index.OffsetIndexBytes()), x.seg.times.begin(x.Index.TimeIndexBytes()))
}

func (x *recovery) writeTxns() {
	if raw := x.Txns.Bytes(); len(raw) > 0 {
		x.seg.l.dir.create(x.seg.fileName(format.KindTxnIndex), raw, int64(len(raw)))
	}
}

// empty is LogSegment.truncateTo of the base offset. It returns how many bytes of the log were cut.
func (s *segment) empty() (int64, error) {
	pos, found, err := s.translate(s.base)
	if err != nil {
		return 0, err
	}
	if err := s.resetIndexes(); err != nil {
		return 0, err
	}
	if f := s.l.dir.files[s.fileName(format.KindTxnIndex)]; f != nil {
		f.rewrite(nil, 0)
	}
	s.changed()
	if !found {
		return 0, nil
	}
	cut := s.log.size - pos
	s.log.truncate(pos)
	return cut, nil
}
