// Package lookup replays how a broker finds an offset or a timestamp in a partition (LocalLog.read, UnifiedLog's search
// by timestamp, LogSegment.translateOffset and findOffsetByTimestamp of 4.4.0), keeps every step, and measures what the
// search costs: for one target, for every offset of a segment at once, and for indexes of another density.
//
// A search has three phases, each with its own type here:
//
//	the segment with the greatest base offset at or below the target      Partition
//	the offset index: the greatest entry at or below the target           format.Search
//	the log from that entry's position, batch header by batch header      Scan
package lookup

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"

	"kseg/format"
)

// A Segment is the bytes of one segment's files as the searches use them.
type Segment struct {
	Base  int64
	Log   []byte
	Index format.OffsetIndex
	Time  format.TimeIndex

	// The files as they are on disk.
	diskIndex format.OffsetIndex
	diskTime  format.TimeIndex

	noIndex bool // there is no offset index file

	// kept are headers of the healthy beginning of the log, from the last Survey, if keeps is set: a sweep uses them
	// again.
	kept   []Hop
	keeps  bool
	last   bool
	zeros  int64 // where the log turned out to hold nothing but zeros from, −1 if that is not known
	reader *format.RecordReader

	dataEnd int64 // from here on the log's file is a hole
}

// NewSegment views the bytes of a segment's files; a missing index is nil. The index of a closed segment is taken as a
// broker loads it: every whole slot is an entry, zeros included. The last segment's trailing zero slots are room for
// entries to come, which the broker that wrote them did not count; so are zeros at the end of its log, which
// preallocate=true makes.
func NewSegment(base int64, log, index, timeIndex []byte, last bool, maxBatchBytes int64) *Segment {
	s := &Segment{
		Base:    base,
		Log:     log,
		Index:   format.NewOffsetIndex(index, base),
		Time:    format.NewTimeIndex(timeIndex, base),
		noIndex: index == nil,
		last:    last,
		zeros:   -1,
		dataEnd: int64(len(log)),
		reader:  format.NewRecordReader(maxBatchBytes, nil),
	}
	s.diskIndex, s.diskTime = s.Index, s.Time
	if last {
		s.Index = s.Index.Logical()
		s.Time = s.Time.Logical()
	}
	return s
}

// scanner goes through the log from a position on, and looks at no hole that the file ends in.
func (s *Segment) scanner(from int64) *format.Scanner {
	sc := format.NewScanner(s.Log, from, s.Base)
	sc.Zeros(s.dataEnd)
	return sc
}

// A Hop is a batch header that phase 2 read: a batch that it skipped, or the hit.
type Hop struct {
	Position, Size         int64 // bytes
	BaseOffset, LastOffset int64
}

// A Scan is phase 2: the walk over batch headers from a position to the batch that a read of an offset starts with
// (FileRecords.searchForOffsetFromPosition).
type Scan struct {
	Start int64 // byte position where it began
	Hit   Hop   // the batch found, if Found
	Found bool
	// HeaderHops counts the batches between Start and the hit, HeaderReads the headers that were needed: the hops and the
	// hit. Without a hit both count the batches up to the end.
	HeaderHops, HeaderReads int64
	// LookaheadReads is 1 if the header after the hit was read too: 4.4 knows a batch for the last one at or below an
	// offset only when it sees the next, unless the offset is the batch's first.
	LookaheadReads int64
	// End is where the walk stopped if nothing was found.
	End int64
	// Err is what a broker would throw, at Err's position; nothing is found then.
	Err error
}

// BytesScanned is the distance from where the scan began to the hit, or to where it gave up.
func (s *Scan) BytesScanned() int64 {
	if s.Found {
		return s.Hit.Position - s.Start
	}
	return s.End - s.Start
}

// Translate is LogSegment.translateOffset: the index, then the scan. It allocates nothing, unless a compressed message
// of magic 0 or 1 has to be opened.
func (s *Segment) Translate(offset int64) Scan {
	return s.scan(startPosition(s.Index.Lookup(offset)), offset, nil)
}

// startPosition is where a broker starts reading for an entry: LogSegment.translateOffset takes no position below 0.
func startPosition(e format.OffsetEntry) int64 { return max(0, int64(e.Position)) }

// scan walks from a position to the batch that a read of offset starts with. The first batches that were skipped are
// appended to hops if that is not nil.
func (s *Segment) scan(start, offset int64, hops *[]Hop) Scan {
	out := Scan{Start: start}
	w := walk{seg: s, pos: start}
	var prev Hop
	for w.next() {
		switch {
		case w.hop.BaseOffset == offset:
			out.found(w.hop, w.count-1, 0)
		case w.hop.BaseOffset > offset && w.count > 1 && prev.LastOffset >= offset:
			out.found(prev, w.count-2, 1)
			return out
		case w.hop.BaseOffset > offset:
			out.found(w.hop, w.count-1, 0)
		}
		if w.count > 1 {
			keep(hops, prev)
		}
		if out.Found {
			return out
		}
		prev = w.hop
	}
	w.needLast()
	if w.err == nil && w.count > 0 && prev.LastOffset >= offset {
		out.found(prev, w.count-1, w.glance)
		return out
	}
	if w.count > 0 {
		keep(hops, prev)
	}
	out.HeaderHops, out.HeaderReads, out.End, out.Err = w.count, w.count, w.pos, w.err
	return out
}

// maxHops is how many of the batches that a scan skipped are kept to be shown; without an index there may be millions.
const maxHops = 10000

func keep(hops *[]Hop, h Hop) {
	if hops != nil && len(*hops) < maxHops {
		*hops = append(*hops, h)
	}
}

func (s *Scan) found(hit Hop, hops, lookahead int64) {
	s.Found, s.Hit, s.HeaderHops, s.HeaderReads, s.LookaheadReads = true, hit, hops, hops+1, lookahead
}

// walk reads batch headers one after the other as Kafka's FileLogInputStream does: it believes every size that fits
// into the file, whatever the checksum says.
type walk struct {
	seg    *Segment
	pos    int64 // of the next header
	hop    Hop
	count  int64 // headers read
	glance int64 // 1 if the bytes after the last batch were read as a header, and then were too few for a batch
	short  bool  // the batch header is cut short by the end of the file
	err    error // what a broker would throw

	kept []Hop // headers from pos on that were read before
}

// next reads the header at w.pos, and is false at the end of what a broker can read. It is format.DecodeBatch without
// what a search has no use for.
func (w *walk) next() bool {
	if len(w.kept) > 0 {
		w.hop, w.short, w.kept = w.kept[0], false, w.kept[1:]
		w.pos += w.hop.Size
		w.count++
		return true
	}
	log := w.seg.Log
	size, err := format.EntrySize(log, w.pos)
	if err != nil {
		if errors.Is(err, format.ErrTruncated) {
			w.glance = min(1, max(0, int64(len(log))-w.pos-format.MagicPrefix))
		} else if !w.seg.preallocated(w.pos) {
			w.err = err
		}
		return false
	}
	h := log[w.pos:]
	base := int64(binary.BigEndian.Uint64(h))
	w.hop = Hop{Position: w.pos, Size: size, BaseOffset: base, LastOffset: base}
	w.short = false
	if int8(h[magicAt]) >= 2 {
		if w.short = len(h) < format.BatchHeaderSize; !w.short {
			w.hop.LastOffset += int64(int32(binary.BigEndian.Uint32(h[lastOffsetDeltaAt:])))
		}
	} else if format.Codec(h[legacyAttributesAt]&7) != format.CodecNone {
		if w.hop.BaseOffset, err = w.seg.firstInner(w.pos); err != nil {
			w.err = fmt.Errorf("compressed message at byte %d: %w", w.pos, err)
			return false
		}
	}
	w.pos += size
	w.count++
	return true
}

// Where the header has what a search needs, in bytes from its start.
const (
	magicAt            = 16
	legacyAttributesAt = 17
	lastOffsetDeltaAt  = 23
)

// preallocated reports whether the log of the last segment has nothing but zeros from pos on.
func (s *Segment) preallocated(pos int64) bool {
	if !s.last {
		return false
	}
	if s.zeros < 0 && len(bytes.TrimLeft(s.Log[min(pos, s.dataEnd):s.dataEnd], "\x00")) == 0 {
		s.zeros = pos
	}
	return s.zeros >= 0 && pos >= s.zeros
}

// needLast is called where the walk has ended and the last offset of its last batch is asked for, which a broker reads
// from the whole header.
func (w *walk) needLast() {
	if w.short && w.err == nil {
		w.err = shortHeader(w.hop.Position)
	}
}

// shortHeader is for a batch whose size fits into the file where its header does not: a broker, asking for the whole
// header, fails.
func shortHeader(pos int64) error {
	return &format.Error{What: "batch header", Pos: pos, Want: "61 bytes", Got: "the end of the file",
		Err: format.ErrValue}
}

// firstInner is the base offset of a compressed message of magic 0 or 1, for which a broker reads and decompresses all
// of it.
func (s *Segment) firstInner(pos int64) (int64, error) {
	b, err := format.DecodeBatch(s.Log, pos)
	if err != nil {
		return 0, err
	}
	var rec format.Record
	first, n := int64(0), 0
	for s.reader.Reset(&b); s.reader.Next(&rec); n++ {
		if n == 0 {
			first = rec.Offset
		}
	}
	return first, s.reader.Err()
}
