package broker

import (
	"slices"

	"kseg/format"
	"kseg/logdir"
	"kseg/state"
)

// Brokers puts log directories of one broker together: those whose meta.properties do not say that they are of
// different nodes, or copies of each other, with the same directory id and partitions. One without such a file goes to
// the first, unless it has no state file at all, and so is no log directory but a folder of partitions; the metadata
// log goes to the first that has none. Those that a server.properties lists are of one broker; server may be nil. The
// metadata may know better to which broker a directory belongs.
func Brokers(dirs []*logdir.LogDir, known *state.Dirs, cluster *state.Cluster, server *Server) [][]*logdir.LogDir {
	var all []*brokerDirs
	for _, dir := range dirs {
		d := known.Of(dir)
		owner := cluster.Owner(dir, &d.Meta)
		listed := server != nil && server.names(dir)
		at := slices.IndexFunc(all, func(b *brokerDirs) bool {
			return listed && b.listed || formatted(d) && b.takes(dir, &d.Meta, owner) || !formatted(d) && b.lacksMetadata(dir)
		})
		if at < 0 {
			at = len(all)
			all = append(all, &brokerDirs{ids: map[format.UUID]*logdir.LogDir{}, folder: !formatted(d)})
		}
		all[at].listed = all[at].listed || listed
		all[at].add(dir, &d.Meta, owner)
	}
	out := make([][]*logdir.LogDir, len(all))
	for i, b := range all {
		out[i] = b.dirs
	}
	return out
}

type brokerDirs struct {
	dirs    []*logdir.LogDir
	stated  []int32 // the nodes by meta.properties
	owners  []int32 // and by the metadata
	guessed bool    // an owner is not that of a directory id
	cluster string
	ids     map[format.UUID]*logdir.LogDir
	folder  bool // one of partitions, with no state file
	listed  bool // by server.properties
}

func (b *brokerDirs) takes(dir *logdir.LogDir, m *format.MetaProperties, owner *state.Owner) bool {
	switch {
	case b.folder, !m.HasNodeID && m.ClusterID != "" && m.ClusterID != b.cluster:
		return false
	case owner != nil && len(b.owners) > 0:
		if !slices.Contains(b.owners, owner.Node) {
			return false
		}
	case m.HasNodeID && len(b.stated) > 0 && !slices.Contains(b.stated, m.NodeID):
		return false
	}
	if (b.guessed || owner != nil && !owner.Registered) &&
		slices.ContainsFunc(b.dirs, func(d *logdir.LogDir) bool { return share(d, dir) }) {
		return false
	}
	return !m.HasDirectoryID || b.ids[m.DirectoryID] == nil || !share(b.ids[m.DirectoryID], dir)
}

// lacksMetadata reports whether a directory that has nothing but the metadata log is what the others lack.
func (b *brokerDirs) lacksMetadata(dir *logdir.LogDir) bool {
	return !b.folder && slices.Equal(dir.Subdirs, []string{state.MetadataDir}) &&
		!slices.ContainsFunc(b.dirs, func(d *logdir.LogDir) bool {
			return !d.Listed || slices.Contains(d.Subdirs, state.MetadataDir)
		})
}

// share reports whether a partition is in both, as in copies of one log directory.
func share(a, b *logdir.LogDir) bool {
	in := map[string]bool{}
	for _, name := range a.Subdirs {
		in[name] = true
	}
	return slices.ContainsFunc(b.Subdirs, func(name string) bool { return in[name] })
}

func (b *brokerDirs) add(dir *logdir.LogDir, m *format.MetaProperties, owner *state.Owner) {
	b.dirs = append(b.dirs, dir)
	if m.HasNodeID {
		b.stated = append(b.stated, m.NodeID)
	}
	if owner != nil {
		b.owners, b.guessed = append(b.owners, owner.Node), b.guessed || !owner.Registered
	}
	if m.ClusterID != "" {
		b.cluster = m.ClusterID
	}
	if m.HasDirectoryID {
		b.ids[m.DirectoryID] = dir
	}
}
