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

// The homes; bootstrap.checkpoint made KRaft snapshots have two.
const (
	InPartition Place = 1 << iota
	InLogDir
	InMetadata // the metadata log's directory alone
)

// KindInfo describes one kind. Exactly one of Ext and Name is set, except for KindUnknown, which has neither.
type KindInfo struct {
	Kind    Kind
	ID      string // short and stable, for scripts and test files: "timeindex"
	Ext     string // the text after the last dot, for files named by their base offset
	Name    string // the whole name, for files there is one of
	Place   Place
	Title   string // for sentences: "time index"
	Content Content
}

// Content is what files of a kind hold and how it is read. A kind without content has files that are empty.
type Content struct {
	// Batches is set for files of batches, which NewParts goes through; they need nothing of what follows.
	Batches bool
	// describe goes through all bytes.
	describe func(*describer)
	// count is the number of entries of a binary file; nil for texts.
	count func(raw []byte) int
	// entryOf is the entry that stands for an offset, −1 if there is none; nil where entries have no offsets.
	entryOf func(raw []byte, base, offset int64) (int, error)
	// Rows gives the entries of a small text file one by one, as far as they can be read. The error is the first one of
	// row, which ends it, or else one of the content. It is nil for files that are not texts.
	Rows func(raw []byte, row func([]Value) error) error
	// Row names what a row is in JSON.
	Row string
}

// Value is a named value of an entry: a number, or a text.
type Value struct {
	Name   string
	JSON   string // the name in JSON
	Number int64
	Text   string
	IsText bool
}

func number[T int16 | int32 | int64](name, json string, v T) Value {
	return Value{Name: name, JSON: json, Number: int64(v)}
}

func text(name, json, s string) Value { return Value{Name: name, JSON: json, Text: s, IsText: true} }

// Kinds has one line for every kind of file; a kind's place in the table is its value, and its rank in a dump. It is
// all that the verbs know of a kind by themselves.
var Kinds = []KindInfo{
	{KindUnknown, "unknown", "", "", InPartition | InLogDir, "unknown file", Content{}},
	{KindLog, "log", "log", "", InPartition, "segment", Content{Batches: true}},
	{KindOffsetIndex, "index", "index", "", InPartition, "offset index", offsetIndexContent},
	{KindTimeIndex, "timeindex", "timeindex", "", InPartition, "time index", timeIndexContent},
	{KindTxnIndex, "txnindex", "txnindex", "", InPartition, "transaction index", txnIndexContent},
	{KindProducerSnapshot, "snapshot", "snapshot", "", InPartition, "producer snapshot", producerSnapshotContent},
	{KindCheckpoint, "checkpoint", "checkpoint", "", InMetadata | InLogDir, "KRaft snapshot", Content{Batches: true}},
	{KindLeaderEpochCheckpoint, "leader-epoch-checkpoint", "", "leader-epoch-checkpoint", InPartition,
		"leader epoch checkpoint", leaderEpochsContent},
	{KindPartitionMetadata, "partition.metadata", "", "partition.metadata", InPartition, "partition metadata",
		partitionMetadataContent},
	{KindQuorumState, "quorum-state", "", "quorum-state", InMetadata, "quorum state", quorumStateContent},
	{KindRecoveryPointCheckpoint, "recovery-point-offset-checkpoint", "", "recovery-point-offset-checkpoint", InLogDir,
		"recovery point checkpoint", offsetCheckpointContent},
	{KindLogStartOffsetCheckpoint, "log-start-offset-checkpoint", "", "log-start-offset-checkpoint", InLogDir,
		"log start offset checkpoint", offsetCheckpointContent},
	{KindReplicationOffsetCheckpoint, "replication-offset-checkpoint", "", "replication-offset-checkpoint", InLogDir,
		"high watermark checkpoint", offsetCheckpointContent},
	{KindCleanerOffsetCheckpoint, "cleaner-offset-checkpoint", "", "cleaner-offset-checkpoint", InLogDir,
		"cleaner checkpoint", offsetCheckpointContent},
	{KindMetaProperties, "meta.properties", "", "meta.properties", InLogDir, "log directory properties",
		metaPropertiesContent},
	{KindCleanShutdown, "clean-shutdown", "", ".kafka_cleanshutdown", InLogDir, "clean shutdown marker",
		cleanShutdownContent},
	{KindLock, "lock", "", ".lock", InLogDir, "lock file", Content{}},
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

// OnDisk is the fixed name of a kind's files, or the end of their names with its dot; "" for unknown ones.
func (k Kind) OnDisk() string {
	if ext := k.Info().Ext; ext != "" {
		return "." + ext
	}
	return k.Info().Name
}

// ATitle is the title with its article: "an offset index", "a segment".
func (k Kind) ATitle() string {
	title := k.Title()
	if strings.IndexAny(title, "aeiou") == 0 {
		return "an " + title
	}
	return "a " + title
}

// Batches reports whether files of the kind consist of batches: a segment, a KRaft snapshot.
func (k Kind) Batches() bool { return k.Info().Content.Batches }

// Count is the number of entries of an index or producer snapshot; other files have none that are counted.
func (k Kind) Count(raw []byte) (n int, counted bool) {
	if count := k.Info().Content.count; count != nil {
		return count(raw), true
	}
	return 0, false
}

// EntryOf is the entry of a file that stands for an offset, −1 if none does: the one that a lookup starts from, the
// transaction, the leader epoch. has is false for a kind whose entries have no offsets. The error is one of the
// content.
func (k Kind) EntryOf(raw []byte, base, offset int64) (entry int, has bool, err error) {
	if find := k.Info().Content.entryOf; find != nil {
		entry, err = find(raw, base, offset)
		return entry, true, err
	}
	return -1, false, nil
}

// lastWhere is the highest of the numbers below n for which holds, −1 if there is none.
func lastWhere(n int, holds func(int) bool) int {
	for n--; n >= 0 && !holds(n); n-- {
	}
	return n
}

// IsSegmentFile reports whether the kind belongs to one segment: the log itself or one of its three indexes. A producer
// snapshot does not: its offset need not be a segment's.
func (k Kind) IsSegmentFile() bool { return k >= KindLog && k <= KindTxnIndex }

// HasOffset reports whether files of this kind carry an offset in their name.
func (k Kind) HasOffset() bool { return k.Info().Ext != "" }
