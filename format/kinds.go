package format

import "strings"

// Kind is what a file is, told by its name alone.
type Kind uint8

// The kinds of file that Kafka keeps in a log directory, in the order in which a partition is dumped.
const (
	KindUnknown Kind = iota
	KindLog
	KindOffsetIndex
	KindTimeIndex
	KindTxnIndex
	KindProducerSnapshot
	KindCheckpoint
	KindLeaderEpochCheckpoint
	KindPartitionMetadata
	KindQuorumState
	KindRecoveryPointCheckpoint
	KindLogStartOffsetCheckpoint
	KindReplicationOffsetCheckpoint
	KindCleanerOffsetCheckpoint
	KindMetaProperties
	KindCleanShutdown
	KindLock
)

// Place says in which directories a kind of file is at home.
type Place uint8

// The two homes; bootstrap.checkpoint made KRaft snapshots have both.
const (
	InPartition Place = 1 << iota
	InLogDir
)

// KindInfo describes one kind. Exactly one of Ext and Name is set, except for KindUnknown, which has neither.
type KindInfo struct {
	Kind  Kind
	ID    string // short and stable, for scripts and test files: "timeindex"
	Ext   string // the text after the last dot, for files named by their base offset
	Name  string // the whole name, for files there is one of
	Place Place
	Title string // for sentences: "time index"
}

// Kinds has one line for every kind of file; a kind's place in the table is its value, and its rank in a dump.
var Kinds = []KindInfo{
	{KindUnknown, "unknown", "", "", InPartition | InLogDir, "unknown file"},
	{KindLog, "log", "log", "", InPartition, "segment"},
	{KindOffsetIndex, "index", "index", "", InPartition, "offset index"},
	{KindTimeIndex, "timeindex", "timeindex", "", InPartition, "time index"},
	{KindTxnIndex, "txnindex", "txnindex", "", InPartition, "transaction index"},
	{KindProducerSnapshot, "snapshot", "snapshot", "", InPartition, "producer snapshot"},
	{KindCheckpoint, "checkpoint", "checkpoint", "", InPartition | InLogDir, "KRaft snapshot"},
	{KindLeaderEpochCheckpoint, "leader-epoch-checkpoint", "", "leader-epoch-checkpoint", InPartition,
		"leader epoch checkpoint"},
	{KindPartitionMetadata, "partition.metadata", "", "partition.metadata", InPartition, "partition metadata"},
	{KindQuorumState, "quorum-state", "", "quorum-state", InPartition, "quorum state"},
	{KindRecoveryPointCheckpoint, "recovery-point-offset-checkpoint", "", "recovery-point-offset-checkpoint", InLogDir,
		"recovery point checkpoint"},
	{KindLogStartOffsetCheckpoint, "log-start-offset-checkpoint", "", "log-start-offset-checkpoint", InLogDir,
		"log start offset checkpoint"},
	{KindReplicationOffsetCheckpoint, "replication-offset-checkpoint", "", "replication-offset-checkpoint", InLogDir,
		"high watermark checkpoint"},
	{KindCleanerOffsetCheckpoint, "cleaner-offset-checkpoint", "", "cleaner-offset-checkpoint", InLogDir,
		"cleaner checkpoint"},
	{KindMetaProperties, "meta.properties", "", "meta.properties", InLogDir, "log directory properties"},
	{KindCleanShutdown, "clean-shutdown", "", ".kafka_cleanshutdown", InLogDir, "clean shutdown marker"},
	{KindLock, "lock", "", ".lock", InLogDir, "lock file"},
}

// Info is the kind's line in Kinds; a value outside the table counts as unknown.
func (k Kind) Info() KindInfo {
	if int(k) >= len(Kinds) {
		return Kinds[KindUnknown]
	}
	return Kinds[k]
}

// String is the kind's ID.
func (k Kind) String() string { return k.Info().ID }

// Title is the kind's name for use inside a sentence.
func (k Kind) Title() string { return k.Info().Title }

// ATitle is the title with its article: "an offset index", "a segment".
func (k Kind) ATitle() string {
	title := k.Title()
	if strings.IndexAny(title, "aeiou") == 0 {
		return "an " + title
	}
	return "a " + title
}

// IsSegmentFile reports whether the kind belongs to one segment: the log itself or one of its three indexes. A producer
// snapshot does not: its offset need not be a segment's.
func (k Kind) IsSegmentFile() bool { return k >= KindLog && k <= KindTxnIndex }

// HasOffset reports whether files of this kind carry an offset in their name.
func (k Kind) HasOffset() bool { return k.Info().Ext != "" }
