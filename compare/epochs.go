package compare

import (
	"sort"

	"kseg/format"
)

// Truncation is what a follower does about a divergence, by the leader epochs (KIP-101, KIP-279): the side whose epochs
// end lower follows the other one. Where both end alike, either does.
type Truncation struct {
	FollowerIsA bool
	// Offset is where the follower cuts its log; its end if it does not.
	Offset int64
	// Cuts is false if the leader epochs do not give the divergence away.
	Cuts bool

	sameEpoch bool // both end in the same epoch, so that either may lead
}

// truncation is what comes of a divergence, or of records of one side that the leader of a later epoch never had.
func (c *Comparison) truncation() *Truncation {
	t := truncation(c.A, c.B)
	if c.Result == Diverged || c.EpochsDiffer || t != nil && t.Cuts && !t.sameEpoch {
		return t
	}
	return nil
}

// truncation needs both leader-epoch-checkpoints, else it is nil.
func truncation(a, b *Log) *Truncation {
	ea, eb := a.leaderEpochs(), b.leaderEpochs()
	if len(ea) == 0 || len(eb) == 0 {
		return nil
	}
	lastA, lastB := ea[len(ea)-1].Epoch, eb[len(eb)-1].Epoch
	t := &Truncation{FollowerIsA: lastA <= lastB, sameEpoch: lastA == lastB}
	follower, leader := epochCache{ea, a.End}, epochCache{eb, b.End}
	if !t.FollowerIsA {
		follower, leader = leader, follower
	}
	end := follower.end
	t.Offset = follower.truncate(leader)
	t.Cuts = t.Offset < end
	return t
}

// leaderEpochs are those that the side's leader-epoch-checkpoint gives a broker, none if it cannot be read.
func (l *Log) leaderEpochs() format.EpochCache {
	if l.epochs == nil {
		epochs, err := format.DecodeLeaderEpochs(l.small(l.Partition.File(format.KindLeaderEpochCheckpoint)))
		if l.epochs = (format.EpochCache{}); err == nil {
			l.epochs = append(l.epochs, epochs.Loaded()...)
		}
	}
	return l.epochs
}

// epochCache is a LeaderEpochFileCache and the log end offset.
type epochCache struct {
	entries format.EpochCache
	end     int64
}

// endOf is endOffsetFor: the largest epoch up to the one asked for, and where it ends. It is false if no entry tells.
func (c epochCache) endOf(epoch int32) (int32, int64, bool) {
	n := len(c.entries)
	if n == 0 {
		return 0, 0, false
	}
	if c.entries[n-1].Epoch == epoch {
		return epoch, c.end, true
	}
	i := sort.Search(n, func(i int) bool { return c.entries[i].Epoch > epoch })
	switch i {
	case n:
		return 0, 0, false
	case 0:
		return epoch, c.entries[0].StartOffset, true
	}
	return c.entries[i-1].Epoch, c.entries[i].StartOffset, true
}

// truncate is how AbstractFetcherThread finds the offset to truncate to: by the follower's last epoch, and where the
// leader does not know that, by lower ones.
func (c epochCache) truncate(leader epochCache) int64 {
	for len(c.entries) > 0 {
		last := c.entries[len(c.entries)-1].Epoch
		epoch, offset, ok := leader.endOf(last)
		if !ok {
			return c.end
		}
		if epoch == last {
			return min(c.end, offset)
		}
		own, end, ok := c.endOf(epoch)
		if !ok {
			return min(c.end, offset)
		}
		if own == epoch {
			return min(c.end, end, offset)
		}
		// The follower cuts what is above, and asks again.
		c.end = min(c.end, end)
		c.entries.CutEnd(c.end)
	}
	return min(c.end, leader.end)
}
