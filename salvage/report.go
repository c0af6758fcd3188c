package salvage

import (
	"fmt"

	"kseg/format"
	"kseg/render"
)

// AppendJSON appends {"kind":"salvaged",...}.
func (s *Salvaged) AppendJSON(dst []byte) []byte {
	o := render.NewObj(dst, "salvaged")
	o.StrOrNull("topic", format.TopicOf(s.Partition))
	o.Str("partition", s.Partition)
	o.Str("source", s.Copies[0].Path)
	o.OpenArray("sources")
	for _, c := range s.Copies {
		o.Open("")
		o.Str("path", c.Path)
		o.Int("batches", c.Batches)
		o.Int("records", c.Records)
		o.Close()
	}
	o.CloseArray()
	o.StrOrNull("path", s.Path)
	o.Int("segments", s.Segments)
	o.Int("batches", s.Batches)
	o.Int("records", s.Records)
	o.Int("bytes", s.Bytes)
	o.OpenArray("lost")
	for _, l := range s.Lost {
		o.Open("")
		o.IntOrNull("first_offset", l.FirstOffset, true)
		o.IntOrNull("last_offset", l.LastOffset, !l.Open)
		o.StrOrNull("file", l.File)
		o.IntOrNull("position", l.Pos, l.File != "")
		o.IntOrNull("length", l.Length, l.File != "")
		o.Str("reason", l.Reason)
		o.Bool("elsewhere", l.Elsewhere)
		o.Close()
	}
	o.CloseArray()
	o.Int("log_start_offset", s.LogStart)
	o.Int("log_end_offset", s.LogEnd)
	o.Bool("loads", s.Predicted)
	o.IntOrNull("diverged_at", s.DivergedAt, s.Diverged)
	o.Int("doubles", s.Doubles)
	o.Strs("changed", s.Changed)
	o.Int("remade", s.Remade)
	o.Strs("notes", s.Notes)
	reason := ""
	if s.Err != nil {
		reason = s.Err.Error()
	}
	o.StrOrNull("error", reason)
	return o.Line()
}

// LostOffsets counts the offsets that are lost; those of open ranges are not known.
func (s *Salvaged) LostOffsets() (n int64) {
	for _, l := range s.Lost {
		if !l.Open && !l.Elsewhere {
			n += l.LastOffset - l.FirstOffset + 1
		}
	}
	return n
}

// AppendText appends what became of the partition: the answer, what is lost, what was done.
func (s *Salvaged) AppendText(dst []byte, theme render.Theme, width int) []byte {
	word, headline := theme.Good("whole   "), fmt.Sprintf("%s in %s, offsets %d to %d", records(s.Records),
		render.Plural(s.Segments, "segment", "segments"), s.LogStart, s.LogEnd)
	switch {
	case s.Err != nil:
		word, headline = theme.Bad("failed  "), ""
	case len(s.Lost) > 0:
		word = theme.Look("salvaged")
		headline += "; " + s.lostText()
	case !s.Whole():
		word = theme.Look("salvaged")
		headline += "; nothing vouches for some"
	}
	dst = append(dst, word+"  "+theme.Strong(render.Escaped(s.Partition))+"  "+headline...)
	for len(dst) > 0 && dst[len(dst)-1] == ' ' {
		dst = dst[:len(dst)-1]
	}
	dst = append(dst, '\n')
	say := func(text string) {
		for _, line := range render.Wrap(render.Escaped(text), width-len(indent)) {
			dst = append(dst, indent+line+"\n"...)
		}
	}
	if s.Err != nil {
		say(s.Err.Error())
		return dst
	}
	if len(s.Copies) > 1 {
		table := render.NewColumns("lnr").Fit(theme)
		for _, c := range s.Copies {
			table.Row("from", render.Escaped(c.Path), records(c.Records))
		}
		dst = table.Append(dst, indent)
	}
	for _, l := range s.Lost[:min(len(s.Lost), mostTold)] {
		say(l.text())
	}
	if more := len(s.Lost) - mostTold; more > 0 {
		say(fmt.Sprintf("and %s; --output json lists them all", render.Plural(int64(more), "more place", "more places")))
	}
	for _, c := range s.Changed {
		say("changed: " + c)
	}
	if s.Doubles > 0 {
		say(render.Plural(s.Doubles, "batch was there twice", "batches were there twice"))
	}
	for _, n := range s.Notes {
		say(n)
	}
	if s.Predicted {
		say(fmt.Sprintf("a broker loads it, with log end offset %d, and cuts nothing", s.LogEnd))
	}
	return dst
}

const indent = "          "

// mostTold bounds the places that are told of one by one.
const mostTold = 50

func records(n int64) string { return render.Plural(n, "record", "records") }

func (s *Salvaged) lostText() string {
	n := s.LostOffsets()
	open := false
	for _, l := range s.Lost {
		open = open || l.Open
	}
	switch {
	case n == 0 && !open:
		return render.Plural(int64(len(s.Lost)), "batch does", "batches do") + " not fit"
	case n == 0:
		return "what comes after them is lost"
	case open:
		return render.Plural(n, "offset", "offsets") + " and what comes after the last are lost"
	}
	return render.Plural(n, "offset is", "offsets are") + " lost"
}

// text is "lost 44–47, orders-0/00000000000000000032.log @1084, 365 bytes: the checksum does not match".
func (l *Lost) text() string {
	where := fmt.Sprintf("lost %d–%d", l.FirstOffset, l.LastOffset)
	switch {
	case l.Elsewhere:
		where = fmt.Sprintf("left out what says that it is %d–%d", l.FirstOffset, l.LastOffset)
	case l.Open:
		where = fmt.Sprintf("lost: what comes after offset %d", l.FirstOffset-1)
	case l.FirstOffset == l.LastOffset:
		where = fmt.Sprintf("lost %d", l.FirstOffset)
	}
	if l.File != "" {
		where += fmt.Sprintf(", %s @%d, %s", l.File, l.Pos, render.Plural(l.Length, "byte", "bytes"))
	}
	return where + ": " + l.Reason
}

// Columns are those of -o table.
func Columns() []render.Column {
	return []render.Column{{Name: "partition"}, {Name: "from", Right: true}, {Name: "to", Right: true},
		{Name: "segments", Right: true}, {Name: "batches", Right: true}, {Name: "records", Right: true},
		{Name: "bytes", Right: true}, {Name: "lost", Right: true}, {Name: "places", Right: true}}
}

// Row is the line of -o table.
func (s *Salvaged) Row() []string {
	n := func(v int64) string { return fmt.Sprint(v) }
	return []string{render.Escaped(s.Partition), n(s.LogStart), n(s.LogEnd), n(s.Segments), n(s.Batches), n(s.Records),
		n(s.Bytes), n(s.LostOffsets()), n(int64(len(s.Lost)))}
}

// Summary counts what a run did.
type Summary struct {
	Partitions, Failed, Records, Bytes int64
	Lost                               int64 // partitions that are not whole
	LostOffsets                        int64
}

// Add takes the result for one partition.
func (m *Summary) Add(s *Salvaged) {
	m.Partitions++
	if s.Err != nil {
		m.Failed++
		return
	}
	m.Records, m.Bytes = m.Records+s.Records, m.Bytes+s.Bytes
	if !s.Whole() {
		m.Lost++
		m.LostOffsets += s.LostOffsets()
	}
}

// Text is the verdict: "salvaged: 116 records (10.5 KiB) of 1 partition, in saved, read again and compared; 4 offsets
// of 1 partition are lost".
func (m *Summary) Text(dir string, dryRun bool) string {
	text := fmt.Sprintf("salvaged: %s (%s) of %s, in %s, read again and compared", records(m.Records),
		render.Bytes(m.Bytes), render.Plural(m.Partitions-m.Failed, "partition", "partitions"), dir)
	if dryRun {
		text = fmt.Sprintf("dry run: %s (%s) of %s would be written", records(m.Records), render.Bytes(m.Bytes),
			render.Plural(m.Partitions-m.Failed, "partition", "partitions"))
	}
	if m.Lost > 0 {
		text += fmt.Sprintf("; %s of %s lost", render.Plural(m.LostOffsets, "offset", "offsets"),
			render.Plural(m.Lost, "partition", "partitions"))
	}
	if m.Failed > 0 {
		text += fmt.Sprintf("; %s not salvaged", render.Plural(m.Failed, "partition was", "partitions were"))
	}
	return text
}
