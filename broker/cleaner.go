package broker

import (
	"math"

	"kseg/format"
	"kseg/logdir"
)

// CleanerSegment is a segment as the log cleaner looks at it.
type CleanerSegment struct {
	Base int64
	Size int64 // bytes of the .log
	// IndexSize and TimeIndexSize are what the indexes take in bytes when a broker has loaded them.
	IndexSize, TimeIndexSize int64
	LargestMs                int64 // the largest timestamp as a broker holds it, epoch ms
	// FirstMs is the largest timestamp of the first batch, epoch ms; not above 0 if there is none that counts.
	FirstMs int64
	ModMs   int64 // last modification of the .log, epoch ms; only messages of magic 0 and 1 are judged by it
	Log     *logdir.File
	Aborted []format.AbortedTxn // the .txnindex

	opened *segment
}

// LastRecord is what a broker remembers of a producer that is active: the batch that ends in LastOffset is never
// dropped, if that is not -1, else no control batch of that epoch (Kafka's LastRecord).
type LastRecord struct {
	LastOffset int64
	Epoch      int16
}

// CleanerLog is a partition as the log cleaner looks at it. The last segment is the active one.
type CleanerLog struct {
	Segments      []CleanerSegment
	StartOffset   int64
	EndOffset     int64
	HighWatermark int64
	StableOffset  int64 // last stable offset, at most the high watermark
	// CleanedTo is the partition's line in cleaner-offset-checkpoint, nil if it has none.
	CleanedTo *int64
	Producers map[int64]LastRecord // by producer id
}

// CleanerSettings are the settings that the log cleaner follows.
type CleanerSettings struct {
	Compact            bool // cleanup.policy contains compact
	Enabled            bool // log.cleaner.enable
	MinLagMs, MaxLagMs int64
	MinDirtyRatio      float64
	DeleteRetentionMs  int64
	SegmentBytes       int64
	SegmentIndexBytes  int64
	IndexInterval      int64
	// DedupeBytes is log.cleaner.dedupe.buffer.size, for all threads together; LoadFactor how full one's share gets.
	DedupeBytes   int64
	Threads       int64
	LoadFactor    float64
	MaxBatchBytes int64 // bounds what a batch may decompress to; a larger one is not read
}

// OffsetMapEntry is what a key takes in the cleaner's map: an MD5 and an offset (SkimpyOffsetMap).
const OffsetMapEntry = 24

// MapSlots is the number of slots of one thread's map.
func (s *CleanerSettings) MapSlots() int64 {
	return min(s.DedupeBytes/max(s.Threads, 1), math.MaxInt32) / OffsetMapEntry
}

// MapKeys is the number of keys at which one thread's map counts as full.
func (s *CleanerSettings) MapKeys() int64 { return int64(float64(s.MapSlots()) * s.LoadFactor) }

// Limit says what sets the first uncleanable offset.
type Limit string

// The limits. A log is cleaned up to the lowest.
const (
	LimitActive      Limit = "active_segment"
	LimitLag         Limit = "min_compaction_lag"
	LimitTransaction Limit = "open_transaction"
	LimitWatermark   Limit = "high_watermark"
)

// CleanRange is what the log cleaner could clean, as LogCleanerManager.cleanableOffsets and LogToClean have it.
type CleanRange struct {
	FirstDirty int64
	// Reset is why FirstDirty is the log start offset instead of what the checkpoint says; "" if it is not.
	Reset            string
	FirstUncleanable int64
	Limit            Limit
	// CleanTo is the base offset of the segment that FirstUncleanable lies in: segments are cleaned whole.
	CleanTo    int64
	CleanBytes int64
	DirtyBytes int64 // that can be cleaned; a segment in which FirstDirty lies counts among both
	// ForcedAtMs is from when on max.compaction.lag.ms demands a round, NeverForced if no dirty record has a timestamp.
	ForcedAtMs int64
}

// NeverForced is a time that no clock reaches.
const NeverForced = math.MaxInt64

// Ratio is the share of the log that is dirty, 0 to 1; NaN for a log without bytes.
func (r *CleanRange) Ratio() float64 {
	return float64(r.DirtyBytes) / float64(r.CleanBytes+r.DirtyBytes)
}

// Range finds what could be cleaned at nowMs.
func (l *CleanerLog) Range(s *CleanerSettings, nowMs int64) CleanRange {
	r := CleanRange{FirstDirty: l.StartOffset}
	if l.CleanedTo != nil {
		switch {
		case *l.CleanedTo < l.StartOffset:
			r.Reset = "the checkpoint is below the log start offset"
		case *l.CleanedTo > l.EndOffset:
			r.Reset = "the checkpoint is beyond the log end"
		default:
			r.FirstDirty = *l.CleanedTo
		}
	}
	active := l.Segments[len(l.Segments)-1].Base
	r.FirstUncleanable, r.Limit = active, LimitActive
	if l.StableOffset < r.FirstUncleanable {
		r.FirstUncleanable, r.Limit = l.StableOffset, LimitTransaction
		if l.StableOffset >= l.HighWatermark {
			r.Limit = LimitWatermark
		}
	}
	if s.MinLagMs > 0 {
		for _, seg := range l.closedFrom(r.FirstDirty) {
			if seg.LargestMs > nowMs-s.MinLagMs {
				if seg.Base < r.FirstUncleanable {
					r.FirstUncleanable, r.Limit = seg.Base, LimitLag
				}
				break
			}
		}
	}
	r.FirstUncleanable = max(r.FirstUncleanable, r.FirstDirty)
	l.measure(&r)
	r.ForcedAtMs = l.forcedAt(r.FirstDirty, s)
	return r
}

// measure counts bytes, by whole segments.
func (l *CleanerLog) measure(r *CleanRange) {
	r.CleanTo = l.Segments[len(l.Segments)-1].Base
	if rest := l.closedFrom(r.FirstUncleanable); len(rest) > 0 {
		r.CleanTo = rest[0].Base
	}
	for _, seg := range l.between(min(r.FirstDirty, r.CleanTo), r.CleanTo) {
		r.DirtyBytes += seg.Size
	}
	for _, seg := range l.Segments {
		if seg.Base < r.FirstDirty {
			r.CleanBytes += seg.Size
		}
	}
}

// between are the segments from the one in which from lies up to, not including, the one of base offset to
// (LogSegments.values).
func (l *CleanerLog) between(from, to int64) []CleanerSegment {
	if from >= to {
		return nil
	}
	first, last := 0, 0
	for i, seg := range l.Segments {
		if seg.Base <= from {
			first = i
		}
		if seg.Base < to {
			last = i + 1
		}
	}
	return l.Segments[first:max(first, last)]
}

// closedFrom are the segments from the one in which an offset lies, without the active one.
func (l *CleanerLog) closedFrom(from int64) []CleanerSegment {
	return l.between(from, l.Segments[len(l.Segments)-1].Base)
}

// forcedAt is when a dirty closed segment has been there for longer than max.compaction.lag.ms.
func (l *CleanerLog) forcedAt(firstDirty int64, s *CleanerSettings) int64 {
	earliest := int64(math.MaxInt64)
	for _, seg := range l.closedFrom(firstDirty) {
		if seg.FirstMs > 0 {
			earliest = min(earliest, seg.FirstMs)
		}
	}
	if earliest > NeverForced-1-max(s.MaxLagMs, 0) {
		return NeverForced
	}
	return earliest + max(s.MaxLagMs, 0) + 1
}

// Eligible reports whether a cleaner would take the log at nowMs, whatever other logs it has. forced says that it is
// not the ratio that demands it.
func (r *CleanRange) Eligible(s *CleanerSettings, nowMs int64) (eligible, forced bool) {
	if r.CleanBytes+r.DirtyBytes == 0 || !s.Compact || !s.Enabled {
		return false, false
	}
	if r.Ratio() > s.MinDirtyRatio {
		return true, false
	}
	forced = nowMs >= r.ForcedAtMs && r.DirtyBytes > 0
	return forced, forced
}

// EligibleAt is from when on a cleaner would take the log if nothing is appended and no transaction ends; false if time
// alone does not do it.
func (l *CleanerLog) EligibleAt(s *CleanerSettings, r *CleanRange, nowMs int64) (int64, bool) {
	if !s.Compact || !s.Enabled {
		return 0, false
	}
	later := CleanRange{FirstDirty: r.FirstDirty, CleanBytes: r.CleanBytes}
	active := l.Segments[len(l.Segments)-1].Base
	at, first := nowMs, int64(NeverForced)
	segments := l.closedFrom(r.FirstDirty)
	for i, seg := range segments {
		end := active
		if i+1 < len(segments) {
			end = segments[i+1].Base
		}
		if end > l.StableOffset {
			break
		}
		if s.MinLagMs > 0 {
			at = max(at, addMs(seg.LargestMs, s.MinLagMs))
		}
		if later.DirtyBytes += seg.Size; later.DirtyBytes == 0 {
			continue
		}
		first = min(first, max(at, r.ForcedAtMs))
		if later.Ratio() > s.MinDirtyRatio {
			first = min(first, at)
			break
		}
	}
	return first, first != NeverForced
}

// addMs adds a duration, not negative, to a time.
func addMs(ms, byMs int64) int64 {
	if ms > math.MaxInt64-byMs {
		return math.MaxInt64
	}
	return ms + byMs
}
