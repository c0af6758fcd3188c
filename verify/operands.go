package verify

import (
	"fmt"
	"path/filepath"
	"sync"

	"kseg/logdir"
)

// operands are all that a run looks at, in order.
type operands struct {
	driver   *driver
	set      *logdir.Set
	dirs     []*logDir
	findings []*Finding
}

// logDir is a log directory, or, if dir is nil, a partition or file that was given alone.
type logDir struct {
	driver   *driver
	dir      *logdir.LogDir
	turns    []*turn
	findings []*Finding
}

func (d *driver) operands(set *logdir.Set) *operands {
	all := &operands{driver: d, set: set}
	for _, o := range set.Operands {
		l := &logDir{driver: d, dir: o.LogDir}
		switch {
		case o.LogDir != nil:
			for _, p := range o.LogDir.Partitions {
				l.turns = append(l.turns, &turn{dir: p})
			}
		case o.Partition != nil:
			l.turns = append(l.turns, &turn{dir: o.Partition})
		case o.File != nil && o.Err == nil:
			p := d.fileAlone(o.File)
			l.turns = append(l.turns, &turn{dir: p.dir, alone: true, pass: p})
		}
		all.dirs = append(all.dirs, l)
	}
	return all
}

func (o *operands) turns() []*turn {
	var all []*turn
	for _, l := range o.dirs {
		all = append(all, l.turns...)
	}
	return all
}

// turn is a partition whose pass begins when it is its turn, and is forgotten after it: there can be very many.
type turn struct {
	dir   *logdir.Partition
	alone bool // only a file of it was given
	mu    sync.Mutex
	pass  *partition
}

// begin is the pass, which may be asked for by what reads ahead and by what takes the findings.
func (t *turn) begin(d *driver) *partition {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.pass == nil {
		t.pass = newPartition(d, t.dir)
	}
	return t.pass
}

func (t *turn) end() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.pass = nil
}

// found takes a finding about a log directory.
func (l *logDir) found(f Finding) {
	f.base = -1
	l.driver.fill(&f)
	f.Shown = filepath.Join(l.dir.Display, f.File)
	f.Next = nextCommand(&f)
	if !l.driver.opts.Ignore[f.Code] {
		l.findings = append(l.findings, &f)
	}
}

// found takes a finding about several operands.
func (o *operands) found(f Finding) {
	f.base = -1
	o.driver.fill(&f)
	f.Next = nextCommand(&f)
	if !o.driver.opts.Ignore[f.Code] {
		o.findings = append(o.findings, &f)
	}
}

// fileAlone makes the pass over a partition of one file.
func (d *driver) fileAlone(f *logdir.File) *partition {
	p := newPartition(d, logdir.PartitionOf(f))
	p.alone, p.root = f, filepath.Dir(f.Display)
	if _, err := f.RequireBase(); f.Kind().IsSegmentFile() && len(p.segments) == 0 {
		if err == nil {
			err = fmt.Errorf("%s: there is no log beside it, without which nothing can be said of it", f.Display)
		}
		d.notRead(err)
		p.dir.Files = nil
	}
	return p
}
