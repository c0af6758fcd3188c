package lookup

import (
	"kseg/render"
)

// AppendJSON appends the lookup as an object of kind lookup, one line; spill is for records that are long.
func (r *Result) AppendJSON(dst []byte, payload render.Payload, spill render.Spill) []byte {
	o := render.NewObj(dst, "lookup")
	o.Spill = spill
	o.StrOrNull("topic", r.Partition.Topic)
	o.Str("partition", r.Partition.Name)
	o.Str("path", r.Partition.Display)
	o.IntOrNull("target", r.Target, r.Target >= 0 || r.Time == nil)
	if r.Time == nil {
		o.Null("timestamp")
		o.Null("timestamp_utc")
	} else {
		o.Time("timestamp", r.Time.TimestampMs)
	}
	try := r.last()
	if try == nil {
		try = &Try{Base: -1, Index: IndexStep{Missing: true}}
	}
	o.IntOrNull("segment", try.Base, len(r.Tries) > 0)
	appendIndexStep(&o, "index", &try.Index, false)
	appendIndexStep(&o, "time_index", try.Time, true)
	o.OpenArray("hops")
	for _, h := range try.Hops {
		o.Open("")
		o.Int("position", h.Position)
		o.Int("size", h.Size)
		o.Int("base_offset", h.BaseOffset)
		o.Int("last_offset", h.LastOffset)
		o.Close()
	}
	o.CloseArray()
	o.Int("hops_omitted", try.Scan.HeaderHops-int64(len(try.Hops)))
	r.appendScan(&o, try)
	r.appendAnswer(&o, payload)
	return o.Line()
}

func (r *Result) appendScan(o *render.Obj, try *Try) {
	found := r.Outcome == Found
	o.Bool("found", found)
	o.Str("outcome", outcomeNames[r.Outcome])
	o.Bool("wrong", r.Wrong())
	o.IntOrNull("position", try.Scan.Hit.Position, found)
	o.IntOrNull("size", try.Scan.Hit.Size, found)
	o.IntOrNull("base_offset", try.Scan.Hit.BaseOffset, found)
	o.IntOrNull("last_offset", try.Scan.Hit.LastOffset, found)
	o.Int("bytes_scanned", try.Scan.BytesScanned())
	o.Int("header_hops", try.Scan.HeaderHops)
	o.Int("header_reads", try.Scan.HeaderReads)
	o.Int("lookahead_reads", try.Scan.LookaheadReads)
	bounded := r.Time == nil && len(r.Tries) > 0
	o.IntOrNull("bound", r.Bound, bounded)
	if bounded && found {
		o.Bool("bound_held", try.Scan.BytesScanned() <= r.Bound)
	} else {
		o.Null("bound_held")
	}
	o.Int("interval", r.Interval.Bytes)
	o.Str("interval_source", r.Interval.Source)
}

func (r *Result) appendAnswer(o *render.Obj, payload render.Payload) {
	if r.Time == nil {
		o.Null("record_offset")
		o.Null("record_timestamp")
	} else {
		o.IntOrNull("record_offset", r.Time.Offset, r.Outcome == Found)
		o.IntOrNull("record_timestamp", r.Time.RecordTimestampMs, r.Outcome == Found)
		o.IntOrNull("true_offset", truthOffset(r.Time.Truth), r.Time.Truth != nil)
	}
	o.IntOrNull("log_start_offset", r.Start, r.Start >= 0)
	o.IntOrNull("log_end_offset", r.End, r.End >= 0)
	o.IntOrNull("high_watermark", r.Partition.HighWatermark, r.Partition.HighWatermark >= 0)
	b := r.Batch
	if b == nil {
		b = &HitBatch{}
	}
	o.IntOrNull("batch_records", b.Records, r.Batch != nil)
	o.IntOrNull("discarded_records", b.Discarded, r.Batch != nil)
	if len(b.List) > 0 {
		o.OpenArray("records")
		for _, rec := range b.List {
			o.Open("")
			o.Int("offset", rec.Offset)
			o.Time("timestamp", rec.TimestampMs)
			o.Bool("discarded", rec.Discarded)
			o.Bytes("key", rec.Key, payload)
			o.Bytes("value", rec.Value, payload)
			o.Close()
		}
		o.CloseArray()
	}
	o.Strs("notes", r.Notes)
}

func truthOffset(t *TimedRecord) int64 {
	if t == nil {
		return -1
	}
	return t.Offset
}

var outcomeNames = [...]string{
	Found: "found", AtEnd: "at-end", BelowStart: "below-start", BeyondEnd: "beyond-end", Nothing: "nothing",
	Failed: "failed", Remote: "remote",
}

// appendIndexStep appends the search in an index. The position of a time index's entry is the offset that it holds.
func appendIndexStep(o *render.Obj, name string, x *IndexStep, isTime bool) {
	if x == nil || x.Missing {
		o.Null(name)
		return
	}
	o.Open(name)
	o.StrOrNull("file", x.File)
	o.Int("entries", int64(x.Entries))
	o.OpenArray("probes")
	for _, slot := range x.Search.Probes {
		o.Int("", int64(slot))
	}
	o.CloseArray()
	o.Str("section", x.Search.Section.String())
	o.IntOrNull("slot", int64(x.Search.Slot), x.Search.Slot >= 0)
	o.Int("key", x.Key)
	o.Int("position", x.Value)
	if isTime {
		o.Int("offset", x.Value)
	}
	o.Close()
}

// appendDistribution appends a cost as an object.
func appendDistribution(o *render.Obj, name string, d Distribution) {
	o.Open(name)
	o.Float("mean", d.Mean, 3)
	o.Int("p50", d.P50)
	o.Int("p99", d.P99)
	o.Int("max", d.Max)
	o.Close()
}

// SweepCSV and DensityCSV are the columns of -o csv, by the names of JSON.
var (
	SweepCSV = []string{"partition", "segment", "offsets", "batches", "entries", "interval", "bytes_scanned.mean",
		"bytes_scanned.p50", "bytes_scanned.p99", "bytes_scanned.max", "header_hops.mean", "header_hops.p50",
		"header_hops.p99", "header_hops.max", "worst_offset", "bound"}
	DensityCSV = []string{"path", "interval", "rule", "segments", "batches", "mean_batch_bytes", "entries",
		"entries_per_batch",
		"bytes_per_entry", "regime", "bytes_scanned.mean", "bytes_scanned.max", "header_hops.mean", "header_hops.max", "maps"}
)
