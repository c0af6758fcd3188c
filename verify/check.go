package verify

import "kseg/format"

// Level is how deep a run looks.
type Level int8

// The levels; each includes those before.
const (
	Headers Level = iota // the headers of batches, and all other files
	CRC                  // also every batch's checksum
	Records              // also every record
)

// LevelNames are the names of the levels, by their value.
var LevelNames = [...]string{"headers", "crc", "records"}

// Code is one kind of finding.
type Code struct {
	Name     string
	Severity Severity // what it usually is; where the circumstances decide, the worst
	Title    string   // a few words for lists
}

// Check is one topic that is looked at, with the codes of what it may find. It has a hook for each moment at which it
// needs to look; the driver calls those of the enabled checks.
type Check struct {
	Name  string
	Group string // one of Groups: a test case in JUnit output
	Level Level  // the lowest level at which there is something for it to see
	Codes []Code

	// Batch looks at one batch by itself. Workers call it in parallel, in any order, only for batches whose checksum holds
	// (at level Headers: whose header makes sense).
	Batch func(*batchPass)
	// Follow starts a look at all batches of a partition in order.
	Follow func(*partition) follower
	// Partition looks at a partition after all its batches.
	Partition func(*partition)
	// LogDir looks at a log directory after its partitions.
	LogDir func(*logDir)
	// Set looks at all operands together, last of all.
	Set func(*operands)
}

// Groups are the groups of checks in the order of reports.
var Groups = []string{"batches", "records", "offsets", "producers", "indexes", "state", "directory"}

// follower looks at the batches of a partition in order. Batches whose bytes are known to be wrong are not shown to it,
// but announced by skip.
type follower interface {
	// begin: the first batch of this segment comes next. The segment's index bytes are there until end.
	begin(*segment)
	// batch: the next batch. It is valid only during the call, and the partition's producers know it already.
	batch(*segment, *format.Batch)
	// skip: n bytes from pos on are damaged. b is the batch there, if it has a header that could be right; nextOffset is
	// the base offset of the batch that follows, -1 if none does or it is not known.
	skip(seg *segment, pos, n int64, b *format.Batch, nextOffset int64)
	// end: the last batch of this segment was seen.
	end(*segment)
	// finish: the last segment was seen.
	finish()
}

// passive is a follower to which nothing matters.
type passive struct{}

func (passive) begin(*segment)                                    {}
func (passive) batch(*segment, *format.Batch)                     {}
func (passive) skip(*segment, int64, int64, *format.Batch, int64) {}
func (passive) end(*segment)                                      {}
func (passive) finish()                                           {}

// follow is the follower of a check, with a watch in its hand if somebody asks how long it takes.
func (d *driver) follow(c *Check, p *partition) follower {
	f := c.Follow(p)
	if d.opts.Clock == nil {
		return f
	}
	return &timedFollower{follower: f, driver: d, group: c.Group}
}

// timedFollower counts for its group what a follower takes.
type timedFollower struct {
	follower
	driver *driver
	group  string
}

func (t *timedFollower) begin(seg *segment) {
	t.driver.timed(t.group, func() { t.follower.begin(seg) })
}
func (t *timedFollower) end(seg *segment) { t.driver.timed(t.group, func() { t.follower.end(seg) }) }
func (t *timedFollower) finish()          { t.driver.timed(t.group, t.follower.finish) }

func (t *timedFollower) batch(seg *segment, b *format.Batch) {
	t.driver.timed(t.group, func() { t.follower.batch(seg, b) })
}

func (t *timedFollower) skip(seg *segment, pos, n int64, b *format.Batch, nextOffset int64) {
	t.driver.timed(t.group, func() { t.follower.skip(seg, pos, n, b, nextOffset) })
}

// batchPass is what a check sees of one batch by itself.
type batchPass struct {
	opts  *Options
	batch *format.Batch
	// records is what reading the records gave; nil below level Records, and if they were not read.
	records *recordFacts
	run     *looked
}

// found adds a finding about the batch, or a part of it.
func (p *batchPass) found(f Finding) {
	f.logPos = p.batch.Pos
	p.run.findings = append(p.run.findings, f)
}

// place is the batch's place; the file is filled in later.
func (p *batchPass) place() Place { return at("", p.batch) }
