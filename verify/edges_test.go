package verify

import (
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"kseg/broker"
	"kseg/format"
	"kseg/internal/fixture"
	"kseg/logdir"
)

// expectLines compares what is found in a directory with lines of "severity code file position offsets".
func expectLines(t *testing.T, what, dir string, want ...string) {
	t.Helper()
	found, _ := runOn(t, Options{Level: Records}, dir)
	var got []string
	for i := range found {
		got = append(got, line(&found[i]))
	}
	if !slices.Equal(got, want) {
		t.Errorf("%s: %q, want %q", what, got, want)
	}
}

// Zeros after the last batch are room kept free only where both indexes have such room too.
func TestRoomIsKeptFreeInAllFiles(t *testing.T) {
	const base = "00000000000000000096"
	sizes := map[string]int64{".index": 20480, ".timeindex": 20472}
	for _, c := range []struct {
		padded []string
		want   string
	}{
		{nil, "warning zero-tail 00000000000000000096.log 2237 120-"},
		{[]string{".index"}, "warning zero-tail 00000000000000000096.log 2237 120-"},
		{[]string{".timeindex"}, "warning zero-tail 00000000000000000096.log 2237 120-"},
		{[]string{".index", ".timeindex"}, "note zero-tail 00000000000000000096.log 2237 -"},
	} {
		dir := fixture.Dir(t, plainBase)
		apply(t, dir, "zero "+base+".log 2237+8192")
		for _, ext := range c.padded {
			if err := os.Truncate(filepath.Join(dir, base+ext), sizes[ext]); err != nil {
				t.Fatal(err)
			}
		}
		expectLines(t, fmt.Sprintf("room in %q", c.padded), dir, c.want)
	}
}

// An index entry beyond the end of the log says that the log was cut, if it is not too far to be believed.
func TestEntriesBeyondTheEndAreBelieved(t *testing.T) {
	const lost = "damage log-end-missing 00000000000000000096.log 2237 120-150"
	for distance, want := range map[int64]string{100: lost, 4 << 20: lost,
		4<<20 + 1: "damage index-invalid 00000000000000000096.index 40 150"} {
		dir := fixture.Dir(t, plainBase)
		apply(t, dir, "remove 00000000000000000120.snapshot")
		rewritten(t, dir, "00000000000000000096.index", func(index []byte) []byte {
			index = binary.BigEndian.AppendUint32(index, 150-96)
			return binary.BigEndian.AppendUint32(index, uint32(2237+distance))
		})
		expectLines(t, fmt.Sprintf("an entry %d bytes beyond the end", distance), dir, want)
	}
}

// An index without a log in a gap that the cleaner left is no sign of a lost segment, unlike one in any other gap.
func TestIndexInAGapOfTheCleaner(t *testing.T) {
	for _, c := range []struct{ base, log, want string }{
		{cleanedBase, "00000000000000000460.log", "warning index-without-log 00000000000000000460.index - -"},
		{plainBase, "00000000000000000032.log", "damage segment-log-missing 00000000000000000032.log - 32-63"},
	} {
		dir := fixture.Dir(t, c.base)
		apply(t, dir, "remove "+c.log)
		expectLines(t, c.base, dir, c.want)
	}
}

// Another copy that takes a partition's place loses something only if it ends before it.
func TestReplacedByAShorterCopy(t *testing.T) {
	for end, want := range map[int64]int{9: 1, 10: 0, 11: 0} {
		o := &operands{driver: &driver{opts: &Options{}}}
		copyOf := &broker.PartitionStart{Partition: &logdir.Partition{}, Loaded: &broker.Loaded{LogEnd: end}}
		o.replaced(&broker.PartitionStart{Partition: &logdir.Partition{}, Loaded: &broker.Loaded{LogEnd: 10},
			Replaced: copyOf})
		if len(o.findings) != want {
			t.Errorf("a copy that ends at %d: %+v", end, o.findings)
		}
	}
}

// An old time for a record at the log end or after it is of a log that was cut off and written on.
func TestOverwrittenFromTheLogEndOn(t *testing.T) {
	for _, c := range []struct {
		entry format.TimeEntry
		want  bool
	}{
		{format.TimeEntry{TimestampMs: 1999, Offset: 19}, false},
		{format.TimeEntry{TimestampMs: 1999, Offset: 20}, true},
		{format.TimeEntry{TimestampMs: 2000, Offset: 20}, false},
	} {
		s := &segment{base: 10, nextOffset: 20, maxTimestamp: 2000, timeIndex: format.AppendTimeEntry(nil, 10, c.entry)}
		if got := s.overwritten(); got != c.want {
			t.Errorf("%+v: %v", c.entry, got)
		}
	}
}

// Where only a bit of the last entry in use is wrong, that is damage and not what a truncation left, though the index
// has room as that of a killed broker.
func TestFlippedLastEntryIsNotStale(t *testing.T) {
	for bit, want := range map[byte]string{
		1 << 0: "damage index-invalid 00000000000000000096.index 32 119",
		1 << 4: "damage index-invalid 00000000000000000096.index 32 119",
	} {
		dir := fixture.Dir(t, plainBase)
		rewritten(t, dir, "00000000000000000096.index", func(index []byte) []byte {
			index[len(index)-1] ^= bit
			return append(index, make([]byte, 64)...)
		})
		expectLines(t, fmt.Sprintf("bit %#x of the position", bit), dir, want)
	}
}
