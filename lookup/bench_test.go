package lookup

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"kseg/format"
	"kseg/logdir"
)

// benchPartition is the partition with one segment in the folder KSEG_BENCH, or one of 256 MiB in batches of 16 KB that
// is made here: a file with holes where the records would be.
func benchPartition(b *testing.B) *Partition {
	dir := os.Getenv("KSEG_BENCH")
	if dir == "" {
		dir = b.TempDir()
		writeSparse(b, filepath.Join(dir, "00000000000000000000.log"), 256<<20)
	}
	set, err := logdir.Open([]string{filepath.Clean(dir)}, logdir.Options{})
	if err != nil || len(set.Partitions()) != 1 {
		b.Fatalf("%s: %v", dir, err)
	}
	partitions, _ := Partitions(set, 1<<28)
	return partitions[0]
}

func writeSparse(b *testing.B, name string, size int64) {
	f, err := os.Create(name)
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	const batch, records = 16350, 75
	for pos, base := int64(0), int64(0); pos < size; pos, base = pos+batch, base+records {
		h := appendBatch(nil, base, records-1, records, 1700000000000+base, batch-format.BatchHeaderSize)
		if _, err := f.WriteAt(h[:format.BatchHeaderSize], pos); err != nil {
			b.Fatal(err)
		}
		if err := f.Truncate(pos + batch); err != nil {
			b.Fatal(err)
		}
	}
}

// bareWalk is the least that anything has to do that looks at every batch: hop from header to header.
func bareWalk(log []byte) (batches int64, lastOffset int64) {
	for pos := int64(0); ; batches++ {
		size, err := format.EntrySize(log, pos)
		if err != nil {
			return batches, lastOffset
		}
		b := log[pos : pos+size]
		lastOffset = int64(b[0])<<56 | int64(b[7])
		pos += size
	}
}

// BenchmarkTranslate is LogSegment.translateOffset for random offsets of a warm segment. The real one takes some 9 µs,
// as Kafka's own class says of itself when it is timed on the same machine.
func BenchmarkTranslate(b *testing.B) {
	p := benchPartition(b)
	err := p.view(b.Context(), p.Segments[0], func(s *Segment) error {
		s.Index = s.Rebuilt(DefaultInterval).OffsetIndex()
		end := s.Survey().NextOffset
		r := rand.New(rand.NewPCG(3, 4))
		b.ReportAllocs()
		for b.Loop() {
			if scan := s.Translate(r.Int64N(end)); !scan.Found {
				b.Fatal("not found")
			}
		}
		return nil
	})
	if err != nil {
		b.Fatal(err)
	}
}

// BenchmarkSweep is a sweep over all offsets of a segment, from mapping the file to the curve, as a multiple of one
// bare walk over the same headers.
func BenchmarkSweep(b *testing.B) {
	p := benchPartition(b)
	bare := func() error {
		return p.view(b.Context(), p.Segments[0], func(s *Segment) error { bareWalk(s.Log); return nil })
	}
	sweep := func() error { _, err := p.Sweep(b.Context(), Options{Interval: DefaultInterval}, nil); return err }
	start := time.Now()
	const walks = 10
	for range walks {
		if err := bare(); err != nil {
			b.Fatal(err)
		}
	}
	once := time.Since(start) / walks
	for b.Loop() {
		if err := sweep(); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed())/float64(b.N)/float64(once), "x-bare-walk")
}

// TestTranslateDoesNotAllocate: a search is made of arithmetic on the mapped files.
func TestTranslateDoesNotAllocate(t *testing.T) {
	var log []byte
	var batches []format.BatchRef
	for base := int64(0); base < 100; base += 5 {
		pos := int64(len(log))
		log = appendBatch(log, base, 4, 5, 1, 100)
		batches = append(batches, format.BatchRef{Pos: pos, Size: int64(len(log)) - pos, BaseOffset: base,
			LastOffset: base + 4})
	}
	s := NewSegment(0, log, buildIndex(0, 500, batches), nil, false, 1<<20)
	if n := testing.AllocsPerRun(100, func() { s.Translate(77) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
