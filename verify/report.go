package verify

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"kseg/format"
	"kseg/render"
)

// Report writes findings in one of the output formats. Finding is called with each, in order, and Close once at the
// end.
type Report interface {
	Finding(*Finding) error
	Close(*Summary) error
}

// JSONReport writes a line for each finding, and one for the summary.
type JSONReport struct {
	w   io.Writer
	buf []byte
}

// NewJSONReport returns a report for -o json.
func NewJSONReport(w io.Writer) *JSONReport { return &JSONReport{w: w} }

// Finding writes {"kind":"finding",...}.
func (r *JSONReport) Finding(f *Finding) error {
	o := render.NewObj(r.buf[:0], "finding")
	o.Str("code", f.Code)
	o.Str("severity", f.Severity.String())
	o.StrOrNull("topic", format.TopicOf(f.Partition))
	o.StrOrNull("partition", f.Partition)
	placeJSON(&o, &f.Place)
	if f.Producer == nil {
		o.Null("producer_id")
	} else {
		o.Int("producer_id", *f.Producer)
	}
	o.Int("count", int64(f.Count))
	o.Str("message", f.Message)
	o.OpenArray("evidence")
	for _, e := range f.Evidence {
		o.Open("")
		o.Str("name", e.Name)
		o.StrOrNull("want", e.Want)
		o.StrOrNull("got", e.Got)
		o.Close()
	}
	o.CloseArray()
	o.OpenArray("related")
	for i := range f.Related {
		o.Open("")
		placeJSON(&o, &f.Related[i])
		o.Close()
	}
	o.CloseArray()
	o.StrOrNull("next", f.Next)
	r.buf = o.Line()
	_, err := r.w.Write(r.buf)
	return err
}

func placeJSON(o *render.Obj, p *Place) {
	o.StrOrNull("file", p.File)
	o.IntOrNull("position", p.Pos, p.Pos >= 0)
	o.IntOrNull("length", p.Len, p.Len >= 0)
	o.IntOrNull("first_offset", p.FirstOffset, p.FirstOffset >= 0)
	o.IntOrNull("last_offset", p.LastOffset, p.LastOffset >= 0)
}

// Close writes {"kind":"summary",...}.
func (r *JSONReport) Close(s *Summary) error {
	o := render.NewObj(r.buf[:0], "summary")
	o.Str("verdict", string(s.Verdict()))
	o.Int("log_dirs", s.LogDirs)
	o.Int("partitions", s.Partitions)
	o.Int("segments", s.Segments)
	o.Int("batches", s.Batches)
	o.IntOrNull("records", s.Records, s.Level == Records)
	o.Int("bytes", s.Bytes)
	o.Open("findings")
	o.Int("damage", s.Damage)
	o.Int("warning", s.Warnings)
	o.Int("note", s.Notes)
	o.Close()
	o.Int("files", s.Files)
	o.IntOrNull("shard", int64(s.Shard), s.Shards > 0)
	o.IntOrNull("shards", int64(s.Shards), s.Shards > 0)
	o.IntOrNull("sampled", int64(s.Sampled), s.SampledOf > 0)
	o.IntOrNull("sampled_of", int64(s.SampledOf), s.SampledOf > 0)
	o.Bool("stopped_early", s.Stopped)
	o.Strs("not_read", s.NotRead)
	o.Strs("copies", s.Copies)
	r.buf = o.Line()
	_, err := r.w.Write(r.buf)
	return err
}

// TableReport writes a row for each finding.
type TableReport struct {
	table *render.Table
	theme render.Theme
	quiet bool
}

// NewTableReport returns a report for -o table; quiet leaves out the notes.
func NewTableReport(w io.Writer, theme render.Theme, quiet bool) *TableReport {
	return &TableReport{theme: theme, quiet: quiet, table: render.NewTable(w, theme, render.Column{Name: "severity"},
		render.Column{Name: "code"}, render.Column{Name: "file"}, render.Column{Name: "position", Right: true},
		render.Column{Name: "offsets", Right: true}, render.Column{Name: "count", Right: true})}
}

// Finding adds a row.
func (r *TableReport) Finding(f *Finding) error {
	if r.quiet && f.Severity == Note {
		return nil
	}
	position := ""
	if f.Pos >= 0 {
		position = itoa(f.Pos)
	}
	r.table.Row(paint(r.theme, f.Severity, f.Severity.String()), f.Code, render.Escaped(f.Shown), position,
		offsetsText(&f.Place), itoa(int64(f.Count)))
	return nil
}

// Close writes what is left.
func (r *TableReport) Close(*Summary) error { return r.table.Flush() }

// offsetsText is "55–58", "55", or nothing.
func offsetsText(p *Place) string {
	switch {
	case p.FirstOffset < 0:
		return ""
	case p.LastOffset < 0:
		return itoa(p.FirstOffset) + "–"
	case p.LastOffset == p.FirstOffset:
		return itoa(p.FirstOffset)
	}
	return itoa(p.FirstOffset) + "–" + itoa(p.LastOffset)
}

func paint(theme render.Theme, s Severity, text string) string {
	switch s {
	case Damage:
		return theme.Bad(text)
	case Warning:
		return theme.Look(text)
	}
	return theme.Dim(text)
}

// TextReport writes damage and warnings as they come, and the notes, joined where they say the same, at the end.
type TextReport struct {
	w     io.Writer
	theme render.Theme
	width int
	quiet bool
	notes []noteGroup
	more  int64 // notes that are not written
}

// noteGroup is the notes of one code in the same words.
type noteGroup struct {
	first    Finding
	sentence string
	files    int
	differ   bool // in their numbers and names
}

// mostNotes bounds the sentences that are written of one code of notes.
const mostNotes = 8

// NewTextReport returns a report for -o text, folded to the width; quiet leaves out the notes.
func NewTextReport(w io.Writer, theme render.Theme, width int, quiet bool) *TextReport {
	return &TextReport{w: w, theme: theme, width: width, quiet: quiet}
}

const textIndent = "         "

// Finding writes a few lines, or keeps a note for later.
func (r *TextReport) Finding(f *Finding) error {
	if f.Severity > Note {
		return r.write(f, placeText(f))
	}
	if r.quiet {
		return nil
	}
	words, sentences := sentence(f.Message), 0
	i := slices.IndexFunc(r.notes, func(n noteGroup) bool {
		if n.first.Code == f.Code {
			sentences++
		}
		return n.first.Code == f.Code && n.sentence == words
	})
	switch {
	case i < 0 && sentences >= mostNotes:
		r.more++
		return nil
	case i < 0:
		i = len(r.notes)
		r.notes = append(r.notes, noteGroup{first: *f, sentence: words})
	}
	r.notes[i].files++
	r.notes[i].differ = r.notes[i].differ || f.Message != r.notes[i].first.Message
	return nil
}

// Close writes the notes.
func (r *TextReport) Close(*Summary) error {
	for i := range r.notes {
		n := &r.notes[i]
		place := placeText(&n.first)
		if n.files > 1 {
			place = fmt.Sprintf("(%d files, the first %s)", n.files, place)
		}
		if n.differ {
			n.first.Message += " (the others say the same with other numbers or names; -o json has them)"
		}
		if err := r.write(&n.first, place); err != nil {
			return err
		}
	}
	if r.more > 0 {
		_, err := fmt.Fprintf(r.w, "%sand %s that say other things; -o json has them\n", textIndent, plural(r.more, "note",
			"notes"))
		return err
	}
	return nil
}

func (r *TextReport) write(f *Finding, place string) error {
	head := fmt.Sprintf("%-8s %-24s %s", f.Severity, f.Code, place)
	var text strings.Builder
	below := r.theme.Width > 0 && render.Width(head) > r.theme.Width
	if below {
		head = fmt.Sprintf("%-8s %s", f.Severity, f.Code)
	}
	text.WriteString(paint(r.theme, f.Severity, head[:8]) + head[8:] + "\n")
	if below {
		for _, line := range render.Wrap(place, r.width-len(textIndent)) {
			text.WriteString(textIndent + line + "\n")
		}
	}
	message := f.Message
	if f.Count > 1 && f.Severity > Note {
		message += fmt.Sprintf(" (%d such places in this file)", f.Count)
	}
	for _, line := range render.Wrap(render.Escaped(message), r.width-len(textIndent)) {
		text.WriteString(textIndent + line + "\n")
	}
	if f.Severity > Note {
		for _, place := range f.Related {
			text.WriteString(textIndent + r.theme.Dim("see also "+render.Escaped(relatedText(&place))) + "\n")
		}
	}
	if f.Next != "" && (f.Severity > Note || !strings.HasPrefix(f.Next, "kseg explain ")) {
		text.WriteString(textIndent + r.theme.Dim("next: "+render.Escaped(f.Next)) + "\n")
	}
	_, err := io.WriteString(r.w, text.String())
	return err
}

// placeText is "orders-0/00000000000000000040.log @1845, offsets 55–58".
func placeText(f *Finding) string {
	text := render.Escaped(f.Shown)
	if f.Pos >= 0 {
		text += " @" + itoa(f.Pos)
	}
	return text + offsetsClause(&f.Place)
}

// offsetsClause is ", offsets 55–58", ", offset 55", or nothing.
func offsetsClause(p *Place) string {
	switch offsets := offsetsText(p); {
	case offsets == "":
		return ""
	case p.FirstOffset == p.LastOffset:
		return ", offset " + offsets
	default:
		return ", offsets " + offsets
	}
}

func relatedText(p *Place) string {
	text := p.File
	if p.Pos >= 0 {
		text += " @" + itoa(p.Pos)
	}
	return text + offsetsClause(p)
}

// VerdictText is the last line: the verdict, and what it rests on.
func VerdictText(s *Summary) (verdict, rest string) {
	var found []string
	for _, c := range []struct {
		n         int64
		one, many string
	}{{s.Damage, "damage", "damages"}, {s.Warnings, "warning", "warnings"}, {s.Notes, "note", "notes"}} {
		if c.n > 0 {
			found = append(found, plural(c.n, c.one, c.many))
		}
	}
	verdict = string(s.Verdict())
	if s.Verdict() == Warned {
		verdict, found[0] = found[0], ""
	} else if len(found) > 0 {
		found[0] = ": " + found[0]
	}
	text := ": "
	if len(found) > 0 {
		text = strings.Join(found, ", ") + " in "
	}
	if s.Segments == 0 && s.Partitions == 0 && s.Files > 0 {
		text += plural(s.Files, "file", "files")
	} else {
		text += fmt.Sprintf("%s, %s, %s, %s", plural(s.Partitions, "partition", "partitions"),
			plural(s.Segments, "segment", "segments"), plural(s.Batches, "batch", "batches"), render.Bytes(s.Bytes))
	}
	if s.SampledOf > 0 {
		text += fmt.Sprintf("; a sample: %d of %s", s.Sampled, plural(int64(s.SampledOf), "partition", "partitions"))
	}
	if n := len(s.NotRead); n > 0 {
		text += "; " + plural(int64(n), "input was", "inputs were") + " not read"
	} else if s.Verdict() == Incomplete && !s.Stopped {
		text += "; there was nothing to check"
	}
	if s.Stopped {
		text += "; stopped early"
	}
	return verdict, text
}
