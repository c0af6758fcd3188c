package lookup

import (
	"encoding/binary"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"kseg/format"
)

// appendBatch appends a record batch that has a header and, for its records, zeros.
func appendBatch(log []byte, base int64, lastDelta int32, count int32, maxTimestampMs int64, bodySize int) []byte {
	h := make([]byte, format.BatchHeaderSize+bodySize)
	binary.BigEndian.PutUint64(h, uint64(base))
	binary.BigEndian.PutUint32(h[8:], uint32(len(h)-format.LogOverhead))
	h[16] = 2
	binary.BigEndian.PutUint32(h[23:], uint32(lastDelta))
	binary.BigEndian.PutUint64(h[27:], uint64(maxTimestampMs))
	binary.BigEndian.PutUint64(h[35:], uint64(maxTimestampMs))
	binary.BigEndian.PutUint64(h[43:], 1<<64-1)
	binary.BigEndian.PutUint16(h[51:], 1<<16-1)
	binary.BigEndian.PutUint32(h[53:], 1<<32-1)
	binary.BigEndian.PutUint32(h[57:], uint32(count))
	return append(log, h...)
}

// drawLog makes a segment's log with gaps, as compaction leaves them, and the batches in it.
func drawLog(t *rapid.T, base int64) ([]byte, []format.BatchRef) {
	var log []byte
	var batches []format.BatchRef
	next := base
	for range rapid.IntRange(0, 60).Draw(t, "batches") {
		if rapid.IntRange(0, 4).Draw(t, "is there a gap") == 0 {
			next += rapid.Int64Range(1, 9).Draw(t, "gap")
		}
		last := next + rapid.Int64Range(0, 12).Draw(t, "offsets")
		pos := int64(len(log))
		log = appendBatch(log, next, int32(last-next), int32(last-next)+1, 1000+next, rapid.IntRange(0, 300).Draw(t, "body"))
		batches = append(batches, format.BatchRef{Pos: pos, Size: int64(len(log)) - pos, BaseOffset: next, LastOffset: last,
			MaxTimestampMs: 1000 + next})
		next = last + 1
	}
	return log, batches
}

func buildIndex(base, interval int64, batches []format.BatchRef) []byte {
	x := format.NewIndexBuilder(base, interval)
	for _, b := range batches {
		if err := x.Add(b); err != nil {
			panic(err)
		}
	}
	return x.OffsetIndexBytes()
}

// appendIndex writes the entries of a broker before 4.0.1: at most one an append, which may have several batches.
func appendIndex(t *rapid.T, base, interval int64, batches []format.BatchRef) []byte {
	var out []byte
	since := int64(0)
	for len(batches) > 0 {
		n := rapid.IntRange(1, min(6, len(batches))).Draw(t, "batches of the append")
		if since > interval {
			out = format.AppendOffsetEntry(out, base, format.OffsetEntry{Offset: batches[n-1].LastOffset,
				Position: int32(batches[0].Pos)})
			since = 0
		}
		for _, b := range batches[:n] {
			since += b.Size
		}
		batches = batches[n:]
	}
	return out
}

// linear is the lookup as anybody would write it.
func linear(batches []format.BatchRef, offset int64) (format.BatchRef, bool) {
	i := slices.IndexFunc(batches, func(b format.BatchRef) bool { return b.LastOffset >= offset })
	if i < 0 {
		return format.BatchRef{}, false
	}
	return batches[i], true
}

func drawSegment(t *rapid.T) (*Segment, []format.BatchRef) {
	base := rapid.SampledFrom([]int64{0, 5, 1 << 40}).Draw(t, "base")
	log, batches := drawLog(t, base)
	interval := rapid.SampledFrom([]int64{0, 1, 100, 300, 1000, 1 << 20}).Draw(t, "interval")
	var index []byte
	if rapid.Bool().Draw(t, "one entry an append") {
		index = appendIndex(t, base, interval, batches)
	} else {
		index = buildIndex(base, interval, batches)
	}
	return NewSegment(base, log, index, nil, false, 1<<20), batches
}

// TestLookupIsLinearScan: for every offset the search finds the batch that a scan of the whole log finds, and its steps
// add up.
func TestLookupIsLinearScan(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, batches := drawSegment(t)
		survey := s.Survey()
		for offset := s.Base; offset < survey.NextOffset+3; offset++ {
			want, ok := linear(batches, offset)
			got := s.Translate(offset)
			if got.Found != ok || ok && (got.Hit.Position != want.Pos || got.Hit.BaseOffset != want.BaseOffset ||
				got.Hit.Size != want.Size) {
				t.Fatalf("offset %d: %+v, a linear scan finds %+v, %v", offset, got, want, ok)
			}
			var hops []Hop
			again := s.scan(got.Start, offset, &hops)
			if diff := cmp.Diff(got, again); diff != "" {
				t.Fatalf("offset %d: with steps kept: %s", offset, diff)
			}
			pos := got.Start
			for _, h := range hops {
				if h.Position != pos {
					t.Fatalf("offset %d: hop at %d, expected at %d", offset, h.Position, pos)
				}
				pos += h.Size
			}
			if int64(len(hops)) != got.HeaderHops || ok && pos != got.Hit.Position || !ok && pos != got.End {
				t.Fatalf("offset %d: %d hops to %d, but %+v", offset, len(hops), pos, got)
			}
		}
	})
}

// bruteForce is Sweep by a lookup for each offset.
func bruteForce(s *Segment, last int64) Sweep {
	out := Sweep{WorstOffset: -1, WorstLast: -1, FirstProblem: -1}
	var bytes, hops []int64
	for offset := s.Base; offset <= last; offset++ {
		scan := s.Translate(offset)
		if !scan.Found {
			if scan.Err != nil {
				out.Failed++
			} else {
				out.NotFound++
			}
			if out.FirstProblem < 0 {
				out.FirstProblem, out.FirstErr = offset, scan.Err
			}
			continue
		}
		out.Offsets++
		n := scan.BytesScanned()
		if out.WorstOffset < 0 || n > slices.Max(bytes) {
			out.WorstOffset = offset
		}
		if bytes, hops = append(bytes, n), append(hops, scan.HeaderHops); n == slices.Max(bytes) {
			out.WorstLast = offset
		}
	}
	out.Bytes, out.Hops = sorted(bytes), sorted(hops)
	return out
}

func sorted(values []int64) Distribution {
	if len(values) == 0 {
		return Distribution{}
	}
	slices.Sort(values)
	sum := int64(0)
	for _, v := range values {
		sum += v
	}
	n := len(values)
	return Distribution{float64(sum) / float64(n), values[(n*50+99)/100-1], values[(n*99+99)/100-1], values[n-1]}
}

func compareSweep(t *rapid.T, s *Segment, last, batches int64) {
	got, want := s.Sweep(last, batches, nil), bruteForce(s, last)
	if (got.FirstErr == nil) != (want.FirstErr == nil) {
		t.Fatalf("first error: %v, brute force has %v", got.FirstErr, want.FirstErr)
	}
	got.FirstErr, want.FirstErr = nil, nil
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatalf("brute force → sweep: %s", diff)
	}
}

// TestSweepIsBruteForce on healthy segments, and with an index in which bytes were overwritten.
func TestSweepIsBruteForce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, batches := drawSegment(t)
		survey := s.Survey()
		compareSweep(t, s, survey.NextOffset-1, int64(len(batches)))

		if rapid.Bool().Draw(t, "damage") {
			raw := rapid.SliceOfN(rapid.Byte(), 0, 40).Draw(t, "index")
			base := s.Base
			for i := 0; i+8 <= len(raw); i += 8 {
				raw[i], raw[i+1], raw[i+4], raw[i+5] = 0, 0, 0, 0
			}
			broken := NewSegment(base, s.Log, raw, nil, false, 1<<20)
			compareSweep(t, broken, survey.NextOffset-1, 1<<20)
		}
	})
}

// TestDistributionIsSorting, with values so large that buckets have to be widened and looked into again.
func TestDistributionIsSorting(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.SliceOfN(rapid.Int64Range(0, rapid.SampledFrom([]int64{3, 70000, 1 << 30}).Draw(t, "largest")), 1,
			300).Draw(t, "values")
		weights := rapid.SliceOfN(rapid.Int64Range(1, 5), len(values), len(values)).Draw(t, "weights")
		var h histogram
		var all []int64
		for i, v := range values {
			h.add(v, weights[i])
			for range weights[i] {
				all = append(all, v)
			}
		}
		if h.startZoom() {
			for i, v := range values {
				h.addZoomed(v, weights[i])
			}
		}
		if diff := cmp.Diff(sorted(all), h.distribution()); diff != "" {
			t.Fatal(diff)
		}
	})
}

// FuzzSegment: whatever the files hold, the searches end, and what they find lies in the log.
func FuzzSegment(f *testing.F) {
	log := appendBatch(appendBatch(nil, 0, 3, 4, 5, 30), 4, 0, 1, 9, 10)
	f.Add(log, buildIndex(0, 1, []format.BatchRef{{Pos: 0, Size: 91, LastOffset: 3}, {Pos: 91, Size: 71, BaseOffset: 4,
		LastOffset: 4}}), []byte{}, int64(4))
	f.Fuzz(func(t *testing.T, log, index, timeIndex []byte, target int64) {
		for _, last := range []bool{false, true} {
			s := NewSegment(0, log, index, timeIndex, last, 1<<16)
			checkScan(t, s, s.Translate(target))
			checkScan(t, s, s.FindTimestamp(target, 0).Scan)
			survey := s.Survey()
			sweep := s.Sweep(survey.NextOffset-1, survey.Batches, nil)
			if sum := sweep.Offsets + sweep.NotFound + sweep.Failed + sweep.Unmeasured; survey.NextOffset > 0 &&
				sum != survey.NextOffset {
				t.Fatalf("%d offsets are accounted for, of %d", sum, survey.NextOffset)
			}
		}
	})
}

func checkScan(t *testing.T, s *Segment, scan Scan) {
	if scan.Found && (scan.Hit.Position < scan.Start || scan.Hit.Position+scan.Hit.Size > int64(len(s.Log))) {
		t.Fatalf("%+v in a log of %d bytes", scan, len(s.Log))
	}
}

// FindTimestamp is LogSegment.findOffsetByTimestamp: the time index gives an offset, the offset index a position, and
// from there the first record of at least that timestamp and of at least the offset startOffset is looked for.
func (s *Segment) FindTimestamp(timestampMs, startOffset int64) TimeScan {
	from := max(s.Time.Lookup(timestampMs).Offset, startOffset)
	return s.scanTimestamp(int64(s.Index.Lookup(from).Position), timestampMs, startOffset, nil)
}
