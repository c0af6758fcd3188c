// Package state folds logs of changes to what holds at their end.
//
// The cluster's metadata is such a log (KIP-500): __cluster_metadata-0 holds a record for every topic, partition,
// broker and setting that was created, changed or removed, and snapshots (N-E.checkpoint) of what all records below
// offset N amount to. ReadImage folds the newest complete snapshot and the records after it into an Image, FoldImage
// those up to any offset; Settings answers from it what a topic's setting is worth for a broker, and who set it.
//
// Groups, transactions and the segments in remote storage are folded from the internal topics likewise (ReadRemoteLog,
// ReadCoordinators). Dir holds the small files of a log directory: checkpoints, meta.properties, the clean-shutdown
// marker.
package state

import (
	"cmp"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"

	"kseg/format"
	"kseg/logdir"
)

// Image is what a metadata log amounts to (org.apache.kafka.image.MetadataImage).
type Image struct {
	// SnapshotOffset is the end (exclusive) of the snapshot it began with, 0 if there was none; EndOffset is the offset
	// after the last record that was folded in, and EndMs the time of that record, if HasEndMs.
	SnapshotOffset int64
	EndOffset      int64
	EndMs          int64
	HasEndMs       bool
	// Snapshot is the name of the snapshot it began with, "" if there was none; From is its file.
	Snapshot string
	From     *logdir.File
	// Problems say what could not be read or is missing; the image may lack what was there.
	Problems []error
	// Lost are the offsets below EndOffset whose records could not be read, in order.
	Lost []Lost
	// Dangling is the first record about a partition of a topic that is not known, or about a partition that is not: a
	// node ends when it meets one. It is nil if there is none.
	Dangling *Origin
	// Newer counts records of types and versions that came after Kafka 4.4, which are left out.
	Newer int
	// VoterSet are the voters of a quorum that records them (KRaftVoters, KIP-853), nil if this one does not. Election are
	// those at the last election (LeaderChange), by which no node finds its quorum; nil if there is none.
	VoterSet []Voter
	Election []int32

	topics  map[format.UUID]*Topic
	removed map[format.UUID]bool // topics that a record removed
	names   map[string]format.UUID
	configs map[Resource]map[string]*Config
	things  map[thingKey]Thing
	// settled are the topics that had settings when the present delta began, leftovers the settings of topics that were
	// deleted since.
	settled   map[Resource]bool
	leftovers map[Resource]map[string]*Config
	// fromELR is set if the log was read from a snapshot that has the eligible leaders, or from its beginning.
	fromELR bool
	// pending are the changes of a transaction that has begun (KIP-868): they count when it ends, or not at all.
	pending  []func()
	inChange bool
	observe  func(Change) // nil: nobody asks
}

// Voter is a voter of a quorum that records them: a node, with the log directory of its metadata.
type Voter struct {
	ID        int32
	Directory format.UUID
}

// Voters are the ids of the quorum's voters, nil if no record tells.
func (im *Image) Voters() []int32 {
	if im.VoterSet == nil {
		return im.Election
	}
	var ids []int32
	for _, v := range im.VoterSet {
		ids = append(ids, v.ID)
	}
	return ids
}

// Controllers are the ids of the controllers that are registered, in order.
func (im *Image) Controllers() []int32 {
	var ids []int32
	for _, t := range im.Things(ControllerThing) {
		if c, ok := t.(*Controller); ok {
			ids = append(ids, c.ID)
		}
	}
	return ids
}

// Nodes are the ids of all brokers, controllers and voters that the metadata know, each once, in order.
func (im *Image) Nodes() []int32 {
	ids := slices.Concat(im.Controllers(), im.Voters())
	for _, t := range im.Things(BrokerThing) {
		if b, ok := t.(*Broker); ok {
			ids = append(ids, b.ID)
		}
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

// Empty reports whether no record is in the image.
func (im *Image) Empty() bool {
	return im.EndOffset == 0 && len(im.things) == 0 && im.Election == nil && im.VoterSet == nil
}

// Lost is a range of offsets whose records could not be read.
type Lost struct {
	First int64
	Last  int64 // inclusive; meaningless if Open
	Open  bool  // the range has no known end: nothing readable follows it
}

// LostText says which offsets were lost.
func LostText(lost []Lost) string {
	var parts []string
	for _, l := range lost {
		switch {
		case l.Open:
			parts = append(parts, fmt.Sprintf("from %d on", l.First))
		case l.First == l.Last:
			parts = append(parts, strconv.FormatInt(l.First, 10))
		default:
			parts = append(parts, fmt.Sprintf("%d–%d", l.First, l.Last))
		}
	}
	return strings.Join(parts, ", ")
}

// EmptyImage is what a metadata log with nothing in it amounts to.
func EmptyImage() *Image { return newImage() }

func newImage() *Image {
	return &Image{
		topics:  map[format.UUID]*Topic{},
		names:   map[string]format.UUID{},
		configs: map[Resource]map[string]*Config{},
		things:  map[thingKey]Thing{},
		removed: map[format.UUID]bool{}, leftovers: map[Resource]map[string]*Config{},
	}
}

// Topic is the topic of that name, or nil.
func (im *Image) Topic(name string) *Topic {
	id, ok := im.names[name]
	if !ok {
		return nil
	}
	return im.topics[id]
}

// Topics are all topics, by id.
func (im *Image) Topics() map[format.UUID]*Topic { return im.topics }

// Removed reports whether a record after the snapshot deleted the topic.
func (im *Image) Removed(id format.UUID) bool { return im.removed[id] }

// Config is a setting of a resource as it was set, or false if it was not set or its setting was removed.
func (im *Image) Config(r Resource, key string) (string, bool) {
	c, ok := im.configs[r][key]
	if !ok {
		return "", false
	}
	return c.Value, true
}

// Replica is a partition that the image places on a broker.
type Replica struct {
	Topic     *Topic
	Partition *Partition
	Directory format.UUID // the directory.id of the log directory it is in; the zero UUID where the metadata does not say
}

// Replicas goes through the partitions that the image places on a broker, in no order.
func (im *Image) Replicas(broker int32) iter.Seq[Replica] {
	return func(yield func(Replica) bool) {
		for _, t := range im.topics {
			for _, p := range t.Partitions {
				at := slices.Index(p.Replicas, broker)
				if at < 0 {
					continue
				}
				r := Replica{Topic: t, Partition: p}
				if at < len(p.Directories) {
					r.Directory = p.Directories[at]
				}
				if !yield(r) {
					return
				}
			}
		}
	}
}

// Things are all things of a kind, by their titles, numbers in them in the order of numbers.
func (im *Image) Things(kind ThingKind) []Thing {
	var list []Thing
	for key, t := range im.things {
		if key.kind == kind {
			list = append(list, t)
		}
	}
	slices.SortFunc(list, func(a, b Thing) int {
		return cmp.Or(compareNatural(a.Title(), b.Title()), cmp.Compare(a.key().id, b.key().id))
	})
	return list
}

// Broker is the registration of a broker, or nil.
func (im *Image) Broker(id int32) *Broker {
	b, _ := im.things[brokerKey(id)].(*Broker)
	return b
}

// Unsure reports whether records were lost that may have changed the thing after the last record that says all of it.
func (im *Image) Unsure(t Thing) bool {
	whole := t.from().whole
	for _, lost := range im.Lost {
		if lost.Open || whole.Snapshot != "" && lost.Last >= im.SnapshotOffset || whole.Snapshot == "" &&
			lost.Last > whole.Offset {
			return true
		}
	}
	return false
}

// Change is what one record did to one thing.
type Change struct {
	Origin Origin
	Kind   ThingKind
	Before Thing // nil: it was not there
	After  Thing // nil: it is gone
}

// Differences are what has to change in a to say what b says, by kind and title.
func Differences(a, b *Image) []Change {
	var list []Change
	for _, kind := range ThingKinds {
		for _, t := range a.Things(kind) {
			if other := b.things[t.key()]; !Same(t, other) {
				list = append(list, Change{Origin: t.Origin(), Kind: kind, Before: t, After: other})
			}
		}
		for _, t := range b.Things(kind) {
			if a.things[t.key()] == nil {
				list = append(list, Change{Origin: t.Origin(), Kind: kind, After: t})
			}
		}
	}
	return list
}

// Unexplained are the differences to a snapshot but for two that hang on when the node that wrote it had started:
// settings of topics that were deleted after the snapshot before, and the eligible leaders of partitions
// (PartitionRegistration.toRecord), which no snapshot has of a time without that feature.
func (im *Image) Unexplained(snapshot *Image) []Change {
	elr := im.fromELR && snapshot.hasELR()
	return slices.DeleteFunc(Differences(im, snapshot), func(d Change) bool {
		if before, ok := d.Before.(*Partition); ok && !elr {
			after, ok := d.After.(*Partition)
			if !ok {
				return false
			}
			a, b := *before, *after
			a.ELR, a.LastKnownELR, b.ELR, b.LastKnownELR = nil, nil, nil, nil
			return Same(&a, &b)
		}
		if before, ok := d.Before.(*Config); ok {
			return before.Leftover && d.After == nil
		}
		after, ok := d.After.(*Config)
		if !ok || d.Before != nil {
			return false
		}
		left := im.leftovers[after.Resource][after.Name]
		return left != nil && left.Value == after.Value
	})
}

// hasELR reports whether partitions have eligible leader replicas (KIP-966).
func (im *Image) hasELR() bool {
	f, ok := im.things[featureKey("eligible.leader.replicas.version")].(*Feature)
	return ok && f.Level > 0
}

// put makes t the thing of its key.
func (im *Image) put(at Origin, t Thing) { im.set(at, t.key(), t) }

// drop takes a thing out, if it is there.
func (im *Image) drop(at Origin, key thingKey) {
	if im.things[key] != nil {
		im.set(at, key, nil)
	}
}

func (im *Image) set(at Origin, key thingKey, t Thing) {
	before := im.things[key]
	if t == nil {
		delete(im.things, key)
	} else {
		im.things[key] = t
	}
	if im.observe != nil {
		im.observe(Change{Origin: at, Kind: key.kind, Before: before, After: t})
	}
}

// compareNatural compares texts as people sort them: runs of digits by their numbers.
func compareNatural(a, b string) int {
	for a != "" && b != "" {
		i, j := digits(a), digits(b)
		if i > 0 && j > 0 {
			if n := cmp.Or(cmp.Compare(i, j), cmp.Compare(a[:i], b[:j])); n != 0 {
				return n
			}
			a, b = a[i:], b[j:]
			continue
		}
		if a[0] != b[0] {
			return cmp.Compare(a[0], b[0])
		}
		a, b = a[1:], b[1:]
	}
	return cmp.Compare(len(a), len(b))
}

// digits is the length of the run of digits that s begins with.
func digits(s string) int {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return i
		}
	}
	return len(s)
}
