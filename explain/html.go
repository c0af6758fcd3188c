package explain

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"html"
	"io"
	"strconv"
	"strings"

	"kseg/format"
	"kseg/logdir"
	"kseg/render"
)

// Bounds on a page, so that a browser can show it.
const (
	mostFields = 100_000
	mostBoxes  = 1000 // of the map; beyond it, boxes stand for several batches
	mostArrows = 400
	pageBytes  = 64 // of one field; the rest is counted
)

// ErrTooLong means that what was chosen is too much for a page.
var ErrTooLong = errors.New("too much for a page")

// Page returns a self-contained HTML page of what Run shows of f: a map of the segment with its batches and index
// entries, and every field. The errors are those of Run, or wrap ErrTooLong.
func Page(ctx context.Context, f *logdir.File, opts Options) ([]byte, error) {
	var page bytes.Buffer
	err := f.View(func(data []byte) error {
		e := newExplainer(ctx, f, &opts, data, io.Discard)
		return e.withSurroundings(func() error {
			s := &htmlSink{e: e, out: &page, terse: opts.Terse}
			e.sink = s
			s.begin()
			err := e.show()
			s.end()
			return errors.Join(err, e.tooBig)
		})
	})
	return page.Bytes(), err
}

// htmlSink writes fields as rows of tables: a section for each batch, in it a fold for each record.
type htmlSink struct {
	e       *explainer
	out     *bytes.Buffer
	terse   bool
	table   bool   // one is open
	fold    string // the node whose fold is open, as records[3]; "" if none is
	section string // the id of the section that is open
	before  string // the id of the section before it
	fields  int
	nodes   []string
	ids     map[string]bool
}

func (s *htmlSink) begin() {
	e := s.e
	s.ids = map[string]bool{}
	render.BeginPage(s.out, e.file.Name.Raw, fmt.Sprintf("%s, %s", e.file.Kind().Title(), bytesOf(int64(len(e.data)))), "")
	if len(e.data) == 0 {
		s.out.WriteString("<p>There is no byte to explain.</p>\n")
	} else if e.file.Kind() == format.KindLog {
		e.drawMap(s.out)
	}
}

func (s *htmlSink) end() {
	s.closeSection("")
	render.EndPage(s.out)
}

func (s *htmlSink) closeTable() {
	if s.table {
		s.out.WriteString("</tbody></table>\n")
		s.table = false
	}
}

func (s *htmlSink) closeFold() {
	s.closeTable()
	if s.fold != "" {
		s.out.WriteString("</details>\n")
		s.fold = ""
	}
}

// closeSection ends the section that is open, with links to the map, the one before it and the next.
func (s *htmlSink) closeSection(next string) {
	s.closeFold()
	if s.section == "" {
		return
	}
	var links strings.Builder
	if s.e.file.Kind() == format.KindLog {
		links.WriteString(`<a href="#map">map</a>`)
	}
	if s.before != "" {
		fmt.Fprintf(&links, `<a href="#%s" rel="prev">previous</a>`, s.before)
	}
	if next != "" {
		fmt.Fprintf(&links, `<a href="#%s" rel="next">next</a>`, next)
	}
	fmt.Fprintf(s.out, "<nav aria-label=\"after %s\">%s</nav></section>\n", s.section, links.String())
	s.before, s.section = s.section, ""
}

func (s *htmlSink) openTable(caption string) {
	s.closeTable()
	s.nodes, s.table = nil, true
	meaning := "meaning"
	if s.terse {
		meaning = ""
	}
	fmt.Fprintf(s.out, "<table><caption>%s</caption><thead><tr><th scope=\"col\">pos</th><th scope=\"col\">hex</th><th "+
		"scope=\"col\">ascii</th>"+
		"<th scope=\"col\">field</th><th scope=\"col\">value</th><th scope=\"col\">%s</th></tr></thead><tbody>\n",
		text(caption), meaning)
}

// sectionID is the id of the section that shows a part of a segment.
func sectionID(pos int64) string { return "byte-" + strconv.FormatInt(pos, 10) }

func (s *htmlSink) title(heading string, notes []string) error {
	id := "entries"
	p := s.e.scene.part
	if p != nil {
		id = sectionID(p.Start)
	}
	s.closeSection(id)
	s.section = id
	fmt.Fprintf(s.out, "<section id=\"%s\"><h2>%s</h2>\n", id, text(heading))
	if !s.terse {
		s.keyPoints(p, notes)
	}
	caption := "the fields of the file"
	if p != nil {
		caption = "the bytes as they are in the file"
	}
	s.openTable(caption)
	return nil
}

// keyPoints say in a few lines what a batch is.
func (s *htmlSink) keyPoints(p *format.Part, notes []string) {
	if p != nil && p.Batch != nil {
		notes = append(batchPoints(p.Batch), notes...)
	}
	if len(notes) == 0 {
		return
	}
	s.out.WriteString("<ul class=\"key\">")
	for _, n := range notes {
		fmt.Fprintf(s.out, "<li>%s</li>", text(n))
	}
	s.out.WriteString("</ul>\n")
}

func batchPoints(b *format.Batch) []string {
	points := []string{fmt.Sprintf("%s, codec %s, %s", offsets(b), b.Codec(), bytesOf(b.Size()))}
	if !b.Legacy() {
		points = append(points, fmt.Sprintf("latest record: %s; leader epoch %d", instant(b.MaxTimestamp), b.LeaderEpoch))
		if b.ProducerID >= 0 {
			who := fmt.Sprintf("producer %d, epoch %d, ", b.ProducerID, b.ProducerEpoch)
			switch {
			case b.Control():
				who += "a transaction marker"
			case b.Transactional():
				who += fmt.Sprintf("part of a transaction, from sequence %d on", b.BaseSequence)
			default:
				who += fmt.Sprintf("from sequence %d on", b.BaseSequence)
			}
			points = append(points, who)
		}
	}
	if !b.Valid() {
		points = append(points, "the checksum does not match: something in it was changed")
	}
	return points
}

func (s *htmlSink) plain(heading string) error {
	s.closeFold()
	fmt.Fprintf(s.out, "<p>%s</p>\n", text(heading))
	return nil
}

func (s *htmlSink) missing(words string) error {
	if !s.table {
		s.openTable("what is at fault")
	}
	fmt.Fprintf(s.out, "<tr class=\"bad\"><td></td><td></td><td></td><td></td><td></td><td>%s</td></tr>\n", text(words))
	return nil
}

// place opens the fold and the table that a field belongs into: a record has one of its own, unless it is the only
// thing on the page.
func (s *htmlSink) place(f *field, nodes []string) []string {
	fold := ""
	if len(nodes) > 0 && strings.HasPrefix(nodes[0], "records[") {
		fold, nodes = nodes[0], nodes[1:]
	}
	if fold == s.fold && s.table {
		return nodes
	}
	s.closeFold()
	caption := "the bytes as they are in the file"
	if f.Plain {
		caption = "the decompressed bytes"
	}
	if fold != "" {
		s.fold = fold
		fmt.Fprintf(s.out, "<details id=\"%s-%s\" open><summary>%s</summary>\n", s.section, text(fold), text(fold))
	}
	s.openTable(caption)
	return nodes
}

// id is the attribute that makes a field a place to link to.
func (s *htmlSink) id(path string) string {
	if s.ids[path] {
		return ""
	}
	s.ids[path] = true
	return fmt.Sprintf(` id="%s"`, text(path))
}

func (s *htmlSink) field(f *field) error {
	if s.fields++; s.fields > mostFields {
		return fmt.Errorf("%w: more than %s fields; choose a batch or entry", ErrTooLong, render.Count(mostFields))
	}
	nodes, leaf := split(f)
	nodes = s.place(f, nodes)
	s.branches(nodes)
	pos, class := strconv.FormatInt(f.Start, 10), ""
	if f.Plain {
		pos = "z+" + pos
	}
	words := f.meaning
	if f.Fault != nil {
		class, words = ` class="bad"`, wrong(f.Fault)+extra(f.meaning)
	}
	value := text(f.text)
	if f.good {
		value += ` <span class="ok" title="checked: it is right">✔</span>`
	}
	digits, characters := pageRows(f)
	id := s.id(f.Path)
	if id != "" {
		pos = fmt.Sprintf(`<a href="#%s">%s</a>`, text(f.Path), pos)
	}
	fmt.Fprintf(s.out, "<tr%s%s><td class=\"n\" data-label=\"pos\">%s</td><td class=\"b\">%s</td><td class=\"a\">%s</td>"+
		"<th scope=\"row\" style=\"padding-left:%dem\">%s</th><td class=\"v\">%s</td><td>%s</td></tr>\n",
		class, id, pos, digits, html.EscapeString(characters), len(nodes), text(leaf), value, text(words))
	return nil
}

// branches writes a row for each node that a field is in and the last one was not.
func (s *htmlSink) branches(nodes []string) {
	same := 0
	for same < len(nodes) && same < len(s.nodes) && nodes[same] == s.nodes[same] {
		same++
	}
	for i := same; i < len(nodes); i++ {
		fmt.Fprintf(s.out, "<tr class=\"node\"><td></td><td></td><td></td><th scope=\"row\" "+
			"style=\"padding-left:%dem\">%s</th><td></td><td></td></tr>\n", i, text(nodes[i]))
	}
	s.nodes = nodes
}

// pageRows are the digits and characters of a field in lines of eight bytes.
func pageRows(f *field) (digits, characters string) {
	sink := textSink{bytes: rowBytes}
	var d, c []string
	shown := min(len(f.Bytes), pageBytes)
	for i := 0; i*rowBytes < shown; i++ {
		h, a := sink.row(f, i)
		d, c = append(d, h), append(c, a)
	}
	if more := len(f.Bytes) - shown; more > 0 {
		d = append(d, "… "+render.Count(int64(more))+" more")
	}
	return strings.Join(d, "\n"), strings.Join(c, "\n")
}

func text(s string) string { return render.HTML(s) }

// box is a stretch of the map: a batch, several in a row, or a hole.
type box struct {
	start, end int64
	class      string
	label      string
	batches    int
	linked     bool // the page shows it
}

// drawMap draws the segment from its first to its last byte: its batches, and below them the entries of the offset
// index with a line to the batch that each points to. What the page shows is linked to.
func (e *explainer) drawMap(out *bytes.Buffer) {
	const width, top, height, below = 1000.0, 4.0, 44.0, 110.0
	x := func(pos int64) float64 { return width * float64(pos) / float64(len(e.data)) }
	fmt.Fprintf(out, "<figure id=\"map\"><svg viewBox=\"0 0 %g 118\" role=\"img\" aria-label=\"the segment from its "+
		"first to its last byte\">\n", width)
	for _, b := range e.boxes() {
		rect := fmt.Sprintf("<rect class=\"%s\" x=\"%.2f\" y=\"%g\" width=\"%.2f\" height=\"%g\"><title>%s</title></rect>",
			b.class, x(b.start), top, max(x(b.end)-x(b.start), .4), height, text(b.label))
		if b.linked {
			rect = fmt.Sprintf("<a href=\"#%s\" aria-label=\"%s\">%s</a>", sectionID(b.start), text(b.label), rect)
		}
		fmt.Fprintln(out, rect)
	}
	n, step := e.indexEntries(), 1
	if n > mostArrows {
		step = (n + mostArrows - 1) / mostArrows
	}
	for i := 0; i < n; i += step {
		entry := e.around.index.x.Entry(i)
		at := width * (float64(i) + .5) / float64(n)
		label := fmt.Sprintf("index entry %d: offset %d is the last of the batch at byte %d", i, entry.Offset, entry.Position)
		fmt.Fprintf(out, "<g><title>%s</title><line class=\"entry\" x1=\"%.2f\" y1=\"%g\" x2=\"%.2f\" y2=\"%g\"/><circle "+
			"class=\"dot\" cx=\"%.2f\" cy=\"%g\" r=\"3\"/></g>\n",
			text(label), at, below, x(int64(entry.Position)), top+height, at, below)
	}
	fmt.Fprintf(out, "</svg>\n<figcaption>%s<ul class=\"legend\">", text(e.mapCaption(n, step)))
	for _, l := range mapLegend {
		fmt.Fprintf(out, "<li><svg viewBox=\"0 0 10 10\" aria-hidden=\"true\"><rect class=\"%s\" width=\"10\" "+
			"height=\"10\"/></svg> %s</li>", l.class, l.words)
	}
	out.WriteString("</ul></figcaption></figure>\n")
}

// mapLegend says what the colours of the map mean.
var mapLegend = []struct{ class, words string }{
	{"batch", "batch"}, {"batch packed", "compressed batch"}, {"batch broken", "damaged batch, or bytes of no batch"},
	{"zero", "zeros"},
	{"batch shown", "shown below"},
}

func (e *explainer) indexEntries() int {
	if e.around.index == nil {
		return 0
	}
	return e.around.index.x.Len()
}

func (e *explainer) mapCaption(entries, step int) string {
	caption := "above: the batches, byte 0 to " + render.Count(int64(len(e.data)))
	switch {
	case entries == 0:
		return caption + "; there is no index entry"
	case step > 1:
		return fmt.Sprintf("%s; below: every %dth of %s of the offset index", caption, step, entriesOf(entries))
	}
	return fmt.Sprintf("%s; below: the %s of the offset index", caption, entriesOf(entries))
}

// boxes are the batches and holes of the segment, neighbours put together where there are too many to see.
func (e *explainer) boxes() []box {
	least := int64(len(e.data)) / mostBoxes
	var all []box
	parts := format.NewParts(e.data, e.base)
	for i := 0; parts.Next(); i++ {
		p := parts.Part()
		b := box{start: p.Start, end: p.End, class: partClass(p), batches: 1, label: partLabel(p)}
		switch {
		case !e.opts.chosen():
			b.linked = i == 0
		default:
			b.linked = e.wanted(p, i)
		}
		if b.linked && !e.opts.many() {
			b.class += " shown"
		}
		last := len(all) - 1
		// the link of the first stays
		if last >= 0 && all[last].end-all[last].start < least && mayJoin(all[last].class, b.class) {
			all[last].end, all[last].batches = b.end, all[last].batches+1
			all[last].label = fmt.Sprintf("%d batches at bytes %d–%d", all[last].batches, all[last].start, b.end-1)
			continue
		}
		all = append(all, b)
	}
	return all
}

// mayJoin reports whether a box may stand for neighbours of these classes: what is broken or shown is not hidden by
// what is not.
func mayJoin(a, b string) bool {
	plain := func(class string) bool { return class == "batch" || class == "batch packed" }
	return a == b || plain(a) && plain(b)
}

func partClass(p *format.Part) string {
	switch {
	case p.Hole != nil && p.Hole.Kind == format.ZeroTail:
		return "zero"
	case p.Hole != nil:
		return "hole"
	case !p.Batch.Valid() || p.LengthFault != nil || p.MagicFault != nil:
		return "batch broken"
	case p.Batch.Codec() != format.CodecNone:
		return "batch packed"
	}
	return "batch"
}

func partLabel(p *format.Part) string {
	if p.Hole != nil {
		return fmt.Sprintf("%s at byte %d: %s", strings.ReplaceAll(p.Hole.Kind.String(), "-", " "), p.Start,
			bytesOf(p.End-p.Start))
	}
	return fmt.Sprintf("batch at byte %d: %s, %s", p.Start, offsets(p.Batch), bytesOf(p.Batch.Size()))
}
