package format_test

import (
	"encoding/binary"
	"hash/crc32"
	"testing"

	"kseg/format"
)

// reseal makes the checksum of a snapshot right again.
func reseal(raw []byte) []byte {
	binary.BigEndian.PutUint32(raw[2:], crc32.Checksum(raw[6:], crc32.MakeTable(crc32.Castagnoli)))
	return raw
}

// TestSnapshotFaults: the reasons that Kafka 4.4.0 gave for the same files.
func TestSnapshotFaults(t *testing.T) {
	entry := format.ProducerEntry{ProducerID: 5, LastSequence: 2, LastOffset: 17, OffsetDelta: 2,
		TimestampMs: 1700000000000, CoordinatorEpoch: -1, CurrentTxnFirstOffset: -1}
	file := func(count int32, entries int, more string) []byte {
		raw := format.AppendProducerSnapshot(nil, []format.ProducerEntry{entry, entry}[:entries])
		binary.BigEndian.PutUint32(raw[6:], uint32(count))
		return reseal(append(raw, more...))
	}
	good := file(1, 1, "")
	version := func(v uint16, n int) []byte {
		raw := append([]byte{}, good[:n]...)
		binary.BigEndian.PutUint16(raw, v)
		return raw
	}
	badCRC := append([]byte{}, good...)
	badCRC[3]++
	for _, c := range []struct {
		name  string
		raw   []byte
		fault format.SnapshotFault
		want  error
		pos   int64
		n     int
	}{
		{"sound", good, format.SnapshotSound, nil, 0, 1},
		{"no entries", file(0, 0, ""), format.SnapshotSound, nil, 0, 0},
		{"fewer entries than bytes, checksum over all", file(0, 1, ""), format.SnapshotSound, nil, 0, 0},
		{"bytes after, checksum over all", file(1, 1, "abc"), format.SnapshotSound, nil, 0, 1},
		{"empty", nil, format.SnapshotTooShort, format.ErrTruncated, 0, 0},
		{"half a version", good[:1], format.SnapshotTooShort, format.ErrTruncated, 0, 0},
		{"version only", good[:2], format.SnapshotTooShort, format.ErrTruncated, 2, 0},
		{"inside the checksum", good[:5], format.SnapshotTooShort, format.ErrTruncated, 2, 0},
		{"inside the count", good[:9], format.SnapshotTooShort, format.ErrTruncated, 6, 0},
		{"no bytes for the entry", good[:10], format.SnapshotCountTooLarge, format.ErrTruncated, 6, 0},
		{"inside the entry", good[:12], format.SnapshotTooShort, format.ErrTruncated, 10, 0},
		{"one byte short", good[:55], format.SnapshotTooShort, format.ErrTruncated, 10, 0},
		{"version 0", version(0, 56), format.SnapshotBadVersion, format.ErrUnsupported, 0, 0},
		{"version 2", version(2, 56), format.SnapshotBadVersion, format.ErrUnsupported, 0, 0},
		{"version 2 and nothing else", version(2, 2), format.SnapshotBadVersion, format.ErrUnsupported, 0, 0},
		{"version -1", version(0xffff, 56), format.SnapshotBadVersion, format.ErrUnsupported, 0, 0},
		{"count -1", file(-1, 0, ""), format.SnapshotNegativeCount, format.ErrValue, 6, 0},
		{"count -5", file(-5, 1, ""), format.SnapshotNegativeCount, format.ErrValue, 6, 1},
		{"count 2^31-1", file(1<<31-1, 1, ""), format.SnapshotCountTooLarge, format.ErrTruncated, 6, 1},
		{"count 47 of 46 bytes", file(47, 1, ""), format.SnapshotCountTooLarge, format.ErrTruncated, 6, 1},
		{"count 46 of 46 bytes", file(46, 1, ""), format.SnapshotTooShort, format.ErrTruncated, 56, 1},
		{"one entry missing", file(2, 1, ""), format.SnapshotTooShort, format.ErrTruncated, 56, 1},
		{"a million and one", append(file(1_000_001, 0, ""), zeros(1_000_001)...), format.SnapshotCountOverCap,
			format.ErrValue, 6, 1_000_001 / 46},
		{"checksum", badCRC, format.SnapshotBadCRC, format.ErrChecksum, 2, 1},
	} {
		s, err := format.DecodeProducerSnapshot(c.raw)
		checkError(t, c.name, err, c.want)
		if s.Fault != c.fault || s.Len() != c.n {
			t.Errorf("%s: fault %d, %d entries; want %d, %d", c.name, s.Fault, s.Len(), c.fault, c.n)
		}
		if pos := errorPos(err); c.want != nil && pos != c.pos {
			t.Errorf("%s: position %d, want %d", c.name, pos, c.pos)
		}
	}
}

func TestSnapshotFlips(t *testing.T) {
	raw := format.AppendProducerSnapshot(nil, []format.ProducerEntry{{ProducerID: 5, LastSequence: 2, LastOffset: 17},
		{ProducerID: 6, LastOffset: -1}})
	for i := range raw {
		for bit := range 8 {
			raw[i] ^= 1 << bit
			if _, err := format.DecodeProducerSnapshot(raw); err == nil {
				t.Errorf("bit %d of byte %d goes unnoticed", bit, i)
			}
			raw[i] ^= 1 << bit
		}
	}
	for n := range raw {
		if _, err := format.DecodeProducerSnapshot(raw[:n]); err == nil {
			t.Errorf("cut to %d bytes it is sound", n)
		}
	}
}

// TestFirstSequence: as printed by the real tool for the same entries.
func TestFirstSequence(t *testing.T) {
	const most = 1<<31 - 1
	for _, c := range []struct{ last, delta, want int32 }{{2, 2, 0}, {1, 5, most - 3}, {0, -3, 3}, {5, most, 6},
		{-1, 2, most - 2}} {
		if got := (format.ProducerEntry{LastSequence: c.last, OffsetDelta: c.delta}).FirstSequence(); got != c.want {
			t.Errorf("last %d, delta %d: %d, want %d", c.last, c.delta, got, c.want)
		}
	}
}
