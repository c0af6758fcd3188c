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
// to the width of a terminal. Rows are written in blocks of 256, so that a table may have any length; a block is never
// narrower than the one before it.
type Table struct {
	w       io.Writer
	theme   Theme
	columns []Column
	widths  []int
	rows    [][]string
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
	align := make([]tw.Align, len(t.columns))
	widths := tw.NewMapper[int, int]()
	for i, c := range t.columns {
		align[i] = tw.AlignLeft
		if c.Right {
			align[i] = tw.AlignRight
		}
		widths.Set(i, t.widths[i]+len(columnGap))
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
		header := make([]any, len(t.columns))
		for i, c := range t.columns {
			header[i] = t.theme.Strong(c.Name)
		}
		table.Header(header...)
	}
	if err := table.Bulk(t.rows); err != nil {
		return err
	}
	if err := table.Render(); err != nil {
		return err
	}
	return writeTrimmed(t.w, text.String())
}

// writeTrimmed writes lines without the blanks at their ends, which only a copy would show.
func writeTrimmed(w io.Writer, text string) error {
	out := make([]byte, 0, len(text))
	for line := range strings.Lines(text) {
		out = append(out, strings.TrimRight(line, " \n")...)
		out = append(out, '\n')
	}
	_, err := w.Write(out)
	return err
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
