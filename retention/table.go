package retention

import (
	"strconv"

	"kseg/format"
	"kseg/logdir"
	"kseg/render"
)

// Columns are those of the table form.
func Columns() []render.Column {
	return []render.Column{{Name: "partition"}, {Name: "segment", Right: true}, {Name: "bytes", Right: true},
		{Name: "active"}, {Name: "largest timestamp"}, {Name: "from"}, {Name: "largest in log"}, {Name: "age", Right: true},
		{Name: "verdict"}, {Name: "rule"}, {Name: "deletable at"}, {Name: "blocked by", Right: true}, {Name: "why"}}
}

// AddRows adds a row a segment.
func (r *Report) AddRows(t *render.Table, theme render.Theme) {
	for i, s := range r.Segments {
		if !r.shown(s) {
			continue
		}
		verdict, active, at, by, largest := "keep", "", "-", "-", "-"
		if s.Verdict.Rule != Keep {
			verdict = theme.Look("delete")
		} else if s.blocks(r) {
			verdict = theme.Bad("keep")
		}
		if s.Active() {
			active = "active"
		}
		if s.Verdict.AtMs != Never {
			at = render.Instant(s.Verdict.AtMs)
		}
		if s.Verdict.By >= 0 {
			by = strconv.FormatInt(r.Segments[s.Verdict.By].Base, 10)
		}
		if s.log.largestMs != noTimestamp {
			largest = render.Instant(s.log.largestMs)
		}
		t.Row(render.Escaped(r.Partition.Name), strconv.FormatInt(s.Base, 10), strconv.FormatInt(s.Size, 10), active,
			render.Instant(s.LargestMs), sourceTitles[s.Source], largest, render.Duration(r.Log.NowMs-s.LargestMs), verdict,
			string(s.Verdict.Rule), at, by, r.Reason(i))
	}
}

// Plan are the files that a broker removes when it deletes the segments that go: the log, its indexes and the producer
// snapshot at its base offset (LogSegment.deleteIfExists, ProducerStateManager.removeAndMarkSnapshotForDeletion).
func (r *Report) Plan() []*logdir.File {
	var files []*logdir.File
	for _, s := range r.Segments {
		if s.Verdict.Rule == Keep || !r.shown(s) {
			continue
		}
		for _, f := range []*logdir.File{s.Log, s.Index, s.TimeIndex, s.TxnIndex,
			s.Log.Sibling(format.KindProducerSnapshot)} {
			if f != nil {
				files = append(files, f)
			}
		}
	}
	return files
}
