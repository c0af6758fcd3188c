package metadata

import (
	"cmp"
	"fmt"
	"slices"

	"kseg/format"
	"kseg/logdir"
	"kseg/render"
	"kseg/state"
)

// Misplaced is a partition that is on disk and not where the image has it, or the reverse.
type Misplaced struct {
	Partition string
	LogDir    string
	Unsure    bool   // records were lost that may have placed it
	What      string // "not_in_image", "other_topic_id", "other_broker", "other_directory", "not_on_disk"
	Message   string
}

// Place compares the log directories of set with an image, as of its log's end. Directories of another cluster, and
// those that are about to be deleted, set aside or moved, are left out.
func Place(set *logdir.Set, im *state.Image, clusterID string) (all []Misplaced, problems []logdir.Problem) {
	var dirs state.Dirs
	here := map[int32][]*state.Dir{}
	for _, dir := range set.LogDirs() {
		d := dirs.Of(dir)
		if !d.Meta.HasNodeID || clusterID != "" && d.Meta.ClusterID != "" && clusterID != d.Meta.ClusterID {
			continue
		}
		here[d.Meta.NodeID] = append(here[d.Meta.NodeID], d)
		for _, p := range dir.Partitions {
			if !p.Named || p.Suffix != "" || p.IsClusterMetadata() {
				continue
			}
			listing, gone := p.List()
			problems = append(problems, listing...)
			if gone {
				continue
			}
			var m Misplaced
			err := p.Steady(func() (err error) {
				m, err = onDisk(p, d, im)
				return err
			})
			if err != nil {
				problems = append(problems, logdir.Problem{Display: p.Display, Err: err})
			}
			if m.What != "" {
				m.Partition, m.LogDir = p.Name, dir.Display
				all = append(all, m)
			}
		}
	}
	for node, list := range here {
		all = append(all, missing(list, im, node)...)
	}
	for i := range all {
		all[i].Unsure = len(im.Lost) > 0
	}
	slices.SortFunc(all, func(a, b Misplaced) int {
		return cmp.Or(cmp.Compare(a.What, b.What), cmp.Compare(a.LogDir, b.LogDir), cmp.Compare(a.Partition, b.Partition))
	})
	return all, problems
}

// onDisk judges a partition's directory.
func onDisk(p *logdir.Partition, d *state.Dir, im *state.Image) (m Misplaced, err error) {
	id, known, err := topicID(p)
	if err != nil {
		return m, err
	}
	t := im.Topic(p.Topic)
	switch {
	case t == nil && known && im.Topics()[id] == nil, t == nil && !known:
		return Misplaced{What: "not_in_image", Message: "the image has no such topic: a broker that starts renames it to " +
			"-stray"}, nil
	case t == nil:
		return Misplaced{What: "not_in_image", Message: "the image has a topic of this id under another name, " +
			render.Escaped(im.Topics()[id].Name)}, nil
	case known && id != t.ID:
		return Misplaced{What: "other_topic_id", Message: fmt.Sprintf("it belongs to topic id %s, the image has %s under "+
			"this name: a broker that starts renames it to -stray", id, t.ID)}, nil
	}
	part := t.Partitions[p.PartitionDir.Partition]
	if part == nil {
		return Misplaced{What: "not_in_image", Message: "the image has the topic, but no such partition of it"}, nil
	}
	at := slices.Index(part.Replicas, d.Meta.NodeID)
	switch {
	case at < 0:
		return Misplaced{What: "other_broker", Message: fmt.Sprintf("the image places it on %s, not on broker %d",
			brokers(part.Replicas), d.Meta.NodeID)}, nil
	case at < len(part.Directories) && !part.Directories[at].Reserved() && d.Meta.HasDirectoryID &&
		part.Directories[at] != d.Meta.DirectoryID:
		return Misplaced{What: "other_directory", Message: fmt.Sprintf("the image places it in directory %s, this one is %s",
			part.Directories[at], d.Meta.DirectoryID)}, nil
	}
	return m, nil
}

func brokers(ids []int32) string {
	text := "broker"
	if len(ids) != 1 {
		text = "brokers"
	}
	return text + " " + numbers(ids)
}

func topicID(p *logdir.Partition) (id format.UUID, known bool, err error) {
	f := p.File(format.KindPartitionMetadata)
	if f == nil {
		return id, false, nil
	}
	raw, err := f.ReadSmall()
	if err != nil {
		return id, false, err
	}
	meta, err := format.DecodePartitionMetadata(raw)
	if err != nil {
		return id, false, fmt.Errorf("%s: %w", f.Display, err)
	}
	return meta.TopicID, meta.TopicID != format.UUID{}, nil
}

// missing are the partitions that the image places in one of the given directories of a broker, and that none of them
// has. A partition without a directory in the image is missing only if all the broker's directories are given.
func missing(dirs []*state.Dir, im *state.Image, node int32) []Misplaced {
	byID := map[format.UUID]*state.Dir{}
	onDisk := map[string]bool{}
	for _, d := range dirs {
		if d.Meta.HasDirectoryID {
			byID[d.Meta.DirectoryID] = d
		}
		for _, name := range d.LogDir.Subdirs {
			if dir, ok := format.ParsePartitionDir(name); ok && (dir.Suffix == "" || dir.Suffix == "future") {
				onDisk[dir.String()] = true
			}
		}
	}
	complete := false
	if b := im.Broker(node); b != nil && len(b.LogDirs) > 0 {
		complete = !slices.ContainsFunc(b.LogDirs, func(id format.UUID) bool { return byID[id] == nil })
	}
	var all []Misplaced
	for r := range im.Replicas(node) {
		d := byID[r.Directory]
		name := r.Partition.Title()
		if onDisk[name] || d == nil && !(complete && r.Directory.Reserved()) {
			continue
		}
		m := Misplaced{Partition: name, What: "not_on_disk", LogDir: dirs[0].LogDir.Display,
			Message: fmt.Sprintf("the image places it on broker %d, and it is in none of the directories", node)}
		if d != nil {
			m.LogDir, m.Message = d.LogDir.Display, "the image places it here, and there is no such directory"
		}
		all = append(all, m)
	}
	return all
}
