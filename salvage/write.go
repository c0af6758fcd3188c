package salvage

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"kseg/format"
	"kseg/logdir"
	"kseg/rebuild"
	"kseg/state"
)

// maxSegmentBytes is the size above which a segment is not begun anew for what was put together: Kafka's default of
// segment.bytes.
const maxSegmentBytes = 1 << 30

// copyBytes is how much is copied at once.
const copyBytes = 1 << 20

// writer writes one partition into a folder.
type writer struct {
	run       *run
	dir       string
	res       *Salvaged
	reader    *format.RecordReader
	producers *state.ProducerManager
	snapshots state.ProducerSnapshots // those of the sources
	interval  int64
	dry       bool

	base    int64 // of the present segment
	file    *os.File
	from    *source // where it comes from
	pos     int64
	started bool
	end     int64 // after the last batch
	index   *rebuild.Recovery
	epochs  epochRuns
	buf     []byte
	syncs   syncs
}

// syncs brings files to disk while others are written, and while what was written is read again.
type syncs struct {
	running []chan error
	failed  error
}

// mostSyncs is how many files may be on their way to disk.
const mostSyncs = 16

// add closes a file when it is on disk.
func (s *syncs) add(f *os.File) {
	done := make(chan error, 1)
	go func() { done <- errors.Join(f.Sync(), f.Close()) }()
	if s.running = append(s.running, done); len(s.running) > mostSyncs {
		s.first()
	}
}

func (s *syncs) first() {
	s.failed = errors.Join(s.failed, <-s.running[0])
	s.running = s.running[1:]
}

// wait waits for all files, and says which is not on disk.
func (s *syncs) wait() error {
	for len(s.running) > 0 {
		s.first()
	}
	return s.failed
}

// write writes a plan under a temporary name, reads it again, and gives it its name. In a dry run it only counts.
func (r *run) write(g *group, scans []*scan, p *plan, res *Salvaged) (err error) {
	w := &writer{run: r, res: res, reader: format.NewRecordReader(r.opts.MaxBatchBytes, nil), dry: r.opts.DryRun,
		interval: rebuild.IndexInterval(r.opts.Interval, r.cluster, g.dir()).Int()}
	final := filepath.Join(r.opts.Dir, g.name)
	w.dir = final + "." + strconv.Itoa(os.Getpid()) + ".tmp"
	if !w.dry {
		if err := os.Mkdir(w.dir, 0o777); err != nil {
			return fmt.Errorf("%s: cannot be made: %w", w.dir, bare(err))
		}
		defer func() {
			if err != nil {
				_ = w.syncs.wait() // it does not matter any more
				err = errors.Join(err, os.RemoveAll(w.dir))
			}
		}()
	}
	w.loadSnapshots(g)
	for i := range p.extents {
		if err := w.extent(&p.extents[i]); err != nil {
			return err
		}
	}
	if err := w.emptyEnd(scans); err != nil {
		return err
	}
	if err := w.finishSegment(); err != nil {
		return err
	}
	res.LogEnd, res.lastBase = w.end, w.base
	if w.dry {
		return nil
	}
	if err := errors.Join(w.lastSnapshot(), w.partitionFiles(g)); err != nil {
		return err
	}
	if err := w.verify(g); err != nil {
		return err
	}
	if err := w.syncs.wait(); err != nil {
		return fmt.Errorf("%s: cannot be brought to disk: %w", w.dir, err)
	}
	if err := errors.Join(syncDir(w.dir), os.Rename(w.dir, final), syncDir(r.opts.Dir)); err != nil {
		return fmt.Errorf("%s: %w", final, bare(err))
	}
	res.Path = final
	return nil
}

// dir is the first copy's directory, for settings; a partition of no name if only files were given.
func (g *group) dir() *logdir.Partition {
	for _, c := range g.copies {
		if c.dir != nil {
			return c.dir
		}
	}
	return &logdir.Partition{}
}

// loadSnapshots finds the producer snapshots of all copies, those of the first copy after those of the others.
func (w *writer) loadSnapshots(g *group) {
	for _, c := range slices.Backward(g.copies) {
		if c.dir != nil {
			w.snapshots = append(w.snapshots, state.ProducerSnapshotsOf(c.dir.All())...)
		}
	}
	slices.SortStableFunc(w.snapshots, func(a, b state.ProducerSnapshot) int { return cmp.Compare(a.Offset, b.Offset) })
}

// snapshotAt loads the snapshot of an offset, the last of those that can be read. It is nil if there is none.
func (w *writer) snapshotAt(offset int64) (*format.ProducerState, *state.ProducerSnapshot) {
	there := w.snapshots.UpTo(offset)
	return there.Begin(offset-1, math.MinInt64, func(state.ProducerSnapshot, error, bool) bool { return true })
}

// extent copies a piece.
func (w *writer) extent(p *piece) error {
	return p.src.log.View(func(data []byte) error {
		if p.way != asIs {
			raw := bytes.Clone(data[p.from:p.to])
			if p.way == fixed {
				raw = patched(raw, p.patch)
			} else {
				var b format.Batch
				if err := b.Decode(raw, 0); err != nil {
					return err
				}
				raw = remade(w.reader, &b)
			}
			return w.batches(p, raw)
		}
		for pos := p.from; pos < p.to; {
			whole, err := w.window(p.src.log, pos, p.to)
			if err == nil {
				err = w.batches(p, whole)
			}
			if err == nil {
				err = w.run.ctx.Err()
			}
			if err != nil {
				return err
			}
			pos += int64(len(whole))
		}
		return nil
	})
}

// window reads the whole batches from pos on that make about copyBytes, or one that is larger.
func (w *writer) window(log *logdir.File, pos, to int64) ([]byte, error) {
	for size := min(copyBytes, to-pos); ; {
		if int64(len(w.buf)) < size {
			w.buf = make([]byte, size)
		}
		buf := w.buf[:size]
		if err := log.Read(buf, pos); err != nil {
			return nil, err
		}
		end, need := int64(0), int64(0)
		for end+format.LogOverhead <= size {
			n, err := format.EntrySizeOf(buf[end:], pos+end, to-pos-end)
			if err != nil {
				return nil, err
			}
			if need = n; end+n > size {
				break
			}
			end += n
		}
		if end > 0 {
			return buf[:end], nil
		}
		if need <= size {
			return nil, fmt.Errorf("%s: %w: byte %d", log.Display, logdir.ErrVanished, pos)
		}
		size = need
	}
}

// batches writes whole batches, which lie in memory of our own.
func (w *writer) batches(p *piece, raw []byte) error {
	from := int64(0)
	var b format.Batch
	for pos := int64(0); pos < int64(len(raw)); pos = b.End() {
		if err := b.Decode(raw, pos); err != nil {
			return err
		}
		first := b.BaseOffset
		if b.Legacy() {
			first = max(w.end, p.first)
		}
		if base, ok := w.newSegment(p, first, &b); ok {
			if err := w.append(raw[from:pos]); err != nil {
				return err
			}
			from = pos
			if err := w.begin(base, p.src); err != nil {
				return err
			}
		}
		if err := w.note(&b, w.pos+pos-from); err != nil {
			return err
		}
	}
	return w.append(raw[from:])
}

// newSegment reports whether a batch begins a segment, and of which name.
func (w *writer) newSegment(p *piece, first int64, b *format.Batch) (int64, bool) {
	base := p.src.base
	switch {
	case !w.started:
		return max(0, min(base, first)), true
	case base > w.base && p.src != w.from && w.end <= base && base <= first:
		return base, true
	case base > w.base && p.src != w.from:
		return first, true
	case b.LastOffset-w.base > math.MaxInt32, w.pos+b.Size() > math.MaxInt32, w.pos >= maxSegmentBytes && p.src != w.from:
		return first, true
	}
	return 0, false
}

// note tells the index and the epochs of a batch at a position.
func (w *writer) note(b *format.Batch, pos int64) error {
	at := b.Pos
	b.Pos = pos
	ok := w.index.Add(b)
	b.Pos = at
	if !ok {
		return fmt.Errorf("the batch of offsets %d–%d: a broker would not load it: %w", b.BaseOffset, b.LastOffset,
			w.index.Finish())
	}
	w.epochs.add(b)
	w.res.Batches++
	w.res.Records += max(0, int64(b.Count))
	w.end = b.NextOffset()
	return nil
}

func (w *writer) append(raw []byte) error {
	w.pos += int64(len(raw))
	w.res.Bytes += int64(len(raw))
	if w.dry || len(raw) == 0 {
		return nil
	}
	if _, err := w.file.Write(raw); err != nil {
		return fmt.Errorf("%s: cannot be written: %w", w.file.Name(), bare(err))
	}
	return nil
}

// begin ends the present segment and begins another.
func (w *writer) begin(base int64, src *source) error {
	if err := w.finishSegment(); err != nil {
		return err
	}
	if !w.started {
		w.res.LogStart, w.end = base, base
		w.producers = state.NewProducerManager(nil, w.reader)
	}
	producers, from := w.snapshotAt(base)
	if from != nil {
		w.producers.ProducerState = producers
	}
	if w.started && !w.dry {
		if err := w.snapshot(base, from); err != nil {
			return err
		}
	}
	w.base, w.from, w.pos, w.started = base, src, 0, true
	w.res.Segments++
	w.index = rebuild.NewRecovery(base, w.interval, w.producers)
	if w.dry {
		return nil
	}
	var err error
	w.file, err = os.OpenFile(w.path(format.KindLog), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return fmt.Errorf("%s: cannot be made: %w", w.path(format.KindLog), bare(err))
	}
	return nil
}

func (w *writer) path(kind format.Kind) string {
	return filepath.Join(w.dir, format.SegmentFileName(w.base, kind))
}

// snapshot writes what the producers are, as of an offset: as it was on disk, if it was.
func (w *writer) snapshot(offset int64, from *state.ProducerSnapshot) error {
	raw := format.AppendProducerSnapshot(nil, w.producers.Entries())
	if from != nil {
		if there, err := from.Read(); err == nil {
			raw = there
		}
	}
	return w.small(format.SegmentFileName(offset, format.KindProducerSnapshot), raw)
}

// lastSnapshot writes that of the log's end, as a broker does that closes the log.
func (w *writer) lastSnapshot() error {
	if w.end <= w.base {
		return nil
	}
	return w.small(format.SegmentFileName(w.end, format.KindProducerSnapshot), format.AppendProducerSnapshot(nil,
		w.producers.Entries()))
}

func (w *writer) small(name string, data []byte) error {
	f, err := os.OpenFile(filepath.Join(w.dir, name), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err == nil {
		_, err = f.Write(data)
		w.syncs.add(f)
	}
	if err != nil {
		return fmt.Errorf("%s: cannot be written: %w", filepath.Join(w.dir, name), bare(err))
	}
	return nil
}

// finishSegment writes the indexes of the present segment.
func (w *writer) finishSegment() error {
	if !w.started {
		return nil
	}
	if err := w.index.Finish(); err != nil {
		return fmt.Errorf("segment %d: a broker would not keep it whole: %w", w.base, err)
	}
	if w.dry {
		return nil
	}
	if !w.from.log.ModTime.IsZero() {
		// Retention goes by the file's time where records have none.
		if err := os.Chtimes(w.path(format.KindLog), w.from.log.ModTime, w.from.log.ModTime); err != nil {
			return fmt.Errorf("%s: cannot be written: %w", w.path(format.KindLog), bare(err))
		}
	}
	w.syncs.add(w.file)
	name := func(kind format.Kind) string { return format.SegmentFileName(w.base, kind) }
	err := errors.Join(w.small(name(format.KindOffsetIndex), w.index.OffsetIndex()), w.small(name(format.KindTimeIndex),
		w.index.TimeIndex()))
	if txns := w.index.TxnIndex(); len(txns) > 0 {
		err = errors.Join(err, w.small(name(format.KindTxnIndex), txns))
	}
	return err
}

// emptyEnd keeps an empty last segment, so that the log's end stays where it was, and makes one where nothing is left.
func (w *writer) emptyEnd(scans []*scan) error {
	var last *source
	for _, s := range scans {
		if s.src.rank < rankLeftover && s.src.last && (last == nil || s.src.base > last.base) && (s.src.log.Size == 0 ||
			!w.started) {
			last = s.src
		}
	}
	if last == nil || w.started && (last.base < w.end || last.base == w.base) {
		return nil
	}
	if err := w.begin(last.base, last); err != nil {
		return err
	}
	w.end = max(w.end, last.base)
	return nil
}

func syncDir(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// epochRuns are the leader epochs of batches and where each begins.
type epochRuns struct {
	runs []format.EpochEntry
	// legacy batches have none
}

func (e *epochRuns) add(b *format.Batch) {
	if b.Legacy() || b.LeaderEpoch < 0 {
		return
	}
	if n := len(e.runs); n == 0 || e.runs[n-1].Epoch != b.LeaderEpoch {
		e.runs = append(e.runs, format.EpochEntry{Epoch: b.LeaderEpoch, StartOffset: b.BaseOffset})
	}
}

// rising are the runs without those of an epoch above that of a later one, which can't be right.
func (e *epochRuns) rising() []format.EpochEntry {
	var kept []format.EpochEntry
	for _, r := range e.runs {
		for len(kept) > 0 && kept[len(kept)-1].Epoch > r.Epoch {
			kept = kept[:len(kept)-1]
		}
		if len(kept) == 0 || kept[len(kept)-1].Epoch < r.Epoch {
			kept = append(kept, r)
		}
	}
	return kept
}

// agree reports whether the entries of a file give each run its epoch.
func (e *epochRuns) agree(entries []format.EpochEntry) bool {
	i := 0
	for _, r := range e.rising() {
		for i < len(entries) && cmp.Compare(entries[i].Epoch, r.Epoch) < 0 {
			i++
		}
		if i == len(entries) || entries[i].Epoch != r.Epoch || entries[i].StartOffset > r.StartOffset {
			return false
		}
	}
	return true
}
