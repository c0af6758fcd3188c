package lookup

import (
	"context"
	"crypto/sha256"
	"encoding/binary"

	"kseg/format"
	"kseg/logdir"
)

// Regime says how an index relates to its batches.
type Regime uint8

// The regimes.
const (
	NoRegime Regime = iota // there is no batch
	Plateau                // every batch but the first of a segment is indexed: a smaller interval adds nothing
	Thinning               // some are
	Cliff                  // none is: lookups scan from the start of the segment
)

// String is the regime's name in reports.
func (r Regime) String() string { return [...]string{"", "plateau", "thinning", "cliff"}[r] }

// A Density is one row of a comparison: the indexes of a partition as they are, or as an interval would make them.
type Density struct {
	Path             string
	Topic, Partition string // "" for a directory that is not named as a partition's
	Supposed         int64  // the interval of a what-if, −1 for the files' own indexes
	Interval         Interval
	// PerAppend is true if an entry is of the kind that only brokers before 4.0.1 write, one an append.
	PerAppend bool
	Regime    Regime
	Totals
	LogBytes int64
	// SmallestBatch and LargestBatch are bytes; of the batches that are not a segment's last.
	SmallestBatch, LargestBatch int64
	Missing                     int // segments without an index file
	// Gain is what a rebuild would make of an index with PerAppend, else nil.
	Gain *Density
	// Against is the row that this one is set side by side with, nil if there is none.
	Against     *Density
	Curve       SegmentCurve
	fingerprint [sha256.Size]byte
	below       int64 // see evidence
}

// A SegmentCurve is the curve of the segment whose lookups cost most.
type SegmentCurve struct {
	Base, LastOffset, Bound int64
	Curve                   *Curve
}

// Maps is the number of memory maps that a broker needs for the segments: two each (.index and .timeindex).
func (d *Density) Maps() int64 { return 2 * d.Segments }

// SameIndexes reports whether the offset indexes of both are the same, byte for byte, over segments of the same names.
func (d *Density) SameIndexes(o *Density) bool { return d.fingerprint == o.fingerprint }

// SameCost reports whether nothing that a Density counts differs.
func (d *Density) SameCost(o *Density) bool {
	a, b := d.Totals, o.Totals
	a.WorstSegment, b.WorstSegment = 0, 0
	return a == b && d.Regime == o.Regime && d.PerAppend == o.PerAppend
}

// Density measures the partition's indexes as they are and as each of the intervals would make them, in one pass over
// the logs. The first row is the files' own.
func (p *Partition) Density(ctx context.Context, intervals []int64, progress Progress) ([]*Density, error) {
	rows, err := p.measureDensity(ctx, intervals, progress)
	if err != nil {
		return nil, err
	}
	for _, row := range rows[1:] {
		row.Against = rows[0]
	}
	if !rows[0].PerAppend {
		return rows, err
	}
	// The writer's interval is not known, but it was less than the distance between any two entries.
	with := []int64{min(DefaultInterval, likely(0, rows[0].below))}
	if p.TopicInterval >= 0 {
		with[0] = p.TopicInterval
	}
	gain, err := p.measureDensity(ctx, with, nil)
	if err != nil {
		return nil, err
	}
	rows[0].Gain = gain[1]
	return rows, nil
}

func (p *Partition) measureDensity(ctx context.Context, intervals []int64, progress Progress) ([]*Density, error) {
	if len(p.Segments) == 0 {
		return nil, p.dir.NoSegment()
	}
	m := densityMeter{p: p, progress: progress, rows: []*densityRow{{supposed: -1}}}
	for _, n := range intervals {
		m.rows = append(m.rows, &densityRow{supposed: n})
	}
	for _, seg := range p.Segments {
		if err := m.measure(ctx, seg); err != nil {
			return nil, err
		}
	}
	var out []*Density
	for _, row := range m.rows {
		out = append(out, m.density(row))
	}
	return out, nil
}

// densityMeter goes through a partition's segments.
type densityMeter struct {
	p         *Partition
	progress  Progress
	evidence  evidence
	rows      []*densityRow
	smallest  int64 // batch with another after it
	largest   int64
	indexable int64 // batches that are not the first of their segment
	logBytes  int64
	missing   int
}

type densityRow struct {
	supposed int64
	segments []*SegmentSweep
	worst    *SegmentSweep // the only one whose curve is kept
	hash     []byte
}

// measure walks the headers of one segment, feeding all the supposed indexes at once, and sweeps each.
func (m *densityMeter) measure(ctx context.Context, seg *logdir.Segment) error {
	return m.p.view(ctx, seg, func(s *Segment) error {
		own := s.Index
		takers := []func(format.BatchRef){m.p.pace(seg.Log, s.Log, m.progress), m.batchTaker()}
		var supposed []*rebuild
		for _, row := range m.rows[1:] {
			r := newRebuild(s.Base, row.supposed)
			supposed = append(supposed, r)
			takers = append(takers, r.take)
		}
		s.keeps = true
		survey := s.Survey(takers...)
		m.evidence.add(&survey)
		m.logBytes += survey.LogSize
		if seg.Index == nil && survey.Batches > 0 {
			m.missing++
		}
		for i, row := range m.rows {
			if s.Index = own; i > 0 {
				s.Index = supposed[i-1].finish().OffsetIndex()
			}
			row.add(s, survey, seg)
		}
		return nil
	})
}

// batchTaker returns a taker of batches that notes the sizes of those with another after them: whether a batch is
// indexed depends on what lies before it.
func (m *densityMeter) batchTaker() func(format.BatchRef) {
	before := int64(-1)
	return func(b format.BatchRef) {
		if before >= 0 {
			if m.indexable++; m.indexable == 1 || before < m.smallest {
				m.smallest = before
			}
			m.largest = max(m.largest, before)
		}
		before = b.Size
	}
}

// add sweeps a segment through the index that s has now.
func (row *densityRow) add(s *Segment, survey Survey, seg *logdir.Segment) {
	one := &SegmentSweep{Base: s.Base, Active: seg.Next == nil, Survey: survey, Entries: int64(s.Index.Len()),
		Curve: NewCurve(s.Base)}
	one.LastOffset = lastOffset(seg, &survey)
	one.Sweep = s.Sweep(one.LastOffset, survey.Batches, one.Curve.Add)
	switch worst := row.worst; {
	case one.Curve == nil:
	case worst != nil && worst.Sweep.Bytes.Max >= one.Sweep.Bytes.Max:
		one.Curve = nil
	default:
		if worst != nil {
			worst.Curve = nil
		}
		row.worst = one
	}
	row.segments = append(row.segments, one)
	row.hash = binary.BigEndian.AppendUint64(row.hash, uint64(s.Base))
	sum := sha256.New()
	for i := range s.Index.Len() {
		e := s.Index.Entry(i)
		sum.Write(format.AppendOffsetEntry(nil, s.Base, e))
	}
	row.hash = sum.Sum(row.hash)
}

func (m *densityMeter) density(row *densityRow) *Density {
	d := &Density{Path: m.p.Display, Topic: m.p.Topic, Partition: m.p.Name, Supposed: row.supposed,
		Totals: total(row.segments), LogBytes: m.logBytes,
		SmallestBatch: m.smallest, LargestBatch: m.largest, fingerprint: sha256.Sum256(row.hash)}
	d.Interval = m.p.interval(row.supposed, &m.evidence)
	if row.supposed < 0 {
		d.PerAppend, d.Missing, d.below = m.evidence.PerAppend > 0, m.missing, m.evidence.below
	}
	switch {
	case d.Batches == 0:
	case d.Entries >= m.indexable:
		d.Regime = Plateau
	case d.Entries == 0:
		d.Regime = Cliff
	default:
		d.Regime = Thinning
	}
	for _, s := range row.segments {
		if s.Curve != nil {
			d.Curve = SegmentCurve{s.Base, s.LastOffset, d.Interval.bound(&s.Survey), s.Curve}
		}
	}
	return d
}
