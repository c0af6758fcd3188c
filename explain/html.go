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

// Page returns a self-contained HTML page of what Run shows of f: a map of the segment with its batches and index entries, and
// every field. The errors are those of Run, or wrap ErrTooLong.
func Page(ctx context.Context, f *logdir.File, opts Options) ([]byte, error) {
	var page bytes.Buffer
	err := f.View(func(data []byte) error {
		e := newExplainer(ctx, f, &opts, data, io.Discard)
		return e.withSurroundings(func() error {
			s := &htmlSink{out: &page, terse: opts.Terse}
			e.sink = s
			s.begin(e)
			err := e.show()
			s.end()
			return errors.Join(err, e.tooBig)
		})
	})
	return page.Bytes(), err
}

// htmlSink writes fields as rows of tables.
type htmlSink struct {
	out    *bytes.Buffer
	terse  bool
	open   bool // a table is open
	fields int
	nodes  []string
}

const pageHead = `<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<style>
:root{color-scheme:light dark;--line:#8884;--dim:#888;--bad:#c22;--good:#283;--box:#59b;--packed:#76c;--mark:#e90}
body{font:15px/1.45 system-ui,sans-serif;margin:2rem auto;max-width:90rem;padding:0 1rem}
h1{font-size:1.3rem}h2{font-size:1.05rem;margin:2rem 0 .3rem}p{margin:.2rem 0}.dim{color:var(--dim)}
table{border-collapse:collapse;width:100%;margin:.5rem 0}td,th{text-align:left;vertical-align:top;padding:.1rem .7rem .1rem 0;border-bottom:1px solid var(--line)}
th{color:var(--dim);font-weight:normal}td.n{text-align:right;color:var(--dim)}td.b,td.a,td.n,td.v{font-family:ui-monospace,monospace;font-size:13px;white-space:pre}
td.v{white-space:pre-wrap;word-break:break-word}tr:hover{background:#8882}tr.bad td{color:var(--bad)}tr.node td{font-weight:600}.ok{color:var(--good)}
svg{width:100%;height:auto}svg text{font:11px system-ui,sans-serif;fill:currentColor}
.batch{fill:var(--box);stroke:Canvas;stroke-width:.5}.packed{fill:var(--packed)}.broken,.hole{fill:var(--bad)}.zero{fill:var(--line)}.shown{stroke:var(--mark);stroke-width:2}
.entry{stroke:var(--dim);stroke-width:.7}.dot{fill:var(--dim)}
</style>
`

func text(s string) string { return html.EscapeString(render.Escaped(s)) }

func (s *htmlSink) begin(e *explainer) {
	name := text(e.file.Name.Raw)
	s.out.WriteString(pageHead)
	fmt.Fprintf(s.out, "<title>%s</title></head><body>\n<h1>%s</h1>\n<p class=\"dim\">%s, %s</p>\n", name, name, e.file.Kind().Title(),
		bytesOf(int64(len(e.data))))
	switch {
	case len(e.data) == 0:
		s.out.WriteString("<p>There is no byte to explain.</p>\n")
	case e.file.Kind() == format.KindLog:
		e.drawMap(s.out)
	}
}

func (s *htmlSink) end() {
	s.closeTable()
	s.out.WriteString("</body></html>\n")
}

func (s *htmlSink) closeTable() {
	if s.open {
		s.out.WriteString("</table>\n")
		s.open = false
	}
}

func (s *htmlSink) openTable() {
	s.nodes = nil
	s.open = true
	s.out.WriteString("<table><tr><th>pos<th>hex<th>ascii<th>field<th>value<th>")
	if !s.terse {
		s.out.WriteString("meaning")
	}
	s.out.WriteString("</tr>\n")
}

func (s *htmlSink) title(heading string, notes []string) error {
	s.closeTable()
	fmt.Fprintf(s.out, "<h2>%s</h2>\n", text(heading))
	for _, n := range notes {
		if !s.terse {
			fmt.Fprintf(s.out, "<p class=\"dim\">%s</p>\n", text(n))
		}
	}
	s.openTable()
	return nil
}

func (s *htmlSink) plain(heading string) error {
	s.closeTable()
	fmt.Fprintf(s.out, "<p>%s</p>\n", text(heading))
	s.openTable()
	return nil
}

func (s *htmlSink) missing(words string) error {
	fmt.Fprintf(s.out, "<tr class=\"bad\"><td><td><td><td><td><td>%s</tr>\n", text(words))
	return nil
}

func (s *htmlSink) field(f *field) error {
	if s.fields++; s.fields > mostFields {
		return fmt.Errorf("%w: more than %s fields; choose a batch or entry", ErrTooLong, render.Count(mostFields))
	}
	nodes, leaf := split(f)
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
		value += ` <span class="ok">✔</span>`
	}
	digits, characters := pageRows(f)
	fmt.Fprintf(s.out, "<tr%s><td class=\"n\">%s<td class=\"b\">%s<td class=\"a\">%s<td style=\"padding-left:%dem\">%s<td class=\"v\">%s<td>%s</tr>\n",
		class, pos, digits, html.EscapeString(characters), len(nodes), text(leaf), value, text(words))
	return nil
}

// branches writes a row for each node that a field is in and the last one was not.
func (s *htmlSink) branches(nodes []string) {
	same := 0
	for same < len(nodes) && same < len(s.nodes) && nodes[same] == s.nodes[same] {
		same++
	}
	for i := same; i < len(nodes); i++ {
		fmt.Fprintf(s.out, "<tr class=\"node\"><td><td><td><td style=\"padding-left:%dem\">%s<td><td></tr>\n", i, text(nodes[i]))
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

// box is a stretch of the map: a batch, several in a row, or a hole.
type box struct {
	start, end int64
	class      string
	label      string
	batches    int
}

// drawMap draws the segment from its first to its last byte: its batches, and below them the entries of the offset index with a
// line to the batch that each points to.
func (e *explainer) drawMap(out *bytes.Buffer) {
	const width, top, height, below = 1000.0, 4.0, 44.0, 110.0
	x := func(pos int64) float64 { return width * float64(pos) / float64(len(e.data)) }
	fmt.Fprintf(out, "<svg viewBox=\"0 0 %g 130\" role=\"img\" aria-label=\"the segment from its first to its last byte\">\n", width)
	for _, b := range e.boxes() {
		fmt.Fprintf(out, "<rect class=\"%s\" x=\"%.2f\" y=\"%g\" width=\"%.2f\" height=\"%g\"><title>%s</title></rect>\n", b.class, x(b.start), top,
			max(x(b.end)-x(b.start), .4), height, text(b.label))
	}
	n, step := e.indexEntries(), 1
	if n > mostArrows {
		step = (n + mostArrows - 1) / mostArrows
	}
	for i := 0; i < n; i += step {
		entry := e.around.index.x.Entry(i)
		at := width * (float64(i) + .5) / float64(n)
		label := fmt.Sprintf("index entry %d: offset %d is the last of the batch at byte %d", i, entry.Offset, entry.Position)
		fmt.Fprintf(out, "<line class=\"entry\" x1=\"%.2f\" y1=\"%g\" x2=\"%.2f\" y2=\"%g\"><title>%s</title></line><circle class=\"dot\" cx=\"%.2f\" cy=\"%g\" r=\"3\"><title>%s</title></circle>\n",
			at, below, x(int64(entry.Position)), top+height, text(label), at, below, text(label))
	}
	fmt.Fprintf(out, "<text x=\"0\" y=\"127\">%s</text></svg>\n", text(e.mapCaption(n, step)))
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
		if e.wanted(p, i) && (e.opts.chosen() && !e.opts.All || i == 0 && !e.opts.chosen()) {
			b.class += " shown"
		}
		last := len(all) - 1
		if last >= 0 && all[last].end-all[last].start < least && mayJoin(all[last].class, b.class) {
			all[last].end, all[last].batches = b.end, all[last].batches+1
			all[last].label = fmt.Sprintf("%d batches at bytes %d–%d", all[last].batches, all[last].start, b.end-1)
			continue
		}
		all = append(all, b)
	}
	return all
}

// mayJoin reports whether a box may stand for neighbours of these classes: what is broken or shown is not hidden by what is not.
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
		return fmt.Sprintf("%s at byte %d: %s", strings.ReplaceAll(p.Hole.Kind.String(), "-", " "), p.Start, bytesOf(p.End-p.Start))
	}
	return fmt.Sprintf("batch at byte %d: %s, %s", p.Start, offsets(p.Batch), bytesOf(p.Batch.Size()))
}
