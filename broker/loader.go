package broker

import (
	"errors"
	"math"
	"path/filepath"
	"slices"
	"strings"

	"kseg/format"
	"kseg/logdir"
	"kseg/state"
)

// LoadOptions are what a broker knows of a log besides its directory when it loads it.
type LoadOptions struct {
	Clean         bool  // the log directory has a clean-shutdown marker
	RecoveryPoint int64 // by the checkpoint, 0 if that does not list the log
	LogStart      int64 // by the checkpoint, 0 likewise
	Tiered        bool  // the topic has remote storage: the log starts where the checkpoint says
	Interval      int64 // index.interval.bytes
	IndexBytes    int64 // segment.index.bytes
	SegmentBytes  int64 // segment.bytes, where Preallocate is true
	Preallocate   bool
	ExpiredMs     int64  // producers whose last batch is not younger are forgotten
	MaxBatchBytes int64  // bounds what a batch may decompress to
	Watermark     *int64 // the high watermark by the checkpoint, nil if that does not list the log
	// LedElsewhere reports whether another broker leads the partition in an epoch after the given one; nil: unknown.
	LedElsewhere func(epoch int32) bool
	// Edits are supposed to be made before.
	Edits []Edit
	// Progress is called with the bytes of logs that were read since its last call; Stop says that the run is to end.
	// Both may be nil.
	Progress func(bytes int64)
	Stop     func() bool
}

// Cut is a log that recovery cuts.
type Cut struct {
	File string
	Base int64
	At   int64 // the first byte that goes
	Why  error // nil: the log ends in part of a batch
}

// Loaded is what becomes of one partition's directory.
type Loaded struct {
	// Failure is why it is not loaded, nil if it is. What was done before that is in Files all the same.
	Failure *Failure
	// LogStart and LogEnd are the log start offset and the log end offset; RecoveryPoint is that of the next
	// checkpoint.
	LogStart, LogEnd, RecoveryPoint int64
	Segments                        []LoadedSegment
	Cuts                            []Cut
	Files                           []FileChange
	BytesRead                       int64
	Lost                            Loss
	// Unstable: a transaction is open, so that the log is read once more when it has been loaded.
	Unstable bool
	// Snapshot is that of a metadata log which a node begins with, nil if there is none.
	Snapshot *logdir.File
}

// LoadedSegment is a segment as it is loaded.
type LoadedSegment struct {
	Base      int64
	Size      int64
	Recovered bool // its indexes were made anew
}

// loader is LogLoader for one partition.
type loader struct {
	dir      *folder
	opts     *LoadOptions
	segments []*segment // by base offset
	epochs   *epochs
	// producers is the manager that the log gets; recovery makes others for its own use.
	producers *state.ProducerManager
	reader    *format.RecordReader
	cuts      []Cut
	bytesRead int64

	logStart, logEnd, recoveryPoint int64
	unstable                        bool
	held                            *int64 // the base offset of the batch that an open transaction begins with
	// barred is what a directory with the name of a file did when it was to be opened, which ends the loading.
	barred *Failure
	// unwritten did so when a snapshot was to be written, which does not end a recovery: it empties the segment.
	unwritten *Failure
	snapshot  *logdir.File
	oddMagic  *Failure // of the first batch of an unknown magic that recovery has kept
}

// Load is what a broker does when it loads a partition (UnifiedLog.create). The error says what could not be read, so
// that nothing can be said.
func Load(p *logdir.Partition, opts LoadOptions) (*Loaded, error) {
	if p.ListErr != nil {
		return nil, &unreadable{p.ListErr}
	}
	for _, f := range p.All() {
		if err := f.Irregular(); err != nil && f.Kind() != format.KindLog && f.Kind() != format.KindUnknown {
			return nil, &unreadable{err} // a broker would wait for its bytes
		}
	}
	l := &loader{dir: newFolder(p, opts.Edits), opts: &opts}
	return l.result(l.create())
}

// opens notes that a file is opened: a log directory goes offline where there is a directory of that name.
func (l *loader) opens(name string) {
	if l.barred == nil {
		l.barred = l.dir.bars(name)
		if l.barred != nil && !l.dir.dirs[name] && logdir.CanBeMade(filepath.Join(l.dir.dir.Path, name)) {
			l.barred = nil
		}
	}
}

// result makes the answer of how far the loader came.
func (l *loader) result(err error) (*Loaded, error) {
	out := &Loaded{LogStart: l.logStart, LogEnd: l.logEnd, RecoveryPoint: l.recoveryPoint, Cuts: l.cuts,
		BytesRead: l.bytesRead, Unstable: l.unstable, Snapshot: l.snapshot}
	if l.barred != nil {
		err = l.barred
	}
	if err != nil && !errors.As(asFailure(err, ""), &out.Failure) {
		return nil, err
	}
	for _, s := range l.segments {
		out.Segments = append(out.Segments, LoadedSegment{s.base, s.log.size, s.recovered})
	}
	out.Files = l.dir.changes()
	if err := l.measure(out); err != nil {
		return nil, err
	}
	return out, nil
}

// create is UnifiedLog.create.
func (l *loader) create() error {
	err := l.openAll()
	if err == nil {
		err = l.load()
	}
	if err != nil {
		return err
	}
	return l.finish()
}

// openAll opens the segments: LogLoader.load, up to where it recovers the log.
func (l *loader) openAll() error {
	err := l.loadEpochs()
	if err == nil {
		l.producers, err = l.newProducers()
	}
	if err == nil {
		l.producers.Snapshots = slices.Clone(l.producers.Snapshots) // those of now, whatever recovery makes of them
		err = l.completeSwaps()
	}
	if err == nil {
		err = l.retry(l.loadSegments)
	}
	return err
}

// load is the rest of LogLoader.load.
func (l *loader) load() error {
	if l.dir.dir.Suffix == "delete" {
		if len(l.segments) == 0 {
			if err := l.openFirst(0); err != nil {
				return err
			}
		}
	} else {
		if err := l.retry(l.recover); err != nil {
			return err
		}
		active := l.segments[len(l.segments)-1]
		for _, open := range []func() *index{active.offsetIndex, active.timeIndex} {
			if err := open().resize(l.opts.IndexBytes); err != nil {
				return err
			}
		}
	}
	l.epochs.cutEnd(l.logEnd)
	l.logStart = max(l.opts.LogStart, l.segments[0].base)
	if l.opts.Tiered {
		l.logStart = l.opts.LogStart
	}
	l.epochs.cutStart(l.opts.LogStart)
	log := producerLog(l.segments)
	if err := l.list(l.producers); err != nil {
		return err
	}
	if err := l.producers.RemoveStray(log); err != nil {
		return err
	}
	return l.written(l.producers.Rebuild(log, l.logStart, l.logEnd, l.opts.Clean))
}

// written is the error, or that a snapshot could not be written.
func (l *loader) written(err error) error {
	if err == nil && l.unwritten != nil {
		return l.unwritten
	}
	return err
}

// completeSwaps removes what is left of unfinished work, and puts finished segments of the cleaner in their place.
func (l *loader) completeSwaps() error {
	if err := l.removeLeftovers(); err != nil {
		return err
	}
	low, high := int64(math.MaxInt64), int64(math.MinInt64)
	for _, name := range l.dir.names() {
		if !strings.HasSuffix(name, "."+format.KindLog.Info().Ext+swapSuffix) {
			continue
		}
		base, err := offsetOf(name)
		if err != nil {
			return err
		}
		s, err := l.open(base, swapSuffix)
		if err != nil {
			return err
		}
		next, err := s.nextOffset()
		if err != nil {
			return asFailure(err, name)
		}
		low, high = min(low, base), max(high, next)
	}
	for _, name := range l.dir.names() {
		if offset, err := offsetOf(name); err == nil && !strings.HasSuffix(name, swapSuffix) && offset >= low &&
			offset < high {
			l.dir.remove(name)
		}
	}
	for _, name := range l.dir.names() {
		if plain, ok := strings.CutSuffix(name, swapSuffix); ok {
			l.dir.rename(name, plain)
		}
	}
	return nil
}

// removeLeftovers is removeTempFilesAndCollectSwapFiles: .deleted and .cleaned files go, and .swap files that belong to
// an unfinished split.
func (l *loader) removeLeftovers() error {
	firstCleaned := int64(math.MaxInt64)
	var cleaned []string
	for _, name := range l.dir.names() {
		switch {
		case strings.HasSuffix(name, deletedSuffix) && !strings.HasSuffix(name, ".checkpoint"+deletedSuffix):
			l.dir.remove(name)
		case strings.HasSuffix(name, cleanedSuffix):
			offset, err := offsetOf(name)
			if err != nil {
				return err
			}
			firstCleaned = min(firstCleaned, offset)
			cleaned = append(cleaned, name)
		}
	}
	for _, name := range l.dir.names() {
		if strings.HasSuffix(name, swapSuffix) {
			offset, err := offsetOf(name)
			if err != nil {
				return err
			}
			if offset >= firstCleaned {
				l.dir.remove(name)
			}
		}
	}
	for _, name := range cleaned {
		l.dir.remove(name)
	}
	return nil
}

// retry is retryOnOffsetOverflow: a segment whose offsets do not fit its indexes is split, and the step done again.
func (l *loader) retry(step func() error) error {
	for split := map[int64]bool{}; ; {
		err := step()
		var over *overflow
		if !errors.As(err, &over) {
			return err
		}
		if split[over.seg.base] {
			return stops(over.seg.log.name, "%w; a broker splits the segment again and again, and never starts", over.err)
		}
		split[over.seg.base] = true
		if err := l.split(over); err != nil {
			return err
		}
	}
}

// loadSegments opens all segments in the order of their names, and recovers those that lack their index.
func (l *loader) loadSegments() error {
	l.segments = nil
	for _, name := range l.dir.names() {
		switch {
		case strings.HasSuffix(name, ".index") || strings.HasSuffix(name, ".timeindex") || strings.HasSuffix(name,
			".txnindex"):
			base, err := offsetOf(name)
			if err != nil {
				return err
			}
			if !l.dir.exists(format.SegmentFileName(base, format.KindLog)) {
				l.dir.remove(name)
			}
		case strings.HasSuffix(name, ".log"):
			if err := l.loadSegment(name); err != nil {
				return err
			}
		}
	}
	return nil
}

func (l *loader) loadSegment(name string) error {
	base, err := offsetOf(name)
	if err != nil {
		return err
	}
	noTimes := !l.dir.exists(format.SegmentFileName(base, format.KindTimeIndex))
	s, err := l.open(base, "")
	if err != nil {
		return err
	}
	repair, err := l.insane(s, noTimes)
	if err == nil && repair {
		_, err = l.recoverSegment(s)
	}
	if err != nil {
		return err
	}
	l.add(s)
	return nil
}

// add puts a segment in its place; one of the same base offset is replaced.
func (l *loader) add(s *segment) {
	if n := len(l.segments); n == 0 || l.segments[n-1].base < s.base {
		l.segments = append(l.segments, s)
		return
	}
	for i, other := range l.segments {
		switch {
		case other.base == s.base:
			l.segments[i] = s
			return
		case other.base > s.base:
			l.segments = slices.Insert(l.segments, i, s)
			return
		}
	}
}

// drop takes a segment out.
func (l *loader) drop(base int64) {
	for i, s := range l.segments {
		if s.base == base {
			l.segments = append(l.segments[:i], l.segments[i+1:]...)
			return
		}
	}
}

// insane is LogSegment.sanityCheck: true if the segment has to be recovered.
func (l *loader) insane(s *segment, noTimes bool) (bool, error) {
	if !l.dir.exists(s.fileName(format.KindOffsetIndex)) {
		return true, nil
	}
	if noTimes {
		if err := s.timeIndex().resize(0); err != nil {
			return false, err
		}
	}
	name := s.fileName(format.KindTxnIndex)
	f := l.dir.files[name]
	if f == nil {
		return false, nil
	}
	below := false
	err := l.view(f, f.size, func(b []byte) error {
		x := format.NewTxnIndex(b)
		sound, err := x.Check()
		for i := range sound {
			if x.Entry(i).LastOffset < s.base {
				below = true
				return nil
			}
		}
		return err
	})
	return below, asFailure(err, name)
}

// recoverSegment recovers one segment with the producers as they were before it. It returns how many bytes were cut.
func (l *loader) recoverSegment(s *segment) (int64, error) {
	p, err := l.newProducers()
	if err == nil {
		err = l.written(p.Rebuild(producerLog(l.segments), l.opts.LogStart, s.base, false))
	}
	if err != nil {
		return 0, err
	}
	cut, err := s.recoverFrom(p)
	if err == nil {
		p.Snapshot()
	}
	return cut, l.written(err)
}

// recover is recoverLog: after an unclean stop the segments from the recovery point on are recovered, up to the first
// that is cut.
func (l *loader) recover() error {
	if !l.opts.Clean {
		unflushed := slices.Clone(between(l.segments, l.opts.RecoveryPoint, math.MaxInt64))
		for i, s := range unflushed {
			cut, err := l.recoverSegment(s)
			if errors.Is(err, format.ErrIndexOrder) || err != nil && l.unwritten != nil {
				l.unwritten = nil
				l.cuts = append(l.cuts, Cut{File: s.log.name, Base: s.base, At: 0, Why: err})
				cut, err = s.empty()
			}
			if err != nil {
				return l.located(s, err)
			}
			if cut > 0 {
				if _, err := s.nextOffset(); err != nil {
					return l.located(s, err)
				}
				l.removeCut(unflushed[i+1:])
				break
			}
		}
	}
	end, known, err := l.checkEnd()
	if err != nil {
		return err
	}
	if len(l.segments) == 0 {
		if err := l.openFirst(l.opts.LogStart); err != nil {
			return err
		}
	}
	if !known {
		last := l.segments[len(l.segments)-1]
		if end, err = last.nextOffset(); err != nil {
			return l.located(last, err)
		}
	}
	l.logEnd, l.recoveryPoint = end, min(l.opts.RecoveryPoint, end)
	if l.opts.Clean && known {
		l.recoveryPoint = end
	}
	return nil
}

// located puts the segment's name to an error that nothing in Kafka catches.
func (l *loader) located(s *segment, err error) error {
	if errors.As(err, new(*overflow)) {
		return err
	}
	return asFailure(err, s.log.name)
}

// checkEnd is deleteSegmentsIfLogStartGreaterThanLogEnd: the log end offset, false if nothing is left of the log.
func (l *loader) checkEnd() (int64, bool, error) {
	if len(l.segments) == 0 {
		return 0, false, nil
	}
	last := l.segments[len(l.segments)-1]
	end, err := last.nextOffset()
	if err != nil || end >= l.opts.LogStart {
		return end, err == nil, l.located(last, err)
	}
	l.removeSegments(slices.Clone(l.segments))
	l.epochs.clear()
	return 0, false, l.producers.Clear(l.opts.LogStart)
}

// openFirst makes the only segment of an empty log.
func (l *loader) openFirst(base int64) error {
	made := !l.dir.exists(format.SegmentFileName(base, format.KindLog))
	s, err := l.open(base, "")
	if err != nil {
		return err
	}
	if made && l.opts.Preallocate && l.dir.dir.Suffix != "delete" {
		s.log.size, s.end = l.opts.SegmentBytes, &base // a file that is made is empty to its maker (FileRecords.open)
	}
	l.add(s)
	return nil
}

// after are the segments after a base offset.
func after(segments []*segment, base int64) []*segment {
	var all []*segment
	for _, s := range segments {
		if s.base > base {
			all = append(all, s)
		}
	}
	return all
}

// removeSegments renames files of segments; a broker removes them after file.delete.delay.ms.
func (l *loader) removeSegments(segments []*segment) {
	for _, s := range segments {
		l.drop(s.base)
		l.renameSegment(s, "", deletedSuffix)
	}
}

// removeCut removes segments after one that was cut, and their snapshots.
func (l *loader) removeCut(segments []*segment) {
	l.removeSegments(segments)
	for _, s := range segments {
		l.removeSnapshot(s.base)
	}
}

// renameSegment is LogSegment.changeFileSuffixes.
func (l *loader) renameSegment(s *segment, from, to string) {
	for _, kind := range []format.Kind{format.KindLog, format.KindOffsetIndex, format.KindTimeIndex,
		format.KindTxnIndex} {
		name := format.SegmentFileName(s.base, kind)
		l.dir.rename(name+from, name+to)
	}
}

// removeSnapshot renames the snapshot of a segment that is removed, if the log's own manager knows of it.
func (l *loader) removeSnapshot(base int64) {
	if name := l.dir.named[base]; l.producers.Snapshots.Remove(base) && name != "" {
		l.dir.rename(name, name+deletedSuffix)
	}
}

// finish is the rest of UnifiedLog's constructor: the first unstable offset is read, and partition.metadata.
func (l *loader) finish() error {
	if err := l.findUnstable(); err != nil {
		return err
	}
	const name = "partition.metadata"
	f := l.dir.files[name]
	if l.dir.dirs[name] {
		return &Failure{Offline: true, Place: name, Err: errDirectory}
	}
	if f == nil {
		return nil
	}
	raw, err := f.read()
	if err != nil {
		return &unreadable{err}
	}
	if _, err := format.DecodePartitionMetadata(raw); err != nil {
		return &Failure{Offline: format.Throws(err) == format.IOException, Place: name, Err: err}
	}
	return nil
}

// findUnstable is maybeIncrementFirstUnstableOffset: the first offset of the earliest transaction that is open or ended
// above the high watermark, which is the log start still, is looked up; where that fails the log is not loaded.
func (l *loader) findUnstable() error {
	if l.dir.dir.Suffix == "delete" {
		return nil
	}
	first, open := l.producers.FirstOpen()
	ended, any := l.producers.FirstEnded()
	if any && (!open || ended < first) {
		if _, err := l.baseOf(ended); err != nil {
			return err
		}
	}
	if !open {
		return nil
	}
	var err error
	if l.held, err = l.baseOf(first); any && ended < first {
		return nil
	}
	return err
}

// baseOf is the base offset of the batch that a read of an offset begins with, nil if the log has none.
func (l *loader) baseOf(offset int64) (base *int64, err error) {
	offset = max(offset, l.logStart)
	s := floor(l.segments, offset)
	if offset >= l.logEnd || s == nil {
		return nil, nil
	}
	l.unstable = true
	for _, s := range append([]*segment{s}, after(l.segments, s.base)...) {
		pos, found, err := s.translate(offset)
		if err != nil {
			return nil, l.located(s, err)
		}
		if found {
			err = s.viewLog(func(log []byte) error {
				b, err := format.DecodeBatch(log, pos)
				base = &b.BaseOffset
				return err
			})
			return base, err
		}
	}
	return nil, nil
}

// view calls fn with the first n bytes of a file. Errors are those of fn, or that the file could not be read.
func (l *loader) view(f *file, n int64, fn func([]byte) error) error {
	var inner error
	err := f.view(n, func(b []byte) error {
		inner = fn(b)
		return inner
	})
	if err != nil && err != inner { //nolint:errorlint // the same value, not one like it
		return &unreadable{err}
	}
	return err
}

// records is the loader's reader of records, made when it is first needed.
func (l *loader) records() *format.RecordReader {
	if l.reader == nil {
		l.reader = format.NewRecordReader(l.opts.MaxBatchBytes, nil)
	}
	return l.reader
}

func (l *loader) count(bytes int64) {
	l.bytesRead += bytes
	if l.opts.Progress != nil {
		l.opts.Progress(bytes)
	}
}

// prepare and release bring a piece of a log into memory and give it back.
func (l *loader) prepare(f *file, piece []byte) {
	l.count(int64(len(piece)))
	if f.src != nil {
		f.src.Prepare(piece)
	}
}

func (l *loader) release(f *file, piece []byte) {
	if f.src != nil {
		f.src.Release(piece)
	}
}
