// Command reference writes the parts of docs/ that follow from the program: the help topics, a page for each command
// (docs/cli), its man pages (docs/man), and the tables of docs/json.md, which follow from docs/json-schema.json.
package main

//go:generate go run . ../..

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra/doc"

	"kseg/cmd"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: reference DOCS")
		os.Exit(2)
	}
	if err := write(os.Args[1], os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "reference:", err)
		os.Exit(1)
	}
}

// write reads json-schema.json and json.md from the folder docs and writes everything into the folder to.
func write(docs, to string) error {
	for _, topic := range cmd.Topics() {
		if err := os.WriteFile(filepath.Join(to, topic.Name+".md"), []byte(topic.Text+"\n"), 0o644); err != nil {
			return err
		}
	}
	if err := writeCommands(to); err != nil {
		return err
	}
	schema, err := os.ReadFile(filepath.Join(docs, "json-schema.json"))
	if err != nil {
		return err
	}
	page, err := os.ReadFile(filepath.Join(docs, "json.md"))
	if err != nil {
		return err
	}
	fresh, err := withKinds(string(page), schema)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(to, "json.md"), []byte(fresh), 0o644)
}

// manDate stands in the man pages. It is fixed so that the same program always gives the same pages.
var manDate = time.Date(2026, time.November, 1, 0, 0, 0, 0, time.UTC)

// writeCommands writes the pages of the commands anew, without those of commands that are gone.
func writeCommands(to string) error {
	root := cmd.Commands()
	root.DisableAutoGenTag = true
	for _, folder := range []string{"cli", "man"} {
		if err := os.RemoveAll(filepath.Join(to, folder)); err != nil {
			return err
		}
		if err := os.MkdirAll(filepath.Join(to, folder), 0o755); err != nil {
			return err
		}
	}
	if err := doc.GenMarkdownTree(root, filepath.Join(to, "cli")); err != nil {
		return err
	}
	header := &doc.GenManHeader{Title: "KSEG", Section: "1", Date: &manDate, Source: "kseg", Manual: "kseg"}
	return doc.GenManTree(root, header, filepath.Join(to, "man"))
}
