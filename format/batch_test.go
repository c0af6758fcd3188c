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

// Every single flipped bit of a batch or an old message, from the stored checksum on, is named from the checksum alone.
func TestFlippedBitNamesEveryBit(t *testing.T) {
	for _, c := range []struct {
		magic    byte
		crcAt    int
		table    *crc32.Table
		skipByte int // the magic byte: a flip there makes another format of it
	}{{2, 17, castagnoli, -1}, {1, 12, crc32.IEEETable, 16}, {0, 12, crc32.IEEETable, 16}} {
		raw := make([]byte, 100)
		for i := range raw {
			raw[i] = byte(i * 7)
		}
		raw[8], raw[9], raw[10], raw[11], raw[16] = 0, 0, 0, 88, c.magic
		crc := crc32.Checksum(raw[c.crcAt+4:], c.table)
		raw[c.crcAt], raw[c.crcAt+1], raw[c.crcAt+2], raw[c.crcAt+3] = byte(crc>>24), byte(crc>>16), byte(crc>>8), byte(crc)
		for at := c.crcAt; at < len(raw); at++ {
			for bit := range 8 {
				if at == c.skipByte {
					continue
				}
				raw[at] ^= 1 << bit
				b, err := DecodeBatch(raw, 0)
				if err != nil {
					t.Fatal(err)
				}
				pos, k, ok := b.FlippedBit()
				if !ok || pos != int64(at) || k != bit {
					t.Fatalf("magic %d, flip of byte %d bit %d: got %d, %d, %v", c.magic, at, bit, pos, k, ok)
				}
				raw[at] ^= 1 << bit
			}
		}
	}
}

func TestXXH32(t *testing.T) {
	for in, want := range map[string]uint32{"": 0x02CC5D05, "a": 0x550D7456,
		"Nobody inspects the spammish repetition": 0xE2293B2F} {
		if got := xxh32([]byte(in)); got != want {
			t.Errorf("xxh32(%q) = %#x, want %#x", in, got, want)
		}
	}
}
