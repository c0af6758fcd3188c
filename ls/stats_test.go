package ls

import (
	"context"
	"path"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"kseg/format"
	"kseg/internal/fixture"
	"kseg/logdir"
	"kseg/state"
)

// count lists a directory and returns the stats of the whole.
func count(t tb, dir string, o Options) *Sums {
	set, err := logdir.Open([]string{dir}, logdir.Options{Unlisted: true})
	if err != nil {
		t.Fatal(err)
	}
	o.Jobs, o.MaxBatchBytes = 2, 1<<24
	o.Settings = func(*logdir.LogDir) *state.Settings { return &state.Settings{} }
	var total Sums
	for p := range New(set, o).Run(context.Background(), Partitions(set)) {
		total.Add(&p.Sums)
	}
	return &total
}

// plain is what a plain loop over all batches and records finds.
type plain struct {
	sizes, counts []int64
	codecs        map[int64]int64 // records
	days          map[int64]int64
	producers     map[int64]int64
}

func plainly(t testing.TB, dir string) plain {
	out := plain{codecs: map[int64]int64{}, days: map[int64]int64{}, producers: map[int64]int64{}}
	set, err := logdir.Open([]string{dir}, logdir.Options{})
	if err != nil {
		t.Fatal(err)
	}
	reader := format.NewRecordReader(1<<24, nil)
	for _, p := range set.Partitions() {
		for _, seg := range p.Segments {
			err := seg.Log.View(func(data []byte) error {
				for s := format.NewScanner(data, 0, seg.Base); s.Next(); {
					b := s.Batch()
					if b == nil {
						continue
					}
					n := int64(0)
					var rec format.Record
					for reader.Reset(b); reader.Next(&rec); n++ {
						day := int64(noKey)
						if rec.Timestamp >= 0 {
							day = rec.Timestamp / 86400000
						}
						out.days[day]++
					}
					out.sizes, out.counts = append(out.sizes, b.Size()), append(out.counts, n)
					out.codecs[int64(b.Codec())] += n
					id := b.ProducerID
					if id < 0 {
						id = noKey
					}
					out.producers[id] += n
				}
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	slices.Sort(out.sizes)
	slices.Sort(out.counts)
	return out
}

func TestStatsAreThoseOfAPlainLoop(t *testing.T) {
	var dirs []string
	for _, file := range fixture.Files(t, ".log") {
		dirs = append(dirs, path.Dir(path.Dir(file)))
	}
	slices.Sort(dirs)
	for i, name := range slices.Compact(dirs) {
		dir := fixture.Dir(t, name)
		want := plainly(t, dir)
		by := []Group{ByProducer, ByCodec, ByDay}[i%3]
		got := count(t, dir, Options{Stats: true, Group: by}).Stats
		checkQuantiles(t, name+" bytes", &got.BatchBytes, want.sizes)
		checkQuantiles(t, name+" records", &got.BatchCounts, want.counts)
		groups := map[Group]map[int64]int64{ByProducer: want.producers, ByCodec: want.codecs, ByDay: want.days}[by]
		bytes := int64(0)
		for key, g := range got.Groups {
			if g.Records != groups[key] {
				t.Errorf("%s by %s: %d has %d records, want %d", name, by, key, g.Records, groups[key])
			}
			bytes += g.Bytes
		}
		if bytes != got.Bytes {
			t.Errorf("%s by %s: %d bytes of %d", name, by, bytes, got.Bytes)
		}
		for key, n := range groups {
			if got.Groups[key] == nil && n > 0 {
				t.Errorf("%s by %s: %d is missing", name, by, key)
			}
		}
	}
}

func checkQuantiles(t tb, what string, d *Distribution, sorted []int64) {
	if len(sorted) == 0 {
		return
	}
	for _, q := range []int64{50, 99} {
		want := sorted[max(0, (int64(len(sorted))*q+99)/100-1)]
		if got := d.Quantile(q); got != want {
			t.Errorf("%s: p%d is %d, want %d", what, q, got, want)
		}
	}
	if d.Max() != sorted[len(sorted)-1] {
		t.Errorf("%s: max %d, want %d", what, d.Max(), sorted[len(sorted)-1])
	}
}

func TestDistributions(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.SliceOfN(rapid.Int64Range(0, 1<<20), 1, 200).Draw(t, "values")
		var one, other Distribution
		for i, v := range values {
			if i%2 == 0 {
				one.count(v)
			} else {
				other.count(v)
			}
		}
		one.add(&other)
		slices.Sort(values)
		checkQuantiles(t, "two halves", &one, values)
	})
	var many Distribution
	for v := range int64(4 * maxValues) {
		many.count(v)
	}
	if got, want := many.Quantile(50), int64(2*maxValues); got > want || got < want-want>>8 ||
		len(many.counts) > maxValues {
		t.Errorf("p50 of many is %d of %d values kept, want about %d", got, len(many.counts), want)
	}
}

// TestWhatIfNothingChanges sends records without compression again, into batches as large as they were.
func TestWhatIfNothingChanges(t *testing.T) {
	dir := fixture.Dir(t, "4.4.0/batch-math/math-none-1000-0")
	got := count(t, dir, Options{WhatIf: &WhatIf{Codec: format.CodecNone, Batch: 16384}}).Repacked
	if got.ThenBytes != got.Bytes || got.ThenBatches != got.Batches || got.Records == 0 {
		t.Errorf("%+v", got)
	}
}
