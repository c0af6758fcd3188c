package broker

import (
	"kseg/format"
	"kseg/logdir"
	"kseg/state"
)

// Brokers puts log directories of one broker together: those whose meta.properties do not say that they are of different nodes, or
// copies of each other. One without such a file goes to the first, unless it has no state file at all, and so is no log directory but a folder
// of partitions.
func Brokers(dirs []*logdir.LogDir, known *state.Dirs) [][]*logdir.LogDir {
	var all []*brokerDirs
	for _, dir := range dirs {
		d := known.Of(dir)
		m := &d.Meta
		var home *brokerDirs
		for _, b := range all {
			if formatted(d) && b.takes(m) {
				home = b
				break
			}
		}
		if home == nil {
			home = &brokerDirs{ids: map[format.UUID]bool{}, folder: !formatted(d)}
			all = append(all, home)
		}
		home.add(dir, m)
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
	ids     map[format.UUID]bool
	folder  bool // one of partitions, with no state file
}

func (b *brokerDirs) takes(m *format.MetaProperties) bool {
	if b.folder || m.HasNodeID && b.node != nil && *b.node != m.NodeID || !m.HasNodeID && m.ClusterID != "" && m.ClusterID != b.cluster {
		return false
	}
	return !m.HasDirectoryID || !b.ids[m.DirectoryID]
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
		b.ids[m.DirectoryID] = true
	}
}
