package render

import (
	"bytes"
	"regexp"
	"strings"
	"unicode/utf8"
)

// foldIndent is how much farther in the rest of a folded line stands, where there is room for it.
const foldIndent = 4

// command is what begins a line that is to be pasted into a shell, or the part of it that is.
var command = regexp.MustCompile(`^(?:\x1b\[[0-9;]*m)* *(?:\x1b\[[0-9;]*m)*(?:next: |\$ )?(?:kseg|kafka-[a-z-]+\.sh) `)

// AppendFolded appends a line, without its line end, in lines of at most so many columns; a word that is longer stands
// alone. The rest of a line stands farther in than its beginning. A command is broken between its words, each line but
// the last with a backslash at its end, so that it can be pasted as it is; what stands in quotes is one word, and a
// comment after it stands above.
func AppendFolded(dst []byte, line string, width int) []byte {
	if width <= 0 || Width(line) <= width {
		return append(dst, line...)
	}
	isCommand := command.MatchString(line)
	if before, comment, found := strings.Cut(line, "  # "); isCommand && found {
		indent := line[:len(line)-len(strings.TrimLeft(line, " "))]
		dst = append(AppendFolded(dst, indent+"# "+comment, width), '\n')
		return AppendFolded(dst, strings.TrimRight(before, " "), width)
	}
	if isCommand {
		width -= len(` \`)
	}
	indent := min(len(line)-len(strings.TrimLeft(line, " "))+foldIndent, max(0, width-softNarrow))
	for first := true; ; first = false {
		if !first {
			dst = append(dst, strings.Repeat(" ", indent)...)
		}
		room := width
		if !first {
			room -= indent
		}
		head, rest := cutLine(line, room, isCommand)
		dst = append(dst, head...)
		if rest == "" {
			return dst
		}
		if isCommand {
			dst = append(dst, ` \`...)
		}
		dst, line = append(dst, '\n'), rest
	}
}

// cutLine cuts a line between two words, at most so many columns from its beginning if its first word allows it. Blanks
// within quotes of a command are none.
func cutLine(line string, room int, quotes bool) (head, rest string) {
	used, end, in := 0, -1, rune(0)
	begun, blank := false, false
	for i := 0; i < len(line); {
		if n := colorLength(line[i:]); n > 0 {
			i += n
			continue
		}
		r, n := utf8.DecodeRuneInString(line[i:])
		switch {
		case in != 0 && r == in:
			in = 0
		case in == 0 && quotes && (r == '\'' || r == '"'):
			in = r
		}
		if r == ' ' && in == 0 {
			if begun && !blank && (end < 0 || used <= room) {
				end = i
			}
			blank = true
		} else {
			begun, blank = true, false
		}
		used += Width(line[i : i+n])
		if used > room && end >= 0 {
			return line[:end], strings.TrimLeft(line[end:], " ")
		}
		i += n
	}
	return line, ""
}

// colorLength is the length of the colour that text begins with, or 0.
func colorLength(s string) int {
	if !strings.HasPrefix(s, "\x1b[") {
		return 0
	}
	return strings.IndexByte(s, 'm') + 1
}

// Folder folds the whole lines that go through it to a width; 0 is for none.
type Folder struct {
	Width int
	part  []byte // of a line, until its end comes
	out   []byte
}

// Fold returns the lines that p completes. They are valid until the next call.
func (f *Folder) Fold(p []byte) []byte {
	if f.Width <= 0 && len(f.part) == 0 {
		return p
	}
	f.out = f.out[:0]
	for {
		line, rest, found := bytes.Cut(p, []byte{'\n'})
		f.part = append(f.part, line...)
		if !found {
			return f.out
		}
		f.out = append(AppendFolded(f.out, string(f.part), f.Width), '\n')
		f.part, p = f.part[:0], rest
	}
}

// Rest returns what is left of a line without an end, and forgets it.
func (f *Folder) Rest() []byte {
	rest := f.part
	f.part = nil
	return rest
}
