package retention

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"kseg/logdir"
	"kseg/render"
)

// Summary adds reports up by topic.
type Summary struct {
	// Sort is one of SortKeys; "" is the first.
	Sort   string
	topics map[string]*topicSum
}

// SortKeys are what topics can be sorted by: the largest first of what is freed and of size.
var SortKeys = []string{"freed", "size", "name"}

// topicSum is a line of the summary.
type topicSum struct {
	topic          string
	partitions     int64
	segments       int64
	bytes          int64
	freedSegments  int64
	freedBytes     int64
	nextMs         int64  // when the next segment goes that stays now
	blocked        int64  // expired segments that wait for others
	blockerUntilMs int64  // the latest time at which one of those others goes
	blocker        string // which that is
	warnings       int64
	settings       string // the limits in force and where they come from
	differ         bool   // not all partitions have these
	why            string // why the segment stays that stays first, of the partition that is the next; "" if all go
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
		if at := r.Segments[first].Verdict.AtMs; t.why == "" || at < t.nextMs {
			t.nextMs, t.why = at, r.Reason(first)
		}
	}
	settings := r.limitsText()
	t.differ = t.differ || t.settings != "" && t.settings != settings
	t.settings = settings
	for _, seg := range r.Segments {
		t.warnings += int64(len(seg.Warnings))
		if seg.Verdict.Hold == HoldWaiting || seg.Verdict.Hold == HoldWatermark {
			if t.blocked++; seg.Verdict.AtMs > t.blockerUntilMs {
				t.blockerUntilMs, t.blocker = seg.Verdict.AtMs, r.blockerOf(seg)
			}
		}
	}
}

// blockerOf names what keeps a segment longest, and the partition.
func (r *Report) blockerOf(s *SegmentReport) string {
	by := "the high watermark"
	if s.Verdict.Hold == HoldWaiting {
		longest := r.Segments[s.Verdict.ByLongest]
		by = "segment " + strconv.FormatInt(longest.Base, 10)
		if longest.Blocking != nil {
			by = "record " + strconv.FormatInt(longest.Blocking.Offset, 10)
		}
	}
	return by + " of " + r.Partition.Name
}

// limitsText are the limits in force in a few words: "7 d (default), 1 GiB (topic)", "compact (topic)".
func (r *Report) limitsText() string {
	if !r.Log.Limits.Delete {
		return strings.Join(r.Settings.CleanupPolicy.List(), ",") + " (" + string(r.Settings.CleanupPolicy.Source) + ")"
	}
	_, timeLimit := r.timeSetting()
	_, sizeLimit := r.sizeSetting()
	text := "forever"
	if timeLimit.Int() >= 0 {
		text = render.Duration(timeLimit.Int())
	}
	text += " (" + string(timeLimit.Source) + ")"
	if sizeLimit.Int() >= 0 {
		text += ", " + render.Bytes(sizeLimit.Int()) + " (" + string(sizeLimit.Source) + ")"
	}
	return text
}

// sorted are the topics in their order.
func (s *Summary) sorted() []*topicSum {
	var list []*topicSum
	for _, t := range s.topics {
		list = append(list, t)
	}
	slices.SortFunc(list, func(a, b *topicSum) int {
		byName := strings.Compare(a.topic, b.topic)
		switch s.Sort {
		case "size":
			return cmp.Or(cmp.Compare(b.bytes, a.bytes), byName)
		case "name":
			return byName
		}
		return cmp.Or(cmp.Compare(b.freedBytes, a.freedBytes), cmp.Compare(b.freedSegments, a.freedSegments), byName)
	})
	return list
}

// AppendText appends a line a topic, the sum of all, what retention has no hand in, and how full the disks are.
func (s *Summary) AppendText(dst []byte, theme render.Theme, disks []Disk, width int) []byte {
	table := render.NewColumns("nrrrrllw").Fit(theme, 2, render.Below, 1, 6)
	table.Head("topic", "partitions", "segments", "size", "deletable now", "next", "keeps", "why")
	sum := topicSum{}
	for _, t := range s.sorted() {
		next := "-"
		if t.nextMs != Never {
			next = render.Minute(t.nextMs)
		}
		settings := t.settings
		if t.differ {
			settings = "differs by partition"
		}
		table.Row(render.Escaped(t.topic), render.Count(t.partitions), render.Count(t.segments), render.Bytes(t.bytes),
			t.goes(theme), next, render.Escaped(settings), t.remarks(theme))
		sum.partitions, sum.segments, sum.bytes = sum.partitions+t.partitions, sum.segments+t.segments, sum.bytes+t.bytes
		sum.freedSegments, sum.freedBytes = sum.freedSegments+t.freedSegments, sum.freedBytes+t.freedBytes
	}
	if len(s.topics) > 1 {
		table.Row("all", render.Count(sum.partitions), render.Count(sum.segments), render.Bytes(sum.bytes), sum.goes(theme),
			"", "", "")
	}
	dst = table.Append(dst, "")
	for i, d := range disks {
		if i == 0 {
			dst = append(dst, '\n')
		}
		dst = render.AppendParagraph(dst, d.sentence(), width)
	}
	return dst
}

// goes is what of the topic goes now.
func (t *topicSum) goes(theme render.Theme) string {
	if t.freedSegments == 0 {
		return "-"
	}
	return theme.Look(render.Bytes(t.freedBytes) + " in " + render.Count(t.freedSegments))
}

// remarks say what is odd about the topic, or why nothing goes, now or next.
func (t *topicSum) remarks(theme render.Theme) string {
	var remarks []string
	switch {
	case t.blocked > 0:
		remark := render.Plural(t.blocked, "segment blocked", "segments blocked")
		if t.blockerUntilMs != Never {
			remark += " until " + render.Minute(t.blockerUntilMs)
		}
		remarks = append(remarks, remark+" by "+render.Escaped(t.blocker))
	case t.why == "":
		remarks = append(remarks, "all can be deleted now")
	case t.freedSegments == 0 || t.nextMs == Never:
		remarks = append(remarks, render.Escaped(t.why))
	}
	if t.warnings > 0 {
		remarks = append(remarks, render.Plural(t.warnings, "warning", "warnings"))
	}
	text := strings.Join(remarks, ", ")
	switch {
	case t.blocked > 0:
		return theme.Bad(text)
	case t.warnings > 0:
		return theme.Look(text)
	}
	return theme.Dim(text)
}

// Disk is what a log directory has beside the segments that retention judges, and the room where it lies.
type Disk struct {
	Name string
	// files that are left over: of deleted, stray and future partitions, and .deleted, .cleaned and .swap files
	Left      int64
	LeftBytes int64
	Room      logdir.FileSystem
	RoomKnown bool
}

// Disks looks at the log directories of a set; the problems are those of asking for the room.
func Disks(set *logdir.Set) (disks []Disk, problems []logdir.Problem) {
	for _, dir := range set.LogDirs() {
		d := Disk{Name: dir.Display}
		for _, p := range dir.Partitions {
			for _, f := range p.Files {
				if p.Suffix != "" || f.Name.Leftover() {
					d.Left, d.LeftBytes = d.Left+1, d.LeftBytes+f.Size
				}
			}
		}
		var err error
		if d.Room, err = logdir.FileSystemOf(dir.Path); err != nil {
			problems = append(problems, logdir.Problem{Display: dir.Display, Err: err})
		}
		d.RoomKnown = d.Room.Size > 0
		disks = append(disks, d)
	}
	return disks, problems
}

func (d *Disk) sentence() string {
	text := render.Escaped(d.Name) + ": "
	if d.RoomKnown {
		text += fmt.Sprintf("%s of %s are free on its disk (%.1f%%)", render.Bytes(d.Room.Free), render.Bytes(d.Room.Size),
			100*float64(d.Room.Free)/float64(max(d.Room.Size, 1)))
	} else {
		text += "how much room there is is not known"
	}
	if d.Left == 0 {
		return text + "; nothing is left over."
	}
	return text + fmt.Sprintf("; left over: %s, %s (kseg ls says what they are, and when a broker removes them).",
		render.Plural(d.Left, "file", "files"), render.Bytes(d.LeftBytes))
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
		o.StrOrNull("reason", t.why)
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
