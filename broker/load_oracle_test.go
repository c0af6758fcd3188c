//go:build oracle

package broker

import (
	"fmt"
	"hash/crc32"
	"math/rand/v2"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"kseg/format"
	"kseg/internal/fixture"
)

// mutated is a directory that both load, and how.
type mutated struct {
	dir   string
	did   string
	opts  LoadOptions
	ours  string
	loads string // the line for the real loader
}

// bases are healthy partitions, small enough to be copied hundreds of times.
func bases(t *testing.T) []string {
	var small []string
	bytes := map[string]int{}
	for _, name := range fixture.Files(t, "") {
		if _, ok := format.ParsePartitionDir(path.Base(path.Dir(name))); ok {
			bytes[path.Dir(name)] += len(fixture.Data(t, name))
		}
	}
	for dir, n := range bytes {
		if n < 400_000 {
			small = append(small, dir)
		}
	}
	slices.Sort(small)
	return small
}

// foreignLogs are logs of all formats, whose batches belong to other partitions.
func foreignLogs(t *testing.T) [][]byte {
	var logs [][]byte
	for _, name := range []string{"0.9.0.1/legacy/old-v0-snappy-0", "0.10.2.2/legacy/old-v1-gzip-0",
		"4.4.0/legacy/mix-0", "4.4.0/hello/hello-0"} {
		logs = append(logs, fixture.Data(t, name+"/00000000000000000000.log"))
	}
	return logs
}

// environment is a number from the environment, or what it is else.
func environment(name string, other int) int {
	if n, err := strconv.Atoi(os.Getenv(name)); err == nil {
		return n
	}
	return other
}

// TestOracleLoads damages copies of healthy partitions at random, with a fixed seed, and compares what the real loader
// makes of each with the model, byte by byte.
func TestOracleLoads(t *testing.T) {
	java := fixture.CompileJava(t, "oracle/Loads.java")
	seed, count := environment("KSEG_ORACLE_SEED", 1), environment("KSEG_ORACLE_COUNT", 600)
	rng := rand.New(rand.NewPCG(uint64(seed), 0))
	all, foreign := bases(t), foreignLogs(t)
	root := t.TempDir()
	cases := make([]*mutated, count)
	var input strings.Builder
	for i := range cases {
		cases[i] = mutate(t, rng, filepath.Join(root, fmt.Sprint(i)), all[rng.IntN(len(all))], foreign)
		input.WriteString(cases[i].loads + "\n")
	}
	out := strings.Split(string(java.Run(t, strings.NewReader(input.String()), "Loads")), "\n\n")
	agree := 0
	for i, c := range cases {
		if diff := difference(c.ours, out[i]+"\n"); diff != "" {
			t.Errorf("case %d, %s, %s:\n%s", i, c.did, c.loads, diff)
		} else {
			agree++
		}
		os.RemoveAll(filepath.Dir(c.dir))
	}
	t.Logf("%d of %d agree", agree, count)
}

// TestOracleOddPartitions asks the real loader what TestOddPartitions has frozen.
func TestOracleOddPartitions(t *testing.T) {
	java := fixture.CompileJava(t, "oracle/Loads.java")
	var ours, names []string
	var input strings.Builder
	for _, c := range odds() {
		dir, opts, got := c.load(t)
		ours, names = append(ours, written(t, got)), append(names, c.name)
		input.WriteString(loads(dir, &opts) + "\n")
	}
	out := strings.Split(string(java.Run(t, strings.NewReader(input.String()), "Loads")), "\n\n")
	for i, name := range names {
		if diff := difference(ours[i], out[i]+"\n"); diff != "" {
			t.Errorf("%s:\n%s", name, diff)
		}
	}
}

// loads is the line that has the real loader load a partition.
func loads(dir string, o *LoadOptions) string {
	shutdown := map[bool]string{true: "clean", false: "unclean"}[o.Clean]
	return fmt.Sprint(dir, " ", shutdown, " ", o.RecoveryPoint, " ", o.LogStart, " ", o.Interval, " ", o.IndexBytes, " ",
		o.Preallocate, " ", o.SegmentBytes)
}

// mutate makes a damaged copy, and predicts it.
func mutate(t *testing.T, rng *rand.Rand, parent, base string, foreign [][]byte) *mutated {
	t.Helper()
	dir := filepath.Join(parent, filepath.Base(base))
	if rng.IntN(12) == 0 && !strings.Contains(dir, ".") {
		dir += ".0123456789abcdef0123456789abcdef" + []string{"-delete", "-future", "-stray"}[rng.IntN(3)]
	}
	if err := fixture.Copy(dir, base); err != nil {
		t.Fatal(err)
	}
	m := fixture.Mutator{Rand: rng, Dir: dir, Foreign: foreign}
	for range rng.IntN(6) {
		if rng.IntN(2) == 0 {
			m.Step()
		} else {
			m.Odd()
		}
	}
	if keep := os.Getenv("KSEG_ORACLE_KEEP"); keep != "" {
		_ = os.CopyFS(filepath.Join(keep, filepath.Base(parent), filepath.Base(dir)), os.DirFS(dir))
	}
	p := openPartition(t, dir)
	c := &mutated{dir: dir, did: base + " " + strings.Join(m.Done, ", ")}
	c.opts = LoadOptions{Clean: rng.IntN(2) == 0, Interval: []int64{50, 256, 512, 4096}[rng.IntN(4)],
		IndexBytes:  []int64{60, 4096, 65536, 65536}[rng.IntN(4)],
		Preallocate: rng.IntN(5) == 0, SegmentBytes: 1 << 20,
		MaxBatchBytes: 16 << 20, ExpiredMs: time.Now().UnixMilli() - 86_400_000}
	offsets := []int64{0, 0, 0, int64(rng.IntN(200))}
	for _, s := range p.Segments {
		offsets = append(offsets, s.Base, s.Base+int64(rng.IntN(30)))
	}
	c.opts.RecoveryPoint = offsets[rng.IntN(len(offsets))]
	if rng.IntN(3) == 0 {
		c.opts.LogStart = max(0, offsets[rng.IntN(len(offsets))])
	}
	c.opts.RecoveryPoint = max(0, c.opts.RecoveryPoint)
	c.loads = loads(dir, &c.opts)
	got, err := Load(p, c.opts)
	if err != nil {
		t.Fatalf("%s: %v", c.did, err)
	}
	c.ours = written(t, got)
	return c
}

// written is what the model predicts, as the real loader's answer is written.
func written(t *testing.T, got *Loaded) string {
	t.Helper()
	var out strings.Builder
	switch {
	case got.Failure == nil:
		fmt.Fprintf(&out, "loaded %d %d %d\n", got.LogStart, got.LogEnd, len(got.Segments))
	case got.Failure.Offline:
		fmt.Fprintf(&out, "offline %v\n", got.Failure)
	default:
		fmt.Fprintf(&out, "stops %v\n", got.Failure)
	}
	var lines []string
	for _, f := range got.Files {
		if f.After == nil {
			continue
		}
		sum := uint32(0)
		if err := f.file.view(f.file.size, func(b []byte) error {
			sum = crc32.ChecksumIEEE(b)
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		lines = append(lines, fmt.Sprintf("%s %d %d\n", f.Name, *f.After, sum))
	}
	slices.Sort(lines)
	return out.String() + strings.Join(lines, "")
}

// difference shows the lines that only one has. Of a log that is not loaded the kind of failure counts; the files do
// not, since a broker does not run with them, and begins anew at its next start.
func difference(ours, real string) string {
	kind := func(s string) string { return strings.Fields(s + " -")[0] }
	if kind(ours) != "loaded" && kind(ours) == kind(real) {
		return ""
	}
	a, b := strings.Split(ours, "\n"), strings.Split(real, "\n")
	var out strings.Builder
	for _, line := range a {
		if !slices.Contains(b, line) {
			fmt.Fprintf(&out, "  model: %s\n", line)
		}
	}
	for _, line := range b {
		if !slices.Contains(a, line) {
			fmt.Fprintf(&out, "  real:  %s\n", line)
		}
	}
	return out.String()
}
