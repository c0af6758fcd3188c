package dump

import (
	"errors"
	"fmt"
	"slices"
	"strconv"

	"kseg/format"
	"kseg/logdir"
	"kseg/walk"
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
	return f.View(func(data []byte) error { return d.batches(f, data, base) })
}

// batches prints the batches of a log and what is between them. Like the real tool it takes for a batch what a size
// field spans; unlike that tool it also looks for intact batches in what is not intact, unless the real tool's output
// is wanted.
func (d *dumper) batches(f *logdir.File, data []byte, base int64) error {
	o := walk.Options{Jobs: d.opts.Jobs, Trust: format.TrustLengths}
	if len(data) <= smallLog || d.window != nil || d.opts.Output == Table {
		o.Jobs = 1
	}
	if d.opts.Compat {
		o.Trust = format.TrustBlindly
	}
	turn, used := &turn{order: newOrder(f, base)}, 0
	log := &walk.Log{File: f, Base: base, From: d.seek(f, data, base), Stop: d.stop(int64(len(data)))}
	err := walk.Fold(d.ctx, slices.Values([]*walk.Log{log}), o, func(gate format.Gate) walk.Look[struct{}] {
		if used++; used > len(d.workers) {
			d.workers = append(d.workers, d.newWorker())
		}
		w := d.workers[used-1]
		w.begin(f, turn, gate)
		return w.look
	}, func(*walk.Run[struct{}]) error {
		if d.window.done() {
			return errEnough
		}
		return nil
	})
	switch {
	case d.ctx.Err() != nil:
		return &stopError{d.ctx.Err()}
	case errors.Is(err, errEnough):
		return nil
	}
	return err
}

// errEnough ends a log when all that --limit lets through has been printed.
var errEnough = errors.New("enough")

// stop says where a log of so many bytes ends (walk.Log.Stop): where no later batch can pass, where --max-bytes ends
// it, and, if the real tool's output is wanted, after the hole that this tool takes for the end.
func (d *dumper) stop(size int64) func(*format.Batch, *format.Hole) bool {
	end, over := size, false
	if d.opts.MaxBytes != nil {
		end = min(end, *d.opts.MaxBytes)
	}
	return func(b *format.Batch, h *format.Hole) bool {
		switch {
		case over:
			return true
		case b != nil:
			return b.End() > end || d.opts.Filter.beyond(b)
		case h.Stop+format.MagicPrefix >= end && end < size:
			return true
		case d.opts.Compat && h.Next >= 0 && errors.Is(h.Err, format.ErrTruncated):
			h.Pos, h.Len, h.Next, h.NextOffset = h.Stop, size-h.Stop, -1, -1
			over = true
		}
		return false
	}
}

// logHead is what stands between a file's name and its batches.
func logHead(f *logdir.File, base int64) []byte {
	if f.Kind() == format.KindLog {
		return fmt.Appendf(nil, "Log starting offset: %d\n", base)
	}
	if f.Name.Bootstrap() {
		return []byte("KRaft bootstrap snapshot\n")
	}
	return fmt.Appendf(nil, "Snapshot end offset: %d, epoch: %d\n", f.Name.Base, f.Name.Epoch)
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
	return problem{pos: b.Pos, text: fmt.Sprintf("byte %d: %s", b.Pos, text), damage: true}
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
	p := problem{pos: h.Pos, damage: h.Kind != format.ZeroTail, fatalThere: errors.Is(h.Err, format.ErrValue)}
	switch h.Kind {
	case format.Unreadable:
		p.damage, p.incomplete, p.fault = false, true, h.Err
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
	switch {
	case p.fault != nil:
		p.text = ""
	case h.Stop != h.Pos:
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
