package rebuild

import (
	"errors"
	"math"

	"kseg/broker"
	"kseg/format"
	"kseg/state"
)

// Recovery is LogSegment.recover over the batches of one segment.
type Recovery struct {
	broker.Recovered
	early   []byte  // the snapshot taken before the segment, nil if there is one on disk
	outcome Outcome // if err is not nil
	err     error   // why it ended before a batch that is not sound
}

// NewRecovery starts the recovery of a segment after what the producers have done. intervalBytes is
// index.interval.bytes.
func NewRecovery(base, intervalBytes int64, producers *state.ProducerManager) *Recovery {
	return &Recovery{Recovered: broker.Recovered{Index: format.NewIndexBuilder(base, intervalBytes),
		Producers: producers}}
}

// Finish ends the segment. The error is why recovery would not have kept all that was added.
func (x *Recovery) Finish() error {
	if x.err == nil {
		x.fail(x.Index.Finish())
	}
	return x.err
}

// OffsetIndex is the .index as on disk.
func (x *Recovery) OffsetIndex() []byte { return x.Index.OffsetIndexBytes() }

// TimeIndex is the .timeindex as on disk.
func (x *Recovery) TimeIndex() []byte { return x.Index.TimeIndexBytes() }

// TxnIndex is the .txnindex as on disk; if it is empty a broker writes no file.
func (x *Recovery) TxnIndex() []byte { return x.Txns.Bytes() }

// Add takes the next batch, whose checksum holds. It is false where recovery ends.
func (x *Recovery) Add(b *format.Batch) bool { return x.fail(x.Recovered.Add(b, nil)) }

// fail notes an error that ends recovery; it is true if there is none.
func (x *Recovery) fail(err error) bool {
	if err == nil {
		return true
	}
	x.err, x.outcome = err, Failed
	switch {
	case broker.Cuts(err):
		x.outcome = Cut
	case errors.Is(err, format.ErrIndexOrder):
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
	x.Index, x.Txns = format.NewIndexBuilder(base, math.MaxInt64), format.TxnIndexBuilder{}
	x.Kept, x.Batches = 0, 0
}
