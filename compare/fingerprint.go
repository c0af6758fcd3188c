package compare

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"iter"
	"math"
	"slices"

	"kseg/format"
	"kseg/logdir"
	"kseg/state"
	"kseg/walk"
)

// RangeOffsets is how many offsets a range of a fingerprint has. Ranges begin at its multiples, so that all machines
// cut alike.
const RangeOffsets = 4096

// Fingerprint is what is kept of the records of a range of offsets.
type Fingerprint struct {
	Partition string
	TopicID   format.UUID // zero if unknown
	// First and Last are the offsets of the range, inclusive, as far as the log goes.
	First, Last int64
	LeaderEpoch int32 // of the last record, −1 for none
	Records     int64
	Digest      uint64 // format.RangeDigest of the records
	// Marks are for each record how many offsets were passed over before it, as a varint, and the last two bytes of its
	// digest, big-endian: by them the offset at which two ranges part is found.
	Marks []byte
	// Damaged: bytes of the range are no sound batch. Compacted: the log cleaner has been here.
	Damaged, Compacted bool
	LogStart, LogEnd   int64
}

// rangeIndex is the number of the range of an offset.
func rangeIndex(offset int64) int64 { return offset / RangeOffsets }

// summed are the digests of the records of a run, made by a worker.
type summed struct {
	sums   []record
	counts []int // of records, by batch; −1 for a batch that is not sound
	digest format.RecordDigest
	reader *format.RecordReader
}

// printer makes the fingerprints of one partition.
type printer struct {
	now      Fingerprint
	open     bool
	digest   format.RangeDigest
	next     int64 // after the last record of the range, or its beginning
	end      int64 // after the last batch
	damaged  bool  // since the last record
	cleaned  bool
	yield    func(*Fingerprint) error
	notRead  []error
	progress func(int64)
}

// Fingerprints makes the fingerprints of a partition, range by range. NotRead is what could not be read; the error is
// that of the context or of yield.
func Fingerprints(ctx context.Context, name string, p *logdir.Partition, dirs *state.Dirs, opts *Options,
	yield func(*Fingerprint) error) (notRead []error, err error) {
	l := newLog(p, dirs)
	pr := &printer{digest: format.NewRangeDigest(), end: l.Start, cleaned: cleaned(p, dirs), yield: yield,
		progress: opts.Progress,
		notRead:  l.unread}
	pr.now = Fingerprint{Partition: name, TopicID: l.TopicID, LogStart: l.Start, LeaderEpoch: -1, First: l.Start}
	for i, seg := range p.Segments {
		if i+1 < len(p.Segments) && p.Segments[i+1].Base <= l.Start {
			continue
		}
		logs := slices.Values([]*walk.Log{{File: seg.Log, Base: seg.Base}})
		err := walk.Fold(ctx, logs, walk.Options{Jobs: opts.Jobs}, func(gate format.Gate) walk.Look[summed] {
			return func(r *walk.Run[summed]) error { return r.Result.look(r, gate, opts) }
		}, func(r *walk.Run[summed]) error { return pr.take(r, seg.Next == nil) })
		if err != nil {
			if ctx.Err() != nil {
				return pr.notRead, ctx.Err()
			}
			pr.notRead, pr.damaged = append(pr.notRead, err), true
		}
	}
	return pr.notRead, pr.finish()
}

// look makes the digests of all records of a run.
func (s *summed) look(r *walk.Run[summed], gate format.Gate, opts *Options) error {
	if s.reader == nil {
		s.reader = format.NewRecordReader(opts.MaxBatchBytes, gate)
	}
	defer s.reader.Release()
	s.sums, s.counts = s.sums[:0], s.counts[:0]
	for i := range r.Batches {
		b := &r.Batches[i]
		if !b.Plausible() || !b.Valid() {
			s.counts = append(s.counts, -1)
			continue
		}
		from := len(s.sums)
		s.reader.Reset(b)
		var rec format.Record
		for s.reader.Next(&rec) {
			s.sums = append(s.sums, record{offset: rec.Offset, sum: s.digest.Sum(b, &rec)})
		}
		n := len(s.sums) - from
		if s.reader.Err() != nil && !s.reader.Unnoticed(true) {
			n, s.sums = -1, s.sums[:from]
		}
		s.counts = append(s.counts, n)
	}
	return nil
}

// take folds a run into the ranges.
func (pr *printer) take(r *walk.Run[summed], last bool) error {
	if pr.progress != nil {
		pr.progress(r.To - r.From)
	}
	sums, i := r.Result.sums, -1
	return r.Each(func(b *format.Batch) error {
		i++
		n := r.Result.counts[i]
		if n < 0 || b.LastOffset < pr.end || b.LastOffset == math.MaxInt64 {
			pr.damaged = true
			sums = sums[max(n, 0):]
			return nil
		}
		pr.cleaned = pr.cleaned || thinned(b)
		for _, s := range sums[:n] {
			if err := pr.record(s, b.LeaderEpoch); err != nil {
				return err
			}
		}
		sums, pr.end = sums[n:], max(pr.end, b.NextOffset())
		return nil
	}, func(h *format.Hole) error {
		if h.Kind == format.Unreadable {
			pr.notRead = append(pr.notRead, h.Err)
		}
		pr.damaged = pr.damaged || !(&walk.Damage{Hole: h}).Tail() || !last
		return nil
	})
}

// record takes the next record.
func (pr *printer) record(s record, epoch int32) error {
	if s.offset < pr.now.LogStart {
		return nil
	}
	if pr.open && rangeIndex(s.offset) != rangeIndex(pr.now.First) {
		if err := pr.flush(rangeIndex(pr.now.First)*RangeOffsets + RangeOffsets - 1); err != nil {
			return err
		}
	}
	if !pr.open {
		pr.open = true
		pr.now.First = max(rangeIndex(s.offset)*RangeOffsets, pr.now.LogStart)
		pr.now.Records, pr.now.Marks, pr.now.Damaged, pr.next = 0, pr.now.Marks[:0], false, pr.now.First
		pr.digest.Reset()
	}
	pr.now.Damaged, pr.damaged = pr.now.Damaged || pr.damaged, false
	pr.now.Marks = binary.AppendUvarint(pr.now.Marks, uint64(s.offset-pr.next))
	pr.now.Marks = binary.BigEndian.AppendUint16(pr.now.Marks, uint16(s.sum))
	pr.digest.Add(s.sum)
	pr.now.Records, pr.now.LeaderEpoch, pr.next = pr.now.Records+1, epoch, s.offset+1
	return nil
}

// flush hands on the present range, of which the last offset is known.
func (pr *printer) flush(last int64) error {
	pr.open = false
	pr.now.Last, pr.now.Digest, pr.now.Compacted, pr.now.LogEnd = last, pr.digest.Sum(), pr.cleaned, max(pr.end, last+1)
	return pr.yield(&pr.now)
}

// finish hands on the last range. A log without records has one too, which tells where it begins and ends.
func (pr *printer) finish() error {
	if !pr.open {
		pr.now.First, pr.now.Records, pr.now.Marks = pr.end, 0, nil
		pr.digest.Reset()
	}
	pr.now.Damaged = pr.now.Damaged || pr.damaged
	last := pr.end - 1
	if pr.open {
		last = min(last, rangeIndex(pr.now.First)*RangeOffsets+RangeOffsets-1)
	}
	pr.open = false
	pr.now.Last, pr.now.Digest, pr.now.Compacted, pr.now.LogEnd = last, pr.digest.Sum(), pr.cleaned, pr.end
	return pr.yield(&pr.now)
}

// mark is what a fingerprint tells of one record.
type mark struct {
	offset int64
	sum    uint16
}

// marks yields those of a range. It ends early where they make no sense.
func (f *Fingerprint) marks() iter.Seq[mark] {
	return func(yield func(mark) bool) {
		next := f.First
		for raw := f.Marks; len(raw) > 0; {
			gap, n := binary.Uvarint(raw)
			if n <= 0 || len(raw) < n+2 || gap > RangeOffsets {
				return
			}
			m := mark{next + int64(gap), binary.BigEndian.Uint16(raw[n:])}
			next, raw = m.offset+1, raw[n+2:]
			if m.offset > f.Last || !yield(m) {
				return
			}
		}
	}
}

// Prints are the fingerprints of one partition of one side, in order.
type Prints struct {
	Name string
	Path string
	// Each calls yield for each fingerprint; it may be called once. It returns what could not be read.
	Each func(ctx context.Context, yield func(*Fingerprint) error) ([]error, error)
	// Local is the partition, nil if only its fingerprints are here.
	Local *logdir.Partition
}

// comparePrints compares the fingerprints of two sides of a partition.
func comparePrints(ctx context.Context, name string, a, b *Prints) (*Comparison, error) {
	c := &Comparison{Name: name, A: &Log{Path: a.Path, noBytes: a.Local == nil, read: true},
		B: &Log{Path: b.Path, noBytes: b.Local == nil, read: true}}
	for _, s := range []struct {
		p *Prints
		l *Log
	}{{a, c.A}, {b, c.B}} {
		if s.p.Local != nil {
			s.l.Partition = s.p.Local
			for _, seg := range s.p.Local.Segments {
				s.l.Bytes += seg.Log.Size
			}
		}
	}
	pull := func(p *Prints, l *Log) (func() (*Fingerprint, bool), func()) {
		return iter.Pull(func(yield func(*Fingerprint) bool) {
			notRead, err := p.Each(ctx, func(f *Fingerprint) error {
				if !yield(f) {
					return errDiffer
				}
				return nil
			})
			if err != nil && !errors.Is(err, errDiffer) {
				notRead = append(notRead, err)
			}
			c.NotRead = append(c.NotRead, notRead...)
		})
	}
	nextA, stopA := pull(a, c.A)
	defer stopA()
	nextB, stopB := pull(b, c.B)
	defer stopB()
	m := printMerge{c: c}
	fa, okA := nextA()
	fb, okB := nextB()
	for okA || okB {
		order := 0
		if okA && okB {
			order = cmp.Compare(rangeIndex(fa.First), rangeIndex(fb.First))
		}
		switch {
		case !okB || okA && order < 0:
			m.alone(c.A, fa, c.B)
			fa, okA = nextA()
		case !okA || order > 0:
			m.alone(c.B, fb, c.A)
			fb, okB = nextB()
		default:
			m.both(fa, fb)
			fa, okA = nextA()
			fb, okB = nextB()
		}
	}
	return m.finish(), ctx.Err()
}

// printMerge compares ranges.
type printMerge struct {
	c              *Comparison
	cleanA, cleanB bool
}

// note takes what a range says of its log.
func (m *printMerge) note(l *Log, f *Fingerprint) {
	l.Start, l.End, l.TopicID = f.LogStart, f.LogEnd, f.TopicID
	l.Records += f.Records
	if f.Damaged {
		l.Damages = append(l.Damages[:min(len(l.Damages), most-1)], Place{File: l.Path, Offsets: &Range{f.First, f.Last}})
	}
	m.cleanA, m.cleanB = m.cleanA || l == m.c.A && f.Compacted, m.cleanB || l == m.c.B && f.Compacted
}

// alone takes a range that the other side has no records of.
func (m *printMerge) alone(l *Log, f *Fingerprint, other *Log) {
	m.note(l, f)
	for k := range f.marks() {
		m.missing(other, k.offset)
	}
}

// missing notes a record that one side does not have.
func (m *printMerge) missing(l *Log, offset int64) {
	l.missed = append(l.missed[:min(len(l.missed), 1<<20)], offset)
}

// both compares two ranges of the same number.
func (m *printMerge) both(a, b *Fingerprint) {
	m.note(m.c.A, a)
	m.note(m.c.B, b)
	if a.First == b.First && a.Last == b.Last && a.Records == b.Records && a.Digest == b.Digest {
		m.c.Same += a.Records
		m.c.diverge(a.Records, a.Records)
		return
	}
	nextB, stop := iter.Pull(b.marks())
	defer stop()
	kb, okB := nextB()
	for ka := range a.marks() {
		for okB && kb.offset < ka.offset {
			m.missing(m.c.A, kb.offset)
			kb, okB = nextB()
		}
		if !okB || kb.offset > ka.offset {
			m.missing(m.c.B, ka.offset)
			continue
		}
		if ka.sum == kb.sum {
			m.c.Same++
		} else if m.c.Differ++; m.c.Differ == 1 {
			m.c.DivergedAt, m.c.Range = ka.offset, &Range{rangeIndex(ka.offset) * RangeOffsets,
				rangeIndex(ka.offset)*RangeOffsets + RangeOffsets - 1}
		}
		m.c.diverge(1, 1)
		kb, okB = nextB()
	}
	for ; okB; kb, okB = nextB() {
		m.missing(m.c.A, kb.offset)
	}
}

// diverge counts records from the divergence on.
func (c *Comparison) diverge(a, b int64) {
	if c.Differ > 0 {
		c.A.Diverged, c.B.Diverged = c.A.Diverged+a, c.B.Diverged+b
	}
}

// finish draws the conclusion: what is missing inside the offsets that both have is the cleaner's, if it has been
// there.
func (m *printMerge) finish() *Comparison {
	c := m.c
	c.SharedFrom = max(c.A.Start, c.B.Start)
	end := min(c.A.End, c.B.End)
	c.SharedTo, c.Nothing = end-1, end <= c.SharedFrom && c.A.Records+c.B.Records > 0
	for _, s := range []struct {
		l, other *Log
		cleaned  bool
	}{{c.A, c.B, m.cleanA}, {c.B, c.A, m.cleanB}} {
		for _, offset := range s.l.missed {
			if c.Differ > 0 && offset >= c.DivergedAt {
				s.other.Diverged++
			}
			switch {
			case offset < c.SharedFrom || offset >= end:
			case len(s.l.Damages) > 0:
				s.l.Doubtful++
			default:
				if s.l.Missing++; !s.cleaned {
					if s.l.Lost++; s.l.Lost == 1 {
						s.l.FirstLost = offset
					}
				}
			}
		}
		s.l.missed = nil
	}
	c.Result = c.result()
	return c
}
