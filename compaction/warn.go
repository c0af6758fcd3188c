package compaction

import (
	"fmt"

	"kseg/broker"
	"kseg/render"
)

// warn collects what is wrong, and what makes the answer uncertain.
func (r *Report) warn() {
	if r.Range.Reset != "" {
		r.warnf("The cleaner's checkpoint %d makes no sense (%s): a broker starts over at the log start offset %d.",
			*r.Log.CleanedTo, r.Range.Reset, r.Log.StartOffset)
	}
	if r.Log.Refused != nil {
		r.warnf("A broker does not load this partition (%v), and so does not clean it; kseg verify says more.", r.Log.Refused)
	}
	if n := r.Log.Completed; n > 0 {
		r.warnf("The cleaner left %s unfinished when the broker stopped. A start puts %s in place or removes %[2]s first; "+
			"this is of after that.", render.Plural(int64(n), "file", "files"), itOrThem(n))
	}
	if r.Log.Splits {
		r.warnf("A start splits a segment whose offsets do not fit into one. That is not modelled: this is of the log as " +
			"it is on disk, and not what a cleaner does after a start.")
	}
	for _, cut := range r.Log.Cuts[:min(1, len(r.Log.Cuts))] {
		r.warnf("The broker was not stopped cleanly: a start cuts %s at byte %d and removes what is after it; this is of "+
			"after that, and kseg predict says what is lost.", cut.File, cut.At)
	}
	r.warnOfDelay()
	if r.Round != nil {
		r.warnOfRound()
	}
}

func (r *Report) warnf(text string, args ...any) {
	r.Warnings = append(r.Warnings, fmt.Sprintf(text, args...))
}

func (r *Report) warnOfRound() {
	round := r.Round
	if n := r.removed().NoKey; n > 0 {
		r.warnf("%s without a key will be lost: the cleaner drops what has none. Was the topic's cleanup.policy changed to "+
			"compact? Change it back before it comes.", render.Plural(n, "record", "records"))
	}
	if round.WrongCRC > 0 {
		r.warnf("%s to be cleaned, the first in segment %d at byte %d, %s a wrong checksum, at which the cleaner does not "+
			"look; %s written again with a right one, and the damage will not show any more.",
			render.Plural(round.WrongCRC, "batch", "batches"),
			round.FirstWrong.Segment, round.FirstWrong.Pos, has(round.WrongCRC), countOf(round.Rewritten))
	}
	if round.MapFull {
		r.warnf("The offset map is full: %s of memory hold %s keys, and there are more. This round ends at offset %d, and "+
			"more must follow; log.cleaner.dedupe.buffer.size is %s for %s.",
			render.Bytes(r.model.MapSlots()*broker.OffsetMapEntry), render.Count(r.model.MapKeys()), round.EndOffset,
			render.Bytes(r.model.DedupeBytes), render.Plural(r.model.Threads, "thread", "threads"))
	}
	switch stop := round.Stops; {
	case stop == nil:
	case stop.Splits:
		r.warnf("The offsets of segment %d do not fit into one (%v): the broker splits it and begins the round again.",
			stop.Segment, stop)
	default:
		r.warnf("The cleaner gives up on this partition in segment %d at byte %d (%v). It counts as uncleanable "+
			"(uncleanable-partitions-count) until the broker starts "+
			"again, and grows; kseg verify and kseg explain say more of the damage.", stop.Segment, stop.Pos, stop)
	}
}

func itOrThem(n int) string {
	if n == 1 {
		return "it"
	}
	return "them"
}

func has(n int64) string {
	if n == 1 {
		return "has"
	}
	return "have"
}

func countOf(n int64) string {
	switch n {
	case 0:
		return "none of them is"
	case 1:
		return "1 of them is"
	}
	return render.Count(n) + " of them are"
}

// removed is what the round takes out of all segments.
func (r *Report) removed() broker.Removed {
	var sum broker.Removed
	if r.Round != nil {
		for i := range r.Round.Segments {
			sum.Add(r.Round.Segments[i].Removed)
		}
	}
	return sum
}

// lateMs is how long a log may be filthy without a word: a cleaner looks every 15 seconds, but has other logs too.
const lateMs = 2 * 60 * 1000

// warnOfDelay tells of a log that could have been cleaned long before its newest record was written.
func (r *Report) warnOfDelay() {
	if !r.Would || r.Forced || r.supposed || r.Settings.Assumed {
		return
	}
	sinceMs, closed := r.filthySince()
	late := r.newestMs() - sinceMs
	if sinceMs <= 0 || closed < 1 || late < lateMs {
		return
	}
	came := "the cleaner had not come"
	if r.Range.FirstDirty == r.Log.StartOffset {
		came = "the cleaner had never come"
	}
	r.warnf("By its records' times the log has been dirty enough since %s; %s and %s later %s. Its thread is dead "+
		"(log-cleaner.log says why; time-since-last-run-ms grows), it was off (log.cleaner.enable), it has given up on "+
		"this partition, or it is busy with others.", render.Minute(sinceMs),
		render.Plural(int64(closed), "closed segment", "closed segments"), render.Duration(late), came)
}

// filthySince is when the ratio first went above its limit, by the first timestamp of the segment after the one that
// made it so, and how many segments were closed after that.
func (r *Report) filthySince() (ms int64, closed int) {
	segments := r.Log.Segments
	grown := broker.CleanRange{CleanBytes: r.Range.CleanBytes}
	for i := 0; i < len(segments)-1; i++ {
		if segments[i+1].Base <= r.Range.FirstDirty || segments[i].Base >= r.Range.CleanTo {
			continue
		}
		if grown.DirtyBytes += segments[i].Size; grown.DirtyBytes > 0 && grown.Ratio() > r.model.MinDirtyRatio {
			return segments[i+1].FirstMs + r.model.MinLagMs, len(segments) - 2 - i
		}
	}
	return 0, 0
}

// newestMs is the largest timestamp that a broker knows of, 0 if none.
func (r *Report) newestMs() int64 {
	newest := int64(0)
	for _, seg := range r.Log.Segments {
		newest = max(newest, seg.FirstMs)
		if seg.LargestMs != seg.ModMs {
			newest = max(newest, seg.LargestMs)
		}
	}
	return newest
}
