package compare

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"kseg/format"
)

// kept is a record as a test keeps it.
type kept struct {
	format.Record
	data          bool // not a control record
	transactional bool
	producer      int64
	commit, abort bool
}

// recordsOf are the records of a partition of magic 2, in order; and its logs.
func recordsOf(t testing.TB, dir string) (all []kept, logs map[string][]byte) {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "*.log"))
	if err != nil {
		t.Fatal(err)
	}
	logs = map[string][]byte{}
	reader := format.NewRecordReader(1<<24, nil)
	for _, name := range names {
		raw, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		logs[name] = raw
		for pos := int64(0); pos < int64(len(raw)); {
			b, err := format.DecodeBatch(raw, pos)
			if err != nil {
				t.Fatalf("%s @%d: %v", name, pos, err)
			}
			for _, r := range readAll(reader, &b) {
				k := kept{Record: r, data: !b.Control(), transactional: b.Transactional(), producer: b.ProducerID}
				if b.Control() {
					m, err := format.DecodeTxnMarker(pos, r.Key, r.Value)
					k.abort, k.commit = err == nil && m.Abort, err == nil && !m.Abort
				}
				all = append(all, k)
			}
			pos = b.End()
		}
	}
	return all, logs
}

// readAll are copies of a batch's records.
func readAll(reader *format.RecordReader, b *format.Batch) (all []format.Record) {
	reader.Reset(b)
	var r format.Record
	for reader.Next(&r) {
		r.Key, r.Value, r.Headers = bytes.Clone(r.Key), bytes.Clone(r.Value), bytes.Clone(r.Headers)
		all = append(all, r)
	}
	return all
}

// edit is what was done to one record.
type edit struct {
	what     string // changed, dropped or moved
	from, to int64
}

var ways = []string{"changed", "dropped", "moved"}

// editRecord changes the value of a record, drops it, or moves it to the next offset; nil if that is taken.
func editRecord(t testing.TB, dir, what string, at int64) *edit {
	t.Helper()
	_, logs := recordsOf(t, dir)
	for name, raw := range logs {
		for pos := int64(0); pos < int64(len(raw)); {
			b, err := format.DecodeBatch(raw, pos)
			if err != nil {
				t.Fatal(err)
			}
			if b.BaseOffset <= at && at <= b.LastOffset && !b.Control() {
				return editBatch(t, name, raw, &b, &edit{what, at, at})
			}
			pos = b.End()
		}
	}
	t.Fatalf("%s has no record at %d", dir, at)
	return nil
}

func editBatch(t testing.TB, name string, raw []byte, b *format.Batch, e *edit) *edit {
	t.Helper()
	records := readAll(format.NewRecordReader(1<<24, nil), b)
	i := slices.IndexFunc(records, func(r format.Record) bool { return r.Offset == e.from })
	switch e.what {
	case "changed":
		records[i].Value = append(records[i].Value, "another"...)
	case "dropped":
		records = append(records[:i], records[i+1:]...)
	case "moved":
		e.to++
		if e.to > b.LastOffset || i+1 < len(records) && records[i+1].Offset == e.to {
			return nil
		}
		records[i].Offset = e.to
	}
	var body []byte
	for i := range records {
		body = format.AppendRecord(body, &records[i], records[i].Timestamp-b.BaseTimestamp,
			int32(records[i].Offset-b.BaseOffset))
	}
	var c format.Compressor
	packed, err := c.Compress(b.Codec(), body)
	if err != nil {
		t.Fatal(err)
	}
	fresh := *b
	fresh.Count = int32(len(records))
	out := append(bytes.Clone(raw[:b.Pos]), format.AppendBatch(nil, &fresh, packed)...)
	if err := os.WriteFile(name, append(out, raw[b.End():]...), 0o644); err != nil {
		t.Fatal(err)
	}
	return e
}

// cleanerKeeps reports whether a cleaner keeps the record of an offset, however far it comes.
func cleanerKeeps(all []kept, offset int64) bool {
	var is *kept
	for i := range all {
		r := &all[i]
		switch {
		case r.Offset == offset:
			if is = r; r.Key == nil || r.Value == nil || aborted(all, i) {
				return false
			}
		case is == nil || !r.data || !bytes.Equal(r.Key, is.Key) || r.Key == nil:
		case !r.transactional || committed(all, i):
			return false
		}
	}
	return is != nil
}

// fate is how the transaction of a record ended.
func fate(all []kept, i int) (commit, abort bool) {
	for _, r := range all[i:] {
		if !r.data && r.producer == all[i].producer && (r.commit || r.abort) {
			return r.commit, r.abort
		}
	}
	return false, false
}

func committed(all []kept, i int) bool { commit, _ := fate(all, i); return commit }

func aborted(all []kept, i int) bool {
	_, abort := fate(all, i)
	return all[i].transactional && abort
}

// check holds what was found against what was done.
func (e *edit) check(t testing.TB, got *Comparison, original string) {
	t.Helper()
	all, _ := recordsOf(t, original)
	there := false
	for _, r := range all {
		there = there || r.Offset == e.to
	}
	lost := int64(0)
	if e.what != "changed" && cleanerKeeps(all, e.from) {
		lost = 1
	}
	want := Compacted
	switch {
	case e.what == "moved" && !there:
		return // nobody had an offset there
	case e.what != "dropped":
		want = Diverged
	case lost > 0:
		want = Damaged
	}
	if got.Result != want || got.B.Lost != lost || lost > 0 && got.B.FirstLost != e.from || got.A.Missing != 0 ||
		want == Diverged && (got.Differ != 1 || got.DivergedAt != e.to) {
		t.Errorf("%s: %s %d to %d: %s, %d of %d missing lost from %d on, %d differ at %d; want %s, %d lost", original, e.what,
			e.from, e.to, got.Result, got.B.Lost, got.B.Missing, got.B.FirstLost, got.Differ, got.DivergedAt, want, lost)
	}
}

// copyOf is a copy of a partition in a folder of its own.
func copyOf(t testing.TB, dir string) string {
	t.Helper()
	to := filepath.Join(t.TempDir(), filepath.Base(dir))
	if err := os.CopyFS(to, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	return to
}

// Of a log and its copy that Kafka's cleaner has gone through twice, any record of the copy that is changed, moved or
// taken away is found, and nothing else. Fingerprints have no keys: by them it is not known what a cleaner would keep.
func TestCleanedByKafka(t *testing.T) {
	folder := filepath.Join("testdata", "cleaned")
	original, cleaned := filepath.Join(folder, "before", "t-0"), filepath.Join(folder, "after", "t-0")
	prints := printsOf(t, original)
	for _, got := range []*Comparison{compareDirs(t, original, cleaned), swapped(compareDirs(t, cleaned, original)),
		comparePrinted(t, prints, cleaned)} {
		if got.Result != Compacted || got.A.Missing != 0 || got.B.Missing < 100 || got.B.Lost != 0 {
			t.Errorf("%s, %d and %d missing, %d lost", got.Result, got.A.Missing, got.B.Missing, got.B.Lost)
		}
	}
	all, _ := recordsOf(t, cleaned)
	for i, r := range all {
		if !r.data {
			continue
		}
		for j, what := range ways {
			dir := copyOf(t, cleaned)
			e := editRecord(t, dir, what, r.Offset)
			if e == nil {
				continue
			}
			e.check(t, compareDirs(t, original, dir), original)
			if (i+j)%5 > 0 {
				continue
			}
			if got := comparePrinted(t, prints, dir); (got.Result == Diverged) != (e.what != "dropped") ||
				got.Result == Diverged && (got.DivergedAt != e.to || got.Differ != 1) || got.B.Lost > 0 {
				t.Errorf("fingerprints, %s %d: %s at %d, %d lost", e.what, e.from, got.Result, got.DivergedAt, got.B.Lost)
			}
		}
	}
}
