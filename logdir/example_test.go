package logdir_test

import (
	"fmt"

	"kseg/logdir"
)

// Open takes log directories, partitions and files, and finds out which is which. The bytes of a file are there for as
// long as a View runs.
func ExampleOpen() {
	const dir = "../testdata/logdirs/4.4.0/logdirs/clean/data1"
	set, err := logdir.Open([]string{dir}, logdir.Options{Topics: []string{"inv*"}})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, problem := range set.Problems {
		fmt.Println(problem)
	}
	for _, p := range set.Partitions() {
		fmt.Printf("%s has %d segments\n", p.PartitionDir, len(p.Segments))
		err := p.Segments[0].Log.View(func(b []byte) error {
			fmt.Printf("  the first begins at offset %d and has %d bytes\n", p.Segments[0].Base, len(b))
			return nil
		})
		if err != nil {
			fmt.Println(err)
		}
	}
	// Output:
	// inventory-0 has 8 segments
	//   the first begins at offset 0 and has 731 bytes
	// inventory-2 has 2 segments
	//   the first begins at offset 0 and has 7955 bytes
}
