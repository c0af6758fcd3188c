package walk

import (
	"context"
	"slices"
	"testing"

	"kseg/format"
)

func TestOrderedKeepsTheOrder(t *testing.T) {
	items := make([]int, 1000)
	for i := range items {
		items[i] = i
	}
	worker := func(format.Gate) func(int) int { return func(n int) int { return 2 * n } }
	for _, jobs := range []int{1, 3, 16} {
		got := slices.Collect(Ordered(context.Background(), items, jobs, worker))
		if len(got) != len(items) {
			t.Fatalf("%d jobs: %d results", jobs, len(got))
		}
		for i, n := range got {
			if n != 2*i {
				t.Fatalf("%d jobs: result %d is %d", jobs, i, n)
			}
		}
	}
}

func TestOrderedEndsEarly(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	items := make([]int, 1000)
	worker := func(format.Gate) func(int) int { return func(n int) int { return n } }
	seen := 0
	for range Ordered(ctx, items, 4, worker) {
		if seen++; seen == 3 {
			break
		}
	}
	if seen != 3 {
		t.Errorf("%d results before the break", seen)
	}
	cancel()
	for range Ordered(ctx, items, 4, worker) {
		t.Error("a result after the end of the context")
	}
}
