package dump

import (
	"errors"
	"fmt"
	"strconv"

	"kseg/format"
	"kseg/logdir"
)

// smallLog is the size in bytes up to which starting workers costs more than it brings.
const smallLog = 256 << 10

// log prints a .log or .checkpoint.
func (d *dumper) log(f *logdir.File) error {
	if err := d.title(f); err != nil {
		return err
	}
	base := int64(0)
	if f.Kind() == format.KindLog {
		var err error
		if base, err = f.RequireBase(); err != nil {
			return err
		}
	}
	if err := d.head(logHead(f, base)); err != nil {
		return err
	}
	return f.View(func(data []byte) error {
		c := d.newCutter(f, data, base)
		if d.opts.Jobs == 1 || len(data) <= smallLog || d.window != nil || d.opts.Output == Table {
			return c.inline(d.worker(f))
		}
		return c.parallel()
	})
}

// logHead is what stands between a file's name and its batches.
func logHead(f *logdir.File, base int64) []byte {
	switch {
	case f.Kind() == format.KindLog:
		return fmt.Appendf(nil, "Log starting offset: %d\n", base)
	case f.Name.Bootstrap():
		return []byte("KRaft bootstrap snapshot\n")
	}
	return fmt.Appendf(nil, "Snapshot end offset: %d, epoch: %d\n", f.Name.Base, f.Name.Epoch)
}

// cutter walks a file's headers and cuts it into runs.
type cutter struct {
	d      *dumper
	f      *logdir.File
	data   []byte
	end    int64 // of what --max-bytes lets be looked at
	scan   *format.Scanner
	order  order
	copies bool // the runs have copies of their bytes
}

// newCutter begins where the filters allow. Like the real tool it takes for a batch what a size field spans; unlike
// that tool it also looks for intact batches in what is not intact, unless the real tool's output is wanted.
func (d *dumper) newCutter(f *logdir.File, data []byte, base int64) *cutter {
	c := &cutter{d: d, f: f, data: data, end: int64(len(data)), copies: true, order: newOrder(f, base),
		scan: format.NewScanner(data, d.seek(f, data, base), base)}
	if d.opts.MaxBytes != nil {
		c.end = min(c.end, *d.opts.MaxBytes)
	}
	c.scan.Trust(format.TrustLengths)
	if d.opts.Compat {
		c.scan.Trust(format.TrustBlindly)
	}
	return c
}

// fill puts the next batches into r and reports whether there was anything.
func (c *cutter) fill(r *run) bool {
	from := c.scan.Pos()
	defer func() { r.span = c.data[min(from, c.scan.Pos()):c.scan.Pos()] }()
	c.load(r)
	for r.bytes < runBytes && len(r.batches) < runBatches {
		var b format.Batch
		copied := c.scan.NextIn(r.copied, from, &b)
		if copied {
			b.Raw = c.data[b.Pos:b.End():b.End()]
		}
		if !copied && !c.scan.Next() {
			break
		}
		if hole := c.scan.Hole(); hole != nil {
			if hole.Stop+format.MagicPrefix >= c.end && c.end < int64(len(c.data)) {
				c.scan.Stop()
				break
			}
			r.hole = c.hole(*hole)
			return true
		}
		if !copied {
			b = *c.scan.Batch()
		}
		if !c.add(r, b, copied, from) {
			c.scan.Stop()
			break
		}
	}
	return len(r.batches) > 0
}

// add puts the scanner's batch into r, unless the file is not to be looked at so far.
func (c *cutter) add(r *run, b format.Batch, copied bool, from int64) bool {
	if b.End() > c.end || c.d.opts.Filter.beyond(&b) {
		return false
	}
	switch {
	case copied:
		b.Raw = r.copied[b.Pos-from : b.End()-from : b.End()-from]
	case b.Size() > runBytes:
		c.f.Prepare(b.Raw)
	}
	r.problems = c.order.check(r.problems, &b)
	r.batches = append(r.batches, b)
	r.bytes += b.Size()
	return true
}

// load copies the bytes that the run will probably have: where each is looked at once and in order, that is cheaper
// than to map their pages. Without a copy, after an error or at the end, the mapping serves, and says what is wrong
// with it.
func (c *cutter) load(r *run) {
	from := c.scan.Pos()
	n := int(min(copyBytes, int64(len(c.data))-from))
	if n <= 0 || !c.copies {
		r.copied = r.copied[:0]
		return
	}
	if cap(r.copied) < n {
		r.copied = make([]byte, n)
	}
	r.copied = r.copied[:n]
	if c.f.Read(r.copied, from) != nil {
		r.copied = r.copied[:0]
	}
}

// hole takes over a hole. Where the real tool's output is wanted and that tool takes it for the end, it is the end.
func (c *cutter) hole(h format.Hole) *format.Hole {
	if c.d.opts.Compat && h.Next >= 0 && errors.Is(h.Err, format.ErrTruncated) {
		h.Pos, h.Len, h.Next, h.NextOffset = h.Stop, int64(len(c.data))-h.Stop, -1, -1
		c.scan.Stop()
	}
	c.order.skip(&h)
	return &h
}

func (c *cutter) inline(w *worker) error {
	r := &run{}
	for c.fill(r) {
		if err := c.d.ctx.Err(); err != nil {
			return &stopError{err}
		}
		if err := w.print(r); err != nil {
			return err
		}
		if err := w.finish(r); err != nil {
			return err
		}
		if c.d.window.done() {
			break
		}
		r.reset()
	}
	return nil
}

func (c *cutter) parallel() (err error) {
	p := c.d.startPipeline(c.f)
	defer func() {
		if stopped := p.stop(); err == nil {
			err = stopped
		}
	}()
	for seq := 0; ; seq++ {
		r := p.get()
		r.seq = seq
		if !c.fill(r) || p.failed() != nil {
			return nil
		}
		p.tasks <- r
		if err := c.d.ctx.Err(); err != nil {
			return &stopError{err}
		}
	}
}

// order notices offsets and leader epochs that run backwards, from the headers alone. It compares with the batch just
// before, so that a repeated stretch is one problem.
type order struct {
	checkpoint bool
	base       int64
	next       int64 // the least base offset the next batch may have
	epoch      int32
	first      bool
}

func newOrder(f *logdir.File, base int64) order {
	return order{checkpoint: f.Kind() == format.KindCheckpoint, base: base, next: base, epoch: -1, first: true}
}

// skip forgets what was expected before a hole.
func (o *order) skip(h *format.Hole) {
	if h.NextOffset >= 0 {
		o.next = max(o.base, min(o.next, h.NextOffset))
	}
}

// check appends what is wrong with b's place after the batches before it.
func (o *order) check(problems []problem, b *format.Batch) []problem {
	if !b.Plausible() && !b.Valid() && !intact(b) {
		return problems // its checksum says enough
	}
	if b.Magic < 0 || b.Magic > 2 {
		problems = append(problems, damageAt(b, "magic is "+strconv.Itoa(int(b.Magic))+", and no broker writes that"+
			intactV2(b)))
	} else if b.Magic < 2 {
		if v2, ok := b.AsV2(); ok {
			problems = append(problems, damageAt(b, "magic is "+strconv.Itoa(int(b.Magic))+intactV2(b)))
			b = &v2
		}
	}
	first := b.BaseOffset
	switch {
	case b.BaseOffset-o.base > 1<<31-1 && !o.checkpoint:
		return append(problems, damageAt(b, fmt.Sprintf("base offset %d is more than 2^31-1 above the segment's %d",
			b.BaseOffset, o.base)))
	case first < o.next && o.first:
		problems = append(problems, damageAt(b, fmt.Sprintf("base offset %d is below %d, where the segment begins "+
			"by its name", first, o.next)))
	case first < o.next:
		problems = append(problems, damageAt(b, fmt.Sprintf("base offset %d runs backwards: the batch before ended at %d",
			first, o.next-1)))
	}
	o.first = false
	o.next = b.NextOffset()
	if b.Legacy() {
		return problems
	}
	switch {
	case b.LeaderEpoch < -1:
		return append(problems, damageAt(b, fmt.Sprintf("leader epoch %d is below -1", b.LeaderEpoch)))
	case b.LeaderEpoch < o.epoch:
		problems = append(problems, damageAt(b, fmt.Sprintf("leader epoch %d runs backwards: it was %d before", b.LeaderEpoch,
			o.epoch)))
	}
	o.epoch = b.LeaderEpoch
	return problems
}

// intact reports whether only the magic byte of b is damaged.
func intact(b *format.Batch) bool {
	_, ok := b.AsV2()
	return ok
}

func intactV2(b *format.Batch) string {
	if v2, ok := b.AsV2(); ok {
		return fmt.Sprintf("; by its checksum it is an intact record batch of magic 2, offsets %s",
			span(v2.BaseOffset, v2.LastOffset))
	}
	return ""
}

func damageAt(b *format.Batch, text string) problem {
	return problem{text: fmt.Sprintf("byte %d: %s", b.Pos, text), damage: true}
}

// span prints an offset range.
func span(first, last int64) string {
	if first == last {
		return strconv.FormatInt(first, 10)
	}
	return strconv.FormatInt(first, 10) + "–" + strconv.FormatInt(last, 10)
}

// holeProblem says what a hole is, what it cost and where reading resumes.
func holeProblem(h *format.Hole) problem {
	p := problem{damage: h.Kind != format.ZeroTail, fatalThere: errors.Is(h.Err, format.ErrValue)}
	switch h.Kind {
	case format.ZeroTail:
		p.text = fmt.Sprintf("byte %d: zero tail: the last %d bytes are all zero (preallocated, or a crash before the "+
			"data was written)", h.Pos, h.Len)
		return p
	case format.TornTail:
		p.text = fmt.Sprintf("byte %d: torn tail: the file ends %d bytes into a batch (%v)%s", h.Pos, h.Len, h.Err,
			expecting(h))
		return p
	}
	p.text = fmt.Sprintf("byte %d: damage: %v; ", h.Pos, h.Err)
	if h.Stop != h.Pos {
		p.text = fmt.Sprintf("byte %d: damage: the length of this batch leads to byte %d, where none begins; ", h.Pos, h.Stop)
	}
	if h.Next < 0 {
		p.text += fmt.Sprintf("no intact batch follows in the remaining %d bytes%s", h.Len, expecting(h))
		if h.GaveUp {
			p.text += " (the search was cut short: too many false beginnings)"
		}
		return p
	}
	p.text += fmt.Sprintf("%d bytes skipped%s; reading resumes at byte %d, offset %d", h.Len, lost(h), h.Next,
		h.NextOffset)
	return p
}

func expecting(h *format.Hole) string {
	if h.Expected < 0 {
		return ""
	}
	return fmt.Sprintf("; lost from offset %d on", h.Expected)
}

func lost(h *format.Hole) string {
	if h.Expected < 0 || h.NextOffset <= h.Expected {
		return ""
	}
	return ", offsets " + span(h.Expected, h.NextOffset-1) + " lost"
}

// foundInvalid is the real tool's line about a tail, printed where its reading and ours end there.
func foundInvalid(dst []byte, name string, h *format.Hole) []byte {
	return fmt.Appendf(dst, "Found %d invalid bytes at the end of %s\n", h.Len, name)
}
