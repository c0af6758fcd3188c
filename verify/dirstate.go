package verify

import (
	"errors"
	"path/filepath"
	"slices"

	"kseg/format"
	"kseg/logdir"
	"kseg/state"
)

// dirState is what the state files of a log directory say. They are read once, since every partition is held against
// them.
type dirState struct {
	*state.Dir
	// withID and withEpochs are partitions in use that have a partition.metadata and a leader-epoch-checkpoint.
	withID, withEpochs int
	// spokenFor are lines of checkpoints that are named in a finding about a partition, spelled how many were looked for.
	spokenFor map[lineOf]bool
	spelled   int
	ranks     map[string]int // the places of its files among each other; nil: not asked for yet
}

// lineOf is a line of a file.
type lineOf struct {
	file string
	pos  int64
}

// dirState reads the state files of a log directory, the first time that it is asked for it.
func (d *driver) dirState(dir *logdir.LogDir) *dirState {
	if s, ok := d.dirStates[dir]; ok {
		return s
	}
	s := &dirState{Dir: d.starts.known.Of(dir)}
	d.dirStates[dir] = s
	for _, p := range dir.Partitions {
		if p.Suffix != "" {
			continue
		}
		if p.File(format.KindPartitionMetadata) != nil {
			s.withID++
		}
		if p.File(format.KindLeaderEpochCheckpoint) != nil {
			s.withEpochs++
		}
	}
	return s
}

// takeAgain reads the state files of a log directory that was looked at again later.
func (d *driver) takeAgain(dir, later *logdir.LogDir) {
	before := d.dirState(dir)
	d.dirStates[later] = &dirState{Dir: state.ReadDir(later), withID: before.withID, withEpochs: before.withEpochs}
}

// checkpointed reports whether there is an offset checkpoint.
func (s *dirState) checkpointed() bool {
	return slices.ContainsFunc(state.CheckpointKinds, func(kind format.Kind) bool { return s.Checkpoint(kind) != nil })
}

// topicPartition is how checkpoints name the partition.
func (p *partition) topicPartition() state.TopicPartition {
	return state.TopicPartition{Topic: p.dir.Topic, Partition: p.dir.Partition}
}

// entry is what a checkpoint of the partition's log directory says of it.
func (p *partition) entry(kind format.Kind) (*state.Checkpoint, format.OffsetCheckpointEntry, bool) {
	if p.dir.Parent == nil || !p.inUse() {
		return nil, format.OffsetCheckpointEntry{}, false
	}
	c := p.driver.dirState(p.dir.Parent).Checkpoint(kind)
	if c == nil || c.Err != nil {
		return nil, format.OffsetCheckpointEntry{}, false
	}
	e, ok := c.Entry(p.topicPartition())
	return c, e, ok
}

// parentFile is a file of the partition's log directory, as a place's file: relative to the operand.
func (p *partition) parentFile(f *logdir.File) string {
	if p.dir.Parent.Listed {
		return f.Rel
	}
	return filepath.Join("..", f.Name.Raw)
}

// file is the file of that kind, if it is to be looked at.
func (p *partition) file(kind format.Kind) *logdir.File {
	for _, f := range p.dir.Files {
		if f.Kind() == kind && !f.Name.Leftover() {
			return f
		}
	}
	return nil
}

// sibling is the name that a file of the partition has, whether it is there or not.
func (p *partition) path(name string) string {
	if p.dir.Rel == "." {
		return name
	}
	return filepath.Join(p.dir.Rel, name)
}

// whole reports whether all of the partition is known: nothing was left out by the user, and the directory could be
// listed.
func (p *partition) whole() bool {
	return p.alone == nil && p.dir.ListErr == nil && len(p.dir.Files) == len(p.dir.All())
}

// readSmall reads a state file; false if it could not be read from the disk, which is noted.
func (p *partition) readSmall(f *logdir.File) ([]byte, bool) {
	raw, err := f.ReadSmall()
	if err != nil {
		p.unread(err)
	}
	return raw, err == nil
}

// start is the base offset of the first segment, false if that is not known.
func (p *partition) start() (int64, bool) {
	if !p.whole() || len(p.segments) == 0 {
		return 0, false
	}
	return p.segments[0].base, true
}

// end is the offset after the last batch, false if that is not known: something could not be read, or was left out.
func (p *partition) end() (int64, bool) {
	if !p.whole() {
		return 0, false
	}
	for _, s := range p.segments {
		if s.unread {
			return 0, false
		}
	}
	if n := len(p.segments); n > 0 {
		return p.segments[n-1].nextOffset, true
	}
	return 0, true
}

// batches is the number of sound batches.
func (p *partition) batches() int64 {
	n := int64(0)
	for _, s := range p.segments {
		n += s.batches
	}
	return n
}

// knownCluster is what the operands know of their cluster, read when it is first asked for.
func (d *driver) knownCluster() *state.Cluster {
	if d.cluster == nil {
		d.cluster = state.OpenCluster(d.set, nil)
	}
	return d.cluster
}

// settings is what the metadata log among the operands, or beside them, says of the cluster. Its Image is nil if there
// is no such log, or only an incomplete one.
func (d *driver) settings(dir *logdir.LogDir) *state.Settings {
	s := d.knownCluster().Settings(dir)
	if s.Image != nil && len(s.Image.Problems) > 0 {
		s.Image = nil
	}
	return s
}

// stateError makes a finding of what a broker cannot read in a text file.
func stateError(code, file string, raw []byte, err error, effect string) Finding {
	if effect != "" {
		effect = "; " + effect
	}
	f := Finding{Code: code, Place: inFile(file, -1, -1), Message: format.ReasonOf(err) + effect, logPos: -1}
	var at *format.Error
	if len(raw) > 0 && zeros(raw) {
		f.Pos, f.Len = 0, int64(len(raw))
		f.Message = plural(f.Len, "zero byte", "zero bytes") + " and nothing else" + effect
		f.Evidence = []Evidence{{"content", "text", plural(f.Len, "zero byte", "zero bytes")}}
	} else if errors.As(err, &at) {
		f.Pos = min(max(at.Pos, 0), int64(len(raw)))
		f.Len = lineLength(raw, f.Pos)
		f.Evidence = []Evidence{{at.What, at.Want, at.Got}}
	}
	return f
}

// lineLength is the number of bytes from pos to the end of its line.
func lineLength(raw []byte, pos int64) int64 {
	n := int64(0)
	for pos+n < int64(len(raw)) && raw[pos+n] != '\n' && raw[pos+n] != '\r' {
		n++
	}
	return n
}
