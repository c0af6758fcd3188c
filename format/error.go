package format

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// The kinds of trouble a decoder reports; every Error unwraps to one of them.
var (
	// ErrTruncated means the bytes end before the value does.
	ErrTruncated = errors.New("truncated")
	// ErrChecksum means a stored checksum differs from the computed one.
	ErrChecksum = errors.New("checksum mismatch")
	// ErrValue means a field holds a value its format does not allow.
	ErrValue = errors.New("illegal value")
	// ErrUnsupported means a version, codec or type this program does not know.
	ErrUnsupported = errors.New("unsupported")
	// ErrTooLarge means a decompressed size above the caller's limit; the input may be healthy.
	ErrTooLarge = errors.New("larger than the limit")
)

// Two values and a checksum that somebody asks about; each is one of the sentinels above, too.
var (
	// ErrEntrySize means that the length of a batch or message is below that of its header (CorruptRecordException).
	ErrEntrySize = fmt.Errorf("%w", ErrValue)
	// ErrLZ4Header means that the checksum in the header of an LZ4 frame is wrong (KAFKA-3160).
	ErrLZ4Header = fmt.Errorf("%w", ErrChecksum)
)

// ErrCodec stands beside one of the sentinels above where compressed data cannot be decompressed.
var ErrCodec = errors.New("compressed data")

// codecFault is a sentinel that is ErrCodec, too.
type codecFault struct{ error }

func (f codecFault) Unwrap() error { return f.error }

func (codecFault) Is(target error) bool { return target == ErrCodec }

// Error says what could not be decoded and where.
type Error struct {
	What string // the thing being read, in Kafka's terms: "record length", "snapshot version"
	Pos  int64  // byte position in the buffer the decoder was given, plus that buffer's base
	Want string // what the format demands, or ""
	Got  string // what was found, or ""
	Err  error  // one of the sentinels above, possibly wrapped
}

// Error renders "record length at byte 1145: illegal value: want 0..301, got 1048575".
func (e *Error) Error() string {
	return e.What + " at byte " + strconv.FormatInt(e.Pos, 10) + ": " + e.Reason()
}

// Reason is the message without the place.
func (e *Error) Reason() string {
	var b strings.Builder
	b.WriteString(e.Err.Error())
	sep := ": "
	if e.Want != "" {
		b.WriteString(sep + "want " + e.Want)
		sep = ", "
	}
	if e.Got != "" {
		b.WriteString(sep + "got " + e.Got)
	}
	return b.String()
}

// Unwrap returns the sentinel.
func (e *Error) Unwrap() error { return e.Err }

// ReasonOf is an error without the place, which what is said around it names.
func ReasonOf(err error) string {
	var e *Error
	if errors.As(err, &e) {
		return e.What + ": " + e.Reason()
	}
	return err.Error()
}
