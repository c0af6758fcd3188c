package format

import (
	"encoding/binary"
	"strconv"
)

// txnEntrySize is the length of a transaction index entry in bytes.
const txnEntrySize = 34

// txnIndexVersion is the only version of a transaction index entry there has been.
const txnIndexVersion = 0

// AbortedTxn is one entry of a transaction index (Kafka's AbortedTxn, KIP-98): a transaction that an ABORT marker of
// this segment ended.
type AbortedTxn struct {
	Version          int16
	ProducerID       int64
	FirstOffset      int64 // first offset of the transaction; may lie in an earlier segment
	LastOffset       int64 // offset of the ABORT marker
	LastStableOffset int64 // at completion: first offset of the earliest other open transaction, else LastOffset + 1
}

// TxnIndex is a view of a .txnindex file (Kafka's TransactionIndex): entries of 34 bytes, int16 version and four int64,
// big-endian, with no header and no checksum.
type TxnIndex struct{ raw []byte }

// NewTxnIndex views raw, which it keeps without copying.
func NewTxnIndex(raw []byte) TxnIndex { return TxnIndex{raw} }

// Len is the number of whole entries. Unlike the other two indexes this one is never preallocated.
func (x TxnIndex) Len() int { return len(x.raw) / txnEntrySize }

// StrayBytes is the number of bytes after the last whole entry, which Kafka's reader ignores.
func (x TxnIndex) StrayBytes() int { return len(x.raw) % txnEntrySize }

// Position is the byte position of entry i in the file.
func (x TxnIndex) Position(i int) int64 { return int64(i) * txnEntrySize }

// Entry is entry i, which must be in [0, Len()), whatever its version.
func (x TxnIndex) Entry(i int) AbortedTxn {
	b := x.raw[i*txnEntrySize : i*txnEntrySize+txnEntrySize]
	return AbortedTxn{
		Version:          int16(binary.BigEndian.Uint16(b)),
		ProducerID:       int64(binary.BigEndian.Uint64(b[2:])),
		FirstOffset:      int64(binary.BigEndian.Uint64(b[10:])),
		LastOffset:       int64(binary.BigEndian.Uint64(b[18:])),
		LastStableOffset: int64(binary.BigEndian.Uint64(b[26:])),
	}
}

// Check returns an *Error wrapping ErrUnsupported for the first entry of another version than 0, at which Kafka's
// reader stops with a KafkaException that keeps the partition from loading, and the number of entries before it.
func (x TxnIndex) Check() (int, error) {
	n := x.Len()
	for i := 0; i < n; i++ {
		if v := int16(binary.BigEndian.Uint16(x.raw[i*txnEntrySize:])); v != txnIndexVersion {
			return i, &Error{What: "version of an aborted transaction", Pos: x.Position(i), Want: strconv.Itoa(txnIndexVersion),
				Got: strconv.Itoa(int(v)), Err: ErrUnsupported}
		}
	}
	return n, nil
}

// AppendAbortedTxn appends the 34 bytes of t to dst.
func AppendAbortedTxn(dst []byte, t AbortedTxn) []byte {
	dst = binary.BigEndian.AppendUint16(dst, uint16(t.Version))
	dst = binary.BigEndian.AppendUint64(dst, uint64(t.ProducerID))
	dst = binary.BigEndian.AppendUint64(dst, uint64(t.FirstOffset))
	dst = binary.BigEndian.AppendUint64(dst, uint64(t.LastOffset))
	return binary.BigEndian.AppendUint64(dst, uint64(t.LastStableOffset))
}

var txnIndexContent = Content{describe: (*describer).txnIndex,
	count: func(raw []byte) int { return NewTxnIndex(raw).Len() },
	entryOf: func(raw []byte, _, offset int64) (int, error) {
		x := NewTxnIndex(raw)
		return lastWhere(x.Len(), func(i int) bool {
			e := x.Entry(i)
			return e.FirstOffset <= offset && offset <= e.LastOffset
		}), nil
	}}
