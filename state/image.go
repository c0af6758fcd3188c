// Package state folds logs of changes to what holds at their end.
//
// The cluster's metadata is such a log (KIP-500): __cluster_metadata-0 holds a record for every topic, partition and
// setting that was created, changed or removed, and snapshots (N-E.checkpoint) of what all records below offset N amount
// to. ReadImage folds the newest complete snapshot and the records behind it into an Image; Settings answers from it what
// a topic's setting is worth for a broker, and who set it.
package state

import (
	"kseg/format"
	"kseg/schema"
)

// ResourceType says what a config is set for (Kafka's ConfigResource.Type).
type ResourceType int8

// The resources whose configs bear on log directories.
const (
	TopicResource  ResourceType = 2
	BrokerResource ResourceType = 4
)

// Resource is what a config is set for: a topic by its name, a broker by its id in decimal, all brokers by "".
type Resource struct {
	Type ResourceType
	Name string
}

// Topic is a topic of the cluster.
type Topic struct {
	Name       string
	ID         format.UUID
	Partitions map[int32]*Partition
}

// Partition says where the replicas of a partition are.
type Partition struct {
	Replicas []int32 // broker ids
	// Directories are the directory.id of the log directory of each replica, in the same order; nil before Kafka 3.7.
	Directories []format.UUID
	Leader      int32 // broker id; -1: none
}

// Image is what a metadata log amounts to (org.apache.kafka.image.MetadataImage, in the parts that log directories depend on).
type Image struct {
	// SnapshotOffset is the end (exclusive) of the snapshot it began with, 0 if there was none; EndOffset is the offset behind
	// the last record that was folded in.
	SnapshotOffset int64
	EndOffset      int64
	// Problems say what could not be read or is missing; the image may lack what was there.
	Problems []error

	topics  map[format.UUID]*Topic
	names   map[string]format.UUID
	configs map[Resource]map[string]string
	// pending are the changes of a transaction that has begun (KIP-868): they count when it ends, or not at all.
	pending  []func()
	inChange bool
}

func newImage() *Image {
	return &Image{
		topics:  map[format.UUID]*Topic{},
		names:   map[string]format.UUID{},
		configs: map[Resource]map[string]string{},
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

// Config is a setting of a resource as it was set, or false if it was not set or its setting was removed.
func (im *Image) Config(r Resource, key string) (string, bool) {
	value, ok := im.configs[r][key]
	return value, ok
}

// Configs are all settings of a resource. The map must not be changed.
func (im *Image) Configs(r Resource) map[string]string { return im.configs[r] }

// Api keys of the records that are folded in, and of the three that frame a transaction.
const (
	topicRecord            = 2
	partitionRecord        = 3
	configRecord           = 4
	partitionChangeRecord  = 5
	removeTopicRecord      = 9
	beginTransactionRecord = 23
	endTransactionRecord   = 24
	abortTransactionRecord = 25
)

// fold applies one record, or keeps it until its transaction ends. The record's bytes may go away afterwards.
func (im *Image) fold(h schema.Half) {
	switch h.Type {
	case beginTransactionRecord:
		im.pending, im.inChange = nil, true
		return
	case endTransactionRecord:
		for _, change := range im.pending {
			change()
		}
		im.pending, im.inChange = nil, false
		return
	case abortTransactionRecord:
		im.pending, im.inChange = nil, false
		return
	}
	change := im.change(h)
	switch {
	case change == nil:
	case im.inChange:
		im.pending = append(im.pending, change)
	default:
		change()
	}
}

// change copies what a record says out of its bytes; nil if the image does not hold such things.
func (im *Image) change(h schema.Half) func() {
	switch h.Type {
	case topicRecord:
		t := &Topic{Name: h.Get("name").Text(), ID: h.Get("topicId").UUID(), Partitions: map[int32]*Partition{}}
		return func() { im.topics[t.ID], im.names[t.Name] = t, t.ID }
	case removeTopicRecord:
		id := format.UUID(h.Get("topicId").UUID())
		return func() { im.removeTopic(id) }
	case partitionRecord:
		p := &Partition{Replicas: h.Get("replicas").Int32s(), Directories: uuids(h.Get("directories")), Leader: int32(h.Get("leader").Int())}
		id, number := format.UUID(h.Get("topicId").UUID()), int32(h.Get("partitionId").Int())
		return func() {
			if t := im.topics[id]; t != nil {
				t.Partitions[number] = p
			}
		}
	case partitionChangeRecord:
		return im.partitionChange(h)
	case configRecord:
		r := Resource{ResourceType(h.Get("resourceType").Int()), h.Get("resourceName").Text()}
		key, value := h.Get("name").Text(), h.Get("value")
		if value.IsNull() {
			return func() { delete(im.configs[r], key) }
		}
		text := value.Text()
		return func() {
			if im.configs[r] == nil {
				im.configs[r] = map[string]string{}
			}
			im.configs[r][key] = text
		}
	}
	return nil
}

// noLeaderChange is the leader in a change that leaves it as it is.
const noLeaderChange = -2

func (im *Image) partitionChange(h schema.Half) func() {
	id, number := format.UUID(h.Get("topicId").UUID()), int32(h.Get("partitionId").Int())
	replicas, directories := h.Get("replicas").Int32s(), uuids(h.Get("directories"))
	leader := int32(h.Get("leader").Int())
	return func() {
		t := im.topics[id]
		if t == nil || t.Partitions[number] == nil {
			return
		}
		p := t.Partitions[number]
		if replicas != nil {
			p.Replicas = replicas
		}
		if directories != nil {
			p.Directories = directories
		}
		if leader != noLeaderChange {
			p.Leader = leader
		}
	}
}

func (im *Image) removeTopic(id format.UUID) {
	t := im.topics[id]
	if t == nil {
		return
	}
	delete(im.topics, id)
	if im.names[t.Name] == id {
		delete(im.names, t.Name)
		delete(im.configs, Resource{TopicResource, t.Name})
	}
}

func uuids(v schema.Value) []format.UUID {
	if !v.Present() || v.IsNull() {
		return nil
	}
	list := []format.UUID{}
	for _, e := range v.Elements() {
		list = append(list, e.UUID())
	}
	return list
}
