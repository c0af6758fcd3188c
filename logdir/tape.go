package logdir

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"os"
)

// tape is the bytes of an archive in their order: of a file, in which it is wound on, or of a stream.
type tape struct {
	file *os.File // nil for a stream
	size int64    // of file
	in   *bufio.Reader
	read int64 // from in
}

// reader reads on. It can seek only in a file.
func (t *tape) reader() io.Reader {
	if t.file != nil {
		return t.file
	}
	return t
}

// Read reads from a stream.
func (t *tape) Read(b []byte) (int, error) {
	n, err := t.in.Read(b)
	t.read += int64(n)
	return n, err
}

// at is the position of the next byte.
func (t *tape) at() int64 {
	if t.file == nil {
		return t.read
	}
	at, _ := t.file.Seek(0, io.SeekCurrent) // cannot fail in a file
	return at
}

// skipZeros goes on to the first block that is not all zeros, and shows it; nil if there is none.
func (t *tape) skipZeros() (head []byte, err error) {
	at, in, zeros := t.at(), t.in, make([]byte, tarBlock)
	if t.file != nil {
		in = bufio.NewReaderSize(t.file, 1<<16)
	}
	for ; ; at += int64(len(head)) {
		head, err = in.Peek(tarBlock)
		if len(head) == 0 && errors.Is(err, io.EOF) {
			return nil, nil
		}
		if len(head) == 0 || !bytes.Equal(head, zeros[:len(head)]) {
			break
		}
		_, _ = in.Discard(len(head)) // they are in its buffer
	}
	if t.read = at; t.file != nil {
		_, err = t.file.Seek(at, io.SeekStart)
	} else if len(head) > 0 {
		err = nil
	}
	return head, err
}
