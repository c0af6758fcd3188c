package verify

import (
	"fmt"
	"strings"

	"kseg/format"
	"kseg/logdir"
)

// behindCopy is a partition whose log is older than something else in its log directory: it ends at an offset that a
// checkpoint, a snapshot or an index goes beyond.
type behindCopy struct {
	partition string
	from      int64
}

// newerThanLog are the findings that say that a log ends before another file of the same directory.
var newerThanLog = map[string]bool{"log-end-missing": true, "recovery-point-beyond-end": true,
	"high-watermark-beyond-end": true,
	"snapshot-beyond-end":       true, "leader-epoch-beyond-end": true}

// noteCopy remembers from which offset on a partition is incomplete, if it is.
func (d *driver) noteCopy(p *partition, found []*Finding) {
	for _, f := range found {
		if newerThanLog[f.Code] && f.FirstOffset >= 0 && p.dir.Parent != nil {
			d.behind[p.dir.Parent] = append(d.behind[p.dir.Parent], behindCopy{p.name, f.FirstOffset})
			return
		}
	}
}

// mostBehind is how many partitions a sentence names.
const mostBehind = 5

// copyKind says which kind of copy a log directory is: of a broker that stopped cleanly, that was killed, or that ran
// on while file after file was copied. It is "" for a folder of partitions, which has no state file.
func (d *driver) copyKind(dir *logdir.LogDir) string {
	s := d.dirState(dir)
	if !s.checkpointed() && s.Marker == nil || dir.Narrowed {
		return ""
	}
	behind := d.behind[dir]
	var names []string
	for _, b := range behind[:min(len(behind), mostBehind)] {
		names = append(names, fmt.Sprintf("%s from offset %d", b.partition, b.from))
	}
	if n := len(behind) - len(names); n > 0 {
		names = append(names, fmt.Sprintf("and %d more", n))
	}
	incomplete := strings.Join(names, ", ")
	switch {
	case dir.BrokerRuns():
		return "a broker runs on it"
	case len(behind) > 0 && s.Marker != nil:
		return "its broker stopped cleanly, but files are newer than the logs, which were changed or are of another time: " +
			"incomplete are " + incomplete
	case len(behind) > 0:
		return "no clean stop, and files are newer than the logs, as where a running broker is copied file by file, or a " +
			"disk loses writes: incomplete are " +
			incomplete
	case s.Marker != nil:
		return "its broker stopped cleanly (" + format.KindCleanShutdown.Info().Name + ")"
	}
	return "no clean stop: its broker was killed, or the copy is of one moment of a running one; what was not yet on " +
		"disk is recovered at the next start"
}
