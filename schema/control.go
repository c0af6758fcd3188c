package schema

import (
	"strconv"

	"kseg/format"
)

// ControlType is the type of a control record, from its key.
type ControlType int16

// The types of control records (Kafka's ControlRecordType). Those from LeaderChange on occur in __cluster_metadata
// only.
const (
	Abort ControlType = iota
	Commit
	LeaderChange
	SnapshotHeader
	SnapshotFooter
	KRaftVersion
	KRaftVoters
)

var controlNames = [...]string{"ABORT", "COMMIT", "LEADER_CHANGE", "SNAPSHOT_HEADER", "SNAPSHOT_FOOTER",
	"KRAFT_VERSION", "KRAFT_VOTERS"}

// known reports whether Kafka 4.4 has the type.
func (c ControlType) known() bool { return c >= 0 && int(c) < len(controlNames) }

// String is the name of Kafka's enum constant, UNKNOWN for others.
func (c ControlType) String() string {
	if c.known() {
		return controlNames[c]
	}
	return "UNKNOWN"
}

// Control is a decoded control record.
type Control struct {
	Type ControlType
	// Value is the zero Half if the type is unknown.
	Value Half
	// Err says why decoding stopped.
	Err *Error
}

// CoordinatorEpoch is that of a transaction marker, -1 of other records.
func (c *Control) CoordinatorEpoch() int32 {
	if c.Type <= Commit && c.Value.Complete {
		return int32(c.Value.Get("coordinatorEpoch").Int())
	}
	return -1
}

// ParseControlType reads the key of a control record: int16 version, of which those to come are read like 0, and int16
// type. It follows ControlRecordType.parseTypeId.
func ParseControlType(key []byte) (ControlType, *Error) {
	if len(key) < 4 {
		n := strconv.Itoa(len(key))
		return 0, &Error{Kafka: "Invalid value size found for control record key. Must have at least 4 bytes, but " +
			"found only " + n,
			Err: &format.Error{What: "control record key", Want: "4 bytes", Got: n, Err: format.ErrTruncated}}
	}
	c := format.NewCursor(key, 0)
	if v := c.Int16("version of a control record key"); v < 0 {
		n := strconv.Itoa(int(v))
		return 0, &Error{Kafka: "Invalid version found for control record: " + n + ". May indicate data corruption",
			Err: &format.Error{What: "version of a control record key", Want: "0 or more", Got: n, Err: format.ErrValue}}
	}
	return ControlType(c.Int16("control record type")), nil
}

// DecodeControl decodes a record of a control batch. The result is valid until the decoder's next call.
//
// It follows EndTransactionMarker and ControlRecordUtils, which accept bytes after the message.
func (d *Decoder) DecodeControl(key, value []byte) Control {
	typ, err := ParseControlType(key)
	if err != nil || !typ.known() {
		return Control{Type: typ, Err: err}
	}
	c, t := Control{Type: typ}, &d.value
	t.reset(value)
	version := t.c.Int16("version")
	switch {
	case !t.c.OK():
		c.Err = t.failure()
		return c
	case version < 0 && typ <= Commit:
		n := strconv.Itoa(int(version))
		c.Err = &Error{Kafka: "Invalid version found for end transaction marker: " + n + ". May indicate data corruption",
			Err: &format.Error{What: "version of a transaction marker", Want: "0 or more", Got: n, Err: format.ErrValue}}
		return c
	}
	head := headValue
	if typ > Commit {
		t.reset(value) // the version is the first field of these messages
		head = headNone
	}
	rec := d.catalog.control[int16(typ)]
	c.Value = Half{Type: int16(typ), Name: rec.name, Version: version, record: rec, tape: t, head: head}
	if typ == LeaderChange && version > 0 {
		c.Value.Complete = d.readLeaderChange(rec.value, value)
	} else {
		c.Value.Complete = t.read(rec.value, min(version, rec.value.highest))
	}
	if !c.Value.Complete {
		c.Err = t.failure()
	}
	return c
}

// ControlError is what is wrong with a record of a control batch, as every verb says it. Those of producers are
// transaction markers, which a broker must be able to read when it loads the log; those of KRaft have no producer.
func (d *Decoder) ControlError(b *format.Batch, key, value []byte) error {
	if b.ProducerID >= 0 {
		_, err := format.DecodeTxnMarker(b.Pos, key, value)
		return err
	}
	if c := d.DecodeControl(key, value); c.Err != nil {
		return c.Err
	}
	return nil
}

// readLeaderChange reads a LeaderChange that says it is of a newer version than 0. Kafka 4.4.0 writes and reads the
// bytes of version 0 whatever the message says, and prints the fields of the version it says; a broker to come may mean
// it.
func (d *Decoder) readLeaderChange(m *message, value []byte) bool {
	t := &d.value
	as := func(version int16, l *layout) (complete, whole bool) {
		t.reset(value)
		complete = t.readLayout(m, version, l)
		return complete, complete && t.c.Remaining() == 0
	}
	first, whole := as(0, d.catalog.firstLeaderChange)
	if whole {
		return true
	}
	said, whole := as(m.highest, m.layout(m.highest))
	if first && !whole {
		said, _ = as(0, d.catalog.firstLeaderChange)
	}
	return said
}

var controlTitles = [...]string{LeaderChange: " LeaderChange: ", SnapshotHeader: " SnapshotHeader ",
	SnapshotFooter: " SnapshotFooter ", KRaftVersion: " KRaftVersion ", KRaftVoters: " KRaftVoters "}

// AppendControlText appends what DumpLogSegments prints of a control record after its metadata, with a leading space.
// Where that tool dies of the record, there is an error, and nothing is appended.
func (d *Decoder) AppendControlText(dst, key, value []byte) ([]byte, error) {
	c := d.DecodeControl(key, value)
	switch {
	case c.Err != nil:
		return dst, c.Err
	case !c.Type.known():
		dst = append(dst, " controlType: UNKNOWN("...)
		return append(strconv.AppendInt(dst, int64(c.Type), 10), ')'), nil
	case c.Type <= Commit:
		dst = append(append(dst, " endTxnMarker: "...), c.Type.String()...)
		dst = append(dst, " coordinatorEpoch: "...)
		return strconv.AppendInt(dst, int64(c.CoordinatorEpoch()), 10), nil
	}
	dst = append(dst, controlTitles[c.Type]...)
	if d.redacted {
		dst = strconv.AppendInt(append(dst, `{"version":`...), int64(c.Value.Version), 10)
		return append(dst, '}'), nil
	}
	return d.value.appendMessage(dst), nil
}

// AppendControlJSON appends a control record as a JSON object: type, id, version, data, error.
func (d *Decoder) AppendControlJSON(dst, key, value []byte) []byte {
	c := d.DecodeControl(key, value)
	dst = append(append(append(dst, `{"type":"`...), c.Type.String()...), `","id":`...)
	dst = strconv.AppendInt(dst, int64(c.Type), 10)
	if c.Value.Complete {
		dst = strconv.AppendInt(append(dst, `,"version":`...), int64(c.Value.Version), 10)
		dst = d.appendData(append(dst, `,"data":`...), &d.value)
	} else {
		dst = append(dst, `,"version":null,"data":null`...)
	}
	if c.Err == nil {
		return append(dst, `,"error":null}`...)
	}
	dst = appendString(append(dst, `,"error":`...), []byte(c.Err.Error()))
	return append(dst, '}')
}
