// Package predict says what the next start of a broker would do to log directories. The model is package broker; here
// it is run over what was given, and shown.
package predict

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"kseg/broker"
	"kseg/format"
	"kseg/logdir"
	"kseg/render"
	"kseg/state"
)

// Options say what is supposed, and how.
type Options struct {
	broker.StartOptions
	Overrides []state.Override
	server    []format.Property
	// Rate is how many bytes a second a recovery thread reads, 0: unknown; Threads are those of each log directory.
	Rate    int64
	Threads int
}

// UseServer takes over a server.properties.
func (o *Options) UseServer(properties []format.Property) {
	o.Server, o.server = broker.ParseServer(properties), properties
}

// Edit is a change that is supposed.
type Edit = broker.Edit

// ParseEdit reads "rm PATH" or "truncate PATH BYTES". The error is a sentence.
func ParseEdit(text string) (Edit, error) {
	words := strings.Fields(text)
	switch {
	case len(words) == 2 && words[0] == "rm":
		return Edit{Pattern: words[1]}, nil
	case len(words) == 3 && words[0] == "truncate":
		if n, err := render.ParseSize(words[2]); err == nil {
			return Edit{Pattern: words[1], Truncate: &n}, nil
		}
	}
	return Edit{}, fmt.Errorf("%q is neither rm FILE nor truncate FILE BYTES", text)
}

// Broker is the prediction for the log directories of one broker, or for partitions that were given alone.
type Broker struct {
	*broker.Start
	Partitions []*broker.PartitionStart
	// Absent are the partitions that the metadata place here and that have no directory.
	Absent []broker.Absent
	// Space is how much room there is, by log directory, in the order of Dirs; nil where the system does not say.
	Space  []*logdir.FileSystem
	listed bool // whole log directories were given
}

// Run predicts all that was given. Problems are what could not be read; nothing is said about that. The error is one of
// use.
func Run(ctx context.Context, set *logdir.Set, o Options) ([]*Broker, []logdir.Problem, error) {
	if err := checkEdits(set, o.Edits); err != nil {
		return nil, nil, err
	}
	cluster := state.OpenCluster(set, nil)
	settings := map[*logdir.LogDir]*state.Settings{}
	o.Settings = func(dir *logdir.LogDir) *state.Settings { return settings[dir] }
	partitions, dirs := operands(set)
	for _, dir := range append(dirs, nil) {
		s := cluster.Settings(dir)
		s.Overrides = o.Overrides
		if o.Server != nil {
			if err := s.UseServerProperties(o.server); err != nil {
				return nil, nil, err
			}
		}
		settings[dir] = s
	}
	for _, op := range set.Operands {
		if e := (*logdir.ForeignError)(nil); errors.As(op.Err, &e) && e.Empty {
			o.Empty = append(o.Empty, op.Arg)
		}
	}
	r := runner{ctx: ctx, o: &o, cluster: cluster, partitions: partitions}
	var all []*Broker
	for _, of := range broker.Brokers(dirs, &cluster.Dirs, cluster, o.Server) {
		if b := r.broker(of); b != nil {
			all = append(all, b)
		}
	}
	if b := r.broker(nil); b != nil {
		all = append(all, b)
	}
	return all, r.problems, ctx.Err()
}

// operands are the partitions to predict, with that around a file, and the log directories they lie in.
func operands(set *logdir.Set) (partitions []*logdir.Partition, dirs []*logdir.LogDir) {
	seen := map[*logdir.LogDir]bool{nil: true}
	add := func(dir *logdir.LogDir) {
		if !seen[dir] {
			seen[dir] = true
			dirs = append(dirs, dir)
		}
	}
	for _, op := range set.Operands {
		switch {
		case op.LogDir != nil:
			add(op.LogDir)
			partitions = append(partitions, op.LogDir.Partitions...)
		case op.Partition != nil:
			add(op.Partition.Parent)
			partitions = append(partitions, op.Partition)
		case op.File != nil && op.Err == nil:
			if p := op.File.Around(); p != nil {
				add(p.Parent)
				partitions = append(partitions, p)
			}
		}
	}
	return partitions, dirs
}

// checkEdits refuses an edit of a file that is not there: it would predict nothing.
func checkEdits(set *logdir.Set, edits []Edit) error {
	partitions, dirs := operands(set)
	for _, e := range edits {
		found := false
		for _, p := range partitions {
			for _, f := range p.All() {
				found = found || e.Matches(f)
			}
		}
		for _, d := range dirs {
			for _, f := range d.Files {
				found = found || e.Matches(f)
			}
		}
		if !found {
			return fmt.Errorf("%w: --what-if: there is no file %s among the operands; name it as they are named",
				logdir.ErrUsage, e.Pattern)
		}
	}
	return nil
}

type runner struct {
	ctx        context.Context
	o          *Options
	cluster    *state.Cluster
	partitions []*logdir.Partition
	problems   []logdir.Problem
}

// broker predicts the partitions in the log directories of one broker; without any those that lie in none.
func (r *runner) broker(dirs []*logdir.LogDir) *Broker {
	start, err := broker.NewStart(dirs, &r.cluster.Dirs, &r.o.StartOptions)
	if err != nil {
		r.problems = append(r.problems, logdir.Problem{Err: err})
	}
	r.problems = append(r.problems, start.Unread...)
	b := &Broker{Start: start}
	byDir := map[*logdir.LogDir]*broker.DirStart{}
	for _, d := range start.Dirs {
		byDir[d.Dir] = d
		b.listed = b.listed || d.Dir.Listed
		var space *logdir.FileSystem
		if s, err := logdir.FileSystemOf(d.Dir.Path); err == nil {
			space = &s
		}
		b.Space = append(b.Space, space)
		r.problems = append(r.problems, d.State.Unread...)
	}
	var mine []*logdir.Partition
	for _, p := range r.partitions {
		d := byDir[p.Parent]
		if p.Parent == nil && len(dirs) == 0 || d != nil && d.LooksAt(p) {
			mine = append(mine, p)
		}
	}
	if len(mine) == 0 && len(dirs) == 0 {
		return nil
	}
	for p := range start.Partitions(r.ctx, mine, byDir) {
		if p.Err != nil && p.Partition.ListErr == nil && !errors.Is(p.Err, broker.ErrStopped) {
			r.problems = append(r.problems, logdir.Problem{Display: p.Partition.Display, Err: p.Err})
		}
		if !errors.Is(p.Err, logdir.ErrGone) {
			b.Partitions = append(b.Partitions, p)
		}
	}
	start.Finish(b.Partitions)
	b.Absent = start.Absent()
	return b
}

// Bad reports whether something would be lost, or not be loaded.
func (b *Broker) Bad() bool {
	if len(b.Stops)+len(b.Offline) > 0 || slices.ContainsFunc(b.Absent,
		func(a broker.Absent) bool { return a.Fate <= broker.Elsewhere }) {
		return true
	}
	for _, d := range b.Dirs {
		if len(d.Offline)+len(d.Refused) > 0 {
			return true
		}
	}
	for _, p := range b.Partitions {
		if p.Err == nil && !p.Harmless() {
			return true
		}
	}
	return false
}

// BytesRead is what the start reads.
func (b *Broker) BytesRead() int64 {
	n := int64(0)
	for _, p := range b.Partitions {
		if p.Loaded != nil {
			n += p.BytesRead
		}
	}
	return n
}

// Seconds is how long reading takes: the threads of a log directory read different partitions at the same time, the
// directories beside each other.
func (b *Broker) Seconds(o *Options) float64 {
	total, most := map[*logdir.LogDir]int64{}, map[*logdir.LogDir]int64{}
	for _, p := range b.Partitions {
		if p.Loaded != nil {
			dir := p.Partition.Parent
			total[dir] += p.BytesRead
			most[dir] = max(most[dir], p.BytesRead)
		}
	}
	longest := int64(0)
	for dir, n := range total {
		longest = max(longest, n/int64(o.Threads), most[dir])
	}
	return float64(longest) / float64(o.Rate)
}
