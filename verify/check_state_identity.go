package verify

import (
	"fmt"
	"slices"

	"kseg/broker"
	"kseg/format"
	"kseg/logdir"
	"kseg/state"
)

// checkIdentity looks at the files that say what a directory is: partition.metadata, meta.properties and the
// clean-shutdown marker.
var checkIdentity = Check{
	Name:  "identity",
	Group: "state",
	Codes: []Code{
		{"partition-metadata-unreadable", Damage, "a partition.metadata that a broker cannot read"},
		{"partition-metadata-missing", Warning, "there is no partition.metadata"},
		{"topic-id-differs", Warning, "a partition has another topic id than its topic"},
		{"partition-not-assigned", Note, "the cluster's metadata does not place the partition here"},
		{"meta-properties-unreadable", Damage, "a meta.properties that a broker cannot read"},
		{"meta-properties-missing", Damage, "there is no meta.properties"},
		{"cluster-id-differs", Damage, "log directories of different clusters"},
		{"node-id-differs", Warning, "log directories of different brokers"},
		{"directory-id-twice", Damage, "two log directories with one directory id"},
		{"clean-shutdown-content", Note, "a clean-shutdown marker with unknown content"},
	},
	Partition: lookAtPartitionMetadata,
	LogDir:    lookAtMetaProperties,
	Set:       compareLogDirs,
}

func lookAtPartitionMetadata(p *partition) {
	if p.alone != nil {
		lookAtPropertiesAlone(p)
	}
	f := p.file(format.KindPartitionMetadata)
	if f == nil {
		lackOfMetadata(p)
		return
	}
	raw, ok := p.readSmall(f)
	if !ok {
		return
	}
	m, err := format.DecodePartitionMetadata(raw)
	if err != nil {
		p.found(nil, stateError("partition-metadata-unreadable", f.Rel, raw, err, ""))
		return
	}
	p.odd(f, raw, "version: 0\ntopic_id: "+m.TopicID.String())
	if !topicIDOfKafka(m.TopicID) {
		p.found(nil, oddPlace(f.Rel, m.TopicIDLine.Pos, m.TopicIDLine.Len, "the topic id is no random UUID, as Kafka "+
			"makes them"))
	}
	if p.whole() && p.inUse() && p.dir.Named {
		compareTopicID(p, f, &m)
	}
}

// lackOfMetadata reports that there is no partition.metadata. Brokers before 2.8 did not write one, and an empty log
// may get it later.
func lackOfMetadata(p *partition) {
	if !p.whole() || !p.inUse() || len(p.dir.All()) == 0 {
		return
	}
	f := Finding{Code: "partition-metadata-missing", Severity: Note,
		Place: inFile(p.path(format.KindPartitionMetadata.Info().Name), -1, -1), logPos: -1,
		Message: "there is no such file, which brokers before 2.8 did not write"}
	if parent := p.dir.Parent; parent != nil && p.batches() > 0 {
		if s := p.driver.dirState(parent); s.withID > 0 || s.Meta.Version > 0 {
			f.Severity = Warning
		}
	}
	p.found(nil, f)
}

// topicIDs are the topic ids of a topic's partitions.
type topicIDs struct {
	ids   []format.UUID // in the order of their first appearance
	files map[format.UUID][]string
}

// commonest is the id that most partitions have; of several the first.
func (t *topicIDs) commonest() format.UUID {
	return slices.MaxFunc(t.ids, func(a, b format.UUID) int { return len(t.files[a]) - len(t.files[b]) })
}

// topicKey is a topic of a cluster, by the cluster's id, "" if that is unknown.
type topicKey struct{ cluster, topic string }

// topicIDs reads the topic ids of all partitions in use, the first time that it is asked for them.
func (d *driver) topicIDs(key topicKey) *topicIDs {
	if d.topics == nil {
		d.topics = map[topicKey]*topicIDs{}
		for _, p := range d.set.Partitions() {
			f := p.File(format.KindPartitionMetadata)
			if f == nil || p.Suffix != "" || !p.Named {
				continue
			}
			raw, err := f.ReadSmall()
			if err != nil {
				continue // reported where the partition is looked at
			}
			m, err := format.DecodePartitionMetadata(raw)
			if err != nil {
				continue
			}
			key := topicKey{d.clusterOf(p.Parent), p.Topic}
			t := d.topics[key]
			if t == nil {
				t = &topicIDs{files: map[format.UUID][]string{}}
				d.topics[key] = t
			}
			if t.files[m.TopicID] == nil {
				t.ids = append(t.ids, m.TopicID)
			}
			t.files[m.TopicID] = append(t.files[m.TopicID], f.Rel)
		}
	}
	return d.topics[key]
}

func (d *driver) clusterOf(dir *logdir.LogDir) string {
	if dir == nil {
		return ""
	}
	return d.dirState(dir).Meta.ClusterID
}

// compareTopicID holds the topic id against the cluster's metadata, or else against the topic's other partitions.
func compareTopicID(p *partition, f *logdir.File, m *format.PartitionMetadata) {
	line := m.TopicIDLine
	finding := Finding{Code: "topic-id-differs", Place: inFile(f.Rel, line.Pos, line.Len), logPos: -1}
	settings := p.driver.settings(p.dir.Parent)
	if image := settings.Image; image != nil && !p.dir.IsClusterMetadata() {
		topic := image.Topic(p.dir.Topic)
		if topic != nil && topic.ID != m.TopicID {
			finding.Message = fmt.Sprintf("the topic id is %s, but the cluster's metadata has %s for this topic", m.TopicID,
				topic.ID)
			finding.Evidence = []Evidence{{"topic id", topic.ID.String(), m.TopicID.String()}}
			p.found(nil, finding)
			return
		}
		lookAtAssignment(p, f)
		return
	}
	t := p.driver.topicIDs(topicKey{p.driver.clusterOf(p.dir.Parent), p.dir.Topic})
	if t == nil || t.commonest() == m.TopicID {
		return
	}
	others := t.files[t.commonest()]
	finding.Message = fmt.Sprintf("the topic id is %s, but other partitions of the topic have %s", m.TopicID,
		t.commonest())
	finding.Evidence = []Evidence{{"topic id", t.commonest().String(), m.TopicID.String()}}
	for _, other := range others[:min(len(others), maxRelated)] {
		finding.Related = append(finding.Related, inFile(other, -1, -1))
	}
	p.found(nil, finding)
}

// lookAtAssignment asks the cluster's metadata whether the partition belongs into this log directory. What is there in
// excess is normal: a topic may have been deleted, or a replica moved, while the broker was down.
func lookAtAssignment(p *partition, f *logdir.File) {
	settings := p.driver.settings(p.dir.Parent)
	topic, why := settings.Image.Topic(p.dir.Topic), ""
	switch {
	case topic == nil:
		why = "the cluster's metadata has no such topic"
	case topic.Partitions[p.dir.Partition] == nil:
		why = "the cluster's metadata has no such partition of the topic"
	case settings.HasNodeID:
		assigned := topic.Partitions[p.dir.Partition]
		i := slices.Index(assigned.Replicas, settings.NodeID)
		if i < 0 {
			why = fmt.Sprintf("by the cluster's metadata broker %d has no replica of it", settings.NodeID)
		} else if p.dir.Parent != nil && i < len(assigned.Directories) {
			meta := p.driver.dirState(p.dir.Parent).Meta
			if id := assigned.Directories[i]; meta.HasDirectoryID && !id.Reserved() && id != meta.DirectoryID {
				why = fmt.Sprintf("by the cluster's metadata it is in the log directory %s, and this one is %s", id,
					meta.DirectoryID)
			}
		}
	}
	if why != "" {
		p.found(nil, Finding{Code: "partition-not-assigned", Place: inFile(f.Rel, -1, -1), logPos: -1,
			Message: why})
	}
}

// lookAtPropertiesAlone looks at a meta.properties or a clean-shutdown marker that was given as a file.
func lookAtPropertiesAlone(p *partition) {
	kind := p.alone.Kind()
	if p.alone.Name.Leftover() || kind != format.KindMetaProperties && kind != format.KindCleanShutdown {
		return
	}
	raw, ok := p.readSmall(p.alone)
	if !ok {
		return
	}
	if kind == format.KindCleanShutdown {
		if f, odd := oddMarker(p.alone.Rel, raw); odd {
			p.found(nil, f)
		}
		return
	}
	m, err := format.DecodeMetaProperties(raw)
	if f, odd := lookAtProperties(p.alone.Rel, raw, &m, err, "a broker cannot read it"); odd {
		p.found(nil, f)
	}
}

// lookAtProperties judges a meta.properties by itself; effect is what a broker makes of one that it cannot read.
func lookAtProperties(file string, raw []byte, m *format.MetaProperties, err error, effect string) (Finding, bool) {
	if err != nil {
		return stateError("meta-properties-unreadable", file, raw, err, effect), true
	}
	return oddProperties(file, raw, m)
}

// oddMarker says whether a clean-shutdown marker has content that a broker does not understand.
func oddMarker(file string, raw []byte) (Finding, bool) {
	marker, err := format.DecodeCleanShutdown(raw)
	if err != nil {
		return stateError("clean-shutdown-content", file, raw, err, "that the file is there says that the broker stopped "+
			"cleanly; of which of its lives that was, a controller is not told"), true
	}
	if len(raw) == 0 {
		return Finding{}, false
	}
	return oddFile(file, raw, fmt.Sprintf(`{"version":0,"brokerEpoch":%d}`, marker.BrokerEpoch))
}

// lookAtMetaProperties looks at what a log directory says of itself.
func lookAtMetaProperties(l *logDir) {
	if l.dir.Narrowed {
		return
	}
	s := l.driver.dirState(l.dir)
	f := l.dir.File(format.KindMetaProperties)
	switch {
	case f == nil:
		lackOfProperties(l)
	case s.MetaRaw != nil:
		effect := "a broker does not start with it"
		if _, dir := l.driver.start(l.dir); dir != nil && dir.Unused {
			effect = "a broker starts without this log directory, as if it were offline"
		}
		finding, odd := lookAtProperties(f.Rel, s.MetaRaw, &s.Meta, s.MetaErr, effect)
		lack := s.lacks()
		if odd && lack == "" {
			l.found(finding)
		}
		if p, ok := s.Meta.Get("directory.id"); ok && s.Meta.HasDirectoryID && broker.ReservedID(s.Meta.DirectoryID) {
			l.found(Finding{Code: "meta-properties-unreadable", Place: inFile(f.Rel, p.Pos, p.Len), logPos: -1,
				Message:  "the directory id is one that Kafka keeps for itself; a broker does not start with it",
				Evidence: []Evidence{{"directory id", "none of the first hundred", s.Meta.DirectoryID.String()}}})
		}
		if lack != "" {
			if !odd {
				finding.Place = inFile(f.Rel, -1, -1)
			}
			l.found(Finding{Code: "meta-properties-unreadable", Place: finding.Place, logPos: -1,
				Message: fmt.Sprintf("it has no %s, without which no broker with KRaft starts; another log directory of the "+
					"broker, if there is one, has it", lack)})
		}
	}
	if f := l.dir.File(format.KindCleanShutdown); f != nil {
		raw, err := f.ReadSmall()
		if err != nil {
			l.driver.notRead(err)
		} else if finding, odd := oddMarker(f.Rel, raw); odd {
			l.found(finding)
		}
	}
}

// lacks is the property that a broker with KRaft needs and that is not in the meta.properties, "" if all is there, or
// the broker may be an older one.
func (s *dirState) lacks() string {
	if s.MetaErr != nil || s.withID == 0 && !slices.Contains(s.LogDir.Subdirs, state.MetadataDir) {
		return ""
	}
	switch {
	case !s.Meta.HasNodeID:
		return "node.id"
	case s.Meta.ClusterID == "":
		return "cluster.id"
	}
	return ""
}

// lackOfProperties reports that a log directory has no meta.properties. A folder with nothing but partitions is no log
// directory of a broker, but a copy of some of one.
func lackOfProperties(l *logDir) {
	s := l.driver.dirState(l.dir)
	if !s.checkpointed() && l.dir.File(format.KindCleanShutdown) == nil {
		if b, _ := l.driver.start(l.dir); b != nil && b.StopsAt(propertiesOf(l.dir)) {
			l.found(Finding{Code: "meta-properties-missing", Place: inFile(format.KindMetaProperties.Info().Name, -1, -1),
				logPos: -1,
				Message: "there is no such file, though the other log directories have one; a broker does not start with an " +
					"unformatted log directory"})
		}
		return
	}
	f := Finding{Code: "meta-properties-missing", Place: inFile(format.KindMetaProperties.Info().Name, -1, -1),
		logPos: -1,
		Message: "there is no such file, though there are a broker's checkpoints; brokers with KRaft do not start with an " +
			"unformatted log directory"}
	if s.withID == 0 {
		f.Severity = Warning // it may be of a time before KRaft
	}
	l.found(f)
}

// keptFromStarting reports whether the meta.properties of one of two log directories keeps a broker from starting.
func (o *operands) keptFromStarting(a, b *dirState) bool {
	start, _ := o.driver.start(b.LogDir)
	return start != nil && (start.StopsAt(propertiesOf(a.LogDir)) || start.StopsAt(propertiesOf(b.LogDir)))
}

func propertiesOf(dir *logdir.LogDir) string {
	return dir.Display + "/" + format.KindMetaProperties.Info().Name
}

// compareLogDirs holds the log directories of a run against each other: they should be of one broker.
func compareLogDirs(o *operands) {
	var known []*dirState
	of := map[[2]string]int{} // by cluster and node
	whose := func(s *dirState) [2]string { return [2]string{s.Meta.ClusterID, itoa(int64(s.Meta.NodeID))} }
	for _, l := range o.dirs {
		if l.dir == nil {
			continue
		}
		if s := o.driver.dirState(l.dir); s.MetaRaw != nil && s.MetaErr == nil {
			known = append(known, s)
			of[whose(s)]++
		}
	}
	// Whoever differs from most of the others is the one that is wrong.
	slices.SortStableFunc(known, func(a, b *dirState) int { return of[whose(b)] - of[whose(a)] })
	for i, s := range known {
		for _, other := range known[:i] {
			if comparePair(o, other, s) {
				break
			}
		}
	}
}

// comparePair compares two log directories, and reports whether they do not belong together.
func comparePair(o *operands, a, b *dirState) bool {
	f := Finding{Shown: b.LogDir.File(format.KindMetaProperties).Display, logPos: -1}
	at := func(key string) {
		p, _ := b.Meta.Get(key)
		f.Place = inFile(b.LogDir.File(format.KindMetaProperties).Rel, p.Pos, p.Len)
		f.Related = []Place{inFile(a.LogDir.File(format.KindMetaProperties).Display, -1, -1)}
	}
	sameNode := a.Meta.HasNodeID && b.Meta.HasNodeID && a.Meta.NodeID == b.Meta.NodeID
	switch {
	case a.Meta.HasDirectoryID && b.Meta.HasDirectoryID && a.Meta.DirectoryID == b.Meta.DirectoryID:
		at("directory.id")
		if f.Code = "directory-id-twice"; !o.keptFromStarting(a, b) {
			f.Severity = Warning // the one is a copy of the other, it seems
		}
		f.Message = fmt.Sprintf("the log directory %s has the directory id %s too; if both belong to one broker, it does "+
			"not start", a.LogDir.Display, a.Meta.DirectoryID)
	case a.Meta.ClusterID != b.Meta.ClusterID && a.Meta.ClusterID != "" && b.Meta.ClusterID != "":
		at("cluster.id")
		f.Code = "cluster-id-differs"
		if !sameNode {
			f.Severity = Warning // two brokers of two clusters, it seems
		}
		f.Message = fmt.Sprintf("the cluster id is %s, but in %s it is %s; if both belong to one broker, it does not start",
			b.Meta.ClusterID, a.LogDir.Display, a.Meta.ClusterID)
		f.Evidence = []Evidence{{"cluster id", a.Meta.ClusterID, b.Meta.ClusterID}}
	case a.Meta.HasNodeID && b.Meta.HasNodeID && !sameNode:
		at("node.id")
		if b.Meta.Version == 0 {
			at("broker.id")
		}
		f.Code = "node-id-differs"
		if o.keptFromStarting(a, b) {
			f.Severity = Damage
		}
		f.Message = fmt.Sprintf("the node id is %d, but in %s it is %d; if both belong to one broker, it does not start",
			b.Meta.NodeID, a.LogDir.Display, a.Meta.NodeID)
		f.Evidence = []Evidence{{"node id", itoa(int64(a.Meta.NodeID)), itoa(int64(b.Meta.NodeID))}}
	default:
		return false
	}
	o.found(f)
	return true
}
