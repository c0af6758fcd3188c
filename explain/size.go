package explain

import (
	"fmt"
	"math"

	"kseg/format"
)

// Close says why a producer closed a batch.
type Close uint8

// The reasons.
const (
	ClosedFull Close = iota // the next record had no room
	ClosedEnd               // there was no next record
)

// PredictedBatch is one batch, or several equal ones in a row.
type PredictedBatch struct {
	Times   int64 // how many of them
	Records int64 // in each
	Bytes   int64 // each, its header included
	Limit   int64 // bytes to which the batch was filled
	// Filled is the size that the producer compared with Limit: exact without compression, else by its estimate.
	Filled int64
	// Next is the size of the record that had no room.
	Next   int64
	Reason Close
}

// SizeOptions describe records that are all alike, and the producer that sends them.
type SizeOptions struct {
	Records              int64
	KeyBytes, ValueBytes int64      // −1: null
	Headers              [][2]int64 // bytes of key and value; a value of −1 is null
	TimestampStepMs      int64      // from record to record
	BatchSize            int64      // batch.size
	Codec                format.Codec
}

// content is what key, value and headers of each record take, in bytes.
func (o *SizeOptions) content() int64 {
	size := format.FieldSize(o.KeyBytes) + format.FieldSize(o.ValueBytes) + format.VarintSize(int64(len(o.Headers)))
	for _, h := range o.Headers {
		size += format.FieldSize(h[0]) + format.FieldSize(h[1])
	}
	return size
}

// sample is a record like all of them, with a text that repeats in its key, value and headers.
func (o *SizeOptions) sample() *format.Record {
	text := func(n int64) []byte {
		if n < 0 {
			return nil
		}
		b := make([]byte, n)
		for i := range b {
			b[i] = "hello-kafka"[i%11]
		}
		return b
	}
	r := &format.Record{Key: text(o.KeyBytes), Value: text(o.ValueBytes), HeaderCount: len(o.Headers)}
	for _, h := range o.Headers {
		r.Headers = format.AppendHeader(r.Headers, text(h[0]), text(h[1]))
	}
	return r
}

// Predict computes the batches that a producer makes of the records, if all go to one partition and none waits so long
// that it is sent before its batch is full. Without compression the sizes are exact; with it they are about what they
// would be for records that are all equal, by the codecs of this program. The batches come in order; equal full ones
// are one item.
func Predict(o SizeOptions) ([]PredictedBatch, error) {
	p := predictor{o: &o, f: format.NewFiller(o.BatchSize, o.Codec, &format.Compressor{}), content: o.content()}
	if o.Codec != format.CodecNone {
		p.record = o.sample()
	}
	for left := o.Records; left > 0; {
		before := p.f.Estimate
		b, err := p.batch(left)
		if err != nil {
			return nil, err
		}
		left -= b.Records
		if b.Reason == ClosedFull && (p.f.Estimate == before || len(p.batches) >= settled) {
			b.Times += (left - 1) / b.Records // all later full batches are like this one, or nearly
			left -= (b.Times - 1) * b.Records
		}
		p.batches = append(p.batches, b)
	}
	return p.batches, nil
}

// settled is after how many batches the estimate of the compression ratio has come to where it stays, give or take.
const settled = 300

// predictor holds what Predict reuses from batch to batch.
type predictor struct {
	o       *SizeOptions
	f       *format.Filler
	content int64
	record  *format.Record // nil without compression
	batches []PredictedBatch
}

// batch fills one batch from at most left records.
func (p *predictor) batch(left int64) (PredictedBatch, error) {
	f := p.f
	out := PredictedBatch{Times: 1, Reason: ClosedEnd}
	for f.Records < left {
		at := f.Records * p.o.TimestampStepMs
		size := f.Next(p.content, at)
		if !f.HasRoom(size) {
			out.Reason, out.Next = ClosedFull, size
			break
		}
		if err := f.Add(p.record, p.content, at); err != nil {
			return out, err
		}
	}
	out.Records, out.Filled, out.Limit = f.Records, f.Filled(), f.Limit
	var err error
	out.Bytes, err = f.Close()
	return out, err
}

// Total sums up batches: records and bytes.
func Total(batches []PredictedBatch) (records, bytes, count int64) {
	for _, b := range batches {
		records += b.Times * b.Records
		bytes += b.Times * b.Bytes
		count += b.Times
	}
	return records, bytes, count
}

// Check refuses what no producer can send: a record of 2 GiB or more, and with a codec one too large to try it on.
func (o *SizeOptions) Check() error {
	size := format.RecordSize(0, 0, o.content())
	if size > math.MaxInt32-format.BatchHeaderSize {
		return fmt.Errorf("a record of %s: no batch can hold it, since sizes are 32-bit "+
			"numbers; give a smaller --value-bytes or --key-bytes", bytesOf(size))
	}
	if float64(o.Records)*float64(format.BatchHeaderSize+format.MaxRecordOverhead+size) > math.MaxInt64 {
		return fmt.Errorf("%s of %s are more bytes than 64 bits can count", records(o.Records), bytesOf(size))
	}
	const most = 64 << 20
	if o.Codec != format.CodecNone && size > most {
		return fmt.Errorf("a record of %s is too large to try a codec on; the most is %s", bytesOf(size), bytesOf(most))
	}
	return nil
}
