package broker

import (
	"fmt"
	"slices"

	"kseg/format"
	"kseg/logdir"
	"kseg/state"
)

// strayReason is why a broker sets a partition aside when it has loaded it (BrokerMetadataPublisher,
// LogManager.isStrayReplica), or "". The metadata are those that are left after the start.
func strayReason(p *logdir.Partition, id format.UUID, hasID bool, image *state.Image, node int32) string {
	if p.Suffix == "delete" || p.Suffix == "stray" {
		return ""
	}
	if !hasID {
		return "it has no partition.metadata, by which a broker knows the topic"
	}
	t := image.Topics()[id]
	if t == nil || t.Partitions[p.PartitionDir.Partition] == nil {
		return fmt.Sprintf("the metadata know no partition %d of a topic with the id %s", p.PartitionDir.Partition, id)
	}
	if replicas := t.Partitions[p.PartitionDir.Partition].Replicas; !slices.Contains(replicas, node) {
		return fmt.Sprintf("the metadata place it on brokers %v, and not on %d", replicas, node)
	}
	return ""
}

// topicID is what partition.metadata says, false if there is none.
func topicID(p *logdir.Partition) (id format.UUID, has bool, err error) {
	f := p.File(format.KindPartitionMetadata)
	if f == nil {
		return id, false, nil
	}
	raw, err := f.ReadSmall()
	if err != nil {
		return id, false, &unreadable{err}
	}
	m, err := format.DecodePartitionMetadata(raw)
	return m.TopicID, err == nil, nil //nolint:nilerr // what a broker cannot read fails the load before
}
