package format

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"strconv"
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
	// Unreadable is what a device does not give. No Scanner tells of it, but who reads for one.
	Unreadable
)

// String is the name used in JSON.
func (k HoleKind) String() string {
	switch k {
	case TornTail:
		return "torn-tail"
	case ZeroTail:
		return "zero-tail"
	case Unreadable:
		return "unreadable"
	}
	return "damage"
}

// Hole is a range of a segment that could not be read as batches.
type Hole struct {
	Kind HoleKind
	// Pos is where reading failed. If an intact batch begins inside what was handed out for a batch before, because the
	// length of that is wrong, Pos is the position of that one, and the hole overlaps it and what came after it.
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
	// Stop is where reading by lengths alone ended: Pos, but for an overlapping hole the end of the last batch in it.
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
	lengths  Trust
	last     int64 // position of the last batch with a sane header since the last hole, -1: none
	odd      int64 // position of the first batch after it, if that has no sane header, -1: none
	budget   int64
	again    int64 // bytes that holes may still lead back over
	zeros    int64 // from here on all bytes are known to be zero
}

// Trust says how far a scanner believes in lengths.
type Trust int8

// The three degrees.
const (
	// TrustSane takes for a batch what has a sane header or leads on to one. It is what a scanner begins with.
	TrustSane Trust = iota
	// TrustLengths takes for a batch whatever the size field spans, as Kafka's FileLogInputStream does, even where the
	// header makes no sense.
	TrustLengths
	// TrustBlindly is TrustLengths without looking for intact batches inside those that are not intact.
	TrustBlindly
)

// NewScanner starts at byte pos of the file data. base is the segment's base offset (-1: unknown), by which a torn
// tail is told from garbage.
func NewScanner(data []byte, pos, base int64) *Scanner {
	return &Scanner{data: data, pos: pos, base: base, expected: base, last: -1, odd: -1, budget: resyncBudget(len(data)),
		again: 2 * int64(len(data)), zeros: int64(len(data))}
}

// Zeros says that all bytes from a position on are zero, as those of a hole of the file system, so that they are not
// looked at.
func (s *Scanner) Zeros(from int64) { s.zeros = from }

// onlyZeros reports whether nothing but zeros comes from pos on.
func (s *Scanner) onlyZeros(pos int64) bool { return pos >= s.zeros || allZero(s.data[pos:s.zeros]) }

// Trust sets how far lengths are believed.
func (s *Scanner) Trust(t Trust) { s.lengths = t }

// resyncBudget bounds the bytes that all searches over a file of n bytes may run checksums over, so that a file made
// of false beginnings does not take quadratic time.
func resyncBudget(n int) int64 { return 256<<20 + 4*int64(n) }

// Next advances to the next batch or hole and reports whether there is one.
func (s *Scanner) Next() bool {
	if s.pos >= int64(len(s.data)) {
		return s.unveil(s.pos, -1)
	}
	b, err := DecodeBatch(s.data, s.pos)
	if err != nil {
		s.findHole(err)
		return true
	}
	sane := saneFields(&b) || provenOdd(&b)
	switch {
	case sane && s.unveil(b.Pos, b.BaseOffset):
	case sane || s.lengths != TrustSane || s.leadsOn(&b):
		s.take(&b, sane)
	default:
		s.findHole(&Error{What: "batch header", Pos: s.pos, Want: "the header of a batch", Got: "other bytes", Err: ErrValue})
	}
	return true
}

// NextIn is Next for a plain batch that lies whole in window, a copy of the file's bytes from position at on: the batch
// goes to b, with bytes of the window, and the file's own are not touched. It answers false, and nothing but b has
// changed, where only Next can tell what is there.
func (s *Scanner) NextIn(window []byte, at int64, b *Batch) bool {
	if s.pos < at || s.pos >= at+int64(len(window)) {
		return false
	}
	if b.Decode(window, s.pos-at) != nil || !saneHeader(b) || !s.settled(b.BaseOffset) && !s.soundIn(window, at) {
		return false
	}
	b.Pos = s.pos
	s.pos, s.last, s.odd, s.isHole = b.End(), b.Pos, -1, false
	s.expect(b)
	return true
}

// soundIn reports whether the last batch lies in the window and has the right checksum, so that nothing is in doubt.
func (s *Scanner) soundIn(window []byte, at int64) bool {
	if s.odd >= 0 || s.last < at {
		return false
	}
	last, err := DecodeBatch(window, s.last-at)
	return err == nil && last.Valid()
}

// take makes b the current batch.
func (s *Scanner) take(b *Batch, sane bool) {
	s.batch, s.isHole = *b, false
	s.pos = b.End()
	switch {
	case sane:
		s.last, s.odd = b.Pos, -1
		s.expect(b)
	case s.odd < 0:
		s.odd = b.Pos
	}
}

// expect notes the offset after b, reading through a damaged magic byte.
func (s *Scanner) expect(b *Batch) {
	if b.Magic != 2 {
		if v2, ok := b.AsV2(); ok {
			s.expected = v2.NextOffset()
			return
		}
	}
	s.expected = b.NextOffset()
}

// provenOdd reports whether the checksum proves an entry with an odd header to be a batch.
func provenOdd(b *Batch) bool {
	if b.Magic >= 2 && b.Valid() {
		return true
	}
	_, ok := b.AsV2()
	return ok
}

// leadsOn decides whether an entry with an odd header is to be taken for a batch all the same: another sane header or
// the end of the file follows where its length says.
func (s *Scanner) leadsOn(b *Batch) bool {
	if b.End() == int64(len(s.data)) {
		return b.Magic >= 0 && b.Magic <= 2
	}
	next, err := DecodeBatch(s.data, b.End())
	return err == nil && saneHeader(&next)
}

// settled reports whether nothing that was handed out before a batch of offset base (-1: the file's end) is in doubt.
func (s *Scanner) settled(base int64) bool {
	return s.lengths == TrustBlindly || s.odd < 0 && (s.last < 0 || base >= 0 && base <= s.expected)
}

// unveil looks for intact batches in what was handed out last, if that is in doubt, up to the byte to, where the batch
// of offset base begins (-1: the file ends): a wrong length may have jumped over them and hit a beginning again. What
// it finds becomes a hole in front of them.
func (s *Scanner) unveil(to, base int64) bool {
	if s.settled(base) {
		return false
	}
	from, low := s.odd, s.expected
	if last, ok := s.doubted(); ok {
		from, low = last.Pos, min(low, last.NextOffset())
	}
	s.last = -1 // it is looked at once
	if from < 0 {
		return false
	}
	found, ok := s.search(from+1, to, func(b *Batch) bool {
		return b.BaseOffset >= low && (base < 0 || b.LastOffset < base) && (!b.Legacy() || s.leadsTo(b, to))
	})
	if !ok {
		s.odd = -1
		return false
	}
	h := Hole{Kind: Damage, Pos: from, Stop: from, Expected: low, Next: found.Pos, NextOffset: found.BaseOffset,
		Len: found.Pos - from}
	h.Err = &Error{What: "batch length", Pos: from + 8, Want: "a batch of " + strconv.FormatInt(h.Len, 10) + " bytes",
		Got: "one that runs over intact batches", Err: ErrValue}
	if s.odd >= 0 && found.Pos < s.odd {
		h.Stop = s.odd
	}
	s.setHole(h, found.Pos)
	return true
}

// doubted is the last batch with a sane header, if its checksum is wrong.
func (s *Scanner) doubted() (Batch, bool) {
	if s.last < 0 {
		return Batch{}, false
	}
	b, err := DecodeBatch(s.data, s.last)
	return b, err == nil && !b.Valid() && !provenOdd(&b)
}

// leadsTo reports whether intact batches follow each other from b to the byte to. Payloads may hold messages of magic 0
// and 1, and compressed ones too.
func (s *Scanner) leadsTo(b *Batch, to int64) bool {
	for next := *b; ; {
		if next.End() == to {
			return true
		}
		offset := next.LastOffset
		var err error
		if next, err = DecodeBatch(s.data[:to], next.End()); err != nil || next.BaseOffset <= offset {
			return false
		}
		if s.budget -= next.Size(); s.budget < 0 || !next.Valid() {
			return false
		}
	}
}

// findHole describes the bytes from s.pos on, which are no batch.
func (s *Scanner) findHole(why error) {
	h := Hole{Pos: s.pos, Stop: s.pos, Expected: s.expected, Next: -1, NextOffset: -1, Err: why}
	rest := s.data[s.pos:]
	from := s.pos
	if s.odd >= 0 {
		from = s.odd
	}
	last, doubted := s.doubted()
	if doubted {
		from = last.Pos
	}
	if from == s.pos && s.onlyZeros(s.pos) {
		h.Kind, h.Len = ZeroTail, int64(len(rest))
		s.setHole(h, int64(len(s.data)))
		return
	}
	var fits func(*Batch) bool
	if tornWrapper(rest, s.expected, s.base) {
		last := int64(binary.BigEndian.Uint64(rest))
		fits = func(b *Batch) bool { return b.BaseOffset > last }
	}
	next, ok := s.search(from+1, int64(len(s.data)), fits)
	h.GaveUp = s.budget < 0
	if !ok {
		h.Kind, h.Len = s.tailKind(rest), int64(len(rest))
		s.setHole(h, int64(len(s.data)))
		return
	}
	h.Kind, h.Next, h.NextOffset = Damage, next.Pos, next.BaseOffset
	if s.odd >= 0 && s.odd < s.pos {
		h.Pos = s.odd
	}
	if doubted && next.Pos < h.Pos {
		h.Pos, h.Expected = last.Pos, last.BaseOffset
	}
	h.Len = next.Pos - h.Pos
	s.setHole(h, next.Pos)
}

// setHole makes h the current hole, after which reading resumes at pos. Where too much would be gone over again and
// again, the searches end.
func (s *Scanner) setHole(h Hole, pos int64) {
	if s.again -= max(0, s.pos-pos); s.again < 0 {
		s.budget = -1
	}
	s.hole, s.isHole, s.pos = h, true, pos
	s.last, s.odd = -1, -1
}

func (s *Scanner) tailKind(rest []byte) HoleKind {
	switch {
	case s.onlyZeros(s.pos):
		return ZeroTail
	case TornBatch(rest, s.expected, s.base):
		return TornTail
	}
	return Damage
}

// search finds the first intact batch that begins at from or later, ends at to or before, and fits (nil: any does).
func (s *Scanner) search(from, to int64, fits func(*Batch) bool) (Batch, bool) {
	data := s.data[:to]
	for pos := from; pos+MagicPrefix < to && pos < s.zeros; pos++ {
		if data[pos+16] > 2 || data[pos] != 0 {
			continue
		}
		// What cannot be an entry is passed over before DecodeBatch makes an error of it: there may be one at every byte.
		if size := int64(int32(binary.BigEndian.Uint32(data[pos+8:]))); size < MinEntrySize || pos+LogOverhead+size > to {
			continue
		}
		b, err := DecodeBatch(data, pos)
		if err != nil || !saneHeader(&b) || !s.belongs(&b) {
			continue
		}
		if s.budget -= b.Size(); s.budget < 0 {
			return Batch{}, false
		}
		if b.Valid() && (fits == nil || fits(&b)) {
			return b, true
		}
	}
	return Batch{}, false
}

// belongs reports whether an intact entry found in the middle of damage can be one of this segment's: payloads may hold
// whole batches of another log, and a torn wrapper of magic 0 or 1 the messages inside it. Where what comes before lies
// below the base offset, the file has the name of another one, and what goes on from there is its own.
func (s *Scanner) belongs(b *Batch) bool {
	if s.base >= 0 && (b.BaseOffset < min(s.base, s.expected) || b.LastOffset-s.base > 1<<31-1) {
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

// tornWrapper reports whether b, the end of a file, is a message of magic 0 or 1 that breaks off, with an inner length
// that agrees with the outer one. What looks intact inside and has no higher offset is then a message of the payload: a
// wrapper's, where the codec stored it as it is.
func tornWrapper(b []byte, expected, base int64) bool {
	if len(b) <= MagicPrefix || b[16] > 1 || !TornBatch(b, expected, base) {
		return false
	}
	c := NewCursor(b, 0)
	c.Bytes("header", 18+8*int64(b[16]))
	c.Bytes("key", int64(max(c.Int32("key length"), 0)))
	value := int64(max(c.Int32("value length"), 0))
	return c.OK() && c.Pos()+value == LogOverhead+int64(int32(binary.BigEndian.Uint32(b[8:])))
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

// FlippedBit finds the single bit whose flip explains a wrong checksum: the byte position in the file and the bit (0 is
// the lowest). It works on the syndrome, stored XOR computed, in one backward pass. A flipped bit of the stored
// checksum itself is found too.
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
	// A flip of bit k in the last byte changes the CRC by table[1<<k]; one byte further from the end, that value is
	// shifted through one more zero byte. Eight running values follow the eight bits.
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
func (s *Scanner) Stop() {
	s.pos = int64(len(s.data))
	s.last, s.odd = -1, -1
}

// Expected is the offset that should come next, -1 if that is unknown.
func (s *Scanner) Expected() int64 { return s.expected }

// Resync passes over bytes: the next batch is the first intact one that begins at from or later. It is false, and Next
// will report the end, if there is none.
func (s *Scanner) Resync(from int64) (next Batch, ok bool) {
	if next, ok = s.search(from, int64(len(s.data)), nil); !ok {
		s.Stop()
		return next, false
	}
	s.pos, s.last, s.odd = next.Pos, -1, -1
	return next, true
}
