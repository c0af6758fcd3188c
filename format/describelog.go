package format

import (
	"encoding/binary"
	"hash/crc32"
	"strconv"
)

// Part is a piece of a segment or KRaft snapshot: a batch, or a hole where none can be read.
type Part struct {
	Start, End int64
	// Raw are its bytes.
	Raw []byte
	// Batch is nil in a hole. Where the checksum proves that the length or the magic is wrong, it is read as it was
	// written.
	Batch *Batch
	// Hole is nil for a batch.
	Hole *Hole
	// LengthFault and MagicFault are about these two fields, which are outside of the checksum; nil if they are right.
	LengthFault, MagicFault *Error
}

// Parts cuts a segment into batches and holes as a Scanner does, without overlaps, and reads through a wrong length or
// magic where the checksum shows what they should be.
type Parts struct {
	data   []byte
	s      *Scanner
	part   Part
	kept   bool  // the scanner stands at an item that was looked at but not handed out
	budget int64 // bytes that may still be run through checksums in search of a length
}

// NewParts starts at the first byte of a file. base is the segment's base offset, −1 if unknown.
func NewParts(data []byte, base int64) *Parts {
	return &Parts{data: data, s: NewScanner(data, 0, base), budget: resyncBudget(len(data))}
}

// Part is the current part. It is overwritten by Next.
func (p *Parts) Part() *Part { return &p.part }

// Next advances to the next part and reports whether there is one.
func (p *Parts) Next() bool {
	if !p.advance() {
		return false
	}
	if h := p.s.Hole(); h != nil {
		p.hole(*h)
		return true
	}
	b := *p.s.Batch()
	if b.Pos < p.part.End {
		p.hole(Hole{Kind: Damage, Pos: b.Pos, Len: b.Size(), Next: -1, Expected: -1, NextOffset: -1, Stop: b.Pos,
			Err: &Error{What: "batch", Pos: b.Pos, Want: "one that begins at byte " + strconv.FormatInt(p.part.End, 10),
				Got: "one that begins in the batch before", Err: ErrValue}})
		return true
	}
	if p.kept = p.s.Next(); p.kept && p.s.Hole() != nil && !b.Valid() {
		h := *p.s.Hole()
		if p.repair(b.Pos, h.Pos+h.Len) {
			p.kept = false
			return true
		}
		if h.Pos <= b.Pos {
			return p.Next()
		}
	}
	p.batch(b, nil)
	return true
}

// advance brings the scanner to the next item that has not been handed out whole: where lengths led nowhere it goes
// back to before those that led there.
func (p *Parts) advance() bool {
	for p.kept || p.s.Next() {
		p.kept = false
		end := int64(0)
		if h := p.s.Hole(); h != nil {
			end = h.Pos + h.Len
		} else {
			end = p.s.Batch().End()
		}
		if end > p.part.End {
			return true
		}
	}
	return false
}

// hole hands out a hole, or the batch that it is if one wrong field explains it. A hole never reaches back into the
// part before it, which was read by other means than the scanner's.
func (p *Parts) hole(h Hole) {
	end := h.Pos + h.Len
	h.Pos = max(h.Pos, p.part.End)
	h.Len = end - h.Pos
	if h.Kind != ZeroTail && p.repair(h.Pos, end) {
		return
	}
	p.part = Part{Start: h.Pos, End: end, Raw: p.data[h.Pos:end:end], Hole: &h}
}

// batch makes the part of a batch, read with the magic that its checksum speaks for.
func (p *Parts) batch(b Batch, lengthFault *Error) {
	p.part = Part{Start: b.Pos, End: b.End(), Raw: b.Raw, Batch: &b, LengthFault: lengthFault}
	if sound, ok := b.soundMagic(); ok {
		p.part.MagicFault = &Error{What: "magic", Pos: b.Pos + 16, Want: strconv.Itoa(int(sound.Magic)),
			Got: strconv.Itoa(int(b.Magic)), Err: ErrValue}
		p.part.Batch = &sound
	}
}

// repair tries to read a batch at pos, where the scanner found none, or one that runs into a hole; end is where the
// hole ends, since there the next intact batch begins, or the file ends. It succeeds if one wrong field explains
// everything.
func (p *Parts) repair(pos, end int64) bool {
	b, err := DecodeBatch(p.data, pos)
	if err == nil && b.End() <= end && p.afford(4*b.Size()) { // so many checksums may it take
		_, _, flipped := b.FlippedBit()
		if _, magic := b.soundMagic(); magic || flipped {
			p.resume(b, nil)
			return true
		}
	}
	size, ok := p.soundLength(pos, end)
	if !ok {
		return false
	}
	raw := p.data[pos : pos+size : pos+size]
	stored := int32(binary.BigEndian.Uint32(raw[8:]))
	fault := &Error{What: "batch length", Pos: pos + 8, Want: strconv.FormatInt(size-LogOverhead, 10),
		Got: strconv.Itoa(int(stored)), Err: ErrValue}
	if raw[16] == 2 {
		var b Batch
		b.decodeV2(raw, raw, pos)
		p.resume(b, fault)
	} else {
		p.resume(decodeLegacy(raw, raw, pos), fault)
	}
	return true
}

// resume hands out b and lets the scanner go on after it.
func (p *Parts) resume(b Batch, lengthFault *Error) {
	p.s.resume(&b)
	p.batch(b, lengthFault)
}

// resume makes the scanner go on after b, which was read by other means.
func (s *Scanner) resume(b *Batch) {
	s.take(b, true)
}

// soundLength looks for the size of the entry at pos for which its checksum holds: up to end, or one below that which
// differs from the stored one by a single bit. The length field is outside of the checksum, so this tells a wrong
// length from other damage.
func (p *Parts) soundLength(pos, end int64) (size int64, ok bool) {
	most := end - pos
	if most <= MagicPrefix || p.data[pos+16] > 2 {
		return 0, false
	}
	if p.crcHolds(pos, most) {
		return most, true
	}
	stored := binary.BigEndian.Uint32(p.data[pos+8:])
	for bit := range 32 {
		size := LogOverhead + int64(int32(stored^1<<bit))
		if size < most && p.crcHolds(pos, size) {
			return size, true
		}
	}
	return 0, false
}

// crcHolds reports whether the bytes are an entry with a plausible header whose checksum holds.
func (p *Parts) crcHolds(pos, size int64) bool {
	if size < LogOverhead+MinEntrySize {
		return false
	}
	raw := p.data[pos : pos+size : pos+size]
	var b Batch
	if raw[16] == 2 {
		if size < BatchHeaderSize {
			return false
		}
		b.decodeV2(raw, raw, pos)
		if !saneV2(&b) {
			return false
		}
	} else {
		b = decodeLegacy(raw, raw, pos)
	}
	return p.afford(size) && b.Valid()
}

// afford takes from what may be run through checksums, and reports whether there was enough.
func (p *Parts) afford(bytes int64) bool {
	p.budget -= bytes
	return p.budget >= 0
}

// soundMagic reads an entry with another magic than the stored one, if its checksum then holds and does not now.
func (b *Batch) soundMagic() (Batch, bool) {
	if v2, ok := b.AsV2(); ok {
		return v2, true
	}
	if b.Magic == 2 && len(b.Raw) >= BatchHeaderSize && b.Valid() || b.Legacy() && b.Magic >= 0 && b.Valid() {
		return Batch{}, false
	}
	stored := binary.BigEndian.Uint32(b.Raw[12:])
	for magic := int8(0); magic <= 1; magic++ {
		if magic == b.Magic || crc32.Update(crc32.ChecksumIEEE([]byte{byte(magic)}), crc32.IEEETable, b.Raw[17:]) != stored {
			continue
		}
		old := decodeLegacy(b.Raw, b.Raw, b.Pos)
		old.Magic, old.BaseTimestamp, old.MaxTimestamp = magic, -1, -1
		if magic == 1 && len(b.Raw) >= 26 {
			old.MaxTimestamp = int64(binary.BigEndian.Uint64(b.Raw[18:]))
			old.BaseTimestamp = old.MaxTimestamp
		}
		return old, true
	}
	return Batch{}, false
}

// Describe gives the leaves of the part to yield: those of the file, then those of the decompressed records. index is
// what the paths call the batch. It reports whether yield wants more, and the first thing that keeps the records from
// being read as they are counted: as RecordReader.Err, nil for a hole.
func (p *Part) Describe(index int, rr *RecordReader, yield func(Leaf) bool) (more bool, err error) {
	if p.Hole != nil {
		return p.describeHole(index, yield), nil
	}
	d := &describer{yield: yield, buf: p.Batch.Raw, limit: len(p.Batch.Raw), origin: p.Start}
	d.proto = Leaf{Entry: index, Record: -1, Batch: p.Batch}
	d.prefix = "batch[" + strconv.Itoa(index) + "]."
	if p.Batch.Legacy() {
		err = d.legacyBatch(p, rr)
	} else {
		err = d.batch(p, rr)
	}
	return !d.stopped, err
}

// describeHole yields the one leaf of a hole.
func (p *Part) describeHole(index int, yield func(Leaf) bool) bool {
	h := p.Hole
	l := Leaf{Start: p.Start, End: p.End, Bytes: p.Raw, Entry: index, Record: -1}
	switch h.Kind {
	case ZeroTail:
		l.Path, l.Role = "zeroTail", RoleZeroTail
	case TornTail:
		l.Path, l.Role = "tornTail", RoleTornTail
	default:
		l.Path, l.Role = "damage", RoleDamage
	}
	if h.Kind != ZeroTail {
		l.Fault, _ = h.Err.(*Error)
	}
	return yield(l)
}
