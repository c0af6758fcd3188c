package logdir

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"kseg/format"
)

// ErrUsage marks errors that are the caller's: an option that does not go with the operands.
var ErrUsage = errors.New("usage")

// ErrNothing marks the error of a filter that nothing matches, and of operands in which nothing is left to do.
var ErrNothing = errors.New("nothing to read")

// Options narrow what Open finds.
type Options struct {
	Topics     []string // globs as in path.Match; a partition is kept if its topic matches one. None: all
	Exclude    []string // globs; a partition is left out if its topic matches one, whatever Topics say
	Partitions []int32  // partition numbers to keep. None: all
	Segments   []int64  // base offsets to keep, with all files that carry them in their name. None: all
	// BaseOffset is the offset of the files given as operands, whatever their name says. Only for files.
	BaseOffset *int64
	// Gentle, if not nil, bounds how the files are read.
	Gentle *Gentle
	// Skim gives, for each log of a partition in an archive that is read as a stream, those of internal topics aside, what
	// is called with each batch, in order, and returns what is kept of it: bytes for its front; the rest is read as zeros
	// later. It may overwrite the batch. nil: all is kept.
	Skim func() func(batch []byte) []byte
	// Unlisted leaves the partitions of log directories without their files, until Partition.List is called: for tens of
	// thousands of partitions, of which each is looked at once.
	Unlisted bool
}

// Narrows reports whether the options leave out partitions or segments.
func (o *Options) Narrows() bool {
	return len(o.Topics)+len(o.Exclude)+len(o.Partitions)+len(o.Segments) > 0
}

// Set is what Open found.
type Set struct {
	Operands []Operand // one for each path, in their order
	// Problems are all the things that could not be read, those of Operands included. They make an answer incomplete.
	Problems []Problem
}

// Operand is what one path turned out to be. Exactly one of LogDir, Partition and File is set if Err is nil. If Err is
// a *ForeignError, File is set beside it where the operand is a file.
type Operand struct {
	Arg       string
	LogDir    *LogDir
	Partition *Partition
	File      *File
	Err       error
}

// Problem is something that could not be read, listed or found. Err is a whole sentence that names its place.
type Problem struct {
	Display string
	Err     error
}

// ErrDangling is in the problem of a link that leads nowhere.
var ErrDangling = errors.New("a link that leads nowhere")

// Error is the sentence.
func (p Problem) Error() string { return p.Err.Error() }

// Unwrap is Err.
func (p Problem) Unwrap() error { return p.Err }

// LogDir is one log directory.
type LogDir struct {
	Path    string
	Display string
	// Files are the state files, and whatever else lies there, in dump order.
	Files []*File
	// Partitions are those that the options keep, by topic and number.
	Partitions []*Partition
	// Subdirs are the names of all directories, kept or not, partitions or not, sorted. It is nil if Listed is false.
	Subdirs []string
	// Links are the names of links that lead nowhere.
	Links []string
	// Own is what du counts for the directory itself.
	Own Usage
	// Listed is false for the parent of a partition or file that was given alone: then only its state files are known.
	Listed bool
	// Narrowed is true if the options leave something out. Then Files, though known, are not asked for.
	Narrowed bool

	opts *Options
}

// Keeps reports whether the options of the run keep a partition of that name, if there is one.
func (d *LogDir) Keeps(topic string, partition int32) bool {
	return d.opts == nil || d.opts.keeps(topic, partition)
}

// File is the state file of that kind, or nil.
func (d *LogDir) File(kind format.Kind) *File { return fileOfKind(d.Files, kind) }

// Partition is one partition's directory.
type Partition struct {
	format.PartitionDir
	// Named is false if the directory is not named as a partition's, as in a folder of copies: then only its files tell
	// that it is one, and PartitionDir is empty.
	Named   bool
	Name    string // the name of the directory
	Path    string
	Display string
	Rel     string // relative to the operand; "." if it is the operand
	// Segments are those that the options keep, by base offset. All have a Log.
	Segments []*Segment
	// Files are all the files that the options keep, in dump order, those of the segments included.
	Files []*File
	// Subdirs are the names of directories inside, which Kafka does not make, and Links those of links that lead nowhere.
	Subdirs, Links []string
	// Own is what du counts for the directory itself, or for the link to it if Linked.
	Own Usage
	// Linked is true if a link in the log directory leads to the directory, which then lies elsewhere.
	Linked bool
	// Parent is the log directory; for a partition given alone it is nil unless there are state files beside it.
	Parent *LogDir
	// ListErr is why the directory could not be listed, or not to its end: then nothing follows from what is not in Files.
	ListErr error

	// Modified is when the directory last got, lost or renamed a file, as of the listing.
	Modified time.Time
	fresh    bool // it had changed just before that
	stale    bool // the files are not those of then

	all    []*File // before narrowing by segment
	byName map[string]*File
	opts   *Options
	listed bool
}

// File is the state file of that kind, or nil. It is found also when the options narrow the segments.
func (p *Partition) File(kind format.Kind) *File { return fileOfKind(p.all, kind) }

// FileNamed is the file of that name, or nil. It is found also when the options narrow the segments.
func (p *Partition) FileNamed(name string) *File { return p.byName[name] }

// All are all the files, also those that the options leave out, in dump order.
func (p *Partition) All() []*File { return p.all }

// Segment is one segment: a log and the files of the same name beside it.
type Segment struct {
	Base      int64
	Partition *Partition
	Log       *File // never nil
	Index     *File // nil if missing, as are the following
	TimeIndex *File
	TxnIndex  *File
	// Snapshot is the producer snapshot of this base offset: the producers' state before the segment.
	Snapshot *File
	// Prev and Next are the neighbours in the partition, also if the options leave those out. The one without Next is the
	// active segment, or was.
	Prev, Next *Segment
}

// fileOfKind is the first file of a kind that is in use: no leftover.
func fileOfKind(files []*File, kind format.Kind) *File {
	for _, f := range files {
		if f.Kind() == kind && !f.Name.Leftover() {
			return f
		}
	}
	return nil
}

// LogDirs are the log directories among the operands.
func (s *Set) LogDirs() []*LogDir {
	var dirs []*LogDir
	for _, o := range s.Operands {
		if o.LogDir != nil {
			dirs = append(dirs, o.LogDir)
		}
	}
	return dirs
}

// Partitions are all partitions, in the order of the operands.
func (s *Set) Partitions() []*Partition {
	var ps []*Partition
	for _, o := range s.Operands {
		switch {
		case o.LogDir != nil:
			ps = append(ps, o.LogDir.Partitions...)
		case o.Partition != nil:
			ps = append(ps, o.Partition)
		}
	}
	return ps
}

// Chosen are the partitions among the operands, and whether each was asked for by name. A file of a segment stands for
// the partition that it lies in, narrowed to that segment: its neighbours decide about it. Problems are files that
// belong to no segment.
func (s *Set) Chosen() (partitions []*Partition, named []bool, problems []Problem) {
	for _, o := range s.Operands {
		switch {
		case o.Err != nil:
		case o.LogDir != nil:
			partitions = append(partitions, o.LogDir.Partitions...)
		case o.Partition != nil:
			partitions = append(partitions, o.Partition)
		default:
			p, err := o.File.neighbourhood()
			if err != nil {
				problems = append(problems, Problem{Display: o.Arg, Err: err})
				continue
			}
			partitions = append(partitions, p)
		}
		asked := o.LogDir == nil || o.LogDir.Narrowed
		for len(named) < len(partitions) {
			named = append(named, asked)
		}
	}
	return partitions, named, problems
}

// Files are all files in dump order: operand by operand, partitions by name, a log directory's own files last.
func (s *Set) Files() []*File {
	var files []*File
	for _, o := range s.Operands {
		files = append(files, o.Files()...)
	}
	return files
}

// Files are the operand's files in dump order; none if there was an error.
func (o Operand) Files() []*File {
	switch {
	case o.Err != nil:
		return nil
	case o.LogDir != nil:
		var files []*File
		for _, p := range o.LogDir.Partitions {
			files = append(files, p.Files...)
		}
		if o.LogDir.Narrowed {
			return files
		}
		return append(files, o.LogDir.Files...)
	case o.Partition != nil:
		return o.Partition.Files
	}
	return []*File{o.File}
}

// Open finds what paths lead to. What cannot be read becomes a Problem in the Set; the error is only for the whole: an
// option that makes no sense (it wraps ErrUsage), or a filter that matches nothing (ErrNothing), which says what there
// is. A file costs a stat, and the reading of its first bytes if its name is not one that Kafka uses.
func Open(paths []string, opts Options) (*Set, error) {
	if err := errors.Join(checkGlobs("--topic", opts.Topics), checkGlobs("--exclude", opts.Exclude)); err != nil {
		return nil, err
	}
	o := opener{opts: opts, set: &Set{}}
	for _, arg := range paths {
		if err := o.operand(arg); err != nil {
			return nil, err
		}
	}
	if err := o.checkFilters(); err != nil {
		return nil, err
	}
	return o.set, nil
}

func checkGlobs(flag string, globs []string) error {
	for _, glob := range globs {
		if _, err := path.Match(glob, ""); err != nil {
			return fmt.Errorf("%w: %s %q is not a pattern: %w; * stands for any text, ? for a character, [a-z] for one "+
				"of several", ErrUsage, flag, glob, err)
		}
	}
	return nil
}

// opener carries what Open has found so far, and what the filters left out, for the sentence that says so.
type opener struct {
	opts    Options
	set     *Set
	skipped []format.PartitionDir // partitions that Topics and Partitions leave out
	kept    []format.PartitionDir // the others
	bases   []int64               // base offsets of all segments in the kept ones, if Segments are asked for
}

func (o *opener) problem(display string, err error) {
	o.set.Problems = append(o.set.Problems, Problem{display, err})
}

// operand looks at one path. Its error is one of usage.
func (o *opener) operand(arg string) error {
	o.archiveAbove(arg)
	if roots, err := o.archive(arg); roots != nil || err != nil {
		return o.members(arg, roots, err)
	}
	op := Operand{Arg: arg}
	info, err := stat(arg)
	switch {
	case err != nil:
		op.Err = statError(arg, err)
	case info.IsDir():
		if o.opts.BaseOffset != nil {
			return fmt.Errorf("%w: --base-offset says where one file begins, and %s is a directory", ErrUsage, arg)
		}
		if !o.directory(arg, &op, usageOf(arg, info)) {
			return nil
		}
	default:
		op.File = newFile(arg, arg, filepath.Base(arg), info, o.opts.Gentle)
		op.Err = o.classifyFile(op.File)
	}
	if op.Err != nil {
		o.problem(arg, op.Err)
	}
	o.set.Operands = append(o.set.Operands, op)
	return nil
}

func statError(arg string, err error) error {
	switch {
	case arg == "":
		return errors.New("an empty path leads nowhere; is a variable unset?")
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("%s: %w; run as the broker's user, or on a copy", arg, bareError(err))
	case errors.Is(err, fs.ErrNotExist) && strings.ContainsAny(arg, "*?["):
		return fmt.Errorf("%s: %w: nothing matches the pattern; --topic takes one, too", arg, bareError(err))
	case errors.Is(err, fs.ErrNotExist) && !strings.ContainsAny(arg, `/\.`):
		return fmt.Errorf("%s: %w; give its place on disk, or the log directory and --topic", arg, bareError(err))
	}
	return fmt.Errorf("%s: %w", arg, bareError(err))
}

// directory finds out which kind of directory an operand is, and lists it. It is false for a partition that the options
// leave out, and for a directory whose files are operands of their own.
func (o *opener) directory(arg string, op *Operand, own Usage) bool {
	modified := modTime(arg)
	entries, err := readDir(arg)
	if err != nil && len(entries) == 0 {
		op.Err = statError(arg, err)
		return true
	}
	if err != nil {
		o.problem(arg, fmt.Errorf("%w; what was listed before that is read", statError(arg, err)))
	}
	switch classifyDir(arg, entries, lookDepth) {
	case isPartition:
		name, dir, named := partitionName(arg)
		p := &Partition{PartitionDir: dir, Named: named, Name: name, Path: arg, Display: arg, Rel: ".", Own: own,
			opts:   &o.opts,
			listed: true, Modified: modified, fresh: fresh(modified), ListErr: err}
		p.Parent = parentOf(arg, o.opts.Gentle)
		if !o.wanted(p) {
			return false
		}
		o.fillPartition(p, entries)
		op.Partition = p
	case isLogDir:
		op.LogDir = o.logDir(arg, entries)
		op.LogDir.Own = own
	default:
		if o.remoteIndexes(arg, entries) {
			return false
		}
		op.Err = foreignDir(arg, entries)
	}
	return true
}

// wanted applies the filters by topic and number, and remembers what they leave out.
func (o *opener) wanted(p *Partition) bool {
	ok := o.opts.keeps(p.Topic, p.Partition)
	if ok {
		o.kept = append(o.kept, p.PartitionDir)
	} else {
		o.skipped = append(o.skipped, p.PartitionDir)
	}
	return ok
}

// keeps reports whether the globs and numbers leave a partition.
func (o *Options) keeps(topic string, partition int32) bool {
	matches := func(glob string) bool {
		match, _ := path.Match(glob, topic) // Open has checked the pattern
		return match
	}
	return (len(o.Topics) == 0 || slices.ContainsFunc(o.Topics, matches)) && !slices.ContainsFunc(o.Exclude, matches) &&
		(len(o.Partitions) == 0 || slices.Contains(o.Partitions, partition))
}

// partitionName reads the name of a partition's directory, given by any path: "." and links count by what they lead to.
func partitionName(dir string) (name string, d format.PartitionDir, ok bool) {
	name = filepath.Base(dir)
	if d, ok := format.ParsePartitionDir(name); ok {
		return name, d, true
	}
	if abs, err := realPath(dir); err == nil {
		base := filepath.Base(abs)
		if d, ok := format.ParsePartitionDir(base); ok {
			return base, d, true
		}
		if name == "." || name == ".." {
			name = base
		}
	}
	return name, format.PartitionDir{}, false
}

// realPath is the absolute path without links.
func realPath(p string) (string, error) {
	if _, _, ok := archived(p); ok {
		return filepath.Clean(p), nil
	}
	abs, err := filepath.Abs(p)
	if err != nil {
		return "", err
	}
	return filepath.EvalSymlinks(abs)
}

// parentOf looks for the state files of the log directory that a partition's directory lies in.
func parentOf(partitionPath string, gentle *Gentle) *LogDir {
	abs, err := realPath(partitionPath)
	if err != nil {
		return nil
	}
	dir := filepath.Dir(abs)
	d := &LogDir{Path: dir, Display: dir, Files: stateFilesIn(dir, dir, gentle)}
	if len(d.Files) == 0 {
		return nil
	}
	for _, f := range d.Files {
		f.LogDir = d
	}
	return d
}

// stateFilesIn are the files in dir that have the names of a log directory's state files, in the order of format.Kinds.
func stateFilesIn(dir, display string, gentle *Gentle) []*File {
	var files []*File
	for _, k := range format.Kinds {
		if k.Name == "" || k.Place&format.InLogDir == 0 {
			continue
		}
		if f := regularFile(dir, display, k.Name, gentle); f != nil {
			files = append(files, f)
		}
	}
	return files
}
