package cmd

import (
	"context"
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"kseg/dump"
	"kseg/logdir"
	"kseg/render"
	"kseg/schema"
	"kseg/state"
)

// dumpOptions are the flags of kseg dump.
type dumpOptions struct {
	operandOptions
	outputOptions
	clockOptions
	workOptions
	dumpReal
	dumpFilter
	failOnOptions
	Records bool
	Compat  bool
	Decode  string
}

// dumpReal are the flags of kafka-dump-log, with their meaning there.
type dumpReal struct {
	Files              string
	PrintDataLog       bool
	DeepIteration      bool
	SkipRecordMetadata bool
	MaxBytes           *int64
	MaxMessageSize     int64
	SanityCheck        bool
	VerifyOnly         bool
	KeyDecoder         decoderClass
	ValueDecoder       decoderClass
	Decoders           [len(realDecoders)]bool
}

// realDecoders are the decoder flags, in the order in which the real tool takes the first that is given.
var realDecoders = [...]struct {
	flag  string
	topic schema.Topic
}{
	{"offsets-decoder", schema.Offsets},
	{"transaction-log-decoder", schema.Transactions},
	{"cluster-metadata-decoder", schema.Metadata},
	{"remote-log-metadata-decoder", schema.RemoteLog},
	{"share-group-state-decoder", schema.ShareState},
}

// decoderClass is a flag's value: one of the Decoder classes that come with Kafka, by its whole name or without package
// and "Decoder". It keeps the short name.
type decoderClass string

var kafkaDecoders = map[decoderClass]dump.Decoder{"string": dump.DecodeString, "integer": dump.DecodeInteger,
	"long":    dump.DecodeLong,
	"default": dump.DecodeBytes, "bytearray": dump.DecodeBytes}

// String is the short name.
func (d *decoderClass) String() string { return string(*d) }

// Type is what the help shows for the value.
func (d *decoderClass) Type() string { return "CLASS" }

// Set takes a class that is known.
func (d *decoderClass) Set(text string) error {
	name := strings.ToLower(text[strings.LastIndexByte(text, '.')+1:])
	short := decoderClass(strings.TrimSuffix(strings.TrimSuffix(name, "decoder"), "deserializer"))
	if _, ok := kafkaDecoders[short]; !ok {
		return fmt.Errorf("%s is a Java class, which kseg cannot run; of those that come with Kafka it knows String, "+
			"Integer, Long and Default, and --payload hex or base64 shows bytes of any kind", text)
	}
	*d = short
	return nil
}

// dumpFilter are the flags that choose batches and records.
type dumpFilter struct {
	From, To         *int64
	Offset, Position *int64
	Timestamp        string
	FromTime, ToTime string
	ProducerID       *int64
	Key, Header      string
	Control          bool
	Count            bool
	// Match, MatchKey and MatchValue are regular expressions.
	Match, MatchKey, MatchValue string
	Limit, Tail                 *int64

	Group, TopicName, TransactionalID string
}

// AddFlags defines the flags of dump.
func (o *dumpOptions) AddFlags(fs *pflag.FlagSet) {
	addGroup(fs, "What to print", func(fs *pflag.FlagSet) {
		fs.BoolVarP(&o.Records, "records", "r", false, "print the records of each batch, with keys and values")
		o.Decode = "auto"
		fs.Var(newEnum(&o.Decode, "auto", "none", "offsets", "txn", "metadata", "share", "remote"), "decode",
			"show records of internal topics as what they mean; auto recognises them by their directory")
		fs.BoolVar(&o.Compat, "kafka-compat", false, "stdout and stderr exactly as kafka-dump-log writes them; the exit "+
			"code stays kseg's")
	})
	o.dumpFilter.AddFlags(fs)
	o.dumpReal.AddFlags(fs)
	o.operandOptions.AddFlags(fs)
	o.outputOptions.AddFlags(fs, "text", "table", "json")
	o.clockOptions.AddFlags(fs)
	o.workOptions.AddFlags(fs)
	o.failOnOptions.AddFlags(fs)
}

// AddFlags defines the filter flags.
func (o *dumpFilter) AddFlags(fs *pflag.FlagSet) {
	addGroup(fs, "Filters", func(fs *pflag.FlagSet) {
		fs.Var(&optionalNumber{&o.Offset}, "offset", "this `OFFSET` alone: short for --from and --to")
		fs.StringVar(&o.Timestamp, "timestamp", "", "the first batch, or record, at or after this `TIME`: short for "+
			"--from-time and --limit 1")
		fs.Var(&optionalNumber{&o.Position}, "position", "the batch of a log that holds this byte of it: `P`")
		fs.Var(&optionalNumber{&o.From}, "from", "from this `OFFSET` on; the index is used to get there")
		fs.Var(&optionalNumber{&o.To}, "to", "up to and including this `OFFSET`")
		fs.StringVar(&o.FromTime, "from-time", "", "from this `TIME` on (see kseg help times)")
		fs.StringVar(&o.ToTime, "to-time", "", "up to and including this `TIME`")
		fs.Var(&optionalNumber{&o.ProducerID}, "producer-id", "batches of the producer with this `ID`")
		fs.StringVar(&o.Key, "key", "", "records with this `KEY`")
		fs.StringVar(&o.Header, "header", "", "records with this header, and this value if one is given: `NAME[=VALUE]`")
		fs.StringVar(&o.Match, "match", "", "records whose key, value, or header's name or value matches this `REGEX` "+
			"(Go's, as RE2)")
		fs.StringVar(&o.MatchKey, "match-key", "", "records whose key matches this `REGEX`")
		fs.StringVar(&o.MatchValue, "match-value", "", "records whose value matches this `REGEX`")
		fs.BoolVar(&o.Control, "control", false, "control batches only")
		fs.BoolVar(&o.Count, "count", false, "print only how many records pass")
		fs.StringVar(&o.Group, "group", "", "records of internal topics about groups that match this `GLOB`")
		fs.StringVar(&o.TopicName, "topic-name", "", "records of internal topics that name a topic that matches this `GLOB`")
		fs.StringVar(&o.TransactionalID, "transactional-id", "", "records of __transaction_state about ids that match "+
			"this `GLOB`")
		fs.VarP(&optionalNumber{&o.Limit}, "limit", "n", "stop after `N` batches, or records where these are printed")
		fs.Var(&optionalNumber{&o.Tail}, "tail", "print the last `N` batches, or records where these are printed")
	})
}

// AddFlags defines the real tool's flags.
func (o *dumpReal) AddFlags(fs *pflag.FlagSet) {
	addGroup(fs, "As in kafka-dump-log", func(fs *pflag.FlagSet) {
		fs.StringVar(&o.Files, "files", "", "print these (`FILE[,FILE]`); implies --decode none unless a decoder is given")
		fs.BoolVar(&o.PrintDataLog, "print-data-log", false, "the same as --records")
		fs.BoolVar(&o.DeepIteration, "deep-iteration", false, "print a line a record, without keys and values")
		fs.BoolVar(&o.SkipRecordMetadata, "skip-record-metadata", false, "with records, print only their keys and values")
		fs.Var(&optionalSize{&o.MaxBytes}, "max-bytes", "look at the first `SIZE` bytes of each log only")
		o.MaxMessageSize = 5 << 20
		fs.Var(&byteSize{&o.MaxMessageSize}, "max-message-size", "do not check index entries of batches of more than "+
			"this `SIZE`")
		fs.BoolVar(&o.SanityCheck, "index-sanity-check", false, "of an index, say only whether it passes the broker's "+
			"sanity check")
		fs.BoolVar(&o.VerifyOnly, "verify-index-only", false, "check index entries without printing them")
		fs.Var(&o.KeyDecoder, "key-decoder-class", "how keys are shown: a `CLASS` of those that come with Kafka, String "+
			"(the default), Integer, Long or Default")
		fs.Var(&o.ValueDecoder, "value-decoder-class", "how values are shown, likewise: `CLASS`")
		for i, d := range realDecoders {
			fs.BoolVar(&o.Decoders[i], d.flag, false, "print records as those of "+d.topic.String())
		}
	})
}

func newDumpCommand(env *Env) *cobra.Command {
	var o dumpOptions
	c := &cobra.Command{
		Use:   "dump PATH...",
		Short: "Print batches, records, index entries and state files",
		Example: `  kseg dump orders-0                                             # every file of a partition, a line a batch
  kseg dump --records orders-0/00000000000000000000.log          # with records, keys and values
  kseg dump /var/kafka-logs --topic 'orders*' --from-time -2h --records
  kseg dump orders-0 --from 4900 --to 4950 --records -o json     # seeks through the index
  kseg dump /var/kafka-logs --topic orders --match 'id":"?4711' --records
  kseg dump orders-0 --match-key '^eu-' --from-time -1h --count  # how many, and nothing else
  kseg dump --tail 5 --records --payload hex orders-0
  kseg dump --records __consumer_offsets-12                      # internal topics are decoded
  kseg dump --files 00000000000000000000.log,00000000000000000000.index --print-data-log`,
		Long: `Prints what kafka-dump-log 4.4.0 prints, line for line, for one file, a partition directory or a whole
log directory: segments of all three message formats, .index, .timeindex, .txnindex, .snapshot and KRaft
.checkpoint files. It also prints the checkpoints, partition.metadata, meta.properties, .kafka_cleanshutdown and
quorum-state.

Where kafka-dump-log stops at damage, kseg says on stderr what is there, at which byte and which offsets are
lost, and goes on after it. It exits with 1 if a .log, .checkpoint or .snapshot is damaged; zeros at the end of
a log are no damage.

Two things differ from kafka-dump-log, and --kafka-compat undoes both: internal topics are decoded without being
told, and the line "-1 is followed by N" about files that do not begin at offset 0 is left out.`,
		Args: func(c *cobra.Command, args []string) error {
			if o.Files != "" {
				return nil
			}
			return needPaths(c, args)
		},
		RunE: func(c *cobra.Command, args []string) error { return runDump(c.Context(), env, &o, args) },
	}
	o.AddFlags(c.Flags())
	return c
}

func runDump(ctx context.Context, env *Env, o *dumpOptions, args []string) error {
	options, err := o.options(env)
	if err != nil {
		return err
	}
	if o.Files != "" {
		// As Java's split does, without what is empty at the end.
		args = append(strings.Split(strings.TrimRight(o.Files, ","), ","), args...)
	}
	set, err := o.open(args, &o.workOptions)
	if err != nil {
		return err
	}
	if o.Files != "" {
		set.Problems = takeForeign(set, set.Problems)
	}
	incomplete := env.report(set.Problems)
	if o.TopicName != "" {
		options.Filter.TopicIDs = state.TopicIDs(set, newGentle(o.Gentle), func(name string) bool {
			return dump.MatchesName(o.TopicName, name)
		})
	}
	options.Progress = o.progress(env, totalBytes(set)).Add
	res, err := dump.Run(ctx, set, options, env.Stdout, env.Stderr)
	if err != nil {
		return errors.Join(err, incomplete)
	}
	if res.Incomplete {
		incomplete = errIncomplete
	}
	if o.Count {
		o.printCount(env, &res)
	}
	if res.Files == 0 && incomplete == nil {
		incomplete = fmt.Errorf("nothing to print: %w", logdir.ErrNothing)
	}
	return result(res.Damage && o.Severity != "never", incomplete)
}

// printCount prints how many records passed.
func (o *dumpOptions) printCount(env *Env, res *dump.Result) {
	if o.Format != "json" {
		fmt.Fprintln(env.Stdout, res.Records)
		return
	}
	line := render.NewObj(nil, "record_count")
	line.Int("records", res.Records)
	line.Int("batches", res.Batches)
	env.Stdout.Write(line.Line())
}

// takeForeign lets files that are not Kafka's by their name through, since the real tool passes over them with a line
// of its own; it returns the problems that stay.
func takeForeign(set *logdir.Set, problems []logdir.Problem) []logdir.Problem {
	for i := range set.Operands {
		op := &set.Operands[i]
		var foreign *logdir.ForeignError
		if op.File == nil || !errors.As(op.Err, &foreign) {
			continue
		}
		problems = slices.DeleteFunc(problems, func(p logdir.Problem) bool { return p.Err == op.Err })
		op.Err = nil
	}
	return problems
}

// options turns the flags into what the dump needs.
func (o *dumpOptions) options(env *Env) (dump.Options, error) {
	out := dump.Options{
		Output: map[string]dump.Output{"text": dump.Text, "json": dump.JSON, "table": dump.Table}[o.Format],
		Theme:  o.theme(env), Payload: o.payload(env), Data: o.Records || o.PrintDataLog, Deep: o.DeepIteration,
		SkipRecordMetadata: o.SkipRecordMetadata, Compat: o.Compat, Quiet: o.Quiet, MaxBytes: o.MaxBytes,
		MaxMessageSize: o.MaxMessageSize,
		StderrTerminal: env.StderrTerminal,
		SanityCheck:    o.SanityCheck, VerifyOnly: o.VerifyOnly, Limit: -1, Tail: -1, Jobs: o.Jobs,
		MaxBatchBytes: o.MaxBatchBytes,
	}
	// The real tool's default; given, it means the same.
	if o.MaxBytes != nil && *o.MaxBytes == math.MaxInt32 {
		out.MaxBytes = nil
	}
	out.KeyDecoder, out.ValueDecoder = kafkaDecoders[o.KeyDecoder], kafkaDecoders[o.ValueDecoder]
	o.decode(&out)
	return out, o.filter(env, &out)
}

// decode settles what records are decoded as. Like the real tool, a decoder flag implies the records.
func (o *dumpOptions) decode(out *dump.Options) {
	for i, d := range realDecoders {
		if o.Decoders[i] {
			out.Decode.Topic, out.Data = d.topic, true
			return
		}
	}
	topic, named := map[string]schema.Topic{"offsets": schema.Offsets, "txn": schema.Transactions,
		"metadata": schema.Metadata,
		"share":    schema.ShareState, "remote": schema.RemoteLog}[o.Decode]
	if named {
		out.Decode.Topic = topic
		return
	}
	out.Decode.Auto = o.Decode == "auto" && o.Files == "" && !o.Compat
}

// short replaces the short forms by what they are short for.
func (o *dumpFilter) short() error {
	if o.Offset != nil {
		if o.From != nil || o.To != nil {
			return usageErrorf("--offset is short for --from and --to: give one or the other")
		}
		o.From, o.To = o.Offset, o.Offset
	}
	if o.Timestamp != "" {
		if o.FromTime != "" || o.Limit != nil {
			return usageErrorf("--timestamp is short for --from-time and --limit 1: give one or the other")
		}
		one := int64(1)
		o.Limit = &one
	}
	return nil
}

// filter fills in what chooses batches and records.
func (o *dumpOptions) filter(env *Env, out *dump.Options) error {
	if err := o.short(); err != nil {
		return err
	}
	out.Filter = dump.Filter{From: o.From, To: o.To, Position: o.Position, ProducerID: o.ProducerID, Control: o.Control,
		Group: o.Group, TopicName: o.TopicName, TransactionalID: o.TransactionalID}
	for flag, glob := range map[string]string{"--group": o.Group, "--topic-name": o.TopicName,
		"--transactional-id": o.TransactionalID} {
		if err := checkGlobs(flag, []string{glob}); err != nil {
			return err
		}
	}
	if o.Key != "" {
		out.Filter.Key = []byte(o.Key)
	}
	if name, value, ok := strings.Cut(o.Header, "="); o.Header != "" {
		out.Filter.Header = name
		if ok {
			out.Filter.HeaderValue = []byte(value)
		}
	}
	for flag, re := range map[string]struct {
		text   string
		target **regexp.Regexp
	}{"match": {o.Match, &out.Filter.Match}, "match-key": {o.MatchKey, &out.Filter.MatchKey}, "match-value": {o.MatchValue,
		&out.Filter.MatchValue}} {
		if re.text == "" {
			continue
		}
		compiled, err := regexp.Compile(re.text)
		if err != nil {
			return usageErrorf("--%s: %w", flag, err)
		}
		*re.target = compiled
	}
	if out.Count = o.Count; o.Count && (o.Limit != nil || o.Tail != nil || o.Compat) {
		return usageErrorf("--count counts all that pass; it does not go with --limit, --tail and --kafka-compat")
	}
	if o.Limit != nil {
		out.Limit = *o.Limit
	}
	if o.Tail != nil {
		out.Tail = *o.Tail
	}
	now, err := o.now(env)
	if err != nil {
		return err
	}
	for _, t := range []struct {
		flag, text string
		target     **int64
	}{{"timestamp", o.Timestamp, &out.Filter.FromTime}, {"from-time", o.FromTime, &out.Filter.FromTime},
		{"to-time", o.ToTime, &out.Filter.ToTime}} {
		if t.text == "" {
			continue
		}
		ms, err := render.ParseTime(t.text, now)
		if err != nil {
			return usageErrorf("--%s: %w", t.flag, err)
		}
		*t.target = &ms
	}
	return nil
}
