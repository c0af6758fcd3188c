package compare

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/cespare/xxhash/v2"

	"kseg/format"
	"kseg/internal/fixture"
	"kseg/logdir"
	"kseg/render"
)

// rec is a record of a synthetic log.
type rec struct {
	offset, time int64
	key, value   string // "": null
}

// logOf are records with keys of which there are so many.
func logOf(n, keys int) []rec {
	all := make([]rec, n)
	r := rand.New(rand.NewPCG(1, 2))
	for i := range all {
		all[i] = rec{int64(i), 1_700_000_000_000 + int64(i)*10, fmt.Sprintf("k%d", r.IntN(keys)),
			fmt.Sprintf("value %d of it", i)}
	}
	return all
}

// batchOfRecords is a batch from the offset first to last, whichever of its records there are.
func batchOfRecords(records []rec, first, last int64, epoch int32, codec format.Codec) []byte {
	var body []byte
	start := records[0].time
	for _, r := range records {
		record := format.Record{Key: bytesOf(r.key), Value: bytesOf(r.value)}
		body = format.AppendRecord(body, &record, r.time-start, int32(r.offset-first))
	}
	var c format.Compressor
	packed, err := c.Compress(codec, body)
	if err != nil {
		panic(err)
	}
	return format.AppendBatch(nil, &format.Batch{BaseOffset: first, LastOffsetDelta: int32(last - first),
		LeaderEpoch: epoch,
		Attributes:  int16(codec), BaseTimestamp: start, MaxTimestamp: records[len(records)-1].time, ProducerID: -1,
		ProducerEpoch: -1,
		BaseSequence:  -1, Count: int32(len(records))}, packed)
}

func bytesOf(s string) []byte {
	if s == "" {
		return nil
	}
	return []byte(s)
}

// write makes a partition of records in batches of so many offsets, in segments of so many batches.
func write(t *testing.T, records []rec, size, segment int64, epoch int32, codec format.Codec) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "t-0")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	logs := map[int64][]byte{}
	for len(records) > 0 {
		first := records[0].offset / size * size
		n, _ := slices.BinarySearchFunc(records, first+size, func(r rec, o int64) int { return int(r.offset - o) })
		last := first + size - 1
		if n == len(records) {
			last = records[n-1].offset
		}
		base := first / (size * segment) * (size * segment)
		logs[base] = append(logs[base], batchOfRecords(records[:n], first, last, epoch, codec)...)
		records = records[n:]
	}
	for base, data := range logs {
		if err := os.WriteFile(filepath.Join(dir, format.SegmentFileName(base, format.KindLog)), data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// compareDirs compares two partitions.
func compareDirs(t *testing.T, a, b string) *Comparison {
	t.Helper()
	set, err := logdir.Open([]string{a, b}, logdir.Options{})
	if err != nil {
		t.Fatal(err)
	}
	pairs, err := Pairs(set.Operands[0], set.Operands[1])
	if err != nil {
		t.Fatal(err)
	}
	for c := range Run(context.Background(), pairs, Options{Jobs: 2, MaxBatchBytes: 1 << 24}) {
		return c
	}
	return nil
}

// The same records are told as such, however they are stored.
func TestStoredOtherwise(t *testing.T) {
	records := logOf(600, 50)
	a := write(t, records, 6, 10, 0, format.CodecNone)
	for _, c := range []struct {
		name          string
		size, segment int64
		epoch         int32
		codec         format.Codec
		want          Result
	}{
		{"as it is", 6, 10, 0, format.CodecNone, Identical},
		{"segments", 6, 25, 0, format.CodecNone, Identical},
		{"batches", 15, 10, 0, format.CodecNone, SameRecords},
		{"gzip", 6, 10, 0, format.CodecGzip, SameRecords},
		{"zstd in other batches", 9, 10, 0, format.CodecZstd, SameRecords},
		{"epoch", 6, 10, 3, format.CodecNone, SameRecords},
	} {
		got := compareDirs(t, a, write(t, records, c.size, c.segment, c.epoch, c.codec))
		if got.Result != c.want || got.Same != 600 || !got.Explained(false) || got.Explained(true) != (c.want == Identical) {
			t.Errorf("%s: %s, %d records", c.name, got.Result, got.Same)
		}
		if got.EpochsDiffer != (c.epoch != 0) {
			t.Errorf("%s: epochs differ: %t", c.name, got.EpochsDiffer)
		}
	}
}

// message is a record as magic 1 has it (or 0, without a time), with the offset given; a wrapper if there is a codec.
func message(magic byte, offset, ms int64, codec format.Codec, key, value []byte) []byte {
	body := []byte{magic, byte(codec)}
	if magic == 1 {
		body = binary.BigEndian.AppendUint64(body, uint64(ms))
	}
	for _, field := range [][]byte{key, value} {
		size := int32(len(field))
		if field == nil {
			size = -1
		}
		body = append(binary.BigEndian.AppendUint32(body, uint32(size)), field...)
	}
	m := binary.BigEndian.AppendUint64(nil, uint64(offset))
	m = binary.BigEndian.AppendUint32(m, uint32(4+len(body)))
	m = binary.BigEndian.AppendUint32(m, crc32.ChecksumIEEE(body))
	return append(m, body...)
}

// legacyLog writes a partition of messages, each by itself, or so many in a compressed wrapper, where their offsets are
// relative to its first with magic 1.
func legacyLog(t *testing.T, records []rec, magic byte, codec format.Codec, wrapped int) string {
	t.Helper()
	var log []byte
	for chunk := range slices.Chunk(records, wrapped) {
		last := chunk[len(chunk)-1]
		var plain []byte
		for _, r := range chunk {
			offset := r.offset
			if magic == 1 && codec != format.CodecNone {
				offset -= chunk[0].offset
			}
			plain = append(plain, message(magic, offset, r.time, format.CodecNone, bytesOf(r.key), bytesOf(r.value))...)
		}
		if codec == format.CodecNone {
			log = append(log, plain...)
			continue
		}
		var c format.Compressor
		packed, err := c.Compress(codec, plain)
		if err != nil {
			t.Fatal(err)
		}
		log = append(log, message(magic, last.offset, last.time, codec, nil, packed)...)
	}
	dir := filepath.Join(t.TempDir(), "t-0")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "00000000000000000000.log"), log, 0o644); err != nil {
		t.Fatal(err)
	}
	return dir
}

// A copy whose records a broker has converted between the formats holds the same, also of a compacted log; one with
// another time, key or value does not.
func TestConvertedCopies(t *testing.T) {
	all := logOf(300, 40)
	thin := slices.DeleteFunc(slices.Clone(all), func(r rec) bool { return r.offset%7 == 3 && r.offset < 280 })
	for name, records := range map[string][]rec{"whole": all, "compacted": thin} {
		modern := write(t, records, 10, 40, 0, format.CodecNone)
		for _, codec := range []format.Codec{format.CodecNone, format.CodecGzip, format.CodecSnappy} {
			old := legacyLog(t, records, 1, codec, 7)
			got := compareDirs(t, old, modern)
			if got.Result != SameRecords || got.Same != int64(len(records)) || !got.Explained(false) {
				t.Errorf("%s, %v: %s, %d records, from %d", name, codec, got.Result, got.Same, got.SharedFrom)
			}
			if got := compareDirs(t, old, legacyLog(t, records, 1, format.CodecNone, 1)); got.Same != int64(len(records)) {
				t.Errorf("%s, %v: unwrapped: %s, %d records", name, codec, got.Result, got.Same)
			}
			for what, edit := range map[string]func(*rec){"time": func(r *rec) { r.time++ }, "key": func(r *rec) { r.key = "" },
				"value": func(r *rec) { r.value += "!" }} {
				other := slices.Clone(records)
				edit(&other[123])
				if got := compareDirs(t, old, write(t, other, 10, 40, 0, format.CodecNone)); got.Result != Diverged ||
					got.DivergedAt != other[123].offset {
					t.Errorf("%s, %v, another %s: %s at %+v", name, codec, what, got.Result, got)
				}
			}
		}
	}
}

// A log that ends earlier or begins later holds the same in what both have.
func TestOtherEnds(t *testing.T) {
	records := logOf(300, 1000)
	a := write(t, records, 6, 5, 0, format.CodecNone)
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 1))
		from, to := r.Int64N(2)*150, 160+r.Int64N(141)
		got := compareDirs(t, a, write(t, records[from:to], []int64{6, 10}[seed%2], 5, 0, format.CodecNone))
		want := AAhead
		if to == 300 && seed%2 == 0 {
			want = Identical
		}
		if got.Result != want || got.SharedFrom != from || got.SharedTo != to-1 || got.Same != to-from {
			t.Errorf("from %d to %d: %s, %d–%d, %d", from, to, got.Result, got.SharedFrom, got.SharedTo, got.Same)
		}
	}
}

// The offset at which two histories part is found, in whatever batches they are, and so is a single changed record.
func TestDivergence(t *testing.T) {
	records := logOf(300, 1000)
	a := write(t, records, 6, 5, 0, format.CodecNone)
	for seed := range uint64(30) {
		r := rand.New(rand.NewPCG(seed, 2))
		at, alone := r.Int64N(300), seed%2 == 0
		other := slices.Clone(records)
		for i := at; i < 300 && (i == at || !alone); i++ {
			other[i].value = "another"
		}
		got := compareDirs(t, a, write(t, other, []int64{6, 10, 14}[seed%3], 5, 0, format.CodecNone))
		differ := 300 - at
		if alone {
			differ = 1
		}
		if got.Result != Diverged || got.DivergedAt != at || got.Differ != differ || got.A.Diverged != 300-at ||
			got.B.Diverged != 300-at {
			t.Errorf("at %d: %s at %d, %d differ, %d and %d from there on", at, got.Result, got.DivergedAt, got.Differ,
				got.A.Diverged, got.B.Diverged)
		}
		if got.ABatch == nil || got.ABatch.BaseOffset > at || got.ABatch.LastOffset < at || got.BBatch == nil ||
			got.BBatch.LastOffset < at {
			t.Errorf("at %d: the batches are %+v and %+v", at, got.ABatch, got.BBatch)
		}
	}
}

// compacted keeps the last record of each key below an offset.
func compacted(records []rec, below int64) []rec {
	last := map[string]int64{}
	for _, r := range records {
		if r.offset < below {
			last[r.key] = r.offset
		}
	}
	return slices.DeleteFunc(slices.Clone(records), func(r rec) bool {
		return r.offset < below && last[r.key] != r.offset
	})
}

// What a cleaner takes is no loss, in batches that show that it was there and in those that do not; what it would keep
// is.
func TestCompaction(t *testing.T) {
	records := logOf(600, 40)
	clean := compacted(records, 480)
	for _, size := range []int64{1, 6} {
		a, b := write(t, records, size, 1000, 0, format.CodecNone), write(t, clean, size, 1000, 0, format.CodecNone)
		got := compareDirs(t, a, b)
		if got.Result != Compacted || got.B.Missing != int64(len(records)-len(clean)) || got.B.Lost != 0 {
			t.Errorf("%d a batch: %s, %d missing, %d lost", size, got.Result, got.B.Missing, got.B.Lost)
		}
		// Two rounds of the cleaner.
		further := compareDirs(t, write(t, compacted(records, 240), size, 1000, 0, format.CodecNone), b)
		if further.Result != Compacted || further.A.Lost+further.B.Lost != 0 {
			t.Errorf("%d a batch, cleaned further: %s", size, further.Result)
		}
		// The last record of a key is gone.
		short := slices.DeleteFunc(slices.Clone(clean), func(r rec) bool { return r.key == "k7" })
		if got := compareDirs(t, a, write(t, short, size, 1000, 0, format.CodecNone)); got.Result != Damaged ||
			got.B.Lost == 0 {
			t.Errorf("%d a batch, a key gone: %s, %d lost", size, got.Result, got.B.Lost)
		}
	}
	// A stretch without any trace of a cleaner.
	hole := slices.DeleteFunc(slices.Clone(records), func(r rec) bool { return r.offset >= 60 && r.offset < 72 })
	got := compareDirs(t, write(t, records, 6, 100, 0, format.CodecNone), write(t, hole, 6, 100, 0, format.CodecNone))
	if got.Result != Damaged || got.B.Lost != 12 || got.B.FirstLost != 60 {
		t.Errorf("a hole: %s, %d lost from %d", got.Result, got.B.Lost, got.B.FirstLost)
	}
}

// A record at the first offset that both logs hold is missing from one of which only an empty batch is left.
func TestMissingAtTheFirstSharedOffset(t *testing.T) {
	records := logOf(1, 1)
	a, b := write(t, records, 1, 1, 0, format.CodecNone), filepath.Join(t.TempDir(), "t-0")
	empty := format.AppendBatch(nil, &format.Batch{BaseTimestamp: records[0].time, MaxTimestamp: records[0].time,
		ProducerID: 7, BaseSequence: -1}, nil)
	if err := errors.Join(os.Mkdir(b, 0o755), os.WriteFile(filepath.Join(b, "00000000000000000000.log"), empty,
		0o644)); err != nil {
		t.Fatal(err)
	}
	if got := compareDirs(t, a, b); got.B.Missing != 1 {
		t.Errorf("%+v", got)
	}
}

// No damage of the collection is taken for another history, but for the few where the checksum vouches for other
// records.
func TestDamageIsNoDivergence(t *testing.T) {
	vouched := map[string]bool{"producer-sequence-gap-crc-fixed": true, "producer-epoch-back-crc-fixed": true,
		"txn-marker-flip-type-crc-fixed": true,
		"baseoffset-plus1":               true, "baseoffset-below-segment": true}
	for _, r := range fixture.Recipes(t) {
		got := compareDirs(t, fixture.Dir(t, r.Base), fixture.Damaged(t, r.Name))
		if (got.Result == Diverged) != vouched[r.Name] {
			t.Errorf("%s: %s at %d", r.Name, got.Result, got.DivergedAt)
		}
	}
}

// Where a follower cuts its log, by the rules of KIP-101 and KIP-279.
func TestTruncation(t *testing.T) {
	cache := func(end int64, entries ...int64) epochCache {
		c := epochCache{end: end}
		for i := 0; i < len(entries); i += 2 {
			c.entries = append(c.entries, format.EpochEntry{Epoch: int32(entries[i]), StartOffset: entries[i+1]})
		}
		return c
	}
	for _, c := range []struct {
		follower, leader epochCache
		want             int64
	}{
		{cache(120, 0, 0), cache(116, 0, 0, 1, 108), 108},
		{cache(120, 0, 0), cache(120, 0, 0), 120},
		{cache(130, 0, 0), cache(120, 0, 0), 120},
		{cache(120, 0, 0, 2, 100), cache(140, 0, 0, 1, 90, 3, 110), 90}, // the leader never saw epoch 2
		{cache(120, 0, 0, 1, 80, 2, 100), cache(140, 0, 0, 1, 80, 3, 95), 95},
		{cache(50, 4, 0), cache(60, 6, 10), 10},
	} {
		if got := c.follower.truncate(c.leader); got != c.want {
			t.Errorf("%v after %v: %d, want %d", c.follower, c.leader, got, c.want)
		}
	}
}

// printsOf writes the fingerprints of a partition to a file.
func printsOf(t *testing.T, dir string) string {
	t.Helper()
	set, err := logdir.Open([]string{dir}, logdir.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var text []byte
	notRead, err := FingerprintAll(context.Background(), set, Options{Jobs: 2, MaxBatchBytes: 1 << 24},
		func(f *Fingerprint, _ bool) error {
			text = f.AppendJSON(text)
			return nil
		})
	if err != nil || len(notRead) > 0 {
		t.Fatal(err, notRead)
	}
	file := filepath.Join(t.TempDir(), "prints.ndjson")
	if err := os.WriteFile(file, text, 0o644); err != nil {
		t.Fatal(err)
	}
	return file
}

// comparePrinted compares two operands, of which one or both are fingerprints.
func comparePrinted(t *testing.T, a, b string) *Comparison {
	t.Helper()
	set, err := logdir.Open([]string{a, b}, logdir.Options{})
	if err != nil {
		t.Fatal(err)
	}
	all, err := ComparePrints(context.Background(), set.Operands[0], set.Operands[1],
		Options{Jobs: 2, MaxBatchBytes: 1 << 24}, true)
	if err != nil {
		t.Fatal(err)
	}
	for c := range all {
		return c
	}
	t.Fatal("nothing was compared")
	return nil
}

// Fingerprints find the offset at which two copies part, on either side, and take the same records in other batches for
// the same.
func TestFingerprints(t *testing.T) {
	records := logOf(9000, 1<<20)
	a := write(t, records, 50, 40, 0, format.CodecNone)
	prints := printsOf(t, a)
	if text, _ := os.ReadFile(prints); len(slices.Collect(strings.Lines(string(text)))) != 3 {
		t.Errorf("not three ranges:\n%.300s", text)
	}
	for name, c := range map[string]struct {
		size  int64
		codec format.Codec
		from  int64
		to    int64
		at    int64 // −1: nowhere
		alone bool
		want  Result
	}{
		"the same":         {50, format.CodecNone, 0, 9000, -1, false, Identical},
		"other batches":    {70, format.CodecZstd, 0, 9000, -1, false, Identical},
		"ends earlier":     {50, format.CodecNone, 0, 5001, -1, false, AAhead},
		"begins later":     {50, format.CodecNone, 2000, 9000, -1, false, Identical},
		"one record":       {70, format.CodecGzip, 0, 9000, 4096, true, Diverged},
		"from there on":    {50, format.CodecNone, 0, 8000, 7777, false, Diverged},
		"both ends differ": {50, format.CodecNone, 2000, 8000, 2100, false, Diverged},
	} {
		other := slices.Clone(records)
		for i := c.at; i >= 0 && i < 9000 && (i == c.at || !c.alone); i++ {
			other[i].value = "another"
		}
		dir := write(t, other[c.from:c.to], c.size, 40, 0, c.codec)
		theirs := printsOf(t, dir)
		for i, pair := range [][2]string{{prints, dir}, {a, theirs}, {prints, theirs}} {
			got := comparePrinted(t, pair[0], pair[1])
			if got.Result != c.want || c.at >= 0 && (got.DivergedAt != c.at || got.Range.First != c.at/4096*4096) {
				t.Errorf("%s (%d): %s at %d", name, i, got.Result, got.DivergedAt)
			}
			if i < 2 && c.at >= 0 && (got.ABatch == nil) == (got.BBatch == nil) {
				t.Errorf("%s (%d): the batches are %+v and %+v", name, i, got.ABatch, got.BBatch)
			}
			if text := string(got.AppendText(nil, render.Theme{}, 100)); !strings.Contains(text, "t-0") {
				t.Errorf("%s: %s", name, text)
			}
		}
	}
}

// The digest is what the documentation defines, forever.
func TestFingerprintsAreStable(t *testing.T) {
	var record []byte
	for _, n := range []int64{0, 1700000000000} { // offset, timestamp
		record = binary.BigEndian.AppendUint64(record, uint64(n))
	}
	record = append(record, 0) // no flags
	record = append(record, bytes.Repeat([]byte{0xff}, 8+2+4)...)
	record = append(record, 0xff, 0xff, 0xff, 0xff) // no key
	record = append(binary.BigEndian.AppendUint32(record, 11), "hello-kafka"...)
	record = append(record, 0, 0, 0, 0) // no headers
	want := xxhash.Sum64(binary.BigEndian.AppendUint64(nil, xxhash.Sum64(record)))
	text, err := os.ReadFile(printsOf(t, fixture.Dir(t, "4.4.0/hello/hello-0")))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(text), fmt.Sprintf(`"first_offset":0,"last_offset":0,"leader_epoch":0,"records":1,`+
		`"digest":"%016x"`, want)) {
		t.Errorf("%s, want %016x", text, want)
	}
}

// Two replicas after an unclean election part where the real broker truncated the one that came back, and are the same
// afterwards.
func TestUncleanElection(t *testing.T) {
	diverged := fixture.Dir(t, "4.4.0/replicas/diverged")
	truncated := fixture.Dir(t, "4.4.0/replicas/truncated")
	lines := strings.Fields(string(fixture.Golden(t, "4.4.0/replicas/truncations.csv")))
	for _, line := range lines[1:] {
		name, text, _ := strings.Cut(line, ",")
		c := compareDirs(t, filepath.Join(diverged, "b1", name), filepath.Join(diverged, "b2", name))
		switch tr := c.Truncation; {
		case c.Result != Diverged || fmt.Sprint(c.DivergedAt) != text:
			t.Errorf("%s: %s at offset %d, want %s", name, c.Result, c.DivergedAt, text)
		case tr == nil || !tr.FollowerIsA || !tr.Cuts || fmt.Sprint(tr.Offset) != text:
			t.Errorf("%s: %+v, want a cut at %s", name, tr, text)
		}
		c = compareDirs(t, filepath.Join(truncated, "b1", name), filepath.Join(truncated, "b2", name))
		if c.Result != Identical {
			t.Errorf("%s, truncated: %s", name, c.Result)
		}
	}
}

// Leader epochs differ only where both copies have one.
func TestUnknownEpochsDoNotDiffer(t *testing.T) {
	records := logOf(30, 1000)
	for _, c := range []struct {
		a, b   int32
		differ bool
	}{{2, 3, true}, {3, 3, false}, {3, -1, false}, {-1, 3, false}, {-1, -1, false}} {
		a, b := write(t, records, 6, 5, c.a, format.CodecNone), write(t, records, 6, 5, c.b, format.CodecNone)
		if got := compareDirs(t, a, b); got.EpochsDiffer != c.differ {
			t.Errorf("epochs %d and %d: %v", c.a, c.b, got.EpochsDiffer)
		}
	}
}

// What a damaged batch held is in doubt, from its first offset to its last, and nothing else.
func TestDoubtIsOfTheDamagedBatch(t *testing.T) {
	healthy, damaged := fixture.Dir(t, "4.4.0/damage-base/plain/orders-0"), fixture.Damaged(t, "payload-flip")
	for _, got := range []*Comparison{compareDirs(t, healthy, damaged), swapped(compareDirs(t, damaged, healthy))} {
		if got.B.Doubtful != 4 || got.B.Missing != 0 || got.A.Doubtful != 0 || got.A.Missing != 0 || got.Same != 116 {
			t.Errorf("%d and %d in doubt, %d and %d missing, %d the same", got.A.Doubtful, got.B.Doubtful, got.A.Missing,
				got.B.Missing, got.Same)
		}
	}
}

func swapped(c *Comparison) *Comparison {
	c.A, c.B = c.B, c.A
	return c
}
