package groups

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"kseg/render"
	"kseg/state"
)

// Event is something that happened, and where it stands.
type Event struct {
	state.GroupEvent
	Source string
}

// History folds the partitions one after the other and emits what happened to the groups asked for, in the order of
// each log. Of the report only the logs and notes are filled.
func (in *Inputs) History(ctx context.Context, o Options, emit func(Event)) *Report {
	r := &Report{}
	for _, p := range in.Offsets {
		if !in.list(p) {
			continue
		}
		h := &state.History{Wanted: o.wantsGroup, RetentionMs: o.RetentionMs, Emit: func(ev state.GroupEvent) {
			if ev.Topic == "" && o.narrow() || ev.Topic != "" && !o.wants(ev.Topic, ev.TopicPartition) {
				return
			}
			emit(Event{ev, p.Name})
		}}
		fold := in.foldOptions(ctx, p, &o)
		fold.History = h
		l := state.FoldOffsets(p, fold)
		r.Logs = append(r.Logs, l.FoldedLog)
		if offset, cleaned := in.cleanedTo(p); cleaned {
			r.Notes = append(r.Notes, fmt.Sprintf("%s: the log cleaner has been here up to offset %d: what was superseded "+
				"below is gone", p.Name, offset))
		}
		if ctx.Err() != nil {
			break
		}
	}
	r.Problems = in.Problems
	for _, name := range o.Groups {
		if !strings.ContainsAny(name, `*?[\`) && !in.holds(name) {
			in.elsewhere(r, name)
		}
	}
	return r
}

// holds reports whether the partition that a group belongs to is among the inputs.
func (in *Inputs) holds(group string) bool {
	n, _ := in.partitions()
	own := state.OffsetsPartition(group, n)
	for _, p := range in.Offsets {
		if p.PartitionDir.Partition == own {
			return true
		}
	}
	return false
}

// AppendText appends the event as a line, with its partition of __consumer_offsets if there are several.
func (e *Event) AppendText(dst []byte, theme render.Theme, several bool) []byte {
	if several {
		dst = append(append(dst, e.Source...), ' ')
	}
	what := fmt.Sprintf("%-14s", e.What)
	switch e.What {
	case state.EventReset, state.EventRemoved, state.EventDeleted, state.EventExpired:
		what = theme.Bad(what)
	case state.EventPending, state.EventAborted:
		what = theme.Look(what)
	}
	dst = fmt.Appendf(dst, "@%d  %s  %s  %s", e.At.Offset, theme.Dim(render.Instant(e.At.TimestampMs)), what,
		render.Escaped(e.Group))
	if e.Topic != "" {
		dst = fmt.Appendf(dst, "  %s-%d  %s", render.Escaped(e.Topic), e.TopicPartition, e.move())
	}
	return append(append(append(dst, "  "...), theme.Dim(e.who())...), '\n')
}

// move is from what to what.
func (e *Event) move() string {
	before, after := "-", "-"
	if e.Before != nil {
		before = strconv.FormatInt(e.Before.Offset, 10)
	}
	if e.After != nil {
		after = strconv.FormatInt(e.After.Offset, 10)
	}
	text := before + " → " + after
	if jump, ok := e.jump(); ok {
		text += fmt.Sprintf(" (%+d)", jump)
	}
	return text
}

func (e *Event) jump() (int64, bool) {
	if e.Before == nil || e.After == nil || e.What == state.EventAborted {
		return 0, false
	}
	return e.After.Offset - e.Before.Offset, true
}

// who says who did it, as far as the log tells.
func (e *Event) who() string {
	transaction := ""
	for _, c := range []*state.CommittedOffset{e.After, e.Before} {
		if c != nil && c.ProducerID >= 0 && transaction == "" && e.What != state.EventCommit && e.What != state.EventReset {
			transaction = fmt.Sprintf("producer %d; ", c.ProducerID)
		}
	}
	switch {
	case e.What == state.EventRemoved:
		return string(e.Kind) + " group"
	case e.What == state.EventGroup:
		text := string(e.Kind) + " group"
		if e.HasEpoch {
			text += ", epoch " + strconv.Itoa(int(e.Epoch))
		}
		return text + ", " + e.members()
	case e.What == state.EventExpired:
		return "offsets.retention.minutes had passed"
	case len(e.Members) > 0:
		return transaction + e.members()
	case e.What == state.EventReset:
		return transaction + "nobody was a member: a tool (kafka-consumer-groups, Admin) or a standalone consumer"
	}
	return transaction + "no members"
}

func (e *Event) members() string {
	const few = 3
	if len(e.Members) == 0 {
		return "no members"
	}
	text := render.Plural(int64(len(e.Members)), "member", "members") + ": " +
		strings.Join(e.Members[:min(few, len(e.Members))], ", ")
	if len(e.Members) > few {
		text += ", …"
	}
	return render.Escaped(text)
}

// AppendJSON appends the event as an object.
func (e *Event) AppendJSON(dst []byte) []byte {
	o := render.NewObj(dst, "group_event")
	o.Str("group", e.Group)
	o.Str("event", e.What)
	o.Str("type", string(e.Kind))
	o.StrOrNull("topic", e.Topic)
	o.IntOrNull("partition", int64(e.TopicPartition), e.Topic != "")
	offset := func(name string, c *state.CommittedOffset) {
		if c == nil {
			o.Null(name)
			return
		}
		o.Int(name, c.Offset)
	}
	offset("before", e.Before)
	offset("after", e.After)
	jump, known := e.jump()
	o.IntOrNull("jump", jump, known)
	if e.After != nil {
		o.IntOrNull("leader_epoch", int64(e.After.LeaderEpoch), e.After.LeaderEpoch >= 0)
		o.Str("metadata", e.After.Metadata)
		o.IntOrNull("producer_id", e.After.ProducerID, e.After.ProducerID >= 0)
	} else {
		o.Null("leader_epoch")
		o.Null("metadata")
		o.Null("producer_id")
	}
	o.IntOrNull("epoch", int64(e.Epoch), e.HasEpoch)
	o.Strs("members", e.Members)
	o.Str("source", e.Source)
	o.Int("record_offset", e.At.Offset)
	o.Time("timestamp", e.At.TimestampMs)
	return o.Line()
}

// EventCSV are the columns of -o csv with --history.
var EventCSV = []string{"source", "record_offset", "timestamp", "event", "group", "type", "topic", "partition",
	"before", "after", "jump", "leader_epoch", "producer_id", "epoch", "members"}

// EventColumns are those of -o table with --history.
func EventColumns() []render.Column {
	return []render.Column{{Name: "source"}, {Name: "record", Right: true}, {Name: "time"}, {Name: "event"},
		{Name: "group"}, {Name: "topic"},
		{Name: "partition", Right: true}, {Name: "before", Right: true}, {Name: "after", Right: true}, {Name: "who"}}
}

// Row is the event as a row.
func (e *Event) Row() []string {
	partition, before, after := "", "", ""
	if e.Topic != "" {
		partition = strconv.Itoa(int(e.TopicPartition))
	}
	if e.Before != nil {
		before = strconv.FormatInt(e.Before.Offset, 10)
	}
	if e.After != nil {
		after = strconv.FormatInt(e.After.Offset, 10)
	}
	return []string{e.Source, strconv.FormatInt(e.At.Offset, 10), render.Instant(e.At.TimestampMs), e.What,
		render.Escaped(e.Group), render.Escaped(e.Topic), partition, before, after, e.who()}
}
