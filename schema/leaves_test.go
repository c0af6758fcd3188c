package schema

import (
	"path"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"kseg/format"
	"kseg/internal/fixture"
)

// checkCover fails unless the leaves of h follow one another from the first to the last byte of b.
func checkCover(t *testing.T, h Half, b []byte) {
	t.Helper()
	pos := 0
	for l := range h.Leaves() {
		if l.Start != pos || l.End <= l.Start || l.End > len(b) || l.Path == "" {
			t.Fatalf("leaf %+v begins at %d in %x", l, pos, b)
		}
		pos = l.End
	}
	if pos != len(b) {
		t.Fatalf("leaves end at %d of %d bytes: %x", pos, len(b), b)
	}
}

// The members of a classic group are taken apart down to the topics that they subscribe to.
func TestLeavesOfAConsumerGroup(t *testing.T) {
	key := unhex("0002 0001 67")
	member := "0001 6d 0001 63 0001 68 00000005 00000012 0001 00000001 0001 74 ffffffff 00000000 99 00000002 0000"
	value := unhex("0000 0008 636f6e73756d6572 00000001 ffff ffff 00000001" + member)
	h := NewDecoder().Decode(Offsets, key, value).Value
	checkCover(t, h, value)
	var got []string
	for l := range h.Leaves() {
		got = append(got, l.Path+"="+l.Value)
	}
	want := []string{"version=0", "protocolType.length=8", `protocolType="consumer"`, "generation=1", "protocol=null",
		"leader=null", "members.length=1", "members[0].memberId.length=1", `members[0].memberId="m"`,
		"members[0].clientId.length=1", `members[0].clientId="c"`, "members[0].clientHost.length=1",
		`members[0].clientHost="h"`, "members[0].sessionTimeout=5", "members[0].subscription.length=18",
		"members[0].subscription.version=1", "members[0].subscription.topics.length=1",
		"members[0].subscription.topics[0].length=1", `members[0].subscription.topics[0]="t"`,
		"members[0].subscription.userData=null", "members[0].subscription.ownedPartitions.length=0",
		"members[0].subscription.trailing=", "members[0].assignment.length=2", `members[0].assignment="AAA="`}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// Every prefix of every real key and value, too, lies in leaves as a whole.
func TestLeavesCoverEveryByte(t *testing.T) {
	d := NewDecoder()
	for _, name := range fixture.Goldens(t, ".decoded.txt") {
		file := strings.TrimSuffix(name, ".decoded.txt")
		topic := TopicFor(path.Base(path.Dir(file)))
		eachRecord(t, fixture.Data(t, file), func(b *format.Batch, rec *format.Record) {
			if b.Control() {
				for n := range len(rec.Value) + 1 {
					if c := d.DecodeControl(rec.Key, rec.Value[:n]); c.Value.tape != nil {
						checkCover(t, c.Value, rec.Value[:n])
					}
				}
				return
			}
			for n := range len(rec.Value) + 1 {
				checkCover(t, d.Decode(topic, rec.Key, rec.Value[:n]).Value, rec.Value[:n])
			}
			for n := range len(rec.Key) + 1 {
				checkCover(t, d.Decode(topic, rec.Key[:n], rec.Value).Key, rec.Key[:n])
			}
		})
	}
}
