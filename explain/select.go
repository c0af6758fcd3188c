package explain

import (
	"errors"
	"fmt"
	"strings"

	"kseg/format"
)

// chosen reports whether the options say what to show.
func (o *Options) chosen() bool {
	return o.many() || o.Offset != nil || o.Position != nil || o.Entry != nil || o.TimestampMs != nil
}

// many reports whether the options may choose several batches.
func (o *Options) many() bool { return o.All || o.From != nil || o.To != nil }

// segment shows batches and holes of a .log or .checkpoint.
func (e *explainer) segment() error {
	parts := format.NewParts(e.data, e.base)
	shown := 0
	for i := 0; parts.Next(); i++ {
		if err := e.ctx.Err(); err != nil {
			return err
		}
		p := parts.Part()
		if e.opts.Progress != nil {
			e.opts.Progress(p.End - p.Start)
		}
		if !e.wanted(p, i) {
			if e.past(p) {
				break
			}
			continue
		}
		if err := e.part(p, shown); err != nil {
			return err
		}
		if shown++; !e.opts.many() {
			if !e.opts.chosen() && parts.Next() {
				e.note("that was the first of several batches: choose one by --entry I, --offset N or --position P, or give --all")
			}
			return nil
		}
	}
	if shown == 0 {
		return e.noHit("batch")
	}
	return nil
}

// wanted reports whether the part with this number is to be shown.
func (e *explainer) wanted(p *format.Part, number int) bool {
	o := e.opts
	switch {
	case o.Offset != nil:
		return p.Batch != nil && *o.Offset <= p.Batch.LastOffset && (p.Batch.Legacy() || *o.Offset >= p.Batch.BaseOffset)
	case o.Position != nil:
		return *o.Position >= p.Start && *o.Position < p.End
	case o.Entry != nil:
		return int64(number) == *o.Entry
	case o.TimestampMs != nil:
		return p.Batch != nil && p.Batch.MaxTimestamp >= *o.TimestampMs
	case o.From != nil || o.To != nil:
		return p.Batch != nil && (o.From == nil || p.Batch.LastOffset >= *o.From) &&
			(o.To == nil || p.Batch.BaseOffset <= *o.To)
	}
	return true
}

// past reports whether what was asked for would have come before p.
func (e *explainer) past(p *format.Part) bool {
	return e.opts.Position != nil && *e.opts.Position < p.Start || e.opts.To != nil && p.Batch != nil &&
		!p.Batch.Legacy() && p.Batch.BaseOffset > *e.opts.To
}

// noHit is the error of a choice that nothing matches.
func (e *explainer) noHit(what string) error {
	o := e.opts
	switch {
	case o.Offset != nil:
		return fmt.Errorf("%s: offset %d is %w; kseg lookup finds the segment it would be in", e.file.Display, *o.Offset,
			ErrNoHit)
	case o.Position != nil:
		return fmt.Errorf("%s: byte %d is %w, which has %d", e.file.Display, *o.Position, ErrNoHit, len(e.data))
	case o.TimestampMs != nil:
		return fmt.Errorf("%s: a record at or after %s is %w; kseg lookup --timestamp finds the segment", e.file.Display,
			instant(*o.TimestampMs), ErrNoHit)
	case o.From != nil || o.To != nil:
		return fmt.Errorf("%s: an offset of that range is %w; kseg ls --by segment shows which has it", e.file.Display,
			ErrNoHit)
	}
	return fmt.Errorf("%s: %s %d is %w; they are counted from 0", e.file.Display, what, *o.Entry, ErrNoHit)
}

// entries shows what a file of any other kind holds.
func (e *explainer) entries() error {
	kind := e.file.Kind()
	if o := e.opts; o.From != nil || o.To != nil || o.TimestampMs != nil {
		return fmt.Errorf("%w: %s has no batches; --from, --to and --timestamp choose those of a .log", ErrNotAsked,
			kind.ATitle())
	}
	if e.opts.Offset != nil {
		found, has, err := kind.EntryOf(e.data, max(e.base, 0), *e.opts.Offset)
		switch {
		case !has:
			return fmt.Errorf("%w: %s has no offsets to choose by; give --entry I, --position P or --all", ErrNotAsked,
				kind.ATitle())
		case err != nil:
			return err
		case found < 0:
			return e.noHit("entry")
		}
		entry := int64(found)
		e.opts.Entry = &entry
	}
	shown, more := 0, false
	for l := range format.Describe(kind, e.data, e.base, e.rr) {
		if !e.wantedLeaf(&l) {
			more = more || l.Entry > 0
			if shown > 0 && e.opts.chosen() {
				break
			}
			continue
		}
		if shown == 0 {
			if err := e.sink.title(e.fileTitle(), nil); err != nil {
				return err
			}
		}
		shown++
		if err := e.leaf(l); err != nil {
			return err
		}
	}
	switch {
	case shown == 0:
		return e.noHit("entry")
	case more && !e.opts.chosen():
		e.note("that was the first of several entries: choose one by --entry I or --position P, or give --all")
	}
	return e.ctx.Err()
}

// wantedLeaf reports whether a leaf is to be shown. A position chooses the whole entry, or the leaf outside of entries.
func (e *explainer) wantedLeaf(l *format.Leaf) bool {
	o := e.opts
	switch {
	case o.All:
		return true
	case o.Position != nil:
		return *o.Position >= l.Start && *o.Position < l.End || l.Entry >= 0 && int64(l.Entry) == e.entryAt(*o.Position)
	case o.Entry != nil:
		return int64(l.Entry) == *o.Entry
	}
	return l.Entry <= 0 && (l.Entry == 0 || l.Role == format.RoleField || l.Start == 0)
}

// entryAt is the entry that holds the byte, −1 if none does. It is asked for every leaf, so the answer is kept.
func (e *explainer) entryAt(position int64) int64 {
	if e.scene.entryAt == nil {
		entry := int64(-1)
		for l := range format.Describe(e.file.Kind(), e.data, e.base, e.rr) {
			if position >= l.Start && position < l.End {
				entry = int64(l.Entry)
				break
			}
		}
		e.scene.entryAt = &entry
	}
	return *e.scene.entryAt
}

// part shows a batch or a hole; index is what its paths call it.
func (e *explainer) part(p *format.Part, index int) error {
	title, notes := e.partTitle(p)
	e.scene.begin(p)
	if err := e.sink.title(title, notes); err != nil {
		return err
	}
	e.err = nil
	_, fault := p.Describe(index, e.rr, func(l format.Leaf) bool {
		if l.Plain && !e.scene.plain {
			e.scene.plain = true
			e.err = e.sink.plain(e.plainTitle(p.Batch))
		}
		if e.err == nil {
			e.err = e.leaf(l)
		}
		return e.err == nil
	})
	if e.err != nil {
		return e.err
	}
	return e.unsaid(p, fault)
}

// unsaid tells a fault that no leaf has shown, since it has no bytes.
func (e *explainer) unsaid(p *format.Part, fault error) error {
	var f *format.Error
	switch {
	case fault == nil:
		return nil
	case errors.Is(fault, format.ErrTooLarge):
		e.tooBig = fmt.Errorf("%s: the records of the batch at byte %d are not shown: %w; give a larger --max-batch-bytes",
			e.file.Display, p.Start, fault)
		return nil
	case errors.As(fault, &f) && !e.scene.said(f):
		return e.sink.missing(wrong(f))
	}
	return nil
}

// fileTitle heads the entries of a file.
func (e *explainer) fileTitle() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s, %s, %s", e.file.Display, e.file.Kind().Title(), bytesOf(int64(len(e.data))))
	if n, ok := e.file.Kind().Count(e.data); ok {
		fmt.Fprintf(&b, ", %s", entriesOf(n))
	}
	return b.String()
}
