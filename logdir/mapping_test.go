//go:build !windows && !nommap

package logdir

import (
	"bytes"
	"compress/gzip"
	"errors"
	"hash/crc32"
	"io"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/klauspost/compress/snappy"
	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"
)

// Bytes that a file loses while it is mapped are lost in the mapping too. What was read before is not.

// touches are ways of reading a mapping that do not go through a plain index expression: assembly, the runtime,
// decoders.
var touches = map[string]func(b, target []byte){
	"index":  func(b, _ []byte) { sink += int(b[len(b)-1]) },
	"copy":   func(b, to []byte) { copy(to, b) },
	"append": func(b, _ []byte) { sink += len(append([]byte(nil), b...)) },
	"string": func(b, _ []byte) { text = string(b) },
	"equal":  func(b, to []byte) { sink += bytes.Compare(b, to) },
	"find":   func(b, _ []byte) { sink += bytes.IndexByte(b, 0xEE) },
	"crc32c": func(b, _ []byte) { sink += int(crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli))) },
	"crc32":  func(b, _ []byte) { sink += int(crc32.ChecksumIEEE(b)) },
	"snappy": func(b, to []byte) { _, _ = snappy.Decode(to, b) },
	"gzip": func(b, _ []byte) {
		if r, err := gzip.NewReader(bytes.NewReader(b)); err == nil {
			_, _ = io.Copy(io.Discard, r)
		}
	},
	"lz4 block": func(b, to []byte) { _, _ = lz4.UncompressBlock(b, to) },
	"lz4 frame": func(b, _ []byte) { _, _ = io.Copy(io.Discard, lz4.NewReader(bytes.NewReader(b))) },
	"zstd": func(b, to []byte) {
		d, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1))
		if err == nil {
			_, _ = d.DecodeAll(b, to[:0])
		}
	},
}

var text string

// compressed returns bytes that the touch of that name reads to their end: compressed noise for a decoder, zeros for
// others.
func compressed(t *testing.T, name string, plain []byte) []byte {
	var out bytes.Buffer
	var w io.WriteCloser
	switch name {
	case "gzip":
		w = gzip.NewWriter(&out)
	case "lz4 block":
		block := make([]byte, lz4.CompressBlockBound(len(plain)))
		n, err := lz4.CompressBlock(plain, block, nil)
		must(t, err)
		return block[:n]
	case "lz4 frame":
		w = lz4.NewWriter(&out)
	case "snappy":
		return snappy.Encode(nil, plain)
	case "zstd":
		z, err := zstd.NewWriter(&out)
		if err != nil {
			t.Fatal(err)
		}
		w = z
	default:
		return make([]byte, len(plain))
	}
	if _, err := w.Write(plain); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// noise compresses a little: by a half, so that compressed bytes fill several pages.
func noise(n int) []byte {
	b := make([]byte, n)
	x := uint32(1)
	for i := range b {
		x = x*1664525 + 1013904223
		b[i] = byte(x >> 24)
		if i%32 >= 16 {
			b[i] = b[i-16]
		}
	}
	return b
}

func TestLostBytesAreAnErrorWhoeverTouchesThem(t *testing.T) {
	plain := noise(64 << 10)
	for name, touch := range touches {
		t.Run(name, func(t *testing.T) {
			f := openFile(t, compressed(t, name, plain))
			err := f.View(func(b []byte) error {
				if err := os.Truncate(f.Path, 4096); err != nil {
					return err
				}
				touch(b, make([]byte, len(plain)*2))
				return errors.New("nothing happened")
			})
			var fault *FaultError
			if !errors.As(err, &fault) || !errors.Is(err, ErrVanished) {
				t.Fatalf("got %v, want a FaultError", err)
			}
			if fault.Now != 4096 || fault.Pos < 4096 || fault.Pos >= fault.Mapped {
				t.Fatalf("got %+v", fault)
			}
			if !strings.Contains(err.Error(), "has 4096 now") {
				t.Errorf("the present length is not in %q", err)
			}
		})
	}
}

func TestAFaultInOneGoroutineLeavesTheOthersAlone(t *testing.T) {
	f := openFile(t, make([]byte, 64<<10))
	var wg sync.WaitGroup
	faults, reads := make(chan error, 8), make(chan error, 8)
	err := f.View(func([]byte) error {
		if err := os.Truncate(f.Path, 4096); err != nil {
			return err
		}
		for range 8 {
			wg.Go(func() {
				faults <- f.View(func(b []byte) error { sink2(b[60<<10]); return nil })
				reads <- f.View(func(b []byte) error { sink2(b[100]); return nil })
			})
		}
		wg.Wait()
		return nil
	})
	if !errors.Is(err, ErrVanished) {
		t.Fatalf("the last View does not say that the file has become shorter: %v", err)
	}
	for range 8 {
		if err := <-faults; !errors.Is(err, ErrVanished) {
			t.Errorf("got %v, want a fault", err)
		}
		if err := <-reads; err != nil {
			t.Errorf("got %v, want the byte", err)
		}
	}
}

func TestLostBytesThatReadAsZerosAreAnError(t *testing.T) {
	f := openFile(t, bytes.Repeat([]byte{1}, 1000))
	err := f.View(func(b []byte) error {
		must(t, os.Truncate(f.Path, 100))
		if b[500] != 0 {
			t.Error("the kernel keeps lost bytes")
		}
		return nil
	})
	var fault *FaultError
	if !errors.As(err, &fault) || fault.Pos != 100 || fault.Mapped != 1000 || fault.Now != 100 {
		t.Fatal(err)
	}
}
