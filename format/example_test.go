package format_test

import (
	"fmt"
	"os"

	"kseg/format"
)

// A segment is walked batch by batch, and a batch record by record. What lies between batches is a hole.
func ExampleScanner() {
	data, err := os.ReadFile("../testdata/logdirs/4.4.0/hello/hello-0/00000000000000000000.log")
	if err != nil {
		fmt.Println(err)
		return
	}
	reader := format.NewRecordReader(1<<20, nil)
	for s := format.NewScanner(data, 0, 0); s.Next(); {
		if hole := s.Hole(); hole != nil {
			fmt.Println("no batch at byte", hole.Pos)
			continue
		}
		b := s.Batch()
		fmt.Printf("offsets %d to %d, codec %s, checksum fits: %v\n", b.BaseOffset, b.LastOffset, b.Codec(), b.Valid())
		var r format.Record
		for reader.Reset(b); reader.Next(&r); {
			fmt.Printf("  %d: %s\n", r.Offset, r.Value)
		}
		if err := reader.Err(); err != nil {
			fmt.Println(err)
		}
	}
	// Output:
	// offsets 0 to 0, codec none, checksum fits: true
	//   0: hello-kafka
}

// A name tells what a file is and where it belongs.
func ExampleParseFileName() {
	for _, name := range []string{"00000000000000004740.log", "00000000000000004740.index.deleted", "notes.txt"} {
		n := format.ParseFileName(name)
		fmt.Printf("%s, base offset %d, suffix %q\n", n.Kind, n.Base, n.Suffix)
	}
	// Output:
	// log, base offset 4740, suffix ""
	// index, base offset 4740, suffix "deleted"
	// unknown, base offset 0, suffix ""
}

// An offset index gives the entry at or below an offset: the position from which a broker reads on.
func ExampleOffsetIndex_Lookup() {
	raw := format.AppendOffsetEntry(nil, 100, format.OffsetEntry{Offset: 120, Position: 4200})
	raw = format.AppendOffsetEntry(raw, 100, format.OffsetEntry{Offset: 150, Position: 8400})
	entry := format.NewOffsetIndex(raw, 100).Lookup(149)
	fmt.Println(entry.Offset, entry.Position)
	// Output: 120 4200
}
