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
