package lookup

import (
	"path"
	"path/filepath"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"kseg/internal/fixture"
	"kseg/logdir"
	"kseg/render"
)

// everyPartition calls fn with each partition of testdata, healthy and damaged.
func everyPartition(t *testing.T, fn func(t *testing.T, p *Partition)) {
	seen := map[string]bool{}
	for _, log := range fixture.Files(t, ".log") {
		if dir := path.Dir(log); !seen[dir] && !strings.Contains(dir, "tiny-batches") {
			seen[dir] = true
			if fixture.Sampled(len(seen), 6) {
				t.Run(dir, func(t *testing.T) { eachOf(t, fixture.View(t, dir), fn) })
			}
		}
	}
	for i, r := range fixture.Recipes(t) {
		if !fixture.Sampled(i, 6) {
			continue
		}
		t.Run(r.Name, func(t *testing.T) { eachOf(t, fixture.Damaged(t, r.Name), fn) })
	}
}

func eachOf(t *testing.T, dir string, fn func(t *testing.T, p *Partition)) {
	set, err := logdir.Open([]string{dir}, logdir.Options{})
	if err != nil {
		t.Fatal(err)
	}
	partitions, _ := Partitions(set, 1<<28)
	for _, p := range partitions {
		if len(p.Segments) > 0 {
			held(t, p, func() { fn(t, p) })
		}
	}
}

// held calls fn with the files of the partition mapped, for tests that ask for each a hundred times.
func held(t *testing.T, p *Partition, fn func()) {
	t.Helper()
	for _, s := range p.Segments {
		for _, f := range []*logdir.File{s.Log, s.Index, s.TimeIndex} {
			if inner := fn; f != nil {
				fn = func() {
					if err := f.View(func([]byte) error { inner(); return nil }); err != nil {
						t.Error(err)
					}
				}
			}
		}
	}
	fn()
}

// TestEveryAnswerPrints: whatever is looked up wherever, the JSON keeps to the schema, the text is free of control
// characters, and the table's rows are as wide as its head.
func TestEveryAnswerPrints(t *testing.T) {
	style := Style{Width: 80, Payload: render.PayloadAuto}
	everyPartition(t, func(t *testing.T, p *Partition) {
		first, last := p.Segments[0].Base, p.Segments[len(p.Segments)-1].Base
		for _, offset := range []int64{first - 1, first, last, last + 3, last + 1000} {
			for _, interval := range []int64{-1, 100} {
				r, err := p.LookupOffset(t.Context(), offset, Options{Interval: interval, Records: true})
				checkPrints(t, style, r, err)
			}
		}
		for _, timestampMs := range []int64{0, 1700000010030, 4102444800000} {
			r, err := p.LookupTimestamp(t.Context(), timestampMs, Options{Interval: -1, Records: true})
			checkPrints(t, style, r, err)
		}
		sweep, err := p.Sweep(t.Context(), Options{Interval: -1}, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range sweep.Segments {
			fixture.CheckJSON(t, sweep.AppendJSON(nil, s))
		}
		checkText(t, sweep.AppendText(nil, style))
		checkRows(t, SweepColumns, sweep.Rows(style.Theme))
		rows, err := p.Density(t.Context(), []int64{0, 300, 1 << 40}, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range rows {
			fixture.CheckJSON(t, d.AppendJSON(nil))
		}
		c := &Comparison{MaxMapCount: 1}
		c.Add(p, rows)
		checkText(t, c.AppendText(nil, style))
		checkRows(t, DensityColumns, c.Cells(style.Theme))
	})
}

func checkPrints(t *testing.T, style Style, r *Result, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	fixture.CheckJSON(t, r.AppendJSON(nil, style.Payload, nil))
	checkText(t, r.AppendText(nil, style))
	checkRows(t, ResultColumns, r.Rows(style.Theme))
}

func checkText(t *testing.T, text []byte) {
	t.Helper()
	if !utf8.Valid(text) || strings.ContainsFunc(string(text), func(r rune) bool {
		return unicode.IsControl(r) && r != '\n'
	}) {
		t.Errorf("text that is not fit for a terminal: %q", text)
	}
	if strings.Contains(string(text), "%!") {
		t.Errorf("a format that went wrong: %s", text)
	}
}

func checkRows(t *testing.T, columns []render.Column, rows [][]string) {
	t.Helper()
	for _, row := range rows {
		if len(row) > len(columns) {
			t.Errorf("%d cells for %d columns: %q", len(row), len(columns), row)
		}
	}
}

// TestOneSegmentAlone: a file is the segment that it is in its directory: closed or not, with its index, and bounded by
// its checkpoints.
func TestOneSegmentAlone(t *testing.T) {
	dir := fixture.Dir(t, "4.4.0/segments-316/live/seg-live-0")
	for name, active := range map[string]bool{"00000000000000000000.log": false, "00000000000000000316.log": false,
		"00000000000000000948.log": true, "00000000000000000948.index": true} {
		set, err := logdir.Open([]string{filepath.Join(dir, name)}, logdir.Options{})
		if err != nil {
			t.Fatal(err)
		}
		partitions, problems := Partitions(set, 1<<28)
		if len(partitions) != 1 || len(problems) > 0 || len(partitions[0].Segments) != 1 {
			t.Fatalf("%s: %d partitions, %v", name, len(partitions), problems)
		}
		s := partitions[0].Segments[0]
		r, err := partitions[0].LookupOffset(t.Context(), s.Base+5, Options{Interval: -1})
		if err != nil || r.Outcome != Found || r.Tries[0].Active != active || s.Base == 0 &&
			!strings.Contains(string(r.AppendJSON(nil, render.PayloadAuto, nil)), `"log_start_offset":0,`) {
			t.Errorf("%s: %+v, %v", name, r, err)
		}
	}
}

// TestCheckpointsBound: the log start offset of the checkpoint hides what is still in the files, and the high watermark
// is told.
func TestCheckpointsBound(t *testing.T) {
	dir := fixture.Dir(t, "4.4.0/logdirs")
	set, err := logdir.Open([]string{filepath.Join(dir, "clean", "data2")}, logdir.Options{Topics: []string{"audit-log"}})
	if err != nil {
		t.Fatal(err)
	}
	partitions, problems := Partitions(set, 1<<28)
	if len(partitions) != 1 || len(problems) > 0 {
		t.Fatalf("%d partitions, %v", len(partitions), problems)
	}
	p := partitions[0]
	if p.LogStart != 30 || p.HighWatermark != 240 {
		t.Errorf("log start %d, high watermark %d", p.LogStart, p.HighWatermark)
	}
	for offset, want := range map[int64]Outcome{29: BelowStart, 30: Found} {
		r, err := p.LookupOffset(t.Context(), offset, Options{Interval: -1})
		if err != nil || r.Outcome != want {
			t.Errorf("offset %d: outcome %d, %v", offset, r.Outcome, err)
		}
	}
}
