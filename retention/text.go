package retention

import (
	"fmt"
	"slices"
	"strconv"

	"kseg/render"
	"kseg/state"
)

// AppendText appends the report for a reader: the settings, a line a segment, and the sentences that people look for.
// Lines of prose are broken to width.
func (r *Report) AppendText(dst []byte, theme render.Theme, width int) []byte {
	dst = append(dst, theme.Strong(render.Escaped(r.Partition.Display))...)
	dst = append(dst, '\n')
	dst = render.AppendParts(dst, r.header(), width)
	dst = append(dst, '\n')
	table := render.NewColumns("rrllrlw").Fit(theme, 3, render.Below, 4)
	table.Head("segment", "size", "newest record", "from", "age", "verdict", "why")
	for i, s := range r.Segments {
		if r.shown(s) {
			table.Row(r.cells(i, theme)...)
		}
	}
	dst = table.Append(dst, "")
	dst = append(dst, '\n')
	for _, sentence := range r.sentences() {
		dst = render.AppendParagraph(dst, sentence, width)
	}
	return r.AppendWarnings(dst, theme, width)
}

// AppendWarnings appends the warnings, a paragraph each.
func (r *Report) AppendWarnings(dst []byte, theme render.Theme, width int) []byte {
	warnings := slices.Clone(r.Warnings)
	for _, s := range r.Segments {
		if r.shown(s) {
			warnings = append(warnings, s.Warnings...)
		}
	}
	for _, w := range warnings {
		dst = append(dst, theme.Look("warning")...)
		dst = append(dst, "  "...)
		dst = render.AppendParagraph(dst, render.Escaped(w), width-len("warning  "))
	}
	return dst
}

// header are the settings and offsets that decide, each with its source.
func (r *Report) header() []string {
	timeKey, timeLimit := r.timeSetting()
	sizeKey, sizeLimit := r.sizeSetting()
	parts := []string{
		timeKey + " " + durationSetting(timeLimit),
		sizeKey + " " + bytesSetting(sizeLimit),
	}
	if s := r.Settings.CleanupPolicy; s.Source != state.FromDefault || s.Value != "delete" {
		parts = append(parts, "cleanup.policy "+strconv.Quote(s.Value)+" ("+s.Origin()+")")
	}
	if s := r.Settings.TimestampType; s.Value == "LogAppendTime" {
		parts = append(parts, "message.timestamp.type LogAppendTime ("+s.Origin()+")")
	}
	if r.StartSource == "checkpoint" {
		parts = append(parts, fmt.Sprintf("log start %d (checkpoint)", r.Log.StartOffset))
	}
	return append(parts, fmt.Sprintf("high watermark %d (%s)", r.Log.HighWatermark, r.WatermarkSource),
		"now "+render.Minute(r.Log.NowMs)+" UTC")
}

func durationSetting(s state.Setting) string {
	if s.Int() < 0 {
		return fmt.Sprintf("%d (no limit, %s)", s.Int(), s.Origin())
	}
	return fmt.Sprintf("%d (%s, %s)", s.Int(), render.Duration(s.Int()), s.Origin())
}

func bytesSetting(s state.Setting) string {
	if s.Int() < 0 {
		return fmt.Sprintf("%d (no limit, %s)", s.Int(), s.Origin())
	}
	return fmt.Sprintf("%d (%s, %s)", s.Int(), render.Bytes(s.Int()), s.Origin())
}

var sourceTitles = map[TimestampSource]string{FromTimeIndex: "time index", FromLog: "log", FromMtime: "file time"}

// cells is the line of a segment.
func (r *Report) cells(i int, theme render.Theme) []string {
	s := r.Segments[i]
	verdict, why := "keep", theme.Dim(r.Reason(i))
	switch {
	case s.Verdict.Rule != Keep:
		verdict, why = theme.Look("delete"), r.Reason(i)
	case s.blocks(r):
		verdict, why = theme.Bad("keep"), theme.Bad(r.Reason(i))
	case s.Verdict.Hold == HoldWaiting || s.Verdict.Hold == HoldWatermark:
		why = theme.Look(r.Reason(i))
	}
	base := strconv.FormatInt(s.Base, 10)
	if s.Active() {
		base = "*" + base
	}
	return []string{base, render.Bytes(s.Size), render.Minute(s.LargestMs), sourceTitles[s.Source],
		render.Duration(r.Log.NowMs - s.LargestMs), verdict, why}
}

// blocks reports whether a segment's timestamp is out of place: it keeps expired segments, or lies in the future.
func (s *SegmentReport) blocks(r *Report) bool {
	return s.Verdict.Hold == HoldYoung && (s.Shields > 0 || s.LargestMs > r.Log.NowMs)
}

// sentences say what happens next, and until when what is readable.
func (r *Report) sentences() []string {
	out := []string{r.nextCheck()}
	if r.Log.Limits.RetentionBytes >= 0 && r.Log.limited() {
		out = append(out, r.sizeSentence())
	}
	if r.Log.Limits.Compact {
		out = append(out, "What it removes inside of segments, by their keys, kseg compaction says.")
	}
	first := r.firstKept()
	if first < 0 {
		return out
	}
	out = append(out, r.nextSegment(first)...)
	if text := r.activeSentence(); text != "" {
		out = append(out, text)
	}
	return out
}

// Freed are the segments and bytes that the next check deletes.
func (r *Report) Freed() (segments, bytes int64) {
	for _, s := range r.Segments {
		if s.Verdict.Rule != Keep {
			segments, bytes = segments+1, bytes+s.Size
		}
	}
	return segments, bytes
}

// Bytes are the sizes of all logs.
func (r *Report) Bytes() (bytes int64) {
	for _, s := range r.Segments {
		bytes += s.Size
	}
	return bytes
}

// firstKept is the index of the first segment that stays, -1 if all go.
func (r *Report) firstKept() int {
	for i, s := range r.Segments {
		if s.Verdict.Rule == Keep {
			return i
		}
	}
	return -1
}

func (r *Report) nextCheck() string {
	who := "The next check (every " + render.Duration(r.Settings.CheckIntervalMs.Int()) + ")"
	if r.Log.Limits.Compact {
		who = "The log cleaner, which does this for compacted topics after its passes (it rests for " +
			render.Duration(r.Settings.CleanerBackoffMs.Int()) + " when there is nothing to clean),"
	}
	segments, bytes := r.Freed()
	if segments == 0 {
		return who + " deletes nothing."
	}
	text := fmt.Sprintf("%s deletes %s, %s; the files go %s later (file.delete.delay.ms).", who, render.Plural(segments,
		"segment", "segments"),
		render.Bytes(bytes), render.Duration(r.Settings.FileDeleteDelayMs.Int()))
	if int(segments) == len(r.Segments) {
		text += fmt.Sprintf(" No record is left: an empty segment begins at offset %d.", r.Log.EndOffset)
	}
	return text
}

func (r *Report) sizeSentence() string {
	key, _ := r.sizeSetting()
	_, freed := r.Freed()
	total := r.Bytes()
	return fmt.Sprintf("The log has %s, %s is %s, and %s stay.", render.Bytes(total), key,
		render.Bytes(r.Log.Limits.RetentionBytes), render.Bytes(total-freed))
}

// nextSegment tells of the first segment that stays: when it goes, what waits after it, and how long its records can
// be read.
func (r *Report) nextSegment(first int) []string {
	s := r.Segments[first]
	if s.Verdict.Hold != HoldYoung {
		return nil
	}
	key, _ := r.timeSetting()
	text := fmt.Sprintf("Segment %d can be deleted on %s at the earliest (largest timestamp + %s)", s.Base,
		render.Minute(s.Verdict.AtMs), key)
	switch {
	case !r.Log.removable(first):
		text = fmt.Sprintf("Segment %d is active: it is rolled and copied to remote storage before it can be deleted",
			s.Base)
	case s.Verdict.AtMs == Never:
		text = fmt.Sprintf("Segment %d is not deleted by time: no clock reaches its timestamp", s.Base)
	}
	if s.blocks(r) {
		if s.Shields > 0 {
			text += fmt.Sprintf(", and %s after it %s", render.Plural(int64(s.Shields), "expired segment", "expired segments"),
				waits(s.Shields))
		}
		text += ": " + r.blocker(s)
	}
	out := []string{text + "."}
	if oldest := s.log.oldestMs; oldest >= 0 && s.Verdict.AtMs != Never {
		until := "until then"
		if s.Active() {
			until = "at least until then"
		}
		out = append(out, fmt.Sprintf("Its oldest record (%s) stays readable %s.", render.Minute(oldest), until))
	}
	until := s.Verdict.AtMs
	for _, next := range r.Segments[first+1:] {
		if next.blocks(r) && next.Verdict.AtMs > until {
			until = next.Verdict.AtMs
			out = append(out, fmt.Sprintf("After that, segment %d stays until %s: %s.", next.Base, untilText(next.Verdict.AtMs),
				r.blocker(next)))
		}
	}
	return out
}

func waits(n int) string {
	if n == 1 {
		return "waits"
	}
	return "wait"
}

func untilText(ms int64) string {
	if ms == Never {
		return "no clock's time"
	}
	return render.Minute(ms)
}

// blocker names the record whose time keeps the segment, or what else its time comes from.
func (r *Report) blocker(s *SegmentReport) string {
	switch {
	case s.Source == FromMtime:
		return "its records have no timestamp that counts, and its file was last written on " + render.Minute(s.LargestMs)
	case s.Blocking == nil:
		return fmt.Sprintf("its time index says %s, which no record that can be read has", render.Minute(s.LargestMs))
	}
	text := fmt.Sprintf("record %d (%s) blocks", s.Blocking.Offset, render.Minute(s.Blocking.TimestampMs))
	if unit := looksLike(s.Blocking.TimestampMs, r.Log.NowMs); unit != "" {
		text += ", its timestamp looks like " + unit
	}
	return text
}

// activeSentence says how long the records of the active segment stay if it goes on growing.
func (r *Report) activeSentence() string {
	s := r.Segments[len(r.Segments)-1]
	rollsAt := r.rollsAt(s)
	if rollsAt == Never || s.Verdict.Hold != HoldYoung || s.LargestMs > r.Log.NowMs || r.Log.goesAt(len(r.Segments)-1,
		&s.Verdict) == Never {
		return ""
	}
	return fmt.Sprintf("The active segment %d takes records until one is dated %s or later (segment.ms, %s after its "+
		"first) or it reaches %s; "+
		"full to that time, it stays until %s.", s.Base, render.Minute(rollsAt), render.Duration(r.Settings.rollMs()),
		render.Bytes(r.Settings.SegmentBytes.Int()), untilText(later(rollsAt, r.Log.Limits.RetentionMs)))
}
