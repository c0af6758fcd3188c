package format

import (
	"encoding/binary"
	"hash/crc32"
	"math"
	"strconv"
)

// Sizes of the fixed parts of a segment's entries, in bytes.
const (
	// LogOverhead is the offset and the size that every entry begins with; the size counts what follows it.
	LogOverhead = 12
	// MagicPrefix is how much of an entry must be there to tell its magic.
	MagicPrefix = 17
	// BatchHeaderSize is the header of a record batch (magic 2).
	BatchHeaderSize = 61
	// MinEntrySize is the smallest value of the size field that Kafka's reader accepts, whatever the magic
	// (LegacyRecord.RECORD_OVERHEAD_V0).
	MinEntrySize = 14
)

// Attribute bits of a batch. Kafka reads the low byte only.
const (
	attrCodec         = 0x07
	attrLogAppend     = 0x08
	attrTransactional = 0x10
	attrControl       = 0x20
	attrHorizon       = 0x40
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Codec is the compression type of a batch, the lowest three attribute bits (CompressionType).
type Codec int8

// The codecs Kafka knows; 5 to 7 are unassigned.
const (
	CodecNone Codec = iota
	CodecGzip
	CodecSnappy
	CodecLZ4
	CodecZstd
)

var codecNames = [8]string{"none", "gzip", "snappy", "lz4", "zstd", "unknown(5)", "unknown(6)", "unknown(7)"}

// String is Kafka's name of the codec, or "unknown(5)".
func (c Codec) String() string { return codecNames[c&attrCodec] }

// Known reports whether Kafka assigns the number to a codec.
func (c Codec) Known() bool { return c <= CodecZstd }

// TimestampType tells who set the timestamps (TimestampType).
type TimestampType int8

// The three timestamp types; magic 0 has none.
const (
	NoTimestampType TimestampType = iota - 1
	CreateTime
	LogAppendTime
)

// String is the name kafka-dump-log prints.
func (t TimestampType) String() string {
	switch t {
	case CreateTime:
		return "CreateTime"
	case LogAppendTime:
		return "LogAppendTime"
	}
	return "NoTimestampType"
}

// Batch is the header of one entry of a segment: a record batch (magic 2) or a message, possibly a compressed wrapper
// of messages (magic 0 and 1). Raw aliases the input.
//
// For magic 0 and 1 both offsets are the entry's own, which for a wrapper is the last inner one; the fields that only
// magic 2 has are -1, and Count is 1, or -1 for a wrapper.
type Batch struct {
	Pos             int64
	Raw             []byte
	BaseOffset      int64
	LastOffset      int64
	BaseTimestamp   int64 // the delete horizon if HasDeleteHorizon
	MaxTimestamp    int64
	ProducerID      int64
	CRC             uint32
	LeaderEpoch     int32
	LastOffsetDelta int32
	BaseSequence    int32
	Count           int32
	Attributes      int16
	ProducerEpoch   int16
	Magic           int8
}

// EntrySize reads the size in bytes of the entry at pos: LogOverhead plus its size field. It fails as Kafka's
// FileLogInputStream stops: ErrTruncated where fewer than 18 bytes are left or the entry runs past the end, ErrValue
// where the size field is below MinEntrySize.
func EntrySize(data []byte, pos int64) (int64, error) {
	left := int64(len(data)) - pos
	if left <= MagicPrefix {
		return EntrySizeOf(nil, pos, left)
	}
	return EntrySizeOf(data[pos:], pos, left)
}

// EntrySizeOf is EntrySize where not all of the file is at hand: entry begins with the first LogOverhead bytes of the
// entry at pos, which is that many bytes before the end of the file.
func EntrySizeOf(entry []byte, pos, left int64) (int64, error) {
	if left <= MagicPrefix {
		return 0, &Error{What: "batch header", Pos: pos, Want: "more than 17 bytes", Got: strconv.FormatInt(left, 10),
			Err: ErrTruncated}
	}
	size := int64(int32(binary.BigEndian.Uint32(entry[8:])))
	if size < MinEntrySize {
		return 0, &Error{What: "batch length", Pos: pos + 8, Want: "at least 14", Got: strconv.FormatInt(size, 10),
			Err: ErrEntrySize}
	}
	if LogOverhead+size > left {
		return 0, &Error{What: "batch", Pos: pos, Want: strconv.FormatInt(LogOverhead+size, 10) + " bytes",
			Got: strconv.FormatInt(left, 10), Err: ErrTruncated}
	}
	return LogOverhead + size, nil
}

// DecodeBatch reads the header of the entry at pos of a whole file. Like Kafka it takes a negative magic for a legacy
// one and any magic above 2 for 2, and reads the 61 header bytes even where the size field claims fewer. Errors are
// those of EntrySize.
func DecodeBatch(data []byte, pos int64) (Batch, error) {
	var b Batch
	err := b.Decode(data, pos)
	return b, err
}

// Decode is DecodeBatch in place, which is cheaper where batches are small.
func (b *Batch) Decode(data []byte, pos int64) error {
	size, err := EntrySize(data, pos)
	if err != nil {
		*b = Batch{}
		return err
	}
	raw := data[pos : pos+size : pos+size]
	if int8(raw[16]) < 2 {
		*b = decodeLegacy(data[pos:], raw, pos)
		return nil
	}
	b.decodeV2(data[pos:], raw, pos)
	return nil
}

// decodeV2 takes the header from data, which may go on after raw.
func (b *Batch) decodeV2(data, raw []byte, pos int64) {
	var short [BatchHeaderSize]byte
	if len(data) < BatchHeaderSize {
		copy(short[:], data)
		data = short[:]
	}
	h := data[:BatchHeaderSize]
	b.Pos, b.Raw = pos, raw
	b.BaseOffset = int64(binary.BigEndian.Uint64(h))
	b.LeaderEpoch = int32(binary.BigEndian.Uint32(h[12:]))
	b.Magic = int8(h[16])
	b.CRC = binary.BigEndian.Uint32(h[17:])
	b.Attributes = int16(binary.BigEndian.Uint16(h[21:]))
	b.LastOffsetDelta = int32(binary.BigEndian.Uint32(h[23:]))
	b.LastOffset = b.BaseOffset + int64(b.LastOffsetDelta)
	b.BaseTimestamp = int64(binary.BigEndian.Uint64(h[27:]))
	b.MaxTimestamp = int64(binary.BigEndian.Uint64(h[35:]))
	b.ProducerID = int64(binary.BigEndian.Uint64(h[43:]))
	b.ProducerEpoch = int16(binary.BigEndian.Uint16(h[51:]))
	b.BaseSequence = int32(binary.BigEndian.Uint32(h[53:]))
	b.Count = int32(binary.BigEndian.Uint32(h[57:]))
}

func decodeLegacy(b, raw []byte, pos int64) Batch {
	offset := int64(binary.BigEndian.Uint64(b))
	out := Batch{
		Pos: pos, Raw: raw, BaseOffset: offset, LastOffset: offset,
		CRC: binary.BigEndian.Uint32(b[12:]), Magic: int8(b[16]), Attributes: int16(b[17]),
		BaseTimestamp: -1, MaxTimestamp: -1, ProducerID: -1, ProducerEpoch: -1, BaseSequence: -1, LeaderEpoch: -1, Count: 1,
	}
	if out.Codec() != CodecNone {
		out.Count = -1
	}
	if out.Magic != 0 && len(b) >= 26 {
		out.MaxTimestamp = int64(binary.BigEndian.Uint64(b[18:]))
		out.BaseTimestamp = out.MaxTimestamp
	}
	return out
}

// Size is the entry's length on disk in bytes, LogOverhead included.
func (b *Batch) Size() int64 { return int64(len(b.Raw)) }

// End is the position after the entry.
func (b *Batch) End() int64 { return b.Pos + int64(len(b.Raw)) }

// NextOffset is the offset after the last one.
func (b *Batch) NextOffset() int64 { return b.LastOffset + 1 }

// Legacy reports whether the entry is read by the rules of magic 0 and 1.
func (b *Batch) Legacy() bool { return b.Magic < 2 }

// Codec is the compression of the records.
func (b *Batch) Codec() Codec { return Codec(b.Attributes & attrCodec) }

// CodecFits reports whether batches of that magic may have the codec.
func (b *Batch) CodecFits() bool {
	return b.Codec() <= CodecLZ4 || b.Codec() == CodecZstd && !b.Legacy()
}

// TimestampType tells who set the timestamps.
func (b *Batch) TimestampType() TimestampType {
	switch {
	case b.Magic < 1:
		return NoTimestampType
	case b.Attributes&attrLogAppend != 0:
		return LogAppendTime
	}
	return CreateTime
}

// Transactional reports whether the batch belongs to a transaction.
func (b *Batch) Transactional() bool { return b.Magic >= 2 && b.Attributes&attrTransactional != 0 }

// Control reports whether the batch holds control records.
func (b *Batch) Control() bool { return b.Magic >= 2 && b.Attributes&attrControl != 0 }

// HasDeleteHorizon reports whether BaseTimestamp holds the time from which the cleaner may drop tombstones and markers
// (KIP-534).
func (b *Batch) HasDeleteHorizon() bool { return b.Magic >= 2 && b.Attributes&attrHorizon != 0 }

// LastSequence is -1 without a base sequence; it follows from lastOffsetDelta, not from the count, and wraps from
// 2^31-1 to 0.
func (b *Batch) LastSequence() int32 {
	if b.BaseSequence == -1 {
		return -1
	}
	return IncrementSequence(b.BaseSequence, b.LastOffsetDelta)
}

// IncrementSequence adds to a sequence number as DefaultRecordBatch.incrementSequence does.
func IncrementSequence(sequence, by int32) int32 {
	const most = 1<<31 - 1
	if sequence > most-by {
		return by - (most - sequence) - 1
	}
	return sequence + by
}

// DecrementSequence subtracts from a sequence number as DefaultRecordBatch.decrementSequence does.
func DecrementSequence(sequence, by int32) int32 {
	const most = 1<<31 - 1
	if sequence < by {
		return most - (by - sequence) + 1
	}
	return sequence - by
}

// ComputeCRC is the checksum the entry should store: CRC-32C from the attributes on (magic 2), CRC-32 from the magic on
// (magic 0 and 1).
func (b *Batch) ComputeCRC() uint32 {
	if b.Legacy() {
		return crc32.ChecksumIEEE(b.Raw[16:])
	}
	return crc32.Checksum(b.Raw[21:], castagnoli)
}

// Valid is what kafka-dump-log calls isvalid: the entry is long enough for its header and the checksum matches.
func (b *Batch) Valid() bool {
	if !b.Legacy() && len(b.Raw) < BatchHeaderSize {
		return false
	}
	return b.ComputeCRC() == b.CRC
}

// AsV2 reads an entry whose magic byte is not 2 as a record batch. It answers false unless the CRC-32C, which leaves
// out the magic, then matches: so a damaged magic byte is told from a batch of that magic.
func (b *Batch) AsV2() (Batch, bool) {
	if b.Magic == 2 || len(b.Raw) < BatchHeaderSize {
		return Batch{}, false
	}
	var v2 Batch
	v2.decodeV2(b.Raw, b.Raw, b.Pos)
	v2.Magic = 2
	return v2, saneV2(&v2) && v2.Valid()
}

// DecodeSpan reads the bytes as one record batch, whatever its length field says. It answers false unless the checksum
// then holds.
func DecodeSpan(data []byte, from, to int64) (Batch, bool) {
	if to-from < LogOverhead+MinEntrySize || to-from > math.MaxInt32 {
		return Batch{}, false
	}
	var header [BatchHeaderSize]byte
	copy(header[:], data[from:])
	binary.BigEndian.PutUint32(header[8:], BatchHeaderSize-LogOverhead)
	b, err := DecodeBatch(header[:], 0)
	if err != nil {
		return Batch{}, false
	}
	b.Pos, b.Raw = from, data[from:to:to]
	return b, b.Plausible() && b.Valid()
}

// Plausible reports whether the entry could be one a broker wrote. The checksum is not looked at.
func (b *Batch) Plausible() bool { return saneHeader(b) }

// saneHeader reports whether the entry could be one a broker wrote; the checksum is not looked at.
func saneHeader(b *Batch) bool { return saneFields(b) && (b.Legacy() || len(b.Raw) >= BatchHeaderSize) }

// saneFields is saneHeader without regard to the length.
func saneFields(b *Batch) bool {
	switch {
	case b.BaseOffset < 0:
		return false
	case b.Magic == 2:
		return saneV2(b)
	case b.Magic == 0 || b.Magic == 1:
		return saneLegacy(b)
	}
	return false
}

func saneV2(b *Batch) bool {
	return b.Attributes&^0x7f == 0 && b.Codec().Known() && b.LastOffsetDelta >= 0 && b.Count >= 0 &&
		int64(b.Count) <= int64(b.LastOffsetDelta)+1 && b.ProducerID >= -1 && b.ProducerEpoch >= -1 && b.BaseSequence >= -1
}

func saneLegacy(b *Batch) bool {
	return legacyFits(b) && b.Codec() <= CodecLZ4 && b.Attributes&^0x0f == 0
}
