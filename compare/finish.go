package compare

import (
	"context"

	"kseg/format"
	"kseg/logdir"
)

// finish draws the conclusion.
func (c *comparison) finish(ctx context.Context) {
	for _, s := range []struct {
		side *side
		log  *Log
		m    *missing
	}{{c.a, c.A, &c.missingA}, {c.b, c.B, &c.missingB}} {
		s.log.End, s.log.Records, s.log.read = s.side.expected, s.side.count, true
		s.log.Damages = s.side.damages
		c.NotRead = append(c.NotRead, s.side.notRead...)
		s.m.finish()
		s.m.cleaned = s.m.cleaned || s.side.compacted ||
			s.m.holes == 1 && newestOnly(ctx, s.log.Partition.Segments, s.m.until, c.opts)
		s.log.Lost, s.log.FirstLost = s.m.lost(s.log.Missing)
	}
	end := min(c.A.End, c.B.End)
	c.SharedTo, c.Nothing = end-1, end <= c.SharedFrom && c.A.Records+c.B.Records > 0
	c.Result = c.result()
}

// newestOnly reports whether no two records below an offset have one key, and all have one: so does the cleaner leave a
// log. Where that holds of a stretch that is missing without another trace, it is believed to have been here.
func newestOnly(ctx context.Context, segments []*logdir.Segment, until int64, opts *Options) bool {
	seen := map[uint64]bool{}
	s := newSide(segments, &Options{MaxBatchBytes: opts.MaxBatchBytes})
	s.start(ctx)
	defer s.stop()
	for s.advance(); s.batch != nil && s.batch.BaseOffset < until; s.advance() {
		s.open()
		for i := range s.records {
			r := &s.records[i]
			switch {
			case r.offset >= until:
			case r.kind == noKey || seen[r.key] || len(seen) == mostOpen:
				return false
			case r.kind == keyed || r.kind == tombstone:
				seen[r.key] = true
			}
		}
	}
	return true
}

func (c *Comparison) result() Result {
	a, b := c.A, c.B
	switch {
	case c.Differ > 0:
		return Diverged
	case len(a.Damages)+len(b.Damages) > 0 || a.Lost+b.Lost > 0:
		return Damaged
	case a.Missing+b.Missing > 0:
		return Compacted
	case a.End > b.End:
		return AAhead
	case b.End > a.End:
		return BAhead
	case c.Recoded || c.Converted || c.Rebatched || c.EpochsDiffer:
		return SameRecords
	}
	return Identical
}

// Explained reports whether replication or retention explains the difference, or there is none. With batches also what
// is stored otherwise counts as a difference.
func (c *Comparison) Explained(batches bool) bool {
	switch c.Result {
	case Diverged, Damaged, OnlyA, OnlyB:
		return false
	}
	if batches && (c.Recoded || c.Converted || c.Rebatched || c.EpochsDiffer || c.Result == Compacted) {
		return false
	}
	for _, s := range c.State {
		if s.Contradicts {
			return false
		}
	}
	return true
}

// TopicIDsDiffer reports whether the two are partitions of two topics of the same name.
func (c *Comparison) TopicIDsDiffer() bool {
	var none format.UUID
	return c.A != nil && c.B != nil && c.A.TopicID != none && c.B.TopicID != none && c.A.TopicID != c.B.TopicID
}

// Unjudged reports whether there are records on both sides, but none at the same offsets.
func (c *Comparison) Unjudged() bool { return c.Nothing && c.A != nil && c.B != nil }
