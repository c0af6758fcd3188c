package metadata

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"kseg/internal/fixture"
	"kseg/logdir"
	"kseg/state"
)

// The snapshots of the case internal.
const (
	first  = "00000000000000000000-0000000000.checkpoint"
	second = "00000000000000000090-0000000001.checkpoint"
)

// internal is a copy of the case internal, changed, and its metadata log.
func internal(t *testing.T, change func(log string)) (*logdir.Set, Source) {
	t.Helper()
	dir := fixture.Dir(t, "4.4.0/internal")
	if change != nil {
		change(filepath.Join(dir, state.MetadataDir))
	}
	set, err := logdir.Open([]string{dir}, logdir.Options{})
	if err != nil {
		t.Fatal(err)
	}
	sources, problems := Sources(set, nil, 0)
	if len(sources) != 1 || len(problems) > 0 {
		t.Fatalf("%d sources, %v", len(sources), problems)
	}
	return set, sources[0]
}

// flip changes a byte of a file.
func flip(t *testing.T, name string, at int) {
	t.Helper()
	raw, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	raw[at] ^= 1
	if err := os.WriteFile(name, raw, 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestCheckSnapshots(t *testing.T) {
	for name, test := range map[string]struct {
		change func(log string)
		want   string // results, in the order of the snapshots
		why    string // of the last one
	}{
		"sound": {nil, "unchecked same", ""},
		"the first alone": {func(log string) { os.Remove(filepath.Join(log, second)) }, "unchecked",
			"it is where the log begins"},
		"the second alone": {func(log string) { os.Remove(filepath.Join(log, first)) }, "same", ""},
		"a bit of it":      {func(log string) { flip(t, filepath.Join(log, second), 200) }, "unchecked damaged", "checksum"},
		"a bit of the log": {func(log string) { flip(t, filepath.Join(log, "00000000000000000000.log"), 300) },
			"unchecked unchecked", "offsets are missing before it"},
		"no log": {func(log string) { os.Truncate(filepath.Join(log, "00000000000000000000.log"), 0) }, "unchecked unchecked",
			"the log ends at offset"},
		"of later": {func(log string) {
			os.Rename(filepath.Join(log, second), filepath.Join(log, "00000000000000000113-0000000001.checkpoint"))
		}, "unchecked differs", ""},
	} {
		_, source := internal(t, test.change)
		checks, err := CheckSnapshots(source)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		var results []string
		for _, c := range checks {
			results = append(results, c.Result)
		}
		if got := strings.Join(results, " "); got != test.want || !strings.Contains(checks[len(checks)-1].Why, test.why) {
			t.Errorf("%s: %s, %q, want %s, %q", name, got, checks[len(checks)-1].Why, test.want, test.why)
		}
	}
	_, source := internal(t, nil)
	if _, err := CheckSnapshots(Source{Display: "x", File: source.Partition.FileNamed(second)}); err == nil {
		t.Error("a file alone was checked")
	}
}

func TestChanges(t *testing.T) {
	_, source := internal(t, nil)
	at := func(offset int64) state.Point { return state.Point{Given: true, Offset: offset} }
	all, err := Changes(source, at(110), at(119), Filter{})
	if err != nil || all.From != 110 || all.To != 119 || len(all.Changes) == 0 {
		t.Fatalf("%+v, %v", all, err)
	}
	// What lies between two points lies between the first and a third one, or that and the second.
	for middle := int64(110); middle <= 119; middle++ {
		a, err := Changes(source, at(110), at(middle), Filter{})
		b, err2 := Changes(source, at(middle), at(119), Filter{})
		if err != nil || err2 != nil || len(a.Changes)+len(b.Changes) != len(all.Changes) {
			t.Errorf("%d changes up to %d and %d after it, %d in all; %v %v", len(a.Changes), middle, len(b.Changes),
				len(all.Changes), err, err2)
		}
	}
	if same, err := Changes(source, at(119), at(119), Filter{}); err != nil || len(same.Changes) > 0 {
		t.Errorf("from a point to itself: %+v, %v", same, err)
	}
	if _, err := Changes(source, at(119), at(110), Filter{}); err == nil {
		t.Error("a diff goes backward")
	}
}

func TestFilter(t *testing.T) {
	one, nine := int32(1), int32(9)
	topic := &state.Topic{Name: "orders", Partitions: map[int32]*state.Partition{0: {Topic: "orders",
		Replicas: []int32{1, 2}}}}
	config := &state.Config{Resource: state.Resource{Type: state.TopicResource, Name: "orders"}}
	broker := &state.Broker{ID: 1}
	for _, test := range []struct {
		filter                Filter
		topic, config, broker bool
	}{
		{Filter{}, true, true, true},
		{Filter{Topics: []string{"ord*"}}, true, true, false},
		{Filter{Topics: []string{"other"}}, false, false, false},
		{Filter{Exclude: []string{"ord*"}}, false, false, true},
		{Filter{Topics: []string{"*"}, Exclude: []string{"orders"}}, false, false, false},
		{Filter{Broker: &one}, true, false, true},
		{Filter{Broker: &nine}, false, false, false},
		{Filter{Kinds: []state.ThingKind{state.ConfigThing}}, false, true, false},
	} {
		got := [3]bool{test.filter.shows(topic, state.TopicThing), test.filter.shows(config, state.ConfigThing),
			test.filter.shows(broker, state.BrokerThing)}
		if want := [3]bool{test.topic, test.config, test.broker}; got != want {
			t.Errorf("%+v shows %v, want %v", test.filter, got, want)
		}
	}
}

// TestPlace moves, renames and removes what the image has.
func TestPlace(t *testing.T) {
	kinds := func(change func(dir string)) map[string]string {
		set, source := internal(t, func(log string) {
			if change != nil {
				change(filepath.Dir(log))
			}
		})
		_, im, _, _ := Newest([]Source{source}, state.Point{})
		all, problems := Place(set, im, "")
		if len(problems) > 0 {
			t.Errorf("%v", problems)
		}
		found := map[string]string{}
		for _, m := range all {
			found[m.Partition] = m.What
		}
		return found
	}
	rename := func(from, to string) func(string) {
		return func(dir string) {
			if err := os.Rename(filepath.Join(dir, from), filepath.Join(dir, to)); err != nil {
				t.Fatal(err)
			}
		}
	}
	sound := kinds(nil)
	if sound["clicks-0"] != "" || sound["many-10-0"] != "not_on_disk" {
		t.Errorf("sound: %v", sound)
	}
	moved := kinds(rename("clicks-2", "clicks-7"))
	if moved["clicks-2"] != "not_on_disk" || moved["clicks-7"] != "not_in_image" {
		t.Errorf("a partition with another number: %v", moved)
	}
	if got := kinds(rename("clicks-2", "nobody-0"))["nobody-0"]; got != "not_in_image" {
		t.Errorf("a topic that is not there: %q", got)
	}
	other := kinds(func(dir string) {
		raw := []byte("version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAABA\n")
		if err := os.WriteFile(filepath.Join(dir, "clicks-0", "partition.metadata"), raw, 0o644); err != nil {
			t.Fatal(err)
		}
	})
	if other["clicks-0"] != "other_topic_id" {
		t.Errorf("another topic id: %v", other)
	}
}
