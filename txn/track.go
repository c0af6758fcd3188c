package txn

import (
	"context"
	"slices"

	"kseg/format"
	"kseg/logdir"
	"kseg/state"
)

// tracker reads the log from the last stable offset, or all of it, and sums the transactions in it up.
type tracker struct {
	ctx     context.Context
	report  *Report
	records *format.RecordReader
	options *Options
	holes   state.Holes
	live    map[int64]*live // by producer
	marked  map[int64]int64 // the offset after each producer's last marker
	begun   []int64         // of each finished transaction the offset from which on its producer is known
	// records and bytes of all producers, up to the high watermark
	allRecords, allBytes int64
}

// live is a transaction that has not ended so far.
type live struct {
	Transaction
	beforeRecords, beforeBytes int64 // of all producers, before its first batch
	ownRecords, ownBytes       int64 // up to the high watermark
}

// walk reads what has to be read.
func (t *tracker) walk() error {
	r := t.report
	_, open := r.FirstOpen()
	from := r.LastStable
	switch {
	case t.options.All:
		from = r.LogStart
	case !open && r.LastStable == r.HighWatermark:
		return nil
	}
	t.holes = state.Holes{Next: from}
	var failed error
	for _, seg := range state.Segments(r.Partition) {
		if seg.Next != nil && seg.Next.Base <= from {
			continue
		}
		if err := t.segment(seg, from); err != nil {
			failed = err
		}
	}
	t.doubt(t.holes.End())
	return failed
}

// doubt marks the finished transactions that lost offsets may be about.
func (t *tracker) doubt(lost []state.Lost) {
	r := t.report
	if t.options.All {
		r.Missing = lost
	}
	for i := range r.Finished {
		f := &r.Finished[i]
		n, _ := slices.BinarySearchFunc(lost, t.begun[i], func(l state.Lost, from int64) int {
			if l.Open || l.Last >= from {
				return 1
			}
			return -1
		})
		if n < len(lost) && lost[n].First < f.Marker {
			f.note("offsets %s are lost, and what was there may have been of this transaction, or a marker",
				state.LostText(lost[n:n+1]))
		}
	}
}

func (t *tracker) segment(seg *logdir.Segment, from int64) error {
	return state.ReadBatches(t.ctx, seg, from, t.options.Progress, func(b *format.Batch, h *format.Hole) bool {
		if b == nil {
			t.holes.Hole(h)
		} else if b.LastOffset >= from && b.BaseOffset < t.report.LogEnd && t.holes.Batch(b) {
			t.batch(b)
		}
		return true
	})
}

func (t *tracker) batch(b *format.Batch) {
	r := t.report
	records, readable := int64(b.Count), b.BaseOffset < r.HighWatermark
	switch {
	case b.Legacy() && b.Count < 0:
		records = 1 // a wrapper, of which only a decompressor knows more
	case b.Control():
		t.mark(b)
		return
	}
	l := t.live[b.ProducerID]
	if b.Transactional() && b.ProducerID >= 0 {
		if l == nil {
			l = &live{Transaction: Transaction{ProducerID: b.ProducerID, FirstOffset: b.BaseOffset, FirstMs: b.BaseTimestamp,
				Seen: true, CoordinatorEpoch: -1},
				beforeRecords: t.allRecords, beforeBytes: t.allBytes}
			if b.HasDeleteHorizon() {
				l.FirstMs = b.MaxTimestamp
			}
			t.live[b.ProducerID] = l
		}
		l.ProducerEpoch, l.LastOffset = b.ProducerEpoch, b.LastOffset
		l.LastMs = max(l.LastMs, b.MaxTimestamp)
		l.Records, l.Bytes = l.Records+records, l.Bytes+b.Size()
		if readable {
			l.ownRecords, l.ownBytes = l.ownRecords+records, l.ownBytes+b.Size()
		}
	}
	if readable {
		t.allRecords, t.allBytes = t.allRecords+records, t.allBytes+b.Size()
		if b.BaseOffset >= r.LastStable {
			r.HeldRecords, r.HeldBytes = r.HeldRecords+records, r.HeldBytes+b.Size()
		}
	}
}

// mark ends the transaction of a control batch's producer.
func (t *tracker) mark(b *format.Batch) {
	var rec format.Record
	t.records.Reset(b)
	defer t.records.Release()
	if !t.records.Next(&rec) {
		return
	}
	m, err := format.DecodeTxnMarker(b.Pos, rec.Key, rec.Value)
	if err != nil {
		return
	}
	l := t.live[b.ProducerID]
	if l == nil {
		t.marked[b.ProducerID] = b.NextOffset()
		return
	}
	delete(t.live, b.ProducerID)
	begun := t.marked[b.ProducerID]
	t.marked[b.ProducerID] = b.NextOffset()
	c := t.report.coordinators.Of(b.ProducerID)
	if !t.options.All || !t.options.wants(b.ProducerID, c) {
		return
	}
	l.Status = Committed
	if m.Abort {
		l.Status = Aborted
	}
	l.Marker, l.MarkerMs, l.CoordinatorEpoch, l.Coordinator = b.BaseOffset, rec.Timestamp, m.CoordinatorEpoch, c
	t.report.doubtCoordinator(&l.Transaction)
	t.count(l)
	if r := t.report; len(r.Finished) >= 2*mostFinished {
		r.Dropped += int64(mostFinished)
		r.Finished, t.begun = r.Finished[:copy(r.Finished, r.Finished[mostFinished:])],
			t.begun[:copy(t.begun, t.begun[mostFinished:])]
	}
	t.report.Finished, t.begun = append(t.report.Finished, l.Transaction), append(t.begun, begun)
}

// mostFinished is how many finished transactions of a partition are kept at least, so that a log of any length takes so
// much memory and not more. It is a variable for tests.
var mostFinished = 100_000

// count says what others wrote after the beginning.
func (t *tracker) count(l *live) {
	l.AfterRecords = t.allRecords - l.beforeRecords - l.ownRecords
	l.AfterBytes = t.allBytes - l.beforeBytes - l.ownBytes
}

// open is the transaction that a producer has open, with what was found of it.
func (t *tracker) open(e format.ProducerEntry, c *state.CoordinatorTxn) Transaction {
	r := t.report
	out := Transaction{ProducerID: e.ProducerID}
	if l := t.live[e.ProducerID]; l != nil {
		t.count(l)
		out = l.Transaction
	} else {
		out.AfterRecords, out.AfterBytes = t.allRecords, t.allBytes
	}
	out.ProducerEpoch, out.CoordinatorEpoch, out.Coordinator = e.ProducerEpoch, e.CoordinatorEpoch, c
	out.FirstOffset = e.CurrentTxnFirstOffset
	out.BelowStart = out.FirstOffset < r.LogStart
	for _, l := range r.Lost {
		if l.Open || l.Last >= r.From {
			out.note("offsets %s are lost, and a marker that ends it may have been among them", state.LostText([]state.Lost{l}))
			break
		}
	}
	r.judge(&out)
	return out
}
