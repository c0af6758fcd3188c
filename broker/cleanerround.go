package broker

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"kseg/format"
)

// Round is what one round of the log cleaner does to a log (Cleaner.doClean).
type Round struct {
	// EndOffset becomes the partition's line in cleaner-offset-checkpoint.
	EndOffset int64
	Keys      int64 // unique keys of the dirty part that went into the map
	MapFull   bool  // the map was full before the dirty part was over
	Segments  []SegmentRound
	After     []SegmentAfter
	// RecordsRead and BytesRead are the cleaner's own counts, by which records of batches that go unread do not count.
	RecordsRead, RecordsKept int64
	BytesRead, BytesKept     int64
	Exact                    bool // whether BytesKept is exact: nothing has to be compressed again
	// batches without records that are kept for the state of producers, or for the last offset
	EmptyBatches int64
	NewHorizons  int64 // batches that get a delete horizon
	// NextHorizonMs is the earliest delete horizon of what stays, epoch ms; NeverForced if there is none.
	NextHorizonMs int64
	// WrongCRC counts batches whose checksum does not match, at which a cleaner does not look. FirstWrong is the first.
	WrongCRC   int64
	FirstWrong Place
	Rewritten  int64 // those of them that get a new checksum
	// Stops is why the round comes to no end, nil if it does.
	Stops *Stop
}

// Place is a byte of a segment.
type Place struct {
	Segment int64
	Pos     int64
}

// Stop is what makes a cleaner give up. Unless Splits is set the partition counts as uncleanable until the broker
// starts again.
type Stop struct {
	Place
	Splits bool // offsets do not fit the segment: the broker splits it and begins anew
	Err    error
}

// Error says where and why.
func (s *Stop) Error() string { return s.Err.Error() }

// Unwrap is the reason.
func (s *Stop) Unwrap() error { return s.Err }

// SegmentRound is what a round does to one segment.
type SegmentRound struct {
	Base, Size    int64
	Into          int64 // base offset of the segment that it becomes, or becomes part of
	Records, Kept int64
	Removed       Removed
}

// SegmentAfter is a segment that a round leaves. The sizes of files are bytes; if not Exact, those of the log and its
// indexes are estimates, as batches have to be compressed again.
type SegmentAfter struct {
	Base                                   int64
	Size                                   int64
	Exact                                  bool
	IndexSize, TimeIndexSize, TxnIndexSize int64
}

// CleanJob is one round of the cleaner.
type CleanJob struct {
	Settings *CleanerSettings
	Range    *CleanRange
	NowMs    int64
	Jobs     int // workers
	// Progress is called with the bytes of logs that were read since its last call; it may be nil.
	Progress func(bytes int64)
	// Watch is called with each record that the round comes to, and what becomes of it; it may be nil.
	Watch func(seg *CleanerSegment, b *format.Batch, rec *format.Record, v Verdict, supersededBy int64)
}

// Clean finds what one round does. The error is about what could not be read, or wraps ctx's.
func (l *CleanerLog) Clean(ctx context.Context, job CleanJob) (*Round, error) {
	return l.cleaning(ctx, job, mostRecalled).run()
}

func (l *CleanerLog) cleaning(ctx context.Context, job CleanJob, memory int64) *cleaning {
	c := &cleaning{CleanJob: job, ctx: ctx, log: l, records: format.NewRecordReader(job.Settings.MaxBatchBytes, nil),
		keys:  newOffsetMap(job.Settings.MapKeys(), job.Range.FirstDirty),
		round: &Round{Exact: true, NextHorizonMs: NeverForced}}
	c.memory.batches = map[int64]recalledBatches{}
	c.memory.left.Store(memory)
	c.filter = recordFilter{keys: c.keys, hasher: newKeyHasher(), nowMs: job.NowMs, records: c.records,
		horizonMs: addMs(job.NowMs, job.Settings.DeleteRetentionMs)}
	return c
}

func (c *cleaning) run() (*Round, error) {
	err := c.buildMap()
	if err == nil {
		c.round.Keys, c.round.EndOffset = c.keys.n, c.keys.latest+1
		err = c.cleanGroups()
	}
	if stop := (*Stop)(nil); errors.As(err, &stop) {
		c.round.Stops, err = stop, nil
	}
	return c.round, err
}

// cleaning is a round under way.
type cleaning struct {
	CleanJob
	ctx     context.Context
	log     *CleanerLog
	keys    *offsetMap
	memory  recall
	records *format.RecordReader
	filter  recordFilter
	txns    *cleanedTxns
	round   *Round
	out     output
	segment *SegmentRound
}

// stopAt makes the error of a place.
func stopAt(seg *CleanerSegment, pos int64, err error) error {
	if errors.Is(err, format.ErrTooLarge) {
		return fmt.Errorf("%s: %w", seg.Log.Display, err)
	}
	return &Stop{Place: Place{seg.Base, pos}, Err: err}
}

// eachBatch goes through the batches of a segment as the cleaner's reader does (ByteBufferLogInputStream).
func eachBatch(ctx context.Context, seg *CleanerSegment, progress func(bytes int64),
	take func(b *format.Batch) error) error {
	if progress == nil {
		progress = func(int64) {}
	}
	return seg.Log.View(func(data []byte) error {
		data = data[:min(int64(len(data)), seg.Size)] // what recovery leaves of it
		var b format.Batch
		from := int64(0)
		for pos := int64(0); pos < int64(len(data)); pos = b.End() {
			if pos-from > progressBytes {
				if ctx.Err() != nil {
					return ctx.Err()
				}
				progress(pos - from)
				from = pos
			}
			if err := decodeStrictly(&b, data, pos); err != nil {
				return stopAt(seg, pos, err)
			}
			if err := take(&b); err != nil {
				return err
			}
		}
		progress(int64(len(data)) - from)
		return nil
	})
}

// decodeStrictly is Batch.Decode with what the reader of a buffer checks besides.
func decodeStrictly(b *format.Batch, data []byte, pos int64) error {
	if err := b.Decode(data, pos); err != nil {
		return err
	}
	return strict(b)
}

// strict is what the reader of a buffer checks besides.
func strict(b *format.Batch) error {
	switch {
	case b.Magic < 0 || b.Magic > 2:
		return &format.Error{What: "magic", Pos: b.Pos + 16, Want: "0, 1 or 2", Got: strconv.Itoa(int(b.Magic)),
			Err: format.ErrValue}
	case b.Magic == 2 && b.Size() < format.BatchHeaderSize:
		return &format.Error{What: "batch length", Pos: b.Pos + 8, Want: "at least 49",
			Got: strconv.FormatInt(b.Size()-format.LogOverhead, 10), Err: format.ErrValue}
	}
	return nil
}

// progressBytes is how often progress is told.
const progressBytes = 4 << 20

// errFull ends the building of the map.
var errFull = errors.New("the map is full")

// buildMap is Cleaner.buildOffsetMap.
func (c *cleaning) buildMap() error {
	from, to := c.Range.FirstDirty, c.Range.CleanTo
	dirty := c.log.between(min(from, to), to)
	c.txns = newCleanedTxns(func(format.AbortedTxn) error { return nil })
	c.txns.add(c.log.abortedIn(from, to))
	for i := range dirty {
		seek, err := dirty[i].seek(from)
		if err != nil {
			return err
		}
		err = c.eachLooked(&dirty[i], seek, func(l *looker, b *looked, r *runResult) { l.lookKeys(b, r, &c.memory, from) },
			func(b *looked) error { return c.mapBatch(&dirty[i], b) })
		if errors.Is(err, errFull) {
			c.round.MapFull = true
			return nil
		}
		if err != nil {
			return err
		}
		c.keys.latest = to - 1
		if i+1 < len(dirty) {
			c.keys.latest = dirty[i+1].Base - 1
		}
	}
	return nil
}

func (c *cleaning) mapBatch(seg *CleanerSegment, b *looked) error {
	c.keys.puts.batch(&b.Batch)
	c.memory.add(seg.Base, b)
	switch {
	case b.Control():
		err := b.err
		if err == nil {
			_, err = c.txns.control(&b.Batch, b.typ, b.hasType)
		}
		if err != nil {
			return stopAt(seg, b.Pos, err)
		}
	case !c.txns.data(&b.Batch):
		for i, k := range b.keys {
			if i%mostWarm == 0 {
				for _, k := range b.keys[i:min(i+mostWarm, len(b.keys))] {
					c.filter.warmed += c.keys.warm(k.key)
				}
			}
			if c.keys.full() {
				return errFull
			}
			c.keys.put(k.key, k.offset, k.valued)
		}
		if b.err != nil {
			return stopAt(seg, b.Pos, b.err)
		}
	}
	if b.LastOffset >= c.Range.FirstDirty {
		c.keys.latest = b.LastOffset
	}
	return nil
}

// seek is the position at which a cleaner begins to read for records from an offset on, by the index.
func (s *CleanerSegment) seek(offset int64) (pos int64, err error) {
	if offset <= s.Base {
		return 0, nil
	}
	err = s.opened.viewIndex(func(x format.OffsetIndex) error {
		pos = max(0, int64(x.Lookup(offset).Position))
		return nil
	})
	return pos, err
}

// cleanGroups writes each group of segments into one.
func (c *cleaning) cleanGroups() error {
	l := c.log
	legacyHorizon := int64(0)
	if clean := l.between(0, c.Range.FirstDirty); len(clean) > 0 {
		legacyHorizon = clean[len(clean)-1].ModMs - c.Settings.DeleteRetentionMs
	}
	c.txns = newCleanedTxns(func(t format.AbortedTxn) error { return c.out.abort(t) })
	aborts := slices.ContainsFunc(l.Segments, func(seg CleanerSegment) bool { return len(seg.Aborted) > 0 })
	for _, segments := range group(l.between(0, c.round.EndOffset), c.Settings, c.Range.CleanTo) {
		c.out = newOutput(segments[0].Base, c.Settings)
		for i := range segments {
			seg := &segments[i]
			upper := int64(0)
			if i+1 < len(segments) {
				upper = segments[i+1].Base
			} else if aborts {
				var err error
				if upper, err = nextOffset(seg); err != nil {
					return err
				}
			}
			c.txns.add(l.abortedIn(seg.Base, upper))
			c.filter.keepLegacy = seg.ModMs > legacyHorizon
			c.round.Segments = append(c.round.Segments, SegmentRound{Base: seg.Base, Size: seg.Size, Into: segments[0].Base})
			c.segment = &c.round.Segments[len(c.round.Segments)-1]
			known := c.memory.batches[seg.Base]
			err := c.eachLooked(seg, 0, func(l *looker, b *looked, _ *runResult) { l.lookFate(b, known.at(b.Pos)) },
				func(b *looked) error { return c.cleanBatch(seg, b) })
			if err != nil {
				return err
			}
		}
		if err := c.out.finish(); err != nil {
			return stopAt(&segments[len(segments)-1], segments[len(segments)-1].Size, err)
		}
		c.round.After = append(c.round.After, c.out.after)
		c.round.Exact = c.round.Exact && c.out.after.Exact
		c.round.BytesKept += c.out.after.Size
	}
	return nil
}

// cleanBatch is RecordFilter.checkBatchRetention and what MemoryRecords.filterTo makes of it.
func (c *cleaning) cleanBatch(seg *CleanerSegment, b *looked) error {
	c.round.BytesRead += b.Size()
	if !b.valid {
		if c.round.WrongCRC++; c.round.WrongCRC == 1 {
			c.round.FirstWrong = Place{seg.Base, b.Pos}
		}
	}
	gone, dropped, err := c.dropped(b)
	if err != nil {
		return stopAt(seg, b.Pos, err)
	}
	keepEmpty := c.lastOfProducer(&b.Batch) || b.NextOffset() == c.log.HighWatermark
	if dropped && !keepEmpty {
		c.drop(seg, &b.Batch, int64(max(b.Count, 0)))
		return nil
	}
	out, marker := &b.fate, gone && b.Control()
	if marker && out.err == nil && out.kept > 0 {
		out = &b.marked
	}
	if out.err != nil {
		return stopAt(seg, b.Pos, out.err)
	}
	c.round.RecordsRead += out.records
	if dropped {
		c.drop(seg, &b.Batch, out.records)
		return c.keepEmpty(seg, &b.Batch)
	}
	if c.Watch != nil {
		c.watch(seg, &b.Batch)
	}
	c.segment.Records += out.records
	c.segment.Kept += out.kept
	c.segment.Removed.Add(out.removed)
	c.round.RecordsKept += out.kept
	switch {
	case out.kept > 0:
		return c.keep(seg, b, out, marker)
	case keepEmpty:
		return c.keepEmpty(seg, &b.Batch)
	}
	return nil
}

// dropped reports whether nothing is left of the transaction that a batch belongs to, and whether the batch's records
// go therefore now: those of an aborted transaction at once, a marker when its horizon is past.
func (c *cleaning) dropped(b *looked) (gone, dropped bool, err error) {
	if !b.Control() {
		gone = c.txns.data(&b.Batch)
		return gone, gone, nil
	}
	if b.err != nil {
		return false, false, b.err
	}
	gone, err = c.txns.control(&b.Batch, b.typ, b.hasType)
	return gone, gone && b.HasDeleteHorizon() && b.BaseTimestamp <= c.filter.nowMs, err
}

// drop counts the records of a batch that go together.
func (c *cleaning) drop(seg *CleanerSegment, b *format.Batch, records int64) {
	c.segment.Records += records
	if b.Control() {
		c.segment.Removed.Marker += records
		return
	}
	c.segment.Removed.Aborted += records
	if c.Watch == nil {
		return
	}
	c.records.Reset(b)
	var rec format.Record
	for c.records.Next(&rec) {
		c.Watch(seg, b, &rec, Aborted, 0)
	}
}

// watch tells of the records of a data batch that are looked at one by one.
func (c *cleaning) watch(seg *CleanerSegment, b *format.Batch) {
	if b.Control() {
		return
	}
	c.records.Reset(b)
	var rec format.Record
	for c.records.Next(&rec) {
		facts := c.filter.facts(&rec)
		facts.key = c.filter.hasher.hash(rec.Key)
		v, by := c.filter.judge(b, &facts)
		c.Watch(seg, b, &rec, v, by)
	}
}

// lastOfProducer reports whether the batch holds what a broker knows of an active producer.
func (c *cleaning) lastOfProducer(b *format.Batch) bool {
	last, ok := c.log.Producers[b.ProducerID]
	switch {
	case !ok || b.ProducerID < 0:
		return false
	case last.LastOffset >= 0:
		return b.LastOffset == last.LastOffset
	}
	return b.Control() && b.ProducerEpoch == last.Epoch
}

// keep writes what stays of a batch.
func (c *cleaning) keep(seg *CleanerSegment, b *looked, out *fate, marker bool) error {
	if out.changed && !b.valid {
		c.round.Rewritten++
	}
	switch {
	case (out.tombstone || marker) && !b.HasDeleteHorizon():
		c.round.NewHorizons++
		c.round.NextHorizonMs = min(c.round.NextHorizonMs, c.filter.horizonMs)
	case out.tombstone || marker:
		c.round.NextHorizonMs = min(c.round.NextHorizonMs, b.BaseTimestamp)
	}
	return c.write(seg, b.Pos, format.BatchRef{Size: out.size, BaseOffset: out.base, LastOffset: out.last,
		MaxTimestampMs: out.maxMs}, out.exact)
}

// keepEmpty writes the header of a batch alone.
func (c *cleaning) keepEmpty(seg *CleanerSegment, b *format.Batch) error {
	if b.Legacy() {
		return stopAt(seg, b.Pos, &format.Error{What: "batch", Pos: b.Pos, Want: "magic 2, to keep it without records",
			Got: "magic " + strconv.Itoa(int(b.Magic)), Err: format.ErrValue})
	}
	c.round.EmptyBatches++
	return c.write(seg, b.Pos, format.BatchRef{Size: format.BatchHeaderSize, BaseOffset: b.BaseOffset,
		LastOffset: b.LastOffset, MaxTimestampMs: b.MaxTimestamp}, true)
}

func (c *cleaning) write(seg *CleanerSegment, pos int64, ref format.BatchRef, exact bool) error {
	err := c.out.append(ref, exact)
	if err == nil {
		return nil
	}
	return &Stop{Place: Place{seg.Base, pos}, Splits: errors.Is(err, format.ErrOffsetOverflow), Err: err}
}

// output is a segment that is written.
type output struct {
	after   SegmentAfter
	index   *format.IndexBuilder
	lastTxn int64
	hasTxn  bool
}

func newOutput(base int64, s *CleanerSettings) output {
	index := format.NewIndexBuilder(base, s.IndexInterval)
	index.Limit(s.SegmentIndexBytes)
	return output{after: SegmentAfter{Base: base, Exact: true}, index: index}
}

const txnEntrySize = 34

// append adds a batch (LogSegment.append).
func (o *output) append(ref format.BatchRef, exact bool) error {
	ref.Pos = o.after.Size
	o.after.Size += ref.Size
	o.after.Exact = o.after.Exact && exact
	return o.index.Add(ref)
}

// abort writes a transaction into the transaction index.
func (o *output) abort(t format.AbortedTxn) error {
	if o.hasTxn && t.LastOffset <= o.lastTxn {
		return &format.Error{What: "aborted transaction", Want: "a last offset above " + strconv.FormatInt(o.lastTxn, 10),
			Got: strconv.FormatInt(t.LastOffset, 10), Err: format.ErrTxnIndexOrder}
	}
	o.lastTxn, o.hasTxn = t.LastOffset, true
	o.after.TxnIndexSize += txnEntrySize
	return nil
}

// finish closes the segment.
func (o *output) finish() error {
	err := o.index.Finish()
	o.after.IndexSize, o.after.TimeIndexSize = int64(len(o.index.OffsetIndexBytes())), int64(len(o.index.TimeIndexBytes()))
	return err
}

// nextOffset is the offset after the last batch of a segment, its base offset if it has none.
func nextOffset(seg *CleanerSegment) (int64, error) {
	next := seg.Base
	err := seg.Log.View(func(data []byte) error {
		s := format.NewScanner(data, 0, seg.Base)
		s.Trust(format.TrustBlindly)
		for s.Next() {
			if b := s.Batch(); b != nil {
				next = b.NextOffset()
			}
		}
		return nil
	})
	return next, err
}
