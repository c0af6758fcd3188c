package format

// Limits in bytes that all verbs share, so that what one of them reads is read by all. docs/limits.md tells them.
const (
	// MostSmall is the length up to which a file that is no log and no index is read whole: a checkpoint of a million
	// partitions has less.
	MostSmall = 64 << 20
	// MostBatch is what a batch may decompress to, unless --max-batch-bytes says otherwise. It always holds where the
	// internal topics and the metadata log are read beside something else; a controller writes at most 8 MiB.
	MostBatch = 256 << 20
	// MostInferred bounds the logs that are walked only to find out the interval that their indexes were written with.
	MostInferred = 256 << 20
)
