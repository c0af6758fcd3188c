package verify

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"kseg/broker"
	"kseg/logdir"
)

// checkStart lets the next start of each broker say what none of the other checks has: what keeps it from starting, or
// takes a log directory offline, and which partitions begin anew or are replaced.
var checkStart = Check{
	Name:  "start",
	Group: "directory",
	Codes: []Code{
		{"broker-does-not-start", Damage, "a broker does not start with this"},
		{"log-directory-offline", Damage, "a broker takes the log directory offline because of this"},
		{"partition-absent", Damage, "partitions that the cluster's metadata places here have no directory"},
		{"partition-replaced", Damage, "a shorter copy takes the place of a partition that was moved"},
		{"metadata-log-absent", Warning, "a log directory with no log in it, and no metadata log anywhere"},
	},
	Set: lookAtStarts,
}

func lookAtStarts(o *operands) {
	told := map[*broker.Start]bool{nil: true}
	for _, l := range o.dirs {
		if l.dir == nil || !l.dir.Listed || l.dir.Narrowed {
			continue
		}
		b, _ := o.driver.start(l.dir)
		if told[b] {
			continue
		}
		told[b] = true
		o.finishStart(b)
		for _, r := range b.Stops {
			o.startSays("broker-does-not-start", r, "a broker does not start with this: ")
		}
		for _, d := range b.Dirs {
			for _, r := range d.Offline {
				o.startSays("log-directory-offline", r, "a broker takes the log directory offline: ")
			}
		}
		if !slices.ContainsFunc(b.Dirs, func(d *broker.DirStart) bool { return d.Dir.BrokerRuns() }) {
			o.absentPartitions(b)
			o.absentMetadata(b)
		}
	}
}

// finishStart ends a start with the partitions that were loaded, and with those of which there is a copy on its way.
func (o *operands) finishStart(b *broker.Start) {
	loaded := o.driver.starts.loaded[b]
	if loaded == nil {
		loaded = map[string]*broker.PartitionStart{}
	}
	for _, d := range b.Dirs {
		for _, p := range d.Dir.Partitions {
			if p.Suffix == "future" || hasFuture(b, p) {
				loaded[p.Path] = b.Load(d, p)
			}
		}
	}
	var all []*broker.PartitionStart
	for _, d := range b.Dirs {
		for _, p := range d.Dir.Partitions {
			if s := loaded[p.Path]; s != nil && s.Err == nil {
				all = append(all, s)
			}
		}
	}
	b.Finish(all)
	for _, s := range all {
		o.replaced(s)
	}
}

// hasFuture reports whether a partition was being moved to another log directory.
func hasFuture(b *broker.Start, p *logdir.Partition) bool {
	return p.Suffix == "" && slices.ContainsFunc(b.Dirs, func(d *broker.DirStart) bool { return d.Dir.HasFuture(p.Name) })
}

// replaced says what is lost where a shorter copy takes a partition's place.
func (o *operands) replaced(s *broker.PartitionStart) {
	if s.Replaced == nil || s.LogEnd <= s.Replaced.LogEnd {
		return
	}
	f := Finding{Code: "partition-replaced", Partition: s.Partition.Name, Shown: s.Partition.Display, logPos: -1,
		Place: Place{s.Partition.Rel, -1, -1, s.Replaced.LogEnd, s.LogEnd - 1}}
	f.Message = fmt.Sprintf("the partition was moved, and by the cluster's metadata has come to its new log directory; "+
		"a broker puts %s in its place, which ends at offset %d, and deletes this one", s.Replaced.Partition.Display,
		s.Replaced.LogEnd)
	o.found(f)
}

// startSays reports a reason of the next start, unless damage was found in that file.
func (o *operands) startSays(code string, r broker.Reason, says string) {
	is := isAt(r)
	if r.File == "" || slices.ContainsFunc(o.driver.damaged, is) || slices.ContainsFunc(o.findings,
		func(f *Finding) bool {
			return f.Severity == Damage && (is(f.Shown) || slices.ContainsFunc(f.Related,
				func(p Place) bool { return is(p.File) }))
		}) {
		return
	}
	place := inFile(r.File, -1, -1)
	for _, l := range o.dirs {
		if l.dir != nil {
			if rel, err := filepath.Rel(l.dir.Display, r.File); err == nil && !strings.HasPrefix(rel, "..") {
				place = inFile(rel, -1, -1)
			}
		}
	}
	o.found(Finding{Code: code, Place: place, Shown: r.File, logPos: -1, Message: says + r.Text})
}

// isAt reports of a place, as the user would name it, whether a reason is about it, or about what is in it or around
// it.
func isAt(r broker.Reason) func(shown string) bool {
	return func(shown string) bool {
		return shown == r.File || strings.HasPrefix(shown, r.File+"/") || strings.HasPrefix(r.File, shown+"/")
	}
}

// absentPartitions reports partitions without a directory, those of one log directory and one fate together. Where
// most, but not all, of what the metadata place in a log directory is not there, it looks like a copy of a part.
func (o *operands) absentPartitions(b *broker.Start) {
	type key struct {
		dir  *broker.DirStart
		fate broker.Fate
	}
	names, order := map[key][]string{}, []key{}
	for _, a := range b.Absent() {
		if a.Fate != broker.Elsewhere && hasDirectory(b, a.Name()) {
			continue // it is set aside, which is said there
		}
		k := key{a.Dir, a.Fate}
		if names[k] == nil {
			order = append(order, k)
		}
		names[k] = append(names[k], a.Name())
	}
	for _, k := range order {
		f := Finding{Code: "partition-absent", Place: inFile(".", -1, -1), Shown: b.Dirs[0].Dir.Display, logPos: -1,
			Count: len(names[k])}
		if k.dir != nil {
			f.Shown = k.dir.Dir.Display
		}
		f.Message = fmt.Sprintf("the cluster's metadata places %s here that have no directory (%s); ",
			plural(int64(len(names[k])), "partition", "partitions"), strings.Join(names[k][:min(len(names[k]),
				maxRelated)], ", "))
		switch k.fate {
		case broker.Emptied:
			f.Message += "a broker makes each again, empty"
		case broker.Elsewhere:
			f.Message = fmt.Sprintf("the log directory of %s is offline (%s); a "+
				"broker makes each anew, empty, in another log directory", plural(int64(len(names[k])), "partition",
				"partitions"), strings.Join(names[k][:min(len(names[k]), maxRelated)], ", "))
		case broker.Uncopied:
			f.Severity = Note
			f.Message += "a broker makes each again, empty, unless this is a copy of only some of them"
		case broker.Refetched:
			f.Severity = Warning
			f.Message += "the records come again from the leader, another broker"
		case broker.NotMade:
			f.Severity = Note
			f.Message += "they may be in the log directory that is offline"
		case broker.New:
			f.Severity = Note
			f.Message += "they are new, and in no checkpoint: it may be that there was none yet"
		}
		o.found(f)
	}
}

func hasDirectory(b *broker.Start, name string) bool {
	return slices.ContainsFunc(b.Dirs, func(d *broker.DirStart) bool { return slices.Contains(d.Dir.Subdirs, name) })
}

// absentMetadata reports that the metadata log may be gone: a formatted log directory has no log at all, and none of
// the others has the metadata log.
func (o *operands) absentMetadata(b *broker.Start) {
	for _, d := range b.Dirs {
		if b.Unplaced != "" && d.Bare() {
			o.found(Finding{Code: "metadata-log-absent", Place: inFile(".", -1, -1), Shown: d.Dir.Display, logPos: -1,
				Message: "there is no log in this log directory, and no metadata log in the others: if it was here, and the node " +
					"is its cluster's only controller, a broker sets every partition aside as -stray"})
		}
	}
}
