package retention

import "math"

// Rule is what a broker names as its reason when it deletes a segment.
type Rule string

// The rules in the order in which a broker applies them. Keep means that none of them deletes the segment now.
const (
	Keep           Rule = ""
	LogStartOffset Rule = "log_start_offset"
	Size           Rule = "size"
	Time           Rule = "time"
)

// Never is the time at which a segment goes that no passing of time will delete.
const Never = math.MaxInt64

// Segment is what the rules look at in a segment.
type Segment struct {
	Base int64 // first offset
	Size int64 // bytes of the .log alone; indexes do not count
	// LargestMs is the largest timestamp as the broker holds it: that of the last time index entry, or the time of the
	// file's last modification where there is none.
	LargestMs int64
}

// Limits are the settings that the rules follow.
type Limits struct {
	Delete  bool // cleanup.policy contains delete
	Compact bool // cleanup.policy contains compact
	// RetentionMs and RetentionBytes are the limits in force; negative is none. With tiered storage they are the local
	// ones.
	RetentionMs    int64
	RetentionBytes int64
	// Tiered is set if segments are copied to remote storage: then a local segment is deleted only after it was copied,
	// which is taken for granted of all but the active one if Copied is nil.
	Tiered bool
	Copied *Copied
	// Off is set if nobody applies the rules: the log is compacted, and log.cleaner.enable is false.
	Off bool
}

// Copied is what is known of copies in remote storage.
type Copied struct {
	Any  bool
	Last int64 // the largest offset that was copied, if any was
}

// Log is a partition as the rules see it.
type Log struct {
	Segments      []Segment // by base offset; the last is the active one
	StartOffset   int64
	HighWatermark int64
	EndOffset     int64
	Limits        Limits
	NowMs         int64
}

// Hold says what keeps a segment.
type Hold int8

// The reasons for keeping a segment, strongest first.
const (
	HoldNone      Hold = iota // it goes
	HoldPolicy                // no limit of time applies to it, whatever its age
	HoldEmpty                 // the active segment is empty and stays
	HoldWatermark             // records above the high watermark are never deleted
	HoldUncopied              // with tiered storage a segment is copied first
	HoldActive                // with tiered storage the active segment is rolled and copied first
	HoldWaiting               // it has expired, but an older segment stays
	HoldYoung                 // its time has not come
)

// Verdict is what becomes of one segment.
type Verdict struct {
	Rule Rule // Keep: it stays
	Hold Hold
	// By is the index of an older segment that keeps this one beyond its own time, else -1: if it has expired, the one at
	// which the walk stops now. ByLongest is the one that keeps it longest.
	By, ByLongest int
	// AtMs is when the rules reach the segment if nothing is appended: now at the latest if it goes now, Never if time
	// alone does not do it. It never decreases from one segment to the next.
	AtMs int64
}

// Evaluate applies the rules of UnifiedLog.deleteOldSegments: the log start offset, then the size, then the time. Each
// rule walks from the oldest segment that the rule before left, and stops at the first that it does not delete.
func Evaluate(l *Log) []Verdict {
	verdicts := make([]Verdict, len(l.Segments))
	first := l.apply(verdicts)
	held := first
	if l.HighWatermark < l.EndOffset {
		replicated := *l
		replicated.HighWatermark = l.EndOffset
		held = replicated.apply(make([]Verdict, len(l.Segments)))
	}
	uncopied := held
	if l.Limits.Copied != nil {
		copied := *l
		copied.HighWatermark, copied.Limits.Copied = l.EndOffset, nil
		uncopied = copied.apply(make([]Verdict, len(l.Segments)))
	}
	l.explain(verdicts, first, held, uncopied)
	return verdicts
}

// apply enters the rules that delete, and returns the index of the first segment that stays.
func (l *Log) apply(verdicts []Verdict) int {
	if l.Limits.Off {
		return 0
	}
	first := l.walk(verdicts, 0, LogStartOffset, l.belowLogStart)
	if !l.limited() {
		return first
	}
	if l.Limits.RetentionBytes >= 0 {
		excess := l.sizeFrom(first) - l.Limits.RetentionBytes
		first = l.walk(verdicts, first, Size, func(i int) bool {
			if excess < l.Segments[i].Size {
				return false
			}
			excess -= l.Segments[i].Size
			return true
		})
	}
	return l.walk(verdicts, first, Time, l.expired)
}

// limited reports whether the rules of size and time apply. A policy without delete has none, except that with tiered
// storage an empty policy still limits what is kept locally.
func (l *Log) limited() bool {
	return !l.Limits.Off && (l.Limits.Delete || l.Limits.Tiered && !l.Limits.Compact)
}

// walk deletes segments from index first on while hit says so, and returns the index of the first that stays.
func (l *Log) walk(verdicts []Verdict, first int, rule Rule, hit func(i int) bool) int {
	for i := first; i < len(l.Segments); i++ {
		// The order matters to the rule of size: what the high watermark shields is not taken off the excess.
		if l.HighWatermark < l.upper(i) || !hit(i) || !l.removable(i) {
			return i
		}
		verdicts[i].Rule = rule
	}
	return len(l.Segments)
}

// removable is false for the active segment if it is empty, or has to be rolled and copied first, and for others that
// have to be copied (UnifiedLog.isSegmentEligibleForDeletion).
func (l *Log) removable(i int) bool {
	if l.active(i) {
		return l.Segments[i].Size > 0 && !l.Limits.Tiered
	}
	c := l.Limits.Copied
	return c == nil || !l.Limits.Tiered || c.Any && l.upper(i)-1 <= c.Last || l.belowLogStart(i)
}

// upper is the offset after the segment.
func (l *Log) upper(i int) int64 {
	if l.active(i) {
		return l.EndOffset
	}
	return l.Segments[i+1].Base
}

func (l *Log) active(i int) bool { return i == len(l.Segments)-1 }

func (l *Log) belowLogStart(i int) bool { return !l.active(i) && l.Segments[i+1].Base <= l.StartOffset }

func (l *Log) sizeFrom(first int) int64 {
	total := int64(0)
	for _, s := range l.Segments[first:] {
		total += s.Size
	}
	return total
}

// expired is strict: a segment whose age is exactly the limit stays.
func (l *Log) expired(i int) bool {
	return l.timeLimited() && l.NowMs-l.Segments[i].LargestMs > l.Limits.RetentionMs
}

func (l *Log) timeLimited() bool { return l.limited() && l.Limits.RetentionMs >= 0 }

// explain fills in when each segment goes, and what keeps those from index first on; those up to index held would go if
// everything were replicated, and up to uncopied if it were copied too.
func (l *Log) explain(verdicts []Verdict, first, held, uncopied int) {
	at, latest := int64(math.MinInt64), -1
	for i := range verdicts {
		v := &verdicts[i]
		v.Hold = l.hold(i, first, held, uncopied)
		if own := l.goesAt(i, v); own > at {
			at, latest = own, i
		}
		v.AtMs, v.By, v.ByLongest = at, -1, -1
		if latest != i && (v.Hold == HoldYoung || v.Hold == HoldWaiting) {
			v.By, v.ByLongest = latest, latest
		}
		if v.Hold == HoldWaiting {
			v.By = first
		}
	}
}

func (l *Log) hold(i, first, held, uncopied int) Hold {
	switch {
	case i < first:
		return HoldNone
	case i < held:
		return HoldWatermark
	case i < uncopied:
		return HoldUncopied
	case l.active(i) && l.Segments[i].Size == 0:
		return HoldEmpty
	case !l.timeLimited():
		return HoldPolicy
	case !l.expired(i):
		return HoldYoung
	case !l.removable(i) && l.active(i):
		return HoldActive
	case !l.removable(i):
		return HoldUncopied
	}
	return HoldWaiting
}

// goesAt is when a segment would go if it were the oldest: now by the rules that do not wait, else when its time has
// come.
func (l *Log) goesAt(i int, v *Verdict) int64 {
	switch v.Hold {
	case HoldNone:
		if v.Rule != Time {
			return l.NowMs
		}
	case HoldYoung, HoldWaiting:
		if !l.removable(i) {
			return Never
		}
	default:
		return Never
	}
	return later(later(l.Segments[i].LargestMs, l.Limits.RetentionMs), 1)
}

// later adds a duration, not negative, to a time; what no clock reaches is Never.
func later(ms, byMs int64) int64 {
	if ms > Never-byMs {
		return Never
	}
	return ms + byMs
}
