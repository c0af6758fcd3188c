package walk

import (
	"cmp"
	"context"
	"iter"
	"math"
	"sync"

	"kseg/format"
	"kseg/logdir"
)

// Walker is a walk in progress, for those who ask for one log at a time. It must be closed.
type Walker[R any] struct {
	ctx     context.Context
	cancel  func()
	options Options
	look    Look[R] // if there is one job
	own     Run[R]
	pull    func() (*Log, bool)
	stop    func()

	// With several jobs:
	ordered chan *Run[R] // to be taken, whether looked at or not
	work    chan *Run[R]
	free    chan *Run[R]
	current *Run[R] // of which the caller has had no further one
	ahead   *Run[R] // taken from ordered, but not by the caller
	wait    sync.WaitGroup
	closed  chan struct{}
	err     error // of giving the logs
	turn    turn
}

// Start begins to go through the logs, each of which is given once. newLook makes the Look of a worker; nil looks at
// nothing.
func Start[R any](ctx context.Context, logs iter.Seq[*Log], o Options, newLook func(format.Gate) Look[R]) *Walker[R] {
	if o.RunBytes == 0 {
		o.RunBytes = usualRun
	}
	if newLook == nil {
		newLook = func(format.Gate) Look[R] { return func(*Run[R]) error { return nil } }
	}
	w := &Walker[R]{options: o}
	w.ctx, w.cancel = context.WithCancel(ctx)
	if o.Jobs <= 1 {
		w.look = newLook(open{})
		w.pull, w.stop = iter.Pull(logs)
		return w
	}
	depth := o.Jobs + 1
	w.ordered, w.work, w.free = make(chan *Run[R], depth), make(chan *Run[R], depth), make(chan *Run[R], depth+2)
	w.closed = make(chan struct{})
	w.turn.moved = sync.NewCond(&w.turn.mu)
	for range depth + 2 {
		w.free <- &Run[R]{place: place{done: make(chan struct{}, 1)}}
	}
	w.wait.Go(func() {
		defer close(w.work)
		defer close(w.ordered)
		w.err = logdir.Guard("listing", func() error { w.feed(logs); return nil })
	})
	for range o.Jobs {
		g := &gate{turn: &w.turn}
		look := newLook(g)
		w.wait.Go(func() {
			for r := range w.work {
				g.seq = r.seq
				w.process(look, r)
				r.done <- struct{}{}
			}
		})
	}
	return w
}

// Log hands the runs of a log to take, in order; its error ends the log. Logs come in the order in which they were
// given; those between are passed over. The error is that of take, of the context, or for a file that could not be read
// or changed meanwhile. take decides what becomes of a run that has an error.
func (w *Walker[R]) Log(log *Log, take func(*Run[R]) error) error {
	if w.look != nil {
		return w.inline(log, take)
	}
	for {
		r := w.take()
		switch {
		case r == nil:
			return cmp.Or(w.ctx.Err(), w.err)
		case r.Log != log:
			continue
		case log.flight.cut != nil:
			if err := logdir.Guard(log.File.Display, func() error { return take(r) }); err != nil {
				return err
			}
		}
		if r.Last {
			w.pass()
			return log.flight.err
		}
	}
}

// inline does all the work on the caller's goroutine.
func (w *Walker[R]) inline(log *Log, take func(*Run[R]) error) error {
	if log.Open != nil {
		log.Open()
	}
	if log.File == nil {
		return w.ctx.Err()
	}
	r := &w.own
	return log.File.View(func(data []byte) error {
		c := newCutter(log, data, w.options.Trust)
		for !c.ended {
			if err := w.ctx.Err(); err != nil {
				return err
			}
			r.reset(log, data)
			until := c.scan.Pos() + w.options.RunBytes
			r.load(c.scan.Pos(), until)
			if until >= int64(len(data)) {
				until = math.MaxInt64
			}
			c.fill(&r.Stretch, until)
			r.Last = c.ended
			w.lookAt(w.look, r)
			if err := take(r); err != nil {
				return err
			}
		}
		return nil
	})
}

// lookAt has a run looked at.
func (w *Walker[R]) lookAt(look Look[R], r *Run[R]) {
	err := logdir.Guard(r.Log.File.Display, func() error {
		defer func() { r.Log.File.Release(r.Data[r.From:r.To]) }()
		return look(r)
	})
	if err != nil && r.Err == nil {
		r.Err = err
	}
}

// next is the next log that has runs to be taken. It is false at the end, or if the context has ended.
func (w *Walker[R]) next() (*Log, bool) {
	if w.look != nil {
		return w.pull()
	}
	w.pass()
	if w.ahead == nil {
		w.ahead = <-w.ordered
	}
	if w.ahead == nil || w.ctx.Err() != nil {
		return nil, false
	}
	return w.ahead.Log, true
}

// take is the next run of all, or nil at the end.
func (w *Walker[R]) take() *Run[R] {
	w.pass()
	r := w.ahead
	if w.ahead = nil; r == nil {
		r = <-w.ordered
	}
	if r != nil {
		<-r.done
		w.current = r
	}
	return r
}

// pass lets go of the current run, and with the last one of its file.
func (w *Walker[R]) pass() {
	r := w.current
	if r == nil {
		return
	}
	if w.current = nil; r.Last {
		close(r.Log.flight.over)
		<-r.Log.flight.left
	}
	w.turn.advance()
	w.free <- r
}

// Close ends the walk, wherever it is.
func (w *Walker[R]) Close() {
	w.cancel()
	if w.look != nil {
		w.stop()
		return
	}
	for w.take() != nil {
	}
	close(w.closed)
	w.wait.Wait()
}
