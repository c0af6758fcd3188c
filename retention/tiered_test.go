package retention

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"kseg/format"
	"kseg/internal/fixture"
)

// remoteID is the part of a record of __remote_log_metadata that names a segment of partition 0 of a topic.
func remoteID(topic string, segment byte) []byte {
	out := append([]byte{byte(len(topic) + 1)}, topic...)
	out = append(out, make([]byte, 16+4+1)...) // topic id, partition, tags
	return append(append(out, segment), make([]byte, 15+1)...)
}

const copyStarted, copyFinished, deleteStarted = 0, 1, 2

// remoteSegment begins a copy.
func remoteSegment(topic string, segment byte, end int64, state byte) []byte {
	out := append([]byte{1, 0, 0}, remoteID(topic, segment)...)
	out = binary.BigEndian.AppendUint64(out, 0)
	out = binary.BigEndian.AppendUint64(out, uint64(end))
	out = append(out, make([]byte, 4+8+8)...)
	out = append(out, 2)
	out = append(out, make([]byte, 4+8+1)...) // one leader epoch
	out = append(out, make([]byte, 4+1)...)
	return append(out, state, 0)
}

// remoteUpdate says what became of it.
func remoteUpdate(topic string, segment, state byte) []byte {
	out := append([]byte{1, 1, 0}, remoteID(topic, segment)...)
	out = append(out, make([]byte, 4+8+1)...)
	return append(out, state, 0)
}

func writeRemoteLog(t testing.TB, logDir string, values ...[]byte) {
	t.Helper()
	dir := filepath.Join(logDir, "__remote_log_metadata-7")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	var log []byte
	for i, value := range values {
		rec := fixture.Record{Offset: int64(i), TimestampMs: nowMs, Value: value}
		log = fixture.AppendBatch(log, fixture.Batch{Records: []fixture.Record{rec}})
	}
	if err := os.WriteFile(filepath.Join(dir, format.SegmentFileName(0, format.KindLog)), log, 0o644); err != nil {
		t.Fatal(err)
	}
}

// TestCopiesInRemoteStorage: what is not copied stays, unless it is below the log start offset.
func TestCopiesInRemoteStorage(t *testing.T) {
	for _, c := range []struct {
		name   string
		values [][]byte
		keeps  []int64
		says   string
	}{
		{"begun twice", [][]byte{remoteSegment("t", 1, 0, copyStarted), remoteSegment("t", 2, 0, copyStarted)},
			[]int64{0, 1, 2}, "has no finished copy of this partition"},
		{"one finished", [][]byte{remoteSegment("t", 1, 0, copyStarted), remoteUpdate("t", 1, copyFinished)}, []int64{1, 2},
			"has this partition copied up to offset 0"},
		{"all finished", [][]byte{remoteSegment("t", 1, 0, copyStarted), remoteUpdate("t", 1, copyFinished),
			remoteSegment("t", 2, 1, copyStarted), remoteUpdate("t", 2, copyFinished)}, []int64{2}, ""},
		{"given up", [][]byte{remoteSegment("t", 1, 1, copyStarted), remoteUpdate("t", 1, deleteStarted)}, []int64{0, 1, 2},
			"no finished copy"},
		{"of another topic", [][]byte{remoteSegment("u", 1, 1, copyStarted), remoteUpdate("u", 1, copyFinished)},
			[]int64{0, 1, 2}, "no finished copy"},
	} {
		for _, limit := range []string{"local.retention.ms=3600000", "local.retention.bytes=0"} {
			dir := t.TempDir()
			writePartition(t, filepath.Join(dir, "t-0"), segmentFiles{base: 0, stamps: []int64{hoursAgo(50)}},
				segmentFiles{base: 1, stamps: []int64{hoursAgo(49)}}, segmentFiles{base: 2, stamps: []int64{hoursAgo(48)}})
			writeRemoteLog(t, dir, c.values...)
			r := judge(t, Options{NowMs: nowMs, Given: given(t, "t:remote.storage.enable=true", "t:"+limit)}, dir)[1]
			var keeps []int64
			for i, s := range r.Segments {
				if s.Verdict.Rule == Keep {
					keeps = append(keeps, s.Base)
				}
				if waits := s.Verdict.Hold == HoldUncopied; waits != strings.Contains(r.Reason(i),
					"not copied to remote storage") && !s.Active() {
					t.Errorf("%s, %s: segment %d: %q", c.name, limit, s.Base, r.Reason(i))
				}
			}
			said := strings.Join(r.Warnings, " ")
			if !slices.Equal(keeps, c.keeps) || !strings.Contains(said, c.says) || c.says == "" && said != "" {
				t.Errorf("%s, %s: keeps %v, want %v: %q", c.name, limit, keeps, c.keeps, said)
			}
		}
	}
}
