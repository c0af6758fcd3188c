package state

import (
	"encoding/base64"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"kseg/format"
	"kseg/internal/fixture"
	"kseg/logdir"
)

func openImage(t testing.TB, dir string) (*Image, error) {
	t.Helper()
	set, err := logdir.Open([]string{dir}, logdir.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return ReadImage(set.Operands[0].Partition)
}

// kafkaImage folds what the real tool printed of a metadata log, from its first offset on and without any snapshot: a
// second way to the same image.
func kafkaImage(t *testing.T, golden string) *Image {
	t.Helper()
	im := newImage()
	for line := range strings.Lines(string(fixture.Golden(t, golden))) {
		_, payload, ok := strings.Cut(line, " payload: ")
		if !ok {
			continue
		}
		var rec struct {
			Type string
			Data struct {
				Name, TopicID, ResourceName string
				ResourceType                ResourceType
				Value                       any
				PartitionID                 int32
				Replicas                    []int32
				Leader                      *int32
				Directories                 []string
			}
		}
		if err := json.Unmarshal([]byte(payload), &rec); err != nil {
			t.Fatalf("%s: %v", payload, err)
		}
		d := rec.Data
		id, _ := format.ParseUUID(d.TopicID)
		switch rec.Type {
		case "TOPIC_RECORD":
			im.topics[id] = &Topic{Name: d.Name, ID: id, Partitions: map[int32]*Partition{}}
			im.names[d.Name] = id
		case "REMOVE_TOPIC_RECORD":
			im.removeTopic(Origin{}, id)
		case "PARTITION_RECORD":
			im.topics[id].Partitions[d.PartitionID] = &Partition{Replicas: d.Replicas, Directories: directories(d.Directories),
				Leader: *d.Leader}
		case "PARTITION_CHANGE_RECORD":
			p := im.topics[id].Partitions[d.PartitionID]
			if d.Leader != nil {
				p.Leader = *d.Leader
			}
			if d.Directories != nil {
				p.Directories = directories(d.Directories)
			}
		case "CONFIG_RECORD":
			r := Resource{d.ResourceType, d.ResourceName}
			if im.configs[r] == nil {
				im.configs[r] = map[string]*Config{}
			}
			delete(im.configs[r], d.Name)
			if d.Value != nil {
				im.configs[r][d.Name] = &Config{Value: d.Value.(string)}
			}
		}
	}
	return im
}

func directories(texts []string) (ids []format.UUID) {
	for _, text := range texts {
		raw, _ := base64.RawURLEncoding.DecodeString(text)
		ids = append(ids, format.UUID(raw))
	}
	return ids
}

// onlyPlacement compares topics and configs in what kafkaImage reads.
var onlyPlacement = cmp.Options{
	cmp.Transformer("topic", func(t Topic) any { return []any{t.Name, t.ID, t.Partitions} }),
	cmp.Transformer("partition", func(p Partition) any { return []any{p.Replicas, p.Directories, p.Leader} }),
	cmp.Transformer("config", func(c Config) string { return c.Value }),
}

func TestImageEqualsWhatTheRealToolPrints(t *testing.T) {
	for _, test := range []struct {
		dir            string
		snapshot, end  int64
		topics, config int
	}{
		{"4.4.0/internal/__cluster_metadata-0", 90, 137, 14, 14},
		{"4.4.0/logdirs/clean/meta/__cluster_metadata-0", 0, 155, 6, 6},
	} {
		im, err := openImage(t, fixture.Dir(t, test.dir))
		if err != nil {
			t.Fatal(err)
		}
		if len(im.Problems) > 0 || im.SnapshotOffset != test.snapshot || im.EndOffset != test.end {
			t.Errorf("%s: snapshot %d, end %d, problems %v; want %d, %d", test.dir, im.SnapshotOffset, im.EndOffset, im.Problems,
				test.snapshot, test.end)
		}
		want := kafkaImage(t, test.dir+"/00000000000000000000.log.decoded.txt")
		if len(want.topics) != test.topics || len(want.configs) < test.config {
			t.Fatalf("%s: the tool's text has %d topics and %d configs", test.dir, len(want.topics), len(want.configs))
		}
		if diff := cmp.Diff(want.topics, im.topics, onlyPlacement); diff != "" {
			t.Errorf("%s: topics: %s", test.dir, diff)
		}
		if diff := cmp.Diff(want.names, im.names); diff != "" {
			t.Errorf("%s: names: %s", test.dir, diff)
		}
		if diff := cmp.Diff(want.configs, im.configs, onlyPlacement, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s: configs: %s", test.dir, diff)
		}
	}
}

// TestSnapshotsAndLogAgree leaves the snapshots away: the whole log alone comes to the same.
func TestSnapshotsAndLogAgree(t *testing.T) {
	dir := fixture.Dir(t, "4.4.0/internal/__cluster_metadata-0")
	with, err := openImage(t, dir)
	if err != nil {
		t.Fatal(err)
	}
	snapshots, _ := filepath.Glob(filepath.Join(dir, "*.checkpoint"))
	if len(snapshots) != 2 {
		t.Fatalf("%d snapshots", len(snapshots))
	}
	for _, f := range snapshots {
		if err := os.Remove(f); err != nil {
			t.Fatal(err)
		}
	}
	without, err := openImage(t, dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, kind := range ThingKinds {
		with, without := with.Things(kind), without.Things(kind)
		if len(with) == 0 && kind != TokenThing || !slices.EqualFunc(with, without, Same) {
			t.Errorf("%s: %v with the snapshot, %v without", kind, with, without)
		}
	}
}

func TestASnapshotWithoutFooterIsPassedOver(t *testing.T) {
	dir := fixture.Dir(t, "4.4.0/internal/__cluster_metadata-0")
	newest := filepath.Join(dir, "00000000000000000090-0000000001.checkpoint")
	data, err := os.ReadFile(newest)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(newest, data[:len(data)-70], 0o644); err != nil {
		t.Fatal(err)
	}
	im, err := openImage(t, dir)
	if err != nil {
		t.Fatal(err)
	}
	if im.SnapshotOffset != 0 || im.EndOffset != 137 || len(im.Problems) != 1 || !strings.Contains(im.Problems[0].Error(),
		"no footer") {
		t.Errorf("snapshot %d, end %d, problems %v", im.SnapshotOffset, im.EndOffset, im.Problems)
	}
	if value, _ := im.Config(Resource{TopicResource, "clicks"}, "retention.ms"); value != "86400000" {
		t.Errorf("clicks has retention.ms %q", value)
	}
}

func TestMissingRecordsAreAProblem(t *testing.T) {
	dir := fixture.Dir(t, "4.4.0/internal/__cluster_metadata-0")
	if err := os.Rename(filepath.Join(dir, "00000000000000000000.log"),
		filepath.Join(dir, "00000000000000000100.log")); err != nil {
		t.Fatal(err)
	}
	im, err := openImage(t, dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(im.Problems) == 0 || !strings.Contains(im.Problems[0].Error(), "offsets 90 to 99 are missing") {
		t.Errorf("problems %v", im.Problems)
	}
}

func TestNoMetadataIsAnError(t *testing.T) {
	dir := filepath.Join(t.TempDir(), MetadataDir)
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "00000000000000000000.log"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := openImage(t, dir); err == nil {
		t.Error("an empty log has an image")
	}
}

// metadataLogOf writes a metadata log of one batch whose records have these values.
func metadataLogOf(t testing.TB, values ...[]byte) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), MetadataDir)
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	var records []fixture.Record
	for i, value := range values {
		records = append(records, fixture.Record{Offset: int64(i), TimestampMs: 1700000000000, Value: value})
	}
	if err := os.WriteFile(filepath.Join(dir, "00000000000000000000.log"), fixture.AppendBatch(nil,
		fixture.Batch{Records: records}), 0o644); err != nil {
		t.Fatal(err)
	}
	return dir
}

// text is a compact string.
func text(s string) string { return string(rune(len(s)+1)) + s }

// setConfig is the record that sets the retention.ms of topic t.
func setConfig(value string) []byte {
	return []byte("\x01\x04\x00\x02" + text("t") + text("retention.ms") + text(value) + "\x00")
}

func TestTransactionsCountWhenTheyEnd(t *testing.T) {
	begin, end, abort := []byte("\x01\x17\x00\x00"), []byte("\x01\x18\x00\x00"), []byte("\x01\x19\x00\x00")
	tests := []struct {
		name     string
		values   [][]byte
		want     string
		problems int
	}{
		{"alone", [][]byte{setConfig("1")}, "1", 0},
		{"ended", [][]byte{setConfig("1"), begin, setConfig("2"), setConfig("3"), end}, "3", 0},
		{"aborted", [][]byte{setConfig("1"), begin, setConfig("2"), abort}, "1", 0},
		{"aborted, then another", [][]byte{begin, setConfig("2"), abort, begin, setConfig("3"), end, setConfig("4")}, "4", 0},
		{"not ended", [][]byte{setConfig("1"), begin, setConfig("2")}, "1", 1},
		{"begun twice", [][]byte{setConfig("1"), begin, setConfig("2"), begin, setConfig("3"), end}, "3", 0},
		{"a type of the future", [][]byte{setConfig("1"), []byte("\x01\x63\x00\x00")}, "1", 0},
		{"broken", [][]byte{setConfig("1"), setConfig("2")[:9]}, "1", 1},
	}
	for _, test := range tests {
		im, err := openImage(t, metadataLogOf(t, test.values...))
		if err != nil {
			t.Fatal(err)
		}
		if value, _ := im.Config(Resource{TopicResource, "t"}, "retention.ms"); value != test.want ||
			len(im.Problems) != test.problems {
			t.Errorf("%s: %q, problems %v; want %q", test.name, value, im.Problems, test.want)
		}
	}
}

// TestRemovedTopicsLoseTheirConfigs creates a topic of the same name again. It begins without settings, but for those
// that a node which starts has never had apart: of a topic that came and went in one delta.
func TestRemovedTopicsLoseTheirConfigs(t *testing.T) {
	id := func(n byte) string { return strings.Repeat("\x00", 15) + string([]byte{n}) }
	topic := func(n byte) []byte { return []byte("\x01\x02\x00" + text("t") + id(n) + "\x00") }
	remove := func(n byte) []byte { return []byte("\x01\x09\x00" + id(n) + "\x00") }
	dir := metadataLogOf(t, topic(101), setConfig("1"), remove(101), topic(102), remove(101))
	im, err := openImage(t, dir)
	if err != nil || len(im.Problems) > 0 {
		t.Fatal(err, im.Problems)
	}
	value, ok := im.Config(Resource{TopicResource, "t"}, "retention.ms")
	if left := im.Things(ConfigThing); !ok || value != "1" || !left[0].(*Config).Leftover {
		t.Errorf("in one delta the new topic has retention.ms %q: %+v", value, left)
	}
	// The same in two segments, the second of which begins with the removal.
	split := metadataLogOf(t, topic(101), setConfig("1"))
	second := fixture.AppendBatch(nil, fixture.Batch{Records: []fixture.Record{{Offset: 2, Value: remove(101)},
		{Offset: 3, Value: topic(102)}}})
	if err := os.WriteFile(filepath.Join(split, "00000000000000000002.log"), second, 0o644); err != nil {
		t.Fatal(err)
	}
	apart, err := openImage(t, split)
	if err != nil || len(apart.Problems) > 0 {
		t.Fatal(err, apart.Problems)
	}
	if value, ok := apart.Config(Resource{TopicResource, "t"}, "retention.ms"); ok {
		t.Errorf("the new topic has retention.ms %q", value)
	}
	if diff := im.Unexplained(apart); len(diff) > 0 {
		t.Errorf("a snapshot may have it or not: %+v", diff)
	}
	if got := im.Topic("t"); got == nil || got.ID[15] != 102 {
		t.Errorf("topic t is %+v", got)
	}
}

// FuzzImage folds damaged metadata: nothing may panic, and every problem is said once.
func FuzzImage(f *testing.F) {
	for _, name := range []string{"00000000000000000000.log", "00000000000000000090-0000000001.checkpoint"} {
		f.Add(fixture.Data(f, "4.4.0/internal/__cluster_metadata-0/"+name), name == "00000000000000000000.log")
	}
	f.Fuzz(func(t *testing.T, data []byte, log bool) {
		dir := filepath.Join(t.TempDir(), MetadataDir)
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		name := "00000000000000000090-0000000001.checkpoint"
		if log {
			name = "00000000000000000000.log"
		}
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o644); err != nil {
			t.Fatal(err)
		}
		im, err := openImage(t, dir)
		if err != nil {
			return
		}
		if len(im.Problems) > maxProblems {
			t.Errorf("%d problems", len(im.Problems))
		}
		for id, topic := range im.Topics() {
			if topic.ID != id {
				t.Errorf("topic %q is filed under another id", topic.Name)
			}
		}
	})
}

// TestFlippedBytesAreNoticed flips bytes of a metadata log all over: each gives an image with problems, or what a log
// gives that lacks its last batch, which may be torn.
func TestFlippedBytesAreNoticed(t *testing.T) {
	dir := fixture.Dir(t, "4.4.0/internal/__cluster_metadata-0")
	name := filepath.Join(dir, "00000000000000000000.log")
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(data); i += 29 {
		data[i] ^= 0xff
		if err := os.WriteFile(name, data, 0o644); err != nil {
			t.Fatal(err)
		}
		data[i] ^= 0xff
		if im, err := openImage(t, dir); err == nil && len(im.Problems) == 0 && im.EndOffset < 136 {
			t.Fatalf("byte %d: the log ends at %d without a problem", i, im.EndOffset)
		}
	}
}

// TestASnapshotIsTheFoldOfTheLogBeforeIt holds every thing of the snapshot at 90 against the log up to there.
func TestASnapshotIsTheFoldOfTheLogBeforeIt(t *testing.T) {
	dir := fixture.Dir(t, "4.4.0/internal/__cluster_metadata-0")
	set, err := logdir.Open([]string{dir}, logdir.Options{})
	if err != nil {
		t.Fatal(err)
	}
	p := set.Operands[0].Partition
	snapshots := Snapshots(p)
	if len(snapshots) != 2 || snapshots[1].Name.Base != 90 {
		t.Fatalf("snapshots %v", snapshots)
	}
	before := int64(90)
	folded, err := FoldImage(p, FoldOptions{Before: &before, From: snapshots[0]})
	if err != nil {
		t.Fatal(err)
	}
	snapshot, err := ReadImageFile(snapshots[1], FoldOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if folded.EndOffset != 90 || len(folded.Lost)+len(snapshot.Lost) > 0 {
		t.Errorf("end %d, lost %v and %v", folded.EndOffset, folded.Lost, snapshot.Lost)
	}
	for _, kind := range ThingKinds {
		if a, b := folded.Things(kind), snapshot.Things(kind); !slices.EqualFunc(a, b, Same) {
			t.Errorf("%s: %v by the log, %v by the snapshot", kind, a, b)
		}
	}
	off := before - 1
	if folded, err = FoldImage(p, FoldOptions{Before: &off, From: snapshots[0]}); err != nil || folded.EndOffset != 89 {
		t.Errorf("before 89: end %d, %v", folded.EndOffset, err)
	}
}

// TestChangesAreObserved holds that replaying the changes over an older image gives the newer one.
func TestChangesAreObserved(t *testing.T) {
	dir := fixture.Dir(t, "4.4.0/internal/__cluster_metadata-0")
	set, err := logdir.Open([]string{dir}, logdir.Options{})
	if err != nil {
		t.Fatal(err)
	}
	p := set.Operands[0].Partition
	older, err := ReadImageFile(Snapshots(p)[0], FoldOptions{})
	if err != nil {
		t.Fatal(err)
	}
	things := older.things
	im, err := FoldImage(p, FoldOptions{From: Snapshots(p)[0], Observe: func(c Change) {
		key := thingKey{}
		if c.Before != nil {
			key = c.Before.key()
		}
		if c.After != nil {
			key = c.After.key()
		}
		if !Same(things[key], c.Before) {
			t.Errorf("offset %d: %v was %v before", c.Origin.Offset, c.Before, things[key])
		}
		things[key] = c.After
		if c.After == nil {
			delete(things, key)
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	if len(things) != len(im.things) {
		t.Errorf("%d things by changes, %d in the image", len(things), len(im.things))
	}
	for key, thing := range im.things {
		if !Same(thing, things[key]) {
			t.Errorf("%v by changes, %v in the image", things[key], thing)
		}
	}
}

// TestAHoleMakesUnsure breaks the batch of one record: what was said before it is unsure, what is said after it is not.
func TestAHoleMakesUnsure(t *testing.T) {
	var log []byte
	for i, value := range []string{"1", "2", "3"} {
		record := fixture.Record{Offset: int64(i), TimestampMs: 1700000000000, Value: setConfig(value)}
		if i == 0 {
			record.Value = []byte("\x01\x0c\x00" + text("group.version") + "\x00\x01\x00")
		}
		batch := fixture.AppendBatch(nil, fixture.Batch{Records: []fixture.Record{record}})
		if i == 1 {
			batch[len(batch)-2] ^= 1
		}
		log = append(log, batch...)
	}
	dir := filepath.Join(t.TempDir(), MetadataDir)
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(dir, "00000000000000000000.log")
	for _, test := range []struct {
		log    []byte
		lost   Lost
		unsure int
	}{{log, Lost{First: 1, Last: 1}, 1}, {log[:len(log)*2/3+4], Lost{First: 1, Open: true}, 1}} {
		if err := os.WriteFile(name, test.log, 0o644); err != nil {
			t.Fatal(err)
		}
		im, err := openImage(t, dir)
		if err != nil {
			t.Fatal(err)
		}
		unsure := 0
		for _, kind := range ThingKinds {
			for _, thing := range im.Things(kind) {
				if im.Unsure(thing) {
					unsure++
				}
			}
		}
		if len(im.Lost) != 1 || im.Lost[0] != test.lost || unsure != test.unsure {
			t.Errorf("lost %v, %d unsure; want %v, %d", im.Lost, unsure, test.lost, test.unsure)
		}
	}
}
