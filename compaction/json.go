package compaction

import (
	"fmt"
	"strconv"

	"kseg/broker"
	"kseg/render"
	"kseg/schema"
	"kseg/state"
)

// AppendJSON appends the report: the partition, its segments, and what was asked of keys, an object a line.
func (r *Report) AppendJSON(dst []byte, payload render.Payload) []byte {
	dst = r.appendPartition(dst)
	if r.Round != nil {
		for i := range r.Round.Segments {
			dst = r.appendSegment(dst, &r.Round.Segments[i])
		}
	}
	for i := range r.Life {
		dst = r.appendLife(dst, &r.Life[i])
	}
	if r.Census != nil {
		dst = r.appendCensus(dst, payload)
	}
	return dst
}

// place names the partition, and the log directory it lies in: several may hold one of that name.
func (r *Report) place(o *render.Obj) {
	o.StrOrNull("topic", r.Partition.Topic)
	o.Str("partition", r.Partition.Name)
	dir := ""
	if r.Partition.Parent != nil {
		dir = r.Partition.Parent.Display
	}
	o.StrOrNull("log_dir", dir)
}

func (r *Report) appendPartition(dst []byte) []byte {
	g, round := &r.Range, r.Round
	if round == nil {
		round = &broker.Round{Exact: true}
	}
	o := render.NewObj(dst, "compaction")
	r.place(&o)
	intOrNull(&o, "cleaned_to", r.Log.CleanedTo)
	o.Int("first_dirty_offset", g.FirstDirty)
	o.StrOrNull("checkpoint_reset", g.Reset)
	o.Int("first_uncleanable_offset", g.FirstUncleanable)
	o.Str("uncleanable_reason", string(g.Limit))
	r.appendTransaction(&o)
	o.Int("cleans_to", g.CleanTo)
	o.Int("clean_bytes", g.CleanBytes)
	o.Int("cleanable_bytes", g.DirtyBytes)
	o.Int("total_bytes", g.CleanBytes+g.DirtyBytes)
	if ratio := g.Ratio(); ratio == ratio {
		o.Raw("dirty_ratio", strconv.AppendFloat(nil, ratio, 'g', -1, 64))
	} else {
		o.Null("dirty_ratio")
	}
	o.Bool("would_clean", r.Would)
	o.Bool("forced", r.Forced)
	o.IntOrNull("place", int64(r.Place), r.Place > 0)
	o.Str("reason", r.Reason)
	o.Bool("policy_assumed", r.Settings.Assumed)
	timeOrNull(&o, "clean_at", r.CleanAt)
	o.Int("records_read", round.RecordsRead)
	o.Int("records_kept", round.RecordsKept)
	o.Int("bytes_read", round.BytesRead)
	o.IntOrNull("bytes_kept", round.BytesKept, round.Exact)
	o.Int("bytes_kept_about", round.BytesKept)
	o.IntOrNull("cleaned_to_after", round.EndOffset, r.Round != nil)
	o.Int("keys", round.Keys)
	o.Int("map_bytes", round.Keys*broker.OffsetMapEntry)
	o.Int("map_keys_at_most", r.model.MapKeys())
	o.Bool("map_full", round.MapFull)
	o.Int("empty_batches_kept", round.EmptyBatches)
	o.Int("delete_horizons_set", round.NewHorizons)
	appendAfter(&o, round.After)
	r.appendStop(&o, round.Stops)
	o.Int("log_start_offset", r.Log.StartOffset)
	o.Int("last_stable_offset", r.Log.StableOffset)
	o.Int("high_watermark", r.Log.HighWatermark)
	o.Int("log_end_offset", r.Log.EndOffset)
	o.Time("now", r.now)
	r.appendSettings(&o)
	o.Bool("as_loaded", !r.Log.Splits)
	o.Strs("warnings", r.Warnings)
	return o.Line()
}

func intOrNull(o *render.Obj, name string, n *int64) {
	if n == nil {
		o.Null(name)
		return
	}
	o.Int(name, *n)
}

func timeOrNull(o *render.Obj, name string, ms *int64) {
	if ms == nil {
		o.Time(name, render.NoTimestamp)
		return
	}
	o.Time(name, *ms)
}

// appendTransaction names the producer whose open transaction sets the limit.
func (r *Report) appendTransaction(o *render.Obj) {
	if r.Range.Limit != broker.LimitTransaction || len(r.Log.Open) == 0 {
		o.Null("open_transaction")
		return
	}
	t := r.Log.Open[0]
	o.Open("open_transaction")
	o.Int("producer_id", t.ProducerID)
	o.Int("producer_epoch", int64(t.ProducerEpoch))
	o.Int("first_offset", t.CurrentTxnFirstOffset)
	o.Time("last_timestamp", t.TimestampMs)
	o.Close()
}

func appendAfter(o *render.Obj, after []broker.SegmentAfter) {
	o.OpenArray("segments_after")
	for _, s := range after {
		o.Open("")
		o.Int("base_offset", s.Base)
		o.IntOrNull("size", s.Size, s.Exact)
		o.IntOrNull("index_size", s.IndexSize, s.Exact)
		o.IntOrNull("time_index_size", s.TimeIndexSize, s.Exact)
		o.Int("txn_index_size", s.TxnIndexSize)
		o.Close()
	}
	o.CloseArray()
}

func (r *Report) appendStop(o *render.Obj, stop *broker.Stop) {
	if stop == nil {
		o.Null("stops")
		return
	}
	o.Open("stops")
	o.Int("base_offset", stop.Segment)
	o.Int("position", stop.Pos)
	o.Bool("splits", stop.Splits)
	o.Str("message", stop.Error())
	o.Close()
}

func (r *Report) appendSettings(o *render.Obj) {
	s := &r.Settings
	o.Open("settings")
	for _, x := range []struct {
		name    string
		setting state.Setting
		text    bool
	}{
		{"cleanup_policy", s.CleanupPolicy, true}, {"min_cleanable_dirty_ratio", s.MinDirtyRatio, false},
		{"min_compaction_lag_ms", s.MinLagMs, false}, {"max_compaction_lag_ms", s.MaxLagMs, false},
		{"delete_retention_ms", s.DeleteRetentionMs, false}, {"segment_bytes", s.SegmentBytes, false},
		{"segment_index_bytes", s.SegmentIndexBytes, false}, {"index_interval_bytes", s.IndexInterval, false},
		{"log_cleaner_enable", s.CleanerEnable, true}, {"log_cleaner_dedupe_buffer_size", s.DedupeBuffer, false},
		{"log_cleaner_threads", s.Threads, false}, {"producer_id_expiration_ms", s.ProducerExpiration, false},
	} {
		o.Open(x.name)
		switch {
		case x.text:
			o.Str("value", x.setting.Value)
		case x.name == "min_cleanable_dirty_ratio":
			o.Raw("value", strconv.AppendFloat(nil, decimal(x.setting), 'g', -1, 64))
		default:
			o.Int("value", x.setting.Int())
		}
		o.Str("source", string(x.setting.Source))
		o.StrOrNull("key", x.setting.Key)
		o.StrOrNull("from", x.setting.Where)
		o.Close()
	}
	o.Close()
}

func (r *Report) appendSegment(dst []byte, s *broker.SegmentRound) []byte {
	o := render.NewObj(dst, "compaction_segment")
	r.place(&o)
	o.Int("base_offset", s.Base)
	o.Int("size", s.Size)
	o.Int("records", s.Records)
	o.Int("records_kept", s.Kept)
	o.Open("removed")
	o.Int("superseded", s.Removed.Superseded)
	o.Int("tombstone", s.Removed.Tombstone)
	o.Int("aborted", s.Removed.Aborted)
	o.Int("marker", s.Removed.Marker)
	o.Int("no_key", s.Removed.NoKey)
	o.Close()
	o.Int("into", s.Into)
	return o.Line()
}

func (r *Report) appendLife(dst []byte, k *KeyRecord) []byte {
	o := render.NewObj(dst, "compaction_record")
	r.place(&o)
	o.Int("base_offset", k.Segment)
	o.Int("offset", k.Offset)
	o.Time("timestamp", k.TimestampMs)
	o.IntOrNull("value_size", k.ValueSize, k.ValueSize >= 0)
	o.Str("fate", string(k.Fate))
	o.IntOrNull("superseded_by", k.SupersededBy, k.Fate == FateSuperseded)
	timeOrNull(&o, "delete_horizon_ms", k.HorizonMs)
	return o.Line()
}

func (r *Report) appendCensus(dst []byte, payload render.Payload) []byte {
	o := render.NewObj(dst, "compaction_keys")
	r.place(&o)
	o.Int("records", r.Census.Records)
	o.Int("records_without_key", r.Census.NoKey)
	o.Int("unique_keys", r.Census.Unique)
	dst = o.Line()
	topic, decoder := schema.TopicFor(r.Partition.Name), keyDecoder(payload)
	for i := range r.Census.Top {
		k := &r.Census.Top[i]
		o := render.NewObj(dst, "compaction_key")
		r.place(&o)
		if k.Key == nil {
			o.Raw("key", fmt.Appendf(nil, `{"length":%d}`, k.Size))
		} else {
			o.Bytes("key", k.Key, payload)
		}
		if topic == schema.None || k.Key == nil {
			o.Null("decoded")
		} else {
			o.Raw("decoded", decoder.AppendJSON(nil, topic, k.Key, nil))
		}
		o.Int("records", k.Records)
		o.Int("bytes", k.Bytes)
		o.Int("first_offset", k.First)
		o.Int("last_offset", k.Last)
		o.Bool("tombstone", k.Tombstone)
		dst = o.Line()
	}
	return dst
}
