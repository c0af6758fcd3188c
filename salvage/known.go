package salvage

import (
	"cmp"
	"slices"

	"kseg/format"
	"kseg/logdir"
	"kseg/state"
)

// known is what is known of a partition beside its logs.
type known struct {
	compacted bool
	// epochs are the leader epochs by the checkpoints of the copies, none where the batches contradict one.
	epochs []format.EpochCache
	// committed is the high watermark of a copy's checkpoint, the largest; 0 if there is none.
	committed int64
	// end is where the last segment in use begins.
	end     int64
	deleted bool // also what nothing vouches for
}

// known collects what is known of a partition.
func (r *run) known(g *group, scans []*scan) *known {
	k := &known{deleted: r.opts.Deleted}
	for _, s := range scans {
		k.compacted = k.compacted || s.src.compacted
		if s.src.rank < rankLeftover {
			k.end = max(k.end, s.src.base)
		}
	}
	for _, c := range g.copies {
		if c.dir == nil {
			continue
		}
		tp := state.TopicPartition{Topic: c.dir.Topic, Partition: c.dir.PartitionDir.Partition}
		if hw, ok := r.dirs.Of(c.dir.Parent).Offset(format.KindReplicationOffsetCheckpoint, tp); ok {
			k.committed = max(k.committed, hw)
		}
		if epochs := epochsOf(c.dir); !contradicted(epochs, scans) {
			k.epochs = append(k.epochs, epochs)
		}
	}
	return k
}

// epochsOf are the leader epochs of a copy's checkpoint, none if it cannot be read.
func epochsOf(p *logdir.Partition) format.EpochCache {
	if f := p.File(format.KindLeaderEpochCheckpoint); f != nil {
		if raw, err := f.ReadSmall(); err == nil {
			if epochs, err := format.DecodeLeaderEpochs(raw); err == nil {
				return epochs.Loaded()
			}
		}
	}
	return nil
}

// contradicted reports whether a batch of a segment in use has a lower epoch than its offset has by a checkpoint.
func contradicted(epochs format.EpochCache, scans []*scan) bool {
	for _, s := range scans {
		for _, q := range s.pieces {
			if at, ok := later(epochs, &q); ok && at <= q.first && s.src.rank < rankLeftover && !q.suspect {
				return true
			}
		}
	}
	return false
}

// later is where, up to the end of a piece, an epoch begins that is later than that of its first batch.
func later(epochs format.EpochCache, q *piece) (int64, bool) {
	i := slices.IndexFunc(epochs, func(e format.EpochEntry) bool { return e.Epoch > q.epochs[0] })
	if i < 0 || q.epochs[0] < 0 || epochs[i].StartOffset > q.last {
		return 0, false
	}
	return epochs[i].StartOffset, true
}

// forbids says why a leftover is not to be taken from an offset on; "" if it is. A follower cuts what its leader never
// had off its log, and leaves the segments behind as .deleted ones; so does recovery what comes after damage. Batches
// of one epoch are of one leader: those before another one of it belong to the log.
func (p *planner) forbids(q piece) (at int64, why string) {
	if q.src.rank < rankLeftover {
		return 0, ""
	}
	if q.epochs[0] >= 0 && q.epochs[0] < p.epoch {
		return q.first, "it was left under an older leader epoch"
	}
	if q.src.log.Name.Suffix != "deleted" {
		return 0, ""
	}
	for _, epochs := range p.known.epochs {
		if at, ok := later(epochs, &q); ok {
			return at, "by the leader epochs another leader had written these offsets: a broker cut it off as a follower"
		}
	}
	i, _ := slices.BinarySearchFunc(p.live, q.last, func(l piece, o int64) int { return cmp.Compare(l.first, o) })
	switch {
	case i < len(p.live) && p.live[i].epochs[0] >= 0 && p.live[i].epochs[0] < q.epochs[1]:
		return q.first, "what comes after it has an older leader epoch: it is of another history"
	case i < len(p.live) || q.last < p.known.end || q.last < p.known.committed || p.known.deleted:
		return 0, ""
	}
	return max(q.first, p.known.committed), "a broker cut it off the end of the log, as a follower does whose leader " +
		"never had it, or as recovery does after damage; nothing here tells which: --deleted takes it"
}
