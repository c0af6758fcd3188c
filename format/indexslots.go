package format

import (
	"bytes"
	"encoding/binary"
)

// slots is what the offset index and the time index have in common: fixed-size entries without header or checksum,
// sorted by key, possibly followed by the zeros of a preallocated file. It aliases the bytes it was given.
type slots struct {
	raw   []byte
	base  int64
	width int // bytes of an entry: 8 (offset index) or 12 (time index)
}

// Base is the base offset of the segment; entries store offsets relative to it.
func (s slots) Base() int64 { return s.base }

// Len is the number of whole slots, zeros included: what a broker takes for the number of entries when it opens the
// file.
func (s slots) Len() int { return len(s.raw) / s.width }

// StrayBytes is the number of bytes after the last whole slot.
func (s slots) StrayBytes() int { return len(s.raw) % s.width }

// Position is the byte position of slot i in the file.
func (s slots) Position(i int) int64 { return int64(i) * int64(s.width) }

// ZeroTail is the number of all-zero slots at the end of the file: preallocated room, or damage.
func (s slots) ZeroTail() int {
	end := s.Len() * s.width
	last := end
	for last >= len(zeros) && bytes.Equal(s.raw[last-len(zeros):last], zeros[:]) {
		last -= len(zeros)
	}
	for last > 0 && s.raw[last-1] == 0 {
		last--
	}
	return (end - last) / s.width
}

// head returns the first n slots, without stray bytes.
func (s slots) head(n int) slots {
	end := n * s.width
	return slots{raw: s.raw[:end:end], base: s.base, width: s.width}
}

// key is what slot i is searched by: its absolute offset, or its timestamp.
func (s slots) key(i int) int64 {
	if s.width == offsetEntrySize {
		return s.base + int64(int32(binary.BigEndian.Uint32(s.raw[i*offsetEntrySize:])))
	}
	return int64(binary.BigEndian.Uint64(s.raw[i*timeEntrySize:]))
}
