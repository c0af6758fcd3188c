package retention

import (
	"fmt"
	"slices"
	"strings"

	"kseg/format"
	"kseg/logdir"
	"kseg/render"
	"kseg/state"
)

// Reason says in a few words why a segment goes or stays.
func (r *Report) Reason(i int) string {
	s := r.Segments[i]
	switch s.Verdict.Rule {
	case LogStartOffset:
		return fmt.Sprintf("log start offset: all of it is below %d", r.Log.StartOffset)
	case Size:
		key, _ := r.sizeSetting()
		return "size: what stays is not below " + key + r.after(i)
	case Time:
		past := r.Log.NowMs - s.LargestMs - r.Log.Limits.RetentionMs
		return "time: " + render.Duration(past) + " past" + r.after(i)
	}
	return r.holdReason(i)
}

// after is what comes first when the segment goes.
func (r *Report) after(i int) string {
	switch {
	case r.Log.Limits.Tiered && r.Log.Limits.Copied == nil:
		return ", once it is copied to remote storage"
	case !r.Log.Limits.Tiered && r.Segments[i].Active():
		return "; an empty segment is rolled first"
	}
	return ""
}

func (r *Report) holdReason(i int) string {
	s := r.Segments[i]
	v := s.Verdict
	switch v.Hold {
	case HoldEmpty:
		return "active and empty"
	case HoldWatermark:
		return fmt.Sprintf("would go, but has records above the high watermark %d", r.Log.HighWatermark)
	case HoldUncopied:
		return "expired, but not copied to remote storage"
	case HoldActive:
		return "expired, but active: it is rolled and copied to remote storage first"
	case HoldPolicy:
		return r.policyReason()
	case HoldWaiting:
		text := fmt.Sprintf("expired, but waits for segment %d", r.Segments[v.By].Base)
		if v.ByLongest != v.By {
			text += fmt.Sprintf(" and, for longer, %d", r.Segments[v.ByLongest].Base)
		}
		return text
	}
	text, newest := "time: "+r.wait(i), "its newest record"
	if s.Source == FromMtime {
		newest = "its file's time"
	}
	switch {
	case s.LargestMs > r.Log.NowMs:
		text = "BLOCKS: " + newest + " is in the future"
	case s.Shields > 0:
		text = "BLOCKS: " + newest + " is recent; " + r.wait(i)
	}
	if v.By >= 0 {
		text += fmt.Sprintf(", but waits for segment %d", r.Segments[v.By].Base)
	}
	return text
}

// wait is how long the segment's own time has still to come.
func (r *Report) wait(i int) string {
	own := r.Log.goesAt(i, &r.Segments[i].Verdict)
	switch {
	case !r.Log.removable(i) && !r.Segments[i].Active():
		return "not copied to remote storage"
	case !r.Log.removable(i):
		return "active, and not copied to remote storage before it is rolled"
	case own == Never:
		return "no clock reaches it"
	}
	return render.Duration(own-r.Log.NowMs) + " to go"
}

func (r *Report) policyReason() string {
	switch l := r.Log.Limits; {
	case l.Off:
		return "nobody: cleanup.policy has compact, and log.cleaner.enable is false"
	case r.CompactedPerhaps:
		return "cleanup.policy is not known, and the log cleaner was here: kept"
	case l.Compact && !l.Delete:
		return "cleanup.policy is compact: no limit of size or time"
	case !r.Log.limited():
		return "cleanup.policy is empty: kept forever"
	case l.RetentionBytes >= 0:
		return "size: within the limit; no limit of time"
	}
	return "no limit of time or size"
}

// warn collects what makes the verdicts uncertain or surprising.
func (r *Report) warn() {
	var byFileTime []*SegmentReport
	for _, s := range r.Segments {
		if s.Source == FromMtime && s.log.batches > 0 && s.log.largestMs < 0 {
			byFileTime = append(byFileTime, s)
		}
		r.warnOfTimestamps(s)
		r.warnOfLog(s)
	}
	if len(byFileTime) > 0 {
		r.Warnings = append(r.Warnings, "No record of "+segmentList(byFileTime)+" has a timestamp, so that the file's time "+
			"counts. A copy made without keeping times is younger.")
	}
	if held := r.heldByWatermark(); len(held) > 0 {
		r.Warnings = append(r.Warnings,
			fmt.Sprintf("The high watermark %d (%s) holds back %s that would go: it is below the log end %d. "+
				"--high-watermark end shows what is deleted when all replicas have caught up.", r.Log.HighWatermark,
				r.WatermarkSource, segmentList(held), r.Log.EndOffset))
	}
	if r.StartSource == "checkpoint" && r.Log.StartOffset > r.Log.EndOffset {
		r.Warnings = append(r.Warnings, fmt.Sprintf("The log start offset %d is beyond the log end %d: a broker that "+
			"starts deletes all segments and starts over there.", r.Log.StartOffset, r.Log.EndOffset))
	}
	r.warnOfTiers()
}

// warnOfMetadata compares the topic with the one that the metadata has of that name: then the settings may be
// another's. A broker sets a partition aside that its metadata does not have.
func (r *Report) warnOfMetadata(im *state.Image) []logdir.Problem {
	if im == nil || !r.Partition.Named {
		return nil
	}
	t := im.Topic(r.Partition.Topic)
	if t == nil {
		r.Warnings = append(r.Warnings, "The metadata has no topic of this name; a broker of that cluster would set the "+
			"directory aside as -stray.")
		return nil
	}
	f := r.Partition.File(format.KindPartitionMetadata)
	if f == nil {
		return nil
	}
	raw, err := f.ReadSmall()
	if err != nil {
		return []logdir.Problem{{Display: f.Display, Err: err}}
	}
	meta, err := format.DecodePartitionMetadata(raw)
	switch {
	case err != nil:
		return []logdir.Problem{{Display: f.Display, Err: fmt.Errorf("%s: %w", f.Display, err)}}
	case meta.TopicID != t.ID:
		r.Warnings = append(r.Warnings, fmt.Sprintf("The metadata has another topic of this name (id %s, here %s), whose "+
			"settings are shown; a broker of that cluster would set the directory aside as -stray.", t.ID, meta.TopicID))
	}
	return nil
}

// suspectCompaction takes a topic for compacted whose cleanup.policy is not known, if the log cleaner knows it or has
// left traces: nothing is offered for deletion on a default.
func (r *Report) suspectCompaction(dir directory, im *state.Image) {
	_, known := dir.offset(format.KindCleanerOffsetCheckpoint)
	cleaned := slices.ContainsFunc(r.Segments, func(s *SegmentReport) bool { return s.log.cleaned })
	source := r.Settings.CleanupPolicy.Source
	if im != nil || source == state.FromFlag || r.Settings.policy("compact") || !known && !cleaned {
		return
	}
	r.CompactedPerhaps = true
	evidence := "The cleaner-offset-checkpoint has this partition"
	if !known {
		evidence = "Batches of this partition were rewritten by the log cleaner"
	}
	r.Warnings = append(r.Warnings, evidence+", so that its topic is compacted, or was; cleanup.policy is not known, "+
		"and nothing is taken "+
		"for expired. Give the metadata, or --topic-config cleanup.policy=delete if it is not compacted.")
}

func (r *Report) warnOfTiers() {
	key := r.Settings.RemoteStorage
	switch {
	case r.Log.Limits.Tiered && r.Log.Limits.Copied != nil:
		r.warnOfUncopied()
	case r.Log.Limits.Tiered:
		r.Warnings = append(r.Warnings, "Tiered storage is on: a local segment is deleted only after it was copied, and the "+
			"total limits are kept in "+
			"remote storage. Which segments have been copied is not to be seen here; of the closed ones it is assumed of all.")
	case key.Bool() && r.Settings.ServerKnown && !r.Settings.RemoteSystem.Bool():
		r.Warnings = append(r.Warnings, "remote.storage.enable is true, but the broker's remote.log.storage.system.enable "+
			"is not: the topic counts as not tiered.")
	}
}

// warnOfUncopied tells of segments that wait for their copy.
func (r *Report) warnOfUncopied() {
	var waiting []*SegmentReport
	for _, s := range r.Segments {
		if s.Verdict.Hold == HoldUncopied {
			waiting = append(waiting, s)
		}
	}
	if len(waiting) == 0 {
		return
	}
	said := "has no finished copy of this partition"
	if c := r.Log.Limits.Copied; c.Any {
		said = fmt.Sprintf("has this partition copied up to offset %d", c.Last)
	}
	r.Warnings = append(r.Warnings, fmt.Sprintf("Kept until a copy in remote storage is finished: %s. "+
		"__remote_log_metadata, as far as it was given, %s.", segmentList(waiting), said))
}

func (r *Report) heldByWatermark() []*SegmentReport {
	var held []*SegmentReport
	for _, s := range r.Segments {
		if s.Verdict.Hold == HoldWatermark {
			held = append(held, s)
		}
	}
	return held
}

func segmentList(segments []*SegmentReport) string {
	if len(segments) == 1 {
		return fmt.Sprintf("segment %d", segments[0].Base)
	}
	return fmt.Sprintf("%d segments (%d to %d)", len(segments), segments[0].Base, segments[len(segments)-1].Base)
}

func (s *SegmentReport) warnf(text string, args ...any) {
	s.Warnings = append(s.Warnings, fmt.Sprintf("Segment %d: ", s.Base)+fmt.Sprintf(text, args...))
}

// warnOfTimestamps compares what the broker goes by with the log's truth.
func (r *Report) warnOfTimestamps(s *SegmentReport) {
	truth := s.log.largestMs
	switch {
	case !s.log.read:
	case s.Source == FromMtime && truth >= 0:
		missing := "its time index is empty"
		if s.TimeIndex == nil {
			missing = "it has no time index"
		}
		s.warnf("%s, so that a broker takes the file's time (%s) for its newest record; the log says %s.", missing,
			render.Minute(s.LargestMs), render.Instant(truth))
	case s.Source == FromTimeIndex && truth < 0 && s.log.batches > 0:
		s.warnf("no record has a timestamp, but the last entry of its time index has %s, which a broker uses.",
			render.Instant(s.LargestMs))
	case s.Source == FromTimeIndex && s.LargestMs == 0 && truth > 0:
		s.warnf("its time index ends in zeros, so that a broker takes 1970 for its newest record and counts it as "+
			"expired; the log says %s.", render.Instant(truth))
	case s.Source == FromTimeIndex && truth != s.LargestMs && s.log.batches > 0:
		s.warnf("the last entry of its time index says %s, which a broker uses; the log says %s, %s %s.",
			render.Instant(s.LargestMs), render.Instant(truth), render.Duration(max(truth-s.LargestMs, s.LargestMs-truth)),
			laterOrEarlier(truth, s.LargestMs))
	}
	if unit := looksLike(truth, r.Log.NowMs); unit != "" && s.log.read {
		s.warnf("the timestamp %d looks like %s where Kafka counts milliseconds.", truth, unit)
	}
	if s.log.doubtful {
		s.warnf("the batch at byte %d, which has the largest timestamp, has a wrong checksum.", s.log.largestAt)
	}
}

func laterOrEarlier(a, b int64) string {
	if a > b {
		return "later"
	}
	return "earlier"
}

// warnOfLog tells of bytes after the batches, which bear on the sizes and on what a start of the broker would keep.
func (r *Report) warnOfLog(s *SegmentReport) {
	h := s.log.hole
	if !s.log.read || h.Pos < 0 {
		return
	}
	left := s.Log.Size - h.Pos
	counted := "counted"
	if s.Size < s.Log.Size {
		counted = "not counted"
	}
	switch h.Kind {
	case format.ZeroTail:
		s.warnf("%s zeros after the last batch are %s.", render.Bytes(left), counted)
	case format.TornTail:
		s.warnf("%s of an unfinished batch at its end are %s.", render.Bytes(left), counted)
	default:
		s.warnf("at byte %d there is no batch (%s); see kseg verify --predict for what a start of the broker keeps.", h.Pos,
			strings.TrimSuffix(h.Err.Error(), "."))
	}
}

const (
	oldestPlausibleMs = 946684800000         // 2000-01-01
	tenYearsMs        = 10 * 365 * 86400_000 // what a clock may be ahead
)

// looksLike is the unit that would make a timestamp a time of our days where milliseconds do not; "" if they do.
func looksLike(timestampMs, nowMs int64) string {
	plausible := func(ms int64) bool { return ms >= oldestPlausibleMs && ms <= nowMs+tenYearsMs }
	switch {
	case timestampMs <= 0 || plausible(timestampMs):
		return ""
	case timestampMs < oldestPlausibleMs && plausible(timestampMs*1000):
		return "seconds"
	case plausible(timestampMs / 1000):
		return "microseconds"
	case plausible(timestampMs / 1000_000):
		return "nanoseconds"
	}
	return ""
}
