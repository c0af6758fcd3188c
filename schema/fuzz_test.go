package schema

import (
	"encoding/json"
	"testing"
	"unicode/utf8"

	"kseg/format"
)

// FuzzDecode: no panic, valid output, leaves that cover all bytes, and no more nodes than bytes could pay for.
func FuzzDecode(f *testing.F) {
	n := 0
	eachFrozen(f, func(topic Topic, b *format.Batch, rec *format.Record) {
		if n++; !b.Control() && n%7 == 0 {
			f.Add(uint8(topic), rec.Key, rec.Value)
		}
	})
	d := NewDecoder()
	f.Fuzz(func(t *testing.T, topic uint8, key, value []byte) {
		to := Topic(topic%uint8(topicCount-1)) + 1
		r := d.Decode(to, key, value)
		if r.Key.tape != nil {
			checkCover(t, r.Key, key)
		}
		if r.Value.tape != nil {
			checkCover(t, r.Value, value)
			if n := len(d.value.nodes); n > 2*len(value)+2 {
				t.Fatalf("%d nodes for %d bytes", n, len(value))
			}
		}
		walkValues(r.Value.Root(), 0)
		if text := d.AppendText(nil, to, 1, key, value); !utf8.Valid(text) {
			t.Fatalf("not UTF-8: %q", text)
		}
		if out := d.AppendJSON(nil, to, key, value); !json.Valid(out) {
			t.Fatalf("not JSON: %s", out)
		}
	})
}

// walkValues calls every accessor of every value.
func walkValues(v Value, depth int) {
	if depth > 20 {
		panic("the values go too deep")
	}
	_, _, _, _ = v.Int(), v.Text(), v.UUID(), v.AppendJSON(nil)
	_, _ = v.Int32s(), v.IsNull()
	for _, e := range v.Elements() {
		walkValues(e, depth+1)
	}
	for f := range v.Fields() {
		walkValues(f, depth+1)
	}
	if v.field == nil || v.field.typ == typeStruct {
		for _, f := range v.structFields() {
			_, _, _ = v.Get(f.name).Int(), v.Get(f.name).IsNull(), v.Get(f.name).Len()
		}
	}
}

// FuzzControl is FuzzDecode for control records.
func FuzzControl(f *testing.F) {
	eachFrozen(f, func(_ Topic, b *format.Batch, rec *format.Record) {
		if b.Control() {
			f.Add(rec.Key, rec.Value)
		}
	})
	d := NewDecoder()
	f.Fuzz(func(t *testing.T, key, value []byte) {
		c := d.DecodeControl(key, value)
		if c.Value.tape != nil {
			checkCover(t, c.Value, value)
		}
		walkValues(c.Value.Root(), 0)
		if text, err := d.AppendControlText(nil, key, value); err == nil && !utf8.Valid(text) {
			t.Fatalf("not UTF-8: %q", text)
		}
		if out := d.AppendControlJSON(nil, key, value); !json.Valid(out) {
			t.Fatalf("not JSON: %s", out)
		}
	})
}
