package state

import (
	"cmp"
	"crypto/sha256"
	"slices"
	"strconv"

	"kseg/format"
	"kseg/schema"
)

// Api keys of the records that are folded in, and of the three that frame a transaction.
const (
	registerBroker           = 0
	unregisterBroker         = 1
	topicRecord              = 2
	partitionRecord          = 3
	configRecord             = 4
	partitionChangeRecord    = 5
	fenceBroker              = 7
	unfenceBroker            = 8
	removeTopicRecord        = 9
	delegationToken          = 10
	userScram                = 11
	featureLevel             = 12
	clientQuota              = 14
	producerIDs              = 15
	brokerRegistrationChange = 17
	accessControlEntry       = 18
	removeAccessControlEntry = 19
	removeUserScram          = 22
	beginTransactionRecord   = 23
	endTransactionRecord     = 24
	abortTransactionRecord   = 25
	removeDelegationToken    = 26
	registerController       = 27
	clearElr                 = 28
	unregisterController     = 29
)

// fold applies one record, or keeps it until its transaction ends. The record's bytes may go away afterwards.
func (im *Image) fold(at Origin, h schema.Half) {
	switch h.Type {
	case beginTransactionRecord:
		im.pending, im.inChange = nil, true
		return
	case endTransactionRecord:
		for _, change := range im.pending {
			change()
		}
		im.pending, im.inChange = nil, false
		return
	case abortTransactionRecord:
		im.pending, im.inChange = nil, false
		return
	}
	read := changes[h.Type]
	if read == nil {
		return
	}
	change := read(im, at, h)
	if im.inChange {
		im.pending = append(im.pending, change)
	} else {
		change()
	}
}

// changes are, by api key, what copies a record's words out of its bytes, and returns what it does to the image.
var changes = map[int16]func(im *Image, at Origin, h schema.Half) func(){
	registerBroker:           (*Image).registerBroker,
	unregisterBroker:         (*Image).unregisterBroker,
	topicRecord:              (*Image).topic,
	partitionRecord:          (*Image).partition,
	configRecord:             (*Image).config,
	partitionChangeRecord:    (*Image).partitionChange,
	fenceBroker:              (*Image).fenceBroker,
	unfenceBroker:            (*Image).fenceBroker,
	removeTopicRecord:        (*Image).removeTopicRecord,
	delegationToken:          (*Image).token,
	userScram:                (*Image).scram,
	featureLevel:             (*Image).feature,
	clientQuota:              (*Image).quota,
	producerIDs:              (*Image).producerIDs,
	brokerRegistrationChange: (*Image).brokerChange,
	accessControlEntry:       (*Image).acl,
	removeAccessControlEntry: (*Image).removeACL,
	removeUserScram:          (*Image).removeScram,
	removeDelegationToken:    (*Image).removeToken,
	registerController:       (*Image).registerController,
	clearElr:                 (*Image).clearElr,
	unregisterController:     (*Image).unregisterController,
}

func (im *Image) topic(at Origin, h schema.Half) func() {
	t := &Topic{whole(at), h.Get("name").Text(), h.Get("topicId").UUID(), map[int32]*Partition{}}
	return func() {
		im.topics[t.ID], im.names[t.Name] = t, t.ID
		im.put(at, t)
		for _, c := range sortedValues(im.leftovers[Resource{TopicResource, t.Name}]) {
			im.configure(at, c)
		}
	}
}

// maxDelta is how many bytes of the metadata log become one delta at the most. A segment never shares one with another
// (KafkaRaftClient.MAX_FETCH_SIZE_BYTES, UnifiedLog.read).
const maxDelta = 8 << 20

// rebase begins a delta: what a node that starts takes in at once of the log. To delete a topic takes away the settings
// that were there before the delta (ConfigurationsDelta.replay), so that those of a topic that came and went within one
// stay, for the next topic of that name.
func (im *Image) rebase() {
	clear(im.leftovers)
	im.settled = map[Resource]bool{}
	for r := range im.configs {
		im.settled[r] = true
	}
}

func (im *Image) removeTopicRecord(at Origin, h schema.Half) func() {
	id := format.UUID(h.Get("topicId").UUID())
	return func() { im.removeTopic(at, id) }
}

// removeTopic takes the topic out with its partitions and settings, as TopicsDelta and ConfigurationsDelta do.
func (im *Image) removeTopic(at Origin, id format.UUID) {
	t := im.topics[id]
	if t == nil {
		return
	}
	delete(im.topics, id)
	im.removed[id] = true
	im.drop(at, t.key())
	for _, p := range sortedValues(t.Partitions) {
		im.drop(at, p.key())
	}
	if im.names[t.Name] != id {
		return
	}
	delete(im.names, t.Name)
	r := Resource{TopicResource, t.Name}
	for _, c := range sortedValues(im.configs[r]) {
		im.drop(at, c.key())
		if !im.settled[r] {
			left := *c
			left.Leftover = true
			setIn(im.leftovers, r, &left)
		}
	}
	delete(im.configs, r)
}

func setIn(configs map[Resource]map[string]*Config, r Resource, c *Config) {
	if configs[r] == nil {
		configs[r] = map[string]*Config{}
	}
	configs[r][c.Name] = c
}

func (im *Image) configure(at Origin, c *Config) {
	setIn(im.configs, c.Resource, c)
	im.put(at, c)
}

// sortedValues are the values of a map in the order of their keys.
func sortedValues[K cmp.Ordered, V any](m map[K]V) []V {
	var values []V
	for _, k := range sortedKeys(m) {
		values = append(values, m[k])
	}
	return values
}

func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K {
	keys := make([]K, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

func (im *Image) partition(at Origin, h schema.Half) func() {
	p := &Partition{trace: whole(at), TopicID: h.Get("topicId").UUID(), Number: int32(h.Get("partitionId").Int()),
		Replicas: h.Get("replicas").Int32s(), Directories: uuids(h.Get("directories")), ISR: h.Get("isr").Int32s(),
		Removing: h.Get("removingReplicas").Int32s(), Adding: h.Get("addingReplicas").Int32s(),
		ELR: h.Get("eligibleLeaderReplicas").Int32s(), LastKnownELR: h.Get("lastKnownElr").Int32s(),
		Leader: int32(h.Get("leader").Int()), LeaderEpoch: int32(h.Get("leaderEpoch").Int()),
		PartitionEpoch:           int32(h.Get("partitionEpoch").Int()),
		RecoveringUncleanElected: h.Get("leaderRecoveryState").Int() == recovering}
	return func() {
		if t := im.topics[p.TopicID]; t != nil {
			p.Topic, t.Partitions[p.Number] = t.Name, p
			im.put(at, p)
			return
		}
		im.dangles(at)
	}
}

// dangles notes a record about what is not there.
func (im *Image) dangles(at Origin) {
	if im.Dangling == nil {
		im.Dangling = &at
	}
}

const (
	noLeaderChange = -2 // the leader in a change that leaves it as it is
	recovering     = 1  // a leaderRecoveryState
)

// changedLists are the fields of a PartitionChangeRecord that replace a list, in the order of Partition.lists.
var changedLists = [...]string{"isr", "replicas", "removingReplicas", "addingReplicas", "eligibleLeaderReplicas",
	"lastKnownElr"}

func (p *Partition) lists() [len(changedLists)]*[]int32 {
	return [...]*[]int32{&p.ISR, &p.Replicas, &p.Removing, &p.Adding, &p.ELR, &p.LastKnownELR}
}

// partitionChange follows PartitionRegistration.merge.
func (im *Image) partitionChange(at Origin, h schema.Half) func() {
	id, number := format.UUID(h.Get("topicId").UUID()), int32(h.Get("partitionId").Int())
	var lists [len(changedLists)]struct {
		changed bool
		list    []int32
	}
	for i, name := range changedLists {
		v := h.Get(name)
		lists[i].changed, lists[i].list = !v.IsNull(), v.Int32s()
	}
	directories, leader, recovery := uuids(h.Get("directories")), int32(h.Get("leader").Int()),
		h.Get("leaderRecoveryState").Int()
	return func() {
		t := im.topics[id]
		if t == nil || t.Partitions[number] == nil {
			im.dangles(at)
			return
		}
		p := *t.Partitions[number]
		for i, list := range p.lists() {
			if lists[i].changed {
				*list = lists[i].list
			}
		}
		if directories != nil {
			p.Directories = directories
		}
		if leader != noLeaderChange {
			p.Leader = leader
			p.LeaderEpoch++
		}
		if recovery >= 0 {
			p.RecoveringUncleanElected = recovery == recovering
		}
		p.PartitionEpoch++
		im.replacePartition(at, t, &p)
	}
}

func (im *Image) replacePartition(at Origin, t *Topic, p *Partition) {
	p.last = at
	t.Partitions[p.Number] = p
	im.put(at, p)
}

// clearElr follows TopicsDelta.replay(ClearElrRecord): of one topic, or of all where there is no name.
func (im *Image) clearElr(at Origin, h schema.Half) func() {
	name := h.Get("topicName").Text()
	return func() {
		for _, thing := range im.Things(TopicThing) {
			t := thing.(*Topic)
			if name != "" && t.Name != name {
				continue
			}
			for _, p := range sortedValues(t.Partitions) {
				if len(p.ELR) > 0 || len(p.LastKnownELR) > 0 {
					cleared := *p
					cleared.ELR, cleared.LastKnownELR = nil, nil
					im.replacePartition(at, t, &cleared)
				}
			}
		}
	}
}

func (im *Image) config(at Origin, h schema.Half) func() {
	r := Resource{ResourceType(h.Get("resourceType").Int()), h.Get("resourceName").Text()}
	value := h.Get("value")
	c := &Config{trace: whole(at), Resource: r, Name: h.Get("name").Text(), Value: value.Text()}
	if value.IsNull() {
		return func() {
			delete(im.configs[r], c.Name)
			delete(im.leftovers[r], c.Name)
			im.drop(at, c.key())
		}
	}
	return func() {
		delete(im.leftovers[r], c.Name)
		im.configure(at, c)
	}
}

func uuids(v schema.Value) []format.UUID {
	if !v.Present() || v.IsNull() {
		return nil
	}
	list := []format.UUID{}
	for _, e := range v.Elements() {
		list = append(list, e.UUID())
	}
	return list
}

var securityProtocols = []string{"PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"}

// word is the name of an enum's constant, or the number of one that Kafka 4.4 does not have.
func word(names []string, n int64) string {
	if n >= 0 && n < int64(len(names)) && names[n] != "" {
		return names[n]
	}
	return strconv.FormatInt(n, 10)
}

func endpoints(v schema.Value) []Endpoint {
	var list []Endpoint
	for _, e := range v.Elements() {
		list = append(list, Endpoint{e.Get("name").Text(), e.Get("host").Text(), uint16(e.Get("port").Int()),
			word(securityProtocols, e.Get("securityProtocol").Int())})
	}
	slices.SortStableFunc(list, func(a, b Endpoint) int { return cmp.Compare(a.Name, b.Name) })
	return list
}

func supported(v schema.Value) []Supported {
	var list []Supported
	for _, e := range v.Elements() {
		list = append(list, Supported{e.Get("name").Text(), int16(e.Get("minSupportedVersion").Int()),
			int16(e.Get("maxSupportedVersion").Int())})
	}
	slices.SortStableFunc(list, func(a, b Supported) int { return cmp.Compare(a.Name, b.Name) })
	return list
}

func (im *Image) registerBroker(at Origin, h schema.Half) func() {
	rack := h.Get("rack")
	b := &Broker{trace: whole(at), ID: int32(h.Get("brokerId").Int()), Epoch: h.Get("brokerEpoch").Int(),
		Incarnation: h.Get("incarnationId").UUID(), Endpoints: endpoints(h.Get("endPoints")),
		Features: supported(h.Get("features")),
		Rack:     rack.Text(), HasRack: !rack.IsNull(), Fenced: h.Get("fenced").Bool(),
		InControlledShutdown: h.Get("inControlledShutdown").Bool(),
		LogDirs:              uuids(h.Get("logDirs")), Cordoned: uuids(h.Get("cordonedLogDirs"))}
	return func() { im.put(at, b) }
}

func (im *Image) unregisterBroker(at Origin, h schema.Half) func() {
	id := int32(h.Get("brokerId").Int())
	return func() { im.drop(at, brokerKey(id)) }
}

// changeBroker is what change does to the registration of a broker, if there is one.
func (im *Image) changeBroker(at Origin, id int32, change func(*Broker)) func() {
	return func() {
		if b := im.Broker(id); b != nil {
			changed := *b
			changed.last = at
			change(&changed)
			im.put(at, &changed)
		}
	}
}

func (im *Image) fenceBroker(at Origin, h schema.Half) func() {
	fenced := h.Type == fenceBroker
	return im.changeBroker(at, int32(h.Get("id").Int()), func(b *Broker) { b.Fenced = fenced })
}

// brokerChange follows ClusterDelta.replay(BrokerRegistrationChangeRecord): 1 fences, -1 unfences, 1 begins a
// controlled shutdown; no log directories mean no change of them.
func (im *Image) brokerChange(at Origin, h schema.Half) func() {
	fenced, shutdown := h.Get("fenced").Int(), h.Get("inControlledShutdown").Int()
	dirs, cordoned := uuids(h.Get("logDirs")), uuids(h.Get("cordonedLogDirs"))
	return im.changeBroker(at, int32(h.Get("brokerId").Int()), func(b *Broker) {
		if fenced != 0 {
			b.Fenced = fenced > 0
		}
		if shutdown != 0 {
			b.InControlledShutdown = shutdown > 0
		}
		if len(dirs) > 0 {
			b.LogDirs = dirs
		}
		if cordoned != nil {
			b.Cordoned = cordoned
		}
	})
}

func (im *Image) registerController(at Origin, h schema.Half) func() {
	c := &Controller{whole(at), int32(h.Get("controllerId").Int()), h.Get("incarnationId").UUID(),
		endpoints(h.Get("endPoints")), supported(h.Get("features"))}
	return func() { im.put(at, c) }
}

func (im *Image) unregisterController(at Origin, h schema.Half) func() {
	id := int32(h.Get("controllerId").Int())
	return func() { im.drop(at, controllerKey(id)) }
}

func (im *Image) feature(at Origin, h schema.Half) func() {
	f := &Feature{whole(at), h.Get("name").Text(), int16(h.Get("featureLevel").Int())}
	if f.Level == 0 {
		return func() { im.drop(at, f.key()) }
	}
	return func() { im.put(at, f) }
}

func (im *Image) quota(at Origin, h schema.Half) func() {
	q := &Quota{trace: whole(at), Limit: h.Get("key").Text(), Value: h.Get("value").Float()}
	for _, e := range h.Get("entity").Elements() {
		name := e.Get("entityName")
		q.Entity = append(q.Entity, QuotaEntity{e.Get("entityType").Text(), name.Text(), name.IsNull()})
	}
	slices.SortStableFunc(q.Entity, func(a, b QuotaEntity) int { return cmp.Compare(a.Type, b.Type) })
	if h.Get("remove").Bool() {
		return func() { im.drop(at, q.key()) }
	}
	return func() { im.put(at, q) }
}

func (im *Image) producerIDs(at Origin, h schema.Half) func() {
	p := &ProducerIDs{whole(at), int32(h.Get("brokerId").Int()), h.Get("nextProducerId").Int()}
	return func() { im.put(at, p) }
}

// The constants of Kafka's ResourceType, PatternType, AclOperation and AclPermissionType, by their codes.
var (
	aclResources = []string{"UNKNOWN", "ANY", "TOPIC", "GROUP", "CLUSTER", "TRANSACTIONAL_ID", "DELEGATION_TOKEN", "USER"}
	aclPatterns  = []string{"UNKNOWN", "ANY", "MATCH", "LITERAL", "PREFIXED"}
	aclOperation = []string{"UNKNOWN", "ANY", "ALL", "READ", "WRITE", "CREATE", "DELETE", "ALTER", "DESCRIBE",
		"CLUSTER_ACTION",
		"DESCRIBE_CONFIGS", "ALTER_CONFIGS", "IDEMPOTENT_WRITE", "CREATE_TOKENS", "DESCRIBE_TOKENS", "TWO_PHASE_COMMIT"}
	aclPermissions = []string{"UNKNOWN", "ANY", "DENY", "ALLOW"}
	scramMechanism = []string{"", "SCRAM-SHA-256", "SCRAM-SHA-512"}
)

func (im *Image) acl(at Origin, h schema.Half) func() {
	a := &ACL{whole(at), h.Get("id").UUID(), word(aclResources, h.Get("resourceType").Int()), h.Get("resourceName").Text(),
		word(aclPatterns, h.Get("patternType").Int()), h.Get("principal").Text(), h.Get("host").Text(),
		word(aclOperation, h.Get("operation").Int()), word(aclPermissions, h.Get("permissionType").Int())}
	return func() { im.put(at, a) }
}

func (im *Image) removeACL(at Origin, h schema.Half) func() {
	id := format.UUID(h.Get("id").UUID())
	return func() { im.drop(at, aclKey(id)) }
}

func (im *Image) scram(at Origin, h schema.Half) func() {
	u := &ScramUser{trace: whole(at), Name: h.Get("name").Text(), Mechanism: word(scramMechanism,
		h.Get("mechanism").Int()),
		Iterations: int32(h.Get("iterations").Int())}
	digest := sha256.New()
	for _, name := range []string{"salt", "storedKey", "serverKey"} {
		digest.Write(h.Get(name).Raw())
		digest.Write([]byte{0})
	}
	digest.Sum(u.digest[:0])
	return func() { im.put(at, u) }
}

func (im *Image) removeScram(at Origin, h schema.Half) func() {
	key := scramKey(h.Get("name").Text(), word(scramMechanism, h.Get("mechanism").Int()))
	return func() { im.drop(at, key) }
}

func (im *Image) token(at Origin, h schema.Half) func() {
	t := &Token{trace: whole(at), ID: h.Get("tokenId").Text(), Owner: h.Get("owner").Text(),
		Requester: h.Get("requester").Text(),
		IssueMs:   h.Get("issueTimestamp").Int(), MaxMs: h.Get("maxTimestamp").Int(),
		ExpireMs: h.Get("expirationTimestamp").Int()}
	for _, e := range h.Get("renewers").Elements() {
		t.Renewers = append(t.Renewers, e.Text())
	}
	return func() { im.put(at, t) }
}

func (im *Image) removeToken(at Origin, h schema.Half) func() {
	id := h.Get("tokenId").Text()
	return func() { im.drop(at, tokenKey(id)) }
}
