package format_test

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"math/rand"
	"slices"
	"testing"

	"kseg/format"
	"kseg/internal/fixture"
)

// scanned lists what a scanner of a segment with base offset 0 comes to: positions of batches, and of holes with where
// each leads, as a negative pair.
func scanned(data []byte, trust format.Trust) (items [][2]int64) {
	s := format.NewScanner(data, 0, 0)
	s.Trust(trust)
	for s.Next() {
		if h := s.Hole(); h != nil {
			items = append(items, [2]int64{-1 - h.Pos, h.Next})
			continue
		}
		items = append(items, [2]int64{s.Batch().Pos, s.Batch().BaseOffset})
	}
	return items
}

// A wrong length that leads to the beginning of a later batch, or to the end of the file, hides the batches it runs
// over from Kafka's reader. They are found all the same, also where the rest of the header makes no sense.
func TestLengthsThatRunOverIntactBatches(t *testing.T) {
	var data []byte
	var at []int64
	for i := range int64(4) {
		at = append(at, int64(len(data)))
		data = fixture.AppendBatch(data, fixture.Batch{Records: []fixture.Record{{Offset: i, Value: []byte("value")}}})
	}
	end := int64(len(data))
	for _, c := range []struct {
		to      int64
		oddHead bool
		blindly [][2]int64
	}{
		{at[3], false, [][2]int64{{0, 0}, {at[1], 1}, {at[3], 3}}},
		{at[3], true, [][2]int64{{0, 0}, {at[1], 1}, {at[3], 3}}},
		{end, false, [][2]int64{{0, 0}, {at[1], 1}}},
		{end, true, [][2]int64{{0, 0}, {at[1], 1}}},
	} {
		damaged := slices.Clone(data)
		binary.BigEndian.PutUint32(damaged[at[1]+8:], uint32(c.to-at[1]-format.LogOverhead))
		if c.oddHead {
			damaged[at[1]+57] = 0x80 // a negative count
		}
		if got := scanned(damaged, format.TrustBlindly); !slices.Equal(got, c.blindly) {
			t.Errorf("%+v: Kafka's reader sees %v, want %v", c, got, c.blindly)
		}
		want := [][2]int64{{0, 0}, {at[1], 1}, {-1 - at[1], at[2]}, {at[2], 2}, {at[3], 3}}
		for _, trust := range []format.Trust{format.TrustSane, format.TrustLengths} {
			if got := scanned(damaged, trust); !slices.Equal(got, want) {
				t.Errorf("%+v, trust %d: %v, want %v", c, trust, got, want)
			}
		}
	}
}

// Where lengths lead through bytes that are no batches and then nowhere, the search begins where the first of them
// began.
func TestSearchBeginsAtTheFirstOddHeader(t *testing.T) {
	var data []byte
	add := func(offset int64) {
		data = fixture.AppendBatch(data, fixture.Batch{Records: []fixture.Record{{Offset: offset, Value: make([]byte, 30)}}})
	}
	add(0)
	odd := len(data)
	add(1)
	intact := len(data)
	add(2)
	data[odd+21], data[odd+57] = 0x7f, 0xff // neither attributes nor count make sense
	binary.BigEndian.PutUint32(data[odd+8:], 150)
	want := [][2]int64{{0, 0}, {int64(odd), 1}, {-1 - int64(odd), int64(intact)}, {int64(intact), 2}}
	if got := scanned(data, format.TrustLengths); !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// legacyMessage appends a message of magic 0 or 1 with a null key.
func legacyMessage(dst []byte, offset int64, magic, attributes byte, value []byte) []byte {
	body := []byte{magic, attributes}
	if magic == 1 {
		body = binary.BigEndian.AppendUint64(body, 1700000000000)
	}
	body = binary.BigEndian.AppendUint32(body, 1<<32-1)
	body = append(binary.BigEndian.AppendUint32(body, uint32(len(value))), value...)
	dst = binary.BigEndian.AppendUint64(dst, uint64(offset))
	dst = binary.BigEndian.AppendUint32(dst, uint32(4+len(body)))
	return append(binary.BigEndian.AppendUint32(dst, crc32.ChecksumIEEE(body)), body...)
}

func addInt32(raw []byte, n int32) {
	binary.BigEndian.PutUint32(raw, uint32(int32(binary.BigEndian.Uint32(raw))+n))
}

// A codec stores what it cannot compress, so that a torn wrapper holds intact messages. It is a torn tail all the same,
// wherever the file is cut; but what follows a wrapper of which a piece is missing is found.
func TestTornWrapperOfStoredMessages(t *testing.T) {
	noise := make([]byte, 300)
	rand.New(rand.NewSource(1)).Read(noise)
	for magic := byte(0); magic < 2; magic++ {
		var inner []byte
		for i := range int64(3) {
			offset := i
			if magic == 0 {
				offset += 5
			}
			inner = legacyMessage(inner, offset, magic, 0, noise)
		}
		frame := []byte{0x04, 0x22, 0x4d, 0x18, 0x60, 0x40, 0x82}
		frame = binary.LittleEndian.AppendUint32(frame, 1<<31|uint32(len(inner)))
		frame = append(append(frame, inner...), 0, 0, 0, 0)
		log := legacyMessage(nil, 4, magic, 0, noise)
		whole := len(log)
		log = legacyMessage(log, 7, magic, 3, frame)
		for cut := whole + 50; cut < len(log); cut++ {
			s := format.NewScanner(log[:cut], 0, 0)
			s.Next()
			if !s.Next() || s.Hole() == nil || s.Hole().Kind != format.TornTail || s.Hole().Pos != int64(whole) || s.Next() {
				t.Fatalf("magic %d cut to %d bytes: %+v", magic, cut, s.Hole())
			}
		}
		// If the two lengths of the message do not agree it is no torn wrapper, and what is found stands for itself; with
		// magic 1 the offsets inside are too low for that.
		for _, off := range []int32{-1, 1} {
			odd := slices.Clone(log[:len(log)-1])
			addInt32(odd[whole+22+8*int(magic):], off)
			s := format.NewScanner(odd, 0, 0)
			s.Next()
			if !s.Next() || s.Hole() == nil || s.Hole().Next >= 0 != (magic == 0) {
				t.Errorf("magic %d, a value of %d more bytes: %+v", magic, off, s.Hole())
			}
		}
		after := legacyMessage(slices.Clone(log[:len(log)-300]), 8, magic, 0, nil)
		want := [][2]int64{{0, 4}, {-1 - int64(whole), int64(len(log) - 300)}, {int64(len(log) - 300), 8}}
		if got := scanned(after, format.TrustLengths); !slices.Equal(got, want) {
			t.Errorf("magic %d: %v, want %v", magic, got, want)
		}
	}
}

// A payload may hold an entry of another log. In the middle of damage it is passed over where its offset cannot be of
// this segment: below the base, or further above it than an index can say; of magic 0 and 1 below what comes next, too.
func TestEntriesOfOtherLogsInPayloads(t *testing.T) {
	const base = 1000
	batch := func(offset int64, value []byte) []byte {
		return fixture.AppendBatch(nil, fixture.Batch{Records: []fixture.Record{{Offset: offset, Value: value}}})
	}
	message := func(offset int64) []byte { return legacyMessage(nil, offset, 1, 0, []byte("value")) }
	for _, c := range []struct {
		name  string
		inner []byte
		taken bool
	}{
		{"below the base", batch(base-1, nil), false},
		{"at the base", batch(base, nil), true},
		{"the last offset that an index can say", batch(base+1<<31-1, nil), true},
		{"above it", batch(base+1<<31, nil), false},
		{"a message of an offset that was there", message(base + 1), false},
		{"a message of the next offset", message(base + 2), true},
	} {
		data := append(batch(base, nil), batch(base+1, nil)...)
		hole := len(data)
		data = append(data, batch(base+2, append(make([]byte, 20), c.inner...))...)
		data[hole+8] = 0x7f // a length beyond the end of the file
		inner := bytes.Index(data[hole:], c.inner) + hole
		after := len(data)
		data = append(data, batch(base+3, nil)...)
		s := format.NewScanner(data, 0, base)
		for s.Next() && s.Hole() == nil {
		}
		want := after
		if c.taken {
			want = inner
		}
		if h := s.Hole(); h == nil || h.Pos != int64(hole) || h.Next != int64(want) {
			t.Errorf("%s: %+v, want one from %d to %d", c.name, h, hole, want)
		}
	}
}
