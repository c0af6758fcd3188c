package state

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"kseg/format"
	"kseg/logdir"
	"kseg/schema"
)

// remotePartition is a partition of a tiered topic.
type remotePartition struct {
	topic     string
	id        format.UUID
	partition int32
}

// RemoteLog is what the partitions of __remote_log_metadata that were given say of copies in remote storage.
type RemoteLog struct {
	// Given is false if there is no such partition.
	Given    bool
	Problems []logdir.Problem

	decoder *schema.Decoder
	begun   map[[16]byte]copiedTo // of each segment whose copy was begun, by its id
	copied  map[remotePartition]copiedTo
}

// copiedTo is the largest offset that was copied of each leader epoch (RemoteLogLeaderEpochState).
type copiedTo map[int32]int64

// ReadRemoteLog reads all partitions of __remote_log_metadata in the log directories of set, also where the set's
// filters leave them out.
func ReadRemoteLog(set *logdir.Set, gentle *logdir.Gentle) *RemoteLog {
	l := &RemoteLog{decoder: schema.NewDecoder(), begun: map[[16]byte]copiedTo{}, copied: map[remotePartition]copiedTo{}}
	seen := map[string]bool{}
	for _, p := range set.Partitions() {
		if p.Topic == format.RemoteLogTopic && p.Parent == nil {
			l.read(p)
		} else if p.Parent != nil {
			l.readDir(p.Parent.Path, gentle, seen)
		}
	}
	for _, dir := range set.LogDirs() {
		l.readDir(dir.Path, gentle, seen)
	}
	return l
}

func (l *RemoteLog) readDir(path string, gentle *logdir.Gentle, seen map[string]bool) {
	if seen[path] {
		return
	}
	seen[path] = true
	set, err := logdir.Open([]string{path}, logdir.Options{Topics: []string{format.RemoteLogTopic}, Gentle: gentle})
	if errors.Is(err, logdir.ErrNothing) {
		return
	}
	if err != nil {
		l.Problems = append(l.Problems, logdir.Problem{Display: path, Err: err})
		return
	}
	for _, p := range set.Partitions() {
		l.read(p)
	}
}

func (l *RemoteLog) read(p *logdir.Partition) {
	if p.Topic != format.RemoteLogTopic || p.Suffix != "" {
		return
	}
	l.Given = true
	r := logReader{records: format.NewRecordReader(format.MostBatch, nil)}
	r.read(logsOf(p.All()), func(b *format.Batch, rec *format.Record) {
		if b.Control() {
			return
		}
		d := l.decoder.Decode(schema.RemoteLog, rec.Key, rec.Value)
		if d.Err != nil {
			r.problem(fmt.Errorf("%s: the record at offset %d: %w", p.Display, rec.Offset, d.Err))
			return
		}
		l.record(d.Value)
	})
	for _, err := range r.problems {
		l.Problems = append(l.Problems, logdir.Problem{Display: p.Display, Err: err})
	}
}

// record folds one record: the first of a segment has its end, a later one says that the copy is finished.
func (l *RemoteLog) record(v schema.Half) {
	const copyFinished = 1
	if v.Type != schema.RemoteSegment && v.Type != schema.RemoteSegmentUpdate {
		return
	}
	segment := v.Get("remoteLogSegmentId")
	id, in := segment.Get("id").UUID(), segment.Get("topicIdPartition")
	if v.Type == schema.RemoteSegment {
		l.begun[id] = epochEnds(v)
	}
	if ends, begun := l.begun[id]; begun && v.Get("remoteLogSegmentState").Int() == copyFinished {
		key := remotePartition{in.Get("name").Text(), in.Get("id").UUID(), int32(in.Get("partition").Int())}
		if l.copied[key] == nil {
			l.copied[key] = copiedTo{}
		}
		for epoch, end := range ends {
			if before, ok := l.copied[key][epoch]; !ok || end > before {
				l.copied[key][epoch] = end
			}
		}
		delete(l.begun, id)
	}
}

// epochEnds are the last offsets of the leader epochs of a segment: an epoch ends where the next one begins.
func epochEnds(v schema.Half) copiedTo {
	var epochs []format.EpochEntry
	for _, e := range v.Get("segmentLeaderEpochs").Elements() {
		epochs = append(epochs, format.EpochEntry{Epoch: int32(e.Get("leaderEpoch").Int()),
			StartOffset: e.Get("offset").Int()})
	}
	slices.SortFunc(epochs, func(a, b format.EpochEntry) int { return cmp.Compare(a.Epoch, b.Epoch) })
	ends := copiedTo{}
	for i, e := range epochs {
		if ends[e.Epoch] = v.Get("endOffset").Int(); i+1 < len(epochs) {
			ends[e.Epoch] = epochs[i+1].StartOffset - 1
		}
	}
	return ends
}

// Copied is the largest offset of a partition that was copied to remote storage, false if none was (UnifiedLog's
// highestOffsetInRemoteStorage). What was copied of another history, by a leader of an epoch that the partition does
// not know, does not count; end is the partition's log end offset. A partition.metadata that cannot be read, or is not
// there, leaves the topic's id open: then the smallest of several topics of that name counts.
func (l *RemoteLog) Copied(p *logdir.Partition, end int64) (offset int64, any bool) {
	epochs := partitionEpochs(p)
	id, known := partitionTopicID(p)
	if known {
		return l.copied[remotePartition{p.Topic, id, p.PartitionDir.Partition}].highest(epochs, end)
	}
	for key, ends := range l.copied {
		if key.topic != p.Topic || key.partition != p.PartitionDir.Partition {
			continue
		}
		if most, ok := ends.highest(epochs, end); ok && (!any || most < offset) {
			offset, any = most, true
		}
	}
	return offset, any
}

// highest is RemoteLogManager.findHighestRemoteOffset: of the last epoch of the log of which something was copied, as
// far as that epoch goes in the log. Where the log's epochs are not known, all count.
func (c copiedTo) highest(epochs []format.EpochEntry, end int64) (offset int64, any bool) {
	for i := len(epochs) - 1; i >= 0; i-- {
		if most, ok := c[epochs[i].Epoch]; ok {
			return min(most, end-1), true
		}
		end = epochs[i].StartOffset
	}
	if len(epochs) > 0 {
		return 0, false
	}
	for _, most := range c {
		if !any || most > offset {
			offset, any = most, true
		}
	}
	return offset, any
}

// partitionEpochs are those of the leader-epoch-checkpoint that a broker loads, none if it cannot be read.
func partitionEpochs(p *logdir.Partition) []format.EpochEntry {
	f := p.File(format.KindLeaderEpochCheckpoint)
	if f == nil {
		return nil
	}
	raw, err := f.ReadSmall()
	if err != nil {
		return nil
	}
	epochs, err := format.DecodeLeaderEpochs(raw)
	if err != nil {
		return nil
	}
	return epochs.Loaded()
}

func partitionTopicID(p *logdir.Partition) (id format.UUID, known bool) {
	f := p.File(format.KindPartitionMetadata)
	if f == nil {
		return id, false
	}
	raw, err := f.ReadSmall()
	if err != nil {
		return id, false
	}
	m, err := format.DecodePartitionMetadata(raw)
	return m.TopicID, err == nil
}
