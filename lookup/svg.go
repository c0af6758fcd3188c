package lookup

import (
	"fmt"
	"math"
	"strings"
)

// The picture's measures, in pixels.
const (
	svgWidth, svgInner         = 960, 316 // the whole picture; the height of the part between the axes
	svgLeft, svgRight, svgFoot = 90, 24, 56
	svgTitle, svgLegend        = 32, 18 // the title line, each line of the legend
)

// svgColors tell the series apart, also for the colour-blind (Okabe and Ito's palette).
var svgColors = []string{"#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000"}

// SVG draws the plot as a picture that stands alone: axes with ticks, a line a series, its bound as a dashed line.
func (p *Plot) SVG() []byte {
	top := max(p.highest(), 1)
	for _, s := range p.Series {
		if s.Bound < math.MaxInt64 {
			top = max(top, s.Bound)
		}
	}
	g := svgFrame{p: p, top: top, upper: svgTitle + svgLegend*len(p.Series)}
	g.lower = g.upper + svgInner
	height := g.lower + svgFoot
	g.printf(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" `+
		`font-family="sans-serif" font-size="12">`+"\n", svgWidth, height, svgWidth, height)
	g.printf(`<title>%s</title>`+"\n"+`<rect width="100%%" height="100%%" fill="#fff"/>`+"\n", xmlText(p.Title))
	g.printf(`<text x="%d" y="20" font-size="15">%s</text>`+"\n", svgLeft, xmlText(p.Title))
	g.axes()
	for i, s := range p.Series {
		g.series(s, svgColors[i%len(svgColors)], i)
	}
	g.printf("</svg>\n")
	return g.out
}

// svgFrame is a picture being drawn.
type svgFrame struct {
	p            *Plot
	top          int64 // the value at the upper edge
	upper, lower int   // where the edges are
	out          []byte
}

func (g *svgFrame) printf(format string, args ...any) { g.out = fmt.Appendf(g.out, format, args...) }

func (g *svgFrame) x(offset float64) float64 {
	span := float64(g.p.Last) - float64(g.p.First) + 1
	return svgLeft + (offset-float64(g.p.First))/span*(svgWidth-svgLeft-svgRight)
}

func (g *svgFrame) y(value float64) float64 {
	return float64(g.lower) - value/float64(g.top)*svgInner
}

// axes draws the two axes with their ticks and names.
func (g *svgFrame) axes() {
	right, foot := svgWidth-svgRight, g.lower
	for _, v := range ticks(0, float64(g.top)) {
		y := g.y(v)
		g.printf(`<line x1="%d" x2="%d" y1="%.1f" y2="%.1f" stroke="#e5e5e5"/>`, svgLeft, right, y, y)
		g.printf(`<text x="%d" y="%.1f" text-anchor="end">%.0f</text>`+"\n", svgLeft-8, y+4, v)
	}
	for _, v := range ticks(float64(g.p.First), float64(g.p.Last)) {
		x := g.x(v)
		g.printf(`<line x1="%.1f" x2="%.1f" y1="%d" y2="%d" stroke="#333"/>`, x, x, foot, foot+5)
		g.printf(`<text x="%.1f" y="%d" text-anchor="middle">%.0f</text>`+"\n", x, foot+20, v)
	}
	g.printf(`<path d="M%d %d V%d H%d" fill="none" stroke="#333"/>`+"\n", svgLeft, g.upper, foot, right)
	g.printf(`<text x="%d" y="%d" text-anchor="middle">%s</text>`+"\n", (svgLeft+right)/2, foot+44, xmlText(g.p.Axis))
	g.printf(`<text transform="translate(20 %d) rotate(-90)" text-anchor="middle">bytes scanned</text>`+"\n",
		(g.upper+foot)/2)
}

// series draws one curve, its bound and its line of the legend. Where no lookup found a batch the curve has a hole.
func (g *svgFrame) series(s Series, color string, i int) {
	var path strings.Builder
	pen := false
	for at, v := range s.Curve.points {
		if v < 0 {
			pen = false
			continue
		}
		from := float64(s.Curve.first-s.Shift) + float64(int64(at)<<s.Curve.shift)
		to := math.Min(from+float64(int64(1)<<s.Curve.shift), float64(g.p.Last)+1)
		if !pen {
			fmt.Fprintf(&path, "M%.1f %.1f", g.x(from), g.y(float64(v)))
		} else if v != s.Curve.points[at-1] {
			fmt.Fprintf(&path, "V%.1f", g.y(float64(v)))
		}
		if at+1 == len(s.Curve.points) || s.Curve.points[at+1] != v {
			fmt.Fprintf(&path, "H%.1f", g.x(to))
		}
		pen = true
	}
	g.printf(`<path d="%s" fill="none" stroke="%s" stroke-width="1.5"/>`+"\n", path.String(), color)
	if s.Bound < math.MaxInt64 {
		y := g.y(float64(s.Bound))
		g.printf(`<line x1="%d" x2="%d" y1="%.1f" y2="%.1f" stroke="%s" stroke-dasharray="6 4"/>`+"\n", svgLeft,
			svgWidth-svgRight, y, y, color)
	}
	g.printf(`<text x="%d" y="%d" fill="%s">%s (dashed: bound %d)</text>`+"\n", svgLeft, svgTitle+svgLegend*i+6, color,
		xmlText(s.Name), s.Bound)
}

// ticks are three to ten round numbers from low to high.
func ticks(low, high float64) []float64 {
	span := high - low
	if span <= 0 {
		return []float64{low}
	}
	step := math.Pow(10, math.Floor(math.Log10(span)))
	for span/step < 4 {
		step /= 2
	}
	step = math.Max(1, math.Floor(step))
	var out []float64
	for v := math.Ceil(low/step) * step; v <= high && len(out) < 20; v += step {
		out = append(out, v)
	}
	return out
}

var xmlEscapes = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&quot;")

// xmlText makes s fit for the inside of an element; control characters are not allowed there at all.
func xmlText(s string) string {
	return xmlEscapes.Replace(strings.Map(func(r rune) rune {
		if r < 0x20 || r == 0xfffe || r == 0xffff {
			return -1
		}
		return r
	}, s))
}
