//go:build oracle

package verify

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"kseg/broker"
	"kseg/format"
	"kseg/internal/fixture"
	"kseg/logdir"
)

// TestOracleVerdict damages log directories at random, lets the real loader load the partition, and holds the verdict
// against what was gone before, what the start has taken, and whether lookups are right afterwards.
func TestOracleVerdict(t *testing.T) {
	java := fixture.CompileJava(t, "../broker/oracle/Loads.java")
	seed, _ := strconv.Atoi(os.Getenv("KSEG_ORACLE_SEED"))
	count, _ := strconv.Atoi(os.Getenv("KSEG_ORACLE_COUNT"))
	rng := rand.New(rand.NewPCG(uint64(seed), 3))
	bases := trialBases(t)
	root := t.TempDir()
	var input strings.Builder
	var trials []*trial
	for i := range max(count, 200) {
		c := newTrial(t, rng, filepath.Join(root, fmt.Sprint(i)), bases[rng.IntN(len(bases))])
		if rng.IntN(8) == 0 {
			p, _ := format.ParsePartitionDir(filepath.Base(c.dir))
			writeFile(t, filepath.Join(c.root, "log-start-offset-checkpoint"), fmt.Appendf(nil, "0\n1\n%s %d %d\n", p.Topic,
				p.Partition, c.end+rng.Int64N(60)-40))
		}
		m := fixture.Mutator{Rand: rng, Dir: c.dir}
		for range 1 + rng.IntN(5)/4 {
			if rng.IntN(3) > 0 {
				m.Step()
			} else {
				m.Odd()
			}
		}
		c.did = strings.Join(m.Done, ", ")
		c.verify(t)
		trials = append(trials, c)
		shutdown := map[bool]string{true: "clean", false: "unclean"}[c.clean]
		fmt.Fprintln(&input, c.dir, shutdown, c.recoveryPoint, c.logStart(t), c.interval(t), 65536)
		if err := os.CopyFS(c.dir+".before", os.DirFS(c.dir)); err != nil {
			t.Fatal(err)
		}
	}
	out := strings.Split(string(java.Run(t, strings.NewReader(input.String()), "Loads")), "\n\n")
	bad, heard, lies := map[string]int{}, map[string]int{}, 0
	for i, c := range trials {
		if strings.Contains(c.did, "sealed") {
			continue // it makes other batches of those that were there, which are neither gone nor taken
		}
		loaded := strings.HasPrefix(out[i], "loaded")
		before, after := intactIn(t, c.dir+".before"), intactIn(t, c.dir)
		gone, taken := less(c.healthy, before), less(before, after)
		gone = slices.DeleteFunc(gone, func(b intact) bool { return after[b] })
		whole := len(gone) == 0
		gone = slices.DeleteFunc(gone, c.explained(after))
		committed := slices.DeleteFunc(slices.Clone(gone), c.crashed)
		wrong := ""
		switch worst := c.worst(); {
		case !loaded && worst < Damage:
			wrong = "not loaded, and no damage: " + strings.SplitN(out[i], "\n", 2)[0]
		case len(taken) > 0 && worst < Damage:
			wrong = fmt.Sprint("intact batches are taken, and no damage: ", taken[:min(3, len(taken))])
		case len(committed) > 0 && worst < Damage:
			wrong = fmt.Sprint("committed batches are gone, and no damage: ", committed[:min(3, len(committed))])
		case loaded && whole && len(taken) == 0 && !leavesNames(c.did) && worst == Damage && c.logStart(t) <= c.end &&
			c.asGood(t):
			wrong = "nothing is lost, lookups are right, and damage"
		}
		for _, lie := range newOutcome(t, c, out[i], taken).lies(heard) {
			lies++
			t.Errorf("%d: not true: %s\n%s", i, lie, c)
		}
		if wrong != "" {
			kind := strings.SplitN(wrong, ":", 2)[0]
			bad[kind]++
			t.Errorf("%d: %s\n%s", i, wrong, c)
		}
	}
	t.Logf("%d of %d: %v", len(trials)-sum(bad), len(trials), bad)
	for _, s := range sentences {
		t.Logf("%6d %s", heard[s.pattern.String()], s.pattern)
	}
	t.Logf("%d of %d sentences are true", sum(heard)-lies, sum(heard))
}

// leavesNames reports whether files were renamed, or left over: what is wrong with names is damage by itself.
func leavesNames(did string) bool {
	return slices.ContainsFunc([]string{"rename", "leave", "segment to", "companion", "empty segment", "directory"},
		func(what string) bool { return strings.Contains(did, what) })
}

func sum(m map[string]int) int {
	n := 0
	for _, k := range m {
		n += k
	}
	return n
}

// interval is the index.interval.bytes that the model takes.
func (c *trial) interval(t *testing.T) int64 {
	set, err := logdir.Open([]string{c.root}, logdir.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return broker.InferInterval(set.Partitions()[0])
}

func (c *trial) logStart(t *testing.T) int64 {
	raw, err := os.ReadFile(filepath.Join(c.root, "log-start-offset-checkpoint"))
	if err != nil {
		t.Fatal(err)
	}
	d, err := format.DecodeOffsetCheckpoint(raw)
	if err != nil || len(d.Entries) == 0 {
		return 0
	}
	return d.Entries[0].Offset
}

// asGood reports whether what was loaded is as good as what was there before anything was done to it: all of its
// bytes are batches in order, and lookups through the indexes find them.
func (c *trial) asGood(t *testing.T) bool {
	logs, err := filepath.Glob(filepath.Join(c.dir, "*.log"))
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(logs)
	next := int64(0)
	for i, name := range logs {
		base := format.ParseFileName(filepath.Base(name)).Base
		raw, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		read := func(ext string) []byte {
			b, _ := os.ReadFile(strings.TrimSuffix(name, ".log") + ext)
			return b
		}
		last := i == len(logs)-1
		index := format.NewOffsetIndex(read(".index"), base)
		times := format.NewTimeIndex(read(".timeindex"), base)
		if last && !c.clean {
			index, times = index.Logical(), times.Logical()
		}
		offsets := format.NewOffsetIndexCheck(index)
		byTime := format.NewTimeIndexCheck(times, index)
		if base < next || (!last || c.clean) && index.ZeroTail() > 0 {
			return false
		}
		next = base
		for scan := format.NewScanner(raw, 0, base); scan.Next(); {
			b := scan.Batch()
			if b == nil || !b.Valid() || b.BaseOffset < next {
				return false
			}
			next = b.NextOffset()
			offsets.Add(b.Ref())
			byTime.Add(b.Ref())
		}
		if _, bad := offsets.Finish(); bad {
			return false
		}
		if _, bad := byTime.Finish(); bad || (!last || c.clean) && !byTime.LastIsLargest() {
			return false
		}
		old, _ := os.ReadFile(filepath.Join(fixture.Root(t), "logdirs", c.base, strings.TrimSuffix(filepath.Base(name),
			".log")+".txnindex"))
		if string(read(".txnindex")) != string(old) {
			return false
		}
	}
	return true
}
