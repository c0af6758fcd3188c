package render

import (
	"io"
	"slices"
	"strings"

	"github.com/olekukonko/tablewriter"
	"github.com/olekukonko/tablewriter/pkg/twwidth"
	"github.com/olekukonko/tablewriter/renderer"
	"github.com/olekukonko/tablewriter/tw"
)

// A Column heads one column of a Table or of Columns.
type Column struct {
	Name  string
	Right bool // numbers stand to the right
}

// tableBlock is how many rows are held back to find out how wide the columns are.
const tableBlock = 256

// Table writes rows under a header, each column as wide as its widest cell: the form of -o table. Nothing is ever cut
// to the width of a terminal: where there is one, columns that have no room go on in further lines of their row, under
// further lines of the header. Rows are written in blocks of 256, so that a table may have any length; a block is never
// narrower than the one before it.
type Table struct {
	w       io.Writer
	theme   Theme
	columns []Column
	widths  []int
	rows    [][]string
	groups  [][]int // the columns of each line of a row; set with the first block
	started bool
	err     error
}

// NewTable returns a table with these columns, whose names may come from files. The header is printed with the first
// block, also if there is no row at all.
func NewTable(w io.Writer, theme Theme, columns ...Column) *Table {
	t := &Table{w: w, theme: theme, columns: slices.Clone(columns), widths: make([]int, len(columns))}
	for i := range t.columns {
		t.columns[i].Name = Escaped(columns[i].Name)
		t.widths[i] = visibleWidth(t.columns[i].Name)
	}
	return t
}

// Row adds a row; missing cells are empty, and cells too many are a fault of the caller. Cells may be coloured, and
// text that comes from files must be escaped (Escaped).
func (t *Table) Row(cells ...string) {
	row := make([]string, len(t.columns))
	copy(row, cells)
	for i, cell := range row {
		t.widths[i] = max(t.widths[i], visibleWidth(cell))
	}
	t.rows = append(t.rows, row)
	if len(t.rows) == tableBlock {
		t.writeBlock()
	}
}

// Flush writes what is held back and returns the first error of the writer.
func (t *Table) Flush() error {
	if len(t.rows) > 0 || !t.started {
		t.writeBlock()
	}
	return t.err
}

func (t *Table) writeBlock() {
	if t.err == nil {
		t.err = t.renderBlock()
	}
	t.rows = t.rows[:0]
	t.started = true
}

// renderBlock writes the rows held back, under the header if they are the first.
func (t *Table) renderBlock() error {
	if !t.started {
		t.groups = t.lines()
	}
	var parts [][]string // a line a row, of each group
	for _, group := range t.groups {
		text, err := t.renderColumns(group)
		if err != nil {
			return err
		}
		parts = append(parts, strings.Split(text, "\n"))
	}
	var out strings.Builder
	for row := range len(parts[0]) - 1 {
		for i, lines := range parts {
			if line := strings.TrimRight(lines[row], " "); i == 0 {
				out.WriteString(line + "\n")
			} else if line != "" {
				out.WriteString(belowIndent + line + "\n")
			}
		}
	}
	_, err := io.WriteString(t.w, out.String())
	return err
}

// lines says which columns stand in which line of a row.
func (t *Table) lines() [][]int {
	var groups [][]int
	used := 0
	for i := range t.columns {
		width := len(columnGap) + t.widths[i]
		if len(groups) == 0 || t.theme.Width > 0 && used+width > t.theme.Width {
			groups, used = append(groups, nil), -len(columnGap)
			if len(groups) > 1 {
				used += len(belowIndent)
			}
		}
		groups[len(groups)-1] = append(groups[len(groups)-1], i)
		used += width
	}
	return groups
}

// renderColumns is what these columns look like, a line a row.
func (t *Table) renderColumns(columns []int) (string, error) {
	align := make([]tw.Align, len(columns))
	widths := tw.NewMapper[int, int]()
	rows := make([][]string, len(t.rows))
	for n, i := range columns {
		align[n] = tw.AlignLeft
		if t.columns[i].Right {
			align[n] = tw.AlignRight
		}
		widths.Set(n, t.widths[i]+len(columnGap))
		for r, row := range t.rows {
			rows[r] = append(rows[r], row[i])
		}
	}
	cells := tw.CellConfig{
		Formatting: tw.CellFormatting{AutoWrap: tw.WrapNone, AutoFormat: tw.Off},
		Alignment:  tw.CellAlignment{PerColumn: align},
		Padding:    tw.CellPadding{Global: tw.Padding{Right: columnGap, Overwrite: true}},
	}
	var text strings.Builder
	table := tablewriter.NewTable(&text,
		tablewriter.WithConfig(tablewriter.Config{Header: cells, Row: cells, Widths: tw.CellWidth{PerColumn: widths}}),
		tablewriter.WithHeaderAutoWrap(tw.WrapNone),
		tablewriter.WithRowAutoWrap(tw.WrapNone),
		tablewriter.WithTrimSpace(tw.Off),
		tablewriter.WithRenderer(renderer.NewBlueprint(tw.Rendition{
			Borders: tw.BorderNone,
			Settings: tw.Settings{
				Separators: tw.SeparatorsNone,
				Lines:      tw.LinesNone,
			},
		})),
	)
	if !t.started {
		header := make([]any, len(columns))
		for n, i := range columns {
			header[n] = t.theme.Strong(t.columns[i].Name)
		}
		table.Header(header...)
	}
	if err := table.Bulk(rows); err != nil {
		return "", err
	}
	err := table.Render()
	return text.String(), err
}

// visibleWidth counts the columns that a cell takes on a terminal: none for its colours, two for a wide character.
func visibleWidth(cell string) int {
	for i := range len(cell) {
		if cell[i] < 0x20 || cell[i] >= 0x7f {
			return twwidth.Width(cell)
		}
	}
	return len(cell)
}

// Width is the number of columns that text takes on a terminal: none for its colours, two for a wide character.
func Width(text string) int { return visibleWidth(text) }
