package cmd

import (
	"encoding/csv"

	"kseg/render"
)

// rowWriter writes rows under their columns as a table, or as CSV (RFC 4180), as they come. The first write error is
// kept by Stdout.
type rowWriter struct {
	table *render.Table
	csv   *csv.Writer
}

func (o *outputOptions) newRows(env *Env, columns []render.Column) *rowWriter {
	if o.Format != "csv" {
		return &rowWriter{table: render.NewTable(env.Stdout, o.theme(env), columns...)}
	}
	w := &rowWriter{csv: csv.NewWriter(env.Stdout)}
	names := make([]string, len(columns))
	for i, c := range columns {
		names[i] = c.Name
	}
	_ = w.csv.Write(names)
	return w
}

func (w *rowWriter) write(rows ...[]string) {
	for _, row := range rows {
		if w.csv != nil {
			_ = w.csv.Write(row)
		} else {
			w.table.Row(row...)
		}
	}
}

// flush writes what is held back.
func (w *rowWriter) flush() {
	if w.csv != nil {
		w.csv.Flush()
	} else {
		_ = w.table.Flush()
	}
}

// writeTable writes all rows under their columns.
func (o *outputOptions) writeTable(env *Env, columns []render.Column, rows [][]string) {
	w := o.newRows(env, columns)
	w.write(rows...)
	w.flush()
}
