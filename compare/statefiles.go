package compare

import (
	"fmt"

	"kseg/format"
	"kseg/logdir"
	"kseg/state"
)

// StateDifference is a state file of which the two sides tell different things.
type StateDifference struct {
	File string
	What string // a clause
	A, B string
	// Contradicts is true if no lag and no other history of compaction explains it.
	Contradicts bool
}

// compareState compares the epochs and the producer snapshots of the same offset. Where the cleaner has been, an epoch
// begins for a follower with the first of its records that were left.
func compareState(a, b *Log, cleaned bool) []StateDifference {
	all := compareEpochs(a, b, cleaned)
	theirs := map[int64]*logdir.File{}
	for _, s := range state.ProducerSnapshotsOf(b.Partition.All()) {
		theirs[s.Offset] = s.File
	}
	for _, s := range state.ProducerSnapshotsOf(a.Partition.All()) {
		if other := theirs[s.Offset]; other != nil {
			all = append(all, compareSnapshots(a, b, s.File, other)...)
		}
	}
	return all
}

// compareEpochs compares where the epochs begin that both know, above the later log start.
func compareEpochs(a, b *Log, cleaned bool) []StateDifference {
	starts := map[int32]int64{}
	for _, e := range b.leaderEpochs() {
		starts[e.Epoch] = e.StartOffset
	}
	from := max(a.Start, b.Start)
	var all []StateDifference
	for _, e := range a.leaderEpochs() {
		start, ok := starts[e.Epoch]
		if ok && start != e.StartOffset && max(start, e.StartOffset) > from {
			all = append(all, StateDifference{File: format.KindLeaderEpochCheckpoint.Info().Name,
				What: fmt.Sprintf("where leader epoch %d begins", e.Epoch), A: fmt.Sprint(e.StartOffset), B: fmt.Sprint(start),
				Contradicts: !cleaned})
		}
	}
	return all
}

// compareSnapshots compares what two snapshots of one offset say of the producers that both know: others may have
// expired.
func compareSnapshots(la, lb *Log, a, b *logdir.File) []StateDifference {
	rawA, rawB := la.small(a), lb.small(b)
	if rawA == nil || rawB == nil {
		return nil
	}
	sa, errA := format.DecodeProducerSnapshot(rawA)
	sb, errB := format.DecodeProducerSnapshot(rawB)
	if errA != nil || errB != nil {
		return []StateDifference{{File: a.Name.Raw, What: "whether it can be read", A: readable(errA), B: readable(errB),
			Contradicts: true}}
	}
	theirs := make(map[int64]format.ProducerEntry, sb.Len())
	for i := range sb.Len() {
		e := sb.Entry(i)
		theirs[e.ProducerID] = e
	}
	var all []StateDifference
	for i := range sa.Len() {
		e := sa.Entry(i)
		if o, ok := theirs[e.ProducerID]; ok && o != e {
			all = append(all, StateDifference{File: a.Name.Raw, What: fmt.Sprintf("producer %d", e.ProducerID),
				A: producerText(e), B: producerText(o), Contradicts: true})
		}
	}
	return all
}

func readable(err error) string {
	if err != nil {
		return err.Error()
	}
	return "sound"
}

func producerText(e format.ProducerEntry) string {
	return fmt.Sprintf("epoch %d, last sequence %d at offset %d, transaction since %d", e.ProducerEpoch, e.LastSequence,
		e.LastOffset, e.CurrentTxnFirstOffset)
}
