package explain

import (
	"fmt"
	"strings"

	"kseg/format"
	"kseg/render"
)

// frameWords is about the fields of codec frames.
func frameWords(l *format.Leaf, name string) string {
	path := l.Path[strings.IndexByte(l.Path, '.')+1:]
	codec, _, _ := strings.Cut(path, ".")
	codec, _, _ = strings.Cut(codec, "[")
	switch codec {
	case "gzip":
		return gzipWords(l, name)
	case "snappy":
		return map[string]string{
			"magic":             `"\x82SNAPPY\0": a xerial stream, which cuts the data into blocks`,
			"version":           "of the framing",
			"compatibleVersion": "the oldest reader that understands it",
			"length":            "compressed bytes of this block",
		}[name]
	case "lz4":
		return lz4Words(l, name)
	case "zstd":
		return zstdWords(l, name)
	}
	return ""
}

func gzipWords(l *format.Leaf, name string) string {
	switch name {
	case "magic":
		return "a gzip member (RFC 1952)"
	case "method":
		return "deflate"
	case "flags":
		if l.Number == 0 {
			return "no optional fields"
		}
		return "which optional fields follow"
	case "mtime":
		return "time of a file; Java writes 0"
	case "extraFlags":
		return "2: best compression, 4: fastest, 0: neither"
	case "os":
		return "0 (FAT) or 255 (unknown), by the version of Java"
	case "crc32":
		return "CRC-32 of the decompressed bytes; gzip is the only codec with one of its own"
	case "size":
		return "decompressed bytes"
	}
	return ""
}

func lz4Words(l *format.Leaf, name string) string {
	switch name {
	case "magic":
		return "an LZ4 frame, little-endian"
	case "flags":
		return bitWords(l, "version 1, blocks independent of each other")
	case "blockDescriptor":
		if code := l.Number >> 4 & 7; code >= 4 {
			return fmt.Sprintf("blocks of up to %s", render.Bytes(1<<(2*code+8)))
		}
		return ""
	case "contentSize":
		return "decompressed bytes"
	case "headerChecksum":
		if l.Batch.Magic == 0 {
			return "writers of this old format computed it over the wrong bytes, so a broker does not look at it"
		}
		return "second byte of xxHash32 over flags to here"
	case "size":
		if l.Number>>31&1 == 1 {
			return fmt.Sprintf("%s, stored without compression (highest bit)", bytesOf(l.Number&^(1<<31)))
		}
		return "compressed bytes of this block"
	case "endMark":
		return "no more blocks"
	case "checksum", "contentChecksum":
		return "xxHash32"
	}
	return ""
}

func zstdWords(l *format.Leaf, name string) string {
	switch name {
	case "magic":
		return "a Zstandard frame (RFC 8878), little-endian"
	case "frameDescriptor":
		return bitWords(l, "which fields follow")
	case "windowDescriptor":
		log := 10 + l.Number>>3
		return fmt.Sprintf("a reader needs a window of %s", render.Bytes(1<<log+1<<log/8*(l.Number&7)))
	case "contentSize":
		return "decompressed bytes"
	case "dictionaryId":
		return "of a dictionary, which Kafka never uses"
	case "header":
		kind := [...]string{"stored", "one byte, repeated", "compressed", "reserved"}[l.Number>>1&3]
		text := fmt.Sprintf("block: %s, %s", kind, bytesOf(l.Number>>3))
		if l.Number&1 == 1 {
			text += ", the last"
		}
		return text
	case "checksum":
		return "lowest bytes of xxHash64 of the decompressed bytes"
	}
	return ""
}

// bitWords names the bits that are set.
func bitWords(l *format.Leaf, otherwise string) string {
	var set []string
	for _, b := range l.Bits {
		if b.Value != 0 {
			set = append(set, fmt.Sprintf("%s %d", b.Name, b.Value))
		}
	}
	if len(set) == 0 {
		return otherwise
	}
	return strings.Join(set, ", ")
}

func compressedWords(l *format.Leaf, name string) string {
	switch name {
	case "deflate":
		return "deflate data, one stream of bits"
	case "trailing":
		if l.Batch != nil && l.Batch.Codec() > format.CodecZstd {
			return "compressed with a codec that Kafka does not have, so nobody can read them"
		}
		return "beyond the end of the stream; nobody reads it"
	case "name", "comment":
		return "text that ends in a zero byte; Java writes none"
	case "data":
		return "the block's data"
	}
	return "compressed data"
}
