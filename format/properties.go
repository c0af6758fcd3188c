package format

import (
	"strconv"
	"strings"
	"unicode/utf16"
)

// Property is one key and value of a Java properties file.
type Property struct {
	Line         // of the first natural line; Len runs to the end of the last one
	Key   string // unescaped
	Value string // unescaped
}

// DecodeProperties reads a Java properties file as Properties.load does: ISO 8859-1, comment lines, continuation lines,
// the escapes \t \n \r \f and \uXXXX. Of several properties with one key the last counts. The error is a *StateError
// about the first malformed \u escape, at which Java gives up; the properties before it are returned.
func DecodeProperties(raw []byte) ([]Property, error) {
	var props []Property
	r := propertyReader{raw: raw, line: 1}
	for r.next() {
		key, value := splitProperty(r.text)
		p := Property{Line: Line{r.first, int64(r.start), int64(r.end - r.start)}}
		var bad int
		if p.Key, bad = unescapeProperty(key); bad >= 0 {
			return props, r.badEscape(bad)
		}
		if p.Value, bad = unescapeProperty(value); bad >= 0 {
			return props, r.badEscape(len(r.text) - len(value) + bad)
		}
		props = append(props, p)
	}
	return props, nil
}

// propertyReader cuts a properties file into logical lines.
type propertyReader struct {
	raw   []byte
	pos   int
	line  int    // number of the natural line at pos
	text  []byte // the logical line, without line ends, the backslashes before them, and leading white space
	parts []part // of text, one for each natural line
	first int    // number of its first natural line
	start int    // position of its first character
	end   int    // position after its last one
	cut   bool   // the file ends at a backslash or at the line end it escapes: then Java sees even an empty line
}

// part says that text[at:] is found from position pos of the file on, up to the next part.
type part struct{ at, pos int }

func isPropertySpace(b byte) bool { return b == ' ' || b == '\t' || b == '\f' }

// next reads the next logical line that is neither blank nor a comment.
func (r *propertyReader) next() bool {
	for r.pos < len(r.raw) {
		r.text, r.parts = r.text[:0], r.parts[:0]
		r.first = r.line
		r.skipSpace()
		r.start = r.pos
		for more := true; more; {
			more = r.natural()
		}
		if len(r.text) > 0 || r.cut {
			return true
		}
	}
	return false
}

func (r *propertyReader) skipSpace() {
	for r.pos < len(r.raw) && isPropertySpace(r.raw[r.pos]) {
		r.pos++
	}
}

// natural appends one natural line to the logical one and reports whether it goes on in the next.
func (r *propertyReader) natural() bool {
	comment := len(r.text) == 0 && r.pos < len(r.raw) && (r.raw[r.pos] == '#' || r.raw[r.pos] == '!')
	r.parts = append(r.parts, part{len(r.text), r.pos})
	escaped := false
	for ; r.pos < len(r.raw) && r.raw[r.pos] != '\n' && r.raw[r.pos] != '\r'; r.pos++ {
		if comment {
			continue
		}
		escaped = r.raw[r.pos] == '\\' && !escaped
		r.text = append(r.text, r.raw[r.pos])
	}
	r.end = r.pos
	if escaped {
		r.text = r.text[:len(r.text)-1]
	}
	r.cut = escaped && r.pos >= len(r.raw)-1
	if r.pos == len(r.raw) {
		return false
	}
	r.lineEnd()
	if escaped {
		r.skipSpace()
	}
	return escaped && !r.cut
}

// lineEnd consumes \n, \r or \r\n.
func (r *propertyReader) lineEnd() {
	r.line++
	r.pos++
	if r.raw[r.pos-1] == '\r' && r.pos < len(r.raw) && r.raw[r.pos] == '\n' {
		r.pos++
	}
}

// badEscape makes the error of the \u at index at of the logical line.
func (r *propertyReader) badEscape(at int) *StateError {
	l := textLine{Line: Line{Number: r.first}}
	i := len(r.parts) - 1
	for r.parts[i].at > at {
		i--
	}
	return l.fail("escape", r.parts[i].pos+at-r.parts[i].at, IllegalArgumentException, ErrValue,
		`\u and four hexadecimal digits`, r.text[at:min(len(r.text), at+6)])
}

// splitProperty cuts a logical line at the first unescaped '=', ':' or white space; white space around the separator
// belongs to neither side.
func splitProperty(text []byte) (key, value []byte) {
	i := 0
	for escaped := false; i < len(text); i++ {
		b := text[i]
		if !escaped && (b == '=' || b == ':' || isPropertySpace(b)) {
			break
		}
		escaped = b == '\\' && !escaped
	}
	key = text[:i]
	for separated := false; i < len(text); i++ {
		if b := text[i]; !isPropertySpace(b) {
			if separated || b != '=' && b != ':' {
				break
			}
			separated = true
		}
	}
	return key, text[i:]
}

// unescapeProperty returns the string that text stands for, or the index of a malformed \u escape (else −1).
func unescapeProperty(text []byte) (string, int) {
	units := make([]uint16, 0, len(text))
	for i := 0; i < len(text); i++ {
		if text[i] != '\\' || i+1 == len(text) {
			units = append(units, uint16(text[i]))
			continue
		}
		i++
		switch b := text[i]; b {
		case 'u':
			v, ok := hex4(text[i+1:])
			if !ok {
				return "", i - 1
			}
			units = append(units, v)
			i += 4
		case 't', 'n', 'r', 'f':
			units = append(units, uint16("\t\n\r\f"[strings.IndexByte("tnrf", b)]))
		default:
			units = append(units, uint16(b))
		}
	}
	return string(utf16.Decode(units)), -1
}

func hex4(b []byte) (uint16, bool) {
	if len(b) < 4 {
		return 0, false
	}
	v, err := strconv.ParseUint(string(b[:4]), 16, 16)
	return uint16(v), err == nil
}

// SplitList reads a list as Kafka does: commas between, white space around members is dropped; nil if it has none.
func SplitList(value string) []string {
	var all []string
	for item := range strings.SplitSeq(value, ",") {
		if item = strings.TrimSpace(item); item != "" {
			all = append(all, item)
		}
	}
	return all
}
