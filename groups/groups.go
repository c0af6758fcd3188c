// Package groups shows what __consumer_offsets and __share_group_state say: the groups, what they have committed, how
// far that is behind the logs, and what happened to it.
package groups

import (
	"cmp"
	"context"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"kseg/format"
	"kseg/logdir"
	"kseg/state"
	"kseg/walk"
)

// defaultPartitions is Kafka's default of offsets.topic.num.partitions.
const defaultPartitions = 50

// Options say what is asked.
type Options struct {
	Groups, Topics, Exclude []string // globs
	Partitions              []int32  // none: all
	At                      state.Point
	RetentionMs             int64 // offsets.retention.minutes
	Jobs                    int
	MaxBatchBytes           int64
	Progress                func(bytes int64)
}

func (o *Options) wantsGroup(name string) bool { return len(o.Groups) == 0 || matches(o.Groups, name) }

func (o *Options) wants(topic string, partition int32) bool {
	return (len(o.Topics) == 0 || matches(o.Topics, topic)) && !matches(o.Exclude, topic) &&
		(len(o.Partitions) == 0 || slices.Contains(o.Partitions, partition))
}

// narrow reports whether only offsets of some topics or partitions are asked for.
func (o *Options) narrow() bool { return len(o.Topics)+len(o.Partitions) > 0 }

func matches(globs []string, name string) bool {
	return slices.ContainsFunc(globs, func(glob string) bool {
		match, err := path.Match(glob, name)
		return err == nil && match
	})
}

// Line is a committed offset, or where a share group stands, beside the log that it is of.
type Line struct {
	state.CommittedOffset
	Share *state.ShareState // of a share group, whose Offset is the start offset
	// Log are the bounds of the partition, if HasLog: it is among the inputs.
	Log        state.LogBounds
	HasLog     bool
	OutOfRange string // "below_log_start", "beyond_log_end", or "" if it is neither or not known
	ExpiresMs  int64  // if Expires
	Expires    bool
	// Recreated is set if the topic of that name has another id now: the commit is of one that was deleted.
	Recreated bool
	Source    string // the partition of the coordinator's topic
	Unsure    bool
}

// HasOffset is false for a share group that has not begun.
func (l *Line) HasOffset() bool { return l.Share == nil || l.Offset >= 0 }

// Lag is how many offsets lie between the committed one and the log's end, less those that a share group is done with
// already (KIP-1226); negative if the committed one is beyond.
func (l *Line) Lag() (int64, bool) {
	lag := l.Log.End - l.Offset
	if l.Share != nil {
		lag -= int64(max(l.Share.DeliveryComplete, 0))
	}
	return lag, l.HasLog && l.HasOffset()
}

// Group is a group and its lines.
type Group struct {
	*state.Group
	Lines  []*Line
	Source string
	Unsure bool
}

// Lag is the sum of what can be told, 0 for offsets beyond the end; and how many are out of range.
func (g *Group) Lag() (sum int64, known bool, outOfRange int) {
	for _, l := range g.Lines {
		if l.Pending {
			continue
		}
		if lag, ok := l.Lag(); ok {
			sum, known = sum+max(lag, 0), true
		}
		if l.OutOfRange != "" {
			outOfRange++
		}
	}
	return sum, known, outOfRange
}

// Report is the answer.
type Report struct {
	Groups []*Group
	Logs   []state.FoldedLog // of the coordinators' topics
	// Notes say what is elsewhere, or not where it should be.
	Notes []string
	// Elsewhere are groups whose partition is not among the inputs.
	Elsewhere []Elsewhere
	Problems  []logdir.Problem

	topicNames map[format.UUID]string
}

// Elsewhere is a group that is in a partition that is not among the inputs.
type Elsewhere struct {
	Group      string
	Partition  string // of __consumer_offsets
	Partitions int32  // how many that has
	Known      bool   // the metadata tells how many
}

func (e Elsewhere) text() string {
	text := fmt.Sprintf("group %s is in %s, which is not among the inputs", e.Group, e.Partition)
	if !e.Known {
		text += fmt.Sprintf(" (if %s has %d partitions)", format.OffsetsTopic, e.Partitions)
	}
	return text
}

// elsewhere says that a group is in another partition.
func (in *Inputs) elsewhere(r *Report, group string) {
	e := Elsewhere{Group: group}
	e.Partitions, e.Known = in.partitions()
	e.Partition = fmt.Sprintf("%s-%d", format.OffsetsTopic, state.OffsetsPartition(group, e.Partitions))
	r.Elsewhere = append(r.Elsewhere, e)
	r.Notes = append(r.Notes, e.text())
}

// Inputs are the partitions among the operands that groups are made of.
type Inputs struct {
	set      *logdir.Set
	Offsets  []*logdir.Partition
	Share    []*logdir.Partition
	others   map[string][]*logdir.Partition // by topic-partition
	cluster  *state.Cluster
	image    *state.Image
	Problems []logdir.Problem
	Notes    []string
	listed   map[*logdir.Partition]bool
}

// Find looks through the operands. A file stands for the partition that it lies in.
func Find(set *logdir.Set, gentle *logdir.Gentle) *Inputs {
	in := &Inputs{set: set, others: map[string][]*logdir.Partition{}, listed: map[*logdir.Partition]bool{}}
	partitions := set.Partitions()
	for _, o := range set.Operands {
		if o.File == nil || o.Err != nil {
			continue
		}
		if p := o.File.Around(); p != nil && (p.Topic == format.OffsetsTopic || p.Topic == format.ShareStateTopic) {
			partitions = append(partitions, p)
			in.listed[p] = true
			continue
		}
		in.Problems = append(in.Problems, logdir.Problem{Display: o.Arg,
			Err: fmt.Errorf("%s: it is in no partition of %s; name one, or a log directory", o.Arg, format.OffsetsTopic)})
	}
	for _, p := range partitions {
		switch {
		case !p.Named || p.Suffix != "" && p.Rel != ".":
		case p.Topic == format.OffsetsTopic:
			in.Offsets = append(in.Offsets, p)
		case p.Topic == format.ShareStateTopic:
			in.Share = append(in.Share, p)
		default:
			in.others[p.PartitionDir.String()] = append(in.others[p.PartitionDir.String()], p)
		}
	}
	in.cluster = state.OpenCluster(set, gentle)
	in.Problems = append(in.Problems, in.cluster.Problems...)
	in.image = in.cluster.Settings(nil).Image
	return in
}

// NoneYet reports whether there cannot be a group, by metadata that are whole: a broker makes the topic of their
// offsets when the first one looks for its coordinator.
func (in *Inputs) NoneYet() bool {
	return in.image != nil && len(in.image.Lost) == 0 && in.image.Topic(format.OffsetsTopic) == nil
}

// list lists a partition once; it reports whether there is anything.
func (in *Inputs) list(p *logdir.Partition) bool {
	if in.listed[p] || p.Rel == "." {
		return true
	}
	in.listed[p] = true
	problems, gone := p.List()
	in.Problems = append(in.Problems, problems...)
	return !gone
}

// Bytes lists the coordinators' partitions, and is how much there is to read. One without a segment is a problem, and
// left out.
func (in *Inputs) Bytes() (sum int64) {
	for _, list := range []*[]*logdir.Partition{&in.Offsets, &in.Share} {
		*list = slices.DeleteFunc(*list, func(p *logdir.Partition) bool {
			if in.list(p) && len(p.Segments) == 0 {
				in.Problems = append(in.Problems, logdir.Problem{Display: p.Display, Err: p.NoSegment()})
			}
			return len(p.Segments) == 0
		})
		for _, p := range *list {
			for _, s := range p.Segments {
				sum += s.Log.Size
			}
		}
	}
	return sum
}

// Run folds the partitions and puts the groups beside the logs.
func (in *Inputs) Run(ctx context.Context, o Options) *Report {
	r := &Report{topicNames: map[format.UUID]string{}}
	if in.image != nil {
		for id, t := range in.image.Topics() {
			r.topicNames[id] = t.Name
		}
	}
	logs := folded(ctx, in, in.Offsets, &o, state.FoldOffsets)
	shares := folded(ctx, in, in.Share, &o, state.FoldShareState)
	if ctx.Err() != nil {
		return r
	}
	logs = furthest(r, logs, func(l *state.OffsetsLog) *state.FoldedLog { return &l.FoldedLog })
	shares = furthest(r, shares, func(l *state.ShareLog) *state.FoldedLog { return &l.FoldedLog })
	byName := map[string]*Group{}
	for _, l := range logs {
		for _, g := range l.Groups() {
			if o.wantsGroup(g.ID) {
				in.addGroup(r, byName, l, g, &o)
			}
		}
		r.Logs = append(r.Logs, l.FoldedLog)
		in.noteCleaner(r, l.Partition, o.At)
	}
	for _, l := range shares {
		for _, g := range r.Groups {
			g.Unsure = g.Unsure || g.Kind == state.ShareKind && len(l.Lost) > 0
		}
		in.addShares(r, byName, l, &o)
		r.Logs = append(r.Logs, l.FoldedLog)
	}
	in.bounds(r)
	r.Notes = append(r.Notes, in.Notes...)
	in.noteAbsent(r, byName, &o)
	if o.narrow() {
		r.Groups = slices.DeleteFunc(r.Groups, func(g *Group) bool { return len(g.Lines) == 0 })
	}
	r.sort()
	return r
}

// foldOptions fold a partition from its log start offset to the point that is asked for.
func (in *Inputs) foldOptions(ctx context.Context, p *logdir.Partition, o *Options) state.OffsetsOptions {
	known := in.cluster.Dirs.Of(p.Parent).Known(topicPartition(p))
	return state.OffsetsOptions{Known: known, Until: o.At, Progress: o.Progress, MaxBatchBytes: o.MaxBatchBytes,
		Stop: func() bool { return ctx.Err() != nil }}
}

func topicPartition(p *logdir.Partition) state.TopicPartition {
	return state.TopicPartition{Topic: p.Topic, Partition: p.PartitionDir.Partition}
}

// folded lists the partitions and folds each.
func folded[L any](ctx context.Context, in *Inputs, partitions []*logdir.Partition, o *Options,
	fold func(*logdir.Partition, state.OffsetsOptions) L) []L {
	for _, p := range partitions {
		in.list(p)
	}
	return slices.Collect(walk.Ordered(ctx, partitions, max(1, o.Jobs), func(format.Gate) func(*logdir.Partition) L {
		return func(p *logdir.Partition) L { return fold(p, in.foldOptions(ctx, p, o)) }
	}))
}

// furthest keeps of several copies of a partition the one that goes furthest, and lacks less.
func furthest[L any](r *Report, logs []L, about func(L) *state.FoldedLog) []L {
	best := map[int32]L{}
	for _, l := range logs {
		number := about(l).Partition.PartitionDir.Partition
		other, ok := best[number]
		if !ok {
			best[number] = l
			continue
		}
		a, b := about(other), about(l)
		if b.EndOffset > a.EndOffset || b.EndOffset == a.EndOffset && len(b.Lost) < len(a.Lost) {
			best[number] = l
			a, b = b, a
		}
		r.Notes = append(r.Notes, fmt.Sprintf("%s is passed over: %s is the same partition and reaches as far or further",
			b.Partition.Display, a.Partition.Display))
	}
	return slices.DeleteFunc(logs, func(l L) bool {
		return about(best[about(l).Partition.PartitionDir.Partition]) != about(l)
	})
}

func (in *Inputs) addGroup(r *Report, byName map[string]*Group, l *state.OffsetsLog, g *state.Group, o *Options) {
	group := &Group{Group: g, Source: l.Partition.Name, Unsure: len(l.Lost) > 0}
	for i := range g.Offsets {
		c := g.Offsets[i]
		if !o.wants(c.Topic, c.Partition) {
			continue
		}
		line := &Line{CommittedOffset: c, Recreated: in.recreated(&c), Source: l.Partition.Name,
			Unsure: l.UnsureGroup(g) || l.Unsure(c.Record.Offset)} // when it expires hangs on the group
		line.ExpiresMs, line.Expires = g.ExpiresAt(&c, o.RetentionMs)
		group.Lines = append(group.Lines, line)
	}
	r.Groups = append(r.Groups, group)
	byName[g.ID] = group
	if n, known := in.partitions(); known {
		if own := state.OffsetsPartition(g.ID, n); own != l.Partition.PartitionDir.Partition {
			r.Notes = append(r.Notes, fmt.Sprintf("group %s is in %s, though it belongs into %s-%d: its coordinator does not "+
				"know what is here", g.ID, l.Partition.Name, format.OffsetsTopic, own))
		}
	}
}

// recreated reports whether a commit names another topic than the one that has the name now.
func (in *Inputs) recreated(c *state.CommittedOffset) bool {
	if in.image == nil || c.TopicID == (format.UUID{}) {
		return false
	}
	t := in.image.Topic(c.Topic)
	return t != nil && t.ID != c.TopicID
}

func (in *Inputs) addShares(r *Report, byName map[string]*Group, l *state.ShareLog, o *Options) {
	for _, s := range l.States() {
		topic := ""
		if in.image != nil && in.image.Topics()[s.TopicID] != nil {
			topic = in.image.Topics()[s.TopicID].Name
		}
		g := byName[s.Group]
		if g != nil && topic == "" {
			topic = nameIn(g.Shared, s)
		}
		if !o.wantsGroup(s.Group) || !o.wants(topic, s.Partition) {
			continue
		}
		if g == nil {
			g = &Group{Group: &state.Group{ID: s.Group, Kind: state.ShareKind, State: "", StateMs: -1}, Source: "",
				Unsure: len(l.Lost) > 0}
			byName[s.Group] = g
			r.Groups = append(r.Groups, g)
			if !in.holds(s.Group) {
				in.elsewhere(r, s.Group)
			}
		}
		g.Lines = append(g.Lines, &Line{Share: s, Source: l.Partition.Name, Unsure: l.Unsure(s),
			CommittedOffset: state.CommittedOffset{
				Group: s.Group, Topic: topic, TopicID: s.TopicID, Partition: s.Partition, Offset: s.StartOffset,
				LeaderEpoch: s.LeaderEpoch,
				CommitMs:    s.WriteMs, ExpireMs: -1, Record: s.Record, ProducerID: -1}})
	}
}

// nameIn is the name that a group's own record has for the topic of a share state.
func nameIn(list []state.SharePartition, s *state.ShareState) string {
	i := slices.IndexFunc(list, func(p state.SharePartition) bool { return p.TopicID == s.TopicID })
	if i < 0 {
		return ""
	}
	return list[i].Topic
}

// partitions is how many __consumer_offsets has; known is false if the metadata does not tell, and then it is Kafka's
// default, or what is here.
func (in *Inputs) partitions() (n int32, known bool) {
	if in.image != nil {
		if t := in.image.Topic(format.OffsetsTopic); t != nil && len(t.Partitions) > 0 {
			return int32(len(t.Partitions)), true
		}
	}
	n = defaultPartitions
	for _, p := range in.Offsets {
		n = max(n, p.PartitionDir.Partition+1)
	}
	return n, false
}

// noteAbsent tells of groups that were asked for by name and are not here.
func (in *Inputs) noteAbsent(r *Report, byName map[string]*Group, o *Options) {
	for _, name := range o.Groups {
		if strings.ContainsAny(name, `*?[\`) || byName[name] != nil {
			continue
		}
		if in.holds(name) {
			r.Notes = append(r.Notes, fmt.Sprintf("there is no group %s: its partition of %s is here and has nothing of it; "+
				"--history tells whether it ever had", name, format.OffsetsTopic))
			continue
		}
		in.elsewhere(r, name)
	}
}

// noteCleaner tells that the past of a compacted log is not whole.
func (in *Inputs) noteCleaner(r *Report, p *logdir.Partition, at state.Point) {
	if offset, cleaned := in.cleanedTo(p); at.Given && cleaned && (at.IsTime || at.Offset < offset) {
		r.Notes = append(r.Notes, fmt.Sprintf("%s: the log cleaner has been here up to offset %d: what was committed again "+
			"later is not known as of then", p.Name, offset))
	}
}

// bounds puts the logs beside the lines.
func (in *Inputs) bounds(r *Report) {
	known := map[string]*state.LogBounds{}
	for _, g := range r.Groups {
		for _, l := range g.Lines {
			name := l.Topic + "-" + strconv.Itoa(int(l.Partition))
			b, ok := known[name]
			if !ok {
				b = in.boundsOf(name)
				known[name] = b
			}
			if b == nil {
				continue
			}
			l.Log, l.HasLog = *b, true
			switch {
			case !l.HasOffset():
			case l.Offset < b.Start:
				l.OutOfRange = "below_log_start"
			case l.Offset > b.End:
				l.OutOfRange = "beyond_log_end"
			}
		}
	}
	r.Problems = in.Problems
}

// boundsOf are those of the copy that goes furthest, nil if there is none.
func (in *Inputs) boundsOf(name string) *state.LogBounds {
	var best *state.LogBounds
	for _, p := range append(slices.Clone(in.others[name]), in.own(name)...) {
		if !in.list(p) {
			continue
		}
		b, ok, err := state.Bounds(p, in.cluster.Dirs.Of(p.Parent))
		if err != nil {
			in.Problems = append(in.Problems, logdir.Problem{Display: p.Display, Err: err})
		}
		if ok && (best == nil || b.End > best.End) {
			best = &b
		}
	}
	return best
}

// own are the coordinators' partitions of that name: groups may read those too.
func (in *Inputs) own(name string) (list []*logdir.Partition) {
	for _, p := range append(slices.Clone(in.Offsets), in.Share...) {
		if p.PartitionDir.String() == name {
			list = append(list, p)
		}
	}
	return list
}

// sort puts first what hurts: offsets out of range, then the largest lag.
func (r *Report) sort() {
	slices.SortStableFunc(r.Groups, func(a, b *Group) int {
		lagA, _, outA := a.Lag()
		lagB, _, outB := b.Lag()
		return cmp.Or(cmp.Compare(outB, outA), cmp.Compare(lagB, lagA), cmp.Compare(a.ID, b.ID))
	})
	for _, g := range r.Groups {
		slices.SortStableFunc(g.Lines, func(a, b *Line) int { return cmp.Compare(a.hurt(), b.hurt()) })
	}
}

// hurt is smaller the worse a line is.
func (l *Line) hurt() int64 {
	lag, known := l.Lag()
	switch {
	case l.OutOfRange != "":
		return -1 << 62
	case !known:
		return 1
	}
	return -max(lag, 0)
}

// Empty reports whether there is nothing to show.
func (r *Report) Empty() bool { return len(r.Groups) == 0 }

// Lost reports whether something of the coordinators' logs could not be read.
func (r *Report) Lost() bool {
	return slices.ContainsFunc(r.Logs, func(l state.FoldedLog) bool { return len(l.Lost) > 0 })
}

// cleanedTo is the offset up to which the log cleaner has been in a partition.
func (in *Inputs) cleanedTo(p *logdir.Partition) (int64, bool) {
	dir := in.cluster.Dirs.Of(p.Parent)
	offset, ok := dir.Offset(format.KindCleanerOffsetCheckpoint, topicPartition(p))
	return offset, ok && offset > 0
}
