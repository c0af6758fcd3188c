package metadata

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"kseg/logdir"
	"kseg/render"
	"kseg/state"
)

// Diff are the changes from one point of a metadata log to another, in their order. Those that leave all as it was are
// left out.
type Diff struct {
	From, To int64 // offsets of the records after which the two images stand; -1: before all records
	Changes  []state.Change
	Lost     []state.Lost // offsets in between that could not be read
	Problems []error
}

// Changes folds a metadata log from one point to another and keeps what changed in between and passes the filter.
func Changes(s Source, from, to state.Point, filter Filter) (*Diff, error) {
	if s.Partition == nil {
		return nil, errors.New(s.Display + ": a file alone has no history; name the directory of the metadata log")
	}
	old, err := s.fold(from, state.FoldOptions{})
	if err != nil {
		return nil, err
	}
	d := &Diff{From: old.EndOffset - 1}
	im, err := s.fold(to, state.FoldOptions{From: old.From, Fresh: old.From == nil, Observe: func(c state.Change) {
		t := c.After
		if t == nil {
			t = c.Before
		}
		if c.Origin.Offset >= old.EndOffset && !state.Same(c.Before, c.After) && filter.shows(t, c.Kind) {
			d.Changes = append(d.Changes, c)
		}
	}})
	if err != nil {
		return nil, err
	}
	d.To, d.Problems = im.EndOffset-1, im.Problems
	if im.EndOffset < old.EndOffset {
		return nil, fmt.Errorf("%s: --diff goes forward: record %d comes after record %d", s.Display, d.From, d.To)
	}
	for _, l := range im.Lost {
		if l.Open || l.Last >= old.EndOffset {
			d.Lost = append(d.Lost, l)
		}
	}
	return d, nil
}

// verb is what happened.
func verb(c state.Change) string {
	switch {
	case c.Before == nil:
		return "added"
	case c.After == nil:
		return "removed"
	}
	return "changed"
}

// delta are the fields that differ; of what was added or removed, all. A credential or hidden value that changed is
// told without it.
func delta(c state.Change) (list []fieldChange) {
	var before, after []state.Field
	if c.Before != nil {
		before = c.Before.Fields()
	}
	if c.After != nil {
		after = c.After.Fields()
	}
	for i := range max(len(before), len(after)) {
		switch {
		case i >= len(before):
			list = append(list, fieldChange{after[i].Name, nil, after[i].Value})
		case i >= len(after):
			list = append(list, fieldChange{before[i].Name, before[i].Value, nil})
		case !state.SameValue(before[i].Value, after[i].Value):
			list = append(list, fieldChange{after[i].Name, before[i].Value, after[i].Value})
		}
	}
	return list
}

// fieldChange is what became of a field.
type fieldChange struct {
	name          string
	before, after any
}

func thingOf(c state.Change) state.Thing {
	if c.After != nil {
		return c.After
	}
	return c.Before
}

// AppendText appends a line a change; what does not fit on it goes on below.
func (d *Diff) AppendText(dst []byte, theme render.Theme, width int) []byte {
	table := render.NewColumns("rllln").Fit(theme, 1)
	for _, c := range d.Changes {
		word := verb(c)
		switch word {
		case "added":
			word = theme.Good(word)
		case "removed":
			word = theme.Bad(word)
		default:
			word = theme.Look(word)
		}
		table.Row(fmt.Sprintf("@%d", c.Origin.Offset), theme.Dim(render.Instant(c.Origin.TimestampMs)), word,
			string(c.Kind), render.Escaped(thingOf(c).Title()))
	}
	i := 0
	for line := range strings.Lines(string(table.Append(nil, ""))) {
		line = strings.TrimSuffix(line, "\n")
		text := deltaText(d.Changes[i])
		i++
		dst = append(dst, line...)
		if text != "" && render.Width(line)+2+render.Width(text) <= width {
			dst = append(append(dst, "  "...), text...)
			text = ""
		}
		dst = append(dst, '\n')
		for _, more := range render.Wrap(text, width-8) {
			dst = append(append(append(dst, "        "...), more...), '\n')
		}
	}
	return dst
}

// deltaText says what changed; of what was added only what its title does not say.
func deltaText(c state.Change) string {
	switch {
	case c.After == nil:
		return ""
	case c.Before == nil:
		if config, ok := c.After.(*state.Config); ok && !config.Sensitive() {
			return "= " + render.Escaped(config.Value)
		}
		return addedText(c.After)
	}
	text := ""
	for _, f := range delta(c) {
		if text != "" {
			text += ", "
		}
		text += fmt.Sprintf("%s %s → %s", f.name, cell(f.before), cell(f.after))
	}
	if text == "" {
		return "a value that is not shown"
	}
	return text
}

// telling are the fields that say most about a thing that is new.
var telling = []string{"topic_id", "leader", "replicas", "feature_level", "value", "iterations", "expiration_timestamp",
	"next_producer_id", "broker_epoch"}

func addedText(t state.Thing) string {
	text := ""
	for _, f := range t.Fields() {
		if slices.Contains(telling, f.Name) && !(f.Name == "topic_id" && text == "" && len(t.Fields()) > 2) {
			if text != "" {
				text += ", "
			}
			text += f.Name + " " + cell(f.Value)
		}
	}
	return text
}

// AppendJSON appends an object a change.
func (d *Diff) AppendJSON(dst []byte) []byte {
	for _, c := range d.Changes {
		o := render.NewObj(dst, "metadata_change")
		o.Int("offset", c.Origin.Offset)
		o.Time("timestamp", c.Origin.TimestampMs)
		o.Str("change", verb(c))
		o.Str("type", string(c.Kind))
		o.Str("name", thingOf(c).Title())
		appendDelta(&o, c, "before", "after")
		dst = o.Line()
	}
	return dst
}

// appendDelta appends what a change does to the fields of a thing.
func appendDelta(o *render.Obj, c state.Change, before, after string) {
	o.OpenArray("fields")
	for _, f := range delta(c) {
		o.Open("")
		o.Str("name", f.name)
		appendValue(o, before, f.before)
		appendValue(o, after, f.after)
		o.Close()
	}
	o.CloseArray()
}

// Table has a row a field that changed.
func (d *Diff) Table() Table {
	t := Table{Columns: []render.Column{{Name: "offset", Right: true}, {Name: "time"}, {Name: "change"}, {Name: "type"},
		{Name: "name"}, {Name: "field"}, {Name: "before"}, {Name: "after"}}}
	for _, c := range d.Changes {
		start := []string{fmt.Sprint(c.Origin.Offset), render.Instant(c.Origin.TimestampMs), verb(c), string(c.Kind),
			render.Escaped(thingOf(c).Title())}
		for _, f := range delta(c) {
			t.Rows = append(t.Rows, append(slices.Clone(start), f.name, cell(f.before), cell(f.after)))
		}
	}
	return t
}

// Check is the judgement of one snapshot.
type Check struct {
	Snapshot string
	Offset   int64  // the end (exclusive) of what it covers
	Base     string // what was folded: the snapshot before, and the log after it; "" for the log from its beginning
	Result   string // "same", "differs", "damaged", "unchecked"
	Why      string // why it could not be checked
	// Differences are from what the log adds up to (Before) to what the snapshot says (After).
	Differences []state.Change
}

// CheckSnapshots holds each snapshot of a metadata log against the fold of what is before it: the snapshot before, if
// there is one, and the log from there on.
func CheckSnapshots(s Source) ([]Check, error) {
	if s.Partition == nil {
		return nil, errors.New(s.Display + ": a file alone cannot be checked; name the directory of the metadata log")
	}
	var checks []Check
	err := s.Partition.Steady(func() (err error) {
		checks, err = checkSnapshots(s.Partition, s.MaxBatchBytes)
		return err
	})
	if errors.Is(err, logdir.ErrVanished) {
		return checks, err
	}
	return checks, nil
}

// checkSnapshots is CheckSnapshots, of one look. The error is that of a snapshot which is damaged.
func checkSnapshots(p *logdir.Partition, maxBatch int64) (checks []Check, unread error) {
	var base *logdir.File
	for _, f := range state.Snapshots(p) {
		c := Check{Snapshot: f.Name.Raw, Offset: f.Name.Base}
		im, err := state.ReadImageFile(f, state.FoldOptions{MaxBatchBytes: maxBatch})
		if unread = errors.Join(unread, err); im != nil {
			unread = errors.Join(append(im.Problems, unread)...)
		}
		switch {
		case err != nil:
			c.Result, c.Why = "damaged", err.Error()
		case im.Snapshot == "" || len(im.Lost) > 0:
			c.Result, c.Why = "damaged", errors.Join(im.Problems...).Error()
		default:
			c.check(p, base, im, maxBatch)
			base = f
		}
		checks = append(checks, c)
	}
	return checks, unread
}

func (c *Check) check(p *logdir.Partition, base *logdir.File, im *state.Image, maxBatch int64) {
	if c.Offset == 0 {
		c.Result, c.Why = "unchecked", "it is where the log begins"
		return
	}
	if base != nil {
		c.Base = base.Name.Raw
	}
	folded, err := state.FoldImage(p, state.FoldOptions{Before: &c.Offset, From: base, Fresh: base == nil,
		MaxBatchBytes: maxBatch})
	switch {
	case err != nil:
		c.Result, c.Why = "unchecked", err.Error()
		return
	case len(folded.Lost) > 0:
		c.Result, c.Why = "unchecked", "offsets are missing before it: "+state.LostText(folded.Lost)
		return
	case folded.EndOffset < c.Offset:
		c.Result, c.Why = "unchecked", fmt.Sprintf("the log ends at offset %d, before it", folded.EndOffset)
		return
	}
	c.Result, c.Differences = "same", folded.Unexplained(im)
	if len(c.Differences) > 0 {
		c.Result = "differs"
	}
}

// AppendCheckText appends a line a snapshot, and what differs below it.
func AppendCheckText(dst []byte, checks []Check, theme render.Theme) []byte {
	for _, c := range checks {
		base := "the log from its beginning"
		if c.Base != "" {
			base = "the fold of " + c.Base + " and the log up to it"
		}
		line := ""
		switch c.Result {
		case "same":
			line = theme.Good("same") + "       " + c.Snapshot + " is " + base
		case "differs":
			line = fmt.Sprintf("%s    %s is not %s: %s", theme.Bad("differs"), c.Snapshot, base,
				render.Plural(int64(len(c.Differences)), "difference", "differences"))
		case "damaged":
			line = theme.Bad("damaged") + "    " + render.Escaped(c.Snapshot+": "+c.Why)
		default:
			line = theme.Look("unchecked") + "  " + render.Escaped(c.Snapshot+": "+c.Why)
		}
		dst = append(append(dst, line...), '\n')
		table := render.NewColumns("llnw").Fit(theme, render.Below)
		for _, d := range c.Differences {
			table.Row(differenceWords[verb(d)], string(d.Kind), render.Escaped(thingOf(d).Title()), deltaText(d))
		}
		dst = table.Append(dst, "  ")
	}
	return dst
}

var differenceWords = map[string]string{"added": "only in the snapshot", "removed": "only in the log",
	"changed": "log → snapshot"}

// AppendCheckJSON appends an object a snapshot.
func AppendCheckJSON(dst []byte, checks []Check) []byte {
	for _, c := range checks {
		o := render.NewObj(dst, "metadata_check")
		o.Str("snapshot", c.Snapshot)
		o.Int("end_offset", c.Offset)
		o.StrOrNull("base", c.Base)
		o.Str("result", c.Result)
		o.StrOrNull("reason", c.Why)
		o.OpenArray("differences")
		for _, d := range c.Differences {
			o.Open("")
			o.Str("type", string(d.Kind))
			o.Str("name", thingOf(d).Title())
			o.Str("what", map[string]string{"added": "only_in_snapshot", "removed": "only_in_log",
				"changed": "other_values"}[verb(d)])
			appendDelta(&o, d, "log", "snapshot")
			o.Close()
		}
		o.CloseArray()
		dst = o.Line()
	}
	return dst
}

// CheckTable has a row a snapshot.
func CheckTable(checks []Check) Table {
	t := Table{Columns: []render.Column{{Name: "snapshot"}, {Name: "result"}, {Name: "base"},
		{Name: "differences", Right: true}, {Name: "why"}}}
	for _, c := range checks {
		t.Rows = append(t.Rows, []string{c.Snapshot, c.Result, orDash(c.Base), fmt.Sprint(len(c.Differences)),
			render.Escaped(c.Why)})
	}
	return t
}
