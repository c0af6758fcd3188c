package explain

import (
	"bytes"
	"encoding/binary"
	"strings"
	"testing"

	"kseg/format"
	"kseg/internal/fixture"
	"kseg/render"
)

// TestNarrowTerminals: meanings are wrapped to the terminal; what is shown stays the same, word for word.
func TestNarrowTerminals(t *testing.T) {
	const name = "4.4.0/transactions/ledger-0/00000000000000000000.log"
	wide := runText(t, name, Options{All: true})
	for _, width := range []int{40, 60, 80, 100, 120, 200} {
		text := runText(t, name, Options{All: true, Width: width})
		for line := range strings.Lines(text) {
			if got := render.Width(strings.TrimRight(line, "\n")); got > width && width >= 60 && !strings.Contains(line,
				", batch at byte") {
				t.Fatalf("%d columns on a terminal of %d: %s", got, width, line)
			}
		}
		for _, word := range []string{"lastOffsetDelta", "COMMIT:", "control:", "fenced"} {
			if want, got := strings.Count(wide, word), strings.Count(text, word); got != want {
				t.Errorf("width %d: %q is there %d times, else %d", width, word, got, want)
			}
		}
	}
}

// TestTerse leaves meanings out, and nothing else.
func TestTerse(t *testing.T) {
	const name = "4.4.0/hello/hello-0/00000000000000000000.log"
	full, terse := runText(t, name, Options{}), runText(t, name, Options{Terse: true})
	if strings.Contains(terse, "meaning") || strings.Contains(terse, "set by the leader") {
		t.Errorf("terse:\n%s", terse)
	}
	for line := range strings.Lines(terse) {
		if !strings.Contains(line, ", batch at byte") && !strings.Contains(full, strings.TrimRight(line, "\n")) {
			t.Errorf("only in terse: %s", line)
		}
	}
}

// TestLongerByAByte: a delta of 64 makes all records that follow longer; a length of 64 says nothing of the records
// beside it.
func TestLongerByAByte(t *testing.T) {
	var batch fixture.Batch
	for i := range int64(66) {
		batch.Records = append(batch.Records, fixture.Record{Offset: i, Value: make([]byte, 58)})
	}
	text, _, err := runFile(t, "x-0/00000000000000000000.log", fixture.AppendBatch(nil, batch), Options{})
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(text, "each record from here on is a byte longer"); n != 1 {
		t.Errorf("%d records are said to make the next ones longer\n%s", n, text)
	}
	if !strings.Contains(text, "64: bytes of this record that follow; 64 is the first that takes 2 bytes (7 bits a "+
		"byte, less one for the sign: 1 byte reaches 63)\n") {
		t.Errorf("a length of 64 does not say why it takes 2 bytes\n%s", text)
	}
}

// TestEmptiedOrOverwritten: a batch that counts no record was emptied by the cleaner only if nothing follows its
// header.
func TestEmptiedOrOverwritten(t *testing.T) {
	const cleaner, overwritten = "the cleaner keeps the header", "the header counts no record, so nobody reads them"
	whole := fixture.AppendBatch(nil, fixture.Batch{Records: []fixture.Record{{Value: []byte("v")}}})
	zeroed := bytes.Clone(whole)
	clear(zeroed[57:])
	emptied := bytes.Clone(whole[:format.BatchHeaderSize])
	binary.BigEndian.PutUint32(emptied[8:], format.BatchHeaderSize-12)
	clear(emptied[57:])
	for _, c := range []struct {
		data          []byte
		says, notSays string
	}{{zeroed, overwritten, cleaner}, {emptied, cleaner, overwritten}} {
		text, _, err := runFile(t, "x-0/00000000000000000000.log", c.data, Options{})
		if err != nil || !strings.Contains(text, c.says) || strings.Contains(text, c.notSays) || strings.Contains(text,
			"removed") != (c.says == cleaner) {
			t.Errorf("%v\n%s", err, text)
		}
	}
}

// TestUnknownCodec: what no codec can open is not called the rest of a stream.
func TestUnknownCodec(t *testing.T) {
	data := fixture.AppendBatch(nil, fixture.Batch{Records: []fixture.Record{{Value: []byte("v")}}})
	data[22] |= 7
	text, _, err := runFile(t, "x-0/00000000000000000000.log", data, Options{})
	if err != nil || strings.Contains(text, "end of the stream") || !strings.Contains(text,
		"a codec that Kafka does not have") {
		t.Errorf("%v\n%s", err, text)
	}
}

// TestRedactedDamage: what stands where a length should be is not told as a number either.
func TestRedactedDamage(t *testing.T) {
	data := fixture.AppendBatch(nil, fixture.Batch{Records: []fixture.Record{{Value: []byte("v")}}})
	data = append(data, strings.Repeat("RBAG", 20)...)
	for _, output := range []Output{Text, JSON, Table} {
		text, _, err := runFile(t, "x-0/00000000000000000000.log", data, Options{All: true, Output: output,
			Payload: render.PayloadRedacted})
		if err != nil || strings.Contains(text, "13800738") || !strings.Contains(text, "truncated") {
			t.Errorf("%v\n%s", err, text)
		}
	}
}

// TestProducerWithoutData: a snapshot's entry of a producer that only has a marker names no batch.
func TestProducerWithoutData(t *testing.T) {
	text := runText(t, "4.4.0/transactions/__consumer_offsets-0/00000000000000000006.snapshot", Options{All: true})
	if strings.Contains(text, "2147483647") || strings.Count(text, "no data batch is remembered") != 3 ||
		!strings.Contains(text, "✔") {
		t.Error(text)
	}
}

// TestIndexEntryThatPointsElsewhere: an entry whose batch is not the one of its offset says on which side it is.
func TestIndexEntryThatPointsElsewhere(t *testing.T) {
	log := fixture.AppendBatch(nil, fixture.Batch{Records: []fixture.Record{{Offset: 20}, {Offset: 24}}})
	for _, c := range []struct {
		relative int64
		want     string
	}{{4, "ends with this one"}, {5, "all before this one"}, {2, "has offsets 20–24"},
		{-1, "all after this one: a lookup that starts here may start too late"}} {
		s := &surroundings{log: log, logName: "x.log"}
		if got := s.batchAt(0, 20, c.relative); !strings.HasSuffix(got, c.want) {
			t.Errorf("entry of offset %d: %s", 20+c.relative, got)
		}
	}
}

func runText(t *testing.T, name string, opts Options) string {
	t.Helper()
	text, _, err := runFile(t, name, fixture.Data(t, name), opts)
	if err != nil {
		t.Fatal(err)
	}
	return text
}
