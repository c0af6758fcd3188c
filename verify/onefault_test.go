package verify

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"kseg/format"
	"kseg/internal/fixture"
	"kseg/state"
)

// faultKinds are small partitions of each kind.
var faultKinds = []string{
	"0.9.0.1/legacy/old-v0-snappy-0", "0.10.2.2/legacy/old-v1-gzip-0", "4.4.0/legacy/mix-0", plainBase, txnBase,
	"4.4.0/damage-base/zipped/orders-0", "4.4.0/compacted/users-zstd-0", "4.4.0/internal/__consumer_offsets-0",
	"4.4.0/internal/__share_group_state-0", "4.4.0/transactions/__transaction_state-0",
	"4.4.0/logdirs/clean/data1/prices-0",
	"4.4.0/logdirs/killed/data2/inventory-1", "4.4.0/preallocate/live/prealloc-0", "4.4.0/retention/before/r-time-0",
	"4.4.0/hello/hello-0",
}

// fault is one change of one file.
type fault struct {
	file string
	bit  int // the bit that is turned over, -1 for none
	cut  int // the length that the file is cut to otherwise
}

// do is the file after the change.
func (f *fault) do(raw []byte) []byte {
	if f.bit < 0 {
		return slices.Clone(raw[:f.cut])
	}
	flipped := slices.Clone(raw)
	flipped[f.bit/8] ^= 1 << (f.bit % 8)
	return flipped
}

func (f *fault) String() string {
	if f.bit < 0 {
		return fmt.Sprintf("cut to %d", f.cut)
	}
	return fmt.Sprintf("flip %d:%d", f.bit/8, f.bit%8)
}

// faults are some of the flips and truncations of all files below a directory, or all.
func faults(t *testing.T, root string, most int) []fault {
	t.Helper()
	var all []fault
	err := filepath.Walk(root, func(name string, info os.FileInfo, err error) error {
		if err != nil || info.IsDir() {
			return err
		}
		raw, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		end := len(raw) // preallocated zeros are all alike
		for end > 0 && raw[end-1] == 0 {
			end--
		}
		h := fnv.New64a()
		h.Write([]byte(name[len(root):]))
		rng := rand.New(rand.NewPCG(h.Sum64(), 1))
		for range min(most, 8*end) {
			all = append(all, fault{name, rng.IntN(8 * end), 0})
		}
		for range min(most/2, end) {
			all = append(all, fault{name, -1, rng.IntN(end)})
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// mostFlips bounds the flips of one file: those of a small file are all tried in an exhaustive run.
const mostFlips = 4000

// TestOneFaultOneFinding changes each file of small partitions of all kinds, and of their log directory, in one place:
// that is one finding, about that file, or there is a reason why nobody can see it.
func TestOneFaultOneFinding(t *testing.T) {
	for _, base := range faultKinds {
		t.Run(strings.ReplaceAll(base, "/", "-"), func(t *testing.T) {
			t.Parallel()
			c := newTrial(t, rand.New(rand.NewPCG(5, 5)), filepath.Join(t.TempDir(), "data"), base)
			healthy := map[fileCode]bool{}
			for i := range c.found {
				healthy[fileCode{c.found[i].File, c.found[i].Code}] = true
			}
			for i, f := range faults(t, c.root, mostFlips) {
				if fixture.Sampled(i, 400) {
					c.oneFault(t, &f, healthy)
				}
			}
		})
	}
}

// oneFault makes one change, looks, and takes it back.
func (c *trial) oneFault(t *testing.T, f *fault, healthy map[fileCode]bool) {
	t.Helper()
	before, err := os.ReadFile(f.file)
	if err != nil {
		t.Fatal(err)
	}
	after := f.do(before)
	writeFile(t, f.file, after)
	defer writeFile(t, f.file, before)
	rel, err := filepath.Rel(c.root, f.file)
	if err != nil {
		t.Fatal(err)
	}
	found, _ := runOn(t, Options{Level: Records}, c.root)
	var got []string
	about := false
	for i := range found {
		if g := &found[i]; !c.before(g, healthy) {
			got = append(got, line(g))
			about = about || g.File == rel || slices.ContainsFunc(g.Related, func(p Place) bool { return p.File == rel })
		}
	}
	switch reason := c.unseen(rel, before, after, healthy); {
	case len(got) == 0 && reason == "":
		t.Errorf("not seen: %s %s", rel, f)
	case len(got) > 1:
		t.Errorf("more than one finding: %s %s:\n\t%s", rel, f, strings.Join(got, "\n\t"))
	case len(got) == 1 && !about && reason == "" && !strings.Contains(got[0], "timeindex-differs-from-rebuild"):
		t.Errorf("about another file: %s %s: %s", rel, f, got[0])
	}
}

// before reports whether a finding was there before the change: of a note the numbers may differ.
func (c *trial) before(f *Finding, healthy map[fileCode]bool) bool {
	return healthy[fileCode{f.File, f.Code}] && (f.Severity == Note ||
		slices.ContainsFunc(c.found, func(g Finding) bool { return line(&g) == line(f) }))
}

// unseen says why a change of a file cannot be seen: what it says now could be true as well. It is "" if the change
// must be found.
func (c *trial) unseen(file string, before, after []byte, healthy map[fileCode]bool) string {
	if reason := invisible(file, before, after); reason != "" {
		return reason
	}
	kind := format.ParseFileName(filepath.Base(file)).Kind
	switch {
	case kind == format.KindMetaProperties && strings.HasPrefix(string(before), string(after)) &&
		strings.HasSuffix(string(after), "cluster.id=AABrc2VnAAAAAAAAAAAAAQ\n"):
		return "directories had no id before 3.7"
	case kind == format.KindCleanShutdown && len(after) == 0:
		return "brokers before 3.8 leave it empty"
	case slices.Contains(state.CheckpointKinds, kind):
		if len(after) == 0 {
			return "an empty checkpoint has no entries"
		}
		if d, err := format.DecodeOffsetCheckpoint(after); err == nil && len(d.Entries) == 1 &&
			d.Entries[0].Offset <= c.end {
			return "an offset that the broker may have come to"
		}
	case kind == format.KindLeaderEpochCheckpoint:
		return "an epoch that no batch contradicts: epochs are cut where records are deleted"
	case kind == format.KindOffsetIndex || kind == format.KindTimeIndex:
		return c.unseenEntry(file, before, after, healthy)
	case kind == format.KindLog && len(after) == len(before) && c.compacted && c.inOrder(filepath.Base(file), after):
		return "a base offset that fits between those beside it: where the log cleaner was, any may be missing"
	case kind == format.KindProducerSnapshot && c.compacted:
		return "what the log cleaner took is known to the snapshot alone"
	}
	return ""
}

// inOrder reports whether all of a log are batches, whose checksums hold and whose offsets rise, up to the next
// segment.
func (c *trial) inOrder(name string, log []byte) bool {
	next := format.ParseFileName(name).Base
	scan := format.NewScanner(log, 0, next)
	for scan.Next() {
		b := scan.Batch()
		if b == nil || !b.Valid() || b.BaseOffset < next {
			return false
		}
		next = b.NextOffset()
	}
	bases := c.bases()
	if i := slices.Index(bases, format.ParseFileName(name).Base); i+1 < len(bases) {
		return next <= bases[i+1]
	}
	return next <= c.end
}

// bases are the base offsets of the segments.
func (c *trial) bases() []int64 {
	logs, _ := filepath.Glob(filepath.Join(c.dir, "*.log"))
	var bases []int64
	for _, log := range logs {
		bases = append(bases, format.ParseFileName(filepath.Base(log)).Base)
	}
	return bases
}

// unseenEntry is unseen for the indexes.
func (c *trial) unseenEntry(file string, before, after []byte, healthy map[fileCode]bool) string {
	width := 8
	if strings.HasSuffix(file, ".timeindex") {
		width = 12
	}
	switch {
	case len(after) < len(before) && len(after)%width == 0:
		return "fewer entries, all of them right: restarts leave some out"
	case healthy[fileCode{file, "index-inexact"}] || healthy[fileCode{file, "timeindex-inexact"}] ||
		healthy[fileCode{file, "timeindex-differs-from-rebuild"}] || healthy[fileCode{file, "index-differs-from-rebuild"}] ||
		strings.Contains(c.base, "legacy"):
		return "old brokers write entries that no rule foresees"
	case strings.HasSuffix(c.base, "prealloc-0"):
		return "room that was used before is left by a truncation"
	}
	return ""
}

// TestFailureInAnotherFile: what is damaged keeps the start from reading another file, which is told with the damage.
func TestFailureInAnotherFile(t *testing.T) {
	for _, c := range []struct {
		base, file string
		bit        int
	}{
		{txnBase, "00000000000000000246.index", 7*8 + 5},
		{"0.9.0.1/legacy/old-v0-snappy-0", "00000000000000000000.log", 1343*8 + 4},
	} {
		trial := newTrial(t, rand.New(rand.NewPCG(5, 5)), filepath.Join(t.TempDir(), "data"), c.base)
		f := fault{file: filepath.Join(trial.dir, c.file), bit: c.bit}
		before, err := os.ReadFile(f.file)
		if err != nil {
			t.Fatal(err)
		}
		writeFile(t, f.file, f.do(before))
		found, _ := runOn(t, Options{Level: Records}, trial.root)
		found = slices.DeleteFunc(found, func(f Finding) bool { return f.Severity < Damage })
		if len(found) != 1 || !strings.Contains(found[0].Message, "does not load the partition") {
			t.Errorf("%s: %v", c.file, found)
		}
	}
}
