package verify

import (
	"errors"
	"fmt"
	"strconv"

	"kseg/format"
	"kseg/render"
	"kseg/state"
)

// checkBatches looks at each batch's header and checksum, and at what the file holds besides batches. The bytes that
// are no sound batch are found by the walk itself (badChecksum and the like, below).
var checkBatches = Check{
	Name:  "batches",
	Group: "batches",
	Codes: []Code{
		{"batch-crc-mismatch", Damage, "the checksum of a batch does not match"},
		{"batch-magic", Damage, "the magic byte of a batch is wrong"},
		{"batch-length", Damage, "the length of a batch is wrong"},
		{"damaged-bytes", Damage, "bytes that are no batch"},
		{"torn-tail", Damage, "the last batch of a file is cut off"},
		{"zero-tail", Damage, "zeros after the last batch"},
		{"batch-codec", Damage, "a compression codec that does not exist"},
		{"batch-count", Damage, "the number of records does not fit the offsets"},
		{"batch-header", Damage, "a field of a batch header holds what no broker writes"},
		{"batch-attributes", Note, "attribute bits that Kafka does not use"},
		{"batch-too-large", Warning, "a batch above --max-message-bytes"},
	},
	Batch: lookAtBatch,
}

func lookAtBatch(p *batchPass) {
	b := p.batch
	if limit := p.opts.MaxMessageBytes; limit > 0 && b.Size() > limit {
		p.found(Finding{Code: "batch-too-large", Place: p.place(),
			Message:  fmt.Sprintf("the batch has %d bytes, more than the limit of %d", b.Size(), limit),
			Evidence: []Evidence{{"size", "at most " + strconv.FormatInt(limit, 10), strconv.FormatInt(b.Size(), 10)}}})
	}
	if b.Plausible() {
		if !b.Legacy() && b.Count == 0 && b.Size() > format.BatchHeaderSize {
			p.found(Finding{Code: "batch-count", Place: p.place(),
				Message: fmt.Sprintf("the header counts no records, but %d bytes of them follow; consumers pass over them",
					b.Size()-format.BatchHeaderSize),
				Evidence: []Evidence{{"records count", "1 or more", "0"}}})
		}
		return
	}
	// The checksum of what is not plausible was found to hold, so these values were written on purpose or before it was
	// made.
	switch {
	case !b.Codec().Known(), b.Legacy() && b.Codec() > format.CodecLZ4:
		p.found(Finding{Code: "batch-codec", Place: p.place(),
			Message: "the attributes name compression codec " + strconv.Itoa(int(b.Codec())) + ", which does not exist; no " +
				"client can read the records",
			Evidence: []Evidence{{"codec", "0 to 4", strconv.Itoa(int(b.Codec()))}}})
	case b.Legacy():
		headerFinding(p, "message", "a well-formed message", "other bytes")
	case b.Count < 0 || b.LastOffsetDelta < 0 || int64(b.Count) > int64(b.LastOffsetDelta)+1:
		p.found(Finding{Code: "batch-count", Place: p.place(),
			Message: fmt.Sprintf("the header counts %d records, but has offsets for %d", b.Count, int64(b.LastOffsetDelta)+1),
			Evidence: []Evidence{{"records count", "0 to " + strconv.FormatInt(int64(b.LastOffsetDelta)+1, 10),
				strconv.Itoa(int(b.Count))}}})
	case b.Attributes&^0x7f != 0:
		p.found(Finding{Code: "batch-attributes", Place: p.place(),
			Message:  "attribute bits are set that no version of Kafka uses; brokers ignore them",
			Evidence: []Evidence{{"attributes", "bits 0 to 6", fmt.Sprintf("%#x", uint16(b.Attributes))}}})
	case b.BaseOffset < 0:
		headerFinding(p, "base offset", "0 or more", strconv.FormatInt(b.BaseOffset, 10))
	default:
		headerFinding(p, "producer id, epoch and base sequence", "-1 or more",
			fmt.Sprintf("%d, %d, %d", b.ProducerID, b.ProducerEpoch, b.BaseSequence))
	}
}

func headerFinding(p *batchPass, what, want, got string) {
	p.found(Finding{Code: "batch-header", Place: p.place(), Message: "the " + what + " cannot be right, though the " +
		"checksum holds",
		Evidence: []Evidence{{what, want, got}}})
}

// badChecksum reports a batch whose checksum does not match. next is the batch after it, nil if there is none.
func (p *partition) badChecksum(seg *segment, data []byte, b, next *format.Batch) {
	place := seg.batchPlace(b)
	nextOffset := int64(-1)
	if next != nil && next.BaseOffset > b.BaseOffset {
		nextOffset = next.BaseOffset
		place.LastOffset = next.BaseOffset - 1
	}
	if end := p.endOf(seg); next == nil && end > place.FirstOffset {
		place.LastOffset = end - 1
	}
	last, flipped := unflipped(b)
	if flipped {
		place.LastOffset = last
	}
	f := Finding{Code: "batch-crc-mismatch", Severity: Damage, Place: place, logPos: b.Pos,
		Next:     p.putBack(flipped),
		Evidence: []Evidence{{"crc", fmt.Sprintf("%#08x", b.ComputeCRC()), fmt.Sprintf("%#08x", b.CRC)}}}
	if from := max(seg.nextOffset, 0); from < place.FirstOffset {
		f.from, f.until = from, max(place.FirstOffset, place.LastOffset)+1 // the offset may be that of a message, its last
	}
	f.Message = "the checksum does not match: stored " + f.Evidence[0].Got + ", computed " + f.Evidence[0].Want
	if p.counts[fileCode{place.File, f.Code}] < mostKept {
		cause, evidence := diagnose(data, b)
		if cause != "" {
			f.Message += "; " + cause
		}
		f.Evidence = append(f.Evidence, evidence...)
	}
	if n := place.LastOffset - place.FirstOffset + 1; n > 0 {
		f.Message += "; " + plural(n, "offset is", "offsets are") + " in doubt"
	}
	if next != nil {
		goesOn(&f, next.Pos, next.BaseOffset)
	}
	p.found(seg, f)
	seg.damaged = true
	p.skip(seg, b.Pos, b.Size(), b, nextOffset)
}

// putBack is the command that writes a copy in which what the checksum proves is put right; "" if nothing is proven.
func (p *partition) putBack(proven bool) string {
	switch {
	case !proven:
		return ""
	case p.alone != nil:
		return "kseg salvage --fix-bits -o DIR " + render.ShellWord(p.alone.Display)
	}
	return "kseg salvage --fix-bits -o DIR " + render.ShellWord(p.dir.Display)
}

// goesOn says where the next intact batch is.
func goesOn(f *Finding, pos, offset int64) {
	place := fmt.Sprintf("byte %d, offset %d", pos, offset)
	f.Message += "; reading resumes at " + place
	f.Evidence = append(f.Evidence, Evidence{"next intact batch", "", place})
}

// unflipped is the last offset of a batch if one flipped bit is all that is wrong with it.
func unflipped(b *format.Batch) (int64, bool) {
	const from, to = 23, 27 // the bytes of the last offset delta
	pos, bit, ok := b.FlippedBit()
	if !ok || b.Legacy() {
		return 0, false
	}
	delta := b.LastOffsetDelta
	if at := pos - b.Pos; at >= from && at < to {
		delta ^= 1 << (8*(to-1-at) + int64(bit))
	}
	return b.BaseOffset + int64(delta), true
}

// batchPlace is the place of a batch that cannot be read: a compressed message has only its last offset in the header.
func (s *segment) batchPlace(b *format.Batch) Place {
	place := at(s.log.Rel, b)
	if b.Legacy() && b.Count < 0 {
		place.FirstOffset = min(place.FirstOffset, s.nextOffset)
	}
	return place
}

// endOf is the offset after the segment, by the name of the next one or of a producer snapshot; -1 if neither is
// there.
func (p *partition) endOf(seg *segment) int64 {
	if !seg.last {
		return seg.dir.Next.Base
	}
	end := int64(-1)
	for _, f := range p.dir.All() {
		if f.Name.Of(format.KindProducerSnapshot) {
			end = max(end, f.Name.Base)
		}
	}
	return end
}

// skip tells the followers of bytes that they will not see.
func (p *partition) skip(seg *segment, pos, n int64, b *format.Batch, nextOffset int64) {
	for _, f := range p.followers {
		f.skip(seg, pos, n, b, nextOffset)
	}
}

// badMagic reports a batch that is sound but for its magic byte.
func (p *partition) badMagic(seg *segment, b, v2 *format.Batch) {
	p.found(seg, Finding{Code: "batch-magic", Place: at(seg.log.Rel, v2), logPos: b.Pos, Next: p.putBack(true),
		Message: fmt.Sprintf("the magic byte is %d, but all else is a record batch of magic 2 with a matching checksum, "+
			"which leaves out that byte%s", b.Magic, p.magicEffect(seg, b.Magic)),
		Evidence: []Evidence{{"magic", "2", strconv.Itoa(int(b.Magic))}}})
}

// magicEffect says what a broker makes of a magic byte that is not 2.
func (p *partition) magicEffect(seg *segment, magic int8) string {
	if magic > 2 {
		return "; brokers serve the batch as it is, and consumers refuse it"
	}
	return "; a broker takes it for an old message and fails"
}

// badLength reports a batch whose length field is wrong; b is the batch as it really is.
func (p *partition) badLength(seg *segment, b *format.Batch) {
	stored := strconv.Itoa(int(int32(be32(b.Raw[8:]))))
	want := strconv.FormatInt(b.Size()-format.LogOverhead, 10)
	p.found(seg, Finding{Code: "batch-length", Place: seg.batchPlace(b), logPos: b.Pos, Next: p.putBack(true),
		Message: "the length field says " + stored + ", but the checksum, which leaves it out, matches with " + want +
			": no record is lost, yet a broker cannot find the batches after it",
		Evidence: []Evidence{{"batch length", want, stored}}})
}

// leastZeroed is how many zeros at the end of a batch are taken for bytes that did not reach the disk.
const leastZeroed = 32

// zeroed is the torn tail that begins at pos, if the last segment ends in zeros that began in the middle of a batch: a
// crash came when the file had its length but not yet all of its bytes.
func (p *partition) zeroed(seg *segment, data []byte, pos, expected int64) (torn *format.Hole, there []byte) {
	end := min(int64(len(data)), seg.log.DataEnd())
	for end > pos && data[end-1] == 0 {
		end--
	}
	if !seg.last || p.shutdown == cleanShutdown || end <= pos || int64(len(data))-end < leastZeroed {
		return nil, nil
	}
	scan := format.NewScanner(data[:end], pos, seg.base)
	if !scan.Next() || scan.Hole() == nil || scan.Hole().Kind != format.TornTail || scan.Hole().Pos != pos {
		return nil, nil
	}
	hole := *scan.Hole()
	if expected >= 0 && hole.Len >= 8 && int64(be64(data[pos:])) < expected {
		return nil, nil
	}
	hole.Len, hole.Expected = int64(len(data))-pos, expected
	return &hole, data[:end]
}

// hole reports bytes that are no batch: in the middle of a file, or at its end.
func (p *partition) hole(seg *segment, data []byte, h *format.Hole) {
	size := int64(len(data))
	if h.Kind == format.TornTail && seg.growing(size) {
		seg.tail = h
		return
	}
	if h.Kind == format.Damage && h.Next < 0 {
		if torn, there := p.zeroed(seg, data, h.Pos, h.Expected); torn != nil {
			h, data = torn, there
		}
	}
	seg.damaged = true
	if h.Next < 0 {
		seg.tail = h
	}
	f := Finding{Place: seg.place(h.Pos, h.Len, h.Expected, -1), logPos: h.Pos}
	switch h.Kind {
	case format.ZeroTail:
		p.zeroTail(seg, size, h, &f)
	case format.TornTail:
		p.tornTail(seg, data, h, &f)
	default:
		p.damagedBytes(data, h, &f)
	}
	if end := p.endOf(seg); h.Next < 0 && f.FirstOffset >= 0 && f.LastOffset < 0 && end > f.FirstOffset {
		f.LastOffset = end - 1
	}
	f.from, f.until = max(h.Expected, 0), max(h.Expected, f.LastOffset, 0)+1
	found := p.found(seg, f)
	if h.Next < 0 {
		seg.tailFinding = found
	}
	p.skip(seg, h.Pos, h.Len, nil, h.NextOffset)
}

func (p *partition) damagedBytes(data []byte, h *format.Hole, f *Finding) {
	f.Code, f.Severity = "damaged-bytes", Damage
	what := describe(data, h.Pos, h.Pos+h.Len)
	f.Message = plural(h.Len, "byte is", "bytes are") + " no batch: " + what
	if h.NextOffset > h.Expected && h.Expected >= 0 {
		f.LastOffset = h.NextOffset - 1
		f.Message += "; " + plural(h.NextOffset-h.Expected, "offset is", "offsets are") + " lost"
	}
	switch {
	case h.GaveUp:
		f.Message += "; the search for an intact batch after it was given up after too many false beginnings"
	case h.Next < 0:
		f.Message += "; no intact batch follows"
	default:
		goesOn(f, h.Next, h.NextOffset)
		if h.NextOffset <= h.Expected {
			f.FirstOffset = -1
		}
	}
	var why *format.Error
	if errors.As(h.Err, &why) {
		f.Evidence = append(f.Evidence, Evidence{why.What, why.Want, why.Got})
	}
}

func (p *partition) tornTail(seg *segment, data []byte, h *format.Hole, f *Finding) {
	f.Code, f.Severity = "torn-tail", Warning
	rest := data[h.Pos:]
	if len(rest) >= 8 {
		f.FirstOffset = int64(be64(rest))
	}
	size := "an unknown number of"
	if len(rest) >= format.LogOverhead {
		size = strconv.FormatInt(int64(be32(rest[8:]))+format.LogOverhead, 10)
	}
	switch {
	case len(rest) >= 27 && rest[16] == 2:
		f.LastOffset = f.FirstOffset + int64(be32(rest[23:]))
	case len(rest) >= 8 && (len(rest) > 16 && rest[16] < 2 || len(rest) <= 16 && p.lastBatch.Legacy() && seg.batches > 0):
		// What the header of a message has is its last offset.
		f.FirstOffset, f.LastOffset = min(f.FirstOffset, max(h.Expected, 0)), f.FirstOffset
	}
	f.Message = fmt.Sprintf("the last batch is cut off: %d of %s bytes are there", len(rest), size)
	f.Evidence = []Evidence{{"bytes of the batch", size, itoa(int64(len(rest)))}}
	if h.Len > int64(len(rest)) {
		f.Message += ", and zeros after them up to the end of the file"
	}
	switch {
	case !seg.last:
		f.Severity = Damage
		f.Message += "; this is not the last segment, so no crash explains it"
	case p.shutdown == cleanShutdown:
		f.Severity = Damage
		f.Message += "; the broker stopped cleanly, so no crash explains it"
	default:
		p.promised(f, h.Expected)
	}
}

// promised makes damage of an end that a crash left, if records were committed after it, or on the disk.
func (p *partition) promised(f *Finding, end int64) {
	for _, kind := range []format.Kind{format.KindReplicationOffsetCheckpoint, format.KindRecoveryPointCheckpoint} {
		if _, e, ok := p.entry(kind); ok && end >= 0 && e.Offset > end {
			f.Severity = Damage
			f.Message += fmt.Sprintf("; by the %s all below offset %d was there, so that %s gone", kind.Info().Name, e.Offset,
				plural(e.Offset-end, "offset is", "offsets are"))
			f.LastOffset = max(f.LastOffset, e.Offset-1)
			return
		}
	}
}

func (p *partition) zeroTail(seg *segment, size int64, h *format.Hole, f *Finding) {
	f.Code, f.Severity = "zero-tail", Warning
	f.Message = plural(h.Len, "zero byte follows", "zero bytes follow") + " the last batch"
	switch free, why := p.keptFree(seg, size); {
	case !seg.last:
		f.Severity = Damage
		f.Message += "; this is not the last segment, which alone can be preallocated"
	case p.shutdown == cleanShutdown:
		f.Severity = Damage
		f.Message += "; the broker stopped cleanly, so no crash explains it"
	case free:
		f.Severity = Note
		f.FirstOffset = -1
		f.Message += ", " + why
	default:
		f.Message += "; " + why + ", so this is no room kept free: a crash came before the data reached the disk"
		if p.endOf(seg) > h.Expected && h.Expected >= 0 {
			f.Severity = p.lost(h.Expected) // a snapshot knows what was there
		}
		p.promised(f, h.Expected)
	}
}

// keptFree reports whether zeros after the last batch are room that preallocate=true keeps free in the last segment,
// and why. The topic's setting says so if the metadata is there; it may be the broker's, which shows in a log of
// exactly segment.bytes. Else such a log is at least as long as the segments before it, and its indexes were not
// trimmed either.
func (p *partition) keptFree(seg *segment, size int64) (free bool, why string) {
	settings := p.driver.settings(p.dir.Parent)
	if settings.Image != nil && settings.Image.Topic(p.dir.Topic) != nil {
		if preallocate := settings.Topic(p.dir.Topic, "preallocate"); preallocate.Bool() {
			return true, "as the topic's preallocate=true leaves them in a segment that is still written to"
		} else if preallocate.Source == state.FromDefault && size == settings.Topic(p.dir.Topic, "segment.bytes").Int() {
			return true, "and the log has just segment.bytes, as with preallocate=true in a segment that is still written to"
		}
		return false, "the topic's preallocate is false"
	}
	for s := seg.dir.Prev; s != nil; s = s.Prev {
		if s.Log.Size > size {
			return false, "a segment before is longer than this log"
		}
	}
	if !preallocated(seg.index, offsetSlot) || !preallocated(seg.timeIndex, timeSlot) {
		return false, "the indexes are not preallocated"
	}
	return true, "as with preallocate=true in a segment that is still written to"
}

// preallocated reports whether an index ends in zero slots, has none, or is not there at all.
func preallocated(index []byte, width int) bool {
	if len(index) == 0 {
		return true
	}
	n := len(index) / width * width
	return n > 0 && zeros(index[n-width:n])
}
