package broker

import (
	"cmp"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"kseg/format"
	"kseg/internal/fixture"
)

// odd is a partition in a state that no crash leaves, what it is loaded with, and what the real loader makes of it.
type odd struct {
	name, dir string
	prepare   func(t *testing.T, dir string)
	opts      LoadOptions
	failure   string            // a part of it, "" if the partition is loaded
	after     map[string]int64  // bytes of some files afterwards; -1: there is none
	content   map[string]string // of some files, without the zeros at their ends
}

const (
	firstLog   = "00000000000000000000.log"
	firstIndex = "00000000000000000000.index"
)

// opened is a snapshot of one producer whose transaction is open since an offset.
func opened(since int64) string {
	return string(format.AppendProducerSnapshot(nil, []format.ProducerEntry{{LastOffset: 1, TimestampMs: math.MaxInt64,
		CoordinatorEpoch: -1, CurrentTxnFirstOffset: since}}))
}

// aborted is a transaction index of one entry.
func aborted(producer, first, last, stable int64) string {
	entry := format.AbortedTxn{ProducerID: producer, FirstOffset: first, LastOffset: last, LastStableOffset: stable}
	return strings.TrimRight(string(format.AppendAbortedTxn(nil, entry)), "\x00")
}

func instead(name string) func(t *testing.T, dir string) {
	return func(t *testing.T, dir string) {
		t.Helper()
		remove(t, dir, name)
		if err := os.Mkdir(filepath.Join(dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
}

func add(name, content string) func(t *testing.T, dir string) {
	return func(t *testing.T, dir string) {
		t.Helper()
		write(t, dir, name, content)
	}
}

// logOf is a log of batches of producers.
func logOf(batches ...fixture.Produced) string {
	var log []byte
	for _, b := range batches {
		b.TimestampMs = cmp.Or(b.TimestampMs, math.MaxInt64)
		log = b.Append(log)
	}
	return string(log)
}

// produced replaces the first log with batches of producers.
func produced(batches ...fixture.Produced) func(t *testing.T, dir string) {
	return func(t *testing.T, dir string) {
		t.Helper()
		write(t, dir, firstIndex, "")
		write(t, dir, firstLog, logOf(batches...))
		write(t, dir, "00000000000000000000.timeindex", "")
		write(t, dir, "00000000000000000001.snapshot", "cannot be read, so that all of the log is")
	}
}

func odds() []odd {
	key, value := fixture.Marker(false, 0)
	begin := fixture.Produced{Records: 1, ID: 7, Transactional: true}
	end := fixture.Produced{Offset: 1, Records: 1, ID: 7, Transactional: true, Control: true, Key: key, Value: value}
	other, otherEnd := begin, end
	other.ID, otherEnd.ID, otherEnd.Offset = 8, 8, 2
	before, later, laterEnd := begin, other, otherEnd
	before.Offset, before.Records, later.Offset, laterEnd.Offset = -1, 2, 2, 3
	abort := end
	abort.Key, _ = fixture.Marker(true, 0)
	laterEnd.Key = abort.Key
	far := fixture.Produced{Offset: math.MaxInt32, Records: 2, ID: -1}
	large := fixture.Produced{Records: 1, ID: -1, Value: make([]byte, 5000)}
	large.TimestampMs = 1
	ahead, back := fixture.Produced{Offset: 100, Records: 1, ID: -1, TimestampMs: 2}, fixture.Produced{Offset: 50,
		Records: 1, ID: -1, TimestampMs: 3}
	endAfter := abort
	endAfter.Offset, endAfter.ID = 2, 0
	const hello, prices = "4.4.0/hello/hello-0", "4.4.0/logdirs/clean/data1/prices-0"
	return []odd{
		{"a directory where a log was", prices, instead("00000000000000000039.log"), LoadOptions{Clean: true}, "",
			map[string]int64{"00000000000000000039.index": 0, "00000000000000000039.timeindex": 12}, nil},
		{"a directory where epochs are written by way of", prices, func(t *testing.T, dir string) {
			write(t, dir, epochsName, "0\n2\n0 0\n5 900\n")
			instead(epochsTemporary)(t, dir)
		}, LoadOptions{Clean: true}, "", map[string]int64{epochsName: 14}, nil},
		{"and recovery finds a new epoch", prices, func(t *testing.T, dir string) {
			write(t, dir, epochsName, "0\n0\n")
			instead(epochsTemporary)(t, dir)
		}, LoadOptions{}, errDirectory.Error(), nil, nil},
		{"a deleted partition without a log", "4.4.0/logdirs/clean/data2/doomed-1.1b66cfef9dd94713bf657c8936f9f1ab-delete",
			func(t *testing.T, dir string) { remove(t, dir, firstLog) }, LoadOptions{Preallocate: true}, "",
			map[string]int64{firstLog: 0}, nil},
		{"a log that goes and is made again", hello, add("00000000000000000500.log", ""),
			LoadOptions{Preallocate: true, LogStart: 600}, "", map[string]int64{"00000000000000000600.log": 1 << 20}, nil},
		{"a log that goes and is made again under its name", hello, func(t *testing.T, dir string) {
			write(t, dir, "00000000000000000600.log.deleted", "")
			write(t, dir, "00000000000000000500.log", "")
		}, LoadOptions{Preallocate: true, Clean: true, LogStart: 600},
			"", map[string]int64{"00000000000000000600.log": 1 << 20}, nil},
		{"a transaction that is open beyond the log", hello, add("00000000000000000001.snapshot", opened(40)),
			LoadOptions{Clean: true}, "", nil, nil},
		{"a segment that begins at the largest offset", hello, func(t *testing.T, dir string) {
			write(t, dir, "09223372036854775807.log", "")
			write(t, dir, firstLog, "cut")
		}, LoadOptions{}, "", map[string]int64{firstLog: 0, "09223372036854775807.log": 0}, nil},
		{"a directory named as a snapshot", hello, instead("00000000000000000007.snapshot"), LoadOptions{Clean: true},
			"", nil, nil},
		{"a directory where a snapshot is to be written", hello, instead("00000000000000000001.snapshot"),
			LoadOptions{Clean: true}, errDirectory.Error(), nil, nil},
		{"and recovery is to write it", hello, instead("00000000000000000001.snapshot"), LoadOptions{}, "",
			map[string]int64{firstLog: 0}, nil},
		{"a transaction twice, read at once", hello, produced(begin, end, begin, end),
			LoadOptions{Clean: true}, "a second end", nil, nil},
		{"two transactions from one offset, recovered", hello, produced(begin, other, end, otherEnd), LoadOptions{},
			"a second end", nil, nil},
		{"a transaction twice, recovered", hello, produced(begin, end, begin, end), LoadOptions{}, "", nil, nil},
		{name: "a transaction from before offset 0", dir: hello, prepare: produced(before, abort),
			content: map[string]string{"00000000000000000000.txnindex": aborted(7, -1, 1, 2)}},
		{name: "a transaction that begins again where one ended in the same read", dir: hello,
			prepare: func(t *testing.T, dir string) {
				produced(begin, end, begin)(t, dir)
				write(t, dir, "00000000000000000002.log", logOf(later, laterEnd))
				write(t, dir, "00000000000000000002.index", "")
			}, opts: LoadOptions{RecoveryPoint: 2},
			content: map[string]string{"00000000000000000002.txnindex": aborted(8, 2, 3, 4)}},
		{name: "a closing time entry that does not fit", dir: hello, prepare: func(t *testing.T, dir string) {
			produced(large, ahead, back)(t, dir)
			write(t, dir, firstIndex, strings.Repeat("\x01", 1<<16))
			write(t, dir, "00000000000000000000.timeindex", strings.Repeat("\x01", 65532))
		}, content: map[string]string{firstLog: "", firstIndex: "\x00\x00\x00\x64\x00\x00\x13\xce",
			"00000000000000000000.timeindex": "\x00\x00\x00\x00\x00\x00\x00\x02\x00\x00\x00\x64" +
				strings.Repeat("\x01", 65520)}},
		{"a transaction that has ended, and began where nothing can be read", hello, func(t *testing.T, dir string) {
			write(t, dir, firstLog, strings.Repeat("\x00", 100))
			write(t, dir, "00000000000000000002.snapshot", opened(1))
			write(t, dir, "00000000000000000002.index", "")
			write(t, dir, "00000000000000000002.log", logOf(endAfter))
		}, LoadOptions{Clean: true}, "batch length", nil, nil},
		{"a split that makes one segment twice", hello, produced(far, begin, far), LoadOptions{}, "of it twice", nil, nil},
		{"an index that is too long, and a directory where the other was", hello, func(t *testing.T, dir string) {
			write(t, dir, firstIndex, strings.Repeat("\x00", 20480))
			instead("00000000000000000000.timeindex")(t, dir)
		}, LoadOptions{Clean: true, IndexBytes: 60}, "more than segment.index.bytes", nil, nil},
	}
}

// load makes the partition, and loads it with the settings that are the same for all.
func (c *odd) load(t *testing.T) (dir string, opts LoadOptions, got *Loaded) {
	t.Helper()
	dir = fixture.Dir(t, c.dir)
	c.prepare(t, dir)
	opts = c.opts
	if opts.IndexBytes == 0 {
		opts.IndexBytes = 65536
	}
	opts.Interval, opts.SegmentBytes, opts.MaxBatchBytes, opts.ExpiredMs = 4096, 1<<20, 1<<20, math.MinInt64
	got, err := Load(openPartition(t, dir), opts)
	if err != nil {
		t.Fatalf("%s: %v", c.name, err)
	}
	return dir, opts, got
}

// TestOddPartitions holds the model to what the real loader makes of partitions that no crash leaves.
func TestOddPartitions(t *testing.T) {
	for _, c := range odds() {
		_, _, got := c.load(t)
		switch {
		case c.failure == "" && got.Failure != nil || c.failure != "" && got.Failure == nil:
			t.Errorf("%s: %v, want %q", c.name, got.Failure, c.failure)
			continue
		case got.Failure != nil && !strings.Contains(got.Failure.Error(), c.failure):
			t.Errorf("%s: %v, want %q", c.name, got.Failure, c.failure)
		}
		after := map[string]int64{}
		for _, f := range got.Files {
			if f.After != nil {
				after[f.Name] = *f.After
			}
			if want, ok := c.content[f.Name]; ok && strings.TrimRight(string(f.Content), "\x00") != want {
				t.Errorf("%s: %s is %q, want %q", c.name, f.Name, f.Content, want)
			}
		}
		for name, want := range c.after {
			if n, ok := after[name]; !ok || n != want {
				t.Errorf("%s: %s has %d bytes (%v), want %d", c.name, name, n, ok, want)
			}
		}
	}
}
