package txn

import (
	"cmp"
	"slices"
	"strings"

	"kseg/format"
	"kseg/render"
	"kseg/state"
)

// AppendJSON appends the partition, its open transactions and its finished ones, an object a line.
func (r *Report) AppendJSON(dst []byte) []byte {
	o := render.NewObj(dst, "partition_transactions")
	o.StrOrNull("topic", r.Partition.Topic)
	o.Str("partition", r.Partition.Name)
	o.Int("log_start_offset", r.LogStart)
	o.Int("high_watermark", r.HighWatermark)
	o.Str("high_watermark_source", strings.ReplaceAll(r.WatermarkSource, " ", "_"))
	o.Int("log_end_offset", r.LogEnd)
	o.Int("last_stable_offset", r.LastStable)
	o.Int("held_back_records", r.HeldRecords)
	o.Int("held_back_bytes", r.HeldBytes)
	o.Int("open_transactions", int64(len(r.Producers.Open())))
	o.Int("producers", int64(r.Len()))
	o.IntOrNull("snapshot_offset", r.From, r.Snapshot != nil)
	o.OpenArray("lost")
	for _, l := range r.Missing {
		o.Open("")
		o.Int("first_offset", l.First)
		o.IntOrNull("last_offset", l.Last, !l.Open)
		o.Close()
	}
	o.CloseArray()
	o.Strs("warnings", r.Warnings())
	dst = o.Line()
	for _, list := range [][]Transaction{r.Open, r.Finished} {
		for i := range list {
			dst = r.appendTransaction(dst, &list[i])
		}
	}
	return dst
}

func (r *Report) appendTransaction(dst []byte, t *Transaction) []byte {
	o := render.NewObj(dst, "transaction")
	o.StrOrNull("topic", r.Partition.Topic)
	o.Str("partition", r.Partition.Name)
	o.Int("producer_id", t.ProducerID)
	o.Int("producer_epoch", int64(t.ProducerEpoch))
	c := t.Coordinator
	if c == nil {
		o.Null("transactional_id")
	} else {
		o.Str("transactional_id", c.ID)
	}
	o.Int("first_offset", t.FirstOffset)
	o.IntOrNull("last_offset", t.LastOffset, t.Seen)
	first, last := int64(render.NoTimestamp), int64(render.NoTimestamp)
	if t.Seen {
		first, last = t.FirstMs, t.LastMs
	}
	o.Time("first_timestamp", first)
	o.Time("last_timestamp", last)
	o.IntOrNull("age_ms", r.nowMs-t.FirstMs, t.Seen && t.Open())
	o.Int("records", t.Records)
	o.Int("bytes", t.Bytes)
	o.Int("records_after", t.AfterRecords)
	o.Int("bytes_after", t.AfterBytes)
	o.Str("status", string(t.Status))
	o.IntOrNull("marker_offset", t.Marker, !t.Open())
	marked := int64(render.NoTimestamp)
	if !t.Open() {
		marked = t.MarkerMs
	}
	o.Time("marker_timestamp", marked)
	o.IntOrNull("coordinator_epoch", int64(t.CoordinatorEpoch), t.CoordinatorEpoch >= 0)
	if c == nil || !t.Open() {
		o.Null("coordinator_state")
	} else {
		o.Str("coordinator_state", c.Status.String())
	}
	o.IntOrNull("timeout_ms", timeout(c), c != nil)
	o.IntOrNull("coordinator_partition", place(c), c != nil)
	o.IntOrNull("coordinator_offset", offset(c), c != nil)
	o.Bool("holds_last_stable_offset", t.Open() && t.FirstOffset <= r.LastStable)
	o.Bool("below_log_start", t.BelowStart)
	o.StrOrNull("unsure", t.Unsure)
	reason, next := "", ""
	if t.Open() {
		reason = r.reason(t)
	}
	if t.Status == Hanging {
		next = r.AbortLine(t)
	}
	o.StrOrNull("reason", reason)
	o.StrOrNull("next", next)
	return o.Line()
}

func timeout(c *state.CoordinatorTxn) int64 {
	if c == nil {
		return 0
	}
	return int64(c.TimeoutMs)
}

func place(c *state.CoordinatorTxn) int64 {
	if c == nil {
		return 0
	}
	return int64(c.Partition)
}

func offset(c *state.CoordinatorTxn) int64 {
	if c == nil {
		return 0
	}
	return c.Offset
}

// Columns are those of a table of transactions.
func Columns() []render.Column {
	return []render.Column{{Name: "status"}, {Name: "partition"}, {Name: "producer", Right: true},
		{Name: "transactional.id"}, {Name: "first offset", Right: true}, {Name: "last offset", Right: true},
		{Name: "began"}, {Name: "last record"}, {Name: "records", Right: true}, {Name: "bytes", Right: true},
		{Name: "records after", Right: true}, {Name: "marker", Right: true}, {Name: "coordinator"}, {Name: "unsure"},
		{Name: "why"}}
}

// Rows are the rows of the partition's transactions under Columns.
func (r *Report) Rows(theme render.Theme) [][]string {
	var rows [][]string
	for _, list := range [][]Transaction{r.Open, r.Finished} {
		for i := range list {
			rows = append(rows, r.cells(&list[i], theme))
		}
	}
	return rows
}

func (r *Report) cells(t *Transaction, theme render.Theme) []string {
	id, coordinator, last, first, latest := "-", "-", "-", "-", "-"
	if c := t.Coordinator; c != nil {
		id, coordinator = render.Escaped(c.ID), c.Status.String()
	}
	if t.Seen {
		last, first, latest = itoa(t.LastOffset), render.Instant(t.FirstMs), render.Instant(t.LastMs)
	}
	status, marker, why := string(t.Status), "-", ""
	switch t.Status {
	case Hanging:
		status = theme.Bad(status)
	case Overdue:
		status = theme.Look(status)
	}
	if t.Open() {
		why = render.Escaped(r.reason(t))
	} else {
		marker, coordinator = itoa(t.Marker), "-"
	}
	return []string{status, render.Escaped(r.Partition.Name), itoa(t.ProducerID) + "/" + itoa(int64(t.ProducerEpoch)), id,
		itoa(t.FirstOffset), last, first, latest, itoa(t.Records), itoa(t.Bytes), itoa(t.AfterRecords), marker, coordinator,
		render.Escaped(cmp.Or(t.Unsure, "-")), why}
}

// producers are those that the filters keep, by id.
func (r *Report) producers(o *Options) []format.ProducerEntry {
	entries := slices.DeleteFunc(r.Entries(), func(e format.ProducerEntry) bool {
		return !o.wants(e.ProducerID, r.coordinators.Of(e.ProducerID))
	})
	slices.SortFunc(entries, func(a, b format.ProducerEntry) int { return cmp.Compare(a.ProducerID, b.ProducerID) })
	return entries
}

// AppendProducersJSON appends what a broker's DescribeProducers would say of the partition, an object a producer.
func (r *Report) AppendProducersJSON(dst []byte, options *Options) []byte {
	for _, e := range r.producers(options) {
		o := render.NewObj(dst, "producer")
		o.StrOrNull("topic", r.Partition.Topic)
		o.Str("partition", r.Partition.Name)
		o.Int("producer_id", e.ProducerID)
		o.Int("producer_epoch", int64(e.ProducerEpoch))
		o.IntOrNull("last_sequence", int64(e.LastSequence), e.HasBatch() && e.LastSequence >= 0)
		o.Time("last_timestamp", e.TimestampMs)
		o.IntOrNull("coordinator_epoch", int64(e.CoordinatorEpoch), e.CoordinatorEpoch >= 0)
		o.IntOrNull("current_txn_first_offset", e.CurrentTxnFirstOffset, e.InTransaction())
		o.Int("idle_ms", r.nowMs-e.TimestampMs)
		if c := r.coordinators.Of(e.ProducerID); c != nil {
			o.Str("transactional_id", c.ID)
		} else {
			o.Null("transactional_id")
		}
		o.Bool("unsure", len(r.Lost) > 0 && r.doubtful(e))
		dst = o.Line()
	}
	return dst
}

// doubtful reports whether offsets were lost after what is known of a producer.
func (r *Report) doubtful(e format.ProducerEntry) bool {
	last := r.Lost[len(r.Lost)-1]
	return last.Open || e.LastOffset < last.Last
}

// ProducerColumns are those of a table of producers.
func ProducerColumns() []render.Column {
	return []render.Column{{Name: "partition"}, {Name: "producer id", Right: true}, {Name: "epoch", Right: true},
		{Name: "last sequence", Right: true}, {Name: "last timestamp"}, {Name: "idle", Right: true},
		{Name: "coordinator epoch", Right: true}, {Name: "open since", Right: true}, {Name: "transactional.id"}}
}

// ProducerRows are the rows of the partition's producers under ProducerColumns.
func (r *Report) ProducerRows(options *Options, theme render.Theme) [][]string {
	var rows [][]string
	for _, e := range r.producers(options) {
		id, open := "-", "-"
		if c := r.coordinators.Of(e.ProducerID); c != nil {
			id = render.Escaped(c.ID)
		}
		if e.InTransaction() {
			open = theme.Look(itoa(e.CurrentTxnFirstOffset))
		}
		if len(r.Lost) > 0 && r.doubtful(e) {
			open += theme.Look(" (unsure)")
		}
		rows = append(rows, []string{render.Escaped(r.Partition.Name), itoa(e.ProducerID), itoa(int64(e.ProducerEpoch)),
			itoa(int64(e.LastSequence)),
			render.Instant(e.TimestampMs), render.Duration(r.nowMs - e.TimestampMs), itoa(int64(e.CoordinatorEpoch)), open, id})
	}
	return rows
}
