package verify

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"kseg/format"
	"kseg/internal/fixture"
)

// rewritten changes the bytes of a file.
func rewritten(t *testing.T, dir, file string, change func([]byte) []byte) {
	t.Helper()
	name := filepath.Join(dir, file)
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, name, change(data))
}

// setLength overwrites the length field of the entry at pos.
func setLength(pos, length int) func([]byte) []byte {
	return func(data []byte) []byte {
		binary.BigEndian.PutUint32(data[pos+8:], uint32(length))
		return data
	}
}

func addInt32(raw []byte, at int, n int32) {
	binary.BigEndian.PutUint32(raw[at:], uint32(int32(binary.BigEndian.Uint32(raw[at:]))+n))
}

// elsewhere is damage of the kinds of testdata/damage at places where other witnesses tell what happened: the last
// batch of a log or of a segment, compressed messages of the old formats.
var elsewhere = []struct {
	name, base string
	edit       func(t *testing.T, dir string)
	want       string
}{
	{"length of the last batch", plainBase, func(t *testing.T, dir string) {
		rewritten(t, dir, "00000000000000000096.log", setLength(1855, 0x7fffffff))
	}, "damage batch-length 00000000000000000096.log 1855 116-119"},
	{"length of the last batch of a segment", plainBase, func(t *testing.T, dir string) {
		rewritten(t, dir, "00000000000000000032.log", setLength(2556, 20000))
	}, "damage batch-length 00000000000000000032.log 2556 60-63"},
	{"last offset of the last batch", plainBase, func(t *testing.T, dir string) {
		edited(t, dir, "00000000000000000096.log", offsetIs(116), func(raw []byte) { addInt32(raw, 23, 3) })
	}, "damage batch-last-offset 00000000000000000096.log 1855 116-119"},
	{"last offset of the last batch of a segment", plainBase, func(t *testing.T, dir string) {
		edited(t, dir, "00000000000000000032.log", offsetIs(60), func(raw []byte) { addInt32(raw, 23, 3) })
	}, "damage batch-last-offset 00000000000000000032.log 2556 60-63"},
	{"last offset of the last batch, too low", plainBase, func(t *testing.T, dir string) {
		edited(t, dir, "00000000000000000096.log", offsetIs(116), func(raw []byte) { addInt32(raw, 23, -1) })
	}, "damage batch-count 00000000000000000096.log 1855 116-118"},
	{"base offset of the last batch", plainBase, func(t *testing.T, dir string) {
		edited(t, dir, "00000000000000000096.log", offsetIs(116), func(raw []byte) { putInt64(raw, 117) })
	}, "damage batch-base-offset 00000000000000000096.log 1855 116-119"},
	{"base offset of the last batch, far away", plainBase, func(t *testing.T, dir string) {
		apply(t, dir, "remove 00000000000000000120.snapshot")
		edited(t, dir, "00000000000000000096.log", offsetIs(116), func(raw []byte) { putInt64(raw, 5_000_000_116) })
	}, "damage batch-base-offset 00000000000000000096.log 1855 116-119"},
	{"sequence of the last batch of a segment", plainBase, func(t *testing.T, dir string) {
		edited(t, dir, "00000000000000000032.log", offsetIs(60), func(raw []byte) { addInt32(raw, 53, 100) })
	}, "warning producer-sequence 00000000000000000032.log 2556 60-63"},
	{"a bit of the last offset of the last batch", plainBase, func(t *testing.T, dir string) {
		rewritten(t, dir, "00000000000000000096.log", func(data []byte) []byte { data[1855+23] ^= 8; return data })
	}, "damage batch-crc-mismatch 00000000000000000096.log 1855 116-119"},
	{"torn before the last offset, with a snapshot", txnBase, func(t *testing.T, dir string) {
		rewritten(t, dir, "00000000000000000246.log", func(data []byte) []byte { return data[:1002+20] })
	}, "warning torn-tail 00000000000000000246.log 1002 265"},
	{"a time that is too late", plainBase, func(t *testing.T, dir string) {
		rewritten(t, dir, "00000000000000000032.timeindex", func(data []byte) []byte { data[12+3] ^= 1; return data })
	}, "damage timeindex-invalid 00000000000000000032.timeindex 12 43"},
	{"the first segment renamed", plainBase, func(t *testing.T, dir string) {
		for _, suffix := range []string{".log", ".index", ".timeindex"} {
			if err := os.Rename(filepath.Join(dir, "00000000000000000000"+suffix), filepath.Join(dir, "00000000000000000001"+
				suffix)); err != nil {
				t.Fatal(err)
			}
		}
	}, "damage segment-name 00000000000000000001.log 0 0-3"},
	{"the last segment renamed", plainBase, func(t *testing.T, dir string) {
		for _, suffix := range []string{".log", ".index", ".timeindex"} {
			if err := os.Rename(filepath.Join(dir, "00000000000000000096"+suffix), filepath.Join(dir, "00000000000000000097"+
				suffix)); err != nil {
				t.Fatal(err)
			}
		}
	}, "damage segment-name 00000000000000000097.log 0 96-99"},
	{"an entry that points beyond the end of a log with room kept free", plainBase, func(t *testing.T, dir string) {
		rewritten(t, dir, "00000000000000000096.timeindex", func(data []byte) []byte {
			return append(data, make([]byte, 120)...)
		})
		rewritten(t, dir, "00000000000000000096.log", func(data []byte) []byte { return append(data, make([]byte, 8192)...) })
		rewritten(t, dir, "00000000000000000096.index", func(data []byte) []byte {
			data[4] = 1
			return append(data, make([]byte, 80)...)
		})
	}, "note zero-tail 00000000000000000096.log 2237 -\n\tdamage index-invalid 00000000000000000096.index 0 103"},
	{"the first log is gone, and the broker has stopped", plainBase, func(t *testing.T, dir string) {
		writeFile(t, filepath.Join(filepath.Dir(dir), ".kafka_cleanshutdown"), nil)
		if err := os.Remove(filepath.Join(dir, "00000000000000000000.log")); err != nil {
			t.Fatal(err)
		}
	}, "damage index-without-log 00000000000000000000.index - 0-31\n\tnote leader-epoch-below-start " +
		"leader-epoch-checkpoint 4 -"},
	{"a segment is gone, and its snapshot is left", plainBase, func(t *testing.T, dir string) {
		for _, suffix := range []string{".log", ".index", ".timeindex"} {
			if err := os.Remove(filepath.Join(dir, "00000000000000000032"+suffix)); err != nil {
				t.Fatal(err)
			}
		}
	}, "damage offset-gap 00000000000000000064.log 0 32-63"},
	{"a batch twice after a gap that the cleaner left", cleanedBase, func(t *testing.T, dir string) {
		rewritten(t, dir, cleanedLog, func(data []byte) []byte {
			b := cleanedBatch(t, data)
			return slices.Insert(data, int(b.End()), data[b.Pos:b.End()]...)
		})
	}, "damage batch-repeated " + cleanedLog + " 183 12-15"},
	{"length of a compressed message", wrapperBase, func(t *testing.T, dir string) {
		rewritten(t, dir, wrapperLog, func(data []byte) []byte { return setLength(wrapperAt(t, data, 1), 20)(data) })
	}, "damage batch-length " + wrapperLog + " 2091 90-179"},
	{"a bit of a compressed message", wrapperBase, func(t *testing.T, dir string) {
		rewritten(t, dir, wrapperLog, func(data []byte) []byte { data[wrapperAt(t, data, 1)+500] ^= 1; return data })
	}, "damage batch-crc-mismatch " + wrapperLog + " 2091 90-179"},
	{"the last compressed message torn", wrapperBase, func(t *testing.T, dir string) {
		rewritten(t, dir, wrapperLog, func(data []byte) []byte { return data[:wrapperAt(t, data, 7)+40] })
	}, "warning torn-tail " + wrapperLog + " 13911 630-719"},
	{"codec of a compressed message", wrapperBase, func(t *testing.T, dir string) {
		rewritten(t, dir, wrapperLog, func(data []byte) []byte {
			at := wrapperAt(t, data, 1)
			b, err := format.DecodeBatch(data, int64(at))
			if err != nil {
				t.Fatal(err)
			}
			data[at+17] |= 7
			binary.BigEndian.PutUint32(data[at+12:], b.ComputeCRC())
			return data
		})
	}, "damage batch-codec " + wrapperLog + " 2091 179"},
}

const (
	wrapperBase = "0.10.2.2/legacy/old-v1-keyed-by-broker-gzip-0"
	wrapperLog  = "00000000000000000000.log"
	cleanedBase = "4.4.0/compacted/users-0"
	cleanedLog  = "00000000000000000000.log"
)

// wrapperAt is the position of the entry with that number.
func wrapperAt(t *testing.T, data []byte, number int) int {
	t.Helper()
	s := format.NewScanner(data, 0, 0)
	for range number + 1 {
		if !s.Next() || s.Batch() == nil {
			t.Fatalf("there are no %d entries", number+1)
		}
	}
	return int(s.Batch().Pos)
}

// cleanedBatch is the first batch after a gap.
func cleanedBatch(t *testing.T, data []byte) format.Batch {
	t.Helper()
	next := int64(0)
	for s := format.NewScanner(data, 0, 0); s.Next(); next = s.Batch().NextOffset() {
		if b := s.Batch(); b.BaseOffset > next {
			return *b
		}
	}
	t.Fatal("there is no gap")
	return format.Batch{}
}

// Wherever a fault is, it is one finding, at its place.
func TestSameFaultElsewhere(t *testing.T) {
	for _, c := range elsewhere {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir := fixture.Dir(t, c.base)
			healthy, _ := runOn(t, Options{Level: Records}, dir)
			var known, got []string
			for i := range healthy {
				known = append(known, line(&healthy[i]))
			}
			c.edit(t, dir)
			found, _ := runOn(t, Options{Level: Records}, dir)
			for i := range found {
				if text := line(&found[i]); !slices.Contains(known, text) {
					got = append(got, text)
				}
			}
			if strings.Join(got, "\n\t") != c.want {
				t.Errorf("got\n\t%s\nwant\n\t%s", strings.Join(got, "\n\t"), c.want)
			}
		})
	}
}
