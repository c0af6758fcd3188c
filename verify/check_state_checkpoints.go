package verify

import (
	"cmp"
	"fmt"
	"math/bits"
	"path/filepath"
	"slices"

	"kseg/broker"
	"kseg/format"
	"kseg/logdir"
	"kseg/state"
)

// checkCheckpoints looks at the four offset checkpoints of a log directory, and holds each line against the log that it
// is about. A broker writes them every few seconds, so that after a crash they lag behind; after a clean stop the
// recovery point is the log end offset.
var checkCheckpoints = Check{
	Name:  "offset-checkpoints",
	Group: "state",
	Codes: []Code{
		{"checkpoint-unreadable", Damage, "an offset checkpoint that a broker cannot read"},
		{"recovery-point-beyond-end", Damage, "a recovery point beyond the log end offset"},
		{"recovery-point-not-end", Note, "a clean stop, but a recovery point below the end of the log"},
		{"high-watermark-beyond-end", Damage, "a high watermark beyond the log end offset"},
		{"high-watermark-below-start", Warning, "a high watermark below the start of the log"},
		{"log-start-beyond-end", Damage, "a log start offset beyond the log end offset"},
		{"log-start-below-start", Note, "a log start offset below the first segment"},
		{"cleaner-offset-range", Note, "a cleaner offset outside of the closed segments"},
		{"checkpoint-unknown-partition", Note, "an offset checkpoint lists a partition that is not there"},
		{"checkpoint-partition-missing", Note, "an offset checkpoint leaves a partition out"},
	},
	Partition: lookAtCheckpoints,
	LogDir:    lookAtCheckpointFiles,
}

// unreadableCheckpoint is how bad it is that a checkpoint cannot be read, and what the next start makes of it; dir is
// nil if it was given alone. All were seen with 4.4.0.
func unreadableCheckpoint(kind format.Kind, err error, dir *broker.DirStart) (Severity, string) {
	effect := broker.EffectOf(kind, format.Throws(err))
	if dir != nil {
		effect = dir.Effect(kind)
	}
	switch effect {
	case broker.TakesOffline:
		return Damage, "a broker takes the whole log directory offline"
	case broker.KeepsFromStarting:
		return Damage, "a broker does not start with it"
	case broker.ServesNone:
		return Damage, "a broker serves none of the partitions in the log directory"
	}
	if kind == format.KindRecoveryPointCheckpoint && dir != nil && dir.Clean {
		return Warning, "a broker takes all recovery points for 0, which after this clean stop does nothing"
	}
	return Warning, cmp.Or(without[kind], "a broker does without it")
}

// without says what a broker does that passes over a checkpoint.
var without = map[format.Kind]string{
	format.KindReplicationOffsetCheckpoint: "a broker does not read it, since it serves no partition of the log directory",
	format.KindRecoveryPointCheckpoint: "a broker takes all recovery points for 0, and reads everything again after an " +
		"unclean stop",
	format.KindLogStartOffsetCheckpoint: "a broker lets every log start with its first segment, so that deleted records " +
		"come back",
	format.KindCleanerOffsetCheckpoint: "the log cleaner of a broker stops, and nothing is compacted any more",
}

// lookAtCheckpointFiles looks at the checkpoints by themselves.
func lookAtCheckpointFiles(l *logDir) {
	s := l.driver.dirState(l.dir)
	for _, problem := range s.Unread {
		l.driver.notRead(problem.Err)
	}
	if l.dir.Narrowed {
		return
	}
	// Those that are being moved count, too.
	there := map[state.TopicPartition]bool{}
	for _, name := range l.dir.Subdirs {
		if d, ok := format.ParsePartitionDir(name); ok {
			there[state.TopicPartition{Topic: d.Topic, Partition: d.Partition}] = true
		}
	}
	for _, kind := range state.CheckpointKinds {
		if c := s.Checkpoint(kind); c != nil {
			lookAtCheckpointFile(l, c, there)
		}
	}
}

func lookAtCheckpointFile(l *logDir, c *state.Checkpoint, there map[state.TopicPartition]bool) {
	if c.Err != nil {
		_, dir := l.driver.start(l.dir)
		l.found(unreadable(c, dir))
		return
	}
	if finding, odd := oddCheckpointFile(c.File.Rel, c); odd &&
		(len(finding.Evidence) == 0 || !l.driver.named[filepath.Join(l.dir.Display, c.File.Rel)]) {
		l.found(finding)
	}
	for _, e := range c.Content.Entries {
		if !there[state.TopicPartition{Topic: e.Topic, Partition: e.Partition}] &&
			!l.driver.dirState(l.dir).spokenFor[lineOf{c.File.Rel, e.Pos}] {
			f := Finding{Code: "checkpoint-unknown-partition", Place: inFile(c.File.Rel, e.Pos, e.Len), logPos: -1,
				Message: fmt.Sprintf("there is no directory %s-%d; a broker ignores the line, and leaves it out the next time",
					e.Topic, e.Partition)}
			l.found(f)
		}
	}
}

// unreadable makes the finding of a checkpoint that a broker cannot read.
func unreadable(c *state.Checkpoint, dir *broker.DirStart) Finding {
	severity, effect := unreadableCheckpoint(c.File.Kind(), c.Err, dir)
	f := stateError("checkpoint-unreadable", c.File.Rel, c.Raw, c.Err, effect)
	f.Severity = severity
	return f
}

// checkpointLine is a line of a checkpoint about the partition.
type checkpointLine struct {
	p      *partition
	file   string
	pos    int64
	length int64
	offset int64
}

// line is what the checkpoint of that kind says of the partition. If a file that is there does not list it after a
// clean stop, that is reported.
func (p *partition) line(kind format.Kind) (checkpointLine, bool) {
	c, e, ok := p.entry(kind)
	if ok && p.madeAfter(c.File) {
		return checkpointLine{}, false
	}
	if ok {
		return checkpointLine{p, p.parentFile(c.File), e.Pos, e.Len, e.Offset}, true
	}
	always := kind == format.KindRecoveryPointCheckpoint || kind == format.KindReplicationOffsetCheckpoint
	if c != nil && always && p.shutdown == cleanShutdown && p.whole() {
		f := Finding{Code: "checkpoint-partition-missing", Place: inFile(p.parentFile(c.File), -1, -1), logPos: -1,
			Message: fmt.Sprintf("%s-%d is not listed, though a broker lists every partition when it stops; it then takes 0",
				p.dir.Topic, p.dir.Partition)}
		if e, ok := p.misspelled(c); ok {
			f.Pos, f.Len = e.Pos, e.Len
			f.Message += fmt.Sprintf("; one bit more or less, and the line of %s-%d is its", e.Topic, e.Partition)
		}
		p.found(nil, f)
	}
	return checkpointLine{}, false
}

// mostMisspelled bounds for how many partitions of a log directory a line is looked for that may be theirs.
const mostMisspelled = 100

// misspelled is the line of a checkpoint that is the partition's but for one bit, and of no partition that is there. It
// is spoken for then.
func (p *partition) misspelled(c *state.Checkpoint) (format.OffsetCheckpointEntry, bool) {
	s := p.driver.dirState(p.dir.Parent)
	if s.spelled++; s.spelled > mostMisspelled {
		return format.OffsetCheckpointEntry{}, false
	}
	name := fmt.Sprintf("%s %d", p.dir.Topic, p.dir.Partition)
	for _, e := range c.Content.Entries {
		other := fmt.Sprintf("%s %d", e.Topic, e.Partition)
		if !oneBit(name, other) || slices.Contains(p.dir.Parent.Subdirs, fmt.Sprintf("%s-%d", e.Topic, e.Partition)) {
			continue
		}
		if s.spokenFor == nil {
			s.spokenFor = map[lineOf]bool{}
		}
		s.spokenFor[lineOf{c.File.Rel, e.Pos}] = true
		return e, true
	}
	return format.OffsetCheckpointEntry{}, false
}

// oneBit reports whether two texts differ in one bit.
func oneBit(a, b string) bool {
	n := 0
	for i := 0; len(a) == len(b) && i < len(a) && n < 2; i++ {
		n += bits.OnesCount8(a[i] ^ b[i])
	}
	return n == 1
}

// madeAfter reports whether the partition is younger than a checkpoint: then the line is of a topic of the same name,
// which was deleted. In a copy the times say that only of a log that never had anything.
func (p *partition) madeAfter(checkpoint *logdir.File) bool {
	made := p.dir.File(format.KindPartitionMetadata)
	if made == nil || !made.ModTime.After(checkpoint.ModTime) {
		return false
	}
	end, known := p.end()
	return known && end == 0 && p.shutdown != cleanShutdown || p.dir.Parent.BrokerRuns()
}

// found reports that the line does not fit a range of offsets.
func (c *checkpointLine) found(code string, severity Severity, first, last int64, want, message string) {
	c.p.found(nil, Finding{Code: code, Severity: severity, Place: Place{c.file, c.pos, c.length, first, last},
		Message: message, logPos: -1,
		since: max(first, 0), Evidence: []Evidence{{"offset", want, itoa(c.offset)}}})
}

// lookAtCheckpoints holds the lines about a partition against its log.
func lookAtCheckpoints(p *partition) {
	if p.alone != nil {
		lookAtCheckpointAlone(p)
		return
	}
	end, ok := p.end()
	if !ok || !p.inUse() {
		return
	}
	if p.dir.Parent != nil && !p.dir.IsClusterMetadata() {
		lookAtLines(p, end)
	}
	joinLostEnd(p, end)
}

// lookAtLines looks at the lines of the four checkpoints about the partition.
func lookAtLines(p *partition, end int64) {
	start, _ := p.start()
	lookAtRecoveryPoint(p, end)
	logStart := lookAtLogStart(p, start, end)
	lookAtHighWatermark(p, max(start, logStart), end)
	if c, ok := p.line(format.KindCleanerOffsetCheckpoint); ok && len(p.segments) > 0 {
		if active := p.segments[len(p.segments)-1].base; c.offset > active {
			next := "the next round begins there"
			if c.offset > end {
				next = "a broker resets it to the log start offset"
			}
			c.found("cleaner-offset-range", Note, active, c.offset-1, "at most "+itoa(active),
				fmt.Sprintf("the cleaner is said to have come to offset %d, but never enters the last segment, which begins at "+
					"%d; %s", c.offset, active, next))
		}
	}
}

// lookAtCheckpointAlone looks at a checkpoint that was given as a file.
func lookAtCheckpointAlone(p *partition) {
	if !slices.Contains(state.CheckpointKinds, p.alone.Kind()) || p.alone.Name.Leftover() {
		return
	}
	raw, ok := p.readSmall(p.alone)
	if !ok {
		return
	}
	c := state.NewCheckpoint(p.alone, raw)
	if c.Err != nil {
		p.found(nil, unreadable(c, nil))
	} else if finding, odd := oddCheckpointFile(c.File.Rel, c); odd {
		p.found(nil, finding)
	}
}

// stoppedAt reports whether the broker stopped cleanly with the log end at the offset: then what says that the log went
// on is what is wrong.
func (p *partition) stoppedAt(end int64) bool {
	_, point, ok := p.entry(format.KindRecoveryPointCheckpoint)
	return ok && p.shutdown == cleanShutdown && point.Offset == end
}

// lost is how bad it is that the log ends, though it must have gone on: a crash takes what is above the high watermark.
func (p *partition) lost(end int64) Severity {
	if _, hw, ok := p.entry(format.KindReplicationOffsetCheckpoint); ok && hw.Offset <= end &&
		p.shutdown == uncleanShutdown {
		return Warning
	}
	return Damage
}

func lookAtRecoveryPoint(p *partition, end int64) {
	c, ok := p.line(format.KindRecoveryPointCheckpoint)
	switch {
	case !ok:
	case c.offset > end:
		c.found("recovery-point-beyond-end", Damage, end, c.offset-1, "at most "+itoa(end),
			fmt.Sprintf("all below offset %d was on the disk by this file, but the log ends at %d", c.offset, end))
	case p.shutdown == cleanShutdown && c.offset < end:
		c.found("recovery-point-not-end", Note, c.offset, end-1, itoa(end),
			fmt.Sprintf("the broker stopped cleanly, and then the recovery point is the log end offset, %d; log and "+
				"checkpoint are not of the same time", end))
	}
}

// lookAtLogStart returns the log start offset of the checkpoint, 0 if there is none.
func lookAtLogStart(p *partition, start, end int64) int64 {
	c, ok := p.line(format.KindLogStartOffsetCheckpoint)
	switch {
	case !ok:
		return 0
	case c.offset > end:
		c.found("log-start-beyond-end", Damage, end, c.offset-1, "at most "+itoa(end),
			fmt.Sprintf("the log is said to start at offset %d, but ends at %d", c.offset, end))
		return 0
	case c.offset <= start && p.shutdown == cleanShutdown && len(p.segments) > 0 && !p.tiered():
		c.found("log-start-below-start", Note, -1, -1, "above "+itoa(start),
			fmt.Sprintf("the log is said to start at offset %d, and its first segment at %d; a broker uses the segment, "+
				"and lists only logs that start after it", c.offset, start))
	}
	return c.offset
}

// tiered reports whether the topic's older segments may be in remote storage, and no longer here.
func (p *partition) tiered() bool {
	settings := p.driver.settings(p.dir.Parent)
	return settings.Image != nil && settings.Topic(p.dir.Topic, "remote.storage.enable").Bool()
}

func lookAtHighWatermark(p *partition, start, end int64) {
	c, ok := p.line(format.KindReplicationOffsetCheckpoint)
	switch {
	case !ok:
	case c.offset > end && p.stoppedAt(end):
		c.found("high-watermark-beyond-end", Warning, end, c.offset-1, "at most "+itoa(end),
			fmt.Sprintf("the line says %d, but the log ends at %d, where it ended when the broker stopped", c.offset, end))
	case c.offset > end:
		c.found("high-watermark-beyond-end", Damage, end, c.offset-1, "at most "+itoa(end),
			fmt.Sprintf("consumers could read up to offset %d, but the log ends at %d", c.offset, end))
	case c.offset < start && p.shutdown == cleanShutdown:
		c.found("high-watermark-below-start", Warning, c.offset, start-1, itoa(start)+" or more",
			fmt.Sprintf("the high watermark %d is below the start of the log, %d; a broker uses the latter", c.offset, start))
	}
}

// beyondEnd are the findings of files that say that the log once was longer.
var beyondEnd = map[string]bool{"recovery-point-beyond-end": true, "high-watermark-beyond-end": true,
	"snapshot-beyond-end": true, "leader-epoch-beyond-end": true}

// joinLostEnd makes one finding of several files that agree in that the log was longer: then it is the log that is
// wrong. A single one may be wrong itself.
func joinLostEnd(p *partition, end int64) {
	var witnesses []*Finding
	for _, f := range p.findings {
		if beyondEnd[f.Code] {
			witnesses = append(witnesses, f)
		}
		if _, to := f.doubtful(); traits[f.Code]&(moves|hides) != 0 && f.base >= 0 && to >= end {
			return // the end of the log is known to be damaged
		}
	}
	n := len(p.segments)
	if len(witnesses) < 2 || n == 0 {
		return
	}
	seg, most := p.segments[n-1], int64(0)
	f := Finding{Code: "log-end-missing", Severity: p.lost(end), logPos: seg.size}
	for _, w := range witnesses {
		most = max(most, w.LastOffset)
		f.absorb(w)
	}
	f.Place = seg.place(seg.size, 0, end, most)
	f.Message = fmt.Sprintf("the log ends at offset %d, but %d files say that it went on to %d: the end is lost", end,
		len(witnesses), most)
	f.Evidence = []Evidence{{"last offset", itoa(most), itoa(end - 1)}}
	p.findings = slices.DeleteFunc(p.findings, func(f *Finding) bool { return beyondEnd[f.Code] })
	p.found(seg, f)
}
