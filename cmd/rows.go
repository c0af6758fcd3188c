package cmd

import (
	"encoding/csv"

	"kseg/render"
)

// writeTable writes rows under their columns as a table, or as CSV (RFC 4180) if that is the format. The first write
// error is kept by Stdout.
func (o *outputOptions) writeTable(env *Env, columns []render.Column, rows [][]string) {
	if o.Format == "csv" {
		w := csv.NewWriter(env.Stdout)
		var names []string
		for _, c := range columns {
			names = append(names, c.Name)
		}
		_ = w.Write(names)
		_ = w.WriteAll(rows)
		return
	}
	table := render.NewTable(env.Stdout, o.theme(env), columns...)
	for _, row := range rows {
		table.Row(row...)
	}
	_ = table.Flush()
}
