package dump

import (
	"sync"

	"kseg/format"
	"kseg/logdir"
)

// Bounds of a run: enough work to be worth handing to a worker, little enough to keep memory small.
const (
	runBytes   = 448 << 10
	runBatches = 4096
	copyBytes  = runBytes + 32<<10 // with room for the last batch; one that does not fit is read where it is
	flushBytes = 4 << 20
)

// run is a stretch of whole batches that one worker prints, and the hole after it.
type run struct {
	seq      int
	batches  []format.Batch
	problems []problem
	hole     *format.Hole
	bytes    int64
	counted  counted
	span     []byte // the part of the mapping that the run covers
	copied   []byte // a copy of the bytes from the run's beginning on
}

// reset makes r ready to be filled again.
func (r *run) reset() {
	*r = run{batches: r.batches[:0], problems: r.problems[:0], copied: r.copied}
}

// counted is what passes of a run.
type counted struct{ records, batches int64 }

// problem is something wrong at a batch, said on stderr when the run's output is written.
type problem struct {
	text       string
	damage     bool
	incomplete bool
	fatalThere bool // the real tool dies of it, so it is said even where its stderr is wanted
}

// pipeline lets several workers print runs while their output is written in order.
type pipeline struct {
	tasks chan *run
	free  sync.Pool
	wg    sync.WaitGroup

	mu   sync.Mutex
	cond *sync.Cond
	turn int
	err  error
}

// startPipeline starts the workers of one file. Each maps the file itself, since the guard against lost pages holds for
// one goroutine.
func (d *dumper) startPipeline(f *logdir.File) *pipeline {
	p := &pipeline{tasks: make(chan *run, d.opts.Jobs)}
	p.cond = sync.NewCond(&p.mu)
	for range d.opts.Jobs {
		w := d.newWorker(f)
		w.await = func(r *run) { p.await(r.seq) }
		p.wg.Go(func() {
			for r := range p.tasks {
				p.process(f, w, r)
			}
		})
	}
	return p
}

func (p *pipeline) process(f *logdir.File, w *worker, r *run) {
	err := p.failed()
	if err == nil {
		err = f.View(func([]byte) error { return w.print(r) })
	}
	p.await(r.seq)
	if err == nil {
		err = w.finish(r)
	}
	w.abandon()
	p.advance(err)
	r.reset()
	p.free.Put(r)
}

// await blocks until every earlier run has been written.
func (p *pipeline) await(seq int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.turn != seq {
		p.cond.Wait()
	}
}

func (p *pipeline) advance(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.turn++
	if p.err == nil {
		p.err = err
	}
	p.cond.Broadcast()
}

func (p *pipeline) failed() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.err
}

// get returns an empty run.
func (p *pipeline) get() *run {
	if r, ok := p.free.Get().(*run); ok {
		return r
	}
	return &run{}
}

// stop waits for the workers and returns the first error.
func (p *pipeline) stop() error {
	close(p.tasks)
	p.wg.Wait()
	return p.failed()
}
