// Package verify reads everything in a log directory and trusts nothing: are the batches intact, do their offsets,
// epochs and sequences run on, do lookups through the indexes find what is there, do the state files agree with the
// log?
//
// A run is one pass. Workers look at runs of whole batches by themselves (checksum, records); a single goroutine takes
// the results in order and feeds the followers, which compare neighbours. What they find is folded at the end of each
// partition (fold.go), so that one fault gives one finding.
//
// A check is one value in check_<topic>.go, listed in checks.go. Severities follow one rule: damage is what is
// unreadable, wrong or keeps a broker from starting; a warning is what a broker repairs or lives with, at the price of
// data; a note is worth knowing.
package verify

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"time"

	"kseg/logdir"
	"kseg/state"
	"kseg/walk"
)

// Options say what is checked and how.
type Options struct {
	Level Level
	Jobs  int
	// MaxBatchBytes bounds what one batch may decompress to; a larger one is not read.
	MaxBatchBytes int64
	// MaxMessageBytes is the size above which a batch is reported; 0 means no limit.
	MaxMessageBytes int64
	// Interval is the index.interval.bytes that the indexes should have been written with; 0 means unknown.
	Interval int64
	Ignore   map[string]bool // codes
	// FailFast ends the run with the first finding of severity damage.
	FailFast bool
	// MaxFindings ends the run after so many findings; 0 means no limit.
	MaxFindings int
	Now         time.Time
	// Patience is the time between two looks at a partition that is being written to, longer each time; 0 for none.
	Patience time.Duration
	// Clock tells how long each place takes; nil: nobody asks.
	Clock func() time.Time

	// Emit is called with each finding, in order. An error ends the run.
	Emit func(*Finding) error
	// Progress is called with the bytes that were looked at since its last call; it may be nil.
	Progress func(bytes int64)

	run int64 // bytes of a run; tests make many runs of a small file
}

// Verdict is the short answer.
type Verdict string

// The verdicts. Incomplete outranks damaged: what could not be read may be worse than what was.
const (
	Clean      Verdict = "clean"
	Warned     Verdict = "warnings"
	Damaged    Verdict = "damaged"
	Incomplete Verdict = "incomplete"
)

// Summary counts what a run looked at and found.
type Summary struct {
	Level                                Level
	LogDirs, Partitions, Segments, Files int64
	Batches, Records, Bytes              int64
	Damage, Warnings, Notes              int64
	// NotRead are sentences about what could not be read.
	NotRead []string
	// Shard is which part of a set was read, of Shards; both are 0 if it was the whole.
	Shard, Shards int
	// Copies say of each log directory which kind of copy it is: a sentence each.
	Copies []string
	// Sampled is how many partitions were chosen by chance, of SampledOf; both are 0 if all were read.
	Sampled, SampledOf int
	// Stopped: the run ended early, by FailFast or MaxFindings.
	Stopped bool
	// Groups are the partitions and groups of checks that were run, for reports with a line for each, good or bad.
	Groups []PartitionGroups
}

// PartitionGroups are the groups of checks that were run on one partition, or on a log directory.
type PartitionGroups struct {
	Partition string // "" for a log directory
	Place     string // as the user would name it
	Groups    []string
	Took      Times // what each group took; nil if nobody asked
}

// Times are how long groups of checks took, by their names: of all processors together.
type Times map[string]time.Duration

// during runs what is looked at for a group; without a clock nobody asks how long that takes.
func (t Times) during(clock func() time.Time, group string, look func()) {
	if clock == nil {
		look()
		return
	}
	begun := clock()
	look()
	t[group] += clock().Sub(begun)
}

// Verdict is the answer: incomplete if something could not be read, or there was nothing to read, or the run ended
// before it had found damage; damaged if there is damage; warnings if there are any; else clean.
func (s *Summary) Verdict() Verdict {
	switch {
	case len(s.NotRead) > 0 || s.Segments+s.Files == 0 && s.Shards == 0 || s.Stopped && s.Damage == 0:
		return Incomplete
	case s.Damage > 0:
		return Damaged
	case s.Warnings > 0:
		return Warned
	}
	return Clean
}

// Count is how many findings of the severity or worse there are.
func (s *Summary) Count(least Severity) int64 {
	n := s.Damage
	if least <= Warning {
		n += s.Warnings
	}
	if least <= Note {
		n += s.Notes
	}
	return n
}

// driver carries what a run needs everywhere.
type driver struct {
	ctx        context.Context
	opts       *Options
	checks     []*Check
	slowWorker *worker
	summary    Summary
	emitted    int
	lapped     time.Time           // when the place before was done
	took       Times               // by what was looked at since
	severities map[string]Severity // the usual ones, by code
	set        *logdir.Set
	dirStates  map[*logdir.LogDir]*dirState
	topics     map[topicKey]*topicIDs // nil: not read yet
	cluster    *state.Cluster         // nil: not read yet
	toldUnread map[string]bool        // the sentences of summary.NotRead
	named      map[string]bool        // state files of log directories that findings about partitions are in
	starts     starts
	damaged    []string // what damage was found in, as the user would name it
	copies     map[*logdir.LogDir]*copyOf
	// The groups of the checks that are run on partitions, and on log directories.
	ofPartitions, ofDirs []string
}

// Run checks everything in the set. The error is for a run that was cut short, by the context or by Emit; what could
// not be read is in the summary.
func Run(ctx context.Context, set *logdir.Set, opts Options) (Summary, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	d := &driver{ctx: ctx, opts: &opts, checks: enabled(&opts), severities: map[string]Severity{},
		summary: Summary{Level: opts.Level},
		set:     set, dirStates: map[*logdir.LogDir]*dirState{}, toldUnread: map[string]bool{},
		named:  map[string]bool{},
		copies: map[*logdir.LogDir]*copyOf{}, took: Times{}}
	for _, code := range Codes() {
		d.severities[code.Name] = code.Severity
	}
	d.ofPartitions = groupsOf(d.checks, func(c *Check) bool {
		return c.Batch != nil || c.Follow != nil || c.Partition != nil
	})
	d.ofDirs = groupsOf(d.checks, func(c *Check) bool { return c.LogDir != nil })
	d.slowWorker = newWorker(&opts, d.checks, nil)
	for _, problem := range set.Problems {
		d.notRead(problem)
	}
	all := d.operands(set)
	d.knownCluster() // not while the workers have batches of their own
	src := d.walker(ctx, all.turns(), opts.Jobs)
	defer src.Close()
	d.lap()
	d.took = Times{}
	err := d.runAll(all, src)
	if errors.Is(err, errStop) {
		d.summary.Stopped, err = true, nil
	}
	return d.summary, err
}

// runAll goes through the operands in order.
func (d *driver) runAll(all *operands, src *walk.Walker[looked]) error {
	for _, l := range all.dirs {
		for _, t := range l.turns {
			if err := d.partition(t.begin(d), src); err != nil {
				return err
			}
			t.end()
		}
		if l.dir == nil {
			continue
		}
		d.summary.LogDirs++
		if kind := d.copyKind(l.dir); kind != "" {
			d.summary.Copies = append(d.summary.Copies, l.dir.Display+": "+kind)
		}
		for _, c := range d.checks {
			if c.LogDir != nil {
				d.timed(c.Group, func() { d.guarded(l.dir.Display, func() { c.LogDir(l) }) })
			}
		}
		d.groups("", l.dir.Display, d.ofDirs)
		if err := d.emitAll(foldRepeated(l.findings)); err != nil {
			return err
		}
	}
	for _, c := range d.checks {
		if c.Set != nil {
			d.guarded("what the directories have in common", func() { c.Set(all) })
		}
	}
	return d.emitAll(all.findings)
}

// guarded runs fn; a panic of it is something that could not be read.
func (d *driver) guarded(display string, fn func()) {
	if err := logdir.Guard(display, func() error { fn(); return nil }); err != nil {
		d.notRead(err)
	}
}

func (d *driver) partition(p *partition, src *walk.Walker[looked]) error {
	p, found, err := p.settle(src)
	if err != nil || p.gone {
		return err
	}
	if p.alone == nil {
		d.summary.Partitions++
	}
	d.summary.Files += int64(len(p.dir.Files))
	d.summary.Segments += p.counted.Segments
	d.summary.Batches += p.counted.Batches
	d.summary.Records += p.counted.Records
	d.summary.Bytes += p.counted.Bytes
	for _, err := range p.unreadOf {
		d.notRead(err)
	}
	d.guarded(p.dir.Display, func() { p.judgeByStart(found) })
	d.noteCopy(p, found)
	for _, f := range found {
		if p.dir.Parent != nil && filepath.Dir(f.File) == "." {
			d.named[f.Shown] = true
		}
	}
	d.groups(p.name, p.dir.Display, d.ofPartitions)
	return d.emitAll(found)
}

// lap is what each group took since the last lap. What was not spent on one of them is reading, which is for the
// batches.
func (d *driver) lap() Times {
	if d.opts.Clock == nil {
		return nil
	}
	now := d.opts.Clock()
	rest := now.Sub(d.lapped)
	for _, took := range d.took {
		rest -= took
	}
	d.lapped = now
	d.took["batches"] += max(0, rest)
	return d.took
}

// timed runs what is looked at for a group, and counts how long that takes.
func (d *driver) timed(group string, look func()) { d.took.during(d.opts.Clock, group, look) }

// groupsOf are the groups of those checks that are run.
func groupsOf(checks []*Check, run func(*Check) bool) (groups []string) {
	for _, c := range checks {
		if run(c) && !slices.Contains(groups, c.Group) {
			groups = append(groups, c.Group)
		}
	}
	return groups
}

// groups notes the groups of the checks that were run.
func (d *driver) groups(partition, place string, groups []string) {
	if len(groups) > 0 {
		d.summary.Groups = append(d.summary.Groups, PartitionGroups{partition, place, groups, d.lap()})
		d.took = Times{}
	}
}

// emitAll hands findings on, in order, and counts them.
func (d *driver) emitAll(findings []*Finding) error {
	for _, f := range findings {
		switch f.Severity {
		case Damage:
			d.summary.Damage++
			d.damaged = append(d.damaged, f.Shown)
		case Warning:
			d.summary.Warnings++
		default:
			d.summary.Notes++
		}
		if err := d.opts.Emit(f); err != nil {
			return err
		}
		d.emitted++
		if d.opts.FailFast && f.Severity == Damage || d.opts.MaxFindings > 0 && d.emitted >= d.opts.MaxFindings {
			return errStop
		}
	}
	return nil
}

// fill completes a finding that a check has made: its usual severity, and at least one occurrence.
func (d *driver) fill(f *Finding) {
	if f.Severity == 0 {
		f.Severity = d.severities[f.Code]
	}
	f.Count = max(f.Count, 1)
}

// count adds a segment to what the look has read.
func (p *partition) count(seg *segment) {
	p.counted.Segments++
	p.counted.Batches += seg.batches
	p.counted.Records += seg.records
	p.counted.Bytes += seg.size
}

// notRead notes what could not be read; once, though a file may be looked for in two places.
func (d *driver) notRead(err error) {
	if text := err.Error(); !d.toldUnread[text] {
		d.toldUnread[text] = true
		d.summary.NotRead = append(d.summary.NotRead, text)
	}
}
