package lookup

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"kseg/broker"
	"kseg/format"
	"kseg/logdir"
	"kseg/state"
)

// A Partition is what lookups are made in: the segments of one directory, or one segment that was given alone.
type Partition struct {
	Name     string // of the directory, "orders-0"; of the file, if only that is known
	Display  string // as a user would name it
	Topic    string // "" if the directory is not named as a partition's
	Segments []*logdir.Segment
	// LogStart and HighWatermark come from the checkpoints of the log directory; −1 where these say nothing.
	LogStart, HighWatermark int64
	// TopicInterval is the topic's own index.interval.bytes, −1 if it is not known.
	TopicInterval int64
	// Tiered: the topic's remote.storage.enable is set, so that what is below the first segment may be in remote storage.
	Tiered bool
	// Operand is true for what was named itself, and not found in a log directory.
	Operand bool

	// Gentle bounds the rate of reading; the files must have been opened with a logdir.Gentle.
	Gentle bool

	dir           *logdir.Partition // nil if a segment was given alone
	maxBatchBytes int64
	// stoppedCleanly: the broker has trimmed the last segment's indexes, and its next start takes all of their slots for
	// entries.
	stoppedCleanly bool
	// nextStart plays through the next start of the broker; nil if nothing is known of it. anew has the segments that it
	// recovers, in a partition as it is loaded.
	nextStart func() *broker.PartitionStart
	anew      map[int64]madeAnew
}

// Partitions are the partitions and single segments among the operands. What is neither a problem nor a segment, such
// as a checkpoint given as an operand, becomes a problem of its own.
func Partitions(set *logdir.Set, maxBatchBytes int64) ([]*Partition, []logdir.Problem) {
	var out []*Partition
	var problems []logdir.Problem
	for _, op := range set.Operands {
		switch {
		case op.Err != nil:
		case op.LogDir != nil:
			for _, p := range op.LogDir.Partitions {
				out = append(out, newPartition(p))
			}
		case op.Partition != nil:
			p := newPartition(op.Partition)
			p.Operand = true
			out = append(out, p)
		case op.File != nil:
			p, err := fromFile(op.File)
			if err != nil {
				problems = append(problems, logdir.Problem{Display: op.File.Display, Err: err})
			}
			if p == nil {
				continue
			}
			p.Operand = true
			out = append(out, p)
		}
	}
	var dirs state.Dirs
	told := map[*logdir.LogDir]bool{}
	for _, p := range out {
		p.maxBatchBytes = maxBatchBytes
		p.useCheckpoints(&dirs)
		if dir := p.LogDir(); !told[dir] {
			told[dir] = true
			problems = append(problems, dirs.Of(dir).Problems(format.KindLogStartOffsetCheckpoint,
				format.KindReplicationOffsetCheckpoint)...)
		}
	}
	return out, problems
}

func newPartition(p *logdir.Partition) *Partition {
	return &Partition{Name: p.Name, Display: p.Display, Topic: p.Topic, Segments: p.Segments, dir: p,
		LogStart: -1, HighWatermark: -1, TopicInterval: -1}
}

// Steady does something with the partition, again while files of it vanish; see logdir.Partition.Steady.
func (p *Partition) Steady(do func() error) error {
	if p.dir == nil {
		return do()
	}
	return p.dir.Steady(func() error {
		p.Segments = p.dir.Segments
		return do()
	})
}

// fromFile makes a partition of the segment that a file belongs to. Its directory is looked at too, since the index of
// the last segment is used in another way than that of a closed one. Where it cannot be listed there are an error and a
// partition.
func fromFile(f *logdir.File) (*Partition, error) {
	if !slices.Contains([]format.Kind{format.KindLog, format.KindOffsetIndex, format.KindTimeIndex}, f.Kind()) {
		return nil, fmt.Errorf("%s: %s; lookups are made in a partition directory or a .log file", f.Display,
			f.Kind().ATitle())
	}
	base, err := f.RequireBase()
	if err != nil {
		return nil, err
	}
	log := f.Sibling(format.KindLog)
	if f.Kind() == format.KindLog {
		log = f
	}
	if log == nil {
		return nil, fmt.Errorf("%s: there is no %s beside it, and an index without its log finds nothing", f.Display,
			f.Name.Sibling(format.KindLog))
	}
	s := &logdir.Segment{Base: base, Log: log, Index: f.Sibling(format.KindOffsetIndex),
		TimeIndex: f.Sibling(format.KindTimeIndex)}
	known, err := inDirectory(f, log, base)
	if known != nil {
		s.Partition, s.Prev, s.Next = known.Partition, known.Prev, known.Next
		p := newPartition(known.Partition)
		p.Display, p.Segments, p.dir = f.Display, []*logdir.Segment{s}, nil
		return p, err
	}
	p := &Partition{Name: f.Name.Raw, Display: f.Display, Segments: []*logdir.Segment{s}, LogStart: -1, HighWatermark: -1,
		TopicInterval: -1}
	if d, ok := f.Dir(); ok {
		p.Topic = d.Topic
	}
	return p, err
}

// inDirectory is the segment of a log among the others of its directory, or nil if a broker would not load it from
// there. The error says why the directory could not be listed.
func inDirectory(f, log *logdir.File, base int64) (*logdir.Segment, error) {
	set, err := logdir.Open([]string{filepath.Dir(f.Path)}, logdir.Options{Segments: []int64{base}})
	if err != nil {
		return nil, nil // no such segment, whose name is then none that a broker reads
	}
	for _, p := range set.Problems {
		var foreign *logdir.ForeignError
		if err == nil && !errors.As(p.Err, &foreign) {
			err = p.Err
		}
	}
	if len(set.Partitions()) != 1 {
		return nil, err
	}
	for _, s := range set.Partitions()[0].Segments {
		if s.Log.Name.Raw == log.Name.Raw && s.Base == base {
			return s, err
		}
	}
	return nil, err
}

// useCheckpoints sets what the checkpoints beside the partition say of it.
func (p *Partition) useCheckpoints(dirs *state.Dirs) {
	parent := p.LogDir()
	if parent == nil {
		return
	}
	dir, named := p.Segments[0].Log.Dir()
	if !named || dir.Suffix != "" {
		return
	}
	p.stoppedCleanly = dirs.Of(parent).Marker != nil && !dir.IsClusterMetadata()
	tp := state.TopicPartition{Topic: dir.Topic, Partition: dir.Partition}
	if start, ok := dirs.Of(parent).Offset(format.KindLogStartOffsetCheckpoint, tp); ok {
		p.LogStart = start
	}
	if watermark, ok := dirs.Of(parent).Offset(format.KindReplicationOffsetCheckpoint, tp); ok {
		p.HighWatermark = watermark
	}
}

// view maps the files of a segment and calls fn with it, unless ctx is done. Nothing of the segment may be kept.
func (p *Partition) view(ctx context.Context, s *logdir.Segment, fn func(*Segment) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return s.Log.View(func(log []byte) error {
		last := s.Next == nil && !p.stoppedCleanly
		if a, ok := p.anew[s.Base]; ok {
			return fn(NewSegment(s.Base, log[:min(a.size, int64(len(log)))], a.index, a.times, last, p.maxBatchBytes))
		}
		return logdir.ViewAll([]*logdir.File{s.Index, s.TimeIndex}, nil, func(b [][]byte) error {
			seg := NewSegment(s.Base, log, b[0], b[1], last, p.maxBatchBytes)
			seg.dataEnd = min(s.Log.DataEnd(), int64(len(log)))
			return fn(seg)
		})
	})
}

// LogDir is the log directory that the partition lies in, nil if that is not known.
func (p *Partition) LogDir() *logdir.LogDir {
	if len(p.Segments) == 0 {
		return nil
	}
	return p.Segments[0].Log.Parent()
}

// last is the partition's last segment if it is among those to look in, else nil.
func (p *Partition) last() *logdir.Segment {
	if len(p.Segments) == 0 {
		return nil
	}
	if s := p.Segments[len(p.Segments)-1]; s.Next == nil {
		return s
	}
	return nil
}

// A logEnd is the log end offset as it can be found in the last segment.
type logEnd struct {
	// loaded is what a broker takes for it after a clean start (LogSegment.readNextOffset): it reads on from the last
	// index entry, and takes the base offset of the segment if that leads nowhere. batches is the offset after the last
	// batch there is.
	loaded, batches int64
	err             error // what a broker would throw when it reads there
}

func (s *Segment) end() logEnd {
	lastEntry := s.Base
	if n := s.Index.Len(); n > 0 {
		lastEntry = s.Index.Entry(n - 1).Offset
	}
	out := logEnd{loaded: s.Base}
	scan := s.Translate(lastEntry)
	out.err = scan.Err
	if scan.Found {
		w := walk{seg: s, pos: scan.Hit.Position}
		for w.next() {
			out.loaded = w.hop.LastOffset + 1
		}
		if out.err = w.err; out.err == nil {
			out.batches = out.loaded
			return out
		}
	}
	out.batches = s.Survey().NextOffset
	return out
}
