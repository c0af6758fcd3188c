package render

import (
	"fmt"
	"io"
	"math"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

const (
	progressDelay    = time.Second            // work that ends within it shows no bar
	progressInterval = 100 * time.Millisecond // between two drawings
	progressCells    = 30
)

// Progress draws a bar of bytes done and to do on one line of a terminal, over and over. It has no goroutine: Add draws
// when the last drawing is old enough, so it is called at least every few megabytes. It is safe for several goroutines.
// A nil *Progress does nothing, which is what a verb gets when there is to be no bar.
type Progress struct {
	w     io.Writer
	now   func() time.Time
	total int64
	unit  string     // of what is counted; "" for bytes
	width func() int // of the terminal; nil or 0: unknown
	done  atomic.Int64
	start time.Time

	mu    sync.Mutex
	drawn time.Time // zero while no bar is on the screen
	last  time.Time
	ended bool
}

// NewProgress returns a bar for total bytes (0 or less: unknown, then only what is done is shown). now is the clock.
func NewProgress(w io.Writer, total int64, now func() time.Time) *Progress {
	at := now()
	return &Progress{w: w, now: now, total: total, start: at, last: at}
}

// Counting makes the bar one of things instead of bytes, whose name is unit.
func (p *Progress) Counting(unit string) *Progress {
	if p != nil {
		p.unit = unit
	}
	return p
}

// Within makes the bar one that fits a terminal of so many columns, which are asked for whenever it is drawn.
func (p *Progress) Within(width func() int) *Progress {
	if p != nil {
		p.width = width
	}
	return p
}

// Add counts bytes as done, and draws if a bar is due.
func (p *Progress) Add(bytes int64) {
	if p == nil {
		return
	}
	done := p.done.Add(bytes)
	at := p.now()
	if at.Sub(p.start) < progressDelay || !p.mu.TryLock() {
		return
	}
	defer p.mu.Unlock()
	if p.ended || at.Sub(p.last) < progressInterval {
		return
	}
	p.last, p.drawn = at, at
	fmt.Fprintf(p.w, "\r\x1b[K%s", p.line(done, at.Sub(p.start)))
}

// Clear takes the bar off the screen; call it before anything else is written to the terminal. The next Add may draw
// again.
func (p *Progress) Clear() { p.clear(false) }

// End is Clear for good.
func (p *Progress) End() { p.clear(true) }

func (p *Progress) clear(end bool) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ended = p.ended || end
	if !p.drawn.IsZero() {
		p.drawn = time.Time{}
		io.WriteString(p.w, "\r\x1b[K")
	}
}

// line words the bar: ████░░░░ 42% 1.3 GiB of 3.1 GiB 850 MiB/s 2.2 s left. In a narrow terminal the bar is shorter,
// and then what stands last goes first: a line that wraps could not be drawn over.
func (p *Progress) line(done int64, elapsed time.Duration) string {
	amount, unit, total := Bytes, "", p.total
	if p.unit != "" {
		amount, unit = Count, " "+p.unit
	}
	rate := float64(done) / elapsed.Seconds()
	speed := amount(int64(rate)) + "/s"
	if total <= 0 {
		return p.fit(0, []string{amount(done) + unit, speed})
	}
	share := min(float64(done)/float64(total), 1)
	parts := []string{fmt.Sprintf("%3d%%", int(share*100)), amount(done) + " of " + amount(total) + unit, speed}
	if left := total - done; left > 0 && rate > 0 {
		parts = append(parts, Duration(int64(min(float64(left)/rate, 1e9))*1000)+" left")
	}
	return p.fit(share, parts)
}

// fewestCells is the shortest bar worth drawing.
const fewestCells = 5

// fit puts as much on a line as the terminal has room for; share is how much of the bar is full.
func (p *Progress) fit(share float64, parts []string) string {
	room := math.MaxInt
	if p.width != nil {
		if width := p.width(); width > 0 {
			room = width - 1 // the cursor stands after the last column
		}
	}
	line := strings.Join(parts, "  ")
	for len(parts) > 1 && len(line) > room {
		parts = parts[:len(parts)-1]
		line = strings.Join(parts, "  ")
	}
	if len(line) > room {
		return ""
	}
	if cells := min(progressCells, room-len(line)-2); p.total > 0 && cells >= fewestCells {
		filled := int(share * float64(cells))
		line = strings.Repeat("█", filled) + strings.Repeat("░", cells-filled) + "  " + line
	}
	return line
}
