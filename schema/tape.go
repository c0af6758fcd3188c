package schema

import (
	"encoding/binary"
	"slices"
	"strconv"

	"kseg/format"
)

// Limits of Kafka 4.4's generated readers.
const (
	maxStringBytes  = 1<<15 - 1
	maxElements     = 1_000_000
	maxTaggedFields = 10_000
)

// Limits of our own: a hostile record may hold more than one value a byte, each of which takes a node of 40 bytes.
const (
	maxNodes  = 4 << 20 // of a message
	keptNodes = 1 << 16 // between messages
)

// Error says why a record could not be decoded.
type Error struct {
	// Kafka is the message that Kafka's own reader has for it.
	Kafka string
	// Err has the position in the key or the value; it is nil where no byte is at fault.
	Err *format.Error
}

// Error is the message with the position.
func (e *Error) Error() string {
	if e.Err == nil {
		return e.Kafka
	}
	return e.Err.Error()
}

// Unwrap returns the format.Error, if there is one.
func (e *Error) Unwrap() error {
	if e.Err == nil {
		return nil
	}
	return e.Err
}

// node is one decoded value on a tape, or a piece of the bytes between values. Its content is the bytes from body to
// end.
type node struct {
	member *member // nil for tags and unknown tags
	num    int64   // a number; elements of an array; index of a struct's tags node; number of tags; an unknown tag
	start  int32   // where its own bytes begin: tag, size and length included
	body   int32   // where the content begins
	end    int32   // after the last byte
	next   int32   // index of the node after it and everything in it
	kind   nodeKind
}

type nodeKind uint8

const (
	nodeValue nodeKind = iota
	nodeNull
	nodeElement    // a string or struct in an array
	nodeTags       // the count in front of a struct's tagged fields
	nodeUnknownTag // a tagged field that the table does not have
	nodeBrokenTag  // tag and size of a tagged field whose content, or size, could not be read
)

// tape holds one decoded message: its values in the order of their bytes. It is reused, so that decoding allocates
// nothing once it has grown; what it grows by was read, never merely claimed.
type tape struct {
	buf     []byte
	c       format.Cursor
	nodes   []node
	msg     *message
	root    member // of the message as a whole
	version int16
	kafka   string // Kafka's message about the failure
	inner   *tape  // for subscriptions and assignments, while a group is printed whose members use the consumer protocol
}

// reset makes the tape ready to read b.
func (t *tape) reset(b []byte) {
	if cap(t.nodes) > keptNodes {
		t.nodes = nil
	}
	t.buf, t.c, t.nodes, t.msg, t.kafka = b, format.NewCursor(b, 0), t.nodes[:0], nil, ""
}

// read decodes the body of m from where the cursor stands. A version beyond the table is read as the newest, as Kafka
// does, except that structs inside refuse it.
func (t *tape) read(m *message, version int16) bool {
	return t.readLayout(m, version, m.layout(version))
}

func (t *tape) readLayout(m *message, version int16, l *layout) bool {
	t.msg, t.version, t.root = m, version, member{field: &rootField, sub: l}
	start := int32(t.c.Offset())
	at := t.push(&t.root, nodeValue, start, start, 0)
	ok := t.readStruct(at, l)
	t.close(at)
	return ok
}

// rootField stands for a message where a field is asked for.
var rootField = field{typ: typeStruct, tag: -1}

// content is the bytes of a string, bytes or a uuid, of an array of numbers or uuids, or of an unknown tag.
func (t *tape) content(n *node) []byte { return t.buf[n.body:n.end:n.end] }

// push appends a node that ends where the cursor stands. It sets the fields one by one, which is much faster than
// copying a node.
func (t *tape) push(m *member, kind nodeKind, start, body int32, num int64) int32 {
	at := len(t.nodes)
	if at == cap(t.nodes) {
		t.grow()
	}
	t.nodes = t.nodes[:at+1]
	n := &t.nodes[at]
	n.member, n.num, n.kind = m, num, kind
	n.start, n.body, n.end, n.next = start, body, int32(t.c.Offset()), int32(at)+1
	return int32(at)
}

// grow makes room for more nodes, and ends the reading if there are too many: what follows fails on the cursor.
func (t *tape) grow() {
	if at := len(t.nodes); at >= maxNodes {
		t.kafka = "The record has more than " + strconv.Itoa(maxNodes) + " values."
		t.c.Fail("value", t.c.Pos(), format.ErrTooLarge, "at most "+strconv.Itoa(maxNodes)+" values", "more")
	}
	t.nodes = slices.Grow(t.nodes, 1)
}

func (t *tape) close(at int32) {
	n := &t.nodes[at]
	n.next, n.end = int32(len(t.nodes)), int32(t.c.Offset())
}

func (t *tape) readStruct(at int32, l *layout) bool {
	for i := range l.fields {
		m := &l.fields[i]
		if m.tag < 0 && !m.implied && !t.readField(m, int32(t.c.Offset()), l.flexible) {
			return false
		}
	}
	if !l.flexible {
		return true
	}
	return t.readTags(at, l)
}

func (t *tape) readField(m *member, start int32, flexible bool) bool {
	switch {
	case m.array:
		return t.readArray(m, start, flexible)
	case m.typ == typeStruct:
		return t.readStructField(m, start)
	case m.typ == typeString || m.typ == typeBytes:
		return t.readBytes(m, start, flexible, nodeValue)
	default:
		return t.readFixed(m, start)
	}
}

func (t *tape) readFixed(m *member, start int32) bool {
	body := int32(t.c.Offset())
	b := t.c.Bytes(m.name, int64(m.typ.width()))
	if b == nil {
		return false
	}
	t.push(m, nodeValue, start, body, number(m.typ, b))
	return true
}

// number is the value of a number or bool; a float64 is its bits, a uuid 0.
func number(typ typ, b []byte) int64 {
	switch typ {
	case typeBool:
		if b[0] != 0 {
			return 1
		}
		return 0
	case typeInt8:
		return int64(int8(b[0]))
	case typeInt16:
		return int64(int16(binary.BigEndian.Uint16(b)))
	case typeUint16:
		return int64(binary.BigEndian.Uint16(b))
	case typeInt32:
		return int64(int32(binary.BigEndian.Uint32(b)))
	case typeInt64, typeFloat64:
		return int64(binary.BigEndian.Uint64(b))
	}
	return 0
}

// readLength reads the length in front of a string, bytes or an array; -1 and less is null.
func (t *tape) readLength(name string, flexible, short bool) int32 {
	switch {
	case flexible:
		return int32(t.c.Uvarint(name)) - 1
	case short:
		return int32(t.c.Int16(name))
	default:
		return t.c.Int32(name)
	}
}

// readBytes reads a string or bytes, as a field or as an element of an array of strings.
func (t *tape) readBytes(m *member, start int32, flexible bool, kind nodeKind) bool {
	pos := t.c.Pos()
	n := t.readLength(m.name, flexible, m.typ == typeString)
	if !t.c.OK() {
		return false
	}
	body := int32(t.c.Offset())
	if n < 0 {
		if kind == nodeElement || !m.nullable {
			return t.failNull(m, pos, kind)
		}
		t.push(m, nodeNull, start, body, 0)
		return true
	}
	if n > maxStringBytes && m.typ == typeString {
		t.kafka = "string field " + m.title(kind) + " had invalid length " + strconv.Itoa(int(n))
		t.c.Fail(m.title(kind), pos, format.ErrValue, "a length of at most "+strconv.Itoa(maxStringBytes),
			strconv.Itoa(int(n)))
		return false
	}
	if !t.enough(m.name, n) {
		return false
	}
	t.c.Bytes(m.name, int64(n))
	t.push(m, kind, start, body, 0)
	return true
}

// title is the name of a field, or of an element of it, in Kafka's messages.
func (f *field) title(kind nodeKind) string {
	if kind == nodeElement {
		return f.name + " element"
	}
	return f.name
}

func (t *tape) failNull(m *member, pos int64, kind nodeKind) bool {
	t.kafka = "non-nullable field " + m.title(kind) + " was serialized as null"
	t.c.Fail(m.title(kind), pos, format.ErrValue, "a value", "null")
	return false
}

// enough checks that n bytes are left, with Kafka's message if not.
func (t *tape) enough(name string, n int32) bool {
	if int64(n) <= int64(t.c.Remaining()) {
		return true
	}
	t.kafka = "Error reading byte array of " + strconv.Itoa(int(n)) + " byte(s): only " +
		strconv.Itoa(t.c.Remaining()) + " byte(s) available"
	t.c.Bytes(name, int64(n))
	return false
}

func (t *tape) readArray(m *member, start int32, flexible bool) bool {
	pos := t.c.Pos()
	n := t.readLength(m.name, flexible, false)
	if !t.c.OK() {
		return false
	}
	body := int32(t.c.Offset())
	if n < 0 {
		if !m.nullable {
			return t.failNull(m, pos, nodeValue)
		}
		t.push(m, nodeNull, start, body, 0)
		return true
	}
	if int(n) > t.c.Remaining() {
		t.kafka = "Tried to allocate a collection of size " + strconv.Itoa(int(n)) + ", but there are only " +
			strconv.Itoa(t.c.Remaining()) + " bytes remaining."
		t.c.Fail(m.name, pos, format.ErrTruncated, strconv.Itoa(int(n))+" elements", strconv.Itoa(t.c.Remaining())+" bytes")
		return false
	}
	if n > maxElements {
		t.kafka = "Tried to read a collection of size " + strconv.Itoa(int(n)) + ", which exceeds the maximum allowed " +
			"size of 1000000."
		t.c.Fail(m.name, pos, format.ErrTooLarge, "at most 1000000 elements", strconv.Itoa(int(n)))
		return false
	}
	at := t.push(m, nodeValue, start, body, int64(n))
	ok := t.readElements(m, n, flexible)
	if !ok && m.typ.width() > 0 {
		t.nodes = t.nodes[:at] // all elements or none
		return false
	}
	t.close(at)
	return ok
}

func (t *tape) readElements(m *member, n int32, flexible bool) bool {
	if w := m.typ.width(); w > 0 {
		return t.c.Bytes(m.name, int64(n)*int64(w)) != nil
	}
	for range n {
		start := int32(t.c.Offset())
		if m.typ == typeString {
			if !t.readBytes(m, start, flexible, nodeElement) {
				return false
			}
			continue
		}
		el := t.push(m, nodeElement, start, start, 0)
		ok := t.versionFits(m) && t.readStruct(el, m.sub)
		t.close(el)
		if !ok {
			return false
		}
	}
	return true
}

// versionFits refuses a struct inside a message of a version that the table does not have.
func (t *tape) versionFits(m *member) bool {
	if t.version <= t.msg.highest {
		return true
	}
	v := strconv.Itoa(int(t.version))
	t.kafka = "Can't read version " + v + " of " + m.structName
	t.c.Fail(m.name, t.c.Pos(), format.ErrUnsupported, "a version up to "+strconv.Itoa(int(t.msg.highest)), v)
	return false
}

// readStructField reads a struct that may be null: one byte says so in front of it, an unsigned varint if it is tagged.
func (t *tape) readStructField(m *member, start int32) bool {
	null := false
	switch {
	case !m.nullable:
	case m.tag >= 0:
		null = int32(t.c.Uvarint(m.name)) <= 0
	default:
		null = t.c.Int8(m.name) < 0
	}
	if !t.c.OK() {
		return false
	}
	body := int32(t.c.Offset())
	if null {
		t.push(m, nodeNull, start, body, 0)
		return true
	}
	at := t.push(m, nodeValue, start, body, 0)
	ok := t.versionFits(m) && t.readStruct(at, m.sub)
	t.close(at)
	return ok
}

func (t *tape) readTags(at int32, l *layout) bool {
	start := int32(t.c.Offset())
	n := int32(t.c.Uvarint("tagged fields"))
	if !t.c.OK() || !t.checkTagCount(n) {
		return false
	}
	tags := t.push(nil, nodeTags, start, start, int64(n))
	t.nodes[at].num = int64(tags)
	for range n {
		start := int32(t.c.Offset())
		tag := int32(t.c.Uvarint("tag"))
		size := int32(t.c.Uvarint("size of a tagged field"))
		known := len(t.nodes)
		if t.c.OK() && t.readTag(l, start, tag, size) {
			continue
		}
		if len(t.nodes) == known {
			t.push(nil, nodeBrokenTag, start, start, int64(tag))
		}
		return false
	}
	return true
}

func (t *tape) checkTagCount(n int32) bool {
	left := t.c.Remaining()
	if n >= 0 && int(n) <= left && n <= maxTaggedFields {
		return true
	}
	count := strconv.Itoa(int(n))
	switch {
	case n < 0:
		t.kafka = "Invalid negative number of tagged fields " + count
	case int(n) > left:
		t.kafka = "Tried to read " + count + " tagged fields, but there are only " + strconv.Itoa(left) + " bytes remaining."
	default:
		t.kafka = "Tried to read " + count + " tagged fields, which exceeds the maximum allowed count of 10000."
	}
	t.c.Fail("number of tagged fields", t.c.Pos(), format.ErrValue, "at most "+strconv.Itoa(min(left, maxTaggedFields)),
		count)
	return false
}

// readTag reads the content of one tagged field. Of a field that is known the content decides where it ends, not the
// size in front of it: Kafka's readers ignore that too.
func (t *tape) readTag(l *layout, start, tag, size int32) bool {
	for i := range l.fields {
		if m := &l.fields[i]; m.tag == int(tag) {
			return t.readField(m, start, true)
		}
	}
	for _, foreign := range l.foreignTags {
		if foreign == int(tag) {
			v := strconv.Itoa(int(t.version))
			t.kafka = "Tag " + strconv.Itoa(int(tag)) + " is not valid for version " + v
			t.c.Fail("tag", int64(start), format.ErrValue, "a tag of version "+v, strconv.Itoa(int(tag)))
			return false
		}
	}
	if size < 0 {
		t.kafka = strconv.Itoa(int(size))
		t.c.Fail("size of a tagged field", int64(start), format.ErrValue, "a size of 0 or more", t.kafka)
		return false
	}
	body := int32(t.c.Offset())
	if !t.enough("tagged field", size) {
		return false
	}
	t.c.Bytes("tagged field", int64(size))
	t.push(nil, nodeUnknownTag, start, body, int64(tag))
	return true
}

// failure is the error that stopped the reading, or nil.
func (t *tape) failure() *Error {
	err, _ := t.c.Err().(*format.Error)
	if err == nil {
		return nil
	}
	kafka := t.kafka
	switch {
	case kafka != "":
	case err.Err == format.ErrValue:
		kafka = "Varint is too long, the most significant bit in the 5th byte is set, converted value: " + t.overlongVarint()
	default:
		kafka = "null" // BufferUnderflowException has no message
	}
	return &Error{Kafka: kafka, Err: err}
}

// overlongVarint is the number in the five bytes at which the cursor stopped, as Kafka shows it.
func (t *tape) overlongVarint() string {
	var v uint32
	for i, b := range t.c.Rest()[:5] {
		v |= uint32(b&0x7f) << (7 * i)
	}
	return strconv.FormatUint(uint64(v), 16)
}
