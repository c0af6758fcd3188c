package schema

import (
	"strings"
	"sync"

	"kseg/format"
)

// Topic is an internal topic whose records have schemas.
type Topic uint8

// The internal topics. None is any other topic.
const (
	None         Topic = iota
	Offsets            // __consumer_offsets
	Transactions       // __transaction_state
	ShareState         // __share_group_state
	RemoteLog          // __remote_log_metadata
	Metadata           // __cluster_metadata, its log and its snapshots
	topicCount
)

var topicNames = [topicCount]string{"", format.OffsetsTopic, format.TransactionsTopic, format.ShareStateTopic,
	format.RemoteLogTopic, format.MetadataTopic}

// String is the topic's name, "" for None.
func (t Topic) String() string { return topicNames[t] }

// TopicFor tells from the name of a partition directory ("__consumer_offsets-7", also with the suffix of a deleted,
// stray or future one) which internal topic it belongs to.
func TopicFor(directory string) Topic {
	name, _, _ := strings.Cut(directory, ".")
	cut := strings.LastIndexByte(name, '-')
	if cut < 0 || strings.Trim(name[cut+1:], "0123456789") != "" {
		return None
	}
	for t := Offsets; t < topicCount; t++ {
		if topicNames[t] == name[:cut] {
			return t
		}
	}
	return None
}

// keyed reports whether the type of a record stands in its key; else it stands in the frame of the value.
func (t Topic) keyed() bool { return t == Offsets || t == Transactions || t == ShareState }

var tableNames = [topicCount]string{"", "offsets.txt", "transactions.txt", "share.txt", "remote.txt", "metadata.txt"}

// groupMetadataType is the record type of a classic group.
const groupMetadataType = 2

// catalog is all tables.
type catalog struct {
	topics                   [topicCount][]*record // by type; nil: no such type
	control                  map[int16]*record
	firstLeaderChange        *layout // the newest version of LeaderChange in the bytes of version 0
	subscription, assignment *message
	groupMetadata            *message
}

// tables reads the tables once; they are part of the program, and a test reads them too.
var tables = sync.OnceValue(func() *catalog {
	must := func(file string) map[int16]*record {
		records, err := parseTable(file)
		if err != nil {
			panic(err)
		}
		return records
	}
	c := &catalog{control: must("control.txt")}
	c.control[int16(Commit)] = c.control[int16(Abort)]
	for t := Offsets; t < topicCount; t++ {
		c.topics[t] = byType(must(tableNames[t]))
	}
	leaderChange := c.control[int16(LeaderChange)].value
	c.firstLeaderChange = compileStruct(leaderChange.fields, leaderChange.highest, 0, true)
	c.groupMetadata = c.topics[Offsets][groupMetadataType].value
	consumer := must("consumer.txt")
	c.subscription, c.assignment = consumer[0].value, consumer[1].value
	return c
})

func byType(records map[int16]*record) (list []*record) {
	for typ, r := range records {
		for int(typ) >= len(list) {
			list = append(list, nil)
		}
		list[typ] = r
	}
	return list
}

// record is the table of a record type, nil if there is none.
func (c *catalog) record(topic Topic, typ int16) *record {
	if list := c.topics[topic]; typ >= 0 && int(typ) < len(list) {
		return list[typ]
	}
	return nil
}
