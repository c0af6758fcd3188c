package cmd

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"kseg/logdir"
	"kseg/render"
	"kseg/salvage"
)

// salvageOptions are the flags of kseg salvage.
type salvageOptions struct {
	operandOptions
	outputOptions
	clockOptions
	workOptions
	dir      string
	dryRun   bool
	fixBits  bool
	records  bool
	prefer   string
	deleted  bool
	interval *int64
}

// AddFlags defines the flags of salvage. -o is where it writes; the form of the report has only its long name.
func (o *salvageOptions) AddFlags(fs *pflag.FlagSet) {
	addGroup(fs, "What to write", func(fs *pflag.FlagSet) {
		fs.StringVarP(&o.dir, "output-dir", "o", "", "write into this `DIR`, which must be new or empty")
		fs.BoolVar(&o.dryRun, "dry-run", false, "write nothing, but say what would be left out; -o is not needed")
		fs.BoolVar(&o.fixBits, "fix-bits", false, "put a flipped bit, a wrong magic byte or length back where the "+
			"checksum proves it")
		fs.BoolVar(&o.records, "records", false, "also save the readable records of batches that are not intact, in "+
			"batches of their own")
		fs.StringVar(&o.prefer, "prefer", "", "the history of this `PATH` counts where copies hold different records")
		fs.BoolVar(&o.deleted, "deleted", false, "also take what a broker cut off the end of a log (.deleted), where "+
			"nothing says that it was committed")
		fs.Var(&optionalNumber{&o.interval}, "interval", "index.interval.bytes of the indexes (default: the topic's own, "+
			"else 4096)")
	})
	o.operandOptions.AddFlags(fs)
	o.outputOptions.addFlags(fs, "", []string{"text", "table", "json"})
	o.clockOptions.AddFlags(fs)
	o.workOptions.AddFlags(fs)
}

func newSalvageCommand(env *Env) *cobra.Command {
	var o salvageOptions
	c := &cobra.Command{
		Use:   "salvage PATH... -o DIR",
		Short: "Write what is intact into a new directory that a broker loads",
		Example: `  kseg salvage orders-0 -o saved                     # into saved/orders-0
  kseg salvage --dry-run orders-0                    # what would be left out
  kseg salvage broker1/orders-0 broker2/orders-0 -o saved   # each offset from the copy where it is intact
  kseg salvage /var/lib/kafka/data -o saved          # a whole log directory
  kseg salvage orders-0 carved.bin --base-offset 96 -o saved`,
		Long: `Copies the intact batches of partitions, byte for byte, into a directory of their own, with the indexes,
snapshots and leader epochs that a broker's recovery would make; for a log directory also its checkpoints and
meta.properties. What is not intact is left out, and it is said which offsets that costs. Pieces out of order
are put in order, doubles left out. Files that a broker would delete (.deleted, .swap, .cleaned) count where
they hold offsets that nothing else has. A follower cuts off what its leader never had, and leaves it as .deleted:
what a leader epoch contradicts is never taken, and what comes after the log's end only with --deleted, or if it
lies below the high watermark of replication-offset-checkpoint.

Several paths to one partition are copies of it: each offset comes from the first copy where it is intact. Where
two copies hold different records, no history is made of the two: the partition is refused, unless --prefer
names the copy that counts; from there on the others are left aside.

The inputs are only read. DIR must be new or empty. Each partition is written under a temporary name, brought to
disk, read again and compared, and only then gets its name. The exit code is 1 if something was left out, or
only its records were saved.`,
		Args: needPaths,
		RunE: func(c *cobra.Command, args []string) error { return runSalvage(c.Context(), env, &o, args) },
	}
	o.AddFlags(c.Flags())
	return c
}

// checkDir refuses a folder that is none, or looks like a form of output.
func (o *salvageOptions) checkDir() error {
	switch o.dir {
	case "":
		if o.dryRun {
			return nil
		}
		return usageErrorf("salvage needs -o DIR, a new directory to write into")
	case "text", "table", "json":
		return usageErrorf("-o is the directory to write into; --output %s is the form of the report (a directory of that "+
			"name is ./%s)", o.dir, o.dir)
	}
	return nil
}

func runSalvage(ctx context.Context, env *Env, o *salvageOptions, args []string) error {
	if err := o.checkDir(); err != nil {
		return err
	}
	now, err := o.now(env)
	if err != nil {
		return err
	}
	set, err := o.open(args, &o.workOptions)
	if err != nil {
		return err
	}
	w := salvageWriter{env: env, o: o, theme: o.theme(env), incomplete: env.report(salvage.Problems(set))}
	if o.Format == "table" {
		w.table = render.NewTable(env.Stdout, w.theme, salvage.Columns()...)
	}
	if !o.dryRun {
		if _, err := env.holdFiles(); err != nil {
			return err
		}
	}
	bar := o.progress(env, totalBytes(set))
	err = salvage.Run(ctx, set, salvage.Options{Dir: o.dir, DryRun: o.dryRun, FixBits: o.fixBits, Records: o.records,
		Prefer: o.prefer, Deleted: o.deleted,
		Interval: o.interval, Jobs: o.Jobs, MaxBatchBytes: o.MaxBatchBytes, Now: now, Progress: bar.Add}, w.add)
	bar.Clear()
	if errors.Is(err, logdir.ErrUsage) {
		return &usageError{err}
	}
	return w.finish(err)
}

// salvageWriter prints what becomes of partitions.
type salvageWriter struct {
	env        *Env
	o          *salvageOptions
	theme      render.Theme
	table      *render.Table
	summary    salvage.Summary
	incomplete error
	buf        []byte
}

func (w *salvageWriter) add(s *salvage.Salvaged) error {
	if errors.Is(s.Err, logdir.ErrGone) {
		w.incomplete = errors.Join(w.incomplete, w.env.report([]logdir.Problem{{Err: s.Err}}))
		return nil
	}
	w.summary.Add(s)
	for _, err := range s.NotRead {
		w.env.notef("%s", render.Escaped(err.Error()))
		w.incomplete = errIncomplete
	}
	if s.Err != nil {
		w.incomplete = errIncomplete
	}
	w.buf = w.buf[:0]
	switch {
	case w.o.Format == "json":
		w.buf = s.AppendJSON(w.buf)
	case w.table != nil:
		w.table.Row(s.Row()...)
	case !w.o.Quiet || !s.Whole():
		w.buf = s.AppendText(w.buf, w.theme, w.env.Width)
	}
	_, err := w.env.Stdout.Write(w.buf)
	return err
}

// finish prints the verdict; err is what ended the run.
func (w *salvageWriter) finish(err error) error {
	if w.table != nil {
		err = errors.Join(err, w.table.Flush())
	}
	if err != nil {
		return errors.Join(err, w.incomplete)
	}
	if !w.o.Quiet || w.summary.Lost > 0 || w.incomplete != nil {
		word, rest, _ := strings.Cut(w.summary.Text(w.o.dir, w.o.dryRun), ":")
		theme := w.o.noteTheme(w.env)
		paint := theme.Good
		if w.summary.Lost > 0 || w.incomplete != nil {
			paint = theme.Look
		}
		fmt.Fprintf(w.env.Stderr, "%s:%s\n", paint(word), render.Escaped(rest))
	}
	return result(w.summary.Lost > 0, w.incomplete)
}
