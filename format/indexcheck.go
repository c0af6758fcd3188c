package format

// IndexCondition names the rule that an index entry breaks, so that some lookup through the index goes wrong.
type IndexCondition uint8

// The conditions. Missing entries break none: an empty index is only slow.
const (
	IndexSound                 IndexCondition = iota
	IndexOffsetNotIncreasing                  // offset index: the offset is not above the entry's before
	IndexPositionNotIncreasing                // offset index: the position is not above the entry's before
	IndexOffsetBelowBase                      // the offset is below the segment's base offset
	IndexPositionNoBatch                      // offset index: no batch starts at the position
	// offset index: an earlier batch holds the offset or a higher one, which lookups then skip
	IndexOffsetTooLow
	IndexOffsetBeyondEnd      // the offset is above the segment's last one
	IndexTimeNotIncreasing    // time index: the timestamp is not above the entry's before
	IndexTimeOffsetDecreasing // time index: the offset is below the entry's before
	IndexTimeNegative         // time index: the timestamp is below 0
	IndexTimeSkipsBatch       // time index: a batch before the entry's position already reaches the timestamp
)

// String says what is wrong, in a few words.
func (c IndexCondition) String() string {
	switch c {
	case IndexSound:
		return "sound"
	case IndexOffsetNotIncreasing:
		return "offset not above the one before"
	case IndexPositionNotIncreasing:
		return "position not above the one before"
	case IndexOffsetBelowBase:
		return "offset below the base offset"
	case IndexPositionNoBatch:
		return "no batch starts at the position"
	case IndexOffsetTooLow:
		return "offset held by an earlier batch"
	case IndexOffsetBeyondEnd:
		return "offset beyond the last one of the segment"
	case IndexTimeNotIncreasing:
		return "timestamp not above the one before"
	case IndexTimeOffsetDecreasing:
		return "offset below the one before"
	case IndexTimeNegative:
		return "timestamp below 0"
	default:
		return "an earlier batch reaches the timestamp"
	}
}

// IndexViolation is the first entry of an index that breaks a condition, and which.
type IndexViolation struct {
	Slot      int
	Condition IndexCondition
}

// earlier keeps the violation with the lower slot; on a tie the first one.
func (v *IndexViolation) earlier(slot int, c IndexCondition) {
	if v.Condition == IndexSound || slot < v.Slot {
		*v = IndexViolation{slot, c}
	}
}

// OffsetIndexCheck tells whether every lookup through an offset index finds what a scan of the log would. Fed with the
// batches of the segment in order it takes time linear in batches and entries, and no memory.
type OffsetIndexCheck struct {
	// Exact counts the entries that hold the last offset of the batch at their position, as brokers since 4.0.1 write
	// them. Later counts those with a higher one, which brokers up to 4.0.0 wrote for appends of several batches; Earlier
	// those with a lower one, as brokers before 0.11 wrote the first offset of an append. Meaningful after Finish.
	Exact, Later, Earlier int
	// Inexact is the first slot that is not Exact, or −1.
	Inexact int

	x       OffsetIndex
	ordered int // entries before the first that breaks the order
	next    int // the first entry whose position has not been reached
	highest int64
	started bool
	bad     IndexViolation
}

// NewOffsetIndexCheck starts a check of all slots of x; of x.Logical() if trailing zeros are no fault.
func NewOffsetIndexCheck(x OffsetIndex) *OffsetIndexCheck {
	c := &OffsetIndexCheck{x: x, Inexact: -1}
	var before OffsetEntry
	for ; c.ordered < x.Len(); c.ordered++ {
		e := x.Entry(c.ordered)
		switch {
		case e.Offset < x.base:
			c.bad.earlier(c.ordered, IndexOffsetBelowBase)
		case c.ordered > 0 && e.Offset <= before.Offset:
			c.bad.earlier(c.ordered, IndexOffsetNotIncreasing)
		case c.ordered > 0 && e.Position <= before.Position:
			c.bad.earlier(c.ordered, IndexPositionNotIncreasing)
		}
		if c.bad.Condition != IndexSound {
			break
		}
		before = e
	}
	return c
}

// Add takes the next batch of the segment.
func (c *OffsetIndexCheck) Add(b BatchRef) {
	for c.next < c.ordered {
		e := c.x.Entry(c.next)
		if int64(e.Position) > b.Pos {
			break
		}
		if int64(e.Position) < b.Pos {
			c.bad.earlier(c.next, IndexPositionNoBatch)
		} else {
			c.meet(e, b)
		}
		c.next++
	}
	if !c.started || b.LastOffset > c.highest {
		c.highest, c.started = b.LastOffset, true
	}
}

// meet holds the next entry against the batch at its position.
func (c *OffsetIndexCheck) meet(e OffsetEntry, b BatchRef) {
	if c.started && e.Offset <= c.highest {
		c.bad.earlier(c.next, IndexOffsetTooLow)
	}
	switch {
	case e.Offset == b.LastOffset:
		c.Exact++
		return
	case e.Offset > b.LastOffset:
		c.Later++
	default:
		c.Earlier++
	}
	if c.Inexact < 0 {
		c.Inexact = c.next
	}
}

// Finish returns the first violation, or false if there is none.
func (c *OffsetIndexCheck) Finish() (IndexViolation, bool) {
	for i := 0; i < c.ordered; i++ {
		if i >= c.next {
			c.bad.earlier(i, IndexPositionNoBatch)
			break
		}
		if c.x.Entry(i).Offset > c.highest {
			c.bad.earlier(i, IndexOffsetBeyondEnd)
			break
		}
	}
	return c.bad, c.bad.Condition != IndexSound
}

// TimeIndexCheck tells whether lookups through a time index, and through the offset index after it, find the first
// record at or after any timestamp. Fed with the batches of the segment in order it takes time linear in batches and
// entries (times the logarithm of the offset index's), and no memory.
type TimeIndexCheck struct {
	// Exact counts the entries that say when the segment first reached a timestamp, as brokers since 4.0.1 write them:
	// some batch ends at the offset and has that maximum timestamp, and none before has one as high. Meaningful after
	// Finish.
	Exact int
	// Inexact is the first slot that is not Exact, or −1.
	Inexact int
	// LargestMs is the largest maximum timestamp of the batches, −1 if none has one.
	LargestMs int64

	x       TimeIndex
	offsets OffsetIndex
	ordered int
	next    int // the first entry whose timestamp no batch has reached
	highest int64
	started bool
	bad     IndexViolation
}

// NewTimeIndexCheck starts a check of all slots of x; of x.Logical() if trailing zeros are no fault. offsets is the
// index that a lookup goes through afterwards.
func NewTimeIndexCheck(x TimeIndex, offsets OffsetIndex) *TimeIndexCheck {
	c := &TimeIndexCheck{x: x, offsets: offsets, Inexact: -1, LargestMs: -1}
	var before TimeEntry
	for ; c.ordered < x.Len(); c.ordered++ {
		e := x.Entry(c.ordered)
		switch {
		case e.TimestampMs < 0:
			c.bad.earlier(c.ordered, IndexTimeNegative)
		case e.Offset < x.base:
			c.bad.earlier(c.ordered, IndexOffsetBelowBase)
		case c.ordered > 0 && e.TimestampMs <= before.TimestampMs:
			c.bad.earlier(c.ordered, IndexTimeNotIncreasing)
		case c.ordered > 0 && e.Offset < before.Offset:
			c.bad.earlier(c.ordered, IndexTimeOffsetDecreasing)
		}
		if c.bad.Condition != IndexSound {
			break
		}
		before = e
	}
	return c
}

// Add takes the next batch of the segment.
func (c *TimeIndexCheck) Add(b BatchRef) {
	if !c.started || b.LastOffset > c.highest {
		c.highest, c.started = b.LastOffset, true
	}
	if b.MaxTimestampMs <= c.LargestMs {
		return
	}
	c.LargestMs = b.MaxTimestampMs
	for ; c.next < c.ordered; c.next++ {
		e := c.x.Entry(c.next)
		if e.TimestampMs > b.MaxTimestampMs {
			return
		}
		if int64(c.offsets.Lookup(e.Offset).Position) > b.Pos {
			c.bad.earlier(c.next, IndexTimeSkipsBatch)
		}
		if e.TimestampMs == b.MaxTimestampMs && e.Offset == b.LastOffset {
			c.Exact++
		} else if c.Inexact < 0 {
			c.Inexact = c.next
		}
	}
}

// Finish returns the first violation, or false if there is none. A timestamp that no batch reaches is none, since
// nothing can be skipped for it, but it is Inexact.
func (c *TimeIndexCheck) Finish() (IndexViolation, bool) {
	if c.next < c.ordered && c.Inexact < 0 {
		c.Inexact = c.next
	}
	for i := 0; i < c.ordered; i++ {
		if c.x.Entry(i).Offset > c.highest || !c.started {
			c.bad.earlier(i, IndexOffsetBeyondEnd)
			break
		}
	}
	return c.bad, c.bad.Condition != IndexSound
}

// LastIsLargest reports, after Finish, whether the last entry has the largest timestamp of the segment (or the index is
// empty and there is none), as it must in a segment that was closed: retention reads nothing else.
func (c *TimeIndexCheck) LastIsLargest() bool {
	if n := c.x.Len(); n > 0 {
		return c.x.Entry(n-1).TimestampMs == c.LargestMs
	}
	return c.LargestMs < 0
}
