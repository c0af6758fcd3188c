package verify

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"kseg/format"
	"kseg/logdir"
	"kseg/schema"
)

// usualRun is about how many bytes a run has: few enough that they stay in the processor's cache, and that memory stays small.
const usualRun = 512 << 10

// run is a stretch of whole batches of one segment, looked at by one worker.
type run struct {
	seg      *segment
	opens    *partition // there is no segment: the look at this partition begins
	index    int        // among the runs of the segment
	from, to int64      // bytes
	last     bool       // no further run of the segment comes
	err      error      // the bytes could not be read

	batches  []format.Batch // those that are sound
	stop     int64          // where the worker stopped: at to, or at the first batch that is not sound
	findings []Finding      // about single batches
	notRead  []error        // batches too large to be read

	done chan struct{}
}

// source hands out the runs of all segments, in order, each looked at by a worker.
type source interface {
	// open begins a look at the partition, whose segments come next.
	open(p *partition)
	// next is the next run of the segment, of which data is the bytes. It is valid until the call after.
	next(seg *segment, data []byte) *run
}

// looker is what is done to each run, by one goroutine.
type looker interface {
	// look goes through the batches of a run that end at whole or before, up to the first that is not sound.
	look(r *run, w *window, whole int64)
}

// window is a part of a log in memory. Its bytes are read, which is cheaper than mapping their pages; only what is too
// large for that is the mapping itself.
type window struct {
	log    *logdir.File
	mapped []byte
	at     int64 // where bytes begins in the file
	bytes  []byte
	buf    []byte // what bytes lie in, unless they are mapped
}

// maxWindow is the most that is read at once.
const maxWindow = 8 << 20

// open takes another file, inside a View of it that gave the bytes.
func (w *window) open(log *logdir.File, mapped []byte) { w.log, w.mapped = log, mapped }

// read reads the bytes from at to end.
func (w *window) read(at, end int64) error {
	w.at, w.bytes = at, w.buf[:0]
	return w.extend(end)
}

// extend reads on to end.
func (w *window) extend(end int64) error {
	end = min(end, int64(len(w.mapped)))
	have := w.at + int64(len(w.bytes))
	switch {
	case end <= have:
		return nil
	case end-w.at > maxWindow:
		w.at, w.bytes = 0, w.mapped
		return nil
	}
	w.buf = slices.Grow(w.bytes, int(end-have))
	w.bytes = w.buf[:end-w.at]
	return w.log.Read(w.bytes[have-w.at:], have)
}

// decode adds the batch at a position of the file to a run, and returns it; nil if there is none.
func (w *window) decode(r *run, pos int64) *format.Batch {
	n := len(r.batches)
	r.batches = slices.Grow(r.batches, 1)[:n+1]
	b := &r.batches[n]
	if b.Decode(w.bytes, pos-w.at) != nil {
		r.batches = r.batches[:n]
		return nil
	}
	b.Pos = pos
	return b
}

// drop takes the last batch out again.
func (r *run) drop() { r.batches = r.batches[:len(r.batches)-1] }

// hop goes from header to header, from pos to the first batch that begins at until or later. It returns where that is, and
// whether it got there: where a header leads nowhere it ends.
func (w *window) hop(pos, until int64) (whole int64, ok bool, err error) {
	size := int64(len(w.mapped))
	for until = min(until, size); pos < until; {
		if err := w.extend(pos + format.LogOverhead); err != nil {
			return pos, false, err
		}
		length, err := format.EntrySizeOf(w.bytes[pos-w.at:], pos, size-pos)
		if err != nil {
			return pos, false, nil
		}
		pos += length
	}
	return pos, true, w.extend(pos)
}

// cut ends the run, which begins at r.from, behind the batches that begin before until, and returns where these end. Where a
// header leads nowhere, the run takes all the rest.
func (r *run) cut(w *window, until int64) (whole int64, err error) {
	whole, ok, err := w.hop(r.from, until)
	if r.to = whole; !ok {
		r.to = int64(len(w.mapped))
	}
	return whole, err
}

// serialSource does the work when asked, on the caller's goroutine.
type serialSource struct {
	worker looker
	bytes  int64 // of a run
	window window
	run    run
}

func (s *serialSource) open(p *partition) { p.list() }

func (s *serialSource) next(seg *segment, data []byte) *run {
	r := &s.run
	r.from = r.to
	if r.seg != seg {
		r.seg, r.from = seg, 0
	}
	s.window.open(seg.log, data)
	end := r.from + s.bytes
	whole := r.from
	if r.err = s.window.read(r.from, end); r.err == nil {
		whole, r.err = r.cut(&s.window, end)
	}
	if r.err == nil {
		s.worker.look(r, &s.window, whole)
	}
	r.last = r.to >= int64(len(data))
	return r
}

// parallelSource has several goroutines look at the runs of a file. Each of them reads a stretch of fixed length, learns from
// the run before where the first batch in it begins, hops through the headers to tell the next run the same, and only then
// looks at the batches. Every goroutine has a View of its own, since the guard against lost pages holds for one goroutine.
type parallelSource struct {
	ctx     context.Context
	bytes   int64     // of a run
	ordered chan *run // in order, whether looked at or not
	work    chan *run
	free    chan *run
	current *run
	wait    sync.WaitGroup
}

// startParallel lets the workers look at the segments of the partitions, each of which is listed when the workers are about to
// come to it.
func startParallel[L looker](ctx context.Context, partitions []*partition, bytes int64, workers []L) *parallelSource {
	depth := 2*len(workers) + 2
	s := &parallelSource{ctx: ctx, bytes: bytes, ordered: make(chan *run, depth), work: make(chan *run, depth), free: make(chan *run, depth+2)}
	for range depth + 2 {
		s.free <- &run{done: make(chan struct{}, 1)}
	}
	s.wait.Go(func() {
		defer close(s.work)
		defer close(s.ordered)
		for _, p := range partitions {
			if !s.announce(p) {
				return
			}
			for _, seg := range p.segments {
				if !s.feed(seg) {
					return
				}
			}
		}
	})
	for _, w := range workers {
		s.wait.Go(func() {
			var win window
			for r := range s.work {
				s.look(w, &win, r)
			}
		})
	}
	return s
}

// announce lists a partition and says that its segments come next. It is false if the context has ended.
func (s *parallelSource) announce(p *partition) bool {
	r := s.take()
	if r == nil {
		return false
	}
	p.list()
	*r = run{opens: p, batches: r.batches[:0], done: r.done}
	r.done <- struct{}{}
	s.ordered <- r
	return true
}

// open passes over what is left of partitions that were given up.
func (s *parallelSource) open(p *partition) {
	s.await(func(r *run) bool { return r.opens == p })
}

// feed hands out the runs of one segment. It is false if the context has ended.
func (s *parallelSource) feed(seg *segment) bool {
	fed := 0
	seg.cuts = newCuts()
	err := seg.log.View(func(data []byte) error {
		size := int64(len(data))
		for start := int64(0); fed == 0 || start < size; start += s.bytes {
			r := s.take()
			if r == nil {
				return context.Canceled
			}
			r.seg, r.opens, r.index, r.err, r.last = seg, nil, fed, nil, start+s.bytes >= size
			fed++
			s.ordered <- r
			s.work <- r
		}
		return nil
	})
	if s.ctx.Err() != nil {
		return false
	}
	if err != nil && fed == 0 {
		r := s.take()
		if r == nil {
			return false
		}
		*r = run{seg: seg, last: true, err: err, batches: r.batches[:0], done: r.done}
		r.done <- struct{}{}
		s.ordered <- r
	}
	return true
}

// take is a run to fill, or nil if the context has ended.
func (s *parallelSource) take() *run {
	select {
	case r := <-s.free:
		return r
	case <-s.ctx.Done():
		return nil
	}
}

// next passes over what is left of segments that were given up.
func (s *parallelSource) next(seg *segment, _ []byte) *run {
	if r := s.await(func(r *run) bool { return r.seg == seg }); r != nil {
		return r
	}
	return &run{last: true, err: context.Canceled}
}

// await is the next run that is wanted, nil if none comes.
func (s *parallelSource) await(wanted func(*run) bool) *run {
	for {
		if s.current != nil {
			s.free <- s.current
			s.current = nil
		}
		r, ok := <-s.ordered
		if !ok {
			return nil
		}
		<-r.done
		s.current = r
		if wanted(r) {
			return r
		}
	}
}

// stop ends all goroutines, whether all runs were taken or not. The context must have ended or the last run been taken.
func (s *parallelSource) stop() {
	for r := range s.ordered {
		<-r.done
	}
	s.wait.Wait()
}

// look has a run looked at.
func (s *parallelSource) look(w looker, win *window, r *run) {
	r.batches, r.from, r.to, r.stop = r.batches[:0], 0, 0, 0
	r.err = r.seg.log.View(func(data []byte) error {
		win.open(r.seg.log, data)
		start := int64(r.index) * s.bytes
		err := win.read(start, start+s.bytes)
		r.from = r.seg.cuts.wait(r.index)
		switch {
		case r.from > int64(len(data)):
			return shrunk(r.seg.log, r.from, len(data))
		case r.from < start:
			return errBefore
		}
		r.to, r.stop = r.from, r.from
		whole := r.from
		if err == nil {
			whole, err = r.cut(win, start+s.bytes)
		}
		r.seg.cuts.pass(r.index, r.to)
		if err == nil {
			w.look(r, win, whole)
		}
		return err
	})
	r.seg.cuts.pass(r.index, r.to)
	r.done <- struct{}{}
}

// errBefore is the error of a run that does not know where it begins, since the one before could not be read.
var errBefore = errors.New("the bytes before could not be read")

// cuts tells the runs of a segment where they begin: each where the one before it ends.
type cuts struct {
	mu    sync.Mutex
	moved *sync.Cond
	next  int   // the first run of which the end is not known
	at    int64 // the end of the run before it
}

func newCuts() *cuts {
	c := &cuts{}
	c.moved = sync.NewCond(&c.mu)
	return c
}

// wait waits for the end of the run before this one.
func (c *cuts) wait(index int) int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.next < index {
		c.moved.Wait()
	}
	return c.at
}

// pass says where a run ends, once.
func (c *cuts) pass(index int, at int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.next <= index {
		c.next, c.at = index+1, max(c.at, at)
		c.moved.Broadcast()
	}
}

func shrunk(f *logdir.File, had int64, now int) error {
	return fmt.Errorf("%s: %w: it had %d bytes or more and has %d now", f.Display, logdir.ErrVanished, had, now)
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

// look runs the checks of single batches.
func (w *worker) look(r *run, win *window, whole int64) {
	r.batches, r.findings, r.notRead = r.batches[:0], r.findings[:0], r.notRead[:0]
	pos := r.from
	for pos < whole {
		b := win.decode(r, pos)
		if b == nil {
			break
		}
		if !b.Plausible() || w.opts.Level >= CRC && !b.Valid() {
			r.drop()
			break
		}
		w.single(r, b)
		pos = b.End()
	}
	r.stop = pos
	win.log.Release(win.mapped[r.from:r.stop])
}

// single runs the checks that look at one batch by itself.
func (w *worker) single(r *run, b *format.Batch) {
	w.pass.batch, w.pass.run, w.pass.records = b, r, nil
	if w.records {
		w.readRecords(b)
	}
	for _, check := range w.checks {
		check(&w.pass)
	}
}
