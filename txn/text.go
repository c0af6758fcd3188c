package txn

import (
	"fmt"
	"strconv"
	"strings"

	"kseg/render"
	"kseg/state"
)

// AppendText appends the report for a reader: where the partition stands, each open transaction with what to do about
// it, and the finished ones as a table. Lines of prose are broken to width.
func (r *Report) AppendText(dst []byte, theme render.Theme, width int) []byte {
	dst = append(dst, theme.Strong(render.Escaped(r.Partition.Display))...)
	dst = append(dst, '\n')
	dst = render.AppendParts(dst, r.header(), width)
	for i := range r.Open {
		dst = append(dst, '\n')
		dst = r.appendOpen(dst, &r.Open[i], theme, width)
	}
	if len(r.Finished) > 0 {
		dst = append(dst, '\n')
		table := render.NewColumns("lrrrnllrrr").Fit(theme, 6, 8, 5, 7, 3)
		table.Head("status", "producer", "first offset", "last offset", "transactional.id", "began", "took", "records",
			"size", "marker")
		for i := range r.Finished {
			table.Row(r.finishedCells(&r.Finished[i], theme)...)
		}
		dst = table.Append(dst, "")
	}
	return r.AppendWarnings(dst, theme, width)
}

// header says where the partition stands.
func (r *Report) header() []string {
	parts := []string{
		"last stable offset " + itoa(r.LastStable),
		fmt.Sprintf("high watermark %d (%s)", r.HighWatermark, r.WatermarkSource),
		fmt.Sprintf("log %d to %d", r.LogStart, r.LogEnd),
	}
	switch {
	case r.LastStable < r.HighWatermark:
		parts = append(parts, "held back: "+render.Plural(r.HeldRecords, "record", "records")+", "+render.Bytes(r.HeldBytes))
	default:
		parts = append(parts, "nothing held back")
	}
	switch {
	case r.Snapshot != nil:
		parts = append(parts, "producers from "+r.Snapshot.Name.Raw)
	case r.Trusting:
		parts = append(parts, "no snapshot")
	default:
		parts = append(parts, "producers from the log")
	}
	return parts
}

// appendOpen appends an open transaction: its verdict, what it is, and the next step.
func (r *Report) appendOpen(dst []byte, t *Transaction, theme render.Theme, width int) []byte {
	status := string(t.Status)
	switch t.Status {
	case Hanging:
		status = theme.Bad(status)
	case Overdue:
		status = theme.Look(status)
	}
	const indent = "          "
	for i, sentence := range r.sentences(t) {
		lead := indent
		if i == 0 {
			lead = status + strings.Repeat(" ", len(indent)-len(t.Status))
		}
		for _, line := range render.Wrap(render.Escaped(sentence), max(20, width-len(indent))) {
			dst = append(append(append(dst, lead...), line...), '\n')
			lead = indent
		}
	}
	if t.Status == Hanging && r.Partition.Suffix == "" && r.Partition.Named {
		// A command is not broken, so that it can be copied.
		dst = fmt.Appendf(dst, "%snext: %s\n", indent, r.AbortLine(t))
		dst = fmt.Appendf(dst, "%s(brokers before 3.0: %s in place of --start-offset)\n", indent, r.OldAbortLine(t))
	}
	return dst
}

// sentences tell of an open transaction, a paragraph each.
func (r *Report) sentences(t *Transaction) []string {
	who := fmt.Sprintf("producer %d, epoch %d", t.ProducerID, t.ProducerEpoch)
	if t.Coordinator != nil {
		who += ", transactional.id " + t.Coordinator.ID
	}
	what := fmt.Sprintf("%s: open since offset %d", who, t.FirstOffset)
	if t.Seen {
		what += fmt.Sprintf(", %s (%s)", render.Minute(t.FirstMs), ago(r.nowMs-t.FirstMs))
	}
	out := []string{what}
	size := "no record of it is left in the log"
	if t.Seen {
		size = fmt.Sprintf("%s, %s, up to offset %d, %s", render.Plural(t.Records, "record", "records"),
			render.Bytes(t.Bytes), t.LastOffset, render.Minute(t.LastMs))
	}
	if t.FirstOffset <= r.LastStable {
		size += "; it holds the last stable offset"
	}
	out = append(out, size+fmt.Sprintf("; %s after its first one, which read_committed consumers can't get",
		render.Plural(t.AfterRecords, "record of others ("+render.Bytes(t.AfterBytes)+")",
			"records of others ("+render.Bytes(t.AfterBytes)+")")))
	if t.BelowStart {
		out = append(out, fmt.Sprintf("its first record is below the log start %d: what remembers it is %s", r.LogStart,
			r.memory()))
	}
	out = append(out, r.reason(t))
	if t.Unsure != "" {
		out = append(out, "unsure: "+t.Unsure)
	}
	return out
}

// memory names what an open transaction is known from.
func (r *Report) memory() string {
	if r.Snapshot != nil {
		return r.Snapshot.Name.Raw
	}
	return "the batches before it in its segment"
}

// ago writes how long ago something was.
func ago(ms int64) string {
	if ms < 0 {
		return "in " + render.Duration(-ms)
	}
	return render.Duration(ms) + " ago"
}

// reason is why a transaction stands as it does.
func (r *Report) reason(t *Transaction) string {
	c := t.Coordinator
	if c == nil {
		return r.unknown(t)
	}
	said := fmt.Sprintf("its coordinator (__transaction_state-%d, record %d) has it %s", c.Partition, c.Offset, c.Status)
	switch {
	case !c.Has(r.TP()) && c.Status.Pending():
		return said + ", but not in this partition: no marker will come here"
	case !c.Status.Pending():
		return said + ": no marker will come here"
	case c.Status != state.TxnOngoing:
		return said + ": it writes the marker as soon as it runs and reaches the leader of this partition"
	}
	said += fmt.Sprintf(" since %s, timeout %s", render.Minute(c.StartMs), render.Duration(int64(c.TimeoutMs)))
	if t.Status == Overdue {
		return said + ": a running coordinator aborts it within seconds"
	}
	return said
}

// unknown is the reason where no coordinator's record was found.
func (r *Report) unknown(t *Transaction) string {
	known := r.coordinators
	switch {
	case t.Status == Hanging:
		return fmt.Sprintf("none of the %s of __transaction_state knows the producer: no marker will come here",
			render.Plural(int64(known.Count), "partition", "partitions"))
	case known.Complete():
		return "no coordinator knows the producer, but it wrote less than a minute ago: look again"
	}
	text := "what its coordinator knows is not among the inputs: "
	switch {
	case len(known.Read) == 0:
		text += "there is no partition of __transaction_state"
	case len(known.Lost) > 0:
		text += "offsets of __transaction_state are lost"
	case known.Count == 0:
		text += "there is " + render.Plural(int64(len(known.Read)), "partition", "partitions") +
			" of __transaction_state, and no metadata says how many there should be"
	default:
		text += fmt.Sprintf("%d of %d partitions of __transaction_state are there", len(known.Read), known.Count)
	}
	if t.Status == Overdue {
		text += "; nothing of it came for longer than the largest timeout that brokers allow by default (15 min)"
	}
	return text
}

func (r *Report) finishedCells(t *Transaction, theme render.Theme) []string {
	id := "-"
	if t.Coordinator != nil {
		id = render.Escaped(t.Coordinator.ID)
	}
	status := string(t.Status)
	if t.Unsure != "" {
		status = theme.Look(status + "?")
	}
	return []string{status, itoa(t.ProducerID) + "/" + itoa(int64(t.ProducerEpoch)), itoa(t.FirstOffset),
		itoa(t.LastOffset), id, render.Minute(t.FirstMs), render.Duration(t.MarkerMs - t.FirstMs), render.Count(t.Records),
		render.Bytes(t.Bytes), itoa(t.Marker)}
}

// AppendWarnings appends what makes the answer uncertain, a paragraph each.
func (r *Report) AppendWarnings(dst []byte, theme render.Theme, width int) []byte {
	for _, w := range r.Warnings() {
		lead := "warning  "
		for _, line := range render.Wrap(render.Escaped(w), max(20, width-len(lead))) {
			if lead == "warning  " {
				dst = append(append(dst, theme.Look("warning")...), "  "...)
			} else {
				dst = append(dst, lead...)
			}
			lead = "         "
			dst = append(append(dst, line...), '\n')
		}
	}
	return dst
}

// Warnings are sentences about what makes the answer uncertain.
func (r *Report) Warnings() []string {
	var out []string
	if len(r.Missing) > 0 {
		const most = 10
		text := state.LostText(r.Missing[:min(most, len(r.Missing))])
		if more := len(r.Missing) - most; more > 0 {
			text += fmt.Sprintf(", and %d more ranges", more)
		}
		out = append(out, "offsets "+text+" are lost: transactions may have begun or ended there; kseg verify says where "+
			"the log is damaged")
	}
	if r.Dropped > 0 {
		out = append(out, fmt.Sprintf("%s before these are not listed: --producer-id or --transactional-id shows those of "+
			"one producer",
			render.Plural(r.Dropped, "finished transaction", "finished transactions")))
	}
	for _, p := range r.Unusable {
		out = append(out, p.Error())
	}
	if r.Refused != nil {
		out = append(out, fmt.Sprintf("a broker gives up loading the partition: %v", r.Refused))
	}
	switch {
	case r.Start == nil || r.Refused != nil:
	case r.Start.Failure != nil:
		out = append(out, fmt.Sprintf("this is the log as it is on disk, and a broker does not load it: %v",
			r.Start.Failure))
	case r.Start.LogEnd < r.LogEnd:
		out = append(out, fmt.Sprintf("this is the log as it is on disk: the next start, after a stop that was not "+
			"clean, cuts it at offset %d, and transactions begin and end as of there; kseg predict shows the cut",
			r.Start.LogEnd))
	}
	if r.Trusting && r.LogEnd > r.LogStart {
		out = append(out, "there is no snapshot, and the broker was stopped cleanly: it begins without producers, whatever "+
			"the log holds; --shutdown unclean shows what the log holds")
	}
	return out
}

func itoa(n int64) string { return strconv.FormatInt(n, 10) }
