package schema

import (
	"path"
	"strings"
	"testing"

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
