package explain

import (
	"encoding/hex"

	"kseg/render"
)

// jsonSink prints an object for each field.
type jsonSink struct {
	out     *lineWriter
	file    string
	payload render.Payload
	terse   bool
	buf     []byte
}

func (s *jsonSink) title(string, []string) error { return nil }
func (s *jsonSink) plain(string) error           { return nil }
func (s *jsonSink) missing(string) error         { return nil }

func (s *jsonSink) field(f *field) error {
	o := render.NewObj(s.buf[:0], "field")
	o.Str("file", s.file)
	buffer := "file"
	if f.Plain {
		buffer = "decompressed"
	}
	o.Str("buffer", buffer)
	o.IntOrNull("batch_position", batchPosition(f), f.Batch != nil)
	o.Str("path", f.Path)
	o.Int("start", f.Start)
	o.Int("end", f.End)
	if f.hidden {
		o.Raw("bytes", dots(len(f.Bytes)))
	} else {
		o.Raw("bytes", append(hex.AppendEncode([]byte{'"'}, f.Bytes), '"'))
	}
	o.Raw("value", f.json)
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
	return s.out.write(s.buf)
}

func batchPosition(f *field) int64 {
	if f.Batch == nil {
		return 0
	}
	return f.Batch.Pos
}

// dots stands for the digits of n bytes that must not be shown.
func dots(n int) []byte {
	b := make([]byte, 2*n+2)
	for i := range b {
		b[i] = '.'
	}
	b[0], b[len(b)-1] = '"', '"'
	return b
}
