package cmd

import (
	"errors"
	"fmt"
	"io"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"kseg/format"
	"kseg/logdir"
	"kseg/render"
)

// operandOptions find and narrow the operands; every verb that takes PATH... has them.
type operandOptions struct {
	logdir.Options
	BrokerConfig string // a server.properties; see operands.go
}

// AddFlags defines the flags of the group Operands.
func (o *operandOptions) AddFlags(fs *pflag.FlagSet) {
	addGroup(fs, "Operands", func(fs *pflag.FlagSet) {
		fs.StringArrayVarP(&o.Topics, "topic", "t", nil, "only topics that match this `GLOB` (repeatable)")
		fs.StringArrayVar(&o.Exclude, "exclude", nil, "no topics that match this `GLOB` (repeatable)")
		fs.VarP(&numberList[int32]{&o.Partitions}, "partition", "", "only these partitions")
		fs.VarP(&numberList[int64]{&o.Segments}, "segment", "", "only the segments with these `BASE[,BASE]` offsets")
		fs.VarP(&optionalNumber{&o.BaseOffset}, "base-offset", "", "the first offset of a file whose name does not tell")
		fs.StringVar(&o.BrokerConfig, brokerConfigFlag, "", "the broker's `FILE` server.properties: its log.dirs are read "+
			"where no PATH is given, and its settings count where no topic has its own")
	})
}

// open finds what the paths lead to. The error is for the whole: options that make no sense, or a filter that matches
// nothing. What is wrong with single operands is in the Set; report prints it.
func (o *operandOptions) open(paths []string, work *workOptions) (*logdir.Set, error) {
	options := o.Options
	options.Gentle = newGentle(work.Gentle)
	set, err := logdir.Open(paths, options)
	if errors.Is(err, logdir.ErrUsage) {
		return nil, &usageError{err}
	}
	return set, err
}

// report prints what could not be read and returns errIncomplete, or nil if there was no such thing.
func (env *Env) report(problems []logdir.Problem) (incomplete error) {
	for _, problem := range problems {
		env.notef("%s", render.Escaped(problem.Error()))
		if !errors.Is(problem, logdir.ErrGone) {
			incomplete = errIncomplete
		}
	}
	return incomplete
}

// outputOptions say in what form and how much is printed.
type outputOptions struct {
	Format   string // one of the names given to AddFlags
	Payload  render.Payload
	Color    render.When
	Progress render.When
	Quiet    bool
}

// AddFlags defines the flags of the group Output. The formats are those the verb can print, its default first.
func (o *outputOptions) AddFlags(fs *pflag.FlagSet, formats ...string) { o.addFlags(fs, "o", formats) }

// addFlags is AddFlags with another short name for the form, or none.
func (o *outputOptions) addFlags(fs *pflag.FlagSet, short string, formats []string) {
	addGroup(fs, "Output", func(fs *pflag.FlagSet) {
		o.Format = formats[0]
		fs.VarP(newEnum(&o.Format, formats...), "output", short, "form of the data on stdout; json is one object a line")
		fs.Var(&o.Payload, "payload", render.PayloadHelp)
		fs.Var(&o.Color, "color", "colour; auto means on a terminal where NO_COLOR is not set")
		fs.Var(&o.Progress, "progress", "a bar on stderr; auto means on a terminal, for work of more than a second")
		fs.BoolVarP(&o.Quiet, "quiet", "q", false, "only what is wrong")
	})
}

// lines is where data goes, and what ends it: stdout, or under -o csv what makes a table of the JSON lines of one kind.
func (o *outputOptions) lines(env *Env, kind string, columns []string) (out io.Writer, end func() error) {
	if o.Format != "csv" {
		return env.Stdout, func() error { return nil }
	}
	c := render.NewCSV(env.Stdout, kind, columns...)
	return c, c.Flush
}

// asLines reports whether data is written as JSON lines, which lines takes.
func (o *outputOptions) asLines() bool { return o.Format == "json" || o.Format == "csv" }

// theme returns the colours for stdout, and its width.
func (o *outputOptions) theme(env *Env) render.Theme {
	theme := render.NewTheme(o.Color.On(env.StdoutTerminal && env.colorAllowed()))
	theme.Width = env.TableWidth
	return theme
}

// noteTheme returns the colours for stderr.
func (o *outputOptions) noteTheme(env *Env) render.Theme {
	return render.NewTheme(o.Color.On(env.StderrTerminal && env.colorAllowed()))
}

// payload returns the mode in force: the one that was asked for, else what is right for this stdout.
func (o *outputOptions) payload(env *Env) render.Payload {
	return o.Payload.Resolve(env.StdoutTerminal)
}

// progress returns the bar for a number of bytes to read, or nil if there is to be none. It goes away by itself before
// anything else is printed, and at the end. Call it once, before workers start.
func (o *outputOptions) progress(env *Env, totalBytes int64) *render.Progress {
	if !o.Progress.On(env.StderrTerminal && !o.Quiet) {
		return nil
	}
	terminal := env.Stderr.w
	bar := render.NewProgress(terminal, totalBytes, env.Now).Within(func() int { return columns(terminal) })
	env.Stdout.show(bar)
	return bar
}

func (env *Env) colorAllowed() bool {
	return env.Getenv("NO_COLOR") == "" && env.Getenv("TERM") != "dumb"
}

// clockOptions freeze the clock.
type clockOptions struct{ text string }

// AddFlags defines --now.
func (o *clockOptions) AddFlags(fs *pflag.FlagSet) {
	addGroup(fs, "Clock", func(fs *pflag.FlagSet) {
		fs.StringVar(&o.text, "now", "", "take this `TIME` for the present one (see kseg help times)")
	})
}

// now returns the time that --now gives, or the real one.
func (o *clockOptions) now(env *Env) (time.Time, error) {
	if o.text == "" {
		return env.Now(), nil
	}
	ms, err := render.ParseTime(o.text, env.Now())
	if err != nil {
		return time.Time{}, usageErrorf("--now: %w", err)
	}
	return time.UnixMilli(ms), nil
}

// ticking is the clock that goes on; it stands still if --now froze it.
func (o *clockOptions) ticking(env *Env) func() time.Time {
	if o.text == "" {
		return env.Now
	}
	return func() time.Time { return time.Time{} }
}

// gentleBytesPerSecond leaves most of a disk to the broker that works on it.
const gentleBytesPerSecond = 64 << 20

// workOptions bound what a verb takes of the machine.
type workOptions struct {
	Jobs          int
	Gentle        bool
	MaxBatchBytes int64
}

// AddFlags defines the flags of the group Work.
func (o *workOptions) AddFlags(fs *pflag.FlagSet) {
	addGroup(fs, "Work", func(fs *pflag.FlagSet) {
		o.Jobs = runtime.GOMAXPROCS(0)
		fs.Var(&jobCount{&o.Jobs}, "jobs", "number of workers (default: one a core)")
		fs.BoolVar(&o.Gentle, "gentle", false, "read at most 64 MiB a second and hand page cache back, for use beside a "+
			"live broker")
		o.MaxBatchBytes = format.MostBatch
		fs.Var(&byteSize{&o.MaxBatchBytes}, "max-batch-bytes", "do not read a batch that decompresses to more than "+
			"this `SIZE`")
	})
}

// newGentle bounds how files are read if --gentle was given; it is nil otherwise.
func newGentle(given bool) *logdir.Gentle {
	if !given {
		return nil
	}
	return logdir.NewGentle(gentleBytesPerSecond)
}

// failOnOptions say from which severity on the exit code is 1.
type failOnOptions struct{ Severity string }

// AddFlags defines --fail-on.
func (o *failOnOptions) AddFlags(fs *pflag.FlagSet) {
	addGroup(fs, "Verdict", func(fs *pflag.FlagSet) {
		o.Severity = "damage"
		fs.Var(newEnum(&o.Severity, "damage", "warning", "note", "never"), "fail-on", "exit with 1 if something of this "+
			"severity or worse is found")
	})
}

// enum is a flag's value that is one of several names.
type enum struct {
	target *string
	names  []string
}

func newEnum(target *string, names ...string) *enum { return &enum{target, names} }

// String returns the present name.
func (e *enum) String() string { return *e.target }

// Type lists the names for the help.
func (e *enum) Type() string { return strings.Join(e.names, "|") }

// Set takes one of the names.
func (e *enum) Set(text string) error {
	for _, name := range e.names {
		if name == text {
			*e.target = name
			return nil
		}
	}
	return fmt.Errorf("%q is none of %s", text, strings.Join(e.names, ", "))
}

// numberList is a flag's value: non-negative numbers, separated by commas or given by repeating the flag.
type numberList[T int32 | int64] struct{ target *[]T }

// String lists the numbers.
func (l *numberList[T]) String() string {
	var texts []string
	for _, n := range *l.target {
		texts = append(texts, strconv.FormatInt(int64(n), 10))
	}
	return strings.Join(texts, ",")
}

// Type is what the help shows for the value.
func (l *numberList[T]) Type() string { return "N[,N]" }

// Set adds the numbers of one list.
func (l *numberList[T]) Set(text string) error {
	for item := range strings.SplitSeq(text, ",") {
		n, err := strconv.ParseInt(strings.TrimSpace(item), 10, 64)
		if err != nil || n < 0 || int64(T(n)) != n {
			return fmt.Errorf("%q is not a number from 0 up, or a list of them like 0,3", item)
		}
		*l.target = append(*l.target, T(n))
	}
	return nil
}

// sizeList is a flag's value: sizes in bytes, separated by commas or given by repeating the flag.
type sizeList[T int32 | int64] struct{ target *[]T }

// String lists the bytes.
func (l *sizeList[T]) String() string { return (&numberList[T]{l.target}).String() }

// Type is what the help shows for the value.
func (l *sizeList[T]) Type() string { return "SIZE[,SIZE]" }

// Set adds the sizes of one list.
func (l *sizeList[T]) Set(text string) error {
	for item := range strings.SplitSeq(text, ",") {
		n, err := render.ParseSize(strings.TrimSpace(item))
		if err != nil || int64(T(n)) != n {
			return fmt.Errorf("%q is not a size of 0 bytes or more, or a list of them like 1,4KiB,1MiB", item)
		}
		*l.target = append(*l.target, T(n))
	}
	return nil
}

// milliseconds is a flag's value: a duration, a number of milliseconds or one with a unit.
type milliseconds struct{ target *int64 }

// String is the number of milliseconds.
func (m *milliseconds) String() string {
	if m.target == nil {
		return ""
	}
	return strconv.FormatInt(*m.target, 10)
}

// Type is what the help shows for the value.
func (m *milliseconds) Type() string { return "DURATION" }

// Set takes 250, 250ms, 1.5s.
func (m *milliseconds) Set(text string) error {
	if ms, ok := render.ParseDuration(text); ok {
		*m.target = ms
		return nil
	}
	ms, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return fmt.Errorf("%q is not a duration: give milliseconds, or a number with ms, s, m, h or d after it", text)
	}
	*m.target = ms
	return nil
}

// optionalNumber is a flag's value: a number from 0 up, or nil while it is not given.
type optionalNumber struct{ target **int64 }

// String returns the number, or nothing while there is none.
func (n *optionalNumber) String() string {
	if n.target == nil || *n.target == nil {
		return ""
	}
	return strconv.FormatInt(**n.target, 10)
}

// Type is what the help shows for the value.
func (n *optionalNumber) Type() string { return "N" }

// Set takes a number from 0 up.
func (n *optionalNumber) Set(text string) error {
	value, err := strconv.ParseInt(text, 10, 64)
	if err != nil || value < 0 {
		return fmt.Errorf("%q is not a number from 0 up", text)
	}
	*n.target = &value
	return nil
}

// jobCount is a flag's value: a number of workers, at least one.
type jobCount struct{ target *int }

// String is empty for the default, which differs from machine to machine and would do so in the help.
func (j *jobCount) String() string {
	if j.target == nil || *j.target == runtime.GOMAXPROCS(0) {
		return ""
	}
	return strconv.Itoa(*j.target)
}

// Type is what the help shows for the value.
func (j *jobCount) Type() string { return "N" }

// maxJobs is far above what helps, and keeps a slip of the finger from taking all memory for buffers.
const maxJobs = 256

// Set takes a number from 1 to maxJobs.
func (j *jobCount) Set(text string) error {
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > maxJobs {
		return fmt.Errorf("%q is not a number from 1 to %d", text, maxJobs)
	}
	*j.target = n
	return nil
}

// byteSize is a flag's value: a number of bytes, with an optional unit.
type byteSize struct{ target *int64 }

// String writes the size with the unit that leaves no remainder.
func (b *byteSize) String() string {
	if b.target == nil {
		return ""
	}
	n := *b.target
	for _, unit := range []struct {
		name  string
		shift int
	}{{"GiB", 30}, {"MiB", 20}, {"KiB", 10}} {
		if n >= 1<<unit.shift && n%(1<<unit.shift) == 0 {
			return strconv.FormatInt(n>>unit.shift, 10) + unit.name
		}
	}
	return strconv.FormatInt(n, 10)
}

// Type is what the help shows for the value.
func (b *byteSize) Type() string { return "SIZE" }

// Set takes a size of at least one byte.
func (b *byteSize) Set(text string) error {
	n, err := render.ParseSize(text)
	if err == nil && n < 1 {
		err = fmt.Errorf("%q is not a size of a byte or more", text)
	}
	if err == nil {
		*b.target = n
	}
	return err
}

// optionalSize is a flag's value: a size in bytes, or nil while it is not given.
type optionalSize struct{ target **int64 }

// String returns the bytes, or nothing while there are none.
func (o *optionalSize) String() string { return (&optionalNumber{o.target}).String() }

// Type is what the help shows for the value.
func (o *optionalSize) Type() string { return "SIZE" }

// Set takes a size, 0 included.
func (o *optionalSize) Set(text string) error {
	n, err := render.ParseSize(text)
	if err == nil {
		*o.target = &n
	}
	return err
}

// withUnit lets a setting of Kafka's be written with a unit: 7d for a key that ends in .ms, 10GiB for one that ends in
// .bytes. A value without a unit it knows is left as it is.
func withUnit(key, value string) string {
	switch {
	case strings.HasSuffix(key, ".ms"):
		if ms, ok := render.ParseDuration(value); ok {
			return strconv.FormatInt(ms, 10)
		}
	case strings.HasSuffix(key, ".bytes"):
		if n, err := render.ParseSize(value); err == nil {
			return strconv.FormatInt(n, 10)
		}
	}
	return value
}

// percent is a flag's value: a part of all, 10 or 10%; 0 while it is not given.
type percent float64

// String is the part, or nothing.
func (p *percent) String() string {
	if *p == 0 {
		return ""
	}
	return strconv.FormatFloat(float64(*p), 'f', -1, 64) + "%"
}

// Type is what the help shows for the value.
func (p *percent) Type() string { return "PERCENT" }

// Set takes a number above 0, up to 100.
func (p *percent) Set(text string) error {
	n, err := strconv.ParseFloat(strings.TrimSuffix(text, "%"), 64)
	if err != nil || !(n > 0 && n <= 100) {
		return fmt.Errorf("%q is no part of all: give a percentage above 0, like 10%%", text)
	}
	*p = percent(n)
	return nil
}
