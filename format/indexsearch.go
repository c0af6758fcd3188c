package format

import "encoding/binary"

// warmBytes is how much of the end of an index Kafka's search treats as hot: pages that appends and reads near the end
// of the log keep in the page cache.
const warmBytes = 8192

// Section is the part of an index that a search ended up in.
type Section uint8

// The sections.
const (
	SectionNone Section = iota // the index is empty, or every key is above the target
	SectionHot                 // the last 8192 / entry size + 1 slots: one more than the constant suggests
	SectionCold                // the slots before, up to and including the first hot one
)

// String is the section's name in reports.
func (s Section) String() string {
	switch s {
	case SectionHot:
		return "hot"
	case SectionCold:
		return "cold"
	default:
		return "none"
	}
}

// Search is how a broker found the largest key at or below a target in an index.
type Search struct {
	Probes  []int // slots whose key was compared, in order; a slot may occur twice
	Section Section
	Slot    int // the slot found, −1 if none: then the search starts at (base offset, position 0)
}

// Search follows AbstractIndex.indexSlotRangeFor step by step over all slots of x, sorted or not, and appends the
// probes to probes. Use Logical to search what the writing broker would.
func (x OffsetIndex) Search(target int64, probes []int) Search { return x.search(target, probes) }

// Lookup is OffsetIndex.lookup: the entry a broker starts reading from for an offset, or (base, 0). It allocates
// nothing.
func (x OffsetIndex) Lookup(target int64) OffsetEntry {
	if i := x.floor(target); i >= 0 {
		return x.Entry(i)
	}
	return OffsetEntry{Offset: x.base}
}

// Search is OffsetIndex.Search by timestamp.
func (x TimeIndex) Search(timestampMs int64, probes []int) Search {
	return x.search(timestampMs, probes)
}

// Lookup is TimeIndex.lookup: the entry with the largest timestamp at or below the target, or (−1, base). It allocates
// nothing.
func (x TimeIndex) Lookup(timestampMs int64) TimeEntry {
	if i := x.floor(timestampMs); i >= 0 {
		return x.Entry(i)
	}
	return TimeEntry{TimestampMs: -1, Offset: x.base}
}

// section chooses between the hot and the cold part by one or two comparisons and returns the slots to search.
func (s slots) section(target int64) (sec Section, lo, hi int) {
	n := s.Len()
	if n == 0 {
		return SectionNone, 0, -1
	}
	firstHot := max(0, n-1-warmBytes/s.width)
	switch {
	case s.key(firstHot) < target:
		return SectionHot, firstHot, n - 1
	case s.key(0) > target:
		return SectionNone, 0, -1
	default:
		return SectionCold, 0, firstHot
	}
}

// floor is the slot that search finds, without keeping the probes.
func (s slots) floor(target int64) int {
	sec, lo, hi := s.section(target)
	switch {
	case sec == SectionNone:
		return -1
	case s.width == offsetEntrySize:
		return floorOffset(s.raw, s.base, target, lo, hi)
	default:
		return floorTime(s.raw, target, lo, hi)
	}
}

// floorOffset and floorTime are the loop of search. They are written out for each width, and with two ifs that choose
// the half to go on in, so that the compiler makes conditional moves: one branch there would be mispredicted at every
// other probe, which costs more than the probe itself.
func floorOffset(raw []byte, base, target int64, lo, hi int) int {
	for lo < hi {
		mid := int(uint(lo+hi+1) >> 1)
		key := base + int64(int32(binary.BigEndian.Uint32(raw[mid*offsetEntrySize:])))
		if key == target {
			return mid
		}
		end := hi
		if key > target {
			end = mid - 1
		}
		if key > target {
			mid = lo
		}
		lo, hi = mid, end
	}
	return lo
}

func floorTime(raw []byte, target int64, lo, hi int) int {
	for lo < hi {
		mid := int(uint(lo+hi+1) >> 1)
		key := int64(binary.BigEndian.Uint64(raw[mid*timeEntrySize:]))
		if key == target {
			return mid
		}
		end := hi
		if key > target {
			end = mid - 1
		}
		if key > target {
			mid = lo
		}
		lo, hi = mid, end
	}
	return lo
}

// search is floor with a record of every comparison.
func (s slots) search(target int64, probes []int) Search {
	sec, lo, hi := s.section(target)
	if n := s.Len(); n > 0 {
		probes = append(probes, max(0, n-1-warmBytes/s.width))
		if sec != SectionHot {
			probes = append(probes, 0)
		}
	}
	if sec == SectionNone {
		return Search{Probes: probes, Section: sec, Slot: -1}
	}
	for lo < hi {
		mid := int(uint(lo+hi+1) >> 1)
		probes = append(probes, mid)
		switch k := s.key(mid); {
		case k > target:
			hi = mid - 1
		case k == target:
			return Search{Probes: probes, Section: sec, Slot: mid}
		default:
			lo = mid
		}
	}
	return Search{Probes: probes, Section: sec, Slot: lo}
}

// Spans answers Search for all targets from first to last at once, in time linear in the number of slots: it calls
// yield with ranges of targets in ascending order, each with the slot that Search would find for all of them (−1:
// none). Neighbouring ranges may have the same slot.
func (x OffsetIndex) Spans(first, last int64, yield func(first, last int64, slot int)) {
	n := x.Len()
	if n == 0 {
		yield(first, last, -1)
		return
	}
	firstHot := max(0, n-1-warmBytes/x.width)
	hotAbove, lowest := x.key(firstHot), x.key(0)
	if cold := min(last, hotAbove); first <= cold {
		if first < lowest {
			yield(first, min(cold, lowest-1), -1)
		}
		if from := max(first, lowest); from <= cold {
			x.spans(0, firstHot, from, cold, yield)
		}
	}
	if last > hotAbove {
		x.spans(firstHot, n-1, max(first, hotAbove+1), last, yield)
	}
}

// spans follows the binary search over the slots lo to hi into both halves. Each pair of bounds is met at most once, so
// that the work is linear even where the keys are in disorder.
func (s slots) spans(lo, hi int, first, last int64, yield func(first, last int64, slot int)) {
	if lo >= hi {
		yield(first, last, lo)
		return
	}
	mid := int(uint(lo+hi+1) >> 1)
	k := s.key(mid)
	if first < k {
		s.spans(lo, mid-1, first, min(last, k-1), yield)
	}
	if first <= k && k <= last {
		yield(k, k, mid)
	}
	if last > k {
		s.spans(mid, hi, max(first, k+1), last, yield)
	}
}
