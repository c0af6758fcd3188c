package format

import (
	"bytes"
	"errors"
	"math/rand"
	"testing"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/snappy"
	"github.com/klauspost/compress/snappy/xerial"
	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"
)

func gzipped(parts ...[]byte) []byte {
	var buf bytes.Buffer
	for _, p := range parts {
		w := gzip.NewWriter(&buf)
		w.Name, w.Comment, w.Extra = "n", "c", []byte{1, 2, 3}
		w.Write(p)
		w.Close()
	}
	return buf.Bytes()
}

func zstded(p []byte, o ...zstd.EOption) []byte {
	w, _ := zstd.NewWriter(nil, o...)
	return w.EncodeAll(p, nil)
}

func lz4ed(p []byte, o ...lz4.Option) []byte {
	var buf bytes.Buffer
	w := lz4.NewWriter(&buf)
	if err := w.Apply(o...); err != nil {
		panic(err)
	}
	w.Write(p)
	w.Close()
	return buf.Bytes()
}

// zstdStream is plain as Kafka's producer writes it: no content size, no checksum, a window.
func zstdStream(plain []byte) []byte {
	var buf bytes.Buffer
	w, _ := zstd.NewWriter(&buf, zstd.WithEncoderCRC(false), zstd.WithSingleSegment(false), zstd.WithWindowSize(2<<20))
	w.Write(plain[:1])
	w.Flush()
	w.Write(plain[1:])
	w.Close()
	return buf.Bytes()
}

// with returns b with one byte changed; a negative position counts from the end.
func with(b []byte, at int, mask byte) []byte {
	b = bytes.Clone(b)
	b[(at+len(b))%len(b)] ^= mask
	return b
}

// The streams of producers of all languages, and what Kafka 4.4.0 does with each: it was asked with batches of them.
func TestCodecStreams(t *testing.T) {
	plain := bytes.Repeat([]byte("hello-kafka, a record of some length; "), 40)
	le := xerial.Encode(nil, plain)
	copy(le[8:], []byte{1, 0, 0, 0, 1, 0, 0, 0})
	skippable := []byte{0x50, 0x2a, 0x4d, 0x18, 3, 0, 0, 0, 9, 9, 9}
	noChecksum := lz4ed(plain, lz4.ChecksumOption(false))
	brokenHC := with(lz4ed(plain), 6, 1)
	streamed := zstdStream(plain)
	wide := bytes.Clone(streamed)
	wide[5] = 17 << 3 // 128 MiB
	for _, c := range []struct {
		name  string
		codec Codec
		magic int8
		body  []byte
		fails bool
	}{
		{"snappy, xerial", CodecSnappy, 2, xerial.Encode(nil, plain), false},
		{"snappy, one bare block", CodecSnappy, 2, snappy.Encode(nil, plain), false},
		{"snappy, little-endian versions", CodecSnappy, 2, le, false},
		{"snappy, two streams", CodecSnappy, 2, append(xerial.Encode(nil, plain[:99]), xerial.Encode(nil, plain[99:])...),
			false},
		{"snappy, 2 bytes too many", CodecSnappy, 2, append(xerial.Encode(nil, plain), 0, 0), false},
		{"snappy, 4 bytes too many", CodecSnappy, 2, append(xerial.Encode(nil, plain), 0, 0, 0, 0), true},
		{"snappy, nothing", CodecSnappy, 2, nil, true},
		{"gzip, three members", CodecGzip, 2, gzipped(plain[:50], plain[50:90], plain[90:]), false},
		{"gzip, empty last member", CodecGzip, 2, gzipped(plain, nil), false},
		{"gzip, reserved flags", CodecGzip, 2, with(gzipped(plain), 3, 0xe0), false},
		{"gzip, trailing bytes", CodecGzip, 2, append(gzipped(plain), 1, 2, 3, 4, 5), false},
		{"gzip, torn", CodecGzip, 2, gzipped(plain)[:60], true},
		{"gzip, wrong checksum", CodecGzip, 2, with(gzipped(plain), -6, 1), true},
		{"zstd, two frames", CodecZstd, 2, append(zstded(plain[:50]), zstded(plain[50:])...), false},
		{"zstd, skippable frame", CodecZstd, 2, append(append(zstded(plain[:50]), skippable...), zstded(plain[50:])...),
			false},
		{"zstd, checksum", CodecZstd, 2, zstded(plain, zstd.WithEncoderCRC(true)), false},
		{"zstd, the window of level 22", CodecZstd, 2, wide, false},
		{"zstd, a window larger than any level's", CodecZstd, 2, with(wide, 5, 17<<3^18<<3), true},
		{"zstd, a content size that cannot be", CodecZstd, 2, append([]byte{0x28, 0xb5, 0x2f, 0xfd, 0x80, 0x58, 0, 0, 0,
			0xf0}, streamed[6:]...), true},
		{"zstd, trailing bytes", CodecZstd, 2, append(zstded(plain), 7, 7, 7), true},
		{"zstd, torn", CodecZstd, 2, zstded(plain)[:20], true},
		{"lz4, 4 MiB blocks", CodecLZ4, 2, lz4ed(plain, lz4.BlockSizeOption(lz4.Block4Mb)), false},
		{"lz4, content size", CodecLZ4, 2, lz4ed(plain, lz4.SizeOption(uint64(len(plain)))), false},
		{"lz4, block checksums", CodecLZ4, 2, lz4ed(plain, lz4.BlockChecksumOption(true)), false},
		{"lz4, wrong block checksum", CodecLZ4, 2, with(lz4ed(plain, lz4.BlockChecksumOption(true),
			lz4.ChecksumOption(false)), -6, 1), true},
		{"lz4, end mark with the bit of stored blocks", CodecLZ4, 2, with(noChecksum, -1, 0x80), false},
		{"lz4, trailing bytes", CodecLZ4, 2, append(lz4ed(plain), 1, 2, 3), false},
		{"lz4, content checksum cut off", CodecLZ4, 2, lz4ed(plain)[:len(lz4ed(plain))-4], true},
		{"lz4, no end mark", CodecLZ4, 2, noChecksum[:len(noChecksum)-4], true},
		{"lz4, wrong header checksum", CodecLZ4, 2, brokenHC, true},
		{"lz4, wrong header checksum, magic 1", CodecLZ4, 1, brokenHC, true},
		{"lz4, wrong header checksum, magic 0", CodecLZ4, 0, brokenHC, false},
		{"unassigned codec", 5, 2, plain, true},
	} {
		d := decompressor{max: 1 << 20}
		for range 2 { // a reader is used again, also after a failure
			out, err := d.decompress(c.codec, c.body, c.magic)
			if c.fails != (err != nil) || !c.fails && !bytes.Equal(out, plain) {
				t.Errorf("%s: %d bytes, error %v", c.name, len(out), err)
			}
		}
	}
}

type countingGate struct{ in, out int }

func (g *countingGate) Enter() { g.in++ }
func (g *countingGate) Leave() { g.out++ }

// A batch above the limit is refused by every codec, one just at it is read, and what needs a large buffer passes the
// gate and lets go of the buffer.
func TestDecompressionIsBounded(t *testing.T) {
	plain := make([]byte, 20<<20)
	rand.New(rand.NewSource(1)).Read(plain[:1<<20])
	for codec, body := range map[Codec][]byte{CodecGzip: gzipped(plain), CodecSnappy: xerial.Encode(nil, plain),
		CodecLZ4: lz4ed(plain), CodecZstd: zstded(plain)} {
		for _, c := range []struct {
			limit int64
			ok    bool
		}{{int64(len(plain)) - 1, false}, {int64(len(plain)), true}, {1 << 10, false}} {
			gate := new(countingGate)
			d := decompressor{max: c.limit, gate: gate}
			out, err := d.decompress(codec, body, 2)
			if c.ok != (err == nil) || !c.ok && !errors.Is(err, ErrTooLarge) || c.ok && !bytes.Equal(out, plain) {
				t.Errorf("%v, limit %d: %d bytes, error %v", codec, c.limit, len(out), err)
			}
			if cap(out) > int(c.limit)+4<<20 {
				t.Errorf("%v, limit %d: a buffer of %d bytes", codec, c.limit, cap(out))
			}
			d.release()
			if gate.in != gate.out || cap(d.buf) > smallBatch {
				t.Errorf("%v, limit %d: gate %+v, %d bytes kept", codec, c.limit, *gate, cap(d.buf))
			}
		}
	}
}

// A frame that claims more than its bytes can hold is broken, not large.
func TestFalseSizeOfZstd(t *testing.T) {
	// one segment of 256 MiB; an empty block, the last
	frame := []byte{0x28, 0xb5, 0x2f, 0xfd, 0xa0, 0, 0, 0, 0x10, 1, 0, 0}
	d := decompressor{max: 1 << 20}
	if _, err := d.decompress(CodecZstd, frame, 2); err == nil || errors.Is(err, ErrTooLarge) {
		t.Errorf("12 bytes that claim 256 MiB: %v", err)
	}
	if _, err := d.decompress(CodecZstd, append(frame, make([]byte, 100)...), 2); !errors.Is(err, ErrTooLarge) {
		t.Errorf("112 bytes that claim 256 MiB: %v", err)
	}
}

// The lenient decoder of LZ4 blocks agrees with the fast one where that succeeds, and accepts what only Kafka's does.
func TestLenientLZ4(t *testing.T) {
	plain := bytes.Repeat([]byte("hello-kafka, a record of some length; "), 40)
	frame := lz4ed(plain, lz4.ChecksumOption(false))
	block := frame[11 : len(frame)-4]
	room := make([]byte, 64<<10)
	if n := lz4Lenient(room, block); !bytes.Equal(room[:max(n, 0)], plain) {
		t.Errorf("%d bytes of a sound block", n)
	}
	for _, c := range []struct {
		name  string
		block []byte
		room  int
		want  string
	}{
		{"match length in the last token", []byte{0x52, 'a', 'b', 'c', 'd', 'e'}, 100, "abcde"},
		{"distance 0", []byte{0x11, 'a', 0, 0, 0x50, 'b', 'c', 'd', 'e', 'f'}, 100, "a\x00\x00\x00\x00\x00bcdef"},
		{"distance beyond the beginning", []byte{0x11, 'a', 2, 0, 0x50, 'b', 'c', 'd', 'e', 'f'}, 100, ""},
		{"no last literals", []byte{0x11, 'a', 1, 0}, 100, ""},
		{"literals beyond the block", []byte{0x60, 'a'}, 100, ""},
		{"length beyond the block", []byte{0xf0, 255, 255}, 1000, ""},
		{"more than the room", []byte{0x1f, 'a', 1, 0, 200, 0x50, 'b', 'c', 'd', 'e', 'f'}, 100, ""},
		{"nothing", nil, 100, ""},
		{"a match where 12 bytes are left", []byte{0x11, 'a', 1, 0, 0x50, 'b', 'c', 'd', 'e', 'f'}, 13, "aaaaaabcdef"},
		{"a match where 11 bytes are left", []byte{0x11, 'a', 1, 0, 0x50, 'b', 'c', 'd', 'e', 'f'}, 12, ""},
	} {
		n := lz4Lenient(room[:c.room], c.block)
		if c.want == "" && n >= 0 || c.want != "" && string(room[:max(n, 0)]) != c.want {
			t.Errorf("%s: %d bytes, %q", c.name, n, room[:max(n, 0)])
		}
	}
}

// A fast decoder and a lenient one agree over damaged blocks, but for the two kinds that only the lenient one accepts.
func TestLenientLZ4OverFlippedBits(t *testing.T) {
	plain := bytes.Repeat([]byte("hello-kafka, a record of some length; "), 3)
	frame := lz4ed(plain, lz4.ChecksumOption(false))
	block := frame[11 : len(frame)-4]
	fast, slow := make([]byte, 64<<10), make([]byte, 64<<10)
	for bit := range 8 * len(block) {
		damaged := with(block, bit/8, 1<<(bit%8))
		n, err := lz4.UncompressBlock(damaged, fast)
		if m := lz4Lenient(slow, damaged); err == nil && m >= 0 && !bytes.Equal(fast[:n], slow[:m]) {
			t.Fatalf("bit %d: %d and %d bytes", bit, n, m)
		}
	}
}

// A match may not reach into the last five bytes of the room that a block has.
func TestLenientLZ4KeepsTheLastLiterals(t *testing.T) {
	for match, want := range map[int]int{25: 32, 26: 32, 27: -1} {
		// one literal, its repetition, and literals up to the end of 32 bytes
		src := []byte{0x1f, 'a', 1, 0, byte(match - 19), byte(31-match) << 4}
		src = append(src, "bcdefgh"[:31-match]...)
		if got := lz4Lenient(make([]byte, 32), src); got != want {
			t.Errorf("a match of %d: %d, want %d", match, got, want)
		}
	}
}
