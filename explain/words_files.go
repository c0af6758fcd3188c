package explain

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"kseg/format"
	"kseg/render"
)

// fileWords is about the fields of all files but segments.
func (e *explainer) fileWords(l *format.Leaf, name string) string {
	if tell := wordsOf[e.file.Kind()]; tell != nil {
		return tell(e, l, name)
	}
	return e.textWords(name)
}

// wordsOf tells what the fields of a kind mean, where that takes more than the tables of textWords.
var wordsOf = map[format.Kind]func(e *explainer, l *format.Leaf, name string) string{
	format.KindOffsetIndex:      (*explainer).offsetIndexWords,
	format.KindTimeIndex:        (*explainer).timeIndexWords,
	format.KindTxnIndex:         (*explainer).txnIndexWords,
	format.KindProducerSnapshot: (*explainer).snapshotWords,
	format.KindMetaProperties:   (*explainer).propertyWords,
	format.KindQuorumState:      (*explainer).quorumWords,
	format.KindCleanShutdown: func(*explainer, *format.Leaf, string) string {
		return "the broker was shut down cleanly, so nothing is recovered at its next start; the epoch tells the " +
			"controller which life of the broker ended"
	},
}

// textWords is about the columns of text files; their meanings may name other columns of the line.
func (e *explainer) textWords(name string) string {
	meaning := cmp.Or(meanings[e.file.Kind()][name], columnMeanings[name])
	c := e.scene.columns
	return strings.NewReplacer("{topic}", c["topic"], "{partition}", c["partition"], "{epoch}",
		c["epoch"]).Replace(meaning)
}

// absolute words a relative offset.
func (e *explainer) absolute(relative int64) string {
	if e.base < 0 {
		return "relative to the segment's base offset, which the name does not tell: give --base-offset N"
	}
	return fmt.Sprintf("offset %d + %d = %d", e.base, relative, e.base+relative)
}

func (e *explainer) offsetIndexWords(l *format.Leaf, name string) string {
	v := l.Number
	if name == "relativeOffset" {
		return e.absolute(v) + ": last offset of the batch at the position (before 4.0.1: of the append there)"
	}
	return "byte in the .log; " + e.around.batchAt(v, e.base, e.scene.numbers["relativeOffset"])
}

func (e *explainer) timeIndexWords(l *format.Leaf, name string) string {
	v := l.Number
	if name == "timestamp" {
		return instant(v) + ": no record up to the offset is newer"
	}
	text := e.absolute(v)
	if e.base >= 0 {
		text += "; " + e.around.batchOf(e.base+v)
	}
	return text
}

func (e *explainer) txnIndexWords(l *format.Leaf, name string) string {
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
		if l.Number == e.scene.numbers["lastOffset"]+1 {
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
	case "producerId":
		return "whose state this is"
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

// columnMeanings are those of columns that all text files have.
var columnMeanings = map[string]string{
	"version": "of the format", "count": "entries that follow", "topic": "topic", "partition": "partition",
}

// meanings are those of columns and lines, by kind; {topic} stands for what that column of the line holds.
var meanings = map[format.Kind]map[string]string{
	format.KindLeaderEpochCheckpoint: {"epoch": "leader epoch", "startOffset": "first offset of epoch {epoch}"},
	format.KindRecoveryPointCheckpoint: {"offset": "everything below is flushed; after an unclean stop reading begins " +
		"here ({topic}-{partition})"},
	format.KindLogStartOffsetCheckpoint: {"offset": "records below are deleted, though their segment may still be here " +
		"({topic}-{partition})"},
	format.KindReplicationOffsetCheckpoint: {"offset": "high watermark: all in-sync replicas have what is below, " +
		"consumers see no more ({topic}-{partition})"},
	format.KindCleanerOffsetCheckpoint: {"offset": "first dirty offset: below it the log is compacted " +
		"({topic}-{partition})"},
	format.KindPartitionMetadata: {
		"versionName": "a broker does not look at the name", "topicIdName": "a broker does not look at the name",
		"topicId": "id of the topic; if it is not the one in the cluster's metadata, the broker sets the directory aside " +
			"as -stray"},
}

// propertyMeanings are those of the keys of meta.properties.
var propertyMeanings = map[string]string{
	"version":      "0: of the ZooKeeper era, 1: of KRaft",
	"broker.id":    "the broker that the directory belongs to",
	"node.id":      "the node that the directory belongs to",
	"cluster.id":   "the cluster; a broker of another one refuses the directory",
	"directory.id": "id of this log directory, which the metadata assigns replicas to",
}

func (e *explainer) propertyWords(l *format.Leaf, _ string) string {
	line := strings.TrimSpace(string(l.Bytes))
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

func (e *explainer) quorumWords(l *format.Leaf, _ string) string {
	q, err := format.DecodeQuorumState(l.Bytes)
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
