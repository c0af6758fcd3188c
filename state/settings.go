package state

import (
	"fmt"
	"path"
	"strconv"
	"strings"

	"kseg/format"
	"kseg/logdir"
)

// Source says who made a setting what it is.
type Source string

// The sources, strongest first.
const (
	FromFlag    Source = "flag"    // the command line
	FromTopic   Source = "topic"   // the topic's own config in the cluster's metadata
	FromBroker  Source = "broker"  // a dynamic config of this broker, of all brokers, or server.properties
	FromDefault Source = "default" // Kafka
)

// Setting is what a setting is worth, in the topic's unit, and where that comes from.
type Setting struct {
	Value  string
	Source Source
	// Key is the key under which the source has it: log.retention.hours for a retention.ms; "" if nobody set it.
	Key string
	// Where names the place more closely: "dynamic config of broker 1", "server.properties"; "" where Source says all.
	Where string
}

// Origin is the source, with the broker's key where it is another than the topic's, for people.
func (s Setting) Origin() string {
	switch {
	case s.Source == FromBroker:
		return "broker: " + s.Key + " in " + s.Where
	case s.Where != "":
		return string(s.Source) + ", " + s.Where
	}
	return string(s.Source)
}

// Int is the value as a number; 0 for what is none.
func (s Setting) Int() int64 {
	n, _ := strconv.ParseInt(strings.TrimSpace(s.Value), 10, 64)
	return n
}

// Bool is the value as true or false.
func (s Setting) Bool() bool { return strings.EqualFold(strings.TrimSpace(s.Value), "true") }

// List is the value as a list.
func (s Setting) List() []string { return splitList(s.Value) }

// Override is a setting from the command line, for the topics that a glob matches.
type Override struct {
	Topics string // "": all
	Key    string
	Value  string
}

// Matches reports whether the setting is for the topic.
func (o Override) Matches(topic string) bool { return matchTopic(o.Topics, topic) }

// ParseOverride reads [GLOB:]KEY=VALUE. The error is a sentence.
func ParseOverride(text string) (Override, error) {
	name, value, ok := strings.Cut(text, "=")
	if !ok {
		return Override{}, fmt.Errorf("%q has no =; write KEY=VALUE or GLOB:KEY=VALUE", text)
	}
	o := Override{Key: strings.TrimSpace(name), Value: strings.TrimSpace(value)}
	if i := strings.LastIndexByte(o.Key, ':'); i >= 0 {
		o.Topics, o.Key = o.Key[:i], o.Key[i+1:]
		if _, err := path.Match(o.Topics, ""); err != nil || o.Topics == "" {
			return Override{}, fmt.Errorf("%q is not a pattern for topics", o.Topics)
		}
	}
	return o, CheckTopicConfig(o.Key, o.Value)
}

// Settings answers what the settings of topics are worth for one broker. The zero value knows Kafka's defaults.
type Settings struct {
	Overrides []Override // the last that fits wins
	Image     *Image     // nil: no metadata is known
	NodeID    int32      // whose dynamic configs count, if HasNodeID
	HasNodeID bool
	server    map[string]string
}

// LedElsewhere reports whether the metadata say that another broker leads a partition, in an epoch after the given one.
func (s *Settings) LedElsewhere(p format.PartitionDir, epoch int32) bool {
	if s.Image == nil || !s.HasNodeID {
		return false
	}
	topic := s.Image.Topic(p.Topic)
	if topic == nil || topic.Partitions[p.Partition] == nil {
		return false
	}
	now := topic.Partitions[p.Partition]
	return now.Leader != s.NodeID && now.LeaderEpoch > epoch
}

// Given is what was said of settings besides what the log directories hold.
type Given struct {
	Overrides []Override
	Server    []format.Property // server.properties, if HasServer
	HasServer bool
}

// SettingsOf are the settings that count in the log directory of each partition. The error is about a setting in
// server.properties with which no broker starts.
func (c *Cluster) SettingsOf(partitions []*logdir.Partition, given Given) (map[*logdir.LogDir]*Settings, error) {
	all := map[*logdir.LogDir]*Settings{}
	for _, p := range partitions {
		if all[p.Parent] != nil {
			continue
		}
		s := c.Settings(p.Parent)
		if s.Overrides = given.Overrides; given.HasServer {
			if err := s.UseServerProperties(given.Server); err != nil {
				return nil, err
			}
		}
		all[p.Parent] = s
	}
	return all, nil
}

// UseServerProperties takes over a broker's server.properties. Its error is about the first setting that would keep a
// broker from starting; nothing is taken over then.
func (s *Settings) UseServerProperties(properties []format.Property) error {
	server := map[string]string{}
	for _, p := range properties {
		server[p.Key] = strings.TrimSpace(p.Value)
	}
	for _, c := range topicConfigs {
		counts := true // the first that is there
		for _, name := range c.synonyms {
			if value, ok := server[name.key]; ok {
				if err := c.checkServer(name, value, counts); err != nil {
					return err
				}
				counts = false
			}
		}
	}
	for _, c := range brokerConfigs {
		if value, ok := server[c.key]; ok {
			if err := c.check(c.key, value, 1); err != nil {
				return err
			}
		}
	}
	s.server = server
	return nil
}

// checkServer is check for server.properties: there any negative retention time means none, and a broker does not start
// if the time that counts, for retention or for rolling, is 0 (KafkaConfig.validateValues).
func (c *topicConfig) checkServer(name synonym, value string, counts bool) error {
	bits := 64
	if name.unit > 1 {
		bits = 32
	}
	n, err := strconv.ParseInt(value, 10, bits)
	switch {
	case err == nil && n < 0 && c.key == "retention.ms":
		return nil
	case err == nil && n == 0 && counts && (c.key == "retention.ms" || c.key == "segment.ms"):
		return fmt.Errorf("%s must not be 0: a broker does not start with that", name.key)
	}
	return c.check(name.key, value, name.unit)
}

// Topic is the setting of a topic that Kafka calls key (a key that no topic has gives the zero Setting).
//
// The order is that of LogConfig over KafkaConfig: the topic's own, the broker's dynamic one, that of all brokers,
// server.properties, Kafka's default. Dynamic configs know the first synonym only; in server.properties the first that
// is there counts.
func (s *Settings) Topic(topic, key string) Setting {
	c, ok := findConfig(topicConfigs, key)
	if !ok {
		return Setting{}
	}
	for i := len(s.Overrides) - 1; i >= 0; i-- {
		if o := s.Overrides[i]; o.Key == key && o.Matches(topic) {
			return Setting{o.Value, FromFlag, key, ""}
		}
	}
	if s.Image != nil {
		if value, ok := s.dynamic(c, Resource{TopicResource, topic}, key); ok {
			return Setting{value, FromTopic, key, ""}
		}
	}
	if value, ok := internalTopicConfigs[topic][key]; ok && (s.Image == nil || s.Image.Topic(topic) == nil) {
		return Setting{value, FromDefault, "", "as brokers create " + topic}
	}
	return s.broker(c)
}

// dynamic is a config from the metadata, unless its value is none that Kafka takes.
func (s *Settings) dynamic(c *topicConfig, r Resource, key string) (string, bool) {
	value, ok := s.Image.Config(r, key)
	return value, ok && c.check(key, value, 1) == nil
}

func (s *Settings) broker(c *topicConfig) Setting {
	if s.Image != nil && len(c.synonyms) > 0 {
		key := c.synonyms[0].key
		if s.HasNodeID {
			node := strconv.Itoa(int(s.NodeID))
			if value, ok := s.dynamic(c, Resource{BrokerResource, node}, key); ok {
				return Setting{value, FromBroker, key, "dynamic config of broker " + node}
			}
		}
		if value, ok := s.dynamic(c, Resource{BrokerResource, ""}, key); ok {
			return Setting{value, FromBroker, key, "dynamic config of all brokers"}
		}
	}
	for _, name := range c.synonyms {
		value, ok := s.server[name.key]
		if !ok {
			continue
		}
		if name.unit > 1 {
			n, _ := strconv.ParseInt(value, 10, 64)
			value = strconv.FormatInt(n*name.unit, 10)
		}
		if c.key == "retention.ms" && strings.HasPrefix(value, "-") {
			value = "-1"
		}
		return Setting{value, FromBroker, name.key, "server.properties"}
	}
	return Setting{Value: c.otherwise, Source: FromDefault}
}

// Broker is a setting that only brokers have.
func (s *Settings) Broker(key string) Setting {
	if value, ok := s.server[key]; ok {
		return Setting{value, FromBroker, key, "server.properties"}
	}
	if c, ok := findConfig(brokerConfigs, key); ok {
		return Setting{Value: c.otherwise, Source: FromDefault}
	}
	return Setting{}
}

// KnowsServer reports whether a server.properties was given; without it broker-wide settings are taken for Kafka's
// defaults.
func (s *Settings) KnowsServer() bool { return s.server != nil }
