package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"syscall"
	"time"
)

const (
	longest = 2 * time.Minute // of a run
	enough  = time.Second     // of the processor's time: what takes longer is not run again
)

// cost is what a run took.
type cost struct {
	wall, cpu time.Duration
	mib       int64
}

// cheapest runs kseg several times; the best counts. The folder out is removed before each, for those that write.
func (b *bench) cheapest(args []string, out string) (least cost, err error) {
	for i := range b.runs {
		if err := os.RemoveAll(out); err != nil {
			return least, err
		}
		c, err := b.cost(args)
		if err != nil {
			return least, err
		}
		if i > 0 {
			c = cost{min(c.wall, least.wall), min(c.cpu, least.cpu), min(c.mib, least.mib)}
		}
		if least = c; c.cpu > enough {
			break
		}
	}
	return least, nil
}

// cost runs kseg once. Findings, and damage that is in the way, are answers.
func (b *bench) cost(args []string) (cost, error) {
	ctx, cancel := context.WithTimeout(context.Background(), longest)
	defer cancel()
	var stderr bytes.Buffer
	c := exec.CommandContext(ctx, b.kseg, args...)
	c.Stderr = &stderr
	start := time.Now()
	if err := c.Run(); err != nil && !slices.Contains([]int{1, 3}, c.ProcessState.ExitCode()) {
		return cost{}, fmt.Errorf("%q: %w\n%s", args, err, stderr.Bytes()[:min(2000, stderr.Len())])
	}
	return cost{time.Since(start), c.ProcessState.UserTime() + c.ProcessState.SystemTime(),
		peak(c.ProcessState.SysUsage())}, nil
}

// peak is the most memory that a process had, in MiB, mapped files included.
func peak(usage any) int64 {
	if u, ok := usage.(*syscall.Rusage); ok {
		return u.Maxrss >> 10
	}
	return 0
}
