package lookup

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"kseg/internal/fixture"
)

// A segment of the real LogSegment's answers: see testdata/README.md, *lookup.csv.
type answer struct {
	kind         string
	segment      int64
	query        int64
	key, value   string // what the index lookup gave
	found        string // offset, or the name of an exception, or ""
	position     string
	size         string
	timestamp    string
	leaderEpoch  string
	originalLine string
}

func readAnswers(t *testing.T, golden string) []answer {
	t.Helper()
	r := csv.NewReader(bytes.NewReader(fixture.Golden(t, golden)))
	r.FieldsPerRecord = -1
	rows, err := r.ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	var out []answer
	for _, row := range rows[1:] {
		segment, err1 := strconv.ParseInt(row[1], 10, 64)
		query, err2 := strconv.ParseInt(row[2], 10, 64)
		if err1 != nil || err2 != nil {
			t.Fatalf("%s: %v", golden, row)
		}
		row = append(row, "", "", "", "", "")
		out = append(out, answer{row[0], segment, query, row[3], row[4], row[5], row[6], row[7], row[8], row[9],
			strings.Join(row, ",")})
	}
	if len(out) == 0 {
		t.Fatalf("%s has no rows", golden)
	}
	return out
}

// loadSegments reads the segments of a partition directory as a broker opens them, cold: without dropping zeros.
func loadSegments(t testing.TB, dir string) map[int64]*Segment {
	t.Helper()
	logs, err := filepath.Glob(filepath.Join(dir, "*.log"))
	if err != nil || len(logs) == 0 {
		t.Fatalf("%s: no segments (%v)", dir, err)
	}
	read := func(name string) []byte {
		data, err := os.ReadFile(name)
		if err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		return data
	}
	out := map[int64]*Segment{}
	for _, name := range logs {
		stem := strings.TrimSuffix(name, ".log")
		base, err := strconv.ParseInt(filepath.Base(stem), 10, 64)
		if err != nil {
			continue
		}
		out[base] = NewSegment(base, read(name), read(stem+".index"), read(stem+".timeindex"), false, 1<<28)
	}
	return out
}

// answerOf is what our engine says, in the columns of the real one.
func answerOf(s *Segment, a answer) answer {
	got := answer{kind: a.kind, segment: a.segment, query: a.query}
	if a.kind == "offset" {
		e := s.Index.Lookup(a.query)
		got.key, got.value = fmt.Sprint(e.Offset), fmt.Sprint(e.Position)
		scan := s.Translate(a.query)
		switch {
		case scan.Err != nil:
			got.found = "CorruptRecordException"
		case scan.Found:
			got.found, got.position, got.size = fmt.Sprint(scan.Hit.BaseOffset), fmt.Sprint(scan.Hit.Position),
				fmt.Sprint(scan.Hit.Size)
		}
		return got
	}
	e := s.Time.Lookup(a.query)
	got.key, got.value = fmt.Sprint(e.TimestampMs), fmt.Sprint(e.Offset)
	scan := s.FindTimestamp(a.query, s.Base)
	switch {
	case scan.Err != nil:
		got.found = "CorruptRecordException"
	case scan.Found:
		got.found, got.timestamp = fmt.Sprint(scan.Offset), fmt.Sprint(scan.TimestampMs)
		if scan.LeaderEpoch >= 0 {
			got.leaderEpoch = fmt.Sprint(scan.LeaderEpoch)
		}
	}
	return got
}

func compareAnswers(t *testing.T, segments map[int64]*Segment, answers []answer) {
	t.Helper()
	bad := 0
	for _, want := range answers {
		s := segments[want.segment]
		if s == nil {
			t.Fatalf("no segment %d", want.segment)
		}
		got := answerOf(s, want)
		line := want.originalLine
		want.originalLine = ""
		if got != want {
			if bad++; bad > 10 {
				t.Fatal("and more")
			}
			t.Errorf("real: %s\nours: %+v", line, got)
		}
	}
}

// TestRealLookups holds the engine to every answer that the real LogSegment gave, over every directory that has some.
func TestRealLookups(t *testing.T) {
	for _, golden := range fixture.Goldens(t, "lookup.csv") {
		t.Run(golden, func(t *testing.T) {
			compareAnswers(t, loadSegments(t, directoryOf(t, golden)), readAnswers(t, golden))
		})
	}
}

// directoryOf is the partition that a file of answers is about: "a/b-0.lookup.csv", or "a/lookup.csv" for the only
// partition of the case.
func directoryOf(t *testing.T, golden string) string {
	if recipe, ok := strings.CutPrefix(golden, "damage/"); ok {
		return fixture.Damaged(t, filepath.Dir(recipe))
	}
	name, ok := strings.CutSuffix(golden, ".lookup.csv")
	if !ok {
		name = map[string]string{"4.4.0/tiny-batches/lookup.csv": "4.4.0/tiny-batches/tiny-0"}[golden]
	}
	_, intervalBytes, ok := otherInterval(name)
	if !ok {
		return fixture.Dir(t, name)
	}
	// The topics seg-1 and seg-1048576 have the records of seg-4096: only the indexes differ, and are built here.
	dir := fixture.Dir(t, "4.4.0/segments-316/clean/seg-4096-0")
	for base, s := range loadSegments(t, dir) {
		x := s.Rebuilt(intervalBytes)
		stem := filepath.Join(dir, fmt.Sprintf("%020d", base))
		writeFile(t, stem+".index", x.OffsetIndexBytes())
		writeFile(t, stem+".timeindex", x.TimeIndexBytes())
	}
	return dir
}

// otherInterval is true for the partitions that testdata/logdirs leaves out.
func otherInterval(name string) (partition string, intervalBytes int64, ok bool) {
	if _, err := fmt.Sscanf(filepath.Base(name), "seg-%d-0", &intervalBytes); err != nil {
		return "", 0, false
	}
	return filepath.Base(name), intervalBytes, intervalBytes == 1 || intervalBytes == 1048576
}

func writeFile(t *testing.T, name string, data []byte) {
	t.Helper()
	if err := os.WriteFile(name, data, 0o644); err != nil {
		t.Fatal(err)
	}
}
