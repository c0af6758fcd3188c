package format

import (
	"encoding/binary"
	"strconv"
)

// Cursor reads big-endian values from a byte slice. It is sticky: after the first failure every read returns zero and
// Err keeps that failure, so several fields can be read before it is checked. It never reads outside its slice and
// allocates nothing but the error.
type Cursor struct {
	buf  []byte
	pos  int
	base int64
	err  *Error
}

// NewCursor reads b; base is the position of b's first byte in whatever positions are reported against.
func NewCursor(b []byte, base int64) Cursor { return Cursor{buf: b, base: base} }

// Pos is the position of the next byte, base included.
func (c *Cursor) Pos() int64 { return c.base + int64(c.pos) }

// Offset is the number of bytes consumed so far.
func (c *Cursor) Offset() int { return c.pos }

// Remaining is the number of bytes left.
func (c *Cursor) Remaining() int { return len(c.buf) - c.pos }

// Rest is what is left, without consuming it; it aliases the input.
func (c *Cursor) Rest() []byte { return c.buf[c.pos:len(c.buf):len(c.buf)] }

// Err is the first failure, or nil.
func (c *Cursor) Err() error {
	if c.err == nil {
		return nil
	}
	return c.err
}

// OK reports whether nothing has failed yet.
func (c *Cursor) OK() bool { return c.err == nil }

// Fail records a failure at pos, unless one is there already.
func (c *Cursor) Fail(what string, pos int64, sentinel error, want, got string) {
	if c.err == nil {
		c.err = &Error{What: what, Pos: pos, Want: want, Got: got, Err: sentinel}
	}
}

// Bytes consumes the next n bytes and returns them aliased, with no spare capacity.
func (c *Cursor) Bytes(what string, n int64) []byte {
	if c.err != nil {
		return nil
	}
	if n < 0 {
		c.Fail(what, c.Pos(), ErrValue, "a length of 0 or more", strconv.FormatInt(n, 10))
		return nil
	}
	if n > int64(c.Remaining()) {
		c.Fail(what, c.Pos(), ErrTruncated, strconv.FormatInt(n, 10)+" bytes", strconv.Itoa(c.Remaining()))
		return nil
	}
	b := c.buf[c.pos : c.pos+int(n) : c.pos+int(n)]
	c.pos += int(n)
	return b
}

// Int8 reads one signed byte.
func (c *Cursor) Int8(what string) int8 {
	if b := c.Bytes(what, 1); b != nil {
		return int8(b[0])
	}
	return 0
}

// Uint16 reads two bytes.
func (c *Cursor) Uint16(what string) uint16 {
	if b := c.Bytes(what, 2); b != nil {
		return binary.BigEndian.Uint16(b)
	}
	return 0
}

// Int16 reads two bytes.
func (c *Cursor) Int16(what string) int16 { return int16(c.Uint16(what)) }

// Uint32 reads four bytes.
func (c *Cursor) Uint32(what string) uint32 {
	if b := c.Bytes(what, 4); b != nil {
		return binary.BigEndian.Uint32(b)
	}
	return 0
}

// Int32 reads four bytes.
func (c *Cursor) Int32(what string) int32 { return int32(c.Uint32(what)) }

// Int64 reads eight bytes.
func (c *Cursor) Int64(what string) int64 {
	if b := c.Bytes(what, 8); b != nil {
		return int64(binary.BigEndian.Uint64(b))
	}
	return 0
}

// Uvarint reads an unsigned varint of at most 5 bytes, as ByteUtils.readUnsignedVarint: surplus bits of the fifth byte
// are dropped.
func (c *Cursor) Uvarint(what string) uint32 {
	if c.err != nil {
		return 0
	}
	v, n := Uvarint32(c.buf[c.pos:])
	if n <= 0 {
		c.failVarint(what, n, 5)
		return 0
	}
	c.pos += n
	return v
}

// Varint reads a zig-zag varint of at most 5 bytes, as ByteUtils.readVarint.
func (c *Cursor) Varint(what string) int32 {
	return Unzigzag32(c.Uvarint(what))
}

// Varlong reads a zig-zag varint of at most 10 bytes, as ByteUtils.readVarlong.
func (c *Cursor) Varlong(what string) int64 {
	if c.err != nil {
		return 0
	}
	v, n := Uvarint64(c.buf[c.pos:])
	if n <= 0 {
		c.failVarint(what, n, 10)
		return 0
	}
	c.pos += n
	return Unzigzag64(v)
}

func (c *Cursor) failVarint(what string, n, most int) {
	if n == 0 {
		c.Fail(what, c.Pos(), ErrTruncated, "a varint", strconv.Itoa(c.Remaining())+" bytes of one")
		return
	}
	c.Fail(what, c.Pos(), ErrValue, "a varint of at most "+strconv.Itoa(most)+" bytes", "a longer one")
}

// Uvarint32 decodes an unsigned varint and the bytes it took: 0 if b ends inside it, -1 if it runs past 5 bytes.
func Uvarint32(b []byte) (uint32, int) {
	var v uint32
	for i := 0; i < 5; i++ {
		if i == len(b) {
			return 0, 0
		}
		v |= uint32(b[i]&0x7f) << (7 * i)
		if b[i] < 0x80 {
			return v, i + 1
		}
	}
	return 0, -1
}

// Uvarint64 is Uvarint32 for 64 bits and at most 10 bytes.
func Uvarint64(b []byte) (uint64, int) {
	var v uint64
	for i := 0; i < 10; i++ {
		if i == len(b) {
			return 0, 0
		}
		v |= uint64(b[i]&0x7f) << (7 * i)
		if b[i] < 0x80 {
			return v, i + 1
		}
	}
	return 0, -1
}

// Unzigzag32 maps 0, 1, 2, 3 to 0, -1, 1, -2.
func Unzigzag32(u uint32) int32 { return int32(u>>1) ^ -int32(u&1) }

// Unzigzag64 maps 0, 1, 2, 3 to 0, -1, 1, -2.
func Unzigzag64(u uint64) int64 { return int64(u>>1) ^ -int64(u&1) }
