package broker

import (
	"fmt"
	"slices"

	"kseg/format"
	"kseg/logdir"
	"kseg/state"
)

// readQuorumState finds the voters. A node does not start with a file that it cannot read.
func (b *Start) readQuorumState(p *logdir.Partition) {
	const name = "quorum-state"
	if slices.Contains(p.Subdirs, name) {
		b.stop(p.Display+"/"+name, "it is a directory")
	}
	f := p.File(format.KindQuorumState)
	if f == nil {
		return
	}
	raw, err := f.ReadSmall()
	if err != nil {
		b.Unread = append(b.Unread, logdir.Problem{Display: f.Display, Err: err})
		return
	}
	q, err := format.DecodeQuorumState(raw)
	if err != nil {
		b.stop(f.Display, err.Error())
	}
	b.Voters = len(q.Voters)
}

// metadataTopicID is Uuid.METADATA_TOPIC_ID.
var metadataTopicID = format.UUID{15: 1}

// forEver is what comes of a controller without a quorum that it can be part of.
const forEver = ": the node waits for its quorum for ever, and the broker never finishes starting"

// checkVoters is what a controller makes of the voters: they are those that the metadata log records (KIP-853), or else
// those of controller.quorum.voters.
func (b *Start) checkVoters(d *DirStart) {
	s, set, meta := b.opts.Server, b.image.VoterSet, &d.State.Meta
	if s != nil && !slices.Contains(s.Roles, "controller") || !meta.HasNodeID {
		return
	}
	me := state.Voter{ID: meta.NodeID, Directory: meta.DirectoryID}
	others := slices.ContainsFunc(slices.Concat(b.image.Voters(), b.image.Controllers()),
		func(id int32) bool { return id != me.ID })
	switch file := b.Metadata.Partition.Display; {
	case others, slices.Contains(set, me):
	case len(set) > 0:
		b.stop(file, fmt.Sprintf("the quorum's only voter is node %d in the log directory %s, which is not the "+
			"directory.id here", me.ID, set[0].Directory)+forEver)
	case s == nil || len(s.Voters) > 0:
	case s.Alone || len(b.image.Controllers()) > 0:
		b.stop(file, "neither a record nor server.properties tells the quorum's voters"+forEver)
	default:
		b.Unplaced = "neither a record nor server.properties tells the quorum's voters: the node asks other controllers; " +
			"if it is the only one, it waits for ever, and the broker does not start"
	}
}
