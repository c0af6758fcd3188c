package compaction

import (
	"slices"
	"strconv"
	"strings"

	"kseg/broker"
	"kseg/logdir"
	"kseg/state"
)

// Settings are those that the log cleaner follows, each with its source.
type Settings struct {
	CleanupPolicy      state.Setting
	MinDirtyRatio      state.Setting
	MinLagMs           state.Setting
	MaxLagMs           state.Setting
	DeleteRetentionMs  state.Setting
	SegmentBytes       state.Setting
	SegmentIndexBytes  state.Setting
	IndexInterval      state.Setting
	CleanerEnable      state.Setting
	DedupeBuffer       state.Setting
	Threads            state.Setting
	LoadFactor         state.Setting
	ProducerExpiration state.Setting
	// Assumed is set if cleanup.policy is not known, and taken for compact.
	Assumed bool
}

func readSettings(s *state.Settings, p *logdir.Partition, dedupeBytes int64) Settings {
	topic := func(key string) state.Setting { return s.Topic(p.Topic, key) }
	out := Settings{
		CleanupPolicy: topic("cleanup.policy"), MinDirtyRatio: topic("min.cleanable.dirty.ratio"),
		MinLagMs: topic("min.compaction.lag.ms"), MaxLagMs: topic("max.compaction.lag.ms"),
		DeleteRetentionMs: topic("delete.retention.ms"), SegmentBytes: topic("segment.bytes"),
		SegmentIndexBytes: topic("segment.index.bytes"), IndexInterval: topic("index.interval.bytes"),
		CleanerEnable: s.Broker("log.cleaner.enable"), DedupeBuffer: s.Broker("log.cleaner.dedupe.buffer.size"),
		Threads: s.Broker("log.cleaner.threads"), LoadFactor: s.Broker("log.cleaner.io.buffer.load.factor"),
		ProducerExpiration: s.Broker("producer.id.expiration.ms"),
	}
	if internal := topic("internal.segment.bytes"); internal.Value != "" {
		out.SegmentBytes = internal
	}
	if dedupeBytes > 0 {
		out.DedupeBuffer = state.Setting{Value: strconv.FormatInt(dedupeBytes, 10), Source: state.FromFlag,
			Key: "dedupe-buffer"}
	}
	out.Assumed = out.CleanupPolicy.Source == state.FromDefault && out.CleanupPolicy.Where == "" &&
		(s.Image == nil || s.Image.Topic(p.Topic) == nil)
	return out
}

// policy reports whether cleanup.policy contains a word.
func (s *Settings) policy(word string) bool {
	return slices.ContainsFunc(s.CleanupPolicy.List(), func(w string) bool { return strings.EqualFold(w, word) })
}

// compacts reports whether the topic is compacted, or taken to be.
func (s *Settings) compacts() bool { return s.Assumed || s.policy("compact") }

func decimal(s state.Setting) float64 {
	f, _ := strconv.ParseFloat(strings.TrimSpace(s.Value), 64)
	return f
}

// model is what the settings are to the cleaner.
func (s *Settings) model(maxBatchBytes int64) *broker.CleanerSettings {
	return &broker.CleanerSettings{
		Compact: s.compacts(), Enabled: s.CleanerEnable.Bool(), MinLagMs: s.MinLagMs.Int(), MaxLagMs: s.MaxLagMs.Int(),
		MinDirtyRatio: decimal(s.MinDirtyRatio), DeleteRetentionMs: s.DeleteRetentionMs.Int(),
		SegmentBytes: s.SegmentBytes.Int(), SegmentIndexBytes: s.SegmentIndexBytes.Int(),
		IndexInterval: s.IndexInterval.Int(),
		DedupeBytes:   s.DedupeBuffer.Int(), Threads: s.Threads.Int(), LoadFactor: decimal(s.LoadFactor),
		MaxBatchBytes: maxBatchBytes,
	}
}
