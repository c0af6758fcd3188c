package verify

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"strconv"

	"kseg/format"
	"kseg/render"
)

// sectors are the sizes in bytes in which disks and file systems lose data.
var sectors = []int64{4096, 512}

// leastZeros is how long a run of zeros inside a damaged batch must be to be named as its likely cause.
const leastZeros = 32

// diagnose looks for what may have happened to a batch whose checksum does not match.
func diagnose(data []byte, b *format.Batch) (string, []Evidence) {
	if pos, bit, ok := b.FlippedBit(); ok {
		return fmt.Sprintf("one flipped bit explains it: byte %d, bit %d", pos, bit),
			[]Evidence{{"flipped bit", "", fmt.Sprintf("byte %d, bit %d", pos, bit)}}
	}
	cause := describe(data, b.Pos, b.End())
	if cause == noPattern {
		return "", nil
	}
	return cause, []Evidence{{"pattern", "", cause}}
}

const noPattern = "no pattern in them"

// describe names what damaged bytes look like: zeros, a block that stands elsewhere too, or nothing known.
func describe(data []byte, from, to int64) string {
	if start, end := longestZeros(data, from, to); end-start >= leastZeros {
		text := fmt.Sprintf("bytes %d to %d are zero", start, end-1)
		for _, size := range sectors {
			if start%size == 0 || end%size == 0 {
				return text + fmt.Sprintf(", up to a boundary of %d bytes: a lost sector or page, or a write that was torn", size)
			}
		}
		return text
	}
	for _, size := range sectors {
		if pos, of, ok := repeated(data, from, to, size); ok {
			return fmt.Sprintf("the block of %d bytes at %d repeats the one at %d", size, pos, of)
		}
	}
	return noPattern
}

// longestZeros is the longest run of zeros that begins in [from, to), which may go on after.
func longestZeros(data []byte, from, to int64) (start, end int64) {
	for pos := from; pos < to; {
		n := bytes.IndexByte(data[pos:to], 0)
		if n < 0 {
			break
		}
		pos += int64(n)
		stop := pos
		for stop < int64(len(data)) && data[stop] == 0 {
			stop++
		}
		if stop-pos > end-start {
			start, end = pos, stop
		}
		pos = stop
	}
	return start, end
}

// repeated finds a whole block that touches [from, to) and has the bytes of one of its neighbours.
func repeated(data []byte, from, to, size int64) (pos, of int64, ok bool) {
	for pos = from / size * size; pos < to && pos+size <= int64(len(data)); pos += size {
		block := data[pos : pos+size]
		if zeros(block) {
			continue
		}
		for _, of := range []int64{pos - size, pos + size} {
			if of >= 0 && of+size <= int64(len(data)) && bytes.Equal(block, data[of:of+size]) {
				return pos, of, true
			}
		}
	}
	return 0, 0, false
}

func zeros(b []byte) bool {
	for _, c := range b {
		if c != 0 {
			return false
		}
	}
	return true
}

func be32(b []byte) uint32 { return binary.BigEndian.Uint32(b) }
func be64(b []byte) uint64 { return binary.BigEndian.Uint64(b) }

func plural(n int64, one, many string) string { return render.Plural(n, one, many) }

func itoa(n int64) string { return strconv.FormatInt(n, 10) }
