package salvage

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"kseg/format"
	"kseg/internal/fixture"
	"kseg/logdir"
)

// salvageInto salvages what the paths lead to.
func salvageInto(t testing.TB, opts Options, paths ...string) ([]*Salvaged, error) {
	t.Helper()
	set, err := logdir.Open(paths, logdir.Options{BaseOffset: baseOffset(paths)})
	if err != nil {
		t.Fatal(err)
	}
	opts.Jobs, opts.MaxBatchBytes = 2, 1<<26
	if opts.Interval == nil {
		opts.Interval = new(int64(4096))
	}
	var all []*Salvaged
	err = Run(context.Background(), set, opts, func(s *Salvaged) error {
		all = append(all, s)
		return nil
	})
	return all, err
}

// baseOffset is that of a carved file, which has it in its name.
func baseOffset(paths []string) *int64 {
	for _, p := range paths {
		var n int64
		if _, err := fmt.Sscanf(filepath.Base(p), "carved-%d", &n); err == nil {
			return &n
		}
	}
	return nil
}

// one salvages one partition and returns the folder.
func one(t testing.TB, opts Options, paths ...string) (*Salvaged, string) {
	t.Helper()
	opts.Dir = filepath.Join(t.TempDir(), "out")
	all, err := salvageInto(t, opts, paths...)
	if err != nil || len(all) != 1 {
		t.Fatalf("%v: %d partitions, %v", paths, len(all), err)
	}
	return all[0], filepath.Join(opts.Dir, all[0].Partition)
}

// contents are the files of a folder by name.
func contents(t testing.TB, dir string) map[string][]byte {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string][]byte{}
	for _, e := range entries {
		if !e.IsDir() {
			if all[e.Name()], err = os.ReadFile(filepath.Join(dir, e.Name())); err != nil {
				t.Fatal(err)
			}
		}
	}
	return all
}

// batchesOf are the batches of a sound partition.
func batchesOf(t testing.TB, dir string) []format.Batch {
	t.Helper()
	var all []format.Batch
	files := contents(t, dir)
	var names []string
	for name := range files {
		if strings.HasSuffix(name, ".log") {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		for pos := int64(0); pos < int64(len(files[name])); {
			b, err := format.DecodeBatch(files[name], pos)
			if err != nil || !b.Valid() {
				t.Fatalf("%s/%s @%d: %v", dir, name, pos, err)
			}
			all = append(all, b)
			pos = b.End()
		}
	}
	return all
}

// check holds what was salvaged from damaged copies against the partition as it was: each of its batches that is still
// in a copy, byte for byte, is in the output, in order; nothing else is but what the copies vouch for; and the copies
// are as they were.
func check(t *testing.T, healthy, out string, res *Salvaged, copies ...string) {
	t.Helper()
	if res.Err != nil || len(res.NotRead) > 0 {
		t.Errorf("%v %v", res.Err, res.NotRead)
		return
	}
	var logs [][]byte
	for _, dir := range copies {
		for name, data := range contents(t, dir) {
			if format.ParseFileName(name).Kind == format.KindLog {
				logs = append(logs, data)
			}
		}
	}
	has := func(raw []byte) bool {
		return slices.ContainsFunc(logs, func(log []byte) bool { return bytes.Contains(log, raw) })
	}
	got := map[string]bool{}
	next := int64(0)
	for _, b := range batchesOf(t, out) {
		got[string(b.Raw)] = true
		if b.BaseOffset < next {
			t.Errorf("offset %d after %d", b.BaseOffset, next-1)
		}
		next = b.NextOffset()
	}
	if !res.Predicted {
		t.Error("nothing is said about what a broker does")
	}
	if next != res.LogEnd {
		t.Errorf("the log ends at %d, and %d was told", next, res.LogEnd)
	}
	lost := int64(0)
	for _, b := range batchesOf(t, healthy) {
		if !got[string(b.Raw)] {
			lost += int64(b.Count)
			if has(b.Raw) {
				t.Errorf("the batch of offsets %d–%d is not in the output", b.BaseOffset, b.LastOffset)
			}
		}
		delete(got, string(b.Raw))
	}
	for raw := range got {
		if !has([]byte(raw)) {
			t.Errorf("a batch is in the output that no copy has")
		}
	}
	if lost > 0 && len(res.Lost) == 0 && len(got) == 0 && !slices.ContainsFunc(res.Notes,
		func(n string) bool { return strings.Contains(n, "zeros") }) &&
		res.LogStart == 0 && res.LogEnd == batchesOf(t, healthy)[len(batchesOf(t, healthy))-1].NextOffset() {
		t.Errorf("%d records are lost, and nothing is said of them", lost)
	}
}

// From every damaged partition of the collection every intact batch is saved.
func TestDamagedPartitions(t *testing.T) {
	for _, r := range sampledRecipes(t) {
		t.Run(r.Name, func(t *testing.T) {
			dir := fixture.Damaged(t, r.Name)
			before := contents(t, dir)
			res, out := one(t, Options{}, dir)
			check(t, fixture.Dir(t, r.Base), out, res, dir)
			if after := contents(t, dir); fmt.Sprint(after) != fmt.Sprint(before) {
				t.Error("the input has changed")
			}
			dry, _ := one(t, Options{DryRun: true}, dir)
			if dry.Records != res.Records || dry.LogEnd != res.LogEnd || len(dry.Lost) != len(res.Lost) || dry.Path != "" {
				t.Errorf("a dry run tells of %d records up to %d, the true one of %d up to %d", dry.Records, dry.LogEnd,
					res.Records, res.LogEnd)
			}
		})
	}
}

// mutate damages the logs of a partition in a few random places.
func mutate(t testing.TB, dir string, r *rand.Rand) {
	t.Helper()
	logs, err := filepath.Glob(filepath.Join(dir, "*.log"))
	if err != nil || len(logs) == 0 {
		t.Fatal("no log")
	}
	for range 1 + r.IntN(3) {
		file := logs[r.IntN(len(logs))]
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if len(data) == 0 {
			continue
		}
		at := r.IntN(len(data))
		n := min(1+r.IntN(200), len(data)-at)
		switch r.IntN(7) {
		case 0:
			data[at] ^= 1 << r.IntN(8)
		case 1:
			clear(data[at : at+n])
		case 2:
			data = data[:at]
		case 3:
			data = slices.Delete(data, at, at+n)
		case 4:
			garbage := make([]byte, n)
			for i := range garbage {
				garbage[i] = byte(r.Uint32())
			}
			data = slices.Insert(data, at, garbage...)
		case 5:
			binary.BigEndian.PutUint32(data[max(0, min(at, len(data)-4)):], r.Uint32())
		case 6:
			data = slices.Insert(data, len(data), data[at:at+n]...)
		}
		if err := os.WriteFile(file, data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// sampledRecipes are all in an exhaustive run.
func sampledRecipes(t testing.TB) (all []fixture.Recipe) {
	for i, r := range fixture.Recipes(t) {
		if fixture.Sampled(i, 2) {
			all = append(all, r)
		}
	}
	return all
}

// mutations is how many random mutations are tried in an exhaustive run.
const mutations = 300

// bases are the healthy partitions that are mutated.
var bases = []string{"4.4.0/damage-base/plain/orders-0", "4.4.0/damage-base/zipped/orders-0",
	"4.4.0/damage-base/txn/orders-0", "4.4.0/transactions/ledger-0"}

func TestRandomMutations(t *testing.T) {
	for seed := range mutations {
		if !fixture.Sampled(seed, 4) {
			continue
		}
		base := bases[seed%len(bases)]
		dir := fixture.Dir(t, base)
		mutate(t, dir, rand.New(rand.NewPCG(uint64(seed), 7)))
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			res, out := one(t, Options{}, dir)
			check(t, fixture.Dir(t, base), out, res, dir)
		})
	}
}

// Two copies with different batches damaged give every record back.
func TestTwoCopies(t *testing.T) {
	for seed := range mutations / 6 {
		if !fixture.Sampled(seed, 4) {
			continue
		}
		base := bases[seed%len(bases)]
		r := rand.New(rand.NewPCG(uint64(seed), 8))
		a, b := fixture.Dir(t, base), fixture.Dir(t, base)
		healthy := batchesOf(t, fixture.Dir(t, base))
		for _, batch := range healthy {
			dir := []string{a, b}[r.IntN(2)]
			if r.IntN(3) > 0 {
				continue
			}
			ruin(t, dir, batch.Raw, r)
		}
		res, out := one(t, Options{}, a, b)
		if res.Err != nil || len(res.Lost) > 0 {
			t.Errorf("%d: %v, lost %+v", seed, res.Err, res.Lost)
			continue
		}
		var want, got []byte
		for i, dir := range []string{fixture.Dir(t, base), out} {
			for _, batch := range batchesOf(t, dir) {
				*[]*[]byte{&want, &got}[i] = append(*[]*[]byte{&want, &got}[i], batch.Raw...)
			}
		}
		if !bytes.Equal(want, got) {
			t.Errorf("%d: what was made of two copies is not the whole", seed)
		}
	}
}

// ruin makes a batch in a partition unreadable, without changing the length of its file.
func ruin(t *testing.T, dir string, raw []byte, r *rand.Rand) {
	t.Helper()
	for name, data := range contents(t, dir) {
		if at := bytes.Index(data, raw); at >= 0 && strings.HasSuffix(name, ".log") {
			from := at + r.IntN(len(raw)-4)
			for i := from; i < at+len(raw) && i < from+50; i++ {
				data[i] ^= 0xa5
			}
			if err := os.WriteFile(filepath.Join(dir, name), data, 0o644); err != nil {
				t.Fatal(err)
			}
			return
		}
	}
}

// What the checksum proves is put back, byte for byte.
func TestFixBits(t *testing.T) {
	for _, name := range []string{"payload-flip", "payload-flip-compressed", "payload-flip-last-batch", "crc-flip",
		"magic-1", "magic-3", "magic-minus1",
		"length-huge", "length-zero", "length-negative", "length-plus1", "length-small"} {
		r, err := fixture.FindRecipe(name)
		if err != nil {
			t.Fatal(err)
		}
		res, out := one(t, Options{FixBits: true}, fixture.Damaged(t, name))
		if len(res.Lost) > 0 || len(res.Changed) != 1 {
			t.Errorf("%s: lost %+v, changed %v", name, res.Lost, res.Changed)
		}
		for file, want := range contents(t, fixture.Dir(t, r.Base)) {
			if got := contents(t, out)[file]; strings.HasSuffix(file, ".log") && !bytes.Equal(got, want) {
				t.Errorf("%s: %s is not what it was", name, file)
			}
		}
	}
}

// The readable records of a batch that is not intact are saved in one of their own.
func TestRecords(t *testing.T) {
	for name, want := range map[string]int64{"payload-flip": 4, "record-length-huge-crc-fixed": 0,
		"count-minus1-crc-fixed": 3, "maxtimestamp-plus1day-crc-fixed": 4} {
		without, _ := one(t, Options{}, fixture.Damaged(t, name))
		res, out := one(t, Options{Records: true}, fixture.Damaged(t, name))
		if res.Err != nil || res.Records-without.Records != want || (want > 0) != (len(res.Changed) == 1) {
			t.Errorf("%s: %d records more, want %d; %v, %v", name, res.Records-without.Records, want, res.Changed, res.Err)
		}
		batchesOf(t, out) // all sound
	}
}

// Two histories are not mixed; with a preferred one only what lies below the divergence comes from the other.
func TestDivergedCopies(t *testing.T) {
	base := "4.4.0/damage-base/plain/orders-0"
	a, b := fixture.Dir(t, base), fixture.Damaged(t, "producer-sequence-gap-crc-fixed")
	if err := fixture.ApplyTo(a, "flip 00000000000000000000.log 200:1\nflip 00000000000000000064.log 100:1"); err != nil {
		t.Fatal(err)
	}
	res, out := one(t, Options{}, a, b)
	if res.Err == nil || !res.Diverged || res.DivergedAt != 44 || res.Path != "" {
		t.Errorf("diverged at %d: %v", res.DivergedAt, res.Err)
	}
	if _, err := os.Stat(out); err == nil {
		t.Error("something was written")
	}
	res, out = one(t, Options{Prefer: a}, a, b)
	if res.Err != nil || len(res.Lost) != 1 || res.Lost[0].FirstOffset != 64 || res.Copies[1].Records == 0 {
		t.Errorf("preferring one: %v, lost %+v, %+v", res.Err, res.Lost, res.Copies)
	}
	other := contents(t, b)["00000000000000000032.log"][1084:1449]
	for name, data := range contents(t, out) {
		if bytes.Contains(data, other) {
			t.Errorf("%s has a batch of the other history", name)
		}
	}
	set, err := logdir.Open([]string{a, b}, logdir.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := Run(context.Background(), set, Options{Dir: t.TempDir(), Prefer: "c"}, nil); !errors.Is(err,
		logdir.ErrUsage) {
		t.Errorf("preferring what is not there: %v", err)
	}
}

// A carved file is a copy of what it holds.
func TestCarvedFile(t *testing.T) {
	base := "4.4.0/damage-base/plain/orders-0"
	dir := fixture.Dir(t, base)
	raw := contents(t, dir)["00000000000000000064.log"]
	carved := filepath.Join(t.TempDir(), "carved-64")
	if err := errors.Join(os.WriteFile(carved, raw, 0o644),
		os.Remove(filepath.Join(dir, "00000000000000000064.log"))); err != nil {
		t.Fatal(err)
	}
	set, err := logdir.Open([]string{carved}, logdir.Options{BaseOffset: new(int64(64))})
	if err != nil {
		t.Fatal(err)
	}
	if err := Run(context.Background(), set, Options{Dir: filepath.Join(t.TempDir(), "x"), Jobs: 1}, nil); !errors.Is(err,
		logdir.ErrUsage) {
		t.Errorf("a file of no known partition: %v", err)
	}
	damaged := path.Join(t.TempDir(), "orders-0")
	if err := os.CopyFS(damaged, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	all := filepath.Join(damaged, "carved-64")
	if err := os.Rename(carved, all); err != nil {
		t.Fatal(err)
	}
	set, err = logdir.Open([]string{all}, logdir.Options{BaseOffset: new(int64(64))})
	if err != nil {
		t.Fatal(err)
	}
	var got *Salvaged
	err = Run(context.Background(), set, Options{Dir: filepath.Join(t.TempDir(), "out"), Jobs: 1, MaxBatchBytes: 1 << 20,
		Interval: new(int64(4096))}, func(s *Salvaged) error { got = s; return nil })
	if err != nil || got.Partition != "orders-0" || got.LogStart != 64 || got.LogEnd != 96 {
		t.Errorf("%+v, %v", got, err)
	}
}

// A segment that a broker was about to delete is as good as any, as long as no leader epoch forbids it.
func TestDeletedSegmentOfTheSameEpoch(t *testing.T) {
	base := "4.4.0/damage-base/plain/orders-0"
	dir := fixture.Dir(t, base)
	if err := fixture.ApplyTo(dir, "rename 00000000000000000032.log 00000000000000000032.log.deleted"); err != nil {
		t.Fatal(err)
	}
	res, _ := one(t, Options{}, dir)
	if res.Err != nil || res.Records != 120 || len(res.Lost) > 0 {
		t.Errorf("%v, %d records, lost %+v", res.Err, res.Records, res.Lost)
	}
}

// A batch that says it reaches to the first offset of the next segment does not take that one's place.
func TestBatchThatReachesIntoTheNextSegment(t *testing.T) {
	base := "4.4.0/damage-base/plain/orders-0"
	dir := fixture.Dir(t, base)
	name := filepath.Join(dir, "00000000000000000032.log")
	log := contents(t, dir)["00000000000000000032.log"]
	log[2556+7]++ // 60 to 63 becomes 61 to 64, which the checksum leaves out
	if err := os.WriteFile(name, log, 0o644); err != nil {
		t.Fatal(err)
	}
	res, _ := one(t, Options{}, dir)
	if res.Err != nil || res.Records != 116 || len(res.Lost) != 1 || res.Lost[0].FirstOffset != 60 ||
		res.Lost[0].LastOffset != 63 {
		t.Errorf("%v, %d records, lost %+v", res.Err, res.Records, res.Lost)
	}
}

// The records of a batch have offsets of their own, which rise.
func TestOffsetsOfABatchRise(t *testing.T) {
	for _, c := range []struct {
		offsets []int64
		sound   bool
	}{{[]int64{5, 6, 7}, true}, {[]int64{5, 7, 9}, true}, {[]int64{5, 6, 6}, false}, {[]int64{5, 7, 6, 7}, false}} {
		var batch fixture.Batch
		for _, offset := range c.offsets {
			batch.Records = append(batch.Records, fixture.Record{Offset: offset, Value: []byte("v")})
		}
		b, err := format.DecodeBatch(fixture.AppendBatch(nil, batch), 0)
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := intact(format.NewRecordReader(1<<20, nil), &b); (err == nil) != c.sound {
			t.Errorf("%v: %v", c.offsets, err)
		}
	}
}

// Of two copies that are damaged in different batches every one comes back, be it the fields that no checksum covers
// that are wrong, and nothing is said to be lost.
func TestTwoCopiesOfWrongHeaders(t *testing.T) {
	for seed := range mutations {
		if !fixture.Sampled(seed, 6) {
			continue
		}
		base := bases[seed%len(bases)]
		r := rand.New(rand.NewPCG(uint64(seed), 11))
		a, b := fixture.Dir(t, base), fixture.Dir(t, base)
		healthy := batchesOf(t, fixture.Dir(t, base))
		for i := range healthy {
			if r.IntN(10) == 0 {
				flipHeader(t, []string{a, b}[r.IntN(2)], healthy[i].Raw, r)
			}
		}
		res, out := one(t, Options{}, a, b)
		if res.Err != nil || len(res.Lost) > 0 || res.Whole() != (res.Err == nil) {
			t.Errorf("%d: %v, lost %+v", seed, res.Err, res.Lost)
			continue
		}
		got := batchesOf(t, out)
		if len(got) != len(healthy) {
			t.Errorf("%d: %d batches, want %d", seed, len(got), len(healthy))
			continue
		}
		for i := range healthy {
			if !bytes.Equal(got[i].Raw, healthy[i].Raw) {
				t.Errorf("%d: offset %d: not the batch that it was", seed, got[i].BaseOffset)
			}
		}
	}
}

// flipHeader flips a bit of a batch's base offset, or of any other byte of its header but the leader epoch's.
func flipHeader(t *testing.T, dir string, raw []byte, r *rand.Rand) {
	t.Helper()
	for name, data := range contents(t, dir) {
		if at := bytes.Index(data, raw); at >= 0 && strings.HasSuffix(name, ".log") {
			pos := r.IntN(8)
			if r.IntN(2) == 0 {
				pos = []int{8, 9, 10, 11, 16, 17, 20, 22, 26, 57, 60}[r.IntN(11)]
			}
			data[at+pos] ^= 1 << r.IntN(8)
			if err := os.WriteFile(filepath.Join(dir, name), data, 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// twoFaults damages the files of a partition twice: bytes, names, whole files, their order.
func twoFaults(dir string, seed int) []string {
	m := fixture.Mutator{Rand: rand.New(rand.NewPCG(uint64(seed), 12)), Dir: dir}
	for range 2 {
		m.Step()
	}
	return m.Done
}

func TestTwoFaults(t *testing.T) {
	// Of each kind that once went wrong, one: batches after zeros in a file that has another one's name, a base offset
	// that says what the batch before says, a hole before all segments in use.
	seeds := []int{1873, 2488, 2733, 3658}
	for seed := range mutations {
		if fixture.Sampled(seed, 6) {
			seeds = append(seeds, seed)
		}
	}
	for _, seed := range seeds {
		base := bases[seed%len(bases)]
		dir := fixture.Dir(t, base)
		done := twoFaults(dir, seed)
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			before := contents(t, dir)
			res, out := one(t, Options{Deleted: true}, dir)
			check(t, fixture.Dir(t, base), out, res, dir)
			if t.Failed() {
				t.Log(done, res.Lost)
			}
			if fmt.Sprint(contents(t, dir)) != fmt.Sprint(before) {
				t.Error("the input has changed")
			}
		})
	}
}
