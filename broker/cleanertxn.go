package broker

import (
	"container/heap"
	"slices"

	"kseg/format"
	"kseg/schema"
)

// cleanedTxns follows transactions while a cleaner goes through a log, to say which batches belong to aborted ones and
// which markers have none left (CleanedTransactionMetadata).
type cleanedTxns struct {
	committed map[int64]bool                // producers with batches of a transaction that was not aborted
	aborted   map[int64]*abortedTxn         // those with one that was
	waiting   abortedHeap                   // aborted transactions that begin further on
	keep      func(format.AbortedTxn) error // an aborted transaction of which batches were seen ends
}

type abortedTxn struct {
	format.AbortedTxn
	seen bool // a batch of it
}

func newCleanedTxns(keep func(format.AbortedTxn) error) *cleanedTxns {
	return &cleanedTxns{committed: map[int64]bool{}, aborted: map[int64]*abortedTxn{}, keep: keep}
}

func (c *cleanedTxns) add(list []format.AbortedTxn) {
	for _, t := range list {
		heap.Push(&c.waiting, t)
	}
}

// begin lets the transactions begin that do so up to an offset.
func (c *cleanedTxns) begin(upTo int64) {
	for len(c.waiting) > 0 && c.waiting[0].FirstOffset <= upTo {
		t := heap.Pop(&c.waiting).(format.AbortedTxn)
		if c.aborted[t.ProducerID] == nil {
			c.aborted[t.ProducerID] = &abortedTxn{AbortedTxn: t}
		}
	}
}

// data takes the next batch that is not a control batch, and reports whether it belongs to an aborted transaction.
func (c *cleanedTxns) data(b *format.Batch) bool {
	c.begin(b.LastOffset)
	if !b.Transactional() {
		return false
	}
	if t := c.aborted[b.ProducerID]; t != nil {
		t.seen = true
		return true
	}
	c.committed[b.ProducerID] = true
	return false
}

// control takes the next control batch and reports whether nothing is left of the transaction that it ends. present is
// false for a batch whose record is gone.
func (c *cleanedTxns) control(b *format.Batch, typ schema.ControlType, present bool) (bool, error) {
	c.begin(b.LastOffset)
	switch {
	case !present:
		return true, nil
	case typ == schema.Abort:
		t := c.aborted[b.ProducerID]
		delete(c.aborted, b.ProducerID)
		if t == nil || !t.seen {
			return true, nil
		}
		return false, c.keep(t.AbortedTxn)
	case typ == schema.Commit:
		seen := c.committed[b.ProducerID]
		delete(c.committed, b.ProducerID)
		return !seen, nil
	}
	return false, nil
}

// abortedIn are the aborted transactions that begin below to, read from the transaction indexes of the segment in which
// from lies and those after it (LocalLog.collectAbortedTransactions). Kafka leaves out only those that ended below the
// log start: one of a producer that ended before from counts as well, until the next marker of the producer that the
// cleaner comes to.
func (l *CleanerLog) abortedIn(from, to int64) []format.AbortedTxn {
	segments := l.Segments
	at, ok := slices.BinarySearchFunc(segments, from, func(s CleanerSegment, offset int64) int {
		switch {
		case s.Base < offset:
			return -1
		case s.Base > offset:
			return 1
		}
		return 0
	})
	if !ok {
		at--
	}
	var list []format.AbortedTxn
	for _, seg := range segments[max(at, 0):] {
		for _, t := range seg.Aborted {
			if t.LastOffset >= l.StartOffset && t.FirstOffset < to {
				list = append(list, t)
			}
			if t.LastStableOffset >= to {
				return list
			}
		}
	}
	return list
}

// abortedHeap is a min-heap by first offset, for container/heap.
type abortedHeap []format.AbortedTxn

func (h abortedHeap) Len() int           { return len(h) }
func (h abortedHeap) Less(i, j int) bool { return h[i].FirstOffset < h[j].FirstOffset }
func (h abortedHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }

// Push and Pop are for container/heap.
func (h *abortedHeap) Push(t any) { *h = append(*h, t.(format.AbortedTxn)) }

// Pop removes the last element.
func (h *abortedHeap) Pop() any {
	old := *h
	t := old[len(old)-1]
	*h = old[:len(old)-1]
	return t
}
