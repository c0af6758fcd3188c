package ls

import (
	"maps"
	"math/bits"
	"slices"
)

// Distribution counts values from 0 up, for their quantiles. As long as there are not too many different ones it is
// exact; then values are rounded down to their nine leading bits.
type Distribution struct {
	counts map[int64]int64
	total  int64
	sum    int64
	max    int64
	coarse bool
}

// maxValues is how many different values are told apart exactly.
const maxValues = 1 << 16

func (d *Distribution) count(value int64) { d.weigh(value, 1) }

func (d *Distribution) weigh(value, n int64) {
	if d.counts == nil {
		d.counts = map[int64]int64{}
	}
	d.total += n
	d.sum += n * value
	d.max = max(d.max, value)
	if d.coarse {
		value = rounded(value)
	}
	d.counts[value] += n
	if len(d.counts) > maxValues && !d.coarse {
		d.coarse = true
		fine := d.counts
		d.counts = map[int64]int64{}
		for v, k := range fine {
			d.counts[rounded(v)] += k
		}
	}
}

func rounded(value int64) int64 {
	const digits = 9
	shift := max(bits.Len64(uint64(value))-digits, 0)
	return value >> shift << shift
}

func (d *Distribution) add(o *Distribution) {
	sum, most := d.sum+o.sum, max(d.max, o.max)
	for value, n := range o.counts {
		d.weigh(value, n)
	}
	d.sum, d.max = sum, most
}

// Max is the largest value, 0 if there is none.
func (d *Distribution) Max() int64 { return d.max }

// Mean is 0 if there is no value.
func (d *Distribution) Mean() float64 {
	if d.total == 0 {
		return 0
	}
	return float64(d.sum) / float64(d.total)
}

// Quantile is the smallest value that is not below so many hundredths of all; 0 if there is none.
func (d *Distribution) Quantile(hundredths int64) int64 {
	rank := max(1, (d.total*hundredths+99)/100)
	seen := int64(0)
	for _, value := range slices.Sorted(maps.Keys(d.counts)) {
		if seen += d.counts[value]; seen >= rank {
			return value
		}
	}
	return d.max
}
