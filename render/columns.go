package render

import (
	"slices"
	"strings"
)

// columnGap is what stands between two columns.
const columnGap = "  "

// Widths below which a column is not made narrower: while there are others to drop, and at last.
const (
	softNarrow = 24
	hardNarrow = 10
)

// Below stands for putting the words of the last column below their rows, among the columns that Fit may leave out.
const Below = -1

// belowIndent is what words that stand below their row begin with.
const belowIndent = "    "

// Columns lines up cells in columns without a header of its own making, for text output that mixes tables with
// sentences: fill it row by row, then Append everything.
type Columns struct {
	letters string
	rows    [][]string
	widths  []int
	width   int   // of the terminal, 0 if it does not matter
	drop    []int // columns that may go, the first ones first
	dropped []bool
	below   bool // the words of the last column stand below their row
	theme   Theme
	head    []string // the names of the columns
	told    int      // of how many columns that are left out a line was written
}

// NewColumns takes a letter for each column: l for what stands to the left, r to the right; n is a name, to the left,
// and w are words, to the left, which Fit makes narrower. Cells beyond the letters are l.
func NewColumns(letters string) *Columns { return &Columns{letters: letters} }

// Fit lets no line be longer than the theme's width. Where there is no room for all, names are cut in the middle, words
// go on in lines below, and then the columns of these indexes are left out, the first ones first. Numbers are never
// cut.
func (c *Columns) Fit(theme Theme, drop ...int) *Columns {
	c.width, c.drop, c.theme = theme.Width, drop, theme
	return c
}

// HeadedColumns is a Columns under the names of columns, which fits into the theme's width: the first column has names,
// the last words if it is to the left, and those with the names least may go; "" stands for Below.
func HeadedColumns(theme Theme, columns []Column, least ...string) *Columns {
	letters, names := make([]byte, len(columns)), make([]string, len(columns))
	for i, c := range columns {
		names[i] = theme.Strong(c.Name)
		switch {
		case c.Right:
			letters[i] = 'r'
		case i == 0:
			letters[i] = 'n'
		case i == len(columns)-1:
			letters[i] = 'w'
		default:
			letters[i] = 'l'
		}
	}
	var drop []int
	for _, name := range least {
		if name == "" {
			drop = append(drop, Below)
		}
		for i, c := range columns {
			if c.Name == name {
				drop = append(drop, i)
			}
		}
	}
	table := NewColumns(string(letters)).Fit(theme, drop...)
	return table.Head(names...)
}

// Head adds the row with the names of the columns. Those that are left out are named under the table.
func (c *Columns) Head(names ...string) *Columns {
	c.head = names
	c.Row(names...)
	return c
}

// Row adds a row of cells; they may be coloured, and text that comes from files must be escaped (Escaped).
func (c *Columns) Row(cells ...string) { c.rows = append(c.rows, cells) }

// Len is the number of rows that wait for Append.
func (c *Columns) Len() int { return len(c.rows) }

// Append appends the rows, a line each, with the indent before every line and no blanks at its end, and forgets them.
// Rows that come later are never narrower, so that a long list can be written block by block.
func (c *Columns) Append(dst []byte, indent string) []byte {
	for _, row := range c.rows {
		for i, cell := range row {
			if i == len(c.widths) {
				c.widths, c.dropped = append(c.widths, 0), append(c.dropped, false)
			}
			c.widths[i] = max(c.widths[i], visibleWidth(cell))
		}
	}
	widths := c.widths
	if c.width > 0 {
		widths = c.narrowed(c.width - Width(indent))
	}
	for _, row := range c.rows {
		lines, below := c.fitted(row, widths, c.width-Width(indent)-len(belowIndent))
		for _, line := range lines {
			dst = c.appendLine(dst, indent, line, widths)
		}
		for _, line := range below {
			dst = append(append(append(append(dst, indent...), belowIndent...), line...), '\n')
		}
	}
	c.rows = c.rows[:0]
	return c.appendLeftOut(dst, indent)
}

// appendLeftOut names the columns that are left out, once.
func (c *Columns) appendLeftOut(dst []byte, indent string) []byte {
	var names []string
	for i, name := range c.head {
		if _, core, _ := unpainted(name); i < len(c.dropped) && c.dropped[i] && core != "" {
			names = append(names, core)
		}
	}
	if len(names) == c.told {
		return dst
	}
	c.told = len(names)
	for _, line := range Wrap("not shown, for want of width: "+strings.Join(names, ", "), c.width-Width(indent)) {
		dst = append(append(append(dst, indent...), c.theme.Dim(line)...), '\n')
	}
	return dst
}

func (c *Columns) letter(i int) byte {
	if i < len(c.letters) {
		return c.letters[i]
	}
	return 'l'
}

// narrowed drops columns until the others have room, and returns the widths of all.
func (c *Columns) narrowed(room int) []int {
	for _, i := range c.drop {
		if c.least(softNarrow) <= room {
			break
		}
		switch {
		case i == Below:
			c.below = true
		case i < len(c.dropped):
			c.dropped[i] = true
		}
	}
	widths := slices.Clone(c.widths)
	room -= c.least(0)
	// What is left is shared by the names and words, the narrowest of which are served first.
	var flexible []int
	for i := range widths {
		if !c.dropped[i] && c.flexible(i) && !c.isBelow(i) {
			flexible = append(flexible, i)
		}
	}
	slices.SortStableFunc(flexible, func(a, b int) int { return widths[a] - widths[b] })
	for n, i := range flexible {
		share := max(room/(len(flexible)-n), hardNarrow)
		widths[i] = min(widths[i], share)
		room -= widths[i]
	}
	return widths
}

// isBelow reports whether the cells of a column stand below their rows.
func (c *Columns) isBelow(i int) bool { return c.below && i == len(c.widths)-1 }

func (c *Columns) flexible(i int) bool { return c.letter(i) == 'n' || c.letter(i) == 'w' }

// least is how wide a line is if names and words take no more than so many columns.
func (c *Columns) least(narrow int) int {
	sum := -len(columnGap)
	for i, width := range c.widths {
		if c.dropped[i] || c.isBelow(i) {
			continue
		}
		if c.flexible(i) {
			width = min(width, narrow)
		}
		sum += width + len(columnGap)
	}
	return sum
}

// fitted are the lines of a row whose cells fit into their columns, and the lines of words, as wide as room, that stand
// below them.
func (c *Columns) fitted(row []string, widths []int, room int) (lines [][]string, below []string) {
	lines = [][]string{slices.Clone(row)}
	for i, cell := range row {
		if visibleWidth(cell) <= widths[i] && !c.isBelow(i) {
			continue
		}
		before, core, after := unpainted(cell)
		if c.isBelow(i) {
			for _, part := range Wrap(core, room) {
				below = append(below, before+part+after)
			}
			continue
		}
		switch c.letter(i) {
		case 'n':
			lines[0][i] = before + Middle(core, widths[i]) + after
		case 'w':
			for n, part := range Wrap(core, widths[i]) {
				if n == len(lines) {
					lines = append(lines, make([]string, len(row)))
				}
				lines[n][i] = before + Middle(part, max(widths[i], softNarrow)) + after
			}
		}
	}
	return lines, below
}

// unpainted splits a cell that is of one colour into what begins it, its text, and what ends it. One of several colours
// has none.
func unpainted(cell string) (before, core, after string) {
	begin, end := strings.IndexByte(cell, 'm'), strings.LastIndexByte(cell, 0x1b)
	if begin < 0 || end <= begin || cell[0] != 0x1b {
		return "", withoutColors(cell), ""
	}
	if core = cell[begin+1 : end]; strings.IndexByte(core, 0x1b) >= 0 {
		return "", withoutColors(cell), ""
	}
	return cell[:begin+1], core, cell[end:]
}

// withoutColors takes the colours out of a cell.
func withoutColors(cell string) string {
	var out strings.Builder
	for {
		plain, rest, found := strings.Cut(cell, "\x1b[")
		out.WriteString(plain)
		if !found {
			return out.String()
		}
		_, cell, _ = strings.Cut(rest, "m")
	}
}

// Middle cuts text to so many columns: what is taken out of its middle becomes …, as names differ at their beginnings
// and ends.
func Middle(text string, width int) string {
	if width < 1 || visibleWidth(text) <= width {
		return text
	}
	head, tail := take([]rune(text), (width-1)/2), []rune(text)
	slices.Reverse(tail)
	tail = take(tail, width-1-visibleWidth(string(head)))
	slices.Reverse(tail)
	return string(head) + "…" + string(tail)
}

// take returns the first runes that fit into so many columns.
func take(text []rune, width int) []rune {
	used := 0
	for i, r := range text {
		if used += visibleWidth(string(r)); used > width {
			return slices.Clone(text[:i])
		}
	}
	return slices.Clone(text)
}

func (c *Columns) appendLine(dst []byte, indent string, line []string, widths []int) []byte {
	dst = append(dst, indent...)
	first := true
	for i, cell := range line {
		if c.dropped[i] || c.isBelow(i) {
			continue
		}
		if !first {
			dst = append(dst, columnGap...)
		}
		first = false
		blanks := strings.Repeat(" ", max(0, widths[i]-visibleWidth(cell)))
		if c.letter(i) == 'r' {
			dst = append(append(dst, blanks...), cell...)
		} else {
			dst = append(append(dst, cell...), blanks...)
		}
	}
	for len(dst) > 0 && dst[len(dst)-1] == ' ' {
		dst = dst[:len(dst)-1]
	}
	return append(dst, '\n')
}
