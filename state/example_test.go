package state_test

import (
	"fmt"

	"kseg/logdir"
	"kseg/state"
)

// The metadata log folds to what the cluster was at its end, or at any offset before.
func ExampleReadImage() {
	const log = "../testdata/logdirs/4.4.0/logdirs/clean/meta/__cluster_metadata-0"
	set, err := logdir.Open([]string{log}, logdir.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	image, err := state.ReadImage(set.Partitions()[0])
	if err != nil {
		fmt.Println(err)
		return
	}
	topic := image.Topic("inventory")
	fmt.Printf("%s has %d partitions; the log ends at offset %d\n", topic.Name, len(topic.Partitions), image.EndOffset)
	// Output: inventory has 3 partitions; the log ends at offset 155
}
