// Package logdir finds Kafka's files and opens them. It is the only package that touches the file system, and it only
// reads: it opens read-only, takes no lock, and creates nothing.
//
// What it expects on disk:
//
//	LOGDIR/                                    one entry of log.dirs
//	    meta.properties, *-checkpoint, ...     state files of the log directory
//	    TOPIC-PARTITION/                       also with .UUID-delete, -future, -stray
//	        BASE.log, .index, .timeindex, ...  segments, their indexes, snapshots
//	        leader-epoch-checkpoint, ...       state files of the partition
//
// Open takes any mix of log directories, partition directories and files, and tells them apart by what they hold. The
// grammar of the names is format.ParseFileName and format.ParsePartitionDir. File.View hands out a file's bytes.
package logdir
