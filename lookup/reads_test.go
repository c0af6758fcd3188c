package lookup

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"kseg/internal/fixture"
	"kseg/logdir"
)

// readCases are the partitions of testdata/reads.csv.gz: what a real broker, having loaded them, read at each offset
// and found for each timestamp (oracle/Reads.java). Left out is damage that changes the log when it is loaded.
var readCases = []string{
	"4.4.0/segments-316/clean/seg-4096-0", "4.4.0/segments-316/clean/seg-20000-0", "4.4.0/compacted/users-0",
	"4.4.0/compacted/users-notombs-0", "4.4.0/compacted/users-zstd-0", "3.7.2/old-append/follower/replicated-0",
	"4.4.0/legacy/mix-0", "0.10.2.2/legacy/old-v1-gzip-0", "0.10.2.2/legacy/old-v0-then-v1-0",
	"0.9.0.1/legacy/old-v0-snappy-0",
	"4.4.0/transactions/ledger-0", "4.4.0/hello/hello-0",
	"damage/index-wrong-position", "damage/index-wrong-offset", "damage/index-position-past-end",
	"damage/index-not-multiple-of-8",
	"damage/index-out-of-order", "damage/index-last-entry-low", "damage/index-last-entry-zero",
	"damage/index-of-other-segment",
	"damage/index-padded-with-zeros", "damage/timeindex-altered", "damage/timeindex-last-far-future",
	"damage/timeindex-last-before-first",
	"damage/timeindex-last-offset-below-base", "damage/timeindex-out-of-order", "damage/timeindex-not-multiple-of-12",
	"damage/timeindex-zero-padded", "damage/timeindex-missing", "damage/missing-middle-segment",
	"damage/gap-between-segments",
	"damage/segments-overlap", "damage/duplicate-batch", "damage/swapped-batches", "damage/baseoffset-back",
	"damage/baseoffset-far",
	"damage/length-zero", "damage/length-huge", "damage/length-plus1", "damage/payload-flip", "damage/torn-middle-segment",
	"damage/batch-missing-inside", "damage/empty-middle-log", "damage/magic-3", "damage/magic-1",
	"damage/compressed-stream-broken-crc-fixed",
	"damage/record-length-huge-crc-fixed", "damage/count-plus1-crc-fixed", "damage/maxtimestamp-plus1day-crc-fixed",
	"damage/baseoffset-below-segment", "damage/zero-page-inside",
}

func readCaseDir(t *testing.T, name string) string {
	if recipe, ok := strings.CutPrefix(name, "damage/"); ok {
		return fixture.Damaged(t, recipe)
	}
	return fixture.Dir(t, name)
}

// modified is the modification time that oracle/Reads.java gives its copies.
var modified = time.UnixMilli(1893456000000)

func openOne(t testing.TB, dir string) *Partition {
	t.Helper()
	logs, err := filepath.Glob(filepath.Join(dir, "*.log"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range logs {
		if err := os.Chtimes(name, modified, modified); err != nil {
			t.Fatal(err)
		}
	}
	set, err := logdir.Open([]string{dir}, logdir.Options{})
	if err != nil {
		t.Fatal(err)
	}
	partitions, problems := Partitions(set, 1<<28)
	if len(partitions) != 1 || len(problems) > 0 {
		t.Fatalf("%s: %d partitions, problems %v", dir, len(partitions), problems)
	}
	// The interval is not what is asked about, and finding it out would be most of the work.
	partitions[0].TopicInterval = DefaultInterval
	return partitions[0]
}

func frozenReads(t *testing.T) string {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("testdata", "reads.csv.gz"))
	if err != nil {
		t.Fatal(err)
	}
	r, err := gzip.NewReader(bytes.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestReadsOfARealBroker holds the search through a whole partition to what a real broker reads and finds.
func TestReadsOfARealBroker(t *testing.T) {
	rows := map[string][]string{}
	for line := range strings.Lines(frozenReads(t)) {
		name, row, _ := strings.Cut(strings.TrimSpace(line), ",")
		rows[name] = append(rows[name], row)
	}
	for _, name := range readCases {
		t.Run(name, func(t *testing.T) {
			if len(rows[name]) == 0 {
				t.Fatal("no answers are frozen")
			}
			p := openOne(t, readCaseDir(t, name))
			held(t, p, func() { compareReads(t, p, rows[name]) })
		})
	}
}

// compareReads compares our answers with those of the broker, the rows of one partition.
func compareReads(t *testing.T, p *Partition, rows []string) {
	t.Helper()
	bad := 0
	for i, row := range rows {
		if !fixture.Sampled(i, 3) {
			continue
		}
		f := strings.SplitN(row, ",", 3)
		query, err := strconv.ParseInt(f[1], 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		want := f[2]
		if strings.HasSuffix(want, "Exception") && want != "OffsetOutOfRangeException" {
			want = "exception"
		}
		if got := brokerAnswer(t, p, f[0], query); got != want {
			if bad++; bad > 5 {
				t.Fatal("and more")
			}
			t.Errorf("%s: a broker answers %s, ours is %s", row, want, got)
		}
	}
}

// brokerAnswer is our answer in the columns of the real one.
func brokerAnswer(t *testing.T, p *Partition, kind string, query int64) string {
	look := p.LookupOffset
	if kind == "time" {
		look = p.LookupTimestamp
	}
	r, err := look(t.Context(), query, Options{Interval: -1})
	if err != nil {
		t.Fatal(err)
	}
	switch {
	case r.Outcome == Failed:
		return "exception"
	case r.Outcome == BelowStart || r.Outcome == BeyondEnd:
		return "OffsetOutOfRangeException"
	case r.Outcome == Found && kind == "time":
		return fmt.Sprintf("%d,%d", r.Time.Offset, r.Time.RecordTimestampMs)
	case r.Outcome == Found:
		return fmt.Sprintf("%d,%d", r.last().Base, r.last().Scan.Hit.Position)
	case kind == "time":
		return "none"
	}
	return "empty"
}
