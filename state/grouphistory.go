package state

import "kseg/schema"

// GroupEvent is something that happened to a group, or to what it has committed.
type GroupEvent struct {
	What  string // one of the events below
	At    Origin // the record that did it: the commit, the tombstone, or the marker that ended a transaction
	Group string
	// Of commits, and of what becomes of them:
	Topic          string
	TopicPartition int32
	Before, After  *CommittedOffset // nil: none
	// Of the group itself: what it is after the event, before it where it is gone.
	Kind     GroupKind
	Epoch    int32
	HasEpoch bool
	// Members are those that the group had then, by client id.
	Members []string
}

// The events. A commit that went back is a reset, and so is one without a consumer's leader epoch that sets another
// offset while a group that uses membership has no member: so do kafka-consumer-groups --reset-offsets and
// Admin.alterConsumerGroupOffsets.
const (
	EventCommit   = "commit"
	EventReset    = "reset"
	EventPending  = "pending"        // a commit in a transaction
	EventCommited = "committed"      // the marker of its transaction says commit
	EventAborted  = "aborted"        // or abort
	EventDeleted  = "offset_deleted" // a tombstone
	EventExpired  = "offset_expired" // a tombstone of an offset whose time was up
	EventGroup    = "group"          // the group, or a member, was recorded anew
	EventRemoved  = "group_removed"
)

// History tells what happened, in the order of the log, while a partition of __consumer_offsets is folded.
type History struct {
	// Emit is called for each event.
	Emit func(GroupEvent)
	// Wanted says which groups are asked for; nil: all.
	Wanted func(group string) bool
	// RetentionMs is the coordinator's offsets.retention.minutes, by which an expiry is told from a deletion.
	RetentionMs int64

	log     *OffsetsLog
	groups  map[string]*Group
	decoder *schema.Decoder
}

// groupOf is what is known of a group so far.
func (h *History) groupOf(name string) *Group {
	if h.groups == nil {
		h.groups, h.decoder = map[string]*Group{}, schema.NewDecoder()
	}
	g := h.groups[name]
	if g == nil {
		g = &Group{ID: name, Kind: ClassicKind, StateMs: -1}
		h.groups[name] = g
	}
	return g
}

func (h *History) wants(key string) (string, bool) {
	name, ok := groupOfKey(key)
	return name, ok && (h.Wanted == nil || h.Wanted(name))
}

func isCommit(key string) bool { return len(key) > 1 && key[0] == 0 && key[1] == offsetCommit }

// decode decodes a key with what it says; a broken one is none.
func (h *History) decode(key string, e *entry) (*schema.Record, bool) {
	raw, value := []byte(key), []byte(nil)
	if e != nil {
		value = e.value
		if e.typ == legacyOffsetCommit {
			raw[1] = legacyOffsetCommit
		}
	}
	d := h.decoder.Decode(schema.Offsets, raw, value)
	return d, d.Key.Complete && d.Err == nil
}

// offset is the commit of a key, nil if there is none that can be read.
func (h *History) offset(key string, e *entry, pending bool) *CommittedOffset {
	if e == nil {
		return nil
	}
	d, ok := h.decode(key, e)
	if !ok {
		return nil
	}
	c := committed(d, Origin{Offset: e.offset, TimestampMs: e.ms}, pending, e.producer)
	c.Held = !pending && len(h.log.holders[key]) > 0
	return &c
}

func (h *History) changed(at Origin, key string, before, after *entry, marker bool) {
	name, ok := h.wants(key)
	if !ok {
		return
	}
	g := h.groupOf(name)
	if !isCommit(key) {
		h.groupChanged(at, g, key, after)
		return
	}
	ev := h.commitEvent(at, g, key)
	ev.Before, ev.After = h.offset(key, before, false), h.offset(key, after, false)
	switch {
	case after == nil:
		ev.What = EventDeleted
		if ev.Before != nil {
			if due, ok := g.ExpiresAt(ev.Before, h.RetentionMs); ok && due <= at.TimestampMs {
				ev.What = EventExpired
			}
		}
	case marker:
		ev.What = EventCommited
	default:
		ev.What = commitOrReset(g, ev.Before, ev.After)
	}
	h.Emit(ev)
}

func commitOrReset(g *Group, before, after *CommittedOffset) string {
	switch {
	case before == nil || after == nil || before.Offset == after.Offset:
		return EventCommit
	case after.Offset < before.Offset, g.HasEpoch && len(g.Members) == 0 && after.LeaderEpoch < 0:
		return EventReset
	}
	return EventCommit
}

// commitEvent is an event about a commit, whose key says of what.
func (h *History) commitEvent(at Origin, g *Group, key string) GroupEvent {
	ev := h.groupEvent(at, g)
	if d, ok := h.decode(key, nil); ok {
		ev.Topic, ev.TopicPartition = d.Key.Get("topic").Text(), int32(d.Key.Get("partition").Int())
	}
	return ev
}

func (h *History) groupEvent(at Origin, g *Group) GroupEvent {
	ev := GroupEvent{At: at, Group: g.ID, Kind: g.Kind, Epoch: g.Epoch, HasEpoch: g.HasEpoch}
	for _, m := range g.Members {
		ev.Members = append(ev.Members, m.ClientID)
	}
	return ev
}

func (h *History) pendingChanged(at Origin, key string, e *entry, aborted bool) {
	name, ok := h.wants(key)
	if !ok {
		return
	}
	ev := h.commitEvent(at, h.groupOf(name), key)
	ev.What, ev.After = EventPending, h.offset(key, e, true)
	ev.Before = h.offset(key, h.log.live[key], false)
	if aborted {
		ev.What, ev.Before, ev.After = EventAborted, ev.After, ev.Before
	}
	h.Emit(ev)
}

// groupChanged keeps up with a record that says something of the group itself. Only those of the group and its members
// are events; what is assigned to whom changes too often.
func (h *History) groupChanged(at Origin, g *Group, key string, after *entry) {
	d, ok := h.decode(key, after)
	if !ok {
		return
	}
	typ := d.Key.Type
	isGroup := isGroupRecord(typ)
	isMember := typ == consumerMember || typ == shareMember || typ == streamsMember
	switch {
	case after != nil:
		if typ == classicGroup || isMember {
			g.forget(d.Key.Get("memberId").Text(), typ == classicGroup)
		}
		g.learn(d)
	case isGroup && kindOfRecord(typ) != g.Kind:
		return // the group goes on as one of another kind
	case isGroup:
		ev := h.groupEvent(at, g)
		ev.What = EventRemoved
		delete(h.groups, g.ID)
		h.Emit(ev)
		return
	case isMember:
		g.forget(d.Key.Get("memberId").Text(), false)
	case typ == consumerRegex:
		delete(g.resolved, d.Key.Get("regularExpression").Text())
		g.subscribed = nil
	case typ == streamsTopology:
		g.sources, g.hasTopology, g.subscribed = nil, false, nil
	}
	if isGroup || isMember {
		ev := h.groupEvent(at, g)
		ev.What = EventGroup
		h.Emit(ev)
	}
}

// forget takes a member out, or all.
func (g *Group) forget(id string, all bool) {
	g.subscribed = nil
	if all {
		g.Members, g.places = nil, nil
		return
	}
	at, ok := g.places[id]
	if !ok {
		return
	}
	last := len(g.Members) - 1
	g.Members[at] = g.Members[last]
	g.places[g.Members[at].ID] = at
	g.Members = g.Members[:last]
	delete(g.places, id)
}
