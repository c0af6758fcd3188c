// Command kseg reads what a Kafka broker left on disk, and never writes there.
package main

import (
	"os"

	"kseg/cmd"
)

func main() {
	os.Exit(cmd.Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}
