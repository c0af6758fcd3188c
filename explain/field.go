package explain

import (
	"encoding/json"
	"strconv"
	"strings"
	"unicode/utf8"

	"kseg/format"
	"kseg/render"
	"kseg/schema"
)

// field is a leaf, ready to be shown.
type field struct {
	format.Leaf
	// hidden means that the bytes must not be shown.
	hidden bool
	// text is the value as a person reads it, json as a script does; nil is that of the bytes, in the mode payload.
	text    string
	json    []byte
	payload render.Payload
	meaning string
	// good means that the value was checked and holds.
	good bool
	// object means that it is part of a decoded key or value.
	object bool
}

// nameOf is the last element of a path.
func nameOf(path string) string { return path[strings.LastIndexByte(path, '.')+1:] }

// leaf shows one leaf, or what its bytes are made of.
func (e *explainer) leaf(l format.Leaf) error {
	name := nameOf(l.Path)
	e.scene.see(&l, name)
	if l.Role == format.RoleKey || l.Role == format.RoleValue {
		if shown, err := e.decoded(&l); shown || err != nil {
			return err
		}
	}
	f := field{Leaf: l, hidden: e.opts.Payload.LengthsOnly() && secret(&l)}
	e.value(&f, name)
	if !e.opts.Terse {
		f.meaning, f.good = e.words(&f.Leaf, name)
	}
	if f.hidden && f.Role == format.RoleDamage && f.Fault != nil { // what was read there as a length are bytes, too
		f.Fault = &format.Error{What: f.Fault.What, Pos: f.Fault.Pos, Err: f.Fault.Err}
	}
	return e.sink.field(&f)
}

// secret reports whether the bytes are a user's, or may be.
func secret(l *format.Leaf) bool {
	switch l.Role {
	case format.RoleKey, format.RoleValue, format.RoleHeaderValue, format.RoleFrame, format.RoleCompressed,
		format.RoleTornTail,
		format.RoleDamage, format.RoleUnreadable:
		return true
	}
	return false
}

// openNumbers are the numbers in codec frames that say nothing of the content.
var openNumbers = map[string]bool{"magic": true, "method": true, "flags": true, "version": true,
	"compatibleVersion": true, "length": true,
	"size": true, "blockDescriptor": true, "headerChecksum": true, "contentSize": true, "endMark": true,
	"frameDescriptor":  true,
	"windowDescriptor": true, "header": true, "mtime": true, "extraFlags": true, "os": true}

// value fills in the value of a field.
func (e *explainer) value(f *field, name string) {
	switch {
	case f.Type.Numeric() && f.hidden && f.Role == format.RoleFrame && !openNumbers[name]:
		f.json, f.Bits = []byte("null"), nil
	case f.Type == format.TypeUint64LE:
		f.text = strconv.FormatUint(uint64(f.Number), 10)
		f.json = []byte(f.text)
	case f.Type.Numeric():
		f.text = strconv.FormatInt(f.Number, 10)
		f.json = []byte(f.text)
	case f.Type == format.TypeText:
		text := strings.TrimRight(string(f.Bytes), "\r\n")
		text = strings.TrimSuffix(text, " ")
		f.text, f.json = render.Escaped(text), render.AppendString(nil, text)
	case f.Role == format.RoleKey || f.Role == format.RoleValue || f.Role == format.RoleHeaderValue ||
		f.Role == format.RoleField:
		p := e.opts.Payload
		if f.Role == format.RoleField {
			p = render.PayloadAuto // a header's key is never hidden
		}
		f.text, f.payload = payloadText(f.Bytes, p), p
	default:
		f.text, f.json = bytesOf(f.End-f.Start), []byte("null")
	}
}

// payloadText shows bytes on one line, cut where it gets long.
func payloadText(b []byte, p render.Payload) string {
	if p == render.PayloadDefault || p == render.PayloadRaw {
		p = render.PayloadAuto
	}
	const most = 160 // bytes that are looked at; what is shown is cut further
	cut := b
	for n := most; len(b) > most && n > most-utf8.UTFMax; n-- {
		if utf8.RuneStart(b[n]) {
			cut = b[:n]
			break
		}
		cut = b[:most] // not UTF-8
	}
	if p.LengthsOnly() {
		return string(p.AppendText(nil, b))
	}
	text := string(p.AppendText(nil, cut))
	if p == render.PayloadUTF8 || p == render.PayloadAuto && text != string(render.PayloadHex.AppendText(nil, cut)) {
		text = `"` + text + `"`
	}
	return text
}

// keepable are the leaves of decoded objects that are shown also where their content must not be.
var keepable = map[string]bool{"recordType": true, "version": true, "type": true, "frameVersion": true, "apiKey": true}

// decoded shows a key or value as the fields of its schema, and reports whether it has one.
func (e *explainer) decoded(l *format.Leaf) (bool, error) {
	half, why := e.half(l)
	w := objectWriter{e: e, l: l}
	if e.scene.batch.Control() && l.Role == format.RoleKey {
		w.controlKey()
		return w.shown > 0, w.err
	}
	for s := range half.Leaves() {
		if s.Path == "undecoded" && why != "" {
			s.Meaning = "not decoded: " + why
		}
		if !w.leaf(s) {
			break
		}
	}
	w.finish()
	return w.shown > 0, w.err
}

// half decodes a key or value; the sentence says why it could not be decoded to its end.
func (e *explainer) half(l *format.Leaf) (schema.Half, string) {
	if e.scene.batch.Control() {
		if l.Role == format.RoleKey {
			return schema.Half{}, ""
		}
		c := e.schema.DecodeControl(e.scene.key, l.Bytes)
		return c.Value, errorText(c.Err)
	}
	if e.topic == schema.None {
		return schema.Half{}, ""
	}
	if l.Role == format.RoleKey {
		r := e.schema.Decode(e.topic, l.Bytes, nil)
		return r.Key, errorText(r.Err)
	}
	r := e.schema.Decode(e.topic, e.scene.key, l.Bytes)
	return r.Value, errorText(r.Err)
}

func errorText(err *schema.Error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// objectWriter shows the leaves of one decoded key or value. Where contents must not be shown, type and version are,
// and the rest is one field.
type objectWriter struct {
	e     *explainer
	l     *format.Leaf
	shown int
	pos   int // in the key or value
	err   error
}

// leaf shows one leaf and reports whether to go on.
func (w *objectWriter) leaf(s schema.Leaf) bool {
	if w.e.opts.Payload.LengthsOnly() && !keepable[s.Path] {
		return false
	}
	w.show(s, false)
	return w.err == nil
}

// finish shows what was not shown.
func (w *objectWriter) finish() {
	if w.err == nil && w.pos > 0 && w.pos < len(w.l.Bytes) {
		w.show(schema.Leaf{Path: "body", Start: w.pos, End: len(w.l.Bytes)}, true)
	}
}

func (w *objectWriter) show(s schema.Leaf, hidden bool) {
	f := field{Leaf: *w.l, hidden: hidden, json: []byte("null"), object: true}
	f.Path += "." + s.Path
	f.Start, f.End = w.l.Start+int64(s.Start), w.l.Start+int64(s.End)
	f.Bytes, f.Role = w.l.Bytes[s.Start:s.End], format.RoleField
	switch {
	case hidden:
		f.text = bytesOf(int64(s.End - s.Start))
	case s.Value != "":
		f.text, f.json = render.Escaped(s.Value), safeJSON(s.Value)
	}
	if !w.e.opts.Terse {
		f.meaning = timed(s)
	}
	w.shown++
	w.pos = s.End
	w.err = w.e.sink.field(&f)
}

// timed is the meaning of a leaf, with the date where its name says that it is a time.
func timed(s schema.Leaf) string {
	if !strings.HasSuffix(s.Path, "imestamp") && !strings.HasSuffix(s.Path, "imestampMs") {
		return s.Meaning
	}
	ms, err := strconv.ParseInt(s.Value, 10, 64)
	if err != nil || ms < 0 {
		return s.Meaning
	}
	return instant(ms)
}

// controlKey shows the key of a control record: version and type.
func (w *objectWriter) controlKey() {
	b := w.l.Bytes
	if len(b) < 4 {
		return
	}
	number := func(at int) string { return strconv.Itoa(int(int16(uint16(b[at])<<8 | uint16(b[at+1])))) }
	w.leaf(schema.Leaf{Path: "version", End: 2, Value: number(0), Meaning: "version of the key"})
	if w.err == nil {
		w.leaf(schema.Leaf{Path: "type", Start: 2, End: 4, Value: number(2), Meaning: controlWords(w.e.scene.control)})
	}
	if w.err == nil && len(b) > 4 {
		w.show(schema.Leaf{Path: "trailing", Start: 4, End: len(b), Meaning: "bytes after the key that no broker looks at"},
			w.e.opts.Payload.LengthsOnly())
	}
}

// safeJSON is JSON text with the characters escaped that act on a terminal.
func safeJSON(value string) []byte {
	if !strings.HasPrefix(value, `"`) {
		return []byte(value)
	}
	var s string
	if err := json.Unmarshal([]byte(value), &s); err != nil {
		return render.AppendString(nil, value)
	}
	return render.AppendString(nil, s)
}
