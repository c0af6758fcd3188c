// Command bench times kseg beside the real kafka-dump-log, beside the recovery of a broker and beside a bare loop over
// the same bytes, one run after the other, and prints a page of ratios (docs/performance.md): absolute times differ
// between machines, ratios less so.
//
// It writes segments of six shapes itself, by repeating the batches of real segments with rising offsets (a base offset
// lies outside a batch's checksum), and removes them. Kafka's own code is run if KSEG_ORACLE_LIB names a folder with
// its jars.
package main

import (
	"bytes"
	"encoding/binary"
	"flag"
	"fmt"
	"hash/crc32"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"kseg/format"
)

// shapes are the segments to time: a real segment whose batches are repeated, below testdata/logdirs.
var shapes = []struct{ name, model string }{
	{"16k-batches", "4.4.0/segments-316/clean/seg-4096-0/00000000000000000000.log"},
	{"one-record", "4.4.0/old-append/leader/replicated-0/00000000000000000000.log"},
	{"lz4", "4.4.0/codecs/codec-lz4-createtime-0/00000000000000000000.log"},
	{"zstd", "4.4.0/codecs/codec-zstd-createtime-0/00000000000000000000.log"},
	{"snappy", "4.4.0/codecs/codec-snappy-createtime-0/00000000000000000000.log"},
	{"gzip", "4.4.0/codecs/codec-gzip-createtime-0/00000000000000000000.log"},
}

// bench is one run of the program.
type bench struct {
	tmp  string // everything is written there
	kseg string // the binary
	lib  string // Kafka's jars, "" if there are none
	mib  int64
	runs int
	page bytes.Buffer
}

func main() {
	mib := flag.Int64("mb", 64, "size of the segment of each shape, in MiB")
	most := flag.Int64("most", 4096, "size of the largest log, in MiB")
	runs := flag.Int("runs", 3, "runs of each command; the best counts")
	only := flag.String("only", "", "nothing but the growth with things whose `name` contains this: partitions, keys ...")
	md := flag.String("md", "", "write the page to this file instead of stdout")
	flag.Parse()
	b := &bench{mib: *mib, runs: *runs, lib: os.Getenv("KSEG_ORACLE_LIB")}
	err := b.run(*most, *only)
	switch {
	case err != nil:
	case *md == "":
		_, err = b.page.WriteTo(os.Stdout)
	default:
		err = os.WriteFile(*md, b.page.Bytes(), 0o644)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func (b *bench) run(most int64, only string) (err error) {
	if b.tmp, err = os.MkdirTemp("", "kseg-bench"); err != nil {
		return err
	}
	defer os.RemoveAll(b.tmp)
	b.kseg = filepath.Join(b.tmp, "kseg")
	if out, err := exec.Command("go", "build", "-trimpath", "-o", b.kseg, "kseg").CombinedOutput(); err != nil {
		return fmt.Errorf("go build: %w\n%s", err, out)
	}
	parts := []func() error{b.head, b.besideKafka, b.verbs, func() error { return b.growth(most) },
		func() error { return b.things("") }}
	if only != "" {
		parts = []func() error{func() error { return b.things(only) }}
	}
	for _, part := range parts {
		if err := part(); err != nil {
			return err
		}
	}
	return nil
}

// best is the shortest of several runs; the time of one that fails means nothing.
func best(runs int, work func() error) (time.Duration, error) {
	shortest := time.Duration(1<<63 - 1)
	for range runs {
		start := time.Now()
		if err := work(); err != nil {
			return 0, err
		}
		shortest = min(shortest, time.Since(start))
	}
	return shortest, nil
}

// command runs a program and throws its output away. An exit code of 1 is an answer.
func command(name string, args ...string) error {
	var stderr bytes.Buffer
	c := exec.Command(name, args...)
	c.Stderr = &stderr
	if err := c.Run(); err != nil && c.ProcessState.ExitCode() != 1 {
		return fmt.Errorf("%s %q: %w\n%s", filepath.Base(name), args, err, stderr.Bytes())
	}
	return nil
}

// bareLoop is the least a checking reader has to do: hop from header to header and run the checksum over each batch.
func bareLoop(data []byte) error {
	table := crc32.MakeTable(crc32.Castagnoli)
	for pos := 0; pos < len(data); {
		size := 12 + int(binary.BigEndian.Uint32(data[pos+8:]))
		if crc32.Checksum(data[pos+21:pos+size], table) != binary.BigEndian.Uint32(data[pos+17:]) {
			return fmt.Errorf("checksum at %d", pos)
		}
		pos += size
	}
	return nil
}

// writeLog writes segments of about the wanted size into dir, one after the other, by repeating the batches of the
// model.
func writeLog(dir, model string, segments int, bytes int64) error {
	data, err := os.ReadFile(filepath.Join("testdata", "logdirs", filepath.FromSlash(model)))
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	offset := int64(0)
	for range segments {
		if offset, err = writeSegment(dir, data, offset, bytes); err != nil {
			return fmt.Errorf("%s: %w", model, err)
		}
	}
	return nil
}

// writeSegment writes one segment, and returns the offset after its last.
func writeSegment(dir string, data []byte, offset, bytes int64) (int64, error) {
	out, err := os.Create(filepath.Join(dir, format.SegmentFileName(offset, format.KindLog)))
	if err != nil {
		return 0, err
	}
	defer out.Close()
	for written := int64(0); written < bytes; written += int64(len(data)) {
		s := format.NewScanner(data, 0, -1)
		for s.Next() {
			b := s.Batch()
			if b == nil || b.Magic != 2 {
				return 0, fmt.Errorf("it is no healthy segment of magic 2")
			}
			binary.BigEndian.PutUint64(b.Raw, uint64(offset))
			offset += b.LastOffset - b.BaseOffset + 1
		}
		if _, err := out.Write(data); err != nil {
			return 0, err
		}
	}
	return offset, out.Close()
}
