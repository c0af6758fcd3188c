package broker

import (
	"fmt"

	"kseg/format"
	"kseg/logdir"
)

// Hazard is what a broker does after its start because of what it has loaded.
type Hazard struct {
	File string
	Text string // a sentence
}

// hazards looks for segments that count as of 1970: a broker that does not recover a segment takes every slot of its
// time index for an entry, zeros too, and retention by time goes by the last.
func hazards(p *logdir.Partition, loaded *Loaded) []Hazard {
	kept := map[string]bool{}
	for _, s := range loaded.Segments {
		kept[format.SegmentFileName(s.Base, format.KindTimeIndex)] = !s.Recovered && s.Size > 0
	}
	var all []Hazard
	for _, f := range p.All() {
		if name := f.Name.Raw; kept[name] && endsInZeros(f) {
			all = append(all, Hazard{File: name, Text: fmt.Sprintf("%s ends in zeros, which count as entries: the segment is "+
				"taken for one of 1970, and "+
				"retention by time deletes it; truncate the file to its entries (kseg verify --rebuild makes it) before the start",
				name)})
		}
	}
	return all
}

// endsInZeros reports whether the last slot of a time index is zeros, but not the only one: a first record of 1970 is
// possible.
func endsInZeros(f *logdir.File) bool {
	zeros := false
	err := f.View(func(b []byte) error {
		slots := min(f.Size, int64(len(b))) / timeWidth
		zeros = slots > 1 && allZero(b[(slots-1)*timeWidth:slots*timeWidth])
		return nil
	})
	return err == nil && zeros
}

func allZero(b []byte) bool {
	for _, c := range b {
		if c != 0 {
			return false
		}
	}
	return true
}
