package format

import (
	"encoding/binary"
	"hash/crc32"
	"strconv"
)

// Layout of a producer snapshot file, in bytes.
const (
	snapshotVersion    = 1
	snapshotCRCAt      = 2
	snapshotCountAt    = 6 // the checksum covers everything from here
	snapshotHeaderSize = 10
	producerEntrySize  = 46
	// snapshotMaxEntries is the largest array Kafka's reader of this message takes.
	snapshotMaxEntries = 1_000_000
)

// ProducerEntry is what a snapshot remembers of one producer (Kafka's ProducerStateEntry, KIP-98): only the newest of
// the up to five batches that a broker keeps in memory.
type ProducerEntry struct {
	ProducerID            int64
	ProducerEpoch         int16
	LastSequence          int32 // −1 if no data batch is remembered
	LastOffset            int64 // last offset of the newest data batch; negative if none is remembered
	OffsetDelta           int32 // LastOffset − first offset of that batch
	TimestampMs           int64 // max timestamp of the newest batch, or the marker's
	CoordinatorEpoch      int32 // of the last marker, −1 if there was none
	CurrentTxnFirstOffset int64 // first offset of the open transaction; negative if there is none
}

// HasBatch reports whether a data batch is remembered.
func (e ProducerEntry) HasBatch() bool { return e.LastOffset >= 0 }

// InTransaction reports whether a transaction is open.
func (e ProducerEntry) InTransaction() bool { return e.CurrentTxnFirstOffset >= 0 }

// FirstSequence is the sequence number of the remembered batch's first record.
func (e ProducerEntry) FirstSequence() int32 {
	return DecrementSequence(e.LastSequence, e.OffsetDelta)
}

// FirstOffset is the first offset of the remembered batch.
func (e ProducerEntry) FirstOffset() int64 { return e.LastOffset - int64(e.OffsetDelta) }

// SnapshotFault says why Kafka calls a producer snapshot corrupt. All but SnapshotBadCRC are failures of its schema.
type SnapshotFault uint8

// The faults, in the order in which Kafka's reader meets them.
const (
	SnapshotSound         SnapshotFault = iota
	SnapshotTooShort                    // the bytes end inside a field
	SnapshotBadVersion                  // Version is not 1
	SnapshotNegativeCount               // Count is below 0
	SnapshotCountTooLarge               // Count is above the number of bytes (not entries) that are left
	SnapshotCountOverCap                // Count is above one million
	SnapshotBadCRC                      // CRC differs from ComputedCRC
)

// ProducerSnapshot is a view of a .snapshot file (ProducerStateManager.readSnapshot): int16 version, uint32 CRC-32C of
// the bytes from 6 to the end of the file, int32 count, and count entries of 46 bytes.
type ProducerSnapshot struct {
	Version     int16
	CRC         uint32
	ComputedCRC uint32
	Count       int32 // as stored
	Fault       SnapshotFault
	raw         []byte
	entries     int
}

// DecodeProducerSnapshot views raw, which it keeps without copying. If Kafka would call the file corrupt, Fault says
// why, the error is an *Error with the position, and Len counts the whole entries that are there all the same.
func DecodeProducerSnapshot(raw []byte) (ProducerSnapshot, error) {
	s := ProducerSnapshot{raw: raw}
	c := NewCursor(raw, 0)
	s.Version = c.Int16("snapshot version")
	if c.OK() && s.Version != snapshotVersion {
		s.Fault = SnapshotBadVersion
		return s, &Error{What: "snapshot version", Want: strconv.Itoa(snapshotVersion), Got: strconv.Itoa(int(s.Version)),
			Err: ErrUnsupported}
	}
	s.CRC = c.Uint32("snapshot CRC")
	s.Count = c.Int32("snapshot entry count")
	if err := c.Err(); err != nil {
		s.Fault = SnapshotTooShort
		return s, err
	}
	s.ComputedCRC = crc32.Checksum(raw[snapshotCountAt:], castagnoli)
	s.entries = c.Remaining() / producerEntrySize
	if err := s.checkCount(c.Remaining()); err != nil {
		return s, err
	}
	s.entries = int(s.Count)
	if s.CRC != s.ComputedCRC {
		s.Fault = SnapshotBadCRC
		return s, &Error{What: "snapshot CRC", Pos: snapshotCRCAt, Want: strconv.FormatUint(uint64(s.ComputedCRC), 10),
			Got: strconv.FormatUint(uint64(s.CRC), 10), Err: ErrChecksum}
	}
	return s, nil
}

// checkCount holds Count against the remaining bytes, by the same steps as Kafka's generated reader.
func (s *ProducerSnapshot) checkCount(remaining int) error {
	err := &Error{What: "snapshot entry count", Pos: snapshotCountAt, Got: strconv.Itoa(int(s.Count)), Err: ErrValue}
	switch {
	case s.Count < 0:
		s.Fault, err.Want = SnapshotNegativeCount, "0 or more"
	case int64(s.Count) > int64(remaining):
		s.Fault, err.Want, err.Err = SnapshotCountTooLarge, "at most "+strconv.Itoa(s.entries), ErrTruncated
	case s.Count > snapshotMaxEntries:
		s.Fault, err.Want = SnapshotCountOverCap, "at most "+strconv.Itoa(snapshotMaxEntries)
	case int(s.Count) > s.entries:
		s.Fault = SnapshotTooShort
		return &Error{What: "snapshot entry", Pos: s.Position(s.entries), Want: strconv.Itoa(producerEntrySize) + " bytes",
			Got: strconv.Itoa(remaining % producerEntrySize), Err: ErrTruncated}
	default:
		return nil
	}
	return err
}

// Len is the number of entries that can be read.
func (s *ProducerSnapshot) Len() int { return s.entries }

// Position is the byte position of entry i in the file.
func (s *ProducerSnapshot) Position(i int) int64 {
	return snapshotHeaderSize + int64(i)*producerEntrySize
}

// StrayBytes is the number of bytes after the entries. Kafka's reader does not mind them if the checksum covers them.
func (s *ProducerSnapshot) StrayBytes() int {
	return max(0, len(s.raw)-snapshotHeaderSize-s.entries*producerEntrySize)
}

// Remaining is the number of bytes after the count field.
func (s *ProducerSnapshot) Remaining() int { return max(0, len(s.raw)-snapshotHeaderSize) }

// Entry is entry i, which must be in [0, Len()).
func (s *ProducerSnapshot) Entry(i int) ProducerEntry {
	at := snapshotHeaderSize + i*producerEntrySize
	b := s.raw[at : at+producerEntrySize]
	return ProducerEntry{
		ProducerID:            int64(binary.BigEndian.Uint64(b)),
		ProducerEpoch:         int16(binary.BigEndian.Uint16(b[8:])),
		LastSequence:          int32(binary.BigEndian.Uint32(b[10:])),
		LastOffset:            int64(binary.BigEndian.Uint64(b[14:])),
		OffsetDelta:           int32(binary.BigEndian.Uint32(b[22:])),
		TimestampMs:           int64(binary.BigEndian.Uint64(b[26:])),
		CoordinatorEpoch:      int32(binary.BigEndian.Uint32(b[34:])),
		CurrentTxnFirstOffset: int64(binary.BigEndian.Uint64(b[38:])),
	}
}

// Entries are all entries that can be read.
func (s *ProducerSnapshot) Entries() []ProducerEntry {
	all := make([]ProducerEntry, s.Len())
	for i := range all {
		all[i] = s.Entry(i)
	}
	return all
}

// AppendProducerSnapshot appends a snapshot file of the entries, in the order given, to dst.
func AppendProducerSnapshot(dst []byte, entries []ProducerEntry) []byte {
	start := len(dst)
	dst = binary.BigEndian.AppendUint16(dst, snapshotVersion)
	dst = binary.BigEndian.AppendUint32(dst, 0)
	dst = binary.BigEndian.AppendUint32(dst, uint32(len(entries)))
	for _, e := range entries {
		dst = binary.BigEndian.AppendUint64(dst, uint64(e.ProducerID))
		dst = binary.BigEndian.AppendUint16(dst, uint16(e.ProducerEpoch))
		dst = binary.BigEndian.AppendUint32(dst, uint32(e.LastSequence))
		dst = binary.BigEndian.AppendUint64(dst, uint64(e.LastOffset))
		dst = binary.BigEndian.AppendUint32(dst, uint32(e.OffsetDelta))
		dst = binary.BigEndian.AppendUint64(dst, uint64(e.TimestampMs))
		dst = binary.BigEndian.AppendUint32(dst, uint32(e.CoordinatorEpoch))
		dst = binary.BigEndian.AppendUint64(dst, uint64(e.CurrentTxnFirstOffset))
	}
	crc := crc32.Checksum(dst[start+snapshotCountAt:], castagnoli)
	binary.BigEndian.PutUint32(dst[start+snapshotCRCAt:], crc)
	return dst
}

var producerSnapshotContent = Content{describe: (*describer).producerSnapshot, count: func(raw []byte) int {
	s, _ := DecodeProducerSnapshot(raw)
	return s.Len()
}}
