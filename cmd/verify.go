package cmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"kseg/format"
	"kseg/logdir"
	"kseg/render"
	"kseg/state"
	"kseg/verify"
)

// verifyOptions are the flags of kseg verify.
type verifyOptions struct {
	operands operandOptions
	output   outputOptions
	work     workOptions
	clock    clockOptions
	failOn   failOnOptions

	level           string
	failFast        bool
	maxFindings     int
	ignore          []string
	maxMessageBytes int64
	shard           shard
	broker          *int64
	sample          percent
	seed            int64
	sampled, of     int // partitions

	rebuild rebuildOptions
}

// AddFlags defines the flags.
func (o *verifyOptions) AddFlags(fs *pflag.FlagSet) {
	o.operands.AddFlags(fs)
	addGroup(fs, "Checks", func(fs *pflag.FlagSet) {
		o.level = verify.LevelNames[verify.Records]
		fs.Var(newEnum(&o.level, verify.LevelNames[:]...), "level", "how deep to look at batches")
		fs.StringSliceVar(&o.ignore, "ignore", nil, "do not look for findings of this `CODE` (repeatable, or CODE,CODE)")
		fs.BoolVar(&o.failFast, "fail-fast", false, "stop at the first damage")
		fs.IntVarP(&o.maxFindings, "max-findings", "n", 0, "stop after `N` findings (0: no limit)")
		fs.Var(&byteSize{&o.maxMessageBytes}, "max-message-bytes", "report batches larger than this `SIZE`")
	})
	addGroup(fs, "Several machines", func(fs *pflag.FlagSet) {
		fs.Var(&o.shard, "shard", "check the `I/N`th of the partitions: each is in one shard, and their bytes are about "+
			"the same (kseg report merges)")
		fs.Var(&optionalNumber{&o.broker}, "broker", "only partitions that the cluster's metadata, which must be among "+
			"the operands, places on this broker: `ID`")
	})
	addGroup(fs, "Sampling", func(fs *pflag.FlagSet) {
		fs.Var(&o.sample, "sample", "check partitions that have this `PERCENT` of the bytes, chosen by chance; the "+
			"verdict says that it is a sample")
		fs.Int64Var(&o.seed, "seed", 1, "of the chance: the same seed `N` chooses the same partitions")
	})
	o.rebuild.AddFlags(fs)
	o.failOn.AddFlags(fs)
	o.output.AddFlags(fs, "text", "table", "json", "junit")
	o.work.AddFlags(fs)
	o.clock.AddFlags(fs)
}

var errNoCode = errors.New("there is no such code; docs/findings.md lists them")

// patience is how long verify waits before it looks again at a partition that is being written to.
var patience = 50 * time.Millisecond

func newVerifyCommand(env *Env) *cobra.Command {
	var o verifyOptions
	c := &cobra.Command{
		Use:   "verify PATH...",
		Short: "Check everything and say what is wrong",
		Long: `Reads log directories, partitions or single files and trusts nothing: batches and checksums, records after
decompression, offsets, epochs and sequences from batch to batch, every index entry against the log, snapshots,
checkpoints and properties against each other.

Each finding has a stable code (kseg explain CODE says what it means), a severity, a place and one sentence.
damage is what is unreadable, wrong or keeps a broker from starting; a warning is what a broker repairs or lives
with, at the price of data; a note is worth knowing. An index is judged by whether lookups through it are right.

With --rebuild nothing is checked, but fresh indexes are written into another folder, as a broker's recovery
would write them: from the batches up to the first that has a wrong length or checksum. Files that are there
already stay as they are.

The last line on stderr is the verdict: clean (nothing above a note), N warnings, damaged or incomplete. -o
junit is for CI systems: a test case for each partition and group of checks (docs/ci-backups.md is a recipe).`,
		Example: `  kseg verify /var/lib/kafka/data                 # a whole log directory
  kseg verify --level crc orders-0                # checksums only
  kseg verify -o json /backup | jq 'select(.severity == "damage")'
  kseg verify -o junit /backup >report.xml        # for CI
  kseg verify --rebuild fresh orders-0            # indexes as recovery would write them, into fresh/orders-0`,
		Args: needPaths,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.rebuild.check(cmd.Flags()); err != nil {
				return err
			}
			if o.rebuild.Dir != "" {
				return runRebuild(cmd.Context(), env, &o, args)
			}
			return runVerify(cmd.Context(), env, &o, args)
		},
	}
	o.AddFlags(c.Flags())
	return c
}

func runVerify(ctx context.Context, env *Env, o *verifyOptions, args []string) error {
	opts, err := o.options(env)
	if err != nil {
		return err
	}
	o.operands.Skim = verify.Skim(opts)
	set, err := o.operands.open(args, &o.work)
	if err != nil {
		return err
	}
	if err := o.narrow(set); err != nil {
		return err
	}
	report := o.report(env, opts.Now)
	opts.Emit = report.Finding
	bar := o.output.progress(env, totalBytes(set))
	opts.Progress = bar.Add
	start := env.Now()
	summary, err := verify.Run(ctx, set, opts)
	if err != nil {
		return err
	}
	bar.Clear()
	summary.Shard, summary.Shards = o.shard.i, o.shard.n
	summary.Sampled, summary.SampledOf = o.sampled, o.of
	if err := report.Close(&summary); err != nil {
		return err
	}
	return o.conclude(env, &summary, "; "+render.Duration(env.Now().Sub(start).Milliseconds()))
}

// conclude says what was not read and the verdict, and is the exit code.
func (o *verifyOptions) conclude(env *Env, summary *verify.Summary, took string) error {
	for _, text := range summary.NotRead {
		env.notef("%s", render.Escaped(text))
	}
	if !o.output.Quiet {
		for _, text := range summary.Copies {
			env.notef("%s", render.Escaped(text))
		}
	}
	if !o.output.Quiet || summary.Verdict() != verify.Clean {
		fmt.Fprintf(env.Stderr, "%s%s\n", o.verdict(env, summary), took)
	}
	least, fails := verify.ParseSeverity(o.failOn.Severity)
	return result(fails && summary.Count(least) > 0, incompleteIf(summary.Verdict()))
}

// narrow leaves the partitions of a broker and of a shard.
func (o *verifyOptions) narrow(set *logdir.Set) error {
	if o.broker != nil {
		image := state.OpenCluster(set, nil).Settings(nil).Image
		if image == nil {
			return usageErrorf("--broker %d: no __cluster_metadata-0 is among the operands to tell what is on it", *o.broker)
		}
		placed := map[string]bool{}
		for _, topic := range image.Topics() {
			for number, p := range topic.Partitions {
				if slices.Contains(p.Replicas, int32(*o.broker)) {
					placed[format.PartitionDir{Topic: topic.Name, Partition: number}.String()] = true
				}
			}
		}
		set.Keep(func(p *logdir.Partition) bool { return placed[p.PartitionDir.String()] || p.IsClusterMetadata() })
	}
	if o.sample > 0 {
		o.sampled, o.of = set.Sample(float64(o.sample)/100, o.seed)
	}
	if o.shard.n > 0 {
		set.Shard(o.shard.i, o.shard.n)
	}
	return nil
}

// incompleteIf is the error of a run with that verdict, the damage aside.
func incompleteIf(v verify.Verdict) error {
	if v == verify.Incomplete {
		return errIncomplete
	}
	return nil
}

// options turns the flags into what the package verify takes.
func (o *verifyOptions) options(env *Env) (verify.Options, error) {
	now, err := o.clock.now(env)
	if err != nil {
		return verify.Options{}, err
	}
	opts := verify.Options{Jobs: o.work.Jobs, MaxBatchBytes: o.work.MaxBatchBytes, MaxMessageBytes: o.maxMessageBytes,
		Ignore: map[string]bool{}, FailFast: o.failFast, MaxFindings: o.maxFindings, Now: now,
		Patience: patience}
	if o.output.Format == "junit" {
		opts.Clock = o.clock.ticking(env)
	}
	for i, name := range verify.LevelNames {
		if name == o.level {
			opts.Level = verify.Level(i)
		}
	}
	for _, code := range o.ignore {
		if verify.Group(code) == "" {
			return opts, usageErrorf("--ignore %s: %w", code, cmp.Or(nearCode(code), errNoCode))
		}
		opts.Ignore[code] = true
	}
	if o.maxFindings < 0 {
		return opts, usageErrorf("--max-findings %d: give 0 for no limit, or a number above it", o.maxFindings)
	}
	return opts, nil
}

func (o *verifyOptions) report(env *Env, now time.Time) verify.Report {
	switch o.output.Format {
	case "junit":
		least, fails := verify.ParseSeverity(o.failOn.Severity)
		if !fails {
			least = 0
		}
		return verify.NewJUnitReport(env.Stdout, least, now)
	case "json":
		return verify.NewJSONReport(env.Stdout)
	case "table":
		return verify.NewTableReport(env.Stdout, o.output.theme(env), o.output.Quiet)
	}
	return verify.NewTextReport(env.Stdout, o.output.theme(env), env.Width, o.output.Quiet)
}

// verdict is the verdict line, with its first word coloured.
func (o *verifyOptions) verdict(env *Env, s *verify.Summary) string {
	word, rest := verify.VerdictText(s)
	return o.paintVerdict(env, s.Verdict(), word) + rest
}

func (o *verifyOptions) paintVerdict(env *Env, v verify.Verdict, word string) string {
	theme := o.output.noteTheme(env)
	switch v {
	case verify.Clean:
		return theme.Good(word)
	case verify.Damaged:
		return theme.Bad(word)
	}
	return theme.Look(word)
}

// totalBytes is what there is to read, for the progress bar.
func totalBytes(set *logdir.Set) int64 {
	var n int64
	for _, f := range set.Files() {
		if f.Kind() == format.KindLog {
			n += f.Size
		}
	}
	return n
}
