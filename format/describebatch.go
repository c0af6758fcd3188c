package format

import "strconv"

// attributeBits are the parts of a batch's attributes.
func attributeBits(v int64, legacy bool) []Bit {
	bit := func(i int) int64 { return v >> i & 1 }
	if legacy {
		return []Bit{{"codec", v & attrCodec}, {"timestampType", bit(3)}, {"unused", v & 0xff >> 4}}
	}
	return []Bit{{"codec", v & attrCodec}, {"timestampType", bit(3)}, {"transactional", bit(4)}, {"control", bit(5)},
		{"deleteHorizon", bit(6)}, {"unused", v & 0xffff >> 7}}
}

// batch describes a record batch (magic 2).
func (d *describer) batch(p *Part, rr *RecordReader) error {
	d.batchHeader(p)
	if !d.ok() {
		return orNil(d.fault)
	}
	b := p.Batch
	if b.Codec() == CodecNone {
		d.records(b)
	} else {
		return d.compressed(b, b.Codec(), rr)
	}
	return orNil(d.fault)
}

// orNil keeps a nil *Error from becoming a non-nil error.
func orNil(e *Error) error {
	if e == nil {
		return nil
	}
	return e
}

// batchHeader describes the 61 bytes of a batch's header, or those of them that are there. A wrong field does not end
// it.
func (d *describer) batchHeader(p *Part) {
	b := p.Batch
	atLeast := func(name string, least int64) func(int64, *Leaf) {
		return func(v int64, l *Leaf) {
			if v < least {
				l.Fault = illegal(name, l, strconv.FormatInt(least, 10)+" or more")
			}
		}
	}
	d.note("baseOffset", TypeInt64, atLeast("base offset", 0))
	d.note("batchLength", TypeInt32, func(v int64, l *Leaf) {
		if l.Fault = p.LengthFault; l.Fault == nil && v < BatchHeaderSize-LogOverhead {
			l.Fault = illegal("batch length", l, "at least 49")
		}
	})
	d.note("partitionLeaderEpoch", TypeInt32, atLeast("partition leader epoch", -1))
	d.note("magic", TypeInt8, func(v int64, l *Leaf) { l.Fault = p.MagicFault })
	d.note("crc", TypeUint32, func(v int64, l *Leaf) { l.Fault = crcFault(b, v, l) })
	d.note("attributes", TypeInt16, func(v int64, l *Leaf) {
		l.Bits = attributeBits(v, false)
		if !b.Codec().Known() {
			l.Fault = illegal("codec", l, "0 to 4 in the lowest three bits")
		}
	})
	d.note("lastOffsetDelta", TypeInt32, atLeast("last offset delta", 0))
	d.note("baseTimestamp", TypeInt64, nil)
	d.note("maxTimestamp", TypeInt64, nil)
	d.note("producerId", TypeInt64, atLeast("producer id", -1))
	d.note("producerEpoch", TypeInt16, atLeast("producer epoch", -1))
	d.note("baseSequence", TypeInt32, atLeast("base sequence", -1))
	d.note("recordsCount", TypeInt32, func(v int64, l *Leaf) {
		if most := int64(b.LastOffsetDelta) + 1; v < 0 || b.LastOffsetDelta >= 0 && v > most {
			l.Fault = illegal("records count", l, "0 to "+strconv.FormatInt(max(most, 0), 10)+" (lastOffsetDelta + 1)")
		}
	})
}

// crcFault compares the stored checksum with the computed one. A wrong magic of the old formats is named there, not
// here.
func crcFault(b *Batch, stored int64, l *Leaf) *Error {
	if !b.Legacy() && len(b.Raw) < BatchHeaderSize {
		return nil
	}
	computed := b.ComputeCRC()
	if b.Legacy() && int8(b.Raw[16]) != b.Magic || int64(computed) == stored {
		return nil
	}
	return &Error{What: "crc", Pos: l.Start, Want: strconv.FormatUint(uint64(computed), 10),
		Got: strconv.FormatInt(stored, 10), Err: ErrChecksum}
}

// records describes plain records up to the end of the buffer.
func (d *describer) records(b *Batch) {
	if b.Count < 0 {
		d.rest("unreadable", RoleUnreadable, &Error{What: "records count", Pos: b.Pos + 57, Want: "0 or more",
			Got: strconv.Itoa(int(b.Count)), Err: ErrValue})
		return
	}
	base, entry := d.prefix, d.proto.Record
	for i := range int(b.Count) {
		if d.pos == len(d.buf) && d.ok() {
			d.fault = &Error{What: "record", Pos: d.at(), Want: strconv.Itoa(int(b.Count)-i) + " more records, as the batch " +
				"header counts",
				Got: "the end of the batch", Err: ErrTruncated}
		}
		if !d.ok() {
			break
		}
		d.prefix, d.proto.Record = base+index("records", i)+".", i
		d.record()
	}
	d.prefix, d.proto.Record = base, entry
	if d.ok() && b.Count > 0 && d.pos < len(d.buf) {
		d.rest("unreadable", RoleUnreadable, &Error{What: "batch", Pos: d.at(), Want: "the end after the last record",
			Got: strconv.Itoa(len(d.buf)-d.pos) + " more bytes", Err: ErrValue})
	}
	d.rest("unreadable", RoleUnreadable, nil)
}

// record describes one record. After a fault the rest of the batch is one leaf.
func (d *describer) record() {
	d.limit = len(d.buf)
	length := d.varint("length", TypeVarint, func(v int64, l *Leaf) {
		if room := int64(d.left() - len(l.Bytes)); v < 0 || v > room {
			l.Fault = illegal("record length", l, "0 to "+strconv.FormatInt(room, 10))
		}
	})
	if d.ok() {
		d.limit = d.pos + int(length)
		d.number("attributes", TypeInt8, nil)
		d.varint("timestampDelta", TypeVarlong, nil)
		d.varint("offsetDelta", TypeVarint, nil)
		d.field("key", RoleKey)
		d.field("value", RoleValue)
		d.headers()
	}
	if d.ok() && d.pos != d.limit {
		d.rest("unreadable", RoleUnreadable, &Error{What: "record", Pos: d.at(), Want: strconv.FormatInt(length, 10) +
			" bytes, as its length says", Got: strconv.FormatInt(length-int64(d.left()), 10), Err: ErrValue})
	}
	d.limit = len(d.buf)
}

// field describes a length and that many bytes; a negative length is null.
func (d *describer) field(name string, role Role) {
	n := d.length(name+"Length", -1<<31)
	d.content(name, n, role)
}

// length emits the varint in front of a content of at most what is left.
func (d *describer) length(name string, least int64) int64 {
	return d.varint(name, TypeVarint, func(v int64, l *Leaf) {
		room := d.left() - len(l.Bytes)
		switch {
		case v < least:
			l.Fault = illegal(name, l, strconv.FormatInt(least, 10)+" or more")
		case v > int64(room):
			l.Fault = &Error{What: name, Pos: l.Start, Want: "at most " + strconv.Itoa(room) + ", the bytes that are left",
				Got: strconv.FormatInt(v, 10), Err: ErrTruncated}
		}
	})
}

func (d *describer) headers() {
	count := d.varint("headersCount", TypeVarint, func(v int64, l *Leaf) {
		if room := int64(d.left() - len(l.Bytes)); v < 0 || v > room {
			l.Fault = illegal("headers count", l, "0 to "+strconv.FormatInt(room, 10))
		}
	})
	base := d.prefix
	for i := 0; int64(i) < count && d.ok(); i++ {
		d.prefix = base + index("headers", i) + "."
		d.content("key", d.length("keyLength", 0), RoleField)
		d.field("value", RoleHeaderValue)
	}
	d.prefix = base
}

// legacyBatch describes a message of magic 0 or 1, and what is inside if it is a wrapper.
func (d *describer) legacyBatch(p *Part, rr *RecordReader) error {
	b := p.Batch
	d.messageHeader(b, p)
	if b.Codec() == CodecNone {
		d.legacyField("key", RoleKey)
		d.legacyField("value", RoleValue)
		d.messageEnd()
		return orNil(d.fault)
	}
	d.legacyField("key", RoleKey)
	size := d.legacyLength("value")
	if !d.ok() {
		d.rest("unreadable", RoleUnreadable, nil)
		return d.fault
	}
	switch fault := d.wrapperFault(b, size); {
	case fault != nil:
		d.content("value", size, RoleCompressed)
		d.rest("unreadable", RoleUnreadable, nil)
		return fault
	case d.pos+int(size) < len(d.buf):
		d.content("value", size, RoleCompressed)
		d.messageEnd()
		return d.fault
	}
	return d.compressed(b, b.Codec(), rr)
}

// wrapperFault is what keeps a wrapper from being opened.
func (d *describer) wrapperFault(b *Batch, size int64) *Error {
	switch {
	case b.Magic < 0:
		return &Error{What: "magic", Pos: b.Pos + 16, Want: "0, 1 or 2", Got: strconv.Itoa(int(b.Magic)), Err: ErrValue}
	case b.Codec() > CodecLZ4:
		return &Error{What: "codec", Pos: b.Pos + 17, Want: "one that magic 0 and 1 can have", Got: b.Codec().String(),
			Err: ErrValue}
	case size < 0:
		return &Error{What: "wrapper value", Pos: b.Pos, Want: "compressed messages", Got: "null", Err: ErrValue}
	}
	return nil
}

// messageHeader describes what stands in front of a message's key. p is nil for a message inside a wrapper.
func (d *describer) messageHeader(b *Batch, p *Part) {
	d.number("offset", TypeInt64, nil)
	d.note("size", TypeInt32, func(_ int64, l *Leaf) {
		if p != nil {
			l.Fault = p.LengthFault
		}
	})
	d.note("crc", TypeUint32, func(v int64, l *Leaf) { l.Fault = crcFault(b, v, l) })
	number := d.number // what is wrong inside a wrapper ends it
	if p != nil {
		number = d.note
	}
	number("magic", TypeInt8, func(v int64, l *Leaf) {
		switch {
		case p == nil && d.proto.Batch.Magic != int8(v):
			l.Fault = illegal("inner magic", l, strconv.Itoa(int(d.proto.Batch.Magic)))
		case p != nil && p.MagicFault != nil:
			l.Fault = p.MagicFault
		case v < 0:
			l.Fault = illegal("magic", l, "0, 1 or 2")
		}
	})
	number("attributes", TypeInt8, func(v int64, l *Leaf) {
		l.Bits = attributeBits(v, true)
		switch {
		case p == nil && b.Codec() != CodecNone:
			l.Fault = illegal("inner message", l, "an uncompressed message")
		case b.Codec() > CodecLZ4:
			l.Fault = illegal("codec", l, "0 to 3 in the lowest three bits")
		}
	})
	if b.Magic == 1 {
		d.number("timestamp", TypeInt64, nil)
	}
}

// legacyField describes an int32 length and that many bytes; a negative length is null.
func (d *describer) legacyField(name string, role Role) {
	d.content(name, d.legacyLength(name), role)
}

func (d *describer) legacyLength(name string) int64 {
	return d.number(name+"Length", TypeInt32, func(v int64, l *Leaf) {
		if room := d.left() - 4; v > int64(room) {
			l.Fault = &Error{What: name + " length", Pos: l.Start, Want: "at most " + strconv.Itoa(room) +
				", the bytes that are left",
				Got: strconv.FormatInt(v, 10), Err: ErrTruncated}
		}
	})
}

// messageEnd describes what is after the value, where nothing should be, or after a fault.
func (d *describer) messageEnd() {
	if d.ok() && d.left() > 0 {
		d.emit("unreadable", d.left(), func(l *Leaf) {
			l.Role = RoleUnreadable
			l.Fault = &Error{What: "message", Pos: l.Start, Want: "the end after the value", Got: strconv.Itoa(len(l.Bytes)) +
				" more bytes", Err: ErrValue}
		})
	}
	d.emit("unreadable", max(d.left(), 0), func(l *Leaf) { l.Role = RoleUnreadable })
}

// messages describes the messages inside a wrapper, up to the end of the buffer.
func (d *describer) messages(outer *Batch) {
	base := d.prefix
	for i := 0; d.pos < len(d.buf) && d.ok(); i++ {
		size, err := innerSize(d.buf, int64(d.pos))
		if err != nil {
			fault, _ := err.(*Error)
			d.rest("unreadable", RoleUnreadable, fault)
			break
		}
		d.prefix, d.proto.Record = base+index("records", i)+".", i
		d.limit = d.pos + int(size)
		inner := decodeLegacy(d.buf[d.pos:], d.buf[d.pos:d.limit], int64(d.pos))
		d.messageHeader(&inner, nil)
		d.legacyField("key", RoleKey)
		d.legacyField("value", RoleValue)
		d.messageEnd()
		d.limit = len(d.buf)
	}
	d.prefix, d.proto.Record = base, -1
	d.rest("unreadable", RoleUnreadable, nil)
}
