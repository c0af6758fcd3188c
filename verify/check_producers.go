package verify

import (
	"errors"
	"fmt"
	"strconv"

	"kseg/format"
	"kseg/render"
)

// checkProducers looks at the sequence numbers and epochs of each producer, and at its transactions.
var checkProducers = Check{
	Name:  "producers",
	Group: "producers",
	Codes: []Code{
		{"producer-sequence", Warning, "the sequence numbers of a producer do not run on"},
		{"producer-epoch", Warning, "the epoch of a producer goes back, or rises in the middle of its sequence"},
		{"transaction-state", Damage, "a batch outside of its producer's open transaction"},
		{"marker-without-transaction", Note, "a transaction marker that ends no transaction"},
		{"open-transaction", Note, "a transaction that was not ended"},
	},
	Follow: func(p *partition) follower {
		return &producerFollower{p: p, began: map[int64]begun{}, alone: map[int64]nextBatch{}}
	},
}

// begun is where an open transaction began.
type begun struct {
	seg   *segment
	place Place
}

// nextBatch is what a producer's next batch would be if the last one had not been there.
type nextBatch struct {
	epoch    int16
	sequence int32
}

// producerFollower is the follower of checkProducers.
type producerFollower struct {
	passive
	p       *partition
	began   map[int64]begun     // by producer id
	alone   map[int64]nextBatch // by producer id: set after a batch that does not fit
	skipped int64               // producers whose last batch is below this offset may have lost some
}

func (x *producerFollower) batch(seg *segment, b *format.Batch) {
	if b.ProducerID < 0 || b.Legacy() {
		return
	}
	event := &x.p.event
	switch {
	case event.Began:
		x.began[b.ProducerID] = begun{seg, at(seg.log.Rel, b)}
	case event.Ended:
		delete(x.began, b.ProducerID)
	}
	if errors.Is(x.p.eventErr, format.ErrTxnState) {
		x.p.found(seg, Finding{Code: "transaction-state", Place: at(seg.log.Rel, b), Producer: new(b.ProducerID),
			logPos: b.Pos,
			Message: fmt.Sprintf("producer %d writes outside of its transaction, which is open since offset %d", b.ProducerID,
				event.Before.CurrentTxnFirstOffset)})
		return
	}
	if event.Issue == format.ProducerInOrder || x.p.coordinator() || x.p.compacted {
		if len(x.alone) > 0 {
			delete(x.alone, b.ProducerID)
		}
		return
	}
	x.issue(seg, b, event)
}

// issue judges a batch that does not follow its producer's last one.
func (x *producerFollower) issue(seg *segment, b *format.Batch, event *format.ProducerEvent) {
	if event.Issue == format.ProducerMarkerWithoutTxn {
		if event.Known {
			x.found(seg, b, "marker-without-transaction", "the marker ends no transaction, which is normal if the "+
				"transaction wrote nothing to this partition",
				Evidence{})
		}
		return
	}
	if event.Known && event.Before.LastOffset < x.skipped {
		return // damaged bytes explain it
	}
	if next, ok := x.alone[b.ProducerID]; ok && next == (nextBatch{b.ProducerEpoch, b.BaseSequence}) {
		delete(x.alone, b.ProducerID)
		return // this one is right, it was the one before that stood out
	}
	before := event.Before
	want := format.NextSequence(before.LastSequence)
	x.alone[b.ProducerID] = nextBatch{before.ProducerEpoch, format.IncrementSequence(want, b.LastOffsetDelta+1)}
	switch event.Issue {
	case format.ProducerSequenceGap:
		message := fmt.Sprintf("producer %d goes from sequence %d to %d; what is between was never stored, or is lost",
			b.ProducerID, before.LastSequence, b.BaseSequence)
		if b.BaseSequence <= before.LastSequence {
			message = fmt.Sprintf("producer %d comes with sequence %d, though all up to %d is there already: a duplicate "+
				"was stored", b.ProducerID, b.BaseSequence, before.LastSequence)
		}
		x.found(seg, b, "producer-sequence", message, Evidence{"base sequence", strconv.Itoa(int(want)),
			strconv.Itoa(int(b.BaseSequence))})
	case format.ProducerSequenceStart:
		x.found(seg, b, "producer-epoch",
			fmt.Sprintf("producer %d goes from epoch %d to %d with sequence %d; a new epoch begins with 0", b.ProducerID,
				before.ProducerEpoch, b.ProducerEpoch, b.BaseSequence),
			Evidence{"producer epoch", strconv.Itoa(int(before.ProducerEpoch)), strconv.Itoa(int(b.ProducerEpoch))})
	case format.ProducerEpochBack:
		x.found(seg, b, "producer-epoch",
			fmt.Sprintf("producer %d goes back from epoch %d to %d; a broker would have fenced it", b.ProducerID,
				before.ProducerEpoch, b.ProducerEpoch), Evidence{"producer epoch",
				strconv.Itoa(int(before.ProducerEpoch)) + " or more", strconv.Itoa(int(b.ProducerEpoch))})
	default:
		x.found(seg, b, "producer-epoch", fmt.Sprintf("the coordinator epoch of producer %d's marker goes back",
			b.ProducerID), Evidence{})
	}
}

func (x *producerFollower) found(seg *segment, b *format.Batch, code, message string, evidence Evidence) {
	f := Finding{Code: code, Place: at(seg.log.Rel, b), Message: message, Producer: new(b.ProducerID), logPos: b.Pos,
		since: x.p.event.Before.LastOffset}
	if evidence.Name != "" {
		f.Evidence = []Evidence{evidence}
	}
	x.p.found(seg, f)
}

func (x *producerFollower) skip(seg *segment, _, _ int64, _ *format.Batch, nextOffset int64) {
	x.skipped = max(x.skipped, nextOffset, seg.nextOffset+1)
}

// finish reports the transactions that are open at the end of the log.
func (x *producerFollower) finish() {
	for _, e := range x.p.producers.Open() {
		where, ok := x.began[e.ProducerID]
		if !ok {
			where.place = inFile(x.p.segments[0].log.Rel, -1, -1)
		}
		where.place.FirstOffset, where.place.LastOffset = e.CurrentTxnFirstOffset, max(e.LastOffset, e.CurrentTxnFirstOffset)
		message := fmt.Sprintf("producer %d has had a transaction open since offset %d", e.ProducerID,
			e.CurrentTxnFirstOffset)
		if age := x.p.driver.opts.Now.UnixMilli() - e.TimestampMs; e.TimestampMs >= 0 && age > 0 {
			message += ", last written to " + render.Duration(age) + " ago"
		}
		x.p.found(where.seg, Finding{Code: "open-transaction", Place: where.place, Producer: new(e.ProducerID),
			logPos:  where.place.Pos,
			Message: message + "; read_committed consumers stop there until it ends",
			Next:    "kseg txn " + render.ShellWord(x.p.dir.Display)})
	}
}
