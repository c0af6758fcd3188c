package logdir

import (
	"errors"
	"fmt"
	"slices"
)

// ErrGone is an ErrVanished of a directory that was found in a log directory and is not there any more, as when a topic
// was deleted: nothing of it is left to be read.
var ErrGone = fmt.Errorf("%w: the directory is gone; a broker renames it when a topic is deleted, and then removes it",
	ErrVanished)

// mostLooks bounds how often a partition is looked at because its files vanish.
const mostLooks = 4

// Steady does something to the partition, and once more for as long as files of it vanish meanwhile: a broker rolls,
// renames, truncates and deletes segments, and its cleaner puts others in their place. Before each time the directory
// is listed anew, if it has changed since it was, so that Files and Segments are those of now. do begins from scratch,
// and returns all that it could not read. No other goroutine may use the partition.
func (p *Partition) Steady(do func() error) error {
	if p.opts == nil {
		return do()
	}
	for looks := 1; ; looks++ {
		if err := p.Renew(); err != nil {
			return err
		}
		err := do()
		if looks == mostLooks || !errors.Is(err, ErrVanished) {
			return err
		}
	}
}

// Renew lists the directory anew if it has got, lost or renamed files since it was listed: Files and Segments are
// others then.
func (p *Partition) Renew() error {
	if p.opts == nil || !p.listed || p.Modified.IsZero() || p.SameNames() {
		return nil
	}
	if p.fresh {
		again, _, err := p.Again()
		if err == nil && p.Unchanged(again) && slices.Equal(p.Subdirs, again.Subdirs) {
			p.Modified, p.fresh = again.Modified, again.fresh
			return nil
		}
	}
	o := opener{opts: *p.opts, set: &Set{}}
	p.Forget()
	p.ListErr = nil
	if !o.listPartition(p) {
		if p.Parent != nil && p.Parent.Listed {
			return fmt.Errorf("%s: %w", p.Display, ErrGone)
		}
		return fmt.Errorf("%s: %w: the directory is gone", p.Display, ErrVanished)
	}
	return Joined(o.set.Problems)
}

// Joined are the errors of problems as one, nil if there are none.
func Joined(problems []Problem) error {
	var all []error
	for _, p := range problems {
		all = append(all, p.Err)
	}
	return errors.Join(all...)
}
