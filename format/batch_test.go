package format

import (
	"hash/crc32"
	"testing"
)

func TestSequencesWrap(t *testing.T) {
	const most = 1<<31 - 1
	for _, c := range []struct{ from, by, want int32 }{{0, 0, 0}, {most, 1, 0}, {most - 1, 1, most}, {most - 1, 3, 1}} {
		if got := IncrementSequence(c.from, c.by); got != c.want {
			t.Errorf("IncrementSequence(%d, %d) = %d, want %d", c.from, c.by, got, c.want)
		}
		if got := DecrementSequence(c.want, c.by); got != c.from {
			t.Errorf("DecrementSequence(%d, %d) = %d, want %d", c.want, c.by, got, c.from)
		}
	}
}

// Every single flipped bit of a batch, from the stored checksum on, is named from the checksum alone.
func TestFlippedBitNamesEveryBit(t *testing.T) {
	raw := make([]byte, 100)
	for i := range raw {
		raw[i] = byte(i * 7)
	}
	raw[8], raw[9], raw[10], raw[11], raw[16] = 0, 0, 0, 88, 2
	crc := crc32.Checksum(raw[21:], castagnoli)
	raw[17], raw[18], raw[19], raw[20] = byte(crc>>24), byte(crc>>16), byte(crc>>8), byte(crc)
	for at := 17; at < len(raw); at++ {
		for bit := range 8 {
			raw[at] ^= 1 << bit
			b := decodeV2(raw, raw, 1000)
			pos, k, ok := b.FlippedBit()
			if !ok || pos != int64(1000+at) || k != bit {
				t.Fatalf("flip of byte %d bit %d: got %d, %d, %v", at, bit, pos, k, ok)
			}
			raw[at] ^= 1 << bit
		}
	}
}

func TestXXH32(t *testing.T) {
	for in, want := range map[string]uint32{"": 0x02CC5D05, "a": 0x550D7456, "Nobody inspects the spammish repetition": 0xE2293B2F} {
		if got := xxh32([]byte(in)); got != want {
			t.Errorf("xxh32(%q) = %#x, want %#x", in, got, want)
		}
	}
}
