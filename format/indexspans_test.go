package format

import (
	"encoding/binary"
	"testing"

	"pgregory.net/rapid"
)

// TestSpansIsSearchForEveryTarget holds Spans to Search, over indexes in any order and longer than the hot section.
func TestSpansIsSearchForEveryTarget(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.SampledFrom([]int{0, 1, 2, 3, 7, 1023, 1024, 1025, 1026, 1030, 2100}).Draw(t, "slots")
		sorted := rapid.Bool().Draw(t, "sorted")
		seed := rapid.Uint32().Draw(t, "seed")
		var raw []byte
		key := int32(0)
		for range n {
			seed = seed*1664525 + 1013904223
			if step := int32(seed >> 28); sorted {
				key += step
			} else {
				key = int32(seed>>16)%3000 - 100
			}
			raw = binary.BigEndian.AppendUint32(raw, uint32(key))
			raw = binary.BigEndian.AppendUint32(raw, seed)
		}
		x := NewOffsetIndex(raw, 1000)
		first := rapid.Int64Range(800, 1200).Draw(t, "first")
		last := first + rapid.Int64Range(0, 40000).Draw(t, "length")
		next := first
		var probes []int
		x.Spans(first, last, func(from, to int64, slot int) {
			if from != next || to < from {
				t.Fatalf("a span %d..%d after %d", from, to, next)
			}
			next = to + 1
			for target := from; target <= to; target++ {
				if got := x.Search(target, probes[:0]); got.Slot != slot {
					t.Fatalf("target %d: Search finds slot %d, Spans %d", target, got.Slot, slot)
				}
			}
		})
		if next != last+1 {
			t.Fatalf("the spans end at %d, not at %d", next-1, last)
		}
	})
}
