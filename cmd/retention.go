package cmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"kseg/logdir"
	"kseg/render"
	"kseg/retention"
	"kseg/state"
)

// retentionOptions are the flags of kseg retention.
type retentionOptions struct {
	operandOptions
	outputOptions
	clockOptions
	workOptions
	Overrides []state.Override
	Watermark watermark
	Plan      bool
	Sort      string
}

// watermark is a flag's value: auto, checkpoint, end, or an offset.
type watermark struct {
	state.Watermark
}

var watermarkNames = map[string]state.WatermarkMode{
	"auto": state.WatermarkAuto, "checkpoint": state.WatermarkCheckpoint, "end": state.WatermarkEnd,
}

// String is the name of the mode, or the offset.
func (w *watermark) String() string {
	for name, mode := range watermarkNames {
		if mode == w.Mode {
			return name
		}
	}
	return strconv.FormatInt(w.Offset, 10)
}

// Type is what the help shows for the value.
func (w *watermark) Type() string { return "N|checkpoint|end" }

// Set takes a name or an offset.
func (w *watermark) Set(text string) error {
	if mode, ok := watermarkNames[text]; ok {
		w.Mode = mode
		return nil
	}
	offset, err := strconv.ParseInt(text, 10, 64)
	if err != nil || offset < 0 {
		return fmt.Errorf("%q is no offset, and neither checkpoint nor end", text)
	}
	w.Mode, w.Offset = state.WatermarkOffset, offset
	return nil
}

// override is a flag's value: a topic's setting, added to those before it. With a key it is the value alone.
type override struct {
	list *[]state.Override
	key  string
}

// String is empty: there is nothing to show of a default.
func (o *override) String() string { return "" }

// Type is what the help shows for the value.
func (o *override) Type() string {
	if o.key != "" {
		return "N"
	}
	return "[GLOB:]KEY=VALUE"
}

// Set adds one setting.
func (o *override) Set(text string) error {
	if o.key != "" {
		text = o.key + "=" + text
	}
	if key, value, ok := strings.Cut(text, "="); ok {
		text = key + "=" + withUnit(strings.TrimSpace(key), strings.TrimSpace(value))
	}
	setting, err := state.ParseOverride(text)
	if err != nil {
		if near := nearest(setting.Key, state.TopicConfigKeys()); near != "" && near != setting.Key {
			return fmt.Errorf("%w; did you mean %s?", err, near)
		}
		if _, rest, more := strings.Cut(text, ","); more && strings.Contains(rest, "=") {
			return fmt.Errorf("%w; it takes one setting, and may be given again: --topic-config %s", err, rest)
		}
		return err
	}
	*o.list = append(*o.list, setting)
	return nil
}

// AddFlags defines the flags of retention.
func (o *retentionOptions) AddFlags(fs *pflag.FlagSet) {
	addGroup(fs, "Settings", func(fs *pflag.FlagSet) {
		fs.Var(&override{list: &o.Overrides}, "topic-config", "take this for a topic's setting, instead of what is known: "+
			"`[GLOB:]KEY=VALUE` (repeatable, the last that fits wins)")
		fs.Var(&override{&o.Overrides, "retention.ms"}, "retention-ms", "short for --topic-config retention.ms=`DURATION`")
		fs.Var(&override{&o.Overrides, "retention.bytes"}, "retention-bytes",
			"short for --topic-config retention.bytes=`SIZE`")
		fs.Var(&o.Watermark, "high-watermark", "what is replicated: `N|checkpoint|end`; auto is the log end where there is "+
			"one replica or no metadata, else the checkpoint")
	})
	addGroup(fs, "What to print", func(fs *pflag.FlagSet) {
		o.Sort = retention.SortKeys[0]
		fs.Var(newEnum(&o.Sort, retention.SortKeys...), "sort", "the order of topics where a log directory has a line for "+
			"each: those first that free most, are largest, or by name")
		fs.BoolVar(&o.Plan, "plan", false, "only the names of the files that the next check removes, one a line")
	})
	o.operandOptions.AddFlags(fs)
	o.outputOptions.AddFlags(fs, "text", "table", "json", "csv")
	o.clockOptions.AddFlags(fs)
	o.workOptions.AddFlags(fs)
}

func newRetentionCommand(env *Env) *cobra.Command {
	var o retentionOptions
	c := &cobra.Command{
		Use:   "retention PATH...",
		Short: "Say which segments the broker will delete, when, and what keeps the others",
		Example: `  kseg retention /var/kafka-logs                                  # a line a topic
  kseg retention /var/kafka-logs --topic orders                   # every segment, and what blocks
  kseg retention data1 data2 meta --broker-config server.properties
  kseg retention orders-0 --retention-ms 1d                       # what if the topic kept a day
  kseg retention data1 --topic-config 'logs-*:retention.bytes=10GiB'
  kseg retention orders-0 --now 2026-11-29T20:00Z                 # as of then
  kseg retention orders-0 --plan | xargs -r ls -l                 # the files that go`,
		Long: `Applies the broker's three rules, in its order, to each partition: log start offset, size
(retention.bytes), time (retention.ms). Each begins at the oldest segment and stops at the first that it does
not delete, and none deletes records above the high watermark. The active segment is no exception. The age of a
segment counts from the largest timestamp as a broker holds it, which is the last entry of the time index, or
the file's time if there is none; where the log itself says otherwise there is a warning.

Settings come from the flags, else the topic's own in the __cluster_metadata-0 of any given log directory (give
metadata.log.dir too), else the broker's dynamic ones there, else server.properties, else Kafka's defaults. Each
is shown with its source. Times are when the rules reach a segment if nothing is appended; a broker looks every
log.retention.check.interval.ms. Size is judged as of now.

For a log directory the text has a line a topic, those first that free most: what can be deleted now, when the
next segment can, the limits with their source, and why nothing is deleted where nothing is. --topic or
--partition shows their segments, -o table and -o json always do.`,
		Args: needPaths,
		RunE: func(c *cobra.Command, args []string) error { return runRetention(c.Context(), env, &o, args) },
	}
	o.AddFlags(c.Flags())
	return c
}

func runRetention(ctx context.Context, env *Env, o *retentionOptions, args []string) error {
	if o.Plan && o.Format != "text" {
		return usageErrorf("--plan prints names only; leave -o %s away", o.Format)
	}
	options, err := o.options(env)
	if err != nil {
		return err
	}
	set, err := o.open(args, &o.workOptions)
	if err != nil {
		return err
	}
	cluster := state.OpenCluster(set, newGentle(o.Gentle))
	partitions, _, problems := set.Chosen()
	options.Progress = o.progress(env, totalBytes(set)).Add
	judge, err := retention.NewJudge(partitions, cluster, options)
	if err != nil {
		return fmt.Errorf("%s: %w", o.BrokerConfig, err)
	}
	for _, list := range [][]logdir.Problem{cluster.Problems, problems, judge.Problems} {
		set.Problems = append(set.Problems, list...)
	}
	w := retentionWriter{env: env, o: o, theme: o.theme(env), incomplete: env.report(set.Problems),
		idle: slices.Clone(o.Overrides)}
	w.start(set)
	for res := range judge.Run(ctx, partitions, o.Jobs) {
		w.add(res)
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	return w.finish(options.NowMs)
}

// options reads the clock and server.properties.
func (o *retentionOptions) options(env *Env) (retention.Options, error) {
	now, err := o.now(env)
	options := retention.Options{NowMs: now.UnixMilli(), Watermark: o.Watermark.Watermark, MaxBatchBytes: o.MaxBatchBytes}
	if err == nil {
		options.Given, err = given(o.Overrides, o.BrokerConfig)
	}
	return options, err
}

// retentionWriter prints results as they come.
type retentionWriter struct {
	env        *Env
	o          *retentionOptions
	set        *logdir.Set
	theme      render.Theme
	summary    retention.Summary
	table      *render.Table
	summarize  bool // text of a whole log directory: a line a topic
	logDirs    bool
	judged     int
	idle       []state.Override // those whose pattern no topic has matched so far
	metadata   string           // why a metadata log was passed over
	unsure     bool             // a setting is a default because no server.properties was given
	incomplete error
	out        io.Writer
	end        func() error
	buf        []byte
}

func (w *retentionWriter) start(set *logdir.Set) {
	w.set, w.summary.Sort = set, w.o.Sort
	w.out, w.end = w.o.lines(w.env, "segment_retention", retention.CSV)
	if w.o.Format == "table" {
		w.table = render.NewTable(w.env.Stdout, w.theme, retention.Columns()...)
	}
	for _, o := range set.Operands {
		if o.LogDir != nil {
			w.logDirs = true
			w.summarize = w.summarize || w.o.Format == "text" && !o.LogDir.Narrowed
		}
	}
}

func (w *retentionWriter) add(res retention.Result) {
	w.incomplete = errors.Join(w.incomplete, w.env.report(res.Problems))
	if res.Skipped != "" && !w.o.Quiet {
		w.skipped(res)
	}
	r := res.Report
	if r == nil {
		return
	}
	w.judged++
	w.idle = slices.DeleteFunc(w.idle, func(o state.Override) bool { return o.Matches(r.Partition.Topic) })
	w.summary.Add(r)
	w.unsure = w.unsure || r.Unsure()
	w.buf = w.buf[:0]
	switch {
	case w.o.Plan:
		for _, f := range r.Plan() {
			w.buf = append(append(w.buf, w.name(f.Display)...), '\n')
		}
		if text := r.AppendWarnings(nil, w.o.noteTheme(w.env), w.env.Width); len(text) > 0 {
			fmt.Fprintf(w.env.Stderr, "%s", text)
		}
	case w.o.asLines():
		w.buf = r.AppendJSON(w.buf)
	case w.table != nil:
		r.AddRows(w.table, w.theme)
	case w.summarize:
	case w.o.Quiet:
		w.buf = r.AppendWarnings(w.buf, w.theme, w.env.Width)
	default:
		if w.judged > 1 {
			w.buf = append(w.buf, '\n')
		}
		w.buf = r.AppendText(w.buf, w.theme, w.env.Width)
	}
	// A failed write is kept by the output, and ends in its exit code.
	_, _ = w.out.Write(w.buf)
}

// name is a file's name for other programs: escaped only where it goes to a terminal.
func (w *retentionWriter) name(display string) string {
	if w.env.StdoutTerminal {
		return render.Escaped(display)
	}
	return display
}

// skipped says why a directory is not judged. Every broker has a metadata log; of that it is said only if it was asked
// for, or if there is nothing else.
func (w *retentionWriter) skipped(res retention.Result) {
	if res.Partition.IsClusterMetadata() && res.Partition.Rel != "." {
		w.metadata = res.Skipped
		return
	}
	w.env.notef("%s", render.Escaped(res.Skipped))
}

// finish prints the summary and the verdict.
func (w *retentionWriter) finish(nowMs int64) error {
	w.buf = w.buf[:0]
	switch {
	case w.judged == 0 || w.o.Plan:
	case w.summarize:
		disks, problems := retention.Disks(w.set)
		w.incomplete = errors.Join(w.incomplete, w.env.report(problems))
		w.buf = w.summary.AppendText(w.buf, w.theme, disks, w.env.Width)
	case w.o.Format == "json" && w.logDirs:
		w.buf = w.summary.AppendJSON(w.buf)
	case w.table != nil:
		if err := w.table.Flush(); err != nil {
			return errors.Join(err, w.incomplete)
		}
	}
	_, err := w.out.Write(w.buf)
	if err := errors.Join(err, w.end()); err != nil {
		return errors.Join(err, w.incomplete)
	}
	if w.judged == 0 {
		if w.metadata != "" {
			w.env.notef("%s", render.Escaped(w.metadata))
		}
		return errors.Join(w.incomplete, fmt.Errorf("there is no partition whose segments retention deletes: %w",
			logdir.ErrNothing))
	}
	w.notes(nowMs)
	return w.incomplete
}

func (w *retentionWriter) notes(nowMs int64) {
	if w.o.Quiet {
		return
	}
	for _, o := range w.idle {
		w.env.notef("--topic-config %s:%s=%s: no topic here has such a name", render.Escaped(o.Topics), o.Key,
			render.Escaped(o.Value))
	}
	if w.unsure {
		w.env.notef("no server.properties was given (--broker-config): what neither a topic nor the metadata sets is " +
			"taken for Kafka's default")
	}
	segments, bytes, partitions := w.summary.Freed()
	w.env.notef("would delete %s in %s, %s, as of %s UTC", render.Plural(segments, "segment", "segments"),
		render.Plural(partitions, "partition", "partitions"), render.Bytes(bytes), render.Minute(nowMs))
}
