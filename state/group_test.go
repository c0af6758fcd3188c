package state

import (
	"encoding/json"
	"strconv"
	"strings"
	"testing"

	"kseg/internal/fixture"
	"kseg/logdir"
)

func openPartition(t testing.TB, dir string) *logdir.Partition {
	t.Helper()
	set, err := logdir.Open([]string{dir}, logdir.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if set.Operands[0].Partition == nil {
		t.Fatalf("%s is no partition", dir)
	}
	return set.Operands[0].Partition
}

// compareGroups holds folded groups and share states against what a broker answers.
func compareGroups(t *testing.T, groups []*Group, shares []*ShareState, im *Image, want map[string]adminGroup) {
	t.Helper()
	seen := map[string]bool{}
	for _, g := range groups {
		seen[g.ID] = true
		w, ok := want[g.ID]
		if !ok {
			t.Errorf("the broker knows no group %s: %+v", g.ID, g)
			continue
		}
		if !strings.EqualFold(string(g.Kind), w.Type) || g.State != w.State || g.Kind == ClassicKind && g.Protocol != w.Protocol {
			t.Errorf("%s is %s, %s, %q; want %+v", g.ID, g.Kind, g.State, g.Protocol, w)
		}
		offsets := 0
		for _, c := range g.Offsets {
			if c.Pending {
				continue
			}
			offsets++
			var o adminOffset
			if err := json.Unmarshal(w.Offsets[c.Topic+"-"+strconv.Itoa(int(c.Partition))], &o); err != nil {
				t.Errorf("%s %s-%d: %+v, the broker has %s", g.ID, c.Topic, c.Partition, c, w.Offsets)
			} else if o.Offset != c.Offset || o.LeaderEpoch != int64(c.LeaderEpoch) || o.Metadata != c.Metadata {
				t.Errorf("%s %s-%d: %+v, want %+v", g.ID, c.Topic, c.Partition, c, o)
			}
		}
		for _, s := range shares {
			if s.Group != g.ID {
				continue
			}
			offsets++
			topic := im.Topics()[s.TopicID]
			if topic == nil {
				t.Errorf("%s: no topic has the id %s", g.ID, s.TopicID)
				continue
			}
			if got := string(w.Offsets[topic.Name+"-"+strconv.Itoa(int(s.Partition))]); got != strconv.FormatInt(s.StartOffset, 10) {
				t.Errorf("%s %s-%d starts at %d, want %s", g.ID, topic.Name, s.Partition, s.StartOffset, got)
			}
		}
		if offsets != len(w.Offsets) {
			t.Errorf("%s has %d offsets, want %d", g.ID, offsets, len(w.Offsets))
		}
	}
	for name := range want {
		if !seen[name] {
			t.Errorf("no group %s", name)
		}
	}
}

func TestGroupsEqualWhatABrokerAnswers(t *testing.T) {
	im, err := openImage(t, fixture.Dir(t, "4.4.0/internal/__cluster_metadata-0"))
	if err != nil {
		t.Fatal(err)
	}
	l := FoldOffsets(openPartition(t, fixture.Dir(t, "4.4.0/internal/__consumer_offsets-0")), OffsetsOptions{})
	s := FoldShareState(openPartition(t, fixture.Dir(t, "4.4.0/internal/__share_group_state-0")), OffsetsOptions{})
	if len(l.Lost)+len(l.Problems)+len(s.Lost)+len(s.Problems)+l.Newer+s.Newer > 0 || l.EndOffset != 44 || s.EndOffset != 4 {
		t.Errorf("lost %v %v, problems %v %v, ends %d %d", l.Lost, s.Lost, l.Problems, s.Problems, l.EndOffset, s.EndOffset)
	}
	compareGroups(t, l.Groups(), s.States(), im, goldenAnswers(t).Groups)
}
