package format

import (
	"encoding/binary"

	"github.com/cespare/xxhash/v2"
)

// RecordDigestVersion is the version of what RecordDigest computes. It changes with the definition, which docs/json.md
// tells.
const RecordDigestVersion = 1

// RecordDigest computes digests of records, whatever batch, codec or magic they are stored in. A digest is the XXH64
// (seed 0) of
//
//	offset int64, timestamp int64, flags uint8 (bit 0 transactional, bit 1 control),
//	producer id int64, producer epoch int16, sequence int32 (−1 each where there is none),
//	key, value: length int32 (−1 for null) and the bytes,
//	number of headers int32, and for each: key, value, like the above
//
// with all numbers big-endian. It keeps a buffer and is not safe for concurrent use.
type RecordDigest struct {
	buf  []byte
	hash *xxhash.Digest // of what was before buf, nil: nothing
}

// digestRoom is how many bytes of a record are gathered before they are digested.
const digestRoom = 64 << 10

// Sum is the digest of a record of the batch.
func (d *RecordDigest) Sum(b *Batch, r *Record) uint64 {
	var flags byte
	if b.Transactional() {
		flags |= 1
	}
	if b.Control() {
		flags |= 2
	}
	d.hash = nil
	d.buf = binary.BigEndian.AppendUint64(d.buf[:0], uint64(r.Offset))
	d.buf = binary.BigEndian.AppendUint64(d.buf, uint64(r.Timestamp))
	d.buf = append(d.buf, flags)
	d.buf = binary.BigEndian.AppendUint64(d.buf, uint64(b.ProducerID))
	d.buf = binary.BigEndian.AppendUint16(d.buf, uint16(b.ProducerEpoch))
	d.buf = binary.BigEndian.AppendUint32(d.buf, uint32(r.Sequence))
	d.field(r.Key)
	d.field(r.Value)
	d.buf = binary.BigEndian.AppendUint32(d.buf, uint32(r.HeaderCount))
	for h := r.Headers; len(h) > 0; {
		var key, value []byte
		key, value, h = NextHeader(h)
		d.field(key)
		d.field(value)
	}
	if d.hash == nil {
		return xxhash.Sum64(d.buf)
	}
	d.write(d.buf)
	return d.hash.Sum64()
}

// SumAs is the digest of a record as it would be in a batch of magic 0 or 1, which holds no headers, producer, sequence
// and flags, and with magic 0 no timestamp: how RecordsUtil converts down.
func (d *RecordDigest) SumAs(magic int8, r *Record) uint64 {
	old := Record{Offset: r.Offset, Timestamp: r.Timestamp, Sequence: -1, Key: r.Key, Value: r.Value}
	if magic == 0 {
		old.Timestamp = -1
	}
	return d.Sum(&Batch{ProducerID: -1, ProducerEpoch: -1}, &old)
}

// field adds a key, a value or a part of a header.
func (d *RecordDigest) field(b []byte) {
	size := uint32(len(b))
	if b == nil {
		size = ^uint32(0)
	}
	d.buf = binary.BigEndian.AppendUint32(d.buf, size)
	if len(d.buf)+len(b) <= digestRoom {
		d.buf = append(d.buf, b...)
		return
	}
	d.write(d.buf)
	d.write(b)
	d.buf = d.buf[:0]
}

func (d *RecordDigest) write(b []byte) {
	if d.hash == nil {
		d.hash = xxhash.New()
	}
	_, _ = d.hash.Write(b) // fails never
}

// KeyDigest is a digest of a record's key.
func KeyDigest(key []byte) uint64 { return xxhash.Sum64(key) }

// RangeDigest computes the digest of a range of records: the XXH64 of the digests of its records, in order, big-endian.
// The zero value is not ready; see NewRangeDigest.
type RangeDigest struct{ hash *xxhash.Digest }

// NewRangeDigest starts with no record.
func NewRangeDigest() RangeDigest { return RangeDigest{xxhash.New()} }

// Add takes the digest of the next record.
func (d RangeDigest) Add(sum uint64) {
	var b [8]byte
	binary.BigEndian.PutUint64(b[:], sum)
	_, _ = d.hash.Write(b[:]) // never fails
}

// Reset starts anew.
func (d RangeDigest) Reset() { d.hash.Reset() }

// Sum is the digest of the records so far.
func (d RangeDigest) Sum() uint64 { return d.hash.Sum64() }
