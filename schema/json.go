package schema

import (
	"encoding/base64"
	"math"
	"strconv"
	"unicode/utf8"

	"kseg/format"
)

// appendMessage appends the root as Jackson prints what Kafka's generated JSON converters make of it.
func (t *tape) appendMessage(dst []byte) []byte { return t.appendStruct(dst, 0) }

// appendStruct appends the struct at a node: its fields in the order of the table; a tagged one only if it differs from
// its default.
func (t *tape) appendStruct(dst []byte, at int32) []byte {
	l := t.nodes[at].member.sub
	dst = append(dst, '{')
	next, open := at+1, len(dst)
	for i := range l.fields {
		m := &l.fields[i]
		node := next
		if m.implied {
			dst = appendScalar(append(dst, m.jsonKey...), m.typ, make([]byte, m.typ.width()), m.defaultInt)
			continue
		}
		if m.tag < 0 {
			if next >= t.nodes[at].next {
				break // decoding stopped here
			}
			next = t.nodes[next].next
		} else if node = t.tagged(at, m); node < 0 || t.isDefault(node) {
			continue
		}
		key := m.jsonKey
		if len(dst) == open {
			key = key[1:] // no comma
		}
		dst = append(dst, key...)
		dst = t.appendValue(dst, node)
	}
	return append(dst, '}')
}

// tagged finds a tagged field of the struct at a node; of several the last counts, as for Kafka. -1: not there.
func (t *tape) tagged(at int32, m *member) int32 {
	tags := int32(t.nodes[at].num)
	found := int32(-1)
	if tags == 0 || t.nodes[tags].num == 0 {
		return found
	}
	for i := tags + 1; i < t.nodes[at].next; i = t.nodes[i].next {
		if t.nodes[i].member == m {
			found = i
		}
	}
	return found
}

// isDefault reports whether a tagged field holds what a reader assumes without it.
func (t *tape) isDefault(at int32) bool {
	n := &t.nodes[at]
	m := n.member
	switch {
	case n.kind == nodeNull || m.defaultNull:
		return n.kind == nodeNull && m.defaultNull
	case m.array:
		return n.num == 0
	case m.typ == typeStruct:
		return t.isDefaultStruct(at)
	case m.typ == typeUUID:
		return [16]byte(t.content(n)) == [16]byte{}
	case m.typ == typeString || m.typ == typeBytes:
		return n.body == n.end
	default:
		return n.num == m.defaultInt
	}
}

func (t *tape) isDefaultStruct(at int32) bool {
	for i := at + 1; i < t.nodes[at].next; i = t.nodes[i].next {
		switch n := &t.nodes[i]; n.kind {
		case nodeTags:
		case nodeUnknownTag:
			return false
		default:
			if !t.isDefault(i) {
				return false
			}
		}
	}
	return true
}

func (t *tape) appendValue(dst []byte, at int32) []byte {
	n := &t.nodes[at]
	m := n.member
	switch {
	case n.kind == nodeNull:
		return append(dst, "null"...)
	case m.array && n.kind != nodeElement:
		return t.appendArray(dst, at)
	case m.typ == typeStruct:
		return t.appendStruct(dst, at)
	case m.form != formPlain:
		return t.appendForm(dst, n)
	default:
		return appendScalar(dst, m.typ, t.content(n), n.num)
	}
}

func (t *tape) appendArray(dst []byte, at int32) []byte {
	n := &t.nodes[at]
	dst = append(dst, '[')
	if w := n.member.typ.width(); w > 0 {
		for b := t.content(n); len(b) >= w; b = b[w:] {
			if dst[len(dst)-1] != '[' {
				dst = append(dst, ',')
			}
			dst = appendScalar(dst, n.member.typ, b[:w], number(n.member.typ, b))
		}
		return append(dst, ']')
	}
	for i := at + 1; i < n.next; i = t.nodes[i].next {
		if i > at+1 {
			dst = append(dst, ',')
		}
		dst = t.appendValue(dst, i)
	}
	return append(dst, ']')
}

func appendScalar(dst []byte, typ typ, b []byte, num int64) []byte {
	switch typ {
	case typeBool:
		return strconv.AppendBool(dst, num != 0)
	case typeFloat64:
		return appendDouble(dst, math.Float64frombits(uint64(num)))
	case typeUUID:
		return append(AppendUUID(append(dst, '"'), b), '"')
	case typeString:
		return appendString(dst, b)
	case typeBytes:
		return append(base64.StdEncoding.AppendEncode(append(dst, '"'), b), '"')
	default:
		return strconv.AppendInt(dst, num, 10)
	}
}

// AppendUUID appends 16 bytes as Kafka writes a Uuid: 22 letters of base64url, no padding.
func AppendUUID(dst, uuid []byte) []byte { return base64.RawURLEncoding.AppendEncode(dst, uuid) }

// needsCare has the bytes that are not copied into a JSON string as they are.
var needsCare = func() (set [256]bool) {
	for c := range set {
		set[c] = c < 0x20 || c == '"' || c == '\\' || c >= 0x80
	}
	return set
}()

// appendString appends a JSON string as Jackson does: only the quote, the backslash and control characters are escaped.
func appendString(dst, b []byte) []byte {
	for i, c := range b {
		if needsCare[c] {
			return appendCareful(dst, b, i)
		}
	}
	dst = append(dst, '"')
	dst = append(dst, b...)
	return append(dst, '"')
}

// appendCareful is appendString for bytes of which the first plain ones need no care.
func appendCareful(dst, b []byte, plain int) []byte {
	dst = append(dst, '"')
	dst = append(dst, b[:plain]...)
	b = b[plain:]
	if !utf8.Valid(b) {
		b = format.AppendJavaUTF8(nil, b)
	}
	plain = 0
	for i, c := range b {
		if c >= 0x20 && c != '"' && c != '\\' {
			continue
		}
		dst = append(dst, b[plain:i]...)
		dst = appendEscape(dst, c)
		plain = i + 1
	}
	dst = append(dst, b[plain:]...)
	return append(dst, '"')
}

func appendEscape(dst []byte, c byte) []byte {
	const hex = "0123456789ABCDEF"
	switch c {
	case '"', '\\':
		return append(dst, '\\', c)
	case '\b':
		return append(dst, `\b`...)
	case '\t':
		return append(dst, `\t`...)
	case '\n':
		return append(dst, `\n`...)
	case '\f':
		return append(dst, `\f`...)
	case '\r':
		return append(dst, `\r`...)
	}
	return append(dst, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
}
