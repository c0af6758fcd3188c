package dump

import (
	"encoding/binary"
	"strconv"

	"kseg/format"
	"kseg/render"
)

// Decoder turns the bytes of a key or value into text, as the classes of org.apache.kafka.tools.api that the real tool
// takes by --key-decoder-class and --value-decoder-class.
type Decoder uint8

// The decoders. Bytes is DefaultDecoder, of which the real tool prints nothing but an address in memory.
const (
	DecodeString Decoder = iota
	DecodeInteger
	DecodeLong
	DecodeBytes
)

// appendText appends a key or value. A number of another length than its type is shown by its bytes; there the real
// tool dies.
func (d Decoder) appendText(dst, b []byte, p render.Payload, spill render.Spill) []byte {
	switch {
	case p.LengthsOnly():
	case d == DecodeInteger && len(b) == 4:
		return strconv.AppendInt(dst, int64(int32(binary.BigEndian.Uint32(b))), 10)
	case d == DecodeLong && len(b) == 8:
		return strconv.AppendInt(dst, int64(binary.BigEndian.Uint64(b)), 10)
	case d != DecodeString && (p == render.PayloadRaw || p == render.PayloadAuto):
		return render.PayloadHex.AppendLongText(dst, b, spill)
	case p == render.PayloadRaw:
		return spill.Append(dst, b, format.AppendJavaUTF8)
	}
	return p.AppendLongText(dst, b, spill)
}
