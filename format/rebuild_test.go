package format_test

import (
	"bytes"
	"math"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"

	"kseg/format"
	"kseg/internal/fixture"
)

// partition is a partition directory of testdata: its logs and snapshots by offset.
type partition struct {
	logs      map[int64][]byte
	snapshots map[int64][]byte
	bases     []int64
}

func loadPartition(t *testing.T, dir string) partition {
	t.Helper()
	p := partition{logs: map[int64][]byte{}, snapshots: map[int64][]byte{}}
	for _, name := range fixture.Files(t, ".log") {
		if path.Dir(name) == dir {
			base := baseOf(t, name)
			p.logs[base] = fixture.Data(t, name)
			p.bases = append(p.bases, base)
		}
	}
	for _, name := range fixture.Files(t, ".snapshot") {
		if path.Dir(name) == dir {
			p.snapshots[baseOf(t, name)] = fixture.Data(t, name)
		}
	}
	slices.Sort(p.bases)
	return p
}

// eachBatch calls fn for the batches that recovery keeps.
func eachBatch(data []byte, base int64, fn func(b *format.Batch)) {
	for s := format.NewScanner(data, 0, base); s.Next(); {
		b := s.Batch()
		if b == nil || !b.Valid() {
			return
		}
		fn(b)
	}
}

// stateAt is the producer state before the segment at base: from the newest usable snapshot, then by replay.
func (p partition) stateAt(t *testing.T, base int64, rr *format.RecordReader) *format.ProducerState {
	t.Helper()
	first := p.bases[0]
	state := format.NewProducerState(first)
	for at := base; at > first; at-- {
		if raw, ok := p.snapshots[at]; ok {
			if s, err := format.DecodeProducerSnapshot(raw); err == nil {
				state = format.LoadProducerState(s.Entries(), at, math.MinInt64)
				break
			}
		}
	}
	from := state.End()
	for _, b := range p.bases {
		if b >= base {
			break
		}
		eachBatch(p.logs[b], b, func(b *format.Batch) {
			if b.LastOffset < from || b.BaseOffset >= base {
				return
			}
			if _, err := state.Append(b, rr); err != nil {
				t.Error(err)
			}
		})
	}
	return state
}

// rebuild writes the three indexes of a segment.
func (p partition) rebuild(t *testing.T, base, interval int64) (index, timeIndex, txnIndex []byte) {
	t.Helper()
	rr := format.NewRecordReader(1<<20, nil)
	state := p.stateAt(t, base, rr)
	x := format.NewIndexBuilder(base, interval)
	var txns format.TxnIndexBuilder
	eachBatch(p.logs[base], base, func(b *format.Batch) {
		if err := x.Add(b.Ref()); err != nil {
			t.Error(err)
		}
		ev, err := state.Append(b, rr)
		if err != nil {
			t.Error(err)
		}
		if ev.Ended {
			if err := txns.Add(ev.Txn); err != nil {
				t.Error(err)
			}
		}
	})
	if err := x.Finish(); err != nil {
		t.Error(err)
	}
	return x.OffsetIndexBytes(), x.TimeIndexBytes(), txns.Bytes()
}

func TestRebuiltIndexesEqualRecovery(t *testing.T) {
	segments := 0
	for _, golden := range fixture.Goldens(t, "/index.interval.bytes") {
		out := path.Dir(golden)
		interval, err := strconv.ParseInt(strings.TrimSpace(string(fixture.Golden(t, golden))), 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		p := loadPartition(t, strings.Replace(out, "/rebuilt/", "/", 1))
		for _, base := range p.bases {
			name := path.Join(out, strings.Repeat("0", 20-len(strconv.FormatInt(base, 10)))+strconv.FormatInt(base, 10))
			index, timeIndex, txnIndex := p.rebuild(t, base, interval)
			for _, file := range []struct {
				suffix string
				got    []byte
			}{{".index", index}, {".timeindex", timeIndex}, {".txnindex", txnIndex}} {
				want, _ := fixture.FindGolden(t, name+file.suffix)
				if !bytes.Equal(file.got, want) {
					t.Errorf("%s%s:\ngot  %x\nwant %x", name, file.suffix, file.got, want)
				}
			}
			segments++
		}
	}
	if segments < 100 {
		t.Errorf("only %d segments", segments)
	}
}

// TestSnapshotsEqualReplay holds every snapshot that a broker took against the replay of the log before it.
func TestSnapshotsEqualReplay(t *testing.T) {
	rr := format.NewRecordReader(1<<20, nil)
	seen := 0
	for _, dir := range []string{"4.4.0/transactions/ledger-0", "3.7.2/transactions/ledger37-0",
		"4.4.0/damage-base/txn/orders-0"} {
		p := loadPartition(t, dir)
		for at, raw := range p.snapshots {
			state := partition{logs: p.logs, bases: p.bases}.stateAt(t, at, rr)
			if got := format.AppendProducerSnapshot(nil, state.Entries()); !bytes.Equal(got, raw) {
				t.Errorf("%s at %d: replayed %+v", dir, at, state.Entries())
			}
			seen++
		}
	}
	if seen < 10 {
		t.Errorf("only %d snapshots", seen)
	}
}

// TestExpiredProducers has a broker that was restarted at offset 82, when it left out a producer of old timestamps.
func TestExpiredProducers(t *testing.T) {
	const dir, restarted, expiredMs = "4.4.0/logdirs/clean/data1/inventory-0", 82, 1700000099999
	rr := format.NewRecordReader(1<<20, nil)
	p := loadPartition(t, dir)
	seen := 0
	for at, raw := range p.snapshots {
		if at <= restarted {
			continue
		}
		full := partition{logs: p.logs, bases: p.bases}.stateAt(t, at, rr)
		replayed, err := format.DecodeProducerSnapshot(format.AppendProducerSnapshot(nil, full.Entries()))
		if err != nil {
			t.Fatal(err)
		}
		kept := format.LoadProducerState(replayed.Entries(), at, expiredMs)
		if got := format.AppendProducerSnapshot(nil, kept.Entries()); !bytes.Equal(got, raw) {
			t.Errorf("at %d: %+v", at, kept.Entries())
		}
		if full.Len() > kept.Len() {
			seen++
		}
	}
	if seen == 0 {
		t.Error("nothing expired")
	}
}
