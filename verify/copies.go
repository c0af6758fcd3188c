package verify

import (
	"fmt"
	"strings"

	"kseg/format"
	"kseg/logdir"
)

// incompleteCopy is a partition whose log is older than something else in its log directory: it ends at an offset that
// a checkpoint, a snapshot or an index goes beyond.
type incompleteCopy struct {
	partition string
	from      int64
}

// noteCopy remembers from which offset on a partition is incomplete, if it is.
func (d *driver) noteCopy(p *partition, found []*Finding) {
	for _, f := range found {
		if endsEarly(f.Code) && f.FirstOffset >= 0 && p.dir.Parent != nil {
			d.incomplete[p.dir.Parent] = append(d.incomplete[p.dir.Parent], incompleteCopy{p.name, f.FirstOffset})
			return
		}
	}
}

// mostNamed is how many partitions a sentence names.
const mostNamed = 5

// copyKind says which kind of copy a log directory is: of a broker that stopped cleanly, that was killed, or that ran
// on while file after file was copied. It is "" for a folder of partitions, which has no state file.
func (d *driver) copyKind(dir *logdir.LogDir) string {
	s := d.dirState(dir)
	if !s.checkpointed() && s.Marker == nil || dir.Narrowed {
		return ""
	}
	copies := d.incomplete[dir]
	var names []string
	for _, b := range copies[:min(len(copies), mostNamed)] {
		names = append(names, fmt.Sprintf("%s from offset %d", b.partition, b.from))
	}
	if n := len(copies) - len(names); n > 0 {
		names = append(names, fmt.Sprintf("and %d more", n))
	}
	incomplete := strings.Join(names, ", ")
	switch {
	case dir.BrokerRuns():
		return "a broker runs on it"
	case len(copies) > 0 && s.Marker != nil:
		return "its broker stopped cleanly, but files are newer than the logs, which were changed or are of another time: " +
			"incomplete are " + incomplete
	case len(copies) > 0:
		return "no clean stop, and files are newer than the logs, as where a running broker is copied file by file, or a " +
			"disk loses writes: incomplete are " +
			incomplete
	case s.Marker != nil:
		return "its broker stopped cleanly (" + format.KindCleanShutdown.Info().Name + ")"
	}
	return "no clean stop: its broker was killed, or the copy is of one moment of a running one; what was not yet on " +
		"disk is recovered at the next start"
}
