// Command readme rewrites the examples in a page of Markdown, README.md or docs/workshop.md: whatever stands below a
// line "$ kseg ..." in a console block becomes what that command prints, first on stdout, then on stderr; how long it
// took is left out. The commands run in the folder given or, if the first line of the block is "$ go run
// kseg/docs/gen/example 'STEPS'", in a new one with what those steps make (fixture.Prepare).
//
// Pipes into head and grep are understood ("| head -5", "| grep delta"), so that an example can be short.
package main

//go:generate go run . ../../../README.md ../../..
//go:generate go run . ../../workshop.md ../../../testdata/logdirs/4.4.0
//go:generate go run . ../../runbook.md ../../..
//go:generate go run . ../../tour.md ../../..

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"kseg/cmd"
	"kseg/internal/fixture"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: readme FILE.md FOLDER")
		os.Exit(2)
	}
	if err := rewriteFile(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "readme:", err)
		os.Exit(1)
	}
}

// rewriteFile brings the examples of one Markdown file up to date, run in folder.
func rewriteFile(file, folder string) error {
	file, err := filepath.Abs(file)
	if err != nil {
		return err
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	if err := os.Chdir(folder); err != nil {
		return err
	}
	fresh, err := rewrite(string(text))
	if err != nil || fresh == string(text) {
		return err
	}
	return os.WriteFile(file, []byte(fresh), 0o644)
}

var (
	consoleBlock = regexp.MustCompile("(?ms)^```console\n(?:\\$ go run kseg/docs/gen/example '([^'\n]+)'\n)?.*?^```$")
	timeTaken    = regexp.MustCompile(`(?m); [0-9.]+ (µs|ms|s|min)$`)
)

// rewrite returns text with the outputs in its console blocks replaced.
func rewrite(text string) (string, error) {
	var failed []error
	fresh := consoleBlock.ReplaceAllStringFunc(text, func(block string) string {
		fresh, err := rewriteBlock(block, consoleBlock.FindStringSubmatch(block)[1])
		failed = append(failed, err)
		return fresh
	})
	return fresh, errors.Join(failed...)
}

// rewriteBlock runs the commands of one block.
func rewriteBlock(block, steps string) (string, error) {
	if steps != "" {
		leave, err := enter(steps)
		if err != nil {
			return block, err
		}
		defer leave()
	}
	var b strings.Builder
	for line := range strings.Lines(block) {
		command, ok := strings.CutPrefix(line, "$ ")
		if !ok {
			if b.Len() == 0 {
				b.WriteString(line)
			}
			continue
		}
		if strings.HasPrefix(command, "go run kseg/docs/gen/example '") {
			b.WriteString(line)
			continue
		}
		out, err := run(strings.TrimSpace(command))
		if err != nil {
			return block, err
		}
		b.WriteString(line + out)
	}
	b.WriteString("```")
	return b.String(), nil
}

// enter changes into a temporary folder with what the steps make there, until leave is called.
func enter(steps string) (leave func(), err error) {
	home, err := os.Getwd()
	if err != nil {
		return nil, err
	}
	tmp, err := os.MkdirTemp("", "kseg-readme")
	if err != nil {
		return nil, err
	}
	leave = func() {
		_ = os.Chdir(home)
		_ = os.RemoveAll(tmp)
	}
	if err := fixture.Prepare(tmp, steps); err != nil {
		leave()
		return nil, err
	}
	if err := os.Chdir(tmp); err != nil {
		leave()
		return nil, err
	}
	return leave, nil
}

var (
	pipeHead = regexp.MustCompile(`^(.*?) *\| head -(\d+)$`)
	pipeGrep = regexp.MustCompile(`^(.*?) *\| grep (\w+|'[^']*')$`)
)

// run executes one "kseg ..." line in this process and returns what it prints.
func run(line string) (string, error) {
	limit := -1
	if m := pipeHead.FindStringSubmatch(line); m != nil {
		line = m[1]
		limit, _ = strconv.Atoi(m[2])
	}
	word := ""
	if m := pipeGrep.FindStringSubmatch(line); m != nil {
		line, word = m[1], strings.Trim(m[2], "'")
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
	out := ""
	for line := range strings.Lines(stdout.String()) {
		if strings.Contains(line, word) {
			out += line
		}
	}
	if limit >= 0 {
		lines := strings.SplitAfter(out, "\n")
		out = strings.Join(lines[:min(limit, len(lines))], "")
	}
	out += timeTaken.ReplaceAllString(stderr.String(), "")
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
