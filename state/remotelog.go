package state

import (
	"errors"
	"fmt"

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
	ends    map[[16]byte]int64 // the last offset of each segment whose copy was begun, by its id
	copied  map[remotePartition]int64
}

// ReadRemoteLog reads all partitions of __remote_log_metadata in the log directories of set, also where the set's
// filters leave them out.
func ReadRemoteLog(set *logdir.Set, gentle *logdir.Gentle) *RemoteLog {
	l := &RemoteLog{decoder: schema.NewDecoder(), ends: map[[16]byte]int64{}, copied: map[remotePartition]int64{}}
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
	r := logReader{records: format.NewRecordReader(maxOffsetsBatchSize, nil)}
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
		l.ends[id] = v.Get("endOffset").Int()
	}
	if end, begun := l.ends[id]; begun && v.Get("remoteLogSegmentState").Int() == copyFinished {
		key := remotePartition{in.Get("name").Text(), in.Get("id").UUID(), int32(in.Get("partition").Int())}
		if before, ok := l.copied[key]; !ok || end > before {
			l.copied[key] = end
		}
		delete(l.ends, id)
	}
}

// Copied is the largest offset of a partition that was copied to remote storage, false if none was (UnifiedLog's
// highestOffsetInRemoteStorage). A partition.metadata that cannot be read, or is not there, leaves the topic's id open:
// then the smallest of several topics of that name counts.
func (l *RemoteLog) Copied(p *logdir.Partition) (offset int64, any bool) {
	id, known := partitionTopicID(p)
	if known {
		offset, any = l.copied[remotePartition{p.Topic, id, p.PartitionDir.Partition}]
		return offset, any
	}
	for key, end := range l.copied {
		if key.topic == p.Topic && key.partition == p.PartitionDir.Partition && (!any || end < offset) {
			offset, any = end, true
		}
	}
	return offset, any
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
