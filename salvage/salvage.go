// Package salvage writes what is intact in damaged copies of a partition into a directory that a broker loads.
//
// Each source, a segment or a leftover of one, is scanned for stretches of intact batches (scan.go). These are put in
// the order of their offsets, each offset from the first copy in which it is intact (plan.go), and copied byte for
// byte; indexes and snapshots are made as a broker's recovery makes them (write.go). What was written is read again
// before it gets its final name.
package salvage

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"time"

	"kseg/format"
	"kseg/logdir"
	"kseg/rebuild"
	"kseg/render"
	"kseg/state"
	"kseg/walk"
)

// Options say what is written, and where.
type Options struct {
	Dir string // new or empty; in a dry run it may be ""
	// DryRun: nothing is written.
	DryRun bool
	// FixBits: a batch of which the checksum proves which bit, magic byte or length is wrong is put right.
	FixBits bool
	// Records: the records that can be read of a batch that is not intact are written into a batch of their own.
	Records bool
	// Prefer is the operand whose history counts where two copies hold different records; "" refuses such partitions.
	Prefer string
	// Deleted: also what a broker cut off at the end of the log, where nothing says that it was committed.
	Deleted       bool
	Interval      *int64 // index.interval.bytes; nil means each topic's own
	Jobs          int
	MaxBatchBytes int64
	Now           time.Time
	Progress      func(bytes int64) // may be nil
}

// Copy is what one of the copies has given.
type Copy struct {
	Path             string
	Batches, Records int64
}

// Salvaged is what became of one partition.
type Salvaged struct {
	Partition string
	Copies    []Copy
	// Diverged: the copies hold different records from DivergedAt on. Without Prefer nothing is written.
	Diverged   bool
	DivergedAt int64
	Lost       []Lost
	Doubles    int64    // batches that are there twice
	Changed    []string // what was put right or made of damaged batches, as sentences
	Remade     int64    // batches that were made of the readable records of damaged ones

	Segments, Batches, Records, Bytes int64
	LogStart, LogEnd                  int64
	Path                              string // what was written; "" if nothing was
	Predicted                         bool   // a broker loads what was written, and keeps all of it
	Notes                             []string
	NotRead                           []error
	// Err: the partition was not written.
	Err error

	lastBase int64 // of the last segment
}

// Problems are the problems of the operands that matter here: a carved file may have any name.
func Problems(set *logdir.Set) []logdir.Problem {
	carved := map[string]bool{}
	for _, o := range set.Operands {
		carved[o.Arg] = o.Err != nil && o.File != nil && o.File.Name.HasBase
	}
	return slices.DeleteFunc(slices.Clone(set.Problems), func(p logdir.Problem) bool { return carved[p.Display] })
}

// Whole reports whether all is there, and the checksums vouch for it.
func (s *Salvaged) Whole() bool { return s.Err == nil && len(s.Lost) == 0 && s.Remade == 0 }

// group is a partition with all its copies.
type group struct {
	name   string
	copies []*copyOf
}

// copyOf is one copy of a partition.
type copyOf struct {
	operand string
	dir     *logdir.Partition
	files   []*logdir.File // carved ones, given themselves
}

// run is what a salvage needs everywhere.
type run struct {
	ctx     context.Context
	opts    *Options
	set     *logdir.Set
	cluster *state.Cluster
	dirs    *state.Dirs
	inputs  rebuild.Inputs
	groups  []*group
	done    []*Salvaged
}

// Run salvages all partitions of the operands and calls emit with each, in order. The error ends the run: that of the
// context, of emit, of a folder that can't be written to or, wrapping logdir.ErrUsage, of one that must not be.
func Run(ctx context.Context, set *logdir.Set, opts Options, emit func(*Salvaged) error) error {
	r := &run{ctx: ctx, opts: &opts, set: set, dirs: &state.Dirs{}}
	var err error
	if r.inputs, err = rebuild.InputsOf(set); err != nil {
		return err
	}
	if err := r.findGroups(); err != nil {
		return err
	}
	if err := r.prepare(); err != nil {
		return err
	}
	if opts.Interval == nil {
		r.cluster = state.OpenCluster(set, nil)
	}
	for _, g := range r.groups {
		s := r.partition(g)
		if err := ctx.Err(); err != nil {
			return err
		}
		r.done = append(r.done, s)
		if err := emit(s); err != nil {
			return err
		}
	}
	if opts.DryRun {
		return nil
	}
	return r.stateFiles()
}

// prepare checks the folder and makes it.
func (r *run) prepare() error {
	dir := r.opts.Dir
	if dir == "" && r.opts.DryRun {
		return nil
	}
	if err := r.inputs.Refuse("-o", dir); err != nil {
		return err
	}
	entries, err := os.ReadDir(dir)
	switch {
	case err == nil && len(entries) > 0:
		return fmt.Errorf("%w: %s is not empty; nothing is ever written over, so name a new folder", logdir.ErrUsage, dir)
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%s: %w", dir, bare(err))
	case r.opts.DryRun:
		return nil
	}
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return fmt.Errorf("%s: cannot be made: %w", dir, bare(err))
	}
	return nil
}

// findGroups puts the copies of each partition together. The error wraps logdir.ErrUsage or logdir.ErrNothing.
func (r *run) findGroups() error {
	byName := map[string]*group{}
	add := func(name string, c *copyOf) {
		g := byName[name]
		if g == nil {
			g = &group{name: name}
			byName[name] = g
			r.groups = append(r.groups, g)
		}
		g.copies = append(g.copies, c)
	}
	var loose []logdir.Operand
	for _, o := range r.set.Operands {
		switch {
		case o.Err != nil && (o.File == nil || !o.File.Name.HasBase):
		case o.LogDir != nil:
			for _, p := range o.LogDir.Partitions {
				if p.Suffix == "" {
					add(p.PartitionDir.String(), &copyOf{operand: o.Arg, dir: p})
				}
			}
		case o.Partition != nil && o.Partition.Named:
			add(o.Partition.PartitionDir.String(), &copyOf{operand: o.Arg, dir: o.Partition})
		default:
			loose = append(loose, o)
		}
	}
	for _, o := range loose {
		name, ok := "", len(r.groups) == 1
		if ok {
			name = r.groups[0].name
		} else if o.File != nil {
			if dir, named := o.File.Dir(); named {
				name, ok = dir.String(), true
			}
		}
		if !ok {
			return fmt.Errorf("%w: it is not known which partition %s belongs to; put it into a folder with the partition's "+
				"name, like orders-0, or name one partition beside it", logdir.ErrUsage, o.Arg)
		}
		c := &copyOf{operand: o.Arg, dir: o.Partition}
		if o.File != nil {
			if _, err := o.File.RequireBase(); err != nil {
				return fmt.Errorf("%w: %w", logdir.ErrUsage, err)
			}
			c.files = append(c.files, o.File)
		}
		add(name, c)
	}
	if len(r.groups) == 0 {
		return fmt.Errorf("%w: there is no partition", logdir.ErrNothing)
	}
	return r.checkPrefer()
}

// checkPrefer holds --prefer against the operands.
func (r *run) checkPrefer() error {
	if r.opts.Prefer == "" {
		return nil
	}
	for _, o := range r.set.Operands {
		if filepath.Clean(o.Arg) == filepath.Clean(r.opts.Prefer) {
			return nil
		}
	}
	return fmt.Errorf("%w: --prefer %s is none of the paths", logdir.ErrUsage, r.opts.Prefer)
}

// sources are the files of a partition that may hold batches, the better first.
func (r *run) sources(g *group) (all []*source) {
	for i, c := range g.copies {
		rank := i
		if r.opts.Prefer != "" && filepath.Clean(c.operand) == filepath.Clean(r.opts.Prefer) {
			rank = -1
		}
		compacted := c.dir != nil && r.cleaned(c.dir)
		for _, f := range c.files {
			all = append(all, &source{log: f, base: f.Name.Base, copy: i, rank: rank, limit: math.MaxInt64, last: true})
		}
		if c.dir == nil {
			continue
		}
		for _, seg := range c.dir.Segments {
			s := &source{log: seg.Log, base: seg.Base, copy: i, rank: rank, limit: math.MaxInt64, last: seg.Next == nil,
				compacted: compacted}
			if seg.Next != nil {
				s.limit = seg.Next.Base
			}
			all = append(all, s)
		}
		for _, f := range c.dir.Files {
			if f.Kind() == format.KindLog && (f.Name.Leftover() || !f.Name.HasBase) {
				all = append(all, &source{log: f, base: f.Name.Base, copy: i, rank: rankLeftover + i, limit: math.MaxInt64,
					last: true, unnamed: !f.Name.HasBase})
			}
		}
	}
	return all
}

// cleaned reports whether the log cleaner works on a partition, whatever its batches show.
func (r *run) cleaned(p *logdir.Partition) bool { return r.dirs.Of(p.Parent).Cleans(p) }

// partition salvages one partition.
func (r *run) partition(g *group) *Salvaged {
	var res *Salvaged
	work := func() error {
		res = &Salvaged{Partition: g.name}
		for _, c := range g.copies {
			res.Copies = append(res.Copies, Copy{Path: c.operand})
		}
		return r.work(g, res)
	}
	err := logdir.Guard(g.name, func() error { return g.steady(work) })
	if res == nil {
		res = &Salvaged{Partition: g.name}
	}
	if err != nil {
		res.Err = err
	}
	return res
}

// steady is logdir.Partition.Steady of all copies.
func (g *group) steady(do func() error) error {
	for _, c := range g.copies {
		if dir, inner := c.dir, do; dir != nil {
			do = func() error { return dir.Steady(inner) }
		}
	}
	return do()
}

// scan looks at the sources. The workers share the files, or one file where there is no other.
func (r *run) scan(sources []*source) (scans []*scan, notRead []error) {
	jobs, each := r.opts.Jobs, 1
	if len(sources) == 1 {
		jobs, each = 1, r.opts.Jobs
	}
	for s := range walk.Ordered(r.ctx, sources, jobs, func(format.Gate) func(*source) *scan {
		return func(s *source) *scan { return scanSource(r.ctx, s, each, r.opts) }
	}) {
		scans = append(scans, s)
		if s.err != nil && !(s.src.rank >= rankLeftover && errors.Is(s.err, logdir.ErrVanished)) {
			notRead = append(notRead, s.err) // what was to be deleted may be
		}
	}
	return scans, notRead
}

// noSegment is the error of a partition of which no copy has a segment: an ErrGone if all of them were found.
func (g *group) noSegment() (err error) {
	for _, c := range g.copies {
		if c.dir == nil {
			return fmt.Errorf("%s: there is no segment", g.name)
		}
		if err = c.dir.NoSegment(); !errors.Is(err, logdir.ErrGone) {
			return err
		}
	}
	return err
}

func (r *run) work(g *group, res *Salvaged) error {
	var sources []*source
	var scans []*scan
	err := g.steady(func() error {
		sources = r.sources(g)
		scans, res.NotRead = r.scan(sources)
		return errors.Join(res.NotRead...)
	})
	switch {
	case r.ctx.Err() != nil:
		return r.ctx.Err()
	case err != nil && (len(scans) == 0 || len(g.copies) == 1 && errors.Is(err, logdir.ErrGone)):
		return err
	case len(sources) == 0:
		return g.noSegment()
	}
	k := r.known(g, scans)
	if k.compacted {
		scans = withoutReplaced(scans)
	}
	notes, misplaced, err := withoutMisplaced(scans)
	if err != nil {
		return err
	}
	p, err := makePlan(scans, k, r.opts)
	if err != nil {
		return err
	}
	if p.diverged {
		res.Diverged, res.DivergedAt = true, p.divergedAt
		if r.opts.Prefer == "" {
			return fmt.Errorf("%s: the copies hold different records from offset %d on, and no history is made of two; "+
				"--prefer PATH says which counts (kseg compare shows them)", g.name, p.divergedAt)
		}
		if scans, err = below(scans, p.divergedAt); err != nil {
			return err
		}
		if p, err = makePlan(scans, k, r.opts); err != nil {
			return err
		}
	}
	res.Lost, res.Doubles, res.Notes = p.lost, p.doubles+misplaced, append(res.Notes, notes...)
	for _, s := range scans {
		if s.src.unnamed && len(s.pieces) > 0 {
			res.Notes = append(res.Notes, s.src.log.Display+" was looked at, too, though its name is none of a segment")
		}
		for _, d := range s.damages {
			if d.zeros && d.tail {
				res.Notes = append(res.Notes, fmt.Sprintf("%s ends in %s of zeros: room made beforehand, or what a crash left",
					d.src.log.Display, render.Bytes(d.length)))
			}
		}
	}
	for _, e := range p.extents {
		c := &res.Copies[e.src.copy]
		c.Batches, c.Records = c.Batches+e.batches, c.Records+e.records
		if e.way == byRecord {
			res.Remade++
		}
		if e.way != asIs {
			res.Changed = append(res.Changed, fmt.Sprintf("offsets %d–%d, %s @%d: %s", e.first, e.last, e.src.log.Display,
				e.from, e.how))
		}
	}
	return r.write(g, scans, p, res)
}

// withoutReplaced leaves out what a broker would delete after compaction of the segments that there are: it holds what
// the cleaner took. The cleaner never comes to the last segment, so that what begins after its end is something else.
func withoutReplaced(scans []*scan) []*scan {
	first, last := int64(math.MaxInt64), int64(-1)
	for _, s := range scans {
		if s.src.rank >= rankLeftover {
			continue
		}
		first, last = min(first, s.src.base), max(last, s.src.base)
		for _, q := range s.pieces {
			last = max(last, q.last)
		}
	}
	return slices.DeleteFunc(scans, func(s *scan) bool {
		return s.src.rank >= rankLeftover && s.src.base >= first && s.src.base <= last
	})
}

// below leaves of all copies but the preferred one only what lies below an offset.
func below(scans []*scan, offset int64) ([]*scan, error) {
	for _, s := range scans {
		if s.src.rank < 0 {
			continue
		}
		var kept []piece
		for _, p := range s.pieces {
			head, _, err := p.cut(offset)
			if err != nil {
				return nil, err
			}
			switch {
			case p.last < offset:
				kept = append(kept, p)
			case p.way == asIs && head.batches > 0 && head.last < offset:
				kept = append(kept, head)
			}
		}
		s.pieces, s.damages = kept, slices.DeleteFunc(s.damages, func(d damage) bool { return d.open || d.last >= offset })
	}
	return scans, nil
}

// bare is an error without the path, which the sentence around it names.
func bare(err error) error {
	var path *fs.PathError
	if errors.As(err, &path) {
		return path.Err
	}
	return err
}
