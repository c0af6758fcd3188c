package format

import (
	"bytes"
	"io"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"
)

// maxStreamWindow bounds the memory that a zstd stream may ask for, in bytes.
const maxStreamWindow = 128 << 20

// PlainStream is what a stream compressed as a whole by gzip, zstd or lz4 holds, told by its first bytes; it is false
// for any other. It is for archives of files, not for what Kafka compresses.
func PlainStream(head []byte, r io.Reader) (io.Reader, bool, error) {
	switch {
	case bytes.HasPrefix(head, []byte{0x1f, 0x8b}):
		z, err := gzip.NewReader(r)
		return z, true, err
	case bytes.HasPrefix(head, []byte{0x28, 0xb5, 0x2f, 0xfd}):
		z, err := zstd.NewReader(r, zstd.WithDecoderMaxWindow(maxStreamWindow))
		return z, true, err
	case bytes.HasPrefix(head, []byte{0x04, 0x22, 0x4d, 0x18}):
		return lz4.NewReader(r), true, nil
	}
	return nil, false, nil
}
