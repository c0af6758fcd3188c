package retention

import (
	"strings"

	"kseg/render"
	"kseg/state"
)

// AppendJSON appends the settings of the partition and its segments, a line each.
func (r *Report) AppendJSON(dst []byte) []byte {
	dst = r.appendSettings(dst)
	for i, s := range r.Segments {
		if r.shown(s) {
			dst = r.appendSegment(dst, i)
		}
	}
	return dst
}

func (r *Report) appendSettings(dst []byte) []byte {
	o := render.NewObj(dst, "retention_settings")
	r.place(&o)
	set := &r.Settings
	o.Open("cleanup_policy")
	o.Str("value", strings.Join(set.CleanupPolicy.List(), ","))
	origin(&o, set.CleanupPolicy)
	number(&o, "retention_ms", set.RetentionMs)
	number(&o, "retention_bytes", set.RetentionBytes)
	number(&o, "segment_ms", set.SegmentMs)
	number(&o, "segment_bytes", set.SegmentBytes)
	number(&o, "file_delete_delay_ms", set.FileDeleteDelayMs)
	o.Open("message_timestamp_type")
	o.Str("value", set.TimestampType.Value)
	origin(&o, set.TimestampType)
	o.Open("remote_storage_enable")
	o.Bool("value", set.RemoteStorage.Bool())
	origin(&o, set.RemoteStorage)
	number(&o, "local_retention_ms", set.LocalRetentionMs)
	number(&o, "local_retention_bytes", set.LocalRetentionBytes)
	number(&o, "log_retention_check_interval_ms", set.CheckIntervalMs)
	o.Int("high_watermark", r.Log.HighWatermark)
	o.Str("high_watermark_source", strings.ReplaceAll(r.WatermarkSource, " ", "_"))
	o.Int("log_start_offset", r.Log.StartOffset)
	o.Str("log_start_offset_source", strings.ReplaceAll(r.StartSource, " ", "_"))
	o.Int("log_end_offset", r.Log.EndOffset)
	o.Time("now", r.Log.NowMs)
	o.Bool("tiered", r.Log.Limits.Tiered)
	o.Value("warnings", append([]string{}, r.Warnings...))
	return o.Line()
}

// place names the partition, and the log directory it lies in: several may hold one of that name.
func (r *Report) place(o *render.Obj) {
	o.StrOrNull("topic", r.Partition.Topic)
	o.Str("partition", r.Partition.Name)
	if r.Partition.Parent == nil {
		o.Null("log_dir")
	} else {
		o.Str("log_dir", r.Partition.Parent.Display)
	}
}

func number(o *render.Obj, name string, s state.Setting) {
	o.Open(name)
	o.Int("value", s.Int())
	origin(o, s)
}

// origin ends the object of a setting.
func origin(o *render.Obj, s state.Setting) {
	o.Str("source", string(s.Source))
	o.StrOrNull("key", s.Key)
	o.StrOrNull("from", s.Where)
	o.Close()
}

func (r *Report) appendSegment(dst []byte, i int) []byte {
	s := r.Segments[i]
	o := render.NewObj(dst, "segment_retention")
	r.place(&o)
	o.Int("base_offset", s.Base)
	o.Int("size", s.Size)
	o.Bool("active", s.Active())
	o.Time("largest_timestamp", s.LargestMs)
	o.Str("largest_timestamp_source", string(s.Source))
	o.Time("log_largest_timestamp", s.log.largestMs)
	o.Time("oldest_timestamp", s.log.oldestMs)
	o.Int("age_ms", r.Log.NowMs-s.LargestMs)
	o.Bool("deletable", s.Verdict.Rule != Keep)
	o.StrOrNull("rule", string(s.Verdict.Rule))
	o.Str("reason", r.Reason(i))
	r.timeOrNull(&o, "deletable_at", s.Verdict.AtMs)
	r.appendBlocker(&o, "blocked_by", s.Verdict.By)
	r.appendBlocker(&o, "blocked_longest_by", s.Verdict.ByLongest)
	o.Int("blocks", int64(s.Shields))
	r.timeOrNull(&o, "rolls_at", r.rollsAt(s))
	o.Value("warnings", append([]string{}, s.Warnings...))
	return o.Line()
}

func (r *Report) timeOrNull(o *render.Obj, name string, ms int64) {
	if ms == Never {
		ms = render.NoTimestamp
	}
	o.Time(name, ms)
}

// appendBlocker names the segment that shields another, and its record whose time has not come; offset is null where
// that is not a record's time but the file's, or what a time index claims. Where no timestamp holds the other, it is
// null.
func (r *Report) appendBlocker(o *render.Obj, name string, by int) {
	if by < 0 || r.Segments[by].Verdict.Hold != HoldYoung {
		o.Null(name)
		return
	}
	s := r.Segments[by]
	o.Open(name)
	o.Int("base_offset", s.Base)
	if s.Blocking == nil {
		o.Null("offset")
	} else {
		o.Int("offset", s.Blocking.Offset)
	}
	o.Int("timestamp", s.LargestMs)
	o.Close()
}

// rollsAt is the timestamp from which on a record rolls the active segment by segment.ms (LogSegment.shouldRoll): that
// counts from the first batch's timestamp. It is Never for other segments, and for one whose first batch has none.
func (r *Report) rollsAt(s *SegmentReport) int64 {
	roll := r.Settings.rollMs()
	if !s.Active() || s.log.firstMs < 0 || roll <= 0 {
		return Never
	}
	return later(later(s.log.firstMs, roll), 1)
}

// CSV are the columns of -o csv, by the names of JSON.
var CSV = []string{"partition", "log_dir", "base_offset", "size", "active", "largest_timestamp",
	"largest_timestamp_source", "log_largest_timestamp", "oldest_timestamp", "age_ms", "deletable", "rule", "reason",
	"deletable_at", "blocked_by.base_offset", "blocked_by.offset", "blocked_by.timestamp"}
