package explain

import (
	"bytes"

	"kseg/render"
)

// jsonSink prints an object for each field.
type jsonSink struct {
	out       *lineWriter
	file      string
	topic     string // "" where the file belongs to no partition, as is partition then
	partition string
	payload   render.Payload
	terse     bool
	buf       []byte
}

func (s *jsonSink) title(string, []string) error { return nil }
func (s *jsonSink) plain(string) error           { return nil }
func (s *jsonSink) missing(string) error         { return nil }

func (s *jsonSink) field(f *field) error {
	o := render.NewObj(s.buf[:0], "field")
	o.Str("file", s.file)
	o.StrOrNull("topic", s.topic)
	o.StrOrNull("partition", s.partition)
	buffer := "file"
	if f.Plain {
		buffer = "decompressed"
	}
	o.Str("buffer", buffer)
	o.IntOrNull("batch_position", batchPosition(f), f.Batch != nil)
	o.Str("path", f.Path)
	o.Int("start", f.Start)
	o.Int("end", f.End)
	o.Str("bytes", "")
	o.Int("value", 0)
	o.StrOrNull("meaning", f.meaning)
	if f.Fault == nil {
		o.Null("fault")
	} else {
		o.Open("fault")
		o.Str("what", f.Fault.What)
		o.StrOrNull("want", f.Fault.Want)
		o.StrOrNull("got", f.Fault.Got)
		o.Str("error", f.Fault.Err.Error())
		o.Close()
	}
	o.OpenArray("bits")
	for _, b := range f.Bits {
		o.Open("")
		o.Str("name", b.Name)
		o.Int("value", b.Value)
		o.Close()
	}
	o.CloseArray()
	s.buf = o.Line()
	// A hole can be as long as the file, and a value as long as its batch, so they are written in pieces. Inside of a
	// string the quotes would be escaped.
	before, after, _ := bytes.Cut(s.buf, []byte(`"bytes":"","value":0`))
	rest := append(append(s.out.buf, before...), `"bytes":"`...)
	if f.hidden {
		rest = s.dots(rest, 2*len(f.Bytes))
	} else {
		rest = render.PayloadHex.AppendLongText(rest, f.Bytes, s.out.spill)
	}
	rest = append(rest, `","value":`...)
	if f.json == nil {
		rest = f.payload.AppendJSON(rest, f.Bytes, s.out.spill)
	}
	s.out.buf = append(rest, f.json...)
	return s.out.write(after)
}

// dots appends n dots.
func (s *jsonSink) dots(dst []byte, n int) []byte {
	some := bytes.Repeat([]byte("."), min(n, flushBytes))
	for ; n > len(some); n -= len(some) {
		dst = s.out.spill(append(dst, some...))
	}
	return append(dst, some[:n]...)
}

func batchPosition(f *field) int64 {
	if f.Batch == nil {
		return 0
	}
	return f.Batch.Pos
}
