package explain

import (
	"io"
	"strconv"

	"kseg/render"
)

// tableSink prints a row for each field, under one header: bytes and values as the text begins them, paths whole.
type tableSink struct {
	*textSink
	table *render.Table
}

func newTableSink(out io.Writer, o *Options, size int64) *tableSink {
	columns := []render.Column{{Name: "position", Right: true}, {Name: "bytes", Right: true}, {Name: "hex"},
		{Name: "field"}, {Name: "value"}, {Name: "meaning"}}
	return &tableSink{newTextSink(nil, o, size), render.NewTable(out, o.Theme, columns...)}
}

func (s *tableSink) title(string, []string) error { return nil }
func (s *tableSink) plain(string) error           { return nil }

func (s *tableSink) missing(text string) error {
	s.table.Row("", "", "", "", "", s.theme.Bad(render.Escaped(text)))
	return nil
}

func (s *tableSink) field(f *field) error {
	hexes, _ := s.row(f, 0)
	if len(f.Bytes) > s.bytes {
		hexes += " …"
	}
	meaning := render.Escaped(f.meaning)
	if f.Fault != nil {
		meaning = s.theme.Bad(render.Escaped(wrong(f.Fault) + extra(f.meaning)))
	}
	s.table.Row(position(f), strconv.Itoa(len(f.Bytes)), hexes, render.Escaped(f.Path), cut(f.text), meaning)
	return nil
}
