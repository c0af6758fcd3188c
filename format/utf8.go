package format

import "unicode/utf8"

const replacement = "\uFFFD"

// AppendJavaUTF8 appends b with every ill-formed part replaced by U+FFFD the way new String(bytes, UTF_8) does in Java,
// which is neither Go's rule (one per byte) nor Unicode's: one U+FFFD stands for a lead byte and the continuation bytes
// that were still possible after it, and an encoded surrogate (ED A0..BF 80..BF) is one as a whole.
func AppendJavaUTF8(dst, b []byte) []byte {
	for !utf8.Valid(b) {
		n := validPrefix(b)
		dst = append(dst, b[:n]...)
		dst = append(dst, replacement...)
		b = b[n+javaMalformedLen(b[n:]):]
	}
	return append(dst, b...)
}

// validPrefix counts the bytes before the first ill-formed one; there is one.
func validPrefix(b []byte) int {
	n := 0
	for {
		r, size := utf8.DecodeRune(b[n:])
		if r == utf8.RuneError && size <= 1 {
			return n
		}
		n += size
	}
}

// javaMalformedLen is how many bytes at the start of b, which are ill-formed, Java replaces by one character.
func javaMalformedLen(b []byte) int {
	lead := b[0]
	want, low, high := 0, byte(0x80), byte(0xbf) // continuation bytes after the lead, and the range of the first one
	switch {
	case lead >= 0xc2 && lead <= 0xdf:
		want = 1
	case lead >= 0xe0 && lead <= 0xef:
		want = 2
		if lead == 0xe0 {
			low = 0xa0
		}
	case lead >= 0xf0 && lead <= 0xf4:
		want = 3
		if lead == 0xf0 {
			low = 0x90
		}
		if lead == 0xf4 {
			high = 0x8f
		}
	}
	n := 1
	for n <= want && n < len(b) && b[n] >= low && b[n] <= high {
		low, high = 0x80, 0xbf
		n++
	}
	return n
}
