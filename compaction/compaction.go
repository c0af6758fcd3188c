// Package compaction says what the log cleaner of a broker would do to partitions: what it could clean, whether it
// would come now, what one round keeps, and why the rest goes.
//
// The rules are in package broker (cleaner*.go); here they get what they need from wherever a partition's state and
// settings are, and are told to people.
package compaction

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"kseg/broker"
	"kseg/format"
	"kseg/logdir"
	"kseg/render"
	"kseg/state"
)

// CleanedTo stands in for a partition's line in cleaner-offset-checkpoint.
type CleanedTo struct {
	Given  bool
	Offset int64 // -1: the checkpoint has no such line
}

// Options say by which settings and at what time partitions are looked at.
type Options struct {
	NowMs     int64
	PresentMs int64 // the real time, by which the broker forgets producers
	Watermark state.Watermark
	CleanedTo CleanedTo
	state.Given
	DedupeBytes   int64 // 0: as the settings have it
	MaxBatchBytes int64
	Jobs          int    // workers
	Key           []byte // whose life is told; nil: none
	Keys          int    // so many of the most rewritten keys are told; 0: none, and keys are not counted
	// Progress is called with the bytes of logs that were read since its last call; it may be nil.
	Progress func(bytes int64)
}

// Report is what the cleaner would do to a partition.
type Report struct {
	Partition       *logdir.Partition
	Settings        Settings
	Log             *broker.LoadedLog
	WatermarkSource string
	Range           broker.CleanRange
	// Round is what one round does now, whether the cleaner would come or not; nil if there is nothing to clean.
	Round   *broker.Round
	Would   bool // the cleaner would take the log now
	Forced  bool // as max.compaction.lag.ms demands it
	Reason  string
	CleanAt *int64 // from when on it would, epoch ms; nil if time alone does not do it
	Place   int    // among the partitions that the cleaner would take, 1 is the first; 0: not among them
	// Warnings are sentences about what is wrong, or makes the answer uncertain.
	Warnings []string
	Life     []KeyRecord
	Census   *broker.KeyCensus

	now      int64
	supposed bool // the checkpoint is not the broker's
	model    *broker.CleanerSettings
}

// Result is the answer for one partition: a report, or why there is none. Problems are what could not be read.
type Result struct {
	Partition *logdir.Partition
	Report    *Report
	Skipped   string // a sentence
	Unknown   bool   // skipped since nobody says that the topic is compacted
	Problems  []logdir.Problem
}

// Analyzer holds what is the same for all partitions.
type Analyzer struct {
	options  Options
	cluster  *state.Cluster
	settings map[*logdir.LogDir]*state.Settings
	records  *format.RecordReader
}

// NewAnalyzer takes what is known of the cluster. The error is about a setting in server.properties with which no
// broker starts.
func NewAnalyzer(partitions []*logdir.Partition, cluster *state.Cluster, options Options) (*Analyzer, error) {
	settings, err := cluster.SettingsOf(partitions, options.Given)
	return &Analyzer{options: options, cluster: cluster, settings: settings,
		records: format.NewRecordReader(options.MaxBatchBytes, nil)}, err
}

// Checkpoints are those that the cleaner goes by.
var Checkpoints = []format.Kind{format.KindLogStartOffsetCheckpoint, format.KindReplicationOffsetCheckpoint,
	format.KindCleanerOffsetCheckpoint}

// Problems are what could not be read of the checkpoints beside the partitions.
func (a *Analyzer) Problems() []logdir.Problem {
	var list []logdir.Problem
	for dir := range a.settings {
		list = append(list, a.cluster.Dirs.Of(dir).Problems(Checkpoints...)...)
	}
	slices.SortFunc(list, func(x, y logdir.Problem) int { return cmp.Compare(x.Display, y.Display) })
	return list
}

// Look analyzes one partition. asked says that it was named, and not just found in a log directory: then it is taken to
// be compacted if nobody says what it is.
func (a *Analyzer) Look(ctx context.Context, p *logdir.Partition, asked bool) (res Result) {
	err := logdir.Guard(p.Display, func() error {
		return p.Steady(func() error {
			res = Result{Partition: p}
			err := a.look(ctx, p, asked, &res)
			return errors.Join(err, logdir.Joined(res.Problems))
		})
	})
	if errors.Is(err, logdir.ErrGone) || err != nil && len(res.Problems) == 0 {
		return Result{Partition: p, Problems: []logdir.Problem{{Display: p.Display, Err: err}}}
	}
	return res
}

func (a *Analyzer) look(ctx context.Context, p *logdir.Partition, asked bool, res *Result) error {
	if why := skipped(p); why != "" {
		res.Skipped = fmt.Sprintf("%s: %s.", p.Display, why)
		return nil
	}
	r := &Report{Partition: p, Settings: readSettings(a.settings[p.Parent], p, a.options.DedupeBytes),
		now: a.options.NowMs}
	dir := a.cluster.Dirs.Of(p.Parent)
	tp := state.TopicPartition{Topic: p.Topic, Partition: p.PartitionDir.Partition}
	_, known := dir.Offset(format.KindCleanerOffsetCheckpoint, tp)
	if !asked && !known && (r.Settings.Assumed || !r.Settings.compacts()) {
		res.Skipped, res.Unknown = p.Display+": its topic is not compacted.", r.Settings.Assumed
		return nil
	}
	r.model = r.Settings.model(a.options.MaxBatchBytes)
	var err error
	r.Log, err = broker.LoadCleanerLog(ctx, p, broker.CleanerSource{
		Dir: dir, IndexInterval: r.model.IndexInterval, IndexBytes: r.model.SegmentIndexBytes,
		MaxBatchBytes: a.options.MaxBatchBytes,
		ExpiredMs:     a.expiredMs(&r.Settings), Records: a.records,
		Watermark: func(start, end int64) int64 {
			watermark, source, missing := a.options.Watermark.Of(a.settings[p.Parent].Image, dir, tp, start, end)
			if r.WatermarkSource = source; missing {
				r.Warnings = append(r.Warnings, "The high watermark of this partition is in no replication-offset-checkpoint; "+
					"the log end is taken for it.")
			}
			return watermark
		}})
	if err != nil {
		return err
	}
	if to := a.options.CleanedTo; to.Given {
		if r.supposed, r.Log.CleanedTo = true, nil; to.Offset >= 0 {
			r.Log.CleanedTo = &to.Offset
		}
	}
	res.Report = r
	r.Range = r.Log.Range(r.model, r.now)
	if err := a.round(ctx, r); err != nil {
		return err
	}
	r.judge()
	r.warn()
	if a.options.Keys > 0 {
		r.Census, err = broker.CountKeys(ctx, r.Log.Segments, a.records, a.options.Keys)
	}
	return err
}

// expiredMs is up to when an idle producer is forgotten. Where the broker's setting is not known, only those are taken
// for forgotten that have really been idle for longer than any setting allows.
func (a *Analyzer) expiredMs(s *Settings) int64 {
	if s.ProducerExpiration.Source == state.FromDefault {
		return a.options.PresentMs - math.MaxInt32
	}
	return a.options.NowMs - s.ProducerExpiration.Int()
}

// round finds what one round does, if there is anything to clean.
func (a *Analyzer) round(ctx context.Context, r *Report) error {
	var life *lifeWatch
	if a.options.Key != nil {
		life = &lifeWatch{key: a.options.Key}
	}
	if r.Range.DirtyBytes > 0 {
		job := broker.CleanJob{Settings: r.model, Range: &r.Range, NowMs: r.now, Jobs: a.options.Jobs,
			Progress: a.options.Progress}
		if life != nil {
			job.Watch = life.see
		}
		var err error
		if r.Round, err = r.Log.Clean(ctx, job); err != nil {
			return err
		}
	}
	if life == nil {
		return nil
	}
	err := life.rest(r, a.records)
	r.Life = life.records
	return err
}

// skipped says why the cleaner leaves a directory alone; "" if it does not.
func skipped(p *logdir.Partition) string {
	switch {
	case p.IsClusterMetadata():
		return "KRaft's own log is cut by snapshots, not compacted"
	case p.Suffix == "delete":
		return "the partition was deleted, and is not compacted"
	case p.Suffix == "stray":
		return "the metadata does not assign the partition to this broker, which does not compact it"
	}
	return ""
}

// judge says whether the cleaner would come, and why or why not.
func (r *Report) judge() {
	r.Would, r.Forced = r.Range.Eligible(r.model, r.now)
	ratio, limit := percent(r.Range.Ratio()), percent(r.model.MinDirtyRatio)
	switch {
	case !r.Settings.compacts():
		r.Reason = fmt.Sprintf("cleanup.policy is %q", r.Settings.CleanupPolicy.Value)
	case !r.model.Enabled:
		r.Reason = "log.cleaner.enable is false"
	case r.Round != nil && r.Round.Stops != nil && !r.Round.Stops.Splits:
		r.Would, r.Forced = false, false
		r.Reason = "the cleaner gives up on it: " + r.Round.Stops.Error()
		return
	case r.Forced:
		r.Reason = "max.compaction.lag.ms: dirty records have been there for longer than " + render.Duration(r.model.MaxLagMs)
	case r.Would:
		r.Reason = fmt.Sprintf("the dirty ratio %s is above min.cleanable.dirty.ratio %s", ratio, limit)
	case r.Range.DirtyBytes == 0:
		r.Reason = "nothing that can be cleaned is dirty: " + r.limitReason()
	default:
		r.Reason = fmt.Sprintf("the dirty ratio %s is not above min.cleanable.dirty.ratio %s", ratio, limit)
	}
	if r.Would {
		r.CleanAt = &r.now
	} else if at, ok := r.Log.EligibleAt(r.model, &r.Range, r.now); ok {
		r.CleanAt = &at
	}
}

// percent writes a share of one.
func percent(share float64) string {
	if share != share {
		return "0 %"
	}
	return fmt.Sprintf("%.4g %%", 100*share)
}

// limitReason says what sets the first uncleanable offset.
func (r *Report) limitReason() string {
	switch r.Range.Limit {
	case broker.LimitLag:
		return "min.compaction.lag.ms (" + render.Duration(r.model.MinLagMs) + ") is not over"
	case broker.LimitTransaction:
		if len(r.Log.Open) > 0 {
			t := r.Log.Open[0]
			return fmt.Sprintf("producer %d, epoch %d, has had a transaction open since offset %d", t.ProducerID,
				t.ProducerEpoch, t.CurrentTxnFirstOffset)
		}
		return "a transaction's marker is above the high watermark"
	case broker.LimitWatermark:
		return fmt.Sprintf("the high watermark is %d", r.Log.HighWatermark)
	}
	return fmt.Sprintf("segment %d is active", r.Log.Segments[len(r.Log.Segments)-1].Base)
}

// Order puts reports as a cleaner takes the partitions: those that it would clean by their ratio, then the others.
func Order(reports []*Report) {
	slices.SortStableFunc(reports, func(a, b *Report) int {
		if a.Would != b.Would {
			if a.Would {
				return -1
			}
			return 1
		}
		return cmp.Compare(ratioOf(b), ratioOf(a))
	})
	for i, r := range reports {
		if r.Would {
			r.Place = i + 1
		}
	}
}

// ratioOf is a ratio that sorts.
func ratioOf(r *Report) float64 {
	if ratio := r.Range.Ratio(); ratio == ratio {
		return ratio
	}
	return -1
}
