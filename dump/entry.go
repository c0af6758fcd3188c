package dump

import (
	"fmt"
	"strconv"

	"kseg/logdir"
	"kseg/render"
)

// form is how a field's value is shown.
type form uint8

const (
	plainInt form = iota
	timeInt       // a number; in JSON and tables also as a date
	optional      // a Java OptionalLong in text, null in JSON where absent
	omitted       // left out of the text where absent, null in JSON
	words         // a string
)

// field is one value of an entry, with its name in text and in JSON.
type field struct {
	text, json string
	form       form
	absent     bool
	v          int64
	s          string
}

// entries prints the items of the small files: index entries, producers, checkpoint lines. It is reused from item to
// item.
type entries struct {
	d      *dumper
	f      *logdir.File
	kind   string
	place  place
	dst    []byte
	fields []field
}

// checkpointEntry is the kind of object of a line in a checkpoint of offsets.
const checkpointEntry = "checkpoint_entry"

func (d *dumper) entries(f *logdir.File, kind string) *entries {
	return &entries{d: d, f: f, kind: kind, place: placeOf(f)}
}

func (e *entries) int(text, json string, v int64) *entries {
	e.fields = append(e.fields, field{text: text, json: json, v: v})
	return e
}

func (e *entries) time(text, json string, v int64) *entries {
	e.fields = append(e.fields, field{text: text, json: json, form: timeInt, v: v})
	return e
}

func (e *entries) maybe(text, json string, form form, v int64, present bool) *entries {
	e.fields = append(e.fields, field{text: text, json: json, form: form, v: v, absent: !present})
	return e
}

func (e *entries) str(text, json, s string) *entries {
	e.fields = append(e.fields, field{text: text, json: json, form: words, s: s})
	return e
}

// end completes an item.
func (e *entries) end() error {
	defer func() { e.fields = e.fields[:0] }()
	if e.d.opts.Quiet {
		return nil
	}
	switch e.d.opts.Output {
	case JSON:
		e.object()
	case Table:
		e.row()
		return nil
	default:
		e.line()
	}
	if len(e.dst) < flushBytes {
		return nil
	}
	return e.close()
}

// close writes what is buffered.
func (e *entries) close() error {
	err := e.d.write(e.dst)
	e.dst = e.dst[:0]
	return err
}

func (e *entries) line() {
	first := true
	for i := range e.fields {
		f := &e.fields[i]
		if f.absent && f.form == omitted {
			continue
		}
		if !first {
			e.dst = append(e.dst, ' ')
		}
		first = false
		e.dst = append(render.AppendEscaped(e.dst, f.text), ": "...)
		switch f.form {
		case words:
			e.dst = render.AppendEscaped(e.dst, f.s)
		case optional:
			e.dst = appendOptionalLong(e.dst, f.v, !f.absent)
		default:
			e.dst = appendInt(e.dst, f.v)
		}
	}
	e.dst = append(e.dst, '\n')
}

func (e *entries) object() {
	o := render.NewObj(e.dst, e.kind)
	if e.kind == checkpointEntry {
		o.Str("file", e.f.Rel) // it is about a partition, and lies in none
	} else {
		e.place.append(&o)
	}
	for i := range e.fields {
		switch f := &e.fields[i]; f.form {
		case words:
			o.Str(f.json, f.s)
		case timeInt:
			o.Time(f.json, f.v)
		default:
			o.IntOrNull(f.json, f.v, !f.absent)
		}
	}
	e.dst = o.Line()
}

func (e *entries) row() {
	columns := []render.Column{left("file")}
	row := []string{render.Escaped(e.f.Rel)}
	for i := range e.fields {
		f := &e.fields[i]
		columns = append(columns, render.Column{Name: f.text, Right: f.form != words && f.form != timeInt})
		row = append(row, f.cell())
	}
	e.d.row(e.kind, columns, row...)
}

func (f *field) cell() string {
	switch {
	case f.absent:
		return ""
	case f.form == words:
		return render.Escaped(f.s)
	case f.form == timeInt:
		return instant(f.v)
	}
	return strconv.FormatInt(f.v, 10)
}

// table is the table being printed; items of another kind begin a new one.
type table struct {
	*render.Table
	kind    string
	columns int
}

// row adds a row to the table of a kind of item. Errors of writing come with flushTable.
func (d *dumper) row(kind string, columns []render.Column, cells ...string) {
	if d.table == nil || d.table.kind != kind || d.table.columns != len(columns) {
		if d.table != nil {
			d.table.Flush()
			fmt.Fprintln(d.out)
		}
		d.table = &table{render.NewTable(d.out, d.opts.Theme, columns...), kind, len(columns)}
	}
	d.table.Row(cells...)
	d.written++
}

// flushTable writes what the table holds back.
func (d *dumper) flushTable() error {
	if d.table == nil {
		return nil
	}
	return d.table.Flush()
}
