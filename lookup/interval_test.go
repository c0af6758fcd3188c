package lookup

import (
	"encoding/binary"
	"math"
	"testing"

	"kseg/format"
	"kseg/internal/fixture"
)

// TestIntervalOfARange: of the intervals that all explain the entries the default is taken if it is one of them, else
// the largest power of two, as people set them, else the smallest.
func TestIntervalOfARange(t *testing.T) {
	p := &Partition{TopicInterval: -1}
	for _, c := range []struct{ least, most, want int64 }{
		{1000, 5000, 4096},
		{4096, 4096, 4096},
		{4096, 9000, 4096},
		{4097, 9000, 8192},
		{4097, 8192, 8192},
		{4097, 8191, 4097}, // 4096 is too small
		{200, 4095, 2048},
		{300, 500, 300},
		{256, 511, 256},
		{0, 0, 0},
		{0, 1, 1},
		{9000, math.MaxInt64, 9000},
	} {
		e := &evidence{}
		e.Add(&format.SegmentInterval{Least: c.least, Most: c.most, Entries: 1})
		if got := p.interval(-1, e); got.Bytes != c.want || got.Source != FromEntries {
			t.Errorf("%d to %d: %d (%s), want %d", c.least, c.most, got.Bytes, got.Source, c.want)
		}
	}
}

// TestRecordBeforeTrailingBytes: a broker notices what is left over in a batch only when it comes to the last record.
func TestRecordBeforeTrailingBytes(t *testing.T) {
	log := fixture.AppendBatch(nil, fixture.Batch{Records: []fixture.Record{
		{Offset: 0, TimestampMs: 1000, Value: []byte("one")}, {Offset: 1, TimestampMs: 2000, Value: []byte("two")}}})
	log = append(log, 0) // a byte after the last record, within the batch
	binary.BigEndian.PutUint32(log[8:], uint32(len(log)-format.LogOverhead))
	b, err := format.DecodeBatch(log, 0)
	if err != nil {
		t.Fatal(err)
	}
	binary.BigEndian.PutUint32(log[17:], b.ComputeCRC())
	for _, c := range []struct {
		target int64
		found  bool
	}{{1000, true}, {2000, false}} {
		s := NewSegment(0, log, nil, nil, false, 1<<20)
		scan := s.FindTimestamp(c.target, 0)
		if scan.Found != c.found || (scan.Err == nil) != c.found {
			t.Errorf("%d: found %v, %v", c.target, scan.Found, scan.Err)
		}
	}
}
