package logdir

import (
	"errors"
	"io"
)

// Peek is a file open for a few reads at places, which costs less than mapping it.
type Peek struct {
	Size int64 // in bytes, when it was opened
	of   *File
	file *handle
}

// Peek opens the file, calls fn, and closes it. The errors are those of View.
func (f *File) Peek(fn func(p Peek) error) error {
	file, info, err := f.open()
	if err != nil {
		return err
	}
	defer file.Close()
	return fn(Peek{info.Size(), f, file})
}

// Read fills dst from pos on as far as the file goes, and returns what it filled.
func (p Peek) Read(dst []byte, pos int64) ([]byte, error) {
	if p.of.gentle != nil {
		p.of.gentle.pay(len(dst))
	}
	n, err := readAt(p.file, p.of.Path, dst, pos)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, &FaultError{Display: p.of.Display, Pos: pos + int64(n), Mapped: p.Size, Now: -1, Err: bareError(err)}
	}
	return dst[:n], nil
}

// extent is a part of a file that has bytes on disk.
type extent struct{ start, end int64 }

// peekBytes is how much is read at once while looking for bytes.
const peekBytes = 64 << 10

// DataEnd is the position after the last byte that is not zero, 0 if there is none. Holes are passed over unread.
func (p Peek) DataEnd() (int64, error) {
	var buf []byte
	extents := p.extents()
	for i := len(extents) - 1; i >= 0; i-- {
		for end := extents[i].end; end > extents[i].start; {
			start := max(extents[i].start, end-peekBytes)
			if buf == nil {
				buf = make([]byte, min(extents[i].end-extents[i].start, peekBytes))
			}
			start = max(start, end-int64(len(buf)))
			got, err := p.Read(buf[:end-start], start)
			if err != nil {
				return 0, err
			}
			for n := len(got); n > 0; n-- {
				if got[n-1] != 0 {
					return start + int64(n), nil
				}
			}
			end = start
		}
	}
	return 0, nil
}

// maxExtents bounds how many extents are told apart: what lies beyond counts as one.
const maxExtents = 64

// extents are the parts of the file that may hold other bytes than zeros.
func (p Peek) extents() []extent {
	if !p.file.whole() {
		return []extent{{0, p.Size}}
	}
	var list []extent
	for pos := int64(0); pos < p.Size && len(list) < maxExtents; {
		start, end, ok := nextData(p.file.File, pos)
		if !ok {
			return append(list, extent{pos, p.Size})
		}
		if start >= p.Size {
			return list
		}
		end = min(end, p.Size)
		list = append(list, extent{start, end})
		pos = end
	}
	if n := len(list); n == maxExtents {
		list[n-1].end = p.Size
	}
	return list
}
