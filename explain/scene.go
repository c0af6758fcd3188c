package explain

import (
	"encoding/binary"
	"strings"

	"kseg/format"
)

// scene is what was shown before a leaf and explains it.
type scene struct {
	part   *format.Part
	batch  *format.Batch
	plain  bool // the records are shown from the decompressed bytes
	record int
	// key is that of the present record, nil if it is null.
	key []byte
	// control is the type of the present control record, −1 if its key does not tell.
	control int16
	// stopped is set once a leaf has shown a fault of records or compressed data.
	stopped bool
	fault   *format.Error // shown last
	// entryAt keeps the answer of explainer.entryAt.
	entryAt *int64
	// numbers are those of the present entry of an index or snapshot, by field.
	numbers map[string]int64
	entry   int
	columns map[string]string // of the present entry of a checkpoint
}

// begin turns to another part.
func (s *scene) begin(p *format.Part) {
	*s = scene{part: p, batch: p.Batch, record: -1, control: -1}
}

// said reports whether a leaf has shown the fault, or what it comes from.
func (s *scene) said(f *format.Error) bool { return s.stopped || s.fault == f }

// see notes what later leaves need. It is called before a leaf is worded.
func (s *scene) see(l *format.Leaf, name string) {
	if l.Fault != nil {
		s.fault = l.Fault
		s.stopped = s.stopped || l.Plain || l.Record >= 0 || l.Role != format.RoleField
	}
	if l.Record != s.record {
		s.record, s.key, s.control = l.Record, nil, -1
	}
	if l.Batch == nil {
		s.seeEntry(l, name)
		return
	}
	switch {
	case l.Role == format.RoleKey:
		s.key = l.Bytes
		if s.batch.Control() && len(l.Bytes) >= 4 {
			s.control = int16(binary.BigEndian.Uint16(l.Bytes[2:]))
		}
	case name == "keyLength" && l.Number >= 0 && !strings.Contains(l.Path, ".headers["):
		s.key = []byte{}
	}
}

func (s *scene) seeEntry(l *format.Leaf, name string) {
	if l.Entry != s.entry || s.numbers == nil {
		s.entry, s.numbers, s.columns = l.Entry, map[string]int64{}, map[string]string{}
	}
	if l.Type == format.TypeText {
		s.columns[name] = strings.TrimSpace(string(l.Bytes))
		return
	}
	s.numbers[name] = l.Number
}
