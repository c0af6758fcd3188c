package format

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
)

// HoleKind says what the bytes are that no batch covers. They are different answers: only Damage is always damage.
type HoleKind int8

// The kinds of holes.
const (
	// TornTail is the beginning of a batch that the file ends in.
	TornTail HoleKind = iota + 1
	// ZeroTail is nothing but zeros up to the end: preallocation, or a crash before the data reached the disk.
	ZeroTail
	// Damage is anything else.
	Damage
)

// String is the name used in JSON.
func (k HoleKind) String() string {
	switch k {
	case TornTail:
		return "torn-tail"
	case ZeroTail:
		return "zero-tail"
	}
	return "damage"
}

// Hole is a range of a segment that could not be read as batches.
type Hole struct {
	Kind HoleKind
	// Pos is where reading failed. If the length of the batch before is wrong and an intact batch begins inside it, Pos is
	// the position of that batch before, and the hole overlaps it.
	Pos int64
	// Len is the number of bytes up to Next, or to the end of the file.
	Len int64
	// Next is the position of the next intact batch, or -1.
	Next int64
	// Expected is the offset that should have come, or -1 if that is unknown.
	Expected int64
	// NextOffset is the base offset of the batch at Next, or -1.
	NextOffset int64
	// Err says why the bytes at Pos are no batch.
	Err error
	// Stop is where reading by lengths alone ended: Pos, but for an overlapping hole the end of the batch before.
	Stop int64
	// GaveUp means the search for an intact batch was cut short by its bound on work.
	GaveUp bool
}

// Scanner walks the batches of a .log or .checkpoint file and the holes between them. It reads headers only, unless
// they do not fit together; then it looks for the next position where magic, length and checksum all hold.
type Scanner struct {
	data     []byte
	pos      int64
	base     int64
	expected int64
	batch    Batch
	hole     Hole
	isHole   bool
	started  bool
	trusting bool
	budget   int64
}

// NewScanner starts at byte pos of the file data. base is the segment's base offset (-1: unknown), by which a torn
// tail is told from garbage.
func NewScanner(data []byte, pos, base int64) *Scanner {
	return &Scanner{data: data, pos: pos, base: base, expected: base, budget: resyncBudget(len(data))}
}

// TrustLengths makes the scanner take for a batch whatever the size field spans, as Kafka's FileLogInputStream does, even
// where the header makes no sense.
func (s *Scanner) TrustLengths() { s.trusting = true }

// resyncBudget bounds the bytes that all searches over a file of n bytes may run checksums over, so that a file made
// of false beginnings does not take quadratic time.
func resyncBudget(n int) int64 { return 256<<20 + 4*int64(n) }

// Next advances to the next batch or hole and reports whether there is one.
func (s *Scanner) Next() bool {
	if s.pos >= int64(len(s.data)) {
		return false
	}
	b, err := DecodeBatch(s.data, s.pos)
	if err == nil && (s.trusting || saneFields(&b) || s.leadsOn(&b)) {
		s.batch, s.isHole, s.started = b, false, true
		s.pos = b.End()
		s.expect(&b)
		return true
	}
	if err == nil {
		err = &Error{What: "batch header", Pos: s.pos, Want: "the header of a batch", Got: "other bytes", Err: ErrValue}
	}
	s.findHole(err)
	return true
}

// expect notes the offset behind b, reading through a damaged magic byte.
func (s *Scanner) expect(b *Batch) {
	if b.Magic != 2 {
		if v2, ok := b.AsV2(); ok {
			s.expected = v2.NextOffset()
			return
		}
	}
	s.expected = b.NextOffset()
}

// leadsOn decides whether an entry with an odd header is to be taken for a batch all the same: its checksum matches, or
// another sane header or the end of the file follows where its length says.
func (s *Scanner) leadsOn(b *Batch) bool {
	if b.Magic >= 2 && b.Valid() {
		return true
	}
	if _, ok := b.AsV2(); ok {
		return true
	}
	if b.End() == int64(len(s.data)) {
		return b.Magic >= 0 && b.Magic <= 2
	}
	next, err := DecodeBatch(s.data, b.End())
	return err == nil && saneHeader(&next)
}

// findHole describes the bytes from s.pos on, which are no batch.
func (s *Scanner) findHole(why error) {
	h := Hole{Pos: s.pos, Stop: s.pos, Expected: s.expected, Next: -1, NextOffset: -1, Err: why}
	rest := s.data[s.pos:]
	from := s.pos + 1
	overlap := s.started && !s.isHole && !s.batch.Valid()
	if overlap {
		from = s.batch.Pos + 1
	}
	if allZero(rest) && !overlap {
		h.Kind, h.Len = ZeroTail, int64(len(rest))
		s.setHole(h, int64(len(s.data)))
		return
	}
	next, ok := s.resync(from)
	h.GaveUp = s.budget < 0
	if !ok {
		h.Kind, h.Len = s.tailKind(rest), int64(len(rest))
		s.setHole(h, int64(len(s.data)))
		return
	}
	h.Kind, h.Next, h.NextOffset = Damage, next.Pos, next.BaseOffset
	if next.Pos < s.pos {
		h.Pos, h.Expected = s.batch.Pos, s.batch.BaseOffset
	}
	h.Len = next.Pos - h.Pos
	s.setHole(h, next.Pos)
}

func (s *Scanner) setHole(h Hole, pos int64) {
	s.hole, s.isHole, s.pos = h, true, pos
}

func (s *Scanner) tailKind(rest []byte) HoleKind {
	switch {
	case allZero(rest):
		return ZeroTail
	case TornBatch(rest, s.expected, s.base):
		return TornTail
	}
	return Damage
}

// resync finds the first intact batch that begins at from or later.
func (s *Scanner) resync(from int64) (Batch, bool) {
	for pos := from; pos+MagicPrefix < int64(len(s.data)); pos++ {
		if s.data[pos+16] > 2 || s.data[pos] != 0 {
			continue
		}
		b, err := DecodeBatch(s.data, pos)
		if err != nil || !saneHeader(&b) || !s.belongs(&b) {
			continue
		}
		if s.budget -= b.Size(); s.budget < 0 {
			return Batch{}, false
		}
		if b.Valid() {
			return b, true
		}
	}
	return Batch{}, false
}

// belongs reports whether an intact entry found in the middle of damage can be one of this segment's: payloads may hold
// whole batches of another log, and a torn wrapper of magic 0 or 1 the messages inside it.
func (s *Scanner) belongs(b *Batch) bool {
	if s.base >= 0 && (b.BaseOffset < s.base || b.LastOffset-s.base > 1<<31-1) {
		return false
	}
	return !b.Legacy() || b.BaseOffset >= s.expected
}

// Batch is the current batch, or nil if the scanner stands at a hole. It is overwritten by Next.
func (s *Scanner) Batch() *Batch {
	if s.isHole {
		return nil
	}
	return &s.batch
}

// Hole is the current hole, or nil if the scanner stands at a batch.
func (s *Scanner) Hole() *Hole {
	if !s.isHole {
		return nil
	}
	return &s.hole
}

// Pos is where the next batch or hole begins.
func (s *Scanner) Pos() int64 { return s.pos }

// TornBatch reports whether b, the end of a file, agrees as far as it goes with the beginning of a batch of offset
// expected or later (-1: any) in a segment of that base offset (-1: unknown), and breaks off before that batch ends.
func TornBatch(b []byte, expected, base int64) bool {
	if len(b) == 0 || allZero(b) {
		return false
	}
	if !plausibleOffset(b, expected, base) {
		return false
	}
	if len(b) >= LogOverhead {
		size := int64(int32(binary.BigEndian.Uint32(b[8:])))
		if size < MinEntrySize || size+LogOverhead <= int64(len(b)) {
			return false
		}
	}
	if len(b) <= 16 {
		return true
	}
	return b[16] <= 2 && plausibleRest(b)
}

// plausibleOffset compares the offset, of which b may hold only the first bytes, with the range a next batch can have.
func plausibleOffset(b []byte, expected, base int64) bool {
	lo, hi := max(expected, 0), int64(1<<63-1)
	if base >= 0 && base <= hi-1<<31 {
		hi = base + 1<<31 - 1
	}
	var low, high [8]byte
	n := copy(low[:], b)
	copy(high[:], b[:n])
	for i := n; i < 8; i++ {
		high[i] = 0xff
	}
	return int64(binary.BigEndian.Uint64(high[:])) >= lo && int64(binary.BigEndian.Uint64(low[:])) <= hi && low[0] < 0x80
}

// plausibleRest looks at what is there of attributes and counts.
func plausibleRest(b []byte) bool {
	magic := b[16]
	size := int64(int32(binary.BigEndian.Uint32(b[8:])))
	if magic < 2 {
		return size >= MinEntrySize+8*int64(magic) && (len(b) < 18 || b[17]&^0x0f == 0 && Codec(b[17]&attrCodec) <= CodecLZ4)
	}
	if size < BatchHeaderSize-LogOverhead {
		return false
	}
	if len(b) >= 23 && (b[21] != 0 || b[22]&0x80 != 0 || !Codec(b[22]&attrCodec).Known()) {
		return false
	}
	delta := int32(-1)
	if len(b) >= 27 {
		if delta = int32(binary.BigEndian.Uint32(b[23:])); delta < 0 {
			return false
		}
	}
	if len(b) >= BatchHeaderSize {
		count := int32(binary.BigEndian.Uint32(b[57:]))
		return count >= 0 && int64(count) <= int64(delta)+1
	}
	return true
}

var zeros [4096]byte

func allZero(b []byte) bool {
	for len(b) > len(zeros) {
		if !bytes.Equal(b[:len(zeros)], zeros[:]) {
			return false
		}
		b = b[len(zeros):]
	}
	return bytes.Equal(b, zeros[:len(b)])
}

// FlippedBit finds the single bit whose flip explains a wrong checksum: the byte position in the file and the bit (0 is the
// lowest). It works on the syndrome, stored XOR computed, in one backward pass. A flipped bit of the stored checksum itself
// is found too.
func (b *Batch) FlippedBit() (pos int64, bit int, ok bool) {
	table, from := castagnoli, 21
	if b.Legacy() {
		table, from = crc32.IEEETable, 16
	}
	if len(b.Raw) < from || !b.Legacy() && len(b.Raw) < BatchHeaderSize {
		return 0, 0, false
	}
	syndrome := b.CRC ^ crc32.Checksum(b.Raw[from:], table)
	for i := range 32 {
		if syndrome == 1<<i {
			return b.Pos + crcEnd(b) - 1 - int64(i/8), i % 8, true
		}
	}
	// A flip of bit k in the last byte changes the CRC by table[1<<k]; one byte further from the end, that value is shifted
	// through one more zero byte. Eight running values follow the eight bits.
	var change [8]uint32
	for k := range change {
		change[k] = table[1<<k]
	}
	for i := len(b.Raw) - 1; i >= from; i-- {
		for k, v := range change {
			if v == syndrome {
				return b.Pos + int64(i), k, true
			}
			change[k] = table[byte(v)] ^ v>>8
		}
	}
	return 0, 0, false
}

// crcEnd is where the stored checksum ends in the entry.
func crcEnd(b *Batch) int64 {
	if b.Legacy() {
		return 16
	}
	return 21
}

// Stop makes Next report the end.
func (s *Scanner) Stop() { s.pos = int64(len(s.data)) }
