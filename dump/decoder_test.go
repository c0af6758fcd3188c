package dump

import (
	"testing"

	"kseg/render"
)

// TestDecoders: numbers of the right length are numbers, all else is shown by its bytes, and what is redacted stays so.
func TestDecoders(t *testing.T) {
	for _, test := range []struct {
		d    Decoder
		in   string
		mode render.Payload
		want string
	}{
		{DecodeInteger, "\x00\x00\x00\x07", render.PayloadRaw, "7"},
		{DecodeInteger, "\xff\xff\xff\xfe", render.PayloadAuto, "-2"},
		{DecodeInteger, "abc", render.PayloadRaw, "616263"},
		{DecodeLong, "\x80\x00\x00\x00\x00\x00\x00\x00", render.PayloadRaw, "-9223372036854775808"},
		{DecodeLong, "\x00\x00\x00\x07", render.PayloadAuto, "00000007"},
		{DecodeBytes, "ab", render.PayloadRaw, "6162"},
		{DecodeString, "ab", render.PayloadRaw, "ab"},
		{DecodeInteger, "\x00\x00\x00\x07", render.PayloadLen, "4 bytes"},
	} {
		if got := string(test.d.appendText(nil, []byte(test.in), test.mode, nil)); got != test.want {
			t.Errorf("%d of %q: %q, want %q", test.d, test.in, got, test.want)
		}
	}
}
