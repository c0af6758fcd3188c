package lookup

import (
	"fmt"
	"slices"
	"strings"

	"kseg/render"
)

// AppendJSON appends the row as an object of kind density, one line.
func (d *Density) AppendJSON(dst []byte) []byte {
	o := render.NewObj(dst, "density")
	o.Str("path", d.Path)
	o.StrOrNull("topic", d.Topic)
	o.StrOrNull("partition", d.Partition)
	o.IntOrNull("interval", d.Supposed, d.Supposed >= 0)
	o.Str("rule", d.rule())
	o.Int("segments", d.Segments)
	o.Int("batches", d.Batches)
	floatOrNull(&o, "mean_batch_bytes", d.meanBatch(), d.Batches > 0)
	o.Int("entries", d.Entries)
	floatOrNull(&o, "entries_per_batch", d.perBatch(), d.Batches > 0)
	floatOrNull(&o, "bytes_per_entry", d.perEntry(), d.Entries > 0)
	o.StrOrNull("regime", d.Regime.String())
	appendCost(&o, "bytes_scanned", d.MeanBytes, d.MaxBytes)
	appendCost(&o, "header_hops", d.MeanHops, d.MaxHops)
	o.Int("maps", d.Maps())
	o.Int("log_bytes", d.LogBytes)
	o.Int("offsets", d.Offsets)
	o.Int("not_found", d.Astray())
	o.IntOrNull("inferred_least", d.Interval.Least, d.Supposed < 0 && d.Interval.Known)
	o.IntOrNull("inferred_most", d.Interval.Most, d.Supposed < 0 && d.Interval.bounded())
	return o.Line()
}

func appendCost(o *render.Obj, name string, mean float64, most int64) {
	o.Open(name)
	o.Float("mean", mean, 3)
	o.Int("max", most)
	o.Close()
}

func floatOrNull(o *render.Obj, name string, v float64, present bool) {
	if !present {
		o.Null(name)
		return
	}
	o.Float(name, v, 3)
}

func (d *Density) rule() string {
	if d.PerAppend {
		return "per-append"
	}
	return "per-batch"
}

func (d *Density) meanBatch() float64 { return float64(d.BatchBytes) / float64(max(1, d.Batches)) }

func (d *Density) perBatch() float64 { return float64(d.Entries) / float64(max(1, d.Batches)) }

func (d *Density) perEntry() float64 { return float64(d.LogBytes) / float64(max(1, d.Entries)) }

// A Comparison is the rows of all partitions that were asked for, a partition's own index before its what-ifs.
type Comparison struct {
	Rows []*Density
	// MaxMapCount is what vm.max_map_count is supposed to be on the broker's machine.
	MaxMapCount int64

	named  *Density            // the first partition that was an operand itself
	inDirs map[string]*Density // by name, the first of those in log directories
}

// Add adds the rows of a partition. Its own index is compared with that of the first partition that was an operand too,
// or, if it lies in a log directory, with that of the partition of its name in a directory before.
func (c *Comparison) Add(p *Partition, rows []*Density) {
	own := rows[0]
	switch first := c.inDirs[p.Name]; {
	case p.Operand && c.named == nil:
		c.named = own
	case p.Operand:
		own.Against = c.named
	case first == nil:
		if c.inDirs == nil {
			c.inDirs = map[string]*Density{}
		}
		c.inDirs[p.Name] = own
	default:
		own.Against = first
	}
	c.Rows = append(c.Rows, rows...)
}

// own are the rows of the files' own indexes.
func (c *Comparison) own() []*Density {
	var out []*Density
	for _, d := range c.Rows {
		if d.Supposed < 0 {
			out = append(out, d)
		}
	}
	return out
}

// SideBySide reports whether any row is compared with another.
func (c *Comparison) SideBySide() bool {
	return slices.ContainsFunc(c.Rows, func(d *Density) bool { return d.Against != nil })
}

// Differs reports whether any two partitions that are compared differ in cost; where none are, whether any what-if
// differs from what is on disk.
func (c *Comparison) Differs() bool {
	rows := slices.DeleteFunc(c.own(), func(d *Density) bool { return d.Against == nil })
	if len(rows) == 0 {
		rows = slices.DeleteFunc(slices.Clone(c.Rows), func(d *Density) bool { return d.Against == nil })
	}
	return slices.ContainsFunc(rows, func(d *Density) bool { return !d.SameCost(d.Against) })
}

// DensityColumns head the table.
var DensityColumns = []render.Column{
	{Name: "path"}, {Name: "interval", Right: true}, {Name: "segments", Right: true}, {Name: "batches", Right: true},
	{Name: "mean batch", Right: true}, {Name: "entries", Right: true}, {Name: "per batch", Right: true},
	{Name: "bytes/entry", Right: true},
	{Name: "regime"}, {Name: "scan mean", Right: true}, {Name: "max", Right: true}, {Name: "hops mean", Right: true},
	{Name: "max", Right: true},
	{Name: "compared"},
}

// Cells are the table's rows.
func (c *Comparison) Cells(th render.Theme) [][]string {
	var rows [][]string
	for _, d := range c.Rows {
		rows = append(rows, append(d.cells(th), d.against()))
	}
	return rows
}

func (d *Density) cells(th render.Theme) []string {
	perEntry := ""
	if d.Entries > 0 {
		perEntry = mean(d.perEntry())
	}
	regime := d.Regime.String()
	switch d.Regime {
	case Plateau:
		regime = th.Good(regime)
	case Thinning:
		regime = th.Look(regime)
	case Cliff:
		regime = th.Bad(regime)
	}
	return []string{render.Escaped(d.Path), d.intervalCell(), fmt.Sprint(d.Segments), fmt.Sprint(d.Batches),
		mean(d.meanBatch()), fmt.Sprint(d.Entries), decimal(d.perBatch()), perEntry, regime, mean(d.MeanBytes),
		fmt.Sprint(d.MaxBytes), decimal(d.MeanHops), fmt.Sprint(d.MaxHops)}
}

func (d *Density) intervalCell() string {
	switch {
	case d.Supposed >= 0:
		return fmt.Sprint(d.Supposed)
	case d.Interval.Source == FromTopic:
		return fmt.Sprint(d.Interval.Bytes)
	case d.Interval.Known:
		return d.Interval.span()
	}
	return "?"
}

// against says how a row differs from the one it is compared with.
func (d *Density) against() string {
	first := d.Against
	if first == nil {
		return ""
	}
	what := "with " + render.Escaped(first.Path) + ": "
	if d.Supposed >= 0 {
		what = "with the index on disk: "
	}
	return what + d.difference(first)
}

func (d *Density) difference(first *Density) string {
	switch {
	case d.SameIndexes(first) && d.SameCost(first):
		return "identical indexes"
	case d.SameCost(first):
		return "same cost"
	}
	var parts []string
	if d.Batches != first.Batches {
		parts = append(parts, "batches "+change(float64(d.Batches), float64(first.Batches)))
	}
	if d.Entries != first.Entries {
		parts = append(parts, "entries "+change(float64(d.Entries), float64(first.Entries)))
	}
	if d.MeanBytes != first.MeanBytes {
		parts = append(parts, "scan "+change(d.MeanBytes, first.MeanBytes))
	}
	if d.MaxBytes != first.MaxBytes {
		parts = append(parts, "max "+change(float64(d.MaxBytes), float64(first.MaxBytes)))
	}
	return strings.Join(parts, ", ")
}

// change writes how much v differs from what it was: +12%, −50%, or ×3.1 from twice as much on.
func change(v, was float64) string {
	switch {
	case was == 0:
		return fmt.Sprintf("0 → %.0f", v)
	case v >= 2*was:
		return fmt.Sprintf("×%.1f", v/was)
	case v >= was:
		return fmt.Sprintf("+%.1f%%", (v/was-1)*100)
	}
	return fmt.Sprintf("−%.1f%%", (1-v/was)*100)
}

// AppendText appends the comparison for a reader: the table, what it means, the plot.
func (c *Comparison) AppendText(dst []byte, st Style) []byte {
	columns := DensityColumns
	if !c.SideBySide() {
		columns = columns[:len(columns)-1]
	}
	table := render.HeadedColumns(st.Theme, columns, "", "mean batch", "hops mean", "segments", "bytes/entry", "batches",
		"per batch", "regime")
	for _, row := range c.Cells(st.Theme) {
		table.Row(row[:len(columns)]...)
	}
	dst = table.Append(dst, "")
	for _, s := range c.Sentences() {
		for _, line := range render.Wrap(render.Escaped(s), max(40, st.Width)) {
			dst = append(dst, line...)
			dst = append(dst, '\n')
		}
	}
	if p := c.Plot(); p != nil {
		dst = append(dst, '\n')
		dst = p.AppendText(dst, st)
	}
	return dst
}

// maxSentences bounds what is said about single rows.
const maxSentences = 12

// Sentences say what the numbers mean.
func (c *Comparison) Sentences() []string {
	var out []string
	out = append(out, c.plateaus()...)
	shown := 0
	for _, d := range c.Rows {
		about := d.sentences()
		if shown += len(about); shown > maxSentences {
			out = append(out, "There is more to say about other rows: ask for fewer paths at a time.")
			break
		}
		out = append(out, about...)
	}
	out = append(out, c.twins()...)
	return append(out, c.maps(), c.ruleSentence())
}

// plateaus says for each path which intervals make no difference because the batches are larger.
func (c *Comparison) plateaus() []string {
	type plateau struct {
		first     *Density
		intervals []string
	}
	var found []*plateau
	for _, d := range c.Rows {
		if d.Regime != Plateau || d.Entries == 0 {
			continue
		}
		at := slices.IndexFunc(found, func(p *plateau) bool {
			return p.first.SmallestBatch == d.SmallestBatch && p.first.LargestBatch == d.LargestBatch
		})
		if at < 0 {
			found, at = append(found, &plateau{first: d}), len(found)
		}
		if d.Supposed >= 0 {
			found[at].intervals = append(found[at].intervals, fmt.Sprint(d.Supposed))
		}
	}
	if len(found) > 3 {
		return []string{"Where the regime is plateau, batches are larger than the interval: every batch but the first of a " +
			"segment is indexed, and a smaller interval adds nothing."}
	}
	var out []string
	for _, p := range found {
		size := fmt.Sprintf("%d bytes", p.first.SmallestBatch)
		if p.first.SmallestBatch != p.first.LargestBatch {
			size = fmt.Sprintf("%d to %d bytes", p.first.SmallestBatch, p.first.LargestBatch)
		}
		than := "the interval"
		switch n := len(p.intervals); {
		case n == 1:
			than = "interval " + p.intervals[0]
		case n > 1:
			than = "intervals " + strings.Join(p.intervals[:n-1], ", ") + " and " + p.intervals[n-1]
		}
		out = append(out, fmt.Sprintf("Batches (%s) are larger than %s: every batch but the first of a segment is indexed, "+
			"and a smaller interval adds nothing.", size, than))
	}
	return out
}

// sentences are about one row.
func (d *Density) sentences() []string {
	var out []string
	if d.Regime == Cliff && d.MaxBytes > 0 {
		interval := "The interval"
		if d.Supposed >= 0 {
			interval = fmt.Sprintf("Interval %d", d.Supposed)
		}
		if d.Missing == 0 {
			out = append(out, fmt.Sprintf("%s: %s is larger than the segments: no batch is indexed, and lookups scan from "+
				"the start.", d.Path, interval))
		}
	}
	if d.Missing > 0 {
		out = append(out, fmt.Sprintf("%s: %s no offset index; a broker writes a new one when it starts.", d.Path,
			render.Plural(int64(d.Missing), "segment has", "segments have")))
	}
	if n := d.Astray(); n > 0 {
		out = append(out, fmt.Sprintf("%s: %s lead to no batch; kseg lookup --sweep says where, kseg verify why.", d.Path,
			render.Plural(n, "offset", "offsets")))
	}
	if d.Gain != nil {
		out = append(out, d.gainSentence())
	}
	return out
}

// gainSentence says what a rebuild would make of an index of one entry an append.
func (d *Density) gainSentence() string {
	g := d.Gain
	text := fmt.Sprintf("%s: the index was written one entry an append, as brokers before 4.0.1 do. A rebuild (kseg "+
		"verify --rebuild, or a broker's recovery) with interval %d", d.Path, g.Supposed)
	if g.MeanBytes >= d.MeanBytes {
		return text + fmt.Sprintf(" would gain nothing: %d entries for %d.", g.Entries, d.Entries)
	}
	return text +
		fmt.Sprintf(" has %d entries for %d: the mean scan drops from %s to %s bytes, the longest from %d to %d.",
			g.Entries, d.Entries, mean(d.MeanBytes), mean(g.MeanBytes), d.MaxBytes, g.MaxBytes)
}

// twins names the paths whose own indexes are the same.
func (c *Comparison) twins() []string {
	own := c.own()
	var out []string
	for i, d := range own {
		if d.Entries == 0 || slices.ContainsFunc(own[:i], d.SameIndexes) {
			continue
		}
		same := []string{d.Path}
		for _, o := range own[i+1:] {
			if o.SameIndexes(d) {
				same = append(same, o.Path)
			}
		}
		if n := len(same); n > 1 {
			out = append(out, fmt.Sprintf("The offset indexes of %s and %s are the same, byte for byte.",
				strings.Join(same[:n-1], ", "), same[n-1]))
		}
	}
	return out
}

// maps compares the memory maps of all partitions with what Linux allows a process.
func (c *Comparison) maps() string {
	maps := int64(0)
	for _, d := range c.own() {
		maps += d.Maps()
	}
	text := fmt.Sprintf("A broker maps 2 files a segment: %s here, of vm.max_map_count %d (%.1f%%).",
		render.Plural(maps, "map", "maps"), c.MaxMapCount, float64(maps)/float64(c.MaxMapCount)*100)
	if maps > c.MaxMapCount {
		text += " That is more than the kernel allows: the broker would crash."
	}
	return text
}

// ruleSentence names the writer that what-ifs are modelled on.
func (c *Comparison) ruleSentence() string {
	if slices.ContainsFunc(c.Rows, func(d *Density) bool { return d.Supposed >= 0 }) {
		return "An interval's row is modelled as brokers from 4.0.1 on write: at most one entry a batch, no restart in " +
			"between."
	}
	return "Rule: at most one entry a batch (4.0.1 and later), unless said otherwise."
}

// Plot shows the costliest segment of each row; nil if there are too many rows, or no lookup found a batch.
func (c *Comparison) Plot() *Plot {
	const most = 6
	if len(c.Rows) > most {
		return nil
	}
	p := &Plot{Title: "bytes scanned over offsets, in the costliest segment", Axis: "offset, from the segment's base on",
		Last: -1}
	for _, d := range c.Rows {
		s := d.Curve
		if s.Curve == nil || s.LastOffset < s.Base {
			continue
		}
		name := d.Path
		if d.Supposed >= 0 {
			name += fmt.Sprintf(", interval %d", d.Supposed)
		}
		p.Series = append(p.Series, Series{Name: fmt.Sprintf("%s (segment %d)", name, s.Base), Curve: s.Curve, Bound: s.Bound,
			Shift: s.Base})
		p.Last = max(p.Last, s.LastOffset-s.Base)
	}
	if len(p.Series) == 0 {
		return nil
	}
	return p
}
