package state

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"kseg/internal/fixture"
)

// adminAnswers are what Kafka's Admin client is told by a real broker that was started on a copy of a log directory.
type adminAnswers struct {
	Topics map[string]struct {
		TopicID    string `json:"topic_id"`
		Partitions []adminPartition
	}
	Configs    map[string]map[string]string
	Features   map[string]int64
	ACLs       []string
	Quotas     map[string]map[string]float64
	ScramUsers []string              `json:"scram_users"`
	Tokens     map[string]adminToken // by id; not asked for in the frozen answers
	Groups     map[string]adminGroup
	// Not in the frozen answers:
	Brokers     []adminBroker
	Credentials []string // user, mechanism, iterations
	OffsetsEnd  int64    `json:"offsets_end"`
	MetadataEnd int64    `json:"metadata_end"`
}

// adminPartition is a partition of a topic; the frozen answers have its replicas only.
type adminPartition struct {
	Partition, Leader  int32
	Replicas, ISR, ELR []int32
	LastKnownELR       []int32 `json:"last_known_elr"`
}

type adminBroker struct {
	ID     int32
	Fenced bool
	Rack   string
}

// adminMember is a member of a group. Assigned are topic-partitions, in order; those of streams groups are not asked
// for.
type adminMember struct {
	ID, Instance, Client, Host string
	Epoch                      int32
	Assigned                   []string
}

// adminToken is a delegation token.
type adminToken struct {
	Owner, Requester   string
	Renewers           []string
	Issue, Max, Expiry int64
}

// adminGroup is a group. The offset of a share group is its start offset, of the others an adminOffset.
type adminGroup struct {
	Type, State, Protocol string
	Offsets               map[string]json.RawMessage
	Epoch                 *int32
	Members               []adminMember
}

// adminOffset is a committed offset.
type adminOffset struct {
	Offset      int64
	LeaderEpoch int64 `json:"leader_epoch"`
	Metadata    string
}

func readAnswers(t testing.TB, raw []byte) *adminAnswers {
	t.Helper()
	var a adminAnswers
	if err := json.Unmarshal(raw, &a); err != nil {
		t.Fatal(err)
	}
	return &a
}

// goldenAnswers are the frozen answers about testdata/logdirs/4.4.0/internal.
func goldenAnswers(t testing.TB) *adminAnswers {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(fixture.Root(t), "golden", "4.4.0", "internal", "state.json"))
	if err != nil {
		t.Fatal(err)
	}
	return readAnswers(t, raw)
}

// adminView is what an image would have the Admin client told.
func adminView(im *Image) *adminAnswers {
	a := &adminAnswers{Configs: map[string]map[string]string{}, Features: map[string]int64{},
		Quotas: map[string]map[string]float64{}}
	for _, t := range im.Things(FeatureThing) {
		a.Features[t.(*Feature).Name] = int64(t.(*Feature).Level)
	}
	for _, t := range im.Things(ACLThing) {
		acl := t.(*ACL)
		a.ACLs = append(a.ACLs, fmt.Sprintf("(pattern=ResourcePattern(resourceType=%s, name=%s, patternType=%s), "+
			"entry=(principal=%s, host=%s, operation=%s, permissionType=%s))", acl.ResourceType, acl.ResourceName,
			acl.PatternType, acl.Principal, acl.Host, acl.Operation, acl.PermissionType))
	}
	slices.Sort(a.ACLs)
	for _, t := range im.Things(QuotaThing) {
		q := t.(*Quota)
		var parts []string
		for _, e := range q.Entity {
			name := e.Name
			if e.Default {
				name = "null"
			}
			parts = append(parts, e.Type+"="+name)
		}
		entity := "{" + strings.Join(parts, ", ") + "}"
		if a.Quotas[entity] == nil {
			a.Quotas[entity] = map[string]float64{}
		}
		a.Quotas[entity][q.Limit] = q.Value
	}
	for _, t := range im.Things(TokenThing) {
		token := t.(*Token)
		if a.Tokens == nil {
			a.Tokens = map[string]adminToken{}
		}
		a.Tokens[token.ID] = adminToken{token.Owner, token.Requester, slices.Sorted(slices.Values(token.Renewers)),
			token.IssueMs, token.MaxMs, token.ExpireMs}
	}
	for _, t := range im.Things(ScramThing) {
		a.ScramUsers = append(a.ScramUsers, t.(*ScramUser).Name)
	}
	slices.Sort(a.ScramUsers)
	a.ScramUsers = slices.Compact(a.ScramUsers)
	for _, t := range im.Things(ConfigThing) {
		c := t.(*Config)
		name := c.Resource.Type.String() + ":" + c.Resource.Name
		if a.Configs[name] == nil {
			a.Configs[name] = map[string]string{}
		}
		a.Configs[name][c.Name] = c.Value
	}
	return a
}

// compareImage holds an image against the answers. The Admin client is told the dynamic configs of all brokers with
// those of topics too, and nothing of groups' configs.
func compareImage(t *testing.T, im *Image, want *adminAnswers) {
	t.Helper()
	got := adminView(im)
	if len(im.Topics()) != len(want.Topics) {
		t.Errorf("%d topics, want %d", len(im.Topics()), len(want.Topics))
	}
	for name, w := range want.Topics {
		topic := im.Topic(name)
		if topic == nil || topic.ID.String() != w.TopicID || len(topic.Partitions) != len(w.Partitions) {
			t.Errorf("%s: %+v, want %+v", name, topic, w)
			continue
		}
		for _, p := range w.Partitions {
			if part := topic.Partitions[p.Partition]; part == nil || !slices.Equal(part.Replicas, p.Replicas) {
				t.Errorf("%s-%d: %+v, want %+v", name, p.Partition, part, p)
			}
		}
	}
	s := &Settings{Image: im, NodeID: 1, HasNodeID: true}
	for resource, settings := range want.Configs {
		kind, name, _ := strings.Cut(resource, ":")
		for key, value := range settings {
			own, ok := got.Configs[resource][key]
			switch {
			case kind == "topic":
				own = s.Topic(name, key).Value // also what all topics take from their broker
			case !ok:
				own = got.Configs["broker:"][key]
			}
			if own != value {
				t.Errorf("%s %s: %q, want %q", resource, key, own, value)
			}
		}
	}
	for resource, settings := range got.Configs {
		if strings.HasPrefix(resource, "topic:") || strings.HasPrefix(resource, "broker:") {
			for key := range settings {
				if _, ok := want.Configs[resource][key]; !ok {
					t.Errorf("%s %s is not known to the broker", resource, key)
				}
			}
		}
	}
	for what, pair := range map[string][2]any{"features": {want.Features, got.Features}, "ACLs": {want.ACLs, got.ACLs},
		"quotas": {want.Quotas, got.Quotas}, "tokens": {want.Tokens, got.Tokens},
		"users": {want.ScramUsers, got.ScramUsers}} {
		if diff := cmp.Diff(pair[0], pair[1], cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s: %s", what, diff)
		}
	}
}

func TestImageEqualsWhatABrokerAnswers(t *testing.T) {
	im, err := openImage(t, fixture.Dir(t, "4.4.0/internal/__cluster_metadata-0"))
	if err != nil {
		t.Fatal(err)
	}
	compareImage(t, im, goldenAnswers(t))
}
