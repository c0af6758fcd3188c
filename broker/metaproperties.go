package broker

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"

	"kseg/format"
	"kseg/logdir"
	"kseg/state"
)

// Reason is why a broker does not start, or why a log directory goes offline. Text is a clause that says what is wrong.
type Reason struct {
	File string // as the user would name it
	Text string
}

// kraft reports whether a log directory is, or was, of a broker that runs with KRaft: without any state file it is a
// copy of partitions, and without a sign of KRaft it is of an older broker.
func (d *DirStart) kraft() bool {
	return d.hasMetadata() || d.State.Meta.Version > 0 || d.withID
}

// formatted reports whether there is any file that a broker keeps in a log directory itself.
func formatted(d *state.Dir) bool {
	return d.LogDir.File(format.KindMetaProperties) != nil || d.Marker != nil ||
		slices.ContainsFunc(state.CheckpointKinds, func(kind format.Kind) bool { return d.LogDir.File(kind) != nil })
}

// checkProperties is what KafkaRaftServer.initializeLogDirs and MetaPropertiesEnsemble.verify refuse to start with.
func (b *Start) checkProperties() {
	kraft, readable := false, 0
	for _, d := range b.Dirs {
		kraft = kraft || d.kraft()
		if d.State.MetaRaw != nil && d.State.MetaErr == nil {
			readable++
		}
	}
	if !kraft {
		return // what an older broker makes of it is not modelled
	}
	for _, d := range b.Dirs {
		if formatted(d.State) || len(b.Dirs) > 1 && d.hasMetadata() {
			b.checkDirProperties(d, readable > 0)
		}
	}
	b.compareProperties()
}

// StopsAt reports whether a file, as the user would name it, keeps the broker from starting.
func (b *Start) StopsAt(file string) bool {
	return slices.ContainsFunc(b.Stops, func(r Reason) bool { return r.File == file })
}

const unformatted = "there is no such file; a broker does not start with a log directory that kafka-storage.sh has " +
	"not formatted"

// empty says that an empty directory is one of the broker's log directories, as where a disk is not mounted.
func (b *Start) empty(dir string) {
	if slices.ContainsFunc(b.Dirs, (*DirStart).kraft) {
		b.stop(dir+"/"+format.KindMetaProperties.Info().Name, unformatted+"; the directory is empty: is its disk mounted?")
	}
}

func (b *Start) checkDirProperties(d *DirStart, others bool) {
	name := format.KindMetaProperties.Info().Name
	file := d.Dir.Display + "/" + name
	m := &d.State.Meta
	switch {
	case len(d.State.Problems(format.KindMetaProperties)) > 0 && d.State.MetaRaw == nil:
		return // it could not be read here, which is said elsewhere
	case slices.Contains(d.Dir.Subdirs, name):
		b.unreadable(d, file, "it is a directory", others)
	case slices.Contains(d.Dir.Links, name) && leadsBack(filepath.Join(d.Dir.Path, name)):
		b.unreadable(d, file, "a link that leads back to itself", others)
	case d.State.MetaRaw == nil:
		b.stop(file, unformatted)
	case d.State.MetaErr != nil:
		b.unreadable(d, file, d.State.MetaErr.Error(), others)
	case !m.HasNodeID:
		b.stop(file, "it has no node.id")
	case m.ClusterID == "":
		b.stop(file, "it has no cluster.id")
	case b.opts.Server.node() != nil && *b.opts.Server.node() != m.NodeID:
		b.stop(file, fmt.Sprintf("node.id is %d, and %d in server.properties", m.NodeID, *b.opts.Server.node()))
	case m.HasDirectoryID && ReservedID(m.DirectoryID):
		b.stop(file, "directory.id is one that Kafka keeps for itself")
	}
}

func leadsBack(link string) bool {
	_, ends := logdir.LinkEnd(link)
	return !ends
}

// unreadable is what a meta.properties that cannot be read does: the directory is not used, unless it is that of the
// metadata log, or there is no other.
func (b *Start) unreadable(d *DirStart, file, text string, others bool) {
	s := b.opts.Server
	named := s != nil && s.MetadataDir != "" && logdir.SamePlace(s.MetadataDir, d.Dir.Path)
	if !others || d.hasMetadata() || named {
		b.stop(file, text)
		return
	}
	d.offline(file, text)
	d.Unused = true
}

// ReservedID reports whether Kafka never gives the id to a directory (DirectoryId.reserved): the first hundred numbers.
func ReservedID(id format.UUID) bool {
	for _, b := range id[:15] {
		if b != 0 {
			return false
		}
	}
	return id[15] < 100
}

// compareProperties holds the directories against each other.
func (b *Start) compareProperties() {
	ids := map[format.UUID]*DirStart{}
	for _, d := range b.Dirs {
		m := &d.State.Meta
		if !d.hasProperties() || !m.HasDirectoryID {
			continue
		}
		if other := ids[m.DirectoryID]; other != nil {
			b.stop(d.propertiesFile(), "directory.id is that of "+other.Dir.Display+" too")
		}
		ids[m.DirectoryID] = d
	}
	if b.opts.Server.node() == nil {
		b.compareProperty("node.id", func(m *format.MetaProperties) (string, bool) {
			return strconv.Itoa(int(m.NodeID)), m.HasNodeID
		})
	}
	b.compareProperty("cluster.id", func(m *format.MetaProperties) (string, bool) {
		return m.ClusterID, m.ClusterID != ""
	})
}

// compareProperty names the first directory that has another value than most have.
func (b *Start) compareProperty(key string, value func(m *format.MetaProperties) (string, bool)) {
	var dirs []*DirStart
	counts := map[string]int{}
	for _, d := range b.Dirs {
		if v, ok := value(&d.State.Meta); ok && d.hasProperties() {
			dirs = append(dirs, d)
			counts[v]++
		}
	}
	if len(counts) < 2 {
		return
	}
	of := func(d *DirStart) string { v, _ := value(&d.State.Meta); return v }
	usual := slices.MaxFunc(dirs, func(x, y *DirStart) int { return cmp.Compare(counts[of(x)], counts[of(y)]) })
	odd := dirs[slices.IndexFunc(dirs, func(d *DirStart) bool { return of(d) != of(usual) })]
	b.stop(odd.propertiesFile(), fmt.Sprintf("%s is %s, and %s in %s", key, of(odd), of(usual), usual.Dir.Display))
}

func (d *DirStart) hasProperties() bool { return d.State.MetaRaw != nil && d.State.MetaErr == nil }

func (d *DirStart) propertiesFile() string {
	return d.Dir.Display + "/" + format.KindMetaProperties.Info().Name
}

// loads reports whether the partitions in the directory are looked at.
func (d *DirStart) loads() bool { return !d.Unused && !d.NoLogs }

// LooksAt reports whether a start looks at a partition of the log directory at all. LogManager passes over everything
// of the metadata topic; the node itself takes the one log.
func (d *DirStart) LooksAt(p *logdir.Partition) bool {
	if p.IsClusterMetadata() {
		return p.PartitionDir.String() == state.MetadataDir && p.Suffix == ""
	}
	return !d.NoLogs
}

// MisnamedDir reports whether a broker does not start with a directory of that name among its partitions.
func MisnamedDir(name string) bool {
	_, ok := format.ParsePartitionDir(name)
	return !ok && !format.SkippedDir(name) && name != markerName
}

// markerName is that of the clean-shutdown marker: what is there is deleted, and may be an empty directory.
const markerName = ".kafka_cleanshutdown"

// hasMetadata reports whether the metadata log lies in the directory.
func (d *DirStart) hasMetadata() bool {
	return slices.Contains(d.Dir.Subdirs, state.MetadataDir)
}

// MetadataOnly reports whether the metadata log is all that lies in the directory.
func (d *DirStart) MetadataOnly() bool { return len(d.Dir.Subdirs) == 1 && d.hasMetadata() }

// checkNames is what keeps LogManager from loading anything: a directory that is no partition's.
func (b *Start) checkNames(metadata *DirStart) {
	for _, d := range b.Dirs {
		for _, name := range d.Dir.Subdirs {
			if d.loads() && MisnamedDir(name) {
				b.stop(d.Dir.Display+"/"+name, "the name is not that of a partition, TOPIC-NUMBER")
			}
		}
		if metadata != nil && d != metadata && d.hasMetadata() {
			b.stop(d.Dir.Display+"/"+state.MetadataDir, "the metadata log is in "+metadata.Dir.Display+" too")
		}
	}
}

// Effect is what a broker makes of an offset checkpoint that it cannot read.
type Effect int

// The effects.
const (
	PassedOver Effect = iota // it forgets what is in it, or does not read it at all
	TakesOffline
	ServesNone
	KeepsFromStarting
)

// EffectOf is the effect of a checkpoint in a log directory that is served: an IOException takes the directory offline,
// whichever file it is. Others make a broker forget what is in it, or, if it is that of the high watermarks, refuse the
// partitions. What does not fit into memory ends the loading, but not the log cleaner's broker.
func EffectOf(kind format.Kind, throws format.Exception) Effect {
	switch {
	case throws == format.IOException:
		return TakesOffline
	case throws == format.OutOfMemoryError && ofLoading(kind):
		return KeepsFromStarting
	}
	return otherwise[kind]
}

// otherwise is what follows where a checkpoint that cannot be read does not take the directory offline.
var otherwise = map[format.Kind]Effect{format.KindReplicationOffsetCheckpoint: ServesNone}

// ofLoading reports whether a checkpoint is read before the partitions are.
func ofLoading(kind format.Kind) bool {
	return kind == format.KindRecoveryPointCheckpoint || kind == format.KindLogStartOffsetCheckpoint
}

// Effect is that of one of the log directory's checkpoints, if it cannot be read.
func (d *DirStart) Effect(kind format.Kind) Effect { return d.effects[kind] }

func (d *DirStart) checkCheckpoints() {
	d.effects = map[format.Kind]Effect{}
	for _, kind := range state.CheckpointKinds {
		file, throws, err := d.checkpointError(kind)
		if err == nil || kind == format.KindReplicationOffsetCheckpoint && !d.serves() {
			continue
		}
		d.effects[kind] = EffectOf(kind, throws)
		switch d.effects[kind] {
		case TakesOffline:
			d.offline(file, err.Error())
			d.Early = d.Early || ofLoading(kind)
		case KeepsFromStarting:
			d.start.stop(file, err.Error())
		case ServesNone:
			d.Refused = append(d.Refused, Reason{file, err.Error()})
		}
	}
}

// checkpointError is what a broker throws that cannot read a checkpoint, and why; the error is nil if it can.
func (d *DirStart) checkpointError(kind format.Kind) (file string, throws format.Exception, err error) {
	name := kind.Info().Name
	if slices.Contains(d.Dir.Links, name) {
		return d.Dir.Display + "/" + name, format.IOException, logdir.ErrDangling
	}
	if c := d.State.Checkpoint(kind); c != nil && c.Err != nil {
		return c.File.Display, format.Throws(c.Err), c.Err
	}
	return "", throws, nil
}

// serves reports whether a broker serves a partition in the log directory, or makes one: it reads the high watermarks
// then. Where it is not known what the metadata place there, it serves what is there.
func (d *DirStart) serves() bool {
	b := d.start
	if !d.Dir.Listed || d.Dir.Narrowed {
		return true
	}
	b.aside = map[string]bool{}
	for _, other := range b.Dirs {
		for _, p := range other.Dir.Partitions {
			why, err := b.stray(p)
			b.aside[p.Path] = why != ""
			left := p.Suffix == "delete" || p.Suffix == "stray" || p.IsClusterMetadata()
			if other == d && !left && (why == "" || err != nil) {
				return true
			}
		}
	}
	// Where the metadata name no log directory, each is made in the one with the fewest logs, the first of those.
	unplaced := 0
	for _, a := range b.Absent() {
		switch a.Dir {
		case d:
			return true
		case nil:
			unplaced++
		}
	}
	for _, other := range b.Dirs[:slices.Index(b.Dirs, d)] {
		if !other.NoLogs && !other.hasLogs() && !other.MetadataOnly() {
			unplaced--
		}
	}
	return unplaced > 0
}

// checkpointed is what a checkpoint says of a partition as a broker takes it: 0 if the file cannot be read.
func (d *DirStart) checkpointed(kind format.Kind, p *logdir.Partition) int64 {
	c := d.State.Checkpoint(kind)
	if c == nil || c.Err != nil {
		return 0
	}
	e, _ := c.Entry(state.TopicPartition{Topic: p.Topic, Partition: p.PartitionDir.Partition})
	return e.Offset
}
