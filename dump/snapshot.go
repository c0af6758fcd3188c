package dump

import (
	"fmt"

	"kseg/format"
	"kseg/logdir"
	"kseg/render"
)

// snapshot prints a producer snapshot. A corrupt one is said in the real tool's words, and what can be read of it is
// printed as JSON only, since the real tool prints nothing.
func (d *dumper) snapshot(f *logdir.File) error {
	if err := d.title(f); err != nil {
		return err
	}
	return f.View(func(raw []byte) error {
		s, err := format.DecodeProducerSnapshot(raw)
		if err != nil {
			d.result.Damage = true
			fmt.Fprintln(d.errOut, snapshotMessage(&s))
			d.say(f, err.Error())
			return d.unreadableSnapshot(f, len(raw), err)
		}
		return d.producers(f, &s)
	})
}

func (d *dumper) unreadableSnapshot(f *logdir.File, size int, err error) error {
	if d.opts.Output != JSON {
		return nil
	}
	o := render.NewObj(nil, "unreadable")
	where := placeOf(f)
	where.append(&o)
	o.Int("position", 0)
	o.Int("length", int64(size))
	o.Str("what", "damage")
	o.Str("message", err.Error())
	o.Null("next_position")
	o.Null("next_offset")
	return d.write(o.Line())
}

// snapshotMessage is what the real tool says of a corrupt snapshot.
func snapshotMessage(s *format.ProducerSnapshot) string {
	reason := "null"
	switch s.Fault {
	case format.SnapshotBadCRC:
		return fmt.Sprintf("Snapshot is corrupt (CRC is no longer valid). Stored crc: %d. Computed crc: %d", s.CRC,
			s.ComputedCRC)
	case format.SnapshotBadVersion:
		reason = fmt.Sprintf("Snapshot contained an unknown file version %d", s.Version)
	case format.SnapshotNegativeCount:
		reason = "non-nullable field producerEntries was serialized as null"
	case format.SnapshotCountTooLarge:
		reason = fmt.Sprintf("Tried to allocate a collection of size %d, but there are only %d bytes remaining.", s.Count,
			s.Remaining())
	}
	return "Snapshot failed schema validation: " + reason
}

// producers prints the entries of a sound snapshot.
func (d *dumper) producers(f *logdir.File, s *format.ProducerSnapshot) error {
	out := d.entries(f, "producer_snapshot_entry")
	for i := range s.Len() {
		e := s.Entry(i)
		out.int("producerId", "producer_id", e.ProducerID).int("producerEpoch", "producer_epoch", int64(e.ProducerEpoch))
		out.int("coordinatorEpoch", "coordinator_epoch", int64(e.CoordinatorEpoch))
		out.maybe("currentTxnFirstOffset", "current_txn_first_offset", optional, e.CurrentTxnFirstOffset, e.InTransaction())
		out.time("lastTimestamp", "last_timestamp", e.TimestampMs)
		out.maybe("firstSequence", "first_sequence", omitted, int64(e.FirstSequence()), e.HasBatch())
		out.maybe("lastSequence", "last_sequence", omitted, int64(e.LastSequence), e.HasBatch())
		out.maybe("lastOffset", "last_offset", omitted, e.LastOffset, e.HasBatch())
		out.maybe("offsetDelta", "offset_delta", omitted, int64(e.OffsetDelta), e.HasBatch())
		if err := out.maybe("timestamp", "timestamp", omitted, e.TimestampMs, e.HasBatch()).end(); err != nil {
			return err
		}
	}
	return out.close()
}
