package format

import (
	"encoding/binary"
	"math/bits"
)

const (
	xxPrime1 = 2654435761
	xxPrime2 = 2246822519
	xxPrime3 = 3266489917
	xxPrime4 = 668265263
	xxPrime5 = 374761393
)

// xxh32 is the 32-bit xxHash of b with seed 0, which LZ4 frames use for their checksums.
func xxh32(b []byte) uint32 {
	h := uint32(len(b)) + xxPrime5
	if len(b) >= 16 {
		var p1, p2 uint32 = xxPrime1, xxPrime2
		v := [4]uint32{p1 + p2, p2, 0, -p1}
		for ; len(b) >= 16; b = b[16:] {
			for i := range v {
				v[i] = bits.RotateLeft32(v[i]+binary.LittleEndian.Uint32(b[4*i:])*xxPrime2, 13) * xxPrime1
			}
		}
		h = h - xxPrime5 + bits.RotateLeft32(v[0], 1) + bits.RotateLeft32(v[1], 7) + bits.RotateLeft32(v[2], 12) +
			bits.RotateLeft32(v[3], 18)
	}
	for ; len(b) >= 4; b = b[4:] {
		h = bits.RotateLeft32(h+binary.LittleEndian.Uint32(b)*xxPrime3, 17) * xxPrime4
	}
	for _, c := range b {
		h = bits.RotateLeft32(h+uint32(c)*xxPrime5, 11) * xxPrime1
	}
	h = (h ^ h>>15) * xxPrime2
	h = (h ^ h>>13) * xxPrime3
	return h ^ h>>16
}
