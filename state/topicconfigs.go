package state

import (
	"fmt"
	"math"
	"path"
	"slices"
	"strconv"
	"strings"

	"kseg/format"
)

// configType is how the text of a setting is read.
type configType uint8

const (
	longConfig configType = iota
	doubleConfig
	boolConfig
	textConfig
	listConfig
)

// topicConfig is a setting that topics have (LogConfig).
type topicConfig struct {
	key       string
	typ       configType
	otherwise string // Kafka's default
	// least and most bound a number. Where releases differ, the widest bounds: logs of all of them are read.
	least, most int64
	words       []string // what a text or the members of a list may be; nil: anything
	// synonyms are the broker's settings for the same thing, strongest first (ServerTopicConfigSynonyms).
	synonyms []synonym
}

// synonym is a setting of a broker, in units of so many of the topic's.
type synonym struct {
	key  string
	unit int64
}

const (
	minuteMs = 60 * 1000
	hourMs   = 60 * minuteMs
)

func same(keys ...string) []synonym {
	var list []synonym
	for _, key := range keys {
		unit := int64(1)
		switch {
		case strings.HasSuffix(key, ".minutes"):
			unit = minuteMs
		case strings.HasSuffix(key, ".hours"):
			unit = hourMs
		}
		list = append(list, synonym{key, unit})
	}
	return list
}

const (
	maxInt  = math.MaxInt32
	maxLong = math.MaxInt64
)

// topicConfigs are the settings of Kafka 4.4's topics, by key.
var topicConfigs = []topicConfig{
	{"cleanup.policy", listConfig, "delete", 0, 0, []string{"compact", "delete"}, same("log.cleanup.policy")},
	{"compression.gzip.level", longConfig, "-1", -1, 9, nil, same("compression.gzip.level")},
	{"compression.lz4.level", longConfig, "9", 1, 17, nil, same("compression.lz4.level")},
	{"compression.type", textConfig, "producer", 0, 0, []string{"uncompressed", "zstd", "lz4", "snappy", "gzip",
		"producer"}, same("compression.type")},
	{"compression.zstd.level", longConfig, "3", -131072, 22, nil, same("compression.zstd.level")},
	{"delete.retention.ms", longConfig, "86400000", 0, maxLong, nil, same("log.cleaner.delete.retention.ms")},
	{"errors.deadletterqueue.group.enable", boolConfig, "false", 0, 0, nil, nil},
	{"file.delete.delay.ms", longConfig, "60000", 0, maxLong, nil, same("log.segment.delete.delay.ms")},
	{"flush.messages", longConfig, "9223372036854775807", 0, maxLong, nil, same("log.flush.interval.messages")},
	{"flush.ms", longConfig, "9223372036854775807", 0, maxLong, nil, same("log.flush.interval.ms",
		"log.flush.scheduler.interval.ms")},
	{"follower.replication.throttled.replicas", listConfig, "", 0, 0, nil, nil},
	{"index.interval.bytes", longConfig, "4096", 0, maxInt, nil, same("log.index.interval.bytes")},
	{"internal.segment.bytes", longConfig, "", 0, maxInt, nil, nil},
	{"leader.replication.throttled.replicas", listConfig, "", 0, 0, nil, nil},
	{"local.retention.bytes", longConfig, "-2", -2, maxLong, nil, same("log.local.retention.bytes")},
	{"local.retention.ms", longConfig, "-2", -2, maxLong, nil, same("log.local.retention.ms")},
	{"max.compaction.lag.ms", longConfig, "9223372036854775807", 1, maxLong, nil,
		same("log.cleaner.max.compaction.lag.ms")},
	{"max.decompressed.message.bytes", longConfig, "2147483639", 1, maxInt, nil, same("max.decompressed.message.bytes")},
	{"max.message.bytes", longConfig, "1048588", 0, maxInt, nil, same("message.max.bytes")},
	{"message.timestamp.after.max.ms", longConfig, "3600000", 0, maxLong, nil, same("log.message.timestamp.after.max.ms")},
	{"message.timestamp.before.max.ms", longConfig, "9223372036854775807", 0, maxLong, nil,
		same("log.message.timestamp.before.max.ms")},
	{"message.timestamp.type", textConfig, "CreateTime", 0, 0, []string{"CreateTime", "LogAppendTime"},
		same("log.message.timestamp.type")},
	{"min.cleanable.dirty.ratio", doubleConfig, "0.5", 0, 1, nil, same("log.cleaner.min.cleanable.ratio")},
	{"min.compaction.lag.ms", longConfig, "0", 0, maxLong, nil, same("log.cleaner.min.compaction.lag.ms")},
	{"min.insync.replicas", longConfig, "1", 1, maxInt, nil, same("min.insync.replicas")},
	{"preallocate", boolConfig, "false", 0, 0, nil, same("log.preallocate")},
	{"remote.copy.lag.bytes", longConfig, "-1", -1, maxLong, nil, same("log.remote.copy.lag.bytes")},
	{"remote.copy.lag.ms", longConfig, "0", -1, maxLong, nil, same("log.remote.copy.lag.ms")},
	{"remote.log.copy.disable", boolConfig, "false", 0, 0, nil, nil},
	{"remote.log.delete.on.disable", boolConfig, "false", 0, 0, nil, nil},
	{"remote.storage.enable", boolConfig, "false", 0, 0, nil, nil},
	{"retention.bytes", longConfig, "-1", math.MinInt64, maxLong, nil, same("log.retention.bytes")},
	{"retention.ms", longConfig, "604800000", -1, maxLong, nil, same("log.retention.ms", "log.retention.minutes",
		"log.retention.hours")},
	{"segment.bytes", longConfig, "1073741824", 14, maxInt, nil, same("log.segment.bytes")},
	{"segment.index.bytes", longConfig, "10485760", 0, maxInt, nil, same("log.index.size.max.bytes")},
	{"segment.jitter.ms", longConfig, "0", 0, maxLong, nil, same("log.roll.jitter.ms", "log.roll.jitter.hours")},
	{"segment.ms", longConfig, "604800000", 0, maxLong, nil, same("log.roll.ms", "log.roll.hours")},
	{"unclean.leader.election.enable", boolConfig, "false", 0, 0, nil, same("unclean.leader.election.enable")},
}

// brokerConfigs are settings that only brokers have, from server.properties alone, and their defaults.
var brokerConfigs = []topicConfig{
	{"log.cleaner.backoff.ms", longConfig, "15000", 0, maxLong, nil, nil},
	{"log.cleaner.dedupe.buffer.size", longConfig, "134217728", 0, maxLong, nil, nil},
	{"log.cleaner.enable", boolConfig, "true", 0, 0, nil, nil},
	{"log.cleaner.io.buffer.load.factor", doubleConfig, "0.9", 0, 1, nil, nil},
	{"log.cleaner.threads", longConfig, "1", 0, maxInt, nil, nil},
	{"log.retention.check.interval.ms", longConfig, "300000", 1, maxLong, nil, nil},
	{"producer.id.expiration.ms", longConfig, "86400000", 1, maxInt, nil, nil},
	{"remote.log.storage.system.enable", boolConfig, "false", 0, 0, nil, nil},
}

// internalTopicConfigs are what a broker sets for the topics that it creates for itself, where that bears on what is on
// disk; they stand in for a topic's own settings if there is no metadata.
var internalTopicConfigs = map[string]map[string]string{
	format.OffsetsTopic:      {"cleanup.policy": "compact", "segment.bytes": "104857600"},
	format.TransactionsTopic: {"cleanup.policy": "compact", "segment.bytes": "104857600"},
	format.ShareStateTopic:   {"cleanup.policy": "delete", "segment.bytes": "104857600", "retention.ms": "-1"},
	format.RemoteLogTopic:    {"cleanup.policy": "delete", "retention.ms": "-1"},
}

func findConfig(table []topicConfig, key string) (*topicConfig, bool) {
	i := slices.IndexFunc(table, func(c topicConfig) bool { return c.key == key })
	if i < 0 {
		return nil, false
	}
	return &table[i], true
}

// TopicConfigKeys are all keys that CheckTopicConfig knows, sorted.
func TopicConfigKeys() []string {
	var keys []string
	for _, c := range topicConfigs {
		keys = append(keys, c.key)
	}
	return keys
}

// CheckTopicConfig reports why a broker would not take value for a topic's setting, as a sentence.
func CheckTopicConfig(key, value string) error {
	c, ok := findConfig(topicConfigs, key)
	if !ok {
		return fmt.Errorf("%q is no setting of a topic", key)
	}
	return c.check(key, value, 1)
}

// check tests a value given under a key, which counts in units.
func (c *topicConfig) check(key, value string, unit int64) error {
	text := strings.TrimSpace(value)
	switch c.typ {
	case longConfig:
		least, most := c.least, c.most
		if unit > 1 {
			least, most = least/unit, min(most/unit, maxInt) // minutes and hours are ints
		}
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil || n > most || n < least {
			return fmt.Errorf("%s takes a number from %d to %d, not %q", key, least, most, value)
		}
	case doubleConfig:
		f, err := strconv.ParseFloat(text, 64)
		if err != nil || f < float64(c.least) || f > float64(c.most) {
			return fmt.Errorf("%s takes a number from %d to %d, not %q", key, c.least, c.most, value)
		}
	case boolConfig:
		if !strings.EqualFold(text, "true") && !strings.EqualFold(text, "false") {
			return fmt.Errorf("%s takes true or false, not %q", key, value)
		}
	case textConfig:
		if !slices.Contains(c.words, text) {
			return fmt.Errorf("%s takes one of %s, not %q", key, strings.Join(c.words, ", "), value)
		}
	case listConfig:
		for _, word := range splitList(text) {
			if c.words != nil && !slices.Contains(c.words, word) {
				return fmt.Errorf("%s takes a list of %s, not %q", key, strings.Join(c.words, ", "), value)
			}
		}
	}
	return nil
}

// splitList reads a list as ConfigDef.parseType does: separated by commas, white space around members is dropped.
func splitList(text string) []string {
	if strings.TrimSpace(text) == "" {
		return nil
	}
	var words []string
	for word := range strings.SplitSeq(text, ",") {
		words = append(words, strings.TrimSpace(word))
	}
	return words
}

// matchTopic reports whether a topic's name matches a glob as --topic takes it; "" matches all.
func matchTopic(glob, topic string) bool {
	if glob == "" {
		return true
	}
	ok, err := path.Match(glob, topic)
	return err == nil && ok
}
