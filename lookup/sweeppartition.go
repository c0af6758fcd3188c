package lookup

import (
	"context"
	"fmt"
	"math"

	"kseg/format"
	"kseg/logdir"
	"kseg/render"
)

// A SegmentSweep is the sweep over one segment of a partition.
type SegmentSweep struct {
	Base, LastOffset int64 // LastOffset is Base−1 if the segment has no batch
	Active           bool
	Missing          bool // there is no index file
	Entries          int64
	Survey           Survey
	Sweep            Sweep
	Bound            int64 // bytes
	Curve            *Curve
}

// Held reports whether no lookup scanned more than the bound.
func (s *SegmentSweep) Held() bool { return s.Sweep.Bytes.Max <= s.Bound }

// A PartitionSweep is the sweep over the segments of a partition.
type PartitionSweep struct {
	Partition *Partition
	Supposed  int64 // the --interval, −1 for the files' own indexes
	Interval  Interval
	Segments  []*SegmentSweep
	Total     Totals
	// Anew: the indexes are those that the next start makes, since those on disk lead astray.
	Anew bool
}

// Totals sum up the lookups over several segments.
type Totals struct {
	Segments, Batches, BatchBytes, Entries int64
	Offsets, NotFound, Failed, Unmeasured  int64
	MeanBytes, MeanHops                    float64
	MaxBytes, MaxHops                      int64
	WorstSegment                           int // index of the segment with the costliest lookup, −1 if none was made
}

// Astray counts the offsets that lead to no batch.
func (t *Totals) Astray() int64 { return t.NotFound + t.Failed }

// A Progress is told how many bytes of logs have been gone through. It may be nil.
type Progress func(bytes int64)

// Sweep looks up every offset of every segment, through the indexes that the next start makes where those on disk lead
// astray.
func (p *Partition) Sweep(ctx context.Context, o Options, progress Progress) (*PartitionSweep, error) {
	out, err := p.sweep(ctx, o, progress)
	if err != nil || o.Interval >= 0 || out.Total.Astray() == 0 {
		return out, err
	}
	after := p.afterStart()
	if after == nil {
		return out, nil
	}
	if next, err := after.sweep(ctx, o, nil); err == nil && next.Total.Astray() < out.Total.Astray() {
		next.Anew = true
		return next, nil
	}
	return out, ctx.Err()
}

func (p *Partition) sweep(ctx context.Context, o Options, progress Progress) (*PartitionSweep, error) {
	if len(p.Segments) == 0 {
		return nil, p.dir.NoSegment()
	}
	out := &PartitionSweep{Partition: p, Supposed: o.Interval}
	var e evidence
	for _, seg := range p.Segments {
		one, err := p.sweepSegment(ctx, seg, o, progress)
		if err != nil {
			return nil, err
		}
		e.add(&one.Survey)
		out.Segments = append(out.Segments, one)
	}
	out.Interval = p.interval(o.Interval, &e)
	for _, s := range out.Segments {
		s.Bound = out.Interval.bound(&s.Survey)
	}
	out.Total = total(out.Segments)
	return out, nil
}

// sweepSegment walks the headers of one segment and then looks all its offsets up.
func (p *Partition) sweepSegment(ctx context.Context, seg *logdir.Segment, o Options, progress Progress) (*SegmentSweep,
	error) {
	out := &SegmentSweep{Base: seg.Base, LastOffset: seg.Base - 1, Active: seg.Next == nil, Missing: seg.Index == nil}
	err := p.view(ctx, seg, func(s *Segment) error {
		var supposed *rebuild
		takers := []func(format.BatchRef){p.pace(seg.Log, s.Log, progress)}
		if o.Interval >= 0 {
			supposed = newRebuild(s.Base, o.Interval)
			takers = append(takers, supposed.take)
		}
		s.keeps = true
		out.Survey = s.Survey(takers...)
		if supposed != nil {
			s.Index = supposed.finish().OffsetIndex()
		}
		out.Entries = int64(s.Index.Len())
		out.LastOffset = lastOffset(seg, &out.Survey)
		out.Curve = NewCurve(s.Base)
		out.Sweep = s.Sweep(out.LastOffset, out.Survey.Batches, out.Curve.Add)
		return nil
	})
	return out, err
}

// lastOffset is the last offset that is looked up in a segment. No segment holds offsets of 2^31 or more above its
// base, whatever a damaged header says, and what lies at or above the next base offset is looked up there. After the
// largest offset there must be one that is the next.
func lastOffset(seg *logdir.Segment, s *Survey) int64 {
	last := min(s.NextOffset-1, satAdd(max(seg.Base, 0), math.MaxInt32), math.MaxInt64-1)
	if seg.Next != nil {
		last = min(last, seg.Next.Base-1)
	}
	return last
}

// paceWindow is the size of the pieces in which a log is gone through.
const paceWindow = 4 << 20

// survey is s.Survey at the rate that is allowed.
func (p *Partition) survey(seg *logdir.Segment, s *Segment, takers ...func(format.BatchRef)) Survey {
	if p.Gentle {
		takers = append(takers, p.pace(seg.Log, s.Log, nil))
	}
	return s.Survey(takers...)
}

// pace returns a taker of batches that tells the progress and, for use beside a live broker, bounds the rate of
// reading.
func (p *Partition) pace(f *logdir.File, log []byte, progress Progress) func(format.BatchRef) {
	var done int64
	return func(b format.BatchRef) {
		for b.Pos >= done {
			end := min(done+paceWindow, int64(len(log)))
			if end <= done {
				return
			}
			if p.Gentle {
				f.Prepare(log[done:end])
			}
			if progress != nil {
				progress(end - done)
			}
			done = end
		}
	}
}

func total(segments []*SegmentSweep) Totals {
	t := Totals{WorstSegment: -1}
	var bytes, hops float64
	for i, s := range segments {
		t.Segments++
		t.Batches += s.Survey.Batches
		t.BatchBytes += s.Survey.Bytes
		t.Entries += s.Entries
		t.Offsets += s.Sweep.Offsets
		t.NotFound += s.Sweep.NotFound
		t.Failed += s.Sweep.Failed
		t.Unmeasured += s.Sweep.Unmeasured
		bytes += s.Sweep.Bytes.Mean * float64(s.Sweep.Offsets)
		hops += s.Sweep.Hops.Mean * float64(s.Sweep.Offsets)
		if s.Sweep.Offsets > 0 && (t.WorstSegment < 0 || s.Sweep.Bytes.Max > t.MaxBytes) {
			t.WorstSegment, t.MaxBytes = i, s.Sweep.Bytes.Max
		}
		t.MaxHops = max(t.MaxHops, s.Sweep.Hops.Max)
	}
	if t.Offsets > 0 {
		t.MeanBytes, t.MeanHops = bytes/float64(t.Offsets), hops/float64(t.Offsets)
	}
	return t
}

// AppendJSON appends a segment's sweep as an object of kind sweep, one line.
func (s *PartitionSweep) AppendJSON(dst []byte, one *SegmentSweep) []byte {
	o := render.NewObj(dst, "sweep")
	o.StrOrNull("topic", s.Partition.Topic)
	o.Str("partition", s.Partition.Name)
	o.Str("path", s.Partition.Display)
	o.Int("segment", one.Base)
	o.Int("offsets", one.Sweep.Offsets)
	o.Int("batches", one.Survey.Batches)
	o.Int("entries", one.Entries)
	o.IntOrNull("interval", s.Supposed, s.Supposed >= 0)
	appendDistribution(&o, "bytes_scanned", one.Sweep.Bytes)
	appendDistribution(&o, "header_hops", one.Sweep.Hops)
	o.IntOrNull("worst_offset", one.Sweep.WorstOffset, one.Sweep.WorstOffset >= 0)
	o.Int("bound", one.Bound)
	o.Bool("bound_held", one.Held())
	o.Int("bound_interval", s.Interval.Bytes)
	o.Str("interval_source", s.Interval.Source)
	o.Int("not_found", one.Sweep.NotFound)
	o.Int("failed", one.Sweep.Failed)
	o.Int("unmeasured", one.Sweep.Unmeasured)
	return o.Line()
}

// SweepColumns head the table of a sweep.
var SweepColumns = []render.Column{
	{Name: "partition"}, {Name: "segment", Right: true}, {Name: "batches", Right: true}, {Name: "entries", Right: true},
	{Name: "offsets", Right: true},
	{Name: "scan mean", Right: true}, {Name: "p50", Right: true}, {Name: "p99", Right: true}, {Name: "max", Right: true},
	{Name: "hops mean", Right: true}, {Name: "p99", Right: true}, {Name: "max", Right: true},
	{Name: "bound", Right: true}, {Name: "worst offset", Right: true}, {Name: ""},
}

// Rows are the table's: a segment each, and the sum if there are several.
func (s *PartitionSweep) Rows(th render.Theme) [][]string {
	rows := s.rows(th)
	for i := range rows {
		rows[i] = append([]string{render.Escaped(s.Partition.Name)}, rows[i]...)
	}
	return rows
}

// rows are those of one partition, without its name.
func (s *PartitionSweep) rows(th render.Theme) [][]string {
	var rows [][]string
	for _, one := range s.Segments {
		w := &one.Sweep
		row := []string{fmt.Sprint(one.Base), fmt.Sprint(one.Survey.Batches), fmt.Sprint(one.Entries), fmt.Sprint(w.Offsets)}
		if w.Offsets == 0 {
			rows = append(rows, append(row, "", "", "", "", "", "", "", "", "", "no offset"))
			continue
		}
		held := th.Good("held")
		if !one.Held() {
			held = th.Look("exceeded")
		}
		rows = append(rows, append(row, mean(w.Bytes.Mean), fmt.Sprint(w.Bytes.P50), fmt.Sprint(w.Bytes.P99),
			fmt.Sprint(w.Bytes.Max), decimal(w.Hops.Mean), fmt.Sprint(w.Hops.P99), fmt.Sprint(w.Hops.Max),
			fmt.Sprint(one.Bound), fmt.Sprint(w.WorstOffset), held))
	}
	if len(s.Segments) > 1 {
		t := s.Total
		worst := ""
		if t.WorstSegment >= 0 {
			worst = fmt.Sprint(s.Segments[t.WorstSegment].Sweep.WorstOffset)
		}
		rows = append(rows, []string{"all", fmt.Sprint(t.Batches), fmt.Sprint(t.Entries), fmt.Sprint(t.Offsets),
			mean(t.MeanBytes), "", "", fmt.Sprint(t.MaxBytes), decimal(t.MeanHops), "", fmt.Sprint(t.MaxHops), "", worst, ""})
	}
	return rows
}

func mean(v float64) string { return fmt.Sprintf("%.0f", math.Round(v)) }

func decimal(v float64) string { return fmt.Sprintf("%.2f", v) }

// AppendText appends the sweep for a reader: a line a segment, the sum, the plot of the costliest segment.
func (s *PartitionSweep) AppendText(dst []byte, st Style) []byte {
	table := render.NewColumns("rrrrrrrrrrrrrl").Fit(st.Theme, 5, 6, 9, 1, 2, 8, 4, 3, 11)
	var header []string
	for _, c := range SweepColumns[1:] {
		header = append(header, st.Theme.Strong(c.Name))
	}
	table.Head(header...)
	for _, row := range s.rows(st.Theme) {
		table.Row(row...)
	}
	dst = table.Append(dst, "")
	how := fmt.Sprintf("%d (%s)", s.Interval.Bytes, s.Interval.Explain())
	legend := "Bytes scanned and headers hopped per lookup; bound = min(interval + largest batch, segment size), " +
		"interval " + how + "."
	for _, line := range render.Wrap(legend, max(40, st.Width)) {
		dst = append(append(dst, line...), '\n')
	}
	notes := render.NewColumns("ll")
	for _, n := range s.notes() {
		for i, line := range render.Wrap(render.Escaped(n), max(40, st.Width-6)) {
			label := ""
			if i == 0 {
				label = st.Theme.Look("note")
			}
			notes.Row(label, line)
		}
	}
	dst = notes.Append(dst, "")
	if p := s.Plot(); p != nil {
		dst = append(dst, '\n')
		dst = p.AppendText(dst, st)
	}
	return dst
}

// notes are what a reader should know beside the numbers.
func (s *PartitionSweep) notes() []string {
	var notes []string
	note := func(format string, args ...any) { notes = append(notes, fmt.Sprintf(format, args...)) }
	if s.Anew {
		note("These are lookups through the indexes that the next start makes: the broker did not stop cleanly, and the " +
			"indexes on disk lead elsewhere; kseg verify says why.")
	}
	for _, one := range s.Segments {
		if one.Missing && s.Supposed < 0 && one.Survey.Batches > 0 {
			note("Segment %d has no offset index: every lookup scans from byte 0.", one.Base)
		}
		w := &one.Sweep
		if n := w.NotFound + w.Failed; n > 0 {
			why := ""
			if w.FirstErr != nil {
				why = fmt.Sprintf(": a broker throws (%v)", w.FirstErr)
			}
			note("Segment %d: %s lead to no batch, the first is %d%s; run kseg lookup --offset %d, or kseg verify.", one.Base,
				render.Plural(n, "offset", "offsets"), w.FirstProblem, why, w.FirstProblem)
		}
		if w.Unmeasured > 0 {
			note("Segment %d: %s were not measured: its index sends them all over the log.", one.Base,
				render.Plural(w.Unmeasured, "offset", "offsets"))
		}
		if one.Survey.HoleCount > 0 {
			h := one.Survey.Holes[0]
			note("Segment %d: %s at byte %d (%d bytes).", one.Base, h.Kind, h.Pos, h.Len)
		}
	}
	return notes
}

// Plot is the costliest segment's curve, nil if no lookup found a batch.
func (s *PartitionSweep) Plot() *Plot {
	if s.Total.WorstSegment < 0 {
		return nil
	}
	return s.Segments[s.Total.WorstSegment].plot()
}

func (s *SegmentSweep) plot() *Plot {
	return &Plot{
		Title:  fmt.Sprintf("bytes scanned over offsets %d–%d (bound %d)", s.Base, s.LastOffset, s.Bound),
		Axis:   "offset",
		First:  s.Base,
		Last:   s.LastOffset,
		Series: []Series{{Name: fmt.Sprintf("segment %d", s.Base), Curve: s.Curve, Bound: s.Bound}},
	}
}
