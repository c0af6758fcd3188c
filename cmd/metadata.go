package cmd

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"kseg/logdir"
	"kseg/metadata"
	"kseg/render"
	"kseg/state"
)

// metadataOptions are the flags of kseg metadata.
type metadataOptions struct {
	clusterOptions
	outputOptions
	clockOptions
	filter metadata.Filter
	broker *int64
	At     string
	Diff   string
	Check  bool
}

// kindList is a flag's value: kinds of things, by their names in JSON, also in the plural.
type kindList struct{ target *[]state.ThingKind }

// String lists the kinds.
func (l *kindList) String() string {
	var names []string
	for _, kind := range *l.target {
		names = append(names, string(kind))
	}
	return strings.Join(names, ",")
}

// Type is what the help shows for the value.
func (l *kindList) Type() string { return "TYPE[,TYPE]" }

// Set adds the kinds of one list.
func (l *kindList) Set(text string) error {
	for word := range strings.SplitSeq(text, ",") {
		word = strings.ReplaceAll(strings.TrimSpace(word), "-", "_")
		kind := state.ThingKind(word)
		if word == "partition" || word == "partitions" {
			kind = state.PartitionThing
		}
		if !slices.Contains(state.ThingKinds, kind) {
			kind = state.ThingKind(strings.TrimSuffix(word, "s"))
		}
		if !slices.Contains(state.ThingKinds, kind) {
			return fmt.Errorf("%q is none of %s", word, (&kindList{&state.ThingKinds}).String())
		}
		*l.target = append(*l.target, kind)
	}
	return nil
}

// AddFlags defines the flags of metadata.
func (o *metadataOptions) AddFlags(fs *pflag.FlagSet) {
	addGroup(fs, "What to print", func(fs *pflag.FlagSet) {
		fs.StringArrayVarP(&o.filter.Topics, "topic", "t", nil, "only what belongs to topics that match this `GLOB` "+
			"(repeatable)")
		fs.StringArrayVar(&o.filter.Exclude, "exclude", nil, "nothing that belongs to topics that match this `GLOB` "+
			"(repeatable)")
		fs.Var(&optionalNumber{&o.broker}, "broker", "only what is on this broker, or set for it")
		fs.Var(&kindList{&o.filter.Kinds}, "type", "only things of these types: "+(&kindList{&state.ThingKinds}).String())
		fs.StringVar(&o.At, "at", "", "as of this `OFFSET|TIME`, its record included (numbers from 10^11 on are epoch ms)")
		fs.StringVar(&o.Diff, "diff", "", "what changed `FROM,TO`, each an offset or a time, and in which record; end is "+
			"the log's end")
		fs.BoolVar(&o.Check, "check", false, "hold each snapshot against the fold of the log before it")
	})
	o.outputOptions.AddFlags(fs, "text", "table", "json", "csv")
	o.clockOptions.AddFlags(fs)
	o.clusterOptions.AddFlags(fs)
}

func newMetadataCommand(env *Env) *cobra.Command {
	var o metadataOptions
	c := &cobra.Command{
		Use:   "metadata PATH...",
		Short: "Show the cluster that the KRaft metadata log folds to",
		Example: `  kseg metadata /var/kafka-logs                          # brokers, topics, configs, users
  kseg metadata /var/kafka-logs --topic orders           # its partitions, replicas, settings
  kseg metadata meta --type topic_partition --broker 3   # what broker 3 should have
  kseg metadata meta --at 2026-11-29T20:00Z              # the cluster as of then
  kseg metadata meta --diff -2h,end                      # what changed, in which record
  kseg metadata meta --check                             # is each snapshot the fold of its log?
  kseg metadata __cluster_metadata-0/00000000000000000090-0000000001.checkpoint`,
		Long: `Folds the newest complete snapshot of __cluster_metadata-0 and the records after it into the image that
a broker has of its cluster: brokers, controllers, features, topics, partitions (replicas, ISR, ELR, leader,
epochs, directories), configs, quotas, ACLs, SCRAM users (never their credentials), delegation tokens and
producer id blocks. Each line names the record that it comes from. Partitions in trouble come first; all of them
are shown for --topic, --broker and --type topic_partition.

A log does not say how far its quorum had agreed: the last records of one with several voters may not be
committed. Records that could not be read are named, and whatever they may have changed is marked unsure; the
exit code is 1 then, as it is where --check finds a snapshot that differs or is damaged. Partitions in the given
log directories that the image does not place there are told, and the reverse.`,
		Args: needPaths,
		RunE: func(c *cobra.Command, args []string) error { return runMetadata(c.Context(), env, &o, args) },
	}
	o.AddFlags(c.Flags())
	return c
}

func runMetadata(ctx context.Context, env *Env, o *metadataOptions, args []string) error {
	if err := o.validate(); err != nil {
		return err
	}
	set, gentle, err := o.open(args)
	if err != nil {
		return err
	}
	sources, problems := metadata.Sources(set, gentle, o.MaxBatchBytes)
	incomplete := env.report(append(set.Problems, problems...))
	if len(sources) == 0 {
		if incomplete != nil {
			return incomplete
		}
		return fmt.Errorf("there is no %s here: name the log directory that holds it (metadata.log.dir): %w",
			state.MetadataDir, logdir.ErrNothing)
	}
	m := metadataRun{env: env, o: o, set: set, sources: sources, incomplete: incomplete}
	if err := ctx.Err(); err != nil {
		return err
	}
	switch {
	case o.Diff != "":
		return m.diff()
	case o.Check:
		return m.checkSnapshots()
	}
	return m.show()
}

func (o *metadataOptions) validate() error {
	given := 0
	for _, is := range []bool{o.At != "", o.Diff != "", o.Check} {
		if is {
			given++
		}
	}
	if given > 1 {
		return usageErrorf("--at, --diff and --check are three questions; ask one at a time")
	}
	if err := checkGlobs("--topic", append(slices.Clone(o.filter.Topics), o.filter.Exclude...)); err != nil {
		return err
	}
	o.filter.Numbers = o.Partitions
	if o.broker != nil {
		id := int32(*o.broker)
		if int64(id) != *o.broker {
			return usageErrorf("--broker %d: broker ids are numbers of 32 bits", *o.broker)
		}
		o.filter.Broker = &id
	}
	return nil
}

// metadataRun answers one question about the metadata logs among the operands.
type metadataRun struct {
	env        *Env
	o          *metadataOptions
	set        *logdir.Set
	sources    []metadata.Source
	incomplete error
}

// newest is the log that goes furthest, as of a point.
func (m *metadataRun) newest(at state.Point) (metadata.Source, *state.Image) {
	source, image, notes, problems := metadata.Newest(m.sources, at)
	m.incomplete = errors.Join(m.incomplete, m.env.report(problems))
	for _, note := range notes {
		m.note(note)
	}
	if image == nil && m.incomplete == nil {
		m.incomplete = fmt.Errorf("no metadata could be read: %w", logdir.ErrNothing)
	}
	return source, image
}

func (m *metadataRun) note(text string) {
	if !m.o.Quiet {
		m.env.notef("%s", render.Escaped(text))
	}
}

// damage tells what could not be read of an image, and reports whether there is such a thing.
func (m *metadataRun) damage(problems []error, lost []state.Lost, newer int) bool {
	m.incomplete = errors.Join(m.incomplete, m.env.problems(problems))
	if newer > 0 {
		m.note(render.Plural(int64(newer), "record of a newer Kafka is left out", "records of a newer Kafka are left out"))
	}
	if len(lost) == 0 {
		return false
	}
	m.env.notef("offsets lost: %s; what they may have changed is marked unsure, and things may be missing",
		state.LostText(lost))
	return true
}

func (m *metadataRun) show() error {
	now, err := m.o.now(m.env)
	if err != nil {
		return err
	}
	var at state.Point
	if m.o.At != "" {
		if at, err = parsePoint("--at", m.o.At, now); err != nil {
			return err
		}
	}
	source, image := m.newest(at)
	if image == nil {
		return m.incomplete
	}
	r := &metadata.Report{Source: source, Image: image, Filter: m.o.filter}
	if source.Dir != nil {
		r.ClusterID = state.ReadDir(source.Dir).Meta.ClusterID
	}
	if source.Partition != nil && !at.Given {
		var problems []logdir.Problem
		r.Misplaced, problems = metadata.Place(m.set, image, r.ClusterID)
		r.Placed = true
		m.incomplete = errors.Join(m.incomplete, m.env.report(problems))
	}
	m.print(r)
	if at.Given && !at.IsTime && at.Offset >= image.EndOffset {
		m.note(fmt.Sprintf("%s ends at offset %d, before --at %d: this is how it ends", source.Display, image.EndOffset,
			at.Offset))
	}
	for _, text := range r.Leftovers() {
		m.note(text)
	}
	lost := m.damage(image.Problems, image.Lost, image.Newer)
	if m.o.filter.Narrow() && r.Empty() {
		return errors.Join(m.incomplete, fmt.Errorf("the image has nothing that fits the filters: %w", logdir.ErrNothing))
	}
	return result(lost, m.incomplete)
}

func (m *metadataRun) print(r *metadata.Report) {
	theme := m.o.theme(m.env)
	switch m.o.Format {
	case "json":
		m.env.Stdout.Write(r.AppendJSON(nil))
	case "table":
		for i, t := range r.Tables() {
			if i > 0 {
				m.env.Stdout.Write([]byte("\n"))
			}
			m.table(t)
		}
	case "csv":
		m.csv(r)
	default:
		if !m.o.Quiet {
			m.env.Stdout.Write(r.AppendText(nil, theme, m.env.Width))
		}
	}
}

// csv writes the things of one kind as its JSON has them, a row a thing; of several kinds a row a field.
func (m *metadataRun) csv(r *metadata.Report) {
	kind, columns, one := r.OneKind()
	if !one {
		m.table(r.Long())
		return
	}
	out, end := m.o.lines(m.env, string(kind), columns)
	out.Write(r.AppendJSON(nil))
	end()
}

// table writes rows as a table or as CSV; the first write error is kept by Stdout.
func (m *metadataRun) table(t metadata.Table) {
	m.o.writeTable(m.env, t.Columns, t.Rows)
}

func (m *metadataRun) diff() error {
	now, err := m.o.now(m.env)
	if err != nil {
		return err
	}
	from, to, err := parseSpan("--diff", m.o.Diff, now)
	if err != nil {
		return err
	}
	source, image := m.newest(state.Point{})
	if image == nil {
		return m.incomplete
	}
	d, err := metadata.Changes(source, from, to, m.o.filter)
	if err != nil {
		return errors.Join(m.incomplete, err)
	}
	switch m.o.Format {
	case "json":
		m.env.Stdout.Write(d.AppendJSON(nil))
	case "table", "csv":
		m.table(d.Table())
	default:
		m.env.Stdout.Write(d.AppendText(nil, m.o.theme(m.env), m.env.Width))
	}
	m.note(fmt.Sprintf("%s from record %d to record %d", render.Plural(int64(len(d.Changes)), "change", "changes"), d.From,
		d.To))
	lost := m.damage(d.Problems, d.Lost, 0)
	return result(lost || len(d.Changes) > 0, m.incomplete)
}

func (m *metadataRun) checkSnapshots() error {
	var all []metadata.Check
	for _, source := range m.sources {
		checks, err := metadata.CheckSnapshots(source)
		if err != nil {
			m.incomplete = errors.Join(m.incomplete, err)
			continue
		}
		if len(checks) == 0 {
			m.note(source.Display + ": there is no snapshot")
		}
		all = append(all, checks...)
	}
	if len(all) == 0 && m.incomplete == nil {
		m.incomplete = fmt.Errorf("no snapshot was checked: %w", logdir.ErrNothing)
	}
	switch m.o.Format {
	case "json":
		m.env.Stdout.Write(metadata.AppendCheckJSON(nil, all))
	case "table", "csv":
		m.table(metadata.CheckTable(all))
	default:
		m.env.Stdout.Write(metadata.AppendCheckText(nil, all, m.o.theme(m.env)))
	}
	judged := func(c metadata.Check) bool { return c.Result != "unchecked" }
	if len(all) > 0 && !slices.ContainsFunc(all, judged) {
		m.incomplete = errors.Join(m.incomplete, fmt.Errorf("no snapshot could be checked: %w", logdir.ErrNothing))
	}
	wrong := slices.ContainsFunc(all, func(c metadata.Check) bool {
		return c.Result == "differs" || c.Result == "damaged"
	})
	return result(wrong, m.incomplete)
}
