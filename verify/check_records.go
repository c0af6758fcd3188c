package verify

import (
	"errors"
	"fmt"

	"kseg/format"
	"kseg/render"
)

// checkRecords looks at the records of each batch, after decompression.
var checkRecords = Check{
	Name:  "records",
	Group: "records",
	Level: Records,
	Codes: []Code{
		{"records-undecodable", Damage, "the compressed records cannot be decompressed"},
		{"record-malformed", Damage, "a record breaks the format"},
		{"record-offset", Damage, "the offset of a record is not in its batch, or not above the one before"},
		{"record-crc-mismatch", Damage, "the checksum of a message inside a compressed one does not match"},
		{"batch-max-timestamp", Damage, "the largest timestamp of a batch is not that of its records"},
		{"control-record", Damage, "a control record cannot be read"},
		{"timestamp-unit", Note, "timestamps that seem to be seconds, microseconds or nanoseconds"},
		{"timestamp-future", Note, "timestamps in the future"},
	},
	Batch: lookAtRecords,
}

// recordFacts are what one pass over the records of a batch gives.
type recordFacts struct {
	n            int32
	first, last  int64 // offsets
	maxTimestamp int64
	maxOffset    int64 // of the record with the largest timestamp
	minTimestamp int64 // of those that have one; -1 if none has
	minOffset    int64
	badOffset    int64 // the first offset that is out of range or not above the one before, -1 if there is none
	badCRC       int64 // offset of the first inner message whose checksum does not match, -1 if there is none
	control      error // what is wrong with the first control record
	err          error
}

// readRecords reads the records of b into w.facts. A compressed message of magic 0 or 1 learns from them which offset
// it begins with and how many messages it holds.
func (w *worker) readRecords(b *format.Batch) {
	defer w.reader.Release() // another worker may wait to read a very large batch
	f := &w.facts
	*f = recordFacts{first: -1, last: -1, maxTimestamp: -1, minTimestamp: -1, badOffset: -1, badCRC: -1}
	var rec format.Record
	w.reader.Reset(b)
	low, high := b.BaseOffset, b.LastOffset
	if b.Legacy() && b.Count < 0 {
		low = 0
	}
	before := low - 1
	for w.reader.Next(&rec) {
		if f.n == 0 {
			f.first = rec.Offset
		}
		if b.Control() && f.control == nil {
			f.control = w.decoder.ControlError(b, rec.Key, rec.Value)
		}
		f.n++
		if (rec.Offset <= before || rec.Offset > high) && f.badOffset < 0 {
			f.badOffset = rec.Offset
		}
		before = rec.Offset
		if rec.Timestamp > f.maxTimestamp {
			f.maxTimestamp, f.maxOffset = rec.Timestamp, rec.Offset
		}
		if rec.Timestamp >= 0 && (rec.Timestamp < f.minTimestamp || f.minTimestamp < 0) {
			f.minTimestamp, f.minOffset = rec.Timestamp, rec.Offset
		}
		if !rec.Valid && f.badCRC < 0 {
			f.badCRC = rec.Offset
		}
	}
	f.last, f.err = before, w.reader.Err()
	w.pass.records = f
	if b.Legacy() && b.Count < 0 && f.n > 0 {
		b.BaseOffset, b.Count = f.first, f.n
	}
}

// open learns which offset a compressed message begins with.
func (w *worker) open(b *format.Batch) {
	if b.Legacy() && b.Count < 0 && b.Valid() {
		w.readRecords(b)
	}
}

func lookAtRecords(p *batchPass) {
	f, b := p.records, p.batch
	if f == nil {
		return
	}
	if errors.Is(f.err, format.ErrTooLarge) {
		p.run.notRead = append(p.run.notRead, fmt.Errorf("the batch at byte %d: %w; raise --max-batch-bytes to read it",
			b.Pos, f.err))
		return
	}
	if !b.Plausible() && (!b.Legacy() || b.Codec() > format.CodecLZ4) {
		return // the header is what is wrong with it
	}
	switch {
	case f.err != nil:
		recordsFinding(p, f)
		return
	case f.badOffset >= 0:
		p.found(Finding{Code: "record-offset", Place: p.place(),
			Message: fmt.Sprintf("a record has offset %d, which is not between its batch's first and last offset or not above "+
				"that of the record before", f.badOffset),
			Evidence: []Evidence{{"record offset", fmt.Sprintf("%d to %d, rising", b.BaseOffset, b.LastOffset),
				itoa(f.badOffset)}}})
	case b.Legacy() && b.Codec() != format.CodecNone && f.n > 0 && f.last != b.LastOffset:
		p.found(Finding{Code: "record-offset", Place: p.place(),
			Message: fmt.Sprintf("the compressed message has offset %d, but the last one in it %d: the checksum leaves out "+
				"the offset", b.LastOffset, f.last),
			Evidence: []Evidence{{"offset", itoa(f.last), itoa(b.LastOffset)}}})
	case f.badCRC >= 0:
		p.found(Finding{Code: "record-crc-mismatch", Place: p.place(),
			Message:  fmt.Sprintf("the message of offset %d inside the compressed one does not match its checksum", f.badCRC),
			Evidence: []Evidence{{"message", "a matching CRC-32", "another one, at offset " + itoa(f.badCRC)}}})
	case f.control != nil:
		p.found(Finding{Code: "control-record", Place: p.place(), Message: "the control record cannot be read: " +
			format.ReasonOf(f.control)})
	}
	lookAtTimestamps(p, f)
}

// recordsFinding reports records that stop before their end.
func recordsFinding(p *batchPass, f *recordFacts) {
	b := p.batch
	code := "record-malformed"
	var e *format.Error
	errors.As(f.err, &e)
	of := ""
	if b.Count >= 0 {
		of = fmt.Sprintf(" of %d", b.Count)
	}
	message := fmt.Sprintf("the records cannot be read beyond the first %d%s: %s", f.n, of, f.err)
	if errors.Is(f.err, format.ErrCodec) {
		code = "records-undecodable"
		why := e.Got // what the library says
		if e.Want != "" || why == "" {
			why = format.ReasonOf(f.err)
		}
		message = fmt.Sprintf("the %s data cannot be decompressed, though the checksum of the batch holds: %s", b.Codec(),
			why)
		if b.Magic == 1 && errors.Is(f.err, format.ErrLZ4Header) {
			message += "; clients of Kafka before 0.10 wrote such a checksum (KAFKA-3160), which is read in messages of " +
				"magic 0 only"
		}
	}
	finding := Finding{Code: code, Place: p.place(), Message: message + "; consumers stop here"}
	if e != nil {
		finding.Evidence = []Evidence{{e.What, e.Want, e.Got}}
	}
	p.found(finding)
}

// lookAtTimestamps compares the header's largest timestamp with the records', and looks for units other than
// milliseconds.
func lookAtTimestamps(p *batchPass, f *recordFacts) {
	b := p.batch
	if f.n == 0 {
		return
	}
	if b.TimestampType() == format.CreateTime && f.maxTimestamp != b.MaxTimestamp {
		p.found(Finding{Code: "batch-max-timestamp", Place: p.place(),
			Message: fmt.Sprintf("the header says that the largest timestamp is %s, but that of the records is %s; lookups by "+
				"time and retention use the header", instant(b.MaxTimestamp), instant(f.maxTimestamp)),
			Evidence: []Evidence{{"max timestamp", itoa(f.maxTimestamp), itoa(b.MaxTimestamp)}}})
		return
	}
	if f.minTimestamp < 0 {
		return
	}
	if unit := oddUnit(f.minTimestamp); unit != "" {
		timestampFinding(p, "timestamp-unit", f.minOffset, f.minTimestamp, "is a time of our days in "+unit)
	} else if unit := oddUnit(f.maxTimestamp); unit != "" {
		timestampFinding(p, "timestamp-unit", f.maxOffset, f.maxTimestamp, "is a time of our days in "+unit)
	} else if now := p.opts.Now.UnixMilli(); f.maxTimestamp > now {
		timestampFinding(p, "timestamp-future", f.maxOffset, f.maxTimestamp, "is in the future: until then no retention "+
			"by time deletes the segment or those after it")
	}
}

func timestampFinding(p *batchPass, code string, offset, timestampMs int64, why string) {
	p.found(Finding{Code: code, Place: p.place(), Message: fmt.Sprintf("the timestamp of record %d, %d (%s), %s", offset,
		timestampMs, instant(timestampMs), why), Evidence: []Evidence{{"timestamp", "", itoa(timestampMs)}}})
}

// oddUnit guesses the unit of a timestamp that makes no sense in milliseconds but falls into the years 2001 to 2100 in
// another.
func oddUnit(timestamp int64) string {
	const from, to = 1_000_000_000, 4_102_444_800 // in seconds
	switch {
	case timestamp >= from && timestamp < to:
		return "seconds"
	case timestamp >= from*1e6 && timestamp < to*1e6:
		return "microseconds"
	case timestamp >= from*1e9:
		return "nanoseconds"
	}
	return ""
}

func instant(timestampMs int64) string {
	if timestampMs < 0 {
		return itoa(timestampMs)
	}
	return render.Instant(timestampMs)
}
