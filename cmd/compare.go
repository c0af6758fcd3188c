package cmd

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"kseg/compare"
	"kseg/logdir"
	"kseg/render"
)

// compareOptions are the flags of kseg compare.
type compareOptions struct {
	operandOptions
	outputOptions
	workOptions
	level       string
	state       bool
	fingerprint bool
	detail      bool
}

// AddFlags defines the flags of compare.
func (o *compareOptions) AddFlags(fs *pflag.FlagSet) {
	addGroup(fs, "What to compare", func(fs *pflag.FlagSet) {
		o.level = "records"
		fs.Var(newEnum(&o.level, "batches", "records"), "level", "what has to be the same; with batches the exit code is 1 "+
			"too where the same records are stored otherwise")
		fs.BoolVar(&o.state, "state", false, "compare leader epochs and producer snapshots too")
		fs.BoolVar(&o.fingerprint, "fingerprint", false, "compare nothing, but write fingerprints of the PATHs, as JSON "+
			"lines, for another machine")
		fs.BoolVar(&o.detail, "detail", false, "with fingerprints: show the batch of the local side in which it parts "+
			"from the other")
	})
	o.operandOptions.AddFlags(fs)
	o.outputOptions.AddFlags(fs, "text", "table", "json")
	o.workOptions.AddFlags(fs)
}

func newCompareCommand(env *Env) *cobra.Command {
	var o compareOptions
	c := &cobra.Command{
		Use:   "compare A B | compare --fingerprint PATH...",
		Short: "Say whether two copies hold the same records, and from which offset they do not",
		Example: `  kseg compare broker1/orders-0 broker2/orders-0    # two replicas
  kseg compare /var/lib/kafka/data /backup/data     # every partition of two log directories
  kseg compare --level batches before after         # byte for byte, not only the same records
  kseg compare --state -o json data1 data2 | jq 'select(.result == "diverged")'
  kseg compare --fingerprint /var/lib/kafka/data >a.ndjson   # on one machine
  kseg compare a.ndjson /var/lib/kafka/data                  # on another one; or two such files`,
		Long: `Compares the records of two partitions, or of the partitions with the same names in two log directories:
offset, timestamp, key, value, headers, producer and flags, whatever batches, codecs or versions they are stored
in. Only offsets that both logs have are judged. Where one side is of magic 0 or 1, which hold no headers,
producers, flags and control records (nor, with 0, timestamps), only what it holds is compared.

  identical      the same batches, byte for byte
  same records   recompressed, converted, in other batches, or under other leader epochs
  a (b) is ahead one is a prefix of the other: replication lags, or a live log is still growing
  compacted      only records are missing that the log cleaner may take
  diverged       records of the same offset are different
  damaged        bytes that can't be read, or records gone without a trace of the cleaner
  only in a (b)  the other log directory does not have the partition

The exit code is 1 for a difference that replication, retention and compaction don't explain: the last four. The
end that a killed broker leaves is no difference. With leader-epoch-checkpoint on both sides it is said where a
follower would have cut its log.

Fingerprints stand for copies that are elsewhere: digests of the records in ranges of 4,096 offsets, and two
bytes a record, by which the offset is found at which two copies part. A file of them may be A or B, and may be
of all the log directories of a broker, while a path that is A or B is one log directory. They have
no keys: what a compacted copy lacks is taken for the cleaner's work; and they are of all fields, so that a copy
of an older magic parts from one with producers or headers.`,
		Args: needPaths,
		RunE: func(c *cobra.Command, args []string) error {
			if o.fingerprint {
				return runFingerprint(c.Context(), env, &o, args)
			}
			if err := twoPaths(args); err != nil {
				return err
			}
			return runCompare(c.Context(), env, &o, args)
		},
	}
	o.AddFlags(c.Flags())
	return c
}

// twoPaths refuses all but two operands.
func twoPaths(args []string) error {
	if len(args) != 2 {
		return usageErrorf("compare takes two paths, and there %s; several log directories are one side by their "+
			"fingerprints: kseg compare --fingerprint PATH... >a.ndjson", map[bool]string{true: "is one",
			false: fmt.Sprintf("are %d", len(args))}[len(args) == 1])
	}
	return nil
}

func runCompare(ctx context.Context, env *Env, o *compareOptions, args []string) error {
	set, err := o.open(args, &o.workOptions)
	if err != nil {
		return err
	}
	options := compare.Options{State: o.state, Jobs: o.Jobs, MaxBatchBytes: o.MaxBatchBytes}
	incomplete := env.report(compare.Problems(set))
	if len(set.Operands) != 2 {
		return errors.Join(incomplete, logdir.ErrNothing)
	}
	bar := o.progress(env, totalBytes(set))
	options.Progress = bar.Add
	results, err := o.results(ctx, set, options)
	if err != nil {
		return errors.Join(incomplete, err)
	}
	w := compareWriter{env: env, o: o, theme: o.theme(env), incomplete: incomplete}
	if o.Format == "table" {
		w.table = render.NewTable(env.Stdout, w.theme, compare.Columns()...)
	}
	for c := range results {
		w.add(c)
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	bar.Clear()
	return w.finish()
}

// results compares the two operands, by their logs or by fingerprints.
func (o *compareOptions) results(ctx context.Context, set *logdir.Set,
	options compare.Options) (iter.Seq[*compare.Comparison], error) {
	a, b := set.Operands[0], set.Operands[1]
	if compare.IsPrints(a) || compare.IsPrints(b) {
		if o.state {
			return nil, usageErrorf("--state compares files that fingerprints do not have")
		}
		return compare.ComparePrints(ctx, a, b, options, o.detail)
	}
	if o.detail {
		return nil, usageErrorf("--detail goes with fingerprints; without them every difference is shown with its batches")
	}
	pairs, err := compare.Pairs(a, b)
	if err != nil {
		return nil, err
	}
	return compare.Run(ctx, pairs, options), nil
}

// runFingerprint writes fingerprints.
func runFingerprint(ctx context.Context, env *Env, o *compareOptions, args []string) error {
	set, err := o.open(args, &o.workOptions)
	if err != nil {
		return err
	}
	incomplete := env.report(set.Problems)
	bar := o.progress(env, totalBytes(set))
	var buf []byte
	partitions, ranges, damaged := int64(0), int64(0), int64(0)
	notRead, err := compare.FingerprintAll(ctx, set, compare.Options{Jobs: o.Jobs, MaxBatchBytes: o.MaxBatchBytes,
		Progress: bar.Add}, func(f *compare.Fingerprint, first bool) error {
		if ranges++; first {
			partitions++
		}
		if f.Damaged {
			damaged++
		}
		buf = f.AppendJSON(buf[:0])
		_, err := env.Stdout.Write(buf)
		return err
	})
	bar.Clear()
	for _, e := range notRead {
		incomplete = errors.Join(incomplete, env.report([]logdir.Problem{{Err: e}}))
	}
	if err != nil {
		return errors.Join(err, incomplete)
	}
	if !o.Quiet || damaged > 0 {
		env.notef("%s of %s; %s damaged", render.Plural(ranges, "fingerprint", "fingerprints"),
			render.Plural(partitions, "partition", "partitions"), render.Plural(damaged, "range is", "ranges are"))
	}
	return result(damaged > 0, incomplete)
}

// compareWriter prints comparisons: JSON as they come, text when all are there, those that hurt most first.
type compareWriter struct {
	env        *Env
	o          *compareOptions
	theme      render.Theme
	table      *render.Table
	summary    compare.Summary
	kept       []*compare.Comparison
	incomplete error
	buf        []byte
}

func (w *compareWriter) add(c *compare.Comparison) {
	batches := w.o.level == "batches"
	for _, err := range c.NotRead {
		w.incomplete = errors.Join(w.incomplete, w.env.report([]logdir.Problem{{Err: err}}))
	}
	if c.A == nil && c.B == nil {
		return // its directory is gone, or it could not be looked at
	}
	w.summary.Add(c, batches)
	if c.Unjudged() {
		w.incomplete = errIncomplete
	}
	switch {
	case w.o.Format == "json":
		w.buf = c.AppendJSON(w.buf[:0])
		// A failed write is kept by the output, and ends in its exit code.
		_, _ = w.env.Stdout.Write(w.buf)
	case !w.o.Quiet || !c.Explained(batches):
		w.kept = append(w.kept, c)
	}
}

func (w *compareWriter) finish() error {
	compare.Sort(w.kept)
	for _, c := range w.kept {
		if w.table != nil {
			w.table.Row(c.Row(w.theme)...)
			continue
		}
		w.buf = c.AppendText(w.buf[:0], w.theme, w.env.Width)
		if _, err := w.env.Stdout.Write(w.buf); err != nil {
			return errors.Join(err, w.incomplete)
		}
	}
	if w.table != nil {
		if err := w.table.Flush(); err != nil {
			return errors.Join(err, w.incomplete)
		}
	}
	if !w.o.Quiet || w.summary.Unexplained+w.summary.Unjudged > 0 {
		word, rest, _ := strings.Cut(w.summary.Text(), ":")
		theme := w.o.noteTheme(w.env)
		paint := theme.Good
		if w.summary.Unexplained+w.summary.Unjudged > 0 {
			paint = theme.Bad
		}
		fmt.Fprintf(w.env.Stderr, "%s:%s\n", paint(word), rest)
	}
	return result(w.summary.Unexplained > 0, w.incomplete)
}
