package verify

import (
	"fmt"
	"path/filepath"
	"slices"

	"kseg/broker"
	"kseg/format"
	"kseg/logdir"
	"kseg/state"
	"kseg/walk"
)

// checkDirs looks at what lies in the directories: what Kafka left behind in the middle of something, what is misnamed,
// and what is not Kafka's.
var checkDirs = Check{
	Name:  "directories",
	Group: "directory",
	Codes: []Code{
		{"bad-file-name", Damage, "a file whose name should begin with an offset, but does not"},
		{"odd-file-name", Damage, "a file that a broker would look for under another name"},
		{"leftover-swap", Warning, "a cleaned segment that was not put in its place"},
		{"leftover-cleaned", Warning, "a cleaned segment that was not finished"},
		{"leftover-deleted", Note, "a file that was to be deleted"},
		{"leftover-temporary", Note, "a file that was being written"},
		{"leftover-directory", Note, "a partition that is being deleted or moved, or is stray"},
		{"misplaced-file", Note, "a file of Kafka's in a directory where it means nothing"},
		{"unknown-file", Note, "a file that is not Kafka's"},
		{"unknown-directory", Damage, "a directory whose name is not that of a partition"},
		{"partition-twice", Damage, "a partition in two log directories"},
		{"changed-while-read", Note, "a partition that changed while it was read"},
	},
	Partition: lookAtPartitionDir,
	LogDir:    lookAtLogDir,
	Set:       lookForTwins,
}

func lookAtPartitionDir(p *partition) {
	if p.dir.Suffix != "" && p.alone == nil {
		p.found(nil, Finding{Code: "leftover-directory", Place: inFile(p.dir.Rel, -1, -1), logPos: -1,
			Message: suffixMeaning[p.dir.Suffix]})
	}
	for _, name := range p.dir.Subdirs {
		if p.whole() {
			p.found(nil, Finding{Code: "unknown-directory", Severity: Note, Place: inFile(p.path(name), -1, -1),
				logPos:  -1,
				Message: "Kafka makes no directories inside of a partition's; a broker ignores it"})
		}
	}
	here := format.InPartition
	if p.dir.IsClusterMetadata() {
		here |= format.InMetadata
	}
	seen := map[string]bool{}
	for _, f := range p.dir.Files {
		if f.Name.Leftover() {
			p.leftover(f, seen)
		} else if finding, ok := misnamed(f, here); ok && p.alone == nil {
			p.found(p.segmentOf(f), finding)
		}
	}
}

// segmentOf is the segment that a log belongs to, nil if the file is none.
func (p *partition) segmentOf(f *logdir.File) *segment {
	for _, s := range p.segments {
		if s.log == f {
			return s
		}
	}
	return nil
}

// suffixMeaning says what a partition's directory with a suffix is.
var suffixMeaning = map[string]string{
	"delete": "the partition was deleted, and its directory waits to be removed",
	"future": "the partition was being moved here from another log directory",
	"stray":  "a broker found this partition, but the cluster's metadata did not place it there; nothing removes it",
}

// byFullName are the kinds of which a broker makes the names of the files that it looks for.
var byFullName = []format.Kind{format.KindLog, format.KindProducerSnapshot}

// misnamed says whether a file is not Kafka's, not at home here, or has a name that a broker cannot take for an offset,
// or takes for another file's. All was seen with 4.4.0.
func misnamed(f *logdir.File, here format.Place) (Finding, bool) {
	n, kind := f.Name, f.Name.Kind
	finding := Finding{Place: inFile(f.Rel, -1, -1), logPos: -1}
	switch {
	case kind == format.KindUnknown:
		finding.Code, finding.Message = "unknown-file", "the file is not Kafka's; a broker ignores it"
	case kind.Info().Place&here == 0:
		finding.Code, finding.Message = "misplaced-file", "a "+kind.Title()+" has no meaning in this directory; a broker "+
			"ignores it"
	case !kind.HasOffset(), n.Bootstrap():
		return finding, false
	case !n.HasBase && kind.Info().Place&format.InMetadata != 0:
		finding.Code, finding.Message = "misplaced-file", "the name is not that of a snapshot, an offset and an epoch; a "+
			"broker ignores it"
	case !n.HasBase:
		finding.Code = "bad-file-name"
		finding.Message = fmt.Sprintf("the name of %s should be an offset", kind.ATitle())
	case slices.Contains(byFullName, kind) && n.Raw != format.SegmentFileName(n.Base, kind):
		finding.Code = "odd-file-name"
		want := format.SegmentFileName(n.Base, kind)
		finding.Evidence = []Evidence{{"name", want, n.Raw}}
		finding.Message = "a broker looks for " + want + " instead"
		if !kind.Batches() || exists(f, want) {
			finding.Severity = Note
			break
		}
		finding.Message += ", which is not there: it makes an empty one, and the records in this file are not read"
	default:
		return finding, false
	}
	return finding, true
}

// exists reports whether a file of that name is in the same partition.
func exists(f *logdir.File, name string) bool {
	return f.Partition != nil && slices.ContainsFunc(f.Partition.All(),
		func(other *logdir.File) bool { return other.Name.Raw == name })
}

// leftover reports a file that Kafka renamed or did not finish; those of one segment together.
func (p *partition) leftover(f *logdir.File, seen map[string]bool) {
	n := f.Name
	if (n.Suffix == "swap" || n.Suffix == "cleaned") && !n.HasBase && p.alone == nil {
		p.found(nil, Finding{Code: "bad-file-name", Place: inFile(f.Rel, -1, -1), logPos: -1,
			Message: "the name should begin with an offset"})
		return
	}
	group := n.Raw
	if n.HasBase && n.Kind != format.KindCheckpoint {
		group = fmt.Sprint(n.Base, ".", n.Suffix)
	}
	if seen[group] {
		return
	}
	seen[group] = true
	finding := Finding{Place: inFile(f.Rel, -1, -1), logPos: -1}
	for _, other := range p.dir.Files {
		if other != f && other.Name.Suffix == n.Suffix && other.Name.HasBase && n.HasBase && other.Name.Base == n.Base &&
			n.Kind != format.KindCheckpoint {
			finding.Related = append(finding.Related, inFile(other.Rel, -1, -1))
		}
	}
	switch n.Suffix {
	case "deleted":
		finding.Code, finding.Message = "leftover-deleted", "the file was to be deleted"
	case "cleaned":
		if finding.Code = "leftover-cleaned"; p.dir.Parent != nil && p.dir.Parent.BrokerRuns() {
			finding.Severity, finding.Message = Note, "the log cleaner of the broker that runs on this log directory is "+
				"writing the segment"
			break
		}
		finding.Message = "the log cleaner did not finish this segment"
	case "swap":
		p.swap(f, &finding)
	default:
		finding.Code, finding.Message = "leftover-temporary", "the file was being written when the broker stopped; the one "+
			"that it was to replace still counts"
	}
	p.found(nil, finding)
}

// swap says which offsets are in a .swap, which takes the place of all segments that begin among them.
func (p *partition) swap(f *logdir.File, finding *Finding) {
	finding.Code = "leftover-swap"
	finding.Message = "the log cleaner finished this file, but did not put it in its place"
	if f.Kind() != format.KindLog || !f.Name.HasBase {
		return
	}
	finding.FirstOffset = f.Name.Base
	log := &walk.Log{File: f, Base: f.Name.Base}
	err := walk.Read(p.driver.ctx, log, nil, func(b *format.Batch, h *format.Hole) bool {
		if b != nil && b.Plausible() {
			finding.LastOffset = max(finding.LastOffset, b.LastOffset)
		}
		if sound := b != nil && (b.Valid() || p.driver.opts.Level < CRC) || h != nil && h.Kind == format.Unreadable; !sound &&
			finding.Severity == 0 {
			finding.Severity = Damage
			finding.Message += "; it has bytes that are no batch with a matching checksum"
		}
		return true
	})
	if err != nil {
		p.unread(err)
	}
}

// lookAtLogDir looks at what lies beside the partitions.
func lookAtLogDir(l *logDir) {
	if l.dir.Narrowed {
		return
	}
	for _, f := range l.dir.Files {
		if f.Name.Leftover() {
			l.found(Finding{Code: "leftover-temporary", Place: inFile(f.Rel, -1, -1), logPos: -1,
				Message: "the file was being written when the broker stopped; the one that it was to replace still counts"})
		} else if finding, ok := misnamed(f, format.InLogDir); ok {
			l.found(finding)
		}
	}
	for _, name := range l.dir.Subdirs {
		if !broker.MisnamedDir(name) {
			continue
		}
		f := Finding{Code: "unknown-directory", Place: inFile(name, -1, -1), logPos: -1,
			Message: "the name is not that of a partition; a broker does not start while this is in its log directory"}
		if _, dir := l.driver.start(l.dir); dir != nil && dir.Unused {
			f.Severity = Note
			f.Message = "the name is not that of a partition; a broker does not start with it once the log directory is used"
		}
		l.found(f)
	}
}

// lookForTwins finds partitions that are in use in two places. Those of different brokers are replicas of each other,
// and a log directory that is a copy of another one is reported as that.
func lookForTwins(o *operands) {
	first := map[state.TopicPartition][]*logdir.Partition{}
	for _, l := range o.dirs {
		for _, t := range l.turns {
			p := t.dir
			if t.alone || p.Suffix != "" || !p.Named || p.IsClusterMetadata() {
				continue
			}
			key := state.TopicPartition{Topic: p.Topic, Partition: p.Partition}
			for _, twin := range first[key] {
				if o.oneBroker(twin.Parent, p.Parent) && knowsTopic(twin) == knowsTopic(p) && !o.setAside(twin, p) {
					o.found(Finding{Code: "partition-twice", Partition: p.Name, Place: inFile(p.Rel, -1, -1),
						Shown:   p.Display,
						logPos:  -1,
						Related: []Place{inFile(twin.Display, -1, -1)},
						Message: fmt.Sprintf("the partition is in %s too; a broker with both does not start",
							filepath.Dir(twin.Display))})
					break
				}
			}
			first[key] = append(first[key], p)
		}
	}
}

// setAside reports whether the next start sets one of two partitions aside, so that it does not have both.
func (o *operands) setAside(partitions ...*logdir.Partition) bool {
	return slices.ContainsFunc(partitions, func(p *logdir.Partition) bool {
		b, _ := o.driver.start(p.Parent)
		return b != nil && b.SetsAside(p)
	})
}

// knowsTopic reports whether a partition has a partition.metadata: a broker that writes them sets one without aside,
// and so does not have it twice.
func knowsTopic(p *logdir.Partition) bool { return p.File(format.KindPartitionMetadata) != nil }

// oneBroker reports whether two log directories can belong to one broker. Only directories that say otherwise cannot.
func (o *operands) oneBroker(a, b *logdir.LogDir) bool {
	if a == b {
		return true
	}
	if a == nil || b == nil {
		return true
	}
	x, y := o.driver.dirState(a).Meta, o.driver.dirState(b).Meta
	switch {
	case x.HasDirectoryID && y.HasDirectoryID && x.DirectoryID == y.DirectoryID, x.HasNodeID && y.HasNodeID &&
		x.NodeID != y.NodeID:
		return false
	case x.ClusterID != "" && y.ClusterID != "" && x.ClusterID != y.ClusterID:
		return false
	}
	return true
}
