package cmd

import (
	"embed"
	"fmt"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"kseg/verify"
)

// The topics are files so that docs/ can hold the same text; docs/gen copies them and a test holds the two together.
//
//go:embed topics/*.md
var topicFiles embed.FS

// A Topic is a help text that belongs to no command.
type Topic struct {
	Name  string // as in kseg help NAME
	Short string
	Text  string // Markdown, without the last line end
}

// Topics are the help topics in the order of the help.
func Topics() []Topic {
	topics := []Topic{
		{Name: "exit-codes", Short: "What the exit codes mean, for scripts"},
		{Name: "operands", Short: "What PATH can be, and how to narrow it"},
		{Name: "payloads", Short: "How keys, values and header values are shown"},
		{Name: "times", Short: "How points in time are given and shown"},
	}
	for i := range topics {
		topics[i].Text = topicText(topics[i].Name)
	}
	return topics
}

// topicText returns the text of a topic, without its last line end.
func topicText(name string) string {
	text, _ := topicFiles.ReadFile("topics/" + name + ".md") // a test holds that there is a file for each topic
	return strings.TrimRight(string(text), "\n")
}

// newTopicCommands returns a command without a run function for each topic, which is what cobra takes for one.
func newTopicCommands() []*cobra.Command {
	var commands []*cobra.Command
	for _, topic := range Topics() {
		commands = append(commands, &cobra.Command{Use: topic.Name, Short: topic.Short, Long: topic.Text})
	}
	return append(commands, &cobra.Command{Use: "findings", Short: "The codes of all findings of kseg verify",
		Long: findingsText()})
}

// newHelpCommand replaces cobra's, which exits with 0 for a topic that does not exist.
func newHelpCommand(env *Env) *cobra.Command {
	return &cobra.Command{
		Use:     "help [COMMAND or TOPIC]",
		Short:   "Show the help of a command or a topic",
		Long:    `Shows the help of a command, or one of the topics that "kseg help" lists.`,
		Example: "  kseg help exit-codes\n  kseg help version",
		ValidArgsFunction: func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return helpNames(cmd.Root()), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			found, rest, err := cmd.Root().Find(args)
			if err == nil && len(rest) == 0 {
				env.showHelp(found, env.Stdout)
				return nil
			}
			name := strings.Join(args, " ")
			if near := nearest(name, helpNames(cmd.Root())); near != "" {
				return usageErrorf("there is no help on %q; did you mean %q?", name, near)
			}
			return usageErrorf("there is no help on %q; there is on %s", name, strings.Join(helpNames(cmd.Root()), ", "))
		},
	}
}

func helpNames(root *cobra.Command) []string {
	var names []string
	for _, sub := range root.Commands() {
		if !sub.Hidden {
			names = append(names, sub.Name())
		}
	}
	return names
}

// findingsText lists the codes of all findings.
var findingsText = sync.OnceValue(func() string {
	var b strings.Builder
	b.WriteString("# Findings of kseg verify\n\nkseg explain CODE says what one means, what a broker does and what " +
		"to do.\n")
	longest := 0
	for _, c := range verify.Codes() {
		longest = max(longest, len(c.Name))
	}
	for _, severity := range []verify.Severity{verify.Damage, verify.Warning, verify.Note} {
		fmt.Fprintf(&b, "\n%s\n", severity)
		for _, c := range verify.Codes() {
			if c.Severity == severity {
				fmt.Fprintf(&b, "  %-*s  %s\n", longest, c.Name, c.Title)
			}
		}
	}
	return strings.TrimRight(b.String(), "\n")
})
