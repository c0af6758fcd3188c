package broker

import "math"

// group puts segments together that become one (Cleaner.groupSegmentsBySize). upTo is the offset that cleaning stops
// at.
func group(segments []CleanerSegment, s *CleanerSettings, upTo int64) [][]CleanerSegment {
	var groups [][]CleanerSegment
	for len(segments) > 0 {
		n := 1
		size, index, times := segments[0].Size, segments[0].IndexSize, segments[0].TimeIndexSize
		for ; n < len(segments); n++ {
			next := &segments[n]
			last := upTo - 1
			if n+1 < len(segments) {
				last = segments[n+1].Base - 1
			}
			if size+next.Size > s.SegmentBytes || index+next.IndexSize > s.SegmentIndexBytes ||
				times+next.TimeIndexSize > s.SegmentIndexBytes || next.Size > 0 && last-segments[0].Base > math.MaxInt32 {
				break
			}
			size, index, times = size+next.Size, index+next.IndexSize, times+next.TimeIndexSize
		}
		groups = append(groups, segments[:n])
		segments = segments[n:]
	}
	return groups
}
