package format

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"strconv"
)

// Record is one record of a batch or one message of magic 0 or 1. Its slices alias the file or the reader's
// decompression buffer and are valid until the reader's next Reset.
type Record struct {
	Offset    int64
	Timestamp int64  // epoch ms; -1: none
	Sequence  int32  // -1: none
	Key       []byte // nil: null
	Value     []byte // nil: null
	// KeySize and ValueSize are the lengths as Kafka tells them, -1 for null. They differ from those of Key and Value only
	// in a message of magic 0 or 1 whose lengths are wrong; then Key and Value are nil, and the reader has an error.
	KeySize, ValueSize int32
	// Headers are the header bytes after the count, already checked; walk them with NextHeader.
	Headers     []byte
	HeaderCount int
	// Pos and Size give the record's bytes, length prefix included: positions in the file, or in the decompressed records
	// if the reader says Compressed.
	Pos  int64
	Size int64
	// Magic is that of the message; CRC and Valid belong to magic 0 and 1 only.
	Magic int8
	CRC   uint32
	Valid bool
}

// NextHeader takes the first header off h, which must be Record.Headers or what an earlier call left.
func NextHeader(h []byte) (key, value, rest []byte) {
	key, h = headerField(h)
	value, h = headerField(h)
	return key, value, h
}

func headerField(h []byte) (field, rest []byte) {
	u, n := Uvarint32(h)
	size := Unzigzag32(u)
	if n <= 0 || size < 0 {
		return nil, h[max(n, 0):]
	}
	h = h[n:]
	if int(size) > len(h) {
		return nil, nil
	}
	return h[:size:size], h[size:]
}

// RecordReader iterates the records of one batch after the other. It owns the decompressors and the buffer, so it is
// kept for many batches; it is not safe for concurrent use.
//
// It accepts and refuses what Kafka's DefaultRecordBatch, DefaultRecord and AbstractLegacyRecordBatch do, but hands out
// the records before a defect instead of none.
type RecordReader struct {
	batch       *Batch
	codecs      decompressor
	buf         []byte // the records, plain
	pos         int
	left        int   // records still to come
	origin      int64 // position of buf[0] in the file; 0 if compressed
	shift       int64 // what a wrapper adds to inner offsets
	compressed  bool
	wrapper     bool
	err         error
	codecFailed bool
	notice      notice
}

// notice says who takes notice of a reader's error.
type notice int8

const (
	noticed       notice = iota // Kafka's reader, too
	noticedInside               // Kafka's reader, when the key or value of the message is looked at
	unnoticed                   // nobody but us
)

// Gate bounds how many very large batches are decompressed at a time: Enter is called before a buffer above 4 MiB is
// made, Leave after it was let go.
type Gate interface {
	Enter()
	Leave()
}

// NewRecordReader makes a reader that decompresses at most maxBytes of a batch; a larger one gives ErrTooLarge. gate
// may be nil.
func NewRecordReader(maxBytes int64, gate Gate) *RecordReader {
	return &RecordReader{codecs: decompressor{max: maxBytes, gate: gate}}
}

// Reset turns the reader to another batch. The records read before are no longer valid.
func (r *RecordReader) Reset(b *Batch) {
	r.codecs.release()
	r.batch, r.pos, r.left, r.err, r.shift = b, 0, 0, nil, 0
	r.compressed, r.codecFailed, r.wrapper, r.buf, r.origin, r.notice = false, false, false, nil, b.Pos, noticed
	if b.Legacy() {
		r.resetLegacy(b)
		return
	}
	r.resetV2(b)
}

// FirstTimestamp is the timestamp of a batch's first record; false if there is none. Only where the header does not
// have it are records read: beside a delete horizon, and in a wrapper of magic 1, whose own timestamp is the largest.
func (r *RecordReader) FirstTimestamp(b *Batch) (ms int64, ok bool) {
	wrapper := b.Magic == 1 && b.Codec() != CodecNone
	switch {
	case b.TimestampType() == NoTimestampType:
		return 0, false
	case b.TimestampType() == LogAppendTime:
		return b.MaxTimestamp, true
	case !b.HasDeleteHorizon() && !wrapper:
		return b.BaseTimestamp, true
	}
	var rec Record
	r.Reset(b)
	if !r.Next(&rec) {
		return 0, false
	}
	return rec.Timestamp, true
}

// FirstOffset is the offset of the first message inside a wrapper of magic 0 or 1, as
// AbstractLegacyRecordBatch.baseOffset finds it: of the messages only the lengths are looked at.
func (r *RecordReader) FirstOffset(wrapper *Batch) (int64, error) {
	r.Reset(wrapper)
	defer r.Release()
	if r.err != nil && r.notice != unnoticed {
		return 0, r.err
	}
	for pos := int64(0); pos < int64(len(r.buf)); {
		size, err := innerSize(r.buf, pos)
		if errors.Is(err, ErrTruncated) {
			break
		} else if err != nil {
			return 0, err
		}
		pos += size
	}
	if inner := decodeLegacy(r.buf, r.buf, 0); inner.Codec() != CodecNone {
		return 0, &Error{What: "inner message", Want: "an uncompressed message", Got: "codec " + inner.Codec().String(),
			Err: ErrValue}
	}
	return int64(binary.BigEndian.Uint64(r.buf)) + r.shift, nil
}

// Release lets go of the batch, and of its buffer if that is large. The records read are no longer valid.
func (r *RecordReader) Release() {
	r.codecs.release()
	r.batch, r.buf, r.left, r.wrapper = nil, nil, 0, false
}

func (r *RecordReader) resetV2(b *Batch) {
	if len(b.Raw) < BatchHeaderSize {
		r.err = &Error{What: "batch length", Pos: b.Pos + 8, Want: "at least 49", Got: strconv.Itoa(len(b.Raw) - LogOverhead),
			Err: ErrEntrySize}
		return
	}
	if b.Count < 0 {
		r.err = &Error{What: "records count", Pos: b.Pos + 57, Want: "0 or more", Got: strconv.Itoa(int(b.Count)),
			Err: ErrValue}
		return
	}
	r.left = int(b.Count)
	r.decompress(b, b.Codec(), b.Raw[BatchHeaderSize:], b.Pos+BatchHeaderSize)
}

// decompress sets buf to the plain bytes of src; on failure to what could be had, with err set.
func (r *RecordReader) decompress(b *Batch, codec Codec, src []byte, origin int64) {
	if codec == CodecNone {
		r.buf, r.origin = src, origin
		return
	}
	r.compressed, r.origin = true, 0
	if b.Count == 0 && !b.Legacy() {
		return
	}
	var err error
	if r.buf, err = r.codecs.decompress(codec, src, b.Magic); err != nil {
		r.err, r.codecFailed = codecError(codec, origin, err), true
	}
}

// Keep leaves the decompressed records to whoever reads them: they stay valid, and the next batch gets another buffer.
// It reports false where they are bytes of the file.
func (r *RecordReader) Keep() bool {
	r.codecs.buf = nil
	return r.compressed
}

// PlainErr reports whether the position of Err counts in the decompressed bytes.
func (r *RecordReader) PlainErr() bool { return r.compressed && !r.codecFailed }

// Plain is the batch's records as plain bytes: a part of the file, or the decompressed buffer. After a codec failure it
// is what came out before.
func (r *RecordReader) Plain() []byte { return r.buf }

// OffsetShift is what a wrapper of magic 1 adds to the offsets of the messages inside: its own offset minus the last of
// theirs. It is 0 for everything else.
func (r *RecordReader) OffsetShift() int64 { return r.shift }

// Err is what stopped Next early: an *Error. Positions are as in Record.Pos, those of codec failures in the file.
func (r *RecordReader) Err() error { return r.err }

// Unnoticed reports whether Kafka's reader passes over Err in silence: what is left over after a message of magic 0 or
// 1 or inside a wrapper, and unless contents are looked at, keys and values that run out of their message.
func (r *RecordReader) Unnoticed(contents bool) bool {
	return r.err != nil && (r.notice == unnoticed || r.notice == noticedInside && !contents)
}

// Next reads the next record into rec.
func (r *RecordReader) Next(rec *Record) bool {
	if r.left == 0 && !r.wrapper {
		return false
	}
	if r.batch.Legacy() {
		return r.nextLegacy(rec)
	}
	return r.nextV2(rec)
}

func (r *RecordReader) nextV2(rec *Record) bool {
	if r.pos == len(r.buf) {
		r.fail("record", r.pos, ErrTruncated, strconv.Itoa(r.left)+" more records, as the batch header counts",
			"the end of the batch")
		return false
	}
	n := r.parseV2(rec)
	if n == 0 {
		return false
	}
	rec.Pos, rec.Size = r.origin+int64(r.pos), int64(n)
	r.pos += n
	if r.left--; r.left == 0 && r.pos != len(r.buf) {
		r.fail("batch", r.pos, ErrValue, "the end after the last record", strconv.Itoa(len(r.buf)-r.pos)+" more bytes")
	}
	return true
}

// fail keeps the first error and ends the iteration.
func (r *RecordReader) fail(what string, at int, sentinel error, want, got string) {
	if r.err == nil {
		r.err = &Error{What: what, Pos: r.origin + int64(at), Want: want, Got: got, Err: sentinel}
	}
	r.left, r.wrapper = 0, false
}

// parseV2 reads the record at r.pos and returns its length in bytes, 0 on failure.
func (r *RecordReader) parseV2(rec *Record) int {
	buf := r.buf[r.pos:]
	length, n := varint32(buf)
	if n <= 0 || length < 0 || int(length) > len(buf)-n {
		r.failLength(n, int(length), len(buf)-n)
		return 0
	}
	body := buf[n : n+int(length)]
	c := fastCursor{b: body, i: 1}
	delta := c.varlong()
	offset := c.varint()
	key := c.field()
	value := c.field()
	count := c.varint()
	rec.HeaderCount, rec.Headers = 0, nil
	if count != 0 && !c.bad {
		rec.HeaderCount, rec.Headers = int(count), c.headers(int(count))
	}
	if c.bad || c.i != len(body) {
		r.failBody(&c, n, body)
		return 0
	}
	b := r.batch
	rec.Offset = b.BaseOffset + int64(offset)
	rec.Timestamp = b.BaseTimestamp + delta
	if b.Attributes&attrLogAppend != 0 {
		rec.Timestamp = b.MaxTimestamp
	}
	rec.Sequence = -1
	if b.BaseSequence >= 0 {
		rec.Sequence = IncrementSequence(b.BaseSequence, offset)
	}
	rec.Key, rec.Value, rec.Magic, rec.Valid = key, value, b.Magic, true
	rec.KeySize, rec.ValueSize = sizeOf(key), sizeOf(value)
	return n + int(length)
}

func sizeOf(field []byte) int32 {
	if field == nil {
		return -1
	}
	return int32(len(field))
}

func (r *RecordReader) failLength(n, length, room int) {
	switch {
	case n == 0:
		r.fail("record length", r.pos, ErrTruncated, "a varint", strconv.Itoa(len(r.buf)-r.pos)+" bytes of one")
	case n < 0:
		r.fail("record length", r.pos, ErrValue, "a varint of at most 5 bytes", "a longer one")
	default:
		r.fail("record length", r.pos, ErrValue, "0 to "+strconv.Itoa(room), strconv.Itoa(length))
	}
}

// failBody reads the body again by the slow cursor, which says where it goes wrong.
func (r *RecordReader) failBody(f *fastCursor, n int, body []byte) {
	c := NewCursor(body, r.origin+int64(r.pos+n))
	c.Int8("record attributes")
	c.Varlong("timestampDelta")
	c.Varint("offsetDelta")
	cursorField(&c, "key")
	cursorField(&c, "value")
	at := c.Pos()
	count := c.Varint("headers count")
	if c.OK() && (count < 0 || int(count) > c.Remaining()) {
		c.Fail("headers count", at, ErrValue, "0 to "+strconv.Itoa(c.Remaining()), strconv.Itoa(int(count)))
	}
	for i := int32(0); i < count && c.OK(); i++ {
		at = c.Pos()
		if size := c.Varint("header key length"); c.OK() && size < 0 {
			c.Fail("header key length", at, ErrValue, "0 or more", strconv.Itoa(int(size)))
		} else {
			c.Bytes("header key", int64(size))
		}
		cursorField(&c, "header value")
	}
	if c.OK() {
		c.Fail("record", c.Pos(), ErrValue, strconv.Itoa(len(body))+" bytes, as its length says", strconv.Itoa(c.Offset()))
	}
	if r.err == nil {
		r.err = c.Err()
	}
	r.left = 0
}

func cursorField(c *Cursor, what string) {
	if size := c.Varint(what + " length"); size > 0 {
		c.Bytes(what, int64(size))
	}
}

// varint32 is Uvarint32 and zig-zag in one, for the hot path.
func varint32(b []byte) (int32, int) {
	if len(b) > 0 && b[0] < 0x80 {
		return Unzigzag32(uint32(b[0])), 1
	}
	u, n := Uvarint32(b)
	return Unzigzag32(u), n
}

// fastCursor reads a record's body without saying where it fails; failBody finds that out afterwards.
type fastCursor struct {
	b   []byte
	i   int
	bad bool
}

func (c *fastCursor) varint() int32 {
	if c.i < len(c.b) && c.b[c.i] < 0x80 {
		c.i++
		return Unzigzag32(uint32(c.b[c.i-1]))
	}
	return c.slowVarint()
}

func (c *fastCursor) slowVarint() int32 {
	if c.i > len(c.b) {
		c.bad = true
		return 0
	}
	u, n := Uvarint32(c.b[c.i:])
	if n <= 0 {
		c.bad = true
		return 0
	}
	c.i += n
	return Unzigzag32(u)
}

func (c *fastCursor) varlong() int64 {
	if c.i > len(c.b) {
		c.bad = true
		return 0
	}
	u, n := Uvarint64(c.b[c.i:])
	if n <= 0 {
		c.bad = true
		return 0
	}
	c.i += n
	return Unzigzag64(u)
}

// field reads a length and that many bytes; any negative length is null, as in Utils.readBytes.
func (c *fastCursor) field() []byte {
	size := int(c.varint())
	if c.bad || size < 0 {
		return nil
	}
	if size > len(c.b)-c.i {
		c.bad = true
		return nil
	}
	f := c.b[c.i : c.i+size : c.i+size]
	c.i += size
	return f
}

// headers checks count headers and returns their bytes.
func (c *fastCursor) headers(count int) []byte {
	if count < 0 || count > len(c.b)-c.i {
		c.bad = true
		return nil
	}
	from := c.i
	for ; count > 0 && !c.bad; count-- {
		if size := int(c.varint()); c.bad || size < 0 || size > len(c.b)-c.i {
			c.bad = true
			return nil
		} else {
			c.i += size
		}
		c.field()
	}
	return c.b[from:c.i:c.i]
}

// resetLegacy prepares a message, or the messages inside a wrapper (AbstractLegacyRecordBatch.DeepRecordsIterator).
func (r *RecordReader) resetLegacy(b *Batch) {
	if b.Codec() == CodecNone {
		r.buf, r.left = b.Raw, 1
		return
	}
	if b.Magic < 0 {
		r.err = &Error{What: "magic", Pos: b.Pos + 16, Want: "0, 1 or 2", Got: strconv.Itoa(int(b.Magic)), Err: ErrValue}
		return
	}
	if b.Codec() > CodecLZ4 {
		r.err = &Error{What: "codec", Pos: b.Pos + 17, Want: "one that magic 0 and 1 can have", Got: b.Codec().String(),
			Err: ErrValue}
		return
	}
	m := legacyMessage(b)
	switch {
	case m.err != nil && m.notice != unnoticed:
		r.err = m.err
		return
	case m.value == nil:
		r.err = &Error{What: "wrapper value", Pos: b.Pos, Want: "compressed messages", Got: "null", Err: ErrValue}
		return
	}
	r.decompress(b, b.Codec(), m.value, m.valuePos)
	r.wrapper = true
	r.wrapperShift(b)
	r.remark(m.err, unnoticed)
}

// remark keeps an error that does not end the iteration, unless there is one already.
func (r *RecordReader) remark(err error, by notice) {
	if r.err == nil && err != nil {
		r.err, r.notice = err, by
	}
}

// wrapperShift finds what inner offsets of magic 1 are relative to: the wrapper's offset minus the last inner one, with
// 0 as a special case.
func (r *RecordReader) wrapperShift(b *Batch) {
	last, n := int64(-1), 0
	for pos := int64(0); pos < int64(len(r.buf)); n++ {
		size, err := innerSize(r.buf, pos)
		if err != nil {
			break
		}
		last = int64(binary.BigEndian.Uint64(r.buf[pos:]))
		pos += size
	}
	switch {
	case n == 0:
		r.fail("wrapper", 0, ErrValue, "one message or more", "none")
	case b.Magic == 0 || b.BaseOffset == 0:
	case b.BaseOffset < last:
		r.fail("wrapper offset", 0, ErrValue, "at least the last inner offset "+strconv.FormatInt(last, 10),
			strconv.FormatInt(b.BaseOffset, 10))
	default:
		r.shift = b.BaseOffset - last
	}
}

// innerSize is EntrySize by the rule inside a wrapper: an entry may end with the buffer's last byte, 12 bytes tell its
// size.
func innerSize(buf []byte, pos int64) (int64, error) {
	left := int64(len(buf)) - pos
	if left < LogOverhead {
		return 0, &Error{What: "inner message", Pos: pos, Want: "12 bytes", Got: strconv.FormatInt(left, 10),
			Err: ErrTruncated}
	}
	size := int64(int32(binary.BigEndian.Uint32(buf[pos+8:])))
	if size < MinEntrySize {
		return 0, &Error{What: "inner message size", Pos: pos + 8, Want: "at least 14", Got: strconv.FormatInt(size, 10),
			Err: ErrValue}
	}
	if LogOverhead+size > left {
		return 0, &Error{What: "inner message", Pos: pos, Want: strconv.FormatInt(LogOverhead+size, 10) + " bytes",
			Got: strconv.FormatInt(left, 10), Err: ErrTruncated}
	}
	return LogOverhead + size, nil
}

func (r *RecordReader) nextLegacy(rec *Record) bool {
	if !r.wrapper {
		r.left = 0
		return r.readMessage(rec, r.batch, 0)
	}
	pos := int64(r.pos)
	if pos == int64(len(r.buf)) {
		r.wrapper = false
		return false
	}
	size, err := innerSize(r.buf, pos)
	if err != nil {
		r.wrapper = false
		if errors.Is(err, ErrTruncated) {
			r.remark(err, unnoticed)
		} else {
			r.remark(err, noticed)
		}
		return false
	}
	inner := decodeLegacy(r.buf[pos:], r.buf[pos:pos+size], pos)
	if inner.Codec() != CodecNone {
		r.fail("inner message", r.pos, ErrValue, "an uncompressed message", "codec "+inner.Codec().String())
		return false
	}
	if inner.Magic != r.batch.Magic {
		r.remark(&Error{What: "inner magic", Pos: r.origin + pos + 16, Want: strconv.Itoa(int(r.batch.Magic)),
			Got: strconv.Itoa(int(inner.Magic)), Err: ErrValue}, unnoticed)
	}
	r.pos += int(size)
	return r.readMessage(rec, &inner, r.shift)
}

// readMessage fills rec from an uncompressed message. Like Kafka's LegacyRecord it wants the two lengths, but what they
// span only where that is looked at.
func (r *RecordReader) readMessage(rec *Record, b *Batch, shift int64) bool {
	m := legacyMessage(b)
	if m.err != nil && m.notice == noticed {
		r.wrapper, r.left = false, 0
		r.remark(m.err, noticed)
		return false
	}
	r.remark(m.err, m.notice)
	*rec = Record{Offset: b.BaseOffset + shift, Timestamp: b.MaxTimestamp, Sequence: -1, Key: m.key, Value: m.value,
		KeySize:   m.keySize,
		ValueSize: m.valueSize, Pos: b.Pos, Size: b.Size(), Magic: b.Magic, CRC: b.CRC,
		Valid: b.CRC == crc32.ChecksumIEEE(b.Raw[16:])}
	if r.batch.Magic == 1 && b.Magic != 0 && r.batch.TimestampType() == LogAppendTime {
		rec.Timestamp = r.batch.MaxTimestamp
	}
	return true
}

// message is the content of an entry of magic 0 or 1.
type message struct {
	keySize, valueSize int32 // as stored
	key, value         []byte
	valuePos           int64
	err                error
	notice             notice
}

// legacyMessage cuts key and value out of an entry. If one of them runs out of the entry, neither is there.
func legacyMessage(b *Batch) message {
	at := int64(18)
	if b.Magic != 0 {
		at = 26
	}
	var m message
	c := NewCursor(b.Raw, b.Pos)
	c.Bytes("message header", at)
	m.keySize = c.Int32("key length")
	m.key = legacyField(&c, "key", m.keySize)
	m.valueSize = c.Int32("value length")
	if m.err = c.Err(); m.err != nil {
		return m
	}
	m.valuePos = c.Pos()
	m.value = legacyField(&c, "value", m.valueSize)
	if m.err = c.Err(); m.err != nil {
		m.key, m.value, m.notice = nil, nil, noticedInside
		return m
	}
	if left := c.Remaining(); left > 0 {
		c.Fail("message", c.Pos(), ErrValue, "the end after the value", strconv.Itoa(left)+" more bytes")
		m.err, m.notice = c.Err(), unnoticed
	}
	return m
}

// legacyFits reports whether legacyMessage has no error, without making one.
func legacyFits(b *Batch) bool {
	at := int64(18)
	if b.Magic != 0 {
		at = 26
	}
	for range 2 {
		if at+4 > b.Size() {
			return false
		}
		at += 4 + max(0, int64(int32(binary.BigEndian.Uint32(b.Raw[at:]))))
	}
	return at == b.Size()
}

// legacyField reads a key or value; a negative length is null.
func legacyField(c *Cursor, what string, size int32) []byte {
	if size < 0 {
		return nil
	}
	return c.Bytes(what, int64(size))
}
