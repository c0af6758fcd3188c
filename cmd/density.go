package cmd

import (
	"context"
	"errors"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"kseg/lookup"
	"kseg/render"
)

// densityOptions are the flags of kseg density.
type densityOptions struct {
	operandOptions
	outputOptions
	workOptions
	Intervals   []int64
	Rule        string
	FailOnDiff  bool
	SVG         string
	MaxMapCount int64
}

// defaultMaxMapCount is Linux's default of vm.max_map_count.
const defaultMaxMapCount = 65530

// AddFlags defines the flags of density.
func (o *densityOptions) AddFlags(fs *pflag.FlagSet) {
	addIntervalFlags(fs, func(fs *pflag.FlagSet) {
		fs.Var(&sizeList[int64]{&o.Intervals}, "interval", "add a row for each index.interval.bytes: `SIZE[,SIZE]`")
	}, &o.Rule)
	addGroup(fs, "Comparison", func(fs *pflag.FlagSet) {
		fs.BoolVar(&o.FailOnDiff, "fail-on-diff", false, "exit with 1 if the paths differ in what an index costs")
		fs.StringVar(&o.SVG, "svg", "", "write the plot as a picture to this `FILE`")
		fs.Int64Var(&o.MaxMapCount, "max-map-count", defaultMaxMapCount, "vm.max_map_count of the broker's machine: `N`")
	})
	o.operandOptions.AddFlags(fs)
	o.outputOptions.AddFlags(fs, "text", "table", "json", "csv")
	o.workOptions.AddFlags(fs)
}

func newDensityCommand(env *Env) *cobra.Command {
	var o densityOptions
	c := &cobra.Command{
		Use:   "density PATH...",
		Short: "Compare how dense offset indexes are, and what that costs",
		Example: `  kseg density orders-0                                       # entries, and what lookups scan
  kseg density orders-0 --interval 1,4096,20000,1048576       # what other settings would make of it
  kseg density leader/orders-0 follower/orders-0              # side by side
  kseg density before/orders-0 after/orders-0 --fail-on-diff  # exit code 1 if they differ
  kseg density /var/kafka-logs -o json                        # a line a partition
  kseg density orders-0 --interval 4096,65536 --svg scan.svg`,
		Long: `Counts segments, batches and index entries of each partition, and looks up every offset to tell what the
index is worth. The regime is plateau where every batch but a segment's first is indexed (batches larger than
the interval: a smaller one adds nothing), thinning where some are, cliff where none is.

--interval answers "what if" from the batches alone, by the rule of brokers from 4.0.1 on (KAFKA-806): at most
one entry a batch. Older brokers wrote at most one an append, which a log does not show; an index with such
entries is recognised, and what a rebuild would gain is said.

What is set side by side is compared: partitions that are operands themselves with the first of them, those of a
log directory with the ones of the same name in a log directory before it, and an interval with what is on disk.

The interval of an index on disk is shown as the range that explains its entries.`,
		Args: needPaths,
		RunE: func(c *cobra.Command, args []string) error { return runDensity(c.Context(), env, &o, args) },
	}
	o.AddFlags(c.Flags())
	return c
}

func runDensity(ctx context.Context, env *Env, o *densityOptions, args []string) error {
	if err := errors.Join(checkRule(o.Rule), checkReport(o.SVG)); err != nil {
		return err
	}
	if o.MaxMapCount < 1 {
		return usageErrorf("--max-map-count: %d is not a number of maps", o.MaxMapCount)
	}
	partitions, incomplete, err := openPartitions(env, &o.operandOptions, &o.workOptions, args)
	if err != nil {
		return err
	}
	comparison := &lookup.Comparison{MaxMapCount: o.MaxMapCount}
	bar := o.progress(env, logBytes(partitions))
	density := func(p *lookup.Partition) ([]*lookup.Density, error) { return p.Density(ctx, o.Intervals, bar.Add) }
	for p, rows := range steadily(ctx, env, partitions, &incomplete, density) {
		comparison.Add(p, rows)
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if len(comparison.Rows) == 0 {
		return incomplete
	}
	differs := comparison.Differs()
	if o.FailOnDiff && !comparison.SideBySide() && incomplete == nil {
		return usageErrorf("--fail-on-diff compares, but nothing is set side by side: give two partitions, two directories " +
			"that have the same ones, or --interval")
	}
	if !o.Quiet || differs {
		o.print(env, comparison)
	}
	return errors.Join(result(o.FailOnDiff && differs, incomplete), env.writePlot(o.SVG, comparison.Plot()))
}

func (o *densityOptions) print(env *Env, c *lookup.Comparison) {
	style := o.style(env)
	switch o.Format {
	case "json", "csv":
		out, end := o.lines(env, "density", lookup.DensityCSV)
		var buf []byte
		for _, d := range c.Rows {
			buf = d.AppendJSON(buf)
		}
		out.Write(buf)
		end()
	case "table":
		table := render.NewTable(env.Stdout, style.Theme, lookup.DensityColumns...)
		for _, row := range c.Cells(style.Theme) {
			table.Row(row...)
		}
		table.Flush()
		for _, s := range c.Sentences() {
			env.notef("%s", render.Escaped(s))
		}
	default:
		env.Stdout.Write(c.AppendText(nil, style))
	}
}
