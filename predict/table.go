package predict

import (
	"strconv"

	"kseg/broker"
	"kseg/render"
)

// Columns are those of the table form.
func Columns() []render.Column {
	return []render.Column{{Name: "partition"}, {Name: "shutdown"}, {Name: "recovery point", Right: true},
		{Name: "outcome"}, {Name: "log start", Right: true}, {Name: "log end", Right: true},
		{Name: "segments", Right: true}, {Name: "bytes read", Right: true}, {Name: "bytes lost", Right: true},
		{Name: "lost offsets"}, {Name: "why"}}
}

// AddRows adds a row a partition.
func (b *Broker) AddRows(t *render.Table, theme render.Theme) {
	for _, p := range b.Partitions {
		if p.Loaded != nil {
			addRow(t, theme, p)
		}
	}
}

func addRow(t *render.Table, theme render.Theme, p *broker.PartitionStart) {
	outcome, start, end, segments, why := theme.Good("loads"), "-", "-", "-", ""
	n := func(v int64) string { return strconv.FormatInt(v, 10) }
	switch {
	case p.Failure != nil:
		outcome, why = theme.Bad("fails"), p.Failure.Error()
	case p.Hidden():
		outcome, why = theme.Bad("stray"), p.Stray
	case p.Stray != "":
		outcome, why = "stray", p.Stray
	case !p.Harmless():
		outcome = theme.Bad("loses")
	}
	if p.Failure == nil {
		start, end, segments = n(p.Loaded.LogStart), n(p.LogEnd), n(int64(len(p.Segments)))
	}
	if len(p.Cuts) > 0 && p.Cuts[0].Why != nil && why == "" {
		why = p.Cuts[0].File + ": " + p.Cuts[0].Why.Error()
	}
	t.Row(render.Escaped(p.Partition.Display), shutdown(p.Clean), n(p.RecoveryPoint), outcome, start, end, segments,
		n(p.BytesRead), n(p.Lost.Bytes), ranges(p.Lost.Ranges), render.Escaped(why))
}
