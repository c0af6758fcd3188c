package format

import "math"

// IntervalInference finds out which index.interval.bytes a partition's offset indexes were written with, from the
// batches and the entries alone. Segments that no single interval explains (a restart in their middle, one entry an
// append) are left aside.
type IntervalInference struct {
	// PerAppend counts the segments that were left aside because a broker before 4.0.1 had indexed them, once an append.
	PerAppend int
	// Contradicting counts the segments that no interval explains, or not the one of the others. Meaningful after Range.
	Contradicting int

	least, most int64   // of the segments with entries
	empty       []int64 // least of each segment without entries
	explained   int     // segments with entries that went into least and most
	unexplained int
}

// SegmentInterval is the inference for one segment: fed with the batches in order, it bounds the interval between the
// largest distance that was left without an entry and one less than the smallest distance that got one.
type SegmentInterval struct {
	// Least and Most bound the interval; nothing is known of Most as long as it is math.MaxInt64. Least above Most means
	// that no interval explains the index.
	Least, Most int64
	// Entries counts the entries that lie at the start of a batch.
	Entries int
	// PerAppend means that some entry is of the kind that only brokers before 4.0.1 write, at most one an append: its
	// offset is the last of a later batch of the same append, or, up to 0.10, the first of a compressed message. Least and
	// Most say nothing then. Any other offset beside the batch's last is damage, and no reason to distrust the positions.
	PerAppend bool

	x       OffsetIndex
	next    int
	indexed int64
	last    int64 // offset of the batch before
	pending int64 // the offset of an entry that should be the last of a batch to come, if waiting
	waiting bool
}

// NewSegmentInterval starts the inference for a segment; zero slots at the end of x do not count.
func NewSegmentInterval(x OffsetIndex) *SegmentInterval {
	return &SegmentInterval{Most: math.MaxInt64, x: x.Logical(), last: x.Base() - 1}
}

// Add takes the next batch of the segment.
func (s *SegmentInterval) Add(b BatchRef) {
	if s.waiting && b.LastOffset >= s.pending {
		s.PerAppend = s.PerAppend || b.LastOffset == s.pending
		s.waiting = false
	}
	s.addEntry(b)
	s.last = b.LastOffset
}

// addEntry looks for an entry for b.
func (s *SegmentInterval) addEntry(b BatchRef) {
	for s.next < s.x.Len() && int64(s.x.Entry(s.next).Position) < b.Pos {
		s.next++
	}
	distance := b.Pos - s.indexed
	if s.next < s.x.Len() && int64(s.x.Entry(s.next).Position) == b.Pos {
		s.compare(s.x.Entry(s.next).Offset, b)
		s.Most = min(s.Most, distance-1)
		s.indexed = b.Pos
		s.Entries++
		s.next++
		return
	}
	s.Least = max(s.Least, distance)
}

// compare looks at the offset of the entry for b. A compressed message of the old formats has its last offset for both
// of BatchRef's.
func (s *SegmentInterval) compare(offset int64, b BatchRef) {
	switch {
	case offset > b.LastOffset:
		s.pending, s.waiting = offset, true
	case offset < b.LastOffset && offset > s.last && b.BaseOffset == b.LastOffset:
		s.PerAppend = true
	}
}

// Add takes a segment whose batches have all been added to s.
func (p *IntervalInference) Add(s *SegmentInterval) {
	switch {
	case s.PerAppend:
		p.PerAppend++
	case s.Entries == 0:
		p.empty = append(p.empty, s.Least)
	case s.Least > s.Most:
		p.unexplained++
	case p.explained == 0:
		p.least, p.most, p.explained = s.Least, s.Most, 1
	default:
		p.least, p.most = max(p.least, s.Least), min(p.most, s.Most)
		p.explained++
	}
}

// Range returns the smallest and the largest interval that explain the partition's indexes; most is math.MaxInt64 if no
// index has an entry. It answers false if nothing is known or the segments contradict each other.
func (p *IntervalInference) Range() (least, most int64, ok bool) {
	p.Contradicting = p.unexplained
	least, most = p.least, p.most
	if p.explained == 0 {
		most = math.MaxInt64
	}
	if least > most {
		p.Contradicting += p.explained
		return 0, 0, false
	}
	for _, l := range p.empty {
		if l > most {
			p.Contradicting++
			continue
		}
		least = max(least, l)
	}
	return least, most, p.explained > 0 || len(p.empty) > 0 && p.unexplained == 0 && p.PerAppend == 0
}
