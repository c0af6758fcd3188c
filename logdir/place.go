package logdir

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
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

// mostLinks is how many links a system follows.
const mostLinks = 40

// LinkEnd is where a link leads to in the end, if anything is there or not; false if it leads back to itself.
func LinkEnd(link string) (end string, ok bool) {
	for range mostLinks {
		target, err := os.Readlink(link)
		if err != nil {
			return link, true
		}
		if !filepath.IsAbs(target) {
			target = filepath.Join(filepath.Dir(link), target)
		}
		link = target
	}
	return "", false
}

// CanBeMade reports whether who writes to a link that leads nowhere makes the file: its directory is there.
func CanBeMade(link string) bool {
	end, ok := LinkEnd(link)
	if !ok {
		return false
	}
	place, err := PlaceAt(filepath.Dir(end))
	return err == nil && place == Directory
}
