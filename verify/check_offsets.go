package verify

import (
	"fmt"
	"math"
	"slices"

	"kseg/format"
	"kseg/logdir"
)

// checkOffsets looks at the offsets from batch to batch and from segment to segment. A batch that does not fit is held
// back until the next one is seen: neighbours on both sides often prove which of two batches is wrong, and how.
var checkOffsets = Check{
	Name:  "offsets",
	Group: "offsets",
	Codes: []Code{
		{"batch-base-offset", Damage, "the base offset of a batch is wrong"},
		{"batch-last-offset", Damage, "the last offset of a batch is wrong"},
		{"batch-repeated", Damage, "a batch is in the log twice"},
		{"offset-order", Damage, "offsets go back"},
		{"offset-overflow", Damage, "an offset is too far from its segment's base offset"},
		{"offset-gap", Damage, "offsets are missing"},
		{"segment-name", Damage, "a segment's name is not its first offset"},
		{"segment-overlap", Damage, "two segments hold the same offsets"},
	},
	Follow: func(p *partition) follower { return &offsetOrder{p: p} },
}

// placed is what the order of offsets needs to know of a batch after its bytes are gone.
type placed struct {
	seg        *segment
	pos, size  int64
	base, next int64
	count      int32
	crc        uint32
	// vague: a compressed message whose records were not read; only its last offset is known.
	vague bool
}

// tooFar reports whether the last offset is above what the indexes of the segment can hold
// (LogSegment.canConvertToRelativeOffset).
func (b *placed) tooFar() bool { return b.next-1-b.seg.base > math.MaxInt32 }

func (b *placed) length() int64 { return b.next - b.base }

// counted is the offset after b if its records have offsets that run on.
func (b *placed) counted() int64 { return b.base + int64(b.count) }

func (b *placed) place() Place { return b.seg.place(b.pos, b.size, b.base, b.next-1) }

// same reports whether two batches are copies of each other.
func (b *placed) same(o *placed) bool {
	return b.base == o.base && b.next == o.next && b.crc == o.crc && b.size == o.size
}

// offsetOrder is the follower of checkOffsets.
type offsetOrder struct {
	p       *partition
	prev    placed // the last batch that was accepted
	started bool   // there is a prev
	pending placed // the batch that does not fit after prev, until the next one is known
	waiting bool
	// unsure: bytes were skipped after prev, so that a gap is explained.
	unsure bool
	// The last damage ends at byte damagedTo of this segment.
	damaged   *segment
	damagedTo int64
	// shaky: prev is the first batch after damage, which may have reached into its base offset.
	shaky bool
	// high is the offset after the highest one seen; while prev.next is below it the log is in a stretch that went back.
	high int64
	// crossing is the first batch that reaches into the next segment's offsets, expected the offset that should have come
	// in its place.
	crossing placed
	expected int64
	crosses  bool
	// outlier is the last batch that stood ahead of both neighbours; missing is the offset that should have come in its
	// place.
	outlier        placed
	missing        int64
	outlierFinding *Finding
	// visible is a finding in a compacted log about the batch visibleAt, unless what follows shows that doubted is wrong.
	visible            *Finding
	visibleAt, doubted placed
	// stretch is the finding about offsets that went back, as long as they have not caught up.
	stretch *Finding
	// emptied is the last segment without batches since prev, emptiedFirst the first of those in a row.
	emptied, emptiedFirst *segment
}

func (o *offsetOrder) begin(seg *segment) {
	if o.started && o.prev.seg.dir != seg.dir.Prev && !(o.emptied != nil && o.emptied.dir == seg.dir.Prev) {
		// A segment in between was left out, by the user or since it could not be read.
		o.settle(nil)
		o.started, o.unsure, o.crosses = false, false, false
	}
}

func (o *offsetOrder) batch(seg *segment, b *format.Batch) {
	if o.visible != nil {
		o.confirm(b)
	}
	if o.started && !o.waiting && b.BaseOffset == o.prev.next && o.prev.seg == seg && o.prev.next >= o.high {
		// The hot path: the batch follows the one before.
		p := &o.prev
		p.pos, p.size, p.base, p.next, p.count, p.crc = b.Pos, b.Size(), b.BaseOffset, b.NextOffset(), b.Count, b.CRC
		p.vague = b.Legacy() && b.Count < 0
		o.high, o.shaky = o.prev.next, false
		if o.prev.tooFar() || !seg.last && !o.crosses && o.prev.next > seg.dir.Next.Base {
			o.accept(o.prev)
		}
		return
	}
	next := placed{seg, b.Pos, b.Size(), b.BaseOffset, b.NextOffset(), b.Count, b.CRC, b.Legacy() && b.Count < 0}
	if o.waiting {
		o.settle(&next)
	}
	o.take(next)
}

func (o *offsetOrder) skip(seg *segment, pos, n int64, _ *format.Batch, _ int64) {
	o.settle(nil)
	o.unsure, o.damaged, o.damagedTo = true, seg, pos+n
}

func (o *offsetOrder) end(seg *segment) {
	if seg.firstOffset < 0 && seg.tail == nil {
		if o.emptied == nil || o.emptied.dir != seg.dir.Prev {
			o.emptiedFirst = seg
		}
		o.emptied = seg
	}
}

func (o *offsetOrder) finish() {
	o.settle(nil)
	b := &o.prev
	if o.started && b.seg.last && !o.ends(*b, b.next) && o.ends(*b, b.counted()) && b.counted() < b.next {
		o.wrongLast(*b, b.counted(), nil)
	}
}

// take decides whether a batch fits after the one before, or must wait for the next.
func (o *offsetOrder) take(b placed) {
	first := !o.started || o.prev.seg != b.seg
	switch {
	case first && b.base < b.seg.base, first && b.base > b.seg.base && b.pos == 0 && !b.vague && !o.unsure:
		o.wait(b)
	case !o.started:
		if o.emptied != nil && o.emptied.dir == b.seg.dir.Prev {
			o.gap(o.emptiedFirst.base, b)
		}
		o.accept(b)
	case first:
		o.cross(b)
	case o.prev.next < o.high && b.base >= o.prev.next && b.base < o.high:
		// Still in the stretch that went back, which was reported.
		o.accept(b)
		if o.stretch != nil && o.stretch.File == b.seg.log.Rel {
			o.stretch.Len = b.pos + b.size - o.stretch.Pos
			o.stretch.LastOffset = max(o.stretch.LastOffset, b.next-1)
		}
	case b.base == o.prev.next, b.base == o.high, b.vague && b.base > o.prev.next:
		o.accept(b)
	default:
		o.wait(b)
	}
}

func (o *offsetOrder) wait(b placed) { o.pending, o.waiting = b, true }

// accept makes b the last batch.
func (o *offsetOrder) accept(b placed) {
	if b.tooFar() {
		o.found(b, Finding{Code: "offset-overflow", Place: b.place(),
			Message: fmt.Sprintf("offset %d is 2^31 or more above the segment's base offset %d, which its indexes cannot hold",
				b.next-1, b.seg.base)})
	}
	if next := b.seg.dir.Next; next != nil && b.next > next.Base && !o.crosses {
		o.crossing, o.crosses, o.expected = b, true, b.seg.base
		if o.started && o.prev.seg == b.seg && !o.unsure {
			o.expected = min(b.base, o.prev.next)
		}
	}
	o.shaky = o.unsure && o.damaged == b.seg && o.damagedTo == b.pos
	o.prev, o.started, o.unsure, o.emptied = b, true, false, nil
	o.high = max(o.high, b.next)
}

// cross compares the first batch of a segment with the last of the segment before, and accepts it.
func (o *offsetOrder) cross(b placed) {
	crossing, crosses := o.crossing, o.crosses
	o.crosses = false
	end := max(o.prev.next, o.high)
	switch {
	case o.unsure && b.pos > 0:
		// The beginning of the segment is damaged, which was reported.
	case b.seg.base >= end:
		if b.base > end && !b.vague && !o.unsure {
			o.gap(end, b)
		}
	case b.base == end && !(crosses && o.p.compacted):
		o.misnamed(b)
	case crosses && crossing.pos == o.prev.pos && crossing.seg == o.prev.seg && crossing.counted() == b.base &&
		(!o.p.compacted || crossing.base == o.expected):
		o.wrongLast(crossing, b.base, &b)
	case crosses:
		o.found(crossing, Finding{Code: "segment-overlap", from: o.expected, until: max(crossing.next, o.prev.next),
			Place: crossing.seg.place(crossing.pos, crossing.seg.size-crossing.pos, crossing.base, o.prev.next-1),
			Message: fmt.Sprintf("offsets from %d on are in this segment and in the next one, which begins at %d; brokers "+
				"read them from the next one", max(crossing.base, b.seg.base), b.seg.base),
			Related: []Place{b.place()}})
	}
	o.accept(b)
}

// settle decides about the batch that waits, now that the next one is known, or that there is none.
func (o *offsetOrder) settle(next *placed) {
	if !o.waiting {
		return
	}
	o.waiting = false
	c := o.pending
	if next != nil && next.seg != c.seg {
		next = nil
	}
	switch first := !o.started || o.prev.seg != c.seg; {
	case first && c.base < c.seg.base:
		o.settleFirst(c, next)
	case first:
		o.settleAhead(c, c.seg.base, next)
	case c.base > o.prev.next:
		o.settleAhead(c, o.prev.next, next)
	default:
		o.settleBack(c, next)
	}
}

// settleFirst: c, the first batch of its segment, is below the segment's base offset.
func (o *offsetOrder) settleFirst(c placed, next *placed) {
	end := c.seg.base + c.length()
	if next != nil && next.base == end || next == nil && o.ends(c, end) {
		o.wrongBase(c, c.seg.base, next)
		return
	}
	o.misnamed(c)
	o.crosses = false
	o.accept(c)
}

// misnamed: the name of b's segment is not the offset that it begins with.
func (o *offsetOrder) misnamed(b placed) {
	why := ""
	if o.started && o.prev.next == b.base {
		why = ", where the segment before ends"
	}
	o.found(b, Finding{Code: "segment-name", Place: b.place(), from: min(b.base, b.seg.base),
		until: max(b.next, b.seg.base+1),
		Message: fmt.Sprintf("the segment is named %d, but begins at offset %d%s; lookups near its beginning go wrong",
			b.seg.base, b.base, why),
		Evidence: []Evidence{{"base offset in the name", itoa(b.base), itoa(b.seg.base)}}})
}

// settleAhead: c begins after the offset that should have come.
func (o *offsetOrder) settleAhead(c placed, want int64, next *placed) {
	switch {
	case next == nil && (o.ends(c, want+c.length()) || c.base-want > math.MaxInt32):
		o.wrongBase(c, want, nil)
	case next == nil || next.base >= c.next || next.base < want || c.same(next):
		o.ahead(c, want)
	case next.base == want+c.length(), o.unsure && next.base > want+c.length():
		o.wrongBase(c, next.base-c.length(), next)
	case next.base == want && next.next == c.base:
		o.found(c, Finding{Code: "offset-order", Place: next.place(), from: next.base, until: c.next,
			Message: fmt.Sprintf("the batches %d–%d and %d–%d stand in the wrong order", next.base, next.next-1, c.base,
				c.next-1),
			Related: []Place{c.place()}})
		o.accept(c)
		o.prev.next = next.base // so that the next one, which comes now, is taken as it is
	case c.count > 0 && next.base > c.base && next.base >= c.counted():
		o.wrongLast(c, next.base, next)
		c.next = next.base
		o.accept(c)
	case o.p.compacted && c.base-want <= math.MaxInt32:
		// Offsets are missing everywhere, so that c may be right and the next one wrong. The one after that will tell.
		o.visible = o.found(c, Finding{Code: "offset-order", Place: next.place(), from: want, until: c.next,
			Message: fmt.Sprintf("offsets go back from %d to %d", c.next-1, next.base),
			Related: []Place{c.place()}})
		o.visibleAt, o.doubted = *next, c
		c.base, c.next = want, next.base
		o.accept(c)
	default:
		o.outlierFinding = o.found(c, Finding{Code: "offset-order", Place: c.place(), from: want, until: c.next,
			Message: fmt.Sprintf("the batch begins at offset %d, but offset %d should come here, and the next batch "+
				"begins at %d", c.base, want, next.base),
			Related: []Place{next.place()}})
		o.outlier, o.missing = c, want
		c.base, c.next = want, next.base
		o.accept(c)
	}
}

// confirm looks at the batch after one whose offsets went back: if it is below the one before too, that one was too
// high.
func (o *offsetOrder) confirm(b *format.Batch) {
	if b.Pos == o.visibleAt.pos {
		return
	}
	if b.BaseOffset >= o.visibleAt.next && b.BaseOffset < o.doubted.next {
		f := o.visible
		f.Place, f.Related = o.doubted.place(), []Place{o.visibleAt.place()}
		f.Message = fmt.Sprintf("the batch begins at offset %d, but those after it at %d and %d", o.doubted.base,
			o.visibleAt.base, b.BaseOffset)
	}
	o.visible = nil
}

// ends reports whether a witness says that the log ended at the offset after c: the name of the next segment, or a
// producer snapshot that was taken there.
func (o *offsetOrder) ends(c placed, offset int64) bool {
	if next := c.seg.dir.Next; next != nil {
		return next.Base == offset
	}
	return slices.ContainsFunc(o.p.dir.All(), func(f *logdir.File) bool {
		return f.Name.Of(format.KindProducerSnapshot) && f.Name.Base == offset
	})
}

// ahead: offsets are missing before c.
func (o *offsetOrder) ahead(c placed, want int64) {
	switch {
	case o.started && o.prev.seg != c.seg:
		o.cross(c)
		return
	case o.unsure:
	case o.shaky && !o.p.compacted:
		o.wrongBase(o.prev, c.base-o.prev.length(), &c)
	case o.started || c.pos == 0:
		o.gap(want, c)
	}
	o.accept(c)
}

// settleBack: c begins at or below an offset that the log had already.
func (o *offsetOrder) settleBack(c placed, next *placed) {
	want := o.prev.next
	prev := o.prev
	switch {
	case o.outlierFinding != nil && c.base == o.missing:
		o.exchanged(c)
	case c.same(&prev):
		o.found(c, Finding{Code: "batch-repeated", Place: c.place(), Message: "the batch is a copy of the one before; " +
			"consumers get its records twice",
			Related: []Place{prev.place()}})
	case next == nil && !c.same(&prev) && o.ends(c, want+c.length()):
		o.wrongBase(c, want, nil)
	case next != nil && (next.base == want+c.length() || o.unsure && next.base > want+c.length()):
		o.wrongBase(c, next.base-c.length(), next)
	case c.base == prev.counted() && int64(prev.count) != prev.length():
		o.wrongLast(prev, c.base, &c)
		o.high = c.base
		o.accept(c)
	default:
		o.stretch = o.found(c, Finding{Code: "offset-order", Place: c.place(), from: max(0, min(c.base, want)),
			until:    max(c.next, want+c.length()),
			Message:  fmt.Sprintf("offsets go back from %d to %d", want-1, c.base),
			Evidence: []Evidence{{"base offset", itoa(want) + " or more", itoa(c.base)}},
			Related:  []Place{prev.place()}})
		if next == nil || next.base != want {
			o.accept(c)
		}
	}
}

// exchanged: c is what is missing where the outlier stands, so the two have changed places.
func (o *offsetOrder) exchanged(c placed) {
	f := o.outlierFinding
	f.Code, f.Evidence = "offset-order", nil
	f.Place = o.outlier.place()
	f.Message = fmt.Sprintf("the batches %d–%d and %d–%d have changed places", o.outlier.base, o.outlier.next-1, c.base,
		c.next-1)
	f.Related = []Place{c.place()}
	f.until = max(f.until, o.prev.next+1)
	o.outlierFinding = nil
	if o.outlier.base == o.prev.next {
		o.prev.next = o.outlier.next
		o.high = max(o.high, o.prev.next)
	}
}

// wrongLast: b ends where its count says, since what follows begins there: next, or if that is nil, a snapshot.
func (o *offsetOrder) wrongLast(b placed, end int64, next *placed) {
	f := Finding{Code: "batch-last-offset", Place: b.seg.place(b.pos, b.size, b.base, end-1), from: b.base,
		until:    max(b.next, end),
		Message:  fmt.Sprintf("the batch ends at offset %d by its header, but has %d records and ", b.next-1, b.count),
		Evidence: []Evidence{{"last offset", itoa(end - 1), itoa(b.next - 1)}}}
	if next != nil {
		f.Message += fmt.Sprintf("the next one begins at %d", end)
		f.Related = []Place{next.place()}
	} else {
		f.Message += fmt.Sprintf("a producer snapshot was taken at %d", end)
	}
	o.found(b, f)
}

// wrongBase: the batches on both sides leave room for c at another offset than it says. next is nil if it is the last
// batch.
func (o *offsetOrder) wrongBase(c placed, want int64, next *placed) {
	var related []Place
	if next != nil {
		related = []Place{next.place()}
	}
	o.outlierFinding = o.found(c, Finding{Code: "batch-base-offset", Place: c.seg.place(c.pos, c.size, want,
		want+c.length()-1),
		from: max(0, min(want, c.base)), until: max(want+c.length(), c.next),
		Message: fmt.Sprintf("the base offset is %d, but what comes before and after leaves just %d–%d for these records; "+
			"the checksum leaves out this field", c.base, want, want+c.length()-1),
		Evidence: []Evidence{{"base offset", itoa(want), itoa(c.base)}},
		Related:  related})
	o.outlier, o.missing = c, want
	c.base, c.next = want, want+c.length()
	o.accept(c)
}

// gap: the offsets from want up to b are missing. Where the index of a segment shows that its log once reached further,
// the place is where that log ends now.
func (o *offsetOrder) gap(want int64, b placed) {
	f := Finding{Code: "offset-gap", Place: b.place(), Evidence: []Evidence{{"base offset", itoa(want), itoa(b.base)}},
		Message: plural(b.base-want, "offset is", "offsets are") +
			fmt.Sprintf(" missing before offset %d, and nothing shows that the log cleaner took them", b.base)}
	var short *segment
	switch {
	case o.emptied != nil && o.emptied.base == want:
		short = o.emptied
	case o.started && o.prev.seg != b.seg && o.prev.seg.cut:
		short = o.prev.seg
	}
	if short != nil {
		f.Place, f.Related = short.place(short.size, 0, 0, 0), append([]Place{b.place()}, short.witnesses...)
		if short.cut {
			f.Message += fmt.Sprintf("; the index of the segment reaches offset %d", short.reached)
		}
	}
	f.FirstOffset, f.LastOffset = want, b.base-1
	if short == nil && o.started && o.prev.seg != b.seg && o.emptied == nil {
		end := &o.prev
		f.Related = append(f.Related, end.seg.place(end.pos+end.size, 0, want, b.base-1))
	}
	if short == nil && o.p.perhapsCompacted(want) {
		f.Severity = Warning
		f.Message += ", but no key comes twice before, as in a compacted topic"
	}
	o.found(b, f)
}

func (o *offsetOrder) found(b placed, f Finding) *Finding {
	f.logPos = b.pos
	return o.p.found(b.seg, f)
}
