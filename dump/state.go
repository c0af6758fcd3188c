package dump

import (
	"bytes"
	"errors"
	"strings"

	"kseg/format"
	"kseg/logdir"
	"kseg/render"
)

// stateFile prints one of the small text files. What is wrong with one is said, but is verify's to judge.
func (d *dumper) stateFile(f *logdir.File) error {
	show := d.stateForm(f.Kind())
	if show == nil {
		return d.ignore(f)
	}
	if err := d.title(f); err != nil {
		return err
	}
	raw, err := f.ReadSmall()
	if err != nil {
		return err
	}
	if err := show(f, raw); err != nil {
		var stop *stopError
		if errors.As(err, &stop) {
			return err
		}
		d.say(f, render.Escaped(err.Error()))
	}
	return nil
}

// stateForm is the function that prints a kind of state file, nil for others. Its error is one of the file's content,
// or a stopError.
func (d *dumper) stateForm(kind format.Kind) func(*logdir.File, []byte) error {
	switch kind {
	case format.KindLeaderEpochCheckpoint:
		return d.epochs
	case format.KindRecoveryPointCheckpoint, format.KindLogStartOffsetCheckpoint, format.KindReplicationOffsetCheckpoint,
		format.KindCleanerOffsetCheckpoint:
		return d.offsets
	case format.KindPartitionMetadata:
		return d.partitionMetadata
	case format.KindMetaProperties:
		return d.metaProperties
	case format.KindCleanShutdown:
		return d.cleanShutdown
	case format.KindQuorumState:
		return d.quorumState
	}
	return nil
}

func (d *dumper) epochs(f *logdir.File, raw []byte) error {
	c, bad := format.DecodeLeaderEpochs(raw)
	out := d.entries(f, "epoch_entry")
	for _, e := range c.Entries {
		if err := out.int("epoch", "epoch", int64(e.Epoch)).int("startOffset", "start_offset",
			e.StartOffset).end(); err != nil {
			return err
		}
	}
	return closing(out, bad)
}

// closing writes what is buffered; the content's fault comes second to a failed write.
func closing(out *entries, bad error) error {
	if err := out.close(); err != nil {
		return err
	}
	return bad
}

func (d *dumper) offsets(f *logdir.File, raw []byte) error {
	c, bad := format.DecodeOffsetCheckpoint(raw)
	out := d.entries(f, checkpointEntry)
	for _, e := range c.Entries {
		out.str("topic", "topic", e.Topic).int("partition", "partition", int64(e.Partition))
		if err := out.int("offset", "offset", e.Offset).end(); err != nil {
			return err
		}
	}
	return closing(out, bad)
}

func (d *dumper) partitionMetadata(f *logdir.File, raw []byte) error {
	m, err := format.DecodePartitionMetadata(raw)
	if err != nil {
		return err
	}
	out := d.entries(f, "properties")
	if err := out.int("version", "version", int64(m.Version)).str("topicId", "topic_id",
		m.TopicID.String()).end(); err != nil {
		return err
	}
	return out.close()
}

func (d *dumper) metaProperties(f *logdir.File, raw []byte) error {
	m, bad := format.DecodeMetaProperties(raw)
	out := d.entries(f, "properties")
	for _, p := range m.Properties {
		out.str(p.Key, snake(p.Key), p.Value)
	}
	if err := out.end(); err != nil {
		return err
	}
	return closing(out, bad)
}

// snake makes a JSON name of a property's key.
func snake(key string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return '_'
	}, strings.ToLower(key))
}

func (d *dumper) cleanShutdown(f *logdir.File, raw []byte) error {
	m, bad := format.DecodeCleanShutdown(raw)
	out := d.entries(f, "properties")
	if err := out.int("version", "version", int64(m.Version)).int("brokerEpoch", "broker_epoch",
		m.BrokerEpoch).end(); err != nil {
		return err
	}
	return closing(out, bad)
}

func (d *dumper) quorumState(f *logdir.File, raw []byte) error {
	q, bad := format.DecodeQuorumState(raw)
	if bad != nil {
		return bad
	}
	out := d.entries(f, "properties")
	out.int("dataVersion", "data_version", int64(q.DataVersion)).int("leaderId", "leader_id", int64(q.LeaderID))
	out.int("leaderEpoch", "leader_epoch", int64(q.LeaderEpoch)).int("votedId", "voted_id", int64(q.VotedID))
	if q.DataVersion > 0 {
		out.str("votedDirectoryId", "voted_directory_id", q.VotedDirectoryID.String())
	} else {
		out.str("clusterId", "cluster_id", q.ClusterID).int("appliedOffset", "applied_offset", q.AppliedOffset)
		out.str("currentVoters", "current_voters", voters(q.Voters))
	}
	if err := out.end(); err != nil {
		return err
	}
	return out.close()
}

func voters(ids []int32) string {
	var b bytes.Buffer
	for i, id := range ids {
		if i > 0 {
			b.WriteByte(',')
		}
		b.Write(appendInt(nil, int64(id)))
	}
	return b.String()
}
