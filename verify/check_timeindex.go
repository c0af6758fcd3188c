package verify

import (
	"fmt"

	"kseg/format"
)

// checkTimeIndex judges every .timeindex by whether lookups by time and retention, which goes by its last entry, are
// right.
var checkTimeIndex = Check{
	Name:  "time-index",
	Group: "indexes",
	Codes: []Code{
		{"timeindex-missing", Warning, "a segment has no time index"},
		{"timeindex-invalid", Damage, "lookups through a time index go wrong"},
		{"timeindex-last-entry", Damage, "the last time of a closed segment is not its largest"},
		{"timeindex-zero-slots", Damage, "the time index of a closed segment ends in zeros"},
		{"timeindex-stray-bytes", Warning, "a time index is not a whole number of entries"},
		{"timeindex-inexact", Note, "entries of a time index that no broker since 4.0.1 writes"},
		{"timeindex-differs-from-rebuild", Note, "a time index that a rebuild would write otherwise"},
	},
	Follow: func(p *partition) follower { return &timeFollower{p: p} },
}

const timeSlot = 12 // bytes

// mostLost bounds how many offsets a time index can show to be lost after the last entry of the offset index.
const mostLost = 1 << 20

// timeFollower is the follower of checkTimeIndex.
type timeFollower struct {
	passive
	p       *partition
	file    string
	times   format.TimeIndex
	offsets format.OffsetIndex
	check   *format.TimeIndexCheck
	rebuilt timeRebuild
}

func (x *timeFollower) begin(seg *segment) {
	x.times = format.NewTimeIndex(seg.timeIndex, seg.base)
	x.offsets = format.NewOffsetIndex(seg.index, seg.base).Logical()
	x.check = format.NewTimeIndexCheck(x.times.Logical(), x.offsets)
	x.rebuilt = timeRebuild{times: x.times.Logical(), offsets: x.offsets, largest: format.TimeEntry{TimestampMs: -1,
		Offset: seg.base},
		last: -1, same: true}
}

func (x *timeFollower) batch(seg *segment, b *format.Batch) {
	if seg.timeIndex == nil {
		return // there is none to compare with
	}
	ref := b.Ref()
	x.check.Add(ref)
	x.rebuilt.add(ref)
}

func (x *timeFollower) skip(seg *segment, _, _ int64, b *format.Batch, nextOffset int64) {
	if b != nil && b.BaseOffset >= seg.nextOffset && (nextOffset < 0 || b.LastOffset < nextOffset) {
		ref := b.Ref()
		if x.times.Logical().Lookup(b.MaxTimestamp) != (format.TimeEntry{TimestampMs: b.MaxTimestamp, Offset: b.LastOffset}) {
			ref.MaxTimestampMs = -1 // nothing vouches for it
		}
		x.check.Add(ref)
		x.rebuilt.add(ref)
	}
}

// final reports whether the index must have its closing entry. That of a last segment is written by a clean stop, but
// not for the metadata log.
func (x *timeFollower) final(seg *segment) bool {
	return x.p.inUse() && !seg.legacyOnly && (seg.closed() || x.p.shutdown == cleanShutdown &&
		!x.p.dir.IsClusterMetadata())
}

func (x *timeFollower) end(seg *segment) {
	f := seg.dir.TimeIndex
	if f == nil {
		x.missing(seg)
		return
	}
	x.file = f.Rel
	if seg.timeIndex == nil {
		return // it could not be read
	}
	if n := x.times.StrayBytes(); n > 0 {
		x.p.found(seg, Finding{Code: "timeindex-stray-bytes", Place: inFile(x.file, int64(len(seg.timeIndex)-n), int64(n)),
			logPos:  -1,
			Message: plural(int64(n), "trailing byte", "trailing bytes") + " after the last whole entry"})
	}
	if n := x.times.Len() - x.times.Logical().Len(); n > 0 && seg.indexed() && x.p.inUse() {
		x.found(seg, "timeindex-zero-slots", x.times.Len()-n, n, plural(int64(n), "slot at the end is",
			"slots at the end are")+" zero, which count as entries of 1970 where a segment was closed")
		return
	}
	violation, bad := x.check.Finish()
	switch {
	case bad && x.stale(seg, violation):
		return
	case bad && x.beyond(seg):
	case bad:
		if violation.Condition == format.IndexTimeNotIncreasing && x.check.Inexact == violation.Slot-1 {
			violation.Slot-- // the log knows that entry no more than the one after does
		}
		e := x.times.Entry(violation.Slot)
		x.found(seg, "timeindex-invalid", violation.Slot, 1, fmt.Sprintf("entry %d (%s, offset %d) is wrong: %s",
			violation.Slot, instant(e.TimestampMs), e.Offset, violation.Condition))
	case x.final(seg) && !x.check.LastIsLargest():
		x.lastEntry(seg)
	case x.check.Inexact >= 0:
		x.found(seg, "timeindex-inexact", x.check.Inexact, 1, "no batch ends at the offset and is the first to reach the "+
			"timestamp, as old brokers write; lookups are right")
	case seg.dir.Index != nil && seg.index == nil: // it could not be read, and says what a rebuild would do
	case !x.rebuilt.finish(x.final(seg)):
		x.found(seg, "timeindex-differs-from-rebuild", 0, 0, "a rebuild would write other entries: a restart explains it; "+
			"lookups are right")
	}
}

// lastEntry: the last entry is not the largest timestamp of the segment.
func (x *timeFollower) lastEntry(seg *segment) {
	logical := x.times.Logical()
	n := logical.Len()
	if n == 0 {
		x.found(seg, "timeindex-last-entry", 0, 0, fmt.Sprintf("the time index is empty, but the segment's largest "+
			"timestamp is %s; retention uses the file's modification time instead", instant(x.check.LargestMs)))
		return
	}
	last := logical.Entry(n - 1)
	x.found(seg, "timeindex-last-entry", n-1, 1, fmt.Sprintf("the last entry says %s, but the segment's largest "+
		"timestamp is %s; retention and "+
		"lookups of the segment use the last entry", instant(last.TimestampMs), instant(x.check.LargestMs)))
}

// beyond reports whether the entries are right as far as the log goes, and show that it once went further.
func (x *timeFollower) beyond(seg *segment) bool {
	logical := x.times.Logical()
	n := logical.Len()
	last := logical.Entry(n - 1).Offset
	if seg.last && x.p.stoppedAt(seg.nextOffset) || last < seg.nextOffset || last > max(seg.nextOffset, seg.reached)+
		mostLost || !seg.last && seg.dir.Next.Base <= last {
		return false
	}
	head := n
	for head > 0 && logical.Entry(head-1).Offset >= seg.nextOffset {
		head--
	}
	if v, bad := x.check.Finish(); bad && v.Slot < head {
		return false
	}
	seg.beyond(last, Place{File: x.file, Pos: logical.Position(head), Len: int64(n-head) * timeSlot,
		FirstOffset: logical.Entry(head).Offset, LastOffset: last})
	return true
}

func (x *timeFollower) found(seg *segment, code string, slot, n int, message string) {
	f := Finding{Code: code, Place: inFile(x.file, x.times.Position(slot), int64(n)*timeSlot), Message: message,
		logPos: -1}
	if slot < x.times.Len() && n == 1 && code != "timeindex-zero-slots" {
		e := x.times.Entry(slot)
		f.FirstOffset, f.LastOffset = e.Offset, e.Offset
		f.Evidence = []Evidence{{"entry", "", fmt.Sprintf("timestamp %d, offset %d", e.TimestampMs, e.Offset)}}
	}
	x.p.found(seg, f)
}

func (x *timeFollower) missing(seg *segment) {
	if seg.maxTimestamp < 0 || x.p.alone != nil {
		return
	}
	f := Finding{Code: "timeindex-missing", Place: inFile(seg.sibling(format.KindTimeIndex), -1, -1), logPos: -1,
		Message: "the segment has no time index; with an empty one retention uses the file's modification time"}
	if seg.last {
		f.Severity = Note
		f.Message = "the last segment has no time index, which a broker makes when it first needs it"
	}
	x.p.found(seg, f)
}

// timeRebuild tells whether the time index is what a rebuild would write, given the batches that the offset index has
// entries for: one entry with each of these if the largest timestamp rose, and one at the end.
type timeRebuild struct {
	times      format.TimeIndex
	offsets    format.OffsetIndex
	next, slot int // the next entry of each index
	largest    format.TimeEntry
	last       int64 // timestamp of the last entry
	same       bool
}

func (r *timeRebuild) add(b format.BatchRef) {
	if b.MaxTimestampMs > r.largest.TimestampMs {
		r.largest = format.TimeEntry{TimestampMs: b.MaxTimestampMs, Offset: b.LastOffset}
	}
	for r.slot < r.offsets.Len() && int64(r.offsets.Entry(r.slot).Position) < b.Pos {
		r.slot++
	}
	if r.slot < r.offsets.Len() && int64(r.offsets.Entry(r.slot).Position) == b.Pos {
		r.append()
	}
}

func (r *timeRebuild) append() {
	if r.largest.TimestampMs <= r.last {
		return
	}
	r.last = r.largest.TimestampMs
	if r.next >= r.times.Len() || r.times.Entry(r.next) != r.largest {
		r.same = false
		return
	}
	r.next++
}

// finish reports whether the index is the same; closed means that it must have its closing entry.
func (r *timeRebuild) finish(closed bool) bool {
	if closed || r.next < r.times.Len() {
		r.append()
	}
	return r.same && r.next == r.times.Len()
}
