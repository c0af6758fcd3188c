package ls

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"kseg/format"
	"kseg/logdir"
	"kseg/walk"
)

// Group is what batches are counted by, besides their topic and partition.
type Group string

// The groups.
const (
	NoGroup    Group = ""
	ByProducer Group = "producer"
	ByCodec    Group = "codec"
	ByDay      Group = "day"
)

// Stats are what all headers of a topic or a partition tell.
type Stats struct {
	Batches, Bytes, Records int64
	BatchBytes, BatchCounts Distribution
	CodecBytes              [8]int64 // by format.Codec
	Magics                  [3]int64 // batches by magic
	Producers               map[int64]bool
	Transactional, Control  int64 // batches
	Back                    int64 // batches whose largest timestamp is below that of one before them in the partition
	Unreadable              int64 // batches whose records could not be read, where they were asked for
	// Packed and Plain are the bytes of the compressed batches' records as stored and uncompressed, where they were read.
	Packed, Plain int64
	Groups        map[int64]*Count // by producer id, codec, or day since 1970; absent keys are noKey
}

// noKey stands for batches without a producer id and records without a timestamp; it is no producer's id and no day.
const noKey = math.MinInt64

// Count is what a producer, a codec or a day has.
type Count struct {
	Batches, Records, Bytes int64
	Packed, Plain           int64
	Partitions              int64
	Gaps                    int64 // sequence numbers that do not follow those of the producer's batch before
	FirstMs, LastMs         Maybe
	// next is the sequence number that should come, and its epoch, within one partition.
	next     int32
	epoch    int16
	expected bool
}

// Add adds the stats of another partition.
func (s *Stats) Add(o *Stats) {
	s.Batches += o.Batches
	s.Bytes += o.Bytes
	s.Records += o.Records
	s.BatchBytes.add(&o.BatchBytes)
	s.BatchCounts.add(&o.BatchCounts)
	for i := range s.CodecBytes {
		s.CodecBytes[i] += o.CodecBytes[i]
	}
	for i := range s.Magics {
		s.Magics[i] += o.Magics[i]
	}
	if s.Producers == nil {
		s.Producers = map[int64]bool{}
	}
	maps.Copy(s.Producers, o.Producers)
	s.Transactional += o.Transactional
	s.Control += o.Control
	s.Back += o.Back
	s.Unreadable += o.Unreadable
	s.Packed += o.Packed
	s.Plain += o.Plain
	for key, n := range o.Groups {
		s.group(key).add(n)
	}
}

func (s *Stats) group(key int64) *Count {
	if s.Groups == nil {
		s.Groups = map[int64]*Count{}
	}
	c := s.Groups[key]
	if c == nil {
		c = &Count{}
		s.Groups[key] = c
	}
	return c
}

func (c *Count) add(o *Count) {
	c.Batches += o.Batches
	c.Records += o.Records
	c.Bytes += o.Bytes
	c.Packed += o.Packed
	c.Plain += o.Plain
	c.Partitions += o.Partitions
	c.Gaps += o.Gaps
	c.FirstMs, c.LastMs = c.FirstMs.least(o.FirstMs), c.LastMs.most(o.LastMs)
}

// counter counts the batches of one partition.
type counter struct {
	*Stats
	by       Group
	read     bool // decompress, for the ratio
	records  *format.RecordReader
	latestMs Maybe
	days     map[int64]int64 // records a day, of one batch
}

// batch counts a batch of n records.
func (c *counter) batch(b *format.Batch, n int64) {
	c.Batches++
	c.Bytes += b.Size()
	c.Records += n
	c.BatchBytes.count(b.Size())
	c.BatchCounts.count(n)
	c.CodecBytes[b.Codec()] += b.Size()
	c.Magics[min(max(int(b.Magic), 0), 2)]++
	if b.ProducerID >= 0 {
		c.Producers[b.ProducerID] = true
	}
	if b.Transactional() {
		c.Transactional++
	}
	if b.Control() {
		c.Control++
	}
	if b.MaxTimestamp >= 0 {
		if c.latestMs.OK && b.MaxTimestamp < c.latestMs.N {
			c.Back++
		}
		c.latestMs = c.latestMs.most(Some(b.MaxTimestamp))
	}
	packed, plain := c.decompress(b)
	switch c.by {
	case ByProducer:
		key := b.ProducerID
		if key < 0 {
			key = noKey
		}
		g := c.group(key)
		g.one(b, n, packed, plain)
		g.sequence(b)
	case ByCodec:
		c.group(int64(b.Codec())).one(b, n, packed, plain)
	case ByDay:
		c.day(b, n)
	}
}

// one counts a batch.
func (g *Count) one(b *format.Batch, n, packed, plain int64) {
	g.Batches++
	g.Records += n
	g.Bytes += b.Size()
	g.Packed += packed
	g.Plain += plain
	g.Partitions = 1
	if b.MaxTimestamp < 0 {
		return
	}
	g.LastMs = g.LastMs.most(Some(b.MaxTimestamp))
	first := b.MaxTimestamp
	if b.TimestampType() == format.CreateTime && !b.HasDeleteHorizon() && b.BaseTimestamp >= 0 {
		first = min(first, b.BaseTimestamp)
	}
	g.FirstMs = g.FirstMs.least(Some(first))
}

// sequence counts a gap where a batch does not follow the one before it of the same producer and epoch. Markers have no
// numbers.
func (g *Count) sequence(b *format.Batch) {
	if b.ProducerID < 0 || b.BaseSequence < 0 || b.Control() {
		return
	}
	if g.expected && g.epoch == b.ProducerEpoch && g.next != b.BaseSequence {
		g.Gaps++
	}
	g.next, g.epoch, g.expected = format.IncrementSequence(b.LastSequence(), 1), b.ProducerEpoch, true
}

// decompress reads the records of a compressed batch for their size, if that is asked for.
func (c *counter) decompress(b *format.Batch) (packed, plain int64) {
	if !c.read || b.Codec() == format.CodecNone {
		return 0, 0
	}
	c.Stats.Unreadable += c.readAll(b, func(*format.Record) {})
	if plain = int64(len(c.records.Plain())); plain == 0 {
		return 0, 0
	}
	packed = b.Size() - int64(headerSize(b))
	c.Packed += packed
	c.Plain += plain
	return packed, plain
}

// headerSize is what a batch has besides its records.
func headerSize(b *format.Batch) int {
	if b.Legacy() {
		return format.LogOverhead + format.MinEntrySize + 8*int(max(b.Magic, 0))
	}
	return format.BatchHeaderSize
}

// readAll reads all records of a batch, and is 1 if not all could be read.
func (c *counter) readAll(b *format.Batch, each func(*format.Record)) int64 {
	var rec format.Record
	for c.records.Reset(b); c.records.Next(&rec); {
		each(&rec)
	}
	if c.records.Err() != nil {
		return 1
	}
	return 0
}

const dayMs = 24 * 3600 * 1000

// day counts the records of a batch by the day of their timestamps; its bytes go to the days in proportion.
func (c *counter) day(b *format.Batch, n int64) {
	clear(c.days)
	if b.TimestampType() == format.LogAppendTime || b.Control() {
		c.days[dayOf(b.MaxTimestamp)] = n
	} else {
		c.Stats.Unreadable += c.readAll(b, func(r *format.Record) { c.days[dayOf(r.Timestamp)]++ })
	}
	total, read, given, done := b.Size(), int64(0), int64(0), int64(0)
	for _, k := range c.days {
		read += k
	}
	if read == 0 {
		g := c.group(dayOf(b.MaxTimestamp))
		g.Batches++
		g.Bytes += total
		g.Partitions = 1
		return
	}
	for _, day := range slices.Sorted(maps.Keys(c.days)) {
		g := c.group(day)
		g.Batches++
		g.Partitions = 1
		g.Records += c.days[day]
		done += c.days[day]
		upTo := int64(float64(total) * (float64(done) / float64(read)))
		g.Bytes += upTo - given
		given = upTo
	}
}

// dayOf is the day since 1970, noKey without a timestamp.
func dayOf(ms int64) int64 {
	if ms < 0 {
		return noKey
	}
	return ms / dayMs
}

// Grouped are the groups in their order: producers and codecs by bytes, the largest first, days by time.
func (s *Stats) Grouped(by Group) []int64 {
	keys := slices.Sorted(maps.Keys(s.Groups))
	if by != ByDay {
		slices.SortStableFunc(keys, func(a, b int64) int { return cmp.Compare(s.Groups[b].Bytes, s.Groups[a].Bytes) })
	}
	return keys
}

// headers reads all headers of a log that is too large to be read whole.
func (r *reader) headers(s *Segment, log *logdir.File) error {
	s.Batches = Some(0)
	return walk.Read(r.ctx, &walk.Log{File: log, Base: s.Base}, nil, func(b *format.Batch, _ *format.Hole) bool {
		if b != nil {
			r.batch(s, b)
		}
		return true
	})
}
