package lookup

// Distribution sums up a cost over many lookups. P50 and P99 are the smallest costs that at least half, and 99 in 100,
// of the lookups do not exceed.
type Distribution struct {
	Mean float64
	P50  int64
	P99  int64
	Max  int64
}

// histogramBuckets bounds the memory of a histogram, whatever is counted.
const histogramBuckets = 1 << 16

// histogram counts weighted values from 0 up in buckets whose width doubles until the largest fits. If that was needed,
// the quantiles are found exactly by counting the same values a second time, inside the two buckets that hold them.
type histogram struct {
	shift  uint // the width of a bucket is 1 << shift
	counts []int64
	total  int64
	sum    float64
	max    int64
	// zoom are the buckets of the quantiles in the second round.
	zoom [2]zoomed
}

type zoomed struct {
	first  int64 // the smallest value of the bucket
	before int64 // how much lies below it
	counts []int64
}

// add counts value weight times.
func (h *histogram) add(value, weight int64) {
	for value>>h.shift >= histogramBuckets {
		h.widen()
	}
	i := value >> h.shift
	for i >= int64(len(h.counts)) {
		h.counts = append(h.counts, make([]int64, min(histogramBuckets-len(h.counts), max(1024, len(h.counts))))...)
	}
	h.counts[i] += weight
	h.total += weight
	h.sum += float64(value) * float64(weight)
	h.max = max(h.max, value)
}

func (h *histogram) widen() {
	for i := 0; i < len(h.counts); i += 2 {
		pair := h.counts[i]
		if i+1 < len(h.counts) {
			pair += h.counts[i+1]
		}
		h.counts[i/2] = pair
	}
	half := (len(h.counts) + 1) / 2
	clear(h.counts[half:])
	h.shift++
}

// rank is the position of a quantile, given in hundredths, among the sorted values, counted from 1.
func (h *histogram) rank(hundredths int64) int64 {
	whole, rest := h.total/100, h.total%100
	return max(1, whole*hundredths+(rest*hundredths+99)/100)
}

// find returns the index in counts that holds a rank, and what lies before it.
func find(counts []int64, rank int64) (at int, before int64) {
	for i, n := range counts {
		if before+n >= rank {
			return i, before
		}
		before += n
	}
	return max(0, len(counts)-1), before
}

// startZoom prepares for a second round of the same values through addZoomed, and is false if none is needed.
func (h *histogram) startZoom() bool {
	if h.shift == 0 || h.total == 0 {
		return false
	}
	for i, hundredths := range quantiles {
		at, before := find(h.counts, h.rank(hundredths))
		h.zoom[i] = zoomed{first: int64(at) << h.shift, before: before, counts: make([]int64, 1<<h.shift)}
	}
	return true
}

var quantiles = [2]int64{50, 99}

func (h *histogram) addZoomed(value, weight int64) {
	for i := range h.zoom {
		z := &h.zoom[i]
		if at := value - z.first; at >= 0 && at < int64(len(z.counts)) {
			z.counts[at] += weight
		}
	}
}

// distribution sums up what was counted; after startZoom only when the second round is over.
func (h *histogram) distribution() Distribution {
	if h.total == 0 {
		return Distribution{}
	}
	var q [2]int64
	for i, hundredths := range quantiles {
		rank := h.rank(hundredths)
		if z := &h.zoom[i]; h.shift > 0 {
			at, _ := find(z.counts, rank-z.before)
			q[i] = z.first + int64(at)
			continue
		}
		at, _ := find(h.counts, rank)
		q[i] = int64(at)
	}
	return Distribution{Mean: h.sum / float64(h.total), P50: q[0], P99: q[1], Max: h.max}
}
