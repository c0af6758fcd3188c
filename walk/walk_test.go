package walk

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
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
)

// write makes a segment of the bytes and opens it.
func write(t testing.TB, data []byte) *logdir.File {
	t.Helper()
	name := filepath.Join(t.TempDir(), "00000000000000000000.log")
	if err := os.WriteFile(name, data, 0o644); err != nil {
		t.Fatal(err)
	}
	set, err := logdir.Open([]string{name}, logdir.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return set.Operands[0].File
}

// scanned is what a scanner over the whole file says, an item a line.
func scanned(data []byte, base int64, trust format.Trust) []string {
	var out []string
	s := format.NewScanner(data, 0, base)
	s.Trust(trust)
	for s.Next() {
		if h := s.Hole(); h != nil {
			out = append(out, holeLine(h))
		} else {
			out = append(out, batchLine(s.Batch()))
		}
	}
	return out
}

func holeLine(h *format.Hole) string {
	return fmt.Sprint("hole ", h.Kind, h.Pos, h.Len, h.Next, h.NextOffset, h.Expected)
}

func batchLine(b *format.Batch) string {
	return fmt.Sprint("batch ", b.Pos, b.Size(), b.BaseOffset, b.CRC, b.ComputeCRC())
}

// walked is what a walk says, with the bytes looked at by the workers and by the caller.
func walked(t *testing.T, f *logdir.File, base int64, o Options) []string {
	t.Helper()
	var out []string
	end := int64(0)
	logs := slices.Values([]*Log{{File: f, Base: base}})
	err := Fold(context.Background(), logs, o, func(format.Gate) Look[[]uint32] {
		return func(r *Run[[]uint32]) error {
			r.Result = r.Result[:0]
			for i := range r.Batches {
				r.Result = append(r.Result, r.Batches[i].ComputeCRC())
			}
			return nil
		}
	}, func(r *Run[[]uint32]) error {
		end = r.To
		sums := r.Result
		return r.Each(func(b *format.Batch) error {
			if b.ComputeCRC() != sums[0] {
				t.Errorf("the batch at byte %d had other bytes for the worker", b.Pos)
			}
			sums = sums[1:]
			out = append(out, batchLine(b))
			return nil
		}, func(h *format.Hole) error {
			out = append(out, holeLine(h))
			return nil
		})
	})
	if err != nil {
		t.Fatal(err)
	}
	if end != f.Size {
		t.Errorf("the last run ends at byte %d of %d", end, f.Size)
	}
	return out
}

func check(t *testing.T, data []byte, base int64) {
	t.Helper()
	f := write(t, data)
	for _, trust := range []format.Trust{format.TrustSane, format.TrustLengths, format.TrustBlindly} {
		want := scanned(data, base, trust)
		for _, o := range []Options{{Jobs: 1}, {Jobs: 1, RunBytes: 100}, {Jobs: 2, RunBytes: 700}, {Jobs: 3, RunBytes: 50},
			{Jobs: 4}} {
			o.Trust = trust
			if got := walked(t, f, base, o); !slices.Equal(got, want) {
				t.Fatalf("%+v: got\n%s\nwant\n%s", o, strings.Join(got, "\n"), strings.Join(want, "\n"))
			}
		}
	}
}

// A walk says what a scanner over the whole file says, however many workers there are and however small the runs: of
// files as brokers write them, and with changed, zeroed and missing bytes.
func TestWalkIsAScan(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for _, name := range fixture.Files(t, ".log") {
		data := fixture.Data(t, name)
		if len(data) > 200_000 || len(data) == 0 {
			continue
		}
		base := format.ParseFileName(path.Base(name)).Base
		t.Run(name, func(t *testing.T) {
			check(t, data, base)
			for range fixture.Times(1, 3) {
				bad := slices.Clone(data)
				at := rnd.IntN(len(bad))
				switch rnd.IntN(4) {
				case 0:
					bad[at] ^= 1 << rnd.IntN(8)
				case 1:
					clear(bad[at:min(len(bad), at+rnd.IntN(2000))])
				case 2:
					bad = bad[:at]
				default:
					bad = append(bad[:at], bad[min(len(bad), at+1+rnd.IntN(300)):]...)
				}
				if len(bad) > 0 {
					check(t, bad, base)
				}
			}
		})
	}
}

// Batches that are larger than a run, and than what is copied, come whole.
func TestLargeBatches(t *testing.T) {
	var data []byte
	for i, size := range []int{100, mostCopied + 5000, 600_000, 600_000, 100, mostCopied - 61, 3 << 20, 7} {
		data = fixture.AppendBatch(data, fixture.Batch{Records: []fixture.Record{{Offset: int64(i),
			Value: make([]byte, size)}}})
	}
	check(t, data, 0)
}

// Several logs come one after the other, also empty ones and those that are gone by then, which have an error.
func TestLogsInOrder(t *testing.T) {
	small := fixture.AppendBatch(nil, fixture.Batch{Records: []fixture.Record{{Offset: 3}}})
	for jobs := 1; jobs <= 3; jobs++ {
		files := []*logdir.File{write(t, small), write(t, nil), write(t, small), write(t, small), write(t, small)}
		if err := os.Remove(files[2].Path); err != nil {
			t.Fatal(err)
		}
		var logs []*Log
		for _, f := range files {
			logs = append(logs, &Log{File: f})
		}
		w := Start[struct{}](context.Background(), slices.Values(logs), Options{Jobs: jobs}, nil)
		var got []string
		for i, log := range logs {
			if i == 3 {
				continue // given up
			}
			runs := 0
			err := w.Log(log, func(r *Run[struct{}]) error {
				runs += 1 + len(r.Batches)
				return nil
			})
			got = append(got, fmt.Sprint(runs, errors.Is(err, logdir.ErrVanished)))
		}
		w.Close()
		if want := []string{"2 false", "1 false", "0 true", "2 false"}; !slices.Equal(got, want) {
			t.Errorf("%d jobs: %v, want %v", jobs, got, want)
		}
	}
}

// Whatever ends a walk early ends all its workers, also those that wait with a very large batch.
func TestEnds(t *testing.T) {
	var data []byte
	for i := range 60 {
		data = fixture.AppendBatch(data, fixture.Batch{Records: []fixture.Record{{Offset: int64(i),
			Value: make([]byte, 300)}}})
	}
	mine := errors.New("mine")
	for jobs := 1; jobs <= 4; jobs++ {
		for _, how := range []string{"take", "look", "panic", "cancel", "panic in take"} {
			ctx, cancel := context.WithCancel(context.Background())
			logs := []*Log{{File: write(t, data)}, {File: write(t, data)}}
			taken := 0
			err := Fold(ctx, slices.Values(logs), Options{Jobs: jobs, RunBytes: 500}, func(g format.Gate) Look[int] {
				return func(r *Run[int]) error {
					g.Enter()
					defer g.Leave()
					if r.From < 5000 {
						return nil
					}
					switch how {
					case "look":
						return mine
					case "panic":
						panic("boom")
					}
					return nil
				}
			}, func(r *Run[int]) error {
				if taken++; taken < 5 {
					return nil
				}
				switch how {
				case "take":
					return mine
				case "cancel":
					cancel()
				case "panic in take":
					panic("boom")
				}
				return nil
			})
			cancel()
			var p *logdir.PanicError
			switch {
			case how == "cancel" && errors.Is(err, context.Canceled):
			case strings.HasPrefix(how, "panic") && errors.As(err, &p):
			case err == mine:
			default:
				t.Errorf("%d jobs, %s: %v", jobs, how, err)
			}
		}
	}
}

// A log that ends early by the caller's wish is not read to its end.
func TestStop(t *testing.T) {
	var data []byte
	for i := range 100 {
		data = fixture.AppendBatch(data, fixture.Batch{Records: []fixture.Record{{Offset: int64(i)}}})
	}
	for jobs := 1; jobs <= 2; jobs++ {
		log := &Log{File: write(t, data), Stop: func(b *format.Batch, _ *format.Hole) bool { return b.BaseOffset == 7 }}
		n := 0
		err := Batches(context.Background(), slices.Values([]*Log{log}), Options{Jobs: jobs, RunBytes: 200},
			func(*Stretch, *format.Batch) error {
				n++
				return nil
			}, nil)
		if err != nil || n != 7 {
			t.Errorf("%d jobs: %d batches, %v", jobs, n, err)
		}
	}
}

// A block that the device does not give is one hole, with the batches that lie in it, and the others are as ever.
func TestUnreadableBlocks(t *testing.T) {
	var data []byte
	for i := range 200 {
		size := 300
		if i == 50 {
			size = 30_000
		}
		data = fixture.AppendBatch(data, fixture.Batch{Records: []fixture.Record{{Offset: int64(i),
			Value: make([]byte, size)}}})
	}
	f := write(t, data)
	const block = 4096
	for bad := int64(0); bad < int64(len(data)); bad += block {
		var want []string
		for s := format.NewScanner(data, 0, 0); s.Next(); {
			if b := s.Batch(); b.End() <= bad || b.Pos >= bad+block {
				want = append(want, batchLine(b))
			}
		}
		for _, o := range []Options{{Jobs: 1}, {Jobs: 1, RunBytes: 900}, {Jobs: 2, RunBytes: 5000}} {
			restore := logdir.Inject(func(a logdir.Access) error {
				if a.Op == "read" && a.Pos == bad {
					return syscall.EIO
				}
				return nil
			})
			got := walked(t, f, 0, o)
			restore()
			holes := 0
			got = slices.DeleteFunc(got, func(line string) bool {
				if strings.HasPrefix(line, "hole unreadable") {
					holes++
					return true
				}
				return false
			})
			if holes != 1 || !slices.Equal(got, want) {
				t.Fatalf("block at %d, %+v: %d holes; got\n%s\nwant\n%s", bad, o, holes, strings.Join(got, "\n"),
					strings.Join(want, "\n"))
			}
		}
	}
}
