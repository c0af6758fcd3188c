package retention

import (
	"slices"
	"strings"

	"kseg/format"
	"kseg/logdir"
	"kseg/state"
)

// Settings are those that bear on retention, each with its source.
type Settings struct {
	CleanupPolicy       state.Setting
	RetentionMs         state.Setting
	RetentionBytes      state.Setting
	SegmentMs           state.Setting
	SegmentBytes        state.Setting
	FileDeleteDelayMs   state.Setting
	TimestampType       state.Setting
	RemoteStorage       state.Setting
	RemoteCopyDisable   state.Setting
	LocalRetentionMs    state.Setting
	LocalRetentionBytes state.Setting
	MaxCompactionLagMs  state.Setting
	CheckIntervalMs     state.Setting // of the retention task
	CleanerBackoffMs    state.Setting // of the cleaner thread, which does the same for compacted topics
	CleanerEnable       state.Setting
	RemoteSystem        state.Setting // the broker's switch for tiered storage
	ServerKnown         bool          // a server.properties was given
}

func readSettings(s *state.Settings, p *logdir.Partition) Settings {
	topic := func(key string) state.Setting { return s.Topic(p.Topic, key) }
	out := Settings{
		CleanupPolicy: topic("cleanup.policy"), RetentionMs: topic("retention.ms"), RetentionBytes: topic("retention.bytes"),
		SegmentMs: topic("segment.ms"), SegmentBytes: topic("segment.bytes"),
		FileDeleteDelayMs: topic("file.delete.delay.ms"),
		TimestampType:     topic("message.timestamp.type"), RemoteStorage: topic("remote.storage.enable"),
		RemoteCopyDisable: topic("remote.log.copy.disable"), LocalRetentionMs: topic("local.retention.ms"),
		LocalRetentionBytes: topic("local.retention.bytes"), MaxCompactionLagMs: topic("max.compaction.lag.ms"),
		CheckIntervalMs: s.Broker("log.retention.check.interval.ms"), CleanerBackoffMs: s.Broker("log.cleaner.backoff.ms"),
		CleanerEnable: s.Broker("log.cleaner.enable"), RemoteSystem: s.Broker("remote.log.storage.system.enable"),
		ServerKnown: s.KnowsServer(),
	}
	if internal := topic("internal.segment.bytes"); internal.Value != "" {
		out.SegmentBytes = internal
	}
	return out
}

// policy reports what cleanup.policy contains; case does not matter to a broker.
func (s *Settings) policy(word string) bool {
	return slices.ContainsFunc(s.CleanupPolicy.List(), func(w string) bool { return strings.EqualFold(w, word) })
}

// notTiered are topics that tiered storage leaves alone (UnifiedLog.isRemoteLogEnabled).
var notTiered = []string{format.OffsetsTopic, format.TransactionsTopic, format.ShareStateTopic, format.RemoteLogTopic,
	format.MetadataTopic}

// tiered reports whether segments are copied to remote storage. The broker's own switch counts if it is known; a topic
// that has tiered storage could not have been made without it.
func (s *Settings) tiered(p *logdir.Partition) bool {
	return s.RemoteStorage.Bool() && !s.RemoteCopyDisable.Bool() && !s.policy("compact") &&
		!slices.Contains(notTiered, p.Topic) && (!s.ServerKnown || s.RemoteSystem.Bool())
}

// useTotalLimit is the value of a local limit that stands for the total one.
const useTotalLimit = -2

// limits are what the rules follow.
func (s *Settings) limits(p *logdir.Partition) Limits {
	l := Limits{
		Delete: s.policy("delete"), Compact: s.policy("compact"),
		RetentionMs: s.RetentionMs.Int(), RetentionBytes: s.RetentionBytes.Int(), Tiered: s.tiered(p),
	}
	l.Off = l.Compact && !s.CleanerEnable.Bool()
	if !l.Tiered {
		return l
	}
	if local := s.LocalRetentionMs.Int(); local != useTotalLimit {
		l.RetentionMs = local
	}
	if local := s.LocalRetentionBytes.Int(); local != useTotalLimit {
		l.RetentionBytes = local
	}
	return l
}

// timeSetting and sizeSetting are the settings that the limits in force come from, with their keys.
func (r *Report) timeSetting() (string, state.Setting) {
	if r.Log.Limits.Tiered && r.Settings.LocalRetentionMs.Int() != useTotalLimit {
		return "local.retention.ms", r.Settings.LocalRetentionMs
	}
	return "retention.ms", r.Settings.RetentionMs
}

func (r *Report) sizeSetting() (string, state.Setting) {
	if r.Log.Limits.Tiered && r.Settings.LocalRetentionBytes.Int() != useTotalLimit {
		return "local.retention.bytes", r.Settings.LocalRetentionBytes
	}
	return "retention.bytes", r.Settings.RetentionBytes
}

// rollMs is the age of a segment's first record at which an append rolls it (LogConfig.maxSegmentMs).
func (s *Settings) rollMs() int64 {
	roll := s.SegmentMs.Int()
	if lag := s.MaxCompactionLagMs.Int(); s.policy("compact") && lag > 0 {
		roll = min(roll, lag)
	}
	return roll
}

// Unsure reports whether a limit in force is Kafka's default only because the broker's server.properties is not known.
func (r *Report) Unsure() bool {
	_, timeLimit := r.timeSetting()
	_, sizeLimit := r.sizeSetting()
	for _, s := range []state.Setting{timeLimit, sizeLimit, r.Settings.CleanupPolicy} {
		if s.Source == state.FromDefault && !r.Settings.ServerKnown {
			return true
		}
	}
	return false
}
