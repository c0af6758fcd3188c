package cmd

import (
	"bytes"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"kseg/format"
	"kseg/internal/fixture"
)

// numbers are texts of numbers, sizes and durations that are hard to hold.
var numbers = []string{"0", "-1", "1", "1000000", "9223372036854775807", "-9223372036854775808",
	"9223372036854775808", "-9223372036854775809", "2147483647", "2147483648", "-2147483649", "8EiB", "9EiB",
	"8191PiB", "9223372036854775807GiB", "300000000d", "-300000000d", "9223372036854775807d", "9223372036854775807ms",
	"1e400", "-1e400", "NaN", "", "1/9223372036854775807", "9223372036854775807/9223372036854775807", "0/0",
	"9223372036854775807,9223372036854775807", "@9223372036854775807", "codec=zstd:9223372036854775807",
	"codec=zstd,batch=9223372036854775807", "retention.ms=9223372036854775807", "retention.bytes=-9223372036854775808"}

// beside are what a verb's other flags must be for one of its flags to be asked for at all.
var beside = map[string][]string{
	"lookup": {"--offset=5"}, "lookup --timestamp": {}, "lookup --offset": {}, "lookup --interval": {"--sweep"},
	"lookup --rule": {"--sweep"}, "ls --sample": {"--what-if=codec=zstd"}, "verify --interval": {"--rebuild=OUT"},
	"verify --seed": {"--sample=50"}, "salvage": {"--dry-run"},
	"explain size": {"--records=10", "--value-bytes=11"},
}

// Whatever number a flag is given, the verb takes it, or says what is wrong with it and what would be right.
func TestAnyNumberForAnyFlag(t *testing.T) {
	dir := fixture.View(t, "4.4.0/logdirs/clean/data1")
	partition := filepath.Join(dir, "prices-0")
	operands := map[string][]string{
		"compare": {partition, partition}, "explain": {filepath.Join(partition, format.SegmentFileName(39, format.KindLog))},
		"explain size": {}, "report": {filepath.Join(t.TempDir(), "missing.ndjson")},
	}
	i := 0
	each(Commands(), func(verb string, flag *pflag.Flag) {
		if flag.Value.Type() == "bool" || flag.NoOptDefVal != "" && verb == "help" {
			return
		}
		for _, number := range numbers {
			if i++; !fixture.Sampled(i, 16) {
				continue
			}
			args := strings.Fields(verb)
			more, ok := beside[verb+" --"+flag.Name]
			if !ok {
				more = beside[verb]
			}
			for _, arg := range more {
				if !strings.HasPrefix(arg, "--"+flag.Name+"=") {
					args = append(args, strings.Replace(arg, "OUT", filepath.Join(t.TempDir(), "new"), 1))
				}
			}
			value := number
			if takesFile(flag) {
				value = filepath.Join(t.TempDir(), "file"+strings.ReplaceAll(number, "/", "-"))
			}
			args = append(args, "--"+flag.Name+"="+value)
			of, ok := operands[verb]
			if !ok {
				of = []string{partition}
			}
			tryNumber(t, append(args, of...), flag.Name)
		}
	})
}

func takesFile(flag *pflag.Flag) bool {
	name, _ := pflag.UnquoteUsage(flag)
	return slices.Contains([]string{"FILE", "DIR", "PATH"}, name)
}

// each calls fn with the flags of all commands.
func each(c *cobra.Command, fn func(verb string, flag *pflag.Flag)) {
	for _, sub := range c.Commands() {
		if sub.Runnable() && sub.HasAvailableLocalFlags() {
			verb := strings.TrimPrefix(sub.CommandPath(), "kseg ")
			sub.Flags().VisitAll(func(flag *pflag.Flag) { fn(verb, flag) })
		}
		each(sub, fn)
	}
}

func tryNumber(t *testing.T, args []string, flag string) {
	var stdout, stderr bytes.Buffer
	code := Main(args, strings.NewReader(""), &stdout, &stderr)
	said := stdout.String() + stderr.String()
	switch {
	case strings.Contains(said, "internal error"), strings.Contains(said, "goroutine "), code > codeIncomplete:
		t.Errorf("kseg %q: code %d: %.500s", args, code, said)
	case code != codeUsage:
	case !strings.Contains(said, flag):
		t.Errorf("kseg %q: the error does not name the flag: %s", args, &stderr)
	case strings.Contains(said, "strconv"), strings.Contains(said, "invalid syntax"):
		t.Errorf("kseg %q: the error speaks of the program: %s", args, &stderr)
	}
}
