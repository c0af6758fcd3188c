package format

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"strconv"

	"github.com/klauspost/compress/flate"
)

// compressed describes a compressed area, which is the rest of the buffer, and then the records out of it.
func (d *describer) compressed(b *Batch, codec Codec, rr *RecordReader) error {
	rr.Reset(b)
	area := d.buf[d.pos:]
	if err := rr.Err(); err != nil && codec == CodecLZ4 {
		rr.ignoreLZ4HeaderChecksum(area)
	}
	err := rr.Err()
	f := &frames{d: d, magic: b.Magic, left: rr.codecs.max, origin: d.at()}
	f.fault, _ = err.(*Error)
	if f.fault != nil && (errors.Is(err, ErrTooLarge) || f.fault.Pos < d.at()) {
		f.fault = nil
	}
	f.walk(codec)
	d.fault = nil
	if errors.Is(err, ErrTooLarge) || d.stopped {
		return err
	}
	in := &describer{yield: d.yield, buf: rr.Plain(), limit: len(rr.Plain()), prefix: d.prefix, proto: d.proto}
	in.proto.Plain = true
	if b.Legacy() {
		in.messages(b)
	} else {
		in.records(b)
	}
	d.stopped = in.stopped
	if err == nil {
		err = orNil(in.fault)
	}
	return err
}

// ignoreLZ4HeaderChecksum decompresses a frame whose only fault is the checksum of its header, as is done for magic 0
// always; the records can be shown, and the error stays.
func (r *RecordReader) ignoreLZ4HeaderChecksum(area []byte) {
	if !errors.Is(r.err, ErrLZ4Header) {
		return
	}
	if plain, err := r.codecs.decompress(CodecLZ4, area, 0); err == nil {
		r.buf = plain
	}
}

// frames describes the frames of a codec. A leaf is held back until the next, so that what the decompressor complained
// of can be hung on the right one, or on the last.
type frames struct {
	d      *describer
	magic  int8
	left   int64  // decompressed bytes that may still be made
	origin int64  // where the area begins; a fault there is one without a place
	fault  *Error // of the decompressor, until it has found its leaf
	held   *Leaf
}

// walk describes the rest of the buffer.
func (f *frames) walk(codec Codec) {
	d := f.d
	yield := d.yield
	d.yield = func(l Leaf) bool {
		more := f.release(yield, false)
		f.held = &l
		return more
	}
	d.fault = nil
	base := d.prefix
	switch codec {
	case CodecGzip:
		f.each(base, "gzip", f.gzipMember)
	case CodecSnappy:
		f.snappy()
	case CodecLZ4:
		d.prefix = base + "lz4."
		f.lz4()
	case CodecZstd:
		f.each(base, "zstd", f.zstdFrame)
	}
	d.prefix = base
	if d.ok() {
		d.rest("trailing", RoleCompressed, nil)
	}
	d.rest("unreadable", RoleUnreadable, nil)
	d.yield = yield
	if !d.stopped {
		d.stopped = !f.release(yield, true)
	}
}

// release hands out the leaf held back, with the fault that belongs to it.
func (f *frames) release(yield func(Leaf) bool, last bool) bool {
	l := f.held
	if l == nil {
		return true
	}
	f.held = nil
	if l.Role == RoleField {
		l.Role = RoleFrame
	}
	switch {
	case l.Fault != nil:
		f.fault = nil
	case f.fault != nil && (last || f.fault.Pos >= l.Start && f.fault.Pos < l.End && f.fault.Pos > f.origin):
		l.Fault, f.fault = f.fault, nil
	}
	return yield(*l)
}

// each describes frames one after the other until one does not begin as it should.
func (f *frames) each(base, name string, frame func() bool) {
	for i := 0; f.d.pos < len(f.d.buf) && f.d.ok(); i++ {
		f.d.prefix = base + index(name, i) + "."
		if !frame() {
			return
		}
	}
}

// word describes a little-endian magic number.
func (f *frames) word(what string, want uint32) {
	f.d.number("magic", TypeUint32LE, func(v int64, l *Leaf) {
		if v != int64(want) {
			l.Fault = &Error{What: what, Pos: l.Start, Want: hexWord(want), Got: hexWord(uint32(v)), Err: ErrValue}
		}
	})
}

// hexWord is a little-endian word in the order of its bytes.
func hexWord(v uint32) string {
	return strconv.FormatUint(uint64(v&0xff)<<24|uint64(v>>8&0xff)<<16|uint64(v>>16&0xff)<<8|uint64(v>>24)|1<<32, 16)[1:]
}

// data describes n bytes of compressed data, of which there must be so many.
func (f *frames) data(name string, n int) {
	if !f.d.ok() {
		return
	}
	if n > f.d.left() {
		f.d.truncated(name, strconv.Itoa(n)+" bytes")
		return
	}
	f.d.content(name, int64(n), RoleCompressed)
}

// Flags of a gzip header (RFC 1952).
const (
	gzipHeaderCRC = 1 << 1
	gzipExtra     = 1 << 2
	gzipName      = 1 << 3
	gzipComment   = 1 << 4
)

// gzipMember describes one member (RFC 1952). What does not begin like one is only an error where the first should be:
// Java ignores it after that.
func (f *frames) gzipMember() bool {
	d := f.d
	if d.pos > 0 && d.at() != f.origin && !bytes.HasPrefix(d.buf[d.pos:], []byte{0x1f, 0x8b}) {
		return false
	}
	d.number("magic", TypeUint16LE, func(v int64, l *Leaf) {
		if v != 0x8b1f {
			l.Fault = &Error{What: "gzip magic", Pos: l.Start, Want: "1f8b", Got: hexWord(uint32(v))[:4], Err: ErrValue}
		}
	})
	d.number("method", TypeUint8, func(v int64, l *Leaf) {
		if v != 8 {
			l.Fault = illegal("gzip method", l, "8 (deflate)")
		}
	})
	flags := d.number("flags", TypeUint8, func(v int64, l *Leaf) {
		l.Bits = []Bit{{"text", v & 1}, {"headerCrc", v >> 1 & 1}, {"extra", v >> 2 & 1}, {"name", v >> 3 & 1},
			{"comment", v >> 4 & 1}}
	})
	d.number("mtime", TypeUint32LE, nil)
	d.number("extraFlags", TypeUint8, nil)
	d.number("os", TypeUint8, nil)
	if flags&gzipExtra != 0 {
		f.data("extra", int(d.number("extraLength", TypeUint16LE, nil)))
	}
	for _, text := range []struct {
		flag int64
		name string
	}{{gzipName, "name"}, {gzipComment, "comment"}} {
		if flags&text.flag != 0 && d.ok() {
			f.data(text.name, bytes.IndexByte(append(d.buf[d.pos:len(d.buf):len(d.buf)], 0), 0)+1)
		}
	}
	if flags&gzipHeaderCRC != 0 {
		d.number("headerCrc", TypeUint16LE, nil)
	}
	return f.deflate()
}

// deflate describes the deflate data of a gzip member and the trailer. Where the data ends only decompressing tells.
func (f *frames) deflate() bool {
	d := f.d
	if !d.ok() {
		return false
	}
	src := bytes.NewReader(d.buf[d.pos:])
	sum := crc32.NewIEEE()
	size, err := io.Copy(sum, io.LimitReader(flate.NewReader(src), f.left+1))
	if f.left -= size; f.left < 0 {
		d.rest("deflate", RoleCompressed, nil)
		return false
	}
	if err != nil {
		d.rest("deflate", RoleCompressed, &Error{What: "gzip stream", Pos: d.at(), Got: err.Error(), Err: ErrValue})
		return false
	}
	d.content("deflate", int64(d.left()-src.Len()), RoleCompressed)
	d.note("crc32", TypeUint32LE, func(v int64, l *Leaf) {
		if v != int64(sum.Sum32()) {
			l.Fault = &Error{What: "gzip crc32", Pos: l.Start, Want: strconv.FormatUint(uint64(sum.Sum32()), 10),
				Got: strconv.FormatInt(v, 10), Err: ErrChecksum}
		}
	})
	d.number("size", TypeUint32LE, func(v int64, l *Leaf) {
		if v != size&0xffffffff {
			l.Fault = illegal("gzip size", l, strconv.FormatInt(size&0xffffffff, 10))
		}
	})
	return d.ok()
}

// snappy describes a xerial stream, or one bare block.
func (f *frames) snappy() {
	d := f.d
	base := d.prefix
	if !bytes.HasPrefix(d.buf[d.pos:], xerialMagic) {
		d.rest("snappy.block[0].data", RoleCompressed, nil)
		return
	}
	for i := 0; d.pos < len(d.buf) && d.ok(); {
		d.prefix = base + "snappy."
		if bytes.HasPrefix(d.buf[d.pos:], xerialMagic) && (i == 0 || d.left() >= xerialHeader) {
			d.content("magic", int64(len(xerialMagic)), RoleFrame)
			d.number("version", TypeInt32, nil)
			d.number("compatibleVersion", TypeInt32, nil)
			continue
		}
		d.prefix += index("block", i) + "."
		i++
		n := d.number("length", TypeInt32, func(v int64, l *Leaf) {
			if room := int64(d.left() - 4); v < 0 || v > room {
				l.Fault = illegal("snappy block length", l, "0 to "+strconv.FormatInt(room, 10))
			}
		})
		d.content("data", n, RoleCompressed)
	}
}

// lz4 describes an LZ4 frame, as eachLZ4Block reads it.
func (f *frames) lz4() {
	d := f.d
	start := d.pos
	f.word("lz4 magic", lz4Magic)
	flags := d.number("flags", TypeUint8, func(v int64, l *Leaf) {
		l.Bits = []Bit{{"version", v >> 6}, {"blockIndependence", v >> 5 & 1}, {"blockChecksum", v >> 4 & 1},
			{"contentSize", v >> 3 & 1}, {"contentChecksum", v >> 2 & 1}, {"dictionaryId", v & 1}}
		if v>>6 != 1 || v&0x20 == 0 || v&0x03 != 0 {
			l.Fault = illegal("lz4 flags", l, "version 1, independent blocks, no dictionary")
		}
	})
	d.number("blockDescriptor", TypeUint8, func(v int64, l *Leaf) {
		l.Bits = []Bit{{"blockMaximum", v >> 4 & 7}}
		if v&0x8f != 0 || v>>4&7 < 4 {
			l.Fault = illegal("lz4 block descriptor", l, "a block size code of 4 to 7")
		}
	})
	if flags&0x08 != 0 {
		d.number("contentSize", TypeUint64LE, nil)
	}
	d.note("headerChecksum", TypeUint8, func(v int64, l *Leaf) {
		if want := xxh32(d.buf[start+4:d.pos]) >> 8 & 0xff; f.magic > 0 && int64(want) != v {
			l.Fault = &Error{What: "lz4 header checksum", Pos: l.Start, Want: strconv.FormatUint(uint64(want), 10),
				Got: strconv.FormatInt(v, 10), Err: ErrChecksum}
		}
	})
	f.lz4Blocks(flags)
}

func (f *frames) lz4Blocks(flags int64) {
	d := f.d
	base := d.prefix
	for i := 0; d.ok(); i++ {
		if d.left() >= 4 && binary.LittleEndian.Uint32(d.buf[d.pos:])<<1 == 0 {
			d.prefix = base
			d.number("endMark", TypeUint32LE, nil)
			if flags&0x04 != 0 {
				d.number("contentChecksum", TypeUint32LE, nil)
			}
			return
		}
		d.prefix = base + index("block", i) + "."
		size := d.number("size", TypeUint32LE, func(v int64, l *Leaf) {
			l.Bits = []Bit{{"stored", v >> 31}, {"size", v &^ (1 << 31)}}
		})
		f.data("data", int(size&^(1<<31)))
		if flags&0x10 != 0 {
			d.number("checksum", TypeUint32LE, nil)
		}
	}
	d.prefix = base
}

const (
	zstdMagic     = 0xFD2FB528
	skippableMask = 0x184D2A50
)

// zstdFrame describes a frame (RFC 8878), or a skippable one.
func (f *frames) zstdFrame() bool {
	d := f.d
	if d.left() >= 4 && binary.LittleEndian.Uint32(d.buf[d.pos:])&^0xf == skippableMask {
		d.number("magic", TypeUint32LE, nil)
		f.data("skipped", int(d.number("size", TypeUint32LE, nil)))
		return d.ok()
	}
	f.word("zstd magic", zstdMagic)
	v := d.number("frameDescriptor", TypeUint8, func(v int64, l *Leaf) {
		l.Bits = []Bit{{"contentSizeFlag", v >> 6}, {"singleSegment", v >> 5 & 1}, {"checksum", v >> 2 & 1},
			{"dictionaryIdFlag", v & 3}}
		if v&0x08 != 0 {
			l.Fault = illegal("zstd frame descriptor", l, "bit 3 to be 0")
		}
	})
	single := v>>5&1 == 1
	if !single {
		d.number("windowDescriptor", TypeUint8, nil)
	}
	if t := [...]LeafType{TypeBytes, TypeUint8, TypeUint16LE, TypeUint32LE}[v&3]; t != TypeBytes {
		d.number("dictionaryId", t, nil)
	}
	switch sizeFlag := v >> 6; {
	case sizeFlag == 0 && single:
		d.number("contentSize", TypeUint8, nil)
	case sizeFlag == 1:
		d.number("contentSize", TypeUint16LE, nil)
	case sizeFlag == 2:
		d.number("contentSize", TypeUint32LE, nil)
	case sizeFlag == 3:
		d.number("contentSize", TypeUint64LE, nil)
	}
	f.zstdBlocks()
	if v&0x04 != 0 {
		d.number("checksum", TypeUint32LE, nil)
	}
	return d.ok()
}

func (f *frames) zstdBlocks() {
	d := f.d
	base := d.prefix
	for i, last := 0, false; !last && d.ok(); i++ {
		d.prefix = base + index("block", i) + "."
		h := d.number("header", TypeUint24LE, func(v int64, l *Leaf) {
			l.Bits = []Bit{{"last", v & 1}, {"type", v >> 1 & 3}, {"size", v >> 3}}
			if v>>1&3 == 3 {
				l.Fault = illegal("zstd block type", l, "0 to 2")
			}
		})
		last = h&1 == 1
		size := int(h >> 3)
		if h>>1&3 == 1 { // one byte stands for all
			size = 1
		}
		f.data("data", size)
	}
	d.prefix = base
}
