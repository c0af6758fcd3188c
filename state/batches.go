package state

import (
	"context"

	"kseg/format"
	"kseg/logdir"
	"kseg/walk"
)

// ReadBatches goes through the batches of a segment, and the holes between them, from about the batch that holds the
// offset from on: the index says where to begin, if what it says is so. fn gets a batch or a hole, and ends the reading
// with false. What cannot be read is a hole too (format.Unreadable), and the error in the end. progress may be nil.
func ReadBatches(ctx context.Context, seg *logdir.Segment, from int64, progress func(bytes int64),
	fn func(b *format.Batch, h *format.Hole) bool) error {
	log := &walk.Log{File: seg.Log, Base: seg.Base}
	if err := seek(log, seg.Index, from); err != nil {
		fn(nil, &format.Hole{Kind: format.Unreadable, Next: -1, NextOffset: -1, Err: err})
		return err
	}
	return walk.Read(ctx, log, progress, fn)
}

// seek begins a log at a batch at or before the one with the offset, if the index leads to one.
func seek(log *walk.Log, index *logdir.File, offset int64) error {
	if index == nil || offset <= log.Base {
		return nil
	}
	return log.File.View(func(data []byte) error {
		// An index that cannot be read is no loss: the log is read from its beginning.
		_ = index.View(func(raw []byte) error {
			e := format.NewOffsetIndex(raw, log.Base).Logical().Lookup(offset)
			b, err := format.DecodeBatch(data, int64(max(e.Position, 0)))
			if err == nil && e.Offset <= offset && b.BaseOffset <= offset && b.Valid() {
				log.From = b.Pos
			}
			return nil
		})
		return nil
	})
}

// maxLost is how many ranges of lost offsets are told apart; later ones are joined with the last.
const maxLost = 1000

// Holes collects the offsets that are missing in a log that is read from Next on.
type Holes struct {
	// Next is the offset that should come.
	Next int64
	// Compacted is set if offsets may be missing between batches. A batch that the log cleaner has been at sets it too.
	Compacted bool
	// Cleaned, if not nil, is where the log cleaner has been up to: before it offsets may be missing between batches. A
	// batch that the cleaner has been at moves it.
	Cleaned *int64

	lost    []Lost
	gaps    []bool // of each whether nothing is there at all
	damaged bool   // bytes that cannot be read stand where Next should come
}

// Hole notes bytes that are no batches. The beginning of a batch that the file ends in, and zeros there, were never
// whole.
func (h *Holes) Hole(hole *format.Hole) {
	h.damaged = h.damaged || hole.Kind == format.Damage || hole.Kind == format.Unreadable
}

// Batch notes the next batch. It is false for one that must not be trusted.
func (h *Holes) Batch(b *format.Batch) bool {
	if !b.Valid() {
		h.damaged = true
		return false
	}
	if cleaned := Cleaned(b); h.Cleaned == nil {
		h.Compacted = h.Compacted || cleaned
	} else if next := b.NextOffset(); cleaned && next > *h.Cleaned {
		h.Cleaned = &next
	}
	// A wrapper of magic 0 or 1 has the offset of its last message only.
	if b.BaseOffset > h.Next && (h.damaged || b.Count >= 0) {
		h.lose(b.BaseOffset - 1)
	}
	h.damaged = false
	h.Next = max(h.Next, b.NextOffset())
	return true
}

// gap reports whether offsets are missing before a batch, though nothing damaged is there and no cleaner was.
func (h *Holes) gap(b *format.Batch) bool {
	return b.BaseOffset > h.Next && !h.damaged && b.Count >= 0 && !Cleaned(b) &&
		(h.Cleaned == nil && !h.Compacted || h.Cleaned != nil && b.BaseOffset > *h.Cleaned)
}

// Cleaned reports whether the batch shows that the log cleaner has been at it.
func Cleaned(b *format.Batch) bool {
	return !b.Legacy() && (b.HasDeleteHorizon() || int64(b.Count) != int64(b.LastOffsetDelta)+1)
}

// lose notes that the offsets from Next to last are missing.
func (h *Holes) lose(last int64) {
	if n := len(h.lost); n > 0 && (n == maxLost || h.lost[n-1].Last+1 == h.Next && h.gaps[n-1] == !h.damaged) {
		h.lost[n-1].Last = last
		return
	}
	h.lost, h.gaps = append(h.lost, Lost{First: h.Next, Last: last}), append(h.gaps, !h.damaged)
}

// End are the offsets that are missing. Of a compacted log they are those that were there.
func (h *Holes) End() []Lost {
	if h.damaged {
		h.lost, h.gaps = append(h.lost, Lost{First: h.Next, Open: true}), append(h.gaps, false)
	}
	if !h.Compacted && h.Cleaned == nil {
		return h.lost
	}
	var lost []Lost
	for i, l := range h.lost {
		switch {
		case !h.gaps[i]:
			lost = append(lost, l)
		case h.Cleaned != nil && l.Last >= *h.Cleaned:
			lost = append(lost, Lost{First: max(l.First, *h.Cleaned), Last: l.Last})
		}
	}
	return lost
}
