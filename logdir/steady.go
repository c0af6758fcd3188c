package logdir

import (
	"errors"
	"fmt"
	"slices"
	"syscall"
)

// ErrGone is an ErrVanished of a directory that was found in a log directory and is not there any more, as when a topic
// was deleted, or of which there is nothing yet: what is there to be read has been.
var ErrGone = fmt.Errorf("%w: the directory is gone; a broker renames it when a topic is deleted, and then removes it",
	ErrVanished)

// noSegment is the error of a partition that has none.
type noSegment struct {
	error
	found bool // in a log directory
}

// Is says that a partition was found in a log directory while a broker made it, or deleted its files.
func (e noSegment) Is(target error) bool { return target == ErrGone && e.found }

func (e noSegment) Unwrap() error { return e.error }

// NoSegment is the error of a partition without a segment. It is an ErrGone if the partition was found in a log
// directory, and its own could be listed; always an ErrNothing.
func (p *Partition) NoSegment() error {
	return noSegment{fmt.Errorf("%s: %w: it has no segment", p.Display, ErrNothing),
		p.Parent != nil && p.Parent.Listed && p.ListErr == nil}
}

// mostLooks bounds how often a partition is looked at because its files vanish.
const mostLooks = 10

// Steady does something to the partition, and once more for as long as that fails and files of it vanish or change
// meanwhile: a broker rolls, renames, truncates and deletes segments, and its cleaner puts others in their place.
// Before each time the directory is listed anew, if it has changed since it was, so that Files and Segments are those
// of now. do begins from scratch, and returns all that it could not read. No other goroutine may use the partition.
func (p *Partition) Steady(do func() error) error {
	if p.opts == nil {
		return do()
	}
	for looks := 1; ; looks++ {
		if err := p.Renew(); err != nil {
			return err
		}
		err := do()
		if looks == mostLooks || err == nil || !errors.Is(err, ErrVanished) && !p.misled(err) {
			return err
		}
		p.stale = true // a file keeps the length that it had at the first look
	}
}

// misled reports whether an error that is none of the disk may come from files that have changed since they were found.
func (p *Partition) misled(err error) bool {
	var disk syscall.Errno
	if errors.As(err, &disk) {
		return false
	}
	again, _, gone := p.Again()
	return gone != nil || !p.Unchanged(again)
}

// Renew lists the directory anew if it has got, lost or renamed files since it was listed: Files and Segments are
// others then.
func (p *Partition) Renew() error {
	if p.opts == nil || !p.listed || p.Modified.IsZero() || !p.stale && p.SameNames() {
		return nil
	}
	if p.fresh && !p.stale {
		again, _, err := p.Again()
		if err == nil && p.Unchanged(again) && slices.Equal(p.Subdirs, again.Subdirs) {
			p.Modified, p.fresh = again.Modified, again.fresh
			return nil
		}
	}
	o := opener{opts: *p.opts, set: &Set{}}
	p.Forget()
	p.ListErr, p.stale = nil, false
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
