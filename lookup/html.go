package lookup

import (
	"bytes"
	"crypto/sha256"
	_ "embed" // for the player
	"encoding/base64"
	"fmt"

	"kseg/render"
)

// mostHopsDrawn bounds the boxes of a page; the rest of a long walk is one box.
const mostHopsDrawn = 200

//go:embed page.js
var pageScript string

// Page is a self-contained page of HTML that plays the search: the probes of the indexes, the batches skipped and the
// hit, step by step or all at once. Without a script everything is shown.
func (r *Result) Page() []byte {
	p := &pager{r: r}
	for _, t := range r.Tries {
		p.try(t)
	}
	if r.Batch != nil && r.Outcome == Found {
		p.say("The consumer " + r.Batch.consumerLine(r.last().Scan.Hit) + ".")
	}
	hash := sha256.Sum256([]byte(pageScript))
	var out bytes.Buffer
	render.BeginPage(&out, r.headline(render.NewTheme(false)), r.Partition.Display, "sha256-"+
		base64.StdEncoding.EncodeToString(hash[:]))
	out.WriteString(`<p id="player" hidden><button id="back">back</button> <button id="play">play</button> ` +
		`<button id="next">next</button> <span id="count" class="dim" aria-live="polite"></span></p>` + "\n")
	for i := range p.figures {
		p.figures[i].write(&out)
	}
	out.WriteString("<ol class=\"steps\">\n")
	for i, words := range p.steps {
		fmt.Fprintf(&out, "<li id=\"step-%d\">%s</li>\n", i+1, render.HTML(words))
	}
	out.WriteString("</ol>\n")
	for _, n := range r.Notes {
		fmt.Fprintf(&out, "<p>%s</p>\n", render.HTML(n))
	}
	fmt.Fprintf(&out, "<script>%s</script>\n", pageScript)
	render.EndPage(&out)
	return out.Bytes()
}

// pager turns a result into steps and figures.
type pager struct {
	r       *Result
	steps   []string
	figures []strip
}

// say adds a step and returns its number, from 1 up.
func (p *pager) say(words string) int {
	p.steps = append(p.steps, words)
	return len(p.steps)
}

func (p *pager) try(t *Try) {
	if t.Time != nil {
		p.index(t.Time, "time index", fmt.Sprintf("largest timestamp at or before the target: %d, so the log is read from "+
			"offset %d on", t.Time.Key, t.Time.Value))
	}
	if p.r.Time == nil {
		p.say(fmt.Sprintf("Segment %d has the greatest base offset at or below %d.", t.Base, p.r.Target))
	} else {
		p.say(fmt.Sprintf("Segment %d is the first whose largest timestamp reaches the target.", t.Base))
	}
	p.index(&t.Index, "offset index", fmt.Sprintf("greatest entry at or below the offset: %d, at byte %d", t.Index.Key,
		t.Index.Value))
	p.walk(t)
}

// index draws the slots of an index and steps through its probes.
func (p *pager) index(x *IndexStep, name, found string) {
	if x.Missing || x.Entries == 0 {
		p.say(fmt.Sprintf("The %s has no entry: the search begins at byte 0.", name))
		return
	}
	s := strip{caption: fmt.Sprintf("%s: slots 0 to %d, those compared in the order of the steps", name, x.Entries-1),
		start: 0, end: int64(x.Entries)}
	for i, slot := range x.Search.Probes {
		step := p.say(fmt.Sprintf("Probe %d of the binary search in the %s: slot %d is compared.", i+1, name, slot))
		s.boxes = append(s.boxes, stripBox{int64(slot), int64(slot) + 1, step, "zero", fmt.Sprintf("slot %d, probe %d", slot,
			i+1)})
	}
	if x.Search.Slot < 0 {
		p.say(fmt.Sprintf("All entries of the %s are above the target: the search begins at byte 0.", name))
	} else {
		step := p.say(fmt.Sprintf("Slot %d is the %s.", x.Search.Slot, found))
		s.boxes = append(s.boxes, stripBox{int64(x.Search.Slot), int64(x.Search.Slot) + 1, step, "batch shown",
			"the entry found"})
	}
	p.figures = append(p.figures, s)
}

// walk draws the batches from the start of the scan to its end.
func (p *pager) walk(t *Try) {
	end := t.Scan.End
	if t.Scan.Found {
		end = t.Scan.Hit.Position + t.Scan.Hit.Size
	}
	s := strip{caption: fmt.Sprintf("log of segment %d: bytes %d to %d, batch header by batch header", t.Base,
		t.Scan.Start, end), start: t.Scan.Start, end: end}
	for i, h := range t.Hops {
		if i == mostHopsDrawn {
			step := p.say(fmt.Sprintf("%s more.", render.Plural(t.Scan.HeaderHops-mostHopsDrawn, "batch is skipped",
				"batches are skipped")))
			s.boxes = append(s.boxes, stripBox{h.Position, t.Scan.Start + t.Scan.BytesScanned(), step, "batch packed",
				"more batches"})
			break
		}
		step := p.say(fmt.Sprintf("The header at byte %d says %s: %s, so %d bytes are skipped.", h.Position,
			offsetRange(h.BaseOffset, h.LastOffset), p.r.skipReason(h), h.Size))
		s.boxes = append(s.boxes, stripBox{h.Position, h.Position + h.Size, step, "batch", offsetRange(h.BaseOffset,
			h.LastOffset)})
	}
	switch {
	case t.Scan.Found:
		h := t.Scan.Hit
		step := p.say(fmt.Sprintf("The header at byte %d says %s: hit, after %d bytes.", h.Position, offsetRange(h.BaseOffset,
			h.LastOffset), t.Scan.BytesScanned()))
		s.boxes = append(s.boxes, stripBox{h.Position, h.Position + h.Size, step, "batch shown", "hit: " +
			offsetRange(h.BaseOffset, h.LastOffset)})
	case t.Scan.Err != nil:
		p.say(fmt.Sprintf("At byte %d the broker's reader throws.", t.Scan.End))
	default:
		p.say(fmt.Sprintf("Byte %d is the end of what a broker can read.", t.Scan.End))
	}
	p.figures = append(p.figures, s)
}

// strip is a figure: a stretch of slots or bytes, with boxes that appear with their steps.
type strip struct {
	caption    string
	start, end int64
	boxes      []stripBox
}

type stripBox struct {
	start, end   int64
	step         int
	class, label string
}

func (s *strip) write(out *bytes.Buffer) {
	const width, height, least = 1000.0, 40.0, 4.0
	scale := width / float64(max(s.end-s.start, 1))
	fmt.Fprintf(out, "<figure><svg viewBox=\"0 0 %g %g\" role=\"img\" aria-label=\"%s\"><rect class=\"track\" "+
		"width=\"%g\" height=\"%g\"/>\n", width, height, render.HTML(s.caption), width, height)
	for _, b := range s.boxes {
		x := min(float64(b.start-s.start)*scale, width-least)
		fmt.Fprintf(out, "<rect class=\"%s\" data-step=\"%d\" x=\"%.2f\" width=\"%.2f\" "+
			"height=\"%g\"><title>%s</title></rect>\n", b.class, b.step, x,
			max(float64(b.end-b.start)*scale, least), height, render.HTML(b.label))
	}
	fmt.Fprintf(out, "</svg><figcaption>%s</figcaption></figure>\n", render.HTML(s.caption))
}
