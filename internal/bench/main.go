// Command bench times kseg beside the real kafka-dump-log and beside a bare loop over the same bytes, one run after the
// other, and prints the ratios: absolute times differ between machines, ratios less so.
//
// Without -dir it writes segments of six shapes itself, by repeating the batches of real segments with rising offsets
// (a base offset lies outside a batch's checksum). With -dir it takes DIR/SHAPE/*.log. The real tool is run if
// KSEG_ORACLE_LIB names a folder with Kafka's jars: kafka-dump-log beside dump, LogSegment.recover beside the
// rebuilding of indexes.
package main

import (
	"encoding/binary"
	"flag"
	"fmt"
	"hash/crc32"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
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

// work is a command line to time, and what does the same in Kafka, nil if nothing does.
type work struct {
	name string
	ours []string // OUT stands for a folder that is not there
	real func(lib, segment string, runs int) (time.Duration, error)
}

var works = []work{
	{"dump", []string{"dump"}, dumpLog()},
	{"dump --records", []string{"dump", "--records"}, dumpLog("--print-data-log")},
	{"verify --level crc", []string{"verify", "--level", "crc"}, nil},
	{"verify", []string{"verify"}, nil},
	{"verify --rebuild", []string{"verify", "--rebuild", "OUT"}, recovery},
}

// dumpLog times the real kafka-dump-log with these flags.
func dumpLog(flags ...string) func(lib, segment string, runs int) (time.Duration, error) {
	return func(lib, segment string, runs int) (time.Duration, error) {
		args := []string{"-Xmx2g", "-cp", filepath.Join(lib, "*"), "org.apache.kafka.tools.DumpLogSegments", "--files",
			segment}
		return best(runs, func() error { return command("java", append(args, flags...)...) }), nil
	}
}

// recovery times LogSegment.recover on a copy of the segment's folder; the start of Java does not count.
func recovery(lib, segment string, runs int) (time.Duration, error) {
	shortest := time.Duration(1<<63 - 1)
	for range runs {
		out, err := exec.Command("java", "-Xmx2g", "-cp", filepath.Join(lib, "*"), filepath.Join("verify", "oracle",
			"Recovery.java"),
			"time", "4096", "86400000", filepath.Dir(segment)).Output()
		if err != nil {
			return 0, fmt.Errorf("recovery: %w", err)
		}
		took, err := time.ParseDuration(strings.TrimSpace(string(out)))
		if err != nil {
			return 0, err
		}
		shortest = min(shortest, took)
	}
	return shortest.Round(10 * time.Microsecond), nil
}

func main() {
	mb := flag.Int64("mb", 128, "size of the segments that are written, in MiB")
	dir := flag.String("dir", "", "take DIR/SHAPE/*.log instead of writing segments")
	runs := flag.Int("runs", 3, "runs of each command; the best counts")
	flag.Parse()
	if err := run(*dir, *mb<<20, *runs); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(dir string, bytes int64, runs int) error {
	tmp, err := os.MkdirTemp("", "kseg-bench")
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp)
	kseg := filepath.Join(tmp, "kseg")
	if out, err := exec.Command("go", "build", "-o", kseg, "kseg").CombinedOutput(); err != nil {
		return fmt.Errorf("go build: %w\n%s", err, out)
	}
	if dir == "" {
		dir = tmp
		for _, s := range shapes {
			if err := writeShape(filepath.Join(tmp, s.name), s.model, bytes); err != nil {
				return fmt.Errorf("%s: %w", s.name, err)
			}
		}
	}
	segments, err := filepath.Glob(filepath.Join(dir, "*", "*.log"))
	if err != nil || len(segments) == 0 {
		return fmt.Errorf("no segments in %s: %w", dir, err)
	}
	table := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "shape\tMiB\twork\tkseg\tMiB/s\tbare loop\treal tool\tratio\t")
	for _, segment := range segments {
		if err := timeSegment(table, kseg, segment, runs); err != nil {
			return err
		}
	}
	return table.Flush()
}

// timeSegment prints a line for each work over one segment.
func timeSegment(table *tabwriter.Writer, kseg, segment string, runs int) error {
	data, err := os.ReadFile(segment)
	if err != nil {
		return err
	}
	mib := float64(len(data)) / (1 << 20)
	bare := best(runs, func() error { return bareLoop(data) })
	out := filepath.Join(filepath.Dir(kseg), "rebuilt")
	for _, w := range works {
		args := append(slices.Clone(w.ours), segment)
		for i := range args {
			if args[i] == "OUT" {
				args[i] = out
			}
		}
		ours := best(runs, func() error {
			if err := os.RemoveAll(out); err != nil {
				return err
			}
			return command(kseg, args...)
		})
		line := fmt.Sprintf("%s\t%.0f\t%s\t%s\t%.0f\t%s", filepath.Base(filepath.Dir(segment)), mib, w.name, ours,
			mib/ours.Seconds(), bare)
		tool, ratio := "", ""
		if lib := os.Getenv("KSEG_ORACLE_LIB"); lib != "" && w.real != nil {
			t, err := w.real(lib, segment, runs)
			if err != nil {
				return err
			}
			tool, ratio = t.String(), fmt.Sprintf("%.1f", t.Seconds()/ours.Seconds())
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t\n", line, tool, ratio)
	}
	return nil
}

// best is the shortest of several runs; a run that fails ends the program, since its time means nothing.
func best(runs int, work func() error) time.Duration {
	shortest := time.Duration(1<<63 - 1)
	for range runs {
		start := time.Now()
		if err := work(); err != nil {
			fmt.Fprintln(os.Stderr, "bench:", err)
			os.Exit(1)
		}
		shortest = min(shortest, time.Since(start))
	}
	return shortest.Round(10 * time.Microsecond)
}

// command runs a program and throws its output away.
func command(name string, args ...string) error {
	return exec.Command(name, args...).Run()
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

// writeShape writes one segment of about the wanted size into dir, by repeating the batches of the model.
func writeShape(dir, model string, bytes int64) error {
	data, err := os.ReadFile(filepath.Join("testdata", "logdirs", filepath.FromSlash(model)))
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	out, err := os.Create(filepath.Join(dir, "00000000000000000000.log"))
	if err != nil {
		return err
	}
	defer out.Close()
	offset := int64(0)
	for written := int64(0); written < bytes; written += int64(len(data)) {
		s := format.NewScanner(data, 0, -1)
		for s.Next() {
			b := s.Batch()
			if b == nil || b.Magic != 2 {
				return fmt.Errorf("%s is no healthy segment of magic 2", model)
			}
			binary.BigEndian.PutUint64(b.Raw, uint64(offset))
			offset += b.LastOffset - b.BaseOffset + 1
		}
		if _, err := out.Write(data); err != nil {
			return err
		}
	}
	return out.Close()
}
