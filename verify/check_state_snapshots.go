package verify

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"sort"
	"strconv"

	"kseg/format"
	"kseg/logdir"
	"kseg/state"
)

// checkSnapshots looks at the producer snapshots: can they be read, and do they say what the log below their offset
// amounts to?
//
// The state that they are held against is the one that the pass keeps up anyway. It begins with nothing, or with the
// snapshot of the first segment; where bytes or offsets are missing it is not to be trusted, and begins anew with the
// next good snapshot.
var checkSnapshots = Check{
	Name:  "producer-snapshots",
	Group: "state",
	Codes: []Code{
		{"snapshot-corrupt", Warning, "a producer snapshot that a broker cannot read"},
		{"snapshot-content", Warning, "a producer snapshot contradicts the log"},
		{"snapshot-beyond-end", Damage, "a producer snapshot of an offset that the log does not reach"},
		{"snapshot-stray", Note, "a producer snapshot of an offset where no segment begins or ends"},
		{"snapshot-missing", Note, "a producer snapshot is not there"},
	},
	Follow: func(p *partition) follower { return newSnapshotFollower(p) },
}

// snapshotEntryBytes is the size of an entry of a producer snapshot.
const snapshotEntryBytes = 46

// snapshotFollower is the follower of checkSnapshots.
type snapshotFollower struct {
	passive
	p     *partition
	files state.ProducerSnapshots // those that the walk has not passed yet
	// reached is the offset after the batches seen, and unsure says that the producers' state may lack something that was
	// written before it.
	reached int64
	unsure  bool
	// broken: bytes were skipped, or offsets went back, so that even the batches that were seen may not be where they say.
	broken bool
	// begun is the offset from which on the producers' state is known from the log or a snapshot.
	begun   int64
	started bool
	// contents are contradictions that mean nothing if the log turns out to be compacted.
	contents []pending
	modern   bool // there are batches of magic 2, as there must be before anyone writes snapshots
	needed   []*segment
}

// pending is a finding about a segment, not made yet.
type pending struct {
	seg     *segment
	finding Finding
}

func newSnapshotFollower(p *partition) *snapshotFollower {
	p.snapshots = &snapshotFollower{p: p, files: state.ProducerSnapshotsOf(p.dir.Files)}
	return p.snapshots
}

// due reports whether a snapshot of that offset or one before comes next.
func (x *snapshotFollower) due(offset int64) bool {
	return len(x.files) > 0 && x.files[0].Offset <= offset
}

func (x *snapshotFollower) begin(seg *segment) {
	if !x.started {
		x.started, x.reached, x.begun = true, seg.base, seg.base
	}
	if seg.dir.Prev != nil && x.modern {
		x.needed = append(x.needed, seg)
	}
}

// before judges the snapshots of what was before a batch that the producers do not know yet.
func (x *snapshotFollower) before(seg *segment, b *format.Batch) {
	for x.due(b.BaseOffset) {
		x.judge(seg)
		x.files = x.files[1:]
	}
}

func (x *snapshotFollower) batch(_ *segment, b *format.Batch) {
	x.unsure = x.unsure || b.BaseOffset != x.reached
	x.broken = x.broken || b.BaseOffset < x.reached
	x.reached = b.NextOffset()
	x.modern = x.modern || !b.Legacy()
}

func (x *snapshotFollower) skip(*segment, int64, int64, *format.Batch, int64) {
	x.unsure, x.broken = true, true
}

// judge compares the next snapshot with the producers' state.
func (x *snapshotFollower) judge(seg *segment) {
	f := x.files[0].File
	gap := f.Name.Base > x.reached // there are offsets below it that the walk did not see
	snapshot, ok := x.decode(seg, f)
	if !ok || !x.usable(seg, f.Name.Base) {
		return
	}
	right := x.bounds(seg, f, &snapshot)
	if x.unsure || gap {
		if !x.broken {
			right = x.compareLater(seg, f, &snapshot) && right
		}
		if !right {
			return
		}
		x.restart(snapshot.Entries(), f.Name.Base)
		x.reached = f.Name.Base
		return
	}
	earlier := x.compare(seg, f, &snapshot)
	if len(earlier) > 0 {
		x.restart(joined(x.p.producers.Entries(), earlier), f.Name.Base)
	}
	x.p.startUnknown = false
}

// joined are all entries, those of more in place of those in entries.
func joined(entries, more []format.ProducerEntry) []format.ProducerEntry {
	of := map[int64]format.ProducerEntry{}
	for _, e := range more {
		of[e.ProducerID] = e
	}
	entries = slices.DeleteFunc(entries, func(e format.ProducerEntry) bool {
		_, ok := of[e.ProducerID]
		return ok
	})
	return append(entries, more...)
}

// decode reads a snapshot and reports what keeps a broker from reading it.
func (x *snapshotFollower) decode(seg *segment, f *logdir.File) (format.ProducerSnapshot, bool) {
	raw, ok := x.p.readSmall(f)
	if !ok {
		return format.ProducerSnapshot{}, false
	}
	snapshot, err := format.DecodeProducerSnapshot(raw)
	if err == nil && snapshot.StrayBytes() == 0 {
		return snapshot, true
	}
	finding := Finding{Code: "snapshot-corrupt", Place: inFile(f.Rel, 0, int64(len(raw))), logPos: -1}
	var at *format.Error
	if errors.As(err, &at) {
		finding.Pos, finding.Len = min(at.Pos, int64(len(raw))), -1
		finding.Message = format.ReasonOf(err)
		finding.Evidence = []Evidence{{at.What, at.Want, at.Got}}
	} else {
		n := int64(snapshot.StrayBytes())
		finding.Severity, finding.Pos, finding.Len = Note, int64(len(raw))-n, n
		finding.Message = plural(n, "trailing byte", "trailing bytes") + " after the last entry, within the checksum; a " +
			"broker ignores them"
	}
	x.p.found(seg, finding)
	return snapshot, err == nil
}

// usable reports whether a broker would read a snapshot of that offset, which the walk has come to in a segment: those
// where no segment begins are deleted, but for the newest after the last segment's beginning.
func (x *snapshotFollower) usable(seg *segment, offset int64) bool {
	segments := x.p.segments
	n := len(segments)
	floor := sort.Search(n, func(i int) bool { return segments[i].base > offset }) - 1
	begins := func(s *segment) bool { return s.base == offset || s.firstOffset == offset }
	if floor >= 0 && begins(segments[floor]) || begins(seg) {
		return true
	}
	return n > 0 && offset > segments[n-1].base && (len(x.files) == 1 || x.files[1].Offset > x.reached)
}

// restart makes the state of the producers that of the entries at the offset.
func (x *snapshotFollower) restart(entries []format.ProducerEntry, offset int64) {
	x.p.producers = format.LoadProducerState(entries, offset, math.MinInt64)
	x.begun, x.unsure, x.broken, x.p.startUnknown = offset, false, false, false
}

// bounds looks for offsets that a snapshot cannot know of. It is true if there are none.
func (x *snapshotFollower) bounds(seg *segment, f *logdir.File, s *format.ProducerSnapshot) bool {
	right := true
	for i := range s.Len() {
		if e := s.Entry(i); e.LastOffset >= f.Name.Base || e.CurrentTxnFirstOffset >= f.Name.Base {
			c := entryCheck{x: x, seg: seg, file: f, entry: e, index: i, pos: s.Position(i)}
			c.contradict(true, "below "+itoa(f.Name.Base), itoa(max(e.LastOffset, e.CurrentTxnFirstOffset)),
				"an offset that the snapshot does not reach")
			right = false
		}
	}
	return right
}

// compareLater looks for producers of which the log has a later batch than the snapshot, which must not be even where
// batches are missing in the log. It is true if there are none.
func (x *snapshotFollower) compareLater(seg *segment, f *logdir.File, s *format.ProducerSnapshot) bool {
	right := true
	for i := range s.Len() {
		e := s.Entry(i)
		if want, known := x.p.producers.Get(e.ProducerID); known && e.HasBatch() && e.LastOffset < want.LastOffset {
			c := entryCheck{x: x, seg: seg, file: f, entry: e, index: i, pos: s.Position(i)}
			c.compare(want)
			right = false
		}
	}
	return right
}

// compare holds a snapshot against the state before its offset. It returns the entries that know of something before
// the beginning of the log.
func (x *snapshotFollower) compare(seg *segment, f *logdir.File, s *format.ProducerSnapshot) []format.ProducerEntry {
	var earlier []format.ProducerEntry
	var open map[int64]bool
	for i := range s.Len() {
		e := s.Entry(i)
		if e.InTransaction() {
			if open == nil {
				open = map[int64]bool{}
			}
			open[e.ProducerID] = true
		}
		c := entryCheck{x: x, seg: seg, file: f, entry: e, index: i, pos: s.Position(i)}
		want, known := x.p.producers.Get(e.ProducerID)
		switch {
		case known && x.p.startUnknown:
			if c.compare(x.completed(want, e)) {
				earlier = append(earlier, e)
			}
		case known:
			c.compare(want)
		case x.p.startUnknown && e.LastOffset < x.begun:
			earlier = append(earlier, e)
		default:
			c.contradict(false, "no entry", "an entry", "a producer that is not in the log below")
		}
	}
	for _, e := range x.p.producers.Open() {
		if !open[e.ProducerID] {
			c := entryCheck{x: x, seg: seg, file: f, entry: e, index: -1, pos: -1}
			c.contradict(false, "an entry", "none", fmt.Sprintf("no transaction, though one is open since offset %d",
				e.CurrentTxnFirstOffset))
		}
	}
	return earlier
}

// completed adds to what the log says of a producer what it may have done before the log's beginning.
func (x *snapshotFollower) completed(want, e format.ProducerEntry) format.ProducerEntry {
	if want.CoordinatorEpoch == -1 {
		want.CoordinatorEpoch = e.CoordinatorEpoch
	}
	if !want.HasBatch() && e.LastOffset < x.begun {
		want.LastSequence, want.LastOffset, want.OffsetDelta = e.LastSequence, e.LastOffset, e.OffsetDelta
	}
	if want.InTransaction() && e.InTransaction() && e.CurrentTxnFirstOffset < x.begun {
		want.CurrentTxnFirstOffset = e.CurrentTxnFirstOffset
	}
	return want
}

// entryCheck is the comparison of one entry of a snapshot.
type entryCheck struct {
	x     *snapshotFollower
	seg   *segment
	file  *logdir.File
	entry format.ProducerEntry
	index int
	pos   int64
	// want is what the log says of the producer, if that is known.
	want  format.ProducerEntry
	known bool
}

// compare holds the entry against what the log says of its producer, and is true if they agree. A coordinator epoch of
// -1 is right where the producer was forgotten and came back.
func (c *entryCheck) compare(want format.ProducerEntry) bool {
	e := c.entry
	c.want, c.known = want, true
	if !e.HasBatch() {
		e.LastSequence, e.LastOffset, e.OffsetDelta = -1, -1, 0
	}
	if !e.InTransaction() {
		e.CurrentTxnFirstOffset = -1
	}
	if e.CoordinatorEpoch == -1 {
		e.CoordinatorEpoch = want.CoordinatorEpoch
	}
	for _, field := range []struct {
		name      string
		want, got int64
	}{
		{"last offset", want.LastOffset, e.LastOffset},
		{"last sequence", int64(want.LastSequence), int64(e.LastSequence)},
		{"producer epoch", int64(want.ProducerEpoch), int64(e.ProducerEpoch)},
		{"first offset of the open transaction", want.CurrentTxnFirstOffset, e.CurrentTxnFirstOffset},
		{"offset delta", int64(want.OffsetDelta), int64(e.OffsetDelta)},
		{"coordinator epoch", int64(want.CoordinatorEpoch), int64(e.CoordinatorEpoch)},
		{"timestamp", want.TimestampMs, e.TimestampMs},
	} {
		if field.want != field.got {
			// Where the cleaner takes records out of a batch, the largest timestamp goes with them.
			c.contradict(field.name != "timestamp", itoa(field.want), itoa(field.got),
				fmt.Sprintf("%s %d, where the log says %d", field.name, field.got, field.want))
			return false
		}
	}
	return true
}

// contradict notes a contradiction. It is certain if it holds for a compacted log too.
func (c *entryCheck) contradict(certain bool, wanted, got, what string) {
	e := c.entry
	f := Finding{Code: "snapshot-content", Place: inFile(c.file.Rel, c.pos, snapshotEntryBytes),
		Producer: new(e.ProducerID), logPos: -1,
		Message: fmt.Sprintf("the entry of producer %d says %s; a broker that loads it may refuse what the producer "+
			"sends, or take it twice", e.ProducerID, what)}
	if wanted != "" {
		f.Evidence = []Evidence{{"producer " + strconv.FormatInt(e.ProducerID, 10), wanted, got}}
	}
	if known := c.want.CurrentTxnFirstOffset; c.known && known != e.CurrentTxnFirstOffset {
		// a marker between them may be what differs
		f.from, f.until = max(0, min(known, e.CurrentTxnFirstOffset)), c.file.Name.Base
	}
	if c.index < 0 {
		f.Len = -1
		f.from, f.until = e.CurrentTxnFirstOffset, c.file.Name.Base // the marker that would end it is somewhere between
		f.Message = fmt.Sprintf("the snapshot has for producer %d %s; a broker that loads it would not know the transaction",
			e.ProducerID, what)
	}
	want, known := c.want, c.known
	if !known {
		want, known = c.x.p.producers.Get(e.ProducerID)
	}
	if known && want.HasBatch() {
		f.FirstOffset, f.LastOffset = want.FirstOffset(), want.LastOffset
	}
	if certain {
		c.x.p.found(c.seg, f)
		return
	}
	c.x.contents = append(c.x.contents, pending{c.seg, f})
}

// finish judges the snapshots after the last batch, and which of all are where they should be.
func (x *snapshotFollower) finish() {
	end, known := x.p.end()
	last := (*segment)(nil)
	if n := len(x.p.segments); n > 0 {
		last = x.p.segments[n-1]
	}
	for ; len(x.files) > 0; x.files = x.files[1:] {
		f := x.files[0].File
		if last != nil && (!known || f.Name.Base <= end) {
			x.judge(last)
		} else if snapshot, ok := x.decode(last, f); ok {
			x.bounds(last, f, &snapshot)
			if known && x.p.inUse() {
				x.beyond(last, f, end)
			}
		}
	}
	if !x.p.compacted {
		for _, c := range x.contents {
			x.p.found(c.seg, c.finding)
		}
	}
	if x.p.whole() && x.p.inUse() {
		x.stray(end)
		x.missing(end)
	}
}

// beyond reports a snapshot of an offset beyond the log end offset.
func (x *snapshotFollower) beyond(last *segment, f *logdir.File, end int64) {
	severity := x.p.lost(end)
	if x.p.stoppedAt(end) {
		severity = Warning
	}
	x.p.found(last, Finding{Code: "snapshot-beyond-end", Severity: severity, Place: Place{f.Rel, -1, -1, end,
		f.Name.Base - 1}, logPos: -1, since: end,
		Message: fmt.Sprintf("the snapshot was taken at offset %d, but the log ends at %d", f.Name.Base, end)})
}

// stray reports the snapshots where no segment begins, begun or could have begun.
func (x *snapshotFollower) stray(end int64) {
	at := map[int64]bool{end: true}
	for _, f := range x.p.dir.All() {
		if f.Kind().IsSegmentFile() && f.Name.HasBase {
			at[f.Name.Base] = true
		}
	}
	for _, s := range x.p.segments {
		at[s.firstOffset] = true
	}
	x.perhapsGone(at)
	gaps := map[int64]*Finding{}
	for _, f := range x.p.findings {
		if f.Code == "offset-gap" {
			at[f.FirstOffset], at[f.LastOffset+1] = true, true
			gaps[f.FirstOffset] = f
		}
	}
	x.goneSegments(gaps)
	for _, f := range x.p.dir.Files {
		if f.Name.Of(format.KindProducerSnapshot) && !at[f.Name.Base] && f.Name.Base < end {
			x.p.found(nil, Finding{Code: "snapshot-stray", Place: inFile(f.Rel, -1, -1), logPos: -1, from: f.Name.Base,
				until:   f.Name.Base + 1,
				Message: "no segment begins at this offset, and the log does not end there"})
		}
	}
}

// goneSegments: a snapshot at the beginning of a gap between two segments was taken when a segment began there. The
// cleaner deletes the snapshots of what it merges.
func (x *snapshotFollower) goneSegments(gaps map[int64]*Finding) {
	for _, f := range x.p.dir.Files {
		gap := gaps[f.Name.Base]
		if !f.Name.Of(format.KindProducerSnapshot) || gap == nil || gap.Pos != 0 || gap.Severity == Damage {
			continue
		}
		gap.Severity = Damage
		gap.Message += fmt.Sprintf("; a producer snapshot was taken at offset %d, where a segment began that is gone",
			gap.FirstOffset)
		gap.Related = append(gap.Related, inFile(f.Rel, -1, -1))
	}
}

// perhapsGone reports the snapshots of a compacted log that lie between the end of one segment and the beginning of the
// next: either a segment that began there is gone, or a broker stopped there, and what was before and behind was
// compacted away. The cleaner deletes the snapshots of what it merges.
func (x *snapshotFollower) perhapsGone(segments map[int64]bool) {
	if !x.p.compacted {
		return
	}
	i := 0
	for _, f := range x.p.dir.Files {
		if !f.Name.Of(format.KindProducerSnapshot) {
			continue
		}
		for i < len(x.p.segments) && x.p.segments[i].base <= f.Name.Base {
			i++
		}
		if i == 0 || i == len(x.p.segments) {
			continue
		}
		before, next := x.p.segments[i-1], x.p.segments[i]
		if f.Name.Base < before.nextOffset || before.base == f.Name.Base || before.damaged || segments[f.Name.Base] {
			continue
		}
		segments[f.Name.Base] = true
		x.p.found(next, Finding{Code: "snapshot-stray", Severity: Warning, Place: Place{f.Rel, -1, -1, f.Name.Base,
			next.base - 1},
			logPos: -1, from: f.Name.Base, until: f.Name.Base + 1,
			Message: fmt.Sprintf("the snapshot was taken at offset %d, and no batch is there up to %d, where the next segment "+
				"begins: a segment is gone, unless the broker stopped there and the log cleaner took the rest", f.Name.Base,
				next.base)})
	}
}

// missing reports the segments without a snapshot, all in one finding.
func (x *snapshotFollower) missing(end int64) {
	var names []Place
	first := int64(-1)
	offsets := state.ProducerSnapshotsOf(x.p.dir.Files).Offsets()
	has := func(offset int64) bool {
		_, ok := slices.BinarySearch(offsets, offset)
		return ok
	}
	lack := func(offset int64) {
		if len(names) == 0 {
			first = offset
		}
		names = append(names, inFile(x.p.path(format.SegmentFileName(offset, format.KindProducerSnapshot)), -1, -1))
	}
	for _, s := range x.needed {
		if !has(s.base) && !has(s.firstOffset) {
			lack(s.base)
		}
	}
	later := len(offsets) > 0 && offsets[len(offsets)-1] >= end
	if n := len(x.p.segments); n > 0 && x.modern && x.p.shutdown == cleanShutdown && end != x.p.segments[n-1].base &&
		!later {
		lack(end)
	}
	if len(names) == 0 {
		return
	}
	x.p.found(nil, Finding{Code: "snapshot-missing", Place: names[0], Related: names[1:min(len(names), 1+maxRelated)],
		Count: len(names), logPos: -1,
		from: first, until: first + 1,
		Message: "the log continues here, but the state of its producers was not kept; a broker that needs it reads more " +
			"of the log instead"})
}
