package format

import (
	"cmp"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// FileName is what the name of a file in a log directory says about it.
//
//	00000000000000004740.timeindex           base 4740, time index
//	00000000000000004740.log.deleted         base 4740, segment, suffix "deleted"
//	00000000000000000090-0000000001.checkpoint   end offset 90, epoch 1, KRaft snapshot
//	leader-epoch-checkpoint.tmp              leader epoch checkpoint, suffix "tmp"
type FileName struct {
	Raw  string
	Kind Kind
	// Suffix marks a leftover: "deleted", "cleaned" or "swap" on the files of a segment and on snapshots, "tmp" on a state
	// file that was being replaced, "part" on an unfinished KRaft snapshot; "" on a file in use.
	Suffix string
	// Base is the offset in the name if HasBase: a segment's first offset, the end (exclusive) of what a snapshot covers.
	Base    int64
	HasBase bool
	// Epoch is the second number of a KRaft snapshot's name, -1 on all others.
	Epoch int32
}

// leftoverSuffixes are what Kafka appends after a file's type: UnifiedLog's three, the temporary file of
// CheckpointFile, and the unfinished one of KRaft's Snapshots.
var leftoverSuffixes = []string{"deleted", "cleaned", "swap", "tmp", "part"}

// ParseFileName reads a name (no directories in front) as Kafka does. The type is the text after the last dot, as
// DumpLogSegments has it; the base offset is the text before the first, as LogFileUtils.offsetFromFileName has it, so
// that "7.copy.log" is the segment of offset 7 and "copy.7.log" is a segment without one. It accepts every string.
func ParseFileName(name string) FileName {
	n := FileName{Raw: name, Kind: kindOf(name), Epoch: -1}
	plain := name
	if n.Kind == KindUnknown {
		plain, n.Suffix = cutLeftover(name)
		n.Kind = kindOf(plain)
	}
	if n.Kind == KindCheckpoint {
		n.Base, n.Epoch, n.HasBase = parseSnapshotID(plain)
	} else if n.Kind.HasOffset() {
		first, _, _ := strings.Cut(plain, ".")
		base, err := strconv.ParseInt(first, 10, 64)
		if err == nil {
			n.Base, n.HasBase = base, true
		}
	}
	return n
}

// cutLeftover takes a leftover suffix off, if what is left is the name of a kind.
func cutLeftover(name string) (plain, suffix string) {
	for _, s := range leftoverSuffixes {
		if rest, ok := strings.CutSuffix(name, "."+s); ok && kindOf(rest) != KindUnknown {
			return rest, s
		}
	}
	return name, ""
}

func kindOf(plain string) Kind {
	ext := ""
	if dot := strings.LastIndexByte(plain, '.'); dot >= 0 {
		ext = plain[dot+1:]
	}
	for _, k := range Kinds[1:] {
		if (k.Name != "" && k.Name == plain) || (k.Ext != "" && k.Ext == ext) {
			return k.Kind
		}
	}
	return KindUnknown
}

// The widths of the two numbers in a KRaft snapshot's name.
const (
	snapshotOffsetWidth = 20
	snapshotEpochWidth  = 10
)

// parseSnapshotID reads the offset and epoch of "%020d-%010d…" by their fixed widths, as KRaft's Snapshots.parse does.
// bootstrap.checkpoint has neither.
func parseSnapshotID(plain string) (offset int64, epoch int32, ok bool) {
	if len(plain) < snapshotOffsetWidth+1+snapshotEpochWidth {
		return 0, -1, false
	}
	offset, err := strconv.ParseInt(plain[:snapshotOffsetWidth], 10, 64)
	if err != nil {
		return 0, -1, false
	}
	e, err := strconv.ParseInt(plain[snapshotOffsetWidth+1:snapshotOffsetWidth+1+snapshotEpochWidth], 10, 32)
	if err != nil {
		return 0, -1, false
	}
	return offset, int32(e), true
}

// Bootstrap reports whether this is the bootstrap.checkpoint that kafka-storage format writes, whose name has no
// offset.
func (n FileName) Bootstrap() bool {
	return n.Kind == KindCheckpoint && n.Raw == "bootstrap.checkpoint"
}

// Of reports whether this is the name of a kind's file that a broker uses, with its offset.
func (n FileName) Of(kind Kind) bool { return n.Kind == kind && n.HasBase && !n.Leftover() }

// Leftover reports whether the name has one of the suffixes that Kafka gives to files it is about to delete or replace.
func (n FileName) Leftover() bool { return n.Suffix != "" }

// Plain is the name without its leftover suffix.
func (n FileName) Plain() string {
	if n.Suffix == "" {
		return n.Raw
	}
	return strings.TrimSuffix(n.Raw, "."+n.Suffix)
}

// Sibling is the name of the file of another kind that belongs to this one: the same stem with the other kind's
// extension and the same leftover suffix, or the fixed name of a kind there is one of.
func (n FileName) Sibling(kind Kind) string {
	info := kind.Info()
	if info.Ext == "" {
		return info.Name
	}
	plain := n.Plain()
	if dot := strings.LastIndexByte(plain, '.'); n.Kind.HasOffset() && dot >= 0 {
		plain = plain[:dot]
	}
	plain += "." + info.Ext
	if n.Suffix != "" {
		plain += "." + n.Suffix
	}
	return plain
}

// SegmentFileName is the name a broker gives to the file of this kind: the base offset in 20 digits and the extension.
func SegmentFileName(base int64, kind Kind) string {
	sign, digits := "", uint64(base)
	if base < 0 {
		sign, digits = "-", -digits
	}
	return fmt.Sprintf("%s%020d.%s", sign, digits, kind.Info().Ext)
}

// Compare orders names as a partition is dumped: files with an offset by offset, then kind; then state files by kind;
// then leftovers, in the same order among themselves; then what is not Kafka's, by name.
func (n FileName) Compare(o FileName) int {
	return cmp.Or(
		cmp.Compare(n.group(), o.group()),
		cmp.Compare(n.sortBase(), o.sortBase()),
		cmp.Compare(n.Kind, o.Kind),
		cmp.Compare(n.Epoch, o.Epoch),
		strings.Compare(n.Raw, o.Raw))
}

// group is 0 for files with an offset, 1 for offset files whose name has none, 2 for state files, 3 for leftovers, 4
// for the rest.
func (n FileName) group() int {
	switch {
	case n.Kind == KindUnknown:
		return 4
	case n.Suffix != "":
		return 3
	case !n.Kind.HasOffset():
		return 2
	case !n.HasBase:
		return 1
	}
	return 0
}

func (n FileName) sortBase() int64 {
	if !n.HasBase {
		return math.MaxInt64
	}
	return n.Base
}

// PartitionDir is what the name of a partition's directory says.
type PartitionDir struct {
	Topic     string // may contain '-', '.' and '_'; cut short in long names with a suffix
	Partition int32
	UUID      string // the random part of a name with a suffix: 32 hex digits
	Suffix    string // "delete", "future", "stray", or "" for a partition in use
}

// dirSuffixes are what the broker renames a partition's directory to.
var dirSuffixes = []string{"delete", "future", "stray"}

// TopicOf is the topic that a partition directory of that name belongs to, whatever its suffix; "" if it is not named
// like one.
func TopicOf(directory string) string {
	d, ok := ParsePartitionDir(directory)
	if !ok {
		return ""
	}
	return d.Topic
}

// ParsePartitionDir reads the name of a directory in a log directory, as LocalLog.parseTopicPartitionName does: a
// suffixed name is cut at its last dot, and the topic ends at the last hyphen. A name it does not accept keeps a broker
// from starting, unless it is one of those that LogManager skips.
func ParsePartitionDir(name string) (PartitionDir, bool) {
	d := PartitionDir{}
	plain := name
	for _, s := range dirSuffixes {
		if rest, ok := strings.CutSuffix(name, "-"+s); ok {
			if !suffixedDir(rest) {
				return PartitionDir{}, false
			}
			dot := strings.LastIndexByte(rest, '.')
			plain, d.UUID, d.Suffix = rest[:dot], rest[dot+1:], s
			break
		}
	}
	dash := strings.LastIndexByte(plain, '-')
	if dash <= 0 {
		return PartitionDir{}, false
	}
	p, ok := parseJavaInt([]byte(plain[dash+1:]), 32)
	if !ok {
		return PartitionDir{}, false
	}
	d.Topic, d.Partition = plain[:dash], int32(p)
	return d, true
}

// suffixedDir is the broker's pattern ^(\S+)-(\S+)\.(\S+) for what stands before "-delete", "-future" or "-stray".
func suffixedDir(s string) bool {
	if strings.ContainsAny(s, " \t\n\v\f\r") || s == "" {
		return false
	}
	dash := strings.IndexByte(s[1:], '-') + 1
	dot := strings.LastIndexByte(s[:len(s)-1], '.')
	return dash > 0 && dot >= dash+2
}

// String is "orders-3", without UUID and suffix: the partition's own name.
func (d PartitionDir) String() string {
	return d.Topic + "-" + strconv.FormatInt(int64(d.Partition), 10)
}

// Names of Kafka's own topics: of the coordinators of groups, of transactions and of share groups, of what brokers
// copy to remote storage (TopicBasedRemoteLogMetadataManager), and of KRaft's log.
const (
	OffsetsTopic      = "__consumer_offsets"
	TransactionsTopic = "__transaction_state"
	ShareStateTopic   = "__share_group_state"
	RemoteLogTopic    = "__remote_log_metadata"
	MetadataTopic     = "__cluster_metadata"
)

// IsClusterMetadata reports whether this is KRaft's own log, which LogManager skips and which obeys rules of its own.
func (d PartitionDir) IsClusterMetadata() bool { return d.Topic == MetadataTopic }

// SkippedDir reports whether a broker passes over a directory of this name in a log directory though it is no
// partition.
func SkippedDir(name string) bool { return name == "remote-log-index-cache" }
