package schema

import (
	"bytes"
	"path"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"kseg/format"
	"kseg/internal/fixture"
)

// The record lines of every decoded dump of the real tool must be reproduced after the record's metadata, which is
// another package's.
func TestDecodedLikeTheRealTool(t *testing.T) {
	d := NewDecoder()
	records := 0
	for _, name := range fixture.Goldens(t, ".decoded.txt") {
		file := strings.TrimSuffix(name, ".decoded.txt")
		topic := TopicFor(path.Base(path.Dir(file)))
		if topic == None {
			t.Errorf("%s: no internal topic", name)
			continue
		}
		records += compareDump(t, d, topic, fixture.Data(t, file), fixture.Golden(t, name))
	}
	if records < 500 {
		t.Errorf("only %d records compared", records)
	}
}

// compareDump holds the decoder's text of each record of a log to the real tool's dump of it, and returns how many
// records it compared. Texts may have line ends inside.
func compareDump(t *testing.T, d *Decoder, topic Topic, log, dump []byte) (records int) {
	t.Helper()
	const before = " headerKeys: []"
	eachRecord(t, log, func(b *format.Batch, rec *format.Record) {
		records++
		at := bytes.Index(dump, []byte(before))
		if at < 0 {
			t.Fatalf("offset %d: the real tool has fewer records", rec.Offset)
		}
		dump = dump[at+len(before):]
		got, err := textOf(d, topic, b, rec)
		if err != nil {
			t.Errorf("offset %d: %v", rec.Offset, err)
		}
		if !bytes.HasPrefix(dump, append(got, '\n')) {
			want, _, _ := bytes.Cut(dump, []byte("\n"))
			t.Errorf("offset %d: key %x value %x\n got %s\nwant %s\n%s", rec.Offset, rec.Key, rec.Value, got, want,
				cmp.Diff(string(want), string(got)))
		}
	})
	if bytes.Contains(dump, []byte(before)) {
		t.Error("the real tool has more records")
	}
	return records
}

func textOf(d *Decoder, topic Topic, b *format.Batch, rec *format.Record) ([]byte, error) {
	if b.Control() {
		return d.AppendControlText(nil, rec.Key, rec.Value)
	}
	return d.AppendText(nil, topic, rec.Offset, rec.Key, rec.Value), nil
}

func eachRecord(t testing.TB, log []byte, fn func(*format.Batch, *format.Record)) {
	r := format.NewRecordReader(1<<30, nil)
	var rec format.Record
	for s := format.NewScanner(log, 0, -1); s.Next(); {
		b := s.Batch()
		if b == nil {
			continue
		}
		r.Reset(b)
		for r.Next(&rec) {
			fn(b, &rec)
		}
		if err := r.Err(); err != nil {
			t.Fatal(err)
		}
	}
}
