package cmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"kseg/logdir"
	"kseg/lookup"
	"kseg/render"
	"kseg/state"
)

// lookupOptions are the flags of kseg lookup.
type lookupOptions struct {
	operandOptions
	outputOptions
	clockOptions
	workOptions
	Offset   *int64
	Time     string
	Sweep    bool
	Interval *int64
	Rule     string
	Records  bool
	SVG      string
	HTML     string
}

// AddFlags defines the flags of lookup.
func (o *lookupOptions) AddFlags(fs *pflag.FlagSet) {
	addGroup(fs, "What to look up", func(fs *pflag.FlagSet) {
		fs.Var(&optionalNumber{&o.Offset}, "offset", "this offset: `N`")
		fs.StringVar(&o.Time, "timestamp", "", "the first record at or after this `TIME` (see kseg help times)")
		fs.BoolVar(&o.Sweep, "sweep", false, "every offset of every segment: what the lookups cost")
		fs.BoolVarP(&o.Records, "records", "r", false, "print the records of the batch found, and which of them a "+
			"consumer throws away")
		fs.StringVar(&o.SVG, "svg", "", "with --sweep, write the plot as a picture to this `FILE`")
		fs.StringVar(&o.HTML, "html", "", "write a page that plays the search, step by step, to this `FILE`, and nothing "+
			"to stdout")
	})
	addIntervalFlags(fs, func(fs *pflag.FlagSet) {
		fs.Var(&optionalSize{&o.Interval}, "interval", "as if the indexes had been written with this "+
			"index.interval.bytes: `SIZE`")
	}, &o.Rule)
	o.operandOptions.AddFlags(fs)
	o.outputOptions.AddFlags(fs, "text", "table", "json", "csv")
	o.clockOptions.AddFlags(fs)
	o.workOptions.AddFlags(fs)
}

// addIntervalFlags defines the flags that suppose another index.
func addIntervalFlags(fs *pflag.FlagSet, interval func(fs *pflag.FlagSet), rule *string) {
	addGroup(fs, "What if", func(fs *pflag.FlagSet) {
		interval(fs)
		*rule = "per-batch"
		fs.Var(newEnum(rule, "per-batch", "per-append"), "rule", "which brokers' rule a supposed index follows: "+
			"per-batch, of 4.0.1 and later")
	})
}

// checkRule refuses what cannot be known.
func checkRule(rule string) error {
	if rule == "per-append" {
		return usageErrorf("--rule per-append: a log does not tell which batches were appended together, so what a broker " +
			"before 4.0.1 would have indexed cannot be derived from it")
	}
	return nil
}

func newLookupCommand(env *Env) *cobra.Command {
	var o lookupOptions
	c := &cobra.Command{
		Use:   "lookup PATH...",
		Short: "Replay how a broker finds an offset or a time, step by step",
		Example: `  kseg lookup orders-0 --offset 4930                    # every probe and every header hop to the batch
  kseg lookup orders-0 --offset 4930 --records          # and what a consumer throws away
  kseg lookup orders-0 --offset 4930 --html page.html   # a page that plays the search
  kseg lookup orders-0 --timestamp 2023-11-14T22:13:20Z # the first record at or after a time
  kseg lookup orders-0 --sweep                          # what lookups of all offsets cost, segment by segment
  kseg lookup orders-0 --sweep --interval 65536         # the same if the index were sparser
  kseg lookup orders-0 --sweep --segment 4740 --svg scan.svg
  kseg lookup /var/kafka-logs --topic orders --offset 4930 -o json`,
		Long: `Replays the broker's read path (4.4.0) on a partition directory, or on one segment of it, and shows
every step: the segment with the greatest base offset at or below the target; phase 1, the binary search in the
offset index with its probes; phase 2, the hops over batch headers to the batch that a read starts with. Log
start offset and high watermark come from the checkpoints beside the partition, if they are there.

The bound is min(interval + the largest batch, segment size). The interval is --interval, else the topic's own
setting if a metadata log is among the operands, else what the entries tell, else 4096.

A broken, missing or preallocated index is used as a broker uses it, and it is said what results. Exit code 1
means that in some partition nothing was found, or, of an offset, another batch than the log has for it; of a
sweep, that some offset leads to no batch.`,
		Args: needPaths,
		RunE: func(c *cobra.Command, args []string) error { return runLookup(c.Context(), env, &o, args) },
	}
	o.AddFlags(c.Flags())
	return c
}

// check refuses flags that do not go together.
func (o *lookupOptions) check() error {
	asked := 0
	for _, given := range []bool{o.Offset != nil, o.Time != "", o.Sweep} {
		if given {
			asked++
		}
	}
	switch {
	case asked == 0:
		return usageErrorf("nothing to look up: give --offset N, --timestamp TIME or --sweep")
	case asked > 1:
		return usageErrorf("--offset, --timestamp and --sweep are three questions: ask one at a time")
	case o.Sweep && o.Records:
		return usageErrorf("--records goes with --offset or --timestamp, which find one batch")
	case o.Format == "csv" && !o.Sweep:
		return usageErrorf("-o csv goes with --sweep, which makes a table")
	case o.SVG != "" && !o.Sweep:
		return usageErrorf("--svg goes with --sweep, which makes the curve")
	case o.HTML != "" && (o.Sweep || o.Format != "text" || o.Quiet):
		return usageErrorf("--html writes a page of one search instead of what --sweep, -o and --quiet are about")
	}
	return errors.Join(checkRule(o.Rule), checkReport(o.SVG), checkReport(o.HTML))
}

func runLookup(ctx context.Context, env *Env, o *lookupOptions, args []string) error {
	if err := o.check(); err != nil {
		return err
	}
	timestampMs, err := o.timestamp(env)
	if err != nil {
		return err
	}
	partitions, incomplete, err := openPartitions(env, &o.operandOptions, &o.workOptions, args)
	if err != nil {
		return err
	}
	printer := lookupPrinter{env: env, format: o.Format, style: o.style(env), title: len(partitions) > 1}
	if o.Sweep {
		return o.sweep(ctx, env, &printer, partitions, incomplete)
	}
	if o.HTML != "" && len(partitions) > 1 {
		return usageErrorf("--html shows one search, but %d partitions were given; narrow them with --topic and --partition",
			len(partitions))
	}
	missed := false
	one := func(p *lookup.Partition) (*lookup.Result, error) { return o.one(ctx, p, timestampMs) }
	for _, r := range steadily(ctx, env, partitions, &incomplete, one) {
		miss := r.Outcome != lookup.Found || r.Wrong()
		missed = missed || miss
		switch {
		case o.HTML != "":
			if err := env.writeReport(o.HTML, r.Page()); err != nil {
				return err
			}
		case !o.Quiet || miss:
			printer.result(r)
		}
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	printer.flush()
	return result(missed, incomplete)
}

func (o *lookupOptions) timestamp(env *Env) (int64, error) {
	if o.Time == "" {
		return 0, nil
	}
	now, err := o.now(env)
	if err != nil {
		return 0, err
	}
	ms, err := render.ParseTime(o.Time, now)
	if err != nil {
		return 0, usageErrorf("--timestamp: %w", err)
	}
	if ms < 0 {
		return 0, usageErrorf("--timestamp: %d is before 1970; to a broker negative times are names (-1 the latest "+
			"offset, -2 the earliest)", ms)
	}
	return ms, nil
}

func (o *lookupOptions) one(ctx context.Context, p *lookup.Partition, timestampMs int64) (*lookup.Result, error) {
	options := lookup.Options{Interval: orNone(o.Interval), Records: o.Records}
	if o.Offset != nil {
		return p.LookupOffset(ctx, *o.Offset, options)
	}
	return p.LookupTimestamp(ctx, timestampMs, options)
}

func orNone(n *int64) int64 {
	if n == nil {
		return -1
	}
	return *n
}

// style is how text is written: plots are plain ASCII where no terminal shows them.
func (o *outputOptions) style(env *Env) lookup.Style {
	payload := o.Payload
	if payload == render.PayloadDefault {
		payload = render.PayloadAuto
	}
	return lookup.Style{Theme: o.theme(env), Payload: payload, Width: env.Width, ASCII: !env.StdoutTerminal}
}

// openPartitions finds the partitions to look in. incomplete is set if some operand could not be used.
func openPartitions(env *Env, o *operandOptions, work *workOptions, args []string) (partitions []*lookup.Partition,
	incomplete, err error) {
	set, err := o.open(args, work)
	if err != nil {
		return nil, nil, err
	}
	partitions, problems := lookup.Partitions(set, work.MaxBatchBytes)
	incomplete = env.report(append(set.Problems, problems...))
	if len(partitions) == 0 && incomplete == nil {
		incomplete = fmt.Errorf("there is no partition to look in: %w", logdir.ErrNothing)
	}
	cluster := state.OpenCluster(set, nil)
	for _, p := range partitions {
		p.Gentle = work.Gentle
		p.TopicInterval = topicInterval(cluster, p)
		p.Tiered = cluster.Settings(p.LogDir()).Topic(p.Topic, "remote.storage.enable").Bool()
		p.UseStart(cluster)
	}
	return partitions, incomplete, nil
}

// topicInterval is index.interval.bytes as it was set for the topic, −1 if it was not or nobody knows.
func topicInterval(cluster *state.Cluster, p *lookup.Partition) int64 {
	if p.Topic == "" {
		return -1
	}
	setting := cluster.Settings(p.LogDir()).Topic(p.Topic, "index.interval.bytes")
	if setting.Source != state.FromTopic {
		return -1
	}
	return setting.Int()
}

// steadily yields what do makes of each partition; it is done again while files vanish. What cannot be read is reported
// and joined to incomplete. It ends early if ctx does.
func steadily[T any](ctx context.Context, env *Env, partitions []*lookup.Partition, incomplete *error,
	do func(*lookup.Partition) (T, error)) iter.Seq2[*lookup.Partition, T] {
	return func(yield func(*lookup.Partition, T) bool) {
		for _, p := range partitions {
			var result T
			err := p.Steady(func() (err error) {
				result, err = do(p)
				return err
			})
			switch {
			case ctx.Err() != nil:
				return
			case err != nil:
				*incomplete = errors.Join(*incomplete, env.report([]logdir.Problem{{Display: p.Display, Err: err}}))
			case !yield(p, result):
				return
			}
		}
	}
}

func (o *lookupOptions) sweep(ctx context.Context, env *Env, printer *lookupPrinter, partitions []*lookup.Partition,
	incomplete error) error {
	bar := o.progress(env, logBytes(partitions))
	options := lookup.Options{Interval: orNone(o.Interval)}
	var plot *lookup.Plot
	out, end := o.lines(env, "sweep", lookup.SweepCSV)
	astray := false
	sweep := func(p *lookup.Partition) (*lookup.PartitionSweep, error) { return p.Sweep(ctx, options, bar.Add) }
	for _, s := range steadily(ctx, env, partitions, &incomplete, sweep) {
		astray = astray || s.Total.Astray() > 0
		printer.sweep(s, out)
		if plot == nil {
			plot = s.Plot()
		}
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	printer.flush()
	return errors.Join(result(astray, incomplete), end(), env.writePlot(o.SVG, plot))
}

// writePlot writes the picture, if one was asked for.
func (env *Env) writePlot(file string, plot *lookup.Plot) error {
	switch {
	case file == "":
		return nil
	case plot == nil:
		return fmt.Errorf("--svg: there is nothing to draw, or there are too many curves for one picture; %s was not written",
			file)
	}
	return env.writeReport(file, plot.SVG())
}

// logBytes is how much there is to walk through.
func logBytes(partitions []*lookup.Partition) int64 {
	sum := int64(0)
	for _, p := range partitions {
		for _, s := range p.Segments {
			sum += s.Log.Size
		}
	}
	return sum
}

// lookupPrinter writes lookups and sweeps in the format asked for.
type lookupPrinter struct {
	env     *Env
	format  string
	style   lookup.Style
	title   bool // several partitions: each has its name above it
	started bool
	table   *render.Table
	buf     []byte
}

// heading sets a partition off from the one before.
func (p *lookupPrinter) heading(name string) {
	if !p.title {
		return
	}
	if p.started {
		p.buf = append(p.buf, '\n')
	}
	p.started = true
	p.buf = append(p.buf, p.style.Theme.Strong(render.Escaped(name))...)
	p.buf = append(p.buf, '\n')
}

func (p *lookupPrinter) result(r *lookup.Result) {
	p.buf = p.buf[:0]
	switch p.format {
	case "json":
		p.buf = r.AppendJSON(p.buf, p.style.Payload, func(buf []byte) []byte {
			p.env.Stdout.Write(buf)
			return buf[:0]
		})
	case "table":
		p.rows(lookup.ResultColumns, r.Rows(p.style.Theme))
	default:
		p.heading(r.Partition.Display)
		p.buf = r.AppendText(p.buf, p.style)
	}
	p.env.Stdout.Write(p.buf)
}

func (p *lookupPrinter) sweep(s *lookup.PartitionSweep, out io.Writer) {
	p.buf = p.buf[:0]
	switch p.format {
	case "json", "csv":
		for _, one := range s.Segments {
			p.buf = s.AppendJSON(p.buf, one)
		}
	case "table":
		p.rows(lookup.SweepColumns, s.Rows(p.style.Theme))
	default:
		p.heading(s.Partition.Display)
		p.buf = s.AppendText(p.buf, p.style)
	}
	out.Write(p.buf)
}

func (p *lookupPrinter) rows(columns []render.Column, rows [][]string) {
	if p.table == nil {
		p.table = render.NewTable(p.env.Stdout, p.style.Theme, columns...)
	}
	for _, row := range rows {
		p.table.Row(row...)
	}
}

// flush writes what is held back; the first write error is kept by Stdout.
func (p *lookupPrinter) flush() {
	if p.table != nil {
		p.table.Flush()
	}
}
