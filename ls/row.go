package ls

import (
	"cmp"
	"slices"
	"strconv"

	"kseg/render"
)

// Row is a line of the list: a topic, a partition, or a segment of a partition.
type Row struct {
	Topic     *Topic
	Partition *Partition
	Segment   *Segment
}

// Keys are what rows can be sorted by.
var Keys = []string{"name", "size", "records", "segments", "age", "slack"}

// measure is what a row is worth by a key; the largest come first.
func (r *Row) measure(key string) int64 {
	if s := r.Segment; s != nil {
		return measureOf(key, s.Size, s.Records, 1, s.Slack, s.LastMs)
	}
	s := r.sums()
	return measureOf(key, s.Usage.Bytes+s.Linked.Bytes, s.Records, s.Segments, s.Slack, s.LastMs)
}

func measureOf(key string, size, records, segments, slack int64, lastMs Maybe) int64 {
	switch key {
	case "size":
		return size
	case "records":
		return records
	case "segments":
		return segments
	case "slack":
		return slack
	case "age":
		if lastMs.OK {
			return -lastMs.N
		}
	}
	return 0
}

func (r *Row) sums() *Sums {
	if r.Topic != nil {
		return &r.Topic.Sums
	}
	return &r.Partition.Sums
}

// Sort sorts by a key, those of the largest value first, by age those whose newest record is the oldest; what has no
// record is the last. By name the order is left as it is, which is by name.
func Sort(rows []Row, key string) {
	if key == "name" {
		return
	}
	slices.SortStableFunc(rows, func(a, b Row) int {
		if key == "age" {
			if x, y := a.lastMs().OK, b.lastMs().OK; x != y {
				return cmp.Compare(b2i(y), b2i(x))
			}
		}
		return cmp.Compare(b.measure(key), a.measure(key))
	})
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

func (r *Row) lastMs() Maybe {
	if r.Segment != nil {
		return r.Segment.LastMs
	}
	return r.sums().LastMs
}

// Style is how rows are written.
type Style struct {
	Theme render.Theme
	Width int
	NowMs int64
}

// TopicColumns, PartitionColumns and SegmentColumns head what Cells returns.
var (
	TopicColumns = []render.Column{{Name: "topic"}, {Name: "partitions", Right: true}, {Name: "segments", Right: true},
		{Name: "records", Right: true}, {Name: "size", Right: true}, {Name: "on disk", Right: true},
		{Name: "slack", Right: true}, {Name: "newest"}, {Name: "age", Right: true}, {Name: "policy"}, {Name: "topic id"}}
	PartitionColumns = []render.Column{{Name: "partition"}, {Name: "segments", Right: true}, {Name: "first", Right: true},
		{Name: "last", Right: true}, {Name: "records", Right: true}, {Name: "size", Right: true},
		{Name: "on disk", Right: true}, {Name: "slack", Right: true}, {Name: "active", Right: true}, {Name: "newest"},
		{Name: "age", Right: true}, {Name: "policy"}, {Name: "topic id"}, {Name: "log directory"}}
	SegmentColumns = []render.Column{{Name: "partition"}, {Name: "segment", Right: true}, {Name: "first", Right: true},
		{Name: "last", Right: true}, {Name: "records", Right: true}, {Name: "size", Right: true},
		{Name: "on disk", Right: true}, {Name: "oldest"}, {Name: "newest"}, {Name: "entries", Right: true},
		{Name: "slack", Right: true}, {Name: "log directory"}}
)

// textColumns are those that text has room for.
var textColumns = map[string]bool{"topic": true, "partitions": true, "segments": true, "records": true, "size": true,
	"on disk": true,
	"slack":   true, "age": true, "policy": true, "first": true, "last": true, "active": true, "segment": true,
	"oldest": true,
	"newest": true, "entries": true}

// Shown are the columns of a list that text has room for: not the ids, and the newest record's time or its age. A list
// of several partitions, or of several log directories, says of each row where it belongs.
func Shown(columns []render.Column, partitions, dirs int) []bool {
	age := slices.ContainsFunc(columns, func(c render.Column) bool { return c.Name == "age" })
	shown := make([]bool, len(columns))
	for i, c := range columns {
		switch c.Name {
		case "partition":
			shown[i] = age || partitions > 1
		case "log directory":
			shown[i] = dirs > 1
		default:
			shown[i] = textColumns[c.Name] && !(age && c.Name == "newest")
		}
	}
	return shown
}

// Least are the names of the columns that text can do without, the least important ones first.
var Least = []string{"log directory", "slack", "on disk", "entries", "oldest", "policy", "active", "back", "magic",
	"headers", "p99", "producers",
	"max", "batch p50", "ratio", "tried", "then batches", "batches", "segments", "age", "newest", "last", "first"}

// Cells are the row under its columns.
func (r *Row) Cells(st Style) []string {
	switch {
	case r.Segment != nil:
		return r.segmentCells(st)
	case r.Topic != nil:
		return r.Topic.cells(st)
	}
	return r.Partition.cells(st)
}

func (t *Topic) cells(st Style) []string {
	s := &t.Sums
	return []string{render.Escaped(t.Name), render.Count(s.Partitions), render.Count(s.Segments),
		records(s.Records, s.Estimated, s.Unread > 0),
		render.Bytes(s.Usage.Bytes + s.Linked.Bytes), render.Bytes(s.Usage.Allocated + s.Linked.Allocated), size(s.Slack),
		minute(s.LastMs), age(s.LastMs, st), render.Escaped(t.Policy), t.ID}
}

func (p *Partition) cells(st Style) []string {
	s := &p.Sums
	name := p.String()
	if p.Topic == "" || p.Suffix != "" {
		name = p.Name
	}
	return []string{render.Escaped(name), render.Count(s.Segments), number(p.FirstOffset), number(p.LastOffset),
		records(s.Records, s.Estimated, s.Unread > 0), render.Bytes(s.Usage.Bytes + s.Linked.Bytes),
		render.Bytes(s.Usage.Allocated + s.Linked.Allocated), size(s.Slack), number(p.Active), minute(s.LastMs),
		age(s.LastMs, st), render.Escaped(p.Policy), p.TopicID, render.Escaped(p.Dir)}
}

func (r *Row) segmentCells(st Style) []string {
	s := r.Segment
	base := number(Some(s.Base))
	if s.Active {
		base = st.Theme.Strong("*" + base)
	}
	newest := minute(s.LastMs)
	if s.LastMs.OK && s.LastMs.N > st.NowMs {
		newest = st.Theme.Look(newest)
	}
	return []string{render.Escaped(r.Partition.Name), base, number(s.FirstOffset), number(s.LastOffset),
		records(s.Records, s.Estimated, s.Unread), render.Bytes(s.Size), render.Bytes(s.Allocated), minute(s.FirstMs),
		newest, number(s.Entries), size(s.Slack), render.Escaped(r.Partition.Dir)}
}

// records writes a count; one that comes from offsets is an upper bound, and one that lacks what could not be read a
// lower one.
func records(n int64, estimated, unread bool) string {
	switch {
	case estimated && unread:
		return "~ " + render.Count(n)
	case estimated:
		return "≤ " + render.Count(n)
	case unread:
		return "≥ " + render.Count(n)
	}
	return render.Count(n)
}

func size(n int64) string {
	if n == 0 {
		return ""
	}
	return render.Bytes(n)
}

func number(n Maybe) string {
	if !n.OK {
		return ""
	}
	return strconv.FormatInt(n.N, 10)
}

func minute(ms Maybe) string {
	if !ms.OK {
		return ""
	}
	return render.Minute(ms.N)
}

// age is how long ago the newest record was; one of the future stands out.
func age(ms Maybe, st Style) string {
	if !ms.OK {
		return ""
	}
	text := render.Duration(st.NowMs - ms.N)
	if ms.N > st.NowMs {
		return st.Theme.Look(text)
	}
	return text
}
