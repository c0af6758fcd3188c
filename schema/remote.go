package schema

import (
	"slices"
	"strconv"

	"kseg/format"
)

var (
	segmentStates = [...]string{"COPY_SEGMENT_STARTED", "COPY_SEGMENT_FINISHED", "DELETE_SEGMENT_STARTED",
		"DELETE_SEGMENT_FINISHED"}
	partitionStates = [...]string{"DELETE_PARTITION_MARKED", "DELETE_PARTITION_STARTED", "DELETE_PARTITION_FINISHED"}
)

// The api keys of RemoteLogMetadataSerde.
const (
	RemoteSegment         = 0
	RemoteSegmentUpdate   = 1
	remotePartitionDelete = 2
	remoteSegmentSnapshot = 3
)

// appendRemote appends the toString of the object that RemoteLogMetadataSerde makes of a record, or returns the message
// of the exception with which it refuses to.
func appendRemote(dst []byte, r *Record, value []byte) ([]byte, string) {
	if value == nil {
		return dst, `Cannot invoke "java.nio.ByteBuffer.remaining()" because the return value of ` +
			`"org.apache.kafka.common.record.internal.Record.value()" is null`
	}
	if r.Err != nil {
		return dst, r.Err.Kafka
	}
	root := r.Value.Root()
	switch r.Value.Type {
	case RemoteSegment:
		return appendRemoteSegment(dst, root)
	case RemoteSegmentUpdate:
		return appendRemoteUpdate(dst, root)
	case remotePartitionDelete:
		return appendRemoteDelete(dst, root)
	default:
		return appendRemoteSnapshot(dst, root)
	}
}

const (
	noEpochs = "segmentLeaderEpochs can not be null or empty"
	noState  = "state can not be null"
)

func appendRemoteSegment(dst []byte, v Value) ([]byte, string) {
	start, end := v.Get("startOffset").Int(), v.Get("endOffset").Int()
	state := stateName(v.Get("remoteLogSegmentState"), segmentStates[:])
	switch {
	case start < 0:
		return dst, "Unexpected start offset = " + strconv.FormatInt(start, 10) +
			". StartOffset for a remote segment cannot be negative"
	case end < start:
		return dst, "Unexpected end offset = " + strconv.FormatInt(end, 10) +
			". EndOffset for a remote segment cannot be less than startOffset = " + strconv.FormatInt(start, 10)
	case v.Get("segmentLeaderEpochs").Len() == 0:
		return dst, noEpochs
	case state == "":
		return dst, noState
	}
	dst = appendSegmentID(append(dst, "RemoteLogSegmentMetadata{remoteLogSegmentId="...), v.Get("remoteLogSegmentId"))
	dst = appendNumbers(dst, v, "startOffset", "endOffset", "brokerId", "maxTimestampMs", "eventTimestampMs")
	return appendSegmentRest(dst, v, state), ""
}

func appendRemoteSnapshot(dst []byte, v Value) ([]byte, string) {
	state := stateName(v.Get("remoteLogSegmentState"), segmentStates[:])
	switch {
	case state == "":
		return dst, noState
	case v.Get("segmentLeaderEpochs").Len() == 0:
		return dst, noEpochs
	}
	dst = AppendUUID(append(dst, "RemoteLogSegmentMetadataSnapshot{segmentId="...), v.Get("segmentId").Raw())
	dst = appendNumbers(dst, v, "startOffset", "endOffset", "maxTimestampMs")
	return appendSegmentRest(dst, v, state), ""
}

// appendSegmentRest appends what the two descriptions of a segment end with.
func appendSegmentRest(dst []byte, v Value, state string) []byte {
	dst = appendEpochs(append(dst, ", segmentLeaderEpochs="...), v.Get("segmentLeaderEpochs"))
	dst = appendNumbers(dst, v, "segmentSizeInBytes")
	dst = appendCustom(append(dst, ", customMetadata="...), v.Get("customMetadata"))
	dst = append(append(dst, ", state="...), state...)
	dst = strconv.AppendBool(append(dst, ", txnIdxEmpty="...), v.Get("txnIndexEmpty").Bool())
	return append(dst, '}')
}

func appendRemoteUpdate(dst []byte, v Value) ([]byte, string) {
	state := stateName(v.Get("remoteLogSegmentState"), segmentStates[:])
	if state == "" {
		return dst, noState
	}
	dst = appendSegmentID(append(dst, "RemoteLogSegmentMetadataUpdate{remoteLogSegmentId="...),
		v.Get("remoteLogSegmentId"))
	dst = appendCustom(append(dst, ", customMetadata="...), v.Get("customMetadata"))
	dst = append(append(dst, ", state="...), state...)
	return append(appendNumbers(dst, v, "eventTimestampMs", "brokerId"), '}'), ""
}

func appendRemoteDelete(dst []byte, v Value) ([]byte, string) {
	state := stateName(v.Get("remotePartitionDeleteState"), partitionStates[:])
	if state == "" {
		return dst, "null" // the NullPointerException has no message
	}
	dst = appendTopicIDPartition(append(dst, "RemotePartitionDeleteMetadata{topicPartition="...),
		v.Get("topicIdPartition"))
	dst = append(append(dst, ", state="...), state...)
	return append(appendNumbers(dst, v, "eventTimestampMs", "brokerId"), '}'), ""
}

func stateName(v Value, names []string) string {
	if n := v.Int(); n >= 0 && n < int64(len(names)) {
		return names[n]
	}
	return ""
}

func appendNumbers(dst []byte, v Value, names ...string) []byte {
	for _, name := range names {
		dst = append(append(append(dst, ", "...), name...), '=')
		dst = strconv.AppendInt(dst, v.Get(name).Int(), 10)
	}
	return dst
}

func appendSegmentID(dst []byte, v Value) []byte {
	dst = appendTopicIDPartition(append(dst, "RemoteLogSegmentId{topicIdPartition="...), v.Get("topicIdPartition"))
	return append(AppendUUID(append(dst, ", id="...), v.Get("id").Raw()), '}')
}

func appendTopicIDPartition(dst []byte, v Value) []byte {
	dst = append(AppendUUID(dst, v.Get("id").Raw()), ':')
	dst = append(format.AppendJavaUTF8(dst, v.Get("name").Raw()), '-')
	return strconv.AppendInt(dst, v.Get("partition").Int(), 10)
}

func appendCustom(dst []byte, v Value) []byte {
	if v.IsNull() {
		return append(dst, "Optional.empty"...)
	}
	dst = strconv.AppendInt(append(dst, "Optional[CustomMetadata{"...), int64(len(v.Raw())), 10)
	return append(dst, " bytes}]"...)
}

// appendEpochs appends epochs and offsets as a TreeMap: by epoch, of equal ones the last.
func appendEpochs(dst []byte, v Value) []byte {
	type entry struct{ epoch, offset int64 }
	entries := make([]entry, 0, v.Len())
	for _, e := range v.Elements() {
		entries = append(entries, entry{e.Get("leaderEpoch").Int(), e.Get("offset").Int()})
	}
	slices.SortStableFunc(entries, func(a, b entry) int { return int(a.epoch - b.epoch) })
	dst = append(dst, '{')
	first := true
	for i, e := range entries {
		if i+1 < len(entries) && entries[i+1].epoch == e.epoch {
			continue
		}
		if !first {
			dst = append(dst, ", "...)
		}
		first = false
		dst = append(strconv.AppendInt(dst, e.epoch, 10), '=')
		dst = strconv.AppendInt(dst, e.offset, 10)
	}
	return append(dst, '}')
}
