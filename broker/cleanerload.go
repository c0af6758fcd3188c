package broker

import (
	"context"
	"errors"
	"slices"
	"strings"

	"kseg/format"
	"kseg/logdir"
	"kseg/state"
)

// CleanerSource says how a partition is loaded for the cleaner.
type CleanerSource struct {
	Dir *state.Dir // of the log directory; nil: unknown, and taken for one that was left cleanly
	// index.interval.bytes and segment.index.bytes, by which a broker makes an index that is missing
	IndexInterval int64
	IndexBytes    int64
	MaxBatchBytes int64
	// ExpiredMs is up to when a producer without an open transaction must have been idle to be forgotten, epoch ms.
	ExpiredMs int64
	// Watermark finds the high watermark from the log start and the log end; nil: it is the log end.
	Watermark func(start, end int64) int64
	Records   *format.RecordReader
}

// LoadedLog is a partition as a broker holds it once it is loaded.
type LoadedLog struct {
	CleanerLog
	entries []format.ProducerEntry // of all producers
	// Open are the open transactions, by first offset; the first holds the last stable offset, if it lies below the
	// high watermark.
	Open []format.ProducerEntry
	// Refused says why a broker does not load the partition, nil if it does.
	Refused error
	// Completed counts files that a start puts in their place or removes before it loads the log: what the cleaner left.
	Completed int
	// Splits says that a start splits segments whose offsets do not fit. That is not taken for done: all else is of the
	// log as it lies on disk.
	Splits bool
	// Cuts are those of segments before the active one, after a stop that was not clean; they are taken for done.
	Cuts []Cut
}

// LoadCleanerLog reads what the cleaner has to know of a partition before it reads a record: indexes, the producers,
// the headers of the active segment. What a start does first is taken for done: segments that the cleaner left
// unfinished are completed or removed, indexes made anew where they are missing or make no sense, and after a stop that
// was not clean segments recovered, and cut.
func LoadCleanerLog(ctx context.Context, p *logdir.Partition, src CleanerSource) (*LoadedLog, error) {
	tp := state.TopicPartition{Topic: p.Topic, Partition: p.PartitionDir.Partition}
	options := state.LoadOptions{HighWatermark: src.Watermark, Clean: src.Dir == nil || src.Dir.Marker != nil,
		Compacted: true,
		Records:   src.Records}
	opts := LoadOptions{Clean: true, Interval: src.IndexInterval, IndexBytes: src.IndexBytes,
		MaxBatchBytes: src.MaxBatchBytes,
		Stop:          func() bool { return ctx.Err() != nil }}
	if start, ok := src.Dir.Offset(format.KindLogStartOffsetCheckpoint, tp); ok {
		options.LogStart, opts.LogStart = &start, start
	}
	if point, ok := src.Dir.Offset(format.KindRecoveryPointCheckpoint, tp); ok {
		options.RecoveryPoint, opts.RecoveryPoint = &point, point
	}
	opened, splits, refused, err := openForCleaner(p, &opts)
	if err != nil {
		return nil, err
	}
	q, completed := opened.arranged(p)
	l := &LoadedLog{Refused: refused, Completed: completed, Splits: splits}
	if !options.Clean && refused == nil && !splits {
		active := opened.segments[len(opened.segments)-1].base
		if opened, l.Refused, l.Splits, err = recoverForCleaner(p, opts, opened); err != nil {
			return nil, err
		}
		l.Cuts = slices.DeleteFunc(opened.cuts, func(c Cut) bool { return c.Base >= active })
	}
	if recovered := !opened.opts.Clean; recovered {
		err = l.holds(ctx, q, options, opened)
	} else {
		err = l.reads(ctx, q, options)
	}
	if err != nil {
		return nil, err
	}
	for _, seg := range opened.segments {
		s, err := loadCleanerSegment(seg)
		if err != nil {
			return nil, err
		}
		l.Segments = append(l.Segments, s)
	}
	if cleaned, ok := src.Dir.Offset(format.KindCleanerOffsetCheckpoint, tp); ok {
		l.CleanedTo = &cleaned
	}
	l.Producers = map[int64]LastRecord{}
	for _, e := range l.entries {
		if e.InTransaction() || e.TimestampMs > src.ExpiredMs {
			l.Producers[e.ProducerID] = LastRecord{LastOffset: e.LastOffset, Epoch: e.ProducerEpoch}
		}
	}
	return l, nil
}

// reads takes the bounds and the producers of a log from the disk.
func (l *LoadedLog) reads(ctx context.Context, p *logdir.Partition, options state.LoadOptions) error {
	producers, err := state.LoadProducers(ctx, p, options)
	if err != nil {
		return err
	}
	if l.Refused == nil {
		l.Refused = producers.Refused
	}
	l.Open, l.entries = producers.Open(), producers.Entries()
	l.StartOffset, l.EndOffset = producers.LogStart, producers.LogEnd
	l.HighWatermark, l.StableOffset = producers.HighWatermark, producers.LastStable
	return nil
}

// holds takes those of a log that was recovered. The disk tells of transactions that have ended above the high
// watermark: one that ended in what was cut, and began before, is open in what is left.
func (l *LoadedLog) holds(ctx context.Context, p *logdir.Partition, options state.LoadOptions, done *loader) error {
	l.Open, l.entries = done.producers.Open(), done.producers.Entries()
	l.StartOffset, l.EndOffset, l.HighWatermark = done.logStart, done.logEnd, done.logEnd
	if options.HighWatermark != nil {
		l.HighWatermark = options.HighWatermark(l.StartOffset, l.EndOffset)
	}
	l.StableOffset = l.HighWatermark
	if done.held != nil {
		l.StableOffset = min(l.StableOffset, *done.held)
	}
	if l.HighWatermark == l.EndOffset {
		return nil
	}
	options.HighWatermark = func(_, _ int64) int64 { return l.HighWatermark }
	producers, err := state.LoadProducers(ctx, p, options)
	if err == nil {
		l.StableOffset = min(l.StableOffset, producers.LastStable)
	}
	return err
}

// recoverForCleaner is what recovery makes of a log, else the log as it was opened. refused says why the log is not
// loaded, and splits that recovery splits segments.
func recoverForCleaner(p *logdir.Partition, opts LoadOptions, opened *loader) (l *loader, refused error, splits bool,
	err error) {
	opts.Clean = false
	l = &loader{dir: newFolder(p, nil), opts: &opts}
	err = l.create()
	var failure *Failure
	switch {
	case err != nil && !errors.As(asFailure(err, ""), &failure):
		return nil, nil, false, err
	case failure != nil:
		return opened, failure, false, nil
	case !l.onDisk():
		return opened, nil, true, nil
	}
	return l, nil, false, nil
}

// openForCleaner opens the segments as a start does, up to where it recovers the log. Where a start fails, or splits a
// segment, they are opened as they lie on disk, and refused says why it fails.
func openForCleaner(p *logdir.Partition, opts *LoadOptions) (l *loader, splits bool, refused, err error) {
	l = &loader{dir: newFolder(p, nil), opts: opts}
	if err = l.openAll(); err == nil && l.onDisk() {
		return l, false, nil, nil
	}
	var failure *Failure
	if err != nil && !errors.As(asFailure(err, ""), &failure) {
		return nil, false, nil, err
	}
	l = &loader{dir: newFolder(p, nil), opts: opts}
	for _, seg := range state.Segments(p) {
		s, err := l.open(seg.Base, "")
		if err != nil {
			return nil, false, nil, err
		}
		l.add(s)
	}
	if failure != nil {
		refused = failure
	}
	return l, failure == nil, refused, nil
}

// onDisk reports whether all logs are whole files that are there.
func (l *loader) onDisk() bool {
	return len(l.segments) > 0 && !slices.ContainsFunc(l.segments, func(s *segment) bool {
		return s.log.src == nil || s.log.from != 0
	})
}

// arranged is the directory as the loader leaves it, without what it has written anew; and how many unfinished files of
// the cleaner were put in their place or removed.
func (l *loader) arranged(p *logdir.Partition) (q *logdir.Partition, completed int) {
	names := map[*logdir.File]string{}
	for name, f := range l.dir.files {
		if f.src != nil && f.from == 0 {
			names[f.src] = name
		}
	}
	same := true
	for _, f := range p.All() {
		name, ok := names[f]
		same = same && ok && name == f.Name.Raw
		if strings.HasSuffix(f.Name.Raw, swapSuffix) || strings.HasSuffix(f.Name.Raw, cleanedSuffix) {
			completed++
		}
	}
	if same {
		return p, 0
	}
	return p.Renamed(func(f *logdir.File) (string, bool) {
		name, ok := names[f]
		return name, ok
	}), completed
}

func loadCleanerSegment(seg *segment) (CleanerSegment, error) {
	log, index, times := seg.log.src, seg.offsetIndex(), seg.timeIndex()
	s := CleanerSegment{Base: seg.base, Size: seg.log.size, ModMs: log.ModTime.UnixMilli(), Log: log,
		IndexSize: index.entries * index.width, TimeIndexSize: times.entries * times.width,
		opened: seg}
	s.LargestMs = s.ModMs
	err := seg.viewLog(func(data []byte) error {
		if b, err := format.DecodeBatch(data, 0); err == nil {
			s.FirstMs = b.MaxTimestamp
		}
		return nil
	})
	if err == nil {
		err = seg.l.view(times.f, s.TimeIndexSize, func(data []byte) error {
			s.takeLargest(format.NewTimeIndex(data, seg.base))
			return nil
		})
	}
	if f := seg.l.dir.files[seg.fileName(format.KindTxnIndex)]; err == nil && f != nil {
		err = seg.l.view(f, f.size, func(data []byte) error {
			x := format.NewTxnIndex(data)
			for i := range x.Len() {
				s.Aborted = append(s.Aborted, x.Entry(i))
			}
			return nil
		})
	}
	return s, err
}

// takeLargest is LogSegment.largestTimestamp after a load.
func (s *CleanerSegment) takeLargest(x format.TimeIndex) {
	if n := x.Len(); n > 0 && x.Entry(n-1).TimestampMs >= 0 {
		s.LargestMs = x.Entry(n - 1).TimestampMs
	}
}
