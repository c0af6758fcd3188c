package salvage

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"kseg/broker"
	"kseg/format"
	"kseg/logdir"
	"kseg/rebuild"
	"kseg/state"
	"kseg/walk"
)

// partitionFiles writes the files of a partition that belong to no segment.
func (w *writer) partitionFiles(g *group) error {
	err := w.writeEpochs(g)
	metadata, ok := firstThat(g, format.KindPartitionMetadata, func(raw []byte) bool {
		_, err := format.DecodePartitionMetadata(raw)
		return err == nil
	})
	if ok {
		err = errors.Join(err, w.small(format.KindPartitionMetadata.Info().Name, metadata))
	} else {
		w.res.Notes = append(w.res.Notes, "no copy has a partition.metadata that can be read; a broker that knows the "+
			"topic's id takes the directory for a stray one unless you write it: version: 0, topic_id: ...")
	}
	if g.dir().IsClusterMetadata() {
		err = errors.Join(err, w.metadataFiles(g))
	}
	return err
}

// firstThat is the content of the first copy's file of a kind that will do.
func firstThat(g *group, kind format.Kind, good func([]byte) bool) ([]byte, bool) {
	for _, c := range g.copies {
		if c.dir == nil {
			continue
		}
		f := c.dir.File(kind)
		if f == nil {
			continue
		}
		if raw, err := f.ReadSmall(); err == nil && good(raw) {
			return raw, true
		}
	}
	return nil, false
}

// writeEpochs writes the leader epochs: those of a copy's file if the batches agree with it, for it knows of epochs
// without records, else those of the batches.
func (w *writer) writeEpochs(g *group) error {
	var entries format.EpochCache
	_, ok := firstThat(g, format.KindLeaderEpochCheckpoint, func(raw []byte) bool {
		e, err := format.DecodeLeaderEpochs(raw)
		entries = e.Loaded()
		return err == nil && e.OutOfOrder() < 0 && w.epochs.agree(entries)
	})
	if !ok {
		entries = w.epochs.rising()
	}
	if !ok && len(entries) == 0 {
		return nil
	}
	entries.CutStart(w.res.LogStart)
	entries.CutEnd(max(w.end, w.res.LogStart+1))
	return w.small(format.KindLeaderEpochCheckpoint.Info().Name, entries.AppendFile(nil))
}

// metadataFiles copies what belongs to the metadata log beside its segments: snapshots that are whole, and the quorum's
// state.
func (w *writer) metadataFiles(g *group) error {
	done := map[string]bool{}
	var err error
	for _, c := range g.copies {
		if c.dir == nil {
			continue
		}
		for _, f := range c.dir.All() {
			quorum := f.Kind() == format.KindQuorumState
			if done[f.Name.Raw] || f.Name.Leftover() || !quorum && (f.Kind() != format.KindCheckpoint || !w.whole(f)) {
				continue
			}
			raw, readErr := f.ReadSmall()
			if readErr != nil {
				w.res.NotRead = append(w.res.NotRead, readErr)
				continue
			}
			done[f.Name.Raw] = true
			err = errors.Join(err, w.small(f.Name.Raw, raw))
		}
	}
	if len(w.res.Lost) > 0 {
		w.res.Notes = append(w.res.Notes, "records of the metadata log are lost: what they changed is unknown to a "+
			"controller that loads it; prefer the copy of another controller")
	}
	return err
}

// whole reports whether all batches of a KRaft snapshot are sound.
func (w *writer) whole(f *logdir.File) bool {
	for c := range walk.Chunks(w.run.ctx, &walk.Log{File: f}, nil) {
		if c.Damage != nil || c.Err != nil {
			return false
		}
	}
	return true
}

// verify reads what was written, as a broker does that recovers it: every batch must be sound, and the indexes those
// of the batches.
func (w *writer) verify(g *group) error {
	set, err := logdir.Open([]string{w.dir}, logdir.Options{})
	if err != nil {
		return err
	}
	p := set.Operands[0].Partition
	if p == nil {
		return fmt.Errorf("%s: what was written can't be read again: %w", w.dir, errors.Join(set.Operands[0].Err,
			logdir.ErrNothing))
	}
	p.PartitionDir = g.dir().PartitionDir
	p.Suffix, p.UUID = "", "" // it is to be loaded, whatever its source was to become
	if err := w.predict(p, true); err != nil {
		return err
	}
	return w.predict(p, false)
}

// predict asks what a broker would do that loads what was written, after a clean stop and after another one.
func (w *writer) predict(p *logdir.Partition, clean bool) error {
	loaded, err := broker.Load(p, broker.LoadOptions{Clean: clean, Interval: w.interval, IndexBytes: indexBytes,
		SegmentBytes: maxSegmentBytes,
		ExpiredMs:    math.MinInt64, MaxBatchBytes: w.run.opts.MaxBatchBytes,
		Stop: func() bool { return w.run.ctx.Err() != nil }})
	switch {
	case err != nil:
		return err
	case loaded.Failure != nil:
		return fmt.Errorf("a broker would not load what was written: %w", loaded.Failure)
	case len(loaded.Cuts) > 0 || loaded.LogEnd != w.end || loaded.LogStart != w.res.LogStart:
		return fmt.Errorf("a broker would not keep what was written whole: it would have offsets %d to %d, not %d to %d",
			loaded.LogStart, loaded.LogEnd, w.res.LogStart, w.end)
	}
	size := int64(0)
	for _, s := range loaded.Segments {
		size += s.Size
	}
	changed := rewritten(loaded)
	if !clean && len(w.snapshots) > 0 {
		// A snapshot knows where a transaction began of which the cleaner took the records; who replays the log does not.
		changed = slices.DeleteFunc(changed, func(name string) bool {
			return format.ParseFileName(name).Kind == format.KindTxnIndex
		})
	}
	if len(changed) > 0 || size != w.res.Bytes {
		return fmt.Errorf("%s: what was written is not what is there: %d of %d bytes, and a broker would rewrite %v", w.dir,
			size, w.res.Bytes, changed[:min(3, len(changed))])
	}
	w.res.Predicted = true
	return nil
}

// indexBytes is Kafka's default of segment.index.bytes.
const indexBytes = 10 << 20

// rewritten are the logs and indexes that a start would change: recovery makes all of them anew. A transaction index
// may follow from a snapshot of a copy, which knows of batches that are lost, and not from those before it.
func rewritten(loaded *broker.Loaded) (names []string) {
	changed := map[string]bool{}
	for _, c := range loaded.Files {
		changed[c.Name] = c.Action != broker.Keep
	}
	for name := range changed {
		n := format.ParseFileName(name)
		told := n.Kind == format.KindTxnIndex && changed[format.SegmentFileName(n.Base, format.KindProducerSnapshot)]
		if changed[name] && n.Kind.IsSegmentFile() && n.Kind != format.KindProducerSnapshot && !told {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// stateFiles writes what belongs to a log directory, if one was given.
func (r *run) stateFiles() error {
	dirs := r.set.LogDirs()
	if len(dirs) == 0 {
		return nil
	}
	var meta []byte
	for _, d := range dirs {
		if s := r.dirs.Of(d); meta == nil && s.MetaRaw != nil && s.MetaErr == nil {
			meta = s.MetaRaw
		}
	}
	var err error
	if meta != nil {
		err = r.stateFile(format.KindMetaProperties, meta)
	}
	for _, kind := range state.CheckpointKinds {
		if lines := r.checkpoint(kind); lines != nil || kind == format.KindRecoveryPointCheckpoint {
			err = errors.Join(err, r.stateFile(kind, fmt.Appendf(nil, "0\n%d\n%s", len(lines), strings.Join(lines, ""))))
		}
	}
	return errors.Join(err, syncDir(r.opts.Dir))
}

// stateFile writes a file of the log directory under another name and gives it its name.
func (r *run) stateFile(kind format.Kind, data []byte) error {
	path := filepath.Join(r.opts.Dir, kind.Info().Name)
	err := rebuild.WriteSynced(path+".tmp", data)
	if err == nil {
		err = os.Rename(path+".tmp", path)
	}
	if err != nil {
		return fmt.Errorf("%s: cannot be written: %w", path, errors.Join(bare(err), os.Remove(path+".tmp")))
	}
	return nil
}

// checkpointed says what a checkpoint has of a log that was written, and whether it names it at all; known is what the
// checkpoints of the copies have, if they have something.
var checkpointed = map[format.Kind]func(s *Salvaged, known int64, ok bool) (int64, bool){
	format.KindRecoveryPointCheckpoint: func(s *Salvaged, _ int64, _ bool) (int64, bool) {
		return s.LogEnd, true // all of it is on disk
	},
	format.KindReplicationOffsetCheckpoint: func(s *Salvaged, known int64, ok bool) (int64, bool) {
		if !ok {
			return s.LogEnd, true
		}
		return max(min(known, s.LogEnd), s.LogStart), true
	},
	format.KindLogStartOffsetCheckpoint: func(s *Salvaged, known int64, ok bool) (int64, bool) {
		return known, ok && known > s.LogStart && known <= s.LogEnd
	},
	format.KindCleanerOffsetCheckpoint: func(s *Salvaged, known int64, ok bool) (int64, bool) {
		return known, ok && known >= s.LogStart && known <= s.lastBase
	},
}

// checkpoint are the lines of an offset checkpoint about what was written.
func (r *run) checkpoint(kind format.Kind) []string {
	var lines []string
	offsetOf := checkpointed[kind]
	if offsetOf == nil {
		return nil
	}
	for i, g := range r.groups {
		s := r.done[i]
		dir := g.dir()
		if s.Path == "" || dir.IsClusterMetadata() || !dir.Named {
			continue
		}
		known, ok := int64(0), false
		for _, c := range g.copies {
			if c.dir != nil && !ok {
				known, ok = r.dirs.Of(c.dir.Parent).Offset(kind, state.TopicPartition{Topic: dir.Topic,
					Partition: dir.PartitionDir.Partition})
			}
		}
		if offset, ok := offsetOf(s, known, ok); ok {
			lines = append(lines, fmt.Sprintf("%s %d %d\n", dir.Topic, dir.PartitionDir.Partition, offset))
		}
	}
	slices.Sort(lines)
	return lines
}
