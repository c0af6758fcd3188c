package verify

import (
	"fmt"
	"hash/crc32"
	"math"
	"math/rand/v2"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"kseg/broker"
	"kseg/format"
	"kseg/internal/fixture"
	"kseg/logdir"
)

// trial is a log directory of one partition to which something was done.
type trial struct {
	base, did     string // a folder of testdata/logdirs; what was done
	root, dir     string // the log directory, and the partition in it
	clean         bool
	recoveryPoint int64
	watermark     int64
	end           int64 // of the log before
	compacted     bool
	healthy       map[intact]bool
	found         []Finding
	summary       Summary
}

// intact is a batch whose checksum holds.
type intact struct {
	base, next int64
	sum        uint32
}

// intactIn are the intact batches in the logs of a directory, also those behind damage.
func intactIn(t testing.TB, dir string) map[intact]bool {
	t.Helper()
	all := map[intact]bool{}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		name := format.ParseFileName(e.Name())
		if name.Kind != format.KindLog || name.Leftover() || !name.HasBase || !e.Type().IsRegular() {
			continue
		}
		raw, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		for scan := format.NewScanner(raw, 0, name.Base); scan.Next(); {
			if b := scan.Batch(); b != nil && b.Valid() {
				if !b.Legacy() {
					clear(b.Raw[12:16]) // the leader epoch, which no checksum covers
				}
				all[intact{b.BaseOffset, b.NextOffset(), crc32.ChecksumIEEE(b.Raw)}] = true
			}
		}
	}
	return all
}

// less are the batches that b lacks.
func less(a, b map[intact]bool) []intact {
	var gone []intact
	for batch := range a {
		if !b[batch] {
			gone = append(gone, batch)
		}
	}
	slices.SortFunc(gone, func(a, b intact) int { return int(a.base - b.base) })
	return gone
}

// trialBases are partitions in use of all kinds that are small enough.
func trialBases(t testing.TB) []string {
	t.Helper()
	bytes := map[string]int{}
	for _, name := range fixture.Files(t, "") {
		dir := path.Dir(name)
		if p, ok := format.ParsePartitionDir(path.Base(dir)); ok && p.Suffix == "" && !p.IsClusterMetadata() {
			bytes[dir] += len(fixture.Data(t, name))
		}
	}
	var small []string
	for dir, n := range bytes {
		if n < 200_000 {
			small = append(small, dir)
		}
	}
	slices.Sort(small)
	return small
}

// newTrial makes a healthy log directory of one partition, and in mode says how the broker stopped.
func newTrial(t testing.TB, rng *rand.Rand, root, base string) *trial {
	t.Helper()
	c := &trial{base: base, root: root, dir: filepath.Join(root, path.Base(base)), clean: rng.IntN(2) == 0}
	if err := fixture.Copy(c.dir, base); err != nil {
		t.Fatal(err)
	}
	c.healthy = intactIn(t, c.dir)
	offsets := []int64{0}
	logs, err := filepath.Glob(filepath.Join(c.dir, "*.log"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range logs {
		base := format.ParseFileName(filepath.Base(name)).Base
		offsets = append(offsets, base)
		c.end = max(c.end, base)
	}
	for b := range c.healthy {
		c.end = max(c.end, b.next)
	}
	c.recoveryPoint, c.watermark = c.end, c.end
	if !c.clean {
		c.recoveryPoint = offsets[rng.IntN(len(offsets))]
		if rng.IntN(2) == 0 {
			c.watermark = max(c.recoveryPoint, offsets[rng.IntN(len(offsets))])
		}
	}
	c.writeState(t, base)
	if c.verify(t); c.worst() > Note && c.clean {
		// It was never stopped cleanly.
		c.clean = false
		if err := os.Remove(filepath.Join(root, ".kafka_cleanshutdown")); err != nil {
			t.Fatal(err)
		}
	}
	return c
}

// writeState writes the files beside the partition.
func (c *trial) writeState(t testing.TB, base string) {
	t.Helper()
	p, _ := format.ParsePartitionDir(path.Base(base))
	c.compacted = p.Topic == "__consumer_offsets" || p.Topic == "__transaction_state"
	line := func(offset int64) []byte {
		return []byte("0\n1\n" + p.Topic + " " + strconv.Itoa(int(p.Partition)) + " " + strconv.FormatInt(offset, 10) + "\n")
	}
	files := map[string][]byte{recoveryFile: line(c.recoveryPoint), watermarkFile: line(c.watermark),
		"log-start-offset-checkpoint": []byte("0\n0\n"), "cleaner-offset-checkpoint": []byte("0\n0\n"),
		"meta.properties": []byte("version=1\nnode.id=1\ncluster.id=AABrc2VnAAAAAAAAAAAAAQ\n" +
			"directory.id=cOfP_cR_hDC40WnKuljcbA\n")}
	for _, name := range []string{"log-start-offset-checkpoint", "cleaner-offset-checkpoint"} {
		if raw, err := os.ReadFile(filepath.Join(fixture.Root(t), "logdirs", path.Dir(base), name)); err == nil {
			for entry := range strings.Lines(string(raw)) {
				if strings.HasPrefix(entry, fmt.Sprintf("%s %d ", p.Topic, p.Partition)) {
					files[name] = []byte("0\n1\n" + entry)
					c.compacted = c.compacted || strings.HasPrefix(name, "cleaner")
				}
			}
		}
	}
	if c.clean {
		files[".kafka_cleanshutdown"] = []byte(`{"version":0,"brokerEpoch":5}`)
	}
	for name, content := range files {
		writeFile(t, filepath.Join(c.root, name), content)
	}
}

// verify looks at the directory.
func (c *trial) verify(t testing.TB) {
	t.Helper()
	c.found, c.summary = runOn(t, Options{Level: Records}, c.root)
}

// worst is the severest finding.
func (c *trial) worst() Severity {
	worst := Severity(0)
	for i := range c.found {
		worst = max(worst, c.found[i].Severity)
	}
	return worst
}

func (c *trial) String() string {
	var found []string
	for i := range c.found {
		if c.found[i].Severity > Note {
			found = append(found, line(&c.found[i]))
		} else {
			found = append(found, c.found[i].Code)
		}
	}
	return fmt.Sprintf("%s (clean %v, recovery point %d, high watermark %d of %d): %s\n\t%s", c.base, c.clean,
		c.recoveryPoint, c.watermark, c.end, c.did, strings.Join(found, "\n\t"))
}

// nextStart plays through the next start.
func (c *trial) nextStart(t testing.TB) *broker.PartitionStart {
	t.Helper()
	set, err := logdir.Open([]string{c.root}, logdir.Options{})
	if err != nil {
		t.Fatal(err)
	}
	d := &driver{ctx: t.Context(), opts: &Options{MaxBatchBytes: 1 << 20, Now: time.UnixMilli(1796000000000)}, set: set}
	b, dir := d.start(set.LogDirs()[0])
	s := b.Load(dir, set.Partitions()[0])
	if s.Err != nil {
		t.Fatal(s.Err)
	}
	return s
}

// gone are batches that are neither in a log nor in a file that the start puts in a log's place, and that neither
// retention nor the log cleaner nor a crash explains.
func (c *trial) gone(t testing.TB) []intact {
	t.Helper()
	if strings.Contains(c.did, "leave") {
		return nil
	}
	there := intactIn(t, c.dir)
	gone := slices.DeleteFunc(less(c.healthy, there), c.explained(there))
	if gone = slices.DeleteFunc(gone, c.crashed); len(gone) > 0 {
		return gone
	}
	return nil
}

// crashed reports whether a crash may have taken a batch.
func (c *trial) crashed(b intact) bool { return !c.clean && b.base >= c.watermark }

// explained reports what a broker itself takes: segments from the oldest on, by retention, and batches of a compacted
// log that others come after.
func (c *trial) explained(after map[intact]bool) func(intact) bool {
	first, last := int64(math.MaxInt64), int64(-1)
	for b := range after {
		first, last = min(first, b.base), max(last, b.base)
	}
	// A crash takes whole files of a last segment that was not on the disk yet.
	dropped := !c.clean && strings.HasPrefix(c.did, "drop segment")
	return func(b intact) bool {
		return b.next <= first && len(after) > 0 || c.compacted && b.base < last || dropped && b.base >= c.watermark
	}
}
