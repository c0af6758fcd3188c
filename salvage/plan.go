package salvage

import (
	"cmp"
	"container/heap"
	"fmt"
	"slices"
)

// Lost is a range of offsets, or of bytes, that the output does not have.
type Lost struct {
	// FirstOffset and LastOffset are inclusive. Open: where the range ends is not known, nor whether it has any offset.
	FirstOffset, LastOffset int64
	Open                    bool
	// File, Pos and Length are the bytes in doubt; File is "" if no source has any.
	File        string
	Pos, Length int64
	Reason      string
	// Elsewhere: the offsets are those that the bytes claim, and not what the output lacks.
	Elsewhere bool

	stray bool // a batch of a segment in use, which may belong to any gap
}

// plan is what goes into the output, in the order of its offsets.
type plan struct {
	extents []piece
	lost    []Lost
	doubles int64 // batches left out since the same ones are there
	// odd are pieces that contradict others of their copy.
	odd []Lost
	// divergedAt is the first offset at which two copies hold different records, if diverged.
	diverged   bool
	divergedAt int64
}

// planner puts the pieces of all sources together.
type planner struct {
	*plan
	queue  pieceQueue
	better map[int][]int64 // by rank: the first offsets of all pieces, in order
	ranks  []int
	next   int64 // after what has been taken
	epoch  int32 // of the last batch that was taken
	digest *comparer
	known  *known
	live   []piece // the sound ones of segments that are in use, by first offset
}

// pieceQueue is a heap by first offset; of the same offsets the better source comes first.
type pieceQueue []piece

func (q pieceQueue) Len() int           { return len(q) }
func (q pieceQueue) Less(i, j int) bool { return comparePieces(q[i], q[j]) < 0 }
func (q pieceQueue) Swap(i, j int)      { q[i], q[j] = q[j], q[i] }

// Push is for container/heap.
func (q *pieceQueue) Push(x any) { *q = append(*q, x.(piece)) }

// Pop is for container/heap.
func (q *pieceQueue) Pop() any {
	last := (*q)[len(*q)-1]
	*q = (*q)[:len(*q)-1]
	return last
}

func comparePieces(a, b piece) int {
	return cmp.Or(cmp.Compare(a.first, b.first), cmp.Compare(a.rank(), b.rank()))
}

// rank orders pieces of the same offsets: what was remade is better than nothing.
func (p *piece) rank() int {
	if p.way == byRecord {
		return rankRemade
	}
	return p.src.rank
}

// The ranks: those of copies count from 0.
const (
	rankLeftover = 1 << 20
	rankRemade   = 1 << 21
)

// makePlan orders the pieces and leaves out what is there twice or does not fit. The error is for files that can't be
// read.
func makePlan(scans []*scan, k *known, opts *Options) (*plan, error) {
	p := &planner{plan: &plan{}, better: map[int][]int64{}, epoch: -1, digest: newComparer(opts), known: k}
	defer p.digest.close()
	var suspects []piece
	for _, s := range scans {
		for _, q := range s.pieces {
			if q.suspect {
				suspects = append(suspects, q)
			} else {
				p.queue = append(p.queue, q)
			}
		}
	}
	slices.SortStableFunc(p.queue, comparePieces)
	p.live = slices.DeleteFunc(slices.Clone(p.queue), func(q piece) bool { return q.rank() >= rankLeftover })
	rejected := p.admit(suspects)
	slices.SortStableFunc(p.queue, comparePieces)
	for _, q := range p.queue {
		p.better[q.rank()] = append(p.better[q.rank()], q.first)
	}
	for rank := range p.better {
		p.ranks = append(p.ranks, rank)
	}
	slices.Sort(p.ranks)
	if err := p.sweep(); err != nil {
		return nil, err
	}
	for _, q := range rejected {
		if err := p.leaveOut(q); err != nil {
			return nil, err
		}
	}
	p.account(scans, k.compacted)
	return p.plan, nil
}

// admit lets those suspects into the queue whose offsets nothing else has, and that fit exactly to what is beside them
// or to each other. It returns the others.
func (p *planner) admit(suspects []piece) []piece {
	suspects = joined(suspects)
	slices.SortStableFunc(suspects, comparePieces)
	ends, starts := map[int64]bool{}, map[int64]bool{}
	for _, q := range p.queue {
		ends[q.last+1], starts[q.first] = true, true
	}
	known := len(p.queue)
	admitted := make([]bool, len(suspects))
	// Two passes, so that chains of suspects find their neighbours on both sides.
	for pass := range 2 {
		end := int64(-1)
		for i := range suspects {
			at := i
			if pass == 1 {
				at = len(suspects) - 1 - i
			}
			s := suspects[at]
			fits := ends[s.first] || starts[s.last+1] || s.batches > 1
			if admitted[at] || !fits || pass == 0 && s.first <= end || overlaps(p.queue[:known], s) {
				continue
			}
			admitted[at], end = true, s.last
			ends[s.last+1], starts[s.first] = true, true
			p.queue = append(p.queue, s)
		}
	}
	var rejected []piece
	for i, s := range suspects {
		if !admitted[i] {
			rejected = append(rejected, s)
		}
	}
	return rejected
}

// joined are suspects, those that follow on each other in bytes and offsets as one: that is no chance.
func joined(suspects []piece) (all []piece) {
	slices.SortStableFunc(suspects, func(a, b piece) int {
		return cmp.Or(cmp.Compare(a.src.rank, b.src.rank), cmp.Compare(a.src.base, b.src.base),
			cmp.Compare(a.src.log.Display, b.src.log.Display), cmp.Compare(a.from, b.from))
	})
	for _, q := range suspects {
		if n := len(all) - 1; n >= 0 && all[n].src == q.src && all[n].to == q.from && all[n].way == asIs && q.way == asIs &&
			(all[n].last+1 == q.first || q.src.compacted && all[n].last < q.first) {
			all[n].to, all[n].last, all[n].epochs[1] = q.to, q.last, q.epochs[1]
			all[n].batches, all[n].records = all[n].batches+q.batches, all[n].records+q.records
			continue
		}
		all = append(all, q)
	}
	return all
}

// overlaps reports whether pieces in order have one of the offsets of another one.
func overlaps(pieces []piece, s piece) bool {
	i, found := slices.BinarySearchFunc(pieces, s.first, func(q piece, o int64) int { return cmp.Compare(q.first, o) })
	return found || i < len(pieces) && pieces[i].first <= s.last || i > 0 && pieces[i-1].last >= s.first
}

// sweep takes pieces by offset, each up to where a better one begins.
func (p *planner) sweep() error {
	for len(p.queue) > 0 {
		q := heap.Pop(&p.queue).(piece)
		switch {
		case q.last < p.next || q.first < p.next && q.batches == 1:
			if err := p.leaveOut(q); err != nil {
				return err
			}
		case q.first < p.next:
			covered, rest, err := q.cut(p.next)
			if err == nil && covered.batches > 0 {
				err = p.leaveOut(covered)
			}
			if err != nil {
				return err
			}
			if rest.batches > 0 {
				heap.Push(&p.queue, rest)
			}
		default:
			if err := p.take(q); err != nil {
				return err
			}
		}
	}
	return nil
}

// take takes a piece, or the part of it before a better one.
func (p *planner) take(q piece) error {
	if at, why := p.forbids(q); why != "" && at <= q.first {
		p.odd = append(p.odd, lostOf(q, why))
		return nil
	} else if why != "" {
		return p.takeBefore(q, at)
	}
	if at, ok := p.betterIn(q); ok && q.batches > 1 {
		return p.takeBefore(q, at)
	}
	p.extents = append(p.extents, q)
	p.next = q.last + 1
	p.epoch = max(p.epoch, q.epochs[1])
	return nil
}

// takeBefore takes the part of a piece before an offset, and leaves the rest for later.
func (p *planner) takeBefore(q piece, at int64) error {
	head, rest, err := q.cut(at)
	if err != nil {
		return err
	}
	if rest.batches > 0 {
		heap.Push(&p.queue, rest)
	}
	if head.batches == 0 {
		return nil
	}
	p.extents = append(p.extents, head)
	p.next = head.last + 1
	p.epoch = max(p.epoch, head.epochs[1])
	return nil
}

// betterIn is the first offset above the piece's own at which a piece of a better rank begins.
func (p *planner) betterIn(q piece) (at int64, ok bool) {
	for _, rank := range p.ranks {
		if rank >= q.rank() {
			break
		}
		firsts := p.better[rank]
		i, _ := slices.BinarySearch(firsts, q.first+1)
		if i < len(firsts) && firsts[i] <= q.last && (!ok || firsts[i] < at) {
			at, ok = firsts[i], true
		}
	}
	return at, ok
}

// leaveOut notes a piece whose offsets are there already, or that does not fit: as a double if it holds the same
// records, as another history if it is of another copy, else as odd.
func (p *planner) leaveOut(q piece) error {
	if q.way != asIs {
		return nil
	}
	same, at, other, err := p.digest.compare(q, p.extents)
	switch {
	case err != nil:
		return err
	case same:
		p.doubles += q.batches
	case other != nil && other.copy != q.src.copy && q.src.rank < rankLeftover && other.rank < rankLeftover && !q.suspect:
		if !p.diverged || at < p.divergedAt {
			p.diverged, p.divergedAt = true, at
		}
	default:
		l := lostOf(q, "its offsets do not agree with what is around it")
		l.stray = q.src.rank < rankLeftover
		p.odd = append(p.odd, l)
	}
	return nil
}

func lostOf(q piece, why string) Lost {
	return Lost{FirstOffset: q.first, LastOffset: q.last, File: q.src.log.Display, Pos: q.from, Length: q.to - q.from,
		Reason: why, Elsewhere: true}
}

// account finds the offsets that the output lacks, and why.
func (p *planner) account(scans []*scan, compacted bool) {
	var damages []damage
	start := int64(-1)
	for _, s := range scans {
		damages = append(damages, s.damages...)
		if s.src.rank < rankLeftover && (start < 0 || s.src.base < start) {
			start = s.src.base
		}
	}
	slices.SortStableFunc(damages, func(a, b damage) int { return cmp.Compare(a.first, b.first) })
	next := max(start, 0)
	if len(p.extents) > 0 {
		next = min(next, p.extents[0].first) // what is left over may come before all that is in use
	}
	i := 0
	for _, q := range p.extents {
		if q.first > next {
			i = p.gap(next, q.first-1, damages, i, compacted)
		}
		next = max(next, q.last+1)
	}
	p.tail(next, damages)
	p.lost = append(p.lost, p.odd...)
	slices.SortStableFunc(p.lost, func(a, b Lost) int { return cmp.Compare(a.FirstOffset, b.FirstOffset) })
}

// gap notes the offsets from first to last as lost, and by which damage. i is where to begin in damages, and so is its
// result.
func (p *planner) gap(first, last int64, damages []damage, i int, compacted bool) int {
	for i < len(damages) && damages[i].first < first && !damages[i].open && damages[i].last < first {
		i++
	}
	var cause *damage
	more := 0
	for j := i; j < len(damages) && damages[j].first <= last && j < i+1000; j++ {
		d := &damages[j]
		if d.zeros && d.tail || !d.open && d.last < first {
			continue
		}
		if cause == nil {
			cause = d
		} else if d.pos != cause.pos || d.src != cause.src {
			more++
		}
	}
	if cause == nil && compacted {
		return i
	}
	l := Lost{FirstOffset: first, LastOffset: last, Reason: "no source has these offsets"}
	if cause != nil {
		l.File, l.Pos, l.Length, l.Reason = cause.src.log.Display, cause.pos, cause.length, cause.why
	} else if at := slices.IndexFunc(p.odd, func(o Lost) bool { return o.stray }); at >= 0 {
		// What is out of place was here, most likely.
		l, p.odd = p.odd[at], slices.Delete(p.odd, at, at+1)
		l.Reason = fmt.Sprintf("the batch there says that it is %d–%d, with which what is around it does not agree",
			l.FirstOffset, l.LastOffset)
		l.FirstOffset, l.LastOffset, l.Elsewhere = first, last, false
	}
	if more > 0 {
		l.Reason += fmt.Sprintf(" (and damage in %d more places)", more)
	}
	p.lost = append(p.lost, l)
	return i
}

// tail notes what is damaged after the last offset.
func (p *planner) tail(next int64, damages []damage) {
	for _, d := range damages {
		if d.zeros || !d.open && d.last < next || d.open && d.first < next {
			continue
		}
		l := Lost{FirstOffset: max(d.first, next), LastOffset: d.last, Open: d.open, File: d.src.log.Display, Pos: d.pos,
			Length: d.length, Reason: d.why}
		if d.open {
			l.LastOffset = l.FirstOffset
		}
		p.lost = append(p.lost, l)
	}
}
