package ls

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"kseg/format"
	"kseg/render"
)

// StatsColumns head what StatsCells returns, after the name of the topic or partition.
var StatsColumns = []render.Column{{Name: "batches", Right: true}, {Name: "records", Right: true},
	{Name: "batch p50", Right: true},
	{Name: "p99", Right: true}, {Name: "max", Right: true}, {Name: "records p50", Right: true}, {Name: "p99", Right: true},
	{Name: "max", Right: true}, {Name: "headers", Right: true}, {Name: "codecs"}, {Name: "ratio", Right: true},
	{Name: "producers", Right: true}, {Name: "magic"}, {Name: "back", Right: true}}

// StatsCells are the row's name and its stats.
func (r *Row) StatsCells(st Style) []string {
	s := r.sums().Stats
	b, n := &s.BatchBytes, &s.BatchCounts
	return []string{r.StatsName(st), render.Count(s.Batches), render.Count(s.Records), render.Bytes(b.Quantile(50)),
		render.Bytes(b.Quantile(99)), render.Bytes(b.Max()), render.Count(n.Quantile(50)), render.Count(n.Quantile(99)),
		render.Count(n.Max()), percent(s.headerBytes(), s.Bytes), s.codecs(), ratio(s.Packed, s.Plain),
		render.Count(int64(len(s.Producers))), s.magics(), render.Count(s.Back)}
}

// StatsName is the name of the row's topic or partition.
func (r *Row) StatsName(st Style) string {
	if r.Topic != nil {
		return render.Escaped(r.Topic.Name)
	}
	return r.Partition.cells(st)[0]
}

// headerBytes are those of all batch headers, of magic 0 and 1 those of the messages or wrappers.
func (s *Stats) headerBytes() int64 {
	sizes := [3]int64{26, 34, format.BatchHeaderSize}
	sum := int64(0)
	for magic, n := range s.Magics {
		sum += n * sizes[magic]
	}
	return sum
}

// codecs are the codecs by their share of the bytes: "zstd 97%, none 3%".
func (s *Stats) codecs() string {
	var parts []string
	for i, bytes := range s.CodecBytes {
		switch codec := format.Codec(i).String(); {
		case bytes == s.Bytes && bytes > 0:
			return codec
		case bytes > 0:
			parts = append(parts, fmt.Sprintf("%s %.0f%%", codec, 100*float64(bytes)/float64(s.Bytes)))
		}
	}
	return strings.Join(parts, ", ")
}

func (s *Stats) magics() string {
	var parts []string
	for magic, n := range s.Magics {
		if n > 0 {
			parts = append(parts, strconv.Itoa(magic))
		}
	}
	return strings.Join(parts, ",")
}

func ratio(packed, plain int64) string {
	if packed == 0 {
		return ""
	}
	return strconv.FormatFloat(float64(plain)/float64(packed), 'f', 2, 64)
}

// Batching says of a topic whose producers hardly batch what that costs; "" of others.
func (t *Topic) Batching() string {
	s := t.Stats
	if s == nil || s.Batches < 100 || s.Bytes == 0 || s.BatchCounts.Quantile(50) > 2 || 10*s.headerBytes() < s.Bytes {
		return ""
	}
	return fmt.Sprintf("%s: half of the batches have no more than %s, and %s of the bytes are batch headers: its "+
		"producers hardly batch. "+
		"kseg explain size FILE says what another linger.ms and batch.size would make of a segment's records.",
		render.Escaped(t.Name),
		render.Plural(s.BatchCounts.Quantile(50), "record", "records"), percent(s.headerBytes(), s.Bytes))
}

// appendStats appends the stats of a topic or partition; null if there are none.
func appendStats(o *render.Obj, s *Stats) {
	if s == nil {
		o.Null("stats")
		return
	}
	o.Open("stats")
	o.Int("batches", s.Batches)
	o.Int("bytes", s.Bytes)
	for _, d := range []struct {
		name string
		of   *Distribution
	}{{"batch_bytes", &s.BatchBytes}, {"batch_records", &s.BatchCounts}} {
		o.Open(d.name)
		o.Float("mean", d.of.Mean(), 3)
		o.Int("p50", d.of.Quantile(50))
		o.Int("p99", d.of.Quantile(99))
		o.Int("max", d.of.Max())
		o.Close()
	}
	o.Int("header_bytes", s.headerBytes())
	o.Open("codec_bytes")
	for i, n := range s.CodecBytes {
		if n > 0 {
			o.Int(format.Codec(i).String(), n)
		}
	}
	o.Close()
	o.Open("magic_batches")
	for magic, n := range s.Magics {
		o.Int(strconv.Itoa(magic), n)
	}
	o.Close()
	o.Int("producers", int64(len(s.Producers)))
	o.Int("transactional_batches", s.Transactional)
	o.Int("control_batches", s.Control)
	o.Int("batches_back_in_time", s.Back)
	o.IntOrNull("packed_bytes", s.Packed, s.Plain > 0)
	o.IntOrNull("plain_bytes", s.Plain, s.Plain > 0)
	o.Int("unreadable_batches", s.Unreadable)
	o.Close()
}

// GroupRow is a line of a list by producer, codec or day.
type GroupRow struct {
	By  Group
	Key int64
	*Count
	share string
}

// GroupRows are the lines of such a list.
func (s *Stats) GroupRows(by Group) []GroupRow {
	var rows []GroupRow
	for _, key := range s.Grouped(by) {
		rows = append(rows, GroupRow{by, key, s.Groups[key], percent(s.Groups[key].Bytes, s.Bytes)})
	}
	return rows
}

// GroupColumns are the columns of a list by producer, codec or day.
func GroupColumns(by Group) []render.Column {
	columns := []render.Column{{Name: string(by), Right: by == ByProducer}, {Name: "records", Right: true},
		{Name: "bytes", Right: true},
		{Name: "share", Right: true}, {Name: "batches", Right: true}, {Name: "partitions", Right: true}}
	if by != ByDay {
		columns = append(columns, render.Column{Name: "first"}, render.Column{Name: "last"}, render.Column{Name: "ratio",
			Right: true})
	}
	if by == ByProducer {
		columns = append(columns, render.Column{Name: "sequence gaps", Right: true})
	}
	return columns
}

// name is the producer, the codec or the day in words.
func (g GroupRow) name() string {
	switch {
	case g.By == ByCodec:
		return format.Codec(g.Key).String()
	case g.Key == noKey:
		return "none"
	case g.By == ByDay && g.Key > 253402300799999/dayMs:
		return "day " + strconv.FormatInt(g.Key, 10)
	case g.By == ByDay:
		return time.UnixMilli(g.Key * dayMs).UTC().Format(time.DateOnly)
	}
	return strconv.FormatInt(g.Key, 10)
}

// Cells are the row under GroupColumns.
func (g GroupRow) Cells() []string {
	cells := []string{g.name(), render.Count(g.Records), render.Bytes(g.Bytes), g.share, render.Count(g.Batches),
		render.Count(g.Partitions)}
	if g.By != ByDay {
		cells = append(cells, minute(g.FirstMs), minute(g.LastMs), ratio(g.Packed, g.Plain))
	}
	if g.By == ByProducer {
		cells = append(cells, render.Count(g.Gaps))
	}
	return cells
}

// AppendJSON appends the row as a producer_stats, codec_stats or day_stats line.
func (g GroupRow) AppendJSON(dst []byte) []byte {
	o := render.NewObj(dst, string(g.By)+"_stats")
	switch g.By {
	case ByProducer:
		o.IntOrNull("producer_id", g.Key, g.Key != noKey)
	case ByCodec:
		o.Str("codec", g.name())
	default:
		if g.Key == noKey {
			o.Null("day")
		} else {
			o.Str("day", g.name())
		}
	}
	o.Int("records", g.Records)
	o.Int("bytes", g.Bytes)
	o.Int("batches", g.Batches)
	o.Int("partitions", g.Partitions)
	if g.By != ByDay {
		maybeTime(&o, "first_timestamp", g.FirstMs)
		maybeTime(&o, "last_timestamp", g.LastMs)
		o.IntOrNull("packed_bytes", g.Packed, g.Plain > 0)
		o.IntOrNull("plain_bytes", g.Plain, g.Plain > 0)
	}
	if g.By == ByProducer {
		o.Int("sequence_gaps", g.Gaps)
	}
	return o.Line()
}
