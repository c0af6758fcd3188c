package cmd_test

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"kseg/cmd"
)

var (
	docsCommand = regexp.MustCompile("(?:^|[\\s`(\"'$;|])kseg( [^`\\n|;>)]+)")
	docsPath    = regexp.MustCompile("(?:^|[\\s(`])((?:docs|testdata|internal)/[\\w./-]+\\.(?:md|go|json|ya?ml|log))")
	docsLink    = regexp.MustCompile(`\]\(([^)#:\s]+)(?:#[^)]*)?\)`)
)

// docsPages are the pages that people read, with the help texts of all commands.
func docsPages(t *testing.T) map[string]string {
	t.Helper()
	pages := map[string]string{}
	for _, pattern := range []string{"*.md", "docs/*.md", "docs/examples/*", "docs/format/*", ".github/*/*"} {
		names, err := filepath.Glob(filepath.Join("..", pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			if text, err := os.ReadFile(name); err == nil {
				pages[name] = string(text)
			}
		}
	}
	var add func(c *cobra.Command)
	add = func(c *cobra.Command) {
		pages["help of "+c.CommandPath()] = c.Example + "\n" + c.Long
		for _, sub := range c.Commands() {
			add(sub)
		}
	}
	add(cmd.Commands())
	return pages
}

// TestDocsNameOnlyWhatThereIs holds that every command line in the pages and help texts has a command and flags that
// exist.
func TestDocsNameOnlyWhatThereIs(t *testing.T) {
	lines, root := 0, cmd.Commands()
	for name, text := range docsPages(t) {
		for _, m := range docsCommand.FindAllStringSubmatch(strings.ReplaceAll(text, "\\\n", " "), -1) {
			words := strings.Fields(m[1])
			c, rest, err := root.Find(words)
			if words[0] == "help" {
				continue
			}
			if err != nil || !c.HasParent() {
				if regexp.MustCompile(`^[a-z]+$`).MatchString(words[0]) && isCode(text, m[0]) {
					t.Errorf("%s: kseg%s: no such command", name, m[1])
				}
				continue
			}
			lines++
			for _, word := range rest {
				if strings.HasPrefix(word, "#") || word == "--" {
					break
				}
				if flag := badFlag(c, word); flag != "" {
					t.Errorf("%s: kseg%s: %s has no %s", name, m[1], c.CommandPath(), flag)
				}
			}
		}
	}
	if lines < 200 {
		t.Errorf("only %d command lines were found: the test looks at the wrong places", lines)
	}
}

// isCode reports whether a match begins a line or stands in backticks, and is no prose.
func isCode(text, match string) bool {
	return strings.HasPrefix(match, "`") || strings.HasPrefix(match, "$") || strings.HasPrefix(match, "\n") &&
		strings.Contains(text, "$"+match)
}

// badFlag is the flag that a word is, if the command does not have it.
func badFlag(c *cobra.Command, word string) string {
	word = strings.Trim(word, "[],.:'\"")
	long, isLong := strings.CutPrefix(word, "--")
	if long, _, _ = strings.Cut(long, "="); isLong && regexp.MustCompile(`^[a-z][a-z-]+$`).MatchString(long) {
		if c.Flags().Lookup(long) == nil && c.InheritedFlags().Lookup(long) == nil && long != "help" {
			return "--" + long
		}
		return ""
	}
	if len(word) == 2 && word[0] == '-' && word[1] >= 'a' && word[1] <= 'z' && word != "-h" &&
		c.Flags().ShorthandLookup(word[1:]) == nil {
		return word
	}
	return ""
}

// TestDocsLinkOnlyToWhatThereIs holds that links between the pages, and from them into the sources, lead somewhere.
func TestDocsLinkOnlyToWhatThereIs(t *testing.T) {
	for name, text := range docsPages(t) {
		if !strings.HasSuffix(name, ".md") {
			continue
		}
		for _, m := range docsLink.FindAllStringSubmatch(text, -1) {
			if _, err := os.Stat(filepath.Join(filepath.Dir(name), m[1])); err != nil {
				t.Errorf("%s: the link to %s leads nowhere", name, m[1])
			}
		}
		for _, m := range docsPath.FindAllStringSubmatch(text, -1) {
			if _, err := os.Stat(filepath.Join("..", m[1])); err != nil {
				t.Errorf("%s: there is no %s", name, m[1])
			}
		}
	}
}

// TestExamplesOfTheHelpMakeSense runs each command line of the help texts and of the pages where nothing is that it
// names: it may find nothing, but it is no usage error.
func TestExamplesOfTheHelpMakeSense(t *testing.T) {
	pages := docsPages(t)
	t.Chdir(t.TempDir())
	t.Setenv("KAFKA_LOG_DIRS", "")
	lines := 0
	for name, text := range pages {
		for line := range strings.Lines(strings.ReplaceAll(text, "\\\n", " ")) {
			command, ok := strings.CutPrefix(strings.TrimPrefix(strings.TrimSpace(line), "$ "), "kseg ")
			if !ok || strings.ContainsAny(command, "{}\"") ||
				strings.Contains(command, "--what-if") || strings.HasPrefix(command, "explain CODE") {
				continue
			}
			command = regexp.MustCompile(`( #| [|<>&;] ?| \d?>|\$\().*`).ReplaceAllString(command+" ", "")
			args := words(command)
			c, _, err := cmd.Commands().Find(args)
			if err != nil || !c.HasParent() {
				continue // a sentence, or what TestDocsNameOnlyWhatThereIs finds
			}
			lines++
			var stderr bytes.Buffer
			if code := cmd.Main(args, strings.NewReader(""), io.Discard, &stderr); code == 2 {
				t.Errorf("%s: kseg %s\n%s", name, command, &stderr)
			}
		}
	}
	if lines < 150 {
		t.Errorf("only %d command lines were found: the test looks at the wrong places", lines)
	}
}

// words cuts a command line as a shell does that knows single quotes only.
func words(line string) (all []string) {
	for i, part := range strings.Split(line, "'") {
		if i%2 == 1 {
			all = append(all, part)
		} else {
			all = append(all, strings.Fields(part)...)
		}
	}
	return all
}
