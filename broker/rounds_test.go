package broker

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"kseg/format"
	"kseg/internal/fixture"
	"kseg/logdir"
	"kseg/state"
)

// frozenFile has rounds of Kafka's cleaner: when they were asked for, epoch ms, and a line each with the task and the
// answer.
const frozenFile = "testdata/rounds.txt"

// frozenDirs are the partitions of those rounds.
var frozenDirs = []string{"4.4.0/compacted/users-0", "4.4.0/compacted/users-notombs-0", "4.4.0/compacted/users-zstd-0",
	"4.4.0/transactions/ledger-0", "4.4.0/internal/payments-0", "4.4.0/logdirs/killed/data1/prices-0"}

// TestRoundsOfKafka holds the model against the rounds of the real cleaner.
func TestRoundsOfKafka(t *testing.T) {
	frozen, err := os.ReadFile(frozenFile)
	if err != nil {
		t.Fatal(err)
	}
	checkFrozen(t, frozen)
}

func checkFrozen(t *testing.T, frozen []byte) {
	t.Helper()
	lines := strings.Split(strings.TrimSuffix(string(frozen), "\n"), "\n")
	askedMs, _ := strconv.ParseInt(lines[0], 10, 64)
	root := t.TempDir()
	for _, name := range frozenDirs {
		if err := fixture.Copy(filepath.Join(root, filepath.FromSlash(name)), name); err != nil {
			t.Fatal(err)
		}
	}
	for _, line := range lines[1:] {
		fields := strings.Split(line, "\t")
		task := cleanTask{dir: filepath.Join(root, filepath.FromSlash(fields[0])), out: fields[4], askedMs: askedMs,
			configs: map[string]string{}}
		for i, n := range []*int64{&task.cleaned, &task.nowMs, &task.mapBytes} {
			*n, _ = strconv.ParseInt(fields[1+i], 10, 64)
		}
		for _, setting := range fields[5 : len(fields)-1] {
			key, value, _ := strings.Cut(setting, "=")
			task.configs[key] = value
		}
		var want kafkaRound
		if err := json.Unmarshal([]byte(fields[len(fields)-1]), &want); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		if bad := task.differences(t, &want); len(bad) > 0 {
			t.Errorf("%s\n  %s", strings.Join(fields[:len(fields)-1], " "), strings.Join(bad, "\n  "))
		}
	}
}

// cleanTask is one round for both cleaners.
type cleanTask struct {
	dir      string
	cleaned  int64 // -1: none
	nowMs    int64
	mapBytes int64
	out      string // "-": none
	askedMs  int64  // when Kafka was asked: its producers grow old by the clock
	configs  map[string]string
}

// number is a setting of the task, or Kafka's default.
func (c *cleanTask) number(key string, otherwise int64) int64 {
	if text, ok := c.configs[key]; ok {
		n, _ := strconv.ParseInt(text, 10, 64)
		return n
	}
	return otherwise
}

func (c *cleanTask) settings() *CleanerSettings {
	s := &CleanerSettings{Compact: true, Enabled: true, MinLagMs: c.number("min.compaction.lag.ms", 0),
		MaxLagMs: c.number("max.compaction.lag.ms", math.MaxInt64), MinDirtyRatio: 0.5,
		DeleteRetentionMs: c.number("delete.retention.ms", 86400000),
		SegmentBytes:      c.number("internal.segment.bytes", c.number("segment.bytes", 1<<30)),
		SegmentIndexBytes: c.number("segment.index.bytes", 10485760), IndexInterval: c.number("index.interval.bytes", 4096),
		DedupeBytes: c.mapBytes, Threads: 1, LoadFactor: 0.9, MaxBatchBytes: 1 << 28}
	return s
}

// kafkaRound is what the real cleaner says.
type kafkaRound struct {
	Error            string
	FirstDirty       int64 `json:"first_dirty"`
	FirstUncleanable int64 `json:"first_uncleanable"`
	LastStable       int64 `json:"last_stable"`
	CleanBytes       int64 `json:"clean_bytes"`
	CleanableBytes   int64 `json:"cleanable_bytes"`
	Forced           int64
	Ratio            string
	Keys             int64
	CleanedTo        int64 `json:"cleaned_to"`
	MessagesRead     int64
	MessagesWritten  int64
	BytesRead        int64
	BytesWritten     int64
	Ms               int64
	After            []struct {
		Name string
		Size int64
	}
}

// oracleExpirationMs is the idle time after which the oracle's producers are forgotten.
const oracleExpirationMs = math.MaxInt32

// predict does a task with the model.
func (c *cleanTask) predict(t testing.TB) (*LoadedLog, CleanRange, *Round, error) {
	t.Helper()
	set, err := logdir.Open([]string{c.dir}, logdir.Options{})
	if err != nil || set.Operands[0].Partition == nil {
		t.Fatalf("%s: %v", c.dir, err)
	}
	s := c.settings()
	src := CleanerSource{IndexInterval: s.IndexInterval, IndexBytes: s.SegmentIndexBytes, MaxBatchBytes: s.MaxBatchBytes,
		ExpiredMs: c.askedMs - oracleExpirationMs, Records: format.NewRecordReader(1<<28, nil)}
	if hw := c.number("high.watermark", -1); hw >= 0 {
		src.Watermark = func(start, end int64) int64 { return min(max(hw, start), end) }
	}
	if _, unclean := c.configs["unclean"]; unclean {
		src.Dir = (&state.Dirs{}).Of(set.Operands[0].Partition.Parent)
	}
	l, err := LoadCleanerLog(t.Context(), set.Operands[0].Partition, src)
	if err != nil {
		return nil, CleanRange{}, nil, err
	}
	if l.CleanedTo = nil; c.cleaned >= 0 {
		l.CleanedTo = &c.cleaned
	}
	r := l.Range(s, c.nowMs)
	if r.DirtyBytes == 0 {
		return l, r, &Round{}, nil
	}
	round, err := l.Clean(t.Context(), CleanJob{Settings: s, Range: &r, NowMs: c.nowMs})
	return l, r, round, err
}

// differences holds the model against the real cleaner.
func (c *cleanTask) differences(t testing.TB, want *kafkaRound) []string {
	if want.Ratio == "" {
		return nil // Kafka does not load the log
	}
	l, r, round, err := c.predict(t)
	if err != nil {
		return []string{err.Error()}
	}
	if l.Splits {
		return nil // it is said that this is not modelled
	}
	var bad []string
	check := func(what string, got, want any) {
		if got != want {
			bad = append(bad, fmt.Sprintf("%s %v, Kafka has %v", what, got, want))
		}
	}
	check("first dirty", r.FirstDirty, want.FirstDirty)
	check("first uncleanable", r.FirstUncleanable, want.FirstUncleanable)
	check("last stable", l.StableOffset, want.LastStable)
	check("clean bytes", r.CleanBytes, want.CleanBytes)
	check("cleanable bytes", r.DirtyBytes, want.CleanableBytes)
	check("forced", c.nowMs >= r.ForcedAtMs, want.Forced == 1)
	if ratio, _ := strconv.ParseFloat(want.Ratio, 64); !math.IsNaN(ratio) {
		check("ratio", r.Ratio(), ratio)
	}
	if round.Stops != nil && round.Stops.Splits {
		return bad // so does Kafka, and goes on with the pieces
	}
	check("stops", round.Stops != nil, want.Error != "")
	if round.Stops != nil || want.Error != "" || r.DirtyBytes == 0 {
		if len(bad) > 0 && round.Stops != nil {
			bad = append(bad, round.Stops.Error())
		}
		if len(bad) > 0 {
			bad = append(bad, want.Error)
		}
		return bad
	}
	check("cleaned to", round.EndOffset, want.CleanedTo)
	check("keys", round.Keys, want.Keys)
	check("records read", round.RecordsRead, want.MessagesRead)
	check("records kept", round.RecordsKept, want.MessagesWritten)
	check("bytes read", round.BytesRead, want.BytesRead)
	if round.Exact {
		check("bytes kept", round.BytesKept, want.BytesWritten)
	}
	return append(bad, c.fileDifferences(l, round, want)...)
}

// fileDifferences compares names and sizes of the files after a round.
func (c *cleanTask) fileDifferences(l *LoadedLog, round *Round, want *kafkaRound) []string {
	sizes := map[string]int64{}
	for _, f := range want.After {
		sizes[f.Name] = f.Size
	}
	var bad []string
	expect := func(base int64, kind format.Kind, size int64) {
		name := format.SegmentFileName(base, kind)
		if got, ok := sizes[name]; !ok && size > 0 || ok && got != size {
			bad = append(bad, fmt.Sprintf("%s %d bytes, Kafka has %d", name, size, got))
		}
		delete(sizes, name)
	}
	for _, s := range round.After {
		if s.Exact {
			expect(s.Base, format.KindLog, s.Size)
			expect(s.Base, format.KindOffsetIndex, s.IndexSize)
			expect(s.Base, format.KindTimeIndex, s.TimeIndexSize)
		} else if name := format.SegmentFileName(s.Base, format.KindLog); sizes[name] == 0 {
			bad = append(bad, name+" is not there")
		}
		expect(s.Base, format.KindTxnIndex, s.TxnIndexSize)
		for _, kind := range []format.Kind{format.KindLog, format.KindOffsetIndex, format.KindTimeIndex} {
			delete(sizes, format.SegmentFileName(s.Base, kind))
		}
	}
	for _, s := range l.Segments[len(round.Segments):] {
		for name := range sizes {
			if strings.HasPrefix(name, format.SegmentFileName(s.Base, format.KindLog)[:20]) {
				delete(sizes, name)
			}
		}
	}
	for name := range sizes {
		bad = append(bad, name+" should not be there")
	}
	return bad
}

// TestJobsAgree has one worker and several go through a log of many runs.
func TestJobsAgree(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "t-0")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	fixture.WriteBenchLog(t, dir, 10<<20, format.CodecNone)
	task := cleanTask{dir: dir, cleaned: -1, nowMs: 1796000000000, mapBytes: 24 * 10000}
	var want *Round
	for _, jobs := range []int{1, 2, 5} {
		l, r, _, err := task.predict(t)
		if err != nil {
			t.Fatal(err)
		}
		got, err := l.Clean(t.Context(), CleanJob{Settings: task.settings(), Range: &r, NowMs: task.nowMs, Jobs: jobs})
		if err != nil {
			t.Fatal(err)
		}
		if want == nil {
			want = got
		}
		if !got.MapFull || got.RecordsKept == 0 || fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%d jobs: %+v, want %+v", jobs, got, want)
		}
	}
}

// TestWhatIsRemembered has a round remember nothing, a part or all of the batches of random logs: it says the same.
func TestWhatIsRemembered(t *testing.T) {
	recalls := 0
	for seed := range uint64(fixture.Times(40, 2000)) {
		dir := filepath.Join(t.TempDir(), "t-0")
		fixture.WriteKeyedLog(t, rand.New(rand.NewPCG(seed, 0)), dir, 1796000000000)
		task := cleanTask{dir: dir, cleaned: -1, nowMs: 1796000000000 + int64(seed%2)*1000000, mapBytes: 24 * 60,
			configs: map[string]string{"delete.retention.ms": "1000"}}
		want := ""
		for _, bytes := range []int64{0, 2000, mostRecalled} {
			l, r, _, err := task.predict(t)
			if err != nil {
				t.Fatal(err)
			}
			c := l.cleaning(t.Context(), CleanJob{Settings: task.settings(), Range: &r, NowMs: task.nowMs, Jobs: 2}, bytes)
			round, err := c.run()
			if err != nil {
				t.Fatal(err)
			}
			stop := fmt.Sprintf("%+v", round.Stops)
			round.Stops = nil
			got := fmt.Sprintf("%+v %s", *round, stop)
			want = cmp.Or(want, got)
			for _, batches := range c.memory.batches {
				recalls += len(batches)
			}
			if got != want {
				t.Errorf("seed %d, %d bytes: %s, want %s", seed, bytes, got, want)
			}
		}
	}
	if recalls == 0 {
		t.Error("nothing was remembered")
	}
}
