package format_test

import (
	"errors"
	"testing"

	"kseg/format"
	"kseg/internal/fixture"
)

// FuzzSegment scans arbitrary bytes and reads every record: positions stay inside the file and move forward, memory is
// bounded by what the reader was allowed, and nothing panics.
func FuzzSegment(f *testing.F) {
	for _, name := range fixture.Files(f, ".log") {
		if data := fixture.Data(f, name); len(data) > 0 && len(data) <= 4<<10 {
			f.Add(data)
		}
	}
	for _, name := range fixture.Files(f, ".checkpoint") {
		f.Add(fixture.Data(f, name))
	}
	records := format.NewRecordReader(1<<20, nil)
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, trust := range []format.Trust{format.TrustSane, format.TrustLengths, format.TrustBlindly} {
			s := format.NewScanner(data, 0, -1)
			s.Trust(trust)
			checkScan(t, s, int64(len(data)), records)
		}
	})
}

// checkScan goes through size bytes.
func checkScan(t *testing.T, s *format.Scanner, size int64, records *format.RecordReader) {
	t.Helper()
	lastBatch, lastNext := int64(-1), int64(-1)
	for s.Next() {
		if h := s.Hole(); h != nil {
			if h.Pos < 0 || h.Len <= 0 || h.Pos+h.Len > size || h.Next >= size || h.Next >= 0 && h.Next != h.Pos+h.Len {
				t.Fatalf("hole %+v in %d bytes", h, size)
			}
			// A hole may reach back into batches whose lengths were wrong, but never to where an earlier one has led.
			if h.Next >= 0 && h.Next <= lastNext {
				t.Fatalf("no progress: a hole that leads to %d, then one to %d", lastNext, h.Next)
			}
			lastBatch, lastNext = -1, max(h.Next, lastNext)
			continue
		}
		b := s.Batch()
		if b.Pos <= lastBatch {
			t.Fatalf("no progress: a batch at %d, then one at %d", lastBatch, b.Pos)
		}
		lastBatch = b.Pos
		if b.Pos < 0 || b.End() > size || b.Size() <= 0 {
			t.Fatalf("batch from %d to %d in %d bytes", b.Pos, b.End(), size)
		}
		readRecords(t, records, b)
	}
}

// readRecords reads what records b has; an error must be one of ours, with a position that is not before the buffer.
func readRecords(t *testing.T, r *format.RecordReader, b *format.Batch) {
	t.Helper()
	var rec format.Record
	r.Reset(b)
	for n := 0; r.Next(&rec); n++ {
		if rec.Pos < 0 || rec.Size <= 0 {
			t.Fatalf("record of %d bytes at %d", rec.Size, rec.Pos)
		}
		if int64(n) > int64(len(b.Raw))+1<<20 {
			t.Fatal("more records than bytes")
		}
		for h, i := rec.Headers, 0; i < rec.HeaderCount; i++ {
			_, _, h = format.NextHeader(h)
		}
	}
	var fe *format.Error
	if err := r.Err(); err != nil && (!errors.As(err, &fe) || fe.Pos < 0) {
		t.Fatalf("batch at %d: %v is not an error with a position", b.Pos, err)
	}
}
