package format

import (
	"encoding/binary"
	"iter"
	"strconv"
)

// Leaf is a run of bytes of a file, or of a batch's decompressed records, with one meaning. The leaves of a buffer
// follow one another from its first byte to its last, whatever the bytes are.
type Leaf struct {
	// Path names the field and what it is in: "batch[0].records[3].value".
	Path string
	// Plain is set for positions in the decompressed records of Batch; else they are positions in the file.
	Plain bool
	// Start and End are the first byte and the one after the last.
	Start, End int64
	// Bytes alias the buffer.
	Bytes []byte
	// Type says how Bytes are read, Role what they are beside a field.
	Type LeafType
	Role Role
	// Number is the value of a number: as stored, so for a varint what its zig-zag code stands for.
	Number int64
	// Bits are the parts of a bit field, the steps of a varint.
	Bits []Bit
	// Fault says what is wrong with the bytes, and what was wanted; nil if nothing is.
	Fault *Error
	// Entry is the index of the entry that the leaf is in: a batch, an entry of an index or checkpoint; −1 outside.
	Entry int
	// Batch is the batch that the leaf is in, or nil.
	Batch *Batch
	// Record is the index of the record (or inner message) in the batch that the leaf is in; −1 outside.
	Record int
}

// LeafType says how the bytes of a leaf are read.
type LeafType uint8

// The types. Those of codec frames have little-endian numbers.
const (
	TypeBytes LeafType = iota
	TypeText           // a column or line of a text file, with the one separator or line end after it
	TypeInt8
	TypeInt16
	TypeInt32
	TypeUint32
	TypeInt64
	TypeUint8
	TypeUint16LE
	TypeUint24LE
	TypeUint32LE
	TypeUint64LE
	TypeVarint  // zig-zag, at most 5 bytes
	TypeVarlong // zig-zag, at most 10 bytes
)

var leafWidths = [...]int{TypeInt8: 1, TypeInt16: 2, TypeInt32: 4, TypeUint32: 4, TypeInt64: 8, TypeUint8: 1,
	TypeUint16LE: 2,
	TypeUint24LE: 3, TypeUint32LE: 4, TypeUint64LE: 8, TypeVarlong: 0}

// Numeric reports whether a leaf of the type has a Number.
func (t LeafType) Numeric() bool { return t >= TypeInt8 }

// Role says what bytes are that are more, or less, than a field.
type Role uint8

// The roles.
const (
	RoleField       Role = iota
	RoleKey              // of a record
	RoleValue            // of a record
	RoleHeaderValue      // of a record's header
	RoleFrame            // of a codec's frame, inside a compressed area
	RoleCompressed       // compressed data
	RoleZeroTail         // zeros up to the end of the file
	RoleTornTail         // the beginning of a batch that the file ends in
	RoleDamage           // what could not be read up to the next batch or the end of the file
	RoleUnreadable       // the rest of a batch or an entry after a fault
	RoleStray            // bytes after the last entry of a file
)

// Bit is a part of a leaf: a flag, a number of a few bits, or a step from bytes to a value.
type Bit struct {
	Name  string
	Value int64
}

// Describe goes through all bytes of a file of any kind. base is the segment's base offset (−1: unknown), rr
// decompresses and may be nil for files without batches.
//
// It never fails: what cannot be read is a leaf with a Fault, or one after it.
func Describe(kind Kind, data []byte, base int64, rr *RecordReader) iter.Seq[Leaf] {
	return func(yield func(Leaf) bool) {
		if kind.Batches() {
			parts := NewParts(data, base)
			for i := 0; parts.Next(); i++ {
				if more, _ := parts.Part().Describe(i, rr, yield); !more {
					return
				}
			}
			return
		}
		d := &describer{yield: yield, buf: data, limit: len(data), proto: Leaf{Entry: -1, Record: -1}}
		if describe := kind.Info().Content.describe; describe != nil {
			describe(d)
			return
		}
		d.rest("content", RoleStray, nil)
	}
}

// describer cuts a buffer into leaves, from the first byte to the last.
type describer struct {
	yield   func(Leaf) bool
	stopped bool // the receiver has enough
	buf     []byte
	pos     int
	limit   int    // where what is being read must end
	origin  int64  // position of buf[0]
	prefix  string // of the paths, with the dot after it
	proto   Leaf   // what all leaves have in common
	fault   *Error // the first one
}

// ok reports whether reading goes on: nothing was at fault so far, and the receiver wants more.
func (d *describer) ok() bool { return !d.stopped && d.fault == nil }

// left is the number of bytes up to the limit.
func (d *describer) left() int { return d.limit - d.pos }

// at is the position of the next byte.
func (d *describer) at() int64 { return d.origin + int64(d.pos) }

// emit makes a leaf of the next n bytes; there are no empty ones.
func (d *describer) emit(name string, n int, fill func(*Leaf)) {
	if n <= 0 || d.stopped {
		return
	}
	l := d.proto
	l.Path = d.prefix + name
	l.Start, l.End = d.at(), d.at()+int64(n)
	l.Bytes = d.buf[d.pos : d.pos+n : d.pos+n]
	if fill != nil {
		fill(&l)
	}
	if l.Fault != nil && d.fault == nil {
		d.fault = l.Fault
	}
	d.pos += n
	d.stopped = !d.yield(l)
}

// rest makes one leaf of all that is left of the buffer, and notes why.
func (d *describer) rest(name string, role Role, fault *Error) {
	if fault != nil && d.fault == nil {
		d.fault = fault
	}
	d.emit(name, len(d.buf)-d.pos, func(l *Leaf) { l.Role, l.Fault = role, fault })
}

// truncated makes the rest unreadable because name needs more bytes than there are.
func (d *describer) truncated(name, want string) {
	d.rest("unreadable", RoleUnreadable, &Error{What: name, Pos: d.at(), Want: want, Got: strconv.Itoa(d.left()),
		Err: ErrTruncated})
}

// number emits a number of fixed width and returns it. check, if not nil, says what is wrong with it; reading then goes
// on, unless the caller looks at ok.
func (d *describer) number(name string, typ LeafType, check func(v int64, l *Leaf)) int64 {
	if !d.ok() {
		return 0
	}
	width := leafWidths[typ]
	if width > d.left() {
		d.truncated(name, strconv.Itoa(width)+" bytes")
		return 0
	}
	v := readNumber(typ, d.buf[d.pos:d.pos+width])
	d.emit(name, width, func(l *Leaf) {
		l.Type, l.Number = typ, v
		if check != nil {
			check(v, l)
		}
	})
	return v
}

// note is number for a field whose fault does not keep what follows from being read.
func (d *describer) note(name string, typ LeafType, check func(v int64, l *Leaf)) int64 {
	end := d.pos + leafWidths[typ]
	read := d.ok()
	v := d.number(name, typ, check)
	if read && d.pos == end && end <= d.limit {
		d.fault = nil
	}
	return v
}

func readNumber(typ LeafType, b []byte) int64 {
	switch typ {
	case TypeInt8:
		return int64(int8(b[0]))
	case TypeInt16:
		return int64(int16(binary.BigEndian.Uint16(b)))
	case TypeInt32:
		return int64(int32(binary.BigEndian.Uint32(b)))
	case TypeUint32:
		return int64(binary.BigEndian.Uint32(b))
	case TypeInt64:
		return int64(binary.BigEndian.Uint64(b))
	}
	var v uint64
	for i, c := range b {
		v |= uint64(c) << (8 * i)
	}
	return int64(v)
}

// varint emits a zig-zag varint and returns it.
func (d *describer) varint(name string, typ LeafType, check func(v int64, l *Leaf)) int64 {
	if !d.ok() {
		return 0
	}
	v, u, n := readVarint(typ, d.buf[d.pos:d.limit])
	if n <= 0 {
		d.badVarint(name, typ, n)
		return 0
	}
	d.emit(name, n, func(l *Leaf) {
		l.Type, l.Number = typ, v
		l.Bits = []Bit{{"unsigned", u}, {"zigzag", v}}
		if check != nil {
			check(v, l)
		}
	})
	return v
}

// readVarint gives the value, the unsigned number before the zig-zag step, and the bytes taken (0 or −1 on failure).
func readVarint(typ LeafType, b []byte) (v, unsigned int64, n int) {
	if typ == TypeVarlong {
		u, n := Uvarint64(b)
		return Unzigzag64(u), int64(u), n
	}
	u, n := Uvarint32(b)
	return int64(Unzigzag32(u)), int64(u), n
}

func (d *describer) badVarint(name string, typ LeafType, n int) {
	if n == 0 {
		d.truncated(name, "a varint")
		return
	}
	most := "5"
	if typ == TypeVarlong {
		most = "10"
	}
	d.rest("unreadable", RoleUnreadable, &Error{What: name, Pos: d.at(), Want: "a varint of at most " + most + " bytes",
		Got: "a longer one", Err: ErrValue})
}

// content emits n bytes that their length has announced; the length was checked.
func (d *describer) content(name string, n int64, role Role) {
	if d.ok() {
		d.emit(name, int(n), func(l *Leaf) { l.Role = role })
	}
}

// illegal is a fault about a number.
func illegal(what string, l *Leaf, want string) *Error {
	return &Error{What: what, Pos: l.Start, Want: want, Got: strconv.FormatInt(l.Number, 10), Err: ErrValue}
}

// index is a path element "name[i]".
func index(name string, i int) string { return name + "[" + strconv.Itoa(i) + "]" }
