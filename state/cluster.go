package state

import (
	"path/filepath"
	"slices"

	"kseg/format"
	"kseg/logdir"
)

// Cluster is what the log directories among the operands know of their cluster.
type Cluster struct {
	// Problems are what could not be read, or was incomplete: settings may be others than those given.
	Problems []logdir.Problem

	// Dirs are the small files of the log directories.
	Dirs Dirs

	logs   []metadataLog
	told   map[*logdir.LogDir]bool // whose meta.properties was asked for
	gentle *logdir.Gentle
}

// metadataLog is one __cluster_metadata-0, in the log directory at path.
type metadataLog struct {
	path  string
	image *Image
	meta  format.MetaProperties
}

// OpenCluster reads the metadata logs in the log directories of set, also those that the set's filters leave out, and those
// beside partitions and files given alone. gentle may be nil.
func OpenCluster(set *logdir.Set, gentle *logdir.Gentle) *Cluster {
	c := &Cluster{gentle: gentle, told: map[*logdir.LogDir]bool{}}
	for _, o := range set.Operands {
		switch {
		case o.LogDir != nil:
			if slices.Contains(o.LogDir.Subdirs, MetadataDir) {
				c.open(o.LogDir)
			}
		case o.Partition != nil && o.Partition.IsClusterMetadata() && o.Partition.Parent == nil:
			c.read(filepath.Dir(o.Partition.Path), o.Partition.Path, nil)
		case o.Partition != nil && o.Partition.Parent != nil:
			c.open(o.Partition.Parent)
		case o.File != nil && o.Err == nil && o.File.Parent() != nil:
			c.open(o.File.Parent())
		}
	}
	return c
}

// open reads the metadata log of a log directory, unless that was done before or there is none.
func (c *Cluster) open(dir *logdir.LogDir) {
	c.read(dir.Path, filepath.Join(dir.Path, MetadataDir), dir)
}

func (c *Cluster) read(parent, path string, dir *logdir.LogDir) {
	if slices.ContainsFunc(c.logs, func(l metadataLog) bool { return l.path == filepath.Clean(parent) }) {
		return
	}
	set, err := logdir.Open([]string{path}, logdir.Options{Gentle: c.gentle})
	if err != nil || set.Operands[0].Partition == nil {
		return // no such directory, or none of a partition: there is nothing to know
	}
	log := metadataLog{path: filepath.Clean(parent), meta: c.metaProperties(dir)}
	if log.image, err = ReadImage(set.Operands[0].Partition); err != nil {
		c.Problems = append(c.Problems, logdir.Problem{Display: path, Err: err})
		return
	}
	for _, problem := range log.image.Problems {
		c.Problems = append(c.Problems, logdir.Problem{Display: path, Err: problem})
	}
	c.logs = append(c.logs, log)
}

// metaProperties are those of a log directory; the zero value if there are none. What is wrong with them is told once.
func (c *Cluster) metaProperties(dir *logdir.LogDir) format.MetaProperties {
	if dir == nil {
		return format.MetaProperties{}
	}
	d := c.Dirs.Of(dir)
	if !c.told[dir] {
		c.told[dir] = true
		c.Problems = append(c.Problems, d.Problems(format.KindMetaProperties)...)
	}
	return d.Meta
}

// Settings are those of the broker that dir (nil: unknown) belongs to: by the metadata log in dir itself, else by the
// newest among the operands that is not of another cluster. The node is that of the meta.properties in dir, or beside
// the metadata log.
func (c *Cluster) Settings(dir *logdir.LogDir) *Settings {
	meta := c.metaProperties(dir)
	var best *metadataLog
	for i := range c.logs {
		l := &c.logs[i]
		if dir != nil && l.path == filepath.Clean(dir.Path) {
			best = l
			break
		}
		foreign := meta.ClusterID != "" && l.meta.ClusterID != "" && meta.ClusterID != l.meta.ClusterID
		if !foreign && (best == nil || l.image.EndOffset > best.image.EndOffset) {
			best = l
		}
	}
	s := &Settings{NodeID: meta.NodeID, HasNodeID: meta.HasNodeID}
	if best != nil {
		s.Image = best.image
		if !s.HasNodeID {
			s.NodeID, s.HasNodeID = best.meta.NodeID, best.meta.HasNodeID
		}
	}
	return s
}
