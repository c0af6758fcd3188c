package dump

import (
	"strconv"

	"kseg/format"
	"kseg/render"
)

// appendBatchText appends the line kafka-dump-log prints for a batch, with its newline.
func appendBatchText(dst []byte, b *format.Batch) []byte {
	if b.Legacy() {
		return appendLegacyBatchText(dst, b)
	}
	dst = appendInt(append(dst, "baseOffset: "...), b.BaseOffset)
	dst = appendInt(append(dst, " lastOffset: "...), b.LastOffset)
	dst = appendInt(append(dst, " count: "...), int64(b.Count))
	dst = appendInt(append(dst, " baseSequence: "...), int64(b.BaseSequence))
	dst = appendInt(append(dst, " lastSequence: "...), int64(b.LastSequence()))
	dst = appendInt(append(dst, " producerId: "...), b.ProducerID)
	dst = appendInt(append(dst, " producerEpoch: "...), int64(b.ProducerEpoch))
	dst = appendInt(append(dst, " partitionLeaderEpoch: "...), int64(b.LeaderEpoch))
	dst = strconv.AppendBool(append(dst, " isTransactional: "...), b.Transactional())
	dst = strconv.AppendBool(append(dst, " isControl: "...), b.Control())
	dst = append(dst, " deleteHorizonMs: "...)
	dst = appendOptionalLong(dst, b.BaseTimestamp, b.HasDeleteHorizon())
	return appendBatchEnd(dst, b)
}

func appendLegacyBatchText(dst []byte, b *format.Batch) []byte {
	return appendBatchEnd(appendInt(append(dst, "offset: "...), b.LastOffset), b)
}

// appendBatchEnd appends what both kinds of line end in.
func appendBatchEnd(dst []byte, b *format.Batch) []byte {
	dst = appendInt(append(dst, " position: "...), b.Pos)
	dst = append(append(dst, ' '), b.TimestampType().String()...)
	dst = appendInt(append(dst, ": "...), b.MaxTimestamp)
	dst = appendInt(append(dst, " size: "...), b.Size())
	dst = appendInt(append(dst, " magic: "...), int64(b.Magic))
	dst = append(append(dst, " compresscodec: "...), b.Codec().String()...)
	dst = appendInt(append(dst, " crc: "...), int64(b.CRC))
	return append(dst, " isvalid: "...)
}

// appendOptionalLong prints a Java OptionalLong.
func appendOptionalLong(dst []byte, v int64, present bool) []byte {
	if !present {
		return append(dst, "OptionalLong.empty"...)
	}
	return append(appendInt(append(dst, "OptionalLong["...), v), ']')
}

func appendInt(dst []byte, v int64) []byte { return strconv.AppendInt(dst, v, 10) }

// appendRecordMeta appends a record line up to the header keys (magic 2) or the checksum (magic 0 and 1).
func (p *textPrinter) appendRecordMeta(dst []byte, b *format.Batch, r *format.Record) []byte {
	dst = appendInt(append(dst, "| offset: "...), r.Offset)
	dst = append(append(dst, ' '), b.TimestampType().String()...)
	dst = appendInt(append(dst, ": "...), r.Timestamp)
	dst = appendInt(append(dst, " keySize: "...), int64(r.KeySize))
	dst = appendInt(append(dst, " valueSize: "...), int64(r.ValueSize))
	if b.Legacy() {
		dst = strconv.AppendBool(append(dst, " isValid: "...), r.Valid)
		return appendInt(append(dst, " crc: "...), int64(r.CRC))
	}
	dst = appendInt(append(dst, " sequence: "...), int64(r.Sequence))
	dst = append(dst, " headerKeys: ["...)
	headers := r.Headers
	for i := 0; i < r.HeaderCount; i++ {
		if i > 0 {
			dst = append(dst, ',')
		}
		var key []byte
		key, _, headers = format.NextHeader(headers)
		dst = p.spill.Append(dst, key, p.safeText)
	}
	return append(dst, ']')
}

// safeText appends text as the real tool does, and escapes it unless that is wanted.
func (p *textPrinter) safeText(dst, b []byte) []byte {
	if p.opts.Payload == render.PayloadRaw {
		return format.AppendJavaUTF8(dst, b)
	}
	p.scratch = format.AppendJavaUTF8(p.scratch[:0], b)
	return render.AppendEscaped(dst, p.scratch)
}

// appendPayload appends the key and value parts of a record line.
func (p *textPrinter) appendPayload(dst []byte, r *format.Record) []byte {
	o := p.opts
	if r.Key != nil {
		dst = o.KeyDecoder.appendText(append(dst, " key: "...), r.Key, o.Payload, p.spill)
	}
	if r.Value != nil {
		dst = o.ValueDecoder.appendText(append(dst, " payload: "...), r.Value, o.Payload, p.spill)
	}
	return dst
}
