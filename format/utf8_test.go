package format_test

import (
	"hash/crc32"
	"testing"
	"unicode/utf8"

	"kseg/format"
	"kseg/internal/fixture"
)

// The checksums are of what Java 17 made of the same inputs, each followed by a byte FF:
// new String(bytes, UTF_8).getBytes(UTF_8).
func TestAppendJavaUTF8AllShort(t *testing.T) {
	want := map[int]uint32{1: 0x3b053ce4, 2: 0xe273bb24, 3: 0xb3baf123}
	for n := 1; n <= fixture.Times(2, 3); n++ {
		alphabet := make([]byte, 256)
		for i := range alphabet {
			alphabet[i] = byte(i)
		}
		if got := javaUTF8Sum(alphabet, n); got != want[n] {
			t.Errorf("all sequences of %d bytes: checksum %08x, Java has %08x", n, got, want[n])
		}
	}
}

func TestAppendJavaUTF8Boundaries(t *testing.T) {
	alphabet := []byte{0x00, 0x41, 0x7f, 0x80, 0x8f, 0x90, 0x9f, 0xa0, 0xbf, 0xc0, 0xc1, 0xc2, 0xdf, 0xe0, 0xe1, 0xec,
		0xed, 0xee, 0xef, 0xf0, 0xf1, 0xf3, 0xf4, 0xf5, 0xf7, 0xf8, 0xff}
	want := map[int]uint32{4: 0x3e3470d8, 5: 0x667b338a}
	for n := 4; n <= fixture.Times(4, 5); n++ {
		if got := javaUTF8Sum(alphabet, n); got != want[n] {
			t.Errorf("sequences of %d boundary bytes: checksum %08x, Java has %08x", n, got, want[n])
		}
	}
}

// javaUTF8Sum is the checksum over all sequences of n letters, the last letter changing fastest.
func javaUTF8Sum(alphabet []byte, n int) uint32 {
	var sum uint32
	digits := make([]int, n)
	in := make([]byte, n)
	var out []byte
	for {
		for k, d := range digits {
			in[k] = alphabet[d]
		}
		out = append(format.AppendJavaUTF8(out, in), 0xff)
		if len(out) > 1<<16 {
			sum = crc32.Update(sum, crc32.IEEETable, out)
			out = out[:0]
		}
		k := n - 1
		for ; k >= 0; k-- {
			if digits[k]++; digits[k] < len(alphabet) {
				break
			}
			digits[k] = 0
		}
		if k < 0 {
			return crc32.Update(sum, crc32.IEEETable, out)
		}
	}
}

func FuzzAppendJavaUTF8(f *testing.F) {
	f.Add([]byte("caf\xc3\xa9 \xed\xa0\x80 \xf0\x9f"))
	f.Fuzz(func(t *testing.T, b []byte) {
		got := format.AppendJavaUTF8([]byte("x"), b)
		if got[0] != 'x' || !utf8.Valid(got) {
			t.Fatalf("%q became %q", b, got)
		}
		if utf8.Valid(b) && string(got[1:]) != string(b) {
			t.Fatalf("valid %q became %q", b, got)
		}
	})
}
