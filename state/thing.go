package state

import (
	"crypto/sha256"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"kseg/format"
)

// ThingKind names a kind of thing in an image, as kseg's JSON does.
type ThingKind string

// The kinds, in the order in which people ask for them.
const (
	BrokerThing     ThingKind = "broker"
	ControllerThing ThingKind = "controller"
	FeatureThing    ThingKind = "feature"
	TopicThing      ThingKind = "topic"
	PartitionThing  ThingKind = "topic_partition"
	ConfigThing     ThingKind = "config"
	QuotaThing      ThingKind = "quota"
	ACLThing        ThingKind = "acl"
	ScramThing      ThingKind = "scram_user"
	TokenThing      ThingKind = "delegation_token"
	ProducerThing   ThingKind = "producer_ids"
)

// ThingKinds are all kinds.
var ThingKinds = []ThingKind{BrokerThing, ControllerThing, FeatureThing, TopicThing, PartitionThing, ConfigThing,
	QuotaThing, ACLThing, ScramThing, TokenThing, ProducerThing}

// Thing is one thing of an image. It is never changed: a record that changes it puts another one in its place.
type Thing interface {
	// Title tells it from others of its kind, for people: "orders-3", "topic orders retention.ms".
	Title() string
	// Fields are what it says, in the order and with the names of docs/json.md; never credentials.
	Fields() []Field
	// Origin is the record that it comes from: the last that changed it.
	Origin() Origin

	key() thingKey
	from() *trace
	// secret is what else two of them differ in, but nobody is shown.
	secret() string
}

// thingKey identifies a thing among those of its image.
type thingKey struct {
	kind ThingKind
	id   string
}

// Field is a name and a value: nil, bool, int64, float64, string, Millis, []int32, []string or [][]Field.
type Field struct {
	Name  string
	Value any
}

// Millis is a time in epoch milliseconds; -1 is none.
type Millis int64

// Origin is a record of the metadata log, or of a snapshot.
type Origin struct {
	Offset      int64 // of the record; in a snapshot those start anew
	TimestampMs int64
	Snapshot    string // the name of the snapshot, "" for a record of the log
}

// trace is where a thing comes from: the last record that changed it, and the last that said all of it.
type trace struct{ last, whole Origin }

// Origin is the record that the thing comes from.
func (t *trace) Origin() Origin { return t.last }

func (t *trace) from() *trace { return t }

func (t *trace) secret() string { return "" }

func whole(at Origin) trace { return trace{at, at} }

// ResourceType says what a config is set for (Kafka's ConfigResource.Type).
type ResourceType int8

// The resources whose configs bear on log directories.
const (
	TopicResource  ResourceType = 2
	BrokerResource ResourceType = 4
)

// String is the name of the type in lower case, or its number.
func (r ResourceType) String() string {
	switch r {
	case TopicResource:
		return "topic"
	case BrokerResource:
		return "broker"
	case 8:
		return "broker_logger"
	case 16:
		return "client_metrics"
	case 32:
		return "group"
	}
	return strconv.Itoa(int(r))
}

// Resource is what a config is set for: a topic by its name, a broker by its id in decimal, all brokers by "".
type Resource struct {
	Type ResourceType
	Name string
}

// Topic is a topic of the cluster.
type Topic struct {
	trace
	Name       string
	ID         format.UUID
	Partitions map[int32]*Partition
}

func topicKey(id format.UUID) thingKey { return thingKey{TopicThing, string(id[:])} }

func (t *Topic) key() thingKey { return topicKey(t.ID) }

// Title is the topic's name.
func (t *Topic) Title() string { return t.Name }

// Fields are name, topic_id.
func (t *Topic) Fields() []Field {
	return []Field{{"name", t.Name}, {"topic_id", t.ID.String()}}
}

// Partition says where the replicas of a partition are (PartitionRegistration).
type Partition struct {
	trace
	Topic    string
	TopicID  format.UUID
	Number   int32
	Replicas []int32 // broker ids
	// Directories are the directory.id of the log directory of each replica, in the same order; nil before Kafka 3.7.
	Directories              []format.UUID
	ISR, Removing, Adding    []int32
	ELR, LastKnownELR        []int32
	Leader                   int32 // broker id; -1: none
	LeaderEpoch              int32
	PartitionEpoch           int32
	RecoveringUncleanElected bool // leaderRecoveryState RECOVERING
}

func partitionKey(topic format.UUID, number int32) thingKey {
	return thingKey{PartitionThing, string(topic[:]) + strconv.Itoa(int(number))}
}

func (p *Partition) key() thingKey { return partitionKey(p.TopicID, p.Number) }

// Title is that of the partition's directory.
func (p *Partition) Title() string { return p.Topic + "-" + strconv.Itoa(int(p.Number)) }

// Fields are those of PartitionRecord, and the topic's name.
func (p *Partition) Fields() []Field {
	recovery := "RECOVERED"
	if p.RecoveringUncleanElected {
		recovery = "RECOVERING"
	}
	var leader any = int64(p.Leader)
	if p.Leader == noLeader {
		leader = nil
	}
	return []Field{{"topic", p.Topic}, {"partition", int64(p.Number)}, {"topic_id", p.TopicID.String()},
		{"leader", leader}, {"leader_epoch", int64(p.LeaderEpoch)}, {"partition_epoch", int64(p.PartitionEpoch)},
		{"replicas", p.Replicas}, {"isr", p.ISR}, {"eligible_leader_replicas", p.ELR}, {"last_known_elr", p.LastKnownELR},
		{"adding_replicas", p.Adding}, {"removing_replicas", p.Removing}, {"leader_recovery_state", recovery},
		{"directories", uuidTexts(p.Directories)}}
}

const noLeader = -1

func uuidTexts(ids []format.UUID) []string {
	var texts []string
	for _, id := range ids {
		texts = append(texts, id.String())
	}
	return texts
}

// Config is a setting of a resource.
type Config struct {
	trace
	Resource Resource
	Name     string
	Value    string
	// Leftover is set if it is of a topic of that name that was deleted: see Image.rebase.
	Leftover bool
}

func configKey(r Resource, setting string) thingKey {
	return thingKey{ConfigThing, strconv.Itoa(int(r.Type)) + " " + strconv.Itoa(len(r.Name)) + " " + r.Name + setting}
}

func (c *Config) key() thingKey { return configKey(c.Resource, c.Name) }

// Title is the resource and the setting: "topic orders retention.ms".
func (c *Config) Title() string {
	resource := c.Resource.Name
	if resource == "" {
		resource = "(default)"
	}
	return c.Resource.Type.String() + " " + resource + " " + c.Name
}

// Sensitive reports whether the value is one that Kafka never shows (ConfigDef.Type.PASSWORD).
func (c *Config) Sensitive() bool {
	name := strings.ToLower(c.Name)
	return strings.Contains(name, "password") || strings.Contains(name, "secret") ||
		strings.HasSuffix(name, "sasl.jaas.config") || strings.HasSuffix(name, "ssl.keystore.key") ||
		strings.HasSuffix(name, ".certificate.chain") || strings.HasSuffix(name, "ssl.truststore.certificates")
}

// Fields are those of ConfigRecord; the value of one that is sensitive is nil.
func (c *Config) Fields() []Field {
	var value any = c.Value
	if c.Sensitive() {
		value = nil
	}
	return []Field{{"resource_type", c.Resource.Type.String()}, {"resource_name", c.Resource.Name}, {"name", c.Name},
		{"value", value}, {"sensitive", c.Sensitive()}}
}

func (c *Config) secret() string { return c.Value }

// Endpoint is where a broker or controller listens.
type Endpoint struct {
	Name, Host       string
	Port             uint16
	SecurityProtocol string
}

// String is LISTENER://HOST:PORT.
func (e Endpoint) String() string { return fmt.Sprintf("%s://%s:%d", e.Name, e.Host, e.Port) }

// Supported is a feature that a process supports, and in which levels.
type Supported struct {
	Name     string
	Min, Max int16
}

func endpointFields(list []Endpoint) [][]Field {
	var all [][]Field
	for _, e := range list {
		all = append(all, []Field{{"name", e.Name}, {"host", e.Host}, {"port", int64(e.Port)},
			{"security_protocol", e.SecurityProtocol}})
	}
	return all
}

func supportedFields(list []Supported) [][]Field {
	var all [][]Field
	for _, s := range list {
		all = append(all, []Field{{"name", s.Name}, {"min_supported_version", int64(s.Min)}, {"max_supported_version",
			int64(s.Max)}})
	}
	return all
}

// Broker is the registration of a broker (BrokerRegistration).
type Broker struct {
	trace
	ID                   int32
	Epoch                int64
	Incarnation          format.UUID
	Endpoints            []Endpoint
	Features             []Supported
	Rack                 string
	HasRack              bool
	Fenced               bool
	InControlledShutdown bool
	LogDirs              []format.UUID
	Cordoned             []format.UUID
}

func brokerKey(id int32) thingKey { return thingKey{BrokerThing, strconv.Itoa(int(id))} }

func (b *Broker) key() thingKey { return brokerKey(b.ID) }

// Title is the id.
func (b *Broker) Title() string { return strconv.Itoa(int(b.ID)) }

// Fields are those of RegisterBrokerRecord.
func (b *Broker) Fields() []Field {
	var rack any
	if b.HasRack {
		rack = b.Rack
	}
	return []Field{{"broker_id", int64(b.ID)}, {"broker_epoch", b.Epoch}, {"fenced", b.Fenced},
		{"in_controlled_shutdown", b.InControlledShutdown}, {"rack", rack}, {"end_points", endpointFields(b.Endpoints)},
		{"log_dirs", uuidTexts(b.LogDirs)}, {"cordoned_log_dirs", uuidTexts(b.Cordoned)},
		{"incarnation_id", b.Incarnation.String()}, {"features", supportedFields(b.Features)}}
}

// Controller is the registration of a controller (ControllerRegistration).
type Controller struct {
	trace
	ID          int32
	Incarnation format.UUID
	Endpoints   []Endpoint
	Features    []Supported
}

func controllerKey(id int32) thingKey { return thingKey{ControllerThing, strconv.Itoa(int(id))} }

func (c *Controller) key() thingKey { return controllerKey(c.ID) }

// Title is the id.
func (c *Controller) Title() string { return strconv.Itoa(int(c.ID)) }

// Fields are those of RegisterControllerRecord.
func (c *Controller) Fields() []Field {
	return []Field{{"controller_id", int64(c.ID)}, {"end_points", endpointFields(c.Endpoints)},
		{"incarnation_id", c.Incarnation.String()}, {"features", supportedFields(c.Features)}}
}

// Feature is the finalized level of a feature; metadata.version is one.
type Feature struct {
	trace
	Name  string
	Level int16
}

func featureKey(name string) thingKey { return thingKey{FeatureThing, name} }

func (f *Feature) key() thingKey { return featureKey(f.Name) }

// Title is that of the feature.
func (f *Feature) Title() string { return f.Name }

// Fields are those of FeatureLevelRecord.
func (f *Feature) Fields() []Field {
	return []Field{{"name", f.Name}, {"feature_level", int64(f.Level)}}
}

// QuotaEntity is a part of what a quota is for: a user, a client-id, an ip; the default one if it has no name.
type QuotaEntity struct {
	Type, Name string
	Default    bool
}

// Quota is a limit for clients.
type Quota struct {
	trace
	Entity []QuotaEntity // by type
	Limit  string
	Value  float64
}

func quotaKey(entity []QuotaEntity, limit string) thingKey {
	var id strings.Builder
	for _, e := range entity {
		fmt.Fprintf(&id, "%q %q %v ", e.Type, e.Name, e.Default)
	}
	return thingKey{QuotaThing, id.String() + limit}
}

func (q *Quota) key() thingKey { return quotaKey(q.Entity, q.Limit) }

// Title is the entity and the limit: "user=alice producer_byte_rate".
func (q *Quota) Title() string {
	var parts []string
	for _, e := range q.Entity {
		name := e.Name
		if e.Default {
			name = "(default)"
		}
		parts = append(parts, e.Type+"="+name)
	}
	return strings.Join(parts, ", ") + " " + q.Limit
}

// Fields are entity, a list of {type, name}, the default one having no name; key, value.
func (q *Quota) Fields() []Field {
	var entity [][]Field
	for _, e := range q.Entity {
		var name any = e.Name
		if e.Default {
			name = nil
		}
		entity = append(entity, []Field{{"type", e.Type}, {"name", name}})
	}
	return []Field{{"entity", entity}, {"key", q.Limit}, {"value", q.Value}}
}

// ACL is an access control entry (StandardAcl); its words are those of Kafka's enums.
type ACL struct {
	trace
	ID                         format.UUID
	ResourceType, ResourceName string
	PatternType                string
	Principal, Host            string
	Operation, PermissionType  string
}

func aclKey(id format.UUID) thingKey { return thingKey{ACLThing, string(id[:])} }

func (a *ACL) key() thingKey { return aclKey(a.ID) }

// Title is the resource, the principal and what it may do.
func (a *ACL) Title() string {
	return strings.Join([]string{a.ResourceType, a.ResourceName, a.PatternType, a.Principal, a.Host, a.Operation,
		a.PermissionType}, " ")
}

// Fields are those of AccessControlEntryRecord, with the words of Kafka's enums.
func (a *ACL) Fields() []Field {
	return []Field{{"resource_type", a.ResourceType}, {"resource_name", a.ResourceName}, {"pattern_type", a.PatternType},
		{"principal", a.Principal}, {"host", a.Host}, {"operation", a.Operation}, {"permission_type", a.PermissionType},
		{"id", a.ID.String()}}
}

// ScramUser is a user that has a SCRAM credential, which is not kept.
type ScramUser struct {
	trace
	Name       string
	Mechanism  string
	Iterations int32
	digest     [sha256.Size]byte // of salt and keys, to tell credentials apart
}

func scramKey(user, mechanism string) thingKey { return thingKey{ScramThing, mechanism + " " + user} }

func (u *ScramUser) key() thingKey { return scramKey(u.Name, u.Mechanism) }

// Title is the user and the mechanism.
func (u *ScramUser) Title() string { return u.Name + " " + u.Mechanism }

// Fields are name, mechanism, iterations.
func (u *ScramUser) Fields() []Field {
	return []Field{{"name", u.Name}, {"mechanism", u.Mechanism}, {"iterations", int64(u.Iterations)}}
}

func (u *ScramUser) secret() string { return string(u.digest[:]) }

// Token is a delegation token; what it is proven by is not in the metadata.
type Token struct {
	trace
	ID                       string
	Owner, Requester         string
	Renewers                 []string
	IssueMs, MaxMs, ExpireMs int64
}

func tokenKey(id string) thingKey { return thingKey{TokenThing, id} }

func (t *Token) key() thingKey { return tokenKey(t.ID) }

// Title is the token's id.
func (t *Token) Title() string { return t.ID }

// Fields are those of DelegationTokenRecord.
func (t *Token) Fields() []Field {
	return []Field{{"token_id", t.ID}, {"owner", t.Owner}, {"requester", t.Requester}, {"renewers", t.Renewers},
		{"issue_timestamp", Millis(t.IssueMs)}, {"expiration_timestamp", Millis(t.ExpireMs)},
		{"max_timestamp", Millis(t.MaxMs)}}
}

// ProducerIDs says which block of producer ids a broker was given last.
type ProducerIDs struct {
	trace
	BrokerID int32 // -1 where a snapshot has it, which does not tell
	Next     int64 // the first id of the next block
}

func producerKey() thingKey { return thingKey{ProducerThing, ""} }

func (p *ProducerIDs) key() thingKey { return producerKey() }

// Title is next.
func (p *ProducerIDs) Title() string { return "next" }

// Fields are broker_id, next_producer_id.
func (p *ProducerIDs) Fields() []Field {
	var broker any = int64(p.BrokerID)
	if p.BrokerID < 0 {
		broker = nil
	}
	return []Field{{"next_producer_id", p.Next}, {"broker_id", broker}}
}

// Same reports whether two things say the same, whatever record they come from. Either may be nil.
func Same(a, b Thing) bool {
	if a == nil || b == nil {
		return a == nil && b == nil
	}
	if a.key() != b.key() || a.secret() != b.secret() {
		return false
	}
	return slices.EqualFunc(a.Fields(), b.Fields(), func(x, y Field) bool {
		return x.Name == y.Name && (SameValue(x.Value, y.Value) || x.Name == "broker_id" && a.key().kind == ProducerThing)
	})
}

// SameValue reports whether the values of two fields are equal; no elements and none at all are.
func SameValue(a, b any) bool { return empty(a) && empty(b) || reflect.DeepEqual(a, b) }

func empty(v any) bool {
	r := reflect.ValueOf(v)
	return !r.IsValid() || r.Kind() == reflect.Slice && r.Len() == 0
}
