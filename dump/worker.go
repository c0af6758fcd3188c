package dump

import (
	"errors"
	"fmt"

	"kseg/format"
	"kseg/logdir"
	"kseg/render"
	"kseg/schema"
)

// worker prints runs of one file. It is used by one goroutine.
type worker struct {
	d       *dumper
	f       *logdir.File
	printer printer
	reader  *format.RecordReader
	decoder *schema.Decoder // nil in a shallow dump
	buf     []byte
	record  format.Record
	await   func(*run) // blocks until the run's output may be written
	current *run
	topic   schema.Topic    // of the file's records
	filter  *schema.Decoder // for filters that ask for what records are about; nil: there is none
	gaps    gaps
	whole   bool // every record is read, so that gaps between them mean something
}

// printer turns items into bytes of one output form.
type printer interface {
	batch(dst []byte, b *format.Batch, computed uint32, valid bool) []byte
	record(dst []byte, b *format.Batch, r *format.Record) []byte
	hole(dst []byte, h *format.Hole) []byte
}

func (d *dumper) newWorker(f *logdir.File) *worker {
	w := &worker{d: d, await: func(*run) {}, whole: !d.opts.Filter.Active() && d.window == nil, decoder: d.newDecoder()}
	w.reader = format.NewRecordReader(d.opts.MaxBatchBytes, w)
	w.turnTo(f)
	return w
}

// worker is the one of the dumper's own goroutine, kept from file to file.
func (d *dumper) worker(f *logdir.File) *worker {
	if d.own == nil {
		d.own = d.newWorker(f)
		return d.own
	}
	d.own.turnTo(f)
	return d.own
}

func (w *worker) turnTo(f *logdir.File) {
	w.f, w.topic = f, w.d.opts.Decode.topic(f)
	w.printer = w.d.newPrinter(f)
	if w.filter == nil && w.d.opts.Filter.decodes() {
		w.filter = schema.NewDecoder()
	}
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
func (w *worker) Enter() { w.await(w.current) }

// Leave has nothing to do: the turn ends with the run.
func (w *worker) Leave() {}

// print formats a run into the buffer; a full buffer is written when the run's turn has come.
func (w *worker) print(r *run) error {
	w.current = r
	w.gaps.reset()
	for i := range r.batches {
		if err := w.printBatch(r, &r.batches[i]); err != nil {
			return err
		}
		if w.d.window.done() {
			r.hole = nil
			break
		}
	}
	if r.hole != nil {
		w.printHole(r)
	}
	w.f.Release(r.span)
	return nil
}

func (w *worker) printHole(r *run) {
	r.problems = append(r.problems, holeProblem(r.hole))
	if !w.d.opts.Count {
		w.buf = w.printer.hole(w.buf, r.hole)
	}
}

// finish writes what is left of a run, in its turn.
func (w *worker) finish(r *run) error {
	if err := w.flush(); err != nil {
		return err
	}
	for _, p := range r.problems {
		w.d.tell(w.f, p)
	}
	w.d.result.Records += r.counted.records
	w.d.result.Batches += r.counted.batches
	w.d.summary.addGaps(w.f, &w.gaps)
	if w.d.opts.Progress != nil {
		w.d.opts.Progress(int64(len(r.span)))
	}
	return nil
}

// abandon forgets output that will not be written, and the batch read last.
func (w *worker) abandon() {
	w.buf = w.buf[:0]
	w.record = format.Record{}
	w.reader.Release()
}

func (w *worker) flush() error {
	err := w.d.write(w.buf)
	w.buf = w.buf[:0]
	return err
}

// tell reports a problem.
func (d *dumper) tell(f *logdir.File, p problem) {
	d.result.Damage = d.result.Damage || p.damage
	d.result.Incomplete = d.result.Incomplete || p.incomplete
	if p.fatalThere && d.opts.Compat {
		fmt.Fprintf(d.errOut, "kseg: %s: %s\n", render.Escaped(f.Display), p.text)
		return
	}
	d.say(f, p.text)
}

func (w *worker) printBatch(r *run, b *format.Batch) error {
	o := &w.d.opts
	selected := o.Filter.batch(b)
	if selected == none {
		return nil
	}
	computed := b.ComputeCRC()
	valid := computed == b.CRC && (b.Legacy() || len(b.Raw) >= format.BatchHeaderSize)
	if !valid {
		if _, v2 := b.AsV2(); !v2 {
			r.problems = append(r.problems, checksumProblem(b, computed))
		}
	}
	if o.Count {
		w.count(r, b, selected)
		return nil
	}
	if !o.Deep && !readable(b).CodecFits() {
		r.problems = append(r.problems, codecProblem(b))
	}
	if !o.Deep && selected == all && w.d.window == nil {
		w.buf = w.printer.batch(w.buf, b, computed, valid)
		return w.spill(r)
	}
	return w.printDeep(r, b, computed, valid, selected)
}

// count counts the records of a batch that pass. Where the header tells how many there are, and all pass, they are not
// read.
func (w *worker) count(r *run, b *format.Batch, selected selection) {
	n := int64(b.Count)
	if readable := readable(b); selected != all || readable.Count < 0 || readable.Magic != b.Magic {
		n = 0
		w.reader.Reset(readable)
		for w.reader.Next(&w.record) {
			if selected == all || w.passes(b) {
				n++
			}
		}
		if err := w.reader.Err(); err != nil {
			r.problems = append(r.problems, recordProblem(b, err, w.reader.PlainErr()))
		}
	}
	r.counted.records += n
	if n > 0 {
		r.counted.batches++
	}
}

// spill writes a full buffer when the run's turn has come.
func (w *worker) spill(r *run) error {
	if len(w.buf) < flushBytes {
		return nil
	}
	w.await(r)
	return w.flush()
}

// printDeep prints a batch and those of its records that pass. The batch's line comes with the first of them; a batch
// without records is judged by its header.
func (w *worker) printDeep(r *run, b *format.Batch, computed uint32, valid bool, selected selection) error {
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
		return w.spill(r)
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
		r.problems = w.checkControl(r.problems, readable)
		if err := w.spill(r); err != nil {
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
		r.problems = append(r.problems, p)
	} else if b.Count == 0 && o.Filter.emptyPasses(b) && w.d.window == nil {
		head()
	}
	return w.spill(r)
}

// checkControl notices a control record that cannot be read, of which the real tool dies.
func (w *worker) checkControl(problems []problem, b *format.Batch) []problem {
	if !b.Control() {
		return problems
	}
	err := w.decoder.ControlError(b, w.record.Key, w.record.Value)
	if err == nil {
		return problems
	}
	p := damageAt(b, fmt.Sprintf("the control record of offset %d cannot be read: %v", w.record.Offset, err))
	p.fatalThere = !w.d.opts.SkipRecordMetadata && w.decoder.DecodeControl(w.record.Key, w.record.Value).Err != nil
	return append(problems, p)
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
