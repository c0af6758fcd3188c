// Package rebuild makes what a broker's recovery makes of a log: its indexes, the index of aborted transactions, and
// the snapshots of producers.
//
// Recovery does so for the batches of one segment (LogSegment.recover). Run does it for segments on disk, and writes
// the files into another folder.
package rebuild

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"kseg/format"
	"kseg/logdir"
	"kseg/state"
	"kseg/walk"
)

// Options say what Run writes, and where.
type Options struct {
	// Dir is the folder for what is written: one folder in it for each partition, by its name. It is made if need be.
	Dir string
	// Interval is the index.interval.bytes to use; nil means each topic's own, as far as that is known.
	Interval *int64
	// Snapshots: also write the producer snapshots that recovery would take.
	Snapshots     bool
	Jobs          int
	MaxBatchBytes int64
	Now           time.Time // by which producers have expired

	// Emit is called with each segment, in order. An error ends the run.
	Emit func(*Segment) error
	// Progress is called with the bytes that were looked at since its last call; it may be nil.
	Progress func(bytes int64)
}

// Outcome is what recovery makes of a segment.
type Outcome string

// The outcomes.
const (
	// Whole: recovery keeps the whole segment.
	Whole Outcome = "rebuilt"
	// Cut: recovery cuts the segment; the indexes are for what is left.
	Cut Outcome = "cut"
	// Emptied: recovery finds an offset that goes back where an index entry is due, and empties the segment.
	Emptied Outcome = "emptied"
	// Failed: a broker would not get through recovery, or files could not be read or written. Nothing is left of the
	// segment's files that could not be written.
	Failed Outcome = "failed"
)

// Loss says how bad it is that a segment is not whole.
type Loss int8

// The losses, the mildest first.
const (
	NoLoss    Loss = iota
	LostZeros      // zeros at the end of a log of which the broker was killed
	LostTorn       // a batch that is not all there, at the end of such a log
	LostData       // anything else
)

// Segment is what became of one segment.
type Segment struct {
	Partition string
	Dir       string // of the partition, as the user would name it
	File      string // the log, relative to the operand
	Base      int64
	Outcome   Outcome
	Loss      Loss
	Reason    string // why the segment is not whole, as a clause; "" if it is
	gone      bool   // it was deleted after it had been found
	// Interval is the index.interval.bytes that was used.
	Interval state.Setting
	// Size is that of the log in bytes; Kept the bytes that recovery keeps, of no meaning if it fails.
	Size, Kept, Batches int64
	// The numbers of entries in the three indexes.
	IndexEntries, TimeIndexEntries, TxnIndexEntries int
	Files                                           []File
}

// Name is the log as the user would name it.
func (s *Segment) Name() string { return filepath.Join(s.Dir, filepath.Base(s.File)) }

// File is one file of those that a segment gives.
type File struct {
	Path  string
	Bytes int64
	// Written is false if a file of the same content was there before.
	Written bool
}

// Summary counts what a run did.
type Summary struct {
	Partitions, Segments, Batches, Bytes int64
	Cut                                  int64 // of the bytes: those that recovery cuts off
	Files, FileBytes                     int64
	Unchanged                            int64               // of the files: those that were there before
	Losses                               [LostData + 1]int64 // segments, by what they lose
	// NotDone are sentences about what could not be read or written.
	NotDone []string
}

// rebuilder carries what a run needs everywhere.
type rebuilder struct {
	ctx     context.Context
	opts    *Options
	cluster *state.Cluster
	dirs    state.Dirs
	reader  *format.RecordReader
	walker  *walk.Walker[sound]
	summary Summary
	inputs  Inputs
}

// Run writes the indexes of all segments in the set as a broker's recovery writes them (LogSegment.recover), each
// segment by itself: also those that a broker would delete because it cuts one before them. The error is for a run that
// was cut short: by the context, by Emit, by a folder that cannot be written to, or, wrapping logdir.ErrUsage, by one
// that must not be.
func Run(ctx context.Context, set *logdir.Set, opts Options) (Summary, error) {
	r := &rebuilder{ctx: ctx, opts: &opts, reader: format.NewRecordReader(opts.MaxBatchBytes, nil)}
	for _, problem := range set.Problems {
		r.notDone(problem.Error())
	}
	partitions, err := r.partitions(set)
	if err != nil {
		return r.summary, err
	}
	if opts.Interval == nil {
		r.cluster = state.OpenCluster(set, nil)
		for _, problem := range r.cluster.Problems {
			r.notDone(problem.Error())
		}
	}
	return r.summary, r.run(partitions)
}

func (r *rebuilder) notDone(text string) { r.summary.NotDone = append(r.summary.NotDone, text) }

// partition is the rebuild of one partition.
type partition struct {
	*rebuilder
	dir      *logdir.Partition
	segments []*logdir.Segment
	logs     []*walk.Log     // theirs
	known    map[string]bool // the paths of their logs
	interval state.Setting
	out      *folder
	history  producerHistory
}

// partitions lists what there is to rebuild. The error is that of a folder which must not be written to.
func (r *rebuilder) partitions(set *logdir.Set) ([]*partition, error) {
	var all []*partition
	byPath := map[string]*partition{}
	byName := map[string]*partition{}
	for _, o := range set.Operands {
		for _, dir := range partitionsOf(o) {
			path := absolute(dir.Path)
			p := byPath[path]
			if p == nil {
				p = &partition{rebuilder: r, dir: dir, known: map[string]bool{}}
				if other := byName[dir.Name]; other != nil {
					return nil, fmt.Errorf("%w: %s and %s would both be rebuilt into %s; rebuild them into two folders, one after "+
						"the other",
						logdir.ErrUsage, other.dir.Display, dir.Display, filepath.Join(r.opts.Dir, dir.Name))
				}
				byPath[path], byName[dir.Name] = p, p
				all = append(all, p)
			}
			p.add(dir.Segments)
		}
	}
	var err error
	if r.inputs, err = InputsOf(set); err != nil {
		return nil, err
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
		dir = logdir.PartitionOf(o.File)
	}
	if dir.Name == "" {
		dir.Name = filepath.Base(absolute(dir.Path))
	}
	return []*logdir.Partition{dir}
}

// add takes the segments that are not there yet: several files of one segment may be operands.
func (p *partition) add(segments []*logdir.Segment) {
	for _, s := range segments {
		if !p.known[s.Log.Path] {
			p.known[s.Log.Path] = true
			p.segments = append(p.segments, s)
			p.logs = append(p.logs, &walk.Log{File: s.Log, Base: s.Base, Stop: func(_ *format.Batch, h *format.Hole) bool {
				return h != nil && h.Kind != format.Unreadable // recovery cuts the log here
			}})
		}
	}
}

func (r *rebuilder) run(partitions []*partition) error {
	var logs []*walk.Log
	for _, p := range partitions {
		logs = append(logs, p.logs...)
	}
	// A broker believes lengths, and looks for nothing after those that lead nowhere.
	r.walker = walk.Start(r.ctx, slices.Values(logs), walk.Options{Jobs: r.opts.Jobs, Trust: format.TrustBlindly}, newLook)
	defer r.walker.Close()
	for _, p := range partitions {
		if len(p.segments) == 0 {
			continue
		}
		if err := p.run(); err != nil {
			return err
		}
		r.summary.Partitions++
	}
	return nil
}

func (p *partition) run() error {
	p.interval = IndexInterval(p.opts.Interval, p.cluster, p.dir)
	p.history = newProducerHistory(p.rebuilder, p.dir)
	var err error
	if p.out, err = p.newFolder(p.dir.Name); err != nil {
		return err
	}
	for i, seg := range p.segments {
		if err = p.segment(seg, p.logs[i]); err == nil {
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

// IndexInterval is the index.interval.bytes for a partition: the one that was asked for, if not nil, else the topic's
// own. That of the metadata log is fixed (KafkaRaftLog). cluster is not asked where asked is given.
func IndexInterval(asked *int64, cluster *state.Cluster, dir *logdir.Partition) state.Setting {
	switch {
	case asked != nil:
		return state.Setting{Value: strconv.FormatInt(*asked, 10), Source: state.FromFlag}
	case dir.IsClusterMetadata() || dir.Topic == "":
		return state.Setting{Value: defaultInterval, Source: state.FromDefault}
	}
	return cluster.Settings(dir.Parent).Topic(dir.Topic, "index.interval.bytes")
}

// segment rebuilds one segment. Its error ends the run; what is wrong with the segment alone is in what Emit gets.
func (p *partition) segment(seg *logdir.Segment, log *walk.Log) error {
	res := &Segment{Partition: p.dir.Name, Dir: p.dir.Display, File: seg.Log.Rel, Base: seg.Base, Interval: p.interval,
		Size: seg.Log.Size, Outcome: Whole}
	x := p.history.before(seg, p.interval.Int())
	reading := true
	err := p.walker.Log(log, func(r *walk.Run[sound]) error {
		if err := unread(r); err != nil {
			return err
		}
		for i := 0; reading && i < int(r.Result); i++ {
			reading = x.Add(&r.Batches[i])
		}
		reading = reading && int(r.Result) == len(r.Batches)
		if r.Last {
			res.Size = int64(len(r.Data))
			p.judge(seg, r.Data, x, res)
			r.To = res.Size
		}
		if p.opts.Progress != nil {
			p.opts.Progress(r.To - r.From)
		}
		return nil
	})
	switch {
	case p.ctx.Err() != nil:
		return p.ctx.Err()
	case err != nil:
		res.Outcome, res.Reason = Failed, err.Error()
		_, again := seg.Log.Again()
		res.gone = seg.Log.Listed() && errors.Is(again, logdir.ErrVanished)
	}
	res.Kept, res.Batches = x.Kept, x.Batches
	p.write(seg, x, res)
	p.history.after(seg, x, res.Outcome)
	return nil
}

// sound is how many batches of a run have the right checksum before the first that has not.
type sound int

func newLook(format.Gate) walk.Look[sound] {
	return func(r *walk.Run[sound]) error {
		for r.Result = 0; int(r.Result) < len(r.Batches) && r.Batches[r.Result].Valid(); r.Result++ {
		}
		return nil
	}
}

// unread is why a run is not all there.
func unread(r *walk.Run[sound]) error {
	if r.Err == nil && len(r.Holes) > 0 {
		return r.Holes[0].Err
	}
	return r.Err
}

// judge says what recovery makes of the segment, and why.
func (p *partition) judge(seg *logdir.Segment, data []byte, x *Recovery, res *Segment) {
	if x.err == nil || x.outcome == Cut {
		x.fail(x.Index.Finish())
	}
	switch {
	case x.outcome == Failed:
		res.Outcome, res.Loss, res.Reason = Failed, LostData, x.reason()
	case x.outcome == Emptied:
		res.Outcome, res.Loss, res.Reason = Emptied, LostData, x.reason()
		x.empty(seg.Base)
	case x.Kept < res.Size:
		res.Outcome = Cut
		res.Loss, res.Reason = p.cut(seg, data, x)
	}
}

// cut says why recovery stops before the end, and how bad that is: a partition of which the broker was killed may end
// in the beginning of a batch, or in zeros.
func (p *partition) cut(seg *logdir.Segment, data []byte, x *Recovery) (Loss, string) {
	if x.err != nil {
		return LostData, x.reason()
	}
	scanner := format.NewScanner(data, x.Kept, seg.Base)
	scanner.Next()
	hole := scanner.Hole()
	if hole == nil {
		return LostData, fmt.Sprintf("the checksum of the batch at byte %d does not match", x.Kept)
	}
	usual := seg.Next == nil && !stoppedCleanly(p.dir)
	switch {
	case hole.Kind == format.ZeroTail && usual:
		return LostZeros, "the rest is zeros"
	case hole.Kind == format.TornTail && usual:
		return LostTorn, "the last batch is not all there"
	}
	return LostData, fmt.Sprintf("there is no batch at byte %d (%s)", x.Kept, format.ReasonOf(hole.Err))
}

// stoppedCleanly reports whether the broker left its marker, which says nothing about the metadata log.
func stoppedCleanly(dir *logdir.Partition) bool {
	return dir.Parent != nil && !dir.IsClusterMetadata() && dir.Parent.File(format.KindCleanShutdown) != nil
}

// emit counts a segment and hands it on.
func (p *partition) emit(res *Segment) error {
	s := &p.summary
	s.Segments++
	s.Batches += res.Batches
	s.Bytes += res.Size
	if res.Outcome != Failed {
		s.Cut += res.Size - res.Kept
	}
	s.Losses[res.Loss]++
	for _, f := range res.Files {
		s.Files++
		s.FileBytes += f.Bytes
		if !f.Written {
			s.Unchanged++
		}
	}
	if res.Outcome == Failed && !res.gone {
		p.notDone(res.Name() + ": not rebuilt: " + res.Reason)
	}
	return p.opts.Emit(res)
}
