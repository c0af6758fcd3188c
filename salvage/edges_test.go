package salvage

import (
	"math"
	"path/filepath"
	"slices"
	"testing"

	"kseg/format"
	"kseg/internal/fixture"
	"kseg/logdir"
)

// A better piece that begins at the last offset of another one still cuts it; one that begins after it does not.
func TestBetterPieceAtTheLastOffset(t *testing.T) {
	p := &planner{ranks: []int{0, 1}, better: map[int][]int64{0: {3, 9, 10}, 1: {4}}}
	for last, want := range map[int64]int64{8: 0, 9: 9, 10: 9} {
		at, ok := p.betterIn(piece{src: &source{rank: 1}, first: 5, last: last})
		if ok != (want > 0) || at != want {
			t.Errorf("up to %d: %d, %v", last, at, ok)
		}
	}
}

// Neither an offset of which its surroundings say that it is wrong, nor what was left over, makes two histories of two
// copies; nor does the former contradict a checkpoint of leader epochs.
func TestSuspectsProveNothing(t *testing.T) {
	const name = "00000000000000000032.log"
	var sources [2]*source
	for i, dir := range []string{fixture.Dir(t, "4.4.0/damage-base/plain/orders-0"),
		fixture.Damaged(t, "producer-sequence-gap-crc-fixed")} {
		set, err := logdir.Open([]string{filepath.Join(dir, name)}, logdir.Options{})
		if err != nil {
			t.Fatal(err)
		}
		sources[i] = &source{log: set.Operands[0].File, base: 32, copy: i, limit: 64}
	}
	whole := func(s *source) piece { return piece{src: s, to: s.log.Size, first: 32, last: 63, batches: 8} }
	for _, c := range []struct {
		rank     int
		suspect  bool
		diverged bool
	}{{0, false, true}, {0, true, false}, {rankLeftover, false, false}} {
		p := &planner{plan: &plan{extents: []piece{whole(sources[0])}}, digest: newComparer(&Options{MaxBatchBytes: 1 << 20})}
		defer p.digest.close()
		q := whole(sources[1])
		q.suspect, sources[1].rank = c.suspect, c.rank
		if err := p.leaveOut(q); err != nil || p.diverged != c.diverged || (len(p.odd) == 0) != c.diverged {
			t.Errorf("%+v: diverged %v, odd %+v, %v", c, p.diverged, p.odd, err)
		}
		q.epochs = [2]int32{1, 1}
		epochs := format.EpochCache{{Epoch: 1, StartOffset: 0}, {Epoch: 2, StartOffset: 32}}
		if got := contradicted(epochs, []*scan{{src: q.src, pieces: []piece{q}}}); got != c.diverged {
			t.Errorf("%+v: contradicts the checkpoint: %v", c, got)
		}
	}
}

// Pieces that follow on each other are one, in a compacted log over a gap too, but not with an offset twice.
func TestJoinedPieces(t *testing.T) {
	for _, c := range []struct {
		compacted bool
		first     int64
		want      int
	}{{false, 5, 2}, {false, 6, 1}, {false, 7, 2}, {true, 5, 2}, {true, 6, 1}, {true, 7, 1}} {
		src := &source{log: &logdir.File{}, compacted: c.compacted}
		if got := joined([]piece{{src: src, to: 100, last: 5}, {src: src, from: 100, to: 200, first: c.first,
			last: 9}}); len(got) != c.want {
			t.Errorf("%+v: %d pieces", c, len(got))
		}
	}
}

// A segment takes batches up to the offset 2^31-1 above its own, as a broker's does (canConvertToRelativeOffset).
func TestLargestOffsetOfASegment(t *testing.T) {
	src := &source{base: 7}
	for last, want := range map[int64]bool{7 + math.MaxInt32: false, 8 + math.MaxInt32: true} {
		w := &writer{started: true, base: 7, from: src}
		b := &format.Batch{BaseOffset: last, LastOffset: last}
		if _, got := w.newSegment(&piece{src: src}, last, b); got != want {
			t.Errorf("a batch that ends at %d begins a segment: %v", last, got)
		}
		raw := fixture.AppendBatch(nil, fixture.Batch{Records: []fixture.Record{{Offset: last, Value: []byte("v")}}})
		broken, err := format.DecodeBatch(raw, 0)
		if err != nil {
			t.Fatal(err)
		}
		s := &scanner{scan: &scan{src: &source{base: 7, limit: math.MaxInt64}}, opts: &Options{Records: true},
			reader: format.NewRecordReader(1<<20, nil)}
		if s.saveRecords(&broken); len(s.pieces) != 1 || s.pieces[0].suspect != want {
			t.Errorf("records that end at %d: %+v", last, s.pieces)
		}
	}
}

// An epoch above a later one is dropped, and what it parted is one run.
func TestRisingEpochs(t *testing.T) {
	runs := epochRuns{runs: []format.EpochEntry{{Epoch: 5}, {Epoch: 7, StartOffset: 10}, {Epoch: 5, StartOffset: 20},
		{Epoch: 6, StartOffset: 30}}}
	want := []format.EpochEntry{{Epoch: 5}, {Epoch: 6, StartOffset: 30}}
	if got := runs.rising(); !slices.Equal(got, want) {
		t.Errorf("%+v", got)
	}
}
