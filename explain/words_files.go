package explain

import (
	"fmt"
	"strconv"
	"strings"

	"kseg/format"
	"kseg/render"
)

// fileWords is about the fields of all files but segments.
func (e *explainer) fileWords(l *format.Leaf, name string) string {
	n := e.scene.numbers
	switch e.file.Kind() {
	case format.KindOffsetIndex:
		return e.offsetIndexWords(name, l.Number)
	case format.KindTimeIndex:
		return e.timeIndexWords(name, l.Number)
	case format.KindTxnIndex:
		return txnIndexWords(name, l.Number, n)
	case format.KindProducerSnapshot:
		return e.snapshotWords(l, name)
	case format.KindLeaderEpochCheckpoint:
		return epochWords(name, e.scene.columns)
	case format.KindRecoveryPointCheckpoint, format.KindLogStartOffsetCheckpoint, format.KindReplicationOffsetCheckpoint,
		format.KindCleanerOffsetCheckpoint:
		return checkpointWords(e.file.Kind(), name, e.scene.columns)
	case format.KindPartitionMetadata:
		return partitionMetadataWords(name)
	case format.KindMetaProperties:
		return propertyWords(string(l.Bytes))
	case format.KindQuorumState:
		return quorumWords(l.Bytes)
	case format.KindCleanShutdown:
		return "the broker was shut down cleanly, so nothing is recovered at its next start; the epoch tells the " +
			"controller which life of the broker ended"
	}
	return ""
}

// absolute words a relative offset.
func (e *explainer) absolute(relative int64) string {
	if e.base < 0 {
		return "relative to the segment's base offset, which the name does not tell: give --base-offset N"
	}
	return fmt.Sprintf("offset %d + %d = %d", e.base, relative, e.base+relative)
}

func (e *explainer) offsetIndexWords(name string, v int64) string {
	if name == "relativeOffset" {
		return e.absolute(v) + ": last offset of the batch at the position (before 4.0.1: of the append there)"
	}
	return "byte in the .log; " + e.around.batchAt(v, e.base, e.scene.numbers["relativeOffset"])
}

func (e *explainer) timeIndexWords(name string, v int64) string {
	if name == "timestamp" {
		return instant(v) + ": no record up to the offset is newer"
	}
	text := e.absolute(v)
	if e.base >= 0 {
		text += "; " + e.around.batchOf(e.base+v)
	}
	return text
}

func txnIndexWords(name string, v int64, n map[string]int64) string {
	switch name {
	case "version":
		return "of this entry"
	case "producerId":
		return "whose transaction was aborted"
	case "firstOffset":
		return "where the transaction began; this may be in an earlier segment"
	case "lastOffset":
		return "the ABORT marker"
	case "lastStableOffset":
		if v == n["lastOffset"]+1 {
			return "last offset + 1: no other transaction was open then"
		}
		return "first offset of the earliest other transaction that was open then"
	}
	return ""
}

func (e *explainer) snapshotWords(l *format.Leaf, name string) string {
	v, n := l.Number, e.scene.numbers
	switch name {
	case "version":
		if l.Entry < 0 {
			return "of the format"
		}
	case "crc":
		return fmt.Sprintf("CRC-32C of bytes 6–%d", len(e.data)-1)
	case "count":
		return "producers; the file covers the log up to its name's offset, exclusive"
	case "producerEpoch":
		return "of its last batch or marker"
	case "lastSequence":
		if v == -1 {
			return "no data batch is remembered"
		}
		return fmt.Sprintf("of its last batch; the next one begins with %d", format.NextSequence(int32(v)))
	case "lastOffset":
		if v < 0 {
			return "no data batch is remembered"
		}
		return "last offset of its last batch"
	case "offsetDelta":
		if n["lastOffset"] < 0 {
			return "no data batch is remembered"
		}
		return fmt.Sprintf("that batch began at offset %d with sequence %d", n["lastOffset"]-v,
			format.DecrementSequence(int32(n["lastSequence"]), int32(v)))
	case "timestamp":
		return instant(v) + ": latest of that batch, or of the marker; it expires a day later (producer.id.expiration.ms)"
	case "coordinatorEpoch":
		if v == -1 {
			return "no marker yet"
		}
		return "of the transaction coordinator that wrote the last marker"
	case "currentTxnFirstOffset":
		if v < 0 {
			return "no transaction is open"
		}
		return "an open transaction began here; read_committed consumers wait below it"
	}
	return ""
}

func epochWords(name string, columns map[string]string) string {
	switch name {
	case "version":
		return "of the format"
	case "count":
		return "entries that follow"
	case "epoch":
		return "leader epoch"
	case "startOffset":
		return "first offset of epoch " + columns["epoch"]
	}
	return ""
}

var checkpointMeanings = map[format.Kind]string{
	format.KindRecoveryPointCheckpoint:  "everything below is flushed; after an unclean stop reading begins here",
	format.KindLogStartOffsetCheckpoint: "records below are deleted, though their segment may still be here",
	format.KindReplicationOffsetCheckpoint: "high watermark: all in-sync replicas have what is below, consumers see " +
		"no more",
	format.KindCleanerOffsetCheckpoint: "first dirty offset: below it the log is compacted",
}

func checkpointWords(kind format.Kind, name string, columns map[string]string) string {
	switch name {
	case "version":
		return "of the format"
	case "count":
		return "entries that follow"
	case "topic":
		return "topic"
	case "partition":
		return "partition"
	case "offset":
		return checkpointMeanings[kind] + " (" + columns["topic"] + "-" + columns["partition"] + ")"
	}
	return ""
}

func partitionMetadataWords(name string) string {
	switch name {
	case "version":
		return "of the format"
	case "topicId":
		return "id of the topic; if it is not the one in the cluster's metadata, the broker sets the directory aside " +
			"as -stray"
	}
	return ""
}

// propertyMeanings are those of the keys of meta.properties.
var propertyMeanings = map[string]string{
	"version":      "0: of the ZooKeeper era, 1: of KRaft",
	"broker.id":    "the broker that the directory belongs to",
	"node.id":      "the node that the directory belongs to",
	"cluster.id":   "the cluster; a broker of another one refuses the directory",
	"directory.id": "id of this log directory, which the metadata assigns replicas to",
}

func propertyWords(line string) string {
	line = strings.TrimSpace(line)
	if line == "" {
		return "blank"
	}
	if line[0] == '#' || line[0] == '!' {
		return "comment"
	}
	props, err := format.DecodeProperties([]byte(line))
	if err != nil || len(props) != 1 {
		return ""
	}
	return propertyMeanings[props[0].Key]
}

func quorumWords(line []byte) string {
	q, err := format.DecodeQuorumState(line)
	if err != nil {
		return ""
	}
	leader, voted := "no leader known", "no vote given"
	if q.LeaderID >= 0 {
		leader = "leader " + strconv.Itoa(int(q.LeaderID))
	}
	if q.VotedID >= 0 {
		voted = "voted for " + strconv.Itoa(int(q.VotedID))
	}
	return fmt.Sprintf("what this node last knew of the election: epoch %d, %s, %s", q.LeaderEpoch, leader, voted)
}

// zeroTailWords says why a file may end in zeros.
func zeroTailWords(kind format.Kind) string {
	if kind == format.KindLog {
		return "zeros to the end: room that preallocate=true made, or data that had not reached the disk when the machine " +
			"stopped"
	}
	return "zeros to the end: room for entries to come, which a broker allocates for its active segment"
}

// holeWords is about bytes in which no batch can be read.
func (e *explainer) holeWords() string {
	h := e.scene.part.Hole
	if h.Kind == format.TornTail {
		text := "the beginning of a batch that did not reach the disk whole"
		if h.Expected >= 0 {
			text += fmt.Sprintf("; lost from offset %d on", h.Expected)
		}
		return text + "; a broker that starts after an unclean stop cuts it off"
	}
	if h.Next < 0 {
		return "no batch after it can be read"
	}
	text := fmt.Sprintf("skipped; the next intact batch is at byte %d", h.Next)
	if h.Expected >= 0 && h.NextOffset > h.Expected {
		text += fmt.Sprintf(", so offsets %d–%d are lost", h.Expected, h.NextOffset-1)
	}
	return text
}

// partTitle heads a batch or a hole, and says what is worth knowing of it as a whole.
func (e *explainer) partTitle(p *format.Part) (title string, notes []string) {
	name := e.file.Display
	if p.Hole != nil {
		return fmt.Sprintf("%s, %s at byte %d: %s", name, strings.ReplaceAll(p.Hole.Kind.String(), "-", " "), p.Start,
			bytesOf(p.End-p.Start)), nil
	}
	b := p.Batch
	if b.Legacy() {
		what := "message"
		if b.Codec() != format.CodecNone {
			what = b.Codec().String() + " wrapper"
		}
		return fmt.Sprintf("%s, %s at byte %d: magic %d, %s", name, what, p.Start, b.Magic, bytesOf(b.Size())),
			e.placeNotes(p)
	}
	records := render.Plural(int64(b.Count), "record", "records")
	if b.Codec() != format.CodecNone {
		records += ", " + b.Codec().String()
	}
	title = fmt.Sprintf("%s, batch at byte %d: %s, %s", name, p.Start, records, bytesOf(b.Size()))
	if b.Size() > format.BatchHeaderSize {
		title += fmt.Sprintf(" = %d header + %s", format.BatchHeaderSize, render.Count(b.Size()-format.BatchHeaderSize))
	}
	return title, e.placeNotes(p)
}

// placeNotes say what the index knows of a batch.
func (e *explainer) placeNotes(p *format.Part) []string {
	if e.file.Kind() != format.KindLog {
		return nil
	}
	if p.Start == 0 {
		return []string{"First batch of the segment: no index entry points to a first batch, since a lookup without an " +
			"entry begins at byte 0 anyway."}
	}
	if note := e.around.indexed(p.Start); note != "" {
		return []string{note}
	}
	return nil
}

// plainTitle heads the decompressed records of a batch.
func (e *explainer) plainTitle(b *format.Batch) string {
	return fmt.Sprintf("Decompressed with %s: %s. Positions z+N count in these bytes.", b.Codec(),
		bytesOf(int64(len(e.rr.Plain()))))
}
