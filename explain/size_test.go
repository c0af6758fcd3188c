package explain

import (
	"encoding/csv"
	"fmt"
	"path"
	"strconv"
	"strings"
	"testing"

	"kseg/format"
	"kseg/internal/fixture"
)

// batchesText writes batches as the frozen answers have them.
func batchesText(batches []PredictedBatch) string {
	var runs []string
	times, last := int64(0), ""
	flush := func() {
		if times > 0 {
			runs = append(runs, fmt.Sprintf("%d*%s", times, last))
		}
	}
	for _, b := range batches {
		text := fmt.Sprintf("%dx%d", b.Records, b.Bytes)
		if text != last {
			flush()
			times, last = 0, text
		}
		times += b.Times
	}
	flush()
	return strings.Join(runs, " ")
}

// TestPredictIsWhatTheProducerDoes compares with what Kafka's own classes made of random shapes (oracle/Batches.java).
func TestPredictIsWhatTheProducerDoes(t *testing.T) {
	rows, err := csv.NewReader(strings.NewReader(string(fixture.Golden(t,
		"4.4.0/batch-math/producer-batches.csv")))).ReadAll()
	if err != nil || len(rows) < 200 {
		t.Fatalf("%d rows, %v", len(rows), err)
	}
	for _, row := range rows[1:] {
		number := func(i int) int64 {
			n, err := strconv.ParseInt(row[i], 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			return n
		}
		o := SizeOptions{Records: number(0), KeyBytes: number(1), ValueBytes: number(2), TimestampStepMs: number(4),
			BatchSize: number(5)}
		for h := range strings.FieldsSeq(row[3]) {
			key, value, _ := strings.Cut(h, ":")
			k, _ := strconv.ParseInt(key, 10, 64)
			v, err := strconv.ParseInt(value, 10, 64)
			if err != nil {
				v = -1
			}
			o.Headers = append(o.Headers, [2]int64{k, v})
		}
		batches, err := Predict(o)
		if err != nil {
			t.Fatal(err)
		}
		if got := batchesText(batches); got != row[6] {
			t.Errorf("%v: %s", row, got)
		}
	}
}

// batchMath are the topics that a real producer wrote: records of 'hello-kafka' without keys, all of one time.
var batchMath = []struct {
	topic     string
	codec     format.Codec
	batchSize int64
	records   int64
}{
	{"math-none-1-0", format.CodecNone, 16384, 1},
	{"math-none-10-0", format.CodecNone, 16384, 10},
	{"math-none-1000-0", format.CodecNone, 16384, 1000},
	{"math-gzip-1000-0", format.CodecGzip, 16384, 1000},
	{"math-snappy-1000-0", format.CodecSnappy, 16384, 1000},
	{"math-lz4-1000-0", format.CodecLZ4, 16384, 1000},
	{"math-zstd-1000-0", format.CodecZstd, 16384, 1000},
	{"math-gzip-nobatch-1000-0", format.CodecGzip, 0, 1000},
}

// TestPredictRealTopics: the prediction is exactly the file without compression, and within 5 % with it.
func TestPredictRealTopics(t *testing.T) {
	for _, m := range batchMath {
		data := fixture.Data(t, path.Join("4.4.0/batch-math", m.topic, "00000000000000000000.log"))
		var sizes []string
		for parts := format.NewParts(data, 0); parts.Next(); {
			sizes = append(sizes, fmt.Sprintf("%dx%d", parts.Part().Batch.Count, parts.Part().Batch.Size()))
		}
		batches, err := Predict(SizeOptions{Records: m.records, KeyBytes: -1, ValueBytes: 11, BatchSize: m.batchSize,
			Codec: m.codec})
		if err != nil {
			t.Fatal(err)
		}
		records, bytes, count := Total(batches)
		if records != m.records || count != int64(len(sizes)) {
			t.Errorf("%s: %d records in %d batches, really %d in %d", m.topic, records, count, m.records, len(sizes))
		}
		if off := bytes - int64(len(data)); m.codec == format.CodecNone && off != 0 || off*20 > bytes || -off*20 > bytes {
			t.Errorf("%s: %d bytes, really %d", m.topic, bytes, len(data))
		}
		if m.codec == format.CodecNone {
			continue
		}
		if first := fmt.Sprintf("%dx", batches[0].Records); !strings.HasPrefix(sizes[0], first) {
			t.Errorf("%s: the first batch has %s records, really %s", m.topic, first, sizes[0])
		}
	}
}

// TestPredictEqualBatchesAtOnce: what is computed for equal batches at once is what they sum up to one by one.
func TestPredictEqualBatchesAtOnce(t *testing.T) {
	for _, codec := range []format.Codec{format.CodecNone, format.CodecLZ4} {
		for records := int64(1); records < 400; records++ {
			batches, err := Predict(SizeOptions{Records: records, KeyBytes: 3, ValueBytes: 20, BatchSize: 300, Codec: codec})
			if err != nil {
				t.Fatal(err)
			}
			if sum, _, _ := Total(batches); sum != records {
				t.Errorf("%s: %d records became %d", codec, records, sum)
			}
			if last := batches[len(batches)-1]; last.Times < 1 || last.Records < 1 {
				t.Errorf("%s: %d records: last batch %+v", codec, records, last)
			}
		}
	}
	batches, err := Predict(SizeOptions{Records: 1 << 50, KeyBytes: -1, ValueBytes: 11, BatchSize: 16384})
	if records, _, _ := Total(batches); err != nil || records != 1<<50 || len(batches) != 2 {
		t.Errorf("2^50 records: %+v, %v", batches, err)
	}
}

// TestCostsAreThoseOfARealBatch: the 65th record is told of where a batch can hold one, with the right reason, and all
// numbers are written alike.
func TestCostsAreThoseOfARealBatch(t *testing.T) {
	small := SizeOptions{Records: 3, KeyBytes: -1, ValueBytes: 11, BatchSize: 16384}
	stepped := small
	stepped.TimestampStepMs = 1
	large := SizeOptions{Records: 3, KeyBytes: -1, ValueBytes: 20000, BatchSize: 16384}
	for _, c := range []struct {
		o    SizeOptions
		want string
	}{
		{small, "A record has 18 bytes: 11 of key, value and headers, 7 of lengths and deltas;\nthe 65th of a batch has " +
			"19, since its offset delta, 64,"},
		{stepped, "the 65th of a batch has 20, since among other things its offset delta, 64,"},
		{large, "A record has 20,011 bytes: 20,000 of key, value and headers, 11 of lengths and deltas.\n"},
	} {
		if got := c.o.costs(); !strings.Contains(got, c.want) {
			t.Errorf("%s", got)
		}
	}
}

func TestPerRecord(t *testing.T) {
	for _, c := range []struct {
		bytes, records int64
		want           string
	}{{79, 1, "79.00 bytes"}, {60216, 3, "20,072.00 bytes"}, {1999, 2, "999.50 bytes"}, {1999999, 2, "999,999.50 bytes"},
		{5, 0, "no bytes"}} {
		if got := perRecord(c.bytes, c.records); got != c.want {
			t.Errorf("%d in %d: %s", c.bytes, c.records, got)
		}
	}
}
