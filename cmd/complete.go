package cmd

import (
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"kseg/logdir"
	"kseg/state"
	"kseg/verify"
)

// addCompletions tells the shell's completion what the flags of a command and of those below it can be: the names of an
// enum, the codes of findings, the topics, partitions and segments that the operands hold. Cobra keeps them for as long
// as the process lives, and with them all commands, so this is only for a process that completes.
func (env *Env) addCompletions(c *cobra.Command) {
	c.Flags().VisitAll(func(f *pflag.Flag) {
		if complete := env.flagCompletion(f); complete != nil {
			_ = c.RegisterFlagCompletionFunc(f.Name, complete) // fails only for a flag that is not there or done already
		}
	})
	for _, sub := range c.Commands() {
		env.addCompletions(sub)
	}
}

func (env *Env) flagCompletion(f *pflag.Flag) cobra.CompletionFunc {
	if e, ok := f.Value.(*enum); ok {
		return cobra.FixedCompletions(e.names, cobra.ShellCompDirectiveNoFileComp)
	}
	if _, ok := f.Value.(*kindList); ok {
		return cobra.FixedCompletions(strings.Split((&kindList{&state.ThingKinds}).String(), ","),
			cobra.ShellCompDirectiveNoFileComp)
	}
	switch f.Name {
	case "ignore":
		return cobra.FixedCompletions(codeNames(), cobra.ShellCompDirectiveNoFileComp)
	case "key-decoder-class", "value-decoder-class":
		return cobra.FixedCompletions([]string{"String", "Integer", "Long", "Default", "ByteArray"},
			cobra.ShellCompDirectiveNoFileComp)
	case "topic-config":
		var keys []string
		for _, key := range state.TopicConfigKeys() {
			keys = append(keys, key+"=")
		}
		return cobra.FixedCompletions(keys, cobra.ShellCompDirectiveNoFileComp|cobra.ShellCompDirectiveNoSpace)
	case "topic", "exclude", "partition", "segment":
		return func(c *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			args, _ = env.operands(c, args)
			return operandValues(args, f.Name), cobra.ShellCompDirectiveNoFileComp
		}
	}
	return nil
}

// codeNames are the codes of all findings.
func codeNames() []string {
	var names []string
	for _, c := range verify.Codes() {
		names = append(names, c.Name)
	}
	return names
}

// operandValues are the values that a flag which narrows the operands can have, sorted.
func operandValues(args []string, flag string) []string {
	if len(args) == 0 {
		args = []string{"."}
	}
	set, err := logdir.Open(args, logdir.Options{})
	if err != nil {
		return nil
	}
	values := map[string]bool{}
	for _, p := range set.Partitions() {
		switch flag {
		case "partition":
			values[strconv.Itoa(int(p.PartitionDir.Partition))] = true
		case "segment":
			for _, s := range p.Segments {
				values[strconv.FormatInt(s.Base, 10)] = true
			}
		default:
			values[p.Topic] = true
		}
	}
	return slices.Sorted(maps.Keys(values))
}

// plainBash goes after cobra's script, which without the package bash-completion has no words to complete.
const plainBash = `
eval "__kseg_with_package() $(declare -f __kseg_init_completion | tail -n +2)"
__kseg_init_completion() {
    if declare -F _get_comp_words_by_ref >/dev/null; then
        __kseg_with_package "$@"
        return
    fi
    local line=${COMP_LINE:0:COMP_POINT}
    COMPREPLY=()
    read -ra words <<<"$line"
    if [[ $line == *[[:space:]] ]]; then
        words+=("")
    fi
    cword=$((${#words[@]} - 1))
    cur=${words[cword]}
    prev=${words[cword - 1]}
}
`

func newCompletionCommand(env *Env) *cobra.Command {
	shells := map[string]func(root *cobra.Command) error{
		"bash": func(root *cobra.Command) error {
			err := root.GenBashCompletionV2(env.Stdout, true)
			if err == nil {
				_, err = io.WriteString(env.Stdout, plainBash)
			}
			return err
		},
		"fish":       func(root *cobra.Command) error { return root.GenFishCompletion(env.Stdout, true) },
		"powershell": func(root *cobra.Command) error { return root.GenPowerShellCompletionWithDesc(env.Stdout) },
		"zsh":        func(root *cobra.Command) error { return root.GenZshCompletion(env.Stdout) },
	}
	names := slices.Sorted(maps.Keys(shells))
	return &cobra.Command{
		Use:   "completion SHELL",
		Short: "Print the script that completes kseg's commands in a shell",
		Long: `Prints a script for bash, fish, powershell or zsh. With it the shell completes commands, flags and their
values: formats, codes of findings, and the topics, partitions and segments of the directory that was given.
make install puts the scripts where the shells look for them.`,
		Example: `  source <(kseg completion bash)                                   # this shell
  kseg completion zsh > "${fpath[1]}/_kseg"                        # every zsh
  kseg completion fish > ~/.config/fish/completions/kseg.fish`,
		ValidArgs: names,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 || shells[args[0]] == nil {
				return usageErrorf("completion takes the name of one shell: %s", strings.Join(names, ", "))
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error { return shells[args[0]](c.Root()) },
	}
}
