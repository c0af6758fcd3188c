package verify

import (
	"fmt"
	"sort"

	"kseg/format"
	"kseg/logdir"
)

// checkEpochFile looks at the leader-epoch-checkpoint, and holds it against the leader epochs of the batches. That the
// file does not cover a batch is no contradiction: it is cut when records are deleted, and begins anew where it was
// lost.
var checkEpochFile = Check{
	Name:  "leader-epoch-file",
	Group: "state",
	Codes: []Code{
		{"leader-epoch-unreadable", Damage, "a leader-epoch-checkpoint that a broker cannot read"},
		{"leader-epoch-missing", Warning, "there is no leader-epoch-checkpoint"},
		{"leader-epoch-file-order", Warning, "the entries of a leader-epoch-checkpoint go back"},
		{"leader-epoch-beyond-end", Warning, "a leader epoch begins beyond the log end offset"},
		{"leader-epoch-contradiction", Warning, "the leader epoch of a batch is another than that of the " +
			"leader-epoch-checkpoint"},
		{"leader-epoch-below-start", Note, "the leader-epoch-checkpoint begins below the first segment"},
	},
	Follow: func(p *partition) follower { return newEpochFile(p) },
}

// epochFile is the follower of checkEpochFile.
type epochFile struct {
	passive
	p       *partition
	file    *logdir.File
	entries []format.EpochEntry // none if batches are not to be held against them
	at      int                 // the entry that covers the last batch; -1 if it is below all
	agreed  bool                // a batch agreed with its entry
	epochs  bool                // a batch has a leader epoch
	run     []disagreement      // the last batches, if they do not agree
	runs    int                 // how many those are
}

// disagreement is a batch that contradicts an entry.
type disagreement struct {
	seg   *segment
	place Place
	epoch int32
	entry int  // the entry that is wrong if the batch is not
	cover int  // the entry that covers the batch
	split bool // the entry begins inside the batch
}

// mostDisagreements is how many batches of a run are kept.
const mostDisagreements = 4

func newEpochFile(p *partition) *epochFile {
	x := &epochFile{p: p, file: p.file(format.KindLeaderEpochCheckpoint), at: -1}
	if x.file == nil {
		return x
	}
	raw, ok := p.readSmall(x.file)
	if !ok {
		return x
	}
	epochs, err := format.DecodeLeaderEpochs(raw)
	if err != nil {
		p.found(nil, stateError("leader-epoch-unreadable", x.file.Rel, raw, err, ""))
		return x
	}
	if i := epochs.OutOfOrder(); i >= 0 {
		e, before := epochs.Entries[i], epochs.Entries[i-1]
		p.found(nil, Finding{Code: "leader-epoch-file-order", Place: x.place(&e), logPos: -1,
			Message: fmt.Sprintf("epoch %d from offset %d on stands after epoch %d from offset %d on",
				e.Epoch, e.StartOffset, before.Epoch, before.StartOffset),
			Evidence: []Evidence{{"epoch and start offset", fmt.Sprintf("above %d and %d", before.Epoch, before.StartOffset),
				fmt.Sprintf("%d and %d", e.Epoch, e.StartOffset)}}})
		return x
	}
	x.entries = epochs.Entries
	lines := make([]string, len(epochs.Entries))
	for i, e := range epochs.Entries {
		lines[i] = fmt.Sprintf("%d %d", e.Epoch, e.StartOffset)
	}
	p.odd(x.file, raw, checkpointText(lines))
	return x
}

func (x *epochFile) place(e *format.EpochEntry) Place { return inFile(x.file.Rel, e.Pos, e.Len) }

func (x *epochFile) batch(seg *segment, b *format.Batch) {
	if b.LeaderEpoch < 0 || b.Legacy() {
		return
	}
	if x.epochs = true; len(x.entries) == 0 {
		return
	}
	if x.at >= 0 && b.BaseOffset < x.entries[x.at].StartOffset || x.at+1 < len(x.entries) &&
		b.LastOffset >= x.entries[x.at+1].StartOffset {
		x.at = sort.Search(len(x.entries), func(i int) bool { return x.entries[i].StartOffset > b.BaseOffset }) - 1
	}
	covered := x.at >= 0
	// The first entry may begin in the middle of a batch: records below it were deleted.
	split := x.at+1 < len(x.entries) && b.LastOffset >= x.entries[x.at+1].StartOffset &&
		(covered || x.entries[0].Epoch != b.LeaderEpoch)
	switch {
	case covered && x.entries[x.at].Epoch != b.LeaderEpoch:
		x.disagree(disagreement{seg, at(seg.log.Rel, b), b.LeaderEpoch, x.blame(b.LeaderEpoch), x.at, false})
	case split:
		x.disagree(disagreement{seg, at(seg.log.Rel, b), b.LeaderEpoch, x.at + 1, x.at, true})
	case covered:
		x.settle(true)
		x.agreed = true
	}
}

// blame is the entry that is wrong if the epoch of a batch is right: the one of that epoch, if it begins too late, else
// the one that covers the batch.
func (x *epochFile) blame(epoch int32) int {
	i := sort.Search(len(x.entries), func(i int) bool { return x.entries[i].Epoch >= epoch })
	if i < len(x.entries) && x.entries[i].Epoch == epoch && i > x.at {
		return i
	}
	return x.at
}

func (x *epochFile) disagree(d disagreement) {
	if x.runs++; len(x.run) < mostDisagreements {
		x.run = append(x.run, d)
	}
}

// settle decides who is wrong in the batches that disagreed: a batch that stands alone among others that agree, else
// the file.
func (x *epochFile) settle(follows bool) {
	if x.runs == 0 {
		return
	}
	first := x.run[0]
	entry := &x.entries[first.entry]
	f := Finding{Code: "leader-epoch-contradiction", Place: x.place(entry), logPos: -1, Count: 1,
		Message: fmt.Sprintf("epoch %d begins at offset %d by this file, but the batch of offsets %d–%d has epoch %d",
			entry.Epoch, entry.StartOffset, first.place.FirstOffset, first.place.LastOffset, first.epoch)}
	for _, d := range x.run {
		f.Related = append(f.Related, d.place)
	}
	var seg *segment
	if x.runs == 1 && !first.split && (x.agreed || follows) {
		covering := &x.entries[first.cover]
		seg = first.seg
		f.Place, f.logPos, f.Related = first.place, first.place.Pos, []Place{x.place(covering)}
		f.Message = fmt.Sprintf("the leader epoch is %d, but by the leader-epoch-checkpoint and the batches around it is "+
			"%d; the checksum leaves out this field", first.epoch, covering.Epoch)
		f.Evidence = []Evidence{{"leader epoch", itoa(int64(covering.Epoch)), itoa(int64(first.epoch))}}
	}
	x.p.found(seg, f)
	x.run, x.runs = x.run[:0], 0
}

func (x *epochFile) finish() {
	x.settle(false)
	if x.file == nil {
		x.missing()
		return
	}
	if len(x.entries) == 0 || !x.p.whole() {
		return
	}
	if start, ok := x.p.start(); ok && x.entries[0].StartOffset < start && x.p.inUse() && !x.p.tiered() {
		e := &x.entries[0]
		x.p.found(nil, Finding{Code: "leader-epoch-below-start", Place: x.place(e), logPos: -1, since: e.StartOffset,
			Message: fmt.Sprintf("epoch %d begins at offset %d, but the log begins at %d; a broker cuts this file when it "+
				"deletes a segment", e.Epoch, e.StartOffset, start)})
	}
	end, ok := x.p.end()
	for i := range x.entries {
		if e := &x.entries[i]; ok && e.StartOffset > end {
			place := x.place(e)
			place.FirstOffset, place.LastOffset = end, e.StartOffset-1
			x.p.found(nil, Finding{Code: "leader-epoch-beyond-end", Place: place, logPos: -1, since: end,
				Message: fmt.Sprintf("epoch %d begins at offset %d, but the log ends at %d", e.Epoch, e.StartOffset, end)})
			return
		}
	}
}

// missing reports that there is no file. Brokers before 0.11 did not write one.
func (x *epochFile) missing() {
	if !x.p.whole() || !x.p.inUse() || len(x.p.dir.All()) == 0 {
		return
	}
	f := Finding{Code: "leader-epoch-missing", Severity: Note,
		Place: inFile(x.p.path(format.KindLeaderEpochCheckpoint.Info().Name), -1, -1), logPos: -1,
		Message: "there is no such file; a follower cannot tell where its log leaves the leader's"}
	if parent := x.p.dir.Parent; parent != nil && x.epochs && x.p.driver.dirState(parent).withEpochs > 0 {
		f.Severity = Warning
		f.Message += ", and partitions beside this one have theirs"
	}
	x.p.found(nil, f)
}
