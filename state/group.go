package state

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"

	"kseg/format"
	"kseg/schema"
)

// GroupKind is what kind a group is.
type GroupKind string

// The kinds. A group of which only commits are there is classic, as for a coordinator.
const (
	ClassicKind  GroupKind = "classic"
	ConsumerKind GroupKind = "consumer"
	ShareKind    GroupKind = "share"
	StreamsKind  GroupKind = "streams"
)

// Member is a member of a group, as last recorded.
type Member struct {
	ID, InstanceID, ClientID, Host, Rack string
	Epoch                                int32
	HasEpoch                             bool
	Subscribed                           []string
	Assigned                             []Assigned
	reconciled                           bool // its state is STABLE
	unread                               bool // its subscription cannot be read
}

// Assigned are partitions of a topic that a member has. Classic members name the topic, others its id.
type Assigned struct {
	Topic      string
	TopicID    format.UUID
	Partitions []int32
}

// CommittedOffset is what a group has committed of a partition.
type CommittedOffset struct {
	Group       string
	Topic       string
	TopicID     format.UUID // zero: not recorded
	Partition   int32
	Offset      int64
	LeaderEpoch int32 // -1: none
	Metadata    string
	CommitMs    int64
	ExpireMs    int64 // as the record says, which only old ones do; -1: it does not (Utils.ofSentinel)
	Record      Origin
	Pending     bool  // of a transaction that has not ended, of this producer
	ProducerID  int64 // -1: no transaction
	// Held is set while a transaction that has not ended commits the same partition.
	Held bool
}

// Group is a group as its coordinator would have it, and what it has committed.
type Group struct {
	ID    string
	Kind  GroupKind
	State string // Kafka's word: Empty, Stable, Assigning, Reconciling, NotReady
	// Protocol is the protocol type of a classic group, "" if it has none.
	Protocol string
	Epoch    int32 // the generation of a classic group
	HasEpoch bool
	StateMs  int64 // since when a classic group is in its state; -1: not recorded
	Members  []Member
	// Record is the last that says something of the group itself; HasRecord is false where only commits do.
	Record    Origin
	HasRecord bool
	oldest    int64 // offset of the oldest record that says something of it
	Offsets   []CommittedOffset
	Shared    []SharePartition // of a share group, as __consumer_offsets has it

	targetEpoch                      int32
	topologyEpoch, validatedTopology int32
	hasTopology                      bool
	places                           map[string]int      // of members, by id; classic ones have none
	hasProtocol                      bool                // members of a classic group agreed on an assignor
	resolved                         map[string][]string // topics of a consumer group's patterns
	sources                          []string            // topics that a streams group's topology reads
	subscribed                       map[string]bool     // what members read, once somebody asked
}

// SharePartition is a partition that a share group reads.
type SharePartition struct {
	Topic     string
	TopicID   format.UUID
	Partition int32
	State     string // "initializing", "initialized", "deleting"
}

// Groups are the groups of a partition of __consumer_offsets, by name.
func (l *OffsetsLog) Groups() []*Group {
	groups := map[string]*Group{}
	for _, key := range sortedKeys(l.live) {
		l.fold(groups, key, l.live[key], false)
	}
	for _, producer := range sortedKeys(l.pending) {
		for key, e := range sortedPairs(l.pending[producer]) {
			l.fold(groups, key, e, true)
		}
	}
	for name := range l.named { // a coordinator makes a group for a commit, and keeps it without
		groupIn(groups, name)
	}
	list := sortedValues(groups)
	for _, g := range list {
		g.State = g.state()
		slices.SortStableFunc(g.Offsets, func(a, b CommittedOffset) int {
			return cmp.Or(compareNatural(a.Topic, b.Topic), cmp.Compare(a.Partition, b.Partition))
		})
	}
	return list
}

// fold adds what a live key says to its group.
func (l *OffsetsLog) fold(groups map[string]*Group, key string, e *entry, pending bool) {
	raw := []byte(key)
	if e.typ == legacyOffsetCommit {
		raw[1] = legacyOffsetCommit
	}
	d := l.decoder.Decode(schema.Offsets, raw, e.value)
	switch {
	case d.Err == nil:
	case errors.Is(d.Err, format.ErrUnsupported):
		l.Newer++
		return
	default:
		l.problem(e.offset, fmt.Errorf("the record at offset %d: %w; a coordinator fails to load the partition", e.offset,
			d.Err))
		return
	}
	name, _ := groupOfKey(key)
	g := groupIn(groups, name)
	at := Origin{Offset: e.offset, TimestampMs: e.ms}
	if e.typ == offsetCommit || e.typ == legacyOffsetCommit {
		c := committed(d, at, pending, e.producer)
		c.Held = !pending && len(l.holders[key]) > 0
		g.Offsets = append(g.Offsets, c)
		return
	}
	if !g.HasRecord || at.Offset < g.oldest {
		g.oldest = at.Offset
	}
	if !g.HasRecord || at.Offset > g.Record.Offset {
		g.Record, g.HasRecord = at, true
	}
	g.learn(d)
}

// groupIn is the group of a name as it stands in a key, made if need be.
func groupIn(groups map[string]*Group, name string) *Group {
	name = string(format.AppendJavaUTF8(nil, []byte(name)))
	g := groups[name]
	if g == nil {
		g = &Group{ID: name, Kind: ClassicKind, StateMs: -1, topologyEpoch: -1, validatedTopology: -1}
		groups[name] = g
	}
	return g
}

func committed(d *schema.Record, at Origin, pending bool, producer int64) CommittedOffset {
	k, v := d.Key, d.Value
	c := CommittedOffset{Group: k.Get("group").Text(), Topic: k.Get("topic").Text(),
		Partition: int32(k.Get("partition").Int()),
		Offset:    v.Get("offset").Int(), LeaderEpoch: -1, Metadata: v.Get("metadata").Text(),
		CommitMs: v.Get("commitTimestamp").Int(),
		ExpireMs: -1, Record: at, Pending: pending, ProducerID: producer}
	if d.Key.Type == offsetCommit {
		c.LeaderEpoch, c.TopicID, c.ExpireMs = int32(v.Get("leaderEpoch").Int()), v.Get("topicId").UUID(),
			v.Get("expireTimestamp").Int()
	}
	return c
}

// learn takes over what a record says of the group itself.
func (g *Group) learn(d *schema.Record) {
	k, v := d.Key, d.Value
	g.subscribed = nil
	switch typ := k.Type; {
	case typ == classicGroup:
		g.classic(v)
	case typ == consumerGroup, typ == shareGroup, typ == streamsGroup:
		g.Epoch, g.HasEpoch = int32(v.Get("epoch").Int()), true
		g.validatedTopology = int32(v.Get("validatedTopologyEpoch").Int())
	case typ == consumerMember, typ == shareMember, typ == streamsMember:
		m := g.member(k.Get("memberId").Text())
		m.InstanceID, m.ClientID, m.Host, m.Rack = v.Get("instanceId").Text(), v.Get("clientId").Text(),
			v.Get("clientHost").Text(), v.Get("rackId").Text()
		m.Subscribed = texts(v.Get("subscribedTopicNames"))
	case typ == consumerTarget, typ == streamsTarget:
		g.targetEpoch = int32(v.Get("assignmentEpoch").Int())
	case typ == consumerAssignment, typ == shareAssignment, typ == streamsAssignment:
		m := g.member(k.Get("memberId").Text())
		m.Epoch, m.HasEpoch = int32(v.Get("memberEpoch").Int()), true
		m.reconciled = v.Get("state").Int() == stableMember[typ]
		m.Assigned = nil
		for _, topic := range v.Get("assignedPartitions").Elements() {
			m.Assigned = append(m.Assigned, Assigned{TopicID: topic.Get("topicId").UUID(),
				Partitions: topic.Get("partitions").Int32s()})
		}
		for _, task := range v.Get("activeTasks").Elements() {
			m.Assigned = append(m.Assigned, Assigned{Topic: task.Get("subtopologyId").Text(),
				Partitions: task.Get("partitions").Int32s()})
		}
	case typ == streamsTopology:
		g.topologyEpoch, g.hasTopology = int32(v.Get("epoch").Int()), true
		g.sources = sourceTopics(v)
	case typ == consumerRegex:
		if g.resolved == nil {
			g.resolved = map[string][]string{}
		}
		g.resolved[k.Get("regularExpression").Text()] = texts(v.Get("topics"))
	case typ == sharePartitions:
		g.shared(v)
	}
	if kind := kindOfRecord(k.Type); kind != "" {
		g.Kind = kind
	}
}

// stableMember is the state of a member that has what it should have (MemberState.STABLE, of which streams groups have
// their own).
var stableMember = map[int16]int64{consumerAssignment: 0, streamsAssignment: 1}

// kindOfRecord is the kind of group that has records of a type; "" for commits.
func kindOfRecord(typ int16) GroupKind {
	switch {
	case typ == classicGroup:
		return ClassicKind
	case typ >= consumerGroup && typ <= consumerAssignment, typ == consumerRegex:
		return ConsumerKind
	case typ >= shareMember && typ <= sharePartitions:
		return ShareKind
	case typ >= streamsGroup:
		return StreamsKind
	}
	return ""
}

func (g *Group) member(id string) *Member {
	at, ok := g.places[id]
	if !ok {
		if g.places == nil {
			g.places = map[string]int{}
		}
		at = len(g.Members)
		g.places[id] = at
		g.Members = append(g.Members, Member{ID: id})
	}
	return &g.Members[at]
}

func (g *Group) classic(v schema.Half) {
	g.Protocol, g.Epoch, g.HasEpoch = v.Get("protocolType").Text(), int32(v.Get("generation").Int()), true
	g.StateMs, g.hasProtocol = v.Get("currentStateTimestamp").Int(), !v.Get("protocol").IsNull()
	for _, e := range v.Get("members").Elements() {
		m := Member{ID: e.Get("memberId").Text(), InstanceID: e.Get("groupInstanceId").Text(),
			ClientID: e.Get("clientId").Text(),
			Host:     e.Get("clientHost").Text()}
		if g.Protocol == "consumer" {
			m.Subscribed, m.unread = subscribedTopics(e.Get("subscription").Raw())
			m.Assigned = assignedPartitions(e.Get("assignment").Raw())
		}
		g.Members = append(g.Members, m)
	}
}

func texts(list schema.Value) (all []string) {
	for _, text := range list.Elements() {
		all = append(all, text.Text())
	}
	return all
}

// sourceTopics are the topics that a topology reads (StreamsTopology.sourceTopicMap).
func sourceTopics(v schema.Half) (topics []string) {
	for _, sub := range v.Get("subtopologies").Elements() {
		topics = append(topics, texts(sub.Get("sourceTopics"))...)
		for _, topic := range sub.Get("repartitionSourceTopics").Elements() {
			topics = append(topics, topic.Get("name").Text())
		}
	}
	return topics
}

// subscribedTopics are the topics of a ConsumerProtocolSubscription, whose other fields are those of version 0 whatever
// it says (ClassicGroup.computeSubscribedTopics); unread if it cannot be read.
func subscribedTopics(raw []byte) (topics []string, unread bool) {
	c := format.NewCursor(raw, 0)
	c.Int16("version")
	n := c.Int32("topics")
	for range max(n, 0) {
		length := c.Int16("length")
		topic := c.Bytes("topic", int64(length))
		if length < 0 || !c.OK() {
			return nil, true
		}
		topics = append(topics, string(format.AppendJavaUTF8(nil, topic)))
	}
	if userData := c.Int32("user data"); userData > 0 {
		c.Bytes("user data", int64(userData))
	}
	return topics, n < 0 || !c.OK()
}

// assignedPartitions are those of a ConsumerProtocolAssignment after its version; what can be read of it.
func assignedPartitions(raw []byte) (list []Assigned) {
	c := format.NewCursor(raw, 0)
	c.Int16("version")
	for range max(c.Int32("topics"), 0) {
		topic := c.Bytes("topic", int64(c.Int16("length")))
		numbers := int32s(c.Bytes("partitions", 4*int64(c.Int32("count"))))
		if !c.OK() {
			return list
		}
		list = append(list, Assigned{Topic: string(format.AppendJavaUTF8(nil, topic)), Partitions: numbers})
	}
	return list
}

func int32s(raw []byte) (list []int32) {
	for ; len(raw) >= 4; raw = raw[4:] {
		list = append(list, int32(binary.BigEndian.Uint32(raw)))
	}
	return list
}

func (g *Group) shared(v schema.Half) {
	for _, list := range []struct{ field, state string }{{"initializingTopics", "initializing"},
		{"initializedTopics", "initialized"}} {
		for _, topic := range v.Get(list.field).Elements() {
			for _, p := range topic.Get("partitions").Int32s() {
				g.Shared = append(g.Shared, SharePartition{topic.Get("topicName").Text(), topic.Get("topicId").UUID(), p,
					list.state})
			}
		}
	}
}

// state is the group's state right after its coordinator has loaded it: ConsumerGroup.maybeUpdateGroupState and its
// like.
func (g *Group) state() string {
	reconciled := true
	for _, m := range g.Members {
		reconciled = reconciled && m.reconciled && m.Epoch == g.targetEpoch
	}
	switch {
	case len(g.Members) == 0:
		return "Empty"
	case g.Kind == StreamsKind && (!g.hasTopology || g.topologyEpoch != g.validatedTopology):
		return "NotReady"
	case g.Kind != ConsumerKind && g.Kind != StreamsKind:
		return "Stable"
	case g.Epoch > g.targetEpoch:
		return "Assigning"
	case !reconciled:
		return "Reconciling"
	}
	return "Stable"
}

// UnsureGroup reports whether records were lost that may have changed what is known of a group itself. One record says
// all of a classic group; of the others each member has its own.
func (l *OffsetsLog) UnsureGroup(g *Group) bool {
	if g.HasRecord && g.Kind == ClassicKind {
		return l.Unsure(g.oldest)
	}
	return len(l.Lost) > 0
}

// DefaultOffsetsRetentionMs is Kafka's default of offsets.retention.minutes.
const DefaultOffsetsRetentionMs = 7 * 24 * hourMs

// ExpiresAt is when a coordinator with that retention drops a committed offset if nothing changes; false if it never
// does (OffsetMetadataManager.cleanupExpiredOffsets, OffsetExpirationConditionImpl).
func (g *Group) ExpiresAt(c *CommittedOffset, retentionMs int64) (ms int64, ok bool) {
	base, ok := g.expiryBase(c)
	switch {
	case !ok || c.Pending || c.Held:
		return 0, false
	case c.ExpireMs != -1:
		return c.ExpireMs, true
	case base > math.MaxInt64-retentionMs:
		return 0, false
	}
	return base + retentionMs, true
}

// expiryBase is what the retention counts from; false if the offset is kept as the group is (offsetExpirationCondition
// and isSubscribedToTopic of ClassicGroup, ConsumerGroup and StreamsGroup; a ShareGroup has neither).
func (g *Group) expiryBase(c *CommittedOffset) (ms int64, ok bool) {
	switch {
	case g.Kind == ShareKind:
		return 0, false
	case g.Kind != ClassicKind:
		return c.CommitMs, !g.subscribes(c.Topic)
	case g.Protocol == "":
		return c.CommitMs, true
	case len(g.Members) == 0 && g.StateMs != -1:
		return g.StateMs, true
	case len(g.Members) == 0:
		return c.CommitMs, true
	}
	unread := slices.ContainsFunc(g.Members, func(m Member) bool { return m.unread })
	return c.CommitMs, g.Protocol == "consumer" && g.hasProtocol && !unread && !g.subscribes(c.Topic)
}

// subscribes reports whether members read the topic, as far as the coordinator has worked out what their patterns
// match.
func (g *Group) subscribes(topic string) bool {
	if g.subscribed == nil {
		g.subscribed = map[string]bool{}
		add := func(topics []string) {
			for _, t := range topics {
				g.subscribed[t] = true
			}
		}
		for _, m := range g.Members {
			add(m.Subscribed)
		}
		for _, topics := range g.resolved {
			add(topics)
		}
		if len(g.Members) > 0 {
			add(g.sources)
		}
	}
	return g.subscribed[topic]
}
