package logdir

import (
	"errors"
	"io/fs"
)

// Place is what is at a path.
type Place int

// The places.
const (
	Nowhere Place = iota // there is nothing
	Directory
	NoDirectory // a file, or something else
)

// PlaceAt looks what is at a path, or where a link there leads to. The error says why that is not known.
func PlaceAt(path string) (Place, error) {
	info, err := stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return Nowhere, nil
	case err != nil:
		return Nowhere, statError(path, err)
	case info.IsDir():
		return Directory, nil
	}
	return NoDirectory, nil
}

// SamePlace reports whether two paths lead to the same place, as far as can be seen.
func SamePlace(a, b string) bool {
	x, errA := realPath(a)
	y, errB := realPath(b)
	return errA == nil && errB == nil && x == y
}
