package lookup

import (
	"fmt"
	"math"
	"strings"

	"kseg/render"
)

// A Curve is bytes scanned over offsets, at a resolution that halves whenever the offsets no longer fit; each point
// keeps the largest value of its offsets.
type Curve struct {
	first  int64
	shift  uint    // a point stands for 1 << shift offsets
	points []int64 // −1: no lookup found a batch there
}

// maxPoints bounds a curve's memory; a plot has fewer columns.
const maxPoints = 4096

// NewCurve starts a curve at an offset.
func NewCurve(first int64) *Curve { return &Curve{first: first} }

// Add sets the value for the offsets from first to last, which must not be below the curve's first.
func (c *Curve) Add(first, last, value int64) {
	for (last-c.first)>>c.shift >= maxPoints {
		c.halve()
	}
	from, to := (first-c.first)>>c.shift, (last-c.first)>>c.shift
	for int64(len(c.points)) <= to {
		c.points = append(c.points, -1)
	}
	for i := from; i <= to; i++ {
		c.points[i] = max(c.points[i], value)
	}
}

func (c *Curve) halve() {
	for i := 0; i < len(c.points); i += 2 {
		v := c.points[i]
		if i+1 < len(c.points) {
			v = max(v, c.points[i+1])
		}
		c.points[i/2] = v
	}
	c.points = c.points[:(len(c.points)+1)/2]
	c.shift++
}

// max is the largest value between two offsets, −1 if there is none.
func (c *Curve) max(first, last int64) int64 {
	from, to := (first-c.first)>>c.shift, (last-c.first)>>c.shift
	out := int64(-1)
	for i := max(0, from); i <= to && i < int64(len(c.points)); i++ {
		out = max(out, c.points[i])
	}
	return out
}

// A Series is one curve of a plot, and the bound that belongs to it.
type Series struct {
	Name  string
	Curve *Curve
	Bound int64
	Shift int64 // the curve's offsets are those of the plot plus this
}

func (s *Series) max(first, last int64) int64 { return s.Curve.max(first+s.Shift, last+s.Shift) }

// A Plot is bytes scanned over the offsets of a segment.
type Plot struct {
	Title       string
	Axis        string // what the offsets are
	First, Last int64  // offsets
	Series      []Series
}

// column is the range of offsets of one of n columns.
func (p *Plot) column(i, n int) (first, last int64) {
	span := float64(p.Last) - float64(p.First) + 1
	first = p.First + int64(math.Floor(span*float64(i)/float64(n)))
	last = p.First + int64(math.Floor(span*float64(i+1)/float64(n))) - 1
	return first, min(max(first, last), p.Last)
}

// highest is the largest value of all series.
func (p *Plot) highest() int64 {
	top := int64(0)
	for _, s := range p.Series {
		top = max(top, s.max(p.First, p.Last))
	}
	return top
}

// plotRows is the height of a text plot; with several series, of each.
const plotRows, plotRowsOfMany = 6, 3

// AppendText draws the series below each other, on one scale.
func (p *Plot) AppendText(dst []byte, st Style) []byte {
	dst = append(dst, p.Title...)
	dst = append(dst, '\n')
	top := p.highest()
	label := len(fmt.Sprint(top))
	columns := int(min(int64(max(16, min(st.Width, 120)-label-4)), p.Last-p.First+1))
	rows := plotRows
	if len(p.Series) > 1 {
		rows = plotRowsOfMany
	}
	for _, s := range p.Series {
		if len(p.Series) > 1 {
			dst = append(dst, render.Escaped(s.Name)...)
			dst = append(dst, '\n')
		}
		dst = p.appendSeries(dst, s, st, columns, rows, top)
	}
	first, last := fmt.Sprint(p.First), fmt.Sprint(p.Last)
	gap := max(1, columns-len(first)-len(last))
	return fmt.Appendf(dst, "%*s %s%*s%s\n", label, "", " "+first, gap, "", last)
}

// appendSeries draws one curve as bars. A bar is filled up to its value; a value above 0 is never invisible.
func (p *Plot) appendSeries(dst []byte, s Series, st Style, columns, rows int, top int64) []byte {
	blocks := []rune(" ▁▂▃▄▅▆▇█")
	if st.ASCII {
		blocks = []rune(" #")
	}
	steps := len(blocks) - 1
	label := len(fmt.Sprint(top))
	heights := make([]int, columns) // in steps
	for i := range heights {
		first, last := p.column(i, columns)
		v := s.max(first, last)
		if v > 0 && top > 0 {
			heights[i] = max(1, int(math.Round(float64(v)/float64(top)*float64(rows*steps))))
		}
	}
	axis, base := "┤", "┼"
	if st.ASCII {
		axis, base = "|", "+"
	}
	for row := rows - 1; row >= 0; row-- {
		tick := ""
		switch {
		case row == rows-1:
			tick = fmt.Sprint(top)
		case row == 0:
			tick, axis = "0", base
		}
		var line strings.Builder
		for _, h := range heights {
			line.WriteRune(blocks[min(max(h-row*steps, 0), steps)])
		}
		dst = fmt.Appendf(dst, "%*s %s%s\n", label, tick, st.Theme.Dim(axis), strings.TrimRight(line.String(), " "))
	}
	return dst
}
