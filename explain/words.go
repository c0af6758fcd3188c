package explain

import (
	"fmt"
	"strconv"
	"strings"

	"kseg/format"
	"kseg/render"
	"kseg/schema"
)

// words says what a leaf is for, and whether its value was checked and holds.
func (e *explainer) words(l *format.Leaf, name string) (meaning string, good bool) {
	switch l.Role {
	case format.RoleFrame:
		return frameWords(l, name), false
	case format.RoleCompressed:
		return compressedWords(l, name), false
	case format.RoleZeroTail:
		return zeroTailWords(e.file.Kind()), false
	case format.RoleTornTail, format.RoleDamage:
		return e.holeWords(), false
	case format.RoleUnreadable:
		if l.Fault == nil && uncounted(l.Batch) {
			return "the header counts no record, so nobody reads them", false
		}
		return "cannot be read after the fault", false
	case format.RoleStray:
		return "bytes that belong to no entry; a broker ignores them", false
	}
	if l.Batch == nil {
		checked := e.file.Kind() == format.KindProducerSnapshot && name == "crc"
		return e.fileWords(l, name), checked && l.Fault == nil
	}
	if strings.Contains(l.Path, ".headers[") {
		return headerWords(l, name), false
	}
	switch {
	case l.Batch.Legacy():
		return e.messageWords(l, name)
	case l.Record >= 0:
		return e.recordWords(l, name), false
	}
	return e.batchWords(l, name)
}

// batchWords is about the header of a record batch.
func (e *explainer) batchWords(l *format.Leaf, name string) (string, bool) {
	b := l.Batch
	switch name {
	case "baseOffset":
		return "offset of the first record; set by the leader, and so outside of the CRC", false
	case "batchLength":
		return fmt.Sprintf("bytes that follow; the next batch starts at %d", b.End()), false
	case "partitionLeaderEpoch":
		if l.Number == -1 {
			return "not known", false
		}
		return "epoch of the leader that appended it; outside of the CRC, as the leader sets it after the producer made " +
			"the CRC", false
	case "magic":
		return "record batch, since 0.11; before the CRC and not in it, as it says how all else is read", false
	case "crc":
		return crcWords(b, fmt.Sprintf("CRC-32C of bytes %d–%d, attributes to end: what the producer wrote", b.Pos+21,
			b.End()-1)), l.Fault == nil
	case "attributes":
		return attributeWords(b), false
	case "lastOffsetDelta":
		return lastDeltaWords(b), false
	case "baseTimestamp":
		return baseTimestampWords(b), false
	case "maxTimestamp":
		return maxTimestampWords(b), false
	}
	return producerWords(b, name), false
}

func crcWords(b *format.Batch, covers string) string {
	computed := b.ComputeCRC()
	if computed == b.CRC {
		return fmt.Sprintf("%s; computed 0x%08x: the same", covers, computed)
	}
	text := fmt.Sprintf("%s; stored 0x%08x, computed 0x%08x", covers, b.CRC, computed)
	if pos, bit, ok := b.FlippedBit(); ok {
		text += fmt.Sprintf("; one flipped bit explains it: byte %d, bit %d", pos, bit)
	}
	return text
}

// attributeWords goes through the attributes bit by bit.
func attributeWords(b *format.Batch) string {
	parts := []string{"bits 0–2 codec " + b.Codec().String(), "3 " + b.TimestampType().String()}
	flag := func(set bool, yes, no string) {
		if set {
			parts = append(parts, yes)
		} else {
			parts = append(parts, no)
		}
	}
	flag(b.Transactional(), "4 transactional", "4 not transactional")
	flag(b.Control(), "5 control: markers, no data", "5 data")
	flag(b.HasDeleteHorizon(), "6 delete horizon in baseTimestamp", "6 no delete horizon")
	if unused := b.Attributes &^ 0x7f; unused != 0 {
		parts = append(parts, fmt.Sprintf("unused bits are set: 0x%04x", uint16(unused)))
	}
	return strings.Join(parts, " · ")
}

// uncounted reports whether a batch has bytes where its records would be, but counts none, which the cleaner does not
// write.
func uncounted(b *format.Batch) bool {
	return b != nil && !b.Legacy() && b.Count == 0 && b.Size() > format.BatchHeaderSize
}

func lastDeltaWords(b *format.Batch) string {
	text := fmt.Sprintf("last offset %d + %d = %d", b.BaseOffset, b.LastOffsetDelta, b.LastOffset)
	if uncounted(b) {
		return text
	}
	if gone := int64(b.LastOffsetDelta) + 1 - int64(b.Count); gone > 0 && b.Count >= 0 {
		left := "no record is"
		if b.Count > 0 {
			left = "only " + render.Plural(int64(b.Count), "record is", "records are")
		}
		return fmt.Sprintf("%s; %s left, compaction has removed %s: this number stays", text, left, render.Count(gone))
	}
	return text + "; stays when compaction removes records"
}

func baseTimestampWords(b *format.Batch) string {
	switch {
	case b.HasDeleteHorizon():
		return instant(b.BaseTimestamp) + ": the delete horizon, from which the cleaner may drop the tombstones and " +
			"markers of this batch; records count from it"
	case b.BaseTimestamp == render.NoTimestamp:
		return "none"
	}
	return instant(b.BaseTimestamp) + "; records hold their distance to it"
}

func maxTimestampWords(b *format.Batch) string {
	switch {
	case b.MaxTimestamp == render.NoTimestamp:
		return "none"
	case b.TimestampType() == format.LogAppendTime:
		return instant(b.MaxTimestamp) + ": when the leader appended it, and the timestamp of all records, whatever they say"
	case b.Count == 0 && !uncounted(b):
		return instant(b.MaxTimestamp) + ": the latest of the records that were here; the time index and retention use it"
	}
	return instant(b.MaxTimestamp) + ": the latest record's; the time index and retention use it"
}

// producerWords is about the fields of idempotent and transactional producers, and the count.
func producerWords(b *format.Batch, name string) string {
	switch name {
	case "producerId":
		if b.ProducerID == -1 {
			return "none: the producer was not idempotent, and this is no marker"
		}
		return "with epoch and sequence it lets a broker refuse duplicates and end transactions"
	case "producerEpoch":
		if b.ProducerEpoch == -1 {
			return "none"
		}
		return "a producer of the same id and a lower epoch is fenced"
	case "baseSequence":
		if b.BaseSequence == -1 {
			return "none"
		}
		return fmt.Sprintf("of the first record; the last has %d, so the producer's next batch begins with %d",
			b.LastSequence(), format.NextSequence(b.LastSequence()))
	case "recordsCount":
		switch {
		case uncounted(b):
			return fmt.Sprintf("none, though %s follow: no batch that Kafka writes is like this",
				bytesOf(b.Size()-format.BatchHeaderSize))
		case b.Count == 0:
			return "no record is left: the cleaner keeps the header for its offsets or the producer's last sequence"
		}
		return "records that are here"
	}
	return ""
}

// steps shows how a varint becomes a number: bytes, unsigned, zig-zag.
func steps(l *format.Leaf) string {
	if len(l.Bits) == 0 {
		return ""
	}
	return fmt.Sprintf("0x%x → %d → %d: ", l.Bytes, uint64(l.Bits[0].Value), l.Bits[1].Value)
}

// recordWords is about the fields of a record.
func (e *explainer) recordWords(l *format.Leaf, name string) string {
	b := l.Batch
	switch name {
	case "length":
		return steps(l) + "bytes of this record that follow" + wider(l)
	case "attributes":
		return "unused"
	case "timestampDelta":
		return steps(l) + timestampDeltaWords(b, l.Number)
	case "offsetDelta":
		return steps(l) + fmt.Sprintf("offset %d + %d = %d", b.BaseOffset, l.Number, b.BaseOffset+l.Number) + sequenceWords(b,
			l.Number) + longer(l)
	case "keyLength":
		if l.Number < 0 {
			return steps(l) + "null: no key, so any partition will do and compaction would refuse it"
		}
		return steps(l) + bytesOf(l.Number)
	case "valueLength":
		return steps(l) + valueLengthWords(l.Number, e.scene.key)
	case "headersCount":
		return steps(l) + headersWords(l.Number)
	case "key", "value":
		return ""
	}
	return ""
}

// reach words that so many bytes of a varint hold numbers up to some bound.
func reach(bytes int) string {
	if bytes == 1 {
		return "1 byte reaches"
	}
	return strconv.Itoa(bytes) + " bytes reach"
}

// longer is wider for offset deltas, which only grow within a batch: all the records that follow have the longer delta
// too.
func longer(l *format.Leaf) string {
	text := wider(l)
	if text != "" {
		text += ", so each record from here on is a byte longer"
	}
	return text
}

// wider says why a delta or length is a byte longer than the next smaller one, where it begins to need another byte.
func wider(l *format.Leaf) string {
	if len(l.Bytes) < 2 {
		return ""
	}
	least := int64(1) << (7*(len(l.Bytes)-1) - 1) // the first number that takes so many bytes
	if l.Number != least {
		return ""
	}
	return fmt.Sprintf("; %d is the first that takes %d bytes (7 bits a byte, less one for the sign: %s %d)",
		l.Number, len(l.Bytes), reach(len(l.Bytes)-1), least-1)
}

func timestampDeltaWords(b *format.Batch, delta int64) string {
	if b.TimestampType() == format.LogAppendTime {
		return "does not count: all records of this batch have its append time"
	}
	sum := b.BaseTimestamp + delta
	if delta < 0 {
		return fmt.Sprintf("%d − %d = %s", b.BaseTimestamp, uint64(-delta), instant(sum))
	}
	return fmt.Sprintf("%d + %d = %s", b.BaseTimestamp, delta, instant(sum))
}

func sequenceWords(b *format.Batch, delta int64) string {
	if b.BaseSequence < 0 {
		return ""
	}
	return fmt.Sprintf(", sequence %d", format.IncrementSequence(b.BaseSequence, int32(delta)))
}

func valueLengthWords(n int64, key []byte) string {
	switch {
	case n < 0 && key != nil:
		return "null: a tombstone; in a compacted topic it deletes what the key had before"
	case n < 0:
		return "null: no value"
	case n == 0:
		return "empty, which is not null"
	}
	return bytesOf(n)
}

func headersWords(n int64) string {
	if n == 0 {
		return "no headers"
	}
	return render.Plural(n, "header", "headers")
}

func headerWords(l *format.Leaf, name string) string {
	switch name {
	case "keyLength":
		return steps(l) + bytesOf(l.Number)
	case "valueLength":
		if l.Number < 0 {
			return steps(l) + "null"
		}
		return steps(l) + bytesOf(l.Number)
	}
	return ""
}

// controlWords names the type of a control record.
func controlWords(typ int16) string {
	switch t := schema.ControlType(typ); t {
	case schema.Commit:
		return "COMMIT: the producer's open transaction is committed here"
	case schema.Abort:
		return "ABORT: the producer's open transaction is aborted here; read_committed consumers skip its records"
	default:
		return t.String()
	}
}

// messageWords is about messages of magic 0 and 1.
func (e *explainer) messageWords(l *format.Leaf, name string) (string, bool) {
	b := l.Batch
	inner := l.Plain
	switch name {
	case "offset":
		return e.messageOffsetWords(l), false
	case "size":
		if inner {
			return "bytes of this message that follow", false
		}
		return fmt.Sprintf("bytes that follow; the next message starts at %d", b.End()), false
	case "crc":
		if inner {
			return "CRC-32 of what follows it; a broker does not check it inside a wrapper", l.Fault == nil
		}
		return crcWords(b, fmt.Sprintf("CRC-32 of bytes %d–%d, magic to end", b.Pos+16, b.End()-1)), l.Fault == nil
	case "magic":
		return magicWords(l.Number), false
	case "attributes":
		return messageAttributeWords(b, l), false
	case "timestamp":
		return e.messageTimestampWords(l), false
	case "keyLength":
		if l.Number < 0 {
			return "null: no key", false
		}
		return bytesOf(l.Number), false
	case "valueLength":
		if !inner && b.Codec() != format.CodecNone && l.Number >= 0 {
			return bytesOf(l.Number) + ", the messages inside, compressed with " + b.Codec().String(), false
		}
		return valueLengthWords(l.Number, e.scene.key), false
	}
	return "", false
}

func magicWords(magic int64) string {
	switch magic {
	case 0:
		return "message of before 0.10, without a timestamp"
	case 1:
		return "message of 0.10, with a timestamp"
	}
	return ""
}

func (e *explainer) messageOffsetWords(l *format.Leaf) string {
	b := l.Batch
	switch {
	case l.Plain && b.Magic == 0:
		return "absolute, in this old format also inside a wrapper"
	case l.Plain && b.BaseOffset == 0:
		return fmt.Sprintf("offset %d: a wrapper of offset 0 leaves it as it is", l.Number)
	case l.Plain:
		return fmt.Sprintf("relative: the wrapper has the last one's, %d, so this is %d", b.BaseOffset, l.Number+
			e.rr.OffsetShift())
	case b.Codec() != format.CodecNone:
		return "of the last message inside"
	}
	return "set by the leader, outside of the CRC"
}

func messageAttributeWords(b *format.Batch, l *format.Leaf) string {
	parts := []string{"bits 0–2 codec " + format.Codec(l.Number&7).String()}
	if b.Magic == 1 {
		kind := format.CreateTime
		if l.Number>>3&1 == 1 {
			kind = format.LogAppendTime
		}
		parts = append(parts, "3 "+kind.String())
	}
	return strings.Join(parts, " · ")
}

func (e *explainer) messageTimestampWords(l *format.Leaf) string {
	b := l.Batch
	switch {
	case l.Plain && b.TimestampType() == format.LogAppendTime:
		return "does not count: the wrapper has the append time of all"
	case l.Number == render.NoTimestamp:
		return "none"
	case !l.Plain && b.Codec() != format.CodecNone && b.TimestampType() == format.CreateTime:
		return instant(l.Number) + ": the latest inside"
	}
	return instant(l.Number)
}

// instant is a timestamp as a date, or why it is none.
func instant(timestampMs int64) string {
	if timestampMs < 0 {
		return strconv.FormatInt(timestampMs, 10) + ", which is no time"
	}
	return render.Instant(timestampMs)
}

func bytesOf(n int64) string { return render.Plural(n, "byte", "bytes") }

func entriesOf(n int) string { return render.Plural(int64(n), "entry", "entries") }
