package compaction

import (
	"fmt"
	"strconv"

	"kseg/broker"
	"kseg/render"
	"kseg/schema"
	"kseg/state"
)

// AppendText appends the report for a reader: the answer, the range, what a round does segment by segment, and what is
// wrong.
func (r *Report) AppendText(dst []byte, theme render.Theme, payload render.Payload, width int) []byte {
	dst = append(dst, theme.Strong(render.Escaped(r.Partition.Display))...)
	dst = append(dst, '\n')
	dst = render.AppendParagraph(dst, r.answer(), width)
	dst = append(dst, '\n')
	table := render.NewColumns("lrrw").Fit(theme)
	for _, row := range r.rangeRows() {
		table.Row(row...)
	}
	dst = table.Append(dst, "")
	if r.Round != nil && len(r.Round.Segments) > 0 {
		dst = r.appendRound(append(dst, '\n'), theme, width)
	}
	if r.Life != nil || r.Census != nil {
		dst = r.appendKeys(dst, theme, payload)
	}
	dst = render.AppendParts(append(dst, '\n'), r.header(), width)
	return r.AppendWarnings(dst, theme, width)
}

// AppendWarnings appends the warnings, a paragraph each.
func (r *Report) AppendWarnings(dst []byte, theme render.Theme, width int) []byte {
	for _, w := range r.Warnings {
		dst = append(dst, theme.Look("warning")...)
		dst = append(dst, "  "...)
		dst = render.AppendParagraph(dst, render.Escaped(w), width-len("warning  "))
	}
	return dst
}

// answer says whether the cleaner would come.
func (r *Report) answer() string {
	switch {
	case r.Would && r.Place > 1:
		return fmt.Sprintf("It is number %d in the queue of the log cleaner: %s.", r.Place, render.Escaped(r.Reason))
	case r.Would:
		return "The log cleaner would clean it now: " + render.Escaped(r.Reason) + "."
	case r.CleanAt != nil:
		return fmt.Sprintf("The log cleaner would clean it from %s UTC on, not now: %s.", render.Minute(*r.CleanAt),
			render.Escaped(r.Reason))
	}
	return "The log cleaner would not clean it now: " + render.Escaped(r.Reason) + "."
}

// rangeRows are the parts of the log: offsets, bytes, and what bounds them.
func (r *Report) rangeRows() [][]string {
	g := &r.Range
	from := "no checkpoint: never cleaned"
	switch {
	case g.Reset != "":
		from = "checkpoint " + strconv.FormatInt(*r.Log.CleanedTo, 10) + ", reset: " + g.Reset
	case r.Log.CleanedTo != nil:
		from = "by the checkpoint"
	}
	rows := [][]string{{"clean", span(r.Log.StartOffset, g.FirstDirty), render.Bytes(g.CleanBytes), from}}
	rows = append(rows, []string{"dirty", span(g.FirstDirty, g.CleanTo), render.Bytes(g.DirtyBytes), percent(g.Ratio()) +
		" dirty"})
	rest := int64(0)
	for _, seg := range r.Log.Segments {
		if seg.Base >= g.CleanTo {
			rest += seg.Size
		}
	}
	why := r.limitReason()
	if g.CleanTo != g.FirstUncleanable {
		why = fmt.Sprintf("%d is in segment %d, and segments are cleaned whole: %s", g.FirstUncleanable, g.CleanTo, why)
	}
	return append(rows, []string{"uncleanable", span(g.CleanTo, r.Log.EndOffset), render.Bytes(rest), why})
}

// span writes offsets from one up to, not including, another.
func span(from, to int64) string {
	if from >= to {
		return "none"
	}
	return fmt.Sprintf("%d–%d", from, to-1)
}

// appendRound appends what one round does.
func (r *Report) appendRound(dst []byte, theme render.Theme, width int) []byte {
	round := r.Round
	table := render.NewColumns("rrrrrrrrrl").Fit(theme, 1, 7, 6, 8)
	table.Head("segment", "size", "records", "kept", "superseded", "tombstones", "aborted", "markers", "no key", "becomes")
	for i := range round.Segments {
		s := &round.Segments[i]
		becomes := "part of " + strconv.FormatInt(s.Into, 10)
		if s.Into == s.Base {
			becomes = r.becomes(s.Base)
		}
		noKey := count(s.Removed.NoKey)
		if s.Removed.NoKey > 0 {
			noKey = theme.Bad(noKey)
		}
		table.Row(strconv.FormatInt(s.Base, 10), render.Bytes(s.Size), render.Count(s.Records), render.Count(s.Kept),
			count(s.Removed.Superseded),
			count(s.Removed.Tombstone), count(s.Removed.Aborted), count(s.Removed.Marker), noKey, becomes)
	}
	dst = table.Append(dst, "")
	if round.Stops != nil {
		return dst
	}
	dst = append(dst, '\n')
	for _, sentence := range r.roundSentences() {
		dst = render.AppendParagraph(dst, sentence, width)
	}
	return dst
}

// becomes is the size of the segment that a round leaves at a base offset.
func (r *Report) becomes(base int64) string {
	for _, s := range r.Round.After {
		switch {
		case s.Base != base:
		case s.Exact:
			return render.Bytes(s.Size)
		default:
			return "about " + render.Bytes(s.Size)
		}
	}
	return ""
}

// count is a number, and nothing for none.
func count(n int64) string {
	if n == 0 {
		return "-"
	}
	return render.Count(n)
}

func (r *Report) roundSentences() []string {
	round := r.Round
	all := round.RecordsKept
	removed := r.removed()
	all += removed.Sum()
	about := ""
	if !round.Exact {
		about = "about "
	}
	out := []string{fmt.Sprintf("One round keeps %s of %s and %s%s of %s, and cleans up to offset %d: %s in the dirty "+
		"part, %s of the %s that the offset map may have.", render.Count(round.RecordsKept),
		render.Plural(all, "record", "records"), about, render.Bytes(round.BytesKept), render.Bytes(round.BytesRead),
		round.EndOffset, render.Plural(round.Keys, "unique key", "unique keys"),
		render.Bytes(round.Keys*broker.OffsetMapEntry), render.Bytes(r.model.MapSlots()*broker.OffsetMapEntry))}
	if round.EmptyBatches > 0 {
		out = append(out, fmt.Sprintf("%s without records: for the state of producers, or for the last offset.",
			stays(round.EmptyBatches)))
	}
	if round.NewHorizons > 0 {
		out = append(out, fmt.Sprintf("%s a delete horizon: tombstones and markers in them can go in a round after %s UTC "+
			"that finds the log dirty again.", gets(round.NewHorizons), render.Minute(r.now+r.model.DeleteRetentionMs)))
	} else if round.NextHorizonMs != broker.NeverForced {
		out = append(out, fmt.Sprintf("Tombstones and markers that stay can go from %s UTC on.",
			render.Minute(round.NextHorizonMs)))
	}
	return out
}

func stays(n int64) string {
	if n == 1 {
		return "1 batch stays"
	}
	return render.Count(n) + " batches stay"
}

func gets(n int64) string {
	if n == 1 {
		return "1 batch gets"
	}
	return render.Count(n) + " batches get"
}

// appendKeys appends the life of a key, and the most rewritten keys.
func (r *Report) appendKeys(dst []byte, theme render.Theme, payload render.Payload) []byte {
	if r.Life != nil {
		table := render.NewColumns("rlrw").Fit(theme, render.Below, 1)
		table.Head("offset", "time", "value", "what becomes of it")
		for i := range r.Life {
			k := &r.Life[i]
			value := "tombstone"
			if k.ValueSize >= 0 {
				value = render.Bytes(k.ValueSize)
			}
			table.Row(strconv.FormatInt(k.Offset, 10), render.Instant(k.TimestampMs), value, k.what(r))
		}
		dst = table.Append(append(dst, '\n'), "")
	}
	if r.Census == nil {
		return dst
	}
	topic, decoder := schema.TopicFor(r.Partition.Name), keyDecoder(payload)
	dst = append(dst, fmt.Sprintf("\n%s of %s in the whole log\n", render.Plural(r.Census.Unique, "unique key",
		"unique keys"), render.Plural(r.Census.Records, "record", "records"))...)
	if len(r.Census.Top) == 0 {
		return dst
	}
	table := render.NewColumns("rrrrln").Fit(theme, 2, 1)
	table.Head("records", "bytes", "first", "last", "", "key")
	for i := range r.Census.Top {
		k := &r.Census.Top[i]
		last := ""
		if k.Tombstone {
			last = "deleted"
		}
		table.Row(render.Count(k.Records), render.Bytes(k.Bytes), strconv.FormatInt(k.First, 10),
			strconv.FormatInt(k.Last, 10), last, keyText(decoder, topic, k, payload))
	}
	return table.Append(dst, "")
}

// header are the settings and offsets that decide, each with its source.
func (r *Report) header() []string {
	s := &r.Settings
	policy := "cleanup.policy " + strconv.Quote(s.CleanupPolicy.Value) + " (" + s.CleanupPolicy.Origin() + ")"
	if s.Assumed {
		policy = "cleanup.policy \"compact\" (assumed)"
	}
	parts := []string{policy, "min.cleanable.dirty.ratio " + s.MinDirtyRatio.Value + " (" + s.MinDirtyRatio.Origin() +
		")", duration("delete.retention.ms", s.DeleteRetentionMs)}
	if s.MinLagMs.Int() > 0 {
		parts = append(parts, duration("min.compaction.lag.ms", s.MinLagMs))
	}
	if s.MaxLagMs.Source != state.FromDefault {
		parts = append(parts, duration("max.compaction.lag.ms", s.MaxLagMs))
	}
	return append(parts, "segment.bytes "+render.Bytes(s.SegmentBytes.Int())+" ("+s.SegmentBytes.Origin()+")",
		fmt.Sprintf("high watermark %d (%s)", r.Log.HighWatermark, r.WatermarkSource), "now "+render.Minute(r.now)+" UTC")
}

func duration(key string, s state.Setting) string {
	return key + " " + render.Duration(s.Int()) + " (" + s.Origin() + ")"
}

// AppendSummary appends a line a partition, those first that a cleaner takes first.
func AppendSummary(dst []byte, reports []*Report, theme render.Theme, width int) []byte {
	table := render.NewColumns("rnrrrrrw").Fit(theme, 3, 5, render.Below, 6, 4)
	table.Head("", "partition", "dirty", "clean", "to clean", "cleaned to", "end", "what a cleaner does")
	for _, r := range reports {
		table.Row(r.summaryCells(theme)...)
	}
	dst = table.Append(dst, "")
	for _, r := range reports {
		for _, w := range r.Warnings {
			dst = append(dst, theme.Look("warning")...)
			dst = append(dst, "  "...)
			dst = render.AppendParagraph(dst, render.Escaped(r.Partition.Name+": "+w), width-len("warning  "))
		}
	}
	return dst
}

func (r *Report) summaryCells(theme render.Theme) []string {
	place, what := "", "not now: "+r.Reason
	switch {
	case r.Would:
		place, what = strconv.Itoa(r.Place), theme.Look("takes it now")
		if r.Round != nil && r.Round.Stops == nil {
			what += ", keeps " + render.Bytes(r.Round.BytesKept)
		}
	case r.Round != nil && r.Round.Stops != nil:
		what = theme.Bad("gives up: ") + render.Escaped(r.Round.Stops.Error())
	}
	cleaned := "-"
	if r.Log.CleanedTo != nil {
		cleaned = strconv.FormatInt(*r.Log.CleanedTo, 10)
	}
	return []string{place, render.Escaped(r.Partition.Name), percent(r.Range.Ratio()), render.Bytes(r.Range.CleanBytes),
		render.Bytes(r.Range.DirtyBytes), cleaned, strconv.FormatInt(r.Log.EndOffset, 10), what}
}

// Columns are those of the table form.
func Columns() []render.Column {
	return []render.Column{{Name: "place", Right: true}, {Name: "partition"}, {Name: "cleaned to", Right: true},
		{Name: "first dirty", Right: true}, {Name: "uncleanable", Right: true}, {Name: "limit"},
		{Name: "clean bytes", Right: true}, {Name: "cleanable bytes", Right: true}, {Name: "ratio", Right: true},
		{Name: "now"}, {Name: "clean at"}, {Name: "records", Right: true}, {Name: "kept", Right: true},
		{Name: "bytes kept", Right: true}, {Name: "why"}}
}

// Cells is the row of the table form.
func (r *Report) Cells(theme render.Theme) []string {
	cleaned, place, now, at, read, kept, bytes := "-", "", "no", "-", "-", "-", "-"
	if r.Log.CleanedTo != nil {
		cleaned = strconv.FormatInt(*r.Log.CleanedTo, 10)
	}
	if r.Would {
		place, now = strconv.Itoa(r.Place), theme.Look("yes")
	}
	if r.CleanAt != nil {
		at = render.Instant(*r.CleanAt)
	}
	if r.Round != nil {
		read, kept = strconv.FormatInt(r.Round.RecordsRead, 10), strconv.FormatInt(r.Round.RecordsKept, 10)
		if bytes = strconv.FormatInt(r.Round.BytesKept, 10); !r.Round.Exact {
			bytes = "about " + bytes
		}
	}
	return []string{place, render.Escaped(r.Partition.Name), cleaned, strconv.FormatInt(r.Range.FirstDirty, 10),
		strconv.FormatInt(r.Range.FirstUncleanable, 10), string(r.Range.Limit), strconv.FormatInt(r.Range.CleanBytes, 10),
		strconv.FormatInt(r.Range.DirtyBytes, 10), percent(r.Range.Ratio()), now, at, read, kept, bytes,
		render.Escaped(r.Reason)}
}
