package broker

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"kseg/format"
	"kseg/logdir"
	"kseg/state"
)

// Absent is a partition that the metadata place on the broker, and that has no directory, or one in a log directory
// that is offline. A broker makes such a log when it learns that it has the replica (Partition.createLogIfNotExists),
// empty.
type Absent struct {
	state.TopicPartition
	// Dir is the log directory that the metadata name, or that has the partition and is offline; nil: none, so that the
	// broker chooses one.
	Dir *DirStart
	// Witness is the checkpoint that lists the partition; "" if none does.
	Witness string
	// Leader is the broker from which the records come, if Fate is Refetched.
	Leader int32
	Fate   Fate
}

// Fate is what becomes of a partition without a directory.
type Fate int

// The fates, worst first.
const (
	Emptied   Fate = iota // nobody else is known to have the records
	Elsewhere             // its directory is offline, and the broker makes one in another log directory
	Uncopied              // so are most of the log directory, but not all: it looks like a copy of a part
	NotMade               // while its log directory is offline, or one that may be it
	Refetched             // another broker is the leader
	New                   // there may have been none yet: it is in its first leader epoch, and in no checkpoint
)

// Name is that of the directory.
func (a *Absent) Name() string { return fmt.Sprintf("%s-%d", a.Topic, a.Partition) }

// Absent finds the assigned partitions without a directory. The metadata name the log directory by its id, so that
// nothing is said of one that was not given; where they do not name it, all that the broker has registered must be
// here.
func (b *Start) Absent() []Absent {
	if b.image == nil || b.node == nil || len(b.image.Problems) > 0 {
		return nil
	}
	var gone []Absent
	given, have, online := b.given()
	all, anew := b.allGiven(given), b.madeAnew(given, online)
	some := slices.ContainsFunc(b.Dirs, (*DirStart).isOffline)
	for r := range b.image.Replicas(*b.node) {
		tp := state.TopicPartition{Topic: r.Topic.Name, Partition: r.Partition.Number}
		dir, anyway := given[r.Directory], anew[tp] || r.Directory == unassignedID
		if online[tp] || have[tp] != nil && !anyway || dir != nil && dir.future(tp) ||
			dir == nil && !b.complete && !(all && ReservedID(r.Directory)) || !b.asked(tp) {
			continue
		}
		a := Absent{TopicPartition: tp, Dir: dir}
		lists := false
		a.Witness, lists = b.witness(tp, dir)
		switch leader := r.Partition.Leader; {
		case !anyway && (dir != nil && dir.isOffline() || dir == nil && some):
			a.Fate = NotMade
		case have[tp] != nil:
			a.Fate, a.Dir = Elsewhere, have[tp]
		case leader != *b.node && slices.Contains(r.Partition.Replicas, leader):
			a.Fate, a.Leader = Refetched, leader
		case lists && a.Witness == "" && r.Partition.LeaderEpoch == 0:
			a.Fate = New
		}
		gone = append(gone, a)
	}
	b.judgeCopies(gone)
	slices.SortFunc(gone, func(x, y Absent) int {
		return cmp.Or(cmp.Compare(x.Topic, y.Topic), cmp.Compare(x.Partition, y.Partition))
	})
	return gone
}

// madeAnew are partitions that get a log whatever log directory the metadata name, though that is offline. A broker
// that is its cluster's only controller, and did not record that it stopped, is first told that it leads them; at the
// first that has no log the work ends (Partition.makeLeader). When its old registration has run out, it is told of all
// again, as of a follower's, without their log directories, and makes those it had not come to.
func (b *Start) madeAnew(given map[format.UUID]*DirStart,
	online map[state.TopicPartition]bool) map[state.TopicPartition]bool {
	if b.Metadata == nil || b.Voters != 1 {
		return nil
	}
	var led []state.TopicPartition
	offline := map[state.TopicPartition]bool{}
	for r := range b.image.Replicas(*b.node) {
		tp := state.TopicPartition{Topic: r.Topic.Name, Partition: r.Partition.Number}
		if r.Partition.Leader == *b.node {
			led = append(led, tp)
			offline[tp] = !online[tp] && given[r.Directory] != nil && given[r.Directory].isOffline()
		}
	}
	slices.SortFunc(led, func(x, y state.TopicPartition) int {
		return cmp.Compare(format.HashBucket(uint32(x.Hash()), len(led)), format.HashBucket(uint32(y.Hash()), len(led)))
	})
	anew := map[state.TopicPartition]bool{}
	if first := slices.IndexFunc(led, func(tp state.TopicPartition) bool { return offline[tp] }); first >= 0 {
		for _, tp := range led[first+1:] {
			anew[tp] = !online[tp]
		}
	}
	return anew
}

// judgeCopies tells directories of which most is gone, as in a copy of a part, from those that have lost a few, or all,
// as a new disk has.
func (b *Start) judgeCopies(gone []Absent) {
	emptied := map[*DirStart]int{}
	for _, a := range gone {
		if a.Fate == Emptied {
			emptied[a.Dir]++
		}
	}
	for i := range gone {
		if a := &gone[i]; a.Fate == Emptied && a.Dir != nil && a.Dir.hasLogs() && 2*emptied[a.Dir] > b.placed(a.Dir) {
			a.Fate = Uncopied
		}
	}
}

// hasLogs reports whether there is a partition in the log directory, the metadata log aside.
func (d *DirStart) hasLogs() bool {
	return slices.ContainsFunc(d.Dir.Subdirs, func(name string) bool {
		p, ok := format.ParsePartitionDir(name)
		return ok && p.Suffix == "" && !p.IsClusterMetadata()
	})
}

// placed is how many partitions the metadata place in a log directory.
func (b *Start) placed(dir *DirStart) int {
	n := 0
	for r := range b.image.Replicas(*b.node) {
		if r.Directory == dir.State.Meta.DirectoryID {
			n++
		}
	}
	return n
}

// unassignedID is that of a replica whose log directory the metadata do not know yet (DirectoryId.UNASSIGNED). Its log
// is made wherever there is room, be there log directories offline that may have it or not.
var unassignedID = format.UUID{15: 1}

// given are the log directories by their ids, those that have a partition, and the partitions that one has which is not
// offline.
func (b *Start) given() (given map[format.UUID]*DirStart, have map[state.TopicPartition]*DirStart,
	online map[state.TopicPartition]bool) {
	given, have = map[format.UUID]*DirStart{}, map[state.TopicPartition]*DirStart{}
	online = map[state.TopicPartition]bool{}
	for _, d := range b.Dirs {
		if d.Dir.Listed && d.State.Meta.HasDirectoryID {
			given[d.State.Meta.DirectoryID] = d
		}
		for _, name := range d.Dir.Subdirs {
			if p, ok := format.ParsePartitionDir(name); ok && !d.NoLogs && p.Suffix == "" && !b.aside[d.Dir.Path+"/"+name] {
				tp := state.TopicPartition{Topic: p.Topic, Partition: p.Partition}
				have[tp] = d
				online[tp] = online[tp] || !d.isOffline()
			}
		}
	}
	return given, have, online
}

// future reports whether the log directory has a copy of the partition that was being moved there: where the metadata
// place the partition, the copy takes its place.
func (d *DirStart) future(tp state.TopicPartition) bool {
	return d.Dir.HasFuture(format.PartitionDir{Topic: tp.Topic, Partition: tp.Partition}.String())
}

// asked reports whether the options of the run keep the partition.
func (b *Start) asked(tp state.TopicPartition) bool {
	return slices.ContainsFunc(b.Dirs, func(d *DirStart) bool { return d.Dir.Keeps(tp.Topic, tp.Partition) })
}

// noteElsewhere notes that partitions of the broker are in log directories that were not given.
func (b *Start) noteElsewhere() {
	if b.node == nil || b.complete || !slices.ContainsFunc(b.Dirs, func(d *DirStart) bool { return d.Dir.Listed }) {
		return
	}
	given, _, _ := b.given()
	n, dirs := 0, map[format.UUID]bool{}
	for r := range b.image.Replicas(*b.node) {
		if given[r.Directory] == nil && !ReservedID(r.Directory) {
			n++
			dirs[r.Directory] = true
		}
	}
	if n > 0 {
		var ids []string
		for id := range dirs {
			ids = append(ids, id.String())
		}
		slices.Sort(ids)
		b.Notes = append(b.Notes, fmt.Sprintf("by the metadata %d of the broker's partitions are in log directories that "+
			"were not given (directory.id %s); if one of those is lost, they start over, empty", n,
			strings.Join(ids[:min(len(ids), 4)], ", ")))
	}
}

// replaced reports whether as many log directories are given as the broker has registered, though not all of these: a
// new one has taken the place of another, as a new disk does.
func (b *Start) replaced() bool {
	if b.configured || b.node == nil {
		return false
	}
	broker := b.image.Broker(*b.node)
	n := 0
	for _, d := range b.Dirs {
		if d.Dir.Listed && !d.hasMetadata() || broker != nil && d.State.Meta.HasDirectoryID &&
			slices.Contains(broker.LogDirs, d.State.Meta.DirectoryID) {
			n++
		}
	}
	return broker != nil && len(broker.LogDirs) > 0 && n >= len(broker.LogDirs)
}

// allGiven reports whether all log directories that the broker has registered are among those given.
func (b *Start) allGiven(given map[format.UUID]*DirStart) bool {
	broker := b.image.Broker(*b.node)
	return broker != nil && len(broker.LogDirs) > 0 && !slices.ContainsFunc(broker.LogDirs, func(id format.UUID) bool {
		return given[id] == nil
	})
}

// witness is a checkpoint of the directory, or of any where it is not known, that lists the partition; lists reports
// whether there is one that would list it.
func (b *Start) witness(tp state.TopicPartition, dir *DirStart) (file string, lists bool) {
	for _, d := range b.Dirs {
		if dir != nil && d != dir {
			continue
		}
		for _, kind := range state.CheckpointKinds {
			c := d.State.Checkpoint(kind)
			if c == nil {
				continue
			}
			if _, ok := c.Entry(tp); ok {
				return c.File.Display, true
			}
			lists = lists || c.Err == nil && kind == format.KindReplicationOffsetCheckpoint
		}
	}
	return "", lists
}

// checkRoom takes a log directory offline in which something else has the name of a log that has to be made.
func (b *Start) checkRoom() {
	for _, a := range b.Absent() {
		if a.Dir == nil {
			continue
		}
		const says = "; the partition's directory cannot be made"
		for _, f := range a.Dir.Dir.Files {
			if f.Name.Raw == a.Name() {
				a.Dir.offline(f.Display, "it is a file"+says)
			}
		}
		if slices.Contains(a.Dir.Dir.Links, a.Name()) {
			a.Dir.offline(a.Dir.Dir.Display+"/"+a.Name(), logdir.ErrDangling.Error()+says)
		}
	}
}

// finishMoves is recoverAbandonedFutureLogs: of a partition that was moved to another log directory, and by the
// metadata has come there, the copy takes the place of what was there before.
func (b *Start) finishMoves(seen map[string]*PartitionStart) {
	if b.image == nil || b.node == nil {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(seen)) {
		f := seen[name]
		current := seen[f.Partition.PartitionDir.String()]
		if f.Partition.Suffix != "future" || current == nil {
			continue
		}
		switch {
		case !b.placedIn(f.Partition):
			b.Notes = append(b.Notes, fmt.Sprintf("%s is being moved to another log directory: after the start the copy there, "+
				"up to offset %d of %d, goes on, and takes the place of this one, which is deleted", current.Partition.Display,
				f.LogEnd, current.LogEnd))
		case current.Partition.Parent == f.Partition.Parent:
			b.stop(f.Partition.Display, "the partition was moved here, and the name that the directory is to get is taken")
		default:
			current.Replaced = f
			if last := current.LogEnd - 1; last >= f.LogEnd {
				current.Lost.Ranges = append(current.Lost.Ranges, LostRange{First: f.LogEnd, Last: last})
			}
		}
	}
}

// placedIn reports whether the metadata place a partition in the log directory that it lies in.
func (b *Start) placedIn(p *logdir.Partition) bool {
	id, has, err := topicID(p)
	t := b.image.Topics()[id]
	if err != nil || !has || t == nil || t.Partitions[p.PartitionDir.Partition] == nil {
		return false
	}
	placed := t.Partitions[p.PartitionDir.Partition]
	at := slices.Index(placed.Replicas, *b.node)
	return slices.ContainsFunc(b.Dirs, func(d *DirStart) bool {
		return d.Dir == p.Parent && !d.isOffline() && d.State.Meta.HasDirectoryID && at >= 0 &&
			at < len(placed.Directories) && placed.Directories[at] == d.State.Meta.DirectoryID
	})
}
