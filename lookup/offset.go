package lookup

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"kseg/format"
	"kseg/logdir"
	"kseg/render"
)

// Outcome is how a lookup in a partition ended.
type Outcome uint8

// The outcomes. Only Found is a hit.
const (
	Found      Outcome = iota
	AtEnd              // the offset is the log end offset: a broker answers with nothing and waits for records
	BelowStart         // OffsetOutOfRangeException: below the log start offset
	BeyondEnd          // OffsetOutOfRangeException: beyond the log end offset
	Nothing            // there is no record to be had in the segments that were looked at
	Failed             // the broker's reader throws
	// OffsetMovedToTieredStorageException to a follower; for a consumer the broker reads from remote storage
	Remote
)

// Options say how to look up.
type Options struct {
	Interval int64 // as if the indexes had been written with this index.interval.bytes; −1: as they are
	Records  bool  // keep the records of the hit
}

// A Result is one lookup in a partition.
type Result struct {
	Partition *Partition
	Target    int64 // the offset looked for; for a timestamp, the one its time index entry led to
	Outcome   Outcome
	Tries     []*Try // the segments asked, in order; the last one decides
	Interval  Interval
	Bound     int64 // bytes; of the last try
	// FirstBase and LastBase are the partition's first and last segment that were given, Segments their count.
	FirstBase, LastBase int64
	Segments            int
	Start, End          int64 // log start and log end offset, −1 where they did not have to be known
	Batch               *HitBatch
	Time                *TimeResult // nil for lookups by offset
	Notes               []string    // whole sentences: what a reader should know beside the answer
}

// A Try is the search in one segment.
type Try struct {
	Base   int64
	Active bool // the partition's last segment
	Index  IndexStep
	Time   *IndexStep // nil for lookups by offset
	Scan   Scan
	Hops   []Hop // the first 10,000 batches skipped
	Survey Survey
	// Linear is what a walk over the whole log finds for the same offset, going on after damage; nil if nothing.
	Linear *Hop
	// Before is the offset after the last batch before Linear, or before the end; −1 if there is none.
	Before int64
	// Inside is the batch in the middle of which the scan began, nil if it began where a batch does.
	Inside *Hop
}

// An IndexStep is the search in an index file.
type IndexStep struct {
	File     string // relative to the operand; "" if there is none, or if it was rebuilt
	Missing  bool
	Supposed bool // rebuilt for Options.Interval
	Entries  int
	Search   format.Search
	Key      int64 // of the entry found: offset or timestamp; without one, the base offset or −1
	Value    int64 // position in the log, or the time entry's offset
	// ZeroTail is the number of zero slots at the end of the file, StrayBytes what lies after the last whole slot,
	// Disorder the first slot that is not above the one before it, or −1.
	ZeroTail, StrayBytes, Disorder int
}

// A HitBatch is what a consumer gets from the batch found.
type HitBatch struct {
	Control    bool
	CRCValid   bool
	Records    int64 // in the batch
	Discarded  int64 // of these, below the offset asked for: a consumer throws them away
	FirstAfter int64 // the first offset that is delivered, −1 if none
	List       []Record
	Err        error // the records cannot all be read
}

// A Record is a record of the hit. Its bytes are copies.
type Record struct {
	Offset, TimestampMs int64
	Key, Value          []byte // nil: null
	Discarded           bool
}

// LookupOffset replays LocalLog.read for one offset: the floor segment, its index, the scan, and the segments after it
// for as long as nothing is found.
func (p *Partition) LookupOffset(ctx context.Context, offset int64, o Options) (*Result, error) {
	r, err := p.lookupOffset(ctx, offset, o)
	return p.again(r, err, func(after *Partition) (*Result, error) { return after.lookupOffset(ctx, offset, o) })
}

func (p *Partition) lookupOffset(ctx context.Context, offset int64, o Options) (*Result, error) {
	r, err := p.newResult()
	if err != nil {
		return nil, err
	}
	r.Target = offset
	if p.Tiered && p.LogStart >= 0 && offset >= p.LogStart && offset < r.FirstBase {
		r.Outcome = Remote
		return r, r.finish(ctx, o)
	}
	if r.Start >= 0 && offset < r.Start {
		r.Outcome = BelowStart
		return r, r.finish(ctx, o)
	}
	floor := p.floor(offset)
	if floor < 0 {
		r.note("Offset %d is before segment %d: a broker would ask an earlier one, which is not among those looked at. "+
			"The answer is what this one would give.", offset, r.FirstBase)
		floor = 0
	}
	if offset >= r.FirstBase && p.Segments[floor].Next == nil {
		done, err := r.atEnd(ctx, offset)
		if err != nil {
			return nil, err
		}
		if done {
			return r, r.finish(ctx, o)
		}
	}
	r.Outcome = Nothing
	for _, s := range p.Segments[floor:] {
		try, err := r.try(ctx, s, offset, o)
		if err != nil {
			return nil, err
		}
		r.Tries = append(r.Tries, try)
		if try.Scan.Found {
			r.Outcome = Found
			break
		}
		if try.Scan.Err != nil {
			r.Outcome = Failed
			break
		}
	}
	return r, r.finish(ctx, o)
}

func (p *Partition) newResult() (*Result, error) {
	n := len(p.Segments)
	if n == 0 {
		return nil, p.dir.NoSegment()
	}
	r := &Result{Partition: p, FirstBase: p.Segments[0].Base, LastBase: p.Segments[n-1].Base, Segments: n,
		Start: p.LogStart, End: -1}
	if p.Segments[0].Prev == nil {
		r.Start = max(p.LogStart, r.FirstBase)
	}
	return r, nil
}

// floor is the index of the segment with the greatest base offset at or below offset, −1 if there is none
// (LogSegments.floorSegment).
func (p *Partition) floor(offset int64) int {
	at := -1
	for i, s := range p.Segments {
		if s.Base <= offset {
			at = i
		}
	}
	return at
}

// atEnd is true if the offset is not below the log end offset.
func (r *Result) atEnd(ctx context.Context, offset int64) (bool, error) {
	var end logEnd
	err := r.Partition.view(ctx, r.Partition.last(), func(s *Segment) error {
		end = s.end()
		return nil
	})
	if err != nil {
		return false, err
	}
	r.End = end.batches
	switch {
	case end.err != nil:
		r.note("After a clean start a broker would read the end of the log and fail: %v.", end.err)
	case end.loaded != end.batches:
		r.note("The last entry of the offset index leads nowhere: after a clean start a broker would take %d for the log "+
			"end offset, though batches up to %d are there.", end.loaded, end.batches-1)
	}
	switch {
	case offset > end.batches:
		r.Outcome = BeyondEnd
	case offset == end.batches:
		r.Outcome = AtEnd
	default:
		return false, nil
	}
	return true, nil
}

// try searches one segment and copies out all that is to be shown.
func (r *Result) try(ctx context.Context, seg *logdir.Segment, offset int64, o Options) (*Try, error) {
	try := &Try{Base: seg.Base, Active: seg.Next == nil}
	err := r.Partition.view(ctx, seg, func(s *Segment) error {
		try.Index = stepOf(seg.Index, s.Index.Len(), offsetShape{s.diskIndex})
		if o.Interval >= 0 {
			s.Index = s.Rebuilt(o.Interval).OffsetIndex()
			try.Index = IndexStep{Supposed: true, Entries: s.Index.Len(), Disorder: -1}
		}
		try.Index.searchOffset(s, offset)
		try.Scan = s.scan(max(0, try.Index.Value), offset, &try.Hops)
		try.Survey = r.Partition.survey(seg, s, try.linear(offset), try.boundary(try.Scan.Start))
		if try.Scan.Found {
			r.Batch = s.hitBatch(try.Scan.Hit, offset, o.Records)
		}
		return nil
	})
	return try, err
}

// shape is what an index file looks like beside its entries.
type shape interface {
	ZeroTail() int
	StrayBytes() int
	keyAt(i int) int64
}

type offsetShape struct{ format.OffsetIndex }

func (x offsetShape) keyAt(i int) int64 { return x.Entry(i).Offset }

type timeShape struct{ format.TimeIndex }

func (x timeShape) keyAt(i int) int64 { return x.Entry(i).TimestampMs }

// stepOf describes the index file f, of which the broker uses entries slots.
func stepOf(f *logdir.File, entries int, x shape) IndexStep {
	out := IndexStep{Missing: f == nil, Entries: entries, Disorder: -1, ZeroTail: x.ZeroTail(), StrayBytes: x.StrayBytes()}
	if f != nil {
		out.File = f.Rel
	}
	for i := 1; i < entries && out.Disorder < 0; i++ {
		if x.keyAt(i) <= x.keyAt(i-1) {
			out.Disorder = i
		}
	}
	return out
}

func (x *IndexStep) searchOffset(s *Segment, offset int64) {
	x.Search = s.Index.Search(offset, nil)
	x.Key, x.Value = s.Base, 0
	if x.Search.Slot >= 0 {
		e := s.Index.Entry(x.Search.Slot)
		x.Key, x.Value = e.Offset, int64(e.Position)
	}
}

// linear returns a taker of batches that keeps the first that ends at offset or after it.
func (t *Try) linear(offset int64) func(format.BatchRef) {
	t.Before = -1
	return func(b format.BatchRef) {
		switch {
		case t.Linear != nil:
		case b.LastOffset >= offset:
			t.Linear = &Hop{Position: b.Pos, Size: b.Size, BaseOffset: b.BaseOffset, LastOffset: b.LastOffset}
		default:
			t.Before = b.LastOffset + 1
		}
	}
}

// boundary returns a taker of batches that keeps the one in whose middle a position lies.
func (t *Try) boundary(pos int64) func(format.BatchRef) {
	return func(b format.BatchRef) {
		if b.Pos < pos && pos < b.Pos+b.Size {
			t.Inside = &Hop{Position: b.Pos, Size: b.Size, BaseOffset: b.BaseOffset, LastOffset: b.LastOffset}
		}
	}
}

// hitBatch reads the records of the batch found.
func (s *Segment) hitBatch(hit Hop, offset int64, keep bool) *HitBatch {
	b, err := format.DecodeBatch(s.Log, hit.Position)
	if err != nil {
		return &HitBatch{Err: err, FirstAfter: -1}
	}
	out := &HitBatch{Control: b.Control(), CRCValid: b.Valid(), FirstAfter: -1}
	var rec format.Record
	s.reader.Reset(&b)
	clone := bytes.Clone
	if keep && s.reader.Keep() {
		clone = func(b []byte) []byte { return b }
	}
	for s.reader.Next(&rec) {
		out.Records++
		discarded := rec.Offset < offset
		if discarded {
			out.Discarded++
		} else if out.FirstAfter < 0 {
			out.FirstAfter = rec.Offset
		}
		if keep {
			out.List = append(out.List, Record{rec.Offset, rec.Timestamp, clone(rec.Key), clone(rec.Value), discarded})
		}
	}
	out.Err = s.reader.Err()
	return out
}

// finish settles the interval and the bound, and writes the notes.
func (r *Result) finish(ctx context.Context, o Options) error {
	var err error
	if r.Interval, err = r.interval(ctx, o); err != nil {
		return err
	}
	if try := r.last(); try != nil {
		r.Bound = r.Interval.bound(&try.Survey)
	}
	for _, try := range r.Tries {
		r.explainIndex(try)
		r.explainScan(try)
	}
	if r.Time != nil {
		r.explainTime()
	} else {
		r.explainLinear()
	}
	r.explainOutcome()
	return nil
}

// interval settles the interval: unless it is given, from the entries of the segments searched, and of the partition's
// other segments too if these are not too large.
func (r *Result) interval(ctx context.Context, o Options) (Interval, error) {
	p := r.Partition
	var e evidence
	searched := map[int64]bool{}
	for _, t := range r.Tries {
		e.add(&t.Survey)
		searched[t.Base] = true
	}
	bytes := int64(0)
	for _, seg := range p.Segments {
		bytes += seg.Log.Size
	}
	wanted := o.Interval < 0 && p.TopicInterval < 0 && len(r.Tries) > 0 && bytes <= format.MostInferred
	for _, seg := range p.Segments {
		if !wanted || searched[seg.Base] {
			continue
		}
		err := p.view(ctx, seg, func(s *Segment) error {
			survey := p.survey(seg, s)
			e.add(&survey)
			return nil
		})
		if err != nil {
			return Interval{}, err
		}
	}
	return p.interval(o.Interval, &e), nil
}

// wanted is the offset of the first record that the answer is about.
func (r *Result) wanted() int64 {
	if r.Time != nil {
		return r.Time.Offset
	}
	return r.Target
}

// last is the try that decides, nil if no segment was asked.
func (r *Result) last() *Try {
	if len(r.Tries) == 0 {
		return nil
	}
	return r.Tries[len(r.Tries)-1]
}

func (r *Result) note(format string, args ...any) {
	r.Notes = append(r.Notes, fmt.Sprintf(format, args...))
}

// noteRoom says what the zero slots are that the index of the active segment ends in.
func (r *Result) noteRoom(x *IndexStep) {
	r.note("%s ends in %s: room for entries to come, or the end that a crash left; not counted, as the writer would not.",
		x.File, zeroSlots(x))
}

// explainIndex says what is odd about the offset index of a segment.
func (r *Result) explainIndex(t *Try) {
	x := &t.Index
	switch {
	case x.Missing && t.Survey.Batches == 0: // made with the first entry
	case x.Missing:
		r.note("Segment %d has no offset index: every lookup scans from byte 0. A broker writes a new one when it starts "+
			"next, by recovering the segment.", t.Base)
	case x.ZeroTail > 0 && t.Active:
		r.noteRoom(x)
	case x.ZeroTail > 0:
		r.note("%s ends in %s, which a broker takes for entries of offset %d: the search is led astray.", x.File,
			zeroSlots(x), t.Base)
	}
	if x.Value < 0 && r.Time == nil {
		r.note("The entry of %s gives the negative position %d; a broker reads from byte 0 then.", x.File, x.Value)
	}
	r.explainSlots(x)
}

func zeroSlots(x *IndexStep) string {
	return render.Plural(int64(x.ZeroTail), "zero slot", "zero slots")
}

// explainSlots says what is odd about the slots of an index of either kind.
func (r *Result) explainSlots(x *IndexStep) {
	if x.StrayBytes > 0 {
		r.note("%s has %s after its last whole entry; a broker ignores them.", x.File, render.Plural(int64(x.StrayBytes),
			"trailing byte", "trailing bytes"))
	}
	if x.Disorder >= 0 && !(x.ZeroTail > 0 && x.Disorder >= x.Entries-x.ZeroTail) {
		r.note("%s is not sorted (entry %d is not above the one before): a binary search over it may land anywhere.", x.File,
			x.Disorder)
	}
}

// explainScan says what is odd about the way from the entry to the batch.
func (r *Result) explainScan(t *Try) {
	if t.Inside != nil {
		r.note("Byte %d, where the index entry leads, is inside the batch at byte %d (offsets %d–%d): a broker takes "+
			"what is there for a batch header.", t.Scan.Start, t.Inside.Position, t.Inside.BaseOffset, t.Inside.LastOffset)
	}
	if t.Scan.Start > t.Survey.LogSize {
		r.note("Byte %d, where the index entry leads, is beyond the end of the log (%d bytes): a broker finds "+
			"nothing there.", t.Scan.Start, t.Survey.LogSize)
	}
	if err := t.Scan.Err; err != nil {
		r.note("A broker throws%s at byte %d and answers the fetch with an error: %v.", exception(err), t.Scan.End, err)
	}
	for _, h := range t.Survey.Holes {
		missed := !t.Scan.Found || t.Linear != nil && t.Linear.Position != t.Scan.Hit.Position
		if missed && (h.Kind != format.ZeroTail || !t.Active) {
			r.note("The log of segment %d has %s at byte %d (%d bytes): run kseg verify.", t.Base, holeNames[h.Kind], h.Pos,
				h.Len)
		}
	}
}

var holeNames = map[format.HoleKind]string{
	format.TornTail: "the beginning of a batch and then its end", format.ZeroTail: "nothing but zeros from there on",
	format.Damage: "damage",
}

// exception names the class for the errors that have one of their own.
func exception(err error) string {
	if errors.Is(err, format.ErrEntrySize) {
		return " CorruptRecordException"
	}
	return ""
}

// missed is the batch of the log that holds or follows the offset but was not found, nil if all went well.
func (r *Result) missed() *Hop {
	for _, t := range r.Tries {
		if t.Linear != nil && (!t.Scan.Found || t.Linear.Position != t.Scan.Hit.Position) {
			return t.Linear
		}
	}
	return nil
}

// Wrong reports whether a lookup by offset led past the batch that the log has for the offset.
func (r *Result) Wrong() bool { return r.Time == nil && r.missed() != nil }

// explainLinear compares with what a scan of the whole log would have found.
func (r *Result) explainLinear() {
	try := r.last()
	if try == nil {
		return
	}
	if m := r.missed(); m != nil {
		r.note("A scan of the whole log finds offset %d in the batch at byte %d (offsets %s): the broker's way does not "+
			"lead there, its answer is wrong.", r.Target, m.Position, offsets(*m))
		return
	}
	if r.Outcome != Found {
		return
	}
	if try.Linear == nil {
		r.note("A scan of the whole log finds no batch for offset %d: what a broker takes for one at byte %d is none.",
			r.Target, try.Scan.Hit.Position)
		return
	}
	if first := try.Scan.Hit.BaseOffset; first > r.Target && r.Target >= r.FirstBase {
		r.note("The log has no batch for %s (compaction leaves such gaps, and so does a lost segment): a consumer goes on "+
			"from %d.", offsetRange(r.gapStart(), first-1), first)
	}
}

// gapStart is the offset after the last batch before the hit.
func (r *Result) gapStart() int64 {
	for i := len(r.Tries) - 1; i >= 0; i-- {
		if t := r.Tries[i]; t.Before >= 0 {
			return t.Before
		}
	}
	return r.Target
}

// explainOutcome says what the checkpoints and the batch itself add.
func (r *Result) explainOutcome() {
	p := r.Partition
	if b := r.Batch; b != nil && r.Outcome == Found {
		switch {
		case !b.CRCValid:
			r.note("The checksum of the batch does not match: a broker serves it, and a consumer that checks fails on it.")
		case errors.Is(b.Err, format.ErrTooLarge):
			r.note("The records of the batch were not read: %v.", b.Err)
		case b.Err != nil:
			r.note("The records of the batch cannot all be read: %v.", b.Err)
		}
	}
	if r.Outcome == Found && p.HighWatermark >= 0 && r.wanted() >= p.HighWatermark {
		r.note("The high watermark is %d by the checkpoint, and a consumer gets nothing from there on.", p.HighWatermark)
	}
	if len(r.Tries) > 1 && r.Outcome == Found {
		r.note("The search ended without a batch in segment %d and went on in the next.", r.Tries[0].Base)
	}
}
