package cmd

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"kseg/explain"
	"kseg/format"
	"kseg/render"
)

// explainSizeOptions are the flags of kseg explain size.
type explainSizeOptions struct {
	Records         *int64
	KeyBytes        *int64
	ValueBytes      int64
	Headers         [][2]int64
	TimestampStepMs int64
	BatchSizes      []int32
	Codec           string
	BaseOffset      *int64
	MaxBatchBytes   int64
	Format          string
	Color           render.When
}

// The defaults of Kafka's producer, and the batch sizes that a file's records are tried with.
const defaultBatchSize = 16384

var triedBatchSizes = []int32{0, 1000, defaultBatchSize, 131072, 1048576}

// AddFlags defines the flags of explain size.
func (o *explainSizeOptions) AddFlags(fs *pflag.FlagSet) {
	addGroup(fs, "Records", func(fs *pflag.FlagSet) {
		fs.Var(&optionalNumber{&o.Records}, "records", "number of records: `N`")
		fs.Var(&optionalSize{&o.KeyBytes}, "key-bytes", "bytes of each key: `SIZE` (default: a null key)")
		fs.Var(&nullableBytes{&o.ValueBytes}, "value-bytes", "bytes of each value: `SIZE|null`")
		fs.Var(&headerSizes{&o.Headers}, "header", "bytes of a header's key and value: `K:V` (repeatable; V may be null)")
		fs.Var(&milliseconds{&o.TimestampStepMs}, "timestamp-step", "from one record's timestamp to the next: `DURATION`, "+
			"in ms without a unit")
	})
	addGroup(fs, "Producer", func(fs *pflag.FlagSet) {
		fs.Var(&sizeList[int32]{&o.BatchSizes}, "batch-size", "batch.size: `SIZE[,SIZE]` (default: 16384; with FILE: "+
			"0,1000,16384,131072,1048576)")
		fs.Var(newEnum(&o.Codec, "none", "gzip", "snappy", "lz4", "zstd"), "codec", "compression.type (default: none; "+
			"with FILE: each)")
	})
	addGroup(fs, "Output", func(fs *pflag.FlagSet) {
		o.Format = "text"
		fs.VarP(newEnum(&o.Format, "text", "json"), "output", "o", "form of the data on stdout; json is one object a line")
		fs.Var(&o.Color, "color", "colour; auto means on a terminal where NO_COLOR is not set")
		fs.Var(&optionalNumber{&o.BaseOffset}, "base-offset", "the first offset of a FILE whose name does not tell: `N`")
		o.MaxBatchBytes = format.MostBatch
		fs.Var(&byteSize{&o.MaxBatchBytes}, "max-batch-bytes", "do not read a batch of FILE that decompresses to more "+
			"than this `SIZE`")
	})
}

func newExplainSizeCommand(env *Env) *cobra.Command {
	var o explainSizeOptions
	c := &cobra.Command{
		Use:   "size [FILE]",
		Short: "Compute the bytes that records take on disk",
		Example: `  kseg explain size --records 1000 --value-bytes 11                     # 862 and 138 records, 18,994 bytes
  kseg explain size --records 1000 --value-bytes 11 --batch-size 0      # no batching
  kseg explain size --records 1000 --value-bytes 11 --codec gzip        # about
  kseg explain size --records 1 --key-bytes 8 --value-bytes null --header 5:36
  kseg explain size orders-0/00000000000000000000.log                   # these records, batched in other ways`,
		Long: `Says which batches a producer makes of records that are all alike and go to one partition, why each
batch closes, and how many bytes that is on disk. Without compression this is exact: a batch closes before a
record that would not fit into max(1, batch.size, 61 + 21 + what the first record's key, value and headers
take). Compressed sizes are about what they would be for equal records.

With a FILE it takes the records of this segment and says how many bytes they would be with other values of
batch.size and under each codec. Large files are sampled.`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) == 1 {
				return o.replay(c.Context(), env, c.Flags(), args[0])
			}
			return o.predict(env, c.Flags())
		},
	}
	o.AddFlags(c.Flags())
	return c
}

// predict computes sizes from numbers alone.
func (o *explainSizeOptions) predict(env *Env, fs *pflag.FlagSet) error {
	switch {
	case o.Records == nil || *o.Records < 1:
		return usageErrorf("how many records? give --records N, or a FILE whose records to take")
	case !fs.Changed("value-bytes"):
		return usageErrorf("how large is a value? give --value-bytes N, or null")
	}
	sizes := o.BatchSizes
	if len(sizes) == 0 {
		sizes = []int32{defaultBatchSize}
	}
	for i, size := range sizes {
		s := explain.SizeOptions{Records: *o.Records, KeyBytes: -1, ValueBytes: o.ValueBytes, Headers: o.Headers,
			TimestampStepMs: o.TimestampStepMs, BatchSize: int64(size), Codec: codecNamed(o.Codec)}
		if o.KeyBytes != nil {
			s.KeyBytes = *o.KeyBytes
		}
		if err := s.Check(); err != nil {
			return &usageError{err}
		}
		batches, err := explain.Predict(s)
		if err != nil {
			return err
		}
		if o.Format == "json" {
			_, bytes, _ := explain.Total(batches)
			err = o.writeJSON(env, &explain.Prediction{BatchSize: s.BatchSize, Codec: s.Codec,
				About: s.Codec != format.CodecNone, Records: s.Records,
				Bytes: bytes, Batches: batches})
		} else {
			if i > 0 {
				fmt.Fprintln(env.Stdout)
			}
			err = explain.WriteSize(env.Stdout, o.theme(env), &s, batches)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (o *explainSizeOptions) theme(env *Env) render.Theme {
	theme := render.NewTheme(o.Color.On(env.StdoutTerminal && env.colorAllowed()))
	theme.Width = env.TableWidth
	return theme
}

func (o *explainSizeOptions) writeJSON(env *Env, p *explain.Prediction) error {
	line, err := explain.AppendSizeJSON(nil, p)
	if errors.Is(err, explain.ErrTooMany) {
		return &usageError{err}
	}
	if err == nil {
		_, err = env.Stdout.Write(line)
	}
	return err
}

// replay computes sizes for the records of a file.
func (o *explainSizeOptions) replay(ctx context.Context, env *Env, fs *pflag.FlagSet, arg string) error {
	for _, name := range []string{"records", "key-bytes", "value-bytes", "header", "timestamp-step"} {
		if fs.Changed(name) {
			return usageErrorf("--%s describes records, but those of %s are to be taken", name, arg)
		}
	}
	f, err := openFile(env, arg, o.BaseOffset)
	if err != nil {
		return err
	}
	if f.Kind() != format.KindLog {
		return usageErrorf("%s is %s; explain size takes the records of a segment (.log)", arg, f.Kind().ATitle())
	}
	var sizes []int64
	for _, size := range o.BatchSizes {
		sizes = append(sizes, int64(size))
	}
	if len(sizes) == 0 {
		for _, size := range triedBatchSizes {
			sizes = append(sizes, int64(size))
		}
	}
	codecs := []format.Codec{format.CodecNone, format.CodecGzip, format.CodecSnappy, format.CodecLZ4, format.CodecZstd}
	if o.Codec != "" {
		codecs = []format.Codec{codecNamed(o.Codec)}
	}
	r, err := explain.ReplayFile(ctx, f, sizes, codecs, o.MaxBatchBytes)
	if errors.Is(err, format.ErrTooLarge) {
		return fmt.Errorf("%s: %w; give a larger --max-batch-bytes", f.Display, err)
	}
	if err != nil {
		return err
	}
	if r.ReadRecords == 0 {
		return fmt.Errorf("%s: there are no records to take", f.Display)
	}
	if o.Format != "json" {
		return explain.WriteReplay(env.Stdout, o.theme(env), f.Display, r)
	}
	for _, p := range r.Predictions(f.Rel) {
		if err := o.writeJSON(env, &p); err != nil {
			return err
		}
	}
	return nil
}

// codecNamed is the codec of a flag's value; "" is none.
func codecNamed(name string) format.Codec {
	for c := format.CodecNone; c <= format.CodecZstd; c++ {
		if c.String() == name {
			return c
		}
	}
	return format.CodecNone
}

// nullableBytes is a flag's value: a number of bytes, or null, which is −1.
type nullableBytes struct{ target *int64 }

// String returns the number or null.
func (n *nullableBytes) String() string {
	if n.target == nil || *n.target < 0 {
		return "null"
	}
	return strconv.FormatInt(*n.target, 10)
}

// Type is what the help shows for the value.
func (n *nullableBytes) Type() string { return "N|null" }

// Set takes a number from 0 up, or null.
func (n *nullableBytes) Set(text string) error {
	if text == "null" {
		*n.target = -1
		return nil
	}
	v, err := render.ParseSize(text)
	if err != nil || v > math.MaxInt32 {
		return fmt.Errorf("%q is not a number of bytes from 0 to %d, or null", text, math.MaxInt32)
	}
	*n.target = v
	return nil
}

// headerSizes is a flag's value: the bytes of headers' keys and values.
type headerSizes struct{ target *[][2]int64 }

// String lists the headers.
func (h *headerSizes) String() string {
	var texts []string
	if h.target != nil {
		for _, s := range *h.target {
			texts = append(texts, fmt.Sprintf("%d:%s", s[0], (&nullableBytes{&s[1]}).String()))
		}
	}
	return strings.Join(texts, ",")
}

// Type is what the help shows for the value.
func (h *headerSizes) Type() string { return "K:V" }

// Set adds one header.
func (h *headerSizes) Set(text string) error {
	key, value, ok := strings.Cut(text, ":")
	var s [2]int64
	k, err := render.ParseSize(key)
	if !ok || err != nil || k > math.MaxInt32 || (&nullableBytes{&s[1]}).Set(value) != nil {
		return fmt.Errorf("%q is not the bytes of a header's key and value, such as 5:36 or 5:null", text)
	}
	s[0] = k
	*h.target = append(*h.target, s)
	return nil
}
