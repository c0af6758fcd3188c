package cmd

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"kseg/logdir"
	"kseg/render"
	"kseg/state"
	"kseg/txn"
)

// txnOptions are the flags of kseg txn.
type txnOptions struct {
	operandOptions
	outputOptions
	clockOptions
	workOptions
	Watermark   watermark
	Shutdown    string
	All         bool
	Producers   bool
	ProducerIDs []int64
	IDs         []string
}

// AddFlags defines the flags of txn.
func (o *txnOptions) AddFlags(fs *pflag.FlagSet) {
	addGroup(fs, "What to print", func(fs *pflag.FlagSet) {
		fs.BoolVar(&o.All, "all", false, "finished transactions too, and all transactional ids: reads the whole log")
		fs.BoolVar(&o.Producers, "producers", false, "the producers that a broker knows, as kafka-transactions.sh "+
			"describe-producers shows them")
		fs.VarP(&numberList[int64]{&o.ProducerIDs}, "producer-id", "", "only the transactions of these producers")
		fs.StringArrayVar(&o.IDs, "transactional-id", nil, "only the transactions of this `ID` (repeatable)")
	})
	addGroup(fs, "Settings", func(fs *pflag.FlagSet) {
		fs.Var(&o.Watermark, "high-watermark", "what is replicated: `N|checkpoint|end`; auto is the log end where there is "+
			"one replica or no metadata, else the checkpoint")
		o.Shutdown = "auto"
		fs.Var(newEnum(&o.Shutdown, "auto", "clean", "unclean"), "shutdown", "how the broker was stopped; auto follows "+
			".kafka_cleanshutdown")
	})
	o.operandOptions.AddFlags(fs)
	o.outputOptions.AddFlags(fs, "text", "table", "json", "csv")
	o.clockOptions.AddFlags(fs)
	o.workOptions.AddFlags(fs)
}

func newTxnCommand(env *Env) *cobra.Command {
	var o txnOptions
	c := &cobra.Command{
		Use:   "txn PATH...",
		Short: "Say which transactions are open, what holds the last stable offset, and which hang",
		Example: `  kseg txn /var/kafka-logs                               # what is open, the worst first
  kseg txn /var/kafka-logs --topic payments              # one topic, also where nothing is open
  kseg txn data1 data2 meta                              # all log directories, so that coordinators are known
  kseg txn orders-0 --all                                # finished transactions too
  kseg txn orders-0 --producers                          # what a broker knows of its producers
  kseg txn /var/kafka-logs --transactional-id billing-7
  kseg txn /var/kafka-logs -o json | jq -r 'select(.status == "hanging").next'`,
		Long: `Loads each partition as a broker does: the newest producer snapshot that it would use, and the log after
it. A transaction that is open holds the last stable offset, and read_committed consumers get nothing from there
on.

What the coordinators know comes from __transaction_state in the same log directories, also where --topic leaves
it out. By it a transaction is ongoing, overdue (its timeout has passed; a running coordinator aborts it within
seconds) or hanging: its coordinator counts no open transaction to the partition, so that no marker will come
and the last stable offset stays where it is until somebody aborts it with the command that is printed. Where a
partition of __transaction_state may be missing nothing is called hanging; overdue then means that nothing was written
for 15 minutes, the largest timeout by default.

Offsets that are lost (damage, missing segments) may hold a marker or a beginning: what they leave in doubt is
marked unsure. The exit code is 1 if a transaction hangs or something is unsure.

--producers has the fields of DescribeProducers. A broker forgets producers that were idle for
producer.id.expiration.ms (a day by default) and have no open transaction; they are shown with how long they
were idle.`,
		Args: needPaths,
		RunE: func(c *cobra.Command, args []string) error { return runTxn(c.Context(), env, &o, args) },
	}
	o.AddFlags(c.Flags())
	return c
}

func runTxn(ctx context.Context, env *Env, o *txnOptions, args []string) error {
	now, err := o.now(env)
	if err != nil {
		return err
	}
	if o.All && o.Producers {
		return usageErrorf("--all lists transactions, --producers the producers; ask for one")
	}
	set, err := o.open(args, &o.workOptions)
	if err != nil {
		return err
	}
	gentle := newGentle(o.Gentle)
	cluster := state.OpenCluster(set, gentle)
	coordinators, err := state.ReadCoordinators(ctx, set, cluster, gentle)
	if err != nil {
		return err
	}
	judge := &txn.Judge{Cluster: cluster, Coordinators: coordinators, Options: txn.Options{NowMs: now.UnixMilli(),
		Watermark: o.Watermark.Watermark,
		All:       o.All, ProducerIDs: o.ProducerIDs, IDs: o.IDs, MaxBatchBytes: o.MaxBatchBytes, Progress: o.progress(env,
			totalBytes(set)).Add}}
	if o.Shutdown != "auto" {
		clean := o.Shutdown == "clean"
		judge.Options.Clean = &clean
	}
	problems := append(append(set.Problems, cluster.ProblemsOf(set)...), coordinators.Problems...)
	w := txnWriter{env: env, o: o, judge: judge, theme: o.theme(env), incomplete: env.report(problems)}
	switch {
	case o.Producers && o.Format != "json":
		w.rows = o.newRows(env, txn.ProducerColumns())
	case !o.Producers && o.Format != "json" && o.Format != "text":
		w.rows = o.newRows(env, txn.Columns())
	}
	for report, err := range judge.Run(ctx, w.partitions(set), o.Jobs) {
		w.add(report, err)
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	return w.finish()
}

// txnWriter prints reports as they come.
type txnWriter struct {
	env        *Env
	o          *txnOptions
	judge      *txn.Judge
	theme      render.Theme
	rows       *rowWriter // nil with text and JSON
	whole      bool       // text of a whole log directory: only what is open
	printed    bool
	read       int64 // partitions
	open       int64 // transactions
	held       int64 // partitions whose last stable offset is below the high watermark
	hangs      int64
	unsure     bool
	incomplete error
}

// partitions are those among the operands that have transactions; of the others it is said why not.
func (w *txnWriter) partitions(set *logdir.Set) []*logdir.Partition {
	all, named, problems := set.Chosen()
	for _, p := range problems {
		w.incomplete = errors.Join(w.incomplete, p.Err)
	}
	w.whole = slices.ContainsFunc(set.LogDirs(), func(d *logdir.LogDir) bool { return !d.Narrowed })
	var kept []*logdir.Partition
	for i, p := range all {
		switch why := txn.Skipped(p); {
		case why == "":
			kept = append(kept, p)
		case named[i] && !w.o.Quiet:
			w.env.notef("%s: %s", render.Escaped(p.Display), why)
		}
	}
	return kept
}

func (w *txnWriter) add(r *txn.Report, err error) {
	if err != nil {
		w.incomplete = errors.Join(w.incomplete, w.env.report([]logdir.Problem{{Err: err}}))
	}
	if r == nil {
		return
	}
	w.read++
	w.open += int64(len(r.Open))
	w.hangs += r.Hangs()
	if r.LastStable < r.HighWatermark {
		w.held++
	}
	w.unsure = w.unsure || len(r.Missing) > 0 || len(r.Lost) > 0
	var buf []byte
	switch {
	case w.o.Format == "json" && w.o.Producers:
		buf = r.AppendProducersJSON(nil, &w.judge.Options)
	case w.o.Format == "json":
		buf = r.AppendJSON(nil)
	case w.o.Producers:
		w.rows.write(r.ProducerRows(&w.judge.Options, w.theme)...)
	case w.o.Format != "text":
		w.rows.write(r.Rows(w.theme)...)
	case w.o.Quiet && r.Hangs() == 0 && len(r.Missing) == 0:
	case !w.whole || len(r.Open)+len(r.Finished)+len(r.Warnings()) > 0:
		if w.printed {
			buf = append(buf, '\n')
		}
		w.printed = true
		buf = r.AppendText(buf, w.theme, w.env.Width)
	}
	// A failed write is kept by the output, and ends in its exit code.
	_, _ = w.env.Stdout.Write(buf)
}

// finish prints tables, transactional ids and the verdict.
func (w *txnWriter) finish() error {
	var buf []byte
	switch {
	case w.rows != nil:
		w.rows.flush()
	case w.o.Producers:
	case w.o.Format == "json":
		buf = w.judge.AppendIDsJSON(nil)
	case !w.o.Quiet:
		if buf = w.judge.AppendIDsText(nil, w.theme); w.printed && len(buf) > 0 {
			buf = append([]byte{'\n'}, buf...)
		}
	}
	_, _ = w.env.Stdout.Write(buf)
	if w.read == 0 && w.incomplete == nil {
		w.incomplete = fmt.Errorf("there is no partition that has transactions: %w", logdir.ErrNothing)
	}
	for partition, lost := range w.judge.Coordinators.Lost {
		w.unsure = true
		w.env.notef("__transaction_state-%d: offsets %s are lost; what coordinators know is marked unsure where they may "+
			"have changed it", partition, state.LostText(lost[:min(10, len(lost))]))
	}
	if n := w.judge.Coordinators.Newer; n > 0 {
		w.env.notef("%s of a newer Kafka in __transaction_state: nothing is called hanging", render.Plural(int64(n), "record",
			"records"))
	}
	w.verdict()
	return result(w.hangs > 0 || w.unsure, w.incomplete)
}

func (w *txnWriter) verdict() {
	if w.o.Quiet || w.read == 0 {
		return
	}
	text := "no transaction is open"
	if len(w.o.ProducerIDs)+len(w.o.IDs) > 0 {
		text = "no such transaction is open"
	}
	if w.open > 0 {
		text = render.Plural(w.open, "open transaction", "open transactions")
		switch w.hangs {
		case 0:
			text += ", none hanging"
		case 1:
			text += ", 1 hanging"
		default:
			text += ", " + render.Count(w.hangs) + " hanging"
		}
	}
	if w.held > 0 {
		text += "; " + render.Plural(w.held, "partition is", "partitions are") + " held back"
	}
	w.env.notef("%s, in %s", text, render.Plural(w.read, "partition", "partitions"))
}
