// Package metadata shows what the cluster's metadata log folds to: the image that a broker has of its cluster
// (KIP-500), as of its end or of any record before, what changed from one record to another, whether its snapshots are
// what the log before them adds up to, and where the partitions on disk and those in the image differ.
package metadata

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strconv"

	"kseg/format"
	"kseg/logdir"
	"kseg/state"
)

// Filter says which things are shown. The zero value shows all.
type Filter struct {
	Topics  []string          // globs; things that belong to no topic are left out if there are any
	Exclude []string          // globs of topics that are left out
	Numbers []int32           // of partitions; what is no partition is left out if there are any
	Broker  *int32            // what is on this broker, or set for it
	Kinds   []state.ThingKind // none: all
}

// Narrow reports whether the filter asks for single topics, partitions, brokers or kinds.
func (f Filter) Narrow() bool {
	return len(f.Topics)+len(f.Numbers)+len(f.Kinds) > 0 || f.Broker != nil
}

func (f Filter) shows(t state.Thing, kind state.ThingKind) bool {
	if len(f.Kinds) > 0 && !slices.Contains(f.Kinds, kind) {
		return false
	}
	if p, is := t.(*state.Partition); len(f.Numbers) > 0 && !(is && slices.Contains(f.Numbers, p.Number)) {
		return false
	}
	topic, has := topicOf(t)
	if has && matches(f.Exclude, topic) || len(f.Topics) > 0 && !(has && matches(f.Topics, topic)) {
		return false
	}
	return f.Broker == nil || f.onBroker(t)
}

// topicOf is the topic that a thing belongs to, if it belongs to one.
func topicOf(t state.Thing) (string, bool) {
	switch t := t.(type) {
	case *state.Topic:
		return t.Name, true
	case *state.Partition:
		return t.Topic, true
	case *state.Config:
		return t.Resource.Name, t.Resource.Type == state.TopicResource
	case *state.ACL:
		return t.ResourceName, t.ResourceType == "TOPIC"
	}
	return "", false
}

func matches(globs []string, name string) bool {
	return slices.ContainsFunc(globs, func(glob string) bool {
		match, err := path.Match(glob, name)
		return err == nil && match
	})
}

func (f Filter) onBroker(t state.Thing) bool {
	id := *f.Broker
	switch t := t.(type) {
	case *state.Broker:
		return t.ID == id
	case *state.Controller:
		return t.ID == id
	case *state.Partition:
		return slices.Contains(t.Replicas, id)
	case *state.Topic:
		for _, p := range t.Partitions {
			if slices.Contains(p.Replicas, id) {
				return true
			}
		}
	case *state.Config:
		return t.Resource.Type == state.BrokerResource && (t.Resource.Name == "" || t.Resource.Name == strconv.Itoa(int(id)))
	}
	return false
}

// Source is a metadata log, or one of its files alone.
type Source struct {
	Display   string
	Partition *logdir.Partition // nil for a file alone
	File      *logdir.File
	Dir       *logdir.LogDir // nil: not known

	MaxBatchBytes int64 // what a batch may decompress to
}

// Sources are the metadata logs among the operands and beside them, and the snapshots and segments given as files.
// Problems are operands that lead to none.
func Sources(set *logdir.Set, gentle *logdir.Gentle, maxBatch int64) (sources []Source, problems []logdir.Problem) {
	for _, o := range set.Operands {
		f := o.File
		if f == nil || o.Err != nil {
			continue
		}
		kind := f.Kind()
		dir, _ := f.Dir()
		if kind == format.KindCheckpoint || kind == format.KindLog && f.Name.HasBase && dir.IsClusterMetadata() {
			sources = append(sources, Source{Display: f.Display, File: f, MaxBatchBytes: maxBatch})
		} else {
			problems = append(problems, logdir.Problem{Display: o.Arg, Err: fmt.Errorf("%s: it is no part of a metadata log; "+
				"name a log directory, a %s or one of its .log and .checkpoint files", o.Arg, state.MetadataDir)})
		}
	}
	if len(sources) > 0 {
		return sources, problems
	}
	for _, l := range state.MetadataLogs(set, gentle) {
		sources = append(sources, Source{Display: l.Partition.Display, Partition: l.Partition, Dir: l.Dir,
			MaxBatchBytes: maxBatch})
	}
	return sources, problems
}

// fold folds the source up to a point.
func (s Source) fold(at state.Point, o state.FoldOptions) (*state.Image, error) {
	if at.Given {
		before := at.Offset + 1
		if at.IsTime {
			var err error
			if before, err = s.offsetAfter(at.TimeMs); err != nil {
				return nil, err
			}
		}
		o.Before = &before
	}
	o.MaxBatchBytes = s.MaxBatchBytes
	if s.Partition == nil {
		return state.ReadImageFile(s.File, o)
	}
	return state.FoldImage(s.Partition, o)
}

func (s Source) offsetAfter(ms int64) (int64, error) {
	files := []*logdir.File{s.File}
	if s.Partition != nil {
		files = s.Partition.All()
	}
	offset, found, err := state.MetadataOffsetAfter(files, ms)
	if err != nil || found {
		return offset, err
	}
	if s.Partition == nil && s.File.Kind() == format.KindCheckpoint {
		return 0, errors.New(s.Display + ": a snapshot alone has no history; leave the time away, or name the log")
	}
	return offset, nil
}

// Newest folds all sources and returns the one that goes furthest, up to the point. The others are told in notes.
func Newest(sources []Source, at state.Point) (best Source, image *state.Image, notes []string,
	problems []logdir.Problem) {
	for _, s := range sources {
		im, err := s.fold(at, state.FoldOptions{})
		if err != nil {
			problems = append(problems, logdir.Problem{Display: s.Display, Err: err})
			continue
		}
		switch {
		case image == nil:
			best, image = s, im
		case im.EndOffset > image.EndOffset:
			notes = append(notes, notShown(best, image))
			best, image = s, im
		default:
			notes = append(notes, notShown(s, im))
		}
	}
	return best, image, notes, problems
}

func notShown(s Source, im *state.Image) string {
	return fmt.Sprintf("%s ends at offset %d and is not shown: another reaches as far or further", s.Display, im.EndOffset)
}
