package groups

import (
	"context"
	"encoding/binary"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"kseg/format"
	"kseg/internal/fixture"
	"kseg/logdir"
	"kseg/render"
	"kseg/state"
)

func text16(s string) string { return string(binary.BigEndian.AppendUint16(nil, uint16(len(s)))) + s }

// commit is a record of __consumer_offsets of version 4, with the id of the topic if there is one.
func commit(group, topic string, partition int32, offset int64, id *format.UUID) fixture.Record {
	key := binary.BigEndian.AppendUint32([]byte("\x00\x01"+text16(group)+text16(topic)), uint32(partition))
	value := binary.BigEndian.AppendUint64([]byte{0, 4}, uint64(offset))
	value = append(value, "\xff\xff\xff\xff\x01"...)
	value = binary.BigEndian.AppendUint64(value, 1000)
	if id == nil {
		value = append(value, 0)
	} else {
		value = append(append(value, 1, 0, 16), id[:]...)
	}
	return fixture.Record{TimestampMs: 1000, Key: key, Value: value}
}

// write writes a segment of a batch, which begins at an offset.
func write(t *testing.T, dir string, base int64, records ...fixture.Record) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for i := range records {
		records[i].Offset = base + int64(i)
	}
	raw := fixture.AppendBatch(nil, fixture.Batch{Records: records})
	if err := os.WriteFile(filepath.Join(dir, format.SegmentFileName(base, format.KindLog)), raw, 0o644); err != nil {
		t.Fatal(err)
	}
}

func run(t *testing.T, o Options, dirs ...string) *Report {
	t.Helper()
	set, err := logdir.Open(dirs, logdir.Options{})
	if err != nil {
		t.Fatal(err)
	}
	o.Jobs = 2
	in := Find(set, nil)
	in.Bytes()
	return in.Run(context.Background(), o)
}

// TestWhereCommitsStand has commits at and around the ends of a log that begins at 5 and ends at 10.
func TestWhereCommitsStand(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "t-0"), 5, make([]fixture.Record, 5)...)
	var records []fixture.Record
	type place struct {
		group  string
		offset int64
		lag    int64
		out    string
	}
	tests := []place{{"beyond", 11, -1, "beyond_log_end"}, {"below", 4, 6, "below_log_start"}, {"start", 5, 5, ""},
		{"inside", 7, 3, ""}, {"end", 10, 0, ""}}
	for _, test := range tests {
		records = append(records, commit(test.group, "t", 0, test.offset, nil))
	}
	write(t, filepath.Join(dir, "__consumer_offsets-0"), 0, append(records, commit("elsewhere", "absent", 3, 7, nil))...)
	r := run(t, Options{}, dir)
	var order []string
	for _, g := range r.Groups {
		order = append(order, g.ID)
		l := g.Lines[0]
		lag, known := l.Lag()
		i := slices.IndexFunc(tests, func(test place) bool { return test.group == g.ID })
		if i < 0 {
			if known || l.HasLog {
				t.Errorf("%s: a log that is not here: %+v", g.ID, l)
			}
			continue
		}
		if want := tests[i]; !known || lag != want.lag || l.OutOfRange != want.out {
			t.Errorf("%s: lag %d, %v, %q, want %+v", g.ID, lag, known, l.OutOfRange, want)
		}
	}
	if want := "below beyond start inside elsewhere end"; strings.Join(order, " ") != want {
		t.Errorf("the order is %v, want %s", order, want)
	}
}

func TestLag(t *testing.T) {
	line := func(offset int64, share *state.ShareState) *Line {
		return &Line{CommittedOffset: state.CommittedOffset{Offset: offset}, Share: share, Log: state.LogBounds{End: 10},
			HasLog: true}
	}
	for _, test := range []struct {
		line  *Line
		lag   int64
		known bool
	}{
		{line(4, nil), 6, true},
		{line(4, &state.ShareState{DeliveryComplete: -1}), 6, true},
		{line(4, &state.ShareState{DeliveryComplete: 5}), 1, true},
		{line(-1, &state.ShareState{DeliveryComplete: -1}), 11, false},
		{&Line{}, 0, false},
	} {
		if lag, known := test.line.Lag(); known != test.known || known && lag != test.lag {
			t.Errorf("%+v: %d, %v", test.line, lag, known)
		}
	}
	g := &Group{Lines: []*Line{line(4, nil), line(12, nil), {CommittedOffset: state.CommittedOffset{Pending: true},
		HasLog: true}}}
	if sum, known, _ := g.Lag(); sum != 6 || !known {
		t.Errorf("a group's lag is %d, %v: what is beyond the end or pending does not count", sum, known)
	}
}

// TestRecreatedTopics commits for the topic that is there, and for one of the same name before it.
func TestRecreatedTopics(t *testing.T) {
	dir := fixture.Dir(t, "4.4.0/internal")
	if err := os.RemoveAll(filepath.Join(dir, "__consumer_offsets-0")); err != nil {
		t.Fatal(err)
	}
	set, err := logdir.Open([]string{dir}, logdir.Options{})
	if err != nil {
		t.Fatal(err)
	}
	now := state.OpenCluster(set, nil).Settings(nil).Image.Topic("clicks").ID
	write(t, filepath.Join(dir, "__consumer_offsets-0"), 0, commit("old", "clicks", 0, 3, &format.UUID{1}),
		commit("same", "clicks", 0, 3, &now),
		commit("silent", "clicks", 0, 3, nil), commit("unknown", "gone", 0, 3, &format.UUID{1}))
	r := run(t, Options{Groups: []string{"old", "same", "silent", "unknown"}}, dir)
	for _, g := range r.Groups {
		if g.Lines[0].Recreated != (g.ID == "old") {
			t.Errorf("%s: recreated is %v", g.ID, g.Lines[0].Recreated)
		}
	}
	if text := string(r.AppendText(nil, Style{Theme: render.NewTheme(false), Width: 200})); len(r.Groups) != 4 ||
		strings.Count(text, "of a topic of that name that was deleted since") != 1 {
		t.Errorf("%d groups\n%s", len(r.Groups), text)
	}
}

// TestCopies takes of two copies of a partition the one that goes further, and says so.
func TestCopies(t *testing.T) {
	a, b := t.TempDir(), t.TempDir()
	write(t, filepath.Join(a, "__consumer_offsets-0"), 0, commit("g", "t", 0, 1, nil))
	write(t, filepath.Join(b, "__consumer_offsets-0"), 0, commit("g", "t", 0, 1, nil), commit("g", "t", 0, 2, nil))
	for _, dirs := range [][]string{{a, b}, {b, a}} {
		r := run(t, Options{}, dirs...)
		if len(r.Groups) != 1 || r.Groups[0].Lines[0].Offset != 2 || len(r.Notes) != 1 ||
			!strings.HasPrefix(r.Notes[0], filepath.Join(a, "__consumer_offsets-0")+" is passed over") {
			t.Errorf("%d groups, %q", len(r.Groups), r.Notes)
		}
	}
}

// TestAbsentGroups says of a group that was asked for where it would be.
func TestAbsentGroups(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "__consumer_offsets-12"), 0, commit("my-group", "t", 0, 1, nil))
	for _, test := range []struct{ group, partition, note string }{
		{"my-group", "", ""},
		{"spec-g", "__consumer_offsets-1", "group spec-g is in __consumer_offsets-1, which is not among the inputs (if " +
			"__consumer_offsets has 50"},
		{"*-g", "", ""},
	} {
		r := run(t, Options{Groups: []string{test.group}}, dir)
		if (len(r.Elsewhere) > 0) != (test.partition != "") || test.partition != "" &&
			r.Elsewhere[0].Partition != test.partition {
			t.Errorf("%s: %+v", test.group, r.Elsewhere)
		}
		if !strings.HasPrefix(strings.Join(r.Notes, "\n"), test.note) {
			t.Errorf("%s: %q", test.group, r.Notes)
		}
	}
}
