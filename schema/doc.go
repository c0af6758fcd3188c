// Package schema decodes the records that Kafka keeps for itself: those of __consumer_offsets, __transaction_state,
// __share_group_state, __remote_log_metadata and __cluster_metadata with its snapshots, and control records.
//
// One reader, driven by the tables in tables/*.txt, puts a message onto a tape: its values in the order of their bytes,
// with their positions. From the tape come the real tool's text (AppendText, AppendControlText), JSON (AppendJSON),
// typed access to fields (Value) and a cover of all bytes (Half.Leaves).
//
// What is accepted, and with which words it is refused, follows Kafka 4.4.0: the readers that its generator makes of
// the message definitions, CoordinatorRecordSerde, AbstractApiMessageSerde and DumpLogSegments.
package schema
