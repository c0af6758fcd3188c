package schema_test

import (
	"fmt"
	"os"

	"kseg/format"
	"kseg/schema"
)

// A record of an internal topic has fields with the names that Kafka's message definitions give them.
func ExampleDecoder_Decode() {
	const log = "../testdata/logdirs/4.4.0/internal/__consumer_offsets-0/00000000000000000000.log"
	data, err := os.ReadFile(log)
	if err != nil {
		fmt.Println(err)
		return
	}
	decoder, reader := schema.NewDecoder(), format.NewRecordReader(1<<20, nil)
	for s := format.NewScanner(data, 0, 0); s.Next(); {
		if s.Batch() == nil || s.Batch().Control() {
			continue
		}
		var r format.Record
		for reader.Reset(s.Batch()); reader.Next(&r); {
			d := decoder.Decode(schema.Offsets, r.Key, r.Value)
			if d.Err == nil && d.Key.Name == "OffsetCommit" && r.Value != nil {
				fmt.Printf("group %s has read %s-%d up to %d\n", d.Key.Get("group").Text(), d.Key.Get("topic").Text(),
					d.Key.Get("partition").Int(), d.Value.Get("offset").Int())
				return // one is enough here
			}
		}
	}
	// Output: group classic-group has read payments-0 up to 20
}
