package verify

import (
	"fmt"
	"slices"

	"kseg/format"
	"kseg/logdir"
)

// checkSegments looks at which files of a segment there are.
var checkSegments = Check{
	Name:  "segments",
	Group: "indexes",
	Codes: []Code{
		{"index-without-log", Warning, "an index whose log is not there"},
		{"segment-log-missing", Damage, "a segment of which only the indexes are left"},
	},
	Partition: lookForLostLogs,
}

// lookForLostLogs finds indexes without their log. If offsets are missing just there, the log is what was lost.
func lookForLostLogs(p *partition) {
	seen := map[int64]bool{}
	for _, f := range p.dir.All() {
		name := f.Name
		if !name.Kind.IsSegmentFile() || name.Kind == format.KindLog || !name.HasBase || name.Leftover() || seen[name.Base] ||
			f.Sibling(format.KindLog) != nil {
			continue
		}
		seen[name.Base] = true
		var files []Place
		for _, kind := range []format.Kind{format.KindOffsetIndex, format.KindTimeIndex, format.KindTxnIndex} {
			if s := f.Sibling(kind); s != nil {
				files = append(files, inFile(s.Rel, -1, -1))
			}
		}
		finding := Finding{Code: "index-without-log", Place: files[0], Related: files[1:], logPos: -1,
			Message: "there is no log of this base offset"}
		gap := slices.IndexFunc(p.findings, func(g *Finding) bool {
			return g.Code == "offset-gap" && g.FirstOffset <= name.Base && name.Base <= g.LastOffset
		})
		if gap >= 0 && !p.compacted {
			g := p.findings[gap]
			finding.Code, finding.Place, finding.Related = "segment-log-missing", inFile(f.Rel[:len(f.Rel)-len(name.Raw)]+
				name.Sibling(format.KindLog), -1, -1), files
			finding.FirstOffset, finding.LastOffset = g.FirstOffset, g.LastOffset
			finding.Severity = Damage
			finding.Message = fmt.Sprintf("the log is not there, though its indexes are, and offsets %d to %d are missing",
				g.FirstOffset, g.LastOffset)
		}
		if to, lost := p.lostLog(f); lost && finding.Code == "index-without-log" {
			finding.Severity, finding.FirstOffset, finding.LastOffset = Damage, name.Base, to-1
			finding.Message = fmt.Sprintf("the log is not there, though its index has entries: offsets %d to %d are lost; "+
				"what retention or the log cleaner deletes is renamed, the log first", name.Base, to-1)
		}
		p.found(nil, finding)
	}
}

// lostLog reports whether an index without a log, of a broker that has stopped, has entries, and where the next segment
// begins. What retention and the cleaner delete is renamed, the log first, so that it is there as .deleted; beside a
// broker that runs a copy may have missed it.
func (p *partition) lostLog(f *logdir.File) (to int64, lost bool) {
	name := f.Name
	next := slices.IndexFunc(p.segments, func(s *segment) bool { return s.base > name.Base })
	if p.shutdown != cleanShutdown || next < 0 || p.dir.FileNamed(name.Sibling(format.KindLog)+".deleted") != nil {
		return 0, false
	}
	index := p.dir.FileNamed(name.Sibling(format.KindOffsetIndex))
	if index == nil {
		return 0, false
	}
	var entry [8]byte
	if err := index.Peek(func(at logdir.Peek) error {
		_, err := at.Read(entry[:], 0)
		return err
	}); err != nil {
		return 0, false // it is said where the index is looked at
	}
	return p.segments[next].base, entry != [8]byte{}
}

// end is the position after the last byte that is a batch.
func (s *segment) end() int64 {
	if s.tail != nil {
		return s.tail.Pos
	}
	return s.size
}

// sibling is the name of a file of the segment that is not there.
func (s *segment) sibling(kind format.Kind) string {
	return s.log.Rel[:len(s.log.Rel)-len(s.log.Name.Raw)] + s.log.Name.Sibling(kind)
}

// beyond notes that an index shows the log to have reached at least to the offset. In the last segment that is a
// finding; in others there may be a gap in the offsets that names it, which is known when all segments were seen
// (lostEnds).
func (s *segment) beyond(offset int64, place Place) {
	s.cut = true
	s.reached = max(s.reached, offset)
	if f := s.tailFinding; f != nil && f.FirstOffset >= 0 {
		f.LastOffset = max(f.LastOffset, offset)
		f.until = max(f.until, offset+1)
	}
	s.witnesses = append(s.witnesses, place)
	if s.last && s.tail == nil && !s.growing(s.size) {
		s.endMissing(s.part.lost(s.nextOffset))
	}
}

// endMissing reports that the segment once went on.
func (s *segment) endMissing(severity Severity) {
	s.part.found(s, Finding{Code: "log-end-missing", Severity: severity, Place: s.place(s.size, 0, s.nextOffset,
		s.reached),
		Related: slices.Clone(s.witnesses), logPos: s.size,
		Message: fmt.Sprintf("the log ends at offset %d, but its index reaches offset %d: the end is lost", s.nextOffset,
			s.reached),
		Evidence: []Evidence{{"last offset", itoa(s.reached), itoa(s.nextOffset - 1)}}})
}

// lostEnds reports the closed segments whose indexes go on after their logs, unless a gap in the offsets names them:
// where the log cleaner was a gap says nothing, but the cleaner writes the indexes together with the log.
func (p *partition) lostEnds() {
	gaps := map[int64]bool{}
	for _, f := range p.findings {
		if f.Code == "offset-gap" && !p.compacted {
			gaps[f.FirstOffset] = true
		}
	}
	for _, s := range p.segments {
		if s.closed() && s.cut && s.tail == nil && !gaps[s.nextOffset] {
			s.endMissing(Damage)
		}
	}
}
