package verify

import (
	"context"
	"iter"

	"kseg/format"
	"kseg/schema"
	"kseg/walk"
)

// walker starts to go through the partitions, each of which is listed when the workers are about to come to it.
func (d *driver) walker(ctx context.Context, turns []*turn, jobs int) *walk.Walker[looked] {
	return walk.Start(ctx, d.logs(turns), walk.Options{Jobs: jobs, RunBytes: d.opts.run},
		func(gate format.Gate) walk.Look[looked] {
			return newWorker(d.opts, d.checks, gate).look
		})
}

func (d *driver) logs(turns []*turn) iter.Seq[*walk.Log] {
	return func(yield func(*walk.Log) bool) {
		for _, t := range turns {
			p := t.begin(d)
			if !yield(p.opens) {
				return
			}
			for _, seg := range p.segments {
				if !yield(seg.walk) {
					return
				}
			}
		}
	}
}

// worker looks at batches by themselves. It belongs to one goroutine.
type worker struct {
	opts    *Options
	checks  []func(*batchPass)
	records bool // some check needs the records
	reader  *format.RecordReader
	decoder *schema.Decoder // of control records
	facts   recordFacts
	pass    batchPass
}

func newWorker(opts *Options, on []*Check, gate format.Gate) *worker {
	w := &worker{opts: opts, reader: format.NewRecordReader(opts.MaxBatchBytes, gate), decoder: schema.NewDecoder()}
	for _, c := range on {
		if c.Batch != nil {
			w.checks = append(w.checks, c.Batch)
		}
		w.records = w.records || c.Level == Records
	}
	w.pass.opts = opts
	return w
}

// looked is what looking at the batches of a run by themselves gave.
type looked struct {
	odd      []int64 // the positions of those that are not sound
	findings []Finding
	notRead  []error // batches too large to be read
	took     Times   // what looking at records took, nil if nobody asks
}

func (l *looked) reset() { l.odd, l.findings, l.notRead = l.odd[:0], l.findings[:0], l.notRead[:0] }

// look runs the checks of single batches.
func (w *worker) look(r *walk.Run[looked]) error {
	r.Result.reset()
	if w.opts.Clock != nil {
		r.Result.took = Times{}
		begun := w.opts.Clock()
		defer func() { r.Result.took["batches"] = w.opts.Clock().Sub(begun) - r.Result.took["records"] }()
	}
	for i := range r.Batches {
		b := &r.Batches[i]
		if !b.Plausible() || w.opts.Level >= CRC && !b.Valid() {
			r.Result.odd = append(r.Result.odd, b.Pos)
			continue
		}
		w.single(&r.Result, b)
	}
	return nil
}

// single runs the checks that look at one batch by itself.
func (w *worker) single(l *looked, b *format.Batch) {
	w.pass.batch, w.pass.run, w.pass.records = b, l, nil
	if w.records && !isSkimmed(b) {
		l.took.during(w.opts.Clock, "records", func() { w.readRecords(b) })
	}
	for _, check := range w.checks {
		check(&w.pass)
	}
}
