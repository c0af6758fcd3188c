package lookup

import (
	"fmt"
	"strings"

	"kseg/format"
	"kseg/render"
)

// Style is how text is written.
type Style struct {
	Theme   render.Theme
	Payload render.Payload
	Width   int  // columns
	ASCII   bool // plots without block characters
}

// AppendText appends the lookup for a reader: the answer in one line, then the steps.
func (r *Result) AppendText(dst []byte, st Style) []byte {
	for i, line := range render.Wrap(r.headline(st.Theme), st.Theme.Width) {
		if i > 0 {
			dst = append(dst, "  "...)
		}
		dst = append(append(dst, line...), '\n')
	}
	lines := render.NewColumns("lw").Fit(st.Theme)
	add := func(label, text string) { lines.Row(label, text) }
	r.segmentLines(add)
	for i, try := range r.Tries {
		if i > 0 {
			add("segment", fmt.Sprintf("%d is the next one", try.Base))
		}
		r.tryLines(try, st.Theme, add)
	}
	r.answerLines(st.Theme, add)
	for _, n := range r.Notes {
		for i, line := range render.Wrap(render.Escaped(n), max(40, st.Width-11)) {
			label := ""
			if i == 0 {
				label = st.Theme.Look("note")
			}
			add(label, line)
		}
	}
	dst = append(dst, '\n')
	dst = lines.Append(dst, "")
	return r.appendRecords(dst, st)
}

// headline is the answer.
func (r *Result) headline(th render.Theme) string {
	what := fmt.Sprintf("offset %d", r.Target)
	if r.Time != nil {
		what = fmt.Sprintf("timestamp %d (%s)", r.Time.TimestampMs, render.Instant(r.Time.TimestampMs))
	}
	switch r.Outcome {
	case Found:
		return r.hitLine(what, th)
	case AtEnd:
		return fmt.Sprintf("%s → %s: it is the log end offset; a broker answers with no records and waits", what,
			th.Look("nothing yet"))
	case BelowStart:
		return fmt.Sprintf("%s → %s: it is below the log start offset %d", what, th.Bad("OffsetOutOfRange"), r.Start)
	case Remote:
		return fmt.Sprintf("%s → %s: the first local segment begins at %d, the log at %d; a broker reads it from there "+
			"for a consumer", what, th.Look("in remote storage"), r.FirstBase, r.Partition.LogStart)
	case BeyondEnd:
		return fmt.Sprintf("%s → %s: it is beyond the log end offset %d", what, th.Bad("OffsetOutOfRange"), r.End)
	case Failed:
		return fmt.Sprintf("%s → %s: the broker's reader throws in segment %d", what, th.Bad("an error"), r.last().Base)
	}
	if r.Time != nil && len(r.Tries) == 0 {
		return fmt.Sprintf("%s → %s: no segment's largest timestamp reaches it", what, th.Look("nothing"))
	}
	return fmt.Sprintf("%s → %s", what, th.Look("nothing"))
}

func (r *Result) hitLine(what string, th render.Theme) string {
	try := r.last()
	hit := try.Scan.Hit
	record := ""
	if r.Time != nil {
		record = fmt.Sprintf("offset %d (%s) in ", r.Time.Offset, render.Instant(r.Time.RecordTimestampMs))
	}
	text := fmt.Sprintf("%s → %ssegment %d, batch %s at byte %d (%d bytes); %s, %d bytes scanned", what, record, try.Base,
		offsets(hit), hit.Position, hit.Size, render.Plural(try.Scan.HeaderHops, "hop", "hops"), try.Scan.BytesScanned())
	if r.Time != nil {
		return text
	}
	held := th.Good("held")
	if try.Scan.BytesScanned() > r.Bound {
		held = th.Look("exceeded")
	}
	text = fmt.Sprintf("%s, bound %d: %s", text, r.Bound, held)
	if m := r.missed(); m != nil {
		text += "\n" + th.Bad(fmt.Sprintf("WRONG: the log has it in the batch at byte %d (offsets %s)", m.Position,
			offsets(*m)))
	}
	return text
}

// offsets is the range of a batch; a compressed message of the old formats does not tell its first.
func offsets(h Hop) string {
	if h.BaseOffset == h.LastOffset {
		return fmt.Sprint(h.BaseOffset)
	}
	return fmt.Sprintf("%d–%d", h.BaseOffset, h.LastOffset)
}

// offsetRange is "offset 7" or "offsets 7–9".
func offsetRange(first, last int64) string {
	if first == last {
		return fmt.Sprintf("offset %d", first)
	}
	return fmt.Sprintf("offsets %d–%d", first, last)
}

// segmentLines say how the segment was chosen.
func (r *Result) segmentLines(add func(label, text string)) {
	all := render.Plural(int64(r.Segments), "segment", "segments")
	if r.Segments > 1 {
		all += fmt.Sprintf(", %d … %d", r.FirstBase, r.LastBase)
	}
	if r.Time == nil {
		if r.Segments == 1 && len(r.Tries) == 0 {
			all = fmt.Sprintf("%d is the only one looked at", r.FirstBase)
		}
		switch {
		case len(r.Tries) > 0 && r.Target < r.FirstBase:
			add("segment", fmt.Sprintf("%d is the first one looked at (%s)", r.FirstBase, all))
		case len(r.Tries) > 0:
			add("segment", fmt.Sprintf("%d is the greatest base offset ≤ %d (%s)", r.Tries[0].Base, r.Target, all))
		default:
			add("segment", all)
		}
		return
	}
	passed := r.Time.Passed
	for i, p := range passed {
		if len(passed) > 6 && i >= 2 && i < len(passed)-2 {
			if i == 2 {
				add("", fmt.Sprintf("… %d more", len(passed)-4))
			}
			continue
		}
		verdict := "< the timestamp, passed over"
		if p.LargestMs >= r.Time.TimestampMs {
			verdict = "≥ the timestamp: this one is searched, and no other"
		}
		label := ""
		if i == 0 {
			label = "segments"
		}
		add(label, fmt.Sprintf("%d: largest timestamp %d (%s) %s", p.Base, p.LargestMs, p.Source, verdict))
	}
}

// tryLines show the search in one segment.
func (r *Result) tryLines(t *Try, th render.Theme, add func(label, text string)) {
	if t.Time != nil {
		add("time index", indexLine(t.Time, t.Base, fmt.Sprintf("%d → offset %d", t.Time.Key, t.Time.Value)))
	}
	add("phase 1", indexLine(&t.Index, t.Base, fmt.Sprintf("%d @ %d", t.Index.Key, t.Index.Value)))
	label := r.hopLines(t, th, add)
	switch {
	case t.Scan.Found:
		add(label, fmt.Sprintf("@%d  %s  %s", t.Scan.Hit.Position, offsets(t.Scan.Hit), th.Good("hit")))
	case t.Scan.Err != nil:
		add(label, fmt.Sprintf("@%d  %s", t.Scan.End, th.Bad("the reader throws")))
	default:
		add(label, fmt.Sprintf("@%d  %s", t.Scan.End, th.Look("end of what a broker can read")))
	}
}

// hopLines show the batches skipped, of many the first ones, and return the label for the line after them.
func (r *Result) hopLines(t *Try, th render.Theme, add func(label, text string)) string {
	const most = 16
	label := "phase 2"
	for i, h := range t.Hops {
		if i == most && t.Scan.HeaderHops > most+1 {
			add("", th.Dim(fmt.Sprintf("… %s, skip %d bytes", render.Plural(t.Scan.HeaderHops-most, "more batch",
				"more batches"),
				t.Scan.Start+t.Scan.BytesScanned()-h.Position)))
			break
		}
		add(label, fmt.Sprintf("@%d  %s  %s, skip %d bytes", h.Position, offsets(h), r.skipReason(h), h.Size))
		label = ""
	}
	return label
}

func (r *Result) skipReason(h Hop) string {
	switch {
	case r.Time != nil:
		return "nothing late enough"
	case h.LastOffset < r.Target:
		return fmt.Sprintf("last < %d", r.Target)
	}
	return "4.4 reads the next header before it takes this batch"
}

// indexLine shows the search in an index file.
func indexLine(x *IndexStep, base int64, entry string) string {
	if x.Missing {
		return "no index file → byte 0"
	}
	name := x.File
	if x.Supposed {
		name = "as if rebuilt"
	}
	if x.Search.Slot < 0 {
		entry = "none, so from the segment's start"
	}
	if x.Entries == 0 {
		return fmt.Sprintf("%s, no entries → %s", render.Escaped(name), entry)
	}
	section := ""
	switch x.Search.Section {
	case format.SectionHot:
		section = fmt.Sprintf(", hot section [%d..%d]", x.Search.Probes[0], x.Entries-1)
	case format.SectionCold:
		section = fmt.Sprintf(", cold section [0..%d]", x.Search.Probes[0])
	case format.SectionNone:
		section = ", all entries are above"
	}
	probes := make([]string, len(x.Search.Probes))
	for i, p := range x.Search.Probes {
		probes[i] = fmt.Sprint(p)
	}
	return fmt.Sprintf("%s, %s%s: probes %s → %s", render.Escaped(name),
		render.Plural(int64(x.Entries), "entry", "entries"), section, strings.Join(probes, ", "), entry)
}

// answerLines say what was read and what a consumer makes of it.
func (r *Result) answerLines(th render.Theme, add func(label, text string)) {
	if try := r.last(); try != nil {
		reads := render.Plural(try.Scan.HeaderReads, "batch header", "batch headers")
		switch {
		case try.Scan.LookaheadReads > 0:
			reads += fmt.Sprintf(", and %d look-ahead as 4.4 does", try.Scan.LookaheadReads)
		case try.Scan.Found && r.Time == nil:
			reads += ", no look-ahead"
		}
		add("reads", reads)
	}
	if b := r.Batch; b != nil && r.Outcome == Found {
		add("consumer", b.consumerLine(r.last().Scan.Hit))
	}
	if len(r.Tries) > 0 {
		add("interval", fmt.Sprintf("%d (%s)", r.Interval.Bytes, r.Interval.Explain()))
	}
	if p := r.Partition; p.LogStart >= 0 {
		add("log start", fmt.Sprintf("%d by the checkpoint", p.LogStart))
	}
	if p := r.Partition; p.HighWatermark >= 0 {
		add("watermark", fmt.Sprintf("%d by the checkpoint", p.HighWatermark))
	}
}

func (b *HitBatch) consumerLine(hit Hop) string {
	switch {
	case b.Control:
		return "is given the batch, which holds a control record, and passes over it"
	case b.Records == 0:
		return "is given the batch, which has no records left, and passes over it"
	case b.Discarded == 0 && b.Records == 1:
		return "gets the 1 record of the batch and keeps it"
	case b.Discarded == 0:
		return fmt.Sprintf("gets all %s of the batch and keeps them", render.Plural(b.Records, "record", "records"))
	case b.FirstAfter < 0:
		return fmt.Sprintf("gets %s and throws all away: none is at or above the offset", render.Plural(b.Records, "record",
			"records"))
	}
	thrown := Hop{BaseOffset: hit.BaseOffset, LastOffset: b.FirstAfter - 1}
	return fmt.Sprintf("gets all %s of the batch, throws %d away (%s)", render.Plural(b.Records, "record", "records"),
		b.Discarded, offsets(thrown))
}

// appendRecords appends the records of the hit, if they were kept.
func (r *Result) appendRecords(dst []byte, st Style) []byte {
	if r.Batch == nil || len(r.Batch.List) == 0 {
		return dst
	}
	dst = append(dst, '\n')
	rows := render.NewColumns("rlnnl").Fit(st.Theme, 1)
	rows.Head("offset", "timestamp", "key", "value", "")
	for _, rec := range r.Batch.List {
		cell := func(b []byte) string {
			if b == nil {
				return "null"
			}
			if st.Payload.LengthsOnly() {
				return string(st.Payload.AppendText(nil, b))
			}
			beginning, rest := render.Brief(b)
			return string(st.Payload.AppendText(nil, beginning)) + rest
		}
		verdict := ""
		if rec.Discarded {
			verdict = st.Theme.Dim("thrown away")
		}
		rows.Row(fmt.Sprint(rec.Offset), render.Instant(rec.TimestampMs), cell(rec.Key), cell(rec.Value), verdict)
	}
	return rows.Append(dst, "")
}

// ResultColumns head the table of a lookup.
var ResultColumns = []render.Column{
	{Name: "partition"}, {Name: "step"}, {Name: "segment", Right: true}, {Name: "position", Right: true},
	{Name: "size", Right: true},
	{Name: "first", Right: true}, {Name: "last", Right: true}, {Name: "what"},
}

// Rows are the table's: a row an index and a row a batch header.
func (r *Result) Rows(th render.Theme) [][]string {
	name := render.Escaped(r.Partition.Name)
	var rows [][]string
	for _, t := range r.Tries {
		base := fmt.Sprint(t.Base)
		if t.Time != nil {
			rows = append(rows, []string{name, "time index", base, "", "", fmt.Sprint(t.Time.Value), "",
				indexLine(t.Time, t.Base, fmt.Sprintf("%d → offset %d", t.Time.Key, t.Time.Value))})
		}
		rows = append(rows, []string{name, "index", base, fmt.Sprint(t.Index.Value), "", fmt.Sprint(t.Index.Key), "",
			indexLine(&t.Index, t.Base, fmt.Sprintf("%d @ %d", t.Index.Key, t.Index.Value))})
		for _, h := range t.Hops {
			rows = append(rows, hopRow(name, "hop", base, h, r.skipReason(h)))
		}
		if t.Scan.Found {
			rows = append(rows, hopRow(name, "hit", base, t.Scan.Hit, th.Good("hit")))
		}
	}
	return append(rows, []string{name, "answer", "", "", "", "", "", r.headline(th)})
}

func hopRow(name, step, base string, h Hop, what string) []string {
	return []string{name, step, base, fmt.Sprint(h.Position), fmt.Sprint(h.Size), fmt.Sprint(h.BaseOffset),
		fmt.Sprint(h.LastOffset), what}
}
