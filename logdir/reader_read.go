//go:build windows || nommap

// This reader is for systems on which a file that is mapped cannot be truncated or deleted by its broker. The tag
// nommap forces it elsewhere, for the tests and for file systems that cannot map.

package logdir

import (
	"errors"
	"fmt"
	"io"
)

// eager is true: the whole file is read before its first byte is shown.
const eager = true

const (
	// readBytes are read at once.
	readBytes = 1 << 20
	// mostRefused bounds how many pages are asked for that the device does not give: each may take it seconds.
	mostRefused = 1024
)

// load reads the file into memory, its holes left out. What cannot be read is a fault when it is touched, as it is in a
// mapping.
func (m *mapping) load(f *File, size int64) error {
	var err error
	if m.raw, err = allocate(int(size)); err != nil {
		return fmt.Errorf("%s: there is no memory for its %d bytes: %w; use fewer --jobs, or a machine with more", f.Display,
			size, err)
	}
	m.data = m.raw
	var refused [][]byte
	for pos := int64(0); pos < size; {
		start, end := pos, size
		if m.file.whole() {
			if dataStart, dataEnd, ok := nextData(m.file.File, pos); ok {
				start, end = min(dataStart, size), min(dataEnd, size)
			}
		}
		if start == size {
			break
		}
		refused = append(refused, m.fill(f, start, end, mostRefused-len(refused))...)
		pos, m.dataEnd = end, end
	}
	if now := max(0, m.presentLen()); now < size {
		// The rest of the page in which the file ends reads as zeros.
		refused = append(refused, m.data[min((now+pageSize-1)/pageSize*pageSize, size):])
	}
	_ = protect(m.raw) // where it cannot be, nothing is lost but a guard
	for _, part := range refused {
		if err := forbid(part); err != nil && len(part) > 0 {
			free(m.raw)
			return fmt.Errorf("%s: some of its bytes cannot be read, nor marked as such: %w", f.Display, err)
		}
	}
	return nil
}

// fill reads the bytes between two positions and gives the parts, from one page on to another, that cannot be read: at
// most so many, of which the last is all the rest.
func (m *mapping) fill(f *File, pos, end int64, most int) (refused [][]byte) {
	step := int64(readBytes)
	for pos < end {
		into := m.data[pos:min(pos+step, end)]
		if f.gentle != nil {
			f.gentle.pay(len(into))
		}
		n, err := readAt(m.file, m.path, into, pos)
		if n == len(into) {
			pos, step = pos+int64(n), readBytes
			continue
		}
		if errors.Is(err, io.EOF) {
			return refused
		}
		lost := (pos + int64(n)) / pageSize * pageSize
		if len(refused)+1 >= most {
			return append(refused, m.data[lost:])
		}
		pos, step = min(lost+pageSize, end), pageSize
		refused = append(refused, m.data[lost:min(lost+pageSize, int64(len(m.data)))])
	}
	return refused
}
