package metadata

import (
	"fmt"
	"strings"

	"kseg/render"
	"kseg/state"
)

// Report is an image and what is shown of it.
type Report struct {
	Source    Source
	Image     *state.Image
	ClusterID string // "" if no meta.properties tells
	Filter    Filter
	Misplaced []Misplaced
	// Placed is false if the image was not compared with the disk: it is not that of the log's end, or no log directory
	// was given.
	Placed bool
}

func (r *Report) things(kind state.ThingKind) []state.Thing {
	var list []state.Thing
	for _, t := range r.Image.Things(kind) {
		if r.Filter.shows(t, kind) {
			list = append(list, t)
		}
	}
	return list
}

// Leftovers say which settings are of topics that were deleted.
func (r *Report) Leftovers() (out []string) {
	for _, t := range r.Image.Things(state.ConfigThing) {
		if c := t.(*state.Config); c.Leftover && r.Filter.shows(t, state.ConfigThing) {
			out = append(out, c.Title()+" was set for a topic of that name that was deleted: a broker that starts now takes "+
				"it for the new one, and one that ran all the time does not")
		}
	}
	return out
}

// Empty reports whether the filter leaves nothing.
func (r *Report) Empty() bool {
	for _, kind := range state.ThingKinds {
		if len(r.things(kind)) > 0 {
			return false
		}
	}
	return true
}

// AppendText appends the answer, then a table a kind of things.
func (r *Report) AppendText(dst []byte, theme render.Theme, width int) []byte {
	if !r.Filter.Narrow() {
		dst = r.appendHead(dst, theme, width)
	}
	for _, s := range sections {
		list, title := r.things(s.kind), s.title
		if s.kind == state.PartitionThing && !r.Filter.Narrow() {
			list, _ = troubled(r.Image)
			title = "partitions in trouble"
		}
		if len(list) > 0 {
			dst = r.appendSection(dst, s, title, list, theme)
		}
	}
	return r.appendMisplaced(dst, theme)
}

func (r *Report) appendHead(dst []byte, theme render.Theme, width int) []byte {
	im := r.Image
	sick, stopped := troubled(im)
	var parts []string
	count := func(kind state.ThingKind, one, many string) {
		if n := len(im.Things(kind)); n > 0 {
			parts = append(parts, render.Plural(int64(n), one, many))
		}
	}
	count(state.BrokerThing, "broker", "brokers")
	count(state.ControllerThing, "controller", "controllers")
	count(state.TopicThing, "topic", "topics")
	count(state.PartitionThing, "partition", "partitions")
	if len(sick) > 0 {
		parts = append(parts, theme.Bad(render.Count(int64(len(sick)))+" in trouble"))
	}
	if stopped > 0 {
		parts = append(parts, render.Count(int64(stopped))+" without a leader as their brokers are fenced")
	}
	count(state.ConfigThing, "config", "configs")
	count(state.QuotaThing, "quota", "quotas")
	count(state.ACLThing, "ACL", "ACLs")
	count(state.ScramThing, "SCRAM user", "SCRAM users")
	count(state.TokenThing, "delegation token", "delegation tokens")
	name := "cluster"
	if r.ClusterID != "" {
		name += " " + render.Escaped(r.ClusterID)
	}
	for i, line := range render.Wrap(name+": "+strings.Join(parts, ", "), width) {
		if i == 0 {
			line = strings.Replace(line, name, theme.Strong(name), 1)
		}
		dst = append(append(dst, line...), '\n')
	}
	for _, line := range render.Wrap(r.asOf(), width) {
		dst = append(append(dst, line...), '\n')
	}
	return dst
}

// asOf says what the image was made of.
func (r *Report) asOf() string {
	im := r.Image
	text := "before the first record"
	if im.EndOffset > 0 {
		text = fmt.Sprintf("as of record %d", im.EndOffset-1)
	}
	if im.EndOffset > 0 && im.HasEndMs && im.EndMs >= 0 {
		text += ", " + render.Instant(im.EndMs) + " UTC"
	}
	switch {
	case im.Snapshot != "" && im.EndOffset > im.SnapshotOffset:
		text += fmt.Sprintf(": snapshot %s and the records %d–%d after it", im.Snapshot, im.SnapshotOffset, im.EndOffset-1)
	case im.Snapshot != "":
		text += ": snapshot " + im.Snapshot
	case im.EndOffset > 0:
		text += ": the log from its beginning"
	}
	if voters := im.Voters(); len(voters) > 1 {
		text += fmt.Sprintf("; the last records may not be committed: the quorum has the voters %s", numbers(voters))
	}
	return render.Escaped(text)
}

func (r *Report) appendSection(dst []byte, s section, title string, list []state.Thing, theme render.Theme) []byte {
	if len(dst) > 0 {
		dst = append(dst, '\n')
	}
	dst = append(append(dst, theme.Strong(title)...), '\n')
	table := render.NewColumns(s.right+"rll").Fit(theme, len(s.columns)+1, len(s.columns)-1, len(s.columns),
		len(s.columns)-2)
	var head []string
	for _, column := range s.columns {
		head = append(head, theme.Dim(heading(column)))
	}
	table.Head(append(head, theme.Dim("record"), theme.Dim("time"))...)
	for _, t := range list {
		var cells []string
		for _, column := range s.columns {
			cells = append(cells, textCell(r.Image, t, column, theme))
		}
		o := t.Origin()
		cells = append(cells, from(o), theme.Dim(render.Minute(o.TimestampMs)))
		if r.Image.Unsure(t) {
			cells = append(cells, theme.Look("unsure"))
		}
		table.Row(cells...)
	}
	return table.Append(dst, "  ")
}

func (r *Report) appendMisplaced(dst []byte, theme render.Theme) []byte {
	if !r.Placed || r.Filter.Narrow() || len(r.Misplaced) == 0 {
		return dst
	}
	dst = append(dst, '\n')
	dst = append(append(dst, theme.Strong("not where the image has it")...), '\n')
	table := render.NewColumns("nnw").Fit(theme, 1)
	for _, m := range r.Misplaced {
		message := m.Message
		if m.Unsure {
			message += "; unsure, as records are lost"
		}
		table.Row(theme.Bad(render.Escaped(m.Partition)), render.Escaped(m.LogDir), message)
	}
	return table.Append(dst, "  ")
}

// AppendJSON appends the summary and the things, a line each.
func (r *Report) AppendJSON(dst []byte) []byte {
	if !r.Filter.Narrow() {
		dst = r.appendSummary(dst)
	}
	for _, kind := range state.ThingKinds {
		for _, t := range r.things(kind) {
			o := render.NewObj(dst, string(kind))
			appendFields(&o, fields(t))
			appendOrigin(&o, t.Origin())
			o.Bool("unsure", r.Image.Unsure(t))
			dst = o.Line()
		}
	}
	if !r.Placed || r.Filter.Narrow() {
		return dst
	}
	for _, m := range r.Misplaced {
		o := render.NewObj(dst, "misplaced")
		o.Str("partition", m.Partition)
		o.Str("log_dir", m.LogDir)
		o.Str("what", m.What)
		o.Bool("unsure", m.Unsure)
		o.Str("message", m.Message)
		dst = o.Line()
	}
	return dst
}

func (r *Report) appendSummary(dst []byte) []byte {
	im := r.Image
	o := render.NewObj(dst, "metadata_image")
	o.StrOrNull("cluster_id", r.ClusterID)
	o.Str("source", r.Source.Display)
	o.StrOrNull("snapshot", im.Snapshot)
	o.IntOrNull("snapshot_end_offset", im.SnapshotOffset, im.Snapshot != "")
	o.Int("end_offset", im.EndOffset)
	endMs := im.EndMs
	if !im.HasEndMs {
		endMs = render.NoTimestamp
	}
	o.Time("timestamp", endMs)
	o.OpenArray("lost")
	for _, l := range im.Lost {
		o.Open("")
		o.Int("first_offset", l.First)
		o.IntOrNull("last_offset", l.Last, !l.Open)
		o.Close()
	}
	o.CloseArray()
	o.Int("newer_records", int64(im.Newer))
	appendValue(&o, "voters", im.Voters())
	for _, kind := range state.ThingKinds {
		o.Int(countNames[kind], int64(len(im.Things(kind))))
	}
	return o.Line()
}

var countNames = map[state.ThingKind]string{state.BrokerThing: "brokers", state.ControllerThing: "controllers",
	state.FeatureThing: "features",
	state.TopicThing:   "topics", state.PartitionThing: "partitions", state.ConfigThing: "configs",
	state.QuotaThing: "quotas",
	state.ACLThing:   "acls", state.ScramThing: "scram_users", state.TokenThing: "delegation_tokens",
	state.ProducerThing: "producer_ids"}

func appendOrigin(o *render.Obj, at state.Origin) {
	o.IntOrNull("offset", at.Offset, at.Snapshot == "")
	o.StrOrNull("snapshot", at.Snapshot)
	o.Time("timestamp", at.TimestampMs)
}

func appendFields(o *render.Obj, list []state.Field) {
	for _, f := range list {
		appendValue(o, f.Name, f.Value)
	}
}

func appendValue(o *render.Obj, name string, v any) {
	switch v := v.(type) {
	case nil:
		o.Null(name)
	case bool:
		o.Bool(name, v)
	case int64:
		o.Int(name, v)
	case float64:
		o.Float(name, v, -1)
	case string:
		o.Str(name, v)
	case state.Millis:
		o.Time(name, int64(v))
	case []string:
		o.Strs(name, v)
	case []int32:
		o.OpenArray(name)
		for _, n := range v {
			o.Int("", int64(n))
		}
		o.CloseArray()
	case [][]state.Field:
		o.OpenArray(name)
		for _, list := range v {
			o.Open("")
			appendFields(o, list)
			o.Close()
		}
		o.CloseArray()
	}
}

// Table is one of the tables of -o table and -o csv.
type Table struct {
	Columns []render.Column
	Rows    [][]string
}

// Tables are the things, a table a kind, with all they say.
func (r *Report) Tables() []Table {
	var tables []Table
	for _, kind := range state.ThingKinds {
		var table Table
		for _, t := range r.things(kind) {
			row := []string{string(kind)}
			columns := []render.Column{{Name: "kind"}}
			for _, f := range fields(t) {
				_, number := f.Value.(int64)
				columns = append(columns, render.Column{Name: f.Name, Right: number})
				row = append(row, cell(f.Value))
			}
			if table.Columns == nil {
				table.Columns = append(columns, render.Column{Name: "offset"}, render.Column{Name: "time"},
					render.Column{Name: "unsure"})
			}
			o := t.Origin()
			unsure := ""
			if r.Image.Unsure(t) {
				unsure = "unsure"
			}
			table.Rows = append(table.Rows, append(row, strings.TrimPrefix(from(o), "@"), render.Instant(o.TimestampMs), unsure))
		}
		if table.Rows != nil {
			tables = append(tables, table)
		}
	}
	return tables
}

// OneKind is the kind of all that is shown, with the names that its things have in JSON; false if there are several.
func (r *Report) OneKind() (kind state.ThingKind, names []string, one bool) {
	for _, k := range state.ThingKinds {
		list := r.things(k)
		if len(list) == 0 {
			continue
		}
		if names != nil {
			return "", nil, false
		}
		kind = k
		for _, f := range fields(list[0]) {
			names = append(names, f.Name)
		}
		names = append(names, "offset", "snapshot", "timestamp", "unsure")
	}
	return kind, names, names != nil
}

// Long is what Tables hold as one table, a row a field: for programs that take one header only.
func (r *Report) Long() Table {
	long := Table{Columns: []render.Column{{Name: "kind"}, {Name: "name"}, {Name: "field"}, {Name: "value"},
		{Name: "offset"}, {Name: "time"}, {Name: "unsure"}}}
	for _, kind := range state.ThingKinds {
		for _, t := range r.things(kind) {
			unsure := ""
			if r.Image.Unsure(t) {
				unsure = "unsure"
			}
			o := t.Origin()
			for _, f := range fields(t) {
				long.Rows = append(long.Rows, []string{string(kind), render.Escaped(t.Title()), f.Name, cell(f.Value),
					strings.TrimPrefix(from(o), "@"), render.Instant(o.TimestampMs), unsure})
			}
		}
	}
	return long
}
