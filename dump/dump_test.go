package dump

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"kseg/format"
	"kseg/internal/fixture"
	"kseg/logdir"
	"kseg/render"
	"kseg/walk"
)

// defaults are the options the command line gives.
func defaults() Options {
	return Options{Payload: render.PayloadRaw, Decode: Decode{Auto: true}, MaxMessageSize: 5 << 20, Limit: -1, Tail: -1,
		Jobs: 1, MaxBatchBytes: 256 << 20}
}

// dumped runs a dump over paths and returns stdout, stderr and the result.
func dumped(t *testing.T, o Options, paths ...string) (string, string, Result) {
	t.Helper()
	set, err := logdir.Open(paths, logdir.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var out, errOut bytes.Buffer
	res, err := Run(context.Background(), set, o, &out, &errOut)
	if err != nil {
		t.Fatal(err)
	}
	return out.String(), errOut.String(), res
}

// bigLog writes a segment of several MiB, which is cut into runs, by repeating real batches with offsets that go on.
func bigLog(t *testing.T, name string) string {
	t.Helper()
	src := fixture.Data(t, name)
	var log []byte
	next := int64(0)
	for len(log) < 3<<20 {
		s := format.NewScanner(src, 0, -1)
		first := int64(-1)
		for s.Next() {
			b := s.Batch()
			if first < 0 {
				first = b.BaseOffset
			}
			at := len(log)
			log = append(log, b.Raw...)
			for i := range 8 {
				log[at+i] = byte((next + b.BaseOffset - first) >> (56 - 8*i))
			}
		}
		next += s.Pos()
	}
	path := filepath.Join(t.TempDir(), "00000000000000000000.log")
	if err := os.WriteFile(path, log, 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// The output of several workers is that of one, in every form, also with damage in the middle.
func TestJobsDoNotChangeTheOutput(t *testing.T) {
	path := bigLog(t, "4.4.0/codecs/codec-lz4-createtime-0/00000000000000000000.log")
	damaged := bigLog(t, "4.4.0/codecs/codec-snappy-createtime-0/00000000000000000000.log")
	name := filepath.Base(damaged)
	if err := fixture.ApplyTo(filepath.Dir(damaged), "zero "+name+" 1500000+5000\nflip "+name+" 700000:3"); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{path, damaged} {
		for _, deep := range []bool{false, true} {
			for _, output := range []Output{Text, JSON} {
				o := defaults()
				o.Output, o.Data, o.Jobs = output, deep, 1
				want, wantErr, wantRes := dumped(t, o, path)
				o.Jobs = 4
				got, gotErr, gotRes := dumped(t, o, path)
				if got != want || gotErr != wantErr || gotRes != wantRes {
					t.Errorf("deep %v, output %d: 4 jobs differ from 1 (%d bytes, %d bytes)", deep, output, len(got), len(want))
				}
			}
		}
	}
}

// --limit and --tail cut the full list of units, and --from and --to choose from it, whatever the partition looks like.
func TestWindowsAndRangesAreCutsOfTheWhole(t *testing.T) {
	for _, name := range []string{"4.4.0/segments-316/clean/seg-4096-0", "4.4.0/compacted/users-0",
		"4.4.0/transactions/ledger-0"} {
		dir := fixture.Dir(t, name)
		for _, deep := range []bool{false, true} {
			o := defaults()
			o.Data = deep
			all := units(t, o, dir, deep)
			for _, n := range []int64{0, 1, 7, int64(len(all)) - 1, int64(len(all)) + 5} {
				limited, tailed := o, o
				limited.Limit, tailed.Tail = n, n
				k := min(int(n), len(all))
				expectUnits(t, fmt.Sprintf("%s --limit %d", name, n), units(t, limited, dir, deep), all[:k])
				expectUnits(t, fmt.Sprintf("%s --tail %d", name, n), units(t, tailed, dir, deep), all[len(all)-k:])
			}
		}
		o := defaults()
		o.Data = true
		all := units(t, o, dir, true)
		for from := int64(-3); from < 700; from += 13 {
			to := from + 40
			ranged := o
			ranged.Filter = Filter{From: &from, To: &to}
			want := slices.DeleteFunc(slices.Clone(all), func(line string) bool {
				var offset int64
				fmt.Sscanf(line, "| offset: %d ", &offset)
				return offset < from || offset > to
			})
			expectUnits(t, fmt.Sprintf("%s --from %d --to %d", name, from, to), units(t, ranged, dir, true), want)
		}
	}
}

// units are the lines of records, or of batches in a shallow dump.
func units(t *testing.T, o Options, dir string, deep bool) []string {
	t.Helper()
	out, _, _ := dumped(t, o, dir)
	var kept []string
	for line := range strings.Lines(out) {
		if deep && strings.HasPrefix(line, "| offset: ") || !deep && strings.HasPrefix(line, "baseOffset: ") {
			kept = append(kept, line)
		}
	}
	return kept
}

func expectUnits(t *testing.T, what string, got, want []string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s: %d lines, want %d", what, len(got), len(want))
	}
}

// A time range gives the records of that range, though the time index is used to get there.
func TestTimeRange(t *testing.T) {
	dir := fixture.Dir(t, "4.4.0/segments-316/clean/seg-4096-0")
	from, to := int64(1700000000100), int64(1700000000149)
	o := defaults()
	o.Data, o.Filter = true, Filter{FromTime: &from, ToTime: &to}
	got := units(t, o, dir, true)
	if len(got) != 500 || !strings.HasPrefix(got[0], "| offset: 1000 ") || !strings.HasPrefix(got[499],
		"| offset: 1499 ") {
		t.Errorf("%d records, first %q", len(got), got[0])
	}
}

// Nothing is allocated per batch or record once the buffers have grown.
func TestHotPathDoesNotAllocate(t *testing.T) {
	for _, codec := range []string{"none", "lz4", "snappy", "zstd", "gzip"} {
		for _, output := range []Output{Text, JSON} {
			path := filepath.Join(fixture.Dir(t, "4.4.0/codecs/codec-"+codec+"-createtime-0"), "00000000000000000000.log")
			set, err := logdir.Open([]string{path}, logdir.Options{})
			if err != nil {
				t.Fatal(err)
			}
			o := defaults()
			o.Output, o.Data, o.Deep = output, true, true
			d := &dumper{ctx: context.Background(), opts: o, out: discard{}, errOut: discard{}}
			f := set.Files()[0]
			w := d.newWorker()
			log := &walk.Log{File: f}
			err = walk.Fold(d.ctx, slices.Values([]*walk.Log{log}), walk.Options{}, func(gate format.Gate) walk.Look[int] {
				w.begin(f, &turn{}, gate)
				return func(r *walk.Run[int]) error {
					if len(r.Batches) == 0 {
						t.Fatal("nothing to print")
					}
					records := 0
					for i := range r.Batches {
						records += int(r.Batches[i].Count)
					}
					allocs := testing.AllocsPerRun(10, func() {
						if err := w.print(&r.Stretch); err != nil {
							t.Fatal(err)
						}
						w.abandon()
					})
					if allocs > float64(records)/50 {
						t.Errorf("%s, output %d: %v allocations for %d records", codec, output, allocs, records)
					}
					return nil
				}
			}, func(*walk.Run[int]) error { return nil })
			if err != nil {
				t.Fatal(err)
			}
		}
	}
}

type discard struct{}

func (discard) Write(p []byte) (int, error) { return len(p), nil }

// The order of the closing summaries is that of a Java HashMap of the paths; these orders were taken from one.
func TestJavaHash(t *testing.T) {
	for s, want := range map[string]uint32{"": 0, "a": 97, "hello": 99162322 ^ 99162322>>16} {
		if got := javaHash(s); got != want {
			t.Errorf("javaHash(%q) = %d, want %d", s, got, want)
		}
	}
}

// TestEveryKind: what is in a real file of a kind is printed, as text and as JSON.
func TestEveryKind(t *testing.T) {
	fixture.EachKind(t, func(kind format.Kind, name string, _ []byte) {
		file := filepath.Join(fixture.View(t, path.Dir(name)), path.Base(name))
		for _, output := range []Output{Text, JSON} {
			o := defaults()
			o.Output = output
			out, errOut, res := dumped(t, o, file)
			lines := strings.Count(out, "\n")
			if output == Text {
				lines-- // the title
			}
			if lines < 1 || strings.Contains(errOut, "Ignoring") || res.Incomplete {
				t.Errorf("%s: %d lines of content; stderr: %s", kind, lines, errOut)
			}
		}
	})
}

// What the device does not give is passed over: the rest is printed, and the place told.
func TestUnreadableBytes(t *testing.T) {
	path := bigLog(t, "4.4.0/codecs/codec-lz4-createtime-0/00000000000000000000.log")
	o := defaults()
	whole := units(t, o, path, false)
	const bad = 1 << 20
	defer logdir.Inject(func(a logdir.Access) error {
		if a.Op == "read" && a.Pos == bad {
			return syscall.EIO
		}
		return nil
	})()
	for _, jobs := range []int{1, 4} {
		o.Jobs = jobs
		out, errOut, res := dumped(t, o, path)
		lost := len(whole) - strings.Count(out, "baseOffset: ")
		if lost < 1 || lost > 50 || !strings.Contains(out, whole[len(whole)-1]) || !res.Incomplete || res.Damage {
			t.Errorf("%d jobs: %d batches of %d are lost; %+v", jobs, lost, len(whole), res)
		}
		if strings.Count(errOut, "\n") != 1 || !strings.Contains(errOut, "input/output error") ||
			!strings.Contains(errOut, "reading resumes at byte") {
			t.Errorf("%d jobs: stderr: %s", jobs, errOut)
		}
	}
}
