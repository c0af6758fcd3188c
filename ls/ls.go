// Package ls says what lies in log directories: topics, partitions and segments, how many bytes and records they have,
// what is left over, and how much room there is.
//
// It is made for a broker with tens of thousands of partitions: names and sizes come from listing each directory once,
// offsets and times from the first and the last header of a log, or from all headers where a log is small (read.go).
// Only --stats reads all headers of all logs (stats.go). Partitions are read by several workers, come out in order, and
// are forgotten when their line is printed.
//
// Bytes are what du counts: those of a directory include its own, a link has its own and not those of what it leads to,
// and a file with several names counts once.
package ls

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"slices"
	"strings"

	"kseg/format"
	"kseg/logdir"
	"kseg/state"
	"kseg/walk"
)

// Maybe is a number that may be absent.
type Maybe struct {
	N  int64
	OK bool
}

// Some is a number that is there.
func Some(n int64) Maybe { return Maybe{n, true} }

// least and most combine two numbers of which either may be absent.
func (m Maybe) least(o Maybe) Maybe {
	if !m.OK || o.OK && o.N < m.N {
		return o
	}
	return m
}

func (m Maybe) most(o Maybe) Maybe {
	if !m.OK || o.OK && o.N > m.N {
		return o
	}
	return m
}

// Options say what to find out.
type Options struct {
	Segments      bool // the segments of each partition, one by one
	Stats         bool // read all headers
	Records       bool // and all compressed records
	Group         Group
	WhatIf        *WhatIf // nil: no
	Jobs          int
	MaxBatchBytes int64
	Settings      func(dir *logdir.LogDir) *state.Settings
	Progress      func(partitions int64) // may be nil
}

// Lister lists the partitions of a set.
type Lister struct {
	Options
	set  *logdir.Set
	seen logdir.Seen
}

// New is a Lister of the partitions in set, which may be unlisted.
func New(set *logdir.Set, options Options) *Lister { return &Lister{Options: options, set: set} }

// Partitions are all partitions of the set by topic, number and name, whichever log directory they lie in.
func Partitions(set *logdir.Set) []*logdir.Partition {
	all := set.Partitions()
	slices.SortStableFunc(all, func(a, b *logdir.Partition) int {
		return cmp.Or(strings.Compare(a.Topic, b.Topic), cmp.Compare(a.Partition, b.Partition), strings.Compare(a.Suffix,
			b.Suffix))
	})
	return all
}

// Run lists the partitions and yields them in their order. It stops early if ctx ends.
func (l *Lister) Run(ctx context.Context, partitions []*logdir.Partition) iter.Seq[*Partition] {
	return walk.Ordered(ctx, partitions, l.Jobs, func(gate format.Gate) func(*logdir.Partition) *Partition {
		r := &reader{ctx: ctx, records: format.NewRecordReader(l.MaxBatchBytes, gate)}
		return func(p *logdir.Partition) *Partition {
			defer r.records.Release()
			out := l.guarded(p, r)
			if l.Progress != nil {
				l.Progress(1)
			}
			return out
		}
	})
}

// guarded is partition, with what goes wrong in it as a problem of the partition. It lets go of the files.
func (l *Lister) guarded(dir *logdir.Partition, r *reader) *Partition {
	defer dir.Forget()
	out := &Partition{}
	err := logdir.Guard(dir.Display, func() error {
		return dir.Steady(func() error {
			*out = Partition{PartitionDir: dir.PartitionDir, Name: dir.Name, Display: dir.Display}
			l.partition(out, dir, r)
			return logdir.Joined(out.Problems)
		})
	})
	if errors.Is(err, logdir.ErrGone) {
		return &Partition{PartitionDir: dir.PartitionDir, Name: dir.Name, Display: dir.Display, Gone: true}
	}
	if err != nil && len(out.Problems) == 0 {
		out.problem(dir.Display, err)
	}
	return out
}

// Sums are what a topic, a partition or a log directory amounts to.
type Sums struct {
	Partitions, Segments int64
	Usage                logdir.Usage
	Linked               logdir.Usage // what links lead to, which du does not count
	LogBytes             int64        // of the logs alone
	ClosedBytes          int64        // of the logs that are not active, where the topic's policy may delete
	Records              int64
	Estimated            bool // Records counts offsets where not all headers were read: it is at least as large
	FirstMs, LastMs      Maybe
	Slack                int64  // bytes of indexes that hold no entries
	Maps                 int64  // mappings of a broker that has all segments open
	Stats                *Stats // nil if it was not asked for
	Repacked             *Repacked
	Unread               int64 // directories and logs that could not be read
}

// Add adds the parts of a whole.
func (s *Sums) Add(o *Sums) {
	s.Partitions += o.Partitions
	s.Segments += o.Segments
	s.Usage.Add(o.Usage)
	s.Linked.Add(o.Linked)
	s.LogBytes += o.LogBytes
	s.ClosedBytes += o.ClosedBytes
	s.Records += o.Records
	s.Estimated = s.Estimated || o.Estimated
	s.FirstMs, s.LastMs = s.FirstMs.least(o.FirstMs), s.LastMs.most(o.LastMs)
	s.Slack += o.Slack
	s.Maps += o.Maps
	s.Unread += o.Unread
	if o.Repacked != nil {
		if s.Repacked == nil {
			s.Repacked = &Repacked{}
		}
		s.Repacked.add(o.Repacked)
	}
	if o.Stats != nil {
		if s.Stats == nil {
			s.Stats = &Stats{}
		}
		s.Stats.Add(o.Stats)
	}
}

// Topic is a topic: the sums of its partitions.
type Topic struct {
	Name   string
	ID     string // "" if no partition has one
	IDs    int    // how many different ids its partitions have
	Policy string
	Dirs   []string // the log directories that it lies in
	Sums
}

// Add adds a partition of the topic.
func (t *Topic) Add(p *Partition) {
	t.Name, t.Policy = p.Topic, p.Policy
	if p.TopicID != "" && p.TopicID != t.ID {
		t.IDs++
		t.ID = cmp.Or(t.ID, p.TopicID)
	}
	if !slices.Contains(t.Dirs, p.Dir) {
		t.Dirs = append(t.Dirs, p.Dir)
	}
	t.Sums.Add(&p.Sums)
}
