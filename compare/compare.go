// Package compare says whether two copies of a partition hold the same records.
//
// Both logs are read once, in order. Batches whose bytes are the same are passed over together (twin.go does so for
// whole segments, with several workers); where they differ, records are compared by their digests, whatever batch or
// codec they are in. What one side does not have is judged by what explains it: the log begins later, ends earlier, was
// compacted, is damaged; what nothing explains is a divergence.
package compare

import (
	"context"
	"slices"

	"kseg/format"
	"kseg/logdir"
	"kseg/state"
)

// Result is what the comparison of a partition comes to.
type Result string

// The results, those that hurt most first.
const (
	Diverged    Result = "diverged"     // records of the same offset differ, and nothing explains it
	Damaged     Result = "damaged"      // some records of one side are unreadable, or gone without a trace of the cleaner
	OnlyA       Result = "only_a"       // b does not have the partition
	OnlyB       Result = "only_b"       // a does not have the partition
	Compacted   Result = "compacted"    // records that the log cleaner may take are missing
	AAhead      Result = "a_ahead"      // b is a prefix of a
	BAhead      Result = "b_ahead"      // a is a prefix of b
	SameRecords Result = "same_records" // the same records in other batches
	Identical   Result = "identical"
)

// Log is one side of a comparison.
type Log struct {
	Path      string            // as the user would name it
	Partition *logdir.Partition // nil if only its fingerprints are here
	Start     int64             // log start offset
	End       int64             // log end offset
	Records   int64
	Bytes     int64
	TopicID   format.UUID // zero if unknown
	Missing   int64       // records that only the other side has, within the shared offsets and not damaged
	Lost      int64       // of these: those that the log cleaner would have kept
	FirstLost int64       // the offset of the first of them
	Doubtful  int64       // records of the other side at offsets at which this side is damaged
	Damages   []Place
	Diverged  int64 // records at and after the divergence

	unread  []error // why small files could not be read
	epochs  format.EpochCache
	read    bool    // End and Records are known
	noBytes bool    // Bytes is not known
	missed  []int64 // offsets of records that only the other side has, as fingerprints tell
}

// Comparison is the answer for one partition. A or B is nil if that side does not have it.
type Comparison struct {
	Name   string
	Result Result
	A, B   *Log
	// Shared are the offsets that were compared, from the first to the last; Nothing if there is none.
	SharedFrom, SharedTo int64
	Nothing              bool
	Same                 int64 // records that are the same
	Differ               int64 // offsets at which records differ
	DivergedAt           int64 // if Differ > 0
	// Range is that of the fingerprints that differ first, if fingerprints were compared.
	Range          *Range
	ABatch, BBatch *Batch
	// Batches are not the same: why, as far as it shows.
	Recoded, Converted, Rebatched bool
	// Narrowed: one side has fields or control records that the older magic of the other does not hold.
	Narrowed bool
	// Epochs differ from that offset on, though the records are the same.
	EpochsDiffer   bool
	EpochsDifferAt int64
	// Truncation is nil if there is nothing to cut off, or the leader epochs are not known.
	Truncation *Truncation
	State      []StateDifference
	NotRead    []error
}

// Range is a range of offsets, inclusive.
type Range struct{ First, Last int64 }

// Options say what is compared, and how.
type Options struct {
	State         bool // state files too
	Jobs          int
	MaxBatchBytes int64
	Progress      func(bytes int64)
}

// comparison is the work on one partition.
type comparison struct {
	*Comparison
	opts *Options
	a, b *side
	// judgement of what the other side lacks; see missing.go
	missingA, missingB missing
}

// partitions compares two copies of a partition.
func partitions(ctx context.Context, p Pair, dirs *state.Dirs, opts *Options) *Comparison {
	a, b := p.A, p.B
	c := &comparison{Comparison: &Comparison{Name: p.Name, A: newLog(a, dirs), B: newLog(b, dirs)}, opts: opts}
	c.SharedFrom = max(c.A.Start, c.B.Start)
	c.missingA.cleaned, c.missingB.cleaned = cleaned(a, dirs), cleaned(b, dirs)
	c.a, c.b = newSide(a.Segments, opts), newSide(b.Segments, opts)
	if err := c.twins(ctx, a.Segments, b.Segments); err != nil {
		c.NotRead = append(c.NotRead, err)
	}
	c.a.start(ctx)
	c.b.start(ctx)
	defer c.a.stop()
	defer c.b.stop()
	c.merge()
	c.finish(ctx)
	c.Truncation = c.truncation()
	if opts.State {
		c.State = compareState(c.A, c.B, c.missingA.cleaned || c.missingB.cleaned)
	}
	c.NotRead = append(c.NotRead, slices.Concat(c.A.unread, c.B.unread)...)
	return c.Comparison
}

// newLog is what can be said of a side beforehand.
func newLog(p *logdir.Partition, dirs *state.Dirs) *Log {
	l := &Log{Path: p.Display, Partition: p}
	if m, err := format.DecodePartitionMetadata(l.small(p.File(format.KindPartitionMetadata))); err == nil {
		l.TopicID = m.TopicID
	}
	for _, s := range p.Segments {
		l.Bytes += s.Log.Size
	}
	if len(p.Segments) > 0 {
		l.Start = p.Segments[0].Base
	}
	if start, ok := checkpoint(p, dirs, format.KindLogStartOffsetCheckpoint); ok {
		l.Start = max(l.Start, start)
	}
	return l
}

// checkpoint is what a checkpoint of the log directory says of a partition that is in use.
func checkpoint(p *logdir.Partition, dirs *state.Dirs, kind format.Kind) (int64, bool) {
	if p.Parent == nil || p.IsClusterMetadata() || p.Suffix != "" {
		return 0, false
	}
	return dirs.Of(p.Parent).Offset(kind, state.TopicPartition{Topic: p.Topic, Partition: p.PartitionDir.Partition})
}

// cleaned reports whether the log cleaner works on the partition, whatever its batches show.
func cleaned(p *logdir.Partition, dirs *state.Dirs) bool {
	return dirs.Of(p.Parent).Cleans(p)
}

// small reads a small file of the side; nil if there is none, or if it cannot be read, which is noted.
func (l *Log) small(f *logdir.File) []byte {
	if f == nil {
		return nil
	}
	raw, err := f.ReadSmall()
	if err != nil {
		l.unread = append(l.unread, err)
		return nil
	}
	return raw
}

// merge goes through both logs.
func (c *comparison) merge() {
	c.a.advance()
	c.b.advance()
	for c.a.batch != nil && c.b.batch != nil {
		switch {
		case c.skip(c.a) || c.skip(c.b):
		case c.a.fresh() && c.b.fresh() && c.sameBatch():
		default:
			c.step()
		}
	}
	c.rest(c.a, c.b, c.A, c.B, &c.missingB)
	c.rest(c.b, c.a, c.B, c.A, &c.missingA)
}

// skip passes over a batch below the shared offsets.
func (c *comparison) skip(s *side) bool {
	if s.batch.LastOffset >= c.SharedFrom {
		return false
	}
	s.advance()
	return true
}

// sameBatch passes over two batches of the same bytes.
func (c *comparison) sameBatch() bool {
	a, b := c.a.batch, c.b.batch
	if a.BaseOffset != b.BaseOffset || string(a.Raw) != string(b.Raw) {
		return false
	}
	if c.missingA.open() || c.missingB.open() {
		c.a.open()
		for i := range c.a.records {
			c.seen(a, &c.a.records[i])
		}
	}
	n := c.a.recordsOf(a)
	c.Same += n
	if c.Differ > 0 {
		c.A.Diverged, c.B.Diverged = c.A.Diverged+n, c.B.Diverged+n
	}
	c.a.advance()
	c.b.advance()
	return true
}

// seen lets a record speak for those of its key that are missing.
func (c *comparison) seen(b *format.Batch, r *record) {
	c.missingA.seen(b, r)
	c.missingB.seen(b, r)
}

// step compares the next record of each side.
func (c *comparison) step() {
	ra, rb := c.a.head(), c.b.head()
	switch {
	case ra == nil || rb == nil:
	case ra.offset < c.SharedFrom:
		c.a.take()
	case rb.offset < c.SharedFrom:
		c.b.take()
	case ra.offset < rb.offset:
		c.lacks(c.b, c.B, &c.missingB, c.a, ra)
		c.a.take()
	case rb.offset < ra.offset:
		c.lacks(c.a, c.A, &c.missingA, c.b, rb)
		c.b.take()
	default:
		c.both(ra, rb)
		c.a.take()
		c.b.take()
	}
}

// both compares two records of the same offset.
func (c *comparison) both(ra, rb *record) {
	a, b := c.a.batch, c.b.batch
	if c.Differ > 0 {
		c.A.Diverged, c.B.Diverged = c.A.Diverged+1, c.B.Diverged+1
	}
	c.seen(a, ra)
	if ra.sum != rb.sum && !c.narrowed(ra, rb) {
		c.differ(ra.offset)
		return
	}
	c.Same++
	c.unlike(a, b)
	if a.LeaderEpoch != b.LeaderEpoch && a.LeaderEpoch >= 0 && b.LeaderEpoch >= 0 && !c.EpochsDiffer {
		c.EpochsDiffer, c.EpochsDifferAt = true, ra.offset
	}
}

// narrowed reports whether two records differ only in fields that the older of two magics does not hold.
func (c *comparison) narrowed(ra, rb *record) bool {
	same := false
	switch a, b := c.a.batch.Magic, c.b.batch.Magic; {
	case b < 2 && a > b:
		same = c.a.as(b) == rb.sum
	case a < 2 && b > a:
		same = c.b.as(a) == ra.sum
	}
	c.Narrowed = c.Narrowed || same
	return same
}

// differ notes that the records of an offset are not the same.
func (c *comparison) differ(offset int64) {
	if c.Differ++; c.Differ > 1 {
		return
	}
	c.DivergedAt, c.A.Diverged, c.B.Diverged = offset, 1, 1
	c.ABatch, c.BBatch = batchOf(c.a.chunk.segment.Log, c.a.batch), batchOf(c.b.chunk.segment.Log, c.b.batch)
}

// unlike notes how batches with the same records differ.
func (c *comparison) unlike(a, b *format.Batch) {
	switch {
	case (a.Magic < 2) != (b.Magic < 2) || a.Legacy() && a.Magic != b.Magic:
		c.Converted = true
	case a.Codec() != b.Codec():
		c.Recoded = true
	case a.BaseOffset != b.BaseOffset || a.LastOffset != b.LastOffset || a.LeaderEpoch == b.LeaderEpoch:
		c.Rebatched = true
	}
}

// lacks notes that one side does not have a record of the other.
func (c *comparison) lacks(s *side, l *Log, m *missing, other *side, r *record) {
	if c.Differ > 0 {
		if other == c.a {
			c.A.Diverged++
		} else {
			c.B.Diverged++
		}
	}
	c.seen(other.batch, r)
	switch {
	case s.inDoubt(r.offset):
		l.Doubtful++
		return
	case r.kind >= marker && s.batch != nil && s.batch.Legacy():
		c.Converted, c.Narrowed = true, true // older magics hold no control records
		return
	}
	l.Missing++
	m.add(other.batch, r)
}

// rest takes what one side has after the last record of the other: up to the end of that one it is missing there.
func (c *comparison) rest(s, o *side, log, l *Log, m *missing) {
	for s.batch != nil {
		if !c.missingA.open() && !c.missingB.open() && s.fresh() && c.Differ == 0 && s.batch.BaseOffset >= o.expected &&
			!o.inDoubt(s.batch.BaseOffset) {
			s.advance()
			continue
		}
		r := s.head()
		switch {
		case r == nil:
			return
		case r.offset < c.SharedFrom:
		case r.offset < o.expected:
			c.lacks(o, l, m, s, r)
		default:
			c.seen(s.batch, r)
			if c.Differ > 0 {
				log.Diverged++
			}
			if o.inDoubt(r.offset) {
				l.Doubtful++
			}
		}
		s.take()
	}
}
