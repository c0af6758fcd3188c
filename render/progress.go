package render

import (
	"fmt"
	"io"
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

// Progress draws a bar of bytes done and to do on one line of a terminal, over and over. It has no goroutine: Add draws when
// the last drawing is old enough, so it is called at least every few megabytes. It is safe for several goroutines. A nil
// *Progress does nothing, which is what a verb gets when there is to be no bar.
type Progress struct {
	w     io.Writer
	now   func() time.Time
	total int64
	unit  string // of what is counted; "" for bytes
	done  atomic.Int64
	start time.Time

	mu    sync.Mutex
	drawn time.Time // zero while no bar is on the screen
	last  time.Time
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
	if at.Sub(p.last) < progressInterval {
		return
	}
	p.last, p.drawn = at, at
	fmt.Fprintf(p.w, "\r\x1b[K%s", p.line(done, at.Sub(p.start)))
}

// Clear takes the bar off the screen; call it before anything else is written to the terminal. The next Add may draw again.
func (p *Progress) Clear() {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.drawn.IsZero() {
		p.drawn = time.Time{}
		io.WriteString(p.w, "\r\x1b[K")
	}
}

// line words the bar: ████░░░░  42%  1.3 GiB of 3.1 GiB  850 MiB/s  2.2 s left.
func (p *Progress) line(done int64, elapsed time.Duration) string {
	amount, unit, total := Bytes, "", p.total
	if p.unit != "" {
		amount, unit = Count, " "+p.unit
	}
	rate := float64(done) / elapsed.Seconds()
	speed := amount(int64(rate)) + "/s"
	if total <= 0 {
		return fmt.Sprintf("%s%s  %s", amount(done), unit, speed)
	}
	share := min(float64(done)/float64(total), 1)
	filled := int(share * progressCells)
	line := fmt.Sprintf("%s%s  %3d%%  %s of %s  %s",
		strings.Repeat("█", filled), strings.Repeat("░", progressCells-filled), int(share*100), amount(done), amount(total)+unit, speed)
	if left := total - done; left > 0 && rate > 0 {
		line += "  " + Duration(int64(float64(left)/rate)*1000) + " left"
	}
	return line
}
