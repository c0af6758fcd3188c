package cmd

import (
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// works are the arguments with which tests that walk all verbs run each: DIR is a log directory, TWIN a copy of it,
// PARTITION one in it, LOG the first segment there, STATE any other file, REPORT what verify -o json wrote, OUT a
// folder that is not there, PAGE a file that is not there. Each is run in each of the verb's formats.
var works = map[string][]string{
	"compaction": {"DIR", "--keys=3 PARTITION", "--key k PARTITION"},
	"compare": {"DIR TWIN", "--level records --state DIR TWIN", "--fingerprint DIR", "--fingerprint --level records DIR",
		"LOG TWIN"},
	"completion": {"bash"},
	"density":    {"DIR", "--interval 1,1MiB LOG", "--svg PAGE DIR"},
	"dump": {"DIR", "--records DIR", "--records --payload hex LOG", "--records --payload base64 LOG",
		"--records --payload redacted LOG", "--jobs 1 --records LOG", "--tail 2 --records DIR", "--count --match a DIR",
		"--records --key k LOG", "--records --header h LOG", "--records --from 1 DIR", "--records --decode none DIR",
		"--kafka-compat --deep-iteration --print-data-log LOG", "--offset 0 DIR", "STATE"},
	"explain": {"LOG", "--all LOG", "--offset 0 LOG", "--terse LOG", "--html PAGE LOG", "--html PAGE --all LOG",
		"STATE"},
	"explain size": {"LOG", "--records 3 --value-bytes 9"},
	"groups":       {"DIR", "--history DIR", "--at 1 DIR"},
	"lookup": {"--offset 0 DIR", "--offset 0 --records DIR", "--timestamp 1700000000000 DIR", "--sweep DIR",
		"--html PAGE --offset 0 --records LOG", "--sweep --svg PAGE DIR"},
	"ls": {"DIR", "--by segment DIR", "--stats DIR", "--stats --records DIR", "--by codec DIR", "--by producer DIR",
		"--by day --records DIR", "--what-if codec=lz4 DIR"},
	"metadata":  {"DIR", "--diff 0,end DIR", "--check DIR"},
	"predict":   {"DIR", "--shutdown unclean DIR", "--files DIR"},
	"report":    {"REPORT"},
	"retention": {"DIR", "--plan DIR"},
	"salvage":   {"DIR --output-dir OUT", "--dry-run DIR --output-dir OUT", "--records --fix-bits DIR --output-dir OUT"},
	"txn":       {"DIR", "--all DIR", "--producers DIR"},
	"verify": {"DIR", "--jobs 1 DIR", "--jobs 3 LOG", "--level headers DIR", "--level crc DIR",
		"--rebuild OUT --snapshots DIR", "--sample 50% DIR"},
	"version": {""},
}

// everyLine is each of works in each format, as arguments; names replaces what stands for a path.
func everyLine(t *testing.T, names func() *strings.Replacer) (lines [][]string) {
	t.Helper()
	var walk func(c *cobra.Command)
	walk = func(c *cobra.Command) {
		verb := strings.TrimPrefix(c.CommandPath(), "kseg ")
		if c.Runnable() && c.HasAvailableLocalFlags() && c.HasParent() {
			if len(works[verb]) == 0 {
				t.Errorf("kseg %s is run by no test that walks all verbs", verb)
			}
			for _, form := range formsOf(c) {
				for _, work := range works[verb] {
					line := append(append(strings.Fields(verb), form...), strings.Fields(names().Replace(work))...)
					lines = append(lines, line)
				}
			}
		}
		for _, sub := range c.Commands() {
			walk(sub)
		}
	}
	walk(Commands())
	return lines
}

// formsOf are the flags that give each of a command's formats.
func formsOf(c *cobra.Command) (forms [][]string) {
	flag := c.Flags().Lookup("output")
	if flag == nil {
		return [][]string{nil}
	}
	for name := range strings.SplitSeq(flag.Value.Type(), "|") {
		forms = append(forms, []string{"--output", name})
	}
	return forms
}
