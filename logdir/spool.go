package logdir

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"kseg/format"
)

// spool is a temporary file with what is kept of an archive's members: each as it is, with holes for zeros, or in
// pieces.
type spool struct {
	file *os.File // nil until something is kept
	out  *bufio.Writer
	end  int64
}

const (
	// mostSkimmed bounds the batches that are looked at as they pass.
	mostSkimmed = 64 << 20
	// pieceHead is the length of what stands before a piece: its position in the member and its length.
	pieceHead = 12
)

// take keeps the first bytes of a member, or what skim leaves of its batches if that is not nil.
func (s *spool) take(m *member, r io.Reader, kept int64, skim func([]byte) []byte) error {
	if s.file == nil {
		file, err := unnamedFile()
		if err != nil {
			return fmt.Errorf("what is needed of it is kept in a temporary file, and there can be none in %s (%w): set TMPDIR "+
				"to a directory with room", os.TempDir(), bareError(err))
		}
		s.file, s.out = file, bufio.NewWriterSize(file, 1<<16)
	}
	if err := s.start(); err != nil {
		return err
	}
	m.file, m.origin = s.file, s.end
	if skim != nil {
		err := s.batches(m, r, skim)
		m.pieces = s.end - m.origin
		return err
	}
	err := eachBlock(r, kept, func(b []byte, pos int64) error {
		_, err := s.file.WriteAt(b, m.origin+pos)
		return full(err)
	})
	if err == nil {
		s.end += m.size
	}
	return err
}

// start makes the next member begin with a page of its own, for holes.
func (s *spool) start() error {
	if err := s.flush(); err != nil {
		return err
	}
	s.end = (s.end + pageSize - 1) / pageSize * pageSize
	_, err := s.file.Seek(s.end, io.SeekStart)
	return err
}

// flush writes what is not yet in the file, and makes that as long as its last member.
func (s *spool) flush() error {
	if s.file == nil {
		return nil
	}
	return full(errors.Join(s.out.Flush(), s.file.Truncate(s.end)))
}

// full says what to do about an error of writing.
func full(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("it cannot be kept in %s: %w; set TMPDIR to a directory with more room", os.TempDir(),
		bareError(err))
}

// batches keeps what skim leaves of the batches of a log; from the first on that is none, all.
func (s *spool) batches(m *member, r io.Reader, skim func([]byte) []byte) error {
	buf := make([]byte, format.MagicPrefix+1)
	for pos := int64(0); pos < m.size; {
		left := m.size - pos
		head := buf[:min(format.MagicPrefix+1, left)]
		if _, err := io.ReadFull(r, head); err != nil {
			return err
		}
		size, err := format.EntrySizeOf(head, pos, left)
		if err != nil || size > mostSkimmed {
			rest := io.MultiReader(bytes.NewReader(head), r)
			return eachBlock(rest, left, func(b []byte, at int64) error { return s.piece(b, pos+at) })
		}
		buf = slices.Grow(buf[:len(head)], int(size)-len(head))[:size]
		if _, err := io.ReadFull(r, buf[len(head):]); err != nil {
			return err
		}
		if err := s.piece(skim(buf), pos); err != nil {
			return err
		}
		pos += size
	}
	return nil
}

// piece keeps bytes of the member that is taken.
func (s *spool) piece(b []byte, pos int64) error {
	var head [pieceHead]byte
	binary.BigEndian.PutUint64(head[:], uint64(pos))
	binary.BigEndian.PutUint32(head[8:], uint32(len(b)))
	_, _ = s.out.Write(head[:]) // an error stays with the writer
	_, err := s.out.Write(b)
	s.end += pieceHead + int64(len(b))
	return full(err)
}

// assemble puts the pieces of a member where they belong, in a temporary file of its own.
func (m *member) assemble() (file *os.File, err error) {
	if file, err = unnamedFile(); err != nil {
		return nil, full(err)
	}
	defer func() {
		if err != nil {
			file.Close()
		}
	}()
	var buf []byte
	head := make([]byte, pieceHead)
	in := bufio.NewReaderSize(io.NewSectionReader(m.file, m.origin, m.pieces), 1<<16)
	for {
		if _, err := io.ReadFull(in, head); errors.Is(err, io.EOF) {
			return file, full(file.Truncate(m.size))
		} else if err != nil {
			return nil, err
		}
		n := int(binary.BigEndian.Uint32(head[8:]))
		buf = slices.Grow(buf[:0], n)[:n]
		if _, err := io.ReadFull(in, buf); err != nil {
			return nil, err
		}
		if _, err := file.WriteAt(buf, int64(binary.BigEndian.Uint64(head))); err != nil {
			return nil, full(err)
		}
	}
}

// eachBlock reads size bytes, and gives those that are not zeros a block at a time.
func eachBlock(r io.Reader, size int64, fn func(b []byte, pos int64) error) error {
	buf, zeros := make([]byte, 1<<16), make([]byte, 1<<16)
	for pos := int64(0); pos < size; {
		n, err := io.ReadFull(r, buf[:min(int64(len(buf)), size-pos)])
		if err != nil {
			return err
		}
		if !bytes.Equal(buf[:n], zeros[:n]) {
			if err := fn(buf[:n], pos); err != nil {
				return err
			}
		}
		pos += int64(n)
	}
	return nil
}
