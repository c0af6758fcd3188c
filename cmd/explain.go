package cmd

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"kseg/docs"
	"kseg/explain"
	"kseg/format"
	"kseg/logdir"
	"kseg/render"
)

// explainOptions are the flags of kseg explain.
type explainOptions struct {
	outputOptions
	clockOptions
	MaxBatchBytes           int64
	BaseOffset              *int64
	Offset, Position, Entry *int64
	All, Terse, List        bool
	From, To                *int64
	Timestamp               string
	HTML                    string
}

// AddFlags defines the flags of explain.
func (o *explainOptions) AddFlags(fs *pflag.FlagSet) {
	addGroup(fs, "What to show", func(fs *pflag.FlagSet) {
		fs.Var(&optionalNumber{&o.Offset}, "offset", "the batch or entry that holds this offset: `N`")
		fs.Var(&optionalNumber{&o.Position}, "position", "the batch or entry that holds this byte of the file: `P`")
		fs.Var(&optionalNumber{&o.Entry}, "entry", "the batch or entry with this number, counted from 0: `I`")
		fs.StringVar(&o.Timestamp, "timestamp", "", "the first batch of a log with a record at or after this `TIME` (see "+
			"kseg help times)")
		fs.Var(&optionalNumber{&o.From}, "from", "the batches of a log from this `OFFSET` on")
		fs.Var(&optionalNumber{&o.To}, "to", "the batches of a log up to and including this `OFFSET`")
		fs.BoolVar(&o.All, "all", false, "the whole file")
		fs.BoolVar(&o.List, "list", false, "the codes of all findings of kseg verify, a line each")
		fs.BoolVar(&o.Terse, "terse", false, "without the meanings")
		fs.StringVar(&o.HTML, "html", "", "write a page of the same, with a map of the segment, to this `FILE`, and "+
			"nothing to stdout")
		fs.Var(&optionalNumber{&o.BaseOffset}, "base-offset", "the first offset of a file whose name does not tell: `N`")
		o.MaxBatchBytes = format.MostBatch
		fs.Var(&byteSize{&o.MaxBatchBytes}, "max-batch-bytes", "do not open a batch that decompresses to more than "+
			"this `SIZE`")
	})
	o.outputOptions.AddFlags(fs, "text", "table", "json")
	o.clockOptions.AddFlags(fs)
}

func newExplainCommand(env *Env) *cobra.Command {
	var o explainOptions
	c := &cobra.Command{
		Use:   "explain FILE | CODE",
		Short: "Show every byte and what it means",
		Example: `  kseg explain orders-0/00000000000000000000.log                  # the first batch, byte by byte
  kseg explain orders-0/00000000000000000000.log --offset 64      # the batch with this offset
  kseg explain orders-0/00000000000000000000.log --position 1845  # where verify found something
  kseg explain orders-0/00000000000000000000.index --entry 3
  kseg explain orders-0/00000000000000000000.log --all -o json    # every byte of the file in one leaf
  kseg explain orders-0/00000000000000000000.log --html page.html # a page with a map of the segment
  kseg explain batch-crc-mismatch                                 # what a finding of kseg verify means
  kseg explain size --records 1000 --value-bytes 11               # bytes on disk`,
		Long: `Shows the bytes of one batch, index entry, snapshot or checkpoint beside their meaning: position,
hexadecimal digits, characters, field, value, and why. Every byte of what is shown is in exactly one row.
Varints show their steps from bytes to number; compressed records are shown from the decompressed bytes, at
positions like z+12; records of internal topics are decoded. What is damaged is shown in place, with what was
wanted.

Without a choice it is the first batch or entry. With --payload redacted the bytes of keys, values, header values and
compressed data become dots, so that the output can be pasted into a ticket.

explain CODE says what a finding of kseg verify means, what a broker does and what to do. explain size computes
how many bytes records take on disk. A file with the name of a code, or size, is given as ./size.`,
		ValidArgsFunction: cobra.FixedCompletions(codeNames(), cobra.ShellCompDirectiveDefault),
		Args: func(_ *cobra.Command, args []string) error {
			if o.List && len(args) == 0 {
				return nil
			}
			if o.List {
				return usageErrorf("--list takes no FILE; kseg explain %s explains that alone", args[0])
			}
			if len(args) != 1 {
				return usageErrorf("explain takes one FILE, but %d were given", len(args))
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			if o.List {
				_, err := fmt.Fprintln(env.Stdout, findingsText())
				return err
			}
			return runExplain(c.Context(), env, &o, args[0])
		},
	}
	o.AddFlags(c.Flags())
	c.AddCommand(newExplainSizeCommand(env))
	return c
}

func runExplain(ctx context.Context, env *Env, o *explainOptions, arg string) error {
	chosen := 0
	for _, given := range []bool{o.Offset != nil, o.Position != nil, o.Entry != nil, o.All, o.From != nil || o.To != nil,
		o.Timestamp != ""} {
		if given {
			chosen++
		}
	}
	if chosen > 1 {
		return usageErrorf("--offset, --timestamp, --position, --entry, --all and --from with --to choose what to show: " +
			"give one of them")
	}
	if text, ok := docs.Finding(arg); ok {
		if chosen > 0 || o.Format != "text" || o.HTML != "" {
			return usageErrorf("%s is the code of a finding, which is explained as text; for a file of that name give ./%s", arg,
				arg)
		}
		fmt.Fprintf(env.Stdout, "%s\n\n%s", o.theme(env).Strong(arg), render.Reflow(text, env.TableWidth))
		return nil
	}
	f, err := openFile(env, arg, o.BaseOffset)
	if err != nil {
		return errors.Join(err, nearCode(arg))
	}
	opts, err := o.options(env)
	if err != nil {
		return err
	}
	if o.HTML != "" {
		return o.writePage(ctx, env, f, opts)
	}
	if bar := o.progress(env, f.Size); bar != nil {
		opts.Progress = bar.Add
	}
	return explainError(env, explain.Run(ctx, f, opts, env.Stdout, env.Stderr))
}

// explainError gives an error of package explain its exit code.
func explainError(env *Env, err error) error {
	switch {
	case errors.Is(err, explain.ErrNotAsked), errors.Is(err, explain.ErrTooLong):
		return &usageError{err}
	case errors.Is(err, explain.ErrNoHit):
		env.notef("%s", render.Escaped(err.Error()))
		return errFound
	}
	return err
}

// writePage writes what would be shown as a page of HTML.
func (o *explainOptions) writePage(ctx context.Context, env *Env, f *logdir.File, opts explain.Options) error {
	if o.Format != "text" || o.Quiet {
		return usageErrorf("--html writes a page instead of what -o and --quiet are about")
	}
	page, err := explain.Page(ctx, f, opts)
	if err != nil && !errors.Is(err, format.ErrTooLarge) {
		return explainError(env, err)
	}
	return errors.Join(env.writeReport(o.HTML, page), err)
}

// nearCode is an error that names the code of a finding which a slip of the finger most likely meant, or nil.
func nearCode(arg string) error {
	if strings.ContainsAny(arg, "./") {
		return nil
	}
	if near := nearest(arg, codeNames()); near != "" {
		return fmt.Errorf("%s is no code of a finding either; did you mean %s?", arg, near)
	}
	return nil
}

// openFile finds the one file that a verb works on.
func openFile(env *Env, arg string, base *int64) (*logdir.File, error) {
	set, err := logdir.Open([]string{arg}, logdir.Options{BaseOffset: base})
	if errors.Is(err, logdir.ErrUsage) {
		return nil, &usageError{err}
	}
	if err != nil {
		return nil, err
	}
	for _, op := range set.Operands {
		switch {
		case op.Err != nil:
		case op.File != nil:
			return op.File, nil
		default:
			return nil, usageErrorf("%s is a directory; explain takes one file%s", arg, firstOf(op.Files()))
		}
	}
	if err := env.report(set.Problems); err != nil {
		return nil, err
	}
	return nil, fmt.Errorf("%s: %w", arg, logdir.ErrNothing)
}

// firstOf suggests a file of a directory.
func firstOf(files []*logdir.File) string {
	if len(files) == 0 {
		return ""
	}
	return ", such as " + files[0].Display
}

// options turns the flags into what the package explain takes.
func (o *explainOptions) options(env *Env) (explain.Options, error) {
	out := explain.Options{Theme: o.theme(env), Payload: o.payload(env), Terse: o.Terse, Quiet: o.Quiet, All: o.All,
		Offset: o.Offset, Position: o.Position, Entry: o.Entry, From: o.From, To: o.To, MaxBatchBytes: o.MaxBatchBytes}
	out.Width = env.TableWidth
	out.Output = map[string]explain.Output{"text": explain.Text, "json": explain.JSON, "table": explain.Table}[o.Format]
	if o.Timestamp == "" {
		return out, nil
	}
	now, err := o.now(env)
	if err != nil {
		return out, err
	}
	ms, err := render.ParseTime(o.Timestamp, now)
	if err != nil {
		return out, usageErrorf("--timestamp: %w", err)
	}
	out.TimestampMs = &ms
	return out, nil
}
