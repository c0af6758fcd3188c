package ls

import (
	"fmt"
	"path/filepath"

	"kseg/format"
	"kseg/logdir"
)

// Partition is a partition's directory.
type Partition struct {
	format.PartitionDir
	Name    string // of the directory
	Display string
	Dir     string // the log directory as the user named it; "" for a partition given alone
	TopicID string // from partition.metadata; "" if there is none
	Policy  string // cleanup.policy where the cluster's metadata or a flag tells; "" else
	Gone    bool   // it was deleted since its log directory was listed

	FirstOffset, LastOffset Maybe
	Active                  Maybe // base offset of the active segment
	Evidence                Evidence
	Segments                []Segment // if asked for
	Leftovers               []Leftover
	Problems                []logdir.Problem
	Sums
}

// Evidence says what tells that the last segment is the active one.
type Evidence string

// What may tell it. The last by its base offset is active by Kafka's rule; its indexes tell whether a broker has, or
// had, it open.
const (
	Preallocated Evidence = "preallocated_index" // as the broker makes them that opens a segment
	CleanMarker  Evidence = "clean_shutdown"     // a broker has closed it, and will open it again
	LastOffset   Evidence = "last_base_offset"   // nothing else is known
)

// Segment is a segment: its log, and the indexes and the snapshot beside it.
type Segment struct {
	Base                      int64
	Size, Allocated           int64 // of the log
	IndexSize, IndexAllocated int64 // of the three indexes and the snapshot
	Entries                   Maybe // of the offset index
	Slack                     int64
	Active                    bool
	FirstOffset, LastOffset   Maybe
	FirstMs, LastMs           Maybe
	Records                   int64
	Estimated                 bool
	Unread                    bool // the log could not be read
	Batches                   Maybe
}

// partition reads one partition.
func (l *Lister) partition(p *Partition, dir *logdir.Partition, r *reader) {
	if dir.Parent != nil && dir.Parent.Listed {
		p.Dir = dir.Parent.Display
	}
	p.Problems, p.Gone = dir.List()
	if p.Gone {
		return
	}
	p.Partitions = 1
	if len(p.Problems) > 0 {
		p.Unread = 1
	}
	l.describe(p, dir)
	p.count(l, dir)
	r.counter = nil
	if l.Options.Stats {
		p.Stats = &Stats{Producers: map[int64]bool{}}
		r.counter = &counter{Stats: p.Stats, by: l.Group, read: l.Records, records: r.records, days: map[int64]int64{}}
	}
	for _, seg := range dir.Segments {
		if seg.Log.Irregular() == nil { // that has been said, and a broker ignores it
			p.segment(l, r, seg)
		}
	}
	if l.WhatIf != nil {
		p.repack(l.WhatIf, r, dir.Segments)
	}
}

func (p *Partition) problem(display string, err error) {
	if err != nil {
		p.Problems = append(p.Problems, logdir.Problem{Display: display, Err: err})
	}
}

// describe finds the topic's id and policy.
func (l *Lister) describe(p *Partition, dir *logdir.Partition) {
	settings := l.Settings(dir.Parent)
	known := settings.Image != nil && settings.Image.Topic(p.Topic) != nil
	if policy := settings.Topic(p.Topic, "cleanup.policy"); known || policy.Key != "" || policy.Where != "" {
		p.Policy = policy.Value
	}
	f := dir.File(format.KindPartitionMetadata)
	if f == nil {
		return
	}
	raw, err := f.ReadSmall()
	if err != nil {
		p.problem(f.Display, err)
		return
	}
	// What is wrong with it is verify's to say; here it is a topic without an id.
	if m, err := format.DecodePartitionMetadata(raw); err == nil {
		p.TopicID = m.TopicID.String()
	}
}

// count adds up the files, and tells what is left over and what is odd.
func (p *Partition) count(l *Lister, dir *logdir.Partition) {
	p.Usage = l.seen.First(dir.Own)
	into := &p.Usage
	if dir.Linked {
		into = &p.Linked
	}
	for _, f := range dir.Files {
		into.Add(l.seen.First(f.Usage()))
		if f.Linked && !dir.Linked {
			p.Linked.Bytes += f.Size
			p.Linked.Allocated += f.Allocated
		}
		if f.Kind() != format.KindUnknown {
			p.problem(f.Display, f.Irregular())
		}
		if left, ok := leftoverFile(f); ok {
			p.Leftovers = append(p.Leftovers, left)
		}
	}
	if len(dir.Files) < len(dir.All()) {
		return // narrowed to segments: the rest is not asked for
	}
	for _, name := range dir.Subdirs {
		path := filepath.Join(dir.Path, name)
		usage, problems := logdir.UsageBelow(path, &l.seen)
		into.Add(usage)
		p.Problems = append(p.Problems, problems...)
		display := filepath.Join(dir.Display, name)
		if format.ParseFileName(name).Kind != format.KindUnknown {
			p.problem(display, fmt.Errorf("%s: it is a directory, though its name is that of a %s; a broker ignores it",
				display, format.ParseFileName(name).Kind.Title()))
		}
		p.Leftovers = append(p.Leftovers, Leftover{display, "a directory inside of a partition, which Kafka does not make",
			neverRemoved, usage})
	}
}

// segment adds a segment.
func (p *Partition) segment(l *Lister, r *reader, seg *logdir.Segment) {
	s := Segment{Base: seg.Base, Size: seg.Log.Size, Allocated: seg.Log.Allocated, Active: last(seg)}
	for _, f := range []*logdir.File{seg.Index, seg.TimeIndex, seg.TxnIndex, seg.Snapshot} {
		if f != nil {
			s.IndexSize += f.Size
			s.IndexAllocated += f.Allocated
		}
	}
	p.Problems = append(p.Problems, r.segment(&s, seg, l.Segments)...)
	p.Sums.Segments++
	p.Maps += 2
	p.LogBytes += s.Size
	if !s.Active && p.mayDelete() {
		p.ClosedBytes += s.Size
	}
	p.Slack += s.Slack
	p.Records += s.Records
	p.Estimated = p.Estimated || s.Estimated
	if s.Unread {
		p.Unread++
	}
	p.FirstMs, p.LastMs = p.FirstMs.least(s.FirstMs), p.LastMs.most(s.LastMs)
	p.FirstOffset, p.LastOffset = p.FirstOffset.least(s.FirstOffset), p.LastOffset.most(s.LastOffset)
	if s.Active {
		p.Active, p.Evidence = Some(s.Base), evidenceOf(seg, &s)
	}
	if l.Segments {
		p.Segments = append(p.Segments, s)
	}
}

// last reports whether no other segment follows, but what is none.
func last(seg *logdir.Segment) bool {
	for next := seg.Next; next != nil; next = next.Next {
		if next.Log.Irregular() == nil {
			return false
		}
	}
	return true
}

// mayDelete reports whether retention may delete segments of the topic; where the policy is not known it may.
func (p *Partition) mayDelete() bool {
	return !p.IsClusterMetadata() && (p.Policy == "" || deletes(p.Policy))
}

func evidenceOf(seg *logdir.Segment, s *Segment) Evidence {
	parent := seg.Partition.Parent
	switch {
	case s.Slack > 0:
		return Preallocated
	case parent != nil && parent.File(format.KindCleanShutdown) != nil && !seg.Partition.IsClusterMetadata():
		return CleanMarker
	}
	return LastOffset
}
