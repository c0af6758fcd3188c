package retention

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"kseg/format"
	"kseg/internal/fixture"
	"kseg/logdir"
	"kseg/render"
	"kseg/state"
)

// judge reads the partitions below paths as the command does.
func judge(t testing.TB, options Options, paths ...string) []*Report {
	t.Helper()
	reports, problems := judgeAll(t, options, paths...)
	for _, p := range problems {
		t.Error(p)
	}
	return reports
}

func judgeAll(t testing.TB, options Options, paths ...string) ([]*Report, []logdir.Problem) {
	t.Helper()
	set, err := logdir.Open(paths, logdir.Options{})
	if err != nil {
		t.Fatal(err)
	}
	partitions, _, problems := set.Chosen()
	cluster := state.OpenCluster(set, nil)
	options.MaxBatchBytes = 1 << 20
	j, err := NewJudge(partitions, cluster, options)
	if err != nil {
		t.Fatal(err)
	}
	problems = slices.Concat(set.Problems, cluster.Problems, problems, j.Problems)
	var reports []*Report
	for res := range j.Run(t.Context(), partitions, 3) {
		problems = append(problems, res.Problems...)
		if res.Report != nil {
			reports = append(reports, res.Report)
		}
	}
	return reports, problems
}

// given are the settings as flags say them.
func given(t testing.TB, settings ...string) state.Given {
	t.Helper()
	return state.Given{Overrides: overrides(t, settings...)}
}

func overrides(t testing.TB, texts ...string) []state.Override {
	t.Helper()
	var list []state.Override
	for _, text := range texts {
		o, err := state.ParseOverride(text)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, o)
	}
	return list
}

// TestRealTopics judges the files that a real broker had, at the time at which it decided: exactly the segments it then
// deleted, each by the rule that it named, and exactly the files that were gone afterwards.
func TestRealTopics(t *testing.T) {
	run := readBrokerRun(t)
	dir := fixture.Dir(t, "4.4.0/retention/before")
	after := string(fixture.Golden(t, "4.4.0/retention/after.txt"))
	for i := range run.Topics {
		topic := &run.Topics[i]
		now, want := topic.deletions(&run)
		options := Options{NowMs: now}
		for key, value := range topic.Config {
			options.Overrides = append(options.Overrides, overrides(t, topic.Topic+":"+key+"="+value)...)
		}
		reports := judge(t, options, filepath.Join(dir, topic.Topic+"-0"))
		if len(reports) != 1 || len(reports[0].Segments) != len(topic.Segments) {
			t.Fatalf("%s: %d reports", topic.Topic, len(reports))
		}
		for j, s := range reports[0].Segments {
			real := topic.Segments[j]
			if s.Verdict.Rule != want[s.Base] || (s.Verdict.Rule != Keep) != real.DeletedByBroker {
				t.Errorf("%s segment %d: %q, the broker said %q", topic.Topic, s.Base, s.Verdict.Rule, want[s.Base])
			}
			if s.Size != real.Bytes || s.log.largestMs != real.LargestTimestamp {
				t.Errorf("%s segment %d: %d bytes, largest %d; want %d, %d", topic.Topic, s.Base, s.Size, s.log.largestMs,
					real.Bytes, real.LargestTimestamp)
			}
		}
		for _, f := range reports[0].Partition.Files {
			if f.Kind() == format.KindProducerSnapshot && f.Name.Base <= reports[0].Log.StartOffset &&
				!slices.Contains(reports[0].Plan(), f) {
				continue // the restart removed it: a broker loads no snapshot from below the log start
			}
			name := topic.Topic + "-0/" + f.Name.Raw
			gone := !strings.Contains(after, name+"\n") && !strings.Contains(after, name+" ")
			if gone != slices.Contains(reports[0].Plan(), f) {
				t.Errorf("%s: gone %v, planned %v", name, gone, !gone)
			}
		}
	}
}

// TestAgeExactlyTheLimit: when the topics were written, the age of r-default's segment 12 was exactly the retention.
func TestAgeExactlyTheLimit(t *testing.T) {
	run := readBrokerRun(t)
	dir := fixture.Dir(t, "4.4.0/retention/before/r-default-0")
	for late, want := range map[int64]Rule{0: Keep, 1: Time} {
		r := judge(t, Options{NowMs: run.WrittenAtMs + 5 + late}, dir)[0]
		s := r.Segments[1]
		if age := r.Log.NowMs - s.LargestMs; s.Base != 12 || age != 604800000+late || s.Verdict.Rule != want {
			t.Errorf("segment %d of age %d: %q, want %q", s.Base, age, s.Verdict.Rule, want)
		}
	}
}

const nowMs = 1800000000000

// hoursAgo is a timestamp.
func hoursAgo(h float64) int64 { return nowMs - int64(h*3600_000) }

// segmentFiles is what writePartition writes of a segment; a nil index is left out.
type segmentFiles struct {
	base      int64
	stamps    []int64 // one batch of one record each
	timeIndex []int64 // timestamps of entries, all for the base offset; nil: the right one, empty: an empty file
	noTime    bool    // no .timeindex at all
	noIndex   bool    // no .index
	mtimeMs   int64   // of the log; 0: now
	tail      []byte  // after the batches
}

// writePartition writes segments into dir, a partition's directory.
func writePartition(t testing.TB, dir string, segments ...segmentFiles) string {
	t.Helper()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	write := func(base int64, kind format.Kind, data []byte) string {
		name := filepath.Join(dir, format.SegmentFileName(base, kind))
		if err := os.WriteFile(name, data, 0o644); err != nil {
			t.Fatal(err)
		}
		return name
	}
	for _, s := range segments {
		var log, timeIndex []byte
		largest := int64(noTimestamp)
		for i, stamp := range s.stamps {
			rec := fixture.Record{Offset: s.base + int64(i), TimestampMs: stamp, Value: make([]byte, 30)}
			log = fixture.AppendBatch(log, fixture.Batch{Records: []fixture.Record{rec}})
			largest = max(largest, stamp)
		}
		entries := s.timeIndex
		if entries == nil && largest >= 0 {
			entries = []int64{largest}
		}
		for _, stamp := range entries {
			timeIndex = format.AppendTimeEntry(timeIndex, s.base, format.TimeEntry{TimestampMs: stamp, Offset: s.base})
		}
		name := write(s.base, format.KindLog, append(log, s.tail...))
		mtime := time.UnixMilli(s.mtimeMs)
		if s.mtimeMs == 0 {
			mtime = time.UnixMilli(nowMs)
		}
		if err := os.Chtimes(name, mtime, mtime); err != nil {
			t.Fatal(err)
		}
		if !s.noTime {
			write(s.base, format.KindTimeIndex, timeIndex)
		}
		if !s.noIndex {
			write(s.base, format.KindOffsetIndex, nil)
		}
	}
	return dir
}

// writeState writes a state file of the log directory above a partition.
func writeState(t testing.TB, partition, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(filepath.Dir(partition), name), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// twoSegments are an old one with the given files, and an active one of the present.
func twoSegments(first segmentFiles) []segmentFiles {
	first.stamps = []int64{hoursAgo(50), hoursAgo(48)}
	return []segmentFiles{first, {base: 2, stamps: []int64{hoursAgo(1)}}}
}

// TestLargestTimestampAsABrokerLoadsIt gives the first segment, whose newest record is 48 hours old, time indexes of
// all kinds, after a clean shutdown.
func TestLargestTimestampAsABrokerLoadsIt(t *testing.T) {
	zeros := make([]int64, 5)
	tests := []struct {
		name    string
		files   segmentFiles
		want    int64
		source  TimestampSource
		rule    Rule // with a retention of 24 h
		warning string
	}{
		{"right", segmentFiles{}, hoursAgo(48), FromTimeIndex, Time, ""},
		{"missing", segmentFiles{noTime: true, mtimeMs: hoursAgo(3)}, hoursAgo(3), FromMtime, Keep, "it has no time index"},
		{"missing, the file is old", segmentFiles{noTime: true, mtimeMs: hoursAgo(100)}, hoursAgo(100), FromMtime, Time,
			"it has no time index"},
		{"empty", segmentFiles{timeIndex: []int64{}, mtimeMs: hoursAgo(3)}, hoursAgo(3), FromMtime, Keep,
			"its time index is empty"},
		{"short", segmentFiles{timeIndex: []int64{hoursAgo(50)}}, hoursAgo(50), FromTimeIndex, Time, "2 h later"},
		{"padded", segmentFiles{timeIndex: append([]int64{hoursAgo(48)}, zeros...)}, 0, FromTimeIndex, Time, "ends in zeros"},
		{"false", segmentFiles{timeIndex: []int64{hoursAgo(2)}}, hoursAgo(2), FromTimeIndex, Keep, "earlier"},
		{"negative", segmentFiles{timeIndex: []int64{-5}, mtimeMs: hoursAgo(3)}, hoursAgo(3), FromMtime, Keep,
			"its time index is empty"},
		{"no index: the segment is recovered", segmentFiles{timeIndex: zeros, noIndex: true}, hoursAgo(48), FromLog, Time,
			""},
		{"no index, the time index is right", segmentFiles{noIndex: true}, hoursAgo(48), FromTimeIndex, Time, ""},
	}
	for _, test := range tests {
		dir := writePartition(t, filepath.Join(t.TempDir(), "t-0"), twoSegments(test.files)...)
		writeState(t, dir, ".kafka_cleanshutdown", "")
		r := judge(t, Options{NowMs: nowMs, Given: given(t, "retention.ms=86400000")}, dir)[0]
		s := r.Segments[0]
		if s.LargestMs != test.want || s.Source != test.source || s.Verdict.Rule != test.rule ||
			s.log.largestMs != hoursAgo(48) {
			t.Errorf("%s: %d from %s, %q, log %d; want %d from %s, %q", test.name, s.LargestMs, s.Source, s.Verdict.Rule,
				s.log.largestMs, test.want, test.source, test.rule)
		}
		if got := strings.Join(s.Warnings, " "); !strings.Contains(got, test.warning) || (test.warning == "") != (got == "") {
			t.Errorf("%s: warnings %q, want %q", test.name, got, test.warning)
		}
	}
}

// TestRecoveryReadsTheLog: without a clean shutdown, segments from the recovery point on are read when a broker starts.
func TestRecoveryReadsTheLog(t *testing.T) {
	padded := func(base int64) segmentFiles {
		return segmentFiles{base: base, stamps: []int64{hoursAgo(48)}, timeIndex: []int64{hoursAgo(48), 0, 0}}
	}
	for _, test := range []struct {
		checkpoint string
		clean      bool
		want       []TimestampSource // "time_index" stands for the 0 of the padding
	}{
		{"0\n1\nt 0 5\n", false, []TimestampSource{"0", FromTimeIndex, FromTimeIndex}},
		{"0\n1\nt 0 10\n", false, []TimestampSource{"0", "0", FromTimeIndex}},
		{"0\n1\nt 0 99\n", false, []TimestampSource{"0", "0", FromTimeIndex}},
		{"0\n0\n", false, []TimestampSource{FromTimeIndex, FromTimeIndex, FromTimeIndex}},
		{"", false, []TimestampSource{FromTimeIndex, FromTimeIndex, FromTimeIndex}},
		{"none", false, []TimestampSource{"0", "0", FromTimeIndex}},
		{"0\n1\nt 0 5\n", true, []TimestampSource{"0", "0", "0"}},
	} {
		dir := writePartition(t, filepath.Join(t.TempDir(), "t-0"), padded(0), padded(5), padded(10))
		if test.checkpoint != "none" {
			writeState(t, dir, "recovery-point-offset-checkpoint", test.checkpoint)
		}
		if test.clean {
			writeState(t, dir, ".kafka_cleanshutdown", "")
		}
		r := judge(t, Options{NowMs: nowMs}, dir)[0]
		for i, s := range r.Segments {
			want := int64(hoursAgo(48))
			if test.want[i] == "0" {
				want = 0
			}
			if s.LargestMs != want {
				t.Errorf("recovery point %q, clean %v, segment %d: %d, want %d", test.checkpoint, test.clean, s.Base, s.LargestMs,
					want)
			}
		}
	}
}

func TestBlockingRecords(t *testing.T) {
	tests := []struct {
		name   string
		stamps []int64
		want   *Record
		says   string
	}{
		{"future", []int64{hoursAgo(50), hoursAgo(-1000), hoursAgo(49)}, &Record{1, hoursAgo(-1000)}, "record 1 (2027-02-26"},
		{"recent", []int64{hoursAgo(50), hoursAgo(49), hoursAgo(2)}, &Record{2, hoursAgo(2)},
			"record 2 (2027-01-15 06:00) blocks"},
		{"microseconds", []int64{hoursAgo(50), hoursAgo(49) * 1000}, &Record{1, hoursAgo(49) * 1000},
			"looks like microseconds"},
		{"nanoseconds", []int64{hoursAgo(49) * 1000_000}, &Record{0, hoursAgo(49) * 1000_000}, "looks like nanoseconds"},
	}
	for _, test := range tests {
		dir := writePartition(t, filepath.Join(t.TempDir(), "t-0"), segmentFiles{base: 0, stamps: test.stamps},
			segmentFiles{base: 10, stamps: []int64{hoursAgo(40)}}, segmentFiles{base: 20, stamps: []int64{hoursAgo(0.1)}})
		r := judge(t, Options{NowMs: nowMs, Given: given(t, "retention.ms=86400000")}, dir)[0]
		s := r.Segments[0]
		if s.Blocking == nil || *s.Blocking != *test.want || s.Shields != 1 || r.Segments[1].Verdict.By != 0 {
			t.Errorf("%s: %+v, shields %d", test.name, s.Blocking, s.Shields)
		}
		if text := strings.Join(strings.Fields(strings.Join(r.sentences(), " ")), " "); !strings.Contains(text, test.says) {
			t.Errorf("%s: %q does not say %q", test.name, text, test.says)
		}
	}
}

func TestSecondsInsteadOfMilliseconds(t *testing.T) {
	dir := writePartition(t, filepath.Join(t.TempDir(), "t-0"), segmentFiles{base: 0, stamps: []int64{nowMs / 1000}})
	r := judge(t, Options{NowMs: nowMs}, dir)[0]
	if s := r.Segments[0]; s.Verdict.Rule != Time || len(s.Warnings) != 1 || !strings.Contains(s.Warnings[0],
		"looks like seconds") {
		t.Errorf("%q, %q", s.Verdict.Rule, s.Warnings)
	}
}

// TestWhereTheHighWatermarkComesFrom uses a partition with two expired segments, 0 to 9 and 10 to 19, and an active
// one.
func TestWhereTheHighWatermarkComesFrom(t *testing.T) {
	root := filepath.Join(t.TempDir(), "data")
	dir := writePartition(t, filepath.Join(root, "t-0"), segmentFiles{base: 0, stamps: []int64{hoursAgo(50)}},
		segmentFiles{base: 10, stamps: []int64{hoursAgo(49)}}, segmentFiles{base: 20, stamps: []int64{hoursAgo(1)}})
	writeState(t, dir, "replication-offset-checkpoint", "0\n1\nt 0 15\n")
	for _, test := range []struct {
		mode   state.WatermarkMode
		offset int64
		want   int64
		source string
		goes   int64
		warns  bool
	}{
		{state.WatermarkAuto, 0, 21, "log end", 2, false},
		{state.WatermarkEnd, 0, 21, "log end", 2, false},
		{state.WatermarkCheckpoint, 0, 15, "checkpoint", 1, true},
		{state.WatermarkOffset, 9, 9, "flag", 0, true},
		{state.WatermarkOffset, 20, 20, "flag", 2, false},
		{state.WatermarkOffset, 1 << 40, 21, "flag", 2, false},
	} {
		r := judge(t, Options{NowMs: nowMs, Watermark: state.Watermark{Mode: test.mode, Offset: test.offset},
			Given: given(t, "retention.ms=86400000")}, dir)[0]
		goes, _ := r.Freed()
		if r.Log.HighWatermark != test.want || r.WatermarkSource != test.source || goes != test.goes ||
			(len(r.Warnings) > 0) != test.warns {
			t.Errorf("%+v: %d from %s, %d go, %q", test, r.Log.HighWatermark, r.WatermarkSource, goes, r.Warnings)
		}
	}
	// With two replicas in the metadata the checkpoint counts.
	image := replicated(t, 2)
	if err := os.CopyFS(filepath.Join(root, state.MetadataDir), os.DirFS(image)); err != nil {
		t.Fatal(err)
	}
	r := judge(t, Options{NowMs: nowMs, Given: given(t, "retention.ms=86400000")}, root)[0]
	if r.Log.HighWatermark != 15 || r.WatermarkSource != "checkpoint" {
		t.Errorf("two replicas: %d from %s", r.Log.HighWatermark, r.WatermarkSource)
	}
}

// replicated is a metadata log with topic t, whose partition 0 has so many replicas.
func replicated(t testing.TB, replicas int) string {
	t.Helper()
	id := strings.Repeat("\x07", 16)
	one := "\x00\x00\x00\x01"
	ids := string(rune(replicas+1)) + strings.Repeat(one, replicas)
	values := []string{
		"\x01\x02\x00\x02t" + id + "\x00",
		"\x01\x03\x00\x00\x00\x00\x00" + id + ids + ids + "\x01\x01" + one + one + one + "\x00",
	}
	var records []fixture.Record
	for i, v := range values {
		records = append(records, fixture.Record{Offset: int64(i), TimestampMs: nowMs, Value: []byte(v)})
	}
	dir := filepath.Join(t.TempDir(), state.MetadataDir)
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "00000000000000000000.log"), fixture.AppendBatch(nil,
		fixture.Batch{Records: records}), 0o644); err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestTheEndOfAnActiveLog counts neither preallocated zeros nor what recovery cuts off.
func TestTheEndOfAnActiveLog(t *testing.T) {
	for name, tail := range map[string][]byte{"zeros": make([]byte, 5000), "torn": fixture.AppendBatch(nil, fixture.Batch{
		Records: []fixture.Record{{Offset: 1, TimestampMs: nowMs, Value: make([]byte, 100)}}})[:90]} {
		dir := writePartition(t, filepath.Join(t.TempDir(), "t-0"), segmentFiles{base: 0, stamps: []int64{hoursAgo(1)},
			tail: tail})
		r := judge(t, Options{NowMs: nowMs, Given: given(t, "retention.bytes=1000")}, dir)[0]
		s := r.Segments[0]
		if s.Size != s.Log.Size-int64(len(tail)) || r.Log.EndOffset != 1 || len(s.Warnings) != 1 ||
			!strings.Contains(s.Warnings[0], "not counted") {
			t.Errorf("%s: %d of %d bytes, end %d, %q", name, s.Size, s.Log.Size, r.Log.EndOffset, s.Warnings)
		}
	}
}

func TestTieredStorage(t *testing.T) {
	segments := []segmentFiles{{base: 0, stamps: []int64{hoursAgo(50)}}, {base: 1, stamps: []int64{hoursAgo(20)}},
		{base: 2, stamps: []int64{hoursAgo(19)}}}
	for _, test := range []struct {
		settings []string
		server   string
		goes     int64
		tiered   bool
	}{
		{[]string{"remote.storage.enable=true"}, "", 0, true},
		{[]string{"remote.storage.enable=true", "local.retention.ms=3600000"}, "", 2, true},
		{[]string{"remote.storage.enable=true", "local.retention.bytes=0"}, "", 2, true},
		{[]string{"remote.storage.enable=true", "local.retention.ms=3600000", "remote.log.copy.disable=true"}, "", 0, false},
		{[]string{"remote.storage.enable=true", "local.retention.ms=3600000", "cleanup.policy=compact"}, "", 0, false},
		{[]string{"local.retention.ms=3600000"}, "", 0, false},
		{[]string{"remote.storage.enable=true", "local.retention.ms=3600000"}, "remote.log.storage.system.enable=false", 0,
			false},
		{[]string{"remote.storage.enable=true"}, "remote.log.storage.system.enable=true\nlog.local.retention.ms=3600000", 2,
			true},
	} {
		dir := writePartition(t, filepath.Join(t.TempDir(), "t-0"), segments...)
		options := Options{NowMs: nowMs, Given: given(t, test.settings...)}
		if test.server != "" {
			options.HasServer = true
			options.Server, _ = format.DecodeProperties([]byte(test.server))
		}
		r := judge(t, options, dir)[0]
		goes, _ := r.Freed()
		if goes != test.goes || r.Log.Limits.Tiered != test.tiered || test.tiered != strings.Contains(strings.Join(r.Warnings,
			" "), "not to be seen here") {
			t.Errorf("%q, %q: %d go, tiered %v, %q", test.settings, test.server, goes, r.Log.Limits.Tiered, r.Warnings)
		}
	}
}

// TestYoungActiveSegmentOfATieredTopic goes neither by its timestamp alone nor for want of one.
func TestYoungActiveSegmentOfATieredTopic(t *testing.T) {
	dir := writePartition(t, filepath.Join(t.TempDir(), "t-0"), segmentFiles{base: 0, stamps: []int64{hoursAgo(50)}},
		segmentFiles{base: 1, stamps: []int64{hoursAgo(1)}})
	r := judge(t, Options{NowMs: nowMs, Given: given(t, "remote.storage.enable=true",
		"local.retention.ms=36000000")}, dir)[0]
	text := strings.Join(append(r.sentences(), r.Reason(1)), " ")
	if !strings.Contains(text, "Segment 1 is active: it is rolled and copied") || strings.Contains(text, "no clock") {
		t.Errorf("%q", text)
	}
}

// TestBlockingRecordOfADamagedBatch names it all the same, beside a warning, and says of a file's time that it is one.
func TestBlockingRecordOfADamagedBatch(t *testing.T) {
	dir := writePartition(t, filepath.Join(t.TempDir(), "t-0"), segmentFiles{base: 0, stamps: []int64{hoursAgo(50),
		hoursAgo(-10)}},
		segmentFiles{base: 2, mtimeMs: hoursAgo(-20)}, segmentFiles{base: 3, stamps: []int64{hoursAgo(0)}})
	name := filepath.Join(dir, format.SegmentFileName(0, format.KindLog))
	log, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	log[len(log)-3] ^= 1 // in the value of the last record
	if err := os.WriteFile(name, log, 0o644); err != nil {
		t.Fatal(err)
	}
	r := judge(t, Options{NowMs: nowMs, Given: given(t, "retention.ms=3600000")}, dir)[0]
	text := strings.Join(r.sentences(), " ")
	if !strings.Contains(text, "record 1 (") || !strings.Contains(strings.Join(r.Segments[0].Warnings, " "),
		"wrong checksum") {
		t.Errorf("%q, %q", text, r.Segments[0].Warnings)
	}
	if reason := r.Reason(1); !strings.HasPrefix(reason, "BLOCKS: its file's time is in the future") {
		t.Error(reason)
	}
}

// TestCompactedTopicWithoutSettings: where the log cleaner knows the topic, nothing goes by the default policy.
func TestCompactedTopicWithoutSettings(t *testing.T) {
	dir := writePartition(t, filepath.Join(t.TempDir(), "t-0"), segmentFiles{base: 0, stamps: []int64{hoursAgo(50)}})
	for _, test := range []struct {
		checkpoint, setting string
		warns               bool
	}{
		{"0\n1\nt 0 1\n", "retention.ms=1", true},
		{"0\n1\nt 1 1\n", "retention.ms=1", false},
		{"0\n1\nt 0 1\n", "cleanup.policy=delete", false},
		{"0\n1\nt 0 1\n", "cleanup.policy=compact", false},
	} {
		writeState(t, dir, "cleaner-offset-checkpoint", test.checkpoint)
		r := judge(t, Options{NowMs: nowMs, Given: given(t, test.setting)}, dir)[0]
		if got := strings.Contains(strings.Join(r.Warnings, " "), "is compacted, or was"); got != test.warns {
			t.Errorf("%q, %s: %q", test.checkpoint, test.setting, r.Warnings)
		}
		if goes, _ := r.Freed(); test.warns && goes > 0 {
			t.Errorf("%q, %s: %d go", test.checkpoint, test.setting, goes)
		}
	}
}

// TestOneBlockerAfterAnother tells of a second one only if it holds for longer.
func TestOneBlockerAfterAnother(t *testing.T) {
	for _, test := range []struct {
		second int64 // hours ahead
		says   bool
	}{{10, false}, {100, false}, {101, true}} {
		dir := writePartition(t, filepath.Join(t.TempDir(), "t-0"), segmentFiles{base: 0, stamps: []int64{hoursAgo(-100)}},
			segmentFiles{base: 1, stamps: []int64{hoursAgo(float64(-test.second))}},
			segmentFiles{base: 2, stamps: []int64{hoursAgo(1)}})
		r := judge(t, Options{NowMs: nowMs, Given: given(t, "retention.ms=3600000")}, dir)[0]
		if text := strings.Join(r.sentences(), " "); strings.Contains(text,
			"After that, segment 1 stays until") != test.says {
			t.Errorf("%d hours: %q", test.second, text)
		}
	}
}

// TestFilesStandForTheirPartition: the segment is judged among its neighbours.
func TestFilesStandForTheirPartition(t *testing.T) {
	dir := fixture.Dir(t, "4.4.0/retention/before/r-poison-future-0")
	options := Options{NowMs: 1795983917743, Given: given(t, "retention.ms=259200000")}
	for _, name := range []string{"00000000000000000024.log", "00000000000000000024.timeindex"} {
		r := judge(t, options, filepath.Join(dir, name))[0]
		var shown []string
		for i, s := range r.Segments {
			if r.shown(s) {
				shown = append(shown, fmt.Sprint(s.Base, " ", r.Reason(i)))
			}
		}
		if want := []string{"24 expired, but waits for segment 12"}; !slices.Equal(shown, want) {
			t.Errorf("%s: %q, want %q", name, shown, want)
		}
	}
	if _, problems := judgeAll(t, options, filepath.Join(dir, "leader-epoch-checkpoint")); len(problems) != 1 {
		t.Errorf("a checkpoint is no segment: %v", problems)
	}
}

// TestInternalTopics reads the settings of real internal topics from the metadata beside them.
func TestInternalTopics(t *testing.T) {
	dir := fixture.Dir(t, "4.4.0/internal")
	want := map[string]string{
		"__consumer_offsets-0": "compact 172800000", "__share_group_state-0": "delete -1",
		"__transaction_state-0": "compact 172800000",
		"clicks-0":              "delete 86400000", "clicks-1": "delete 86400000", "clicks-2": "delete 86400000",
		"payments-0": "compact 12345678",
	}
	for _, r := range judge(t, Options{NowMs: nowMs}, dir) {
		if got := r.Settings.CleanupPolicy.Value + " " + r.Settings.RetentionMs.Value; got != want[r.Partition.Name] {
			t.Errorf("%s: %q, want %q", r.Partition.Name, got, want[r.Partition.Name])
		}
		if len(r.Warnings) > 0 {
			t.Errorf("%s: %q", r.Partition.Name, r.Warnings)
		}
		delete(want, r.Partition.Name)
	}
	if len(want) > 0 {
		t.Errorf("not judged: %v", want)
	}
}

// TestDirectoriesThatTheMetadataDoesNotMean: the settings shown may be those of another topic.
func TestDirectoriesThatTheMetadataDoesNotMean(t *testing.T) {
	dir := fixture.Dir(t, "4.4.0/internal")
	copyAs := func(from, to string) {
		if err := os.CopyFS(filepath.Join(dir, to), os.DirFS(filepath.Join(dir, from))); err != nil {
			t.Fatal(err)
		}
	}
	copyAs("clicks-0", "unknown-0")
	copyAs("clicks-0", "payments-5")
	for _, r := range judge(t, Options{NowMs: nowMs}, dir) {
		want := map[string]string{"unknown-0": "no topic of this name",
			"payments-5": "another topic of this name"}[r.Partition.Name]
		if got := strings.Join(r.Warnings, " "); (got == "") != (want == "") || !strings.Contains(got, want) {
			t.Errorf("%s: %q, want %q", r.Partition.Name, got, want)
		}
	}
}

// newJudge opens a directory for a Judge without settings.
func newJudge(t *testing.T, dir string) (*Judge, []*logdir.Partition) {
	t.Helper()
	set, err := logdir.Open([]string{dir}, logdir.Options{})
	if err != nil {
		t.Fatal(err)
	}
	partitions, _, _ := set.Chosen()
	j, err := NewJudge(partitions, state.OpenCluster(set, nil), Options{NowMs: nowMs, MaxBatchBytes: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	return j, partitions
}

// TestRunStopsWhenItIsTold ends after the first result, and at once with a cancelled context; no worker may be left
// over.
func TestRunStopsWhenItIsTold(t *testing.T) {
	j, partitions := newJudge(t, fixture.Dir(t, "4.4.0/retention/before"))
	results := 0
	for range j.Run(t.Context(), partitions, 2) {
		results++
		break
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for range j.Run(ctx, partitions, 2) {
		results++
	}
	if results != 1 {
		t.Errorf("%d results, want 1", results)
	}
}

// TestVanishedSegmentsAreLeftOut: beside a live broker segments go while they are listed and read.
func TestVanishedSegmentsAreLeftOut(t *testing.T) {
	dir := fixture.Dir(t, "4.4.0/retention/before/r-time-0")
	j, partitions := newJudge(t, dir)
	if err := os.Remove(filepath.Join(dir, "00000000000000000000.log")); err != nil {
		t.Fatal(err)
	}
	for res := range j.Run(t.Context(), partitions, 1) {
		if len(res.Problems) > 0 || res.Report == nil || res.Report.Segments[0].Base != 12 {
			t.Errorf("problems %v, report %+v", res.Problems, res.Report)
		}
	}
}

// FuzzPartition judges damaged files. Nothing may panic, and what is printed must be JSON, and text without control
// characters.
func FuzzPartition(f *testing.F) {
	for _, name := range []string{"r-time-0/00000000000000000012", "r-no-timestamp-mixed-0/00000000000000000040"} {
		f.Add(fixture.Data(f, "4.4.0/retention/before/"+name+".log"), make([]byte, 24), "0\n1\nt 0 20\n", int64(nowMs))
	}
	f.Fuzz(func(t *testing.T, log, timeIndex []byte, checkpoint string, now int64) {
		dir := writePartition(t, filepath.Join(t.TempDir(), "t-0"), segmentFiles{base: 0, stamps: []int64{hoursAgo(50)}})
		for name, data := range map[string][]byte{"00000000000000000012.log": log, "00000000000000000012.index": nil,
			"00000000000000000012.timeindex": timeIndex} {
			if err := os.WriteFile(filepath.Join(dir, name), data, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		for _, kind := range []format.Kind{format.KindLogStartOffsetCheckpoint, format.KindReplicationOffsetCheckpoint,
			format.KindRecoveryPointCheckpoint} {
			writeState(t, dir, kind.Info().Name, checkpoint)
		}
		options := Options{NowMs: now, Watermark: state.Watermark{Mode: state.WatermarkCheckpoint},
			Given: given(t, "retention.ms=1", "retention.bytes=700")}
		reports, _ := judgeAll(t, options, dir)
		for _, r := range reports {
			if err := fixture.CheckJSONLines(string(r.AppendJSON(nil))); err != nil {
				t.Error(err)
			}
			for _, c := range r.AppendText(nil, themeless, 60) {
				if c < 0x20 && c != '\n' {
					t.Fatalf("control character %#x in the text", c)
				}
			}
		}
	})
}

// themeless leaves text without colours.
var themeless render.Theme

// Of a log without batches nothing can be held against its time index.
func TestTimeIndexOfAnEmptyLog(t *testing.T) {
	segments := twoSegments(segmentFiles{timeIndex: []int64{hoursAgo(50)}})
	segments[0].stamps = nil
	dir := writePartition(t, filepath.Join(t.TempDir(), "t-0"), segments...)
	writeState(t, dir, ".kafka_cleanshutdown", "")
	s := judge(t, Options{NowMs: nowMs, Given: given(t, "retention.ms=86400000")}, dir)[0].Segments[0]
	if s.Source != FromTimeIndex || len(s.Warnings) > 0 {
		t.Errorf("%s, warnings %q", s.Source, s.Warnings)
	}
}
