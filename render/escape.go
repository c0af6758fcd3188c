package render

import (
	"strings"
	"unicode/utf8"
)

// AppendEscaped appends s as text that is safe on a terminal and stays on its line: \n, \r and \t; \x1b for other
// control characters; \u202e for C1 controls and for characters that reorder, hide or break text; \xff for bytes that
// are not UTF-8. A backslash stays as it is, since JSON in payloads is full of them; -o json is the form that can be
// undone.
func AppendEscaped[T ~string | ~[]byte](dst []byte, s T) []byte {
	start := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c >= 0x20 && c < 0x7f {
			i++
			continue
		}
		r, n := utf8.DecodeRuneInString(string(s[i:min(i+utf8.UTFMax, len(s))]))
		broken := r == utf8.RuneError && n == 1
		if c >= utf8.RuneSelf && !broken && !hidden(r) {
			i += n
			continue
		}
		dst = append(dst, s[start:i]...)
		switch {
		case c == '\n':
			dst = append(dst, '\\', 'n')
		case c == '\r':
			dst = append(dst, '\\', 'r')
		case c == '\t':
			dst = append(dst, '\\', 't')
		case c < utf8.RuneSelf || broken:
			dst = append(dst, '\\', 'x', hexDigits[c>>4], hexDigits[c&15])
		default:
			dst = appendEscapedRune(dst, r)
		}
		i += n
		start = i
	}
	return append(dst, s[start:]...)
}

// Escaped is AppendEscaped for a string: file names and messages that quote input go through it.
func Escaped(s string) string { return string(AppendEscaped(nil, s)) }

func appendEscapedRune(dst []byte, r rune) []byte {
	if r > 0xffff {
		dst = append(dst, '\\', 'U', '0', '0', hexDigits[r>>20&15], hexDigits[r>>16&15])
	} else {
		dst = append(dst, '\\', 'u')
	}
	return append(dst, hexDigits[r>>12&15], hexDigits[r>>8&15], hexDigits[r>>4&15], hexDigits[r&15])
}

// hidden reports whether a character above ASCII acts on a terminal instead of being seen: C1 controls, the
// bidirectional marks, embeddings and isolates, zero-width space, byte-order mark, line and paragraph separator,
// interlinear annotation, and the invisible tag characters. Joiners stay, as scripts and emoji need them.
func hidden(r rune) bool {
	switch {
	case r < 0x80:
		return false
	case r < 0xa0:
		return true
	case r < 0x200b:
		return r == 0x61c
	case r <= 0x200f:
		return r != 0x200c && r != 0x200d
	case r <= 0x206f:
		return r >= 0x2028 && r <= 0x202e || r >= 0x2066
	}
	return r == 0xfeff || r >= 0xfff9 && r <= 0xfffb || r >= 0xe0000 && r <= 0xe007f
}

// ShellWord is a word for a POSIX shell. Paths and names of the usual letters need no quotes.
func ShellWord(text string) string {
	if text != "" && !strings.ContainsFunc(text, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' ||
			strings.ContainsRune("/._-+:@%,=", r))
	}) {
		return text
	}
	return "'" + strings.ReplaceAll(Escaped(text), "'", `'\''`) + "'"
}
