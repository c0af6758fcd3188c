package broker

import (
	"cmp"
	"context"
	"math"
	"slices"

	"kseg/format"
)

// KeyCensus counts the keys of a log, from its first record to its last.
type KeyCensus struct {
	Records int64 // with a key
	NoKey   int64
	Unique  int64
	Top     []KeyCount // the most rewritten keys, most records first
}

// KeyCount is what a log has of one key.
type KeyCount struct {
	Key         []byte // nil if it is longer than mostKey
	Size        int64  // of the key
	Records     int64
	Bytes       int64 // of keys and values
	First, Last int64 // offsets
	Tombstone   bool  // the last record has no value
}

// mostKey bounds the bytes of a key that are kept.
const mostKey = 64 << 10

// CountKeys counts keys, 21 to 32 bytes of memory each, and then looks for those with the most records, at most top of
// them. Where a batch cannot be read, the rest of its segment is not counted.
func CountKeys(ctx context.Context, segments []CleanerSegment, records *format.RecordReader, top int) (*KeyCensus,
	error) {
	census, hasher := &KeyCensus{}, newKeyHasher()
	counts := newOffsetMap(math.MaxInt64, 0)
	err := eachDataRecord(ctx, segments, records, func(rec *format.Record) {
		if rec.Key == nil {
			census.NoKey++
			return
		}
		census.Records++
		hash := hasher.hash(rec.Key)
		counts.put(hash, counts.get(hash)+1, true)
	})
	if err != nil {
		return nil, err
	}
	census.Unique = counts.n
	wanted := counts.highest(top)
	err = eachDataRecord(ctx, segments, records, func(rec *format.Record) {
		if rec.Key == nil {
			return
		}
		if k := wanted[hasher.hash(rec.Key)]; k != nil {
			k.take(rec)
		}
	})
	records.Release()
	for _, k := range wanted {
		census.Top = append(census.Top, *k)
	}
	slices.SortFunc(census.Top, func(a, b KeyCount) int {
		return cmp.Or(cmp.Compare(b.Records, a.Records), cmp.Compare(a.First, b.First))
	})
	return census, err
}

// keyCount is the count of a key, and its hash.
type keyCount struct {
	key   keyHash
	count int64
}

// highest are the keys of the highest counts.
func (m *offsetMap) highest(n int) map[keyHash]*KeyCount {
	n = int(min(int64(n), m.n))
	var heads []keyCount
	less := func(a, b keyCount) int { return cmp.Or(cmp.Compare(b.count, a.count), cmp.Compare(a.key.a, b.key.a)) }
	m.each(func(key keyHash, count int64) {
		if heads = append(heads, keyCount{key, count}); len(heads) >= 2*n+1024 {
			slices.SortFunc(heads, less)
			heads = heads[:n]
		}
	})
	slices.SortFunc(heads, less)
	wanted := make(map[keyHash]*KeyCount, n)
	for _, s := range heads[:n] {
		wanted[s.key] = &KeyCount{}
	}
	return wanted
}

func (k *KeyCount) take(rec *format.Record) {
	if k.Records == 0 {
		if k.First, k.Size = rec.Offset, int64(len(rec.Key)); k.Size <= mostKey {
			k.Key = slices.Clone(rec.Key)
		}
	}
	k.Records++
	k.Bytes += int64(len(rec.Key) + len(rec.Value))
	k.Last, k.Tombstone = rec.Offset, rec.Value == nil
}

// eachDataRecord goes through the records of all batches that are no control batches.
func eachDataRecord(ctx context.Context, segments []CleanerSegment, records *format.RecordReader,
	take func(rec *format.Record)) error {
	var rec format.Record
	for i := range segments {
		err := eachBatch(ctx, &segments[i], nil, func(b *format.Batch) error {
			if b.Control() {
				return nil
			}
			records.Reset(b)
			for records.Next(&rec) {
				take(&rec)
			}
			return nil
		})
		if _, stops := err.(*Stop); err != nil && !stops {
			return err
		}
	}
	return nil
}

// EachBatch goes through the batches of the segments from index first on. Where a batch cannot be read, the rest of its
// segment is left out.
func (l *CleanerLog) EachBatch(first int, take func(seg *CleanerSegment, b *format.Batch)) error {
	for i := range l.Segments[first:] {
		seg := &l.Segments[first+i]
		err := eachBatch(context.Background(), seg, nil, func(b *format.Batch) error {
			take(seg, b)
			return nil
		})
		if _, stops := err.(*Stop); err != nil && !stops {
			return err
		}
	}
	return nil
}
