package rebuild

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/csv"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"kseg/format"
	"kseg/internal/fixture"
	"kseg/logdir"
	"kseg/state"
)

// rebuildInto rebuilds what the paths lead to.
func rebuildInto(t testing.TB, opts Options, paths ...string) ([]Segment, Summary, error) {
	t.Helper()
	set, err := logdir.Open(paths, logdir.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var all []Segment
	opts.Emit = func(r *Segment) error {
		all = append(all, *r)
		return nil
	}
	opts.MaxBatchBytes = 64 << 20
	if opts.Now.IsZero() {
		opts.Now = time.UnixMilli(1796000000000)
	}
	summary, err := Run(context.Background(), set, opts)
	return all, summary, err
}

// files are the files of a folder by name.
func files(t testing.TB, dir string) map[string][]byte {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string][]byte{}
	for _, e := range entries {
		if all[e.Name()], err = os.ReadFile(filepath.Join(dir, e.Name())); err != nil {
			t.Fatal(err)
		}
	}
	return all
}

// sameLogs are partitions of which only the golden files are kept, since another has the same logs.
var sameLogs = map[string]string{"seg-1-0": "seg-4096-0", "seg-1048576-0": "seg-4096-0"}

// What LogSegment.recover writes for the partitions of all versions is written byte for byte, and no file more.
func TestRebuiltFilesEqualRecovery(t *testing.T) {
	goldens := map[string][]string{}
	for _, suffix := range []string{"index", "timeindex", "txnindex"} {
		goldens[suffix] = fixture.Goldens(t, "."+suffix)
	}
	partitions := 0
	for _, golden := range fixture.Goldens(t, "/index.interval.bytes") {
		out := path.Dir(golden)
		interval, err := strconv.ParseInt(strings.TrimSpace(string(fixture.Golden(t, golden))), 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		name := strings.Replace(out, "/rebuilt/", "/", 1)
		if same, ok := sameLogs[path.Base(out)]; ok {
			name = path.Join(path.Dir(name), same)
		}
		src := fixture.Dir(t, name)
		dir := filepath.Join(t.TempDir(), "fresh")
		rebuilt, _, err := rebuildInto(t, Options{Dir: dir, Interval: &interval, Jobs: 1 + partitions%3}, src)
		if err != nil {
			t.Fatal(err)
		}
		got := files(t, filepath.Join(dir, filepath.Base(src)))
		for _, suffix := range []string{"index", "timeindex", "txnindex"} {
			for _, name := range goldens[suffix] {
				if path.Dir(name) != out {
					continue
				}
				data, ok := got[path.Base(name)]
				if want := fixture.Golden(t, name); !ok || !bytes.Equal(data, want) {
					t.Errorf("%s:\ngot  %x\nwant %x", name, data, want)
				}
				delete(got, path.Base(name))
			}
		}
		for name := range got {
			t.Errorf("%s: %s was written, but not by a broker", out, name)
		}
		compareCuts(t, out, rebuilt)
		partitions++
	}
	if partitions < 50 {
		t.Errorf("only %d partitions", partitions)
	}
}

func itoa(n int64) string { return strconv.FormatInt(n, 10) }

// compareCuts holds the bytes that are kept against recover.csv: segment, bytes before, truncated, after.
func compareCuts(t *testing.T, golden string, rebuilt []Segment) {
	t.Helper()
	rows, err := csv.NewReader(bytes.NewReader(fixture.Golden(t, golden+"/recover.csv"))).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	if len(rows) != len(rebuilt)+1 {
		t.Errorf("%s: %d segments, want %d", golden, len(rebuilt), len(rows)-1)
		return
	}
	for i, r := range rebuilt {
		want := rows[i+1]
		if itoa(r.Base) != want[0] || itoa(r.Size) != want[1] || itoa(r.Kept) != want[3] ||
			(r.Outcome == Whole) != (want[2] == "0") {
			t.Errorf("%s: segment %d: %s, %d of %d bytes kept; want %v", golden, r.Base, r.Outcome, r.Kept, r.Size, want)
		}
	}
}

// recoveryInterval is the index.interval.bytes of the answers in testdata/recovery.txt.
const recoveryInterval = 512

// frozenRecovery are the answers of Kafka's own recovery, by partition and base offset.
func frozenRecovery(t *testing.T) map[string]string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "recovery.txt"))
	if err != nil {
		t.Fatal(err)
	}
	answers := map[string]string{}
	for line := range strings.Lines(string(text)) {
		fields := strings.SplitN(strings.TrimSpace(line), " ", 3)
		answers[fields[0]+" "+fields[1]] = fields[2]
	}
	return answers
}

// damagedPartitions makes every damaged partition there is, each in a folder named for what was done to it.
func damagedPartitions(t *testing.T) []string {
	t.Helper()
	root := t.TempDir()
	var dirs []string
	for _, r := range fixture.Recipes(t) {
		dir := filepath.Join(root, r.Name, path.Base(r.Base))
		if err := fixture.Copy(dir, r.Base); err != nil {
			t.Fatal(err)
		}
		if err := fixture.ApplyTo(dir, r.Steps); err != nil {
			t.Fatal(err)
		}
		dirs = append(dirs, dir)
	}
	odd := oddPartitions()
	for _, name := range slices.Sorted(maps.Keys(odd)) {
		logs := odd[name]
		dir := filepath.Join(root, name, "odd-0")
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		for base, data := range logs {
			if err := os.WriteFile(filepath.Join(dir, format.SegmentFileName(base, format.KindLog)), data, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		dirs = append(dirs, dir)
	}
	return dirs
}

// oddPartitions are segments that no recipe makes: what recovery refuses although all checksums hold.
func oddPartitions() map[string]map[int64][]byte {
	plain := func(offsets ...int64) (log []byte) {
		for _, o := range offsets {
			log = fixture.AppendBatch(log, fixture.Batch{Records: []fixture.Record{{Offset: o, TimestampMs: 1_700_000_000_000 +
				o, Value: make([]byte, 300)}}})
		}
		return log
	}
	marker := func(offset int64, key, value string) fixture.Batch {
		return fixture.Batch{Attributes: 0x30, Records: []fixture.Record{{Offset: offset, TimestampMs: 5, Key: []byte(key),
			Value: []byte(value)}}}
	}
	txn := func(offset int64, attributes int16) fixture.Batch {
		return fixture.Batch{Attributes: attributes, Records: []fixture.Record{{Offset: offset, TimestampMs: 5,
			Value: make([]byte, 300)}}}
	}
	packed := func(b fixture.Batch, codec int16) fixture.Batch { // it says so, but is not
		b.Attributes |= codec
		return b
	}
	of := func(producerID int64, batches ...fixture.Batch) (log []byte) {
		for _, b := range batches {
			log = appendOfProducer(log, b, producerID)
		}
		return log
	}
	const abort, commit, end = "\x00\x00\x00\x00", "\x00\x00\x00\x01", "\x00\x00\x00\x00\x00\x07"
	open := of(7, txn(0, 0x10), txn(1, 0x10), txn(2, 0x10))
	return map[string]map[int64][]byte{
		"offsets-back-at-entry":   {0: plain(10, 20, 5, 30, 4, 2, 40)},
		"offsets-back-at-the-end": {0: plain(10, 20, 30, 40, 3)},
		"below-the-base":          {100: plain(100, 101, 99, 102)},
		"far-above-the-base":      {100: plain(100, 101, 100+1<<31, 102)},
		"last-that-fits":          {100: plain(100, 101, 99+1<<31)},
		"no-byte":                 {0: nil},
		"few-bytes":               {0: []byte("\x00\x00\x00\x00\x00\x00\x00\x00\x00")},
		"marker-key-short":        {0: append(bytes.Clone(open), of(7, marker(3, "\x00\x00\x00", end), txn(4, 0x10))...)},
		"marker-type-unknown":     {0: append(bytes.Clone(open), of(7, marker(3, "\x00\x00\x00\x09", end), txn(4, 0x10))...)},
		"marker-version-negative": {0: append(bytes.Clone(open), of(7, marker(3, abort, "\xff\xff\x00\x00\x00\x07"),
			txn(4, 0x10))...)},
		"marker-value-short":   {0: append(bytes.Clone(open), of(7, marker(3, abort, "\x00\x00\x00"), txn(4, 0x10))...)},
		"marker-codec-unknown": {0: append(bytes.Clone(open), of(7, packed(marker(3, abort, end), 6), txn(4, 0x10))...)},
		"marker-no-gzip":       {0: append(bytes.Clone(open), of(7, packed(marker(3, abort, end), 1), txn(4, 0x10))...)},
		"marker-no-lz4":        {0: append(bytes.Clone(open), of(7, packed(marker(3, abort, end), 3), txn(4, 0x10))...)},
		"plain-within-txn":     {0: append(bytes.Clone(open), of(7, txn(3, 0))...)},
		"aborted-over-segments": {0: open, 3: append(of(8, txn(3, 0x10), marker(4, commit, end)),
			append(of(9, txn(5, 0x10)), of(7, marker(6, abort, end))...)...)},
		"markers-go-back": {0: of(7, txn(0, 0x10), marker(9, abort, end), txn(1, 0x10), marker(2, abort, end))},
	}
}

// appendOfProducer appends a batch as a producer of epoch 0 writes it, with its offset for a sequence number.
func appendOfProducer(dst []byte, b fixture.Batch, producerID int64) []byte {
	start := len(dst)
	dst = fixture.AppendBatch(dst, b)
	head := dst[start:]
	binary.BigEndian.PutUint64(head[43:], uint64(producerID))
	binary.BigEndian.PutUint16(head[51:], 0)
	if b.Attributes&0x20 == 0 {
		binary.BigEndian.PutUint32(head[53:], uint32(b.Records[0].Offset))
	}
	binary.BigEndian.PutUint32(head[17:], crc32.Checksum(head[21:], crc32.MakeTable(crc32.Castagnoli)))
	return dst
}

// label is how testdata names a partition: with the folder around it.
func label(dir string) string { return filepath.Base(filepath.Dir(dir)) + "/" + filepath.Base(dir) }

// digits is a file as testdata has it.
func digits(data []byte, there bool) string {
	switch {
	case !there:
		return "-"
	case len(data) == 0:
		return "."
	}
	return hex.EncodeToString(data)
}

// Recovery of damaged segments: what is kept and the indexes of that are those of Kafka's own classes. Where these give
// up with an exception nothing is written; but what a broker does about an InvalidOffsetException, emptying the
// segment, is done.
func TestRecoveryOfDamage(t *testing.T) {
	frozen := frozenRecovery(t)
	seen := map[Outcome]int{}
	for _, src := range damagedPartitions(t) {
		dir := filepath.Join(t.TempDir(), "fresh")
		rebuilt, _, err := rebuildInto(t, Options{Dir: dir, Interval: new(int64(recoveryInterval)), Jobs: 2}, src)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range rebuilt {
			seen[r.Outcome]++
			key := label(src) + " " + itoa(r.Base)
			want, ok := frozen[key]
			if !ok {
				t.Errorf("%s: there is no answer", key)
			}
			delete(frozen, key)
			if got := recoveryLine(t, filepath.Join(dir, filepath.Base(src)), &r); got != want {
				t.Errorf("%s (%s):\ngot  %s\nwant %s", key, r.Reason, got, want)
			}
		}
	}
	for key := range frozen {
		t.Errorf("%s: nothing was rebuilt", key)
	}
	for _, outcome := range []Outcome{Whole, Cut, Emptied, Failed} {
		if seen[outcome] == 0 {
			t.Errorf("no segment is %s", outcome)
		}
	}
}

// recoveryLine is a segment as in testdata/recovery.txt; an exception for what is not written.
func recoveryLine(t *testing.T, dir string, r *Segment) string {
	t.Helper()
	got := files(t, dir)
	text := itoa(r.Kept)
	if r.Outcome == Failed {
		text = "-1"
	}
	for _, kind := range []format.Kind{format.KindOffsetIndex, format.KindTimeIndex, format.KindTxnIndex} {
		data, ok := got[format.SegmentFileName(r.Base, kind)]
		text += " " + digits(data, ok)
	}
	switch {
	case r.Outcome == Emptied && text == "0 . . -":
		return "InvalidOffsetException"
	case r.Outcome != Failed || text != "-1 - - -":
		return text
	case r.Outcome == Failed && strings.Contains(r.Reason, "splits"):
		return "LogSegmentOffsetOverflowException"
	case strings.Contains(r.Reason, "open transaction"), strings.Contains(r.Reason, "transaction open"):
		return "InvalidTxnStateException"
	case strings.Contains(r.Reason, "aborted transaction"), strings.Contains(r.Reason, "control record type"):
		return "IllegalArgumentException"
	case strings.Contains(r.Reason, "want 6 bytes"):
		return "BufferUnderflowException"
	case strings.Contains(r.Reason, "codec at byte"):
		return "IllegalArgumentException"
	case strings.Contains(r.Reason, "gzip "), strings.Contains(r.Reason, "lz4 "):
		return "KafkaException"
	}
	return "other exception: " + r.Reason
}

// snapshotCases are the partitions of which testdata/snapshots.txt has the producer snapshots after recovery of the
// whole, with the snapshots that they have, and without.
var snapshotCases = []string{"4.4.0/transactions/ledger-0", "3.7.2/transactions/ledger37-0",
	"4.4.0/damage-base/txn/orders-0", "4.4.0/logdirs/clean/data1/inventory-0", "4.4.0/compacted/users-0",
	"4.4.0/legacy/mix-0", "4.4.0/internal/__consumer_offsets-0"}

// snapshotPartitions makes the partitions of snapshotCases. compacted/users-0 is there without its snapshots only: a
// broker that recovers all of it deletes those it has before it reaches their segments.
func snapshotPartitions(t *testing.T) []string {
	t.Helper()
	root := t.TempDir()
	var dirs []string
	for i, name := range snapshotCases {
		for _, without := range []bool{false, true} {
			dir := filepath.Join(root, fmt.Sprintf("%d-%t", i, without), path.Base(name))
			if err := fixture.Copy(dir, name); err != nil {
				t.Fatal(err)
			}
			for file := range files(t, dir) {
				if without && strings.HasSuffix(file, ".snapshot") {
					if err := os.Remove(filepath.Join(dir, file)); err != nil {
						t.Fatal(err)
					}
				}
			}
			if without || !strings.Contains(name, "compacted") {
				dirs = append(dirs, dir)
			}
		}
	}
	return dirs
}

// The snapshots that are written are those that a broker has after it has recovered a whole partition.
func TestSnapshotsOfRecovery(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("testdata", "snapshots.txt"))
	if err != nil {
		t.Fatal(err)
	}
	head, rest, _ := strings.Cut(string(text), "\n")
	askedMs, err := strconv.ParseInt(strings.TrimPrefix(head, "asked "), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{}
	for line := range strings.Lines(rest) {
		fields := strings.Fields(line)
		want[fields[0]+" "+fields[1]] = fields[2]
	}
	// Those that are on disk already and are usable stay.
	for _, src := range snapshotPartitions(t) {
		dir := filepath.Join(t.TempDir(), "fresh")
		now := time.UnixMilli(askedMs - snapshotExpirationMs + producerExpirationMs)
		if _, _, err := rebuildInto(t, Options{Dir: dir, Interval: new(int64(4096)), Snapshots: true, Jobs: 1, Now: now},
			src); err != nil {
			t.Fatal(err)
		}
		for name, data := range files(t, filepath.Join(dir, filepath.Base(src))) {
			if !strings.HasSuffix(name, ".snapshot") {
				continue
			}
			key := label(src) + " " + itoa(format.ParseFileName(name).Base)
			if got := digits(data, true); got != want[key] {
				t.Errorf("%s:\ngot  %s\nwant %s", key, got, want[key])
			}
			delete(want, key)
		}
		for name, data := range files(t, src) {
			if key := label(src) + " " + itoa(format.ParseFileName(name).Base); digits(data, true) == want[key] {
				delete(want, key)
			}
		}
	}
	for key := range want {
		t.Errorf("%s was not written", key)
	}
}

// snapshotExpirationMs is the producer.id.expiration.ms with which the answers in testdata/snapshots.txt were given.
const snapshotExpirationMs = 1<<31 - 1

// A folder in an input, or around one, is refused, by whatever name it is given.
func TestFoldersThatAreRefused(t *testing.T) {
	root := t.TempDir()
	if err := fixture.Copy(filepath.Join(root, "data", "ledger-0"), "4.4.0/transactions/ledger-0"); err != nil {
		t.Fatal(err)
	}
	in := filepath.Join(root, "data", "ledger-0")
	links := map[string]string{"to-input": in, "to-data": filepath.Join(root, "data"), "to-log": filepath.Join(in,
		"00000000000000000000.log")}
	for name, target := range links {
		if err := os.Symlink(target, filepath.Join(root, name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.MkdirAll(filepath.Join(root, "trap"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(in, filepath.Join(root, "trap", "ledger-0")); err != nil {
		t.Fatal(err)
	}
	before := files(t, in)
	for _, c := range []struct{ dir, operand string }{
		{in, in},
		{filepath.Join(in, "new", "er"), in},
		{filepath.Join(root, "to-input", "x"), in},
		{in, filepath.Join(root, "to-input")},
		{filepath.Join(root, "data"), in},
		{filepath.Join(root, "to-data"), in},
		{root, in},
		{filepath.Join(root, "other", "..", "data"), in},
		{in, filepath.Join(in, "00000000000000000087.log")},
		{filepath.Join(root, "data", "deep"), filepath.Join(root, "data")},
		{filepath.Join(root, "trap"), in},
	} {
		rebuilt, _, err := rebuildInto(t, Options{Dir: c.dir, Interval: new(int64(1)), Jobs: 1}, c.operand)
		if !errors.Is(err, logdir.ErrUsage) || len(rebuilt) > 0 {
			t.Errorf("rebuilding %s into %s: %v, %d segments", c.operand, c.dir, err, len(rebuilt))
		}
	}
	if after := files(t, in); fmt.Sprint(after) != fmt.Sprint(before) {
		t.Error("the input has changed")
	}
	if _, err := os.Stat(filepath.Join(root, "data", "deep")); err == nil {
		t.Error("a folder that was refused has been made")
	}
}

func TestPartitionsOfOneNameAreRefused(t *testing.T) {
	a, b := fixture.Dir(t, "4.4.0/hello/hello-0"), fixture.Dir(t, "4.4.0/hello/hello-0")
	if _, _, err := rebuildInto(t, Options{Dir: t.TempDir(), Interval: new(int64(1))}, a, b); !errors.Is(err,
		logdir.ErrUsage) {
		t.Errorf("the error is %v", err)
	}
	twice, summary, err := rebuildInto(t, Options{Dir: t.TempDir(), Interval: new(int64(1))}, a,
		filepath.Join(a, "00000000000000000000.log"), a)
	if err != nil || len(twice) != 1 || summary.Partitions != 1 {
		t.Errorf("one partition given three times: %d segments, %v", len(twice), err)
	}
}

// A file that is there stays as it is; a rebuild that would be the same counts as done.
func TestNothingIsOverwritten(t *testing.T) {
	src := fixture.Dir(t, "4.4.0/transactions/ledger-0")
	dir := t.TempDir()
	opts := Options{Dir: dir, Interval: new(int64(512)), Jobs: 2}
	if _, summary, err := rebuildInto(t, opts, src); err != nil || summary.Unchanged != 0 || summary.Files != 11 {
		t.Fatalf("%+v, %v", summary, err)
	}
	if _, summary, err := rebuildInto(t, opts, src); err != nil || summary.Unchanged != 11 || len(summary.NotDone) > 0 {
		t.Errorf("a second time: %+v, %v", summary, err)
	}
	mine := filepath.Join(dir, "ledger-0", "00000000000000000087.timeindex")
	if err := os.WriteFile(mine, []byte("mine"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, other := range []string{"00000000000000000087.index", "00000000000000000087.txnindex"} {
		if err := os.Remove(filepath.Join(dir, "ledger-0", other)); err != nil {
			t.Fatal(err)
		}
	}
	rebuilt, summary, err := rebuildInto(t, opts, src)
	if err != nil || len(summary.NotDone) == 0 || rebuilt[1].Outcome != Failed || summary.Unchanged != 8 {
		t.Errorf("with a file that differs: %+v, %v", summary, err)
	}
	left := files(t, filepath.Join(dir, "ledger-0"))
	if string(left["00000000000000000087.timeindex"]) != "mine" || len(left) != 9 {
		t.Errorf("a file that differs: left are %d files", len(left))
	}
}

// Where writing fails, the run ends, and nothing half-written is left.
func TestWriteErrors(t *testing.T) {
	src := fixture.Dir(t, "4.4.0/transactions/ledger-0")
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "ledger-0"), 0o755); err != nil {
		t.Fatal(err)
	}
	// The name under which the file would be written is taken.
	taken := fmt.Sprintf("00000000000000000087.timeindex.%d.tmp", os.Getpid())
	if err := os.MkdirAll(filepath.Join(dir, "ledger-0", taken, "full"), 0o755); err != nil {
		t.Fatal(err)
	}
	if _, _, err := rebuildInto(t, Options{Dir: dir, Interval: new(int64(512)), Jobs: 2}, src); err == nil ||
		!strings.Contains(err.Error(), "cannot be written") {
		t.Errorf("the error is %v", err)
	}
	entries, err := os.ReadDir(filepath.Join(dir, "ledger-0"))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if name := format.ParseFileName(e.Name()); name.Kind == format.KindUnknown && e.Name() != taken {
			t.Errorf("%s was left", e.Name())
		}
	}
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, _, err := rebuildInto(t, Options{Dir: file, Interval: new(int64(512))}, src); err == nil {
		t.Error("a file was taken for a folder")
	}
}

// One segment of a partition, as a file or by its offset, is rebuilt like all of it: the producers' state comes from
// what lies around it.
func TestOneSegmentAlone(t *testing.T) {
	src := fixture.Dir(t, "4.4.0/transactions/ledger-0")
	for name := range files(t, src) {
		if strings.HasSuffix(name, ".snapshot") {
			if err := os.Remove(filepath.Join(src, name)); err != nil {
				t.Fatal(err)
			}
		}
	}
	whole, alone := t.TempDir(), t.TempDir()
	if _, _, err := rebuildInto(t, Options{Dir: whole, Interval: new(int64(512)), Jobs: 1}, src); err != nil {
		t.Fatal(err)
	}
	for _, base := range []int64{169, 0, 246, 87} {
		if _, _, err := rebuildInto(t, Options{Dir: alone, Interval: new(int64(512)), Jobs: 1},
			filepath.Join(src, format.SegmentFileName(base, format.KindLog))); err != nil {
			t.Fatal(err)
		}
	}
	want, got := files(t, filepath.Join(whole, "ledger-0")), files(t, filepath.Join(alone, "ledger-0"))
	if len(want) != 11 || fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%d files, want %d, or they differ", len(got), len(want))
	}
}

// The interval is the topic's own, if a metadata log knows it.
func TestIntervalOfTheTopic(t *testing.T) {
	dir := fixture.Dir(t, "4.4.0/internal")
	logs, err := filepath.Glob(filepath.Join(dir, "__cluster_metadata-0", "*.log"))
	if err != nil || len(logs) == 0 {
		t.Fatal("no metadata log")
	}
	metadata := logs[len(logs)-1]
	data, err := os.ReadFile(metadata)
	if err != nil {
		t.Fatal(err)
	}
	base := format.ParseFileName(filepath.Base(metadata)).Base
	next := base
	for s := format.NewScanner(data, 0, base); s.Next(); {
		if b := s.Batch(); b != nil {
			next = b.NextOffset()
		}
	}
	// A ConfigRecord (type 4): version 0, resource type 2 (topic), three compact strings, no tagged fields.
	config := "\x01\x04\x00\x02\x07clicks\x15index.interval.bytes\x04777\x00"
	data = fixture.AppendBatch(data, fixture.Batch{Records: []fixture.Record{{Offset: next, TimestampMs: 1,
		Value: []byte(config)}}})
	if err := os.WriteFile(metadata, data, 0o644); err != nil {
		t.Fatal(err)
	}
	rebuilt, _, err := rebuildInto(t, Options{Dir: t.TempDir(), Jobs: 1}, dir)
	if err != nil {
		t.Fatal(err)
	}
	own := 0
	for _, r := range rebuilt {
		want := state.Setting{Value: "4096", Source: state.FromDefault}
		if strings.HasPrefix(r.Partition, "clicks-") {
			want = state.Setting{Value: "777", Source: state.FromTopic, Key: "index.interval.bytes"}
			own++
		}
		if r.Interval != want {
			t.Errorf("%s: %+v, want %+v", r.Partition, r.Interval, want)
		}
	}
	if own == 0 {
		t.Error("no partition of clicks")
	}
}

// A run that is interrupted ends, whatever it is doing.
func TestRebuildInterrupted(t *testing.T) {
	src := fixture.Dir(t, "4.4.0/transactions")
	set, err := logdir.Open([]string{src}, logdir.Options{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	segments := 0
	emit := func(*Segment) error {
		segments++
		cancel()
		return nil
	}
	_, err = Run(ctx, set, Options{Dir: t.TempDir(), Jobs: 2, MaxBatchBytes: 1 << 20, Emit: emit})
	if !errors.Is(err, context.Canceled) || segments < 1 || segments > 3 {
		t.Errorf("%d segments, %v", segments, err)
	}
}

// After a cut a broker takes a snapshot where the log ends then, though no segment begins there. The later segments,
// which it deletes, are rebuilt all the same.
func TestSnapshotAfterACut(t *testing.T) {
	for _, c := range []struct {
		recipe string
		want   []string
	}{
		{"payload-flip", []string{"00000000000000000032.snapshot", "00000000000000000044.snapshot",
			"00000000000000000096.snapshot", "00000000000000000120.snapshot"}},
		{"torn-last-batch", []string{"00000000000000000032.snapshot", "00000000000000000064.snapshot",
			"00000000000000000096.snapshot", "00000000000000000116.snapshot"}},
	} {
		src, dir := fixture.Damaged(t, c.recipe), t.TempDir()
		if _, _, err := rebuildInto(t, Options{Dir: dir, Interval: new(int64(512)), Snapshots: true}, src); err != nil {
			t.Fatal(err)
		}
		var got []string
		for name := range files(t, filepath.Join(dir, filepath.Base(src))) {
			if strings.HasSuffix(name, ".snapshot") {
				got = append(got, name)
			}
		}
		slices.Sort(got)
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", c.recipe, got, c.want)
		}
	}
}
