package broker

import (
	"fmt"
	"slices"

	"kseg/logdir"
	"kseg/state"
)

// listed leaves out the log directories that a server.properties does not list, if it lists any: one that lists none is
// of another machine, and says nothing.
func (b *Start) listed(dirs []*logdir.LogDir) []*logdir.LogDir {
	s := b.opts.Server
	if s == nil || !slices.ContainsFunc(dirs, s.names) {
		return dirs
	}
	b.configured = true
	var kept []*logdir.LogDir
	for _, dir := range dirs {
		if dir.Listed && !s.names(dir) {
			b.Notes = append(b.Notes, dir.Display+" is not in the log.dirs of server.properties: the broker does not look at it")
			continue
		}
		kept = append(kept, dir)
	}
	return kept
}

// checkServer holds the log directories of a server.properties against those that are given.
func (b *Start) checkServer(metadata *DirStart) {
	s := b.opts.Server
	if s == nil {
		return
	}
	if slices.Contains(s.Roles, "controller") && s.NodeID != nil && len(s.Voters) > 0 && !slices.Contains(s.Voters,
		*s.NodeID) {
		b.stop("", fmt.Sprintf("by server.properties the node, %d, is a controller, and not one of the quorum's voters, %v",
			*s.NodeID, s.Voters))
	}
	if s.Refused != "" {
		b.stop("", "by server.properties "+s.Refused)
	}
	if !b.configured {
		return
	}
	for i, name := range s.AllDirs() {
		if slices.ContainsFunc(s.AllDirs()[:i], func(other string) bool { return logdir.SamePlace(name, other) }) {
			b.stop(name, "server.properties names the log directory twice, in different words")
		}
	}
	if metadata != nil && metadata.Dir.Listed && !logdir.SamePlace(s.MetadataDir, metadata.Dir.Path) {
		b.stop(metadata.Dir.Display+"/"+state.MetadataDir, "by server.properties the metadata log is in "+s.MetadataDir)
	}
	b.complete = true
	for _, name := range s.AllDirs() {
		given := func(path string) bool { return logdir.SamePlace(name, path) }
		if !slices.ContainsFunc(b.Dirs, func(d *DirStart) bool { return given(d.Dir.Path) }) &&
			!slices.ContainsFunc(b.opts.Empty, given) {
			b.ungiven(name)
		}
	}
}

// ungiven says what a broker makes of a log directory of its server.properties that is not among the operands.
func (b *Start) ungiven(name string) {
	switch place, err := logdir.PlaceAt(name); {
	case err != nil:
		b.Notes, b.complete = append(b.Notes, err.Error()), false
	case place == logdir.Directory:
		b.complete = false
		b.Notes = append(b.Notes, name+" is a log directory of server.properties too: give it with the others")
	case place == logdir.Nowhere:
		b.stop(name, "server.properties names it, and it is not there; a broker makes the directory, and does not start "+
			"with one that kafka-storage.sh has not formatted")
	case name == b.opts.Server.MetadataDir:
		b.stop(name, "the directory of the metadata log is a file")
	default:
		b.Offline = append(b.Offline, Reason{name, "it is a file; the broker starts without that log directory"})
	}
}

// names reports whether the log directory is one of the server.properties.
func (s *Server) names(dir *logdir.LogDir) bool {
	return slices.ContainsFunc(s.AllDirs(), func(name string) bool { return logdir.SamePlace(name, dir.Path) })
}

// keeps reports whether the log directory is one that the broker keeps partitions in.
func (s *Server) keeps(dir *logdir.LogDir) bool {
	return slices.ContainsFunc(s.LogDirs, func(name string) bool { return logdir.SamePlace(name, dir.Path) })
}

// AllDirs are the log directories, and that of the metadata log.
func (s *Server) AllDirs() []string {
	if s.MetadataDir == "" || slices.Contains(s.LogDirs, s.MetadataDir) {
		return s.LogDirs
	}
	return append(slices.Clone(s.LogDirs), s.MetadataDir)
}

// checkBootstrap is what a node looks for beside its metadata log: a file of that name, in any log directory, and a
// bootstrap.checkpoint that tells no metadata.version (BootstrapDirectory).
func (b *Start) checkBootstrap(metadata *DirStart) {
	for _, d := range b.Dirs {
		home := b.keepsMetadata(d, metadata)
		if home && slices.Contains(d.Dir.Links, state.MetadataDir) {
			b.stop(d.Dir.Display+"/"+state.MetadataDir, logdir.ErrDangling.Error())
		}
		for _, f := range d.Dir.Files {
			switch {
			case f.Name.Raw == state.MetadataDir:
				b.stop(f.Display, "the directory of the metadata log is a file")
			case f.Name.Bootstrap() && home && !b.hasVersion(f):
				b.stop(f.Display, "it has no record of the metadata.version")
			}
		}
		if home && slices.Contains(d.Dir.Subdirs, bootstrapName) && !d.loads() {
			b.stop(d.Dir.Display+"/"+bootstrapName, "it is a directory")
		}
	}
}

const bootstrapName = "bootstrap.checkpoint"

// keepsMetadata reports whether a node looks into the log directory for its metadata log: the one of server.properties,
// or else the one where that log lies; where neither is known, any.
func (b *Start) keepsMetadata(d, metadata *DirStart) bool {
	switch {
	case b.configured:
		return logdir.SamePlace(b.opts.Server.MetadataDir, d.Dir.Path)
	case metadata != nil && metadata.Dir.Listed:
		return d == metadata
	default:
		return d.kraft()
	}
}

// hasVersion reports whether a file of metadata records tells the metadata.version. What could not be read from the
// disk is noted, and may tell it.
func (b *Start) hasVersion(f *logdir.File) bool {
	if err := f.View(func([]byte) error { return nil }); err != nil {
		b.Unread = append(b.Unread, logdir.Problem{Display: f.Display, Err: err})
		return true
	}
	image, err := state.ReadImageFile(f, state.FoldOptions{Torn: true})
	return err == nil && slices.ContainsFunc(image.Things(state.FeatureThing), func(t state.Thing) bool {
		return t.Title() == "metadata.version"
	})
}

// lackMetadata says what follows from there being no metadata log, or nothing in it. A node that is not of the quorum
// brings the metadata from those that are; one that is all of a quorum that its server.properties lists begins anew,
// and knows no topic.
func (b *Start) lackMetadata() {
	if !slices.ContainsFunc(b.Dirs, func(d *DirStart) bool { return d.Dir.Listed && d.kraft() }) {
		return
	}
	s := b.opts.Server
	if s == nil || len(s.Roles) == 0 {
		b.Unplaced = "there is no metadata log in what was given, so that it is not known which partitions keep their " +
			"place: give its directory too, or the server.properties (--broker-config). If the node is its cluster's only " +
			"controller and the metadata log is gone, a start sets every partition aside as -stray"
		if b.Metadata != nil {
			b.Unplaced = b.Metadata.Partition.Display + " has no metadata, so that it is not known which partitions keep " +
				"their place: give the server.properties (--broker-config). If the node is its cluster's only controller, a " +
				"start sets every partition aside as -stray"
		}
		return
	}
	switch {
	case !slices.Contains(s.Roles, "controller"):
		b.Unplaced = "there is no metadata log; the broker brings the metadata from the controllers, and what these place " +
			"here is not known"
	case !b.holds(s.MetadataDir):
		b.Unplaced = "the metadata log is in " + s.MetadataDir + " by server.properties, which was not given: it is " +
			"not known which partitions keep their place"
	case len(s.Voters) == 1:
		b.image, b.Forgotten = state.EmptyImage(), true
	case len(s.Voters) > 1:
		b.Unplaced = fmt.Sprintf("the metadata log is gone: the node brings it from the other controllers (there are %d), "+
			"if most of them are there", len(s.Voters)-1)
	case s.Alone:
		b.stop(s.MetadataDir, "the metadata log is gone, and with it the list of the quorum's voters"+forEver)
	default:
		b.Unplaced = "the metadata log is gone, and with it the list of the quorum's voters: the node brings both " +
			"from the other controllers; if it is the only one, it waits for ever, and the broker does not start"
	}
}

// MetadataGone reports whether the metadata log should be among what was given, if it is not: that it is empty, that a
// formatted log directory has no log in it, or that server.properties lists the log directories.
func (b *Start) MetadataGone() bool {
	return b.configured || b.Metadata != nil || slices.ContainsFunc(b.Dirs, (*DirStart).Bare)
}

// Bare reports whether a log directory is formatted, beside others, and has no log.
func (d *DirStart) Bare() bool {
	return len(d.start.Dirs) > 1 && d.Dir.Listed && len(d.Dir.Subdirs) == 0 && d.State.MetaRaw != nil
}

// holds reports whether a directory is among those that were given.
func (b *Start) holds(name string) bool {
	return slices.ContainsFunc(b.Dirs, func(d *DirStart) bool {
		return d.Dir.Listed && logdir.SamePlace(name, d.Dir.Path)
	})
}
