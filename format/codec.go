package format

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"strconv"
	"strings"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/s2"
	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"
)

// smallBatch is how many decompressed bytes a reader keeps room for between batches; what needs more goes through the
// gate.
const smallBatch = 4 << 20

// decompressor holds what decompressing one batch after the other reuses.
type decompressor struct {
	max  int64
	gate Gate
	buf  []byte
	big  bool
	gz   *gzip.Reader
	zd   *zstd.Decoder
	src  bytes.Reader
}

// release lets go of a large buffer.
func (d *decompressor) release() {
	if !d.big {
		return
	}
	d.big, d.buf = false, nil
	if d.gate != nil {
		d.gate.Leave()
	}
}

// codecError places a codec's failure; origin is the file position of the compressed bytes.
func codecError(codec Codec, origin int64, err error) error {
	var e *Error
	switch {
	case !errors.As(err, &e):
		return &Error{What: codec.String() + " stream", Pos: origin, Got: libraryWords(err), Err: codecFault{ErrValue}}
	case errors.Is(err, ErrTooLarge):
		return &Error{What: e.What, Pos: e.Pos + origin, Want: e.Want, Got: e.Got, Err: e.Err}
	}
	return &Error{What: e.What, Pos: e.Pos + origin, Want: e.Want, Got: e.Got, Err: codecFault{e.Err}}
}

// libraryWords is what a codec library says, without the name of its package.
func libraryWords(err error) string {
	if _, words, ok := strings.Cut(err.Error(), ": "); ok {
		return words
	}
	return err.Error()
}

// decompress returns the plain bytes of src in the reused buffer, or what came out before the failure.
func (d *decompressor) decompress(codec Codec, src []byte, magic int8) ([]byte, error) {
	limit := min(d.max, smallBatch)
	out, err := d.run(codec, d.buf[:0], src, magic, limit)
	if cap(out) <= smallBatch {
		d.buf = out
	}
	if !errors.Is(err, ErrTooLarge) || d.max <= limit {
		return out, err
	}
	return d.decompressBig(codec, src, magic)
}

// bigRoom is what a decompressor may want free after its output: the largest block of LZ4.
const bigRoom = 4 << 20

// bigGC is how much garbage may gather from the first very large batch on, in percent of what is in use: the default
// would let it take as much room as the batch.
const bigGC = 20

// decompressBig measures first and then makes a buffer of about that size.
func (d *decompressor) decompressBig(codec Codec, src []byte, magic int8) ([]byte, error) {
	d.buf = nil
	if d.gate != nil {
		d.gate.Enter()
	}
	d.big = true
	debug.SetGCPercent(bigGC)
	debug.FreeOSMemory() // the buffers before this one: several would be more than the limit promises
	size, err := d.measure(codec, src, magic)
	if errors.Is(err, ErrTooLarge) {
		return nil, err
	}
	debug.FreeOSMemory() // the window that measuring took
	out, failed := d.run(codec, make([]byte, 0, size+bigRoom), src, magic, size)
	d.buf = nil
	if errors.Is(failed, ErrTooLarge) {
		return out, err // the stream claims more than comes out of it
	}
	return out, failed
}

// run appends the plain bytes of src to dst, at most limit of them.
func (d *decompressor) run(codec Codec, dst, src []byte, magic int8, limit int64) ([]byte, error) {
	switch codec {
	case CodecGzip:
		return d.gunzip(dst, src, limit)
	case CodecSnappy:
		return unsnappy(dst, src, limit)
	case CodecLZ4:
		return unlz4(dst, src, magic, limit)
	case CodecZstd:
		return d.unzstd(dst, src, limit)
	}
	return dst, &Error{What: "codec", Want: "0 to 4", Got: strconv.Itoa(int(codec)), Err: ErrUnsupported}
}

func tooLarge(limit int64) error {
	return &Error{What: "decompressed batch", Want: "at most " + strconv.FormatInt(limit, 10) + " bytes", Got: "more",
		Err: ErrTooLarge}
}

// measure counts the plain bytes without keeping them.
func (d *decompressor) measure(codec Codec, src []byte, magic int8) (int64, error) {
	var n int64
	var err error
	switch codec {
	case CodecGzip:
		var r io.Reader
		if r, err = d.gzipReader(src); err == nil {
			n, err = io.Copy(io.Discard, io.LimitReader(r, d.max+1))
		}
	case CodecZstd:
		var zr *zstd.Decoder
		if zr, err = newZstd(bytes.NewReader(src), max(d.max, zstdWindow)); err == nil {
			n, err = io.Copy(io.Discard, io.LimitReader(zr, d.max+1))
			err = zstdError(err, src, d.max)
			zr.Close()
		}
	case CodecSnappy:
		err = eachSnappyBlock(src, func(block []byte, size int) error { n += int64(size); return nil })
	case CodecLZ4:
		scratch := make([]byte, 0, 4<<20)
		err = eachLZ4Block(src, magic, func(block []byte, most int, stored bool) error {
			out, err := lz4Block(scratch[:0], block, most, stored)
			n += int64(len(out))
			return err
		})
	}
	if n > d.max {
		return 0, tooLarge(d.max)
	}
	return n, err
}

// gzipReserved are the flags of a gzip header that have no meaning: Kafka's reader does not look at them, the library
// here refuses them.
const gzipReserved = 0xe0

func (d *decompressor) gzipReader(src []byte) (io.Reader, error) {
	if len(src) > 3 && src[3]&gzipReserved != 0 && len(src) <= smallBatch {
		src = bytes.Clone(src)
		src[3] &^= gzipReserved
	}
	d.src.Reset(src)
	if d.gz == nil {
		d.gz = new(gzip.Reader)
	}
	if err := d.gz.Reset(&d.src); err != nil {
		return nil, err
	}
	d.gz.Multistream(false)
	return &gzipMembers{gz: d.gz, src: &d.src}, nil
}

// gzipMembers reads one member after the other.
type gzipMembers struct {
	gz  *gzip.Reader
	src *bytes.Reader
}

func (g *gzipMembers) Read(p []byte) (int, error) {
	n, err := g.gz.Read(p)
	if err != io.EOF {
		return n, err
	}
	if g.src.Len() == 0 {
		return n, io.EOF
	}
	if g.gz.Reset(g.src) != nil {
		return n, io.EOF
	}
	g.gz.Multistream(false)
	return n, nil
}

func (d *decompressor) gunzip(dst, src []byte, limit int64) ([]byte, error) {
	r, err := d.gzipReader(src)
	if err != nil {
		return dst, err
	}
	return appendFrom(dst, r, limit)
}

// appendFrom appends all of r, growing dst by doubling, and fails above limit.
func appendFrom(dst []byte, r io.Reader, limit int64) ([]byte, error) {
	for {
		if len(dst) == cap(dst) {
			if int64(len(dst)) >= limit {
				return expectEnd(dst, r, limit)
			}
			grown := make([]byte, len(dst), min(max(2*int64(cap(dst)), 256<<10), limit))
			copy(grown, dst)
			dst = grown
		}
		n, err := r.Read(dst[len(dst):cap(dst)])
		dst = dst[:len(dst)+n]
		if err == io.EOF {
			return dst, nil
		}
		if err != nil {
			return dst, err
		}
	}
}

func expectEnd(dst []byte, r io.Reader, limit int64) ([]byte, error) {
	var one [1]byte
	for {
		n, err := r.Read(one[:])
		switch {
		case n > 0:
			return dst, tooLarge(limit)
		case err == io.EOF:
			return dst, nil
		case err != nil:
			return dst, err
		}
	}
}

// zstdRoom is how many bytes beyond its output the library wants free to take its fast path: the largest block.
const zstdRoom = 128 << 10

// zstdWindow is the largest window that Kafka's reader accepts (ZSTD_WINDOWLOG_LIMIT_DEFAULT), in bytes. Levels from 20
// on write windows of 32 to 128 MiB, however small the batch.
const zstdWindow = 1 << 27

// newZstd makes a decoder without goroutines of its own, since a lost page of the mapping must fault in ours. Its limit
// bounds the output and the window.
func newZstd(r io.Reader, limit int64, more ...zstd.DOption) (*zstd.Decoder, error) {
	return zstd.NewReader(r, append(more, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
		zstd.WithDecoderMaxMemory(uint64(max(limit, 1))), zstd.WithDecoderMaxWindow(zstdWindow))...)
}

func (d *decompressor) unzstd(dst, src []byte, limit int64) ([]byte, error) {
	zd := d.zd
	if limit != min(d.max, smallBatch) || zd == nil {
		var err error
		if zd, err = newZstd(nil, limit); err != nil {
			return dst, err
		}
		if limit == min(d.max, smallBatch) {
			d.zd = zd
		} else {
			defer zd.Close()
		}
	}
	out, err := zd.DecodeAll(src, grow(dst, min(int(limit), 8*len(src))+zstdRoom))
	if errors.Is(err, zstd.ErrWindowSizeExceeded) {
		return unzstdWide(dst, src, limit)
	}
	return out, zstdError(err, src, limit)
}

// zstdError turns the library's error about a frame above the limit into ours, unless the frame claims more than its
// bytes can hold: a block takes four of them and makes at most 128 KiB.
func zstdError(err error, src []byte, limit int64) error {
	if errors.Is(err, zstd.ErrDecoderSizeExceeded) && int64(len(src)/4)*zstdRoom > limit {
		return tooLarge(limit)
	}
	return err
}

// unzstdWide is unzstd for a frame whose window is larger than the limit, or whose blocks contradict the window. The
// library takes the window for a bound on the output, so here the bound is the room in dst, of which more is made until
// the output fits. It fails in different ways where the room ends, but always within a block of there.
func unzstdWide(dst, src []byte, limit int64) ([]byte, error) {
	zd, err := newZstd(nil, max(limit, zstdWindow), zstd.WithDecodeAllCapLimit(true))
	if err != nil {
		return dst, err
	}
	defer zd.Close()
	for room := min(limit, int64(8*len(src))) + zstdRoom; ; room = min(limit, 4*room) + zstdRoom {
		dst = grow(dst, int(room))
		out, err := zd.DecodeAll(src, dst[:0:room])
		switch {
		case err == nil && int64(len(out)) <= limit, err != nil && int64(len(out))+zstdRoom < room &&
			!errors.Is(err, zstd.ErrDecoderSizeExceeded):
			return out, err
		case room == limit+zstdRoom:
			return dst, tooLarge(limit)
		}
	}
}

var xerialMagic = []byte{0x82, 'S', 'N', 'A', 'P', 'P', 'Y', 0}

const xerialHeader = 16

// eachSnappyBlock walks a xerial stream, or takes a payload without its header for one bare block, as snappy-java does.
// The header's two version numbers are skipped, so the little-endian ones of some old producers do no harm. Streams may
// be concatenated.
func eachSnappyBlock(src []byte, fn func(block []byte, size int) error) error {
	if !bytes.HasPrefix(src, xerialMagic) {
		return snappyBlock(src, 0, fn)
	}
	if len(src) < xerialHeader {
		return &Error{What: "snappy header", Want: "16 bytes", Got: strconv.Itoa(len(src)), Err: ErrTruncated}
	}
	for pos := xerialHeader; pos < len(src); {
		if bytes.HasPrefix(src[pos:], xerialMagic) && len(src)-pos >= xerialHeader {
			pos += xerialHeader
			continue
		}
		// snappy-java takes fewer bytes than a length needs for the end of the stream.
		if len(src)-pos < 4 {
			return nil
		}
		size := int64(int32(binary.BigEndian.Uint32(src[pos:])))
		if size < 0 || size > int64(len(src)-pos-4) {
			return &Error{What: "snappy block length", Pos: int64(pos), Want: "0 to " + strconv.Itoa(len(src)-pos-4),
				Got: strconv.FormatInt(size, 10), Err: ErrValue}
		}
		if err := snappyBlock(src[pos+4:pos+4+int(size)], int64(pos+4), fn); err != nil {
			return err
		}
		pos += 4 + int(size)
	}
	return nil
}

func snappyBlock(block []byte, pos int64, fn func(block []byte, size int) error) error {
	size, err := s2.DecodedLen(block)
	if err != nil {
		return &Error{What: "snappy block", Pos: pos, Got: libraryWords(err), Err: ErrValue}
	}
	// A copy element of three bytes makes at most 64 bytes, so a claim far above that is false and is not allocated.
	if int64(size) > 64*int64(len(block)) {
		return &Error{What: "snappy block", Pos: pos, Want: "at most 64 bytes for each compressed one",
			Got: strconv.Itoa(size), Err: ErrValue}
	}
	if err := fn(block, size); err != nil {
		var e *Error
		if errors.As(err, &e) {
			return err
		}
		return &Error{What: "snappy block", Pos: pos, Got: libraryWords(err), Err: ErrValue}
	}
	return nil
}

func unsnappy(dst, src []byte, limit int64) ([]byte, error) {
	err := eachSnappyBlock(src, func(block []byte, size int) error {
		if int64(len(dst)+size) > limit {
			return tooLarge(limit)
		}
		dst = grow(dst, size)
		out, err := s2.Decode(dst[len(dst):len(dst)+size], block)
		if err == nil {
			dst = dst[:len(dst)+len(out)]
		}
		return err
	})
	return dst, err
}

// grow makes room for n more bytes.
func grow(b []byte, n int) []byte {
	if cap(b)-len(b) >= n {
		return b
	}
	grown := make([]byte, len(b), max(2*cap(b), len(b)+n, 64<<10))
	copy(grown, b)
	return grown
}

const lz4Magic = 0x184D2204

// eachLZ4Block walks the blocks of an LZ4 frame as Kafka's Lz4BlockInputStream does: independent blocks only, content
// size and content checksum skipped, the header checksum not looked at for magic 0, whose writers computed it over the
// wrong bytes. What follows is not looked at.
func eachLZ4Block(src []byte, magic int8, fn func(block []byte, most int, stored bool) error) error {
	f, err := parseLZ4Header(src, magic)
	if err != nil {
		return err
	}
	need := func(what string, pos, n int) error {
		if left := len(src) - pos; left < n {
			return &Error{What: what, Pos: int64(pos), Want: strconv.Itoa(n) + " bytes", Got: strconv.Itoa(left),
				Err: ErrTruncated}
		}
		return nil
	}
	for pos := f.size; ; {
		if err := need("lz4 block size", pos, 4); err != nil {
			return err
		}
		word := binary.LittleEndian.Uint32(src[pos:])
		size, stored := int(word&^(1<<31)), word>>31 == 1
		if size == 0 && f.contentChecksum {
			return need("lz4 content checksum", pos+4, 4)
		}
		if size == 0 {
			return nil
		}
		if size > f.blockMax {
			return &Error{What: "lz4 block size", Pos: int64(pos), Want: "at most " + strconv.Itoa(f.blockMax),
				Got: strconv.Itoa(size), Err: ErrValue}
		}
		trailer := 0
		if f.blockChecksum {
			trailer = 4
		}
		if err := need("lz4 block", pos+4, size+trailer); err != nil {
			return err
		}
		block := src[pos+4 : pos+4+size]
		if f.blockChecksum && xxh32(block) != binary.LittleEndian.Uint32(src[pos+4+size:]) {
			return &Error{What: "lz4 block", Pos: int64(pos + 4), Err: ErrChecksum}
		}
		if err := fn(block, f.blockMax, stored); err != nil {
			var e *Error
			if errors.As(err, &e) {
				return err
			}
			return &Error{What: "lz4 block", Pos: int64(pos + 4), Got: libraryWords(err), Err: ErrValue}
		}
		pos += 4 + size + trailer
	}
}

type lz4Frame struct {
	size          int // bytes of the header
	blockMax      int
	blockChecksum bool
	// contentChecksum: four bytes follow the end mark, which Kafka reads and does not compare.
	contentChecksum bool
}

func parseLZ4Header(src []byte, magic int8) (lz4Frame, error) {
	if len(src) < 7 {
		return lz4Frame{}, &Error{What: "lz4 frame header", Want: "at least 7 bytes", Got: strconv.Itoa(len(src)),
			Err: ErrTruncated}
	}
	if m := binary.LittleEndian.Uint32(src); m != lz4Magic {
		return lz4Frame{}, &Error{What: "lz4 magic", Want: "04224d18", Got: fmt.Sprintf("%x", src[:4]), Err: ErrValue}
	}
	flg, bd := src[4], src[5]
	if flg>>6 != 1 || flg&0x20 == 0 || flg&0x03 != 0 {
		return lz4Frame{}, &Error{What: "lz4 flags", Pos: 4, Want: "version 1, independent blocks, no dictionary",
			Got: fmt.Sprintf("%#02x", flg), Err: ErrUnsupported}
	}
	code := int(bd >> 4 & 7)
	if bd&0x8f != 0 || code < 4 {
		return lz4Frame{}, &Error{What: "lz4 block descriptor", Pos: 5, Want: "a block size code of 4 to 7",
			Got: fmt.Sprintf("%#02x", bd), Err: ErrValue}
	}
	f := lz4Frame{size: 7, blockMax: 1 << (2*code + 8), blockChecksum: flg&0x10 != 0,
		contentChecksum: flg&0x04 != 0}
	if flg&0x08 != 0 {
		f.size += 8
	}
	if len(src) < f.size {
		return lz4Frame{}, &Error{What: "lz4 frame header", Want: strconv.Itoa(f.size) + " bytes",
			Got: strconv.Itoa(len(src)), Err: ErrTruncated}
	}
	if want := byte(xxh32(src[4:f.size-1]) >> 8); magic > 0 && want != src[f.size-1] {
		return lz4Frame{}, &Error{What: "lz4 header checksum", Pos: int64(f.size - 1), Want: fmt.Sprintf("%#02x", want),
			Got: fmt.Sprintf("%#02x", src[f.size-1]), Err: ErrLZ4Header}
	}
	return f, nil
}

func unlz4(dst, src []byte, magic int8, limit int64) ([]byte, error) {
	err := eachLZ4Block(src, magic, func(block []byte, most int, stored bool) error {
		out, err := lz4Block(dst, block, most, stored)
		if err == nil && int64(len(out)) > limit {
			return tooLarge(limit)
		}
		dst = out
		return err
	})
	return dst, err
}

// lz4Block appends one block's plain bytes, at most most of them.
func lz4Block(dst, block []byte, most int, stored bool) ([]byte, error) {
	if stored {
		return append(dst, block...), nil
	}
	dst = grow(dst, most)
	n, err := lz4.UncompressBlock(block, dst[len(dst):len(dst)+most])
	if err != nil {
		if n = lz4Lenient(dst[len(dst):len(dst)+most], block); n < 0 {
			return dst, err
		}
	}
	return dst[:len(dst)+n], nil
}
