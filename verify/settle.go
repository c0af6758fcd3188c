package verify

import (
	"errors"
	"path/filepath"
	"slices"
	"time"

	"kseg/format"
	"kseg/logdir"
	"kseg/walk"
)

// mostLooks bounds how often a partition is looked at because it changes while it is.
const mostLooks = 4

// list begins a look: at what the directory holds now, if that is not what it held when it was found.
func (p *partition) list() {
	if p.alone != nil || p.dir.SameNames() {
		return
	}
	dir, problems, err := p.dir.Again()
	if p.gone = err != nil; p.gone {
		p.segments = nil
		return
	}
	for _, problem := range problems {
		p.unreadOf = append(p.unreadOf, problem)
	}
	p.take(dir)
}

// settle looks at the partition, and again if it changed while it was read and there is a finding that may come from
// that. It returns the look that counts and its findings: those of a look at what is at rest, or those that all looks
// agree on. A broker that writes, rolls, cleans and deletes gives none, since no two looks see the same of that.
func (p *partition) settle(src *walk.Walker[looked]) (*partition, []*Finding, error) {
	changes := false
	now, err := p.look(src)
	var before map[spot]bool // what all looks so far have found
	for looks := 1; err == nil; looks++ {
		dir, same := p.dir, true
		if !p.gone && p.doubtful(now) {
			dir, same = p.changed()
		}
		changes = changes || !same || p.gone
		confirmed := now
		if looks > 1 {
			confirmed = p.confirmed(now, before)
		}
		agreed := same || looks > 1 && len(confirmed) == len(now) && !slices.ContainsFunc(p.unreadOf, vanished)
		settled := agreed && !p.beingWritten(now)
		if settled || looks == mostLooks {
			if !settled {
				changes = changes || len(confirmed) < len(now)
				now = confirmed
				p.unreadOf = slices.DeleteFunc(p.unreadOf, vanished)
			}
			if changes {
				now = append(now, p.changedFinding())
			}
			return p, now, nil
		}
		if agreed {
			p.wait(looks)
			dir, _ = p.changed()
		}
		again := newPartition(p.driver, dir)
		again.alone, again.root, again.quiet = p.alone, p.root, true
		before = map[spot]bool{}
		for _, f := range confirmed {
			before[p.spotOf(f)] = true
		}
		p = again
		now, err = p.lookAgain()
	}
	return p, nil, err
}

// lookAgain is a look without workers: those of the run are ahead of it.
func (p *partition) lookAgain() ([]*Finding, error) {
	src := p.driver.walker(p.driver.ctx, nil, 1)
	defer src.Close()
	return p.look(src)
}

// look goes through the partition once. A panic is something that could not be read.
func (p *partition) look(src *walk.Walker[looked]) (found []*Finding, err error) {
	guarded := func(fn func()) {
		if fault := logdir.Guard(p.display, func() error { fn(); return nil }); fault != nil {
			p.unread(fault)
		}
	}
	guarded(func() { err = p.run(src) })
	guarded(func() { found = p.fold() })
	return found, err
}

// justNow is how long ago a partition was written to at most if a broker may be in the middle of it.
const justNow = 2 * time.Second

// beingWritten is true if something is wrong with a partition that was written to just now: the bytes of one write do
// not come all at once, and files are renamed one by one.
func (p *partition) beingWritten(found []*Finding) bool {
	if p.driver.opts.Patience == 0 || !slices.ContainsFunc(found, func(f *Finding) bool { return f.Severity > Note }) {
		return false
	}
	latest := p.dir.Modified
	if n := len(p.segments); n > 0 {
		if f, err := p.segments[n-1].log.Again(); err == nil && f.ModTime.After(latest) {
			latest = f.ModTime
		}
	}
	return time.Since(latest) <= justNow
}

// wait is the time between a look at what is being written and the next, longer each time.
func (p *partition) wait(looks int) {
	select {
	case <-p.driver.ctx.Done():
	case <-time.After(p.driver.opts.Patience << (2 * (looks - 1))):
	}
}

// doubtful reports whether there is something that a change of the files could explain.
func (p *partition) doubtful(found []*Finding) bool {
	return slices.ContainsFunc(found, func(f *Finding) bool { return f.Severity > Note }) ||
		slices.ContainsFunc(p.unreadOf, vanished)
}

func vanished(err error) bool { return errors.Is(err, logdir.ErrVanished) }

// changed lists the partition and its log directory's state files anew, and reports whether all is as it was when the
// look began.
func (p *partition) changed() (now *logdir.Partition, same bool) {
	if p.alone != nil {
		f, err := p.alone.Again()
		if err != nil || p.alone.Unchanged(f) {
			return p.dir, true
		}
		return logdir.PartitionOf(f), false
	}
	now, _, err := p.dir.Again()
	if err != nil {
		return p.dir, false // the next look will find that it is gone
	}
	same = p.dir.Unchanged(now)
	if parent := p.dir.Parent; parent != nil {
		if later := parent.Again(); !parent.Unchanged(later) {
			p.driver.takeAgain(parent, later)
			now.Parent, same = later, false
		}
	}
	return now, same
}

// spot tells a finding in two looks for the same. State files are written anew, so that their lines move; the others
// must be the same files.
type spot struct {
	code, file string
	pos        int64
	id         logdir.FileID
}

func (p *partition) spotOf(f *Finding) spot {
	s := spot{code: f.Code, file: f.File, pos: -1}
	if name := format.ParseFileName(filepath.Base(f.File)); name.Kind.HasOffset() {
		s.pos = f.Pos
		if file := p.dir.FileNamed(name.Raw); file != nil {
			s.id = file.ID()
		}
	}
	return s
}

// confirmed are the findings that are no worse than a note, or were seen in an earlier look too.
func (p *partition) confirmed(now []*Finding, earlier map[spot]bool) []*Finding {
	return slices.DeleteFunc(slices.Clone(now), func(f *Finding) bool {
		return f.Severity > Note && !earlier[p.spotOf(f)]
	})
}

func (p *partition) changedFinding() *Finding {
	f := Finding{Code: "changed-while-read", Partition: p.name, Place: inFile(p.dir.Rel, -1, -1), Shown: p.dir.Display,
		logPos: -1, base: -1,
		Message: "it changed while it was read, and was looked at again"}
	if p.gone {
		f.Message = "the directory was deleted or renamed after it had been listed, and was not looked at"
	}
	p.driver.fill(&f)
	return &f
}
