package compare

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strconv"

	"kseg/format"
	"kseg/logdir"
	"kseg/render"
	"kseg/state"
	"kseg/walk"
)

// AppendJSON appends {"kind":"fingerprint",...}.
func (f *Fingerprint) AppendJSON(dst []byte) []byte {
	o := render.NewObj(dst, "fingerprint")
	o.Int("version", format.RecordDigestVersion)
	o.StrOrNull("topic", format.TopicOf(f.Partition))
	o.Str("partition", f.Partition)
	id := ""
	if f.TopicID != (format.UUID{}) {
		id = f.TopicID.String()
	}
	o.StrOrNull("topic_id", id)
	o.Int("first_offset", f.First)
	o.Int("last_offset", f.Last)
	o.IntOrNull("leader_epoch", int64(f.LeaderEpoch), f.LeaderEpoch >= 0)
	o.Int("records", f.Records)
	o.Str("digest", fmt.Sprintf("%016x", f.Digest))
	o.Value("marks", f.Marks)
	o.Bool("damaged", f.Damaged)
	o.Bool("compacted", f.Compacted)
	o.Int("log_start_offset", f.LogStart)
	o.Int("log_end_offset", f.LogEnd)
	return o.Line()
}

// printLine is a line of a file of fingerprints.
type printLine struct {
	Kind      string  `json:"kind"`
	Version   int     `json:"version"`
	Partition string  `json:"partition"`
	TopicID   *string `json:"topic_id"`
	First     int64   `json:"first_offset"`
	Last      int64   `json:"last_offset"`
	Epoch     *int32  `json:"leader_epoch"`
	Records   int64   `json:"records"`
	Digest    string  `json:"digest"`
	Marks     []byte  `json:"marks"`
	Damaged   bool    `json:"damaged"`
	Compacted bool    `json:"compacted"`
	LogStart  int64   `json:"log_start_offset"`
	LogEnd    int64   `json:"log_end_offset"`
}

// fingerprint checks a line and makes a fingerprint of it.
func (l *printLine) fingerprint() (*Fingerprint, error) {
	digest, err := strconv.ParseUint(l.Digest, 16, 64)
	switch {
	case l.Kind != "fingerprint":
		return nil, fmt.Errorf("a line of kind %q, not fingerprint", l.Kind)
	case l.Version != format.RecordDigestVersion:
		return nil, fmt.Errorf("fingerprints of version %d, and this program makes those of version %d; make them again",
			l.Version, format.RecordDigestVersion)
	case l.Partition == "" || err != nil || l.First < 0 || l.LogStart < 0 || l.Last < l.First-1 || l.Last >= l.LogEnd ||
		l.Last-l.First >= RangeOffsets-l.First%RangeOffsets ||
		l.Records > 0 && l.First%RangeOffsets != 0 && l.First != l.LogStart:
		return nil, errors.New("no fingerprint has such values; make the file again")
	}
	f := &Fingerprint{Partition: l.Partition, First: l.First, Last: l.Last, LeaderEpoch: -1, Records: l.Records,
		Digest: digest, Marks: l.Marks,
		Damaged: l.Damaged, Compacted: l.Compacted, LogStart: l.LogStart, LogEnd: l.LogEnd}
	marks := int64(0)
	for range f.marks() {
		marks++
	}
	if marks != l.Records {
		return nil, fmt.Errorf("a fingerprint of %d records with marks of %d", l.Records, marks)
	}
	if l.Epoch != nil {
		f.LeaderEpoch = *l.Epoch
	}
	if l.TopicID != nil {
		f.TopicID, _ = format.ParseUUID(*l.TopicID) // it is told, and nothing rests on it
	}
	return f, nil
}

// printFile is a file of fingerprints, and where in it those of each partition stand.
type printFile struct {
	file  *logdir.File
	names []string
	at    map[string][2]int64
}

// IsPrints reports whether an operand is a file of fingerprints.
func IsPrints(o logdir.Operand) bool {
	if o.File == nil || o.File.Kind() != format.KindUnknown {
		return false
	}
	is := false
	err := o.File.View(func(b []byte) error {
		is = bytes.HasPrefix(b, []byte(`{"kind":"fingerprint"`))
		return nil
	})
	return err == nil && is
}

func openPrints(f *logdir.File) (*printFile, error) {
	p := &printFile{file: f, at: map[string][2]int64{}}
	last := ""
	err := p.lines(0, -1, func(l *printLine, from, to int64) error {
		if _, err := l.fingerprint(); err != nil {
			return err
		}
		if l.Partition != last || len(p.names) == 0 {
			if _, twice := p.at[l.Partition]; twice {
				return fmt.Errorf("the fingerprints of %s are in two places", l.Partition)
			}
			last = l.Partition
			p.names, p.at[last] = append(p.names, last), [2]int64{from, to}
		}
		p.at[last] = [2]int64{p.at[last][0], to}
		return nil
	})
	return p, err
}

// lines calls fn with the lines between two bytes of the file; to is -1 for all the rest.
func (p *printFile) lines(from, to int64, fn func(l *printLine, from, to int64) error) error {
	return p.file.View(func(data []byte) error {
		if to < 0 || to > int64(len(data)) {
			to = int64(len(data))
		}
		for pos := min(from, to); pos < to; {
			line := data[pos:to]
			if i := bytes.IndexByte(line, '\n'); i >= 0 {
				line = line[:i+1]
			}
			end := pos + int64(len(line))
			var l printLine
			err := json.Unmarshal(line, &l)
			if err == nil {
				err = fn(&l, pos, end)
			}
			if err != nil && !errors.Is(err, errDiffer) {
				return fmt.Errorf("%s: byte %d: %w", p.file.Display, pos, err)
			} else if err != nil {
				return err
			}
			pos = end
		}
		return nil
	})
}

// prints are those of one partition of the file.
func (p *printFile) prints(name string) *Prints {
	at, ok := p.at[name]
	if !ok {
		return nil
	}
	return &Prints{Name: name, Path: p.file.Display, Each: func(_ context.Context,
		yield func(*Fingerprint) error) ([]error, error) {
		return nil, p.lines(at[0], at[1], func(l *printLine, _, _ int64) error {
			f, err := l.fingerprint()
			if err != nil {
				return err
			}
			return yield(f)
		})
	}}
}

// localPrints are those of a partition that is here.
func localPrints(p *logdir.Partition, dirs *state.Dirs, opts *Options) *Prints {
	return &Prints{Name: nameOf(p), Path: p.Display, Local: p, Each: func(ctx context.Context,
		yield func(*Fingerprint) error) ([]error, error) {
		return Fingerprints(ctx, nameOf(p), p, dirs, opts, yield)
	}}
}

// ComparePrints compares two operands of which one is a file of fingerprints, or both are, and yields each partition.
// With detail the batch of a local side in which it parts from the other is looked for.
func ComparePrints(ctx context.Context, a, b logdir.Operand, opts Options, detail bool) (iter.Seq[*Comparison], error) {
	dirs := &state.Dirs{}
	sideA, namesA, errA := printSide(a, dirs, &opts)
	sideB, namesB, errB := printSide(b, dirs, &opts)
	if err := errors.Join(errA, errB); err != nil {
		return nil, err
	}
	if len(namesA) == 1 && len(namesB) == 1 && a.LogDir == nil && b.LogDir == nil {
		// Two single partitions are meant, whatever their names are.
		return func(yield func(*Comparison) bool) {
			yield(printPair(ctx, namesA[0], sideA(namesA[0]), sideB(namesB[0]), detail))
		}, nil
	}
	names := slices.Clone(namesA)
	for _, name := range namesB {
		if sideA(name) == nil {
			names = append(names, name)
		}
	}
	return func(yield func(*Comparison) bool) {
		for _, name := range names {
			if ctx.Err() != nil || !yield(printPair(ctx, name, sideA(name), sideB(name), detail)) {
				return
			}
		}
	}, nil
}

// printSide is how to get the fingerprints of an operand's partitions, and their names.
func printSide(o logdir.Operand, dirs *state.Dirs, opts *Options) (func(string) *Prints, []string, error) {
	if IsPrints(o) {
		f, err := openPrints(o.File)
		return f.prints, f.names, err
	}
	byName := map[string]*logdir.Partition{}
	var names []string
	for _, p := range partitionsOf(o) {
		byName[nameOf(p)] = p
		names = append(names, nameOf(p))
	}
	if len(names) == 0 {
		return nil, nil, fmt.Errorf("%w: there is no partition in %s", logdir.ErrNothing, o.Arg)
	}
	return func(name string) *Prints {
		if p := byName[name]; p != nil {
			return localPrints(p, dirs, opts)
		}
		return nil
	}, names, nil
}

func printPair(ctx context.Context, name string, a, b *Prints, detail bool) *Comparison {
	switch {
	case b == nil:
		return &Comparison{Name: name, Result: OnlyA, A: &Log{Path: a.Path, noBytes: true}, Nothing: true}
	case a == nil:
		return &Comparison{Name: name, Result: OnlyB, B: &Log{Path: b.Path, noBytes: true}, Nothing: true}
	}
	c, err := comparePrints(ctx, name, a, b)
	if err != nil {
		c.NotRead = append(c.NotRead, err)
	}
	if detail && c.Differ > 0 {
		for _, s := range []struct {
			p  *Prints
			to **Batch
		}{{a, &c.ABatch}, {b, &c.BBatch}} {
			if s.p.Local == nil {
				continue
			}
			if *s.to, err = batchAt(ctx, s.p.Local, c.DivergedAt); err != nil {
				c.NotRead = append(c.NotRead, err)
			}
		}
	}
	return c
}

// batchAt is the batch that has an offset, nil if there is none.
func batchAt(ctx context.Context, p *logdir.Partition, offset int64) (found *Batch, err error) {
	i, ok := slices.BinarySearchFunc(p.Segments, offset, func(s *logdir.Segment, o int64) int {
		return int(min(1, max(-1, s.Base-o)))
	})
	if !ok {
		i = max(0, i-1)
	}
	err = walk.Batches(ctx, walk.Segments(p.Segments[i:i+1]), walk.Options{Jobs: 1},
		func(s *walk.Stretch, b *format.Batch) error {
			if b.LastOffset >= offset && b.Valid() {
				found = batchOf(s.Log.File, b)
				return errDiffer
			}
			return nil
		}, nil)
	if found != nil {
		err = nil
	}
	return found, err
}

// FingerprintAll makes the fingerprints of all partitions of the operands; first is true for the first one of a
// partition. NotRead and the error are those of Fingerprints; the error wraps logdir.ErrNothing if there is no
// partition.
func FingerprintAll(ctx context.Context, set *logdir.Set, opts Options, yield func(f *Fingerprint,
	first bool) error) (notRead []error, err error) {
	dirs := &state.Dirs{}
	seen := map[string]bool{}
	for _, o := range set.Operands {
		for _, p := range partitionsOf(o) {
			name := nameOf(p)
			if seen[name] {
				notRead = append(notRead, fmt.Errorf("%s: fingerprints of another %s were written already; compare copies one "+
					"file each", p.Display, name))
				continue
			}
			seen[name] = true
			missed, err := fingerprintSteadily(ctx, name, p, dirs, &opts, yield)
			if notRead = append(notRead, missed...); err != nil {
				return notRead, err
			}
		}
	}
	if len(seen) == 0 {
		return notRead, fmt.Errorf("%w: there is no partition", logdir.ErrNothing)
	}
	return notRead, nil
}

// mostHeld is how many fingerprints of a partition are held back, so that they can be made anew: each has a few
// kilobytes.
const mostHeld = 1000

// fingerprintSteadily is Fingerprints, again while files of the partition vanish and none was given away yet.
func fingerprintSteadily(ctx context.Context, name string, p *logdir.Partition, dirs *state.Dirs, opts *Options,
	yield func(f *Fingerprint, first bool) error) (notRead []error, err error) {
	var held []*Fingerprint
	given := false
	give := func() error {
		for _, f := range held {
			if err := yield(f, !given); err != nil {
				return err
			}
			given = true
		}
		held = held[:0]
		return nil
	}
	unread := p.Steady(func() error {
		held = held[:0]
		notRead, err = Fingerprints(ctx, name, p, dirs, opts, func(f *Fingerprint) error {
			kept := *f
			kept.Marks = bytes.Clone(f.Marks)
			if held = append(held, &kept); given || len(held) == mostHeld {
				return give()
			}
			return nil
		})
		if given || err != nil {
			return nil
		}
		return errors.Join(notRead...)
	})
	if errors.Is(unread, logdir.ErrGone) {
		return []error{unread}, err
	}
	if unread != nil && len(notRead) == 0 {
		notRead = []error{unread}
	}
	return notRead, cmp.Or(err, give())
}

// Problems are the problems of the operands that matter here: a file of fingerprints is none of Kafka's.
func Problems(set *logdir.Set) []logdir.Problem {
	prints := map[string]bool{}
	for _, o := range set.Operands {
		prints[o.Arg] = IsPrints(o)
	}
	return slices.DeleteFunc(slices.Clone(set.Problems), func(p logdir.Problem) bool { return prints[p.Display] })
}
