package logdir

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"runtime/debug"
	"sync"
	"syscall"
	"time"
	"unsafe"
)

// ErrVanished means that a file was there when its directory was listed and is not any more, or is another one, or has
// lost the bytes that were being read. Beside a live broker that is everyday life: retention, compaction, truncation.
var ErrVanished = errors.New("changed since it was found")

// FaultError means that bytes of a file could not be read. It unwraps to ErrVanished if the file has become shorter or
// another, else to what the device said.
type FaultError struct {
	Display string
	Pos     int64 // the byte that was asked for; the whole page is gone
	Mapped  int64 // the length when the file was mapped
	Now     int64 // the length now, -1 if it could not be asked
	Err     error // what the device said; nil if it can be read by now
}

// Error says which byte is gone and how long the file is now.
func (e *FaultError) Error() string {
	switch {
	case e.shrunk():
		return fmt.Sprintf("%s: %v: byte %d is gone; the file had %d bytes and has %d now. A broker truncates and deletes "+
			"files it has open; run again to read what is left", e.Display, ErrVanished, e.Pos, e.Mapped, e.Now)
	case e.Err == nil:
		return fmt.Sprintf("%s: byte %d could not be read from memory, though the file has it: no memory was free, or it "+
			"changed; run again, or on a copy", e.Display, e.Pos)
	case errors.Is(e.Err, syscall.EIO):
		return fmt.Sprintf("%s: byte %d cannot be read: %v: the device fails there (see dmesg); copy what can be read with "+
			"ddrescue or the like and read the copy", e.Display, e.Pos, e.Err)
	}
	return fmt.Sprintf("%s: byte %d cannot be read: %v", e.Display, e.Pos, e.Err)
}

// Unwrap is ErrVanished or what the device said.
func (e *FaultError) Unwrap() error {
	if e.shrunk() || e.Err == nil {
		return ErrVanished
	}
	return e.Err
}

// shrunk: the kernel's pages end where the file does, rounded up.
func (e *FaultError) shrunk() bool { return e.Now >= 0 && e.Now < e.Mapped && e.Pos >= e.Now-pageSize }

var pageSize = int64(os.Getpagesize())

// mapping is a read-only memory map of a whole file, shared by all the Views that are running on it.
type mapping struct {
	data    []byte
	raw     []byte  // data, from the beginning of its first page on
	file    *handle // kept for asking the present length, for reading, and for dropping pages
	path    string  // by which it was opened
	dataEnd int64   // from here on the file is a hole
	refs    int
	// modified is when the file was last written to before it was mapped.
	modified time.Time
	// resident has a byte for every page under Gentle: bit 0 is set if the page was cached before this program came.
	resident []byte
}

// View maps the file into memory and calls fn with its bytes. They are read-only (writing to them is a fault), are
// shared by all Views running on the file, and must not be used after fn returns: what is kept must be copied. Views
// may nest and run in parallel; every goroutine that touches the bytes must do so inside a View call of its own,
// because the guard below holds for one goroutine. An empty file gives an empty slice.
//
// If the file loses bytes while fn reads them, or the device fails, View returns a *FaultError instead of crashing,
// whatever code touched the byte: a checksum, a copy, a decompressor. Any other panic of fn becomes a *PanicError. Lost
// bytes of the page that the file now ends in read as zeros without a fault, so the last View returns a *FaultError
// also if the file is shorter than it was, unless fn had an error of its own.
//
// The length is that of the first View of the File: a later one shows no more, though a broker has appended since, so
// that all that is held against each other is of one moment. It is a *FaultError if the file has become shorter.
//
// If the file is gone, or another has taken its place since it was found, the error wraps ErrVanished and fn is not
// called.
func (f *File) View(fn func(b []byte) error) (err error) {
	m, err := f.acquire()
	if err != nil {
		return err
	}
	defer func() {
		if lost := f.release(m); err == nil {
			err = lost
		}
	}()
	return Guard(f.Display, func() error { return fn(m.data) })
}

// ViewAll views several files at once and calls fn with their bytes, nil for those that are nil or cannot be viewed.
// Failed is told why the latter cannot; if it is nil, that is the error, and fn is not called.
func ViewAll(files []*File, failed func(error), fn func([][]byte) error) error {
	views := make([][]byte, len(files))
	var view func(i int) error
	view = func(i int) error {
		if i == len(files) {
			return fn(views)
		}
		if files[i] == nil {
			return view(i + 1)
		}
		called := false
		err := files[i].View(func(b []byte) error {
			called, views[i] = true, b
			return view(i + 1)
		})
		if !called && err != nil && failed != nil {
			failed(err)
			return view(i + 1)
		}
		return err
	}
	return view(0)
}

// DataEnd is the position from which on the file has nothing but a hole, its length if it does not end in one. It must
// be called inside a View.
func (f *File) DataEnd() int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.mapping.dataEnd
}

// Read copies the bytes from pos on into dst. It must be called inside a View, whose bytes it leaves alone: for bytes
// that are looked at once and in order a copy is cheaper than mapping their pages. Gentle waits here. The error is a
// *FaultError, before whose Pos dst is filled.
func (f *File) Read(dst []byte, pos int64) error {
	if f.gentle != nil && !eager {
		f.gentle.pay(len(dst))
	}
	f.mu.Lock()
	m := f.mapping
	f.mu.Unlock()
	n, err := readAt(m.file, m.path, dst, pos)
	if n == len(dst) {
		return nil
	}
	return m.fault(f.Display, pos+int64(n), err)
}

// fault is the error for a byte that could not be read, for the reason err: a short read if that is io.EOF.
func (m *mapping) fault(display string, pos int64, err error) *FaultError {
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return &FaultError{Display: display, Pos: pos, Mapped: int64(len(m.data)), Now: m.presentLen(), Err: bareError(err)}
}

// PanicError is a panic that was caught: a mistake of this program, which spoils the answer about one place only.
type PanicError struct {
	Place string // a file, or a partition
	Value any    // what the panic was called with
}

// Error says where, and whose fault it is.
func (e *PanicError) Error() string {
	return fmt.Sprintf("%s: internal error: %v. This is a fault of kseg, not of your files; please report it", e.Place,
		e.Value)
}

// Guard runs fn and turns a panic of it into an error: a *FaultError if a mapped byte could not be read, of whatever
// file, else a *PanicError. Every goroutine needs one, since none can catch another's.
func Guard(place string, fn func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if r := recover(); r != nil {
			if err = faultOf(r); err == nil {
				err = changedUnder(place)
			}
			if err == nil {
				err = &PanicError{place, r}
			}
		}
	}()
	return fn()
}

// mapped are the mappings there are, for telling whose byte a fault is about.
var mapped struct {
	sync.Mutex
	all map[*mapping]string // with the file, as a user would name it
}

// faultOf is the error for a panic with r, if that comes from the access to a mapped byte.
func faultOf(r any) error {
	mapped.Lock()
	defer mapped.Unlock()
	for m, display := range mapped.all {
		if pos, ok := m.faultPos(r); ok {
			var one [1]byte
			_, err := readAt(m.file, m.path, one[:], pos)
			return m.fault(display, pos, err)
		}
	}
	return nil
}

// changedUnder is the error for a panic in place while mapped files change, nil if none does: what was there at one
// look at a mapping may be gone at the next, so that no code that reads one can be held to what it has found.
func changedUnder(place string) error {
	mapped.Lock()
	defer mapped.Unlock()
	changed := ""
	for m, display := range mapped.all {
		if m.changed() && (changed == "" || display == place) {
			changed = display
		}
	}
	if changed == "" {
		return nil
	}
	return fmt.Errorf("%s: %w: other bytes came while it was read; run again", changed, ErrVanished)
}

// changed reports whether the file was written to since it was mapped.
func (m *mapping) changed() bool {
	info, err := m.file.Stat()
	return err == nil && !info.ModTime().Equal(m.modified)
}

// note adds m to the mappings there are, or takes it out.
func (m *mapping) note(display string, there bool) {
	mapped.Lock()
	defer mapped.Unlock()
	if !there {
		delete(mapped.all, m)
		return
	}
	if mapped.all == nil {
		mapped.all = map[*mapping]string{}
	}
	mapped.all[m] = display
}

// presentLen is the length of the file now, -1 if it cannot be asked.
func (m *mapping) presentLen() int64 {
	info, err := m.file.Stat()
	if err != nil {
		return -1
	}
	return info.Size()
}

// faultPos is the position in the file of the address whose access made the runtime panic with r, if it lies in m.
func (m *mapping) faultPos(r any) (int64, bool) {
	fault, ok := r.(interface{ Addr() uintptr })
	if !ok || len(m.data) == 0 {
		return 0, false
	}
	start := uintptr(unsafe.Pointer(unsafe.SliceData(m.data)))
	addr := fault.Addr()
	if addr < start || addr-start >= uintptr(len(m.data)) {
		return 0, false
	}
	return int64(addr - start), true
}

// acquire maps the file, or joins the mapping that is there.
func (f *File) acquire() (*mapping, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.mapping == nil {
		m, err := f.mmap()
		if err != nil {
			return nil, err
		}
		f.mapping = m
		m.note(f.Display, true)
	}
	f.mapping.refs++
	return f.mapping, nil
}

// release unmaps the file when its last View ends, and says so if it has become shorter meanwhile.
func (f *File) release(m *mapping) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	m.refs--
	if m.refs > 0 {
		return nil
	}
	f.mapping = nil
	m.note(f.Display, false)
	mapped := int64(len(m.data))
	if f.gentle != nil {
		m.drop(0, mapped)
	}
	now := m.presentLen()
	if mapped > 0 {
		free(m.raw)
	}
	m.file.Close()
	if now >= 0 && now < mapped {
		return &FaultError{Display: f.Display, Pos: now, Mapped: mapped, Now: now}
	}
	return nil
}

func (f *File) mmap() (*mapping, error) {
	file, info, err := f.open()
	if err != nil {
		return nil, err
	}
	size := info.Size()
	switch {
	case !f.measured:
		f.length, f.measured = size, true
	case size < f.length:
		file.Close()
		return nil, &FaultError{Display: f.Display, Pos: size, Mapped: f.length, Now: size}
	}
	size = f.length
	m := &mapping{file: file, path: f.Path, data: []byte{}, modified: info.ModTime()}
	if size == 0 {
		return m, nil
	}
	if size > math.MaxInt {
		file.Close()
		return nil, fmt.Errorf("%s: %d bytes do not fit into the address space of this machine", f.Display, size)
	}
	if err := m.load(f, size); err != nil {
		file.Close()
		return nil, err
	}
	return m, nil
}

// open opens the file for reading. It refuses what is not the file that was found.
func (f *File) open() (*handle, fs.FileInfo, error) {
	file, info, err := f.openPath()
	if err != nil {
		return nil, nil, err
	}
	if !sameFile(f.Path, info, f.id) {
		file.Close()
		return nil, nil, fmt.Errorf("%s: %w: another file has taken its place; run again to read that", f.Display,
			ErrVanished)
	}
	return file, info, nil
}

// openAny is open for what the path leads to now.
func (f *File) openAny() (*handle, int64, error) {
	file, info, err := f.openPath()
	if err != nil {
		return nil, 0, err
	}
	return file, info.Size(), nil
}

// openPath opens what the path leads to, if that is a regular file.
func (f *File) openPath() (*handle, fs.FileInfo, error) {
	if err := f.Irregular(); err != nil {
		return nil, nil, err
	}
	file, err := openAt(f.Path)
	if err != nil {
		failed(f.Path, err)
		return nil, nil, f.openError(err)
	}
	info, err := file.Stat()
	if err != nil {
		file.Close()
		return nil, nil, fmt.Errorf("%s: %w", f.Display, bareError(err))
	}
	if !info.Mode().IsRegular() {
		file.Close()
		return nil, nil, fmt.Errorf("%s: %w: another file has taken its place; run again to read that", f.Display,
			ErrVanished)
	}
	return file, info, nil
}

// openError says what an error from opening means for a file that was there when its directory was listed.
func (f *File) openError(err error) error {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if info, statErr := stat(f.Path + ".deleted"); statErr == nil && sameFile(f.Path+".deleted", info, f.id) {
			return fmt.Errorf("%s: %w: a broker has renamed it to %s.deleted and will soon remove it", f.Display, ErrVanished,
				filepath.Base(f.Path))
		}
		return fmt.Errorf("%s: %w: it is gone (it had %d bytes); a broker deletes files by retention and compaction",
			f.Display, ErrVanished, f.Size)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("%s: %w; run as the broker's user, or on a copy", f.Display, bareError(err))
	}
	return fmt.Errorf("%s: %w", f.Display, bareError(err))
}

func sameFile(path string, info fs.FileInfo, id FileID) bool {
	return inodeOf(path, info).id == id
}

// bareError takes the operation and the path off an error of package os, where the sentence around it names the file.
func bareError(err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}

func modeSentence(mode fs.FileMode) string {
	switch {
	case mode&fs.ModeNamedPipe != 0:
		return "it is a named pipe, not a file"
	case mode&fs.ModeSocket != 0:
		return "it is a socket, not a file"
	case mode&fs.ModeDevice != 0:
		return "it is a device, not a file"
	case mode.IsDir():
		return "it is a directory, not a file"
	}
	return "it is not a regular file"
}
