package broker

import (
	"math"
	"math/rand/v2"
	"testing"

	"kseg/format"
)

// threeSegments has closed segments of 100 bytes at 0, 10 and 20, whose records are of the times 1000, 2000 and 3000,
// and an active one at 30.
func threeSegments() *CleanerLog {
	l := &CleanerLog{EndOffset: 40, HighWatermark: 40, StableOffset: 40}
	for i := range int64(4) {
		l.Segments = append(l.Segments, CleanerSegment{Base: 10 * i, Size: 100, LargestMs: 1000 * (i + 1),
			FirstMs: 1000*(i+1) - 500})
	}
	return l
}

func TestRangeAndWhatSetsIt(t *testing.T) {
	at := func(n int64) *int64 { return &n }
	for name, test := range map[string]struct {
		change       func(l *CleanerLog, s *CleanerSettings)
		dirty, until int64
		limit        Limit
		clean, bytes int64
	}{
		"never cleaned": {nil, 0, 30, LimitActive, 0, 300},
		"cleaned to a base": {func(l *CleanerLog, _ *CleanerSettings) { l.CleanedTo = at(20) }, 20, 30, LimitActive, 200,
			100},
		"cleaned into a middle": {func(l *CleanerLog, _ *CleanerSettings) { l.CleanedTo = at(15) }, 15, 30, LimitActive, 200,
			200},
		"beyond the end": {func(l *CleanerLog, _ *CleanerSettings) { l.CleanedTo = at(41) }, 0, 30, LimitActive, 0, 300},
		"at the end":     {func(l *CleanerLog, _ *CleanerSettings) { l.CleanedTo = at(40) }, 40, 40, LimitActive, 400, 0},
		"below the start": {func(l *CleanerLog, _ *CleanerSettings) { l.CleanedTo, l.StartOffset = at(3), 12 }, 12, 30,
			LimitActive, 200, 200},
		"lag":              {func(_ *CleanerLog, s *CleanerSettings) { s.MinLagMs = 8000 }, 0, 20, LimitLag, 0, 200},
		"lag exactly over": {func(_ *CleanerLog, s *CleanerSettings) { s.MinLagMs = 7000 }, 0, 30, LimitActive, 0, 300},
		"transaction": {func(l *CleanerLog, _ *CleanerSettings) { l.StableOffset = 13 }, 0, 13, LimitTransaction, 0,
			100},
		"watermark": {func(l *CleanerLog, _ *CleanerSettings) { l.StableOffset, l.HighWatermark = 20, 20 }, 0, 20,
			LimitWatermark, 0, 200},
		"dirty above the limit": {func(l *CleanerLog, _ *CleanerSettings) { l.StableOffset, l.CleanedTo = 13, at(17) }, 17,
			17, LimitTransaction, 200, 0},
		"all cleaned": {func(l *CleanerLog, _ *CleanerSettings) { l.CleanedTo = at(30) }, 30, 30, LimitActive, 300, 0},
	} {
		l, s := threeSegments(), &CleanerSettings{Compact: true, Enabled: true, MaxLagMs: math.MaxInt64, MinDirtyRatio: 0.5}
		if test.change != nil {
			test.change(l, s)
		}
		r := l.Range(s, 10_000)
		if r.FirstDirty != test.dirty || r.FirstUncleanable != test.until || r.Limit != test.limit ||
			r.CleanBytes != test.clean || r.DirtyBytes != test.bytes {
			t.Errorf("%s: %+v", name, r)
		}
	}
}

// TestEligibleAt asks at each millisecond whether the time foretold is the first at which a cleaner would come.
func TestEligibleAt(t *testing.T) {
	for _, cleaned := range []int64{0, 10, 15, 20, 30} {
		for _, lag := range []int64{0, 300, 2500} {
			for _, most := range []int64{math.MaxInt64, 1, 1800} {
				for _, ratio := range []float64{0, 0.4, 0.5, 1} {
					l, s := threeSegments(), &CleanerSettings{Compact: true, Enabled: true, MinLagMs: lag, MaxLagMs: most,
						MinDirtyRatio: ratio}
					l.CleanedTo = &cleaned
					r := l.Range(s, 900)
					got, ok := l.EligibleAt(s, &r, 900)
					want, found := int64(0), false
					for now := int64(900); now < 9000 && !found; now++ {
						later := l.Range(s, now)
						want = now
						found, _ = later.Eligible(s, now)
					}
					if ok != found || ok && got != want {
						t.Errorf("cleaned to %d, lags %d and %d, ratio %v: %d %v, want %d %v", cleaned, lag, most, ratio, got, ok, want,
							found)
					}
				}
			}
		}
	}
}

func TestGroupsOfSegments(t *testing.T) {
	segments := func(sizes ...int64) (list []CleanerSegment) {
		for i, size := range sizes {
			list = append(list, CleanerSegment{Base: int64(i) * 1 << 30, Size: size, IndexSize: 8, TimeIndexSize: 12})
		}
		return list
	}
	for name, test := range map[string]struct {
		sizes []int64
		bytes int64
		index int64
		want  []int
	}{
		"all in one":        {[]int64{10, 10}, 20, 100, []int{2}},
		"by size":           {[]int64{10, 10, 10}, 20, 100, []int{2, 1}},
		"by time index":     {[]int64{10, 10, 10}, 100, 24, []int{2, 1}},
		"by offsets":        {[]int64{10, 10, 10}, 100, 100, []int{2, 1}},
		"empty ones do fit": {[]int64{10, 10, 0}, 100, 100, []int{3}},
	} {
		var got []int
		for _, g := range group(segments(test.sizes...), &CleanerSettings{SegmentBytes: test.bytes,
			SegmentIndexBytes: test.index}, int64(len(test.sizes))<<30) {
			got = append(got, len(g))
		}
		if len(got) != len(test.want) || got[0] != test.want[0] {
			t.Errorf("%s: %v, want %v", name, got, test.want)
		}
	}
}

func TestOffsetMapGrowsAndFills(t *testing.T) {
	m, h := newOffsetMap(5000, 0), newKeyHasher()
	for i := int64(0); !m.full(); i++ {
		m.put(h.hash([]byte{byte(i), byte(i >> 8)}), i, true)
	}
	for i := range int64(5000) {
		if got := m.get(h.hash([]byte{byte(i), byte(i >> 8)})); got != i {
			t.Fatalf("key %d: %d", i, got)
		}
	}
	if m.get(h.hash([]byte("none"))) != -1 || m.n != 5000 || m.latest != 4999 {
		t.Errorf("%d keys up to %d", m.n, m.latest)
	}
}

// What is known of an offset without its key is what the map says of the key; nothing is known once offsets go back.
func TestPutOffsetsSayWhatTheMapSays(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 5))
	for round := range 20 {
		base := rnd.Int64N(1 << 40)
		m, h := newOffsetMap(1<<40, base), newKeyHasher()
		type put struct {
			b      format.Batch
			offset int64
			key    keyHash
			put    bool
			valued bool
		}
		var all []put
		for offset := base; len(all) < 3000; {
			b := format.Batch{Magic: 2, BaseOffset: offset, LastOffset: offset + rnd.Int64N(5)}
			m.puts.batch(&b)
			for ; offset <= b.LastOffset; offset++ {
				p := put{b, offset, h.hash([]byte{byte(rnd.IntN(200))}), rnd.IntN(4) > 0, rnd.IntN(2) > 0}
				if all = append(all, p); p.put {
					m.put(p.key, offset, p.valued)
				}
			}
			offset += rnd.Int64N(3) * rnd.Int64N(100)
		}
		if round == 19 {
			m.puts.batch(&format.Batch{Magic: 2, BaseOffset: base, LastOffset: base})
		}
		for _, p := range all {
			want := putNot
			switch {
			case !p.put || round == 19:
			case m.get(p.key) != p.offset:
				want = putSuperseded
			case p.valued:
				want = putNewest
			default:
				want = putTombstone
			}
			if got := m.puts.of(&p.b, p.offset); got != want {
				t.Fatalf("round %d, offset %d: %d, want %d, %+v", round, p.offset, got, want, p)
			}
		}
	}
}

// A batch of which a part stays is written anew only with a producer that makes sense.
func TestWritable(t *testing.T) {
	for _, c := range []struct {
		id       int64
		epoch    int16
		sequence int32
		attrs    int16
		want     bool
	}{{-1, -1, -1, 0, true}, {-1, -1, -1, 0x10, false}, {7, 0, 0, 0x10, true}, {-2, -1, 0, 0, false}, {-2, 0, 0, 0, true},
		{7, 0, -1, 0x10, false}, {7, 0, -1, 0x30, true}, {7, -1, 0, 0, false}} {
		b := format.Batch{Magic: 2, ProducerID: c.id, ProducerEpoch: c.epoch, BaseSequence: c.sequence, Attributes: c.attrs}
		if err := writable(&b); (err == nil) != c.want {
			t.Errorf("%+v: %v", c, err)
		}
	}
}
