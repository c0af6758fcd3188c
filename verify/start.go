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
	// loaded are the partitions that were loaded, by path.
	loaded map[*broker.Start]map[string]*broker.PartitionStart
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
		for _, of := range broker.Brokers(d.set.LogDirs(), &s.known, d.knownCluster(), nil) {
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
	all := &p.driver.starts.loaded
	if *all == nil {
		*all = map[*broker.Start]map[string]*broker.PartitionStart{}
	}
	if (*all)[b] == nil {
		(*all)[b] = map[string]*broker.PartitionStart{}
	}
	(*all)[b][p.dir.Path] = s
	if s.Err != nil || s.Loaded == nil {
		return nil
	}
	return s
}

// asks reports whether a finding needs the next start to be played through: it is worse than a note, or may be, or it
// says what becomes of a file.
func (p *partition) asks(f *Finding) bool {
	switch f.Code {
	case "leftover-deleted", "partition-metadata-missing", "partition-not-assigned", "leader-epoch-unreadable":
		return true
	case "leftover-directory", "changed-while-read":
		return false
	}
	return f.Severity > Note || p.shutdown != unknownShutdown && ofFile[f.Code]
}

// judgeByStart lets the next start decide how bad findings are, and says what it does about them. It is played through
// only where something is wrong.
func (p *partition) judgeByStart(found []*Finding) {
	if p.alone != nil || !slices.ContainsFunc(found, p.asks) && len(p.dir.Subdirs) == 0 {
		return
	}
	runs := p.dir.Parent != nil && p.dir.Parent.BrokerRuns()
	s := p.nextStart()
	if s == nil || len(found) == 0 {
		return
	}
	told := map[string]bool{}
	for _, f := range found {
		switch {
		case p.dir.Suffix == "delete" && (s.Failure == nil || s.Failure.Place != filepath.Base(f.File)):
		case runs && f.Severity == Note: // it creates topics, and deletes them and segments, all the time
		case f.Code == "partition-not-assigned" || f.Code == "partition-metadata-missing" || f.Code == "topic-id-differs":
			p.strayed(f, s)
		case f.base >= 0 && f.Severity > Note && strings.HasSuffix(f.File, ".log"):
			p.tail(f, s)
			told[f.File] = told[f.File] || p.logLoaded(f, s)
		case f.Code == "metadata-snapshot-damaged" || f.Code == "metadata-snapshot-incomplete":
			p.snapshotRead(f, s)
		case f.Code == "log-start-beyond-end" || f.Code == "metadata-snapshot-ahead":
			p.emptied(f, s)
		case ofFile[f.Code] || traits[f.Code]&(ofIndex|ofTime|ofTxnIndex) != 0 && f.Severity > Note:
			p.fileLoaded(f, s)
		}
	}
	if !runs && p.dir.Suffix != "delete" {
		p.tellLoss(found, s)
		p.noteLoss(s)
	}
}

// tellLoss makes damage of the worst finding if none is, though the start takes records away or does not load the
// partition.
func (p *partition) tellLoss(found []*Finding, s *broker.PartitionStart) {
	worst := found[0]
	for _, f := range found {
		if f.Severity > worst.Severity {
			worst = f
		}
	}
	if s.Failure != nil && worst.Severity < Damage {
		at := slices.IndexFunc(found, func(f *Finding) bool { return filepath.Base(f.File) == s.Failure.Place })
		if at >= 0 {
			worst = found[at]
		}
	}
	batches := int64(0)
	for _, r := range s.Lost.Ranges {
		if !format.ParseFileName(r.File).Leftover() {
			batches += r.Batches
		}
	}
	switch {
	case worst.Severity == Damage:
		p.tellFailure(worst, found, s.Failure)
	case s.Failure != nil && p.dir.Parent != nil && p.dir.Parent.Listed && !p.dir.Parent.Narrowed:
		// The check of the start names the file that it fails at.
	case s.Failure != nil:
		worst.Severity = Damage
		worst.Message += fmt.Sprintf("; %s: %s", p.failed(s.Failure), s.Failure.Err)
	case batches > 0:
		worst.Severity = Damage
		worst.Message += fmt.Sprintf("; %s lets the log go from %d to %d%s", p.startWords(), s.LogStart, s.LogEnd,
			goneWords(s))
	}
}

// tellFailure adds to the worst damage that the partition is not loaded, if none of the findings is about the file that
// the start fails at: what is damaged may be read when another segment is recovered.
func (p *partition) tellFailure(worst *Finding, found []*Finding, failure *broker.Failure) {
	if failure == nil || slices.ContainsFunc(found, func(f *Finding) bool {
		return f.Severity == Damage && filepath.Base(f.File) == failure.Place || f.Code == "metadata-snapshot-needed"
	}) {
		return
	}
	worst.Message += fmt.Sprintf("; %s: %s", p.failed(failure), failure)
	if f := p.dir.FileNamed(failure.Place); f != nil {
		worst.Related = append(worst.Related, inFile(f.Rel, -1, -1))
		p.driver.damaged = append(p.driver.damaged, f.Display)
	}
}

// ofFile are the findings about a file besides a log that a start may remove, rename or write anew.
var ofFile = map[string]bool{"leftover-deleted": true, "leftover-swap": true, "leftover-cleaned": true,
	"bad-file-name": true, "odd-file-name": true, "index-without-log": true, "segment-log-missing": true,
	"snapshot-corrupt": true, "snapshot-content": true, "snapshot-beyond-end": true, "snapshot-stray": true,
	"leader-epoch-beyond-end": true, "leader-epoch-file-order": true, "leader-epoch-unreadable": true,
	"partition-metadata-unreadable": true, "metadata-snapshot-ahead": true}

// cutIn is where the start cuts the segment with that base offset, false if it does not.
func cutIn(base int64, s *broker.PartitionStart) (broker.Cut, bool) {
	for _, c := range s.Cuts {
		if c.Base == base {
			return c, true
		}
	}
	return broker.Cut{}, false
}

// failed says what comes of a partition that is not loaded.
func (p *partition) failed(f *broker.Failure) string {
	if f.Offline {
		return p.startWords() + " does not load the partition, and takes its log directory offline"
	}
	return p.startWords() + " does not load the partition, and the broker does not run"
}

// tail judges what stands behind the last batch of a segment: what a start cuts off there without a record is a
// warning, if nothing says that there were any.
func (p *partition) tail(f *Finding, s *broker.PartitionStart) {
	cut, isCut := cutIn(f.base, s)
	if (f.Code == "zero-tail" || f.Code == "torn-tail") && f.Severity == Damage {
		f.Next = fmt.Sprintf("truncate -s %d %s  # in a copy", f.Pos, render.ShellWord(f.Shown))
	}
	tail := f.Code == "zero-tail" || f.Code == "torn-tail" || f.Code == "damaged-bytes"
	if !tail || !isCut || cut.At != f.Pos || len(s.Lost.Ranges) > 0 || removedLogs(s) > 0 ||
		p.shutdown == unknownShutdown || f.LastOffset >= f.FirstOffset {
		return
	}
	last := p.segments[len(p.segments)-1].base == f.base
	if !last || p.stoppedAt(f.FirstOffset) || p.lost(f.FirstOffset) == Warning && s.RecoveryPoint <= f.FirstOffset {
		f.Severity = min(f.Severity, Warning)
	}
}

// logLoaded says what the start makes of a log in which something is wrong; it is false if that is nothing to tell.
func (p *partition) logLoaded(f *Finding, s *broker.PartitionStart) bool {
	seg, loaded := s.Segment(f.base)
	cut, isCut := cutIn(f.base, s)
	name := filepath.Base(f.File)
	c, known := s.File(name)
	switch {
	case s.Failure != nil && (s.Failure.Place == name || f.Code == "metadata-snapshot-needed"):
		f.Message += fmt.Sprintf("; %s: %s", p.failed(s.Failure), s.Failure.Err)
	case known && c.Action == broker.Delete && traits[f.Code]&(moves|hides) != 0:
		f.Message += "; " + p.startWords() + " deletes the file" + goneWords(s) + p.vanishing()
	case known && (c.Action == broker.Rebuild || c.Action == broker.Create):
		f.Message += "; " + p.startWords() + " puts another log in its place" + goneWords(s)
	case isCut:
		f.Message += fmt.Sprintf("; %s cuts the segment at byte %d", p.startWords(), cut.At) + lostWords(s) + p.vanishing()
	case known && c.Action == broker.Truncate:
		f.Message += "; " + p.startWords() + " splits the segment, since its offsets do not fit its indexes"
	case traits[f.Code]&(moves|hides) == 0:
		return false
	case loaded && seg.Recovered:
		f.Message += "; " + p.startWords() + " recovers the segment, and keeps this as it is"
	case s.Failure != nil:
		return false
	case loaded && s.Clean:
		f.Message += "; " + p.startWords() + " does not look at it: the broker stopped cleanly" + p.fallsBack(s)
	case loaded:
		f.Message += fmt.Sprintf("; %s does not look at it: it is below the recovery point, %d", p.startWords(),
			s.RecoveryPoint)
	default:
		return false
	}
	return true
}

// fallsBack says that the log end offset comes out below the last batch.
func (p *partition) fallsBack(s *broker.PartitionStart) string {
	end, known := p.end()
	if !known || s.Failure != nil || s.LogEnd >= end {
		return ""
	}
	return fmt.Sprintf(", and takes %d for the log end offset, where it writes on, though the log goes on to %d", s.LogEnd,
		end)
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
		plural(int64(len(b.Vanished)), "topic", "topics"), strings.Join(b.Vanished[:min(len(b.Vanished), 5)], ", "))
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

// removedLogs is how many segments the start removes.
func removedLogs(s *broker.PartitionStart) int64 {
	removed := int64(0)
	for _, f := range s.Files {
		if n := format.ParseFileName(f.Name); f.Action == broker.Delete && n.Kind == format.KindLog && !n.Leftover() {
			removed++
		}
	}
	return removed
}

// lostWords says what is lost with what is cut.
func lostWords(s *broker.PartitionStart) string {
	text := ""
	if removed := removedLogs(s); removed > 0 {
		text = " and deletes " + plural(removed, "later segment", "later segments")
	}
	return text + goneWords(s)
}

// goneWords says which offsets go, "" if none do.
func goneWords(s *broker.PartitionStart) string {
	n := len(s.Lost.Ranges)
	if n == 0 {
		return ""
	}
	return fmt.Sprintf(", with which %s from %d to %d go", plural(s.Lost.Offsets(), "offset", "offsets"),
		s.Lost.Ranges[0].First, s.Lost.Ranges[n-1].Last)
}

// emptied says what comes of a log start offset beyond the end of the log.
func (p *partition) emptied(f *Finding, s *broker.PartitionStart) {
	if removed := removedLogs(s); s.Failure == nil && removed > 0 && s.LogStart == s.LogEnd {
		f.Message += fmt.Sprintf("; %s deletes %s%s, and begins an empty log at offset %d", p.startWords(),
			plural(removed, "segment", "segments"), goneWords(s), s.LogEnd)
	}
}

// fileLoaded says what the start does with a file, and judges it by that: what is made anew without loss is no damage,
// what goes with the only copy of records is.
func (p *partition) fileLoaded(f *Finding, s *broker.PartitionStart) {
	name := filepath.Base(f.File)
	c, known := s.File(name)
	seg, loaded := s.Segment(f.base)
	index := traits[f.Code]&(ofIndex|ofTime|ofTxnIndex) != 0
	switch {
	case s.Failure != nil && s.Failure.Place == name:
		f.Severity = Damage
		f.Message += "; " + p.failed(s.Failure)
	case s.Failure != nil || !known:
		return
	case strings.HasPrefix(f.Code, "leftover-") && p.onlyCopy(f, s):
	case index && slices.ContainsFunc(s.Hazards, func(h broker.Hazard) bool { return h.File == name }):
		f.Message += "; after " + p.startWords() + " it counts as one of 1970, and retention by time deletes the segment"
	case c.Action == broker.Create && (f.Code == "index-missing" || f.Code == "timeindex-missing"):
		p.indexMade(f, s, loaded && seg.Recovered)
	case c.Action == broker.Create && !index || f.Code == "odd-file-name":
	case c.Action == broker.Keep && index:
		f.Message += "; " + p.startWords() + " uses the file as it is"
	case c.Action == broker.Keep && f.Code == "snapshot-content":
		f.Message += "; " + p.startWords() + " leaves the file where it is"
	case c.Action == broker.Keep:
	default:
		p.fileChanged(f, s, &c, index && loaded && seg.Recovered)
	}
}

// fileChanged says how a file comes out of the start, and how bad what is wrong with it is then.
func (p *partition) fileChanged(f *Finding, s *broker.PartitionStart, c *broker.FileChange, recovered bool) {
	if f.Severity == Damage && p.shutdown != unknownShutdown && traits[f.Code]&(ofIndex|ofTime|ofTxnIndex) != 0 {
		f.Severity = Warning
		if f.Code == "txnindex-entry-missing" && recovered && f.LastOffset+1 == s.LogEnd {
			f.Severity = Note
			f.Message += ", if there are any before the broker starts again: it ended after it had written the marker, and " +
				"before the index"
		}
	}
	f.Message += "; " + p.startWords()
	if recovered {
		f.Message += " recovers the segment and"
	}
	f.Message += actionWords(c, f.Code)
}

// actionWords says what becomes of a file.
func actionWords(c *broker.FileChange, code string) string {
	switch {
	case c.Action == broker.Rename:
		return " puts it in its place, as " + c.RenamedTo
	case c.Action == broker.Truncate && *c.After > 0:
		return fmt.Sprintf(" cuts the file to %s", plural(*c.After, "byte", "bytes"))
	case c.Action == broker.Delete:
		return " deletes the file"
	case strings.HasPrefix(code, "leader-epoch"):
		return " writes a new file, without what does not fit"
	}
	return " makes a new file"
}

// indexMade: without an offset index the segment is recovered, whatever the marker says.
func (p *partition) indexMade(f *Finding, s *broker.PartitionStart, recovered bool) {
	if f.Severity < Warning {
		return
	}
	cut, isCut := cutIn(f.base, s)
	switch {
	case f.Code == "index-missing" && isCut && len(s.Lost.Ranges) > 0:
		f.Severity = Damage
		f.Message += fmt.Sprintf("; %s recovers the segment for it, and cuts it at byte %d%s: put the index back first",
			p.startWords(), cut.At, lostWords(s))
		f.Next = "kseg verify --rebuild DIR " + render.ShellWord(p.dir.Display)
	case recovered:
		f.Message += "; " + p.startWords() + " reads the whole segment and makes the file"
	case f.Code == "index-missing":
		f.Message += "; " + p.startWords() + " makes the file"
	default:
		f.Message += "; " + p.startWords() + " makes an empty one"
	}
}

// onlyCopy: a file that a start deletes may hold what is nowhere else, within the log or beyond its end.
func (p *partition) onlyCopy(f *Finding, s *broker.PartitionStart) bool {
	files := map[string]bool{filepath.Base(f.File): true}
	for _, r := range f.Related {
		files[filepath.Base(r.File)] = true
	}
	for _, r := range s.Lost.CutOff {
		if files[r.File] {
			f.FirstOffset, f.LastOffset = r.First, r.Last
			f.Message = fmt.Sprintf("a follower cut off offsets %d to %d, which were not committed and which the leader of a "+
				"later epoch does not have", r.First, r.Last)
			return true
		}
	}
	for _, r := range s.Lost.Ranges {
		if f.Code == "leftover-swap" && len(s.Cuts) == 0 && !format.ParseFileName(r.File).Leftover() {
			f.Severity = Damage
			f.Message += fmt.Sprintf("; %s puts it in its place and deletes segments that begin before the end of a .swap%s",
				p.startWords(), goneWords(s))
			return true
		}
		if !files[r.File] {
			continue
		}
		f.FirstOffset, f.LastOffset = r.First, r.Last
		f.Severity = Damage
		f.Message = fmt.Sprintf("%s deletes %s, and offsets %d to %d are nowhere else", p.startWords(), r.File, r.First,
			r.Last)
		f.Next = fmt.Sprintf("copy the files of segment %d out of the directory before a broker starts on it",
			format.ParseFileName(r.File).Base)
		return true
	}
	return false
}

// snapshotRead says what the start makes of a snapshot of the metadata log in which something is wrong: of those that a
// newer one or the log replaces nothing is lost.
func (p *partition) snapshotRead(f *Finding, s *broker.PartitionStart) {
	name := filepath.Base(f.File)
	switch read := s.Snapshot; {
	case s.Failure != nil && s.Failure.Place == name:
		f.Message += "; " + p.failed(s.Failure)
	case s.Failure != nil:
	case read == nil || read.Name.Raw != name:
		f.Severity = Warning
		f.Message += "; " + p.startWords() + " begins with a newer one"
	case read.Name.Base == 0:
		if b, _ := p.driver.start(p.dir.Parent); b.Unplaced == "" && !b.StopsAt(p.dir.Display) {
			f.Severity = Warning
			f.Message += "; " + p.startWords() + " goes well with it, since what it has is in the log, which begins at 0, too"
		}
	}
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

// topicRemoved reports whether the metadata say that the topic was deleted: a broker renames the directory right after.
func (p *partition) topicRemoved() bool {
	image := p.driver.settings(p.dir.Parent).Image
	f := p.dir.File(format.KindPartitionMetadata)
	if image == nil || f == nil {
		return false
	}
	raw, ok := p.readSmall(f)
	m, err := format.DecodePartitionMetadata(raw)
	return ok && err == nil && image.Removed(m.TopicID)
}

// strayed: a partition that is set aside is lost to those who read it, if there is anything in it.
func (p *partition) strayed(f *Finding, s *broker.PartitionStart) {
	if s.Stray == "" {
		return
	}
	f.Message += "; " + p.startWords() + " sets the partition aside as -stray: " + s.Stray
	if p.topicRemoved() {
		f.Message += ": the topic was deleted, and its files are to go"
		return
	}
	if slices.ContainsFunc(s.Partition.Segments, func(seg *logdir.Segment) bool { return seg.Log.Size > 0 }) {
		f.Severity = Damage
	}
}
