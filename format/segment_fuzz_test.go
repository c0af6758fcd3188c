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
		size := int64(len(data))
		s := format.NewScanner(data, 0, -1)
		lastBatch, holes := int64(-1), int64(0)
		for s.Next() {
			if h := s.Hole(); h != nil {
				if h.Pos < 0 || h.Len <= 0 || h.Pos+h.Len > size || h.Next >= size {
					t.Fatalf("hole %+v in %d bytes", h, size)
				}
				if holes++; holes > size {
					t.Fatal("more holes than bytes")
				}
				continue
			}
			b := s.Batch()
			// A hole may reach back into a batch whose length was wrong, but never to where that batch began.
			if b.Pos <= lastBatch {
				t.Fatalf("no progress: a batch at %d, then one at %d", lastBatch, b.Pos)
			}
			lastBatch = b.Pos
			if b.Pos < 0 || b.End() > size || b.Size() <= 0 {
				t.Fatalf("batch from %d to %d in %d bytes", b.Pos, b.End(), size)
			}
			readRecords(t, records, b)
		}
	})
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
