package schema

import (
	"strconv"

	"kseg/format"
)

// Decoder decodes the records of internal topics. It is reused, one per goroutine: once it has grown to the largest
// record it allocates nothing, except for errors.
type Decoder struct {
	catalog    *catalog
	key, value tape
	inner      tape // of the consumer protocol inside a group's metadata
	record     Record
	redacted   bool
}

// NewDecoder returns a decoder for all internal topics.
func NewDecoder() *Decoder { return &Decoder{catalog: tables()} }

// Redact makes the decoder print only types and versions: what they hold is null in JSON, and left out of the text of
// control records.
func (d *Decoder) Redact() { d.redacted = true }

// Record is a decoded record. It and everything reached from it alias the key, the value and the decoder, and are valid
// until the decoder's next call.
type Record struct {
	Topic Topic
	// Key is the zero Half in topics without keys, Value that of a tombstone.
	Key, Value Half
	// Err says why decoding stopped; what was decoded before is there all the same.
	Err *Error
	// unknownType is set if Err is about a record type that the tables do not have; its number is Key.Type or Value.Type.
	unknownType bool
}

// Half is the decoded key or value of a record.
type Half struct {
	// Type is the record type of a keyed topic (in both halves), the api key of others.
	Type int16
	// Name is Kafka's name of that type: "OffsetCommit" in keyed topics, "PartitionRecord" in others. "": unknown.
	Name string
	// Version is as stored, even if the tables do not have it. Keys have version 0.
	Version int16
	// Complete is set if the whole body was decoded.
	Complete bool
	record   *record
	tape     *tape
	head     head
}

// Root is the struct of all fields; it is not Present if nothing could be decoded.
func (h Half) Root() Value {
	if h.tape == nil || len(h.tape.nodes) == 0 {
		return Value{}
	}
	return Value{tape: h.tape, field: &rootField, present: true}
}

// Get is short for Root().Get(name).
func (h Half) Get(name string) Value { return h.Root().Get(name) }

// Decode decodes the key and value (nil: null) of a record of topic, which must not be None.
//
// Coordinator topics follow CoordinatorRecordSerde: an int16 type in front of the key, an int16 version in front of the
// value, bytes after the body are accepted. The others follow AbstractApiMessageSerde: a frame of three unsigned
// varints (frame version 1, api key, version) in front of the value, nothing after it.
func (d *Decoder) Decode(topic Topic, key, value []byte) *Record {
	d.record = Record{Topic: topic}
	if topic.keyed() {
		if d.decodeKey(key) && value != nil {
			d.decodeKeyedValue(value)
		}
	} else {
		d.decodeFramed(value)
	}
	return &d.record
}

func (d *Decoder) decodeKey(key []byte) bool {
	r := &d.record
	if key == nil {
		r.Err = &Error{Kafka: "The record has no key."}
		return false
	}
	d.key.reset(key)
	r.Key.tape, r.Key.head = &d.key, headType
	typ := d.key.c.Int16("record type")
	if !d.key.c.OK() {
		r.Err = d.key.failure()
		r.Err.Kafka = "Could not read version from key's buffer."
		return false
	}
	r.Key.Type = typ
	rec := d.catalog.record(r.Topic, typ)
	if rec == nil {
		r.unknownType = true
		r.Err = &Error{Kafka: "Unknown record type " + strconv.Itoa(int(typ)),
			Err: &format.Error{What: "record type", Got: strconv.Itoa(int(typ)), Err: format.ErrUnsupported}}
		return false
	}
	r.Key.record, r.Key.Name = rec, rec.name
	if r.Key.Complete = d.key.read(rec.key, 0); !r.Key.Complete {
		r.Err = bodyError(&d.key, typ, "key") // the type, which was the version once
	}
	return r.Key.Complete
}

func (d *Decoder) decodeKeyedValue(value []byte) {
	r := &d.record
	rec, t := r.Key.record, &d.value
	t.reset(value)
	version := t.c.Int16("value version")
	if !t.c.OK() {
		r.Value = Half{Type: rec.typ, Name: rec.name, tape: t}
		r.Err = t.failure()
		r.Err.Kafka = "Could not read version from value's buffer."
		return
	}
	r.Value = Half{Type: rec.typ, Name: rec.name, Version: version, record: rec, tape: t, head: headValue}
	if version < rec.value.lowest || version > rec.value.highest {
		v := strconv.Itoa(int(version))
		r.Err = &Error{Kafka: "Found an unknown record version " + v + " for " + strconv.Itoa(int(rec.typ)) + " type",
			Err: &format.Error{What: "value version", Want: "a version up to " + strconv.Itoa(int(rec.value.highest)), Got: v,
				Err: format.ErrUnsupported}}
		return
	}
	if r.Value.Complete = t.read(rec.value, version); !r.Value.Complete {
		r.Err = bodyError(t, version, "value")
	}
}

func bodyError(t *tape, version int16, half string) *Error {
	err := t.failure()
	err.Kafka = "Could not read record with version " + strconv.Itoa(int(version)) + " from " + half +
		"'s buffer due to: " + err.Kafka + "."
	return err
}

func (d *Decoder) decodeFramed(value []byte) {
	r, t := &d.record, &d.value
	t.reset(value)
	r.Value.tape, r.Value.head = t, headFrame
	frame, ok := d.frameNumber("frame version")
	if !ok {
		return
	}
	if frame != 1 {
		d.refuseFrame(frame)
		return
	}
	if r.Value.Type, ok = d.frameNumber("type"); !ok {
		return
	}
	if r.Value.Version, ok = d.frameNumber("version"); !ok {
		return
	}
	typ := strconv.Itoa
	rec := d.catalog.record(r.Topic, r.Value.Type)
	if rec == nil {
		r.unknownType = true
		n := typ(int(r.Value.Type))
		r.Err = &Error{Kafka: "org.apache.kafka.common.errors.UnsupportedVersionException: Unknown metadata id " + n,
			Err: &format.Error{What: "record type", Pos: 1, Got: n, Err: format.ErrUnsupported}}
		return
	}
	r.Value.record, r.Value.Name = rec, rec.name
	if !t.read(rec.value, r.Value.Version) {
		r.Err = t.failure()
		r.Err.Kafka = "Failed to deserialize record with type " + typ(int(rec.typ))
		return
	}
	if left := t.c.Remaining(); left > 0 {
		r.Err = &Error{Kafka: "Found " + typ(left) + " byte(s) of garbage after " + typ(int(rec.typ)),
			Err: &format.Error{What: "end of " + rec.name, Pos: t.c.Pos(), Got: typ(left) + " more bytes", Err: format.ErrValue}}
		return
	}
	r.Value.Complete = true
}

// frameNumber reads one of the three numbers of a frame, which Kafka cuts down to 16 bits.
func (d *Decoder) frameNumber(what string) (int16, bool) {
	t := &d.value
	pos := t.c.Pos()
	n := int32(t.c.Uvarint(what))
	if !t.c.OK() {
		d.record.Err = t.failure()
		d.record.Err.Kafka = "Error while reading " + what
		return 0, false
	}
	if n > 1<<15-1 {
		d.record.Err = &Error{Kafka: "Value for " + what + " was too large.",
			Err: &format.Error{What: what, Pos: pos, Want: "at most 32767", Got: strconv.Itoa(int(n)), Err: format.ErrValue}}
		return 0, false
	}
	return int16(n), true
}

func (d *Decoder) refuseFrame(frame int16) {
	n := strconv.Itoa(int(frame))
	kafka := "Could not deserialize metadata record due to unknown frame version " + n +
		"(only frame version 1 is supported)"
	if frame == 0 {
		kafka = "Could not deserialize metadata record with frame version 0. Note that upgrades from the preview release " +
			"of KRaft in 2.8 to newer versions are not supported."
	}
	d.record.Err = &Error{Kafka: kafka,
		Err: &format.Error{What: "frame version", Want: "1", Got: n, Err: format.ErrUnsupported}}
}
