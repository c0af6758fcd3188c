package broker

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"kseg/format"
	"kseg/logdir"
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

const checkpointSuffix = ".checkpoint"

// recoverSnapshots removes unfinished and old snapshots, and begins the log anew after one that is ahead of it.
func (l *loader) recoverSnapshots() error {
	var kept []format.FileName
	var gone []string
	for _, name := range l.dir.names() {
		plain, deleted := strings.CutSuffix(name, deletedSuffix)
		plain, partial := strings.CutSuffix(plain, ".part")
		n := format.ParseFileName(plain)
		switch {
		case !strings.HasSuffix(plain, checkpointSuffix) || !n.HasBase:
		case deleted || partial || n.Base < l.logStart:
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
	if newest.Epoch < epoch || newest.Epoch == epoch && newest.Base <= l.logEnd {
		return nil
	}
	return l.beginAt(newest, kept)
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
	l.producers.clear(newest.Base)
	l.logStart, l.logEnd, l.recoveryPoint = newest.Base, newest.Base, min(l.recoveryPoint, newest.Base)
	for _, n := range kept {
		if n.Base < newest.Base {
			l.dir.rename(n.Raw, n.Raw+deletedSuffix)
		}
	}
	return nil
}
