package explain

import (
	"strconv"
	"strings"

	"kseg/format"
	"kseg/render"
)

// Widths of the columns in text, in characters. What is wider pushes the rest of its row to the right.
const (
	rowBytes    = 8
	mostRows    = 4 // of one field; the rest of its bytes is counted
	fieldWidth  = 24
	valueWidth  = 18
	mostValue   = 60
	leastWords  = 28 // below this, a terminal's last columns are no room for a meaning
	narrowWidth = 84 // below this, a terminal has no room for characters, and half as much for bytes
)

// textSink prints a row for each field, and the tree that the fields are in by indentation.
type textSink struct {
	out   *lineWriter
	theme render.Theme
	terse bool
	width int // of the terminal, 0 if it does not matter
	pos   int // width of the position column
	bytes int // of a field in a row
	ascii int // width of the column of characters, 0 if there is none
	nodes []string
	begun bool
	buf   []byte
}

func newTextSink(out *lineWriter, o *Options, size int64) *textSink {
	s := &textSink{out: out, theme: o.Theme, terse: o.Terse, width: o.Width, pos: max(3, len(strconv.FormatInt(size, 10))),
		bytes: rowBytes, ascii: rowBytes}
	if s.width > 0 && s.width < narrowWidth {
		s.bytes, s.ascii = rowBytes/2, 0
	}
	return s
}

func (s *textSink) title(text string, notes []string) error {
	dst := s.buf[:0]
	if s.begun {
		dst = append(dst, '\n')
	}
	s.begun, s.nodes = true, nil
	dst = append(dst, s.theme.Strong(render.Escaped(text))...)
	dst = append(dst, '\n')
	if !s.terse {
		for _, n := range notes {
			for _, line := range render.Wrap(render.Escaped(n), s.room(2)) {
				dst = append(dst, "  "...)
				dst = append(dst, s.theme.Dim(line)...)
				dst = append(dst, '\n')
			}
		}
	}
	dst = s.cells(dst, s.theme.Dim("pos"), s.theme.Dim("hex"), s.theme.Dim("ascii"), s.theme.Dim("field"),
		s.theme.Dim("value"), s.heading())
	return s.write(dst)
}

func (s *textSink) heading() string {
	if s.terse || s.wordsBelow() {
		return ""
	}
	return s.theme.Dim("meaning")
}

// room is the width of lines that begin at the column indent; 0 if it does not matter.
func (s *textSink) room(indent int) int {
	if s.width <= 0 {
		return 0
	}
	return max(s.width-indent, 20)
}

func (s *textSink) plain(text string) error {
	s.nodes = nil
	dst := s.buf[:0]
	for _, line := range render.Wrap(text, s.room(0)) {
		dst = append(append(dst, s.theme.Strong(line)...), '\n')
	}
	return s.write(dst)
}

func (s *textSink) missing(text string) error {
	return s.write(s.cells(s.buf[:0], "", "", "", "", "", s.theme.Bad(render.Escaped(text))))
}

func (s *textSink) write(line []byte) error {
	s.buf = line
	return s.out.write(line)
}

func (s *textSink) field(f *field) error {
	nodes, leaf := split(f)
	dst := s.branches(s.buf[:0], nodes)
	pos, text := position(f), cut(f.text)
	if f.good {
		text += "  " + s.theme.Good("✔")
	}
	name := strings.Repeat("  ", len(nodes)) + render.Escaped(leaf)
	words := s.words(f)
	var below []string
	if s.wordsBelow() {
		words, below = nil, words
	}
	rows := (len(f.Bytes) + s.bytes - 1) / s.bytes
	shown := min(rows, mostRows)
	for i := 0; i < max(shown, len(words)); i++ {
		hexes, ascii, word := "", "", ""
		if i < shown {
			hexes, ascii = s.row(f, i)
		}
		if i < len(words) {
			word = words[i]
		}
		dst = s.cells(dst, pos, hexes, ascii, name, text, word)
		pos, name, text = "", "", ""
	}
	if rows > shown {
		more := "… " + render.Count(int64(len(f.Bytes)-shown*s.bytes)) + " more"
		dst = s.cells(dst, "", s.theme.Dim(more), "", "", "", "")
	}
	for _, line := range below {
		dst = append(append(append(dst, strings.Repeat(" ", s.pos+4)...), line...), '\n')
	}
	return s.write(dst)
}

// position is where a field begins, in the file or in the decompressed records.
func position(f *field) string {
	if f.Plain {
		return "z+" + strconv.FormatInt(f.Start, 10)
	}
	return strconv.FormatInt(f.Start, 10)
}

// words are the lines of what is wrong with a field and what it means.
func (s *textSink) words(f *field) []string {
	switch {
	case f.Fault != nil:
		return s.meaning(wrong(f.Fault)+extra(f.meaning), s.theme.Bad)
	case f.meaning != "":
		return s.meaning(f.meaning, func(t string) string { return t })
	}
	return nil
}

func extra(meaning string) string {
	if meaning == "" {
		return ""
	}
	return "; " + meaning
}

// branches prints a row for each node that a field is in and the last one was not.
func (s *textSink) branches(dst []byte, nodes []string) []byte {
	same := 0
	for same < len(nodes) && same < len(s.nodes) && nodes[same] == s.nodes[same] {
		same++
	}
	for i := same; i < len(nodes); i++ {
		dst = s.cells(dst, "", "", "", strings.Repeat("  ", i)+s.theme.Strong(render.Escaped(nodes[i])), "", "")
	}
	s.nodes = nodes
	return dst
}

// split cuts a path into the nodes that a field is in, without the batch, which has a title, and what it is called
// there. What stands in front of the content of a field of a schema, such as its length, is a row beside it and no
// node.
func split(f *field) (nodes []string, leaf string) {
	nodes = strings.Split(f.Path, ".")
	if strings.HasPrefix(nodes[0], "batch[") {
		nodes = nodes[1:]
	}
	last := len(nodes) - 1
	leaf = nodes[last]
	if f.object && last > 0 && (leaf == "length" || leaf == "present" || leaf == "tag" || leaf == "size") {
		last--
		leaf = nodes[last] + "." + leaf
	}
	return nodes[:last], leaf
}

// row gives the digits and characters of row i of a field.
func (s *textSink) row(f *field, i int) (hexes, ascii string) {
	b := f.Bytes[i*s.bytes : min(len(f.Bytes), (i+1)*s.bytes)]
	var h, a strings.Builder
	for j, c := range b {
		if j > 0 && j%2 == 0 {
			h.WriteByte(' ')
		}
		switch {
		case f.hidden:
			h.WriteString("..")
			a.WriteByte('.')
			continue
		case c >= 0x20 && c < 0x7f:
			a.WriteByte(c)
		default:
			a.WriteByte('.')
		}
		h.WriteByte("0123456789abcdef"[c>>4])
		h.WriteByte("0123456789abcdef"[c&15])
	}
	if f.Fault != nil {
		return s.theme.Bad(h.String()), s.theme.Bad(a.String())
	}
	return h.String(), s.theme.Dim(a.String())
}

// indent is the column in which meanings begin.
func (s *textSink) indent() int {
	at := s.pos + 2 + s.hexWidth() + 2 + fieldWidth + 2 + valueWidth + 2
	if s.ascii > 0 {
		at += s.ascii + 2
	}
	return at
}

// hexWidth is the width of a row's bytes in groups of two.
func (s *textSink) hexWidth() int { return 2*s.bytes + s.bytes/2 - 1 }

// wordsBelow reports whether meanings stand in lines of their own, since the terminal is narrow.
func (s *textSink) wordsBelow() bool { return s.width > 0 && s.width-s.indent()-2 < leastWords }

// meaning wraps the words to what is left of the width.
func (s *textSink) meaning(text string, paint func(string) string) []string {
	room := 0
	switch {
	case s.width <= 0:
	case s.wordsBelow():
		room = s.room(s.pos + 4)
	default:
		room = s.width - s.indent() - 2
	}
	lines := render.Wrap(render.Escaped(text), room)
	for i := range lines {
		lines[i] = paint(lines[i])
	}
	return lines
}

// cells appends a row.
func (s *textSink) cells(dst []byte, pos, hexes, ascii, name, value, meaning string) []byte {
	dst = append(dst, strings.Repeat(" ", max(0, s.pos+2-render.Width(pos)))...)
	dst = append(dst, pos...)
	for _, c := range []struct {
		text  string
		width int
	}{{hexes, s.hexWidth()}, {ascii, s.ascii}, {name, fieldWidth}, {value, valueWidth}} {
		if c.width == 0 {
			continue
		}
		dst = append(append(dst, "  "...), c.text...)
		dst = append(dst, strings.Repeat(" ", max(0, c.width-render.Width(c.text)))...)
	}
	dst = append(append(dst, "  "...), meaning...)
	for len(dst) > 0 && dst[len(dst)-1] == ' ' {
		dst = dst[:len(dst)-1]
	}
	return append(dst, '\n')
}

// cut shortens a value that would push the meaning far to the right.
func cut(text string) string {
	if render.Width(text) <= mostValue {
		return text
	}
	width := 0
	for i, r := range text {
		if width += render.Width(string(r)); width >= mostValue {
			return text[:i] + "…"
		}
	}
	return text
}

// wrong says what is wrong with a field, and what was wanted.
func wrong(f *format.Error) string { return "WRONG: " + f.What + ": " + f.Reason() }
