package explain

import (
	"bytes"
	"encoding/hex"

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
	err := s.out.write(append(before[:len(before):len(before)], `"bytes":"`...))
	for b := f.Bytes; len(b) > 0 && err == nil; {
		piece := b[:min(len(b), flushBytes/2)]
		b = b[len(piece):]
		if f.hidden {
			err = s.out.write(bytes.Repeat([]byte(".."), len(piece)))
		} else {
			err = s.out.write(hex.AppendEncode(nil, piece))
		}
	}
	if err == nil {
		err = s.out.write([]byte(`","value":`))
	}
	for value := f.json; len(value) > 0 && err == nil; {
		piece := value[:min(len(value), flushBytes/2)]
		value, err = value[len(piece):], s.out.write(piece)
	}
	if err != nil {
		return err
	}
	return s.out.write(after)
}

func batchPosition(f *field) int64 {
	if f.Batch == nil {
		return 0
	}
	return f.Batch.Pos
}
