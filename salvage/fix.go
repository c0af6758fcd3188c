package salvage

import (
	"encoding/binary"
	"fmt"

	"kseg/format"
)

// fix finds what makes the checksum of a batch hold again: one bit, or the magic byte, which it leaves out.
func (s *scanner) fix(b *format.Batch) (piece, bool) {
	p := piece{src: s.src, from: b.Pos, to: b.End(), batches: 1, way: fixed}
	if v2, ok := b.AsV2(); ok {
		p.patch, p.how = []change{{16, []byte{2}}}, fmt.Sprintf("its magic byte should be 2, not %d", b.Magic)
		return s.repaired(p, &v2)
	}
	pos, bit, ok := b.FlippedBit()
	if !ok {
		return p, false
	}
	at := pos - b.Pos
	p.patch, p.how = []change{{at, []byte{b.Raw[at] ^ 1<<bit}}},
		fmt.Sprintf("one flipped bit explains it (byte %d, bit %d)", pos, bit)
	raw := patched(b.Raw, p.patch)
	var whole format.Batch
	if whole.Decode(raw, 0) != nil || whole.Size() != b.Size() {
		return p, false
	}
	whole.Pos = b.Pos
	return s.repaired(p, &whole)
}

// fixLength reads the bytes of a hole as one batch, whatever its length field says.
func (s *scanner) fixLength(h *format.Hole) (p piece, ok bool) {
	if h.Kind == format.ZeroTail {
		return p, false
	}
	err := s.src.log.View(func(data []byte) error {
		b, found := format.DecodeSpan(data, h.Pos, h.Pos+h.Len)
		if !found {
			return nil
		}
		var length [4]byte
		binary.BigEndian.PutUint32(length[:], uint32(h.Len-format.LogOverhead))
		p = piece{src: s.src, from: h.Pos, to: h.Pos + h.Len, batches: 1, way: fixed, patch: []change{{8, length[:]}},
			how: fmt.Sprintf("with a length of %d its checksum holds", h.Len-format.LogOverhead)}
		p, ok = s.repaired(p, &b)
		return nil
	})
	return p, ok && err == nil
}

// repaired completes a piece by the batch as it will be, of which the checksum must hold and the records be whole.
func (s *scanner) repaired(p piece, b *format.Batch) (piece, bool) {
	if !b.Plausible() || !b.Valid() {
		return p, false
	}
	first, n, err := intact(s.reader, b)
	p.first, p.last, p.records, p.epochs = first, b.LastOffset, n, [2]int32{b.LeaderEpoch, b.LeaderEpoch}
	return p, err == nil
}

// patched is a copy of a batch's bytes with changes.
func patched(raw []byte, patch []change) []byte {
	fresh := append([]byte(nil), raw...)
	for _, c := range patch {
		copy(fresh[c.at:], c.bytes)
	}
	return fresh
}

// saveRecords makes a piece of the records of a batch that can be read, though it is not intact, if that is asked for.
func (s *scanner) saveRecords(b *format.Batch) {
	if !s.opts.Records || b.Legacy() || b.Control() {
		return
	}
	saved := readable(s.reader, b)
	if len(saved) == 0 {
		return
	}
	n := len(saved)
	p := piece{src: s.src, from: b.Pos, to: b.End(), first: saved[0].Offset, last: saved[n-1].Offset, batches: 1,
		records: int64(n), way: byRecord, how: fmt.Sprintf("%d of %d records can be read; nothing vouches for them", n,
			max(0, b.Count))}
	p.epochs = [2]int32{b.LeaderEpoch, b.LeaderEpoch}
	var made format.Batch
	if made.Decode(remade(s.reader, b), 0) != nil || !made.Plausible() {
		return // the header is damaged, too
	}
	p.suspect = p.first < s.src.base || p.last-s.src.base > 1<<31-1 || p.last >= s.src.limit
	s.pieces = append(s.pieces, p)
}

// readable are the records of a batch up to the first that makes no sense. They are valid until the reader's next use.
func readable(r *format.RecordReader, b *format.Batch) []format.Record {
	r.Reset(b)
	var all []format.Record
	var rec format.Record
	for previous := int64(-1); r.Next(&rec) && rec.Offset > previous && rec.Offset >= b.BaseOffset &&
		rec.Offset <= b.LastOffset; previous = rec.Offset {
		all = append(all, rec)
	}
	return all
}

// remade is a batch of those records of another that can be read.
func remade(r *format.RecordReader, b *format.Batch) []byte {
	saved := readable(r, b)
	h := *b
	h.Magic, h.Attributes = 2, b.Attributes&^0x47 // neither compressed nor with a delete horizon
	h.BaseOffset, h.BaseTimestamp, h.MaxTimestamp = saved[0].Offset, saved[0].Timestamp, saved[0].Timestamp
	h.LastOffsetDelta, h.Count = int32(saved[len(saved)-1].Offset-h.BaseOffset), int32(len(saved))
	h.BaseSequence = saved[0].Sequence
	var body []byte
	for i := range saved {
		h.MaxTimestamp = max(h.MaxTimestamp, saved[i].Timestamp)
		body = format.AppendRecord(body, &saved[i], saved[i].Timestamp-h.BaseTimestamp, int32(saved[i].Offset-h.BaseOffset))
	}
	return format.AppendBatch(nil, &h, body)
}
