package txn

import (
	"fmt"
	"strings"

	"kseg/render"
	"kseg/state"
)

// IDs are the transactional ids that are shown: all that the filters keep if all is set or one is asked for, else those
// whose transaction is not over for their coordinator.
func (j *Judge) IDs() []*state.CoordinatorTxn {
	var kept []*state.CoordinatorTxn
	asked := j.Options.All || len(j.Options.IDs)+len(j.Options.ProducerIDs) > 0
	for _, c := range j.Coordinators.All() {
		if j.Options.wants(c.ProducerID, c) && (asked || c.Status.Pending()) {
			kept = append(kept, c)
		}
	}
	return kept
}

// overdue reports whether a coordinator would abort the transaction.
func (j *Judge) overdue(c *state.CoordinatorTxn) bool {
	return c.Status == state.TxnOngoing && j.Options.NowMs-c.StartMs > int64(c.TimeoutMs)
}

// IDColumns are those of a table of transactional ids.
func IDColumns() []render.Column {
	return []render.Column{{Name: "transactional.id"}, {Name: "state"}, {Name: "producer", Right: true},
		{Name: "timeout", Right: true}, {Name: "began"}, {Name: "partition @record"}, {Name: "partitions"}}
}

// IDRows are the rows under IDColumns.
func (j *Judge) IDRows(theme render.Theme) [][]string {
	var rows [][]string
	for _, c := range j.IDs() {
		began, status := "-", c.Status.String()
		if c.StartMs >= 0 {
			began = render.Minute(c.StartMs)
		}
		if j.overdue(c) {
			status = theme.Look(status + ", overdue")
		}
		if c.Unsure {
			status += theme.Look(" (unsure)")
		}
		rows = append(rows, []string{render.Escaped(c.ID), status, itoa(c.ProducerID) + "/" + itoa(int64(c.ProducerEpoch)),
			render.Duration(int64(c.TimeoutMs)),
			began, fmt.Sprintf("%d @%d", c.Partition, c.Offset), render.Escaped(partitionsText(c.Partitions))})
	}
	return rows
}

func partitionsText(list []state.TopicPartition) string {
	if len(list) == 0 {
		return "-"
	}
	var names []string
	for _, tp := range list {
		names = append(names, fmt.Sprintf("%s-%d", tp.Topic, tp.Partition))
	}
	const most = 8
	if len(names) > most {
		names = append(names[:most:most], fmt.Sprintf("and %d more", len(list)-most))
	}
	return strings.Join(names, ", ")
}

// AppendIDsText appends the transactional ids for a reader.
func (j *Judge) AppendIDsText(dst []byte, theme render.Theme) []byte {
	rows := j.IDRows(theme)
	if len(rows) == 0 {
		return dst
	}
	dst = append(append(dst, theme.Strong("transactional ids, as their coordinators know them")...), '\n')
	table := render.NewColumns("nlrrllw").Fit(theme, 3, 4, 5)
	var names []string
	for _, c := range IDColumns() {
		names = append(names, c.Name)
	}
	table.Head(names...)
	for _, row := range rows {
		table.Row(row...)
	}
	return table.Append(dst, "")
}

// AppendIDsJSON appends the transactional ids, an object each.
func (j *Judge) AppendIDsJSON(dst []byte) []byte {
	for _, c := range j.IDs() {
		o := render.NewObj(dst, "transactional_id")
		o.Str("transactional_id", c.ID)
		o.Str("state", c.Status.String())
		o.Int("producer_id", c.ProducerID)
		o.Int("producer_epoch", int64(c.ProducerEpoch))
		o.Int("timeout_ms", int64(c.TimeoutMs))
		o.Time("start_timestamp", c.StartMs)
		o.Time("update_timestamp", c.UpdatedMs)
		o.OpenArray("partitions")
		for _, tp := range c.Partitions {
			o.Str("", fmt.Sprintf("%s-%d", tp.Topic, tp.Partition))
		}
		o.CloseArray()
		o.Bool("overdue", j.overdue(c))
		o.Int("coordinator_partition", int64(c.Partition))
		o.Int("coordinator_offset", c.Offset)
		o.Bool("unsure", c.Unsure)
		dst = o.Line()
	}
	return dst
}
