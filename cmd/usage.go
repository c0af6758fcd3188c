package cmd

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
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
	name := args[0]
	if tool, is := strings.CutPrefix(strings.TrimSuffix(name, ".sh"), "kafka-"); is {
		name = tool
	}
	near := otherCommands[name]
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
	"simulate": "predict", "plan": "predict", "start": "predict", "cluster": "metadata",
	"configs": "metadata --type config",
	"image":   "metadata", "cleaner": "compaction", "compact": "compaction", "inspect": "explain", "show": "explain",
	"describe": "explain", "hexdump": "explain", "merge": "report", "clean": "compaction",
	"truncate": "predict", "consumer-groups": "groups", "junit": "report", "delete": "retention", "expire": "retention",
	"dump-log": "dump", "console-consumer": "dump --records", "kcat": "dump --records", "kafkacat": "dump --records",
	"head": "dump --limit N", "tail": "dump --tail N", "count": "dump --count", "wc": "dump --count", "log-dirs": "ls",
	"tree": "ls", "segments": "ls --by segment", "partitions": "ls --by partition", "get-offsets": "ls --by partition",
	"offset": "lookup --offset N", "timestamp": "lookup --timestamp T", "crc": "verify",
	"checksum": "compare --fingerprint",
	"hash":     "compare --fingerprint", "replica-verification": "compare", "index": "density",
	"keys":       "compaction --keys",
	"tombstones": "compaction", "delete-records": "predict --log-start-offset N", "share-groups": "groups",
	"streams-groups": "groups", "metadata-shell": "metadata", "metadata-quorum": "metadata", "storage": "metadata",
	"reassign-partitions": "metadata", "leader-election": "metadata", "features": "metadata --type feature",
	"broker-api-versions": "metadata --type feature", "acls": "metadata --type acl",
	"delegation-tokens": "metadata --type delegation_token"}

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
	"dir": "output", "offset": "at", "timestamp": "at", "metadata-decoder": "cluster-metadata-decoder",
	"index-check": "index-sanity-check", "skip-metadata": "skip-record-metadata", "output-format": "output",
	"crc": "level", "check-crcs": "level", "deep": "level", "exit-code": "fail-on", "strict": "fail-on",
	"snapshot": "snapshots"}

// noBroker is about what asks brokers in Kafka's own tools.
const noBroker = "kseg asks no broker: give it the files, as PATH"

const (
	byJQ      = "-o json prints one object a line, from which jq picks"
	noChange  = "kseg changes nothing; kseg salvage -o DIR writes what is intact elsewhere"
	noDelete  = "kseg changes nothing; kseg predict --log-start-offset N supposes that records were deleted"
	noOffsets = "kseg changes nothing; kafka-consumer-groups.sh resets offsets"
)

// otherWays are flags of other tools, and how to ask here for what they do.
var otherWays = map[string]string{
	"jq": byJQ, "query": byJQ, "pretty": byJQ, "raw": byJQ, "raw-output": byJQ, "compact-output": byJQ, "select": byJQ,
	"where": byJQ, "fields": byJQ, "columns": byJQ, "keys-only": byJQ, "null-values": byJQ,
	"fix": noChange, "repair": noChange, "recover": noChange, "offset-json-file": noDelete,
	"tombstones":       "kseg compaction counts tombstones; in kseg dump -o json their value is null",
	"snapshot":         "name the .checkpoint file as PATH",
	"state":            "kseg groups shows the type and the state of each group",
	"lag":              "kseg groups shows the lag where the partition is in a given log directory",
	"time":             "kseg ls shows first and last offsets, kseg lookup --timestamp that of a time",
	"force":            "kseg writes nothing over what is there",
	"verify":           "kseg verify is a command of its own",
	"bootstrap-server": noBroker, "broker-list": noBroker, "command-config": noBroker, "bootstrap-controller": noBroker,
	"zookeeper": noBroker, "consumer.config": noBroker, "consumer-property": noBroker, "property": noBroker,
	"formatter-property": noBroker, "timeout": noBroker, "timeout-ms": noBroker,
	"follow":                  "kseg reads what is there and does not wait for more; call it again, or use watch(1)",
	"watch":                   "kseg reads what is there and does not wait for more; call it again, or use watch(1)",
	"from-beginning":          "everything from the beginning on is read unless --from says otherwise",
	"to-earliest":             noOffsets,
	"to-latest":               noOffsets,
	"reset-offsets":           noOffsets,
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
	"segment":                 "a log is read from its first segment on; --at says up to where, and PATH may be one file",
	"recursive":               "log directories and partitions are read whole",
	"no-color":                "--color never, or NO_COLOR=1",
}

// otherShorts are flags of kcat, and how to ask here for what they do.
var otherShorts = map[string]string{
	"v": "did you mean --version?", "C": "kseg dump --records prints records", "J": byJQ, "D": byJQ, "K": byJQ, "Z": byJQ,
	"f": byJQ, "O": byJQ, "L": "kseg ls lists topics, kseg metadata brokers", "G": "kseg groups shows groups",
	"Q": "kseg lookup --timestamp finds the offset of a time", "P": "kseg changes nothing; Kafka's own tools do",
	"b": noBroker, "F": noBroker, "X": noBroker, "e": "a log is read to its end, and no further",
	"c": "--limit N ends kseg dump after N", "p": "--partition N narrows a log directory",
	"s": "--key-decoder-class and --value-decoder-class say what kseg dump prints keys and values as",
	"u": "lines are printed as they come",
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
	if near := nearest(name, flagNames(cmd)); near != "" {
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
	switch before := cmd.Flags().Args(); {
	case !cmd.HasParent() && len(before) > 0:
		return unknownCommand(cmd, before)
	case errors.As(err, &unknown) && unknown.GetSpecifiedShortnames() != "":
		name := unknown.GetSpecifiedName()
		if way := otherShorts[name]; way != "" {
			return usageErrorf("there is no flag -%s: %s", name, way)
		}
		return usageErrorf("there is no flag -%s", name)
	case errors.As(err, &unknown):
		name := unknown.GetSpecifiedName()
		if own := otherNames[name]; cmd.Flags().Lookup(own) != nil {
			return usageErrorf("there is no flag --%s; did you mean --%s?", name, own)
		}
		if way := otherWays[name]; way != "" {
			return usageErrorf("there is no flag --%s: %s", name, way)
		}
		if near := nearFlag(cmd, name); near != "" {
			return usageErrorf("there is no flag --%s; did you mean %s?", name, near)
		}
		return usageErrorf("there is no flag --%s", name)
	case errors.As(err, &bad):
		return usageErrorf("--%s: %w%s", bad.GetFlag().Name, numberError(bad), otherValue(cmd, bad))
	case errors.As(err, &missing):
		value, _ := pflag.UnquoteUsage(missing.GetFlag())
		return usageErrorf("--%s needs a value: %s", missing.GetFlag().Name, value)
	}
	return &usageError{err}
}

// otherValue says what else was likely meant by a form that there is not: -o is an offset for kcat.
func otherValue(cmd *cobra.Command, bad *pflag.InvalidValueError) string {
	if bad.GetFlag().Name != "output" {
		return ""
	}
	value := bad.GetValue()
	_, err := strconv.Atoi(value)
	switch {
	case value == "ndjson" || value == "jsonl":
		return "; json is one object a line"
	case cmd.Flags().Lookup("output-dir") != nil:
		return "; the directory to write to is -o"
	case cmd.Flags().Lookup("from") != nil && (err == nil || value == "beginning" || value == "end"):
		return "; --from, --to and --tail choose what is printed"
	}
	return ""
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
