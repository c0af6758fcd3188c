package broker

import (
	"path/filepath"

	"kseg/logdir"
)

// Edit is a change that is supposed to be made before the start: files are removed, or cut.
type Edit struct {
	// Pattern names the files, as the user would: a path, or a glob as in filepath.Match.
	Pattern string
	// Truncate, if not nil, is the number of bytes that are left; else the files are removed.
	Truncate *int64
}

// Matches reports whether the edit is of that file.
func (e Edit) Matches(f *logdir.File) bool {
	for _, path := range []string{f.Display, absolute(f.Path)} {
		for _, pattern := range []string{filepath.Clean(e.Pattern), absolute(e.Pattern)} {
			if ok, _ := filepath.Match(pattern, path); ok || pattern == path {
				return true
			}
		}
	}
	return false
}

// absolute is the path from the root on, as far as the working directory is known.
func absolute(path string) string {
	if abs, err := filepath.Abs(path); err == nil {
		return abs
	}
	return filepath.Clean(path)
}

// apply changes the files of a directory.
func (e Edit) apply(d *folder) {
	for name, f := range d.files {
		switch {
		case f.src == nil || !e.Matches(f.src):
		case e.Truncate == nil:
			d.remove(name)
		default:
			f.truncate(*e.Truncate)
		}
	}
}
