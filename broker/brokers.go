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
// log goes to the first that has none. Those that a server.properties lists are of one broker; server may be nil. By
// its directory id the metadata may know better to which broker a directory belongs.
func Brokers(dirs []*logdir.LogDir, known *state.Dirs, cluster *state.Cluster, server *Server) [][]*logdir.LogDir {
	var all []*brokerDirs
	for _, dir := range dirs {
		d := known.Of(dir)
		m := d.Meta
		if node, ok := cluster.Owner(m.DirectoryID); ok && m.HasDirectoryID {
			m.NodeID, m.HasNodeID = node, true
		}
		listed := server != nil && server.names(dir)
		var home *brokerDirs
		for _, b := range all {
			if listed && b.listed || formatted(d) && b.takes(dir, &m) || !formatted(d) && b.lacksMetadata(dir) {
				home = b
				break
			}
		}
		if home == nil {
			home = &brokerDirs{ids: map[format.UUID]*logdir.LogDir{}, folder: !formatted(d)}
			all = append(all, home)
		}
		home.listed = home.listed || listed
		home.add(dir, &m)
	}
	out := make([][]*logdir.LogDir, len(all))
	for i, b := range all {
		out[i] = b.dirs
	}
	return out
}

type brokerDirs struct {
	dirs    []*logdir.LogDir
	node    *int32
	cluster string
	ids     map[format.UUID]*logdir.LogDir
	folder  bool // one of partitions, with no state file
	listed  bool // by server.properties
}

func (b *brokerDirs) takes(dir *logdir.LogDir, m *format.MetaProperties) bool {
	if b.folder || m.HasNodeID && b.node != nil && *b.node != m.NodeID || !m.HasNodeID && m.ClusterID != "" &&
		m.ClusterID != b.cluster {
		return false
	}
	return !m.HasDirectoryID || b.ids[m.DirectoryID] == nil || !share(b.ids[m.DirectoryID], dir)
}

// lacksMetadata reports whether a directory that has nothing but the metadata log is what the others lack.
func (b *brokerDirs) lacksMetadata(dir *logdir.LogDir) bool {
	return !b.folder && slices.Equal(dir.Subdirs, []string{state.MetadataDir}) &&
		!slices.ContainsFunc(b.dirs, func(d *logdir.LogDir) bool {
			return !d.Listed || slices.Contains(d.Subdirs,
				state.MetadataDir)
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

func (b *brokerDirs) add(dir *logdir.LogDir, m *format.MetaProperties) {
	b.dirs = append(b.dirs, dir)
	if m.HasNodeID {
		b.node = &m.NodeID
	}
	if m.ClusterID != "" {
		b.cluster = m.ClusterID
	}
	if m.HasDirectoryID {
		b.ids[m.DirectoryID] = dir
	}
}
