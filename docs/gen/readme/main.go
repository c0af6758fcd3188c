// Command readme rewrites the examples in README.md: whatever stands below a line "$ kseg ..." in a console block becomes
// what that command prints, first on stdout, then on stderr. The commands run in the README's own folder.
//
// A pipe into head is understood ("| head -5"), so that an example can be short.
package main

//go:generate go run . ../../../README.md

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"kseg/cmd"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: readme README.md")
		os.Exit(2)
	}
	if err := rewriteFile(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "readme:", err)
		os.Exit(1)
	}
}

// rewriteFile brings the examples of one Markdown file up to date.
func rewriteFile(file string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	if err := os.Chdir(filepath.Dir(file)); err != nil {
		return err
	}
	fresh, err := rewrite(string(text))
	if err != nil || fresh == string(text) {
		return err
	}
	return os.WriteFile(filepath.Base(file), []byte(fresh), 0o644)
}

var consoleBlock = regexp.MustCompile("(?ms)^```console\n.*?^```$")

// rewrite returns text with the outputs in its console blocks replaced.
func rewrite(text string) (string, error) {
	var failed error
	fresh := consoleBlock.ReplaceAllStringFunc(text, func(block string) string {
		var b strings.Builder
		b.WriteString("```console\n")
		for line := range strings.Lines(block) {
			command, ok := strings.CutPrefix(line, "$ ")
			if !ok {
				continue
			}
			out, err := run(strings.TrimSpace(command))
			if err != nil && failed == nil {
				failed = err
			}
			b.WriteString(line)
			b.WriteString(out)
		}
		b.WriteString("```")
		return b.String()
	})
	return fresh, failed
}

var pipeHead = regexp.MustCompile(`^(.*?) *\| head -(\d+)$`)

// run executes one "kseg ..." line in this process and returns what it prints.
func run(line string) (string, error) {
	limit := -1
	if m := pipeHead.FindStringSubmatch(line); m != nil {
		line = m[1]
		limit, _ = strconv.Atoi(m[2])
	}
	args, err := split(line)
	if err != nil {
		return "", err
	}
	if len(args) == 0 || args[0] != "kseg" {
		return "", fmt.Errorf("example %q does not start with kseg", line)
	}
	var stdout, stderr bytes.Buffer
	code := cmd.Main(args[1:], strings.NewReader(""), &stdout, &stderr)
	if code > 1 {
		return "", fmt.Errorf("example %q ends with code %d: %s", line, code, stderr.String())
	}
	out := stdout.String()
	if limit >= 0 {
		lines := strings.SplitAfter(out, "\n")
		out = strings.Join(lines[:min(limit, len(lines))], "")
	}
	out += stderr.String()
	if out != "" && !strings.HasSuffix(out, "\n") {
		out += "\n"
	}
	return out, nil
}

// split cuts a command line into words as a shell does, with single quotes as the only way to quote.
func split(line string) ([]string, error) {
	var words []string
	for i, part := range strings.Split(line, "'") {
		if i%2 == 1 {
			words = append(words, part)
			continue
		}
		words = append(words, strings.Fields(part)...)
	}
	if strings.Count(line, "'")%2 == 1 {
		return nil, fmt.Errorf("example %q has an open quote", line)
	}
	return words, nil
}
