package cmd

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"kseg/format"
	"kseg/groups"
	"kseg/logdir"
	"kseg/render"
	"kseg/state"
)

// groupsOptions are the flags of kseg groups.
type groupsOptions struct {
	clusterOptions
	outputOptions
	clockOptions
	Groups, Topics, Exclude []string
	At                      string
	History                 bool
}

// AddFlags defines the flags of groups.
func (o *groupsOptions) AddFlags(fs *pflag.FlagSet) {
	addGroup(fs, "What to print", func(fs *pflag.FlagSet) {
		fs.StringArrayVar(&o.Groups, "group", nil, "only groups that match this `GLOB` (repeatable)")
		fs.StringArrayVarP(&o.Topics, "topic", "t", nil, "only offsets of topics that match this `GLOB` (repeatable)")
		fs.StringArrayVar(&o.Exclude, "exclude", nil, "no offsets of topics that match this `GLOB` (repeatable)")
		fs.StringVar(&o.At, "at", "", "as of this `OFFSET|TIME` of __consumer_offsets, its record included (numbers from "+
			"10^11 on are epoch ms)")
		fs.BoolVar(&o.History, "history", false, "what happened, in order: commits, resets, deletions, expiries, and "+
			"what jumped")
	})
	o.outputOptions.AddFlags(fs, "text", "table", "json", "csv")
	o.clockOptions.AddFlags(fs)
	o.clusterOptions.AddFlags(fs)
}

func newGroupsCommand(env *Env) *cobra.Command {
	var o groupsOptions
	c := &cobra.Command{
		Use:   "groups PATH...",
		Short: "Show where consumer groups stand, and how they got there",
		Example: `  kseg groups /var/kafka-logs                        # groups, committed offsets, lag
  kseg groups data1 data2 --group payments           # one group, with its members
  kseg groups data1 --topic 'orders*' -o csv
  kseg groups __consumer_offsets-12 --at -2h         # where they stood two hours ago
  kseg groups data1 --group payments --history       # who reset the offsets, when, from what to what`,
		Long: `Folds __consumer_offsets as a coordinator loads it: for each group its type (classic, consumer, share,
streams), state, epoch and members as last recorded; for each partition the committed offset and when it expires
(offsets.retention.minutes, of --broker-config or 7 days). Commits in a transaction count when its marker says
commit; those whose transaction has not ended are shown as pending. Share groups are in __share_group_state.
If the partition is in the given log directories, its log start, log end and the lag are shown, and offsets that
are out of range come first.

With several __consumer_offsets partitions an --at OFFSET counts in each; a time is mostly what is meant. A
compacted log has forgotten what was committed again later, and --at and --history say so. A group whose
partition is not here is said to be there. Records that could not be read are named, and what they may have
changed is marked unsure; the exit code is 1 then, and where no group matches.`,
		Args: needPaths,
		RunE: func(c *cobra.Command, args []string) error { return runGroups(c.Context(), env, &o, args) },
	}
	o.AddFlags(c.Flags())
	return c
}

func runGroups(ctx context.Context, env *Env, o *groupsOptions, args []string) error {
	now, err := o.now(env)
	if err != nil {
		return err
	}
	options, err := o.options(now)
	if err != nil {
		return err
	}
	set, gentle, err := o.open(args)
	if err != nil {
		return err
	}
	in := groups.Find(set, gentle)
	options.Progress = o.progress(env, in.Bytes()).Add
	incomplete := env.report(append(set.Problems, in.Problems...))
	in.Problems = nil
	if len(in.Offsets)+len(in.Share) == 0 {
		switch {
		case incomplete != nil:
			return incomplete
		case in.NoneYet():
			env.notef("no group has ever committed an offset: the metadata do not have a topic %s", format.OffsetsTopic)
			return result(o.narrow(), nil)
		}
		return fmt.Errorf("there is no __consumer_offsets partition here: name one, or a log directory: %w",
			logdir.ErrNothing)
	}
	g := groupsRun{env: env, o: o, incomplete: incomplete}
	if o.History {
		return g.history(ctx, in, options)
	}
	r := in.Run(ctx, options)
	if err := ctx.Err(); err != nil {
		return err
	}
	g.print(r, now.UnixMilli())
	return g.finish(r, r.Empty() && o.narrow())
}

// options reads the filters, the point and the retention.
func (o *groupsOptions) options(now time.Time) (groups.Options, error) {
	options := groups.Options{Groups: o.Groups, Topics: o.Topics, Exclude: o.Exclude,
		Partitions: o.Partitions, RetentionMs: state.DefaultOffsetsRetentionMs, Jobs: o.Jobs,
		MaxBatchBytes: o.MaxBatchBytes}
	if err := errors.Join(checkGlobs("--group", o.Groups), checkGlobs("--topic", o.Topics), checkGlobs("--exclude",
		o.Exclude)); err != nil {
		return options, err
	}
	var err error
	if o.At != "" {
		if options.At, err = parsePoint("--at", o.At, now); err != nil {
			return options, err
		}
	}
	if o.BrokerConfig == "" {
		return options, nil
	}
	properties, err := readProperties(o.BrokerConfig)
	if err != nil {
		return options, err
	}
	const key, minuteMs = "offsets.retention.minutes", 60_000
	if i := slices.IndexFunc(properties, func(p format.Property) bool { return p.Key == key }); i >= 0 {
		minutes, err := strconv.ParseInt(strings.TrimSpace(properties[i].Value), 10, 32)
		if err != nil || minutes < 1 {
			return options, fmt.Errorf("%s: %s takes a number from 1 on, not %q", o.BrokerConfig, key, properties[i].Value)
		}
		options.RetentionMs = minutes * minuteMs
	}
	return options, nil
}

// narrow reports whether something was asked for by name.
func (o *groupsOptions) narrow() bool { return len(o.Groups)+len(o.Topics)+len(o.Partitions) > 0 }

// groupsRun prints one answer.
type groupsRun struct {
	env        *Env
	o          *groupsOptions
	incomplete error
}

func (g *groupsRun) print(r *groups.Report, nowMs int64) {
	theme := g.o.theme(g.env)
	switch {
	case g.o.asLines():
		out, end := g.o.lines(g.env, "group_offset", groups.CSV)
		out.Write(r.AppendJSON(nil))
		end()
	case g.o.Format == "text" && !g.o.Quiet:
		style := groups.Style{Theme: theme, Width: g.env.Width, NowMs: nowMs, All: g.o.narrow()}
		g.env.Stdout.Write(r.AppendText(nil, style))
	case g.o.Format != "text":
		g.o.writeTable(g.env, groups.Columns(), r.Rows(theme))
	}
}

func (g *groupsRun) history(ctx context.Context, in *groups.Inputs, options groups.Options) error {
	theme, count := g.o.theme(g.env), 0
	out, end := g.o.lines(g.env, "group_event", groups.EventCSV)
	var rows [][]string
	var buf []byte
	r := in.History(ctx, options, func(e groups.Event) {
		count++
		switch g.o.Format {
		case "json", "csv":
			buf = e.AppendJSON(buf[:0])
		case "table":
			rows = append(rows, e.Row())
			return
		default:
			buf = e.AppendText(buf[:0], theme, len(in.Offsets) > 1)
		}
		out.Write(buf)
	})
	if err := ctx.Err(); err != nil {
		return err
	}
	if g.o.asLines() {
		out.Write(r.AppendElsewhere(nil))
	}
	end()
	if rows != nil {
		g.o.writeTable(g.env, groups.EventColumns(), rows)
	}
	return g.finish(r, count == 0 && g.o.narrow())
}

// finish prints the notes and what could not be read.
func (g *groupsRun) finish(r *groups.Report, empty bool) error {
	for _, l := range r.Logs {
		g.incomplete = errors.Join(g.incomplete, g.env.problems(l.Problems))
		if len(l.Lost) > 0 {
			g.env.notef("%s: offsets lost: %s; what they may have changed is marked unsure, and groups may be missing",
				render.Escaped(l.Partition.Display), state.LostText(l.Lost))
		}
		if l.Newer > 0 && !g.o.Quiet {
			g.env.notef("%s: %s left out", render.Escaped(l.Partition.Display), render.Plural(int64(l.Newer),
				"record of a newer Kafka is", "records of a newer Kafka are"))
		}
	}
	for _, note := range r.Notes {
		if !g.o.Quiet || len(r.Elsewhere) > 0 {
			g.env.notef("%s", render.Escaped(note))
		}
	}
	g.incomplete = errors.Join(g.incomplete, g.env.report(r.Problems))
	if len(r.Elsewhere) > 0 && g.o.narrow() && g.incomplete == nil {
		g.incomplete = errIncomplete
	}
	if empty && !g.o.Quiet && len(r.Elsewhere) == 0 {
		g.env.notef("nothing fits: there is no such group or offset here")
	}
	return result(r.Lost() || empty, g.incomplete)
}
