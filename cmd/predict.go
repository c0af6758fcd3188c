package cmd

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"kseg/logdir"
	"kseg/predict"
	"kseg/render"
	"kseg/state"
)

// predictOptions are the flags of kseg predict.
type predictOptions struct {
	operandOptions
	outputOptions
	clockOptions
	workOptions
	Shutdown      string
	RecoveryPoint *int64
	LogStart      *int64
	Edits         []predict.Edit
	Overrides     []state.Override
	Rate          int64
	Threads       int
	Files         bool
}

// editList is a flag's value: changes that are supposed.
type editList struct{ target *[]predict.Edit }

// String is empty: there is nothing to show of a default.
func (l *editList) String() string { return "" }

// Type is what the help shows for the value.
func (l *editList) Type() string { return "EDIT" }

// Set adds one.
func (l *editList) Set(text string) error {
	edit, err := predict.ParseEdit(text)
	if err == nil {
		*l.target = append(*l.target, edit)
	}
	return err
}

// byteRate is a flag's value: bytes a second, in units of 1000 or 1024.
type byteRate struct{ target *int64 }

// String is empty until it is given.
func (r *byteRate) String() string {
	if r.target == nil || *r.target == 0 {
		return ""
	}
	return strconv.FormatInt(*r.target, 10) + "B/s"
}

// Type is what the help shows for the value.
func (r *byteRate) Type() string { return "RATE" }

// Set takes 200MB/s, 1GiB/s, 150M.
func (r *byteRate) Set(text string) error {
	if err := (&byteSize{r.target}).Set(strings.TrimSuffix(strings.TrimSpace(text), "/s")); err != nil || *r.target <= 0 {
		return fmt.Errorf("%q is no rate; write 200MB/s", text)
	}
	return nil
}

// defaultRecoveryThreads is Kafka's num.recovery.threads.per.data.dir.
const defaultRecoveryThreads = 2

// AddFlags defines the flags of predict.
func (o *predictOptions) AddFlags(fs *pflag.FlagSet) {
	addGroup(fs, "What is supposed", func(fs *pflag.FlagSet) {
		fs.Var(newEnum(&o.Shutdown, "auto", "clean", "unclean"), "shutdown", "how the broker stopped; auto is by its "+
			"marker, .kafka_cleanshutdown")
		o.Shutdown = "auto"
		fs.Var(&optionalNumber{&o.RecoveryPoint}, "recovery-point",
			"take this for the line in recovery-point-offset-checkpoint")
		fs.Var(&optionalNumber{&o.LogStart}, "log-start-offset", "take this for the line in log-start-offset-checkpoint")
		fs.Var(&editList{&o.Edits}, "what-if", "as if that had been done before: `\"rm FILE\"`, \"truncate FILE BYTES\" "+
			"(repeatable; FILE may be a glob)")
		fs.Var(&override{list: &o.Overrides}, "topic-config", "take this for a topic's setting, instead of what is known: "+
			"`[GLOB:]KEY=VALUE` (repeatable, the last that fits wins)")
		fs.Var(&byteRate{&o.Rate}, "rate", "how fast a recovery thread reads, as 200MB/s: says how long the start takes")
		fs.IntVar(&o.Threads, "recovery-threads", defaultRecoveryThreads, "num.recovery.threads.per.data.dir: `N` of each "+
			"log directory")
	})
	addGroup(fs, "What to print", func(fs *pflag.FlagSet) {
		fs.BoolVar(&o.Files, "files", false, "every file, also those that stay as they are")
	})
	o.operandOptions.AddFlags(fs)
	o.outputOptions.AddFlags(fs, "text", "table", "json")
	o.clockOptions.AddFlags(fs)
	o.workOptions.AddFlags(fs)
}

func newPredictCommand(env *Env) *cobra.Command {
	var o predictOptions
	c := &cobra.Command{
		Use:   "predict PATH...",
		Short: "Say what the next start of the broker would do: what it cuts, removes, rebuilds and loses",
		Example: `  kseg predict /var/kafka-logs                                    # does it start, and what is lost
  kseg predict data1 data2 meta --rate 200MB/s --recovery-threads 8 # and how long does it take
  kseg predict orders-3 --shutdown unclean --recovery-point 0     # if the checkpoints were lost
  kseg predict data1 --what-if 'rm data1/orders-3/*.index'        # common advice, and what it does
  kseg predict data1 --what-if 'rm data1/.kafka_cleanshutdown'
  kseg predict orders-3 --files -o json                           # every file, before and after`,
		Long: `Plays through what a broker of Kafka 4.4 does when it starts, on the files as they are, and writes
nothing: it looks at meta.properties and the names of directories, recovers the metadata log, then loads each
partition by the marker, the recovery point and the indexes that are there. Partitions that lose something, are
not loaded or are set aside come with the files that change; the others are counted.

Whole log directories tell most: give all of one broker at once, that of the metadata log too. A partition alone
goes by the state files beside it, if there are any; else it counts as not stopped cleanly, with recovery point
0. An index.interval.bytes that nobody knows is inferred from the indexes that are there. Producers that were
idle for a day by --now are forgotten, as a broker does.

The server.properties (--broker-config) tells which log directories there are, and whether a metadata log that is
not there comes from other controllers or is lost.

Exit code 1 if something would be lost, or would not be loaded; 3 if the metadata log seems to be gone, so that
it is not known which partitions keep their place.`,
		Args: needPaths,
		RunE: func(c *cobra.Command, args []string) error { return runPredict(c.Context(), env, &o, args) },
	}
	o.AddFlags(c.Flags())
	return c
}

func runPredict(ctx context.Context, env *Env, o *predictOptions, args []string) error {
	options, err := o.options(ctx, env)
	if err != nil {
		return err
	}
	set, err := o.open(args, &o.workOptions)
	if err != nil {
		return err
	}
	options.Progress = o.progress(env, totalBytes(set)).Add
	all, problems, err := predict.Run(ctx, set, options)
	if errors.Is(err, logdir.ErrUsage) {
		return &usageError{err}
	}
	if err != nil {
		return err
	}
	// What a broker makes of a link that leads nowhere is known, and said.
	problems = slices.DeleteFunc(append(set.Problems, problems...), func(p logdir.Problem) bool {
		return errors.Is(p, logdir.ErrDangling)
	})
	incomplete := env.report(problems)
	if err := o.print(env, all, &options); err != nil {
		return errors.Join(err, incomplete)
	}
	return errors.Join(incomplete, o.verdict(env, all))
}

// options reads the clock and server.properties.
func (o *predictOptions) options(ctx context.Context, env *Env) (predict.Options, error) {
	now, err := o.now(env)
	options := predict.Options{Overrides: o.Overrides, Rate: o.Rate, Threads: o.Threads}
	options.RecoveryPoint, options.LogStart, options.Edits = o.RecoveryPoint, o.LogStart, o.Edits
	options.NowMs, options.MaxBatchBytes, options.Jobs = now.UnixMilli(), o.MaxBatchBytes, o.Jobs
	options.Stop = func() bool { return ctx.Err() != nil }
	if err != nil {
		return options, err
	}
	if o.Threads < 1 {
		return options, usageErrorf("--recovery-threads %d: give a number above 0", o.Threads)
	}
	if o.Shutdown != "auto" {
		clean := o.Shutdown == "clean"
		options.Clean = &clean
	}
	if o.BrokerConfig == "" {
		return options, nil
	}
	properties, err := readProperties(o.BrokerConfig)
	if err == nil {
		options.UseServer(properties)
	}
	return options, err
}

// print writes the predictions.
func (o *predictOptions) print(env *Env, all []*predict.Broker, options *predict.Options) error {
	var buf []byte
	theme := o.theme(env)
	if o.Format == "table" {
		t := render.NewTable(env.Stdout, theme, predict.Columns()...)
		for _, b := range all {
			b.AddRows(t, theme)
		}
		return t.Flush()
	}
	for i, b := range all {
		if o.Format == "json" {
			buf = b.AppendJSON(buf, options, o.Files)
			continue
		}
		if i > 0 {
			buf = append(buf, '\n')
		}
		buf = append(buf, b.AppendText(nil, options, predict.Style{Theme: theme, Width: env.Width, AllFiles: o.Files,
			Quiet: o.Quiet})...)
	}
	_, err := env.Stdout.Write(buf)
	return err
}

// verdict says how many partitions are concerned, and gives the exit code.
func (o *predictOptions) verdict(env *Env, all []*predict.Broker) error {
	partitions, bad := 0, false
	var incomplete error
	for _, b := range all {
		partitions += len(b.Partitions)
		bad = bad || b.Bad()
		if b.Unplaced != "" && b.MetadataGone() {
			incomplete = errIncomplete
		}
	}
	if partitions == 0 && !bad {
		return fmt.Errorf("there is no partition to predict: %w", logdir.ErrNothing)
	}
	if !o.Quiet {
		env.notef("%s", predict.Summary(all))
	}
	return result(bad, incomplete)
}
