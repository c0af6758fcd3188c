package verify

import (
	"container/heap"
	"fmt"

	"kseg/format"
)

// checkTxnIndex compares every .txnindex with the ABORT markers of its segment.
var checkTxnIndex = Check{
	Name:  "transaction-index",
	Group: "indexes",
	Codes: []Code{
		{"txnindex-version", Damage, "an entry of a transaction index has an unknown version"},
		{"txnindex-entry", Damage, "an entry of a transaction index contradicts the log"},
		{"txnindex-entry-missing", Damage, "an aborted transaction is not in the transaction index"},
		{"txnindex-stray-bytes", Warning, "a transaction index is not a whole number of entries"},
	},
	Follow: func(p *partition) follower { return &txnFollower{p: p} },
}

const txnSlot = 34 // bytes

// txnFollower is the follower of checkTxnIndex.
type txnFollower struct {
	passive
	p     *partition
	file  string
	index format.TxnIndex
	n     int // entries that can be read
	next  int // the first that no marker was found for
	// marker is the last marker that ended a transaction or could have, for naming it beside an entry that is wrong.
	marker Place
	commit bool
	// stable are the entries that are wrong in nothing but their last stable offset.
	stable stableHeap
}

// stableEntry is an entry whose last stable offset is another than by the log. A search for aborted transactions ends
// at it where it should go on, if one that comes later begins below that offset.
type stableEntry struct {
	seg     *segment
	offset  int64
	finding Finding
}

// stableHeap has the entry with the highest last stable offset first.
type stableHeap []stableEntry

func (h stableHeap) Len() int           { return len(h) }
func (h stableHeap) Less(i, j int) bool { return h[i].offset > h[j].offset }
func (h stableHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *stableHeap) Push(e any)        { *h = append(*h, e.(stableEntry)) }
func (h *stableHeap) Pop() any {
	last := (*h)[len(*h)-1]
	*h = (*h)[:len(*h)-1]
	return last
}

func (x *txnFollower) begin(seg *segment) {
	x.index, x.next, x.marker = format.NewTxnIndex(seg.txnIndex), 0, Place{}
	x.file = seg.sibling(format.KindTxnIndex)
	var err error
	if x.n, err = x.index.Check(); err != nil {
		x.found(seg, "txnindex-version", x.n, "entry "+itoa(int64(x.n))+" is of a version that does not exist: "+
			format.ReasonOf(err))
	}
}

func (x *txnFollower) batch(seg *segment, b *format.Batch) {
	event := &x.p.event
	if !event.HasMark {
		return
	}
	x.extra(seg, b.BaseOffset)
	x.marker, x.commit = at(seg.log.Rel, b), !event.Marker.Abort
	here := x.next < x.n && x.index.Entry(x.next).LastOffset == b.BaseOffset
	if here {
		x.hidden(x.index.Entry(x.next))
	}
	switch {
	case event.Marker.Abort && event.Ended && here:
		x.compare(seg, event.Txn.AbortedTxn)
		x.next++
	case event.Marker.Abort && event.Ended && x.n == x.index.Len() && event.Txn.FirstOffset < b.BaseOffset:
		x.missing(seg, event.Txn.AbortedTxn)
	case event.Marker.Abort && here:
		// The transaction began before what is left of the log, so that its first offset is not known.
		x.next++
	}
}

// extra reports the entries below the offset, for which no marker was found.
func (x *txnFollower) extra(seg *segment, offset int64) {
	for x.next < x.n && x.index.Entry(x.next).LastOffset < offset {
		e := x.index.Entry(x.next)
		x.hidden(e)
		message := fmt.Sprintf("entry %d says that a transaction of producer %d was aborted at offset %d, ", x.next,
			e.ProducerID, e.LastOffset)
		switch {
		case e.LastOffset < seg.base:
			message += "which is below the segment's base offset"
		case x.marker.File != "" && x.marker.FirstOffset == e.LastOffset && x.commit:
			message += "but the marker there commits it"
		case x.marker.File != "" && x.marker.FirstOffset >= e.LastOffset:
			message += "which an entry before says already, or where there is no marker"
		default:
			message += "where there is no such marker"
		}
		f := x.found(seg, "txnindex-entry", x.next, message)
		f.Producer = new(e.ProducerID)
		if x.marker.FirstOffset == e.LastOffset && x.marker.File != "" {
			f.relate(x.marker)
		}
		x.next++
	}
}

// compare holds an entry against the transaction that its marker ended.
func (x *txnFollower) compare(seg *segment, want format.AbortedTxn) {
	e := x.index.Entry(x.next)
	if e == want || x.p.startUnknown && x.began(e, want) {
		return
	}
	same := e
	if same.LastStableOffset = want.LastStableOffset; same == want {
		x.unstable(seg, e, want)
		return
	}
	f := x.found(seg, "txnindex-entry", x.next,
		fmt.Sprintf("entry %d says producer %d, offsets %d to %d, last stable offset %d; by the log "+
			"it is producer %d, %d to %d, %d", x.next, e.ProducerID, e.FirstOffset, e.LastOffset, e.LastStableOffset,
			want.ProducerID, want.FirstOffset, want.LastOffset, want.LastStableOffset))
	f.Producer = new(want.ProducerID)
	f.Evidence = []Evidence{{"first offset", itoa(want.FirstOffset), itoa(e.FirstOffset)},
		{"producer id", itoa(want.ProducerID), itoa(e.ProducerID)},
		{"last stable offset", itoa(want.LastStableOffset), itoa(e.LastStableOffset)}}
	f.relate(x.marker)
}

// unstable keeps an entry of which only the last stable offset is wrong, until it is known what comes of that.
func (x *txnFollower) unstable(seg *segment, e, want format.AbortedTxn) {
	heap.Push(&x.stable, stableEntry{seg, e.LastStableOffset, Finding{Code: "txnindex-entry", Severity: Note,
		Producer: new(e.ProducerID), logPos: -1,
		Place: Place{File: x.file, Pos: x.index.Position(x.next), Len: txnSlot, FirstOffset: e.FirstOffset,
			LastOffset: e.LastOffset},
		Message: fmt.Sprintf("entry %d agrees with the log in producer %d and offsets %d to %d, but its last stable "+
			"offset is %d, and by the log it is %d",
			x.next, e.ProducerID, e.FirstOffset, e.LastOffset, e.LastStableOffset, want.LastStableOffset),
		Evidence: []Evidence{{"last stable offset", itoa(want.LastStableOffset), itoa(e.LastStableOffset)}},
		Related:  []Place{x.marker}}})
}

// hidden reports the entries before e at which a search ends that should have come to e.
func (x *txnFollower) hidden(e format.AbortedTxn) {
	for len(x.stable) > 0 && e.FirstOffset < x.stable[0].offset {
		s := heap.Pop(&x.stable).(stableEntry)
		s.finding.Severity = Damage
		s.finding.Message += fmt.Sprintf("; a search for aborted transactions below %d ends there and misses the one of "+
			"producer %d that begins at offset %d, so that consumers with read_committed get its records. Brokers write such "+
			"entries themselves where several transactions come in one append, as to a replica that follows or is moved; kseg "+
			"verify --rebuild writes the right index", s.offset, e.ProducerID, e.FirstOffset)
		x.p.found(s.seg, s.finding)
	}
}

// began reports whether an entry differs from what the log says only in what began before the log does.
func (x *txnFollower) began(e, want format.AbortedTxn) bool {
	start := x.p.segments[0].base
	if e.FirstOffset < start {
		want.FirstOffset = e.FirstOffset
	}
	if e.LastStableOffset < start {
		want.LastStableOffset = e.LastStableOffset
	}
	return e == want
}

func (x *txnFollower) missing(seg *segment, t format.AbortedTxn) {
	if from := x.p.snapshots; x.p.compacted && from != nil && t.FirstOffset < from.begun {
		return // a snapshot knows of it, and the cleaner may have taken its records
	}
	place := Place{File: x.file, Pos: x.index.Position(x.next), Len: 0, FirstOffset: t.FirstOffset,
		LastOffset: t.LastOffset}
	if seg.dir.TxnIndex == nil {
		place.Pos, place.Len = -1, -1
	}
	x.p.found(seg, Finding{Code: "txnindex-entry-missing", Place: place, Producer: new(t.ProducerID), logPos: x.marker.Pos,
		Related: []Place{x.marker},
		Message: fmt.Sprintf("the transaction of producer %d that was aborted at offset %d is not in the index; consumers "+
			"with read_committed get its records", t.ProducerID, t.LastOffset)})
}

func (x *txnFollower) found(seg *segment, code string, slot int, message string) *Finding {
	e := x.index.Entry(slot)
	return x.p.found(seg, Finding{Code: code, Place: Place{File: x.file, Pos: x.index.Position(slot), Len: txnSlot,
		FirstOffset: e.FirstOffset,
		LastOffset:  e.LastOffset}, Message: message, logPos: -1})
}

func (x *txnFollower) end(seg *segment) {
	x.extra(seg, 1<<63-1)
	if n := x.index.StrayBytes(); n > 0 {
		x.p.found(seg, Finding{Code: "txnindex-stray-bytes", Place: inFile(x.file, int64(len(seg.txnIndex)-n), int64(n)),
			logPos:  -1,
			Message: plural(int64(n), "trailing byte", "trailing bytes") + " after the last whole entry"})
	}
}

// finish reports the entries whose last stable offset misleads no search.
func (x *txnFollower) finish() {
	for _, s := range x.stable {
		s.finding.Message += "; no search is misled by it. Brokers write such entries themselves where several " +
			"transactions come in one append, as to a replica that follows or is moved"
		x.p.found(s.seg, s.finding)
	}
}
