package ls

import (
	"testing"

	"kseg/format"
	"kseg/logdir"
)

// A quantile is the smallest value that so many hundredths of all do not exceed: of 101 values the 50th hundredth is
// the 51st, since 50 are less than that.
func TestEdgesOfQuantiles(t *testing.T) {
	d := &Distribution{}
	for v := range int64(101) {
		d.count(v + 1)
	}
	for hundredths, want := range map[int64]int64{0: 1, 1: 2, 50: 51, 99: 100, 100: 101} {
		if got := d.Quantile(hundredths); got != want {
			t.Errorf("%d hundredths: %d, want %d", hundredths, got, want)
		}
	}
}

// A batch goes back in time only if it is older than the newest before it, not if it is as old.
func TestBatchesThatGoBack(t *testing.T) {
	c := &counter{Stats: &Stats{Producers: map[int64]bool{}}, days: map[int64]int64{}}
	for _, ms := range []int64{5, 5, 6, 5, 6} {
		c.batch(&format.Batch{MaxTimestamp: ms, BaseTimestamp: ms, ProducerID: -1}, 1)
	}
	if c.Back != 1 {
		t.Errorf("%d batches", c.Back)
	}
}

// Of a hundred batches one may say that producers hardly batch, of fewer not.
func TestFewBatchesSayNothing(t *testing.T) {
	for n, want := range map[int]bool{99: false, 100: true} {
		s := &Stats{Producers: map[int64]bool{}}
		c := &counter{Stats: s, days: map[int64]int64{}}
		for range n {
			c.batch(&format.Batch{Raw: make([]byte, 70), ProducerID: -1, Magic: 2}, 1)
		}
		if got := (&Topic{Name: "t", Sums: Sums{Stats: s}}).Batching(); (got != "") != want {
			t.Errorf("%d batches: %q", n, got)
		}
	}
}

// A log that can't be read ends where the next one begins.
func TestUnreadLog(t *testing.T) {
	var s Segment
	s.unread(&logdir.Segment{Base: 3, Next: &logdir.Segment{Base: 10}})
	if s.FirstOffset != Some(3) || s.LastOffset != Some(9) || s.Records != 7 || !s.Estimated {
		t.Errorf("%+v", s)
	}
}
