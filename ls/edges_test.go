package ls

import (
	"testing"

	"kseg/format"
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
