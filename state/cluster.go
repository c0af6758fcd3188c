package state

import (
	"path/filepath"
	"slices"
	"sync"

	"kseg/format"
	"kseg/logdir"
	"kseg/schema"
)

// Cluster is what the log directories among the operands know of their cluster.
type Cluster struct {
	// Problems are what could not be read, or was incomplete: settings may be others than those given.
	Problems []logdir.Problem

	// Dirs are the small files of the log directories.
	Dirs Dirs

	logs   []metadataLog
	remote func() *RemoteLog
	mu     sync.Mutex
	told   map[*logdir.LogDir]bool // whose meta.properties was asked for
}

// metadataLog is one __cluster_metadata-0, in the log directory at path.
type metadataLog struct {
	path  string
	image *Image
	meta  format.MetaProperties
}

// MetadataLog is a __cluster_metadata-0 in a log directory.
type MetadataLog struct {
	Partition *logdir.Partition
	Dir       *logdir.LogDir // nil if it was given alone and has no state files beside it
}

// MetadataLogs finds the metadata logs in the log directories of set, also those that the set's filters leave out, and
// those beside partitions and files given alone; each once. gentle may be nil.
func MetadataLogs(set *logdir.Set, gentle *logdir.Gentle) []MetadataLog {
	var logs []MetadataLog
	seen := map[string]bool{}
	open := func(path string, dir *logdir.LogDir) {
		if seen[filepath.Clean(path)] {
			return
		}
		seen[filepath.Clean(path)] = true
		set, err := logdir.Open([]string{path}, logdir.Options{Gentle: gentle})
		if err == nil && len(set.Operands) == 1 && set.Operands[0].Partition != nil {
			logs = append(logs, MetadataLog{set.Operands[0].Partition, dir})
		}
	}
	inside := func(dir *logdir.LogDir) { open(filepath.Join(dir.Path, MetadataDir), dir) }
	for _, o := range set.Operands {
		switch {
		case o.LogDir != nil:
			if slices.Contains(o.LogDir.Subdirs, MetadataDir) {
				inside(o.LogDir)
			}
		case o.Partition != nil && o.Partition.IsClusterMetadata() && o.Partition.Parent == nil:
			open(o.Partition.Path, nil)
		case o.Partition != nil && o.Partition.Parent != nil:
			inside(o.Partition.Parent)
		case o.File != nil && o.Err == nil:
			if dir := o.File.Parent(); dir != nil { // asked once: it may be gone the next time
				inside(dir)
			}
		}
	}
	return logs
}

// OpenCluster reads the metadata logs that MetadataLogs finds. gentle may be nil.
func OpenCluster(set *logdir.Set, gentle *logdir.Gentle) *Cluster {
	c := &Cluster{told: map[*logdir.LogDir]bool{}, remote: sync.OnceValue(func() *RemoteLog {
		return ReadRemoteLog(set, gentle)
	})}
	for _, l := range MetadataLogs(set, gentle) {
		log := metadataLog{path: filepath.Dir(filepath.Clean(l.Partition.Path)), meta: c.metaProperties(l.Dir)}
		var err error
		if log.image, err = ReadImage(l.Partition); err != nil {
			c.Problems = append(c.Problems, logdir.Problem{Display: l.Partition.Display, Err: err})
			continue
		}
		for _, problem := range log.image.Problems {
			c.Problems = append(c.Problems, logdir.Problem{Display: l.Partition.Display, Err: problem})
		}
		c.logs = append(c.logs, log)
	}
	return c
}

// TopicIDs are the ids that topics whose name matches have, or had, by all records of the metadata logs that
// MetadataLogs finds and of the metadata files among the operands. gentle may be nil. What cannot be read is passed
// over.
func TopicIDs(set *logdir.Set, gentle *logdir.Gentle, match func(name string) bool) map[format.UUID]bool {
	var files []*logdir.File
	for _, l := range MetadataLogs(set, gentle) {
		files = append(files, l.Partition.All()...)
	}
	for _, o := range set.Operands {
		if o.File != nil && o.Err == nil {
			files = append(files, o.File)
		}
	}
	ids, decoder := map[format.UUID]bool{}, schema.NewDecoder()
	for _, f := range files {
		if f.Kind() != format.KindLog && f.Kind() != format.KindCheckpoint {
			continue
		}
		r := logReader{records: format.NewRecordReader(format.MostBatch, nil)}
		r.read([]*logdir.File{f}, func(b *format.Batch, rec *format.Record) {
			if b.Control() {
				return
			}
			if v := decoder.Decode(schema.Metadata, rec.Key, rec.Value).Value; v.Name == "TopicRecord" &&
				match(v.Get("name").Text()) {
				ids[v.Get("topicId").UUID()] = true
			}
		})
	}
	return ids
}

// Owner is the node that a log directory belongs to by the metadata, whatever its meta.properties says. Registered: it
// is the broker that has registered the directory's id.
type Owner struct {
	Node       int32
	Registered bool
}

// Owner finds it in any metadata that were found; nil if they do not tell. Where no broker has registered the
// directory, and the cluster has no node of the id in meta.properties, it is the only node on which all its partitions
// are placed.
func (c *Cluster) Owner(dir *logdir.LogDir, m *format.MetaProperties) *Owner {
	for _, log := range c.logs {
		for _, t := range log.image.Things(BrokerThing) {
			if b, is := t.(*Broker); is && m.HasDirectoryID && slices.Contains(b.LogDirs, m.DirectoryID) {
				return &Owner{b.ID, true}
			}
		}
	}
	for _, log := range c.logs {
		nodes := log.image.Nodes()
		if !m.HasNodeID || m.ClusterID == "" || log.meta.ClusterID != m.ClusterID || slices.Contains(nodes, m.NodeID) ||
			log.image.Voters() == nil {
			continue
		}
		for _, name := range dir.Subdirs {
			p, _ := format.ParsePartitionDir(name)
			if t := log.image.Topic(p.Topic); p.Suffix == "" && t != nil && t.Partitions[p.Partition] != nil {
				nodes = slices.DeleteFunc(nodes, func(id int32) bool {
					return !slices.Contains(t.Partitions[p.Partition].Replicas, id)
				})
			}
		}
		if len(nodes) == 1 && len(dir.Subdirs) > 0 {
			return &Owner{nodes[0], false}
		}
	}
	return nil
}

// RemoteLog is what the operands say of copies in remote storage. It is read when it is first asked for.
func (c *Cluster) RemoteLog() *RemoteLog { return c.remote() }

// metaProperties are those of a log directory; the zero value if there are none. What is wrong with them is told once.
func (c *Cluster) metaProperties(dir *logdir.LogDir) format.MetaProperties {
	if dir == nil {
		return format.MetaProperties{}
	}
	d := c.Dirs.Of(dir)
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.told[dir] {
		c.told[dir] = true
		c.Problems = append(c.Problems, d.Problems(format.KindMetaProperties)...)
	}
	return d.Meta
}

// ProblemsOf are Problems, those of the offset checkpoints and meta.properties in the operands' log directories
// included.
func (c *Cluster) ProblemsOf(set *logdir.Set) []logdir.Problem {
	told := map[*logdir.LogDir]bool{nil: true}
	var checkpoints []logdir.Problem
	for _, o := range set.Operands {
		dir := o.LogDir
		switch {
		case o.Partition != nil:
			dir = o.Partition.Parent
		case o.File != nil && o.Err == nil:
			dir = o.File.Parent()
		}
		if !told[dir] {
			told[dir] = true
			c.metaProperties(dir)
			checkpoints = append(checkpoints, c.Dirs.Of(dir).Problems(CheckpointKinds...)...)
		}
	}
	return append(checkpoints, c.Problems...)
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
