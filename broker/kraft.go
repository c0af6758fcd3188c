package broker

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"

	"kseg/format"
	"kseg/logdir"
	"kseg/schema"
)

// What KafkaRaftLog sets for its log.
const (
	metadataInterval   = 4096
	metadataIndexBytes = 10 << 20
)

// loadMetadata is KafkaRaftLog.createLog: the metadata log is recovered from the beginning at every start, whatever the
// marker says.
func loadMetadata(p *logdir.Partition, opts LoadOptions) (*Loaded, error) {
	if p.ListErr != nil {
		return nil, &unreadable{p.ListErr}
	}
	opts.Clean, opts.RecoveryPoint, opts.LogStart, opts.Tiered = false, 0, 0, false
	opts.Interval, opts.IndexBytes, opts.Preallocate = metadataInterval, metadataIndexBytes, false
	l := &loader{dir: newFolder(p, opts.Edits), opts: &opts}
	err := l.create()
	if err == nil {
		err = l.recoverSnapshots()
	}
	if err == nil && l.oddMagic != nil {
		err = l.oddMagic // a node reads all of this log
	}
	return l.result(err)
}

const (
	upToMagic        = 17 // bytes of a batch up to its magic
	checkpointSuffix = ".checkpoint"
	partSuffix       = ".part"
)

// snapshotName reads the name of a snapshot, or of a part of one, as Snapshots.parse does: by its places. is is false
// for other files; a name that only ends like one is an error, which keeps a node from starting.
func snapshotName(name string) (end format.FileName, leftover, is bool, err error) {
	plain, deleted := strings.CutSuffix(name, deletedSuffix)
	plain, partial := strings.CutSuffix(plain, partSuffix)
	if !strings.HasSuffix(plain, checkpointSuffix) {
		return end, false, false, nil
	}
	if n := format.ParseFileName(plain); n.HasBase && n.Kind == format.KindCheckpoint {
		return n, deleted || partial, true, nil
	}
	return end, false, true, stops(name, "the name ends like that of a snapshot, and has no offset and epoch")
}

// recoverSnapshots removes unfinished and old snapshots, and begins the log anew after one that is ahead of it.
func (l *loader) recoverSnapshots() error {
	var kept []format.FileName
	var gone []string
	for _, name := range append(l.dir.names(), l.dir.dir.Subdirs...) {
		switch n, leftover, is, err := snapshotName(name); {
		case err != nil:
			return err
		case !is:
		case leftover || n.Base < l.logStart:
			gone = append(gone, name)
		default:
			kept = append(kept, n)
		}
	}
	slices.SortFunc(kept, func(a, b format.FileName) int {
		return cmp.Or(cmp.Compare(a.Epoch, b.Epoch), cmp.Compare(a.Base, b.Base))
	})
	if l.logStart > 0 && (len(kept) == 0 || kept[len(kept)-1].Base < l.logStart) {
		return &Failure{Err: errors.New("the log begins at offset " + fmt.Sprint(l.logStart) +
			", and no snapshot reaches as far")}
	}
	for _, name := range gone {
		l.dir.remove(name)
	}
	if len(kept) == 0 {
		return nil
	}
	newest := kept[len(kept)-1]
	epoch, _ := l.epochs.latest()
	if newest.Epoch > epoch || newest.Epoch == epoch && newest.Base > l.logEnd {
		if err := l.beginAt(newest, kept); err != nil {
			return err
		}
	}
	return l.readSnapshot(newest.Raw)
}

// readSnapshot is what a node reads of the newest snapshot (RecordsIterator): what is left of a batch at its end is
// passed over, anything else that is no sound batch keeps it from starting.
func (l *loader) readSnapshot(name string) error {
	f := l.dir.files[name]
	if f == nil {
		return stops(name, "the snapshot is a directory")
	}
	l.snapshot = f.src
	return l.view(f, f.size, func(data []byte) error {
		if n := len(data); n > 0 && n < upToMagic {
			return stops(name, "the snapshot has %d bytes, too few for a batch", n)
		}
		w := walker{s: &segment{l: l}, log: data}
		for first := true; w.next(); first = false {
			switch b := &w.batch; {
			case b.Magic != 2:
				return stops(name, "the snapshot has a batch of magic %d at byte %d", b.Magic, b.Pos)
			case !b.Valid():
				return stops(name, "the checksum of the snapshot's batch at byte %d does not match", b.Pos)
			case first && !l.isHeader(b):
				return stops(name, "the first record of the snapshot is not its header")
			}
		}
		if w.err != nil {
			return stops(name, "%w", w.err)
		}
		if n := format.ParseFileName(name); w.pos == 0 && (n.Base > 0 || n.Epoch > 0) {
			return stops(name, "there is no batch in the snapshot")
		}
		switch tail := data[w.pos:]; {
		case len(tail) >= format.LogOverhead && int32(binary.BigEndian.Uint32(tail[8:])) < format.MinEntrySize:
			return stops(name, "the snapshot has no batch at byte %d: its length cannot be", w.pos)
		case len(tail) >= upToMagic && tail[upToMagic-1] > 2:
			return stops(name, "the snapshot has no batch at byte %d: its magic would be %d", w.pos, tail[upToMagic-1])
		}
		return nil
	})
}

// isHeader reports whether a batch begins with the header of a snapshot.
func (l *loader) isHeader(b *format.Batch) bool {
	var rec format.Record
	r := l.records()
	r.Reset(b)
	return b.Control() && r.Next(&rec) &&
		schema.NewDecoder().DecodeControl(rec.Key, rec.Value).Type == schema.SnapshotHeader
}

// beginAt is truncateFullyAndStartAt, and forgets the older snapshots.
func (l *loader) beginAt(newest format.FileName, kept []format.FileName) error {
	l.removeSegments(slices.Clone(l.segments))
	if err := l.openFirst(newest.Base); err != nil {
		return err
	}
	s := l.segments[0]
	for _, x := range []*index{s.offsetIndex(), s.timeIndex()} {
		if err := x.resize(l.opts.IndexBytes); err != nil {
			return err
		}
	}
	l.epochs.clear()
	if err := l.producers.Clear(newest.Base); err != nil {
		return err
	}
	l.logStart, l.logEnd, l.recoveryPoint = newest.Base, newest.Base, min(l.recoveryPoint, newest.Base)
	for _, n := range kept {
		if n.Base < newest.Base {
			l.dir.rename(n.Raw, n.Raw+deletedSuffix)
		}
	}
	return nil
}
