package state

import (
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"kseg/format"
	"kseg/internal/fixture"
	"kseg/logdir"
)

// loadable are the partitions under testdata/logdirs that a broker of 4.4 can load as they are, and the question to it.
func loadable(t *testing.T) []string {
	t.Helper()
	var dirs []string
	for _, name := range fixture.Files(t, ".log") {
		dir := filepath.Dir(name)
		if strings.HasPrefix(name, "4") || strings.HasPrefix(name, "3") {
			if !slices.Contains(dirs, dir) && !strings.HasSuffix(dir, "-delete") && !hasRoom(dir) {
				dirs = append(dirs, dir)
			}
		}
	}
	return dirs
}

// hasRoom reports whether a live broker had made room for more in the log, with which none starts.
func hasRoom(dir string) bool {
	return strings.Contains(dir, "preallocate/live") || strings.Contains(dir, "/replicas/") && filepath.Base(dir) == "t2-0"
}

// frozenAnswers are what Kafka's UnifiedLog said (oracle/Producers.java), by question.
func frozenAnswers(t *testing.T, file string) []string {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("testdata", file))
	if err != nil {
		t.Fatal(err)
	}
	return splitAnswers(string(raw))
}

// splitAnswers cuts the output of Producers.java: each answer begins with a line "log" or "fails".
func splitAnswers(text string) []string {
	var answers []string
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, "producer") {
			answers = append(answers, "")
		}
		answers[len(answers)-1] += line
	}
	return answers
}

// load answers what Producers.java is asked.
func (q question) load(t *testing.T) *Producers {
	t.Helper()
	dir, o := q.dir, q.options
	if q.mark != nil {
		o.HighWatermark = func(start, end int64) int64 { return min(max(*q.mark, start), end) }
	}
	set, err := logdir.Open([]string{dir}, logdir.Options{})
	if err != nil || set.Operands[0].Partition == nil {
		t.Fatalf("%s is no partition: %v", dir, err)
	}
	o.Records = format.NewRecordReader(1<<28, nil)
	p, err := LoadProducers(context.Background(), set.Operands[0].Partition, o)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func answer(p *Producers) string {
	if p.Refused != nil {
		return "fails\n"
	}
	text := fmt.Sprintf("log %d %d %d\n", p.LogStart, p.LogEnd, p.LastStable)
	entries := p.Entries()
	slices.SortFunc(entries, func(a, b format.ProducerEntry) int { return cmp.Compare(a.ProducerID, b.ProducerID) })
	for _, e := range entries {
		text += fmt.Sprintf("producer %d %d %d %d %d %d\n", e.ProducerID, e.ProducerEpoch, e.LastSequence, e.TimestampMs,
			e.CoordinatorEpoch, e.CurrentTxnFirstOffset)
	}
	return text
}

func compareProducers(t *testing.T, name, want string, p *Producers) {
	t.Helper()
	if got := answer(p); got != want && !(strings.HasPrefix(want, "fails") && p.Refused != nil) {
		t.Errorf("%s: got\n%swhere a broker says\n%s", name, got, want)
	}
}

func TestProducersOfRealLogs(t *testing.T) {
	dirs, want := loadable(t), frozenAnswers(t, "producers.txt")
	if len(dirs) != len(want) {
		t.Fatalf("%d partitions, %d answers", len(dirs), len(want))
	}
	for i, dir := range dirs {
		p := question{dir: fixture.Dir(t, dir), options: LoadOptions{Clean: true}}.load(t)
		compareProducers(t, dir, want[i], p)
		if len(p.Lost) > 0 || len(p.Unusable) > 0 {
			t.Errorf("%s is sound: %v, %v", dir, p.Lost, p.Unusable)
		}
	}
}

// question is a partition and how a broker finds it.
type question struct {
	dir     string
	options LoadOptions
	mark    *int64 // the high watermark; nil: the log end
}

// line is the question as Producers.java takes it.
func (q question) line() string {
	shutdown, start, mark, recovery := "unclean", int64(0), int64(-1), int64(0)
	if q.options.Clean {
		shutdown = "clean"
	}
	if q.options.LogStart != nil {
		start = *q.options.LogStart
	}
	if q.mark != nil {
		mark = *q.mark
	}
	if q.options.RecoveryPoint != nil {
		recovery = *q.options.RecoveryPoint
	}
	return fmt.Sprintf("%s\t%s\t%d\t%d\t%d\n", q.dir, shutdown, start, mark, recovery)
}

// randomPartitions writes partitions with transactions that begin, end, hang and overlap, with snapshots that are
// right, stale, stray, broken or missing, and log starts and high watermarks anywhere.
func randomPartitions(t *testing.T, parent string, seed uint64, n int) []question {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 14))
	var all []question
	for i := range n {
		w := partitionWriter{t: t, r: r, dir: filepath.Join(parent, fmt.Sprint(i), "t-0"), open: map[int64]bool{},
			epochs: map[int64]int16{}}
		if err := os.MkdirAll(w.dir, 0o755); err != nil {
			t.Fatal(err)
		}
		all = append(all, w.write())
	}
	return all
}

type partitionWriter struct {
	t      *testing.T
	r      *rand.Rand
	dir    string
	offset int64
	state  *format.ProducerState
	open   map[int64]bool
	epochs map[int64]int16
}

func (w *partitionWriter) file(offset int64, kind format.Kind, raw []byte) {
	w.t.Helper()
	if err := os.WriteFile(filepath.Join(w.dir, format.SegmentFileName(offset, kind)), raw, 0o644); err != nil {
		w.t.Fatal(err)
	}
}

func (w *partitionWriter) write() question {
	r := w.r
	first := r.Int64N(3) * r.Int64N(50)
	w.offset, w.state = first, format.NewProducerState(first)
	for range 1 + r.IntN(4) {
		base := w.offset
		w.snapshot(base)
		var log []byte
		for range r.IntN(25) {
			log = w.batch(log)
			if r.IntN(20) == 0 {
				w.snapshot(w.offset)
			}
		}
		w.file(base, format.KindLog, log)
		if r.IntN(10) > 0 {
			w.file(base, format.KindOffsetIndex, nil)
		}
		if len(log) == 0 {
			break
		}
	}
	w.snapshot(w.offset)
	q := question{dir: w.dir, options: LoadOptions{Clean: r.IntN(2) == 0}}
	within := func() *int64 {
		n := first + r.Int64N(w.offset-first+1)
		return &n
	}
	q.options.RecoveryPoint = within()
	if r.IntN(3) == 0 {
		q.options.LogStart = within()
	}
	if r.IntN(3) == 0 {
		q.mark = within()
	}
	return q
}

// batch appends a batch of one of a few producers.
func (w *partitionWriter) batch(log []byte) []byte {
	r := w.r
	p := fixture.Produced{Offset: w.offset, Records: 1 + r.IntN(3), TimestampMs: 1e12 + w.offset*1000, ID: r.Int64N(7) - 1,
		Sequence: int32(w.offset)}
	w.epochs[p.ID] += int16(r.IntN(8) / 7)
	p.Epoch = w.epochs[p.ID]
	switch {
	case p.ID < 0:
		p.Epoch, p.Sequence = -1, -1
	case r.IntN(3) == 0:
		p.Control, p.Transactional, p.Records, p.Sequence = true, true, 1, -1
		p.Key, p.Value = fixture.Marker(r.IntN(2) == 0, r.Int32N(4))
		w.open[p.ID] = false
	case w.open[p.ID] || r.IntN(2) == 0:
		p.Transactional = true
		w.open[p.ID] = true
	}
	log = p.Append(log)
	b, err := format.DecodeBatch(p.Append(nil), 0)
	if err == nil {
		_, err = w.state.Append(&b, format.NewRecordReader(1<<20, nil))
	}
	if err != nil {
		w.t.Fatal(err)
	}
	w.offset = p.Next()
	return log
}

// snapshot writes the state as of now, or something that is not it, or nothing.
func (w *partitionWriter) snapshot(offset int64) {
	r := w.r
	entries := w.state.Entries()
	switch r.IntN(8) {
	case 0, 1:
		return
	case 2:
		raw := format.AppendProducerSnapshot(nil, entries)
		binary.BigEndian.PutUint32(raw[2:], r.Uint32())
		w.file(offset, format.KindProducerSnapshot, raw)
		return
	case 3: // of before the log's beginning
		e := format.ProducerEntry{ProducerID: 99, LastSequence: 4, LastOffset: r.Int64N(40), TimestampMs: 1e12,
			CoordinatorEpoch: 1, CurrentTxnFirstOffset: -1}
		if e.LastOffset < offset && r.IntN(2) == 0 {
			e.CurrentTxnFirstOffset = e.LastOffset
		}
		entries = append(entries, e)
	}
	w.file(offset, format.KindProducerSnapshot, format.AppendProducerSnapshot(nil, entries))
}

func TestProducersOfRandomLogs(t *testing.T) {
	questions := randomPartitions(t, t.TempDir(), 1, 120)
	want := frozenAnswers(t, "random.txt")
	if len(questions) != len(want) {
		t.Fatalf("%d partitions, %d answers", len(questions), len(want))
	}
	for i, q := range questions {
		compareProducers(t, q.line(), want[i], q.load(t))
	}
}

// A transaction holds the last stable offset until its marker is replicated: lies below the high watermark.
func TestMarkersAtTheHighWatermark(t *testing.T) {
	key, value := fixture.Marker(false, 0)
	var log []byte
	for _, p := range []fixture.Produced{{Offset: 0, Records: 2, ID: 7, Transactional: true},
		{Offset: 2, Records: 1, ID: 7, Sequence: -1, Transactional: true, Control: true, Key: key, Value: value},
		{Offset: 3, Records: 1, ID: 8}} {
		log = p.Append(log)
	}
	dir := filepath.Join(t.TempDir(), "marked-0")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string][]byte{"00000000000000000000.log": log, "00000000000000000000.index": nil,
		"00000000000000000000.timeindex": nil} { // without an index the log would be recovered
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for mark, stable := range map[int64]int64{0: 0, 1: 0, 2: 0, 3: 3, 4: 4} {
		p := question{dir: dir, mark: &mark}.load(t)
		if p.LastStable != stable || p.HighWatermark != mark {
			t.Errorf("high watermark %d: last stable offset %d of %d, want %d", mark, p.LastStable, p.HighWatermark, stable)
		}
	}
}
