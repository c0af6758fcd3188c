package dump

import (
	"errors"

	"kseg/format"
	"kseg/logdir"
	"kseg/render"
)

// stateFile prints one of the small text files. What is wrong with one is said, but is verify's to judge.
func (d *dumper) stateFile(f *logdir.File) error {
	content := f.Kind().Info().Content
	if content.Rows == nil {
		return d.ignore(f)
	}
	if err := d.title(f); err != nil {
		return err
	}
	raw, err := f.ReadSmall()
	if err != nil {
		return err
	}
	out := d.entries(f, content.Row)
	bad := content.Rows(raw, func(values []format.Value) error {
		for _, v := range values {
			if v.IsText {
				out.str(v.Name, v.JSON, v.Text)
			} else {
				out.int(v.Name, v.JSON, v.Number)
			}
		}
		return out.end()
	})
	if err := out.close(); err != nil {
		return err
	}
	var stop *stopError
	switch {
	case errors.As(bad, &stop):
		return bad
	case bad != nil:
		d.say(f, render.Escaped(bad.Error()))
	}
	return nil
}
