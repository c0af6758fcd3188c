package ls

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"kseg/format"
	"kseg/logdir"
)

// Leftover is a file or directory that is in nobody's use, or not Kafka's.
type Leftover struct {
	Display string
	What    string // what it is
	Removal string // when a broker removes it
	Usage   logdir.Usage
}

// When a broker removes what is left over, as seen with 4.4.0. The minute is file.delete.delay.ms.
const (
	neverRemoved   = "a broker does not remove it"
	atNextStart    = "a broker removes it at its next start"
	afterAMinute   = "a broker removes it a minute after it was renamed, or at its next start"
	withPartition  = "a broker ignores it, and removes it with the partition"
	whenMoved      = "a broker continues to move it, and then puts it in the place of the other copy"
	putInPlace     = "a broker puts it in its place at its next start"
	overwritten    = "a broker overwrites it when it writes the file again"
	keepsFromStart = "a broker does not start with it in the directory"
)

var leftoverDirs = map[string][2]string{
	"delete": {"a deleted partition", afterAMinute},
	"future": {"a partition that is being moved here from another log directory", whenMoved},
	"stray":  {"a partition that the cluster's metadata does not place here", neverRemoved},
}

var leftoverFiles = map[string][2]string{
	"deleted": {"a file that was to be deleted", afterAMinute},
	"cleaned": {"a segment that the log cleaner did not finish", atNextStart},
	"swap":    {"a segment that the log cleaner finished, and did not put in its place", putInPlace},
	"tmp":     {"a file that was being written", overwritten},
	"part":    {"a snapshot that was being written", atNextStart},
}

// Leftover is the partition's directory as a leftover; false if the partition is in use.
func (p *Partition) Leftover() (Leftover, bool) {
	words, ok := leftoverDirs[p.Suffix]
	return Leftover{p.Display, words[0], words[1], p.Usage}, ok
}

// leftoverFile is a file of a partition as a leftover; false if it is in use.
func leftoverFile(f *logdir.File) (Leftover, bool) {
	if words, ok := leftoverFiles[f.Name.Suffix]; ok {
		return Leftover{f.Display, words[0], words[1], f.Usage()}, true
	}
	if f.Kind() == format.KindUnknown {
		return Leftover{f.Display, "a file that is not Kafka's", withPartition, f.Usage()}, true
	}
	return Leftover{}, false
}

// Dir is a log directory: the sums of its partitions, and what else lies in it.
type Dir struct {
	*logdir.LogDir
	Sums
	Room      logdir.FileSystem
	RoomKnown bool
	Leftovers []Leftover
	Problems  []logdir.Problem
}

// OpenDir counts what lies in a log directory beside its partitions.
func (l *Lister) OpenDir(dir *logdir.LogDir) *Dir {
	d := &Dir{LogDir: dir}
	room, err := logdir.FileSystemOf(dir.Path)
	if d.Room, d.RoomKnown = room, room.Size > 0; err != nil {
		d.Problems = append(d.Problems, logdir.Problem{Display: dir.Display, Err: err})
	}
	if dir.Narrowed {
		return d
	}
	d.Usage = l.seen.First(dir.Own)
	for _, f := range dir.Files {
		d.Usage.Add(l.seen.First(f.Usage()))
		if f.Kind() != format.KindUnknown {
			if err := f.Irregular(); err != nil {
				d.Problems = append(d.Problems, logdir.Problem{Display: f.Display, Err: err})
			}
		}
		if left, ok := leftoverFile(f); ok {
			if f.Kind() == format.KindUnknown {
				left.Removal = neverRemoved
			}
			d.Leftovers = append(d.Leftovers, left)
		}
	}
	for _, name := range dir.Subdirs {
		if _, ok := format.ParsePartitionDir(name); ok {
			continue
		}
		usage, problems := logdir.UsageBelow(filepath.Join(dir.Path, name), &l.seen)
		d.Usage.Add(usage)
		d.Problems = append(d.Problems, problems...)
		d.Leftovers = append(d.Leftovers, strangeDir(filepath.Join(dir.Display, name), name, usage))
	}
	return d
}

// strangeDir is a directory whose name is no partition's.
func strangeDir(display, name string, usage logdir.Usage) Leftover {
	if format.SkippedDir(name) {
		return Leftover{display, "the cached indexes of tiered segments", "a broker keeps it up itself", usage}
	}
	return Leftover{display, "a directory whose name is no partition's", keepsFromStart, usage}
}

// Twin is a partition in use that stands in several log directories.
type Twin struct {
	Partition format.PartitionDir
	Dirs      []string
}

// Sentence says where the partition stands and what a broker does about it.
func (t Twin) Sentence() string {
	return fmt.Sprintf("%s stands in %s: a broker does not start with both", t.Partition, strings.Join(t.Dirs, " and in "))
}

// Twins collects the partitions in use that stand in several log directories of one broker. The partitions come in the
// order of Partitions. Directories of different brokers, as Node tells them apart, hold replicas.
type Twins struct {
	Node func(dir *logdir.LogDir) Maybe
	same []*logdir.Partition // of one topic and number
	list []Twin
}

// Add takes the next partition.
func (t *Twins) Add(p *logdir.Partition) {
	if p.Suffix != "" || p.Parent == nil || !p.Parent.Listed || p.IsClusterMetadata() {
		return
	}
	if len(t.same) > 0 && t.same[0].PartitionDir != p.PartitionDir {
		t.settle()
	}
	t.same = append(t.same, p)
}

// settle looks at the partitions of one topic and number.
func (t *Twins) settle() {
	dirs := map[Maybe][]string{}
	for _, p := range t.same {
		node := t.Node(p.Parent)
		if !slices.Contains(dirs[node], p.Parent.Display) {
			dirs[node] = append(dirs[node], p.Parent.Display)
		}
		if len(dirs[node]) == 2 {
			t.list = append(t.list, Twin{p.PartitionDir, nil})
		}
		if n := len(t.list); len(dirs[node]) > 1 {
			t.list[n-1].Dirs = dirs[node]
		}
	}
	t.same = t.same[:0]
}

// List are the partitions found, after the last was added.
func (t *Twins) List() []Twin {
	t.settle()
	return t.list
}

// deletes reports whether a cleanup.policy lets retention delete segments.
func deletes(policy string) bool { return strings.Contains(policy, "delete") }
