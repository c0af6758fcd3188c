package salvage

import (
	"bytes"

	"kseg/format"
)

// cut divides a piece before the first batch that begins at an offset or after it.
func (p piece) cut(offset int64) (head, rest piece, err error) {
	head, rest = p, p
	head.batches, head.records, head.last = 0, 0, p.first-1
	err = p.src.log.View(func(data []byte) error {
		var b format.Batch
		for pos := p.from; pos < p.to; pos = b.End() {
			if err := b.Decode(data, pos); err != nil {
				return err
			}
			first := b.BaseOffset
			if b.Legacy() {
				first = head.last + 1
			}
			if first >= offset {
				rest.from, rest.first, rest.epochs[0] = pos, first, b.LeaderEpoch
				break
			}
			head.to, head.last, head.epochs[1] = b.End(), b.LastOffset, b.LeaderEpoch
			head.batches, head.records = head.batches+1, head.records+max(1, int64(b.Count))
			rest.from = b.End()
		}
		return nil
	})
	rest.batches, rest.records = p.batches-head.batches, max(0, p.records-head.records)
	return head, rest, err
}

// comparer tells whether batches that are left out hold the same records as those that were taken.
type comparer struct {
	reader *format.RecordReader
	digest format.RecordDigest
	// Where it stands in what was taken: an extent, and the byte at which its next batch begins.
	extent int
	pos    int64
	offset int64 // the first offset from there on
	sums   map[int64]uint64
}

func newComparer(opts *Options) *comparer {
	return &comparer{reader: format.NewRecordReader(opts.MaxBatchBytes, nil), extent: -1, sums: map[int64]uint64{}}
}

func (c *comparer) close() { c.reader.Release() }

// compare holds a piece against the extents that have its offsets. If a record differs, it says at which offset, and
// from which source the other is. Records that only one side has don't count, but a piece that shares none is not the
// same.
func (c *comparer) compare(q piece, extents []piece) (same bool, at int64, other *source, err error) {
	shared := false
	err = q.src.log.View(func(data []byte) error {
		var b format.Batch
		for pos := q.from; pos < q.to && other == nil; pos = b.End() {
			if err := b.Decode(data, pos); err != nil {
				return err
			}
			equal, offset, src, err := c.batch(&b, extents)
			if err != nil {
				return err
			}
			shared = shared || equal
			at, other = offset, src
		}
		return nil
	})
	return shared && other == nil, at, other, err
}

// batch compares one batch with those that have its offsets.
func (c *comparer) batch(b *format.Batch, extents []piece) (equal bool, at int64, other *source, err error) {
	first := b.BaseOffset
	c.seek(first, extents)
	loaded := false
	for c.extent >= 0 && c.extent < len(extents) && extents[c.extent].first <= b.LastOffset {
		e := extents[c.extent]
		done := false
		err = e.src.log.View(func(data []byte) error {
			var t format.Batch
			for ; c.pos < e.to; c.pos, c.offset = t.End(), t.NextOffset() {
				if err := t.Decode(data, c.pos); err != nil {
					return err
				}
				switch {
				case t.LastOffset < first:
					continue
				case t.BaseOffset > b.LastOffset && !t.Legacy():
					done = true
					return nil
				case sameBatch(b, &t):
					equal, done = true, true
					return nil
				}
				if !loaded {
					c.load(b)
					loaded = true
				}
				hit, offset, differs := c.against(&t)
				equal = equal || hit
				if differs {
					at, other, done = offset, e.src, true
					return nil
				}
				if t.LastOffset >= b.LastOffset {
					done = true
					return nil
				}
			}
			return nil
		})
		if err != nil || done {
			return equal, at, other, err
		}
		c.enter(c.extent+1, extents)
	}
	return equal, at, other, nil
}

// sameBatch compares length, offsets, checksum and the rest of the header.
func sameBatch(a, b *format.Batch) bool {
	n := min(format.BatchHeaderSize, len(a.Raw))
	return len(a.Raw) == len(b.Raw) && bytes.Equal(a.Raw[:n], b.Raw[:n])
}

// load remembers the digests of a batch's records.
func (c *comparer) load(b *format.Batch) {
	clear(c.sums)
	c.reader.Reset(b)
	var r format.Record
	for c.reader.Next(&r) {
		c.sums[r.Offset] = c.digest.Sum(b, &r)
	}
}

// against compares a batch with the one that was loaded.
func (c *comparer) against(b *format.Batch) (hit bool, at int64, differs bool) {
	c.reader.Reset(b)
	var r format.Record
	for c.reader.Next(&r) {
		sum, ok := c.sums[r.Offset]
		if ok && sum != c.digest.Sum(b, &r) {
			return true, r.Offset, true
		}
		hit = hit || ok
	}
	return hit, 0, false
}

// seek goes to the extent that has an offset, or the next one. Where it stands before it, it goes on from there.
func (c *comparer) seek(offset int64, extents []piece) {
	lo, hi := 0, len(extents)
	for lo < hi {
		mid := (lo + hi) / 2
		if extents[mid].last < offset {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	if lo != c.extent || c.offset > offset {
		c.enter(lo, extents)
	}
}

func (c *comparer) enter(i int, extents []piece) {
	c.extent = i
	if i < len(extents) {
		c.pos, c.offset = extents[i].from, extents[i].first
	}
}
