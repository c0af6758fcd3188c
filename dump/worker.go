package dump

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"

	"kseg/format"
	"kseg/logdir"
	"kseg/render"
	"kseg/schema"
	"kseg/walk"
)

// flushBytes is how much output is kept before it is written.
const flushBytes = 4 << 20

// worker prints runs, file after file. It is used by one goroutine.
type worker struct {
	d       *dumper
	f       *logdir.File
	turn    *turn
	gate    format.Gate // opens when all runs before have been written
	printer printer
	reader  *format.RecordReader
	decoder *schema.Decoder // nil in a shallow dump
	record  format.Record
	topic   schema.Topic    // of the file's records
	filter  *schema.Decoder // for filters that ask for what records are about; nil: there is none
	whole   bool            // every record is read, so that gaps between them mean something

	// Of the run at hand:
	buf              []byte
	problems         []problem
	records, batches int64 // that pass
	gaps             gaps
	end              int64 // the byte where enough had been printed
}

// turn is what the workers of one file have in common. It is used by the one whose run is to be written next.
type turn struct {
	order order
	err   error // nothing is written any more
}

// problem is something wrong at a byte, said on stderr when the run's output is written.
type problem struct {
	pos        int64
	fault      error // names the file; text says what follows from it
	text       string
	damage     bool
	incomplete bool
	fatalThere bool // the real tool dies of it, so it is said even where its stderr is wanted
}

// printer turns items into bytes of one output form.
type printer interface {
	batch(dst []byte, b *format.Batch, computed uint32, valid bool) []byte
	record(dst []byte, b *format.Batch, r *format.Record) []byte
	hole(dst []byte, h *format.Hole) []byte
}

func (d *dumper) newWorker() *worker {
	w := &worker{d: d, whole: !d.opts.Filter.Active() && d.window == nil, decoder: d.newDecoder()}
	w.reader = format.NewRecordReader(d.opts.MaxBatchBytes, w)
	if d.opts.Filter.decodes() {
		w.filter = schema.NewDecoder()
	}
	return w
}

// begin turns to a file.
func (w *worker) begin(f *logdir.File, turn *turn, gate format.Gate) {
	w.f, w.turn, w.gate, w.topic, w.printer = f, turn, gate, w.d.opts.Decode.topic(f),
		w.d.newPrinter(f, w.spillLong)
}

// passes reports whether the record at hand passes the filter.
func (w *worker) passes(b *format.Batch) bool {
	f := &w.d.opts.Filter
	if !f.record(b, &w.record) {
		return false
	}
	return w.filter == nil || w.topic != schema.None && !b.Control() && f.decoded(w.filter.Decode(w.topic, w.record.Key,
		w.record.Value))
}

// Enter waits for the run's turn before a very large batch is decompressed, so that only one is at a time.
func (w *worker) Enter() { w.gate.Enter() }

// Leave has nothing to do: the turn ends with the run.
func (w *worker) Leave() {}

// look prints a run (walk.Look). Its output and its problems are told when its turn has come.
func (w *worker) look(r *walk.Run[struct{}]) error {
	err := logdir.Guard(w.f.Display, func() error { return w.print(&r.Stretch) })
	w.gate.Enter()
	if w.turn.err == nil {
		w.turn.err = err
	}
	if w.turn.err == nil {
		w.turn.err = logdir.Guard(w.f.Display, func() error { return w.finish(&r.Stretch) })
	}
	w.abandon()
	return w.turn.err
}

// print formats a run into the buffer; a full buffer is written when the run's turn has come.
func (w *worker) print(s *walk.Stretch) error {
	w.problems, w.records, w.batches, w.end = w.problems[:0], 0, 0, math.MaxInt64
	w.gaps.reset()
	return s.Each(func(b *format.Batch) error {
		if b.Pos >= w.end {
			return nil
		}
		err := w.printBatch(b)
		if w.d.window.done() {
			w.end = b.End()
		}
		return err
	}, func(h *format.Hole) error {
		if h.Pos < w.end {
			w.problem(holeProblem(h))
			if !w.d.opts.Count {
				w.buf = w.printer.hole(w.buf, h)
			}
		}
		return nil
	})
}

func (w *worker) problem(p problem) { w.problems = append(w.problems, p) }

// finish writes what is left of a run, in its turn.
func (w *worker) finish(s *walk.Stretch) error {
	if err := w.flush(); err != nil {
		return err
	}
	order := &w.turn.order
	_ = s.Each(func(b *format.Batch) error {
		w.problems = order.check(w.problems, b)
		return nil
	}, func(h *format.Hole) error {
		order.skip(h)
		return nil
	})
	slices.SortStableFunc(w.problems, func(a, b problem) int { return cmp.Compare(a.pos, b.pos) })
	for _, p := range w.problems {
		if p.pos < w.end {
			w.d.tell(w.f, p)
		}
	}
	w.d.result.Records += w.records
	w.d.result.Batches += w.batches
	w.d.summary.addGaps(w.f, &w.gaps)
	if w.d.opts.Progress != nil {
		w.d.opts.Progress(s.To - s.From)
	}
	return nil
}

// abandon forgets output that will not be written, and the batch read last.
func (w *worker) abandon() {
	w.buf = w.buf[:0]
	w.record = format.Record{}
	w.reader.Release()
}

// flush writes the output, in the run's turn.
func (w *worker) flush() error {
	if err := w.d.ctx.Err(); err != nil {
		return &stopError{err}
	}
	err := w.d.write(w.buf)
	w.buf = w.buf[:0]
	return err
}

// tell reports a problem.
func (d *dumper) tell(f *logdir.File, p problem) {
	d.result.Damage = d.result.Damage || p.damage
	d.result.Incomplete = d.result.Incomplete || p.incomplete
	switch {
	case p.fault != nil:
		fmt.Fprintf(d.errOut, "kseg: %s; %s\n", render.Escaped(p.fault.Error()), p.text)
	case p.fatalThere && d.opts.Compat:
		fmt.Fprintf(d.errOut, "kseg: %s: %s\n", render.Escaped(f.Display), p.text)
	default:
		d.say(f, p.text)
	}
}

func (w *worker) printBatch(b *format.Batch) error {
	o := &w.d.opts
	selected := o.Filter.batch(b)
	if selected == none {
		return nil
	}
	computed := b.ComputeCRC()
	valid := computed == b.CRC && (b.Legacy() || len(b.Raw) >= format.BatchHeaderSize)
	if !valid {
		if _, v2 := b.AsV2(); !v2 {
			w.problem(checksumProblem(b, computed))
		}
	}
	if o.Count {
		w.count(b, selected)
		return nil
	}
	if !o.Deep && !readable(b).CodecFits() {
		w.problem(codecProblem(b))
	}
	if !o.Deep && selected == all && w.d.window == nil {
		w.buf = w.printer.batch(w.buf, b, computed, valid)
		return w.spill()
	}
	return w.printDeep(b, computed, valid, selected)
}

// count counts the records of a batch that pass. Where the header tells how many there are, and all pass, they are not
// read.
func (w *worker) count(b *format.Batch, selected selection) {
	n := int64(b.Count)
	if readable := readable(b); selected != all || readable.Count < 0 || readable.Magic != b.Magic {
		n = 0
		w.record = format.Record{} // lets go of the batch before
		w.reader.Reset(readable)
		for w.reader.Next(&w.record) {
			if selected == all || w.passes(b) {
				n++
			}
		}
		if err := w.reader.Err(); err != nil {
			w.problem(recordProblem(b, err, w.reader.PlainErr()))
		}
	}
	w.records += n
	if n > 0 {
		w.batches++
	}
}

// spillLong writes the beginning of a record that gets long, when the run's turn has come.
func (w *worker) spillLong(buf []byte) []byte {
	w.gate.Enter()
	if w.turn.err == nil {
		w.turn.err = w.d.write(buf)
	}
	return buf[:0]
}

// spill writes a full buffer when the run's turn has come.
func (w *worker) spill() error {
	if len(w.buf) < flushBytes {
		return nil
	}
	w.gate.Enter()
	if w.turn.err != nil {
		return w.turn.err
	}
	return w.flush()
}

// printDeep prints a batch and those of its records that pass. The batch's line comes with the first of them; a batch
// without records is judged by its header.
func (w *worker) printDeep(b *format.Batch, computed uint32, valid bool, selected selection) error {
	o := &w.d.opts
	printed := false
	head := func() {
		if !printed {
			w.buf = w.printer.batch(w.buf, b, computed, valid)
			printed = true
		}
	}
	if !o.Deep {
		if (selected == all || w.anyRecord(b)) && w.d.window.take() {
			head()
		}
		return w.spill()
	}
	if selected == all && w.d.window == nil {
		head()
	}
	readable := readable(b)
	w.record = format.Record{} // lets go of the batch before
	w.reader.Reset(readable)
	for w.reader.Next(&w.record) {
		if w.whole {
			w.gaps.add(w.record.Offset)
		}
		if selected != all && !w.passes(b) || !w.d.window.take() {
			continue
		}
		head()
		w.buf = w.printer.record(w.buf, readable, &w.record)
		w.checkControl(readable)
		if err := w.spill(); err != nil {
			return err
		}
		if w.d.window.done() {
			return nil
		}
	}
	if err := w.reader.Err(); err != nil {
		if o.Filter.overlaps(b) && w.d.window == nil {
			head()
		}
		p := recordProblem(b, err, w.reader.PlainErr())
		p.fatalThere = !w.reader.Unnoticed(o.Data)
		w.problem(p)
	} else if b.Count == 0 && o.Filter.emptyPasses(b) && w.d.window == nil {
		head()
	}
	return w.spill()
}

// checkControl notices a control record that cannot be read, of which the real tool dies.
func (w *worker) checkControl(b *format.Batch) {
	if !b.Control() {
		return
	}
	err := w.decoder.ControlError(b, w.record.Key, w.record.Value)
	if err == nil {
		return
	}
	p := damageAt(b, fmt.Sprintf("the control record of offset %d cannot be read: %v", w.record.Offset, err))
	p.fatalThere = !w.d.opts.SkipRecordMetadata && w.decoder.DecodeControl(w.record.Key, w.record.Value).Err != nil
	w.problem(p)
}

// readable is b as it can be read: as a record batch where only the magic byte is damaged.
func readable(b *format.Batch) *format.Batch {
	if v2, ok := b.AsV2(); ok {
		return &v2
	}
	return b
}

// anyRecord reports whether a record of b passes the filter, or may, where it cannot be read.
func (w *worker) anyRecord(b *format.Batch) bool {
	w.record = format.Record{} // lets go of the batch before
	w.reader.Reset(readable(b))
	for w.reader.Next(&w.record) {
		if w.passes(b) {
			return true
		}
	}
	return w.reader.Err() != nil && w.d.opts.Filter.overlaps(b)
}

func checksumProblem(b *format.Batch, computed uint32) problem {
	if !b.Legacy() && len(b.Raw) < format.BatchHeaderSize {
		return damageAt(b, fmt.Sprintf("the batch of offsets %s has %d bytes: fewer than its header of 61",
			span(b.BaseOffset, b.LastOffset), len(b.Raw)))
	}
	text := fmt.Sprintf("checksum mismatch in the batch of offsets %s: stored %d, computed %d",
		span(b.BaseOffset, b.LastOffset), b.CRC, computed)
	if pos, bit, ok := b.FlippedBit(); ok {
		text += fmt.Sprintf("; one flipped bit explains it: byte %d, bit %d", pos, bit)
	}
	return damageAt(b, text)
}

// codecProblem is about a codec that the batch's magic does not have. In a deep dump it is the records that say so.
func codecProblem(b *format.Batch) problem {
	p := damageAt(b, fmt.Sprintf("the batch of offsets %s has the codec %s, which magic %d does not know",
		span(b.BaseOffset, b.LastOffset), b.Codec(), b.Magic))
	p.fatalThere = !b.Codec().Known()
	return p
}

func recordProblem(b *format.Batch, err error, plain bool) problem {
	p := damageAt(b, fmt.Sprintf("the batch of offsets %s cannot be read to its end: %v%s",
		span(b.BaseOffset, b.LastOffset), err, where(plain)))
	p.fatalThere = true
	if errors.Is(err, format.ErrTooLarge) {
		p.damage, p.incomplete = false, true
		p.text += "; give a larger --max-batch-bytes to read it"
	}
	return p
}

func where(plain bool) string {
	if plain {
		return " (bytes of the decompressed records)"
	}
	return ""
}
