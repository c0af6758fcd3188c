package ls

import "slices"

// The columns of -o csv, by the names of JSON.
var (
	csvSums = []string{"segments", "size", "allocated", "linked_size", "log_size", "records", "records_exact", "unread",
		"first_timestamp", "last_timestamp", "index_slack", "maps", "age_ms"}
	csvStats = []string{"stats.batches", "stats.bytes", "stats.batch_bytes.mean", "stats.batch_bytes.p50",
		"stats.batch_bytes.p99", "stats.batch_bytes.max", "stats.batch_records.mean", "stats.batch_records.p50",
		"stats.batch_records.p99", "stats.batch_records.max", "stats.header_bytes", "stats.codec_bytes.none",
		"stats.codec_bytes.gzip", "stats.codec_bytes.snappy", "stats.codec_bytes.lz4", "stats.codec_bytes.zstd",
		"stats.producers", "stats.transactional_batches", "stats.control_batches", "stats.batches_back_in_time",
		"stats.packed_bytes", "stats.plain_bytes"}
	csvCounts = []string{"records", "bytes", "batches", "partitions"}
	csvTimes  = []string{"first_timestamp", "last_timestamp", "packed_bytes", "plain_bytes"}
)

// CSV says which JSON lines a list has under -o csv, and their columns.
func CSV(by string, stats, whatIf bool) (kind string, columns []string) {
	if whatIf {
		return "what_if", []string{"topic", "partition", "codec", "level", "batch_size", "batches", "bytes",
			"tried_batches", "tried_bytes", "then_batches", "then_bytes"}
	}
	switch by {
	case "producer":
		return "producer_stats", slices.Concat([]string{"producer_id"}, csvCounts, csvTimes, []string{"sequence_gaps"})
	case "codec":
		return "codec_stats", slices.Concat([]string{"codec"}, csvCounts, csvTimes)
	case "day":
		return "day_stats", slices.Concat([]string{"day"}, csvCounts)
	case "segment":
		return "segment", []string{"topic", "partition", "path", "base_offset", "size", "allocated", "index_size",
			"index_allocated", "active", "batches", "records", "records_exact", "first_offset", "last_offset",
			"first_timestamp", "last_timestamp", "index_entries", "index_slack"}
	case "partition":
		kind = "partition"
		columns = slices.Concat([]string{"topic", "partition", "path", "log_dir", "topic_id", "cleanup_policy",
			"first_offset", "last_offset"}, csvSums, []string{"active_segment"})
	default:
		kind = "topic_size"
		columns = slices.Concat([]string{"topic", "topic_id", "cleanup_policy", "partitions"}, csvSums)
	}
	if stats {
		columns = append(columns, csvStats...)
	}
	return kind, columns
}
