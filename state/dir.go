package state

import (
	"fmt"
	"sync"

	"kseg/format"
	"kseg/logdir"
)

// CheckpointKinds are the four offset checkpoints of a log directory.
var CheckpointKinds = []format.Kind{format.KindRecoveryPointCheckpoint, format.KindLogStartOffsetCheckpoint,
	format.KindReplicationOffsetCheckpoint, format.KindCleanerOffsetCheckpoint}

// TopicPartition is how checkpoints and records name a partition.
type TopicPartition struct {
	Topic     string
	Partition int32
}

// Checkpoint is one of the four offset checkpoints of a log directory.
type Checkpoint struct {
	File *logdir.File
	Raw  []byte
	// Content is what can be read of it. Err is what a broker's reader stumbles over (a *format.StateError), else nil.
	Content format.OffsetCheckpoint
	Err     error

	entries map[TopicPartition]format.OffsetCheckpointEntry
}

// NewCheckpoint decodes the content of a checkpoint's file.
func NewCheckpoint(f *logdir.File, raw []byte) *Checkpoint {
	c := &Checkpoint{File: f, Raw: raw}
	c.Content, c.Err = format.DecodeOffsetCheckpoint(raw)
	c.entries = make(map[TopicPartition]format.OffsetCheckpointEntry, len(c.Content.Entries))
	for _, e := range c.Content.Entries {
		c.entries[TopicPartition{e.Topic, e.Partition}] = e
	}
	return c
}

// Entry is the line about a partition that counts, the last of several. Lines that can be read are found also where Err
// is set, though a broker then knows none of them. A nil checkpoint has no lines.
func (c *Checkpoint) Entry(tp TopicPartition) (format.OffsetCheckpointEntry, bool) {
	if c == nil {
		return format.OffsetCheckpointEntry{}, false
	}
	e, ok := c.entries[tp]
	return e, ok
}

// Dir is what the small files of a log directory say, read once.
type Dir struct {
	LogDir *logdir.LogDir
	// Meta is the meta.properties: MetaRaw is nil if there is none, or it could not be read from the disk; MetaErr is what
	// a broker's reader stumbles over.
	Meta    format.MetaProperties
	MetaRaw []byte
	MetaErr error
	// Marker is the .kafka_cleanshutdown, nil if there is none. That it is there is all that a start asks for.
	Marker *logdir.File
	// Unread are the files that could not be read from the disk.
	Unread []logdir.Problem

	checkpoints map[format.Kind]*Checkpoint
}

// ReadDir reads the four offset checkpoints and meta.properties of a log directory, and looks for its marker.
func ReadDir(dir *logdir.LogDir) *Dir {
	d := &Dir{LogDir: dir, Marker: dir.File(format.KindCleanShutdown), checkpoints: map[format.Kind]*Checkpoint{}}
	for _, kind := range CheckpointKinds {
		if f := dir.File(kind); f != nil {
			if raw, ok := d.read(f); ok {
				d.checkpoints[kind] = NewCheckpoint(f, raw)
			}
		}
	}
	if f := dir.File(format.KindMetaProperties); f != nil {
		if raw, ok := d.read(f); ok {
			d.MetaRaw = raw
			d.Meta, d.MetaErr = format.DecodeMetaProperties(raw)
		}
	}
	return d
}

// read returns a file's bytes, never nil, or false if that failed, which is noted.
func (d *Dir) read(f *logdir.File) ([]byte, bool) {
	raw, err := f.ReadSmall()
	if err != nil {
		d.Unread = append(d.Unread, logdir.Problem{Display: f.Display, Err: err})
	}
	return raw, err == nil
}

// Checkpoint is the offset checkpoint of that kind, nil if there is none that can be read from the disk. A nil Dir has
// none.
func (d *Dir) Checkpoint(kind format.Kind) *Checkpoint {
	if d == nil {
		return nil
	}
	return d.checkpoints[kind]
}

// Cleans reports whether the log cleaner works on a partition, by its checkpoint or since the topic is one of those
// that are always compacted. d may be nil.
func (d *Dir) Cleans(p *logdir.Partition) bool {
	_, ok := d.Offset(format.KindCleanerOffsetCheckpoint, TopicPartition{p.Topic, p.PartitionDir.Partition})
	return ok || p.Topic == format.OffsetsTopic || p.Topic == format.TransactionsTopic
}

// Offset is what the checkpoint of that kind says of a partition, false if nothing.
func (d *Dir) Offset(kind format.Kind, tp TopicPartition) (int64, bool) {
	e, ok := d.Checkpoint(kind).Entry(tp)
	return e.Offset, ok
}

// Problems are sentences about those of the files that could not be read, from the disk or by a broker.
func (d *Dir) Problems(kinds ...format.Kind) []logdir.Problem {
	if d == nil {
		return nil
	}
	var problems []logdir.Problem
	for _, kind := range kinds {
		f := d.LogDir.File(kind)
		if f == nil {
			continue
		}
		for _, p := range d.Unread {
			if p.Display == f.Display {
				problems = append(problems, p)
			}
		}
		if c := d.checkpoints[kind]; c != nil && c.Err != nil {
			problems = append(problems, logdir.Problem{Display: f.Display,
				Err: fmt.Errorf("%s: %w; what can be read of it counts", f.Display, c.Err)})
		}
		if kind == format.KindMetaProperties && d.MetaErr != nil {
			problems = append(problems, logdir.Problem{Display: f.Display, Err: fmt.Errorf("%s: %w", f.Display, d.MetaErr)})
		}
	}
	return problems
}

// Dirs reads the small files of each log directory once, for all who ask. The zero value is ready; it is safe for
// concurrent use.
type Dirs struct {
	mu   sync.Mutex
	read map[*logdir.LogDir]*Dir
}

// Of is what the small files of a log directory say; nil for no log directory.
func (d *Dirs) Of(dir *logdir.LogDir) *Dir {
	if dir == nil {
		return nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	known := d.read[dir]
	if known == nil {
		if d.read == nil {
			d.read = map[*logdir.LogDir]*Dir{}
		}
		known = ReadDir(dir)
		d.read[dir] = known
	}
	return known
}

// Without is the directory as if the files that match had been removed, or cut to so many bytes.
func (d *Dir) Without(matches func(*logdir.File) bool, size *int64) *Dir {
	out := *d
	out.checkpoints = map[format.Kind]*Checkpoint{}
	for kind, c := range d.checkpoints {
		switch {
		case !matches(c.File):
			out.checkpoints[kind] = c
		case size != nil:
			out.checkpoints[kind] = NewCheckpoint(c.File, c.Raw[:min(int64(len(c.Raw)), *size)])
		}
	}
	if d.Marker != nil && matches(d.Marker) && size == nil {
		out.Marker = nil
	}
	if f := d.LogDir.File(format.KindMetaProperties); f != nil && d.MetaRaw != nil && matches(f) {
		out.MetaRaw, out.Meta, out.MetaErr = nil, format.MetaProperties{}, nil
		if size != nil {
			out.MetaRaw = d.MetaRaw[:min(int64(len(d.MetaRaw)), *size)]
			out.Meta, out.MetaErr = format.DecodeMetaProperties(out.MetaRaw)
		}
	}
	return &out
}
