//go:build oracle

package broker

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"kseg/format"
)

// keyedLog writes a random partition of keyed records, with transactions, tombstones, gaps and all codecs.
type keyedLog struct {
	t         *testing.T
	rng       *rand.Rand
	dir       string
	offset    int64
	clockMs   int64
	keys      int
	keyless   bool
	codecs    bool
	appendMs  bool // LogAppendTime
	base      int64
	log       []byte
	index     *format.IndexBuilder
	txns      format.TxnIndexBuilder
	producers *format.ProducerState
	records   *format.RecordReader
	sequence  map[int64]int32
	open      map[int64]bool
}

func writeKeyedLog(t *testing.T, rng *rand.Rand, dir string, nowMs int64) {
	l := &keyedLog{t: t, rng: rng, dir: dir, clockMs: nowMs - 3600_000, keys: 3 + rng.IntN(40), keyless: rng.IntN(5) == 0,
		codecs:   rng.IntN(3) == 0,
		appendMs: rng.IntN(6) == 0, records: format.NewRecordReader(1<<20, nil), sequence: map[int64]int32{},
		open: map[int64]bool{}}
	if rng.IntN(2) == 0 {
		l.offset = rng.Int64N(5000)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	l.producers = format.NewProducerState(l.offset)
	l.begin()
	for range 30 + rng.IntN(120) {
		if l.step(); len(l.log) > 300+rng.IntN(2500) {
			l.roll()
		}
	}
	l.finish()
	l.snapshot()
}

func (l *keyedLog) begin() {
	l.base, l.log, l.index, l.txns = l.offset, nil, format.NewIndexBuilder(l.offset, 512), format.TxnIndexBuilder{}
}

func (l *keyedLog) roll() {
	l.finish()
	l.snapshot()
	l.begin()
}

func (l *keyedLog) write(name string, content []byte) {
	if err := os.WriteFile(filepath.Join(l.dir, name), content, 0o644); err != nil {
		l.t.Fatal(err)
	}
}

func (l *keyedLog) finish() {
	if err := l.index.Finish(); err != nil {
		l.t.Fatal(err)
	}
	l.write(format.SegmentFileName(l.base, format.KindLog), l.log)
	l.write(format.SegmentFileName(l.base, format.KindOffsetIndex), l.index.OffsetIndexBytes())
	l.write(format.SegmentFileName(l.base, format.KindTimeIndex), l.index.TimeIndexBytes())
	if raw := l.txns.Bytes(); len(raw) > 0 {
		l.write(format.SegmentFileName(l.base, format.KindTxnIndex), raw)
	}
}

func (l *keyedLog) snapshot() {
	l.write(format.SegmentFileName(l.offset, format.KindProducerSnapshot), format.AppendProducerSnapshot(nil,
		l.producers.Entries()))
}

// step appends a batch or ends a transaction.
func (l *keyedLog) step() {
	l.clockMs += l.rng.Int64N(2000)
	if l.rng.IntN(20) == 0 {
		l.offset += l.rng.Int64N(9)
	}
	producer := []int64{-1, -1, 5, 10, 11, 12}[l.rng.IntN(6)]
	if producer >= 10 && l.open[producer] && l.rng.IntN(3) == 0 {
		l.marker(producer)
		return
	}
	b := format.Batch{BaseOffset: l.offset, BaseTimestamp: l.clockMs, MaxTimestamp: -1, ProducerID: producer,
		ProducerEpoch: -1, BaseSequence: -1}
	if producer >= 0 {
		b.ProducerEpoch, b.BaseSequence = 0, l.sequence[producer]
	}
	if producer >= 10 {
		b.Attributes, l.open[producer] = 0x10, true
	}
	n := 1 + l.rng.IntN(6)
	l.sequence[producer] += int32(n)
	var body []byte
	for i := range n {
		r := format.Record{Key: fmt.Appendf(nil, "k%d", l.rng.IntN(l.keys)), Value: bytes.Repeat([]byte("v"), l.rng.IntN(70))}
		if l.rng.IntN(6) == 0 {
			r.Value = nil
		}
		if l.keyless && l.rng.IntN(8) == 0 {
			r.Key = nil
		}
		if l.rng.IntN(8) == 0 {
			r.HeaderCount, r.Headers = 1, format.AppendHeader(nil, []byte("h"), []byte(strings.Repeat("x", l.rng.IntN(200))))
		}
		delta := l.rng.Int64N(400) - 100
		b.MaxTimestamp = max(b.MaxTimestamp, l.clockMs+delta)
		body = format.AppendRecord(body, &r, delta, int32(i))
	}
	b.Count, b.LastOffsetDelta = int32(n), int32(n-1)
	if l.appendMs {
		b.Attributes |= 0x08
		b.MaxTimestamp = l.clockMs
	}
	if l.codecs {
		codec := format.Codec(l.rng.IntN(5))
		var c format.Compressor
		var err error
		if body, err = c.Compress(codec, body); err != nil {
			l.t.Fatal(err)
		}
		b.Attributes |= int16(codec)
	}
	l.add(&b, body)
}

// marker ends a producer's transaction.
func (l *keyedLog) marker(producer int64) {
	key := []byte{0, 0, 0, byte(l.rng.IntN(2))}
	r := format.Record{Key: key, Value: []byte{0, 0, 0, 0, 0, 0}}
	l.open[producer] = false
	l.add(&format.Batch{BaseOffset: l.offset, BaseTimestamp: l.clockMs, MaxTimestamp: l.clockMs, ProducerID: producer,
		BaseSequence: -1,
		Attributes:   0x30, Count: 1}, format.AppendRecord(nil, &r, 0, 0))
}

func (l *keyedLog) add(b *format.Batch, body []byte) {
	pos := int64(len(l.log))
	l.log = format.AppendBatch(l.log, b, body)
	written, err := format.DecodeBatch(l.log, pos)
	if err != nil {
		l.t.Fatal(err)
	}
	ev, err := l.producers.Append(&written, l.records)
	if err != nil {
		l.t.Fatal(err)
	}
	if ev.Ended {
		if err := l.txns.Add(ev.Txn); err != nil {
			l.t.Fatal(err)
		}
	}
	if err := l.index.Add(written.Ref()); err != nil {
		l.t.Fatal(err)
	}
	l.offset = written.NextOffset()
}

// TestOracleCleanRandom cleans random logs in several rounds, each of which goes on with what the one before left.
func TestOracleCleanRandom(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	if text := os.Getenv("KSEG_ORACLE_SEED"); text != "" {
		seed, _ = strconv.ParseUint(text, 10, 64)
	}
	t.Logf("KSEG_ORACLE_SEED=%d", seed)
	logs := 150
	if text := os.Getenv("KSEG_ORACLE_LOGS"); text != "" {
		logs, _ = strconv.Atoi(text)
	}
	rng, root, nowMs := rand.New(rand.NewPCG(seed, 0)), t.TempDir(), time.Now().UnixMilli()
	tasks := make([]cleanTask, logs)
	for i := range tasks {
		dir := filepath.Join(root, "0", fmt.Sprintf("t%d-0", i))
		writeKeyedLog(t, rng, dir, nowMs)
		tasks[i] = cleanTask{dir: dir, cleaned: -1, nowMs: nowMs, mapBytes: 24 * (5 + rng.Int64N(80)), askedMs: nowMs,
			configs: map[string]string{
				"delete.retention.ms": strconv.Itoa(1000 * rng.IntN(100)), "internal.segment.bytes": strconv.Itoa(2000 +
					rng.IntN(20000)),
				"index.interval.bytes": strconv.Itoa(rng.IntN(3000)), "segment.index.bytes": strconv.Itoa(200 + rng.IntN(2000))}}
		if rng.IntN(3) == 0 {
			tasks[i].configs["min.compaction.lag.ms"] = strconv.Itoa(1000 * rng.IntN(4000))
		}
	}
	wrong, rounds := 0, 0
	for round := 1; round <= 6; round++ {
		for i := range tasks {
			tasks[i].out = filepath.Join(root, strconv.Itoa(round), strconv.Itoa(i))
		}
		answers := runKafka(t, tasks)
		for i := range tasks {
			task := &tasks[i]
			rounds++
			if bad := task.differences(t, &answers[i]); len(bad) > 0 {
				if keep := os.Getenv("KSEG_ORACLE_KEEP"); keep != "" {
					_ = os.CopyFS(filepath.Join(keep, fmt.Sprintf("r%d-%d", round, i), filepath.Base(task.dir)), os.DirFS(task.dir))
				}
				if wrong++; wrong < 12 {
					t.Errorf("round %d, log %d: %s  %s", round, i, task.line(), strings.Join(bad, "\n  "))
				}
			}
			task.dir = filepath.Join(task.out, filepath.Base(task.dir))
			task.nowMs += 1000 * rng.Int64N(200)
			task.cleaned = answers[i].CleanedTo
			if rng.IntN(3) == 0 {
				task.cleaned = -1 // the checkpoint was lost: all is dirty again
			}
		}
	}
	t.Logf("%d of %d rounds agree", rounds-wrong, rounds)
}
