package schema

import (
	"iter"
	"strconv"

	"kseg/format"
)

// Leaf is a run of bytes of a key or value with one meaning. Leaves do not overlap and leave no byte out.
type Leaf struct {
	// Path names the field: "members[0].clientId", with ".length", ".present", ".tag" or ".size" for what stands in front
	// of a content.
	Path string
	// Start and End are positions in the key or value.
	Start, End int
	// Value is the content as JSON, or the number in a length, count or tag.
	Value string
	// Meaning is the type of the field or what the number stands for.
	Meaning string
}

// head is what stands in front of the body of a message.
type head uint8

const (
	headNone  head = iota
	headType       // int16 record type
	headValue      // int16 version
	headFrame      // three unsigned varints
)

// Leaves goes through all bytes of the half, also where decoding stopped: what it did not reach is one leaf, as are
// bytes after the body.
func (h Half) Leaves() iter.Seq[Leaf] {
	return func(yield func(Leaf) bool) {
		if h.tape == nil {
			return
		}
		w := leafWalk{t: h.tape, yield: yield}
		if !w.head(h) {
			return
		}
		if len(h.tape.nodes) > 0 && !w.children(0, "") {
			return
		}
		if w.pos < len(h.tape.buf) {
			path := "undecoded"
			if h.Complete {
				path = "trailing"
			}
			w.leaf(path, len(h.tape.buf), "", strconv.Itoa(len(h.tape.buf)-w.pos)+" bytes")
		}
	}
}

// leafWalk cuts the bytes of a tape into leaves, from the first to the last.
type leafWalk struct {
	t     *tape
	pos   int
	yield func(Leaf) bool
}

// leaf emits the bytes up to end; false if the receiver has enough.
func (w *leafWalk) leaf(path string, end int, value, meaning string) bool {
	if end <= w.pos {
		return true
	}
	l := Leaf{Path: path, Start: w.pos, End: end, Value: value, Meaning: meaning}
	w.pos = end
	return w.yield(l)
}

// varint emits an unsigned varint.
func (w *leafWalk) varint(path, meaning string) bool {
	v, n := format.Uvarint32(w.t.buf[w.pos:])
	if n <= 0 {
		return true // undecoded
	}
	return w.leaf(path, w.pos+n, strconv.FormatUint(uint64(v), 10), meaning)
}

func (w *leafWalk) head(h Half) bool {
	typ, version := strconv.Itoa(int(h.Type)), strconv.Itoa(int(h.Version))
	switch {
	case h.head == headFrame:
		return w.varint("frameVersion", "version of the frame") && w.varint("apiKey", h.Name) &&
			w.varint("version", "version of the value")
	case len(h.tape.buf) < 2 || h.head == headNone:
		return true
	case h.head == headType:
		return w.leaf("recordType", 2, typ, h.Name)
	default:
		return w.leaf("version", 2, version, "version of the value")
	}
}

// children emits the nodes inside the one at index at.
func (w *leafWalk) children(at int32, path string) bool {
	nodes := w.t.nodes
	index := 0
	for i := at + 1; i < nodes[at].next; i = nodes[i].next {
		n := &nodes[i]
		own := path
		switch {
		case n.kind == nodeElement:
			own += "[" + strconv.Itoa(index) + "]"
			index++
		case n.kind == nodeTags:
			own = join(path, "taggedFields")
		case n.kind == nodeUnknownTag:
			own = join(path, "tag"+strconv.FormatInt(n.num, 10))
		case n.kind == nodeBrokenTag:
			own = join(path, nodes[at].member.sub.tagName(n.num))
		default:
			own = join(path, n.member.name)
		}
		if !w.node(n, own) || !w.children(i, own) {
			return false
		}
	}
	return true
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

// tagName is the name of a tagged field, also of one that the table does not have.
func (l *layout) tagName(tag int64) string {
	for i := range l.fields {
		if m := &l.fields[i]; m.tag >= 0 && int64(m.tag) == tag {
			return m.name
		}
	}
	return "tag" + strconv.FormatInt(tag, 10)
}

// node emits the bytes of a node itself: tag and size, length, content.
func (w *leafWalk) node(n *node, path string) bool {
	m := n.member
	switch n.kind {
	case nodeTags:
		return w.varint(path, "number of tagged fields")
	case nodeBrokenTag:
		return w.varint(path+".tag", "tag") && w.varint(path+".size", "size of the tagged field")
	}
	tagged := n.kind == nodeUnknownTag || m.tag >= 0 && n.kind != nodeElement
	if tagged && !(w.varint(path+".tag", "tag") && w.varint(path+".size", "size of the tagged field")) {
		return false
	}
	if n.kind == nodeUnknownTag {
		return w.leaf(path, int(n.end), "", "a tagged field that is not in the tables")
	}
	if !w.length(n, path) {
		return false
	}
	switch {
	case m.array && n.kind != nodeElement:
		return w.elements(n, path)
	case m.typ == typeStruct || n.kind == nodeNull:
		return true
	case m.typ == typeBytes && m.form != formPlain && w.t.speaksConsumer():
		return w.embedded(n, path)
	default:
		return w.leaf(path, int(n.end), string(appendScalar(nil, m.typ, w.t.content(n), n.num)), m.meaning(n))
	}
}

// length emits what stands between tag and content.
func (w *leafWalk) length(n *node, path string) bool {
	m, body := n.member, int(n.body)
	switch {
	case n.kind == nodeNull:
		return w.leaf(path, body, "null", "null")
	case m.array && n.kind != nodeElement:
		count := strconv.FormatInt(n.num, 10)
		return w.leaf(path+".length", body, count, count+" elements")
	case m.typ == typeStruct:
		return w.leaf(path+".present", body, "1", "not null")
	default:
		size := strconv.Itoa(int(n.end - n.body))
		return w.leaf(path+".length", body, size, size+" bytes")
	}
}

// embedded emits a subscription or an assignment field by field, or as one if it can't be decoded.
func (w *leafWalk) embedded(n *node, path string) bool {
	var inner tape
	content := w.t.content(n)
	if !inner.readConsumer(n.member.form, content) {
		return w.leaf(path, int(n.end), string(appendScalar(nil, typeBytes, content, 0)), "not of the consumer protocol")
	}
	base := int(n.body)
	in := leafWalk{t: &inner, yield: func(l Leaf) bool {
		l.Start, l.End = l.Start+base, l.End+base
		return w.yield(l)
	}}
	w.pos = int(n.end)
	return in.leaf(path+".version", 2, strconv.Itoa(int(inner.version)), "version of the consumer protocol") &&
		in.children(0, path) && in.leaf(path+".trailing", len(content), "", strconv.Itoa(len(content)-in.pos)+" bytes")
}

func (w *leafWalk) elements(n *node, path string) bool {
	m := n.member
	width := m.typ.width()
	content := w.t.content(n)
	for i := 0; width > 0 && (i+1)*width <= len(content); i++ {
		b := content[i*width : (i+1)*width]
		value := string(appendScalar(nil, m.typ, b, number(m.typ, b)))
		if !w.leaf(path+"["+strconv.Itoa(i)+"]", w.pos+width, value, m.typ.String()) {
			return false
		}
	}
	return true
}

// meaning is the type of a value, or a name for it.
func (f *field) meaning(n *node) string {
	if f.form == formTransactionState {
		if name := TransactionState(int8(n.num)); name != "" {
			return name
		}
	}
	return f.typ.String()
}

// String is the type's name in the tables.
func (t typ) String() string {
	for name, u := range typeNames {
		if u == t {
			return name
		}
	}
	return "struct"
}
