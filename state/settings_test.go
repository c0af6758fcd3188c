package state

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"kseg/format"
	"kseg/internal/fixture"
	"kseg/logdir"
)

func openCluster(t *testing.T, paths ...string) (*Cluster, *logdir.Set) {
	t.Helper()
	set, err := logdir.Open(paths, logdir.Options{})
	if err != nil {
		t.Fatal(err)
	}
	c := OpenCluster(set, nil)
	for _, p := range c.Problems {
		t.Error(p)
	}
	return c, set
}

// TestSettingsOfARealBroker reads what was set on the broker of testdata/logdirs/4.4.0/internal.
func TestSettingsOfARealBroker(t *testing.T) {
	c, set := openCluster(t, fixture.Dir(t, "4.4.0/internal"))
	s := c.Settings(set.LogDirs()[0])
	all := "dynamic config of all brokers"
	for _, test := range []struct {
		topic, key string
		want       Setting
	}{
		{"clicks", "retention.ms", Setting{"86400000", FromTopic, "retention.ms", ""}},
		{"clicks", "retention.bytes", Setting{"-1", FromDefault, "", ""}}, // set and removed
		{"clicks", "max.message.bytes", Setting{"500000", FromTopic, "max.message.bytes", ""}},
		{"payments", "cleanup.policy", Setting{"compact", FromTopic, "cleanup.policy", ""}},
		{"payments", "retention.ms", Setting{"12345678", FromTopic, "retention.ms", ""}},
		{"many-3", "retention.ms", Setting{"1000003", FromTopic, "retention.ms", ""}},
		{"many-0", "retention.ms", Setting{"172800000", FromBroker, "log.retention.ms", all}}, // deleted
		{"scratch", "retention.bytes", Setting{"-1", FromDefault, "", ""}},                    // deleted
		{"__consumer_offsets", "cleanup.policy", Setting{"compact", FromTopic, "cleanup.policy", ""}},
		{"__share_group_state", "retention.ms", Setting{"-1", FromTopic, "retention.ms", ""}},
		{"clicks", "min.insync.replicas", Setting{"1", FromBroker, "min.insync.replicas", all}},
		{"clicks", "index.interval.bytes", Setting{"4096", FromDefault, "", ""}},
		{"clicks", "no.such.key", Setting{}},
	} {
		if got := s.Topic(test.topic, test.key); got != test.want {
			t.Errorf("%s %s: %+v, want %+v", test.topic, test.key, got, test.want)
		}
	}
	if !s.HasNodeID || s.NodeID != 1 || len(s.Image.Topic("clicks").Partitions) != 3 {
		t.Errorf("node %d %v, clicks %+v", s.NodeID, s.HasNodeID, s.Image.Topic("clicks"))
	}
}

// TestMetadataInALogDirectoryOfItsOwn gives the metadata log beside the data, as metadata.log.dir has it.
func TestMetadataInALogDirectoryOfItsOwn(t *testing.T) {
	dir := fixture.Dir(t, "4.4.0/logdirs/clean")
	data1, meta := filepath.Join(dir, "data1"), filepath.Join(dir, "meta")
	for _, paths := range [][]string{{data1, meta}, {meta, data1}, {filepath.Join(data1, "audit-log-0"), meta},
		{data1, filepath.Join(meta, MetadataDir)}} {
		if _, err := os.Stat(paths[0]); err != nil {
			continue
		}
		c, set := openCluster(t, paths...)
		var parent *logdir.LogDir
		for _, p := range set.Partitions() {
			if !p.IsClusterMetadata() {
				parent = p.Parent
			}
		}
		s := c.Settings(parent)
		if got := s.Topic("audit-log", "retention.ms"); got.Value != "-1" || got.Source != FromTopic {
			t.Errorf("%q: audit-log has retention.ms %+v", paths, got)
		}
		if got := s.Topic("inventory", "internal.segment.bytes"); got.Int() != 8000 {
			t.Errorf("%q: inventory has internal.segment.bytes %+v", paths, got)
		}
	}
	c, set := openCluster(t, data1)
	if s := c.Settings(set.LogDirs()[0]); s.Image != nil || s.Topic("audit-log", "retention.ms").Source != FromDefault {
		t.Error("without the metadata log the settings of a topic are not known")
	}
}

// TestAnotherClustersMetadataIsNotUsed puts two clusters side by side.
func TestAnotherClustersMetadataIsNotUsed(t *testing.T) {
	internal := fixture.Dir(t, "4.4.0/internal")
	data1 := filepath.Join(fixture.Dir(t, "4.4.0/logdirs/clean"), "data1")
	c, set := openCluster(t, internal, data1)
	if s := c.Settings(set.LogDirs()[1]); s.Image == nil {
		t.Error("the metadata of the same cluster was not used")
	}
	if err := os.WriteFile(filepath.Join(data1, "meta.properties"), []byte("version=1\nnode.id=1\ncluster.id=another\n"),
		0o644); err != nil {
		t.Fatal(err)
	}
	c, set = openCluster(t, internal, data1)
	if s := c.Settings(set.LogDirs()[1]); s.Image != nil {
		t.Error("the metadata of one cluster was used for another")
	}
}

// configured is a Settings whose four places of origin can be filled.
func configured(t *testing.T, topic, node, all map[string]string, server string) *Settings {
	t.Helper()
	im := newImage()
	for r, settings := range map[Resource]map[string]string{{TopicResource, "t"}: topic, {BrokerResource, "3"}: node,
		{BrokerResource, ""}: all, {BrokerResource, "4"}: {"log.retention.ms": "444"}} {
		im.configs[r] = map[string]*Config{}
		for key, value := range settings {
			im.configs[r][key] = &Config{Value: value}
		}
	}
	s := &Settings{Image: im, NodeID: 3, HasNodeID: true}
	if server != "" {
		properties, err := format.DecodeProperties([]byte(server))
		if err != nil {
			t.Fatal(err)
		}
		if err := s.UseServerProperties(properties); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

func TestOrderOfPrecedence(t *testing.T) {
	set := func(key, value string) map[string]string { return map[string]string{key: value} }
	tests := []struct {
		name             string
		topic, node, all map[string]string
		server           string
		want             Setting
	}{
		{"nothing", nil, nil, nil, "", Setting{"604800000", FromDefault, "", ""}},
		{"hours", nil, nil, nil, "log.retention.hours=2", Setting{"7200000", FromBroker, "log.retention.hours",
			"server.properties"}},
		{"minutes before hours", nil, nil, nil, "log.retention.hours=2\nlog.retention.minutes = 3",
			Setting{"180000", FromBroker, "log.retention.minutes", "server.properties"}},
		{"ms before minutes", nil, nil, nil, "log.retention.minutes=3\nlog.retention.ms=5", Setting{"5", FromBroker,
			"log.retention.ms", "server.properties"}},
		{"a 0 that does not count", nil, nil, nil, "log.retention.minutes=0\nlog.retention.ms=5", Setting{"5", FromBroker,
			"log.retention.ms", "server.properties"}},
		{"any negative is none", nil, nil, nil, "log.retention.hours=-3", Setting{"-1", FromBroker, "log.retention.hours",
			"server.properties"}},
		{"all brokers before the file", nil, nil, set("log.retention.ms", "6"), "log.retention.ms=5", Setting{"6", FromBroker,
			"log.retention.ms", "dynamic config of all brokers"}},
		{"this broker before all", nil, set("log.retention.ms", "7"), set("log.retention.ms", "6"), "",
			Setting{"7", FromBroker, "log.retention.ms", "dynamic config of broker 3"}},
		{"hours are not dynamic", nil, nil, set("log.retention.hours", "1"), "", Setting{"604800000", FromDefault, "", ""}},
		{"the topic before all", set("retention.ms", "8"), set("log.retention.ms", "7"), nil, "log.retention.ms=5",
			Setting{"8", FromTopic, "retention.ms", ""}},
	}
	for _, test := range tests {
		s := configured(t, test.topic, test.node, test.all, test.server)
		if got := s.Topic("t", "retention.ms"); got != test.want {
			t.Errorf("%s: %+v, want %+v", test.name, got, test.want)
		}
	}
	s := configured(t, nil, nil, nil, "log.roll.hours=1\nlog.segment.delete.delay.ms=9\n"+
		"log.index.interval.bytes=11\nlog.retention.check.interval.ms=70")
	for key, want := range map[string]int64{"segment.ms": 3600000, "file.delete.delay.ms": 9, "index.interval.bytes": 11} {
		if got := s.Topic("t", key); got.Int() != want {
			t.Errorf("%s: %+v, want %d", key, got, want)
		}
	}
	if got := s.Broker("log.retention.check.interval.ms"); got.Int() != 70 || !s.KnowsServer() {
		t.Errorf("check interval %+v", got)
	}
}

func TestOverrides(t *testing.T) {
	s := configured(t, map[string]string{"retention.ms": "8"}, nil, nil, "")
	for _, text := range []string{"retention.ms=1", "a*:retention.ms=2", "abc:retention.ms = 3",
		"cleanup.policy=compact, delete"} {
		o, err := ParseOverride(text)
		if err != nil {
			t.Fatal(err)
		}
		s.Overrides = append(s.Overrides, o)
	}
	for topic, want := range map[string]string{"t": "1", "axx": "2", "abc": "3", "xabc": "1"} {
		if got := s.Topic(topic, "retention.ms"); got != (Setting{want, FromFlag, "retention.ms", ""}) {
			t.Errorf("%s: %+v, want %s", topic, got, want)
		}
	}
	if got := s.Topic("t", "cleanup.policy").List(); !slices.Equal(got, []string{"compact", "delete"}) {
		t.Errorf("policy %q", got)
	}
	for text, says := range map[string]string{
		"retention.ms":                        "has no =",
		"retention.ms=":                       "takes a number from -1 to",
		"retention.ms=7d":                     "takes a number from -1 to",
		"retention.ms=-2":                     "takes a number from -1 to",
		"log.retention.ms=1":                  "no setting of a topic",
		"[:retention.ms=1":                    "no pattern",
		":retention.ms=1":                     "no pattern",
		"cleanup.policy=compact,remove":       "takes a list of compact, delete",
		"message.timestamp.type=now":          "takes one of CreateTime",
		"preallocate=yes":                     "takes true or false",
		"min.cleanable.dirty.ratio=2":         "takes a number from 0 to 1",
		"segment.bytes=2147483648":            "takes a number from 14 to 2147483647",
		"retention.bytes=9223372036854775808": "takes a number",
	} {
		if _, err := ParseOverride(text); err == nil || !strings.Contains(err.Error(), strings.ReplaceAll(says, "no pattern",
			"not a pattern")) {
			t.Errorf("%s: %v, want %q", text, err, says)
		}
	}
}

func TestServerPropertiesThatNoBrokerTakes(t *testing.T) {
	for _, text := range []string{"log.retention.hours=many", "log.retention.hours=9223372036854775807",
		"log.retention.ms=-9223372036854775809", "log.retention.hours=2147483648", "log.retention.minutes=-2147483649",
		"log.retention.ms=0", "log.roll.hours=0", "log.retention.ms=5\nlog.retention.hours=x", "log.cleanup.policy=drop",
		"log.retention.check.interval.ms=0", "log.roll.hours=9223372036854775807"} {
		properties, err := format.DecodeProperties([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		s := &Settings{}
		if err := s.UseServerProperties(properties); err == nil || s.KnowsServer() {
			t.Errorf("%s was taken: %+v", text, s.Topic("t", "retention.ms"))
		}
	}
}

// TestInternalTopicsWithoutMetadata keeps a missing metadata log from making __consumer_offsets look deletable.
func TestInternalTopicsWithoutMetadata(t *testing.T) {
	s := &Settings{}
	if got := s.Topic("__consumer_offsets", "cleanup.policy"); got.Value != "compact" || got.Source != FromDefault ||
		got.Where == "" {
		t.Errorf("%+v", got)
	}
	if got := s.Topic("orders", "cleanup.policy"); got != (Setting{"delete", FromDefault, "", ""}) {
		t.Errorf("%+v", got)
	}
}

func TestTopicConfigsAreSorted(t *testing.T) {
	if keys := TopicConfigKeys(); !slices.IsSorted(keys) || len(keys) != 38 {
		t.Errorf("%d keys, sorted %v", len(keys), slices.IsSorted(keys))
	}
	for _, c := range topicConfigs {
		if err := c.check(c.key, c.otherwise, 1); err != nil && c.key != "internal.segment.bytes" {
			t.Errorf("the default: %v", err)
		}
	}
}
