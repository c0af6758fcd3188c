package retention

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"kseg/render"
)

// Summary adds reports up by topic.
type Summary struct{ topics map[string]*topicSum }

// topicSum is a line of the summary.
type topicSum struct {
	topic          string
	partitions     int64
	segments       int64
	bytes          int64
	freedSegments  int64
	freedBytes     int64
	nextMs         int64  // when the next segment goes that stays now
	blocked        int64  // expired segments that wait behind others
	blockerUntilMs int64  // the latest time at which one of those others goes
	blocker        string // which that is
	warnings       int64
}

// Add adds a report.
func (s *Summary) Add(r *Report) {
	if s.topics == nil {
		s.topics = map[string]*topicSum{}
	}
	name := r.Partition.Topic
	if !r.Partition.Named {
		name = r.Partition.Name
	}
	t := s.topics[name]
	if t == nil {
		t = &topicSum{topic: name, nextMs: Never}
		s.topics[name] = t
	}
	segments, bytes := r.Freed()
	t.partitions++
	t.segments += int64(len(r.Segments))
	t.bytes += r.Bytes()
	t.freedSegments += segments
	t.freedBytes += bytes
	t.warnings += int64(len(r.Warnings))
	if first := r.firstKept(); first >= 0 {
		t.nextMs = min(t.nextMs, r.Segments[first].Verdict.AtMs)
	}
	for _, seg := range r.Segments {
		t.warnings += int64(len(seg.Warnings))
		if seg.Verdict.Hold == HoldBehind || seg.Verdict.Hold == HoldWatermark {
			if t.blocked++; seg.Verdict.AtMs > t.blockerUntilMs {
				t.blockerUntilMs, t.blocker = seg.Verdict.AtMs, r.blockerOf(seg)
			}
		}
	}
}

// blockerOf names what keeps a segment longest, and the partition.
func (r *Report) blockerOf(s *SegmentReport) string {
	by := "the high watermark"
	if s.Verdict.Hold == HoldBehind {
		longest := r.Segments[s.Verdict.ByLongest]
		by = "segment " + strconv.FormatInt(longest.Base, 10)
		if longest.Blocking != nil {
			by = "record " + strconv.FormatInt(longest.Blocking.Offset, 10)
		}
	}
	return by + " of " + r.Partition.Name
}

// sorted are the topics, those first that free most bytes.
func (s *Summary) sorted() []*topicSum {
	var list []*topicSum
	for _, t := range s.topics {
		list = append(list, t)
	}
	slices.SortFunc(list, func(a, b *topicSum) int {
		return cmp.Or(cmp.Compare(b.freedBytes, a.freedBytes), cmp.Compare(b.freedSegments, a.freedSegments), strings.Compare(a.topic, b.topic))
	})
	return list
}

// AppendText appends a line a topic, those first that free most bytes.
func (s *Summary) AppendText(dst []byte, theme render.Theme) []byte {
	table := render.NewColumns("nrrrrlw").Fit(theme, render.Below, 2, 1)
	table.Row("topic", "partitions", "segments", "size", "goes now", "next", "")
	for _, t := range s.sorted() {
		goes := "-"
		if t.freedSegments > 0 {
			goes = theme.Look(render.Bytes(t.freedBytes) + " in " + render.Count(t.freedSegments))
		}
		next := "-"
		if t.nextMs != Never {
			next = render.Minute(t.nextMs)
		}
		var remarks []string
		if t.blocked > 0 {
			remark := render.Plural(t.blocked, "segment blocked", "segments blocked")
			if t.blockerUntilMs != Never {
				remark += " until " + render.Minute(t.blockerUntilMs)
			}
			remarks = append(remarks, theme.Bad(remark+" by "+render.Escaped(t.blocker)))
		}
		if t.warnings > 0 {
			remarks = append(remarks, theme.Look(render.Plural(t.warnings, "warning", "warnings")))
		}
		table.Row(render.Escaped(t.topic), render.Count(t.partitions), render.Count(t.segments), render.Bytes(t.bytes), goes, next, strings.Join(remarks, ", "))
	}
	return table.Append(dst, "")
}

// AppendJSON appends an object a topic, in the same order.
func (s *Summary) AppendJSON(dst []byte) []byte {
	for _, t := range s.sorted() {
		o := render.NewObj(dst, "topic_retention")
		o.Str("topic", t.topic)
		o.Int("partitions", t.partitions)
		o.Int("segments", t.segments)
		o.Int("size", t.bytes)
		o.Int("deletable_segments", t.freedSegments)
		o.Int("deletable_bytes", t.freedBytes)
		next := t.nextMs
		if next == Never {
			next = render.NoTimestamp
		}
		o.Time("next_deletable_at", next)
		o.Int("blocked_segments", t.blocked)
		o.StrOrNull("blocked_by", t.blocker)
		o.Int("warnings", t.warnings)
		dst = o.Line()
	}
	return dst
}

// Freed are the segments and bytes that go in all topics.
func (s *Summary) Freed() (segments, bytes, partitions int64) {
	for _, t := range s.topics {
		segments, bytes, partitions = segments+t.freedSegments, bytes+t.freedBytes, partitions+t.partitions
	}
	return segments, bytes, partitions
}
