package format

import (
	"fmt"
	"math"
	"strconv"
)

// Failures of the rules by which a broker writes indexes; all unwrap to ErrValue too.
var (
	// ErrIndexOrder is Kafka's InvalidOffsetException: an entry that is not above the last one. Recovery then empties
	// the segment.
	ErrIndexOrder = fmt.Errorf("%w: an index entry that is not above the last one", ErrValue)
	// ErrOffsetOverflow is Kafka's LogSegmentOffsetOverflowException: an offset below the segment's base offset or 2^31 or
	// more above it. Loading then splits the segment.
	ErrOffsetOverflow = fmt.Errorf("%w: an offset that does not fit the segment", ErrValue)
	// ErrIndexFull is Kafka's IllegalArgumentException for an entry that has no room in segment.index.bytes.
	ErrIndexFull = fmt.Errorf("%w: an index is full before the segment ends", ErrValue)
)

// BatchRef is what the rules about indexes need to know of a batch. Positions and sizes are bytes in the .log.
type BatchRef struct {
	Pos            int64
	Size           int64
	BaseOffset     int64
	LastOffset     int64
	MaxTimestampMs int64 // −1 if there is none
}

// Ref is the batch as the rules about indexes see it.
func (b *Batch) Ref() BatchRef {
	return BatchRef{Pos: b.Pos, Size: b.Size(), BaseOffset: b.BaseOffset, LastOffset: b.LastOffset,
		MaxTimestampMs: b.MaxTimestamp}
}

// IndexBuilder writes the .index and .timeindex of a segment from its batches, as LogSegment.recover does, and since
// 4.0.1 (KAFKA-806) LogSegment.append too: before a batch is counted, an entry for it is written if more than the
// interval lies between the last indexed batch and it.
type IndexBuilder struct {
	base     int64
	interval int64
	most     int64 // bytes of an index, 0 for any number
	indexed  int64 // position of the last indexed batch, or 0
	offsets  []byte
	times    []byte
	noTimes  bool        // times is left empty
	last     OffsetEntry // the newest entry of each index; of an empty one (base, 0) and (−1, base)
	lastTime TimeEntry
	largest  TimeEntry // the largest timestamp seen and the last offset of the batch that reached it first
}

// NewIndexBuilder starts the indexes of a segment. intervalBytes is index.interval.bytes.
func NewIndexBuilder(base, intervalBytes int64) *IndexBuilder {
	none := TimeEntry{TimestampMs: -1, Offset: base}
	return &IndexBuilder{base: base, interval: intervalBytes, last: OffsetEntry{Offset: base}, lastTime: none,
		largest: none}
}

// Limit is for a broker whose segment.index.bytes are so many.
func (x *IndexBuilder) Limit(bytes int64) { x.most = bytes }

// NewOffsetIndexBuilder is NewIndexBuilder without the memory for a time index, which stays empty.
func NewOffsetIndexBuilder(base, intervalBytes int64) *IndexBuilder {
	x := NewIndexBuilder(base, intervalBytes)
	x.noTimes = true
	return x
}

// Add takes the next batch of the segment. The error is an *Error at the batch's position wrapping ErrIndexOrder,
// ErrOffsetOverflow or ErrIndexFull, where it is said what a broker does then, or ErrValue for a position of 2^31 or
// more, which no broker opens. A builder that has failed is of no more use.
func (x *IndexBuilder) Add(b BatchRef) error {
	if b.Pos > math.MaxInt32 {
		return &Error{What: "batch", Pos: b.Pos, Want: "a position below 2^31", Got: strconv.FormatInt(b.Pos, 10),
			Err: ErrValue}
	}
	if rel := b.LastOffset - x.base; rel < 0 || rel > math.MaxInt32 {
		return &Error{What: "batch", Pos: b.Pos, Want: "an offset from " + strconv.FormatInt(x.base, 10) +
			" on, less than 2^31 above it",
			Got: strconv.FormatInt(b.LastOffset, 10), Err: ErrOffsetOverflow}
	}
	if b.MaxTimestampMs > x.largest.TimestampMs {
		x.largest = TimeEntry{TimestampMs: b.MaxTimestampMs, Offset: b.LastOffset}
	}
	if b.Pos-x.indexed <= x.interval {
		return nil
	}
	if x.full(len(x.offsets), 0, offsetEntrySize) {
		return x.fullError(b.Pos)
	}
	if len(x.offsets) > 0 && b.LastOffset <= x.last.Offset {
		return orderError(b.Pos, b.LastOffset, x.last.Offset)
	}
	x.last = OffsetEntry{Offset: b.LastOffset, Position: int32(b.Pos)}
	x.offsets = AppendOffsetEntry(x.offsets, x.base, x.last)
	x.indexed = b.Pos
	if x.full(len(x.times), 1, timeEntrySize) {
		return x.fullError(b.Pos)
	}
	return x.addTime(b.Pos)
}

// full reports whether an index has room for no more than its reserve of entries.
func (x *IndexBuilder) full(used, reserve, width int) bool {
	return x.most > 0 && used/width >= int(x.most)/width-reserve
}

func (x *IndexBuilder) fullError(pos int64) error {
	return &Error{What: "index entry for the batch", Pos: pos, Want: "room for it",
		Got: strconv.FormatInt(x.most, 10) + " bytes of index", Err: ErrIndexFull}
}

// Finish writes the closing time entry, which a broker writes when a segment is rolled, recovered or cleanly closed:
// the largest timestamp of the segment, unless the last entry has it already.
func (x *IndexBuilder) Finish() error { return x.addTime(int64(x.last.Position)) }

// addTime is TimeIndex.maybeAppend of the largest timestamp so far; equal timestamps add nothing.
func (x *IndexBuilder) addTime(pos int64) error {
	if x.lastTime.TimestampMs >= 0 && x.largest.Offset < x.lastTime.Offset {
		return orderError(pos, x.largest.Offset, x.lastTime.Offset)
	}
	if x.largest.TimestampMs <= x.lastTime.TimestampMs {
		return nil
	}
	x.lastTime = x.largest
	if !x.noTimes {
		x.times = AppendTimeEntry(x.times, x.base, x.lastTime)
	}
	return nil
}

func orderError(pos, offset, last int64) *Error {
	return &Error{What: "index entry for the batch", Pos: pos, Want: "an offset above " + strconv.FormatInt(last, 10),
		Got: strconv.FormatInt(offset, 10), Err: ErrIndexOrder}
}

// OffsetIndex is the .index so far. It shares the builder's memory and is valid until the next Add.
func (x *IndexBuilder) OffsetIndex() OffsetIndex { return NewOffsetIndex(x.offsets, x.base) }

// TimeIndex is the .timeindex so far. It shares the builder's memory and is valid until the next Add.
func (x *IndexBuilder) TimeIndex() TimeIndex { return NewTimeIndex(x.times, x.base) }

// OffsetIndexBytes is the content of the .index so far, as on disk.
func (x *IndexBuilder) OffsetIndexBytes() []byte { return x.offsets }

// TimeIndexBytes is the content of the .timeindex so far, as on disk.
func (x *IndexBuilder) TimeIndexBytes() []byte { return x.times }
