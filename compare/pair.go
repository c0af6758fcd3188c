package compare

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"

	"kseg/format"
	"kseg/logdir"
	"kseg/state"
	"kseg/walk"
)

// Pair is one partition on both sides; a side that does not have it is nil.
type Pair struct {
	Name string
	A, B *logdir.Partition
}

// Pairs puts the partitions of two operands together, by topic and number; two single partitions whatever their names
// are. Those that are being deleted, moved or are astray count only if they are given themselves. The error wraps
// logdir.ErrUsage or logdir.ErrNothing.
func Pairs(a, b logdir.Operand) ([]Pair, error) {
	pa, pb := partitionsOf(a), partitionsOf(b)
	if len(pa)+len(pb) == 0 {
		return nil, fmt.Errorf("%w: there is no partition in %s or %s", logdir.ErrNothing, a.Arg, b.Arg)
	}
	if a.LogDir == nil && b.LogDir == nil && len(pa) == 1 && len(pb) == 1 {
		return []Pair{{nameOf(pa[0]), pa[0], pb[0]}}, nil
	}
	byName := map[string]*Pair{}
	var pairs []*Pair
	add := func(p *logdir.Partition) *Pair {
		name := nameOf(p)
		if byName[name] == nil {
			byName[name] = &Pair{Name: name}
			pairs = append(pairs, byName[name])
		}
		return byName[name]
	}
	for _, p := range pa {
		add(p).A = p
	}
	for _, p := range pb {
		add(p).B = p
	}
	// One partition given beside a log directory is all that is asked about.
	all := make([]Pair, 0, len(pairs))
	for _, p := range pairs {
		if (p.A != nil || a.LogDir != nil) && (p.B != nil || b.LogDir != nil) {
			all = append(all, *p)
		}
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("%w: %s and %s have no partition in common", logdir.ErrNothing, a.Arg, b.Arg)
	}
	slices.SortStableFunc(all, func(x, y Pair) int { return logdir.ComparePartitions(x.any(), y.any()) })
	return all, nil
}

func (p Pair) any() *logdir.Partition {
	if p.A != nil {
		return p.A
	}
	return p.B
}

func nameOf(p *logdir.Partition) string {
	if p.Named {
		return p.PartitionDir.String()
	}
	return p.Name
}

func partitionsOf(o logdir.Operand) []*logdir.Partition {
	switch {
	case o.Err != nil:
		return nil
	case o.Partition != nil:
		return []*logdir.Partition{o.Partition}
	case o.LogDir != nil:
		return slices.DeleteFunc(slices.Clone(o.LogDir.Partitions), func(p *logdir.Partition) bool { return p.Suffix != "" })
	case o.File != nil && o.File.Kind().IsSegmentFile():
		p := logdir.PartitionOf(o.File)
		if p.Name == "" {
			p.Name = strings.TrimSuffix(o.File.Name.Raw, ".log")
		}
		return []*logdir.Partition{p}
	}
	return nil
}

// Run compares the pairs with several workers and yields each, in order. It stops early if ctx ends.
func Run(ctx context.Context, pairs []Pair, opts Options) iter.Seq[*Comparison] {
	dirs := &state.Dirs{}
	return walk.Ordered(ctx, pairs, opts.Jobs, func(format.Gate) func(Pair) *Comparison {
		return func(p Pair) *Comparison { return compareOne(ctx, p, dirs, &opts) }
	})
}

// compareOne compares one pair; a mistake of this program spoils its answer only.
func compareOne(ctx context.Context, p Pair, dirs *state.Dirs, opts *Options) *Comparison {
	c := &Comparison{Name: p.Name, Nothing: true}
	err := logdir.Guard(p.any().Display, func() error {
		switch {
		case p.B == nil:
			return p.A.Steady(func() error {
				c.Result, c.A = OnlyA, newLog(p.A, dirs)
				c.NotRead = c.A.unread
				return errors.Join(c.NotRead...)
			})
		case p.A == nil:
			return p.B.Steady(func() error {
				c.Result, c.B = OnlyB, newLog(p.B, dirs)
				c.NotRead = c.B.unread
				return errors.Join(c.NotRead...)
			})
		default:
			return p.steady(func() error {
				c = partitions(ctx, p, dirs, opts)
				return errors.Join(c.NotRead...)
			})
		}
	})
	if errors.Is(err, logdir.ErrGone) {
		return &Comparison{Name: p.Name, Nothing: true, NotRead: []error{err}}
	}
	if err != nil && len(c.NotRead) == 0 {
		c.NotRead = append(c.NotRead, err)
	}
	return c
}

// steady is logdir.Partition.Steady of both sides.
func (p Pair) steady(do func() error) error {
	if p.A == p.B {
		return p.A.Steady(do)
	}
	return p.A.Steady(func() error { return p.B.Steady(do) })
}
