package cmd

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"kseg/compaction"
	"kseg/logdir"
	"kseg/render"
	"kseg/state"
)

// compactionOptions are the flags of kseg compaction.
type compactionOptions struct {
	operandOptions
	outputOptions
	clockOptions
	workOptions
	Overrides    []state.Override
	Watermark    watermark
	CleanedTo    cleanedTo
	DedupeBuffer int64
	Key, KeyHex  string
	Keys         int
}

// cleanedTo is a flag's value: an offset, or -1 for none.
type cleanedTo struct{ compaction.CleanedTo }

// String is empty until it is given.
func (c *cleanedTo) String() string {
	if !c.Given {
		return ""
	}
	return strconv.FormatInt(c.Offset, 10)
}

// Type is what the help shows for the value.
func (c *cleanedTo) Type() string { return "N" }

// Set takes an offset or -1.
func (c *cleanedTo) Set(text string) error {
	offset, err := strconv.ParseInt(text, 10, 64)
	if err != nil || offset < -1 {
		return fmt.Errorf("%q is no offset, nor -1 for none", text)
	}
	c.Given, c.Offset = true, offset
	return nil
}

// defaultKeys is how many keys --keys shows without a number.
const defaultKeys = 10

// AddFlags defines the flags of compaction.
func (o *compactionOptions) AddFlags(fs *pflag.FlagSet) {
	addGroup(fs, "Settings", func(fs *pflag.FlagSet) {
		fs.Var(&override{list: &o.Overrides}, "topic-config", "take this for a topic's setting, instead of what is known: "+
			"`[GLOB:]KEY=VALUE` (repeatable, the last that fits wins)")
		fs.Var(&o.Watermark, "high-watermark", "what is replicated: `N|checkpoint|end`; auto is the log end where there is "+
			"one replica or no metadata, else the checkpoint")
		fs.Var(&o.CleanedTo, "cleaned-to", "take this for the line in cleaner-offset-checkpoint; -1 for none")
		fs.Var(&byteSize{&o.DedupeBuffer}, "dedupe-buffer", "log.cleaner.dedupe.buffer.size: a `SIZE` for all threads' "+
			"offset maps")
	})
	addGroup(fs, "What to print", func(fs *pflag.FlagSet) {
		fs.StringVar(&o.Key, "key", "", "the life of this `KEY`: each record, what supersedes it, when its "+
			"tombstone is removed")
		fs.StringVar(&o.KeyHex, "key-hex", "", "the same for a key given as `HEX` digits")
		fs.IntVarP(&o.Keys, "keys", "n", 0, "the `N` most rewritten keys of a partition, and how many unique keys it has")
		fs.Lookup("keys").NoOptDefVal = strconv.Itoa(defaultKeys)
	})
	o.operandOptions.AddFlags(fs)
	o.outputOptions.AddFlags(fs, "text", "table", "json")
	o.clockOptions.AddFlags(fs)
	o.workOptions.AddFlags(fs)
}

func newCompactionCommand(env *Env) *cobra.Command {
	var o compactionOptions
	c := &cobra.Command{
		Use:   "compaction PATH...",
		Short: "Say what the log cleaner would remove, when, and what keeps the rest",
		Example: `  kseg compaction /var/kafka-logs                                 # a line a partition, dirtiest first
  kseg compaction /var/kafka-logs/__consumer_offsets-24           # segment by segment: what is kept, and why
  kseg compaction users-0 --key u-4711                            # the life of one key
  kseg compaction users-0 --keys=20                               # the most rewritten keys
  kseg compaction users-0 --cleaned-to -1 --now 2026-12-24T00:00Z # as if never cleaned, and as of then
  kseg compaction users-0 --topic-config min.compaction.lag.ms=3600000
  kseg compaction data1 --broker-config server.properties --dedupe-buffer 16MiB`,
		Long: `Finds what a broker's log cleaner would find of each compacted partition: up to where it has cleaned
(cleaner-offset-checkpoint), what is dirty after that, and the first offset that it must not clean with what
sets it: the active segment, min.compaction.lag.ms, an open transaction, or the high watermark. From that follow
the dirty ratio and whether it would clean now, by min.cleanable.dirty.ratio or max.compaction.lag.ms; partitions
are listed in the order in which it cleans them.

Then one round is played through, whether the cleaner would clean now or not: which records are kept, segment by
segment, and why the others are removed; which segments become one, and how large that is (exactly, unless batches have
to be compressed again). Nothing is written. What makes a cleaner give up on a partition is found beforehand.

Settings and the high watermark come from where kseg retention has them. Of producers that are active a broker
keeps the last batch, be it without records: of those in the newest snapshot or the log after it, if they have
not been idle for longer than producer.id.expiration.ms. Where --broker-config does not give that, only those
are left out that the broker must have forgotten by now, after 24.8 days. A partition named on the command line
is taken to be compacted if its cleanup.policy is not known.`,
		Args: needPaths,
		RunE: func(c *cobra.Command, args []string) error {
			if c.Flags().Changed("keys") && o.Keys == defaultKeys {
				if i := slices.IndexFunc(args, isCount); i >= 0 {
					return usageErrorf("--keys takes its number after a =: --keys=%s; name a path of digits as ./%[1]s", args[i])
				}
			}
			return runCompaction(c.Context(), env, &o, args)
		},
	}
	o.AddFlags(c.Flags())
	return c
}

// isCount reports whether an operand looks like the number of a flag that stands before it.
func isCount(arg string) bool { return strings.Trim(arg, "0123456789") == "" }

func runCompaction(ctx context.Context, env *Env, o *compactionOptions, args []string) error {
	options, err := o.options(env)
	if err != nil {
		return err
	}
	set, err := o.open(args, &o.workOptions)
	if err != nil {
		return err
	}
	cluster := state.OpenCluster(set, newGentle(o.Gentle))
	partitions, asked, problems := set.Chosen()
	options.Progress = o.progress(env, 2*totalBytes(set)).Add
	analyzer, err := compaction.NewAnalyzer(partitions, cluster, options)
	if err != nil {
		return fmt.Errorf("%s: %w", o.BrokerConfig, err)
	}
	for _, list := range [][]logdir.Problem{cluster.Problems, problems, analyzer.Problems()} {
		set.Problems = append(set.Problems, list...)
	}
	w := compactionWriter{env: env, o: o, theme: o.theme(env), incomplete: env.report(set.Problems)}
	for i, p := range partitions {
		w.add(analyzer.Look(ctx, p, asked[i]))
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	return w.finish(set, options.NowMs)
}

// options reads the clock, the key and server.properties.
func (o *compactionOptions) options(env *Env) (compaction.Options, error) {
	now, err := o.now(env)
	options := compaction.Options{NowMs: now.UnixMilli(), PresentMs: env.Now().UnixMilli(),
		Watermark: o.Watermark.Watermark,
		CleanedTo: o.CleanedTo.CleanedTo, DedupeBytes: o.DedupeBuffer, MaxBatchBytes: o.MaxBatchBytes,
		Jobs: o.Jobs, Keys: o.Keys}
	if err != nil {
		return options, err
	}
	switch {
	case o.Key != "" && o.KeyHex != "":
		return options, usageErrorf("--key and --key-hex name one key; give one of them")
	case o.Keys < 0:
		return options, usageErrorf("--keys %d: give a number above 0", o.Keys)
	case o.Key != "":
		options.Key = []byte(o.Key)
	case o.KeyHex != "":
		if options.Key, err = hex.DecodeString(o.KeyHex); err != nil {
			return options, usageErrorf("--key-hex: %q is not an even number of hex digits", o.KeyHex)
		}
	}
	options.Given, err = given(o.Overrides, o.BrokerConfig)
	return options, err
}

// compactionWriter collects reports, since their order is known only at the end, and prints them.
type compactionWriter struct {
	env        *Env
	o          *compactionOptions
	theme      render.Theme
	reports    []*compaction.Report
	unknown    int64 // partitions passed over as nobody says that they are compacted
	incomplete error
}

func (w *compactionWriter) add(res compaction.Result) {
	w.incomplete = errors.Join(w.incomplete, w.env.report(res.Problems))
	switch {
	case res.Report != nil:
		if w.reports = append(w.reports, res.Report); res.Report.Log.Splits {
			w.incomplete = errors.Join(w.incomplete, errIncomplete)
		}
	case res.Unknown:
		w.unknown++
	case res.Skipped != "" && res.Partition.Rel == "." && !w.o.Quiet:
		w.env.notef("%s", render.Escaped(res.Skipped))
	}
}

func (w *compactionWriter) finish(set *logdir.Set, nowMs int64) error {
	if w.unknown > 0 && !w.o.Quiet {
		w.env.notef("%s passed over: the cleanup.policy is not known; give the metadata's log directory too, "+
			"--topic-config, or name them", render.Plural(w.unknown, "partition was", "partitions were"))
	}
	if len(w.reports) == 0 {
		return errors.Join(w.incomplete, fmt.Errorf("there is no compacted partition: %w", logdir.ErrNothing))
	}
	compaction.Order(w.reports)
	if err := w.print(set); err != nil {
		return errors.Join(err, w.incomplete)
	}
	takes, assumed := int64(0), int64(0)
	for _, r := range w.reports {
		if r.Would {
			takes++
		}
		if r.Settings.Assumed {
			assumed++
		}
	}
	if assumed > 0 && !w.o.Quiet {
		w.env.notef("the cleanup.policy of %s is not known, and taken to be compact (give the metadata's log directory "+
			"too, or --topic-config)", render.Plural(assumed, "partition", "partitions"))
	}
	if !w.o.Quiet {
		w.env.notef("the log cleaner would clean %s of %s now, as of %s UTC", render.Count(takes),
			render.Plural(int64(len(w.reports)), "compacted partition", "compacted partitions"), render.Minute(nowMs))
	}
	return w.incomplete
}

func (w *compactionWriter) print(set *logdir.Set) error {
	var buf []byte
	switch {
	case w.o.Format == "table":
		table := render.NewTable(w.env.Stdout, w.theme, compaction.Columns()...)
		for _, r := range w.reports {
			table.Row(r.Cells(w.theme)...)
		}
		return table.Flush()
	case w.o.Format == "json":
		for _, r := range w.reports {
			buf = r.AppendJSON(buf, w.o.payload(w.env))
		}
	case w.o.Quiet:
		for _, r := range w.reports {
			buf = r.AppendWarnings(buf, w.theme, w.env.Width)
		}
	case w.summarizes(set):
		buf = compaction.AppendSummary(buf, w.reports, w.theme, w.env.Width)
	default:
		for i, r := range w.reports {
			if i > 0 {
				buf = append(buf, '\n')
			}
			buf = r.AppendText(buf, w.theme, w.o.payload(w.env), w.env.Width)
		}
	}
	_, err := w.env.Stdout.Write(buf)
	return err
}

// summarizes reports whether the text is a line a partition: for a whole log directory, unless keys are asked for.
func (w *compactionWriter) summarizes(set *logdir.Set) bool {
	if w.o.Key != "" || w.o.KeyHex != "" || w.o.Keys > 0 {
		return false
	}
	for _, o := range set.Operands {
		if o.LogDir != nil && !o.LogDir.Narrowed {
			return true
		}
	}
	return false
}
