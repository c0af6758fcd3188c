package schema

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kmsg"

	"kseg/format"
	"kseg/internal/fixture"
)

// franz-go's kmsg is a second reader of the messages that it knows. Its readers are stricter about tags in places, so a
// record counts if both accept it.
func TestSameValuesAsKmsg(t *testing.T) {
	d := NewDecoder()
	compared := map[string]int{}
	check := func(topic Topic, b *format.Batch, rec *format.Record) {
		if b.Control() {
			return
		}
		r := d.Decode(topic, rec.Key, rec.Value)
		if r.Err != nil || rec.Value == nil {
			return
		}
		ours, theirs := summaries(r, rec.Key, rec.Value)
		if theirs == "" {
			return
		}
		compared[r.Key.Name]++
		if diff := cmp.Diff(theirs, ours); diff != "" {
			t.Errorf("%s offset %d (-kmsg +kseg):\n%s", r.Key.Name, rec.Offset, diff)
		}
	}
	eachFrozen(t, check)
	for _, name := range fixture.Files(t, ".log") {
		parts := strings.Split(name, "/")
		if topic := TopicFor(parts[len(parts)-2]); topic.keyed() {
			eachRecord(t, fixture.Data(t, name), func(b *format.Batch, rec *format.Record) { check(topic, b, rec) })
		}
	}
	for name, want := range map[string]int{"OffsetCommit": 100, "GroupMetadata": 30, "TransactionLog": 60} {
		if compared[name] < want {
			t.Errorf("%d records of %s compared, want %d", compared[name], name, want)
		}
	}
}

// summaries writes out what both readers found; the second is empty if kmsg has no reader for the record or refuses it.
func summaries(r *Record, key, value []byte) (ours, theirs string) {
	k, v := r.Key, r.Value
	switch {
	case r.Topic == Offsets && k.Name == "OffsetCommit":
		kk, kv := kmsg.NewOffsetCommitKey(), kmsg.NewOffsetCommitValue()
		if kk.ReadFrom(key) == nil && kv.ReadFrom(value) == nil {
			theirs = fmt.Sprint(kk.Group, kk.Topic, kk.Partition, kv.Version, kv.Offset, kv.LeaderEpoch, kv.Metadata,
				kv.CommitTimestamp, kv.ExpireTimestamp, kv.TopicID)
		}
		ours = fmt.Sprint(str(k.Get("group")), str(k.Get("topic")), k.Get("partition").Int(), v.Version,
			v.Get("offset").Int(), num(v.Get("leaderEpoch")), str(v.Get("metadata")), v.Get("commitTimestamp").Int(),
			num(v.Get("expireTimestamp")), v.Get("topicId").UUID())
	case r.Topic == Offsets && k.Name == "GroupMetadata":
		kv := kmsg.NewGroupMetadataValue()
		if kv.ReadFrom(value) == nil {
			theirs = fmt.Sprint(kv.ProtocolType, kv.Generation, deref(kv.Protocol), deref(kv.Leader), kv.CurrentStateTimestamp)
			for _, m := range kv.Members {
				theirs += fmt.Sprint("\n", m.MemberID, deref(m.InstanceID), m.ClientID, m.ClientHost, m.RebalanceTimeoutMillis,
					m.SessionTimeoutMillis, m.Subscription, m.Assignment)
			}
		}
		ours = fmt.Sprint(str(v.Get("protocolType")), v.Get("generation").Int(), str(v.Get("protocol")), str(v.Get("leader")),
			v.Get("currentStateTimestamp").Int())
		for _, m := range v.Get("members").Elements() {
			ours += fmt.Sprint("\n", str(m.Get("memberId")), str(m.Get("groupInstanceId")), str(m.Get("clientId")),
				str(m.Get("clientHost")), m.Get("rebalanceTimeout").Int(), m.Get("sessionTimeout").Int(),
				m.Get("subscription").Raw(), m.Get("assignment").Raw())
		}
	case r.Topic == Transactions:
		kk, kv := kmsg.NewTxnMetadataKey(), kmsg.NewTxnMetadataValue()
		if kk.ReadFrom(key) == nil && kv.ReadFrom(value) == nil {
			theirs = fmt.Sprint(kk.TransactionalID, kv.Version, kv.ProducerID, kv.ProducerEpoch, kv.TimeoutMillis, int(kv.State),
				kv.LastUpdateTimestamp, kv.StartTimestamp)
			for _, p := range kv.Topics {
				theirs += fmt.Sprint("\n", p.Topic, p.Partitions)
			}
		}
		ours = fmt.Sprint(str(k.Get("transactionalId")), v.Version, v.Get("producerId").Int(), v.Get("producerEpoch").Int(),
			v.Get("transactionTimeoutMs").Int(), v.Get("transactionStatus").Int(),
			v.Get("transactionLastUpdateTimestampMs").Int(), v.Get("transactionStartTimestampMs").Int())
		for _, p := range v.Get("transactionPartitions").Elements() {
			ours += fmt.Sprint("\n", str(p.Get("topic")), p.Get("partitionIds").Int32s())
		}
	}
	return ours, theirs
}

// str is a string as its bytes, told from null.
func str(v Value) string {
	if v.IsNull() {
		return "(null)"
	}
	return string(v.Raw())
}

func deref(s *string) string {
	if s == nil {
		return "(null)"
	}
	return *s
}

// num is a number that stands in the bytes; of these fields kmsg says 0 if they do not, where Kafka assumes -1.
func num(v Value) int64 {
	if !v.Present() {
		return 0
	}
	return v.Int()
}
