// Package retention says which segments a broker would delete, by which rule, when, and what keeps the others.
//
// The rules are UnifiedLog.deleteOldSegments of Kafka 4.4 (rules.go). What they look at is read as a broker would load it:
// the last entry of each time index rather than the log (segment.go), three offsets from checkpoints and the end of the
// log (partition.go), and the settings of the topic from wherever they come (package state). Beside each stands what the log
// itself says.
package retention

import (
	"context"
	"fmt"
	"iter"
	"sync"

	"kseg/format"
	"kseg/logdir"
)

// Result is the answer for one partition: a report, or why there is none. Problems are what could not be read.
type Result struct {
	Partition *logdir.Partition
	Report    *Report
	Skipped   string // a sentence
	Problems  []logdir.Problem
}

// Run judges the partitions with so many workers and yields the results in their order. It stops early if ctx ends.
func (j *Judge) Run(ctx context.Context, partitions []*logdir.Partition, jobs int) iter.Seq[Result] {
	return func(yield func(Result) bool) {
		ctx, cancel := context.WithCancel(ctx)
		var workers sync.WaitGroup
		defer workers.Wait()
		defer cancel()
		// Each result has a place of its own, so that they come out in order; a token bounds how far workers run ahead.
		places := make([]chan Result, len(partitions))
		for i := range places {
			places[i] = make(chan Result, 1)
		}
		next := make(chan int)
		ahead := make(chan struct{}, 4*jobs)
		go func() {
			defer close(next)
			for i := range partitions {
				select {
				case ahead <- struct{}{}:
				case <-ctx.Done():
					return
				}
				select {
				case next <- i:
				case <-ctx.Done():
					return
				}
			}
		}()
		for range jobs {
			workers.Go(func() {
				rd := &reader{ctx, format.NewRecordReader(j.options.MaxBatchBytes, nil), j.options.Progress}
				for i := range next {
					places[i] <- j.guarded(partitions[i], rd)
				}
			})
		}
		for _, place := range places {
			select {
			case res := <-place:
				<-ahead
				if ctx.Err() != nil || !yield(res) {
					return
				}
			case <-ctx.Done():
				return
			}
		}
	}
}

// guarded is result, with what goes wrong in it as a problem of the partition.
func (j *Judge) guarded(p *logdir.Partition, rd *reader) (res Result) {
	err := logdir.Guard(p.Display, func() error {
		res = j.result(p, rd)
		return nil
	})
	if err != nil {
		return Result{Partition: p, Problems: []logdir.Problem{{Display: p.Display, Err: err}}}
	}
	return res
}

func (j *Judge) result(p *logdir.Partition, rd *reader) Result {
	if why := Skipped(p); why != "" {
		return Result{Partition: p, Skipped: fmt.Sprintf("%s: %s.", p.Display, why)}
	}
	report, problems := j.partition(p, rd)
	return Result{Partition: p, Report: report, Problems: problems}
}
