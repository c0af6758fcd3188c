package lookup

import (
	"cmp"
	"slices"

	"kseg/format"
)

// A Survey is what one walk over a segment's batch headers tells. It goes on after damage, unlike a broker.
type Survey struct {
	Batches      int64
	Bytes        int64 // of all batches
	LargestBatch int64 // bytes
	LogSize      int64 // bytes of the file
	// NextOffset is the offset after the last batch, or the base offset if there is no batch.
	NextOffset int64
	// MaxTimestampMs is the largest of all batches, −1 if none has a timestamp.
	MaxTimestampMs int64
	Holes          []format.Hole // the first few
	HoleCount      int64         // all of them
	// Interval is what the index tells of the interval it was written with.
	Interval *format.SegmentInterval
	// NoIndex is true if there is no index file, which then tells nothing.
	NoIndex bool
}

// maxHoles is how many holes of a segment are kept to be shown.
const maxHoles = 8

// Survey walks all batch headers once. Each batch is handed to the takers too, such as the Add of an IndexBuilder.
func (s *Segment) Survey(takers ...func(format.BatchRef)) Survey {
	out := Survey{NextOffset: s.Base, LogSize: int64(len(s.Log)), Interval: format.NewSegmentInterval(s.Index),
		MaxTimestampMs: -1}
	take := func(b format.BatchRef) {
		out.Batches++
		out.Bytes += b.Size
		out.LargestBatch = max(out.LargestBatch, b.Size)
		out.NextOffset = b.LastOffset + 1
		out.MaxTimestampMs = max(out.MaxTimestampMs, b.MaxTimestampMs)
		out.Interval.Add(b)
		for _, taker := range takers {
			taker(b)
		}
	}
	s.kept = s.kept[:0]
	var b format.Batch
	for sc, healthy := s.scanner(0), true; ; {
		plain := sc.NextIn(s.Log, 0, &b)
		if healthy = healthy && plain && !b.Legacy(); !plain && !sc.Next() {
			break
		}
		switch hole := sc.Hole(); {
		case plain:
		case hole == nil:
			b = *sc.Batch()
		default:
			if out.HoleCount++; len(out.Holes) < maxHoles {
				out.Holes = append(out.Holes, *hole)
			}
			continue
		}
		if healthy && s.keeps && len(s.kept) < maxKept {
			s.kept = append(s.kept, Hop{b.Pos, b.Size(), b.BaseOffset, b.LastOffset})
		}
		take(b.Ref())
	}
	out.NoIndex = s.noIndex
	return out
}

// maxKept bounds the headers that are kept for a sweep: 8 MiB of them. The others it reads again.
const maxKept = 1 << 18

// Rebuilt is what the indexes would be had they been written with that index.interval.bytes, one entry a batch at most
// (4.0.1 and later), in one go. Entries stop where a broker would refuse to write one.
func (s *Segment) Rebuilt(intervalBytes int64) *format.IndexBuilder {
	x := &rebuild{builder: format.NewIndexBuilder(s.Base, intervalBytes)}
	s.Survey(x.take)
	return x.finish()
}

// A rebuild takes batches until one does not fit.
type rebuild struct {
	builder *format.IndexBuilder
	failed  bool
}

// newRebuild is for lookups by offset: it makes no time index.
func newRebuild(base, intervalBytes int64) *rebuild {
	return &rebuild{builder: format.NewOffsetIndexBuilder(base, intervalBytes)}
}

func (r *rebuild) take(b format.BatchRef) { r.failed = r.failed || r.builder.Add(b) != nil }

func (r *rebuild) finish() *format.IndexBuilder {
	if !r.failed {
		// It fails where an earlier batch has a higher offset than the one with the largest timestamp; the entry is then left
		// out.
		_ = r.builder.Finish()
	}
	return r.builder
}

// A Sweep is the cost of looking up every offset of a segment, from its base offset to its last, once.
type Sweep struct {
	Offsets  int64 // looked up and found in this segment
	NotFound int64 // the log has them or skips them, but the search ends without a batch
	Failed   int64 // the search ends in an exception
	// Unmeasured are offsets of a broken index for which the work would not have been linear any more.
	Unmeasured   int64
	Bytes, Hops  Distribution
	WorstOffset  int64 // the first of those that cost the most bytes; −1 if none was found
	WorstLast    int64 // the last of them
	FirstProblem int64 // the first offset that was not found or failed; −1 if all were
	FirstErr     error // what a broker throws there, if it does
}

// Sweep looks up every offset from the segment's base offset to last. It takes time linear in batches and entries: all
// offsets between two index entries start from the same position, so that one walk answers them all. on, if not nil, is
// called for every run of neighbouring offsets that cost the same, in order.
func (s *Segment) Sweep(last int64, batches int64, on func(first, last, bytesScanned int64)) Sweep {
	var bytes, hops histogram
	out := Sweep{WorstOffset: -1, WorstLast: -1, FirstProblem: -1}
	worst := int64(-1)
	allowed := 8*(batches+int64(s.Index.Len())) + 4096
	sw := sweeper{seg: s, budget: allowed, out: &out}
	sw.run = func(first, last, scanned, hopped int64) {
		bytes.add(scanned, last-first+1)
		hops.add(hopped, last-first+1)
		switch {
		case scanned > worst:
			worst, out.WorstOffset, out.WorstLast = scanned, first, last
		case scanned == worst:
			out.WorstLast = last
		}
		if on != nil {
			on(first, last, scanned)
		}
	}
	sw.sweep(last)
	out.Offsets = bytes.total
	zoomBytes, zoomHops := bytes.startZoom(), hops.startZoom()
	if zoomBytes || zoomHops {
		again := sweeper{seg: s, budget: allowed, out: &Sweep{}}
		again.run = func(first, last, scanned, hopped int64) {
			bytes.addZoomed(scanned, last-first+1)
			hops.addZoomed(hopped, last-first+1)
		}
		again.sweep(last)
	}
	out.Bytes, out.Hops = bytes.distribution(), hops.distribution()
	return out
}

// sweeper answers ranges of offsets.
type sweeper struct {
	seg    *Segment
	budget int64 // headers that may still be read
	out    *Sweep
	run    func(first, last, bytesScanned, headerHops int64)
	at     int // in the segment's kept headers
}

// sweep cuts the offsets into ranges that start at the same position, and walks each.
func (sw *sweeper) sweep(last int64) {
	first := sw.seg.Base
	if last < first {
		return
	}
	start, from, to := int64(-1), first, first-1
	sw.seg.Index.Spans(first, last, func(spanFirst, spanLast int64, slot int) {
		pos := int64(0)
		if slot >= 0 {
			pos = startPosition(sw.seg.Index.Entry(slot))
		}
		if pos != start && to >= from {
			sw.walk(start, from, to)
			from = spanFirst
		}
		start, to = pos, spanLast
	})
	sw.walk(start, from, to)
}

// walk looks up the offsets from first to last by one walk from the position where all of them start. It is scan for
// many offsets.
func (sw *sweeper) walk(start, first, last int64) {
	w := walk{seg: sw.seg, pos: start, kept: sw.keptFrom(start)}
	var prev Hop
	for first <= last {
		if sw.budget--; sw.budget < 0 {
			sw.out.Unmeasured += last - first + 1
			return
		}
		if !w.next() {
			break
		}
		base := w.hop.BaseOffset
		if first < base && w.count > 1 && prev.LastOffset >= first {
			to := min(last, base-1, prev.LastOffset)
			sw.run(first, to, prev.Position-start, w.count-2)
			first = to + 1
		}
		if first <= base && first <= last {
			to := min(last, base)
			sw.run(first, to, w.hop.Position-start, w.count-1)
			first = to + 1
		}
		prev = w.hop
	}
	if first > last {
		return
	}
	w.needLast()
	if w.err == nil && w.count > 0 && prev.LastOffset >= first {
		to := min(last, prev.LastOffset)
		sw.run(first, to, prev.Position-start, w.count-1)
		first = to + 1
	}
	sw.miss(first, last, w.err)
}

// keptFrom are the headers that the survey kept from a position on. The positions come in ascending order, mostly.
func (sw *sweeper) keptFrom(pos int64) []Hop {
	kept := sw.seg.kept
	for i := sw.at; i < min(sw.at+4, len(kept)); i++ {
		if kept[i].Position == pos {
			sw.at = i
			return kept[i:]
		}
	}
	i, ok := slices.BinarySearchFunc(kept, pos, func(h Hop, pos int64) int { return cmp.Compare(h.Position, pos) })
	if !ok {
		return nil
	}
	sw.at = i
	return kept[i:]
}

// miss counts the offsets for which the walk ended without a batch.
func (sw *sweeper) miss(first, last int64, err error) {
	if first > last {
		return
	}
	if err != nil {
		sw.out.Failed += last - first + 1
	} else {
		sw.out.NotFound += last - first + 1
	}
	if sw.out.FirstProblem < 0 {
		sw.out.FirstProblem, sw.out.FirstErr = first, err
	}
}
