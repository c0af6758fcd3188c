package cmd

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"kseg/render"
)

// groupAnnotation names the heading under which a flag stands in the help.
const groupAnnotation = "kseg_group"

// addGroup defines flags that the help shows under one heading.
func addGroup(fs *pflag.FlagSet, heading string, define func(fs *pflag.FlagSet)) {
	define(fs)
	fs.VisitAll(func(f *pflag.Flag) {
		if f.Annotations == nil {
			f.Annotations = map[string][]string{groupAnnotation: {heading}}
		}
	})
}

// showHelp prints a command's help: examples first, then what it does, then its flags by group.
func (env *Env) showHelp(cmd *cobra.Command, w io.Writer) {
	if !cmd.Runnable() && !cmd.HasAvailableSubCommands() {
		// A help topic is its text.
		fmt.Fprintln(w, render.Reflow(strings.TrimRight(cmd.Long, "\n"), env.TableWidth))
		return
	}
	cmd.InitDefaultHelpFlag()
	fmt.Fprintf(w, "%s: %s\n", cmd.CommandPath(), cmd.Short)
	if cmd.Example != "" {
		fmt.Fprintf(w, "\nExamples:\n%s\n", strings.TrimRight(cmd.Example, "\n"))
	}
	if cmd.Long != "" {
		fmt.Fprintf(w, "\n%s\n", render.Reflow(strings.TrimSpace(cmd.Long), env.TableWidth))
	}
	fmt.Fprintf(w, "\nUsage: %s\n", usageLine(cmd))
	showCommands(cmd, w)
	showFlags(cmd, w, min(env.Width, plainWidth))
}

func usageLine(cmd *cobra.Command) string {
	if cmd.HasParent() {
		return cmd.UseLine()
	}
	return cmd.Name() + " COMMAND [flags] PATH..."
}

func showCommands(cmd *cobra.Command, w io.Writer) {
	var verbs, topics []*cobra.Command
	longest := 0
	for _, sub := range cmd.Commands() {
		switch {
		case sub.IsAdditionalHelpTopicCommand():
			topics = append(topics, sub)
		case sub.IsAvailableCommand():
			verbs = append(verbs, sub)
		default:
			continue
		}
		longest = max(longest, len(sub.Name()))
	}
	if len(verbs) > 0 {
		fmt.Fprintf(w, "\nCommands (kseg COMMAND --help):\n")
	}
	for _, sub := range verbs {
		fmt.Fprintf(w, "  %-*s  %s\n", longest, sub.Name(), sub.Short)
	}
	if len(topics) > 0 {
		fmt.Fprintf(w, "\nTopics (kseg help TOPIC):\n")
	}
	for _, sub := range topics {
		fmt.Fprintf(w, "  %-*s  %s\n", longest, sub.Name(), sub.Short)
	}
}

// showFlags prints the flags in the order in which they were defined, a block for each group; the verb's own come
// first.
func showFlags(cmd *cobra.Command, w io.Writer, width int) {
	var headings []string
	groups := map[string]*pflag.FlagSet{}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.VisitAll(func(f *pflag.Flag) {
		heading := "Flags"
		if named := f.Annotations[groupAnnotation]; len(named) > 0 {
			heading = named[0]
		}
		group := groups[heading]
		if group == nil {
			group = pflag.NewFlagSet(heading, pflag.ContinueOnError)
			group.SortFlags = false
			groups[heading] = group
			headings = append(headings, heading)
		}
		group.AddFlag(f)
	})
	for _, heading := range headings {
		if groups[heading].HasAvailableFlags() {
			fmt.Fprintf(w, "\n%s:\n", heading)
			groups[heading].VisitAll(func(f *pflag.Flag) { showFlag(f, w, width) })
		}
	}
}

// flagIndent is the column where the descriptions of flags begin; a longer flag has its description on the lines below.
const flagIndent = 30

func showFlag(f *pflag.Flag, w io.Writer, width int) {
	if f.Hidden {
		return
	}
	name := "      --" + f.Name
	if f.Shorthand != "" {
		name = "  -" + f.Shorthand + ", --" + f.Name
	}
	value, usage := pflag.UnquoteUsage(f)
	if value != "" {
		usage = strings.TrimSuffix(usage, ": "+value) // the name of the value was there for its sake alone
		name += " " + value
	}
	switch f.DefValue {
	case "", "false", "0", "[]":
	default:
		usage += " (default " + f.DefValue + ")"
	}
	lines := render.Wrap(usage, width-flagIndent)
	if len(name) > flagIndent-2 {
		fmt.Fprintln(w, name)
		name = ""
	}
	for _, line := range lines {
		fmt.Fprintf(w, "%-*s%s\n", flagIndent, name, line)
		name = ""
	}
}
