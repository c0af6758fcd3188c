package walk

import (
	"context"
	"iter"
	"sync"
)

// Ordered does something to each item with so many workers and yields the results in the order of the items. Every
// worker is a function of its own, made by newWorker, so that it may have buffers. Workers run a few items ahead of
// what has been yielded, not more. It stops early if ctx ends.
func Ordered[T, R any](ctx context.Context, items []T, jobs int, newWorker func() func(T) R) iter.Seq[R] {
	type task struct {
		item T
		done chan R
	}
	return func(yield func(R) bool) {
		ctx, cancel := context.WithCancel(ctx)
		var workers sync.WaitGroup
		defer workers.Wait()
		defer cancel()
		tasks := make(chan task)
		places := make(chan chan R, 16*jobs)
		workers.Go(func() {
			defer close(tasks)
			defer close(places)
			for _, item := range items {
				t := task{item, make(chan R, 1)}
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
				do := newWorker()
				for t := range tasks {
					t.done <- do(t.item)
				}
			})
		}
		for place := range places {
			select {
			case result := <-place:
				if ctx.Err() != nil || !yield(result) {
					return
				}
			case <-ctx.Done():
				return
			}
		}
	}
}
