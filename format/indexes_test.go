package format_test

import (
	"bytes"
	"errors"
	"testing"

	"pgregory.net/rapid"

	"kseg/format"
)

func zeros(n int) []byte { return make([]byte, n) }

// errorPos is the position in an *Error, −1 for another one.
func errorPos(err error) int64 {
	var e *format.Error
	if errors.As(err, &e) {
		return e.Pos
	}
	return -1
}

func TestZeroTails(t *testing.T) {
	entry := format.AppendOffsetEntry(nil, 100, format.OffsetEntry{Offset: 100, Position: 300}) // relative offset 0
	timed := format.AppendTimeEntry(nil, 100, format.TimeEntry{TimestampMs: 0, Offset: 107})
	early := format.AppendTimeEntry(nil, 100, format.TimeEntry{TimestampMs: 1 << 56, Offset: 100})
	for _, c := range []struct {
		name                      string
		raw                       []byte
		isTime                    bool
		slots, zero, stray, after int
	}{
		{"empty", nil, false, 0, 0, 0, 0},
		{"stray bytes only", zeros(7), false, 0, 0, 7, 0},
		{"one zero slot", zeros(8), false, 1, 1, 0, 0},
		{"preallocated", zeros(8 * 1000), false, 1000, 1000, 0, 0},
		{"offset equal to the base", entry, false, 1, 0, 0, 1},
		{"and zeros", append(bytes.Clone(entry), zeros(20)...), false, 3, 2, 4, 1},
		{"zeros in the middle", append(append(bytes.Clone(entry), zeros(16)...), entry...), false, 4, 0, 0, 4},
		{"stray bytes that are not zero", append(append(bytes.Clone(entry), zeros(8)...), 1, 2, 3), false, 2, 1, 3, 1},
		{"time: empty", nil, true, 0, 0, 0, 0},
		{"time: a single zero slot can be genuine", zeros(12), true, 1, 1, 0, 1},
		{"time: two can not", zeros(24), true, 2, 2, 0, 0},
		{"time: timestamp 0", append(bytes.Clone(timed), zeros(12)...), true, 2, 1, 0, 1},
		{"time: only the highest byte is not zero", append(bytes.Clone(early), zeros(13)...), true, 2, 1, 1, 1},
	} {
		var slots, zero, stray, after int
		if c.isTime {
			x := format.NewTimeIndex(c.raw, 100)
			slots, zero, stray, after = x.Len(), x.ZeroTail(), x.StrayBytes(), x.Logical().Len()
		} else {
			x := format.NewOffsetIndex(c.raw, 100)
			slots, zero, stray, after = x.Len(), x.ZeroTail(), x.StrayBytes(), x.Logical().Len()
		}
		if slots != c.slots || zero != c.zero || stray != c.stray || after != c.after {
			t.Errorf("%s: %d slots, %d zero, %d stray bytes, %d logical; want %d, %d, %d, %d",
				c.name, slots, zero, stray, after, c.slots, c.zero, c.stray, c.after)
		}
	}
}

// TestIndexEntriesSurvive: what is written is read, wherever the base lies.
func TestIndexEntriesSurvive(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		base := rapid.Int64Range(0, 1<<62).Draw(t, "base")
		offset := base + int64(rapid.Int32Min(0).Draw(t, "relative offset"))
		e := format.OffsetEntry{Offset: offset, Position: rapid.Int32Min(0).Draw(t, "position")}
		if got := format.NewOffsetIndex(format.AppendOffsetEntry(nil, base, e), base).Entry(0); got != e {
			t.Fatalf("%+v read as %+v", e, got)
		}
		te := format.TimeEntry{TimestampMs: rapid.Int64().Draw(t, "timestamp"), Offset: offset}
		if got := format.NewTimeIndex(format.AppendTimeEntry(nil, base, te), base).Entry(0); got != te {
			t.Fatalf("%+v read as %+v", te, got)
		}
		txn := format.AbortedTxn{Version: rapid.Int16().Draw(t, "version"), ProducerID: rapid.Int64().Draw(t, "producer"),
			FirstOffset: rapid.Int64().Draw(t, "first"), LastOffset: rapid.Int64().Draw(t, "last"), LastStableOffset: offset}
		if got := format.NewTxnIndex(format.AppendAbortedTxn(nil, txn)).Entry(0); got != txn {
			t.Fatalf("%+v read as %+v", txn, got)
		}
		p := format.ProducerEntry{ProducerID: txn.ProducerID, ProducerEpoch: txn.Version, LastSequence: e.Position,
			LastOffset:  txn.LastOffset,
			OffsetDelta: rapid.Int32().Draw(t, "delta"), TimestampMs: te.TimestampMs, CoordinatorEpoch: rapid.Int32().Draw(t,
				"coordinator"),
			CurrentTxnFirstOffset: txn.FirstOffset}
		s, err := format.DecodeProducerSnapshot(format.AppendProducerSnapshot(nil, []format.ProducerEntry{{}, p}))
		if err != nil || s.Len() != 2 || s.Entry(1) != p {
			t.Fatalf("%+v read as %+v, %v", p, s.Entry(1), err)
		}
	})
}

func TestTxnIndexVersionsAndTornEntries(t *testing.T) {
	raw := format.AppendAbortedTxn(nil, format.AbortedTxn{ProducerID: 1, LastOffset: 5})
	raw = format.AppendAbortedTxn(raw, format.AbortedTxn{Version: 1, ProducerID: 2, LastOffset: 9})
	x := format.NewTxnIndex(append(raw, zeros(33)...))
	n, err := x.Check()
	checkError(t, "version 1", err, format.ErrUnsupported)
	if n != 1 || x.Len() != 2 || x.StrayBytes() != 33 || errorPos(err) != 34 {
		t.Errorf("%d of %d entries before byte %d, %d stray bytes", n, x.Len(), errorPos(err), x.StrayBytes())
	}
	var b format.TxnIndexBuilder
	for _, c := range []struct {
		last    int64
		aborted bool
		want    error
	}{{5, true, nil}, {3, false, nil}, {6, true, nil}, {6, true, format.ErrTxnIndexOrder}, {7, true, nil}} {
		err := b.Add(format.CompletedTxn{Aborted: c.aborted, AbortedTxn: format.AbortedTxn{LastOffset: c.last}})
		checkError(t, "entry", err, c.want)
	}
	if n := format.NewTxnIndex(b.Bytes()).Len(); n != 3 {
		t.Errorf("%d entries", n)
	}
}

// FuzzIndexes: any bytes are an index; nothing it says makes a check or a search fail, and what is called sound is in
// order.
func FuzzIndexes(f *testing.F) {
	f.Add([]byte{0, 0, 0, 9, 0, 0, 1, 0, 0, 0, 0, 19, 0, 0, 2, 0}, int64(100), int64(105))
	f.Add(zeros(40), int64(0), int64(0))
	f.Add(format.AppendTimeEntry(nil, 0, format.TimeEntry{TimestampMs: 5, Offset: 3}), int64(1<<63-1), int64(-1))
	f.Fuzz(func(t *testing.T, raw []byte, base, target int64) {
		offsets, times := format.NewOffsetIndex(raw, base), format.NewTimeIndex(raw, base)
		if s := offsets.Search(target, nil); s.Slot >= offsets.Len() || len(s.Probes) > 40 {
			t.Errorf("%+v", s)
		}
		if s := times.Search(target, nil); s.Slot >= times.Len() || len(s.Probes) > 40 {
			t.Errorf("%+v", s)
		}
		offsetCheck, timeCheck := format.NewOffsetIndexCheck(offsets), format.NewTimeIndexCheck(times, offsets)
		inferred := format.NewSegmentInterval(offsets)
		for pos := int64(0); pos < 2000; pos += 128 {
			b := format.BatchRef{Pos: pos, Size: 128, BaseOffset: base + pos/16, LastOffset: base + pos/16 + 7,
				MaxTimestampMs: pos}
			offsetCheck.Add(b)
			timeCheck.Add(b)
			inferred.Add(b)
		}
		if v, bad := offsetCheck.Finish(); !bad {
			for i := 1; i < offsets.Len(); i++ {
				if offsets.Entry(i).Position <= offsets.Entry(i-1).Position {
					t.Errorf("slot %d is not above the one before", i)
				}
			}
		} else if v.Slot < 0 || v.Slot >= offsets.Len() {
			t.Errorf("violation at slot %d of %d", v.Slot, offsets.Len())
		}
		if v, bad := timeCheck.Finish(); bad && (v.Slot < 0 || v.Slot >= times.Len()) {
			t.Errorf("violation at slot %d of %d", v.Slot, times.Len())
		}
		if inferred.Entries > offsets.Len() {
			t.Errorf("%d entries of %d", inferred.Entries, offsets.Len())
		}
	})
}
