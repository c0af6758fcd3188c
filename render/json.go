package render

import (
	"encoding/base64"
	"encoding/json"
	"slices"
	"strconv"
	"time"
	"unicode/utf8"
)

// SchemaVersion is the value of "schema" in every JSON object that kseg prints. Names are only ever added under the
// same number; a changed meaning would raise it.
const SchemaVersion = 1

// Obj appends one JSON object to a byte slice, name by name, without reflection and without allocating beyond the
// growth of that slice. The caller keeps the order of names and closes what it opens:
//
//	o := render.NewObj(buf[:0], "index_entry")
//	o.Str("file", file)
//	o.Int("offset", offset)
//	buf = o.Line()
//
// Inside an array the elements take the empty name.
type Obj struct {
	Spill Spill // for values that get long; nil: there is no place for them
	buf   []byte
}

// NewObj starts {"kind":KIND,"schema":1 after dst.
func NewObj(dst []byte, kind string) Obj {
	dst = append(dst, `{"kind":"`...)
	dst = append(dst, kind...)
	dst = append(dst, `","schema":`...)
	return Obj{buf: strconv.AppendInt(dst, SchemaVersion, 10)}
}

// Line closes the object, ends the line and returns the slice it was written to.
func (o *Obj) Line() []byte {
	o.buf = append(o.buf, '}', '\n')
	return o.buf
}

// name appends what stands before a value: a comma where one is due, and the name unless it is an array's element.
// A value never ends in an opening bracket, so the last byte tells whether this is the first of its object or array.
func (o *Obj) name(name string) {
	switch last := o.buf[len(o.buf)-1]; last {
	case '{', '[':
	default:
		o.buf = append(o.buf, ',')
	}
	if name != "" {
		o.buf = append(o.buf, '"')
		o.buf = append(o.buf, name...)
		o.buf = append(o.buf, '"', ':')
	}
}

// Str appends a string value, escaped.
func (o *Obj) Str(name, value string) {
	o.name(name)
	o.buf = AppendString(o.buf, value)
}

// StrOrNull appends a string value, or null where it is empty.
func (o *Obj) StrOrNull(name, value string) {
	if value == "" {
		o.Null(name)
		return
	}
	o.Str(name, value)
}

// Strs appends an array of strings.
func (o *Obj) Strs(name string, values []string) {
	o.OpenArray(name)
	for _, v := range values {
		o.Str("", v)
	}
	o.CloseArray()
}

// Int appends a 64-bit number.
func (o *Obj) Int(name string, value int64) {
	o.name(name)
	o.buf = strconv.AppendInt(o.buf, value, 10)
}

// IntOrNull appends a 64-bit number, or null where it is absent.
func (o *Obj) IntOrNull(name string, value int64, present bool) {
	if !present {
		o.Null(name)
		return
	}
	o.Int(name, value)
}

// Float appends a number with the given count of decimals; JSON has no word for NaN and infinity, so these are null.
func (o *Obj) Float(name string, value float64, decimals int) {
	if value != value || value-value != 0 {
		o.Null(name)
		return
	}
	o.name(name)
	o.buf = strconv.AppendFloat(o.buf, value, 'f', decimals, 64)
}

// Bool appends true or false.
func (o *Obj) Bool(name string, value bool) {
	o.name(name)
	o.buf = strconv.AppendBool(o.buf, value)
}

// Null appends null: absent values are said, not left out.
func (o *Obj) Null(name string) {
	o.name(name)
	o.buf = append(o.buf, "null"...)
}

// Bytes appends a key, value or header value in the shape that the payload mode allows; nil is null.
func (o *Obj) Bytes(name string, value []byte, p Payload) {
	o.name(name)
	o.buf = p.AppendJSON(o.buf, value, o.Spill)
}

// Text appends a string value of bytes; of those that are not UTF-8 clean, which takes any part of them that ends
// between characters, makes it.
func (o *Obj) Text(name string, value []byte, clean func(dst, part []byte) []byte) {
	o.name(name)
	add := appendInString[[]byte]
	if !utf8.Valid(value) {
		var scratch []byte
		add = func(dst, part []byte) []byte {
			scratch = clean(scratch[:0], part)
			return appendInString(dst, scratch)
		}
	}
	o.buf = append(o.Spill.Append(append(o.buf, '"'), value, add), '"')
}

// Time appends epoch milliseconds under name and the same as RFC 3339 in UTC under name_utc. Kafka's -1, no timestamp,
// is null in both; a time that RFC 3339 cannot write (before year 0, after 9999) is null in the second only.
func (o *Obj) Time(name string, timestampMs int64) {
	o.IntOrNull(name, timestampMs, timestampMs != NoTimestamp)
	o.buf = append(o.buf, `,"`...)
	o.buf = append(o.buf, name...)
	o.buf = append(o.buf, `_utc":`...)
	if timestampMs == NoTimestamp || !writableTime(timestampMs) {
		o.buf = append(o.buf, "null"...)
		return
	}
	o.buf = append(o.buf, '"')
	o.buf = AppendRFC3339(o.buf, timestampMs)
	o.buf = append(o.buf, '"')
}

// Raw appends a value that is JSON already.
func (o *Obj) Raw(name string, value []byte) {
	o.name(name)
	o.buf = append(o.buf, value...)
}

// Value appends any Go value through encoding/json: for summaries, never on a hot path. Structs keep the order of their
// fields. A value that encoding/json refuses becomes null, as the line must stay one object.
func (o *Obj) Value(name string, value any) {
	text, err := json.Marshal(value)
	if err != nil {
		o.Null(name)
		return
	}
	o.Raw(name, text)
}

// Open starts a nested object and Close ends it.
func (o *Obj) Open(name string) {
	o.name(name)
	o.buf = append(o.buf, '{')
}

// Close ends the object that Open started.
func (o *Obj) Close() { o.buf = o.Spill.room(append(o.buf, '}')) }

// OpenArray starts an array and CloseArray ends it; its elements take the empty name.
func (o *Obj) OpenArray(name string) {
	o.name(name)
	o.buf = append(o.buf, '[')
}

// CloseArray ends the array that OpenArray started.
func (o *Obj) CloseArray() { o.buf = append(o.buf, ']') }

const hexDigits = "0123456789abcdef"

// AppendString appends s as a JSON string. Besides what JSON demands it escapes DEL, the C1 controls, the characters
// that reorder or hide text on a terminal, and the two Unicode line ends, so that a line of JSON is safe to look at.
// Bytes that are not UTF-8 become U+FFFD: whoever needs them exactly writes base64.
func AppendString[T ~string | ~[]byte](dst []byte, s T) []byte {
	if len(s) > largeString {
		dst = slices.Grow(dst, jsonLength(s))
	}
	return append(appendInString(append(dst, '"'), s), '"')
}

// appendInString is AppendString without the quotes.
func appendInString[T ~string | ~[]byte](dst []byte, s T) []byte {
	start := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c < utf8.RuneSelf {
			if c >= 0x20 && c != '"' && c != '\\' && c != 0x7f {
				i++
				continue
			}
			dst = append(dst, s[start:i]...)
			dst = appendJSONControl(dst, c)
			i++
			start = i
			continue
		}
		// The compiler keeps this short conversion on the stack.
		r, n := utf8.DecodeRuneInString(string(s[i:min(i+utf8.UTFMax, len(s))]))
		if r != utf8.RuneError && !hidden(r) {
			i += n
			continue
		}
		dst = append(dst, s[start:i]...)
		dst = appendJSONRune(dst, r)
		i += n
		start = i
	}
	return append(dst, s[start:]...)
}

// largeString is the length above which room is made at once: growing step by step takes several times the memory.
const largeString = 1 << 20

// jsonLength is about how long s is as a JSON string.
func jsonLength[T ~string | ~[]byte](s T) int {
	n := len(s) + 2
	for i := range len(s) {
		switch c := s[i]; {
		case c < 0x20 || c == 0x7f:
			n += 5
		case c == '"' || c == '\\':
			n++
		}
	}
	return n
}

// AppendSafeJSON appends JSON in which the characters that act on a terminal, and stand in its strings as they are,
// become escapes.
func AppendSafeJSON(dst, json []byte) []byte {
	start := 0
	for i := 0; i < len(json); {
		if json[i] < 0x7f {
			i++
			continue
		}
		r, n := utf8.DecodeRune(json[i:])
		if r == 0x7f || hidden(r) {
			dst = appendJSONRune(append(dst, json[start:i]...), r)
			start = i + n
		}
		i += n
	}
	return append(dst, json[start:]...)
}

func appendJSONControl(dst []byte, c byte) []byte {
	switch c {
	case '"', '\\':
		return append(dst, '\\', c)
	case '\n':
		return append(dst, '\\', 'n')
	case '\r':
		return append(dst, '\\', 'r')
	case '\t':
		return append(dst, '\\', 't')
	}
	return append(dst, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
}

// appendJSONRune appends \uXXXX, as a surrogate pair above U+FFFF.
func appendJSONRune(dst []byte, r rune) []byte {
	if r > 0xffff {
		r -= 0x10000
		dst = appendJSONRune(dst, 0xd800+r>>10)
		return appendJSONRune(dst, 0xdc00+r&0x3ff)
	}
	return append(dst, '\\', 'u', hexDigits[r>>12], hexDigits[r>>8&15], hexDigits[r>>4&15], hexDigits[r&15])
}

// NoTimestamp is what Kafka stores where a record has no timestamp (RecordBatch.NO_TIMESTAMP).
const NoTimestamp = -1

const (
	minWritableMs = -62167219200000 // 0000-01-01T00:00:00Z
	maxWritableMs = 253402300799999 // 9999-12-31T23:59:59.999Z
)

func writableTime(timestampMs int64) bool {
	return timestampMs >= minWritableMs && timestampMs <= maxWritableMs
}

// AppendRFC3339 appends epoch milliseconds as 2023-11-14T22:13:20.000Z. Outside the years 0 to 9999, which RFC 3339
// cannot write, it appends the bare number.
func AppendRFC3339(dst []byte, timestampMs int64) []byte {
	if !writableTime(timestampMs) {
		return strconv.AppendInt(dst, timestampMs, 10)
	}
	return time.UnixMilli(timestampMs).UTC().AppendFormat(dst, "2006-01-02T15:04:05.000Z")
}

func appendBase64(dst, b []byte) []byte { return base64.StdEncoding.AppendEncode(dst, b) }
