package verify

import (
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"kseg/format"
	"kseg/rebuild"
	"kseg/render"
	"kseg/state"
)

// lossSeverity is what a loss would be among findings.
func lossSeverity(l rebuild.Loss) Severity {
	switch l {
	case rebuild.LostZeros:
		return Note
	case rebuild.LostTorn:
		return Warning
	}
	return Damage
}

// RebuildCount is how many segments lose bytes, or do not load, with that severity or worse.
func RebuildCount(s *rebuild.Summary, least Severity) (n int64) {
	for loss, segments := range s.Losses {
		if l := rebuild.Loss(loss); l != rebuild.NoLoss && lossSeverity(l) >= least {
			n += segments
		}
	}
	return n
}

// RebuildVerdict is the answer: incomplete if something could not be done or there was nothing to do, damaged if
// recovery would cut more than the torn or empty end of a partition, else clean.
func RebuildVerdict(s *rebuild.Summary) Verdict {
	switch {
	case len(s.NotDone) > 0 || s.Segments == 0:
		return Incomplete
	case s.Losses[rebuild.LostData] > 0:
		return Damaged
	}
	return Clean
}

// RebuildReport writes what became of segments in one of the output formats. Segment is called with each, in order, and
// Close once at the end.
type RebuildReport interface {
	Segment(*rebuild.Segment) error
	Close(*rebuild.Summary) error
}

// RebuildJSON writes a line for each segment, and one for the summary.
type RebuildJSON struct {
	w   io.Writer
	buf []byte
}

// NewRebuildJSON returns a report for -o json.
func NewRebuildJSON(w io.Writer) *RebuildJSON { return &RebuildJSON{w: w} }

// Segment writes {"kind":"rebuilt",...}.
func (r *RebuildJSON) Segment(s *rebuild.Segment) error {
	o := render.NewObj(r.buf[:0], "rebuilt")
	o.StrOrNull("topic", format.TopicOf(s.Partition))
	o.Str("partition", s.Partition)
	o.Str("file", s.File)
	o.Int("base_offset", s.Base)
	o.Str("outcome", string(s.Outcome))
	o.StrOrNull("reason", s.Reason)
	severity := ""
	if s.Loss != rebuild.NoLoss {
		severity = lossSeverity(s.Loss).String()
	}
	o.StrOrNull("severity", severity)
	o.Int("bytes", s.Size)
	o.IntOrNull("bytes_kept", s.Kept, s.Outcome != rebuild.Failed)
	o.Int("batches", s.Batches)
	o.Int("interval", s.Interval.Int())
	o.Str("interval_source", string(s.Interval.Source))
	o.Int("index_entries", int64(s.IndexEntries))
	o.Int("time_index_entries", int64(s.TimeIndexEntries))
	o.Int("txn_index_entries", int64(s.TxnIndexEntries))
	o.OpenArray("files")
	for _, f := range s.Files {
		o.Open("")
		o.Str("path", f.Path)
		o.Int("bytes", f.Bytes)
		o.Bool("written", f.Written)
		o.Close()
	}
	o.CloseArray()
	r.buf = o.Line()
	_, err := r.w.Write(r.buf)
	return err
}

// Close writes {"kind":"rebuild_summary",...}.
func (r *RebuildJSON) Close(s *rebuild.Summary) error {
	o := render.NewObj(r.buf[:0], "rebuild_summary")
	o.Str("verdict", string(RebuildVerdict(s)))
	o.Int("partitions", s.Partitions)
	o.Int("segments", s.Segments)
	o.Int("batches", s.Batches)
	o.Int("bytes", s.Bytes)
	o.Int("bytes_cut", s.Cut)
	o.Int("files", s.Files)
	o.Int("file_bytes", s.FileBytes)
	o.Int("unchanged", s.Unchanged)
	o.Strs("not_done", s.NotDone)
	r.buf = o.Line()
	_, err := r.w.Write(r.buf)
	return err
}

// RebuildTable writes a row for each segment.
type RebuildTable struct {
	table *render.Table
	theme render.Theme
	quiet bool
}

// NewRebuildTable returns a report for -o table; quiet leaves out the segments that are whole.
func NewRebuildTable(w io.Writer, theme render.Theme, quiet bool) *RebuildTable {
	return &RebuildTable{theme: theme, quiet: quiet, table: render.NewTable(w, theme, render.Column{Name: "outcome"},
		render.Column{Name: "file"}, render.Column{Name: "bytes", Right: true}, render.Column{Name: "kept", Right: true},
		render.Column{Name: "interval", Right: true}, render.Column{Name: "index", Right: true},
		render.Column{Name: "timeindex", Right: true}, render.Column{Name: "txnindex", Right: true})}
}

// Segment adds a row.
func (r *RebuildTable) Segment(s *rebuild.Segment) error {
	if r.quiet && s.Outcome == rebuild.Whole {
		return nil
	}
	kept := s.Kept
	if s.Outcome == rebuild.Failed {
		kept = 0
	}
	r.table.Row(paintOutcome(r.theme, s, string(s.Outcome)), render.Escaped(s.Name()), itoa(s.Size), itoa(kept),
		s.Interval.Value, itoa(int64(s.IndexEntries)), itoa(int64(s.TimeIndexEntries)), itoa(int64(s.TxnIndexEntries)))
	return nil
}

// Close writes what is left.
func (r *RebuildTable) Close(*rebuild.Summary) error { return r.table.Flush() }

// RebuildText writes a line for each segment, and one more where it is not whole.
type RebuildText struct {
	w     io.Writer
	theme render.Theme
	width int
	quiet bool
	last  string // the partition of the segment before
}

// NewRebuildText returns a report for -o text, folded to the width; quiet leaves out the segments that are whole.
func NewRebuildText(w io.Writer, theme render.Theme, width int, quiet bool) *RebuildText {
	return &RebuildText{w: w, theme: theme, width: width, quiet: quiet}
}

// Segment writes its lines.
func (r *RebuildText) Segment(s *rebuild.Segment) error {
	if r.quiet && s.Outcome == rebuild.Whole {
		return nil
	}
	var text strings.Builder
	if s.Dir != r.last {
		r.last = s.Dir
		text.WriteString(r.theme.Strong(render.Escaped(s.Dir)) + r.theme.Dim("  index.interval.bytes "+
			intervalText(s.Interval)) + "\n")
	}
	line := fmt.Sprintf("%s  %s", paintOutcome(r.theme, s, fmt.Sprintf("%-7s", s.Outcome)),
		render.Escaped(filepath.Base(s.File)))
	if s.Outcome != rebuild.Failed {
		line += "  " + entriesText(s)
	}
	text.WriteString(line + "\n")
	why := s.Reason
	if s.Outcome == rebuild.Cut {
		why = fmt.Sprintf("%d of %d bytes kept: %s", s.Kept, s.Size, s.Reason)
	}
	for _, line := range render.Wrap(render.Escaped(why), r.width-len(textIndent)) {
		text.WriteString(textIndent + line + "\n")
	}
	_, err := io.WriteString(r.w, text.String())
	return err
}

// Close writes nothing: the verdict goes to stderr.
func (r *RebuildText) Close(*rebuild.Summary) error { return nil }

// entriesText is "index 12, timeindex 13, txnindex 1; snapshot 00000000000000000052".
func entriesText(s *rebuild.Segment) string {
	text := fmt.Sprintf("index %d, timeindex %d", s.IndexEntries, s.TimeIndexEntries)
	var snapshots []string
	same := 0
	for _, f := range s.Files {
		switch filepath.Ext(f.Path) {
		case ".txnindex":
			text += fmt.Sprintf(", txnindex %d", s.TxnIndexEntries)
		case ".snapshot":
			snapshots = append(snapshots, strings.TrimSuffix(filepath.Base(f.Path), ".snapshot"))
		}
		if !f.Written {
			same++
		}
	}
	if len(snapshots) > 0 {
		text += "; snapshot " + strings.Join(snapshots, ", ")
	}
	if same > 0 {
		text += fmt.Sprintf(" (%d of %d files were there already)", same, len(s.Files))
	}
	return text
}

// intervalText is "4096 (Kafka's default)".
func intervalText(s state.Setting) string {
	switch s.Source {
	case state.FromFlag:
		return s.Value + " (--interval)"
	case state.FromTopic:
		return s.Value + " (the topic's own)"
	case state.FromBroker:
		return s.Value + " (" + s.Where + ")"
	}
	return s.Value + " (Kafka's default)"
}

func paintOutcome(theme render.Theme, s *rebuild.Segment, text string) string {
	switch {
	case s.Outcome == rebuild.Failed || s.Loss == rebuild.LostData:
		return theme.Bad(text)
	case s.Outcome == rebuild.Whole:
		return theme.Good(text)
	}
	return theme.Look(text)
}

// RebuildVerdictText is the last line: what was written, and what keeps it from being all.
func RebuildVerdictText(s *rebuild.Summary, dir string) string {
	word := string(RebuildVerdict(s))
	if RebuildVerdict(s) == Clean {
		word = "rebuilt"
	}
	text := fmt.Sprintf("%s: %s of %s, %s (%s) in %s", word, plural(s.Segments, "segment", "segments"),
		plural(s.Partitions, "partition", "partitions"),
		plural(s.Files, "file", "files"), render.Bytes(s.FileBytes), render.Escaped(dir))
	if s.Unchanged > 0 {
		text += fmt.Sprintf(", %d of them there already", s.Unchanged)
	}
	if s.Cut > 0 {
		text += "; recovery cuts " + render.Bytes(s.Cut) + " off the logs"
	}
	if n := len(s.NotDone); n > 0 {
		text += "; " + plural(int64(n), "thing", "things") + " could not be done"
	} else if s.Segments == 0 {
		text += "; there was nothing to rebuild"
	}
	return text
}
