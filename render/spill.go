package render

import "unicode/utf8"

// Spill writes out what a buffer holds and returns it empty. Who appends a long value calls it now and then, so that
// what is shown of a value does not come to stand in memory beside it. A nil Spill leaves the buffer to grow.
type Spill func(buf []byte) []byte

// piece is how many bytes of a value are appended between two calls: a multiple of 3, for base64.
const piece = 192 << 10

// room spills dst if it is long. The last byte stays, as it tells what may come after it.
func (s Spill) room(dst []byte) []byte {
	if s == nil || len(dst) < piece {
		return dst
	}
	last := dst[len(dst)-1]
	return append(s(dst[:len(dst)-1]), last)
}

// Append appends b by add, which takes any part of b that does not end inside a character.
func (s Spill) Append(dst, b []byte, add func(dst, part []byte) []byte) []byte {
	for s != nil && len(b) > piece {
		n := piece
		for back := range utf8.UTFMax {
			if utf8.RuneStart(b[piece-back]) {
				n -= back
				break
			}
		}
		dst, b = s.room(add(dst, b[:n])), b[n:]
	}
	return add(dst, b)
}

// appendBytes is Append for an add that takes any multiple of 3 bytes.
func (s Spill) appendBytes(dst, b []byte, add func(dst, part []byte) []byte) []byte {
	for s != nil && len(b) > piece {
		dst, b = s.room(add(dst, b[:piece])), b[piece:]
	}
	return add(dst, b)
}
