// Package retention says which segments a broker would delete, by which rule, when, and what keeps the others.
//
// The rules are UnifiedLog.deleteOldSegments of Kafka 4.4 (rules.go). What they look at is read as a broker would load
// it: the last entry of each time index rather than the log (segment.go), three offsets from checkpoints and the end of
// the log (partition.go), and the settings of the topic from wherever they come (package state). Beside each stands
// what the log itself says.
package retention

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"kseg/format"
	"kseg/logdir"
	"kseg/walk"
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
	return walk.Ordered(ctx, partitions, jobs, func(gate format.Gate) func(*logdir.Partition) Result {
		rd := &reader{ctx, format.NewRecordReader(j.options.MaxBatchBytes, gate), j.options.Progress}
		return func(p *logdir.Partition) Result {
			defer rd.records.Release()
			return j.guarded(p, rd)
		}
	})
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
	res := Result{Partition: p}
	if err := p.Steady(func() error {
		res.Report, res.Problems = j.partition(p, rd)
		return logdir.Joined(res.Problems)
	}); errors.Is(err, logdir.ErrGone) {
		return Result{Partition: p, Problems: []logdir.Problem{{Display: p.Display, Err: err}}}
	}
	return res
}
