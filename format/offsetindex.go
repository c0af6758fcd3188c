package format

import "encoding/binary"

// offsetEntrySize is the length of an offset index entry in bytes.
const offsetEntrySize = 8

// OffsetEntry is one entry of an offset index: the batch that starts at Position in the segment's log ends at Offset
// (since 4.0.1; earlier brokers stored another offset of the same append, see docs/format/index.md).
type OffsetEntry struct {
	Offset   int64 // absolute: the segment's base offset plus the stored int32, which may be negative in a broken file
	Position int32 // byte position in the .log
}

// OffsetIndex is a view of an .index file (Kafka's OffsetIndex): entries of 8 bytes, int32 offset relative to the base
// offset and int32 position, big-endian, with no header, no count and no checksum. Any bytes make an index; whether
// its entries make sense is the business of OffsetIndexCheck.
type OffsetIndex struct{ slots }

// NewOffsetIndex views raw, which it keeps without copying; base is the base offset of the segment.
func NewOffsetIndex(raw []byte, base int64) OffsetIndex {
	return OffsetIndex{slots{raw: raw, base: base, width: offsetEntrySize}}
}

// Entry is slot i, which must be in [0, Len()).
func (x OffsetIndex) Entry(i int) OffsetEntry {
	b := x.raw[i*offsetEntrySize : i*offsetEntrySize+offsetEntrySize]
	return OffsetEntry{
		Offset:   x.base + int64(int32(binary.BigEndian.Uint32(b))),
		Position: int32(binary.BigEndian.Uint32(b[4:])),
	}
}

// Logical is the index without its trailing zero slots and stray bytes, as the broker that wrote it would have it in
// memory: a genuine entry is never (0, 0), since the first batch of a segment is never indexed.
func (x OffsetIndex) Logical() OffsetIndex { return x.Head(x.Len() - x.ZeroTail()) }

// Head is the index cut to its first n entries; n must be in [0, Len()].
func (x OffsetIndex) Head(n int) OffsetIndex { return OffsetIndex{x.head(n)} }

// AppendOffsetEntry appends the eight bytes of e, an entry of a segment that starts at base, to dst. The caller makes
// sure that e.Offset − base fits an int32.
func AppendOffsetEntry(dst []byte, base int64, e OffsetEntry) []byte {
	dst = binary.BigEndian.AppendUint32(dst, uint32(e.Offset-base))
	return binary.BigEndian.AppendUint32(dst, uint32(e.Position))
}

var offsetIndexContent = Content{describe: (*describer).offsetIndex,
	count: func(raw []byte) int { return NewOffsetIndex(raw, 0).Logical().Len() },
	entryOf: func(raw []byte, base, offset int64) (int, error) {
		x := NewOffsetIndex(raw, base).Logical()
		return lastWhere(x.Len(), func(i int) bool { return x.Entry(i).Offset <= offset }), nil
	}}
