//go:build !windows && !nommap

package logdir

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// eager is false: bytes are read when they are touched.
const eager = false

// load maps the file. Other programs may change it as before.
func (m *mapping) load(f *File, size int64) error {
	pad := m.file.origin() % pageSize // a mapping begins where a page does
	var err error
	m.raw, err = unix.Mmap(int(m.file.Fd()), m.file.origin()-pad, int(size+pad), unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		return fmt.Errorf("%s: cannot be mapped into memory: %w; a copy on a local disk can", f.Display, err)
	}
	m.data = m.raw[pad:]
	if m.dataEnd = size; m.file.whole() {
		m.dataEnd = coverHoles(m.file.File, m.data)
	}
	adviseSequential(m.raw)
	m.protectRefused()
	if f.gentle != nil && m.file.whole() {
		m.resident = residentPages(m.data)
	}
	return nil
}

// protectRefused makes the pages of a mapping fault that a test makes fail.
func (m *mapping) protectRefused() {
	if inject.Load() == nil {
		return
	}
	for at := int64(0); at < int64(len(m.data)); at += pageSize {
		if refused("read", m.path, at) != nil {
			_ = forbid(m.data[at:min(at+pageSize, int64(len(m.data)))])
		}
	}
}
