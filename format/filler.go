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
	compress  *Compressor
	packed    packedSize
	// Codec is the one that the producer compresses with, Estimate the ratio that it expects of the next batch.
	Codec    Codec
	Estimate float32
	// Limit is the size in bytes up to which the present batch is filled, Plain that of its records, uncompressed.
	Limit, Plain int64
	Records      int64
	BaseMs       int64 // the timestamp of its first record
}

// NewFiller is a filler for one producer and partition; compress is its own as long as it has a batch.
func NewFiller(batchSize int64, codec Codec, compress *Compressor) *Filler {
	return &Filler{batchSize: batchSize, Codec: codec, Estimate: 1, compress: compress}
}

// begin starts a batch with a first record of that content and timestamp.
func (f *Filler) begin(content, timestampMs int64) error {
	f.Limit = max(1, f.batchSize, BatchHeaderSize+MaxRecordOverhead+content)
	f.BaseMs, f.ratio, f.packed = timestampMs, f.Estimate, 0
	if f.Codec == CodecNone {
		return nil
	}
	return f.compress.Reset(f.Codec, &f.packed)
}

// packedSize counts the bytes that are written.
type packedSize int64

// Write counts.
func (n *packedSize) Write(p []byte) (int, error) {
	*n += packedSize(len(p))
	return len(p), nil
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
	if f.Records == 0 {
		timestampMs = f.BaseMs
	}
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

// Add adds a record with a timestamp to the batch. Without a codec its content's size is enough, and rec may be nil.
func (f *Filler) Add(rec *Record, content, timestampMs int64) error {
	if f.Records == 0 {
		if err := f.begin(content, timestampMs); err != nil {
			return err
		}
	}
	if f.Codec != CodecNone {
		for part := range rec.parts(timestampMs-f.BaseMs, int32(f.Records)) {
			if _, err := f.compress.Write(part); err != nil {
				return err
			}
		}
	}
	f.Plain += f.Next(content, timestampMs)
	f.Records++
	return nil
}

// Close ends the batch and returns its size in bytes as it is sent, which corrects the estimate. For gzip that is less
// than this program's library needs, which ends a stream with an empty block; zlib does not.
func (f *Filler) Close() (bytes int64, err error) {
	const emptyBlock = 5
	size := f.Plain
	if f.Codec != CodecNone {
		if err := f.compress.Close(); err != nil {
			return 0, err
		}
		if size = int64(f.packed); f.Codec == CodecGzip {
			size -= emptyBlock
		}
		f.observe(size)
	}
	f.Plain, f.Records = 0, 0
	return BatchHeaderSize + size, nil
}

// observe corrects the estimate by the size that the records of a batch compressed to.
func (f *Filler) observe(compressed int64) {
	observed := float32(compressed) / float32(f.Plain)
	switch {
	case observed > f.Estimate:
		f.Estimate = max(f.Estimate+ratioDeteriorates, observed)
	case observed < f.Estimate:
		f.Estimate = max(f.Estimate-ratioImproves, observed)
	}
}
