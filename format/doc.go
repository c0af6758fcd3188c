// Package format holds the layouts of what Kafka keeps on disk as functions over bytes: the names of files and
// directories, batches and records of all versions, offset, time and transaction indexes, producer snapshots,
// checkpoints and the other small files. It opens nothing and knows nothing of brokers.
//
// Bytes are hostile: no length in them is used before it is compared with what is there, and decompression is bounded.
// An Error says at which position what was wanted. Kinds is the table of all kinds of files, with the name, the decoder
// and the place of each.
package format
