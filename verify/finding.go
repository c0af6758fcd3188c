package verify

import "kseg/format"

// Severity says how bad a finding is.
type Severity int8

// The severities, the mildest first.
const (
	// Note is worth knowing and changes nothing for a broker or a consumer.
	Note Severity = iota + 1
	// Warning is something that a broker repairs or lives with, but data was lost or may be.
	Warning
	// Damage is data that is unreadable or wrong, lookups that go wrong, or a broker that would not start.
	Damage
)

// String is the name in reports and in --fail-on.
func (s Severity) String() string {
	switch s {
	case Note:
		return "note"
	case Warning:
		return "warning"
	case Damage:
		return "damage"
	}
	return "none"
}

// ParseSeverity reads the name of a severity.
func ParseSeverity(name string) (Severity, bool) {
	for s := Note; s <= Damage; s++ {
		if s.String() == name {
			return s, true
		}
	}
	return 0, false
}

// Place is where something was found. Numbers that do not apply are -1.
type Place struct {
	File        string // as logdir.File.Rel: relative to the operand
	Pos         int64  // byte position in the file
	Len         int64  // bytes
	FirstOffset int64
	LastOffset  int64 // inclusive
}

// Evidence is one fact that a finding rests on.
type Evidence struct {
	Name string // "crc", "base offset"
	Want string // what the rest of the data demands, or ""
	Got  string // what is there
}

// Finding is one contradiction, named once: what else follows from it is in Related.
type Finding struct {
	Code      string // kebab-case, stable forever; see docs/findings.md
	Severity  Severity
	Partition string // the name of its directory, or "" for what belongs to a log directory
	Place
	Shown    string // the file as the user would name it
	Producer *int64 // the id of the producer that it is about, nil if it is about none
	Message  string // one sentence, without the place
	Evidence []Evidence
	// Related are the other places that show the same fault.
	Related []Place
	// Next is the command to run next, or "".
	Next string
	// Count is how many times the code was found in the file; Place is the first.
	Count int

	base   int64 // of the segment it belongs to, -1 for none
	logPos int64 // the position in the log that it is about, -1 if unknown
	rank   int   // the file's place in the order of reports
	// The offsets from from on, until before until, are in doubt: what contradicts the log there may follow from this
	// finding. If until is 0 they are Place's.
	from, until int64
	// reach is the position after the damage, as far as it is one stretch; 0 for Pos + Len.
	reach int64
	// since is the last offset of the producer's batch before, if the finding is about what comes between two batches.
	since int64
}

// doubtful is the range of offsets in which other things may be wrong because of this.
func (f *Finding) doubtful() (from, to int64) {
	from, to = f.FirstOffset, f.LastOffset
	if f.until > 0 {
		from, to = f.from, f.until-1
	}
	return from, max(from, to)
}

// at makes a place of a batch.
func at(file string, b *format.Batch) Place {
	return Place{File: file, Pos: b.Pos, Len: b.Size(), FirstOffset: b.BaseOffset, LastOffset: b.LastOffset}
}

// inFile makes a place without offsets; length -1 means unknown.
func inFile(file string, pos, length int64) Place {
	return Place{File: file, Pos: pos, Len: length, FirstOffset: -1, LastOffset: -1}
}
