package schema

import (
	"bytes"
	"path"
	"strings"
	"testing"

	"kseg/format"
	"kseg/internal/fixture"
)

// The record lines of every decoded dump of the real tool must be reproduced behind the record's metadata, which is
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
		lines := recordLines(fixture.Golden(t, name))
		for _, got := range textOf(t, d, topic, fixture.Data(t, file)) {
			if len(lines) == 0 {
				t.Fatalf("%s: the real tool has fewer records", name)
			}
			if !bytes.HasSuffix(lines[0], got) {
				t.Errorf("%s:\n got %s\nwant %s", name, got, lines[0])
			}
			lines = lines[1:]
			records++
		}
		if len(lines) > 0 {
			t.Errorf("%s: %d more records in the real tool's output", name, len(lines))
		}
	}
	if records < 500 {
		t.Errorf("only %d records compared", records)
	}
}

func recordLines(dump []byte) (lines [][]byte) {
	for line := range bytes.Lines(dump) {
		if bytes.HasPrefix(line, []byte("| ")) {
			lines = append(lines, bytes.TrimSuffix(line, []byte("\n")))
		}
	}
	return lines
}

// textOf is what the decoder has to say of each record in a log, from " headerKeys: []" on.
func textOf(t *testing.T, d *Decoder, topic Topic, log []byte) (texts [][]byte) {
	eachRecord(t, log, func(b *format.Batch, rec *format.Record) {
		text := []byte(" headerKeys: []")
		var err error
		if b.Control() {
			text, err = d.AppendControlText(text, rec.Key, rec.Value)
		} else {
			text = d.AppendText(text, topic, rec.Offset, rec.Key, rec.Value)
		}
		if err != nil {
			t.Errorf("offset %d: %v", rec.Offset, err)
		}
		texts = append(texts, text)
	})
	return texts
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
