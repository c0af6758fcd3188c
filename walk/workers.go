package walk

import (
	"iter"
	"math"
	"sync"
)

// place is where a run stands among the others.
type place struct {
	seq   int64         // among all runs
	index int64         // among the runs of the log
	from  int64         // where its stretch of the log begins
	final bool          // it takes all the rest of the log
	done  chan struct{} // the worker is done
}

// flight is a log on its way through the workers. One goroutine keeps the file mapped for all of them, until the last
// run has been taken.
type flight struct {
	data []byte
	cut  *cutter
	err  error // of opening the file, or because it has changed; to be read when left is closed

	mu    sync.Mutex
	moved *sync.Cond
	next  int64 // the index of the run that may use cut
	pos   int64 // where cut stands

	over chan struct{} // the last run has been taken
	left chan struct{} // the file is not mapped any more
}

// launch maps the file of a log. It waits until the bytes are there, or the error.
func (w *Walker[R]) launch(log *Log) *flight {
	f := &flight{over: make(chan struct{}), left: make(chan struct{}), pos: log.From}
	f.moved = sync.NewCond(&f.mu)
	log.flight = f
	if log.Open != nil {
		log.Open()
	}
	if log.File == nil {
		close(f.left)
		return f
	}
	mapped := make(chan struct{})
	w.wait.Go(func() {
		defer close(f.left)
		opened := false
		f.err = log.File.View(func(data []byte) error {
			f.data, f.cut, opened = data, newCutter(log, data, w.options.Trust), true
			close(mapped)
			select {
			case <-f.over:
			case <-w.closed:
			}
			return nil
		})
		if !opened {
			close(mapped)
		}
	})
	<-mapped
	return f
}

// await waits until the runs before have been cut.
func (f *flight) await(index int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for f.next != index {
		f.moved.Wait()
	}
}

// hand lets the next run be cut.
func (f *flight) hand() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.next++
	if f.pos = f.cut.scan.Pos(); f.cut.ended {
		f.pos = int64(len(f.data))
	}
	f.moved.Broadcast()
}

// reached is where the cutter stands.
func (f *flight) reached() int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.pos
}

// feed hands out the runs of all logs.
func (w *Walker[R]) feed(logs iter.Seq[*Log]) {
	seq := int64(0)
	for log := range logs {
		f := w.launch(log)
		at, size := log.From, int64(len(f.data))
		for index, final := int64(0), false; !final; index++ {
			var r *Run[R]
			select {
			case r = <-w.free:
			case <-w.ctx.Done():
				return
			}
			final = at+w.options.RunBytes >= size
			r.reset(log, f.data)
			r.place = place{seq: seq, index: index, from: at, final: final, done: r.done}
			seq++
			w.ordered <- r
			if f.cut == nil {
				r.Last = true
				r.done <- struct{}{}
				continue
			}
			w.work <- r
			// What a large batch or hole covers needs no runs.
			at += w.options.RunBytes
			at += max(0, f.reached()-at) / w.options.RunBytes * w.options.RunBytes
		}
	}
}

// process cuts a run and has it looked at.
func (w *Walker[R]) process(look Look[R], r *Run[R]) {
	f := r.Log.flight
	until := r.from + w.options.RunBytes
	if w.ctx.Err() == nil {
		r.load(r.from, until)
	}
	if r.final {
		until = math.MaxInt64
	}
	f.await(r.index)
	if err := w.ctx.Err(); err == nil {
		f.cut.fill(&r.Stretch, until)
	} else {
		r.Err = err
	}
	r.Last = r.final
	f.hand()
	if r.Err == nil {
		w.lookAt(look, r)
	}
}

// turn says which run is the next to be taken.
type turn struct {
	mu    sync.Mutex
	moved *sync.Cond
	seq   int64
}

func (t *turn) advance() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.seq++
	t.moved.Broadcast()
}

// end lets all pass.
func (t *turn) end() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.seq = math.MaxInt64
	t.moved.Broadcast()
}

// gate makes a worker wait with a very large batch until all runs before have been taken: then only one is in memory.
type gate struct {
	turn *turn
	seq  int64 // of the run that the worker looks at
}

// Enter waits.
func (g *gate) Enter() {
	g.turn.mu.Lock()
	defer g.turn.mu.Unlock()
	for g.turn.seq < g.seq {
		g.turn.moved.Wait()
	}
}

// Leave has nothing to do: the turn ends with the run.
func (g *gate) Leave() {}

// open is a gate for one worker.
type open struct{}

// Enter does not wait.
func (open) Enter() {}

// Leave has nothing to do.
func (open) Leave() {}
