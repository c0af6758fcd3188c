package format

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
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
	content := r.ContentSize()
	body := 1 + VarintSize(timestampDelta) + VarintSize(int64(offsetDelta)) + content
	dst = binary.AppendVarint(dst, body)
	dst = append(dst, 0) // attributes
	dst = binary.AppendVarint(dst, timestampDelta)
	dst = binary.AppendVarint(dst, int64(offsetDelta))
	for _, f := range [][]byte{r.Key, r.Value} {
		if f == nil {
			dst = binary.AppendVarint(dst, -1)
			continue
		}
		dst = binary.AppendVarint(dst, int64(len(f)))
		dst = append(dst, f...)
	}
	dst = binary.AppendVarint(dst, int64(r.HeaderCount))
	return append(dst, r.Headers...)
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

// Compressor compresses the records of one batch after the other, in the frames that Kafka's producers write and at
// their default levels. The bytes differ from theirs, since the libraries do. It is not safe for concurrent use.
type Compressor struct {
	// Level, if not 0, is the level of gzip, lz4 and zstd, as this program's libraries count them.
	Level int

	gz  *gzip.Writer
	zs  *zstd.Encoder
	lz  *lz4.Compressor // large, like the other
	hc  *lz4.CompressorHC
	out bytes.Buffer
	buf []byte
}

// Compress returns plain under the codec, in a buffer that is valid until the next call. The error wraps ErrUnsupported
// for a codec that Kafka does not have.
func (c *Compressor) Compress(codec Codec, plain []byte) ([]byte, error) {
	switch codec {
	case CodecNone:
		return plain, nil
	case CodecGzip:
		return c.gzip(plain)
	case CodecSnappy:
		c.buf = appendXerial(c.buf[:0], plain)
	case CodecLZ4:
		return c.lz4(plain)
	case CodecZstd:
		return c.zstd(plain)
	default:
		return nil, &Error{What: "codec", Want: "0 to 4", Got: codec.String(), Err: ErrUnsupported}
	}
	return c.buf, nil
}

// Size is the number of bytes that Kafka's producers need for plain, about. For gzip that is less than Compress needs:
// this program's library ends a stream with an empty block of 5 bytes, and zlib does not.
func (c *Compressor) Size(codec Codec, plain []byte) (int64, error) {
	const emptyBlock = 5
	packed, err := c.Compress(codec, plain)
	if codec == CodecGzip {
		return int64(len(packed)) - emptyBlock, err
	}
	return int64(len(packed)), err
}

func (c *Compressor) gzip(plain []byte) ([]byte, error) {
	c.out.Reset()
	if c.gz == nil {
		level := gzip.DefaultCompression
		if c.Level != 0 {
			level = c.Level
		}
		var err error
		if c.gz, err = gzip.NewWriterLevel(&c.out, level); err != nil {
			return nil, err
		}
	} else {
		c.gz.Reset(&c.out)
	}
	if _, err := c.gz.Write(plain); err != nil {
		return nil, err
	}
	err := c.gz.Close()
	return c.out.Bytes(), err
}

func (c *Compressor) zstd(plain []byte) ([]byte, error) {
	if c.zs == nil {
		var err error
		level := zstd.SpeedDefault
		if c.Level != 0 {
			level = zstd.EncoderLevelFromZstd(c.Level)
		}
		c.zs, err = zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithEncoderCRC(false),
			zstd.WithEncoderLevel(level))
		if err != nil {
			return nil, err
		}
	}
	c.buf = c.zs.EncodeAll(plain, c.buf[:0])
	return c.buf, nil
}

// appendXerial appends a snappy stream in xerial's framing.
func appendXerial(dst, plain []byte) []byte {
	dst = append(append(dst, xerialMagic...), 0, 0, 0, 1, 0, 0, 0, 1)
	for len(plain) > 0 {
		block := plain[:min(len(plain), snappyBlockSize)]
		plain = plain[len(block):]
		packed := s2.EncodeSnappy(nil, block)
		dst = binary.BigEndian.AppendUint32(dst, uint32(len(packed)))
		dst = append(dst, packed...)
	}
	return dst
}

// lz4 writes an LZ4 frame of independent blocks without checksums.
func (c *Compressor) lz4(plain []byte) ([]byte, error) {
	dst := append(c.buf[:0], 0x04, 0x22, 0x4d, 0x18, 0x60, 0x40, 0x82)
	var packed [lz4BlockSize]byte
	for len(plain) > 0 {
		block := plain[:min(len(plain), lz4BlockSize)]
		plain = plain[len(block):]
		n, err := c.lz4Block(block, packed[:len(block)])
		if err != nil || n == 0 || n >= len(block) { // what does not shrink is stored
			dst = binary.LittleEndian.AppendUint32(dst, uint32(len(block))|1<<31)
			dst = append(dst, block...)
			continue
		}
		dst = binary.LittleEndian.AppendUint32(dst, uint32(n))
		dst = append(dst, packed[:n]...)
	}
	c.buf = binary.LittleEndian.AppendUint32(dst, 0)
	return c.buf, nil
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
