package broker

import (
	"cmp"
	"errors"
	"slices"

	"kseg/format"
	"kseg/state"
)

// Recovered is what LogSegment.recover makes of the batches of a segment, one after the other.
type Recovered struct {
	Index     *format.IndexBuilder
	Txns      format.TxnIndexBuilder
	Producers *state.ProducerManager
	Kept      int64 // bytes: where the last batch that was indexed ends
	Batches   int64 // that were indexed
}

// Add takes the next batch, whose checksum holds. indexed, which may be nil, is called between the indexes and the
// producers. The error says why recovery ends: before the batch, or, by Cuts, after it.
func (x *Recovered) Add(b *format.Batch, indexed func() error) error {
	if err := x.Index.Add(b.Ref()); err != nil {
		return err
	}
	x.Kept, x.Batches = b.End(), x.Batches+1
	if indexed != nil {
		if err := indexed(); err != nil {
			return err
		}
	}
	if b.Legacy() {
		return nil
	}
	if b.ProducerID >= 0 {
		event, err := x.Producers.Append(b, x.Producers.Records)
		if err == nil && event.Ended {
			err = cmp.Or(x.Txns.Add(event.Txn), event.Started())
		} else if err != nil && !fatal(err) {
			err = &corrupt{err}
		}
		if err != nil {
			return err
		}
	}
	x.Producers.MapEnd = b.NextOffset()
	return nil
}

// Cuts reports whether recovery takes the error for the end of the log, so that it keeps what came before. All others
// end the loading of the partition, or empty or split the segment.
func Cuts(err error) bool {
	var end *corrupt
	return errors.As(err, &end)
}

// fatal reports whether a broker gives up loading a partition because of what format.ProducerState said of a batch, so
// that recovery does not just end after it.
func fatal(err error) bool {
	return slices.ContainsFunc([]error{format.ErrTxnState, format.ErrMarker, format.ErrTooLarge, format.ErrUnsupported,
		format.ErrCodec}, func(known error) bool { return errors.Is(err, known) })
}
