package format_test

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"path"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"kseg/format"
	"kseg/internal/fixture"
)

// baseOf is the base offset that a segment file's name gives.
func baseOf(t testing.TB, name string) int64 {
	t.Helper()
	digits, _, _ := strings.Cut(path.Base(name), ".")
	base, err := strconv.ParseInt(digits, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return base
}

// dumpLines is what the real tool prints of a file, after its "Dumping" line.
func dumpLines(t testing.TB, name string) ([]string, bool) {
	t.Helper()
	out, ok := fixture.FindGolden(t, name+".dump.txt")
	if !ok {
		return nil, false
	}
	var lines []string
	s := bufio.NewScanner(bytes.NewReader(out))
	for s.Scan() {
		if !strings.HasPrefix(s.Text(), "Dumping ") {
			lines = append(lines, s.Text())
		}
	}
	return lines, true
}

// checkDump compares our lines of every file with that suffix with the real tool's.
func checkDump(t *testing.T, suffix string, print func(name string, raw []byte) []string) {
	t.Helper()
	seen := 0
	for _, name := range fixture.Files(t, suffix) {
		want, ok := dumpLines(t, name)
		if exit, bad := fixture.FindGolden(t, name+".exit"); !ok || bad && !bytes.HasPrefix(exit, []byte("exit: 0")) {
			continue // the tool died
		}
		seen++
		got := print(name, fixture.Data(t, name))
		if len(want) == 1 && strings.HasSuffix(want[0], " is empty.") {
			want = nil
		}
		if strings.Join(got, "\n") != strings.Join(want, "\n") {
			t.Errorf("%s:\ngot  %.500q\nwant %.500q", name, got, want)
		}
	}
	if seen < 10 {
		t.Errorf("only %d files end in %s", seen, suffix)
	}
}

func TestOffsetIndexOfRealFiles(t *testing.T) {
	checkDump(t, ".index", func(name string, raw []byte) []string {
		x := format.NewOffsetIndex(raw, baseOf(t, name))
		logical := x.Logical()
		if logical.Len() == 0 && x.Len() > 0 {
			logical = x.Head(1) // the tool prints one bogus line for a file of zeros
		}
		x = logical
		var lines []string
		for i := range x.Len() {
			e := x.Entry(i)
			lines = append(lines, fmt.Sprintf("offset: %d position: %d", e.Offset, e.Position))
		}
		return lines
	})
}

func TestTimeIndexOfRealFiles(t *testing.T) {
	checkDump(t, ".timeindex", func(name string, raw []byte) []string {
		x := format.NewTimeIndex(raw, baseOf(t, name))
		logical := x.Logical()
		if logical.Len() == 0 && x.Len() > 0 {
			logical = x.Head(1) // the tool prints one bogus line for a file of zeros
		}
		x = logical
		var lines []string
		for i := range x.Len() {
			e := x.Entry(i)
			lines = append(lines, fmt.Sprintf("timestamp: %d offset: %d", e.TimestampMs, e.Offset))
		}
		return lines
	})
}

func TestTxnIndexOfRealFiles(t *testing.T) {
	seen := 0
	for _, name := range fixture.Files(t, ".txnindex") {
		want, ok := dumpLines(t, name)
		if !ok {
			continue
		}
		x := format.NewTxnIndex(fixture.Data(t, name))
		n, err := x.Check()
		if err != nil || n != x.Len() || x.StrayBytes() != 0 {
			t.Errorf("%s: Check() = %d of %d, %v; %d stray bytes", name, n, x.Len(), err, x.StrayBytes())
		}
		var got []string
		for i := range n {
			e := x.Entry(i)
			got = append(got, fmt.Sprintf("version: %d producerId: %d firstOffset: %d lastOffset: %d lastStableOffset: %d",
				e.Version, e.ProducerID, e.FirstOffset, e.LastOffset, e.LastStableOffset))
		}
		if strings.Join(got, "\n") != strings.Join(want, "\n") {
			t.Errorf("%s:\ngot  %q\nwant %q", name, got, want)
		}
		seen++
	}
	if seen < 3 {
		t.Errorf("only %d transaction indexes", seen)
	}
}

// snapshotLine is an entry as kafka-dump-log prints it.
func snapshotLine(e format.ProducerEntry) string {
	txn := "OptionalLong.empty"
	if e.InTransaction() {
		txn = fmt.Sprintf("OptionalLong[%d]", e.CurrentTxnFirstOffset)
	}
	line := fmt.Sprintf("producerId: %d producerEpoch: %d coordinatorEpoch: %d currentTxnFirstOffset: %s "+
		"lastTimestamp: %d", e.ProducerID, e.ProducerEpoch, e.CoordinatorEpoch, txn, e.TimestampMs)
	if e.HasBatch() {
		line += fmt.Sprintf(" firstSequence: %d lastSequence: %d lastOffset: %d offsetDelta: %d timestamp: %d",
			e.FirstSequence(), e.LastSequence, e.LastOffset, e.OffsetDelta, e.TimestampMs)
	}
	return line
}

func TestProducerSnapshotOfRealFiles(t *testing.T) {
	checkDump(t, ".snapshot", func(name string, raw []byte) []string {
		s, err := format.DecodeProducerSnapshot(raw)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		var lines []string
		var entries []format.ProducerEntry
		for i := range s.Len() {
			entries = append(entries, s.Entry(i))
			lines = append(lines, snapshotLine(s.Entry(i)))
		}
		if again := format.AppendProducerSnapshot(nil, entries); !bytes.Equal(again, raw) {
			t.Errorf("%s: written again it differs", name)
		}
		return lines
	})
}

func TestCheckpointsOfRealFiles(t *testing.T) {
	entryLine := regexp.MustCompile(`^(\S+) (\d+) (\d+)$`)
	seen := 0
	for _, suffix := range []string{"recovery-point-offset-checkpoint", "log-start-offset-checkpoint",
		"replication-offset-checkpoint", "cleaner-offset-checkpoint"} {
		for _, name := range fixture.Files(t, suffix) {
			raw := fixture.Data(t, name)
			c, err := format.DecodeOffsetCheckpoint(raw)
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
			lines := strings.Split(strings.TrimSuffix(string(raw), "\n"), "\n")
			for i, e := range c.Entries {
				got := fmt.Sprintf("%s %d %d", e.Topic, e.Partition, e.Offset)
				if lines[i+2] != got || !entryLine.MatchString(got) || string(raw[e.Pos:e.Pos+e.Len]) != got || e.Number != i+3 {
					t.Errorf("%s: line %q read as %q at %+v", name, lines[i+2], got, e.Line)
				}
			}
			seen += len(c.Entries)
		}
	}
	if seen < 20 {
		t.Errorf("only %d checkpoint entries", seen)
	}
}

func TestSmallStateFilesOfRealBrokers(t *testing.T) {
	count := map[string]int{}
	each := func(suffix string, check func(name string, raw []byte) error) {
		for _, name := range fixture.Files(t, suffix) {
			count[suffix]++
			if err := check(name, fixture.Data(t, name)); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
	each("/leader-epoch-checkpoint", func(_ string, raw []byte) error {
		e, err := format.DecodeLeaderEpochs(raw)
		if i := e.OutOfOrder(); i >= 0 || len(e.Loaded()) != len(e.Entries) {
			return fmt.Errorf("entry %d out of order", i)
		}
		return err
	})
	each("/partition.metadata", func(_ string, raw []byte) error {
		m, err := format.DecodePartitionMetadata(raw)
		if err == nil && string(raw) != fmt.Sprintf("version: %d\ntopic_id: %s", m.Version, m.TopicID) {
			return fmt.Errorf("read as %+v", m)
		}
		return err
	})
	each("/meta.properties", func(name string, raw []byte) error {
		m, err := format.DecodeMetaProperties(raw)
		if err == nil && (!m.HasNodeID || m.Version == 1 && (!m.HasDirectoryID && !strings.HasPrefix(name, "3.")) ||
			m.Version == 1 && m.ClusterID == "") {
			return fmt.Errorf("read as %+v", m)
		}
		return err
	})
	each("/.kafka_cleanshutdown", func(_ string, raw []byte) error {
		c, err := format.DecodeCleanShutdown(raw)
		if err == nil && (len(raw) > 0) != (c.BrokerEpoch > 0) {
			return fmt.Errorf("read as %+v", c)
		}
		return err
	})
	each("/quorum-state", func(_ string, raw []byte) error {
		q, err := format.DecodeQuorumState(raw)
		if err == nil && (q.LeaderID != 1 || len(q.Voters) != 1 || q.Voters[0] != 1 || q.LeaderEpoch < 1 || q.VotedID != -1) {
			return fmt.Errorf("read as %+v", q)
		}
		return err
	})
	for suffix, least := range map[string]int{"/leader-epoch-checkpoint": 20, "/partition.metadata": 20,
		"/meta.properties":      5,
		"/.kafka_cleanshutdown": 3, "/quorum-state": 1} {
		if count[suffix] < least {
			t.Errorf("only %d files %s", count[suffix], suffix)
		}
	}
}

// checkError demands an *Error wrapping want, or no error if that is nil.
func checkError(t *testing.T, name string, err, want error) {
	t.Helper()
	if want == nil {
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		return
	}
	var e *format.Error
	if !errors.Is(err, want) || !errors.As(err, &e) {
		t.Errorf("%s: %v, want an *Error wrapping %q", name, err, want)
	}
}
