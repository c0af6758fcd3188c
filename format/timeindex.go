package format

import "encoding/binary"

// timeEntrySize is the length of a time index entry in bytes.
const timeEntrySize = 12

// TimeEntry is one entry of a time index: TimestampMs is the largest batch timestamp of the segment so far, Offset the
// last offset of the first batch that reached it.
type TimeEntry struct {
	TimestampMs int64 // milliseconds since the epoch
	Offset      int64 // absolute: the segment's base offset plus the stored int32, which may be negative in a broken file
}

// TimeIndex is a view of a .timeindex file (Kafka's TimeIndex): entries of 12 bytes, int64 timestamp and int32 offset
// relative to the base offset, big-endian, with no header, no count and no checksum.
type TimeIndex struct{ slots }

// NewTimeIndex views raw, which it keeps without copying; base is the base offset of the segment.
func NewTimeIndex(raw []byte, base int64) TimeIndex {
	return TimeIndex{slots{raw: raw, base: base, width: timeEntrySize}}
}

// Entry is slot i, which must be in [0, Len()).
func (x TimeIndex) Entry(i int) TimeEntry {
	b := x.raw[i*timeEntrySize : i*timeEntrySize+timeEntrySize]
	return TimeEntry{
		TimestampMs: int64(binary.BigEndian.Uint64(b)),
		Offset:      x.base + int64(int32(binary.BigEndian.Uint32(b[8:]))),
	}
}

// Logical is the index without its trailing zero slots and stray bytes. A zero entry can be genuine, but only the very
// first one, if the segment's first batch is a single record of timestamp 0. A file of exactly one zero slot is read
// as that, because no preallocated file is so small; in a longer one the zeros say nothing, and a caller who has seen
// the log may take Head(1).
func (x TimeIndex) Logical() TimeIndex {
	if x.Len() == 1 {
		return x.Head(1)
	}
	return x.Head(x.Len() - x.ZeroTail())
}

// Head is the index cut to its first n entries; n must be in [0, Len()].
func (x TimeIndex) Head(n int) TimeIndex { return TimeIndex{x.head(n)} }

// AppendTimeEntry appends the twelve bytes of e, an entry of a segment that starts at base, to dst. The caller makes
// sure that e.Offset − base fits an int32.
func AppendTimeEntry(dst []byte, base int64, e TimeEntry) []byte {
	dst = binary.BigEndian.AppendUint64(dst, uint64(e.TimestampMs))
	return binary.BigEndian.AppendUint32(dst, uint32(e.Offset-base))
}

var timeIndexContent = Content{describe: (*describer).timeIndex,
	count: func(raw []byte) int { return NewTimeIndex(raw, 0).Logical().Len() },
	entryOf: func(raw []byte, base, offset int64) (int, error) {
		x := NewTimeIndex(raw, base).Logical()
		return lastWhere(x.Len(), func(i int) bool { return x.Entry(i).Offset <= offset }), nil
	}}
