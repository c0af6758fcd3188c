package salvage

import (
	"cmp"
	"fmt"
	"slices"

	"kseg/format"
	"kseg/render"
)

// mostTwins bounds how many misplaced batches are told of one by one.
const mostTwins = 20

// twin is a batch that has the bytes of one of another copy, but for those that no checksum covers.
type twin struct {
	piece
	s *scan
	// at is the offset of the other one, which stands in a piece of other and may be suspect, too.
	at      int64
	other   *scan
	pos     int64
	suspect bool
	own     fit // of its own offsets
	there   fit // of those of the other one
	gone    bool
}

// fit is how well offsets go with what is around a batch in its file.
type fit int8

const (
	contradicts fit = iota
	between         // what is before and after it leaves room for them
	touches         // they follow on that, or that follows on them
)

// withoutMisplaced takes the batches out of the scans that claim other offsets than the same batch of another copy, if
// that one's offsets are those that fit where they stand in their files. It says where they were.
func withoutMisplaced(scans []*scan) (notes []string, doubles int64, err error) {
	alone, err := loners(scans)
	if err != nil {
		return nil, 0, err
	}
	twins, err := findTwins(scans, alone)
	if err != nil {
		return nil, 0, err
	}
	of := map[*scan]map[int64]*twin{}
	for _, t := range twins {
		if of[t.s] == nil {
			of[t.s] = map[int64]*twin{}
		}
		of[t.s][t.piece.from] = t
	}
	for _, s := range scans {
		anchors := anchorsOf(s, of[s])
		for _, t := range of[s] {
			t.around(anchors)
		}
	}
	// Those that fit worst go first, and are no witnesses then.
	slices.SortStableFunc(twins, func(a, b *twin) int {
		return cmp.Or(cmp.Compare(a.own, b.own), -cmp.Compare(a.there, b.there), -cmp.Compare(a.first, b.first))
	})
	for _, t := range twins {
		witness := of[t.other][t.pos]
		t.gone = t.misplaced() && (witness == nil || !witness.gone)
	}
	for _, s := range scans {
		s.pieces = slices.DeleteFunc(s.pieces, func(q piece) bool {
			t := of[s][q.from]
			if t == nil || !t.gone {
				return false
			}
			if doubles++; doubles <= mostTwins {
				notes = append(notes, fmt.Sprintf("the batch of %s @%d says that it is %d–%d; it is %d–%d by %s, and was taken "+
					"from there", q.src.log.Display, q.from, q.first, q.last, t.at, t.at+q.last-q.first, t.other.src.log.Display))
			}
			return true
		})
	}
	if doubles > mostTwins {
		notes = append(notes, render.Plural(doubles-mostTwins, "more batch", "more batches")+
			" with wrong offsets here came from another copy")
	}
	return notes, doubles, nil
}

// loners are the batches that stand alone, each for what a checksum vouches for in it: those that an intact one does
// not follow, and those that contradict what is around them. Of many that are the same only the first few count.
func loners(scans []*scan) (map[string][]*twin, error) {
	alone := map[string][]*twin{}
	if !slices.ContainsFunc(scans, func(s *scan) bool { return s.src.copy != scans[0].src.copy }) {
		return alone, nil
	}
	for _, s := range scans {
		for _, q := range s.pieces {
			if q.way != asIs || q.batches != 1 {
				continue
			}
			err := eachIdentity(q, func(id string, _ *format.Batch) {
				if len(alone[id]) < mostTwins {
					alone[id] = append(alone[id], &twin{piece: q, s: s})
				}
			})
			if err != nil {
				return nil, err
			}
		}
	}
	return alone, nil
}

// eachIdentity calls fn with all batches of a piece and what the checksum vouches for: length, checksum and header.
func eachIdentity(q piece, fn func(id string, b *format.Batch)) error {
	return q.src.log.View(func(data []byte) error {
		var b format.Batch
		for pos := q.from; pos < q.to; pos = b.End() {
			if err := b.Decode(data, pos); err != nil {
				return err
			}
			covered := 16 // the magic byte, before the checksum, of magic 2
			if b.Legacy() {
				covered = format.LogOverhead
			}
			fn(fmt.Sprint(len(b.Raw))+string(b.Raw[covered:min(len(b.Raw), format.BatchHeaderSize)]), &b)
		}
		return nil
	})
}

// findTwins looks the batches up that stand alone among those of other copies, rather those that are not suspect.
func findTwins(scans []*scan, alone map[string][]*twin) (twins []*twin, err error) {
	for _, s := range scans {
		for _, q := range s.pieces {
			if q.way != asIs || len(alone) == 0 {
				continue
			}
			err = eachIdentity(q, func(id string, b *format.Batch) {
				for _, t := range alone[id] {
					if t.src.copy == s.src.copy || t.last == b.LastOffset || t.other != nil && (q.suspect || !t.suspect) {
						continue
					}
					if t.other == nil {
						twins = append(twins, t)
					}
					t.at, t.other, t.pos, t.suspect = b.LastOffset-(t.last-t.first), s, b.Pos, q.suspect
				}
			})
			if err != nil {
				return nil, err
			}
		}
	}
	return twins, nil
}

// anchorsOf are the pieces of a file, in its order, that are neither suspect nor have a twin.
func anchorsOf(s *scan, twins map[int64]*twin) []piece {
	anchors := slices.DeleteFunc(slices.Clone(s.pieces), func(q piece) bool { return q.suspect || twins[q.from] != nil })
	slices.SortFunc(anchors, func(a, b piece) int { return cmp.Compare(a.from, b.from) })
	return anchors
}

// around finds how both offsets fit to what is around the batch in its file. Other bytes between have offsets, too.
func (t *twin) around(anchors []piece) {
	after, before := t.src.base, t.src.limit
	from, to := int64(0), int64(-1)
	i, _ := slices.BinarySearchFunc(anchors, t.piece.from, func(q piece, at int64) int { return cmp.Compare(q.from, at) })
	if i > 0 {
		after, from = anchors[i-1].last+1, anchors[i-1].to
	}
	if i < len(anchors) {
		before, to = anchors[i].first, anchors[i].from
	}
	first, last := from == t.piece.from, to == t.to
	fits := func(a, b int64) fit {
		switch {
		case a < after || b >= before || a == after && !first || b+1 == before && !last && to >= 0:
			return contradicts
		case a == after || b+1 == before:
			return touches
		}
		return between
	}
	t.own, t.there = fits(t.first, t.last), fits(t.at, t.at+t.last-t.first)
}

// misplaced reports whether it is the other one that has the right offsets.
func (t *twin) misplaced() bool {
	if t.suspect {
		return t.there == touches && t.own < touches
	}
	return t.there == touches || t.there == between && (t.own < touches || t.piece.suspect)
}
