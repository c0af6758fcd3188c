package cmd

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"kseg/format"
	"kseg/logdir"
)

// needPaths is the Args of a verb that reads files or directories.
func needPaths(_ *cobra.Command, args []string) error {
	if len(args) == 0 {
		return usageErrorf("no PATH given: name a file, a partition directory or a log directory, or set %s", logDirsVariable)
	}
	return nil
}

// noOperands is the Args of a command that takes none.
func noOperands(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usageErrorf("%s takes no operand, but %q was given", cmd.Name(), args[0])
	}
	return nil
}

// unknownCommand is the Args of the root, which is asked only if no command has the name of its first operand.
func unknownCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	var names []string
	for _, sub := range cmd.Commands() {
		if sub.IsAvailableCommand() {
			names = append(names, sub.Name())
		}
	}
	near := otherCommands[args[0]]
	if near == "" {
		near = nearest(args[0], names)
	}
	if near != "" {
		return usageErrorf("there is no command %q; did you mean %q?", args[0], near)
	}
	if verb := verbFor(args[0]); verb != "" {
		return usageErrorf("%s is a PATH, and the command is missing; did you mean \"kseg %s %s\"?", args[0], verb, args[0])
	}
	if strings.ContainsAny(args[0], `/\.`) {
		return usageErrorf("the command is missing; it comes first, as in \"kseg verify %s\"", args[0])
	}
	return usageErrorf("there is no command %q; the commands are %s", args[0], strings.Join(names, ", "))
}

// verbFor is the command that fits a path best, "" if it is none.
func verbFor(arg string) string {
	if format.ParseFileName(filepath.Base(arg)).Kind != format.KindUnknown {
		return "dump"
	}
	set, err := logdir.Open([]string{arg}, logdir.Options{})
	if err != nil || set.Operands[0].Err != nil {
		return ""
	}
	return "verify"
}

// otherCommands are what users of other tools call a command.
var otherCommands = map[string]string{"check": "verify", "fsck": "verify", "validate": "verify", "scan": "verify",
	"cat": "dump", "print": "dump", "read": "dump", "records": "dump", "consume": "dump", "grep": "dump",
	"list": "ls", "du": "ls", "df": "ls", "stat": "ls", "stats": "ls", "info": "ls", "size": "ls", "topics": "ls",
	"diff": "compare", "cmp": "compare", "repair": "salvage", "fix": "salvage", "recover": "salvage",
	"restore": "salvage", "rescue": "salvage", "find": "lookup", "seek": "lookup", "search": "lookup", "get": "lookup",
	"offsets": "groups", "consumers": "groups", "lag": "groups", "transactions": "txn", "producers": "txn",
	"simulate": "predict", "plan": "predict", "start": "predict", "cluster": "metadata", "configs": "metadata",
	"image": "metadata", "cleaner": "compaction", "compact": "compaction", "inspect": "explain", "show": "explain",
	"describe": "explain", "hexdump": "explain", "merge": "report", "clean": "compaction",
	"truncate": "predict", "consumer-groups": "groups", "junit": "report", "delete": "retention", "expire": "retention"}

// otherNames are what users of other tools call a flag.
var otherNames = map[string]string{"grep": "match", "filter": "match", "regex": "match", "search": "match",
	"head": "limit", "max-messages": "limit",
	"since": "from-time", "until": "to-time", "format": "output", "brief": "quiet", "silent": "quiet", "max": "limit",
	"topics": "topic", "topic-list": "topic", "from-offset": "from", "to-offset": "to", "start": "from", "end": "to",
	"first": "limit", "last": "tail", "pid": "producer-id", "producer": "producer-id", "log-dir": "broker-config",
	"parallel": "jobs", "parallelism": "jobs", "concurrency": "jobs", "at": "timestamp", "ts": "timestamp",
	"pos": "position", "byte": "position", "start-offset": "from", "end-offset": "to", "count-only": "count",
	"key-regex": "match-key", "value-regex": "match-value", "exclude-topic": "exclude", "rate-limit": "gentle",
	"throttle": "gentle", "properties": "broker-config", "config": "broker-config", "ms": "retention-ms",
	"bytes": "retention-bytes", "random-seed": "seed", "verbose": "detail", "out": "output-dir",
	"partitions": "partition", "group-id": "group", "time": "timestamp", "threads": "jobs", "workers": "jobs",
	"dir": "output", "offset": "at", "timestamp": "at"}

// noBroker is about what asks brokers in Kafka's own tools.
const noBroker = "kseg asks no broker: give it the files, as PATH"

// otherWays are flags of other tools, and how to ask here for what they do.
var otherWays = map[string]string{
	"bootstrap-server": noBroker, "broker-list": noBroker, "command-config": noBroker, "bootstrap-controller": noBroker,
	"zookeeper": noBroker, "consumer.config": noBroker, "consumer-property": noBroker, "property": noBroker,
	"formatter-property": noBroker, "timeout": noBroker, "timeout-ms": noBroker,
	"follow":                  "kseg reads what is there and does not wait for more; call it again, or use watch(1)",
	"watch":                   "kseg reads what is there and does not wait for more; call it again, or use watch(1)",
	"from-beginning":          "everything from the beginning on is read unless --from says otherwise",
	"to-earliest":             "kseg changes nothing; kafka-consumer-groups.sh resets offsets",
	"to-latest":               "kseg changes nothing; kafka-consumer-groups.sh resets offsets",
	"reset-offsets":           "kseg changes nothing; kafka-consumer-groups.sh resets offsets",
	"delete":                  "kseg changes nothing; Kafka's own tools do",
	"execute":                 "kseg changes nothing; Kafka's own tools do",
	"delete-offsets":          "kseg changes nothing; Kafka's own tools do",
	"all-groups":              "kseg groups shows all groups unless --group names some",
	"all-topics":              "all topics are shown unless --topic names some",
	"members":                 "kseg groups -o json has the members of each group",
	"offsets":                 "kseg groups shows the offsets of groups, kseg ls those of partitions",
	"describe":                "kseg ls shows log directories, kseg groups groups, kseg metadata topics",
	"list":                    "kseg ls lists topics, kseg groups groups, kseg explain --list the codes of findings",
	"exclude-internal-topics": "--exclude '__*' leaves internal topics out",
	"topic-partitions":        "--topic and --partition narrow a log directory",
	"recursive":               "log directories and partitions are read whole",
	"no-color":                "--color never, or NO_COLOR=1",
}

// otherForm is how to ask for output in a form whose name was taken for a flag; "" if the command does not have it.
func otherForm(cmd *cobra.Command, name string) string {
	output := cmd.Flags().Lookup("output")
	if output == nil || !slices.Contains(strings.Split(output.Value.Type(), "|"), name) {
		return ""
	}
	if output.Shorthand == "" {
		return "--output " + name
	}
	return "-" + output.Shorthand + " " + name
}

// nearFlag is how to ask for what was most likely meant: by a flag of the command with its dashes, or by one of another
// command.
func nearFlag(cmd *cobra.Command, name string) string {
	if form := otherForm(cmd, name); form != "" {
		return form
	}
	names := flagNames(cmd)
	if other := otherNames[name]; slices.Contains(names, other) {
		return "--" + other
	}
	if near := nearest(name, names); near != "" {
		return "--" + near
	}
	for _, sub := range cmd.Root().Commands() {
		if sub != cmd && sub.Flags().Lookup(name) != nil {
			return sub.CommandPath() + " --" + name
		}
	}
	return ""
}

// flagError words what pflag says of a flag it does not know or cannot read, and names the near one.
func flagError(cmd *cobra.Command, err error) error {
	var unknown *pflag.NotExistError
	var bad *pflag.InvalidValueError
	var missing *pflag.ValueRequiredError
	switch {
	case errors.As(err, &unknown) && unknown.GetSpecifiedName() == "v":
		return usageErrorf("there is no flag -v; did you mean --version?")
	case errors.As(err, &unknown) && unknown.GetSpecifiedShortnames() != "":
		return usageErrorf("there is no flag -%s", unknown.GetSpecifiedName())
	case errors.As(err, &unknown):
		name := unknown.GetSpecifiedName()
		if way := otherWays[name]; way != "" {
			return usageErrorf("there is no flag --%s: %s", name, way)
		}
		if near := nearFlag(cmd, name); near != "" {
			return usageErrorf("there is no flag --%s; did you mean %s?", name, near)
		}
		return usageErrorf("there is no flag --%s", name)
	case errors.As(err, &bad):
		return usageErrorf("--%s: %w", bad.GetFlag().Name, numberError(bad))
	case errors.As(err, &missing):
		value, _ := pflag.UnquoteUsage(missing.GetFlag())
		return usageErrorf("--%s needs a value: %s", missing.GetFlag().Name, value)
	}
	return &usageError{err}
}

// numberError turns the standard library's number errors into a sentence; our own values word theirs.
func numberError(bad *pflag.InvalidValueError) error {
	cause := errors.Unwrap(bad)
	if text := cause.Error(); !strings.HasPrefix(text, "strconv.") {
		return cause
	}
	kind := "a number"
	if strings.HasPrefix(bad.GetFlag().Value.Type(), "bool") {
		kind = "true or false"
	}
	return fmt.Errorf("%q is not %s", bad.GetValue(), kind)
}

func flagNames(cmd *cobra.Command) []string {
	var names []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			names = append(names, f.Name)
		}
	})
	return names
}

// nearest returns the candidate that a slip of the finger most likely meant, or "": one that begins with the name, or
// differs in at most a third of its letters.
func nearest(name string, candidates []string) string {
	best, bestDistance := "", len(name)/3+1
	for _, candidate := range candidates {
		distance := editDistance(name, candidate)
		if len(name) > 1 && strings.HasPrefix(candidate, name) {
			distance = 0
		}
		if distance < bestDistance {
			best, bestDistance = candidate, distance
		}
	}
	return best
}

// editDistance counts the insertions, deletions and substitutions between a and b (Levenshtein).
func editDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			substitute := diagonal
			if a[i] != b[j] {
				substitute++
			}
			diagonal = row[j+1]
			row[j+1] = min(substitute, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
