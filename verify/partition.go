package verify

import (
	"math"
	"path/filepath"
	"slices"
	"strconv"

	"kseg/format"
	"kseg/logdir"
	"kseg/render"
	"kseg/state"
	"kseg/walk"
)

// partition is the pass over one partition.
type partition struct {
	driver   *driver
	dir      *logdir.Partition
	name     string
	segments []*segment
	display  string    // of the directory, as a user would name it; dir belongs to the walk until that has listed it
	opens    *walk.Log // the moment before its segments, when it is listed
	worker   *worker   // for the stretches that are gone through slowly
	reader   *format.RecordReader

	followers []follower
	findings  []*Finding
	counts    map[fileCode]int // how many findings there were

	// producers is the state of the producers after the last batch; event and eventErr are what that batch did to it.
	producers *format.ProducerState
	event     format.ProducerEvent
	eventErr  error
	// snapshots is the check of the producers' snapshots, nil if it is not asked for.
	snapshots *snapshotFollower
	// lastBatch is the last one that can be trusted, without its bytes; hasLast is false as long as there is none.
	lastBatch format.Batch
	hasLast   bool

	// startUnknown: what the producers did before the first segment is not known.
	startUnknown bool

	// compacted: there is evidence that the log cleaner was here, so that gaps are no loss. Two internal topics are always
	// compacted, even where a cleaner took whole batches of one record and left no other trace.
	compacted bool
	shutdown  shutdown
	repeat    *repeat        // nil: not looked for yet
	ranks     map[string]int // nil: not asked for yet
	root      string         // the operand that the files are relative to, as the user would name it
	alone     *logdir.File   // the file, if only that was given

	// What this look at the partition has read, for the summary.
	counted  Summary
	unreadOf []error
	quiet    bool // the bytes were told to the progress bar by an earlier look
	gone     bool // there is no such directory any more
}

// shutdown is how the broker that wrote a log directory stopped.
type shutdown int8

const (
	unknownShutdown shutdown = iota // nothing but the partition was given: counts as unclean
	uncleanShutdown
	cleanShutdown
)

func newPartition(d *driver, dir *logdir.Partition) *partition {
	p := &partition{driver: d, dir: dir, name: dir.Name, display: dir.Display,
		worker: d.slowWorker, reader: d.slowWorker.reader, counts: map[fileCode]int{}}
	p.root = dir.Display
	if dir.Parent != nil && dir.Parent.Listed {
		p.root = dir.Parent.Display
	}
	p.take(dir)
	p.opens = &walk.Log{Open: p.list}
	return p
}

// take begins a look at the partition as it was listed.
func (p *partition) take(dir *logdir.Partition) {
	p.dir, p.segments = dir, nil
	p.ranks = nil
	p.shutdown = howStopped(dir)
	for _, s := range dir.Segments {
		p.segments = append(p.segments, &segment{part: p, dir: s, log: s.Log, base: s.Base, last: s.Next == nil,
			walk: &walk.Log{File: s.Log, Base: s.Base}, firstOffset: -1, nextOffset: s.Base, maxTimestamp: -1, legacyOnly: true})
	}
}

// rank is a file's place in the order of reports: those of the log directory come last.
func (p *partition) rank(file string) int {
	if p.ranks == nil {
		p.ranks = map[string]int{}
		for i, f := range p.dir.Files {
			p.ranks[f.Rel] = i + 1
		}
	}
	if rank, ok := p.ranks[file]; ok || p.dir.Parent == nil {
		return rank
	}
	parent := p.driver.dirState(p.dir.Parent)
	if parent.ranks == nil {
		parent.ranks = map[string]int{}
		for i, f := range p.dir.Parent.Files {
			parent.ranks[p.parentFile(f)] = i + 1
		}
	}
	if rank, ok := parent.ranks[file]; ok {
		return len(p.dir.Files) + rank
	}
	return 0
}

// howStopped reads the clean-shutdown marker, which says nothing about the metadata log.
func howStopped(dir *logdir.Partition) shutdown {
	switch parent := dir.Parent; {
	case parent == nil:
		return unknownShutdown
	case dir.IsClusterMetadata():
		return uncleanShutdown
	case parent.File(format.KindCleanShutdown) != nil:
		return cleanShutdown
	case parent.Listed, parent.File(format.KindMetaProperties) != nil:
		return uncleanShutdown
	}
	return unknownShutdown
}

// coordinator reports whether the partition is of an internal topic that a coordinator writes to, whose appends repeat
// sequence 0.
func (p *partition) coordinator() bool {
	switch p.dir.Topic {
	case format.OffsetsTopic, format.TransactionsTopic, format.ShareStateTopic:
		return true
	}
	return false
}

// inUse reports whether the directory is a partition in use: not one that is being deleted, moved or was found astray.
func (p *partition) inUse() bool { return p.dir.Suffix == "" }

// run walks all segments, then runs the checks that look at the whole.
func (p *partition) run(src *walk.Walker[looked]) error {
	if err := src.Log(p.opens, nil); err != nil {
		return err
	}
	if p.gone || p.dir.ListErr != nil && len(p.dir.All()) == 0 {
		return p.driver.ctx.Err() // that a directory cannot be listed does not make it empty
	}
	compact, _ := p.policy()
	var dir *state.Dir
	if p.dir.Parent != nil {
		dir = p.driver.dirState(p.dir.Parent).Dir
	}
	p.compacted = compact || dir.Cleans(p.dir)
	p.producers = p.startState()
	for _, c := range p.driver.checks {
		if c.Follow != nil {
			p.followers = append(p.followers, p.driver.follow(c, p))
		}
	}
	for _, seg := range p.segments {
		if err := p.read(seg, src); err != nil {
			if p.driver.ctx.Err() != nil {
				return err
			}
			p.unread(err)
			p.skip(seg, 0, seg.log.Size, nil, -1)
			seg.unread = true
		}
		p.count(seg)
		if p.driver.opts.FailFast && p.damaged() {
			return nil // what follows from the rest is not asked for
		}
	}
	for _, f := range p.followers {
		f.finish()
	}
	p.lostEnds()
	for _, c := range p.driver.checks {
		if c.Partition != nil {
			p.driver.timed(c.Group, func() { c.Partition(p) })
		}
	}
	return nil
}

// damaged reports whether there is damage so far.
func (p *partition) damaged() bool {
	return slices.ContainsFunc(p.findings, func(f *Finding) bool {
		return f.Severity == Damage && !p.driver.opts.Ignore[f.Code]
	})
}

// startState is what is known of the producers before the first segment: its snapshot, if there is one that can be
// read.
func (p *partition) startState() *format.ProducerState {
	if len(p.segments) == 0 {
		return format.NewProducerState(0)
	}
	first := p.segments[0]
	snapshots := state.ProducerSnapshotsOf(p.dir.Files).UpTo(first.base)
	producers, from := snapshots.Begin(first.base-1, math.MinInt64,
		func(state.ProducerSnapshot, error, bool) bool { return true })
	if from != nil {
		return producers
	}
	p.startUnknown = first.base > 0
	return format.NewProducerState(first.base)
}

// fileCode is what findings are counted by.
type fileCode struct{ file, code string }

// mostKept bounds how many findings of a code in a file are kept; the others are only counted. It is more than what a
// report lists.
const mostKept = 100

// found takes a finding, about a segment or, if that is nil, about the partition. What it returns can be added to.
func (p *partition) found(seg *segment, f Finding) *Finding {
	f.Partition = p.name
	f.base = -1
	if seg != nil {
		f.base = seg.base
	}
	f.rank = p.rank(f.File)
	p.driver.fill(&f)
	f.Shown = filepath.Join(p.root, f.File)
	if f.Next == "" {
		f.Next = nextCommand(&f)
	}
	if p.counts[fileCode{f.File, f.Code}]++; p.counts[fileCode{f.File, f.Code}] <= mostKept {
		p.findings = append(p.findings, &f)
	}
	return &f
}

// nextCommand shows the bytes at a finding's place; the rule if it has none and is worse than a note.
func nextCommand(f *Finding) string {
	switch {
	case (f.Pos < 0 || f.File == "") && f.Severity == Note:
		return ""
	case f.Pos < 0 || f.File == "":
		return "kseg explain " + f.Code
	}
	return "kseg explain " + render.ShellWord(f.Shown) + " --position " + strconv.FormatInt(f.Pos, 10)
}

func (p *partition) progress(bytes int64) {
	if p.driver.opts.Progress != nil && !p.quiet {
		p.driver.opts.Progress(bytes)
	}
}
