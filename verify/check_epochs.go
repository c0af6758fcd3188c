package verify

import (
	"fmt"

	"kseg/format"
)

// checkEpochs looks at the leader epochs of the batches, which never go back in a log.
var checkEpochs = Check{
	Name:   "leader-epochs",
	Group:  "offsets",
	Codes:  []Code{{"leader-epoch-order", Warning, "leader epochs go back, or one is below -1"}},
	Follow: func(p *partition) follower { return &epochOrder{p: p, last: -1} },
}

// epochOrder is the follower of checkEpochs.
type epochOrder struct {
	passive
	p       *partition
	last    int32 // epoch of the last batch that was accepted
	at      Place // of the first batch with it
	seg     *segment
	pending Place // a batch whose epoch rose, until the next one confirms it
	rose    int32
	waiting bool
}

func (e *epochOrder) batch(seg *segment, b *format.Batch) {
	epoch := b.LeaderEpoch
	if !e.waiting && epoch == e.last || epoch == -1 {
		return
	}
	switch {
	case epoch < -1:
		e.found(seg, at(seg.log.Rel, b), epoch, Place{Pos: -1})
	case e.waiting && epoch >= e.rose:
		e.last, e.at, e.waiting = e.rose, e.pending, false
		e.batch(seg, b)
	case e.waiting && epoch >= e.last:
		// The one that rose stands alone between two that agree.
		e.found(e.seg, e.pending, e.rose, at(seg.log.Rel, b))
		e.waiting = false
		e.batch(seg, b)
	case e.waiting:
		e.waiting = false
		e.found(seg, at(seg.log.Rel, b), epoch, e.pending)
	case epoch > e.last:
		e.pending, e.rose, e.seg, e.waiting = at(seg.log.Rel, b), epoch, seg, true
	default:
		e.found(seg, at(seg.log.Rel, b), epoch, e.at)
	}
}

func (e *epochOrder) found(seg *segment, place Place, epoch int32, other Place) {
	f := Finding{Code: "leader-epoch-order", Place: place, logPos: place.Pos,
		Evidence: []Evidence{{"leader epoch", fmt.Sprintf("%d or more", max(e.last, -1)), fmt.Sprint(epoch)}}}
	switch {
	case epoch < -1:
		f.Message = fmt.Sprintf("leader epoch %d is below -1, which means none; the checksum leaves out this field", epoch)
	case epoch > e.last:
		f.Message = fmt.Sprintf("leader epoch %d stands alone between batches of epoch %d; the checksum leaves "+
			"out this field", epoch, e.last)
	default:
		f.Message = fmt.Sprintf("the leader epoch goes back from %d to %d", e.last, epoch)
	}
	if other.Pos >= 0 {
		f.Related = []Place{other}
	}
	e.p.found(seg, f)
}
