package groups

import (
	"strconv"

	"kseg/format"
	"kseg/render"
	"kseg/state"
)

// AppendJSON appends an object a coordinator's partition, a group and a committed offset.
func (r *Report) AppendJSON(dst []byte) []byte {
	for _, l := range r.Logs {
		dst = appendLog(dst, l)
	}
	for _, g := range r.Groups {
		dst = r.appendGroup(dst, g)
		for _, l := range g.Lines {
			dst = appendLine(dst, g, l)
		}
	}
	return r.AppendElsewhere(dst)
}

// AppendElsewhere appends an object a group that is in a partition that is not here.
func (r *Report) AppendElsewhere(dst []byte) []byte {
	for _, e := range r.Elsewhere {
		o := render.NewObj(dst, "group_elsewhere")
		o.Str("group", e.Group)
		o.Str("source", e.Partition)
		o.Int("partitions", int64(e.Partitions))
		o.Bool("partitions_known", e.Known)
		dst = o.Line()
	}
	return dst
}

func appendLog(dst []byte, l state.FoldedLog) []byte {
	o := render.NewObj(dst, "coordinator_log")
	o.StrOrNull("topic", l.Partition.Topic)
	o.Str("partition", l.Partition.Name)
	o.Str("source", l.Partition.Display)
	o.Int("end_offset", l.EndOffset)
	o.OpenArray("lost")
	for _, lost := range l.Lost {
		o.Open("")
		o.Int("first_offset", lost.First)
		o.IntOrNull("last_offset", lost.Last, !lost.Open)
		o.Close()
	}
	o.CloseArray()
	o.Int("newer_records", int64(l.Newer))
	return o.Line()
}

func (r *Report) appendGroup(dst []byte, g *Group) []byte {
	o := render.NewObj(dst, "group")
	o.Str("group", g.ID)
	o.Str("type", string(g.Kind))
	o.StrOrNull("state", g.State)
	o.IntOrNull("epoch", int64(g.Epoch), g.HasEpoch)
	o.StrOrNull("protocol_type", g.Protocol)
	o.Time("state_timestamp", max(g.StateMs, -1))
	o.OpenArray("members")
	for _, m := range g.Members {
		o.Open("")
		o.Str("member_id", m.ID)
		o.StrOrNull("instance_id", m.InstanceID)
		o.Str("client_id", m.ClientID)
		o.Str("client_host", m.Host)
		o.StrOrNull("rack_id", m.Rack)
		o.IntOrNull("epoch", int64(m.Epoch), m.HasEpoch)
		o.OpenArray("assigned")
		for _, a := range m.Assigned {
			o.Open("")
			o.Str("topic", r.topicOf(a))
			o.Value("partitions", append([]int32{}, a.Partitions...))
			o.Close()
		}
		o.CloseArray()
		o.Close()
	}
	o.CloseArray()
	lag, known, out := g.Lag()
	o.Int("offsets", int64(len(g.Lines)))
	o.IntOrNull("lag", lag, known)
	o.Int("out_of_range", int64(out))
	o.StrOrNull("source", g.Source)
	o.IntOrNull("record_offset", g.Record.Offset, g.HasRecord)
	o.Time("record_timestamp", recordTime(g.Record, g.HasRecord))
	o.Bool("unsure", g.Unsure)
	return o.Line()
}

func recordTime(at state.Origin, has bool) int64 {
	if !has {
		return render.NoTimestamp
	}
	return at.TimestampMs
}

func appendLine(dst []byte, g *Group, l *Line) []byte {
	o := render.NewObj(dst, "group_offset")
	o.Str("group", g.ID)
	o.Str("type", string(g.Kind))
	o.StrOrNull("topic", l.Topic)
	o.Int("partition", int64(l.Partition))
	if l.TopicID == (format.UUID{}) {
		o.Null("topic_id")
	} else {
		o.Str("topic_id", l.TopicID.String())
	}
	o.Bool("topic_recreated", l.Recreated)
	o.IntOrNull("offset", l.Offset, l.HasOffset())
	o.IntOrNull("leader_epoch", int64(l.LeaderEpoch), l.LeaderEpoch >= 0)
	o.Str("metadata", l.Metadata)
	o.Time("commit_timestamp", max(l.CommitMs, -1))
	expires := int64(render.NoTimestamp)
	if l.Expires {
		expires = l.ExpiresMs
	}
	o.Time("expires_at", expires)
	o.Bool("pending", l.Pending)
	o.IntOrNull("producer_id", l.ProducerID, l.ProducerID >= 0)
	o.IntOrNull("log_start_offset", l.Log.Start, l.HasLog)
	o.IntOrNull("log_end_offset", l.Log.End, l.HasLog)
	lag, known := l.Lag()
	o.IntOrNull("lag", lag, known)
	o.StrOrNull("out_of_range", l.OutOfRange)
	share := state.ShareState{DeliveryComplete: -1}
	if l.Share != nil {
		share = *l.Share
	}
	o.IntOrNull("state_epoch", int64(share.StateEpoch), l.Share != nil)
	o.IntOrNull("delivery_complete_count", int64(share.DeliveryComplete), share.DeliveryComplete >= 0)
	o.Str("source", l.Source)
	o.Int("record_offset", l.Record.Offset)
	o.Time("record_timestamp", l.Record.TimestampMs)
	o.Bool("unsure", l.Unsure)
	return o.Line()
}

// CSV are the columns of -o csv: a row a committed offset.
var CSV = []string{"group", "type", "topic", "partition", "offset", "log_start_offset", "log_end_offset", "lag",
	"out_of_range", "pending",
	"leader_epoch", "metadata", "commit_timestamp", "expires_at", "producer_id", "source", "record_offset", "unsure"}

// Columns are those of -o table: a row a committed offset; a group without any has one all the same.
func Columns() []render.Column {
	return []render.Column{{Name: "group"}, {Name: "type"}, {Name: "state"}, {Name: "epoch", Right: true},
		{Name: "members", Right: true},
		{Name: "topic"}, {Name: "partition", Right: true}, {Name: "committed", Right: true}, {Name: "log start", Right: true},
		{Name: "log end", Right: true}, {Name: "lag", Right: true}, {Name: "remark"}, {Name: "leader epoch", Right: true},
		{Name: "committed at"}, {Name: "expires"}, {Name: "source"}, {Name: "record", Right: true}, {Name: "unsure"}}
}

// Rows are the rows.
func (r *Report) Rows(theme render.Theme) [][]string {
	var rows [][]string
	for _, g := range r.Groups {
		epoch := "-"
		if g.HasEpoch {
			epoch = strconv.Itoa(int(g.Epoch))
		}
		start := []string{render.Escaped(g.ID), string(g.Kind), orDash(g.State), epoch, strconv.Itoa(len(g.Members))}
		if len(g.Lines) == 0 {
			rows = append(rows, start)
		}
		for _, l := range g.Lines {
			lag, known := l.Lag()
			expires, committed := "-", "-"
			if l.Expires {
				expires = render.Instant(l.ExpiresMs)
			}
			if l.CommitMs >= 0 {
				committed = render.Instant(l.CommitMs)
			}
			rows = append(rows,
				append(append([]string{}, start...), render.Escaped(l.topicTitle()), strconv.Itoa(int(l.Partition)),
					number(l.Offset, l.HasOffset()), number(l.Log.Start, l.HasLog), number(l.Log.End, l.HasLog), number(lag, known),
					l.remark(theme), number(int64(l.LeaderEpoch), l.LeaderEpoch >= 0), committed, expires, l.Source,
					number(l.Record.Offset, true), unsureText(l.Unsure, theme)))
		}
	}
	return rows
}

func number(n int64, known bool) string {
	if !known {
		return "-"
	}
	return strconv.FormatInt(n, 10)
}
