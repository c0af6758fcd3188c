package format

// MaxRecordOverhead is what a producer reserves for a record's own fields when it allocates a batch
// (DefaultRecord.MAX_RECORD_OVERHEAD), in bytes.
const MaxRecordOverhead = 21

// compressionMargin is by how much a producer distrusts its estimate of the compression ratio
// (MemoryRecordsBuilder.COMPRESSION_RATE_ESTIMATION_FACTOR).
const compressionMargin = 1.05

// The steps in which a producer corrects its estimate (CompressionRatioEstimator).
const (
	ratioImproves     = 0.005
	ratioDeteriorates = 0.05
)

// Filler decides when a producer closes a batch: RecordAccumulator and MemoryRecordsBuilder.hasRoomFor. A batch closes
// before a record that would not fit into max(1, batch.size, what its first record may take at most).
type Filler struct {
	batchSize int64
	ratio     float32 // estimated, of the present batch
	// Codec is the one that the producer compresses with, Estimate the ratio that it expects of the next batch.
	Codec    Codec
	Estimate float32
	// Limit is the size in bytes up to which the present batch is filled, Plain that of its records, uncompressed.
	Limit, Plain int64
	Records      int64
	BaseMs       int64 // the timestamp of its first record
}

// NewFiller is a filler for one producer and partition.
func NewFiller(batchSize int64, codec Codec) *Filler {
	return &Filler{batchSize: batchSize, Codec: codec, Estimate: 1}
}

// Begin starts a batch with a first record of that content and timestamp.
func (f *Filler) Begin(content, timestampMs int64) {
	f.Limit = max(1, f.batchSize, BatchHeaderSize+MaxRecordOverhead+content)
	f.Reset()
	f.BaseMs, f.ratio = timestampMs, f.Estimate
}

// Filled is the size of the batch as the producer takes it to be.
func (f *Filler) Filled() int64 {
	if f.Codec == CodecNone {
		return BatchHeaderSize + f.Plain
	}
	return BatchHeaderSize + int64(float32(f.Plain)*f.ratio*compressionMargin)
}

// Next is the size of a record if it were the batch's next.
func (f *Filler) Next(content, timestampMs int64) int64 {
	return RecordSize(timestampMs-f.BaseMs, int32(f.Records), content)
}

// mostPlain bounds the records of a compressed batch, in bytes, where a producer would take more: highly compressible
// ones with a large batch.size.
const mostPlain = 64 << 20

// HasRoom reports whether a record of that size still goes into the batch; the first always does.
func (f *Filler) HasRoom(size int64) bool {
	filled := f.Filled()
	if f.Codec != CodecNone && f.Plain > mostPlain {
		return false
	}
	return f.Records == 0 || f.Limit > filled && f.Limit >= filled+size
}

// Add adds a record of that size to the batch.
func (f *Filler) Add(size int64) {
	f.Plain += size
	f.Records++
}

// Observe corrects the estimate by the size that the records of a closed batch compressed to.
func (f *Filler) Observe(compressed int64) {
	observed := float32(compressed) / float32(f.Plain)
	switch {
	case observed > f.Estimate:
		f.Estimate = max(f.Estimate+ratioDeteriorates, observed)
	case observed < f.Estimate:
		f.Estimate = max(f.Estimate-ratioImproves, observed)
	}
}

// Reset empties the batch, which has been sent.
func (f *Filler) Reset() { f.Plain, f.Records = 0, 0 }
