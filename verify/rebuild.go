package verify

import (
	"context"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"strings"
	"time"

	"kseg/format"
	"kseg/logdir"
	"kseg/state"
)

// RebuildOptions say what Rebuild writes, and where.
type RebuildOptions struct {
	// Dir is the folder for what is written: one folder in it for each partition, by its name. It is made if need be.
	Dir string
	// Interval is the index.interval.bytes to use; negative means each topic's own, as far as that is known.
	Interval int64
	// Snapshots: also write the producer snapshots that recovery would take.
	Snapshots     bool
	Jobs          int
	MaxBatchBytes int64
	Now           time.Time // by which producers have expired

	// Emit is called with each segment, in order. An error ends the run.
	Emit func(*Rebuilt) error
	// Progress is called with the bytes that were looked at since its last call; it may be nil.
	Progress func(bytes int64)
}

// RebuildOutcome is what recovery makes of a segment.
type RebuildOutcome string

// The outcomes.
const (
	// RebuiltWhole: recovery keeps the whole segment.
	RebuiltWhole RebuildOutcome = "rebuilt"
	// RebuiltCut: recovery cuts the segment; the indexes are for what is left.
	RebuiltCut RebuildOutcome = "cut"
	// RebuiltEmptied: recovery finds an offset that goes back where an index entry is due, and empties the segment.
	RebuiltEmptied RebuildOutcome = "emptied"
	// NotRebuilt: a broker would not get through recovery, or files could not be read or written. Nothing is left of the
	// segment's files that could not be written.
	NotRebuilt RebuildOutcome = "failed"
)

// Rebuilt is what became of one segment.
type Rebuilt struct {
	Partition string
	Dir       string // of the partition, as the user would name it
	File      string // the log, relative to the operand
	Base      int64
	Outcome   RebuildOutcome
	// Severity says how bad it is that bytes are cut; 0 if none are.
	Severity Severity
	Reason   string // why the segment is not whole, as a clause; "" if it is
	// Interval is the index.interval.bytes that was used.
	Interval state.Setting
	// Size is that of the log in bytes; Kept the bytes that recovery keeps, -1 if it fails.
	Size, Kept, Batches int64
	// The numbers of entries in the three indexes.
	IndexEntries, TimeIndexEntries, TxnIndexEntries int
	Files                                           []RebuiltFile
}

// RebuiltFile is one file of those that a segment gives.
type RebuiltFile struct {
	Path  string
	Bytes int64
	// Written is false if a file of the same content was there before.
	Written bool
}

// RebuildSummary counts what a rebuild did.
type RebuildSummary struct {
	Partitions, Segments, Batches, Bytes int64
	Cut                                  int64 // of the bytes: those that recovery cuts off
	Files, FileBytes                     int64
	Unchanged                            int64 // of the files: those that were there before
	Damage, Warnings, Notes              int64 // segments that lose bytes, or do not load, by the severity of that
	// NotDone are sentences about what could not be read or written.
	NotDone []string
}

// Count is how many segments lose bytes with that severity or worse.
func (s *RebuildSummary) Count(least Severity) int64 {
	return (&Summary{Damage: s.Damage, Warnings: s.Warnings, Notes: s.Notes}).Count(least)
}

// Verdict is the answer: incomplete if something could not be done or there was nothing to do, damaged if recovery would
// cut more than the torn or empty end of a partition, else clean.
func (s *RebuildSummary) Verdict() Verdict {
	switch {
	case len(s.NotDone) > 0 || s.Segments == 0:
		return Incomplete
	case s.Damage > 0:
		return Damaged
	}
	return Clean
}

// rebuilder carries what a rebuild needs everywhere.
type rebuilder struct {
	ctx     context.Context
	opts    *RebuildOptions
	cluster *state.Cluster
	reader  *format.RecordReader
	summary RebuildSummary
	inputs  []inputDir
}

// Rebuild writes the indexes of all segments in the set as a broker's recovery writes them (LogSegment.recover), each
// segment by itself: also those that a broker would delete because it cuts one before them. The error is for a run that
// was cut short: by the context, by Emit, by a folder that cannot be written to, or, wrapping logdir.ErrUsage, by one that
// must not be.
func Rebuild(ctx context.Context, set *logdir.Set, opts RebuildOptions) (RebuildSummary, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	r := &rebuilder{ctx: ctx, opts: &opts, reader: format.NewRecordReader(opts.MaxBatchBytes, nil)}
	for _, problem := range set.Problems {
		r.notDone(problem.Error())
	}
	partitions, err := r.partitions(set)
	if err != nil {
		return r.summary, err
	}
	if opts.Interval < 0 {
		r.cluster = state.OpenCluster(set, nil)
		for _, problem := range r.cluster.Problems {
			r.notDone(problem.Error())
		}
	}
	src, stop := r.source(partitions)
	err = r.run(partitions, src)
	cancel()
	stop()
	return r.summary, err
}

func (r *rebuilder) notDone(text string) { r.summary.NotDone = append(r.summary.NotDone, text) }

// source starts the workers, like driver.source.
func (r *rebuilder) source(partitions []*rebuildPartition) (source, func()) {
	if r.opts.Jobs <= 1 {
		return &serialSource{worker: recoveryLook{}, bytes: usualRun}, func() {}
	}
	var segments []*segment
	for _, p := range partitions {
		segments = append(segments, p.segments...)
	}
	s := startParallel(r.ctx, segments, usualRun, make([]recoveryLook, r.opts.Jobs))
	return s, s.stop
}

// recoveryLook looks at batches as recovery does: at their length and checksum.
type recoveryLook struct{}

func (recoveryLook) look(r *run, w *window, whole int64) {
	r.batches = r.batches[:0]
	pos := r.from
	for pos < whole {
		b := w.decode(r, pos)
		if b == nil {
			break
		}
		if !b.Valid() {
			r.drop()
			break
		}
		pos = b.End()
	}
	r.stop = pos
	w.log.Release(w.mapped[r.from:r.stop])
}

// rebuildPartition is the rebuild of one partition.
type rebuildPartition struct {
	*rebuilder
	dir      *logdir.Partition
	segments []*segment
	interval state.Setting
	out      *rebuildFolder
	history  producerHistory
}

// partitions lists what there is to rebuild. The error is that of a folder which must not be written to.
func (r *rebuilder) partitions(set *logdir.Set) ([]*rebuildPartition, error) {
	var all []*rebuildPartition
	byPath := map[string]*rebuildPartition{}
	byName := map[string]*rebuildPartition{}
	for _, o := range set.Operands {
		for _, dir := range partitionsOf(o) {
			path := absolute(dir.Path)
			p := byPath[path]
			if p == nil {
				p = &rebuildPartition{rebuilder: r, dir: dir}
				if other := byName[dir.Name]; other != nil {
					return nil, fmt.Errorf("%w: %s and %s would both be rebuilt into %s; rebuild them into two folders, one after the other",
						logdir.ErrUsage, other.dir.Display, dir.Display, filepath.Join(r.opts.Dir, dir.Name))
				}
				byPath[path], byName[dir.Name] = p, p
				all = append(all, p)
			}
			p.add(dir.Segments)
		}
		if err := r.addInputs(o); err != nil {
			return nil, err
		}
	}
	return all, r.checkFolder(r.opts.Dir)
}

// partitionsOf are the partitions of an operand; for a file that with its segment alone.
func partitionsOf(o logdir.Operand) []*logdir.Partition {
	switch {
	case o.LogDir != nil:
		return o.LogDir.Partitions
	case o.Partition != nil:
		return []*logdir.Partition{o.Partition}
	case o.File == nil || o.Err != nil || !o.File.Kind().IsSegmentFile():
		return nil
	}
	dir := o.File.Around()
	if dir == nil {
		dir = fileAlone(o.File)
	}
	if dir.Name == "" {
		dir.Name = filepath.Base(absolute(dir.Path))
	}
	return []*logdir.Partition{dir}
}

// add takes the segments that are not there yet: several files of one segment may be operands.
func (p *rebuildPartition) add(segments []*logdir.Segment) {
	for _, s := range segments {
		known := false
		for _, seg := range p.segments {
			known = known || seg.log.Path == s.Log.Path
		}
		if !known {
			p.segments = append(p.segments, &segment{dir: s, log: s.Log, base: s.Base, last: s.Next == nil})
		}
	}
}

func (r *rebuilder) run(partitions []*rebuildPartition, src source) error {
	for _, p := range partitions {
		if len(p.segments) == 0 {
			continue
		}
		if err := p.run(src); err != nil {
			return err
		}
		r.summary.Partitions++
	}
	return nil
}

func (p *rebuildPartition) run(src source) error {
	p.interval = p.chooseInterval()
	p.history = newProducerHistory(p.rebuilder, p.dir)
	var err error
	if p.out, err = p.folder(p.dir.Name); err != nil {
		return err
	}
	for _, seg := range p.segments {
		if err = p.segment(seg, src); err == nil {
			err = p.finish(maxQueue, maxQueueBytes)
		}
		if err != nil {
			break
		}
	}
	return errors.Join(err, p.finish(0, 0), p.out.close())
}

// defaultInterval is Kafka's default of index.interval.bytes.
const defaultInterval = "4096"

// chooseInterval is the one that was asked for, else the topic's own. That of the metadata log is fixed (KafkaRaftLog).
func (p *rebuildPartition) chooseInterval() state.Setting {
	switch {
	case p.opts.Interval >= 0:
		return state.Setting{Value: itoa(p.opts.Interval), Source: state.FromFlag}
	case p.dir.IsClusterMetadata() || p.dir.Topic == "":
		return state.Setting{Value: defaultInterval, Source: state.FromDefault}
	}
	return p.cluster.Settings(p.dir.Parent).Topic(p.dir.Topic, "index.interval.bytes")
}

// segment rebuilds one segment. Its error ends the run; what is wrong with the segment alone is in what Emit gets.
func (p *rebuildPartition) segment(seg *segment, src source) error {
	res := &Rebuilt{Partition: p.dir.Name, Dir: p.dir.Display, File: seg.log.Rel, Base: seg.base, Interval: p.interval,
		Size: seg.log.Size, Outcome: RebuiltWhole}
	x := p.history.before(seg.dir)
	x.index = format.NewIndexBuilder(seg.base, p.interval.Int())
	err := seg.log.View(func(data []byte) error {
		res.Size = int64(len(data))
		if err := p.walk(seg, data, src, x); err != nil {
			return err
		}
		p.judge(seg, data, x, res)
		return nil
	})
	switch {
	case p.ctx.Err() != nil:
		return p.ctx.Err()
	case err != nil:
		res.Outcome, res.Reason = NotRebuilt, err.Error()
	}
	res.Kept, res.Batches = x.kept, x.batches
	if res.Outcome == NotRebuilt {
		res.Kept = -1
	}
	p.write(seg, x, res)
	p.history.after(seg.dir, x, res.Outcome)
	return nil
}

// walk feeds the batches of a segment to its recovery, up to where that ends.
func (p *rebuildPartition) walk(seg *segment, data []byte, src source, x *recovery) error {
	for done, reading := false, true; !done; {
		r := src.next(seg, data)
		done = r.last
		if r.err == nil && r.to > int64(len(data)) {
			r.err = shrunk(seg.log, r.to, len(data))
		}
		if r.err != nil {
			return r.err
		}
		for i := 0; reading && i < len(r.batches); i++ {
			b := &r.batches[i]
			b.Raw = data[b.Pos:b.End():b.End()]
			reading = x.add(b)
		}
		reading = reading && r.stop == r.to
		if p.opts.Progress != nil {
			p.opts.Progress(r.to - r.from)
		}
	}
	return nil
}

// judge says what recovery makes of the segment, and why.
func (p *rebuildPartition) judge(seg *segment, data []byte, x *recovery, res *Rebuilt) {
	if x.err == nil || x.outcome == RebuiltCut {
		x.fail(x.index.Finish())
	}
	switch {
	case x.outcome == NotRebuilt:
		res.Outcome, res.Severity, res.Reason = NotRebuilt, Damage, x.reason()
	case x.outcome == RebuiltEmptied:
		res.Outcome, res.Severity, res.Reason = RebuiltEmptied, Damage, x.reason()
		x.empty(seg.base)
	case x.kept < res.Size:
		res.Outcome = RebuiltCut
		res.Severity, res.Reason = p.cut(seg, data, x)
	}
}

// cut says why recovery stops before the end, and how bad that is: a partition of which the broker was killed may end in
// the beginning of a batch, or in zeros.
func (p *rebuildPartition) cut(seg *segment, data []byte, x *recovery) (Severity, string) {
	if x.err != nil {
		return Damage, x.reason()
	}
	scanner := format.NewScanner(data, x.kept, seg.base)
	scanner.Next()
	hole := scanner.Hole()
	if hole == nil {
		return Damage, fmt.Sprintf("the checksum of the batch at byte %d does not match", x.kept)
	}
	usual := seg.last && howStopped(p.dir) != cleanShutdown
	switch {
	case hole.Kind == format.ZeroTail && usual:
		return Note, "the rest is zeros"
	case hole.Kind == format.TornTail && usual:
		return Warning, "the last batch is not all there"
	}
	return Damage, fmt.Sprintf("there is no batch at byte %d (%s)", x.kept, reason(hole.Err))
}

// emit counts a segment and hands it on.
func (p *rebuildPartition) emit(res *Rebuilt) error {
	s := &p.summary
	s.Segments++
	s.Batches += res.Batches
	s.Bytes += res.Size
	if res.Kept >= 0 {
		s.Cut += res.Size - res.Kept
	}
	switch res.Severity {
	case Damage:
		s.Damage++
	case Warning:
		s.Warnings++
	case Note:
		s.Notes++
	}
	for _, f := range res.Files {
		s.Files++
		s.FileBytes += f.Bytes
		if !f.Written {
			s.Unchanged++
		}
	}
	if res.Outcome == NotRebuilt {
		p.notDone(logName(res) + ": not rebuilt: " + res.Reason)
	}
	return p.opts.Emit(res)
}

// recovery is LogSegment.recover over the batches of one segment.
type recovery struct {
	index     *format.IndexBuilder
	txns      format.TxnIndexBuilder
	producers *format.ProducerState
	reader    *format.RecordReader

	snapOffset int64  // of the last snapshot: that which producers were loaded from, or early; the log's start if there is none
	early      []byte // the snapshot taken before the segment, nil if there is one on disk
	mapEnd     int64  // the offset behind the last batch that producers know of
	kept       int64  // bytes
	batches    int64
	outcome    RebuildOutcome // if err is not nil
	err        error          // why it ended before a batch that is not sound
}

// add takes the next batch, whose checksum holds. It is false where recovery ends.
func (x *recovery) add(b *format.Batch) bool {
	if !x.fail(x.index.Add(b.Ref())) {
		return false
	}
	x.kept, x.batches = b.End(), x.batches+1
	if b.Legacy() {
		return true
	}
	if b.ProducerID >= 0 && !x.addProducer(b) {
		return false
	}
	x.mapEnd = b.NextOffset()
	return true
}

// addProducer tells the producers of the batch. A control record that makes no sense ends the segment behind it.
func (x *recovery) addProducer(b *format.Batch) bool {
	event, err := x.producers.Append(b, x.reader)
	if err == nil && event.Ended {
		return x.fail(x.txns.Add(event.Txn))
	}
	if err != nil && !fatal(err, b) {
		x.err, x.outcome = err, RebuiltCut
		return false
	}
	return x.fail(err)
}

// fatal reports whether a broker gives up loading a partition because of the error.
func fatal(err error, b *format.Batch) bool {
	for _, known := range []error{format.ErrTxnState, format.ErrMarker, format.ErrTooLarge, format.ErrUnsupported} {
		if errors.Is(err, known) {
			return true
		}
	}
	var e *format.Error
	return errors.As(err, &e) && strings.HasPrefix(e.What, b.Codec().String()+" ") // it cannot be decompressed
}

// fail notes an error that ends recovery; it is true if there is none.
func (x *recovery) fail(err error) bool {
	if err == nil {
		return true
	}
	x.err, x.outcome = err, NotRebuilt
	if errors.Is(err, format.ErrIndexOrder) {
		x.outcome = RebuiltEmptied
	}
	return false
}

// reason is the error as a clause that says what a broker does.
func (x *recovery) reason() string {
	text := x.err.Error()
	switch {
	case errors.Is(x.err, format.ErrIndexOrder):
		return text + "; a broker empties the segment"
	case errors.Is(x.err, format.ErrOffsetOverflow):
		return text + "; a broker splits the segment, for which no index can be made beforehand"
	case x.outcome == NotRebuilt && !errors.Is(x.err, format.ErrTooLarge):
		return text + "; a broker does not load the partition"
	}
	return text
}

// empty is what is left after LogSegment.truncateTo of the base offset.
func (x *recovery) empty(base int64) {
	x.index, x.txns = format.NewIndexBuilder(base, math.MaxInt64), format.TxnIndexBuilder{}
	x.kept, x.batches = 0, 0
}
