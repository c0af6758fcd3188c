package render

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"io"
	"strings"
)

// CSV turns JSON lines into comma-separated values (RFC 4180), for charts and spreadsheets: a header of the columns,
// then a row for each line of one kind. Numbers are as in JSON, absent values are empty cells, and text is escaped as
// in tables.
type CSV struct {
	w       *csv.Writer
	kind    string
	columns []string
	started bool
}

// NewCSV returns a writer for lines of that kind. A column is the name of a value, or, in an object, the names on the
// way to it with dots between: bytes_scanned.mean. In the header they are underscores.
func NewCSV(w io.Writer, kind string, columns ...string) *CSV {
	return &CSV{w: csv.NewWriter(w), kind: kind, columns: columns}
}

// Write takes whole JSON lines. Those of other kinds are passed over.
func (c *CSV) Write(lines []byte) (int, error) {
	for line := range bytes.Lines(lines) {
		var object map[string]any
		d := json.NewDecoder(bytes.NewReader(line))
		d.UseNumber()
		if err := d.Decode(&object); err != nil {
			return 0, err
		}
		if object["kind"] != c.kind {
			continue
		}
		c.header()
		row := make([]string, len(c.columns))
		for i, column := range c.columns {
			row[i] = cellOf(object, column)
		}
		if err := c.w.Write(row); err != nil {
			return 0, err
		}
	}
	return len(lines), nil
}

func (c *CSV) header() {
	if c.started {
		return
	}
	c.started = true
	names := make([]string, len(c.columns))
	for i, column := range c.columns {
		names[i] = strings.ReplaceAll(column, ".", "_")
	}
	_ = c.w.Write(names) // the error is kept, and returned by Flush
}

// Flush writes what is held back, at least the header, and returns the first error of the writer.
func (c *CSV) Flush() error {
	c.header()
	c.w.Flush()
	return c.w.Error()
}

// cellOf is the value that a column names, "" if there is none.
func cellOf(object map[string]any, column string) string {
	name, rest, deeper := strings.Cut(column, ".")
	if inner, ok := object[name].(map[string]any); deeper && ok {
		return cellOf(inner, rest)
	}
	switch value := object[name].(type) {
	case json.Number:
		return value.String()
	case bool:
		return map[bool]string{true: "true", false: "false"}[value]
	case string:
		return Escaped(value)
	case []any:
		parts := make([]string, len(value))
		for i, v := range value {
			switch v := v.(type) {
			case string:
				parts[i] = Escaped(v)
			case json.Number:
				parts[i] = v.String()
			}
		}
		return strings.Join(parts, " ")
	}
	return ""
}
