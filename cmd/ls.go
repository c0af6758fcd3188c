package cmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"kseg/format"
	"kseg/logdir"
	"kseg/ls"
	"kseg/render"
	"kseg/state"
)

// lsOptions are the flags of kseg ls.
type lsOptions struct {
	operandOptions
	outputOptions
	clockOptions
	workOptions
	By          string
	Stats       bool
	Records     bool
	WhatIf      string
	Sample      *int64
	what        *ls.WhatIf
	Sort        string
	Top         *int64
	MaxMapCount int64
}

// AddFlags defines the flags of ls.
func (o *lsOptions) AddFlags(fs *pflag.FlagSet) {
	addGroup(fs, "What to list", func(fs *pflag.FlagSet) {
		o.By = "auto"
		fs.Var(newEnum(&o.By, "auto", "topic", "partition", "segment", "producer", "codec", "day"), "by",
			"a line for each of these; auto "+
				"takes the segments of one partition, the partitions of one topic, else topics; the last three read all headers")
		fs.BoolVar(&o.Stats, "stats", false, "read all headers: how topics or partitions are batched, compressed "+
			"and produced")
		fs.BoolVarP(&o.Records, "records", "r", false, "with --stats, decompress too: the compression ratio")
		fs.StringVar(&o.WhatIf, "what-if", "", "compress the records again and say what topics or partitions would take: "+
			"`codec=NAME[:LEVEL][,batch=BYTES]`")
		fs.Var(&optionalNumber{&o.Sample}, "sample", "with --what-if, try `N` batches of each partition instead of all")
		o.Sort = "name"
		fs.Var(newEnum(&o.Sort, ls.Keys...), "sort", "the largest first, by age the one whose newest record is oldest; "+
			"sorted lists are printed when all is read")
		fs.VarP(&optionalNumber{&o.Top}, "top", "n", "only the first `N` lines")
		fs.Int64Var(&o.MaxMapCount, "max-map-count", defaultMaxMapCount, "vm.max_map_count of the broker's machine: `N`")
	})
	o.operandOptions.AddFlags(fs)
	o.outputOptions.AddFlags(fs, "text", "table", "json", "csv")
	o.clockOptions.AddFlags(fs)
	o.workOptions.AddFlags(fs)
}

func newLsCommand(env *Env) *cobra.Command {
	var o lsOptions
	c := &cobra.Command{
		Use:   "ls PATH...",
		Short: "List topics, partitions and segments: how big, how old, what is left over",
		Example: `  kseg ls /var/kafka-logs                             # a line a topic, leftovers, free space
  kseg ls data1 data2 --sort size --top 10            # the largest topics
  kseg ls /var/kafka-logs --topic orders              # a line a partition
  kseg ls /var/kafka-logs/orders-0                    # a line a segment
  kseg ls /var/kafka-logs --by partition --sort slack # whose indexes waste most
  kseg ls /var/kafka-logs --exclude '__*' -o json     # a line a topic, leftover and log directory`,
		Long: `Lists what is in log directories, from names, sizes and batch headers. Bytes are what du counts,
apparent (size, du -b) and allocated (on disk), with those of the directories themselves; the total is that of
du over the same operands. What links lead to is counted beside it.

The headers of logs up to 256 KiB are all read. Of a larger log the first and the last are: then records are
counted by offsets, written ≤ (records_exact in JSON), and more than there are where the cleaner took some.
Slack is what the offset and time indexes have in room without entries. The active segment is marked *.

Without --sort, lines are printed as they are found. Leftovers are counted in the totals, not in the topics.
Topic ids and policies come from partition.metadata and from the metadata log, if one is among the operands.`,
		Args: needPaths,
		RunE: func(c *cobra.Command, args []string) error { return runLs(c.Context(), env, &o, args) },
	}
	o.AddFlags(c.Flags())
	return c
}

func runLs(ctx context.Context, env *Env, o *lsOptions, args []string) error {
	now, err := o.now(env)
	if err != nil {
		return err
	}
	if err := o.check(); err != nil {
		return err
	}
	if o.MaxMapCount < 1 {
		return usageErrorf("--max-map-count: %d is not a number of maps", o.MaxMapCount)
	}
	o.Unlisted = true
	set, err := o.open(args, &o.workOptions)
	if err != nil {
		return err
	}
	incomplete := o.leaveFiles(env, set)
	cluster := state.OpenCluster(set, nil)
	partitions := ls.Partitions(set)
	if o.By == "auto" {
		o.By = by(set, partitions)
		if (o.Stats || o.what != nil) && o.By == "segment" {
			o.By = "partition"
		}
	}
	group := o.group()
	brokers := brokers{cluster: cluster, dirs: map[*logdir.LogDir]*ownBroker{}}
	settings, err := brokers.prepare(set, o.BrokerConfig)
	if err != nil {
		return err
	}
	incomplete = errors.Join(incomplete, env.report(slices.Concat(set.Problems, cluster.Problems)))
	lister := ls.New(set, ls.Options{Segments: o.By == "segment", Stats: o.Stats || group != ls.NoGroup,
		Records: o.Records, Group: group,
		WhatIf: o.what, Jobs: o.Jobs, MaxBatchBytes: o.MaxBatchBytes, Settings: settings,
		Progress: o.progress(env, int64(len(partitions))).Counting("partitions").Add})
	w := lsWriter{env: env, o: o, style: ls.Style{Theme: o.theme(env), Width: env.Width, NowMs: now.UnixMilli()},
		incomplete: incomplete, partitions: len(partitions)}
	var dirs []*ls.Dir
	for _, d := range set.LogDirs() {
		dir := lister.OpenDir(d)
		w.problems(dir.Problems)
		dirs = append(dirs, dir)
	}
	w.start(ls.NewSummary(dirs, o.MaxMapCount, brokers.node))
	i := 0
	for p := range lister.Run(ctx, partitions) {
		w.add(p, partitions[i])
		i++
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	return w.finish()
}

// check refuses flags that do not go together.
func (o *lsOptions) check() error {
	lines := o.By == "auto" || o.By == "topic" || o.By == "partition"
	switch {
	case o.Stats && o.WhatIf != "":
		return usageErrorf("--stats says what is, and --what-if what could be: ask one at a time")
	case !lines && (o.Stats || o.WhatIf != ""):
		return usageErrorf("--stats and --what-if have a line a topic or a partition, not a %s", o.By)
	case o.Sample != nil && (o.WhatIf == "" || *o.Sample == 0):
		return usageErrorf("--sample goes with --what-if, and is at least 1")
	case o.WhatIf == "":
		return nil
	}
	what, err := ls.ParseWhatIf(o.WhatIf)
	if err != nil {
		return usageErrorf("--what-if: %w", err)
	}
	if o.what = what; o.Sample != nil {
		what.Sample = *o.Sample
	}
	return nil
}

// group is what the list counts batches by; "" if it lists topics, partitions or segments.
func (o *lsOptions) group() ls.Group {
	switch g := ls.Group(o.By); g {
	case ls.ByProducer, ls.ByCodec, ls.ByDay:
		return g
	}
	return ls.NoGroup
}

// counts reports whether the list is about batches instead of files.
func (o *lsOptions) counts() bool { return o.Stats || o.what != nil || o.group() != ls.NoGroup }

// columns are those of the list.
func (o *lsOptions) columns() []render.Column {
	switch {
	case o.group() != ls.NoGroup:
		return ls.GroupColumns(o.group())
	case o.what != nil:
		return append([]render.Column{{Name: o.By}}, ls.WhatIfColumns...)
	case o.Stats:
		return append([]render.Column{{Name: o.By}}, ls.StatsColumns...)
	case o.By == "topic":
		return ls.TopicColumns
	case o.By == "partition":
		return ls.PartitionColumns
	}
	return ls.SegmentColumns
}

// leaveFiles says of the files among the operands that they are not listed.
func (o *lsOptions) leaveFiles(env *Env, set *logdir.Set) error {
	var incomplete error
	for _, op := range set.Operands {
		if op.File != nil && op.Err == nil {
			incomplete = env.report([]logdir.Problem{{Display: op.Arg,
				Err: fmt.Errorf("%s: a file; ls lists directories: name the one "+
					"that it lies in, and --segment %d", op.Arg, op.File.Name.Base)}})
		}
	}
	return incomplete
}

// by is what a list has a line for where nothing is said.
func by(set *logdir.Set, partitions []*logdir.Partition) string {
	for _, d := range set.LogDirs() {
		if !d.Narrowed {
			return "topic"
		}
	}
	topics := map[string]bool{}
	for _, p := range partitions {
		topics[p.Topic] = true
	}
	switch {
	case len(partitions) == 1:
		return "segment"
	case len(topics) == 1:
		return "partition"
	}
	return "topic"
}

// ownBroker is what is known of the broker that a log directory belongs to.
type ownBroker struct {
	settings *state.Settings
	node     ls.Maybe
}

// brokers knows the brokers of log directories; nil stands for what lies in none.
type brokers struct {
	cluster *state.Cluster
	dirs    map[*logdir.LogDir]*ownBroker
}

// prepare reads what is known of all log directories, with the server.properties of that name ("": none), and returns a
// function that is safe for several goroutines.
func (b *brokers) prepare(set *logdir.Set, server string) (func(dir *logdir.LogDir) *state.Settings, error) {
	var properties []format.Property
	if server != "" {
		var err error
		if properties, err = readProperties(server); err != nil {
			return nil, err
		}
	}
	dirs := []*logdir.LogDir{nil}
	for _, op := range set.Operands {
		if op.LogDir != nil {
			dirs = append(dirs, op.LogDir)
		} else if op.Partition != nil && op.Partition.Parent != nil {
			dirs = append(dirs, op.Partition.Parent)
		}
	}
	for _, d := range dirs {
		one := &ownBroker{settings: b.cluster.Settings(d)}
		if d != nil && one.settings.HasNodeID {
			one.node = ls.Some(int64(one.settings.NodeID))
		}
		b.dirs[d] = one
		if server != "" {
			if err := one.settings.UseServerProperties(properties); err != nil {
				return nil, fmt.Errorf("%s: %w", server, err)
			}
		}
	}
	return func(dir *logdir.LogDir) *state.Settings { return b.dirs[dir].settings }, nil
}

func (b *brokers) node(dir *logdir.LogDir) ls.Maybe { return b.dirs[dir].node }

// lsBlock is how many rows are held back to find out how wide the columns are.
const lsBlock = 256

// lsWriter prints rows as they come, or sorts them first.
type lsWriter struct {
	env        *Env
	o          *lsOptions
	style      ls.Style
	summary    *ls.Summary
	partitions int       // there are to list
	topic      *ls.Topic // whose partitions are coming
	rows       []ls.Row  // to be sorted
	printed    int64
	listed     int64
	table      *render.Table
	text       *render.Columns
	out        io.Writer // takes text or JSON lines
	end        func() error
	shown      []bool
	last       *ls.Partition
	incomplete error
	buf        []byte
}

func (w *lsWriter) problems(list []logdir.Problem) {
	w.incomplete = errors.Join(w.incomplete, w.env.report(list))
}

func (w *lsWriter) start(summary *ls.Summary) {
	w.summary = summary
	kind, names := ls.CSV(w.o.By, w.o.Stats, w.o.what != nil)
	w.out, w.end = w.o.lines(w.env, kind, names)
	columns := w.o.columns()
	switch w.o.Format {
	case "table":
		w.table = render.NewTable(w.env.Stdout, w.style.Theme, columns...)
	case "text":
		w.shown = ls.Shown(columns, w.partitions, len(summary.Dirs))
		if w.o.counts() {
			w.shown = slices.Repeat([]bool{true}, len(columns))
		}
		w.text = render.HeadedColumns(w.style.Theme, slices.DeleteFunc(slices.Clone(columns), func(c render.Column) bool {
			return !w.shown[slices.Index(columns, c)]
		}), ls.Least...)
	default:
		for _, d := range summary.Dirs {
			w.leftovers(d.Leftovers)
		}
	}
}

func (w *lsWriter) leftovers(list []ls.Leftover) {
	if !w.o.asLines() || len(list) == 0 {
		return
	}
	w.buf = w.buf[:0]
	for _, l := range list {
		w.buf = l.AppendJSON(w.buf)
	}
	// A failed write is kept by the output, and ends in its exit code.
	_, _ = w.out.Write(w.buf)
}

// add takes the next partition, which was listed from dir.
func (w *lsWriter) add(p *ls.Partition, dir *logdir.Partition) {
	w.problems(p.Problems)
	w.summary.Add(p, dir)
	if p.Gone {
		return
	}
	w.listed++
	left, isLeft := p.Leftover()
	if isLeft && dir.Rel != "." {
		w.leftovers([]ls.Leftover{left})
	}
	w.leftovers(p.Leftovers)
	if isLeft && dir.Rel != "." {
		return
	}
	w.last = p
	switch w.o.By {
	case "segment":
		for i := range p.Segments {
			w.row(ls.Row{Partition: p, Segment: &p.Segments[i]})
		}
	case "partition":
		w.row(ls.Row{Partition: p})
	case "topic":
		if w.topic != nil && w.topic.Name != p.Topic {
			w.endTopic()
		}
		if w.topic == nil {
			w.topic = &ls.Topic{}
		}
		w.topic.Add(p)
	}
}

// endTopic prints a topic that is complete.
func (w *lsWriter) endTopic() {
	w.summary.Topic(w.topic)
	w.row(ls.Row{Topic: w.topic})
	w.topic = nil
}

// groups prints the lines of a list by producer, codec or day.
func (w *lsWriter) groups() {
	stats := w.summary.Total.Stats
	if stats == nil || w.o.group() == ls.NoGroup || w.o.Quiet {
		return
	}
	for i, g := range stats.GroupRows(w.o.group()) {
		if w.o.Top != nil && int64(i) >= *w.o.Top {
			return
		}
		w.printed++
		switch {
		case w.table != nil:
			w.table.Row(g.Cells()...)
		case w.text != nil:
			w.text.Row(g.Cells()...)
		default:
			w.buf = g.AppendJSON(w.buf[:0])
			_, _ = w.out.Write(w.buf)
		}
	}
}

// row prints a row, or keeps it for sorting.
func (w *lsWriter) row(r ls.Row) {
	if w.o.Sort != "name" {
		w.rows = append(w.rows, r)
		return
	}
	w.print(r)
}

func (w *lsWriter) print(r ls.Row) {
	if w.o.Top != nil && w.printed >= *w.o.Top {
		return
	}
	w.printed++
	if w.o.Quiet {
		return
	}
	switch {
	case w.table != nil:
		w.table.Row(w.cells(r)...)
	case w.text != nil:
		var cells []string
		for i, cell := range w.cells(r) {
			if w.shown[i] {
				cells = append(cells, cell)
			}
		}
		if w.text.Row(cells...); w.text.Len() >= lsBlock {
			w.flush()
		}
	case w.o.what != nil:
		w.buf = r.AppendWhatIfJSON(w.buf[:0], w.o.what)
		_, _ = w.out.Write(w.buf)
	default:
		w.buf = r.AppendJSON(w.buf[:0], w.style.NowMs)
		_, _ = w.out.Write(w.buf)
	}
}

func (w *lsWriter) cells(r ls.Row) []string {
	switch {
	case w.o.what != nil:
		return r.WhatIfCells(w.style)
	case w.o.Stats:
		return r.StatsCells(w.style)
	}
	return r.Cells(w.style)
}

// flush writes the rows of text that are held back.
func (w *lsWriter) flush() {
	w.buf = w.text.Append(w.buf[:0], "")
	_, _ = w.out.Write(w.buf)
}

// finish prints what is left, and what is to be said of the whole.
func (w *lsWriter) finish() error {
	if w.topic != nil {
		w.endTopic()
	}
	w.groups()
	ls.Sort(w.rows, w.o.Sort)
	for _, r := range w.rows {
		w.print(r)
	}
	if w.listed == 0 && len(w.summary.Dirs) == 0 {
		return errors.Join(w.incomplete, fmt.Errorf("there is no directory to list: %w", logdir.ErrNothing))
	}
	if len(w.o.Segments) > 0 && w.summary.Total.Segments == 0 {
		return errors.Join(w.incomplete, fmt.Errorf("there is no segment with that base offset: %w", logdir.ErrNothing))
	}
	if w.o.Quiet {
		return w.incomplete
	}
	w.buf = w.buf[:0]
	switch {
	case w.table != nil:
		return errors.Join(w.table.Flush(), w.incomplete)
	case w.text != nil:
		if w.printed > 0 {
			w.buf = w.text.Append(w.buf, "")
		}
		if w.o.By == "segment" && w.listed == 1 && w.last != nil {
			w.buf = append(append(w.buf, w.last.EvidenceSentence()...), '\n')
		}
		switch {
		case w.o.what != nil:
			w.buf = ls.AppendSentences(w.buf, []string{w.o.what.Title()}, w.style)
		case w.o.counts():
			w.buf = ls.AppendSentences(w.buf, w.summary.Batching(), w.style)
		default:
			w.buf = w.summary.AppendText(w.buf, w.style)
		}
	default:
		w.buf = w.summary.AppendJSON(w.buf)
	}
	_, err := w.out.Write(w.buf)
	return errors.Join(err, w.end(), w.incomplete)
}
