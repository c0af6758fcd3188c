package retention

import (
	"errors"
	"sync"

	"kseg/format"
	"kseg/logdir"
	"kseg/state"
)

// Options say by which settings and at what time partitions are judged.
type Options struct {
	NowMs     int64
	Watermark state.Watermark
	state.Given
	MaxBatchBytes int64 // bounds what a batch may decompress to
	// Progress is called with the bytes of logs that were read since its last call; it may be nil.
	Progress func(bytes int64)
}

// Report is what retention does to one partition.
type Report struct {
	Partition *logdir.Partition
	Segments  []*SegmentReport // all of them, by base offset, whatever the options narrow
	Settings  Settings
	Log       Log // what the rules saw
	// StartSource and WatermarkSource say where the two offsets come from: "checkpoint", "first segment"; "log end",
	// "checkpoint", "flag".
	StartSource, WatermarkSource string
	// Warnings are sentences about what makes the answer uncertain or surprising.
	Warnings []string

	// CompactedPerhaps: cleanup.policy is not known, and the log cleaner was here. No limit of size or time is applied
	// then.
	CompactedPerhaps bool

	kept map[*logdir.Segment]bool // those that the options keep
}

// shown reports whether the options ask for the segment.
func (r *Report) shown(s *SegmentReport) bool { return r.kept[s.Segment] }

// SegmentReport is what retention does to one segment.
type SegmentReport struct {
	*logdir.Segment
	Size      int64 // of the log as a broker counts it: without what recovery cuts off, or zeros that were preallocated
	LargestMs int64 // as a broker holds it
	Source    TimestampSource
	Verdict   Verdict
	// Blocking is the record whose timestamp keeps the segment, and with it older ones that come after it, if it does and
	// is known.
	Blocking *Record
	// Shields counts the segments after it that have expired and wait for it.
	Shields  int
	Warnings []string

	log       logFacts
	recovered bool
}

// Active reports whether it is the last segment, to which a broker appends.
func (s *SegmentReport) Active() bool { return s.Next == nil }

// Skipped says why retention is nothing that happens to this directory; "" if it does.
func Skipped(p *logdir.Partition) string {
	switch {
	case p.IsClusterMetadata():
		return "KRaft's own log is cut when a snapshot covers it (metadata.max.retention.bytes and .ms), not by topic " +
			"retention"
	case p.Suffix == "delete":
		return "the partition was deleted; a broker removes the whole directory file.delete.delay.ms after"
	case p.Suffix == "stray":
		return "the metadata does not assign the partition to this broker; nothing in it is deleted by retention"
	}
	return ""
}

// Judge holds what is the same for all partitions. It is safe for concurrent use.
type Judge struct {
	options  Options
	cluster  *state.Cluster
	settings map[*logdir.LogDir]*state.Settings
	told     sync.Once // the problems with __remote_log_metadata
	// Problems are what could not be read of state files.
	Problems []logdir.Problem
}

// NewJudge reads the state files of the log directories that the partitions lie in.
func NewJudge(partitions []*logdir.Partition, cluster *state.Cluster, options Options) (*Judge, error) {
	settings, err := cluster.SettingsOf(partitions, options.Given)
	j := &Judge{options: options, cluster: cluster, settings: settings}
	told := map[*logdir.LogDir]bool{}
	for _, p := range partitions {
		if !told[p.Parent] {
			told[p.Parent] = true
			j.Problems = append(j.Problems, cluster.Dirs.Of(p.Parent).Problems(state.CheckpointKinds...)...)
		}
	}
	return j, err
}

// directory is what the state files of the log directory of a partition say of it.
type directory struct {
	*state.Dir // nil: unknown
	tp         state.TopicPartition
}

func (j *Judge) directory(p *logdir.Partition) directory {
	return directory{j.cluster.Dirs.Of(p.Parent), state.TopicPartition{Topic: p.Topic,
		Partition: p.PartitionDir.Partition}}
}

// offset is what the checkpoint of that kind says, false if nothing.
func (d directory) offset(kind format.Kind) (int64, bool) { return d.Offset(kind, d.tp) }

// partition judges one partition, reading all its segments. Problems are what could not be read; a partition without
// any segment left gives nil.
func (j *Judge) partition(p *logdir.Partition, rd *reader) (*Report, []logdir.Problem) {
	r := &Report{Partition: p, Settings: readSettings(j.settings[p.Parent], p), kept: map[*logdir.Segment]bool{}}
	for _, seg := range p.Segments {
		r.kept[seg] = true
	}
	dir := j.directory(p)
	segments := allSegments(p)
	var problems []logdir.Problem
	for i, seg := range segments {
		s, bad := rd.readSegment(seg, dir.recovers(segments, i))
		problems = append(problems, bad...)
		if s != nil {
			r.Segments = append(r.Segments, s)
		}
	}
	switch {
	case len(segments) == 0:
		return nil, []logdir.Problem{{Display: p.Display, Err: p.NoSegment()}}
	case len(r.Segments) == 0:
		return nil, problems
	}
	r.offsets(j, dir)
	image := j.settings[p.Parent].Image
	r.suspectCompaction(dir, image)
	problems = append(problems, r.evaluate(j)...)
	problems = append(problems, r.findBlocking(rd.records)...)
	r.warn()
	problems = append(problems, r.warnOfMetadata(image)...)
	return r, problems
}

// recovers reports whether a broker reads the log of segment i when it opens it, or has written it itself: its index is
// missing; or there was no clean shutdown, and the segment holds the recovery point or lies after it. Without a
// recovery point that much is known of the last segment only.
func (d directory) recovers(segments []*logdir.Segment, i int) bool {
	last := i == len(segments)-1
	switch {
	case segments[i].Index == nil:
		return true
	case d.Dir != nil && d.Marker != nil:
		return false
	case last || d.Checkpoint(format.KindRecoveryPointCheckpoint) == nil:
		return last
	}
	recovery, _ := d.offset(format.KindRecoveryPointCheckpoint)
	if d.Checkpoint(format.KindRecoveryPointCheckpoint).Err != nil {
		recovery = 0 // as a broker takes it
	}
	return i >= state.FloorSegment(len(segments), func(i int) int64 { return segments[i].Base }, recovery)
}

// offsets finds the three offsets that bound what may be deleted.
func (r *Report) offsets(j *Judge, dir directory) {
	first, last := r.Segments[0], r.Segments[len(r.Segments)-1]
	l := &r.Log
	l.EndOffset = last.log.nextOffset
	if last.recovered {
		l.EndOffset = last.log.goodOffset
	}
	l.EndOffset = max(l.EndOffset, last.Base)
	l.StartOffset, r.StartSource = first.Base, "first segment"
	if start, ok := dir.offset(format.KindLogStartOffsetCheckpoint); ok && start > first.Base {
		l.StartOffset, r.StartSource = start, "checkpoint"
	}
	var missing bool
	l.HighWatermark, r.WatermarkSource, missing = j.options.Watermark.Of(j.settings[r.Partition.Parent].Image, dir.Dir,
		dir.tp, l.StartOffset, l.EndOffset)
	if missing {
		r.Warnings = append(r.Warnings, "The high watermark of this partition is in no replication-offset-checkpoint; the "+
			"log end is taken for it.")
	}
}

// evaluate applies the rules. Problems are what could not be read of copies in remote storage.
func (r *Report) evaluate(j *Judge) (problems []logdir.Problem) {
	l := &r.Log
	l.NowMs, l.Limits = j.options.NowMs, r.Settings.limits(r.Partition)
	if r.CompactedPerhaps {
		l.Limits.Delete, l.Limits.Compact, l.Limits.Tiered = false, true, false
	}
	if remote := j.remoteLog(l.Limits.Tiered); remote != nil && remote.Given {
		j.told.Do(func() { problems = remote.Problems })
		l.Limits.Copied = &Copied{}
		l.Limits.Copied.Last, l.Limits.Copied.Any = remote.Copied(r.Partition, l.EndOffset)
	}
	for _, s := range r.Segments {
		r.Log.Segments = append(r.Log.Segments, Segment{s.Base, s.Size, s.LargestMs})
	}
	for i, v := range Evaluate(&r.Log) {
		r.Segments[i].Verdict = v
		if v.Hold == HoldWaiting {
			r.Segments[v.By].Shields++
		}
	}
	return problems
}

// remoteLog is what is known of copies in remote storage, nil if it does not matter.
func (j *Judge) remoteLog(tiered bool) *state.RemoteLog {
	if !tiered {
		return nil
	}
	return j.cluster.RemoteLog()
}

// findBlocking looks for the records whose timestamps make segments stay though segments after them have expired, or
// though the present has not come to them.
func (r *Report) findBlocking(records *format.RecordReader) []logdir.Problem {
	var problems []logdir.Problem
	blocking := map[int]bool{}
	for i, s := range r.Segments {
		if s.Verdict.By >= 0 {
			blocking[s.Verdict.By], blocking[s.Verdict.ByLongest] = true, true
		}
		if s.Verdict.Hold == HoldYoung && s.LargestMs > r.Log.NowMs {
			blocking[i] = true
		}
	}
	for i, s := range r.Segments {
		if !blocking[i] || s.log.largestAt < 0 || s.log.largestMs != s.LargestMs || s.Source == FromMtime {
			continue
		}
		var err error
		if s.Blocking, err = findLargest(s.Log, s.log.largestAt, s.log.largestMs, records); err != nil &&
			!errors.Is(err, format.ErrTruncated) {
			problems = append(problems, logdir.Problem{Display: s.Log.Display, Err: err})
		}
	}
	return problems
}
