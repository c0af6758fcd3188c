package verify

import (
	"fmt"

	"kseg/format"
)

// checkOffsetIndex judges every .index by whether lookups through it find what is there. That it differs from what a
// broker would write today is a note: restarts, old versions and other intervals explain that.
var checkOffsetIndex = Check{
	Name:  "offset-index",
	Group: "indexes",
	Codes: []Code{
		{"index-missing", Warning, "a segment has no offset index"},
		{"index-invalid", Damage, "lookups through an offset index go wrong"},
		{"index-zero-slots", Damage, "the offset index of a closed segment ends in zeros"},
		{"index-stray-bytes", Warning, "an offset index is not a whole number of entries"},
		{"index-inexact", Note, "entries of an offset index that no broker since 4.0.1 writes"},
		{"index-sparse", Note, "an offset index is empty where others have entries"},
		{"index-differs-from-rebuild", Note, "an offset index that no interval explains"},
		{"index-stale", Note, "entries that were left in an index when the log was truncated"},
		{"log-end-missing", Damage, "a log ends before its indexes do"},
	},
	Follow: func(p *partition) follower { return &indexFollower{p: p} },
}

const offsetSlot = 8 // bytes

// mostSkipped bounds the bytes between two entries that can be believed: an interval and a large batch.
const mostSkipped = 4 << 20

// indexFollower is the follower of checkOffsetIndex.
type indexFollower struct {
	p         *partition
	file      string
	index     format.OffsetIndex
	check     *format.OffsetIndexCheck
	interval  *format.SegmentInterval
	inference format.IntervalInference
	empty     []emptyIndex
}

// emptyIndex is a segment whose index has no entries, and the largest distance between batches that it leaves without
// one.
type emptyIndex struct {
	seg   *segment
	file  string
	least int64
}

func (x *indexFollower) begin(seg *segment) {
	x.index = format.NewOffsetIndex(seg.index, seg.base)
	x.check = format.NewOffsetIndexCheck(x.index.Logical())
	x.interval = format.NewSegmentInterval(x.index)
}

func (x *indexFollower) batch(seg *segment, b *format.Batch) {
	if seg.index == nil {
		return // there is none to compare with
	}
	ref := b.Ref()
	x.check.Add(ref)
	x.interval.Add(ref)
}

func (x *indexFollower) skip(seg *segment, _, _ int64, b *format.Batch, nextOffset int64) {
	if b != nil && b.BaseOffset >= seg.nextOffset && (nextOffset < 0 || b.LastOffset < nextOffset) {
		x.batch(seg, b)
	}
}

func (x *indexFollower) end(seg *segment) {
	f := seg.dir.Index
	if f == nil {
		x.missing(seg)
		return
	}
	x.file = f.Rel
	if seg.index == nil {
		return // it could not be read
	}
	x.slots(seg)
	violation, bad := x.check.Finish()
	switch {
	case bad && x.stale(seg, violation.Slot):
		return
	case bad && x.beyond(seg):
	case bad:
		x.invalid(seg, violation)
		return
	case x.check.Inexact >= 0:
		n := x.check.Later + x.check.Earlier
		x.found(seg, "index-inexact", x.check.Inexact, 1, fmt.Sprintf("%s not hold the last offset of the batch at %s "+
			"position, as old "+
			"brokers write; lookups are right", plural(int64(n), "entry does", "entries do"), "the"), Evidence{})
		return
	}
	x.inference.Add(x.interval)
	switch least, most := x.interval.Least, x.interval.Most; {
	case x.interval.Entries == 0 && seg.batches > 1:
		x.empty = append(x.empty, emptyIndex{seg, x.file, least})
	case least > most:
		x.found(seg, "index-differs-from-rebuild", 0, 0, fmt.Sprintf("no index.interval.bytes explains the entries: %d "+
			"bytes were left without one, and %d got one; lookups are right", least, most+1), Evidence{})
	}
}

// slots looks at the end of the file: zero slots and stray bytes.
func (x *indexFollower) slots(seg *segment) {
	if n := x.index.ZeroTail(); n > 0 && seg.indexed() && x.p.inUse() {
		x.found(seg, "index-zero-slots", x.index.Len()-n, n, plural(int64(n), "slot at the end is", "slots at the end are")+
			" zero, which count as entries where a segment was closed", Evidence{})
	}
	if n := x.index.StrayBytes(); n > 0 {
		x.p.found(seg, Finding{Code: "index-stray-bytes", Place: inFile(x.file, int64(len(seg.index)-n), int64(n)),
			logPos:  -1,
			Message: plural(int64(n), "trailing byte", "trailing bytes") + " after the last whole entry"})
	}
}

// beyond reports whether the entries are right as far as the log goes, and show that it once went further.
func (x *indexFollower) beyond(seg *segment) bool {
	logical := x.index.Logical()
	n := logical.Len()
	last := logical.Entry(n - 1)
	if seg.last && x.p.stoppedAt(seg.nextOffset) || last.Offset < seg.nextOffset || int64(last.Position) < seg.end() ||
		!seg.last && seg.dir.Next.Base <= last.Offset {
		return false
	}
	head := n
	for head > 0 && logical.Entry(head-1).Offset >= seg.nextOffset && int64(logical.Entry(head-1).Position) >= seg.end() {
		head--
	}
	before := seg.end()
	for i := head; i < n; i++ {
		if at := int64(logical.Entry(i).Position); at-before > mostSkipped {
			return false
		} else {
			before = at
		}
	}
	if v, bad := x.check.Finish(); bad && v.Slot < head {
		return false
	}
	seg.beyond(last.Offset, Place{File: x.file, Pos: logical.Position(head), Len: int64(n-head) * offsetSlot,
		FirstOffset: logical.Entry(head).Offset, LastOffset: last.Offset})
	return true
}

func (x *indexFollower) invalid(seg *segment, v format.IndexViolation) {
	e := x.index.Entry(v.Slot)
	x.found(seg, "index-invalid", v.Slot, 1, fmt.Sprintf("entry %d (offset %d at byte %d) is wrong: %s; lookups that "+
		"use it go wrong", v.Slot, e.Offset,
		e.Position, v.Condition), Evidence{"entry", v.Condition.String(), fmt.Sprintf("offset %d, position %d", e.Offset,
		e.Position)})
}

// found reports n slots from the given one on.
func (x *indexFollower) found(seg *segment, code string, slot, n int, message string, evidence Evidence) {
	f := Finding{Code: code, Place: inFile(x.file, x.index.Position(slot), int64(n)*offsetSlot), Message: message,
		logPos: -1}
	if slot < x.index.Len() && n == 1 && code != "index-zero-slots" {
		f.FirstOffset, f.LastOffset = x.index.Entry(slot).Offset, x.index.Entry(slot).Offset
		f.logPos = int64(x.index.Entry(slot).Position)
	}
	if evidence.Name != "" {
		f.Evidence = []Evidence{evidence}
	}
	x.p.found(seg, f)
}

func (x *indexFollower) missing(seg *segment) {
	if x.p.alone != nil {
		return // only the log was asked about
	}
	f := Finding{Code: "index-missing", Place: inFile(seg.sibling(format.KindOffsetIndex), -1, -1), logPos: -1,
		Message: "the segment has no offset index"}
	if seg.last || seg.batches == 0 {
		f.Severity = Note
		f.Message = "the last segment has no offset index, which a broker makes when it first needs it"
	}
	x.p.found(seg, f)
}

func (x *indexFollower) finish() {
	_, most, ok := x.inference.Range()
	for _, e := range x.empty {
		if ok && e.least > most {
			x.file = e.file
			x.p.found(e.seg, Finding{Code: "index-sparse", Place: inFile(e.file, 0, 0), logPos: -1,
				Message: fmt.Sprintf("the index is empty, but by the interval of the partition's others (at most %d bytes) it "+
					"should have entries: the segment goes %d bytes without", most, e.least)})
		}
	}
}
