package compare

import (
	"bytes"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"kseg/format"
	"kseg/internal/fixture"
)

// rewritten is a copy of a partition, all batches of which a function makes anew, in segments of their own size.
func rewritten(t *testing.T, dir string,
	change func(dst []byte, b *format.Batch, records []format.Record) []byte) string {
	t.Helper()
	_, logs := recordsOf(t, dir)
	to := filepath.Join(t.TempDir(), filepath.Base(dir))
	if err := os.Mkdir(to, 0o755); err != nil {
		t.Fatal(err)
	}
	reader := format.NewRecordReader(1<<24, nil)
	for name, raw := range logs {
		var out []byte
		for pos := int64(0); pos < int64(len(raw)); {
			b, err := format.DecodeBatch(raw, pos)
			if err != nil {
				t.Fatal(err)
			}
			out, pos = change(out, &b, readAll(reader, &b)), b.End()
		}
		if err := os.WriteFile(filepath.Join(to, filepath.Base(name)), out, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return to
}

// batchAs appends a batch of records with another codec.
func batchAs(dst []byte, b *format.Batch, records []format.Record, codec format.Codec) []byte {
	var body []byte
	fresh := *b
	fresh.BaseOffset, fresh.Count = records[0].Offset, int32(len(records))
	fresh.LastOffsetDelta = int32(records[len(records)-1].Offset - fresh.BaseOffset)
	fresh.Attributes = b.Attributes&^7 | int16(codec)
	if fresh.BaseSequence >= 0 {
		fresh.BaseSequence = records[0].Sequence
	}
	fresh.BaseTimestamp = records[0].Timestamp
	for i := range records {
		body = format.AppendRecord(body, &records[i], records[i].Timestamp-fresh.BaseTimestamp,
			int32(records[i].Offset-fresh.BaseOffset))
		if fresh.TimestampType() == format.CreateTime {
			fresh.MaxTimestamp = max(records[i].Timestamp, fresh.MaxTimestamp*int64(min(1, i)))
		}
	}
	var c format.Compressor
	packed, err := c.Compress(codec, body)
	if err != nil {
		return nil
	}
	return format.AppendBatch(dst, &fresh, packed)
}

// Random logs with transactions, tombstones, headers and gaps hold the same records whatever their batches and codecs
// are, and so do their fingerprints; a single change of any field of any record is found.
func TestRewrittenCopies(t *testing.T) {
	for seed := range uint64(12) {
		rng := rand.New(rand.NewPCG(seed, 21))
		dir := filepath.Join(t.TempDir(), "t-0")
		fixture.WriteKeyedLog(t, rng, dir, 1796000000000)
		all, _ := recordsOf(t, dir)
		codec := format.Codec(seed % 5)
		for how, change := range map[string]func([]byte, *format.Batch, []format.Record) []byte{
			"recompressed": func(dst []byte, b *format.Batch, records []format.Record) []byte {
				return batchAs(dst, b, records, codec)
			},
			"one by one": func(dst []byte, b *format.Batch, records []format.Record) []byte {
				for i := range records {
					dst = batchAs(dst, b, records[i:i+1], codec)
				}
				return dst
			},
			"another epoch": func(dst []byte, b *format.Batch, _ []format.Record) []byte {
				raw := bytes.Clone(b.Raw)
				raw[15]++
				return append(dst, raw...)
			},
		} {
			got := compareDirs(t, dir, rewritten(t, dir, change))
			if got.Result != SameRecords && got.Result != Identical || got.Same != int64(len(all)) || !got.Explained(false) {
				t.Errorf("%d, %s with %v: %s, %d of %d", seed, how, codec, got.Result, got.Same, len(all))
			}
		}
		checkFields(t, rng, dir, all, codec)
	}
}

// fields are changes of one field of a record, or of the batch that it is in.
var fields = map[string]func(b *format.Batch, r *format.Record){
	"time":      func(_ *format.Batch, r *format.Record) { r.Timestamp++ },
	"null key":  func(_ *format.Batch, r *format.Record) { r.Key = other(r.Key) },
	"null":      func(_ *format.Batch, r *format.Record) { r.Value = other(r.Value) },
	"header":    func(_ *format.Batch, r *format.Record) { addHeader(r, []byte("h"), nil) },
	"empty":     func(_ *format.Batch, r *format.Record) { addHeader(r, []byte("h"), []byte{}) },
	"flag":      func(b *format.Batch, _ *format.Record) { b.Attributes ^= 0x10 },
	"control":   func(b *format.Batch, _ *format.Record) { b.Attributes ^= 0x20 },
	"producer":  func(b *format.Batch, _ *format.Record) { b.ProducerID++ },
	"its epoch": func(b *format.Batch, _ *format.Record) { b.ProducerEpoch++ },
}

// other is null for what is not, and empty for null.
func other(field []byte) []byte {
	if field == nil {
		return []byte{}
	}
	return nil
}

func addHeader(r *format.Record, key, value []byte) {
	r.HeaderCount, r.Headers = r.HeaderCount+1, format.AppendHeader(r.Headers, key, value)
}

func checkFields(t *testing.T, rng *rand.Rand, dir string, all []kept, codec format.Codec) {
	t.Helper()
	for what, change := range fields {
		at := all[rng.IntN(len(all))].Offset
		changed := rewritten(t, dir, func(dst []byte, b *format.Batch, records []format.Record) []byte {
			i := slices.IndexFunc(records, func(r format.Record) bool { return r.Offset == at })
			if i < 0 {
				return append(dst, b.Raw...)
			}
			if i > 0 {
				dst = batchAs(dst, b, records[:i], codec)
			}
			fresh := *b
			fresh.Attributes &^= 0x08 // a time of its own
			change(&fresh, &records[i])
			dst = batchAs(dst, &fresh, records[i:i+1], codec)
			if i+1 < len(records) {
				dst = batchAs(dst, b, records[i+1:], codec)
			}
			return dst
		})
		got := compareDirs(t, dir, changed)
		prints := comparePrinted(t, printsOf(t, dir), changed)
		for _, c := range []*Comparison{got, prints} {
			if c.Result != Diverged || c.DivergedAt != at || c.Differ != 1 {
				t.Errorf("%s, another %s at %d: %s at %d, %d differ", dir, what, at, c.Result, c.DivergedAt, c.Differ)
			}
		}
	}
}

// A copy that was converted down lacks headers, producers, flags and control records, and with magic 0 times: what the
// older magic holds is compared, and a change of that is found.
func TestConvertedDown(t *testing.T) {
	for seed := range uint64(8) {
		dir := filepath.Join(t.TempDir(), "t-0")
		fixture.WriteKeyedLog(t, rand.New(rand.NewPCG(seed, 23)), dir, 1796000000000)
		all, _ := recordsOf(t, dir)
		data := slices.DeleteFunc(slices.Clone(all), func(k kept) bool { return !k.data })
		for magic := range byte(2) {
			got := compareDirs(t, dir, convertedDown(t, dir, magic, -1))
			ahead := all[len(all)-1].abort || all[len(all)-1].commit
			if got.Result != SameRecords && (got.Result != AAhead || !ahead) || got.Same != int64(len(data)) || !got.Converted ||
				!got.Narrowed || !got.Explained(false) || got.Explained(true) {
				t.Errorf("%d, magic %d: %s, %d of %d; %+v", seed, magic, got.Result, got.Same, len(data), got.B)
			}
			at := data[len(data)/2].Offset
			if got := compareDirs(t, convertedDown(t, dir, magic, at), dir); got.Result != Diverged || got.DivergedAt != at ||
				got.Differ != 1 {
				t.Errorf("%d, magic %d, changed at %d: %s at %d", seed, magic, at, got.Result, got.DivergedAt)
			}
		}
	}
}

// convertedDown is a copy in an older magic, with another value at an offset.
func convertedDown(t *testing.T, dir string, magic byte, changed int64) string {
	t.Helper()
	return rewritten(t, dir, func(dst []byte, b *format.Batch, records []format.Record) []byte {
		for i := range records {
			r := &records[i]
			if b.Control() {
				continue
			}
			if r.Offset == changed {
				r.Value = append(r.Value, 'x')
			}
			dst = append(dst, message(magic, r.Offset, r.Timestamp, format.CodecNone, r.Key, r.Value)...)
		}
		return dst
	})
}

// A copy that lacks one aborted transaction, and no other record, was cleaned, whatever keys come twice before that.
func TestAbortedIsTaken(t *testing.T) {
	tried := 0
	for seed := range uint64(40) {
		dir := filepath.Join(t.TempDir(), "t-0")
		fixture.WriteKeyedLog(t, rand.New(rand.NewPCG(seed, 24)), dir, 1796000000000)
		all, _ := recordsOf(t, dir)
		for i := range all {
			if !all[i].data || !all[i].transactional || !aborted(all, i) {
				continue
			}
			taken := 0
			copied := rewritten(t, dir, func(dst []byte, b *format.Batch, records []format.Record) []byte {
				if b.BaseOffset <= all[i].Offset && all[i].Offset <= b.LastOffset {
					taken += len(records)
					return dst
				}
				return append(dst, b.Raw...)
			})
			got := compareDirs(t, dir, copied)
			if got.Result != Compacted || got.B.Missing != int64(taken) || got.B.Lost != 0 {
				t.Errorf("%d: %s, %d missing, %d lost", seed, got.Result, got.B.Missing, got.B.Lost)
			}
			tried++
			break
		}
	}
	if tried < 20 {
		t.Errorf("only %d logs have an aborted transaction", tried)
	}
}
