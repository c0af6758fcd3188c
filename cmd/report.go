package cmd

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"kseg/logdir"
	"kseg/render"
	"kseg/verify"
)

// reportOptions are the flags of kseg report.
type reportOptions struct {
	outputOptions
	clockOptions
	failOnOptions
}

// AddFlags defines the flags of report.
func (o *reportOptions) AddFlags(fs *pflag.FlagSet) {
	o.failOnOptions.AddFlags(fs)
	o.outputOptions.AddFlags(fs, "text", "table", "json", "junit")
	o.clockOptions.AddFlags(fs)
}

func newReportCommand(env *Env) *cobra.Command {
	var o reportOptions
	c := &cobra.Command{
		Use:   "report FILE...",
		Short: "Merge the reports of several kseg verify into one verdict",
		Example: `  kseg report shard-*.ndjson                      # one verdict, and which shards are missing
  kseg report -o junit broker-*.ndjson >all.xml   # one report for CI
  ssh broker1 kseg verify -o json /data | kseg report - broker2.ndjson`,
		Long: `Reads what kseg verify -o json wrote on several machines, or for several shards of one set of log
directories (verify --shard I/N), and makes one report of it: all findings, the sum of what was checked, one
verdict and one exit code, in any form that verify has. - is stdin.

A report that ends early, and a shard of which there is no report, make the verdict incomplete (exit code 3): what they
would have found is not known.`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usageErrorf("no FILE given: name what kseg verify -o json wrote")
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error { return runReport(env, &o, args) },
	}
	o.AddFlags(c.Flags())
	return c
}

func runReport(env *Env, o *reportOptions, args []string) error {
	now, err := o.now(env)
	if err != nil {
		return err
	}
	v := verifyOptions{output: o.outputOptions, failOn: o.failOnOptions}
	report := v.report(env, now)
	all := verify.Summary{Level: verify.Records}
	shards := map[int][]int{} // those that are here, by how many there are
	for _, arg := range args {
		err := readReport(env, arg, func(r io.Reader) error {
			s, err := verify.ReadReport(r, func(f *verify.Finding) error {
				f.Shown = arg + ": " + f.Shown
				return report.Finding(f)
			})
			if err != nil {
				return err
			}
			all.Add(s)
			all.Groups = append(all.Groups, verify.PartitionGroups{Place: arg, Groups: verify.Groups})
			for _, text := range s.NotRead {
				all.NotRead = append(all.NotRead, arg+": "+text)
			}
			if s.Shards > 0 {
				shards[s.Shards] = append(shards[s.Shards], s.Shard)
			}
			return nil
		})
		if err != nil {
			all.NotRead = append(all.NotRead, arg+": "+err.Error())
		}
	}
	all.NotRead = append(all.NotRead, shardProblems(shards)...)
	if err := report.Close(&all); err != nil {
		return err
	}
	return v.conclude(env, &all, "")
}

// readReport hands out the report in a file, or on stdin for "-".
func readReport(env *Env, arg string, read func(io.Reader) error) error {
	if arg == "-" {
		return read(env.Stdin)
	}
	set, err := logdir.Open([]string{arg}, logdir.Options{})
	if err != nil {
		return err
	}
	f := set.Operands[0].File
	if f == nil {
		if err := set.Operands[0].Err; err != nil {
			return err
		}
		return fmt.Errorf("it is a directory; give the files that kseg verify -o json wrote")
	}
	return f.View(func(b []byte) error { return read(bytes.NewReader(b)) })
}

// shardProblems says which shards are missing, and which are there twice, of each number of shards.
func shardProblems(shards map[int][]int) []string {
	var problems []string
	for n, here := range shards {
		slices.Sort(here)
		var missing []string
		for i := 1; i <= n; i++ {
			if !slices.Contains(here, i) {
				missing = append(missing, fmt.Sprintf("%d/%d", i, n))
			}
		}
		if len(missing) > 0 {
			problems = append(problems, "no report of "+render.Plural(int64(len(missing)), "shard", "shards")+": "+
				strings.Join(missing, ", "))
		}
		for i := 1; i < len(here); i++ {
			if here[i] == here[i-1] {
				problems = append(problems, fmt.Sprintf("shard %d/%d is reported twice", here[i], n))
			}
		}
	}
	slices.Sort(problems)
	return problems
}

// shard is a flag's value: I/N, the Ith of N parts, or nothing.
type shard struct{ i, n int }

// maxShards is far above what helps.
const maxShards = 10_000

// String is I/N, or nothing.
func (s *shard) String() string {
	if s.n == 0 {
		return ""
	}
	return fmt.Sprintf("%d/%d", s.i, s.n)
}

// Type is what the help shows for the value.
func (s *shard) Type() string { return "I/N" }

// Set takes I/N with I from 1 to N.
func (s *shard) Set(text string) error {
	first, second, _ := strings.Cut(text, "/")
	i, errI := strconv.Atoi(first)
	n, errN := strconv.Atoi(second)
	if errI != nil || errN != nil || i < 1 || i > n || n > maxShards {
		return fmt.Errorf("%q is no shard: give I/N, as 1/4 for the first of four", text)
	}
	s.i, s.n = i, n
	return nil
}
