package format

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"io"
	"iter"
	"math/bits"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/s2"
	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"
)

// zigzag maps 0, -1, 1, -2 to 0, 1, 2, 3.
func zigzag(v int64) uint64 { return uint64(v<<1) ^ uint64(v>>63) }

// VarintSize is the number of bytes that v takes as a zig-zag varint: 1 to 10.
func VarintSize(v int64) int64 { return int64(bits.Len64(zigzag(v)|1)+6) / 7 }

// FieldSize is the number of bytes of a key, value or header part of n bytes with its length; n is −1 for null.
func FieldSize(n int64) int64 { return VarintSize(n) + max(n, 0) }

// RecordSize is the number of bytes of a record of magic 2 in a batch, its length included (DefaultRecord.sizeInBytes).
// contentBytes is what key, value, the count of headers and the headers take.
func RecordSize(timestampDelta int64, offsetDelta int32, contentBytes int64) int64 {
	body := 1 + VarintSize(timestampDelta) + VarintSize(int64(offsetDelta)) + contentBytes
	return VarintSize(body) + body
}

// ContentSize is what RecordSize asks for, of a record that was read.
func (r *Record) ContentSize() int64 {
	size := int64(VarintSize(int64(r.HeaderCount)) + int64(len(r.Headers)))
	for _, f := range [][]byte{r.Key, r.Value} {
		if f == nil {
			size += FieldSize(-1)
		} else {
			size += FieldSize(int64(len(f)))
		}
	}
	return size
}

// AppendRecord appends r as a record of magic 2 with these deltas.
func AppendRecord(dst []byte, r *Record, timestampDelta int64, offsetDelta int32) []byte {
	for part := range r.parts(timestampDelta, offsetDelta) {
		dst = append(dst, part...)
	}
	return dst
}

// parts are the bytes of r as a record of magic 2, so that a large one need not be copied.
func (r *Record) parts(timestampDelta int64, offsetDelta int32) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		var room [32]byte
		b := binary.AppendVarint(room[:0], 1+VarintSize(timestampDelta)+VarintSize(int64(offsetDelta))+r.ContentSize())
		b = append(b, 0) // attributes
		b = binary.AppendVarint(b, timestampDelta)
		b = binary.AppendVarint(b, int64(offsetDelta))
		for _, f := range [][]byte{r.Key, r.Value} {
			size := int64(len(f))
			if f == nil {
				size = -1
			}
			if !yield(binary.AppendVarint(b, size)) || !yield(f) {
				return
			}
			b = room[:0]
		}
		if yield(binary.AppendVarint(b, int64(r.HeaderCount))) {
			yield(r.Headers)
		}
	}
}

// AppendBatch appends a record batch (magic 2) with the header of b, of which Raw, the length and the checksum are
// made, and the bytes of its records after the header, compressed as the attributes say.
func AppendBatch(dst []byte, b *Batch, records []byte) []byte {
	start := len(dst)
	dst = binary.BigEndian.AppendUint64(dst, uint64(b.BaseOffset))
	dst = binary.BigEndian.AppendUint32(dst, uint32(BatchHeaderSize-LogOverhead+len(records)))
	dst = binary.BigEndian.AppendUint32(dst, uint32(b.LeaderEpoch))
	dst = append(dst, 2, 0, 0, 0, 0) // magic, room for the checksum
	dst = binary.BigEndian.AppendUint16(dst, uint16(b.Attributes))
	dst = binary.BigEndian.AppendUint32(dst, uint32(b.LastOffsetDelta))
	dst = binary.BigEndian.AppendUint64(dst, uint64(b.BaseTimestamp))
	dst = binary.BigEndian.AppendUint64(dst, uint64(b.MaxTimestamp))
	dst = binary.BigEndian.AppendUint64(dst, uint64(b.ProducerID))
	dst = binary.BigEndian.AppendUint16(dst, uint16(b.ProducerEpoch))
	dst = binary.BigEndian.AppendUint32(dst, uint32(b.BaseSequence))
	dst = binary.BigEndian.AppendUint32(dst, uint32(b.Count))
	dst = append(dst, records...)
	binary.BigEndian.PutUint32(dst[start+17:], crc32.Checksum(dst[start+21:], castagnoli))
	return dst
}

// Blocks as Kafka's writers cut them, in bytes.
const (
	snappyBlockSize = 32 << 10
	lz4BlockSize    = 64 << 10
)

// zstdEncoderWindow is the window of zstd's level 3, of which Kafka's producers write frames, in bytes.
const zstdEncoderWindow = 2 << 20

// Compressor compresses the records of one batch after the other, in the frames that Kafka's producers write and at
// their default levels. The bytes differ from theirs, since the libraries do. It is not safe for concurrent use.
type Compressor struct {
	// Level, if not 0, is the level of gzip, lz4 and zstd, as this program's libraries count them.
	Level int

	codec Codec
	to    io.Writer
	gz    *gzip.Writer
	zs    *zstd.Encoder
	lz    *lz4.Compressor // large, like the other
	hc    *lz4.CompressorHC
	block []byte // of snappy and lz4, not full yet
	buf   []byte
	out   bytes.Buffer
}

// Compress returns plain under the codec, in a buffer that is valid until the next call. The error wraps ErrUnsupported
// for a codec that Kafka does not have.
func (c *Compressor) Compress(codec Codec, plain []byte) ([]byte, error) {
	if codec == CodecNone {
		return plain, nil
	}
	c.out.Reset()
	if err := c.Reset(codec, &c.out); err != nil {
		return nil, err
	}
	if _, err := c.Write(plain); err != nil {
		return nil, err
	}
	err := c.Close()
	return c.out.Bytes(), err
}

// Reset begins a batch, which goes to a writer. The error wraps ErrUnsupported for a codec that does not compress.
func (c *Compressor) Reset(codec Codec, to io.Writer) (err error) {
	c.codec, c.to, c.block = codec, to, c.block[:0]
	switch codec {
	case CodecGzip:
		if c.gz != nil {
			c.gz.Reset(to)
			return nil
		}
		level := gzip.DefaultCompression
		if c.Level != 0 {
			level = c.Level
		}
		c.gz, err = gzip.NewWriterLevel(to, level)
	case CodecSnappy:
		_, err = to.Write(append(append(c.buf[:0], xerialMagic...), 0, 0, 0, 1, 0, 0, 0, 1))
	case CodecLZ4: // independent blocks without checksums
		_, err = to.Write([]byte{0x04, 0x22, 0x4d, 0x18, 0x60, 0x40, 0x82})
	case CodecZstd:
		if c.zs != nil {
			c.zs.Reset(to)
			return nil
		}
		level := zstd.SpeedDefault
		if c.Level != 0 {
			level = zstd.EncoderLevelFromZstd(c.Level)
		}
		c.zs, err = zstd.NewWriter(to, zstd.WithEncoderConcurrency(1), zstd.WithEncoderCRC(false),
			zstd.WithEncoderLevel(level), zstd.WithWindowSize(zstdEncoderWindow), zstd.WithLowerEncoderMem(true))
	default:
		err = &Error{What: "codec", Want: "1 to 4", Got: codec.String(), Err: ErrUnsupported}
	}
	return err
}

// Write adds plain bytes to the batch.
func (c *Compressor) Write(plain []byte) (n int, err error) {
	size := lz4BlockSize
	switch c.codec {
	case CodecGzip:
		return c.gz.Write(plain)
	case CodecZstd:
		return c.zs.Write(plain)
	case CodecSnappy:
		size = snappyBlockSize
	}
	for n < len(plain) && err == nil {
		part := plain[n:min(len(plain), n+size-len(c.block))]
		c.block = append(c.block, part...)
		if n += len(part); len(c.block) == size {
			err = c.endBlock()
		}
	}
	return n, err
}

// Close ends the batch.
func (c *Compressor) Close() error {
	switch c.codec {
	case CodecGzip:
		return c.gz.Close()
	case CodecZstd:
		return c.zs.Close()
	}
	err := c.endBlock()
	if c.codec == CodecLZ4 && err == nil {
		_, err = c.to.Write(make([]byte, 4))
	}
	return err
}

// endBlock writes a block of snappy or lz4.
func (c *Compressor) endBlock() (err error) {
	block := c.block
	if c.block = block[:0]; len(block) == 0 {
		return nil
	}
	head := len(block)
	if c.codec == CodecSnappy {
		c.buf = s2.EncodeSnappy(c.buf[:cap(c.buf)], block)
		head = len(c.buf)
		_, err = c.to.Write(binary.BigEndian.AppendUint32(nil, uint32(head)))
	} else {
		c.buf = append(c.buf[:0], make([]byte, len(block))...)
		n, failed := c.lz4Block(block, c.buf)
		if failed != nil || n == 0 || n >= len(block) { // what does not shrink is stored
			n, head = copy(c.buf, block), head|1<<31
		} else {
			head = n
		}
		c.buf = c.buf[:n]
		_, err = c.to.Write(binary.LittleEndian.AppendUint32(nil, uint32(head)))
	}
	if err == nil {
		_, err = c.to.Write(c.buf)
	}
	return err
}

func (c *Compressor) lz4Block(block, packed []byte) (int, error) {
	if c.lz == nil {
		c.lz, c.hc = &lz4.Compressor{}, &lz4.CompressorHC{}
	}
	if c.Level == 0 {
		return c.lz.CompressBlock(block, packed)
	}
	const first = 8 // the library's levels 1 to 9 are 2^9 to 2^17
	c.hc.Level = lz4.CompressionLevel(1 << (first + c.Level))
	return c.hc.CompressBlock(block, packed)
}

// Levels are the least and the most that Level may be for a codec; both are 0 for codecs without levels.
func (c Codec) Levels() (least, most int) {
	switch c {
	case CodecGzip, CodecLZ4:
		return 1, 9
	case CodecZstd:
		return 1, 22
	}
	return 0, 0
}

// AppendHeader appends a record's header; a nil value is null.
func AppendHeader(dst, key, value []byte) []byte {
	dst = append(binary.AppendVarint(dst, int64(len(key))), key...)
	if value == nil {
		return binary.AppendVarint(dst, -1)
	}
	return append(binary.AppendVarint(dst, int64(len(value))), value...)
}
