package verify

import (
	"context"
	"fmt"
	"sync"

	"kseg/format"
	"kseg/logdir"
)

// runLimits say where a run is cut: behind about so many bytes, or so many batches.
type runLimits struct {
	bytes   int64
	batches int
}

// The batches of a run of this size stay in the processor's cache, and memory stays small.
var usualRun = runLimits{bytes: 1 << 20, batches: 4096}

// run is a stretch of whole batches of one segment, looked at by one worker.
type run struct {
	seg      *segment
	from, to int64 // bytes
	last     bool  // no further run of the segment comes
	err      error // the bytes could not be read

	batches  []format.Batch // those that are sound
	stop     int64          // where the worker stopped: at to, or at the first batch that is not sound
	findings []Finding      // about single batches
	notRead  []error        // batches too large to be read

	done chan struct{}
}

// source hands out the runs of all segments, in order, each looked at by a worker.
type source interface {
	// next is the next run of the segment, of which data is the bytes. It is valid until the call after.
	next(seg *segment, data []byte) *run
}

// looker is what is done to each run, by one goroutine.
type looker interface {
	// look goes through the batches of a run, up to the first that is not sound or to the limits.
	look(r *run, data []byte, most runLimits)
}

// serialSource does the work when asked, on the caller's goroutine.
type serialSource struct {
	worker looker
	limits runLimits
	run    run
}

func (s *serialSource) next(seg *segment, data []byte) *run {
	from := s.run.to
	if s.run.seg != seg {
		s.run.seg, from = seg, 0
	}
	r := &s.run
	r.from = from
	seg.prepare(data, from+s.limits.bytes)
	r.to = int64(len(data))
	s.worker.look(r, data, s.limits)
	if r.stop < r.to && r.stop-from < s.limits.bytes && len(r.batches) < s.limits.batches {
		r.cut(data, s.limits) // a batch is not sound: the run ends where hopping ends it
	} else {
		r.to = r.stop
	}
	r.last = r.to == int64(len(data))
	return r
}

// cut ends the run that begins at r.from behind some whole batches, by hopping from header to header. Where a header leads
// nowhere, the run takes all the rest.
func (r *run) cut(data []byte, limits runLimits) {
	pos, n := r.from, 0
	size := int64(len(data))
	r.seg.prepare(data, pos+limits.bytes)
	for ; pos < size && pos-r.from < limits.bytes && n < limits.batches; n++ {
		length, err := format.EntrySize(data, pos)
		if err != nil {
			pos = size
			break
		}
		pos += length
	}
	r.to, r.last = pos, pos == size
}

// parallelSource cuts ahead on one goroutine and looks on several others. Every goroutine has a View of its own, since the
// guard against lost pages holds for one goroutine.
type parallelSource struct {
	ctx     context.Context
	limits  runLimits
	ordered chan *run // in order, whether looked at or not
	work    chan *run
	free    chan *run
	current *run
	wait    sync.WaitGroup
}

func startParallel[L looker](ctx context.Context, segments []*segment, limits runLimits, workers []L) *parallelSource {
	depth := 2*len(workers) + 2
	s := &parallelSource{ctx: ctx, limits: limits, ordered: make(chan *run, depth), work: make(chan *run, depth), free: make(chan *run, depth+2)}
	for range depth + 2 {
		s.free <- &run{done: make(chan struct{}, 1)}
	}
	s.wait.Go(func() {
		defer close(s.work)
		defer close(s.ordered)
		for _, seg := range segments {
			if !s.feed(seg) {
				return
			}
		}
	})
	for _, w := range workers {
		s.wait.Go(func() {
			for r := range s.work {
				lookInView(w, r, limits)
			}
		})
	}
	return s
}

// feed cuts one segment into runs. It is false if the context has ended.
func (s *parallelSource) feed(seg *segment) bool {
	var from int64
	last := false
	err := seg.log.View(func(data []byte) error {
		for !last {
			r := s.take()
			if r == nil {
				return context.Canceled
			}
			r.seg, r.from, r.err = seg, from, nil
			r.cut(data, s.limits)
			from, last = r.to, r.last
			s.ordered <- r
			s.work <- r
		}
		return nil
	})
	if s.ctx.Err() != nil {
		return false
	}
	if err != nil && !last {
		r := s.take()
		if r == nil {
			return false
		}
		*r = run{seg: seg, from: from, to: from, stop: from, last: true, err: err, batches: r.batches[:0], done: r.done}
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
	for {
		if s.current != nil {
			s.free <- s.current
			s.current = nil
		}
		r, ok := <-s.ordered
		if !ok {
			return &run{last: true, err: context.Canceled}
		}
		<-r.done
		s.current = r
		if r.seg == seg {
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

// worker looks at batches by themselves. It belongs to one goroutine.
type worker struct {
	opts    *Options
	checks  []func(*batchPass)
	records bool // some check needs the records
	reader  *format.RecordReader
	facts   recordFacts
	pass    batchPass
}

func newWorker(opts *Options, on []*Check, gate format.Gate) *worker {
	w := &worker{opts: opts, reader: format.NewRecordReader(opts.MaxBatchBytes, gate)}
	for _, c := range on {
		if c.Batch != nil {
			w.checks = append(w.checks, c.Batch)
		}
		w.records = w.records || c.Level == Records
	}
	w.pass.opts = opts
	return w
}

// lookInView is look for a run that another goroutine has cut.
func lookInView(w looker, r *run, limits runLimits) {
	r.err = r.seg.log.View(func(data []byte) error {
		if r.to > int64(len(data)) {
			return shrunk(r.seg.log, r.to, len(data))
		}
		w.look(r, data, runLimits{bytes: r.to - r.from, batches: limits.batches})
		return nil
	})
	r.done <- struct{}{}
}

func shrunk(f *logdir.File, had int64, now int) error {
	return fmt.Errorf("%s: %w: it had %d bytes or more and has %d now", f.Display, logdir.ErrVanished, had, now)
}

// look runs the checks of single batches.
func (w *worker) look(r *run, data []byte, most runLimits) {
	r.batches, r.findings, r.notRead = r.batches[:0], r.findings[:0], r.notRead[:0]
	pos := r.from
	for pos < r.to && pos-r.from < most.bytes && len(r.batches) < most.batches {
		b, err := format.DecodeBatch(data, pos)
		if err != nil || !b.Plausible() || w.opts.Level >= CRC && !b.Valid() {
			break
		}
		r.batches = append(r.batches, b)
		w.single(r, &r.batches[len(r.batches)-1])
		pos = b.End()
	}
	r.stop = pos
	r.seg.log.Release(data[r.from:r.stop])
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
