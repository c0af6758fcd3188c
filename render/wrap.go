package render

import "strings"

// Wrap breaks text between words into lines of at most width columns; a longer word has a line of its own. A width of 0
// or less means one line. Without a word there is no line.
func Wrap(text string, width int) []string {
	if strings.TrimSpace(text) == "" {
		return nil
	}
	if width <= 0 || Width(text) <= width {
		return []string{text}
	}
	var lines []string
	line, used := "", 0
	for word := range strings.FieldsSeq(text) {
		n := Width(word)
		if used > 0 && used+1+n > width {
			lines, line, used = append(lines, line), "", 0
		}
		if used > 0 {
			line, used = line+" ", used+1
		}
		line, used = line+word, used+n
	}
	return append(lines, line)
}
