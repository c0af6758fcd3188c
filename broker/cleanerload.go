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
	// Open are the open transactions, by first offset; the first holds the last stable offset, if it lies below the
	// high watermark.
	Open []format.ProducerEntry
	// Refused says why a broker does not load the partition, nil if it does.
	Refused error
	// Completed counts files that a start puts in their place or removes before it loads the log: what the cleaner left.
	Completed int
	// Splits says that a start splits segments whose offsets do not fit, and Cuts which segments before the active one it
	// cuts after a stop that was not clean. Neither is taken for done: all else is of the log as it lies on disk.
	Splits bool
	Cuts   []Cut
}

// LoadCleanerLog reads what the cleaner has to know of a partition before it reads a record: indexes, the producers,
// the headers of the active segment. What a start does first is taken for done: segments that the cleaner left
// unfinished are completed or removed, and indexes made anew where they are missing or make no sense.
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
	producers, err := state.LoadProducers(ctx, q, options)
	if err != nil {
		return nil, err
	}
	if refused == nil {
		refused = producers.Refused
	}
	l := &LoadedLog{Open: producers.Open(), Refused: refused, Completed: completed, Splits: splits,
		CleanerLog: CleanerLog{StartOffset: producers.LogStart,
			EndOffset: producers.LogEnd, HighWatermark: producers.HighWatermark, StableOffset: producers.LastStable}}
	for _, seg := range opened.segments {
		s, err := loadCleanerSegment(seg)
		if err != nil {
			return nil, err
		}
		l.Segments = append(l.Segments, s)
	}
	if !options.Clean {
		if l.Cuts, err = cutsOfClosed(p, opts, opened.segments); err != nil {
			return nil, err
		}
	}
	if cleaned, ok := src.Dir.Offset(format.KindCleanerOffsetCheckpoint, tp); ok {
		l.CleanedTo = &cleaned
	}
	l.Producers = map[int64]LastRecord{}
	for _, e := range producers.Entries() {
		if e.InTransaction() || e.TimestampMs > src.ExpiredMs {
			l.Producers[e.ProducerID] = LastRecord{LastOffset: e.LastOffset, Epoch: e.ProducerEpoch}
		}
	}
	return l, nil
}

// cutsOfClosed are the cuts of segments that the cleaner may come to. No log is read of which recovery comes to the
// active segment alone.
func cutsOfClosed(p *logdir.Partition, opts LoadOptions, segments []*segment) ([]Cut, error) {
	log, last := producerLog(segments), len(segments)-1
	if log.Floor(opts.RecoveryPoint) >= last {
		return nil, nil
	}
	opts.Clean = false
	loaded, err := Load(p, opts)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(loaded.Cuts, func(c Cut) bool { return c.Base >= segments[last].base }), nil
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
		return s.log.src == nil ||
			s.log.from != 0
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
