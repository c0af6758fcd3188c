package rebuild

import (
	"errors"
	"math"

	"kseg/broker"
	"kseg/format"
)

// Recovery is LogSegment.recover over the batches of one segment.
type Recovery struct {
	index     *format.IndexBuilder
	txns      format.TxnIndexBuilder
	producers *format.ProducerState
	reader    *format.RecordReader

	// of the last snapshot: that which producers were loaded from, or early; the log's start if there is none
	snapOffset int64
	early      []byte // the snapshot taken before the segment, nil if there is one on disk
	mapEnd     int64  // the offset after the last batch that producers know of
	kept       int64  // bytes
	batches    int64
	outcome    Outcome // if err is not nil
	err        error   // why it ended before a batch that is not sound
}

// NewRecovery starts the recovery of a segment after what the producers have done. intervalBytes is
// index.interval.bytes; the reader is for control records.
func NewRecovery(base, intervalBytes int64, producers *format.ProducerState, reader *format.RecordReader) *Recovery {
	return &Recovery{index: format.NewIndexBuilder(base, intervalBytes), producers: producers, reader: reader}
}

// Finish ends the segment. The error is why recovery would not have kept all that was added.
func (x *Recovery) Finish() error {
	if x.err == nil {
		x.fail(x.index.Finish())
	}
	return x.err
}

// OffsetIndex is the .index as on disk.
func (x *Recovery) OffsetIndex() []byte { return x.index.OffsetIndexBytes() }

// TimeIndex is the .timeindex as on disk.
func (x *Recovery) TimeIndex() []byte { return x.index.TimeIndexBytes() }

// TxnIndex is the .txnindex as on disk; if it is empty a broker writes no file.
func (x *Recovery) TxnIndex() []byte { return x.txns.Bytes() }

// Add takes the next batch, whose checksum holds. It is false where recovery ends.
func (x *Recovery) Add(b *format.Batch) bool {
	if !x.fail(x.index.Add(b.Ref())) {
		return false
	}
	x.kept, x.batches = b.End(), x.batches+1
	if b.Legacy() {
		return true
	}
	if b.ProducerID >= 0 && !x.addProducer(b) {
		return false
	}
	x.mapEnd = b.NextOffset()
	return true
}

// addProducer tells the producers of the batch. A control record that makes no sense ends the segment after it.
func (x *Recovery) addProducer(b *format.Batch) bool {
	event, err := x.producers.Append(b, x.reader)
	if err == nil && event.Ended {
		return x.fail(x.txns.Add(event.Txn))
	}
	if err != nil && !broker.Fatal(err, b) {
		x.err, x.outcome = err, Cut
		return false
	}
	return x.fail(err)
}

// fail notes an error that ends recovery; it is true if there is none.
func (x *Recovery) fail(err error) bool {
	if err == nil {
		return true
	}
	x.err, x.outcome = err, Failed
	if errors.Is(err, format.ErrIndexOrder) {
		x.outcome = Emptied
	}
	return false
}

// reason is the error as a clause that says what a broker does.
func (x *Recovery) reason() string {
	text := x.err.Error()
	switch {
	case errors.Is(x.err, format.ErrIndexOrder):
		return text + "; a broker empties the segment"
	case errors.Is(x.err, format.ErrOffsetOverflow):
		return text + "; a broker splits the segment, for which no index can be made beforehand"
	case x.outcome == Failed && !errors.Is(x.err, format.ErrTooLarge):
		return text + "; a broker does not load the partition"
	}
	return text
}

// empty is what is left after LogSegment.truncateTo of the base offset.
func (x *Recovery) empty(base int64) {
	x.index, x.txns = format.NewIndexBuilder(base, math.MaxInt64), format.TxnIndexBuilder{}
	x.kept, x.batches = 0, 0
}
