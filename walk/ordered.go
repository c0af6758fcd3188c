package walk

import (
	"context"
	"iter"
	"sync"

	"kseg/format"
)

// Ordered does something to each item with so many workers and yields the results in the order of the items. Every
// worker is a function of its own, made by newWorker, so that it may have buffers. Workers run a few items ahead of
// what has been yielded, not more. The gate is for a worker's RecordReaders, which let go of each item's batches: it
// makes it wait with a very large batch until all items before are done. It stops early if ctx ends.
func Ordered[T, R any](ctx context.Context, items []T, jobs int, newWorker func(format.Gate) func(T) R) iter.Seq[R] {
	type task struct {
		seq  int64
		item T
		done chan R
	}
	return func(yield func(R) bool) {
		ctx, cancel := context.WithCancel(ctx)
		var workers sync.WaitGroup
		turn := &turn{}
		turn.moved = sync.NewCond(&turn.mu)
		defer workers.Wait()
		defer turn.end()
		defer cancel()
		tasks := make(chan task)
		places := make(chan chan R, 16*jobs)
		workers.Go(func() {
			defer close(tasks)
			defer close(places)
			for i, item := range items {
				t := task{int64(i), item, make(chan R, 1)}
				select {
				case places <- t.done:
				case <-ctx.Done():
					return
				}
				select {
				case tasks <- t:
				case <-ctx.Done():
					return
				}
			}
		})
		for range jobs {
			workers.Go(func() {
				g := &gate{turn: turn}
				do := newWorker(g)
				for t := range tasks {
					g.seq = t.seq
					t.done <- do(t.item)
				}
			})
		}
		for place := range places {
			select {
			case result := <-place:
				turn.advance()
				if ctx.Err() != nil || !yield(result) {
					return
				}
			case <-ctx.Done():
				return
			}
		}
	}
}
