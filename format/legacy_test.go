package format_test

import (
	"encoding/binary"
	"slices"
	"testing"

	"kseg/format"
)

// read reads the records of the only batch of log and returns what Kafka tells as their sizes.
func read(t *testing.T, log []byte) (r *format.RecordReader, sizes [][2]int32) {
	t.Helper()
	b, err := format.DecodeBatch(log, 0)
	if err != nil {
		t.Fatal(err)
	}
	r = format.NewRecordReader(1<<20, nil)
	r.Reset(&b)
	var rec format.Record
	for r.Next(&rec) {
		sizes = append(sizes, [2]int32{rec.KeySize, rec.ValueSize})
		if (rec.Key != nil || rec.Value != nil) && r.Err() != nil && !r.Unnoticed(false) {
			t.Errorf("content beside %v", r.Err())
		}
	}
	return r, sizes
}

// Kafka's reader prints a message of magic 0 or 1 with the two lengths it finds, looks at what they span only where
// that is wanted, and never at what is left over.
func TestLegacyMessagesOfWrongLengths(t *testing.T) {
	value := []byte("some value")
	for magic := byte(0); magic < 2; magic++ {
		key := 18 + 8*int(magic)
		for _, c := range []struct {
			name      string
			at        int
			length    int32
			key, size int32 // -2: there is no record
			err       bool
			unnoticed [2]bool // without and with contents
		}{
			{"sound", key, -1, -1, 10, false, [2]bool{}},
			{"null of its own kind", key, -7, -7, 10, false, [2]bool{}},
			{"short value", key + 4, 3, -1, 3, true, [2]bool{true, true}},
			{"long value", key + 4, 11, -1, 11, true, [2]bool{true, false}},
			{"huge value", key + 4, 1<<31 - 1, -1, 1<<31 - 1, true, [2]bool{true, false}},
			{"long key", key, 11, -2, -2, true, [2]bool{false, false}},
		} {
			log := legacyMessage(nil, 7, magic, 0, value)
			binary.BigEndian.PutUint32(log[c.at:], uint32(c.length))
			r, sizes := read(t, log)
			if c.key == -2 != (len(sizes) == 0) || len(sizes) > 0 && sizes[0] != [2]int32{c.key, c.size} {
				t.Errorf("magic %d, %s: %v, want %d and %d", magic, c.name, sizes, c.key, c.size)
			}
			if (r.Err() != nil) != c.err || [2]bool{r.Unnoticed(false), r.Unnoticed(true)} != c.unnoticed {
				t.Errorf("magic %d, %s: %v, unnoticed %v and %v", magic, c.name, r.Err(), r.Unnoticed(false), r.Unnoticed(true))
			}
		}
	}
}

// Inside a wrapper, Kafka's reader takes messages of another magic by their own layout, and a torn last one for the
// end.
func TestOddMessagesInsideAWrapper(t *testing.T) {
	value := []byte("some value")
	other := legacyMessage(legacyMessage(nil, 0, 0, 0, value), 1, 1, 0, value)
	torn := legacyMessage(legacyMessage(nil, 0, 1, 0, value), 1, 1, 0, value)
	for name, inner := range map[string][]byte{"two magics": other, "torn": torn[:len(torn)-1]} {
		frame := []byte{0x04, 0x22, 0x4d, 0x18, 0x60, 0x40, 0x82}
		frame = binary.LittleEndian.AppendUint32(frame, 1<<31|uint32(len(inner)))
		frame = append(append(frame, inner...), 0, 0, 0, 0)
		r, sizes := read(t, legacyMessage(nil, 9, 1, 3, frame))
		want := map[string]int{"two magics": 2, "torn": 1}[name]
		if len(sizes) != want || sizes[want-1] != [2]int32{-1, 10} || r.Err() == nil || !r.Unnoticed(true) {
			t.Errorf("%s: %v, %v", name, sizes, r.Err())
		}
	}
}

// Offsets inside a wrapper of magic 1 are counted from that of its first message, unless the wrapper's is 0, as that of
// a producer which leaves them to the broker; those inside one of magic 0 are taken as they are.
func TestOffsetsInsideAWrapper(t *testing.T) {
	for _, c := range []struct {
		magic   byte
		wrapper int64
		inner   []int64
		want    []int64 // nil: an error
	}{
		{1, 9, []int64{0, 1, 2}, []int64{7, 8, 9}},
		{1, 2, []int64{0, 1, 2}, []int64{0, 1, 2}},
		{1, 0, []int64{0, 1, 2}, []int64{0, 1, 2}},
		{1, 1, []int64{0, 1, 2}, nil},
		{0, 9, []int64{3, 4}, []int64{3, 4}},
		{0, 1, []int64{3, 4}, []int64{3, 4}},
	} {
		var inner []byte
		for _, offset := range c.inner {
			inner = legacyMessage(inner, offset, c.magic, 0, []byte("value"))
		}
		var compressor format.Compressor
		body, err := compressor.Compress(format.CodecGzip, inner)
		if err != nil {
			t.Fatal(err)
		}
		b, err := format.DecodeBatch(legacyMessage(nil, c.wrapper, c.magic, byte(format.CodecGzip), body), 0)
		if err != nil {
			t.Fatal(err)
		}
		r := format.NewRecordReader(1<<20, nil)
		r.Reset(&b)
		var got []int64
		for rec := (format.Record{}); r.Next(&rec); {
			got = append(got, rec.Offset)
		}
		if !slices.Equal(got, c.want) || (r.Err() == nil) != (c.want != nil) {
			t.Errorf("magic %d, wrapper %d, inner %v: %v, %v; want %v", c.magic, c.wrapper, c.inner, got, r.Err(), c.want)
		}
	}
}

// What a message of magic 0 or 1 has no field for is absent in the way of RecordBatch (NO_PARTITION_LEADER_EPOCH and so
// on).
func TestWhatLegacyMessagesLack(t *testing.T) {
	for magic := byte(0); magic < 2; magic++ {
		raw := binary.BigEndian.AppendUint64(nil, 7)
		raw = append(raw, make([]byte, 4+14+8*int(magic))...)
		binary.BigEndian.PutUint32(raw[8:], uint32(len(raw)-12))
		raw[16] = magic
		b, err := format.DecodeBatch(raw, 0)
		if err != nil || b.LeaderEpoch != -1 || b.ProducerID != -1 || b.ProducerEpoch != -1 || b.BaseSequence != -1 ||
			b.Count != 1 || b.BaseOffset != 7 || b.LastOffset != 7 || b.MaxTimestamp != int64(magic)-1 {
			t.Errorf("magic %d: %+v, %v", magic, b, err)
		}
	}
}

// The beginning of a batch at the end of a file is one that was being written, if its offset can be that of one: from
// what is expected up to 2^31-1 above the segment's base.
func TestTornOffsets(t *testing.T) {
	const base, largest = 7, 7 + 1<<31 - 1
	for offset, want := range map[int64]format.HoleKind{base - 1: format.Damage, base: format.TornTail,
		largest: format.TornTail, largest + 1: format.Damage} {
		s := format.NewScanner(binary.BigEndian.AppendUint64(nil, uint64(offset)), 0, base)
		if !s.Next() || s.Hole() == nil || s.Hole().Kind != want {
			t.Errorf("%d: %+v", offset, s.Hole())
		}
	}
}
