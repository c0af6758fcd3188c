package retention

import (
	"encoding/json"
	"math"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"kseg/internal/fixture"
)

// brokerTopic is what a real broker did to one topic of testdata/logdirs/4.4.0/retention.
type brokerTopic struct {
	Topic    string
	Config   map[string]string
	Segments []struct {
		Base             int64
		Bytes            int64
		LargestTimestamp int64 `json:"largest_timestamp"`
		MtimeMs          int64 `json:"mtime_ms"`
		DeletedByBroker  bool  `json:"deleted_by_broker"`
	}
	SegmentsAfter []int64  `json:"segments_after"`
	LogLines      []string `json:"log_lines"`
}

type brokerRun struct {
	WrittenAtMs   int64 `json:"written_at_ms"`
	RestartedAtMs int64 `json:"broker_restarted_at_ms"`
	Topics        []brokerTopic
}

func readBrokerRun(t *testing.T) brokerRun {
	t.Helper()
	var run brokerRun
	if err := json.Unmarshal(fixture.Golden(t, "4.4.0/retention/retention.json"), &run); err != nil {
		t.Fatal(err)
	}
	if len(run.Topics) != 20 {
		t.Fatalf("%d topics, want 20", len(run.Topics))
	}
	return run
}

// deletions gives when the broker decided about the topic, and the rule it named for each segment it deleted.
func (b *brokerTopic) deletions(run *brokerRun) (nowMs int64, rules map[int64]Rule) {
	nowMs, rules = run.RestartedAtMs, map[int64]Rule{}
	for _, line := range b.LogLines {
		_, text, ok := strings.Cut(line, "Deleting segment L")
		rule := Time
		if !ok {
			if _, text, ok = strings.Cut(line, "Deleting segments due to log start offset"); !ok {
				continue
			}
			rule = LogStartOffset
		} else if strings.Contains(line, "retention size") {
			rule = Size
		}
		if len(rules) == 0 {
			nowMs, _ = strconv.ParseInt(line[:strings.IndexByte(line, ' ')], 10, 64)
		}
		for part := range strings.SplitSeq(text, "ogSegment(baseOffset=") {
			number, _, _ := strings.Cut(part, ",")
			if base, err := strconv.ParseInt(number, 10, 64); err == nil {
				rules[base] = rule
			}
		}
	}
	return nowMs, rules
}

// TestRulesOnRealTopics gives the rules alone what the broker had before it, without any file.
func TestRulesOnRealTopics(t *testing.T) {
	run := readBrokerRun(t)
	starts := map[string]int64{"r-deleterecords": 28, "r-deleterecords-edge": 24}
	for i := range run.Topics {
		topic := &run.Topics[i]
		now, want := topic.deletions(&run)
		l := Log{NowMs: now, StartOffset: starts[topic.Topic], Limits: limitsOf(topic.Config)}
		for _, s := range topic.Segments {
			largest := s.LargestTimestamp
			if largest < 0 {
				largest = s.MtimeMs
			}
			l.Segments = append(l.Segments, Segment{s.Base, s.Bytes, largest})
			l.EndOffset = s.Base + 6
		}
		l.HighWatermark = l.EndOffset
		for j, v := range Evaluate(&l) {
			if base := l.Segments[j].Base; v.Rule != want[base] {
				t.Errorf("%s segment %d: %q, the broker said %q", topic.Topic, base, v.Rule, want[base])
			}
		}
	}
}

func limitsOf(config map[string]string) Limits {
	number := func(key string, otherwise int64) int64 {
		if n, err := strconv.ParseInt(config[key], 10, 64); err == nil {
			return n
		}
		return otherwise
	}
	policy := config["cleanup.policy"]
	return Limits{
		Delete: policy == "" || strings.Contains(policy, "delete"), Compact: strings.Contains(policy, "compact"),
		RetentionMs: number("retention.ms", 604800000), RetentionBytes: number("retention.bytes", -1),
	}
}

// threeOld is a log of three segments of 100 bytes and ages 30, 20 and 10 at time 1000.
func threeOld() Log {
	return Log{
		Segments:  []Segment{{0, 100, 970}, {10, 100, 980}, {20, 100, 990}},
		EndOffset: 30, HighWatermark: 30, NowMs: 1000,
		Limits: Limits{Delete: true, RetentionMs: -1, RetentionBytes: -1},
	}
}

func TestRuleBoundaries(t *testing.T) {
	tests := []struct {
		name   string
		change func(l *Log)
		want   string // a letter a segment: o log start offset, s size, t time, - stays
	}{
		{"no limits", func(*Log) {}, "---"},
		{"age exactly the limit stays", func(l *Log) { l.Limits.RetentionMs = 30 }, "---"},
		{"one millisecond older goes", func(l *Log) { l.Limits.RetentionMs = 29 }, "t--"},
		{"limit 0 deletes all, the active segment too", func(l *Log) { l.Limits.RetentionMs = 0 }, "ttt"},
		{"the present millisecond stays at limit 0", func(l *Log) { l.Limits.RetentionMs, l.NowMs = 0, 990 }, "tt-"},
		{"a future timestamp shields", func(l *Log) { l.Limits.RetentionMs, l.Segments[1].LargestMs = 0, 5000 }, "t--"},
		{"timestamp 0 is expired", func(l *Log) { l.Limits.RetentionMs, l.Segments[0].LargestMs = 500, 0 }, "t--"},
		{"what remains is exactly the limit", func(l *Log) { l.Limits.RetentionBytes = 200 }, "s--"},
		{"what remains would be one byte below", func(l *Log) { l.Limits.RetentionBytes = 201 }, "---"},
		{"size 0 deletes all", func(l *Log) { l.Limits.RetentionBytes = 0 }, "sss"},
		{"the log is exactly the limit", func(l *Log) { l.Limits.RetentionBytes = 300 }, "---"},
		{"size, then time", func(l *Log) { l.Limits.RetentionBytes, l.Limits.RetentionMs = 200, 15 }, "st-"},
		{"log start at the edge", func(l *Log) { l.StartOffset = 10 }, "o--"},
		{"log start one below the edge", func(l *Log) { l.StartOffset = 9 }, "---"},
		{"log start never takes the active segment", func(l *Log) { l.StartOffset = 30 }, "oo-"},
		{"what the first rule took no longer counts as size", func(l *Log) {
			l.StartOffset, l.Limits.RetentionBytes = 10,
				200
		}, "o--"},
		{"compact knows the first rule only", func(l *Log) {
			l.Limits, l.StartOffset = Limits{Compact: true, RetentionMs: 0, RetentionBytes: 0}, 10
		}, "o--"},
		{"compact,delete knows all", func(l *Log) { l.Limits.Compact, l.Limits.RetentionMs = true, 15 }, "tt-"},
		{"an empty policy keeps", func(l *Log) { l.Limits = Limits{} }, "---"},
		{"an empty policy with tiered storage does not", func(l *Log) { l.Limits = Limits{Tiered: true} }, "ss-"},
		{"compact with tiered storage keeps", func(l *Log) { l.Limits = Limits{Tiered: true, Compact: true} }, "---"},
		{"the high watermark inside the second", func(l *Log) { l.Limits.RetentionMs, l.HighWatermark = 0, 19 }, "t--"},
		{"the high watermark at its end", func(l *Log) { l.Limits.RetentionMs, l.HighWatermark = 0, 20 }, "tt-"},
		{"the high watermark one below the log end", func(l *Log) { l.Limits.RetentionMs, l.HighWatermark = 0, 29 }, "tt-"},
		{"the high watermark bounds size", func(l *Log) { l.Limits.RetentionBytes, l.HighWatermark = 0, 10 }, "s--"},
		{"an empty active segment stays", func(l *Log) { l.Limits.RetentionMs, l.Segments[2].Size = 0, 0 }, "tt-"},
		{"an empty older segment goes", func(l *Log) { l.Limits.RetentionBytes, l.Segments[0].Size = 200, 0 }, "s--"},
		{"no segments", func(l *Log) { l.Segments = nil }, ""},
	}
	letters := map[Rule]string{Keep: "-", LogStartOffset: "o", Size: "s", Time: "t"}
	for _, test := range tests {
		l := threeOld()
		test.change(&l)
		got := ""
		for _, v := range Evaluate(&l) {
			got += letters[v.Rule]
		}
		if got != test.want {
			t.Errorf("%s: %s, want %s", test.name, got, test.want)
		}
	}
}

func TestHolds(t *testing.T) {
	tests := []struct {
		name   string
		change func(l *Log)
		want   []Verdict
	}{
		{"after the young", func(l *Log) { l.Limits.RetentionMs, l.Segments[0].LargestMs = 15, 999 }, []Verdict{
			{Hold: HoldYoung, By: -1, ByLongest: -1, AtMs: 1015},
			{Hold: HoldWaiting, By: 0, ByLongest: 0, AtMs: 1015},
			{Hold: HoldYoung, By: 0, ByLongest: 0, AtMs: 1015}}},
		{"after two, the second for longer", func(l *Log) {
			l.Limits.RetentionMs = 5
			l.Segments[0].LargestMs, l.Segments[1].LargestMs = 999, math.MaxInt64
		}, []Verdict{
			{Hold: HoldYoung, By: -1, ByLongest: -1, AtMs: 1005},
			{Hold: HoldYoung, By: -1, ByLongest: -1, AtMs: Never},
			{Hold: HoldWaiting, By: 0, ByLongest: 1, AtMs: Never}}},
		{"above the high watermark", func(l *Log) { l.Limits.RetentionMs, l.HighWatermark = 15, 10 }, []Verdict{
			{Rule: Time, By: -1, ByLongest: -1, AtMs: 986},
			{Hold: HoldWatermark, By: -1, ByLongest: -1, AtMs: Never},
			{Hold: HoldYoung, By: 1, ByLongest: 1, AtMs: Never}}},
		{"the high watermark is no matter to the young", func(l *Log) { l.Limits.RetentionMs, l.HighWatermark = 30, 0 },
			[]Verdict{
				{Hold: HoldYoung, By: -1, ByLongest: -1, AtMs: 1001},
				{Hold: HoldYoung, By: -1, ByLongest: -1, AtMs: 1011},
				{Hold: HoldYoung, By: -1, ByLongest: -1, AtMs: 1021}}},
		{"size goes now, its successor not before", func(l *Log) { l.Limits.RetentionBytes, l.Limits.RetentionMs = 200, 15 },
			[]Verdict{
				{Rule: Size, By: -1, ByLongest: -1, AtMs: 1000},
				{Rule: Time, By: -1, ByLongest: -1, AtMs: 1000},
				{Hold: HoldYoung, By: -1, ByLongest: -1, AtMs: 1006}}},
		{"no limit of time", func(l *Log) { l.Segments[2].Size = 0 }, []Verdict{
			{Hold: HoldPolicy, By: -1, ByLongest: -1, AtMs: Never},
			{Hold: HoldPolicy, By: -1, ByLongest: -1, AtMs: Never},
			{Hold: HoldEmpty, By: -1, ByLongest: -1, AtMs: Never}}},
		{"tiered", func(l *Log) { l.Limits.Tiered, l.Limits.RetentionMs = true, 5 }, []Verdict{
			{Rule: Time, By: -1, ByLongest: -1, AtMs: 976},
			{Rule: Time, By: -1, ByLongest: -1, AtMs: 986},
			{Hold: HoldActive, By: -1, ByLongest: -1, AtMs: Never}}},
	}
	for _, test := range tests {
		l := threeOld()
		test.change(&l)
		for i, got := range Evaluate(&l) {
			if got != test.want[i] {
				t.Errorf("%s, segment %d: %+v, want %+v", test.name, i, got, test.want[i])
			}
		}
	}
}

// slowRules is the broker's code told differently: each pass lists what is left, takes segments off its front one by
// one, and measures the sizes anew every time.
func slowRules(l *Log) map[int64]Rule {
	type piece struct {
		Segment
		end  int64
		last bool
	}
	var left []piece
	for i, s := range l.Segments {
		p := piece{s, l.EndOffset, i == len(l.Segments)-1}
		if !p.last {
			p.end = l.Segments[i+1].Base
		}
		left = append(left, p)
	}
	gone := map[int64]Rule{}
	pass := func(rule Rule, breaches func(p piece) bool) {
		for len(left) > 0 {
			p := left[0]
			if p.end > l.HighWatermark || p.last && (p.Size == 0 || l.Limits.Tiered) || !breaches(p) {
				return
			}
			gone[p.Base], left = rule, left[1:]
		}
	}
	pass(LogStartOffset, func(p piece) bool { return !p.last && p.end <= l.StartOffset })
	if !l.Limits.Delete && (!l.Limits.Tiered || l.Limits.Compact) {
		return gone
	}
	pass(Size, func(p piece) bool {
		remains := int64(0)
		for _, other := range left[1:] {
			remains += other.Size
		}
		return l.Limits.RetentionBytes >= 0 && remains >= l.Limits.RetentionBytes
	})
	pass(Time, func(p piece) bool {
		return l.Limits.RetentionMs >= 0 && p.LargestMs < l.NowMs-l.Limits.RetentionMs
	})
	return gone
}

func anyLog(t *rapid.T) Log {
	l := Log{NowMs: 1000}
	end := rapid.Int64Range(0, 5).Draw(t, "first base")
	for range rapid.IntRange(1, 7).Draw(t, "segments") {
		l.Segments = append(l.Segments, Segment{end, rapid.Int64Range(0, 4).Draw(t, "size"),
			rapid.Int64Range(980, 1005).Draw(t, "largest")})
		end += rapid.Int64Range(1, 4).Draw(t, "offsets")
	}
	l.EndOffset = end
	l.StartOffset = rapid.Int64Range(l.Segments[0].Base, end).Draw(t, "log start")
	l.HighWatermark = end
	if rapid.Bool().Draw(t, "lagging") {
		l.HighWatermark = rapid.Int64Range(l.StartOffset, end).Draw(t, "high watermark")
	}
	l.Limits = Limits{
		Delete: rapid.IntRange(0, 3).Draw(t, "delete") > 0, Compact: rapid.Bool().Draw(t, "compact"),
		RetentionMs:    rapid.Int64Range(-1, 22).Draw(t, "retention.ms"),
		RetentionBytes: rapid.Int64Range(-1, 20).Draw(t, "retention.bytes"),
		Tiered:         rapid.IntRange(0, 4).Draw(t, "tiered") == 0,
	}
	return l
}

func TestRulesEqualSlowRules(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := anyLog(t)
		want := slowRules(&l)
		for i, v := range Evaluate(&l) {
			if v.Rule != want[l.Segments[i].Base] {
				t.Fatalf("segment %d of %+v: %q, want %q", i, l, v.Rule, want[l.Segments[i].Base])
			}
			if (v.Rule == Keep) != (v.Hold != HoldNone) {
				t.Fatalf("segment %d of %+v: %+v both goes and is held", i, l, v)
			}
		}
	})
}

// TestTimesAreWhenSegmentsGo moves the clock to the time that a verdict gives: then, and not a millisecond before, the
// segment goes.
func TestTimesAreWhenSegmentsGo(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := anyLog(t)
		l.HighWatermark = l.EndOffset
		before := int64(math.MinInt64)
		for i, v := range Evaluate(&l) {
			if v.AtMs < before {
				t.Fatalf("segment %d of %+v goes at %d, before its predecessor", i, l, v.AtMs)
			}
			before = v.AtMs
			if v.Rule != Keep {
				if v.AtMs > l.NowMs {
					t.Fatalf("segment %d of %+v goes now, at %d", i, l, v.AtMs)
				}
				continue
			}
			at := func(nowMs int64) Rule {
				moved := l
				moved.NowMs = nowMs
				return Evaluate(&moved)[i].Rule
			}
			if v.AtMs == Never {
				if rule := at(1 << 50); rule != Keep {
					t.Fatalf("segment %d of %+v is to stay forever and goes by %s", i, l, rule)
				}
				continue
			}
			if at(v.AtMs) == Keep || at(v.AtMs-1) != Keep {
				t.Fatalf("segment %d of %+v goes at %d? then %q, before %q", i, l, v.AtMs, at(v.AtMs), at(v.AtMs-1))
			}
		}
	})
}
