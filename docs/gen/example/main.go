// Command example makes what the examples in the documentation are about. Without an argument it makes .playground in
// the working directory: the logs of testdata/logdirs, to try commands on. Inside of a .playground it takes steps as
// package fixture has them, and makes those directories anew:
//
//	go run kseg/docs/gen/example 'damage: payload-flip'
package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"kseg/internal/fixture"
)

const playground = ".playground"

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "example:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) == 0 {
		if err := os.RemoveAll(playground); err != nil {
			return err
		}
		return fixture.Copy(filepath.Join(playground, "testdata", "logdirs"), ".")
	}
	if len(args) > 1 {
		return errors.New("usage: example ['STEP; STEP...']")
	}
	here, err := os.Getwd()
	if err != nil {
		return err
	}
	if !slices.Contains(strings.Split(filepath.ToSlash(here), "/"), playground) {
		return fmt.Errorf("directories are replaced in a %s only: go run ./docs/gen/example && cd %s", playground, playground)
	}
	for _, top := range fixture.Tops(args[0]) {
		if err := os.RemoveAll(top); err != nil {
			return err
		}
	}
	return fixture.Prepare(".", args[0])
}
