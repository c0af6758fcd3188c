package format

import "encoding/binary"

// Ends of an LZ4 block that the reference decoder treats specially, in bytes.
const (
	lz4LastLiterals = 5 // no match may end in these bytes of the room for output
	lz4MinMatch     = 4
	// lz4TailInput is how much input must be left after literals for another sequence to follow.
	lz4TailInput = 2 + 1 + lz4LastLiterals
)

// lz4Lenient decodes a block into dst and returns the number of bytes, -1 on failure. It accepts and refuses exactly
// what LZ4_decompress_safe does, which is Kafka's decoder, while the faster library refuses two kinds of damaged blocks
// that Kafka reads: a match length in the last sequence is ignored, and a match at distance 0 gives zeros.
func lz4Lenient(dst, src []byte) int {
	in, out := 0, 0
	for in < len(src) {
		token := int(src[in])
		in++
		literals, next := lz4Length(src, in, token>>4, len(src)-15)
		if next < 0 || literals > len(dst)-out || literals > len(src)-next {
			return -1
		}
		in = next
		last := out+literals > len(dst)-lz4LastLiterals-7 || in+literals > len(src)-lz4TailInput
		if last && in+literals != len(src) {
			return -1
		}
		copy(dst[out:], src[in:in+literals])
		in, out = in+literals, out+literals
		if last {
			return out
		}
		distance := int(binary.LittleEndian.Uint16(src[in:]))
		match, next := lz4Length(src, in+2, token&15, len(src)-lz4LastLiterals+1)
		match += lz4MinMatch
		if next < 0 || distance > out || match > len(dst)-lz4LastLiterals-out {
			return -1
		}
		in = next
		for end := out + match; out < end; out++ {
			dst[out] = 0
			if distance > 0 {
				dst[out] = dst[out-distance]
			}
		}
	}
	return -1
}

// lz4Length reads a length of which n are the four bits in the token, with the bytes that follow at in if all four are
// set, and returns where it ends, -1 if that is beyond most.
func lz4Length(src []byte, in, n, most int) (length, next int) {
	if n < 15 {
		return n, in
	}
	for in < most {
		b := int(src[in])
		in++
		if n += b; b < 255 {
			return n, in
		}
	}
	return 0, -1
}
