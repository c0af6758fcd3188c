package verify

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"kseg/broker"
	"kseg/format"
	"kseg/logdir"
)

// incompleteCopy is a partition whose log is older than something else in its log directory: it ends at an offset that
// a checkpoint, a snapshot or an index goes beyond.
type incompleteCopy struct {
	partition string
	from      int64
	newer     string
}

// copyOf is what the partitions of a log directory tell of how it was copied.
type copyOf struct {
	incomplete []incompleteCopy
	mixed      []string // partitions that lack what is in files which were to be deleted or put in their place
	losses     []string // what the next start takes away, a clause for each partition
}

func (d *driver) copyOf(dir *logdir.LogDir) *copyOf {
	if d.copies[dir] == nil {
		d.copies[dir] = &copyOf{}
	}
	return d.copies[dir]
}

// noteCopy remembers from which offset on a partition is incomplete, if it is.
func (d *driver) noteCopy(p *partition, found []*Finding) {
	if p.dir.Parent == nil {
		return
	}
	if slices.ContainsFunc(found, func(f *Finding) bool {
		return (f.Code == "leftover-deleted" || f.Code == "leftover-swap") && f.Severity == Damage
	}) {
		c := d.copyOf(p.dir.Parent)
		c.mixed = append(c.mixed, p.name)
	}
	for _, f := range found {
		cut := (f.Code == "torn-tail" || f.Code == "zero-tail") && f.Severity == Damage && p.shutdown == uncleanShutdown
		if (endsEarly(f.Code) || cut) && f.FirstOffset >= 0 {
			c := d.copyOf(p.dir.Parent)
			c.incomplete = append(c.incomplete, incompleteCopy{p.name, f.FirstOffset, newerThan(f)})
			return
		}
	}
}

// newerThan names the files that go beyond the end of a log.
func newerThan(f *Finding) string {
	names := []string{}
	for _, place := range append([]Place{f.Place}, f.Related...) {
		if name := format.ParseFileName(filepath.Base(place.File)); name.Kind != format.KindLog &&
			name.Kind != format.KindUnknown && !slices.Contains(names, name.Kind.Title()) {
			names = append(names, name.Kind.Title())
		}
	}
	return strings.Join(names, ", ")
}

// noteLoss remembers what the next start takes away of a partition.
func (p *partition) noteLoss(s *broker.PartitionStart) {
	if p.dir.Parent == nil || p.dir.Suffix != "" {
		return
	}
	c := p.driver.copyOf(p.dir.Parent)
	switch n := len(s.Lost.Ranges); {
	case s.Failure != nil:
		c.losses = append(c.losses, p.name+" is not loaded")
	case s.Stray != "":
		c.losses = append(c.losses, p.name+" is set aside as -stray")
	case n > 0:
		c.losses = append(c.losses, fmt.Sprintf("%s loses %s from %d to %d", p.name, plural(s.Lost.Offsets(), "offset",
			"offsets"), s.Lost.Ranges[0].First, s.Lost.Ranges[n-1].Last))
	}
}

// mostNamed is how many partitions a sentence names.
const mostNamed = 5

// some lists the first of the clauses.
func some(clauses []string) string {
	if n := len(clauses) - mostNamed; n > 0 {
		clauses = append(slices.Clone(clauses[:mostNamed]), fmt.Sprintf("and %d more", n))
	}
	return strings.Join(clauses, ", ")
}

// copyKind says which kind of copy a log directory is: of a broker that stopped cleanly, that was killed, or that ran
// on while file after file was copied; and what a start on it loses. It is "" for a folder of partitions, which has no
// state file.
func (d *driver) copyKind(dir *logdir.LogDir) string {
	s := d.dirState(dir)
	if !s.checkpointed() && s.Marker == nil || dir.Narrowed {
		return ""
	}
	c := d.copyOf(dir)
	var names []string
	for _, b := range c.incomplete {
		text := fmt.Sprintf("%s from offset %d", b.partition, b.from)
		if b.newer != "" {
			text += " (older than its " + b.newer + ")"
		}
		names = append(names, text)
	}
	next := "; the next start loses nothing of what is here"
	if len(c.losses) > 0 {
		next = "; at the next start " + some(c.losses)
	} else if b, _ := d.start(dir); b != nil && len(b.Stops) > 0 {
		next = "; a broker does not start on it as it is"
	}
	switch {
	case dir.BrokerRuns():
		return "a broker runs on it"
	case len(names) > 0 && s.Marker != nil:
		return "its broker stopped cleanly, but files are newer than the logs, which were changed or are of another time: " +
			"incomplete are " + some(names) + next
	case len(names) > 0:
		return "no clean stop, and files are newer than the logs, as where a running broker is copied file by file, or a " +
			"disk loses writes: incomplete are " + some(names) + next
	case s.Marker == nil && len(c.mixed) > 0:
		return "no clean stop, and the files of " + some(c.mixed) + " are of several moments of the log cleaner, as where " +
			"a running broker is copied file by file" + next
	case s.Marker != nil && len(c.losses) > 0:
		return "its broker stopped cleanly (" + format.KindCleanShutdown.Info().Name + ")" + next
	case s.Marker != nil:
		return "its broker stopped cleanly (" + format.KindCleanShutdown.Info().Name + ")"
	}
	return "no clean stop: its broker was killed, or the copy is of one moment of a running one" + next
}
