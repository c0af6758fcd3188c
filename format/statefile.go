package format

import (
	"bytes"
	"errors"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Exception names the class that a broker's own reader of a state file throws. What follows depends on it: an
// IOException takes the log directory offline, a NumberFormatException in a recovery point file means that everything
// is recovered.
type Exception string

// The classes that the readers of the small text files throw.
const (
	IOException              Exception = "IOException"
	NumberFormatException    Exception = "NumberFormatException"
	IllegalArgumentException Exception = "IllegalArgumentException"
	IllegalStateException    Exception = "IllegalStateException"
	NullPointerException     Exception = "NullPointerException"
	RuntimeException         Exception = "RuntimeException"
	OutOfMemoryError         Exception = "OutOfMemoryError"
)

// StateError says why a broker could not read a small text file (a checkpoint, partition.metadata, meta.properties,
// quorum-state), where, and what its own reader would throw.
type StateError struct {
	Cause  *Error // the position and the sentinel
	Line   int    // counted from 1; one more than the file has if something is missing at its end
	Throws Exception
}

// Error is the cause's message.
func (e *StateError) Error() string { return e.Cause.Error() }

// Unwrap returns the cause.
func (e *StateError) Unwrap() error { return e.Cause }

// orNil keeps a nil *StateError from becoming a non-nil error.
func (e *StateError) orNil() error {
	if e == nil {
		return nil
	}
	return e
}

// Throws is the class a broker's reader throws, if err came from a decoder of this package's text files, else "".
func Throws(err error) Exception {
	var state *StateError
	if errors.As(err, &state) {
		return state.Throws
	}
	return ""
}

// Line is a place in a text file.
type Line struct {
	Number int   // counted from 1
	Pos    int64 // byte position of the first character
	Len    int64 // bytes, without the line end
}

// textLine is a line and its text, which aliases the file.
type textLine struct {
	Line
	text []byte
}

// fail makes a StateError about n bytes of the line, from byte at on.
func (l textLine) fail(what string, at int, throws Exception, sentinel error, want string, got []byte) *StateError {
	return &StateError{
		Cause: &Error{What: what, Pos: l.Pos + int64(at), Want: want, Got: strconv.Quote(string(got[:min(len(got), 80)])),
			Err: sentinel},
		Line:   l.Number,
		Throws: throws,
	}
}

// lineReader cuts a file into lines as Java's BufferedReader does: at \n, \r or \r\n, with no line after the last end.
type lineReader struct {
	raw  []byte
	pos  int
	line int
}

// next returns the next line, or false at the end of the file; then the line is empty and lies at the end.
func (r *lineReader) next() (textLine, bool) {
	r.line++
	if r.pos >= len(r.raw) {
		return textLine{Line: Line{Number: r.line, Pos: int64(len(r.raw))}}, false
	}
	rest := r.raw[r.pos:]
	n := bytes.IndexAny(rest, "\r\n")
	if n < 0 {
		n = len(rest)
	}
	l := textLine{Line{r.line, int64(r.pos), int64(n)}, rest[:n:n]}
	r.pos += n
	if r.pos < len(r.raw) {
		r.pos++
		if rest[n] == '\r' && r.pos < len(r.raw) && r.raw[r.pos] == '\n' {
			r.pos++
		}
	}
	return l, true
}

// checkUTF8 fails where raw stops being UTF-8, which Kafka's readers report as an IOException.
func checkUTF8(what string, raw []byte) *StateError {
	line := 1
	for at := 0; at < len(raw); {
		r, n := utf8.DecodeRune(raw[at:])
		if r == utf8.RuneError && n == 1 {
			return &StateError{
				Cause: &Error{What: what, Pos: int64(at), Want: "UTF-8", Got: "byte 0x" + strconv.FormatUint(uint64(raw[at]), 16),
					Err: ErrValue},
				Line: line, Throws: IOException,
			}
		}
		if raw[at] == '\n' {
			line++
		}
		at += n
	}
	return nil
}

// column is a field of a line: its byte offset in the line and its text.
type column struct {
	at   int
	text []byte
}

// isJavaSpace reports whether b is matched by \s in a Java pattern.
func isJavaSpace(b byte) bool { return b == ' ' || b >= '\t' && b <= '\r' }

// splitColumns appends to dst the columns of text as Java's Pattern.split("\\s+") gives them: white space before the
// first column makes an empty column, white space after the last one does not; an empty line has one empty column.
func splitColumns(dst []column, text []byte) []column {
	if len(text) == 0 {
		return append(dst, column{})
	}
	for at := 0; at < len(text); {
		end := at
		for end < len(text) && !isJavaSpace(text[end]) {
			end++
		}
		if end > at || at == 0 {
			dst = append(dst, column{at, text[at:end:end]})
		}
		for at = end; at < len(text) && isJavaSpace(text[at]); at++ {
		}
	}
	if len(dst) == 1 && len(dst[0].text) == 0 {
		return dst[:0] // nothing but white space
	}
	return dst
}

// parseJavaInt reads a decimal as Integer.parseInt (bits 32) or Long.parseLong (bits 64): an optional sign and digits,
// of any script.
func parseJavaInt(text []byte, bits int) (int64, bool) {
	v, err := strconv.ParseInt(strings.Map(asciiDigit, string(text)), 10, bits)
	return v, err == nil
}

// asciiDigit is the digit that a rune stands for (Character.digit of one char), or else the rune.
func asciiDigit(r rune) rune {
	if r <= unicode.MaxASCII {
		return r
	}
	for _, block := range unicode.Nd.R16 {
		if r >= rune(block.Lo) && r <= rune(block.Hi) {
			return '0' + (r-rune(block.Lo))%10
		}
	}
	return r
}
