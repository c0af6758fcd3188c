package render

import (
	"encoding/hex"
	"fmt"
	"strconv"
	"unicode/utf8"
)

// Payload says how keys, values and header values are shown. It is a flag's value (pflag.Value, by its methods).
//
// The zero value means that no mode was asked for: Resolve turns it into PayloadAuto on a terminal and into PayloadRaw
// elsewhere, so that text piped to a file is what the real tool writes, byte for byte, and no control character reaches
// a terminal. A mode that was asked for always escapes.
type Payload uint8

// The payload modes.
const (
	PayloadDefault  Payload = iota // not asked for
	PayloadRaw                     // as it is; not on offer as a flag, since it is unsafe on a terminal
	PayloadAuto                    // text with control characters escaped, if it is text; else hexadecimal
	PayloadUTF8                    // always text; control characters and bytes that are not UTF-8 escaped
	PayloadHex                     // hexadecimal digits
	PayloadBase64                  // standard base64 with padding
	PayloadLen                     // the length in bytes
	PayloadRedacted                // the length in bytes, and nothing derived from the content anywhere else
)

// payloadNames are what the flag takes, from PayloadAuto on.
var payloadNames = [...]string{"auto", "utf8", "hex", "base64", "len", "redacted"}

// PayloadHelp is the text of the flag's help.
const PayloadHelp = "how keys, values and header values are shown; auto means as text if they are text, else in hex. " +
	"Control characters are escaped on a terminal and wherever a mode is given; without one, text for a file or pipe is " +
	"raw, as kafka-dump-log writes it (see kseg help payloads)"

// String returns the mode's name.
func (p Payload) String() string {
	if p < PayloadAuto {
		return "auto"
	}
	return payloadNames[p-PayloadAuto]
}

// Set takes the mode's name.
func (p *Payload) Set(name string) error {
	for i, n := range payloadNames {
		if n == name {
			*p = PayloadAuto + Payload(i)
			return nil
		}
	}
	return fmt.Errorf("%q is none of auto, utf8, hex, base64, len, redacted", name)
}

// Type is what the flag's help shows for the value.
func (p *Payload) Type() string { return "auto|utf8|hex|base64|len|redacted" }

// Resolve replaces the zero value by what it means on this stdout.
func (p Payload) Resolve(terminal bool) Payload {
	switch {
	case p != PayloadDefault:
		return p
	case terminal:
		return PayloadAuto
	}
	return PayloadRaw
}

// LengthsOnly reports whether the content must not be shown in any form.
func (p Payload) LengthsOnly() bool { return p == PayloadLen || p == PayloadRedacted }

// AppendText appends b as text output shows it. A null is the caller's to word: nil is shown like no bytes. Under
// PayloadRaw the bytes are appended as they are; whoever prints what Java would print replaces broken UTF-8 before.
func (p Payload) AppendText(dst, b []byte) []byte { return p.AppendLongText(dst, b, nil) }

// AppendLongText is AppendText with a place for what gets long.
func (p Payload) AppendLongText(dst, b []byte, spill Spill) []byte {
	switch p {
	case PayloadBase64:
		return spill.appendBytes(dst, b, appendBase64)
	case PayloadLen, PayloadRedacted:
		dst = strconv.AppendInt(dst, int64(len(b)), 10)
		if len(b) == 1 {
			return append(dst, " byte"...)
		}
		return append(dst, " bytes"...)
	case PayloadUTF8:
		return spill.Append(dst, b, AppendEscaped)
	case PayloadAuto:
		if readable(b) {
			return spill.Append(dst, b, AppendEscaped)
		}
		return spill.appendBytes(dst, b, hex.AppendEncode)
	case PayloadHex:
		return spill.appendBytes(dst, b, hex.AppendEncode)
	}
	return spill.appendBytes(dst, b, appendAll)
}

func appendAll(dst, b []byte) []byte { return append(dst, b...) }

// mostBrief is how many bytes of a value Brief keeps: more than anybody reads in a table.
const mostBrief = 4096

// Brief cuts a very long value for a table or a listing: it returns the beginning, and what to put after it, which
// says how long the value is.
func Brief(b []byte) (beginning []byte, rest string) {
	if len(b) <= mostBrief {
		return b, ""
	}
	end := mostBrief
	for end > mostBrief-utf8.UTFMax && !utf8.RuneStart(b[end]) {
		end--
	}
	return b[:end:end], " … (" + Count(int64(len(b))) + " bytes)"
}

// AppendJSON appends null for nil, {"length":n} where only lengths may be shown, else {"utf8":"..."} for valid UTF-8
// and {"base64":"..."} for anything else. The other modes do not change JSON, whose shapes are fixed. What gets long
// goes to spill, if there is one.
func (p Payload) AppendJSON(dst, b []byte, spill Spill) []byte {
	switch {
	case b == nil:
		return append(dst, "null"...)
	case p.LengthsOnly():
		dst = strconv.AppendInt(append(dst, `{"length":`...), int64(len(b)), 10)
		return append(dst, '}')
	case utf8.Valid(b):
		dst = spill.Append(append(dst, `{"utf8":"`...), b, appendInString)
	default:
		dst = spill.appendBytes(append(dst, `{"base64":"`...), b, appendBase64)
	}
	return append(dst, `"}`...)
}

// readable reports whether auto shows b as text: UTF-8 without control characters other than tabs, line ends and the
// escape character of coloured log lines. An 8-byte number is mostly NUL bytes and so is shown as hexadecimal.
func readable(b []byte) bool {
	for _, c := range b {
		if c < 0x20 && c != '\t' && c != '\n' && c != '\r' && c != 0x1b || c == 0x7f {
			return false
		}
	}
	return utf8.Valid(b)
}
