package broker

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"

	"kseg/format"
	"kseg/logdir"
	"kseg/state"
)

// StartOptions say what is supposed of a start.
type StartOptions struct {
	// Clean supposes that the broker has stopped cleanly, or not; nil: by the marker. RecoveryPoint and LogStart stand
	// for what the checkpoints say of each partition.
	Clean                   *bool
	RecoveryPoint, LogStart *int64
	Edits                   []Edit
	Server                  *Server // nil: no server.properties is known
	// Empty are directories with nothing in them that were given as log directories.
	Empty         []string
	NowMs         int64
	MaxBatchBytes int64
	Jobs          int
	// Settings are those of the broker that a log directory (nil: unknown) belongs to.
	Settings func(dir *logdir.LogDir) *state.Settings
	Progress func(bytes int64)
	Stop     func() bool
}

// Start is what the next start of one broker does to its log directories.
type Start struct {
	Dirs []*DirStart
	// Stops is why the broker does not start; empty if nothing is known to keep it.
	Stops []Reason
	// Metadata is what becomes of the metadata log, nil if there is none here. Vanished are the topics that are in what
	// goes of it.
	Metadata *PartitionStart
	Vanished []string
	// Voters are the controllers of the quorum; 0 if that is not known. What one of several lacks it fetches from the
	// others.
	Voters int
	// Unplaced is why it is not known which partitions the metadata place here, a sentence; "" if that is known.
	Unplaced string
	// Forgotten: the metadata log is gone, and the node, being all of the quorum, begins a new one.
	Forgotten bool
	// Notes are sentences about log directories that are not among Dirs, or that the broker does not look at.
	Notes []string
	// Offline are log directories of server.properties that are none.
	Offline []Reason
	// Unread are files of the metadata log that could not be read from the disk.
	Unread []logdir.Problem

	opts  *StartOptions
	image *state.Image // as it is after the start; nil: unknown
	// configured: server.properties lists some of Dirs; complete: all that it lists, or the broker has, are there.
	configured, complete bool
	aside                map[string]bool // paths of partitions that are set aside, once they are loaded
	node                 *int32
	mu                   sync.Mutex
}

// DirStart is what a start does with one log directory.
type DirStart struct {
	Dir   *logdir.LogDir
	State *state.Dir
	Clean bool
	// Offline is why the directory goes offline, nil if it does not.
	Offline []Reason
	// Refused is why none of its partitions is served, though it stays online; nil if they are.
	Refused []Reason
	// Early: it is offline before a partition is loaded. Unused: its partitions are not even looked at.
	Early, Unused bool
	// NoLogs: by server.properties it has the metadata log alone; whatever else is in it is not looked at.
	NoLogs bool

	start   *Start
	withID  bool
	effects map[format.Kind]Effect
}

// PartitionStart is what a start does with one partition.
type PartitionStart struct {
	Partition *logdir.Partition
	Clean     bool
	// RecoveryPoint and LogStart are what the checkpoints say; Interval is the index.interval.bytes that was taken.
	RecoveryPoint, LogStart, Interval int64
	*Loaded
	// Replaced is the -future log that takes its place, since the move to another log directory was finished; nil if
	// there is none. This one is deleted.
	Replaced *PartitionStart
	// Stray is why it is set aside, as -stray, once it is loaded; "" if it is not. Topics begin anew where the metadata
	// place them.
	Stray string
	// Hazards are what a broker does soon after, because of what it has loaded.
	Hazards []Hazard
	// Unserved: what is loaded is not served, since the log directory goes offline or refuses it.
	Unserved bool
	// Err says what could not be read; Loaded is nil then.
	Err error
}

// Harmless reports whether a start takes nothing away from the partition: it is loaded, keeps its place and every
// offset.
func (p *PartitionStart) Harmless() bool {
	return p.Err == nil && p.Failure == nil && !p.Hidden() && len(p.Lost.Ranges) == 0 && len(p.Hazards) == 0
}

// Hidden reports whether records are set aside, where nobody reads them; those of a move to another log directory are
// copies.
func (p *PartitionStart) Hidden() bool {
	return p.Stray != "" && p.Partition.Suffix != "future" && slices.ContainsFunc(p.Segments,
		func(s LoadedSegment) bool { return s.Size > 0 })
}

func (b *Start) stop(file, text string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.Stops = append(b.Stops, Reason{file, text})
}

func (d *DirStart) offline(file, text string) {
	d.start.mu.Lock()
	defer d.start.mu.Unlock()
	d.Offline = append(d.Offline, Reason{file, text})
}

// NewStart looks at all that a broker looks at before it loads a partition: names, small files, the metadata log. The
// log directories must be of one broker (see Brokers). The error says what could not be read.
func NewStart(dirs []*logdir.LogDir, known *state.Dirs, opts *StartOptions) (*Start, error) {
	b := &Start{opts: opts}
	dirs = b.listed(dirs)
	var metadata *DirStart
	for _, dir := range dirs {
		d := &DirStart{Dir: dir, State: editedDir(known.Of(dir), opts.Edits), start: b}
		d.Clean = d.State.Marker != nil || slices.Contains(dir.Subdirs, markerName)
		if opts.Clean != nil {
			d.Clean = *opts.Clean
		}
		for _, p := range dir.Partitions {
			d.withID = d.withID || p.File(format.KindPartitionMetadata) != nil
		}
		if m := &d.State.Meta; m.HasNodeID && b.node == nil {
			b.node = &m.NodeID
		}
		d.NoLogs = b.configured && !opts.Server.keeps(dir)
		b.Dirs = append(b.Dirs, d)
		if metadata == nil && (d.hasMetadata() || !dir.Listed) {
			metadata = d
		}
	}
	if node := opts.Server.node(); node != nil {
		b.node = node
	}
	b.checkProperties()
	b.checkNames(metadata)
	b.checkBootstrap(metadata)
	if len(b.Dirs) > 0 {
		for _, dir := range opts.Empty {
			b.empty(dir)
		}
	}
	b.checkServer(metadata)
	var err error
	if metadata != nil {
		err = b.loadQuorum(metadata)
	}
	if err == nil && b.image == nil && (b.Metadata == nil || b.Metadata.Failure == nil) {
		b.lackMetadata()
	}
	for _, d := range b.Dirs {
		d.checkCheckpoints()
	}
	return b, err
}

// loadQuorum loads the metadata log, and finds what is left of the metadata.
func (b *Start) loadQuorum(d *DirStart) error {
	set, err := logdir.Open([]string{d.Dir.Path + "/" + state.MetadataDir}, logdir.Options{})
	if err != nil || set.Operands[0].Partition == nil {
		return nil //nolint:nilerr // there is nothing in it
	}
	p := set.Operands[0].Partition
	p.Parent, p.Display, p.Rel = d.Dir, d.Dir.Display+"/"+state.MetadataDir, state.MetadataDir
	b.Metadata = &PartitionStart{Partition: p, Interval: metadataInterval}
	_ = p.Steady(func() error {
		b.Metadata.Loaded, b.Metadata.Err = loadMetadata(p, b.loadOptions(b.Metadata))
		return b.Metadata.Err
	})
	if b.Metadata.Err != nil {
		return fmt.Errorf("%s: %w", p.Display, b.Metadata.Err)
	}
	b.readQuorumState(p)
	if id, has, err := topicID(p); err == nil && has && id != metadataTopicID {
		b.stop(p.Display+"/"+format.KindPartitionMetadata.Info().Name, fmt.Sprintf("the topic id is %s, and that of the "+
			"metadata log is always %s", id, metadataTopicID))
	}
	if f := b.Metadata.Failure; f != nil {
		b.stop(p.Display, f.Error())
		return nil
	}
	before, err := state.ReadImage(p)
	if err != nil {
		before = nil // an empty log has no metadata
	}
	b.image, err = b.imageAfter(p, before)
	if err != nil || b.image == nil || b.image.Empty() {
		b.image = nil
		return nil //nolint:nilerr // nothing is left
	}
	if before != nil && b.image != before {
		b.vanish(before)
	}
	if at := b.image.Dangling; at != nil {
		b.stop(p.Display, fmt.Sprintf("the record at offset %d is about a partition that the metadata before it do not know",
			at.Offset))
	}
	b.recognize()
	b.checkOwners()
	b.checkVoters(d)
	b.complete = b.complete || b.replaced()
	b.noteElsewhere()
	return nil
}

// checkOwners stops a node with a log directory that the metadata know as another's: its registration is refused.
func (b *Start) checkOwners() {
	for _, t := range b.image.Things(state.BrokerThing) {
		for _, d := range b.Dirs {
			r, ok := t.(*state.Broker)
			m, file := &d.State.Meta, d.Dir.Display+"/"+format.KindMetaProperties.Info().Name
			if ok && m.HasDirectoryID && m.HasNodeID && slices.Contains(r.LogDirs, m.DirectoryID) && r.ID != m.NodeID &&
				!b.StopsAt(file) {
				b.stop(file, fmt.Sprintf("node.id is %d, and by the metadata the log directory is node %d's: the cluster does not "+
					"let it in", m.NodeID, r.ID))
			}
		}
	}
}

// recognize takes the node that has registered one of the log directories for the broker, if no server.properties
// tells.
func (b *Start) recognize() {
	if b.opts.Server.node() != nil {
		return
	}
	for _, t := range b.image.Things(state.BrokerThing) {
		r, ok := t.(*state.Broker)
		if ok && slices.ContainsFunc(b.Dirs, func(d *DirStart) bool {
			return d.State.Meta.HasDirectoryID && slices.Contains(r.LogDirs, d.State.Meta.DirectoryID)
		}) {
			b.node = &r.ID
		}
	}
}

// imageAfter is what the start leaves of the metadata: the newest snapshot, as far as it can be read, and the log after
// it.
func (b *Start) imageAfter(p *logdir.Partition, before *state.Image) (*state.Image, error) {
	from := b.Metadata.Snapshot
	lost := len(b.Metadata.Lost.Ranges) > 0
	if !lost && before != nil && (before.From == from || before.From != nil && from != nil &&
		before.From.Path == from.Path) {
		return before, nil
	}
	options := state.FoldOptions{From: from, Fresh: from == nil, Torn: true}
	if end := b.Metadata.LogEnd; lost {
		options.Before = &end
	}
	return state.FoldImage(p, options)
}

// vanish lists the topics that the metadata have lost: those that they knew before, and those of partitions here, since
// what named them may be the damage itself.
func (b *Start) vanish(before *state.Image) {
	gone := map[string]bool{}
	for id, t := range before.Topics() {
		gone[t.Name] = b.image.Topics()[id] == nil
	}
	for _, d := range b.Dirs {
		for _, name := range d.Dir.Subdirs {
			if p, ok := format.ParsePartitionDir(name); ok && p.Suffix == "" && !p.IsClusterMetadata() &&
				b.image.Topic(p.Topic) == nil {
				gone[p.Topic] = true
			}
		}
	}
	for name, is := range gone {
		if is {
			b.Vanished = append(b.Vanished, name)
		}
	}
	slices.Sort(b.Vanished)
}

// producerExpirationMs is Kafka's default of producer.id.expiration.ms.
const producerExpirationMs = 24 * 60 * 60 * 1000

func (b *Start) loadOptions(p *PartitionStart) LoadOptions {
	return LoadOptions{Clean: p.Clean, RecoveryPoint: p.RecoveryPoint, LogStart: p.LogStart, Interval: p.Interval,
		IndexBytes: metadataIndexBytes,
		ExpiredMs:  b.opts.NowMs - producerExpirationMs, MaxBatchBytes: b.opts.MaxBatchBytes, Edits: b.opts.Edits,
		Progress: b.opts.Progress,
		Stop:     b.opts.Stop}
}

// Load is what a start does with a partition; dir is nil if its log directory is unknown, which counts as an unclean
// stop.
func (b *Start) Load(dir *DirStart, p *logdir.Partition) *PartitionStart {
	out := b.load(dir, p)
	if b.opts.Progress != nil {
		unread := int64(0)
		for _, s := range p.Segments {
			unread += s.Log.Size
		}
		if out.Loaded != nil {
			unread -= out.BytesRead
		}
		b.opts.Progress(max(0, unread))
	}
	return out
}

func (b *Start) load(dir *DirStart, p *logdir.Partition) *PartitionStart {
	if p.IsClusterMetadata() {
		return b.loadMetadataOf(p)
	}
	out := &PartitionStart{Partition: p}
	if dir != nil {
		out.Clean = dir.Clean
		out.RecoveryPoint = dir.checkpointed(format.KindRecoveryPointCheckpoint, p)
		out.LogStart = dir.checkpointed(format.KindLogStartOffsetCheckpoint, p)
	} else if b.opts.Clean != nil {
		out.Clean = *b.opts.Clean
	}
	for to, supposed := range map[*int64]*int64{&out.RecoveryPoint: b.opts.RecoveryPoint,
		&out.LogStart: b.opts.LogStart} {
		if supposed != nil {
			*to = *supposed
		}
	}
	var parent *logdir.LogDir
	if dir != nil {
		parent = dir.Dir
	}
	opts := b.partitionOptions(out, b.opts.Settings(parent))
	if dir != nil {
		tp := state.TopicPartition{Topic: p.Topic, Partition: p.PartitionDir.Partition}
		if mark, ok := dir.State.Offset(format.KindReplicationOffsetCheckpoint, tp); ok {
			opts.Watermark = &mark
		}
	}
	if out.Loaded, out.Err = Load(p, opts); out.Err != nil {
		return out
	}
	if f := out.Failure; f != nil {
		b.failed(dir, p, f)
		return out
	}
	if dir != nil && slices.Contains(p.Subdirs, epochsTemporary) {
		dir.offline(p.Display+"/"+epochsTemporary, "it is a directory; the broker cannot write the leader epochs")
	}
	out.Stray, out.Err = b.stray(p)
	if p.Suffix == "" {
		out.Hazards = hazards(p, out.Loaded)
	}
	return out
}

// loadSteadily is Load, again while files of the partition vanish.
func (b *Start) loadSteadily(dir *DirStart, p *logdir.Partition) (out *PartitionStart) {
	err := p.Steady(func() error {
		out = b.Load(dir, p)
		return out.Err
	})
	if out == nil || errors.Is(err, logdir.ErrGone) {
		out = &PartitionStart{Partition: p, Err: err}
	}
	return out
}

func (b *Start) loadMetadataOf(p *logdir.Partition) *PartitionStart {
	if b.Metadata != nil && strings.TrimSuffix(b.Metadata.Partition.Path, "/") == strings.TrimSuffix(p.Path, "/") {
		return b.Metadata
	}
	out := &PartitionStart{Partition: p, Interval: metadataInterval}
	out.Loaded, out.Err = loadMetadata(p, b.loadOptions(out))
	return out
}

// partitionOptions adds what the settings of the topic say.
func (b *Start) partitionOptions(p *PartitionStart, s *state.Settings) LoadOptions {
	topic := p.Partition.Topic
	interval := s.Topic(topic, "index.interval.bytes")
	p.Interval = interval.Int()
	if interval.Source == state.FromDefault && s.Image == nil {
		p.Interval = InferInterval(p.Partition)
	}
	opts := b.loadOptions(p)
	opts.IndexBytes = s.Topic(topic, "segment.index.bytes").Int()
	opts.Preallocate, opts.SegmentBytes = s.Topic(topic, "preallocate").Bool(), s.Topic(topic, "segment.bytes").Int()
	opts.Tiered = s.Topic(topic, "remote.storage.enable").Bool() && !strings.HasPrefix(topic, "__")
	opts.LedElsewhere = func(epoch int32) bool { return s.LedElsewhere(p.Partition.PartitionDir, epoch) }
	return opts
}

// failed notes what a partition that is not loaded does to the broker.
func (b *Start) failed(dir *DirStart, p *logdir.Partition, f *Failure) {
	place := p.Display
	if f.Place != "" {
		place += "/" + f.Place
	}
	if dir != nil && dir.Unused {
		return
	}
	if f.Offline && dir != nil {
		dir.offline(place, f.Err.Error())
		return
	}
	b.stop(place, f.Err.Error())
}

func (b *Start) stray(p *logdir.Partition) (string, error) {
	if b.image == nil || b.node == nil || !p.Named {
		return "", nil
	}
	id, has, err := topicID(p)
	if err != nil {
		return "", err
	}
	return strayReason(p, id, has, b.image, *b.node), nil
}

// SetsAside reports whether a partition is set aside, once it is loaded.
func (b *Start) SetsAside(p *logdir.Partition) bool {
	why, err := b.stray(p)
	return err == nil && why != ""
}

// Partitions loads partitions with so many workers, and yields them in order. dirs gives the directory of each.
func (b *Start) Partitions(ctx context.Context, partitions []*logdir.Partition,
	dirs map[*logdir.LogDir]*DirStart) iter.Seq[*PartitionStart] {
	return func(yield func(*PartitionStart) bool) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		places := make([]chan *PartitionStart, len(partitions))
		for i := range places {
			places[i] = make(chan *PartitionStart, 1)
		}
		slots := make(chan struct{}, max(1, b.opts.Jobs))
		var work sync.WaitGroup
		defer work.Wait()
		work.Go(func() {
			for i, p := range partitions {
				select {
				case slots <- struct{}{}:
				case <-ctx.Done():
					return
				}
				work.Go(func() {
					places[i] <- b.loadSteadily(dirs[p.Parent], p)
					<-slots
				})
			}
		})
		for _, place := range places {
			select {
			case p := <-place:
				if ctx.Err() != nil || !yield(p) {
					return
				}
			case <-ctx.Done():
				return
			}
		}
	}
}

// Finish says what follows when all partitions have been loaded: of one that is in use twice, of moves that were
// finished, and of directories that are all offline.
func (b *Start) Finish(all []*PartitionStart) {
	seen := map[string]*PartitionStart{}
	b.aside = map[string]bool{}
	for _, p := range all {
		suffix := p.Partition.Suffix
		if p.Loaded == nil || p.Failure != nil || !p.Partition.Named || p.Partition.IsClusterMetadata() ||
			b.unused(p.Partition) {
			continue
		}
		if p.Stray != "" {
			b.aside[p.Partition.Path] = true
		}
		if p.Stray != "" || suffix == "delete" || suffix == "stray" {
			continue
		}
		key := p.Partition.PartitionDir.String() + suffix
		if other := seen[key]; other != nil {
			b.stop(p.Partition.Display, "the partition is in "+other.Partition.Display+" too")
		}
		seen[key] = p
	}
	b.unstable(all)
	b.checkRoom()
	b.finishMoves(seen)
	offline := map[*logdir.LogDir]bool{}
	left := false
	for _, d := range b.Dirs {
		offline[d.Dir] = len(d.Offline)+len(d.Refused) > 0
		left = left || len(d.Offline) == 0 && !d.NoLogs && !(d.MetadataOnly() && len(b.Dirs) > 1)
	}
	for _, p := range all {
		p.Unserved = offline[p.Partition.Parent]
	}
	if len(b.Dirs) > 0 && !left && (len(b.Offline) > 0 || slices.ContainsFunc(b.Dirs, (*DirStart).isOffline)) {
		b.Stops = append(b.Stops, Reason{Text: "no log directory is left that is not offline"})
	}
}

func (d *DirStart) isOffline() bool { return len(d.Offline) > 0 }

// unused reports whether a partition lies in a log directory that is offline from the beginning.
func (b *Start) unused(p *logdir.Partition) bool {
	return slices.ContainsFunc(b.Dirs, func(d *DirStart) bool { return d.Dir == p.Parent && d.Unused })
}

// unstable finds partitions with an unstable offset in a directory that goes offline: a broker reads them once more
// when it has loaded them, and does not start if it cannot. Nor does it if it cannot set one aside.
func (b *Start) unstable(all []*PartitionStart) {
	for _, p := range all {
		if p.Loaded == nil || !p.Unstable && p.Stray == "" || p.Failure != nil {
			continue
		}
		for _, d := range b.Dirs {
			if d.Dir != p.Partition.Parent || len(d.Offline) == 0 || d.Unused {
				continue
			}
			switch {
			case d.Early && p.Unstable:
				b.stop(p.Partition.Display, "a transaction is open in it or ended after its newest snapshot, and its log "+
					"directory is offline by the time that it is loaded")
			case d.Early:
				b.stop(p.Partition.Display, "it cannot be set aside, since its log directory is offline by then: "+p.Stray)
			case p.Stray != "":
				d.offline(p.Partition.Display, "it is to be set aside; if it is loaded after the directory went offline, the "+
					"broker does not start")
			case p.Unstable:
				d.offline(p.Partition.Display, "a transaction is open in it or ended after its newest snapshot; if it "+
					"is loaded after the directory went offline, the broker does not start")
			}
		}
	}
}

// editedDir is a log directory's state after the edits.
func editedDir(d *state.Dir, edits []Edit) *state.Dir {
	for _, e := range edits {
		d = d.Without(e.Matches, e.Truncate)
	}
	return d
}

// ErrStopped is in what could not be read when Stop said so.
var ErrStopped = errStopped
