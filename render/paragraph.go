package render

import "strings"

// AppendParts appends parts with gaps between them, in lines of at most width where they allow it.
func AppendParts(dst []byte, parts []string, width int) []byte {
	column := 0
	for _, part := range parts {
		part = Escaped(part)
		switch {
		case column == 0:
		case column+3+len(part) > width:
			dst, column = append(dst, '\n'), 0
		default:
			dst, column = append(dst, "   "...), column+3
		}
		dst, column = append(dst, part...), column+len(part)
	}
	return append(dst, '\n')
}

// Reflow breaks the paragraphs of a page anew, to a width: lines that begin at the margin with a letter, a digit or the
// mark of a list belong together until an empty line or the next such mark. A width of 0 leaves all as it is.
func Reflow(text string, width int) string {
	if width <= 0 {
		return text
	}
	var out []byte
	paragraph := ""
	end := func() {
		if paragraph != "" {
			out = AppendParagraph(out, paragraph, width)
		}
		paragraph = ""
	}
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		if line == "" || strings.ContainsRune(" \t|#`>", rune(line[0])) && !strings.HasPrefix(line, "`") ||
			strings.HasPrefix(line, "```") {
			end()
			out = append(append(out, line...), '\n')
			continue
		}
		if strings.HasPrefix(line, "- ") || strings.HasPrefix(line, "* ") {
			end()
		}
		paragraph += " " + line
	}
	end()
	return strings.TrimSuffix(string(out), "\n")
}

// AppendParagraph appends text in lines of at most width where its words allow it.
func AppendParagraph(dst []byte, text string, width int) []byte {
	column := 0
	for word := range strings.FieldsSeq(text) {
		switch {
		case column == 0:
		case column+1+len(word) > width:
			dst, column = append(dst, '\n'), 0
		default:
			dst, column = append(dst, ' '), column+1
		}
		dst, column = append(dst, word...), column+len(word)
	}
	return append(dst, '\n')
}
