package schema

import (
	"encoding/binary"
	"iter"
	"math"

	"kseg/format"
)

// Value is one field of a decoded message, an element of an array, or a whole struct. A field that the bytes do not
// hold (tagged and left out, or of another version) is a Value all the same, with the default that Kafka's readers
// assume; only Present tells. The zero Value stands for anything that a table does not know.
type Value struct {
	tape    *tape
	field   *field
	at      int32 // node
	element int32 // of an array of numbers or uuids: index + 1
	present bool
}

// Present reports whether the value stands in the bytes.
func (v Value) Present() bool { return v.present }

// Name is the field's name as Kafka's JSON has it; an element has the name of its array, a root none.
func (v Value) Name() string {
	if v.field == nil {
		return ""
	}
	return v.field.name
}

// IsNull reports whether the value is null, in the bytes or by default.
func (v Value) IsNull() bool {
	if v.present {
		return v.tape.nodes[v.at].kind == nodeNull
	}
	return v.field != nil && v.field.defaultNull
}

// Int is an integer; 0 for anything else.
func (v Value) Int() int64 {
	switch {
	case v.present && v.element > 0:
		return number(v.field.typ, v.Raw())
	case v.present:
		return v.tape.nodes[v.at].num
	case v.field != nil:
		return v.field.defaultInt
	}
	return 0
}

// Bool is a bool.
func (v Value) Bool() bool { return v.Int() != 0 }

// Float is a float64.
func (v Value) Float() float64 { return math.Float64frombits(uint64(v.Int())) }

// Raw is the content of a string, of bytes or of a uuid, or the bytes of a number, aliased; nil if null or absent.
func (v Value) Raw() []byte {
	if !v.present || v.IsNull() || v.isStruct() {
		return nil
	}
	b := v.tape.content(&v.tape.nodes[v.at])
	if v.element > 0 {
		w := v.field.typ.width()
		return b[int(v.element-1)*w : int(v.element)*w]
	}
	return b
}

// Text is a string, with what is not UTF-8 replaced as Java does; "" if null.
func (v Value) Text() string { return string(format.AppendJavaUTF8(nil, v.Raw())) }

// UUID is a uuid; zero if absent.
func (v Value) UUID() (id [16]byte) {
	copy(id[:], v.Raw())
	return id
}

// Int32s is an array of int32; nil if null or absent.
func (v Value) Int32s() []int32 {
	b := v.Raw()
	if b == nil {
		return nil
	}
	list := make([]int32, 0, len(b)/4)
	for ; len(b) >= 4; b = b[4:] {
		list = append(list, int32(binary.BigEndian.Uint32(b)))
	}
	return list
}

// Len is the number of elements of an array.
func (v Value) Len() int {
	if !v.present || !v.field.array || v.IsNull() || v.inArray() {
		return 0
	}
	return int(v.tape.nodes[v.at].num)
}

func (v Value) inArray() bool { return v.element > 0 || v.tape.nodes[v.at].kind == nodeElement }

// Elements goes through an array.
func (v Value) Elements() iter.Seq2[int, Value] {
	return func(yield func(int, Value) bool) {
		fixed := v.field != nil && v.field.typ.width() > 0
		at := v.at + 1
		for i := range v.Len() {
			e := Value{tape: v.tape, field: v.field, at: v.at, element: int32(i) + 1, present: true}
			if !fixed {
				if at >= v.tape.nodes[v.at].next {
					return // decoding stopped inside
				}
				e.at, e.element = at, 0
				at = v.tape.nodes[at].next
			}
			if !yield(i, e) {
				return
			}
		}
	}
}

// Get is a field of a struct: as in the bytes, or with its default.
func (v Value) Get(name string) Value {
	for _, f := range v.structFields() {
		if f.name != name {
			continue
		}
		if at := v.find(f); at >= 0 {
			return Value{tape: v.tape, field: f, at: at, present: true}
		}
		return Value{tape: v.tape, field: f}
	}
	return Value{}
}

// Fields goes through the fields of a struct that stand in the bytes, in their order there.
func (v Value) Fields() iter.Seq[Value] {
	return func(yield func(Value) bool) {
		if !v.isStruct() {
			return
		}
		nodes := v.tape.nodes
		for i := v.at + 1; i < nodes[v.at].next; i = nodes[i].next {
			if m := nodes[i].member; m != nil && !yield(Value{tape: v.tape, field: m.field, at: i, present: true}) {
				return
			}
		}
	}
}

func (v Value) isStruct() bool {
	if !v.present || v.element > 0 {
		return false
	}
	n := &v.tape.nodes[v.at]
	return n.kind != nodeNull && n.member.typ == typeStruct && (!n.member.array || n.kind == nodeElement)
}

func (v Value) structFields() []*field {
	switch {
	case v.field == nil:
		return nil
	case v.field == &rootField:
		return v.tape.msg.fields
	default:
		return v.field.fields
	}
}

// find is the last node of a field in the struct, -1 if there is none.
func (v Value) find(f *field) int32 {
	found := int32(-1)
	if v.isStruct() {
		nodes := v.tape.nodes
		for i := v.at + 1; i < nodes[v.at].next; i = nodes[i].next {
			if m := nodes[i].member; m != nil && m.field == f {
				found = i
			}
		}
	}
	return found
}

// Span gives where the value stands in its key or value: start with tag, size and length in front of it, body without.
func (v Value) Span() (start, body, end int) {
	if !v.present {
		return 0, 0, 0
	}
	n := &v.tape.nodes[v.at]
	if v.element > 0 {
		w := v.field.typ.width()
		start = int(n.body) + int(v.element-1)*w
		return start, start, start + w
	}
	return int(n.start), int(n.body), int(n.end)
}

// AppendJSON appends the value as JSON, exactly as the real tool prints it.
func (v Value) AppendJSON(dst []byte) []byte {
	switch {
	case !v.present:
		return append(dst, "null"...)
	case v.element > 0:
		return appendScalar(dst, v.field.typ, v.Raw(), v.Int())
	}
	return v.tape.appendValue(dst, v.at)
}
