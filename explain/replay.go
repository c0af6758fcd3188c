package explain

import (
	"context"
	"errors"

	"kseg/format"
	"kseg/logdir"
)

// sampleBytes and sampleRecords bound what Replay reads of a large file; a sample is taken in so many stretches.
const (
	sampleBytes    = 8 << 20
	sampleRecords  = 60_000
	sampleStretchs = 16
)

// Replayed is what the records of a file would take under one batch.size and codec.
type Replayed struct {
	BatchSize int64
	Codec     format.Codec
	Batches   []PredictedBatch // in order, of the records that were read
	Bytes     int64            // for all records; scaled up if Sampled
	Count     int64            // of batches, likewise
}

// Replay is the outcome for a file.
type Replay struct {
	Records       int64 // in the file, by its batch headers; −1 if old formats do not say
	StoredBytes   int64 // of the batches that hold them, as they are
	StoredBatches int64
	StoredCodecs  map[format.Codec]bool
	Sampled       bool
	ReadRecords   int64
	Unreadable    int64 // batches that were left out
	Cells         []*Replayed
}

// ReplayFile takes the records of a segment, without control records, and sends them again as a producer with each
// batch.size and codec would. Large files are sampled.
func ReplayFile(ctx context.Context, f *logdir.File, batchSizes []int64, codecs []format.Codec,
	maxBatchBytes int64) (*Replay, error) {
	out := &Replay{StoredCodecs: map[format.Codec]bool{}}
	err := f.View(func(data []byte) error {
		r := replayer{ctx: ctx, out: out, rr: format.NewRecordReader(maxBatchBytes, nil)}
		for _, size := range batchSizes {
			for _, codec := range codecs {
				cell := &Replayed{BatchSize: size, Codec: codec}
				out.Cells = append(out.Cells, cell)
				r.senders = append(r.senders, &sender{cell, format.NewFiller(size, codec, &format.Compressor{})})
			}
		}
		return r.run(data)
	})
	return out, err
}

// replayer reads the records and gives each to all senders.
type replayer struct {
	ctx     context.Context
	out     *Replay
	rr      *format.RecordReader
	senders []*sender
	read    int64 // stored bytes of the batches that were read
	bytes   int64 // plain bytes of their records
}

// run reads the file, or stretches of it if it is large.
func (r *replayer) run(data []byte) error {
	batches := r.survey(data)
	for _, stretch := range stretches(len(batches), r.out.StoredBytes) {
		records, plain := r.out.ReadRecords, r.bytes
		for _, pos := range batches[stretch[0]:stretch[1]] {
			if err := r.batch(data, pos); err != nil {
				return err
			}
			if stretch[2] > 0 && (r.out.ReadRecords-records >= sampleRecords/sampleStretchs ||
				r.bytes-plain >= sampleBytes/sampleStretchs) {
				r.out.Sampled = true
				break
			}
		}
	}
	for _, s := range r.senders {
		if err := s.close(ClosedEnd, 0); err != nil {
			return err
		}
		r.scale(s.cell)
	}
	return nil
}

// survey lists the positions of the batches that hold data.
func (r *replayer) survey(data []byte) []int64 {
	var at []int64
	for parts := format.NewParts(data, -1); parts.Next(); {
		b := parts.Part().Batch
		if b == nil || b.Control() || b.Count == 0 {
			continue
		}
		at = append(at, b.Pos)
		r.out.StoredBytes += b.Size()
		r.out.StoredBatches++
		r.out.StoredCodecs[b.Codec()] = true
		if b.Count < 0 {
			r.out.Records = -1
		} else if r.out.Records >= 0 {
			r.out.Records += int64(b.Count)
		}
	}
	return at
}

// stretches are the ranges of n batches to read: all in one, or a number of equal ones of which the beginnings are read
// (the third number is 1 then).
func stretches(n int, bytes int64) [][3]int {
	if bytes <= sampleBytes && n <= sampleRecords || n < sampleStretchs {
		return [][3]int{{0, n, btoi(bytes > sampleBytes)}}
	}
	var all [][3]int
	for i := range sampleStretchs {
		all = append(all, [3]int{i * n / sampleStretchs, (i + 1) * n / sampleStretchs, 1})
	}
	return all
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// batch sends the records of one batch.
func (r *replayer) batch(data []byte, pos int64) error {
	if err := r.ctx.Err(); err != nil {
		return err
	}
	b, err := format.DecodeBatch(data, pos)
	if err != nil {
		r.out.Unreadable++
		return nil
	}
	r.rr.Reset(&b)
	var rec format.Record
	for r.rr.Next(&rec) {
		r.out.ReadRecords++
		r.bytes += rec.Size
		for _, s := range r.senders {
			if err := s.send(&rec); err != nil {
				return err
			}
		}
	}
	r.read += b.Size()
	if err := r.rr.Err(); err != nil {
		if errors.Is(err, format.ErrTooLarge) {
			return err
		}
		r.out.Unreadable++
	}
	return nil
}

// scale turns what was read into numbers for the whole file.
func (r *replayer) scale(c *Replayed) {
	_, c.Bytes, c.Count = Total(c.Batches)
	if r.out.Sampled && r.read > 0 {
		factor := float64(r.out.StoredBytes) / float64(r.read)
		c.Bytes = int64(float64(c.Bytes) * factor)
		c.Count = int64(float64(c.Count) * factor)
	}
}

// sender is a producer with one batch.size and codec.
type sender struct {
	cell *Replayed
	f    *format.Filler
}

func (s *sender) send(rec *format.Record) error {
	content := rec.ContentSize()
	if s.f.Records > 0 {
		if size := s.f.Next(content, rec.Timestamp); !s.f.HasRoom(size) {
			if err := s.close(ClosedFull, size); err != nil {
				return err
			}
		}
	}
	return s.f.Add(rec, content, rec.Timestamp)
}

// close ends the present batch, if there is one.
func (s *sender) close(why Close, next int64) error {
	f := s.f
	if f.Records == 0 {
		return nil
	}
	b := PredictedBatch{Times: 1, Records: f.Records, Limit: f.Limit, Filled: f.Filled(), Next: next, Reason: why}
	var err error
	if b.Bytes, err = f.Close(); err != nil {
		return err
	}
	if n := len(s.cell.Batches); n > 0 && same(s.cell.Batches[n-1], b) {
		s.cell.Batches[n-1].Times++
	} else {
		s.cell.Batches = append(s.cell.Batches, b)
	}
	return nil
}

// same reports whether b is one more of a.
func same(a, b PredictedBatch) bool {
	a.Times = b.Times
	return a == b
}
