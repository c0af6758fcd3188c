package verify

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"kseg/broker"
	"kseg/format"
	"kseg/logdir"
	"kseg/render"
	"kseg/state"
)

// starts has the next start of each broker that the operands belong to, as far as it was asked for.
type starts struct {
	all   map[*logdir.LogDir]*broker.Start
	dirs  map[*logdir.LogDir]*broker.DirStart
	alone *broker.Start // of partitions in no known log directory
	known state.Dirs
}

// start is the next start of the broker that a log directory belongs to; nil if something of it could not be read.
func (d *driver) start(dir *logdir.LogDir) (*broker.Start, *broker.DirStart) {
	s := &d.starts
	if dir == nil {
		if s.alone == nil {
			s.alone, _ = broker.NewStart(nil, &s.known, d.startOptions())
		}
		return s.alone, nil
	}
	if s.all == nil {
		s.all, s.dirs = map[*logdir.LogDir]*broker.Start{}, map[*logdir.LogDir]*broker.DirStart{}
		for _, of := range broker.Brokers(d.set.LogDirs(), &s.known) {
			d.startOf(of)
		}
	}
	if _, ok := s.all[dir]; !ok {
		d.startOf([]*logdir.LogDir{dir})
	}
	return s.all[dir], s.dirs[dir]
}

func (d *driver) startOf(dirs []*logdir.LogDir) {
	start, err := broker.NewStart(dirs, &d.starts.known, d.startOptions())
	for _, dir := range start.Dirs {
		d.starts.dirs[dir.Dir] = dir
	}
	for _, dir := range dirs {
		if d.starts.all[dir] = start; err != nil {
			d.starts.all[dir] = nil
		}
	}
}

func (d *driver) startOptions() *broker.StartOptions {
	return &broker.StartOptions{NowMs: d.opts.Now.UnixMilli(), MaxBatchBytes: d.opts.MaxBatchBytes, Settings: d.settings,
		Stop: func() bool { return d.ctx.Err() != nil }}
}

// nextStart is what the next start makes of the partition, nil if nothing can be said.
func (p *partition) nextStart() *broker.PartitionStart {
	b, dir := p.driver.start(p.dir.Parent)
	if b == nil {
		return nil
	}
	s := b.Load(dir, p.dir)
	if s.Err != nil || s.Loaded == nil {
		return nil
	}
	return s
}

// judgeByStart lets the next start decide how bad findings are, and says what it does about them. It is played through
// only where something is wrong.
func (p *partition) judgeByStart(found []*Finding) {
	asks := false
	for _, f := range found {
		asks = asks || f.Severity > Note || f.Code == "leftover-deleted" || f.Code == "partition-metadata-missing" ||
			f.Code == "partition-not-assigned"
	}
	if !asks || p.alone != nil || p.dir.Suffix == "delete" {
		return
	}
	runs := p.dir.Parent != nil && p.dir.Parent.BrokerRuns()
	s := p.nextStart()
	if s == nil {
		return
	}
	told := map[string]bool{}
	for _, f := range found {
		if (f.Code == "zero-tail" || f.Code == "torn-tail") && f.Severity == Damage {
			f.Next = fmt.Sprintf("truncate -s %d %s, in a copy", f.Pos, render.ShellWord(f.Shown))
		}
		switch {
		case runs && f.Severity == Note: // it creates topics, and deletes them and segments, all the time
		case f.Code == "leftover-deleted":
			p.onlyCopy(f, s)
		case f.Code == "partition-not-assigned" || f.Code == "partition-metadata-missing" || f.Code == "topic-id-differs":
			strayed(f, s)
		case f.Code == "index-missing":
			p.indexMade(f, s)
		case traits[f.Code]&(ofIndex|ofTime|ofTxnIndex) != 0 && f.Severity == Damage:
			p.indexRepaired(f, s)
		case f.Severity > Note && f.base >= 0 && strings.HasSuffix(f.File, ".log") && !told[f.File]:
			told[f.File] = p.logLoaded(f, s)
		}
	}
}

// segmentOfStart is how the start has loaded the segment that a finding is about.
func segmentOfStart(f *Finding, s *broker.PartitionStart) (broker.LoadedSegment, bool) {
	for _, seg := range s.Segments {
		if seg.Base == f.base {
			return seg, true
		}
	}
	return broker.LoadedSegment{}, false
}

// cutIn is where the start cuts the segment with that base offset, false if it does not.
func cutIn(base int64, s *broker.PartitionStart) (broker.Cut, bool) {
	for _, c := range s.Cuts {
		if c.Base == base {
			return c, true
		}
	}
	return broker.Cut{}, false
}

// logLoaded says what the start makes of a log in which something is wrong; it is false if that is nothing to tell.
func (p *partition) logLoaded(f *Finding, s *broker.PartitionStart) bool {
	seg, loaded := segmentOfStart(f, s)
	cut, isCut := cutIn(f.base, s)
	name := filepath.Base(f.File)
	switch {
	case s.Failure != nil && s.Failure.Place == name:
		f.Message += fmt.Sprintf("; %s does not load the partition: %s", p.startWords(), s.Failure.Err)
	case isCut:
		f.Message += fmt.Sprintf("; %s cuts the segment at byte %d", p.startWords(), cut.At) + lostWords(s) + p.vanishing()
	case traits[f.Code]&(moves|hides) == 0:
		return false
	case loaded && seg.Recovered:
		f.Message += "; " + p.startWords() + " recovers the segment, and keeps this as it is"
	case loaded && s.Clean:
		f.Message += "; " + p.startWords() + " does not look at it: the broker stopped cleanly"
	case loaded:
		f.Message += fmt.Sprintf("; %s does not look at it: it lies below the recovery point, %d", p.startWords(),
			s.RecoveryPoint)
	default:
		return false
	}
	return true
}

// vanishing says which topics go with the end of a metadata log, which is recovered at every start.
func (p *partition) vanishing() string {
	if !p.dir.IsClusterMetadata() {
		return ""
	}
	b, _ := p.driver.start(p.dir.Parent)
	if b == nil || len(b.Vanished) == 0 {
		return ", marker or not"
	}
	return fmt.Sprintf(", marker or not, and the partitions of %s (%s) are set aside as -stray",
		plural(int64(len(b.Vanished)), "topic", "topics"),
		strings.Join(b.Vanished[:min(len(b.Vanished), 5)], ", "))
}

// startWords names the start that is meant: that of a partition whose log directory is not known is supposed.
func (p *partition) startWords() string {
	if p.dir.IsClusterMetadata() {
		return "every start"
	}
	if p.shutdown == unknownShutdown {
		return "a start after an unclean stop, without a recovery point,"
	}
	return "the next start"
}

// lostWords says what is lost with what is cut.
func lostWords(s *broker.PartitionStart) string {
	text, removed := "", int64(0)
	for _, f := range s.Files {
		if n := format.ParseFileName(f.Name); f.Action == broker.Delete && n.Kind == format.KindLog && !n.Leftover() {
			removed++
		}
	}
	if removed > 0 {
		text = " and deletes " + plural(removed, "later segment", "later segments")
	}
	n := len(s.Lost.Ranges)
	if n == 0 {
		return text
	}
	return text + fmt.Sprintf(", with which %s from %d to %d go", plural(s.Lost.Offsets(), "offset", "offsets"),
		s.Lost.Ranges[0].First, s.Lost.Ranges[n-1].Last)
}

// indexRepaired: what the start makes anew without loss is no damage.
func (p *partition) indexRepaired(f *Finding, s *broker.PartitionStart) {
	seg, loaded := segmentOfStart(f, s)
	cut, isCut := cutIn(f.base, s)
	if isCut {
		isCut = slices.ContainsFunc(s.Lost.Ranges, func(r broker.LostRange) bool { return r.File == cut.File })
	}
	if p.shutdown == unknownShutdown || !loaded || !seg.Recovered || isCut || s.Failure != nil {
		return
	}
	f.Severity = Warning
	if f.Code == "txnindex-entry-missing" && f.LastOffset+1 == s.LogEnd {
		f.Severity = Note
		f.Message += ", if there are any before the broker starts again: it ended after it had written the marker, and " +
			"before the index"
	}
	f.Message += "; the next start recovers the segment and makes the file anew"
}

// indexMade: without an offset index the segment is recovered, whatever the marker says.
func (p *partition) indexMade(f *Finding, s *broker.PartitionStart) {
	cut, isCut := cutIn(f.base, s)
	if !isCut || f.Severity < Warning {
		return
	}
	f.Severity = Damage
	f.Message += fmt.Sprintf("; it cuts the log at byte %d then%s: put the index back first", cut.At, lostWords(s))
	f.Next = "kseg verify --rebuild DIR " + render.ShellWord(p.dir.Display)
}

// onlyCopy: a file that is to be deleted may hold what is nowhere else, within the log or beyond its end.
func (p *partition) onlyCopy(f *Finding, s *broker.PartitionStart) {
	files := map[string]bool{filepath.Base(f.File): true}
	for _, r := range f.Related {
		files[filepath.Base(r.File)] = true
	}
	for _, r := range s.Lost.Ranges {
		if !files[r.File] {
			continue
		}
		f.FirstOffset, f.LastOffset = r.First, r.Last
		if p.cutOff(r) {
			f.Message = fmt.Sprintf("a follower cut off offsets %d to %d, which were not committed and which the leader of a "+
				"later epoch does not have", r.First, r.Last)
			return
		}
		f.Severity = Damage
		f.Message = fmt.Sprintf("the next start deletes %s, and offsets %d to %d are nowhere else", r.File, r.First, r.Last)
		f.Next = fmt.Sprintf("copy the files of segment %d out of the directory before a broker starts on it",
			format.ParseFileName(r.File).Base)
		return
	}
}

// cutOff reports whether replication took the offsets of a file away: none of them was committed, and a later leader
// epoch begins below them, or another broker leads in one.
func (p *partition) cutOff(r broker.LostRange) bool {
	_, mark, ok := p.entry(format.KindReplicationOffsetCheckpoint)
	file := p.dir.FileNamed(r.File)
	if !ok || mark.Offset > r.First || file == nil {
		return false
	}
	later := false
	_ = file.View(func(data []byte) error {
		b, err := format.DecodeBatch(data, 0)
		later = err == nil && !b.Legacy() && (p.ledElsewhere(b.LeaderEpoch) || p.epochBelow(r.First, b.LeaderEpoch))
		return nil
	})
	return later
}

// ledElsewhere reports whether the metadata of the cluster says that another broker leads the partition, in a later
// epoch.
func (p *partition) ledElsewhere(epoch int32) bool {
	settings := p.driver.settings(p.dir.Parent)
	if settings.Image == nil || !settings.HasNodeID {
		return false
	}
	topic := settings.Image.Topic(p.dir.Topic)
	if topic == nil || topic.Partitions[p.dir.Partition] == nil {
		return false
	}
	now := topic.Partitions[p.dir.Partition]
	return now.Leader != settings.NodeID && now.LeaderEpoch > epoch
}

// epochBelow reports whether a leader epoch above the given one begins at or below an offset.
func (p *partition) epochBelow(offset int64, epoch int32) bool {
	return slices.ContainsFunc(p.leaderEpochs(), func(e format.EpochEntry) bool {
		return e.Epoch > epoch && e.StartOffset <= offset
	})
}

// leaderEpochs are those that a broker loads, none if they cannot be read.
func (p *partition) leaderEpochs() []format.EpochEntry {
	f := p.dir.File(format.KindLeaderEpochCheckpoint)
	if f == nil {
		return nil
	}
	raw, ok := p.readSmall(f)
	epochs, err := format.DecodeLeaderEpochs(raw)
	if !ok || err != nil {
		return nil
	}
	return epochs.Loaded()
}

// strayed: a partition that is set aside is lost to those who read it, if there is anything in it.
func strayed(f *Finding, s *broker.PartitionStart) {
	if s.Stray == "" || !slices.ContainsFunc(s.Partition.Segments,
		func(seg *logdir.Segment) bool { return seg.Log.Size > 0 }) {
		return
	}
	f.Severity = Damage
	f.Message = "the next start sets the partition aside as -stray: " + s.Stray
}
