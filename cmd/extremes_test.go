package cmd

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"kseg/format"
	"kseg/internal/fixture"
)

// extremes are values at which arithmetic goes wrong, and those that are often taken for "none".
var extremes = []int64{math.MinInt64, math.MinInt64 + 1, math.MinInt32, -2, -1, 0, 1, math.MaxInt16, math.MaxInt32,
	math.MaxInt32 + 1, math.MaxUint32, 1 << 40, math.MaxInt64 - 1, math.MaxInt64}

// batchFields are the fields of a batch of magic 2 by position and width in bytes, but for length, magic and checksum.
var batchFields = [][2]int{{0, 8}, {12, 4}, {21, 2}, {23, 4}, {27, 8}, {35, 8}, {43, 8}, {51, 2}, {53, 4}, {57, 4}}

// messageFields are those of a message of magic 1.
var messageFields = [][2]int{{0, 8}, {17, 1}, {18, 8}, {26, 4}, {30, 4}}

func extreme(r *rand.Rand) int64 { return extremes[r.IntN(len(extremes))] }

// put writes the low bytes of v.
func put(b []byte, field [2]int, v int64) {
	var raw [8]byte
	binary.BigEndian.PutUint64(raw[:], uint64(v))
	copy(b[field[0]:field[0]+field[1]], raw[8-field[1]:])
}

// extremeLog is a log in which fields of some batches, or of their records, are extreme, all with checksums that hold.
func extremeLog(r *rand.Rand, base int64) []byte {
	var log []byte
	for i := range 3 + r.IntN(3) {
		if r.IntN(5) == 0 {
			log = append(log, extremeMessage(r, base+int64(i))...)
			continue
		}
		record := fixture.Record{Offset: base + int64(i), TimestampMs: 1_700_000_000_000, Key: []byte("k"),
			Value: []byte("value")}
		second := record
		if r.IntN(4) == 0 {
			second.Offset, second.TimestampMs = extreme(r), extreme(r)
		}
		raw := fixture.AppendBatch(nil, fixture.Batch{Records: []fixture.Record{record, second}})
		for range r.IntN(4) {
			put(raw, batchFields[r.IntN(len(batchFields))], extreme(r))
		}
		binary.BigEndian.PutUint32(raw[17:], crc32.Checksum(raw[21:], crc32.MakeTable(crc32.Castagnoli)))
		log = append(log, raw...)
	}
	return log
}

func extremeMessage(r *rand.Rand, offset int64) []byte {
	raw := make([]byte, 39)
	put(raw, [2]int{0, 8}, offset)
	put(raw, [2]int{8, 4}, 27)
	raw[16] = byte(r.IntN(2))
	put(raw, [2]int{18, 8}, 1_700_000_000_000)
	put(raw, [2]int{26, 4}, -1)
	put(raw, [2]int{30, 4}, 5)
	for range r.IntN(3) {
		put(raw, messageFields[r.IntN(len(messageFields))], extreme(r))
	}
	binary.BigEndian.PutUint32(raw[12:], crc32.ChecksumIEEE(raw[16:]))
	return raw
}

// words are binary fields of the given widths, again and again.
func words(r *rand.Rand, widths ...int) []byte {
	var b []byte
	for range r.IntN(4) {
		for _, width := range widths {
			field := make([]byte, width)
			put(field, [2]int{0, width}, extreme(r))
			b = append(b, field...)
		}
	}
	return b
}

// extremeDir is a log directory whose files hold extreme values.
func extremeDir(t *testing.T, r *rand.Rand) string {
	dir := t.TempDir()
	write := func(name string, content []byte) {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	checkpoint := func(line string) []byte {
		lines := ""
		n := 1 + r.IntN(3)
		for range n {
			lines += strings.ReplaceAll(line, "#", fmt.Sprint(extreme(r))) + "\n"
		}
		return fmt.Appendf(nil, "0\n%d\n%s", n, lines)
	}
	for _, topic := range []string{"t-0", "__consumer_offsets-0"} {
		for _, base := range []int64{0, max(0, extreme(r))} {
			name := func(kind format.Kind) string { return filepath.Join(topic, format.SegmentFileName(base, kind)) }
			write(name(format.KindLog), extremeLog(r, base))
			write(name(format.KindOffsetIndex), words(r, 4, 4))
			write(name(format.KindTimeIndex), words(r, 8, 4))
			txns := words(r, 2, 8, 8, 8, 8)
			for at := 0; at < len(txns); at += 34 {
				txns[at], txns[at+1] = 0, 0
			}
			write(name(format.KindTxnIndex), txns)
			entry := format.ProducerEntry{ProducerID: extreme(r), ProducerEpoch: int16(extreme(r)),
				LastSequence: int32(extreme(r)), LastOffset: extreme(r),
				OffsetDelta: int32(extreme(r)), TimestampMs: extreme(r), CoordinatorEpoch: int32(extreme(r)),
				CurrentTxnFirstOffset: extreme(r)}
			write(name(format.KindProducerSnapshot), format.AppendProducerSnapshot(nil, []format.ProducerEntry{entry}))
		}
		write(filepath.Join(topic, "leader-epoch-checkpoint"), checkpoint("# #"))
	}
	for _, name := range []string{"recovery-point-offset-checkpoint", "replication-offset-checkpoint",
		"log-start-offset-checkpoint", "cleaner-offset-checkpoint"} {
		write(name, checkpoint("t 0 #"))
	}
	return dir
}

// Whatever values the fields hold, with checksums that match, no verb fails.
func TestExtremeValues(t *testing.T) {
	for seed := range 1000 {
		if !fixture.Sampled(seed, 100) {
			continue
		}
		r := rand.New(rand.NewPCG(uint64(seed), 0))
		dir := extremeDir(t, r)
		n, log := fmt.Sprint(max(0, extreme(r))), filepath.Join(dir, "t-0", format.SegmentFileName(0, format.KindLog))
		for _, args := range [][]string{
			{"verify", dir}, {"verify", "--rebuild", filepath.Join(t.TempDir(), "out"), "--snapshots", dir},
			{"dump", "--records", dir},
			{"dump", "--records", "-o", "table", dir}, {"dump", "-o", "json", "--records", dir}, {"dump", "--kafka-compat",
				"--deep-iteration", "--files", log},
			{"lookup", "--offset", n, dir}, {"lookup", "--timestamp", n, dir}, {"lookup", "--sweep", dir},
			{"density", "--interval", "100", dir},
			{"retention", dir}, {"compaction", dir}, {"compare", filepath.Join(dir, "t-0"),
				filepath.Join(dir, "__consumer_offsets-0")}, {"groups", dir},
			{"ls", "--stats", dir}, {"explain", log}, {"explain", "size", log}, {"metadata", dir},
		} {
			var stdout, stderr bytes.Buffer
			code := Main(args, strings.NewReader(""), &stdout, &stderr)
			if code == codeUsage {
				t.Errorf("%v: %s", args, &stderr)
			}
			for _, out := range []string{stdout.String(), stderr.String()} {
				if strings.Contains(out, "internal error") {
					t.Errorf("seed %d, %v: code %d: %s", seed, args, code, out[strings.Index(out, "internal error"):])
				}
			}
		}
	}
}

// A control record that cannot be read is damage to dump and to verify alike, whether its batch has a producer or not.
func TestControlRecordsAreJudgedAlike(t *testing.T) {
	for _, producer := range []int64{-1, 5} {
		for _, key := range [][]byte{nil, {0}, {0, 0, 0, 0}, {0, 0, 0, 1, 9}, {0, 0, 0, 2}, {0xff, 0, 0, 0}} {
			for _, value := range [][]byte{nil, {0, 0}, {0, 0, 0, 0, 0, 1}, {0xff, 0, 0, 0, 0, 1}} {
				raw := fixture.AppendBatch(nil, fixture.Batch{Attributes: 0x30,
					Records: []fixture.Record{{TimestampMs: 1_700_000_000_000, Key: key, Value: value}}})
				put(raw, [2]int{43, 8}, producer)
				put(raw, [2]int{51, 2}, 0)
				binary.BigEndian.PutUint32(raw[17:], crc32.Checksum(raw[21:], crc32.MakeTable(crc32.Castagnoli)))
				name := filepath.Join(t.TempDir(), format.SegmentFileName(0, format.KindLog))
				if err := os.WriteFile(name, raw, 0o644); err != nil {
					t.Fatal(err)
				}
				var out bytes.Buffer
				dumped := Main([]string{"dump", "--records", name}, strings.NewReader(""), &out, &out)
				verified := Main([]string{"verify", name}, strings.NewReader(""), &out, &out)
				if dumped != verified {
					t.Errorf("producer %d, key %x, value %x: dump ends with %d, verify with %d\n%s", producer, key, value, dumped,
						verified, &out)
				}
			}
		}
	}
}

// What folds a topic leaves a batch out that is larger than asked for, and doesn't call it damage.
func TestFoldsBoundBatches(t *testing.T) {
	raw := fixture.AppendBatch(nil, fixture.Batch{Codec: format.CodecZstd,
		Records: []fixture.Record{{TimestampMs: 1_700_000_000_000, Key: make([]byte, 400), Value: make([]byte, 400)}}})
	for verb, dir := range map[string]string{"groups": "__consumer_offsets-0", "metadata": "__cluster_metadata-0"} {
		name := filepath.Join(t.TempDir(), dir, format.SegmentFileName(0, format.KindLog))
		if err := errors.Join(os.Mkdir(filepath.Dir(name), 0o755), os.WriteFile(name, raw, 0o644)); err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		code := Main([]string{verb, "--max-batch-bytes", "100", filepath.Dir(name)}, strings.NewReader(""), &out, &out)
		if code != codeIncomplete || !strings.Contains(out.String(), format.ErrTooLarge.Error()) {
			t.Errorf("%s ends with %d: %s", verb, code, &out)
		}
	}
}
