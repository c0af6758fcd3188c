// Package broker is the model of what a Kafka 4.4 broker does to what is on disk. It computes, and prints nothing.
//
// What a start does follows from the marker, the checkpoints, meta.properties, the metadata log and each partition's
// files. Nothing is written; what a start would write, remove, rename and cut is kept as changes to the files that were
// found. The steps and their order are Kafka's own, so that what comes of damage comes of the same cause:
//
//	start.go           KafkaRaftServer, LogManager.loadLogs: the log directories of one broker
//	metaproperties.go  MetaPropertiesEnsemble: what keeps a broker from starting before it looks at a log
//	stray.go           which partitions the cluster's metadata does not place here
//	kraft.go           KafkaRaftLog: the metadata log, recovered at every start, and its snapshots
//	loader.go          LogLoader: one partition's files
//	recover.go         LogSegment.recover, truncateTo
//	split.go           LocalLog.splitOverflowedSegment
//	segment.go         LogSegment and its indexes as a broker opens them
//	producers.go       ProducerStateManager and its snapshots
//	epochs.go          LeaderEpochFileCache
//	folder.go          a partition's directory, as the steps so far have left it
//
// What the log cleaner does is in the files that begin with cleaner.
package broker
