package format_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand"
	"path"
	"testing"

	"kseg/format"
	"kseg/internal/fixture"
)

// maxPlain bounds decompression in these tests.
const maxPlain = 16 << 20

// describe collects the leaves of a file and holds that they cover it: the file's leaves from its first byte to its
// last, those of each batch's decompressed records from theirs.
func describe(t testing.TB, kind format.Kind, data []byte, rr *format.RecordReader) []format.Leaf {
	t.Helper()
	var leaves []format.Leaf
	filePos, plainPos := int64(0), int64(0)
	var batch *format.Batch
	for l := range format.Describe(kind, data, -1, rr) {
		if l.Batch != batch {
			batch, plainPos = l.Batch, 0
		}
		pos := &filePos
		if l.Plain {
			pos = &plainPos
			l.Bytes = bytes.Clone(l.Bytes)
		} else if !bytes.Equal(l.Bytes, data[l.Start:l.End]) {
			t.Fatalf("%s has other bytes than the file", l.Path)
		}
		if l.Start != *pos || l.End <= l.Start || int64(len(l.Bytes)) != l.End-l.Start || l.Path == "" {
			t.Fatalf("%s from %d to %d with %d bytes, after %d", l.Path, l.Start, l.End, len(l.Bytes), *pos)
		}
		*pos = l.End
		if leaves = append(leaves, l); len(leaves) > 40*len(data)+1<<20 {
			t.Fatal("more leaves than there can be")
		}
	}
	if filePos != int64(len(data)) {
		t.Fatalf("the leaves end at %d of %d", filePos, len(data))
	}
	return leaves
}

// TestDescribeCoversRealFiles: every byte of every real file is in one leaf, and no healthy file has a fault.
func TestDescribeCoversRealFiles(t *testing.T) {
	rr := format.NewRecordReader(maxPlain, nil)
	seen := map[format.Kind]int{}
	for i, name := range fixture.Files(t, "") {
		n, data := format.ParseFileName(path.Base(name)), fixture.Data(t, name)
		seen[n.Kind]++
		if len(data) > 20_000 && !fixture.Sampled(i, 4) {
			continue
		}
		for _, l := range describe(t, n.Kind, data, rr) {
			if l.Fault != nil {
				t.Errorf("%s: %s: %v", name, l.Path, l.Fault)
			}
		}
	}
	for _, k := range format.Kinds[1:] {
		if seen[k.Kind] == 0 && k.Kind != format.KindLock {
			t.Errorf("no %s was described", k.ID)
		}
	}
}

// sameLeaf compares what a flipped bit elsewhere must not change.
func sameLeaf(a, b format.Leaf) bool {
	return a.Start == b.Start && a.End == b.End && a.Plain == b.Plain && a.Number == b.Number && bytes.Equal(a.Bytes,
		b.Bytes) && a.Path == b.Path
}

// layoutFields are numbers of fixed width that decide how other bytes are read.
var layoutFields = map[string]bool{"batchLength": true, "magic": true, "attributes": true, "recordsCount": true,
	"size":      true,
	"keyLength": true, "valueLength": true, "length": true, "count": true, "method": true, "flags": true,
	"frameDescriptor": true,
	"header":          true, "blockDescriptor": true, "endMark": true, "extraLength": true}

// fieldName is the last element of a path.
func fieldName(l format.Leaf) string { return path.Ext("." + l.Path)[1:] }

// TestDescribeWithAnyBitFlipped: the cover stays exact; leaves that end before the bit stay as they were; if the bit is
// in a number of fixed width that no layout depends on, all other leaves do.
func TestDescribeWithAnyBitFlipped(t *testing.T) {
	rr := format.NewRecordReader(maxPlain, nil)
	bits, done := 0, map[string]int{}
	for _, name := range fixture.Files(t, "") {
		data := fixture.Data(t, name)
		kind := format.ParseFileName(path.Base(name)).Kind
		group := fmt.Sprint(kind, path.Dir(path.Dir(name)))
		if len(data) == 0 || len(data) > 800 || done[group] >= 1 {
			continue
		}
		done[group]++
		before := describe(t, kind, data, rr)
		for i := range data {
			for bit := range 8 {
				bits++
				if !fixture.Sampled(bits, 16) {
					continue
				}
				data[i] ^= 1 << bit
				checkFlipped(t, fmt.Sprintf("%s, byte %d bit %d", name, i, bit), before, describe(t, kind, data, rr), int64(i))
				data[i] ^= 1 << bit
			}
		}
		if t.Failed() {
			return
		}
	}
	if bits < 100_000 {
		t.Errorf("only %d bits were flipped", bits)
	}
}

func checkFlipped(t *testing.T, what string, before, after []format.Leaf, at int64) {
	t.Helper()
	all := false
	for i, l := range before {
		if !l.Plain && l.End <= at && (i >= len(after) || !sameLeaf(l, after[i])) {
			if j := indexLeaf(after, l); j < 0 {
				t.Errorf("%s: %s (%d–%d, %d) is gone", what, l.Path, l.Start, l.End, l.Number)
				return
			}
		}
		if !l.Plain && l.Start <= at && at < l.End {
			all = l.Type >= format.TypeInt8 && l.Type < format.TypeVarint && !layoutFields[fieldName(l)]
		}
	}
	if !all {
		return
	}
	if len(before) != len(after) {
		t.Errorf("%s: %d leaves, then %d", what, len(before), len(after))
		return
	}
	for i, l := range before {
		if (l.Plain || at < l.Start || at >= l.End) && !sameLeaf(l, after[i]) {
			t.Errorf("%s: %s (%d–%d, %d) became %s (%d–%d, %d)", what, l.Path, l.Start, l.End, l.Number,
				after[i].Path, after[i].Start, after[i].End, after[i].Number)
			return
		}
	}
}

func indexLeaf(leaves []format.Leaf, l format.Leaf) int {
	for i, o := range leaves {
		if sameLeaf(o, l) {
			return i
		}
	}
	return -1
}

// TestDescribeAgreesWithDecode: in every batch of every real segment, the leaves hold the header and the records that
// the decoder gives.
func TestDescribeAgreesWithDecode(t *testing.T) {
	rr, other := format.NewRecordReader(maxPlain, nil), format.NewRecordReader(maxPlain, nil)
	batches := 0
	for _, suffix := range []string{".log", ".checkpoint"} {
		for _, name := range fixture.Files(t, suffix) {
			parts := format.NewParts(fixture.Data(t, name), -1)
			for parts.Next() {
				if batches++; parts.Part().Batch != nil && fixture.Sampled(batches, 6) {
					checkBatch(t, name, parts.Part(), rr, other)
				}
			}
		}
	}
}

// checkBatch compares the leaves of a batch with its fields and records.
func checkBatch(t *testing.T, name string, p *format.Part, rr, other *format.RecordReader) {
	t.Helper()
	b := p.Batch
	numbers, content := map[string]int64{}, map[string][]byte{}
	_, err := p.Describe(0, rr, func(l format.Leaf) bool {
		numbers[l.Path] = l.Number
		content[l.Path] = bytes.Clone(l.Bytes)
		return true
	})
	want := map[string]int64{"crc": int64(b.CRC), "magic": int64(b.Magic), "attributes": int64(b.Attributes)}
	if b.Legacy() {
		want["offset"] = b.BaseOffset
		want["size"] = b.Size() - format.LogOverhead
	} else {
		want["baseOffset"], want["batchLength"], want["partitionLeaderEpoch"] = b.BaseOffset, b.Size()-format.LogOverhead,
			int64(b.LeaderEpoch)
		want["lastOffsetDelta"], want["baseTimestamp"], want["maxTimestamp"] = int64(b.LastOffsetDelta), b.BaseTimestamp,
			b.MaxTimestamp
		want["producerId"], want["producerEpoch"], want["baseSequence"] = b.ProducerID, int64(b.ProducerEpoch),
			int64(b.BaseSequence)
		want["recordsCount"] = int64(b.Count)
	}
	for field, v := range want {
		if got, ok := numbers["batch[0]."+field]; !ok || got != v {
			t.Errorf("%s @%d: %s is described as %d, decoded as %d", name, b.Pos, field, got, v)
		}
	}
	other.Reset(b)
	var rec format.Record
	n := 0
	for ; other.Next(&rec); n++ {
		prefix := fmt.Sprintf("batch[0].records[%d].", n)
		if b.Legacy() && b.Codec() == format.CodecNone {
			prefix = "batch[0]."
		}
		if !bytes.Equal(content[prefix+"key"], rec.Key) || !bytes.Equal(content[prefix+"value"], rec.Value) {
			t.Errorf("%s @%d: record %d has another key or value", name, b.Pos, n)
		}
		if !b.Legacy() && (b.BaseOffset+numbers[prefix+"offsetDelta"] != rec.Offset ||
			numbers[prefix+"headersCount"] != int64(rec.HeaderCount)) {
			t.Errorf("%s @%d: record %d has another offset or number of headers", name, b.Pos, n)
		}
	}
	if _, more := numbers[fmt.Sprintf("batch[0].records[%d].length", n)]; more && err == nil {
		t.Errorf("%s @%d: more records are described than decoded", name, b.Pos)
	}
	checkSameFault(t, fmt.Sprintf("%s @%d", name, b.Pos), err, other.Err())
}

// checkSameFault holds that describing and decoding stop for the same reason, or both do not.
func checkSameFault(t *testing.T, what string, described, decoded error) {
	t.Helper()
	if (described == nil) != (decoded == nil) {
		t.Errorf("%s: described: %v; decoded: %v", what, described, decoded)
		return
	}
	var a, b *format.Error
	if errors.As(described, &a) && errors.As(decoded, &b) && (a.Err != b.Err && !(errors.Is(a, format.ErrTruncated) &&
		errors.Is(b, format.ErrValue))) {
		t.Errorf("%s: described: %v; decoded: %v", what, described, decoded)
	}
}

// eachDamagedFile gives every file that a recipe changes.
func eachDamagedFile(t testing.TB, fn func(what string, kind format.Kind, data []byte)) {
	for _, r := range fixture.Recipes(t) {
		healthy := map[string][]byte{}
		for _, name := range fixture.Files(t, "") {
			if path.Dir(name) == r.Base {
				healthy[path.Base(name)] = fixture.Data(t, name)
			}
		}
		damaged, err := fixture.Apply(healthy, r.Steps)
		if err != nil {
			t.Fatal(err)
		}
		for name, data := range damaged {
			if !bytes.Equal(data, healthy[name]) {
				fn(r.Name+"/"+name, format.ParseFileName(name).Kind, data)
			}
		}
	}
}

// TestDescribeCoversDamagedFiles: the cover is exact whatever is broken, and where a batch can be read at all,
// describing and decoding agree on what of it can.
func TestDescribeCoversDamagedFiles(t *testing.T) {
	rr, other := format.NewRecordReader(maxPlain, nil), format.NewRecordReader(maxPlain, nil)
	faults := 0
	eachDamagedFile(t, func(what string, kind format.Kind, data []byte) {
		for _, l := range describe(t, kind, data, rr) {
			if l.Fault != nil {
				faults++
				if l.Fault.Err == nil || l.Fault.What == "" {
					t.Errorf("%s: %s has a fault that says nothing: %+v", what, l.Path, l.Fault)
				}
			}
		}
		if kind != format.KindLog {
			return
		}
		for parts := format.NewParts(data, -1); parts.Next(); {
			if p := parts.Part(); p.Batch != nil && p.LengthFault == nil && p.MagicFault == nil &&
				p.Batch.Size() >= format.BatchHeaderSize {
				checkBatch(t, what, p, rr, other)
			}
		}
	})
	if faults < 40 {
		t.Errorf("only %d faults in all the damage", faults)
	}
}

// TestDescribeRepairs: where the checksum tells what a wrong length or magic should be, the batch is read as it was
// written.
func TestDescribeRepairs(t *testing.T) {
	first := fixture.AppendBatch(nil, fixture.Batch{Records: []fixture.Record{{Offset: 0, Value: []byte("one")}}})
	second := fixture.AppendBatch(nil, fixture.Batch{Records: []fixture.Record{{Offset: 1, Value: []byte("two")},
		{Offset: 2, Value: []byte("three")}}})
	tails := map[string][]byte{"nothing": nil, "zeros": make([]byte, 100), "a torn batch": first[:40], "a batch": first}
	for tail, more := range tails {
		data := append(append(bytes.Clone(first), second...), more...)
		for _, at := range []int{8, 9, 10, 11, 16} {
			for bit := range 8 {
				broken := bytes.Clone(data)
				broken[len(first)+at] ^= 1 << bit
				parts := format.NewParts(broken, 0)
				parts.Next()
				parts.Next()
				p := parts.Part()
				if p.Batch == nil || p.Batch.Size() != int64(len(second)) || p.Batch.Magic != 2 || p.Batch.Count != 2 ||
					(p.LengthFault == nil) == (p.MagicFault == nil) {
					t.Errorf("byte %d bit %d of a batch before %s: %+v", at, bit, tail, p)
				}
			}
		}
	}
}

// TestDescribeDoesNotGoBack: a hole that a chance explains as a batch reaching into the intact one after it stays a
// hole.
func TestDescribeDoesNotGoBack(t *testing.T) {
	intact := fixture.AppendBatch(nil, fixture.Batch{Records: []fixture.Record{{Offset: 40, Value: []byte("intact")}}})
	// This batch would be one of 10 bytes more than there are, with one wrong bit.
	first := fixture.AppendBatch(nil, fixture.Batch{Records: []fixture.Record{{Offset: 1, Value: []byte("0123456789")}}})
	overlap := append(bytes.Clone(first[:len(first)-10]), intact...)
	b, err := format.DecodeBatch(overlap, 0)
	if err != nil {
		t.Fatal(err)
	}
	binary.BigEndian.PutUint32(overlap[17:], b.ComputeCRC()^1)
	overlap[0] = 0x80 // the scanner does not take it for a batch
	rr := format.NewRecordReader(maxPlain, nil)
	leaves := describe(t, format.KindLog, overlap, rr)
	if leaves[0].Role != format.RoleDamage || leaves[0].End != int64(len(first)-10) {
		t.Errorf("it begins with %+v", leaves[0])
	}
}

// FuzzDescribe: any bytes under any kind are covered, and faults lie in the file or at its end.
func FuzzDescribe(f *testing.F) {
	fixture.EachKind(f, func(kind format.Kind, _ string, raw []byte) { f.Add(uint8(kind), raw) })
	for _, name := range fixture.Files(f, ".log") {
		if data := fixture.Data(f, name); len(data) > 0 && len(data) <= 2<<10 {
			f.Add(uint8(format.KindLog), data)
		}
	}
	eachDamagedFile(f, func(_ string, kind format.Kind, data []byte) {
		if len(data) <= 4<<10 {
			f.Add(uint8(kind), data)
		}
	})
	rr := format.NewRecordReader(1<<20, nil)
	f.Fuzz(func(t *testing.T, kind uint8, data []byte) {
		if len(data) > 1<<16 {
			return
		}
		for _, l := range describe(t, format.Kind(kind), data, rr) {
			if l.Fault != nil && !l.Plain && (l.Fault.Pos < 0 || l.Fault.Pos > int64(len(data))) {
				t.Errorf("%s: fault at %d of %d", l.Path, l.Fault.Pos, len(data))
			}
		}
	})
}

// TestPartsDoNotOverlap: where the scanner goes back, since lengths led nowhere, what was handed out stays as it is.
func TestPartsDoNotOverlap(t *testing.T) {
	var log []byte
	const batches = 5
	for i := range int64(batches) {
		log = fixture.AppendBatch(log, fixture.Batch{Records: []fixture.Record{{Offset: i, Value: make([]byte, 30)}}})
	}
	size := len(log) / batches
	for _, c := range []struct {
		length int // of the first batch, which is wrong
		odd    int // the batch of which neither attributes nor count make sense; 0: none
		cut    int // bytes that are missing at the end
	}{{2*size - format.LogOverhead, 2, 0}, {141, 0, 9}} {
		data := bytes.Clone(log[:len(log)-c.cut])
		binary.BigEndian.PutUint32(data[8:], uint32(c.length))
		if c.odd > 0 {
			data[c.odd*size+21], data[c.odd*size+57] = 0x7f, 0xff
		}
		end := int64(0)
		for parts := format.NewParts(data, 0); parts.Next(); end = parts.Part().End {
			if p := parts.Part(); p.Start != end || p.End <= p.Start {
				t.Errorf("%+v: a part from %d to %d after one that ends at %d", c, p.Start, p.End, end)
			}
		}
		if end != int64(len(data)) {
			t.Errorf("%+v: the last part ends at %d of %d", c, end, len(data))
		}
	}
}

// TestPartsFollowOneAnother holds the same for headers damaged at random, a few of a log at once.
func TestPartsFollowOneAnother(t *testing.T) {
	const batches = 5
	var logs [2][]byte
	for i := range int64(batches) {
		logs[0] = fixture.AppendBatch(logs[0], fixture.Batch{Records: []fixture.Record{{Offset: i, Value: make([]byte, 30)}}})
		logs[1] = legacyMessage(logs[1], i, 1, 0, make([]byte, 30))
	}
	for seed := range 200_000 {
		if !fixture.Sampled(seed, 20) {
			continue
		}
		r := rand.New(rand.NewSource(int64(seed)))
		log := logs[seed%2]
		size := len(log) / batches
		log = bytes.Clone(log[:len(log)-r.Intn(30)])
		for range 1 + r.Intn(4) {
			header := log[r.Intn(batches-1)*size:][:size]
			switch r.Intn(4) {
			case 0:
				header[r.Intn(size)] ^= 1 << r.Intn(8)
			case 1:
				binary.BigEndian.PutUint32(header[8:], uint32(r.Intn(4*size)))
			case 2:
				header[21], header[size-1] = 0x7f, 0xff
			case 3:
				header[7] = byte(r.Intn(2 * batches))
			}
		}
		end := int64(0)
		for parts := format.NewParts(log, 0); parts.Next(); end = parts.Part().End {
			if p := parts.Part(); p.Start != end || p.End <= p.Start {
				t.Fatalf("seed %d: a part from %d to %d after one that ends at %d", seed, p.Start, p.End, end)
			}
		}
		if end != int64(len(log)) {
			t.Fatalf("seed %d: the last part ends at %d of %d", seed, end, len(log))
		}
	}
}
